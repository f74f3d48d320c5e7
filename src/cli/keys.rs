//! The keys of a policy file: those of the options, and in the administrator's file what nobody may lift.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::layers::Word;
use super::options::{self, Row, Value};
use super::values;
use crate::error::{Error, Result, show};
use crate::policy::files::document::{self, Element, Item};
use crate::policy::files::{Document, SYSTEM, expand};
use crate::policy::origin::{File, Kind};
use crate::policy::{Origin, Promise};

/// Options without a key, and why.
pub const ON_LINE_ONLY: &[(&str, &str)] = &[
    ("policy", "a file is based on another one by 'profile'"),
    ("fd", "the number of a descriptor is known to who starts confine"),
    ("status-fd", "the number of a descriptor is known to who starts confine"),
];

/// Keys of the administrator's file alone.
pub const LINE: &[&str] = &["never-waive", "always-require", "never-visible", "never-allow"];

/// More would be a mistake, and would take long to compare.
const MAX_WORDS: usize = 4096;

/// What the administrator lets nobody lift.
#[derive(Debug, Default)]
pub struct Line {
    pub never_waive: BTreeMap<Promise, Origin>,
    pub always_require: BTreeMap<Promise, Origin>,
    pub never_visible: Vec<(PathBuf, Origin)>,
    pub never_allow: Vec<Ban>,
}

/// An option, or one of its words, that nobody may give.
#[derive(Debug)]
pub struct Ban {
    row: &'static Row,
    word: Option<String>,
    pub origin: Origin,
}

impl Ban {
    pub fn meets(&self, word: &Word) -> bool {
        let switched_off = word.row.value == Value::None && word.value != "true";
        word.row.name == self.row.name
            && !switched_off
            && self.word.as_ref().is_none_or(|banned| word.value == banned.as_str())
    }
}

impl Line {
    pub fn extend(&mut self, other: Line) {
        self.never_waive.extend(other.never_waive);
        self.always_require.extend(other.always_require);
        self.never_visible.extend(other.never_visible);
        self.never_allow.extend(other.never_allow);
    }
}

/// What one file says.
pub struct Read {
    pub file: Arc<File>,
    pub words: Vec<Word>,
    pub line: Line,
}

impl Read {
    /// The profile that this file is based on, and where it says so.
    pub fn base(&self) -> Option<(String, Option<Origin>)> {
        let word = self.words.iter().find(|word| word.is("profile"))?;
        Some((word.value.to_string_lossy().into_owned(), Some(word.origin.clone())))
    }
}

pub fn read(found: &Document) -> Result<Read> {
    let mut read = Read { file: Arc::clone(&found.file), words: Vec::new(), line: Line::default() };
    for item in &found.items {
        let key = Key { file: &found.file, home: found.home.as_deref(), item };
        if LINE.contains(&item.key.as_str()) {
            key.line(&mut read.line)?;
        } else {
            read.words.extend(key.words()?);
        }
        if read.words.len() > MAX_WORDS {
            return Err(key.wrong(item.line, "more than 4096 values in one file"));
        }
    }
    Ok(read)
}

struct Key<'a> {
    file: &'a Arc<File>,
    home: Option<&'a Path>,
    item: &'a Item,
}

impl Key<'_> {
    fn origin(&self, line: usize) -> Origin {
        Origin::File { file: Arc::clone(self.file), line }
    }

    fn wrong(&self, line: usize, what: impl std::fmt::Display) -> Error {
        Error::usage(format!("{}, line {line}: {what}", self.file))
    }

    fn row(&self) -> Result<&'static Row> {
        let name = self.item.key.as_str();
        let shown = show(name.as_ref()).to_string();
        if let Some((_, why)) = ON_LINE_ONLY.iter().find(|(option, _)| *option == name) {
            return Err(self
                .wrong(self.item.line, format!("key {shown} belongs on the command line: {why}"))
                .with_hint(format!("`confine --{name} ...`")));
        }
        if let Some(row) = options::RUN.iter().find(|row| row.name == name) {
            return Ok(row);
        }
        let error = self.wrong(self.item.line, format!("unknown key {shown}"));
        let with_line = if self.file.kind == Kind::System { LINE } else { &[] };
        let names: Vec<&str> = keys().chain(with_line.iter().copied()).collect();
        Err(match values::nearest(name, &names) {
            Some(near) => error.with_hint(format!("did you mean '{near}'?")),
            None => error.with_hint("the keys are the long options: `confine --help`, `man confine-policy`"),
        })
    }

    fn words(&self) -> Result<Vec<Word>> {
        let row = self.row()?;
        let name = row.name;
        let word = |line, text: &str| -> Result<Word> {
            Ok(Word { row, value: self.value(row, line, text)?, origin: self.origin(line), layer: 0 })
        };
        match (&self.item.value, row.value, row.repeat) {
            (document::Value::Flag(flag), Value::None, _) => {
                let value = if *flag { "true" } else { "false" };
                let origin = self.origin(self.item.line);
                Ok(vec![Word { row, value: value.into(), origin, layer: 0 }])
            }
            (_, Value::None, _) => Err(self
                .wrong(self.item.line, format!("{name} is true or false"))
                .with_hint(format!("{name} = true"))),
            (document::Value::Word(text), _, false) => Ok(vec![word(self.item.line, text)?]),
            (document::Value::List(_), _, true) => {
                self.list()?.into_iter().map(|(line, text)| word(line, text)).collect()
            }
            (found, _, true) => Err(self
                .wrong(self.item.line, format!("{name} is a list"))
                .with_hint(format!("{name} = [{}]", sample(name, found)))),
            (document::Value::Other(kind), ..) => {
                Err(self.wrong(self.item.line, format!("{name} is a word, not {kind}")))
            }
            (document::Value::Table(_), ..) => {
                Err(self.wrong(self.item.line, format!("{name} is a word, not a table")))
            }
            (..) => Err(self
                .wrong(self.item.line, format!("{name} is one word, in quotes"))
                .with_hint(format!("{name} = \"{}\"", row.placeholder()))),
        }
    }

    /// The strings and numbers of a list, each with its line.
    fn list(&self) -> Result<Vec<(usize, &str)>> {
        let name = &self.item.key;
        let document::Value::List(list) = &self.item.value else {
            return Err(self
                .wrong(self.item.line, format!("{name} is a list"))
                .with_hint(format!("{name} = [{}]", sample(name, &self.item.value))));
        };
        let mut words = Vec::with_capacity(list.len());
        for (line, element) in list {
            match element {
                Element::Word(text) => words.push((*line, text.as_str())),
                Element::Other(kind) => {
                    return Err(self.wrong(*line, format!("{name} is a list of words, and holds {kind}")));
                }
            }
        }
        Ok(words)
    }

    /// Of a path, where it leads from anywhere. A command could have chosen the working directory's contents, so only
    /// a workspace, which it may change in any case, is named from there.
    fn value(&self, row: &Row, line: usize, text: &str) -> Result<OsString> {
        let path = matches!(row.value, Value::Path | Value::Directory);
        let as_it_is = !path
            || row.name == "workspace" && !text.starts_with('~')
            || (row.name, text) == ("state", "auto");
        if text.contains('\0') {
            return Err(self.wrong(line, format!("{} holds a NUL", row.name)));
        }
        if as_it_is || text.is_empty() {
            return Ok(text.into());
        }
        match expand(text, self.home) {
            Ok(path) => Ok(path.into()),
            Err(why) => Err(self
                .wrong(line, format!("{} {}: {why}", row.name, show(text.as_ref())))
                .with_hint(format!(
                    "{} = \"/...\" or \"~/...\"; only a workspace is seen from where confine starts",
                    row.name
                ))),
        }
    }

    fn line(&self, into: &mut Line) -> Result<()> {
        let key = self.item.key.as_str();
        if self.file.kind != Kind::System {
            return Err(self.wrong(self.item.line, format!("{key} is the administrator's, in {SYSTEM}")));
        }
        for (line, text) in self.list()? {
            let origin = self.origin(line);
            match key {
                "never-visible" => {
                    let path = PathBuf::from(text);
                    if !path.is_absolute() || text.contains('\0') {
                        return Err(self.wrong(line, format!("{key} {}: not absolute", show(text.as_ref()))));
                    }
                    into.never_visible.push((path, origin));
                }
                "never-allow" => into.never_allow.push(self.ban(line, text)?),
                _ => {
                    let choices = Promise::ALL.map(|promise| (promise.name(), promise));
                    let promise = values::choice(key, text.as_ref(), &choices).map_err(|error| {
                        let near = error.hint().map(|hint| hint.trim_start_matches("--")).map(|hint| {
                            match hint.strip_prefix(key).map(str::trim) {
                                Some(word) if !word.contains(' ') => format!("{key} = [\"{word}\"]"),
                                _ => hint.to_owned(),
                            }
                        });
                        let told = self.wrong(line, error.to_string().trim_start_matches("--"));
                        near.map_or(Error::usage(told.to_string()), |hint| told.with_hint(hint))
                    })?;
                    let list =
                        if key == "never-waive" { &mut into.never_waive } else { &mut into.always_require };
                    list.entry(promise).or_insert(origin);
                }
            }
        }
        Ok(())
    }

    /// `OPTION` or `OPTION=WORD`. A word only where there are few of them: nobody could list every spelling of a path
    /// or a number.
    fn ban(&self, line: usize, text: &str) -> Result<Ban> {
        let (name, word) = match text.split_once('=') {
            Some((name, word)) => (name, Some(word.to_owned())),
            None => (text, None),
        };
        let shown = match &word {
            // As everywhere: what stands after a variable's name may be a secret.
            Some(_) if name == "env" => "'env=...'".to_owned(),
            _ => show(text.as_ref()).to_string(),
        };
        let names: Vec<&str> = options::RUN.iter().map(|row| row.name).collect();
        let Some(row) = options::RUN.iter().find(|row| row.name == name) else {
            let error = self.wrong(line, format!("never-allow {shown}: no such option"));
            return Err(match values::nearest(name, &names) {
                Some(near) => error.with_hint(format!("did you mean '{near}'?")),
                None => error,
            });
        };
        let words: &[&str] = match row.value {
            Value::OneOf(_, words) => words,
            Value::Word("PORT|any") => &["any"],
            _ => &[],
        };
        match &word {
            Some(word) if !words.contains(&word.as_str()) && name != "profile" => {
                let error = self.wrong(line, format!("never-allow {shown}: not a word of {name}"));
                Err(match words {
                    [] => error.with_hint(format!("never-allow = [\"{name}\"]")),
                    words => error.with_hint(format!("{name} takes {}", words.join(", "))),
                })
            }
            _ => Ok(Ban { row, word, origin: self.origin(line) }),
        }
    }
}

/// The keys of every file, in the order of the help.
pub fn keys() -> impl Iterator<Item = &'static str> {
    let has = |name: &&str| !ON_LINE_ONLY.iter().any(|(option, _)| option == name);
    options::RUN.iter().filter(|row| !row.hidden).map(|row| row.name).filter(has)
}

/// Each key and what kind of value it takes, for the manual page.
pub fn table() -> impl Iterator<Item = (&'static str, &'static str)> {
    let kind = |row: &Row| match (row.value, row.repeat) {
        (Value::None, _) => "switch",
        (Value::Directory | Value::Path, false) => "path",
        (Value::Directory | Value::Path, true) => "list of paths",
        (Value::Number("TIME"), _) => "time",
        (Value::Number("SIZE"), _) => "size",
        (Value::Number("N"), _) => "number",
        (_, false) => "word",
        (_, true) => "list",
    };
    let row = |name| options::RUN.iter().find(|row| row.name == name);
    keys().filter_map(row).map(move |row| (row.name, kind(row)))
}

/// What was given, as the one thing in a list; of a variable the name alone, for its value may be a secret.
fn sample(name: &str, found: &document::Value) -> String {
    match found {
        _ if name == "env" => "\"NAME\", \"NAME=VALUE\"".to_owned(),
        document::Value::Word(word) if word.bytes().all(|byte| byte.is_ascii_digit()) => word.clone(),
        document::Value::Word(word) => format!("{:?}", word.chars().take(40).collect::<String>()),
        _ => "...".to_owned(),
    }
}
