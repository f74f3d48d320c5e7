//! One source of words for every run: the command line, then the file that `--policy` names, then the profile and
//! what it is based on, then the administrator's defaults. The nearest that says something has it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use clap::ArgMatches;

use super::keys::{self, Line};
use super::options::{self, Row};
use super::values;
use crate::error::{Error, Result, show};
use crate::policy::files::{self, Document, Find, Which};
use crate::policy::origin::{File, Kind};
use crate::policy::{Origin, Setting};

/// A profile that needs more than this to say what it is based on is a loop or a riddle.
const MAX_BASES: usize = 8;

/// One word of one option.
#[derive(Debug, Clone)]
pub struct Word {
    pub row: &'static Row,
    /// `true` or `false` for a switch.
    pub value: OsString,
    pub origin: Origin,
    pub layer: usize,
}

impl Word {
    pub fn is(&self, name: &str) -> bool {
        self.row.name == name
    }

    /// A message about this word, in the terms of where it stands.
    pub fn told(&self, error: Error) -> Error {
        let Origin::File { file, line } = &self.origin else { return error };
        let bare = |text: &str| text.strip_prefix("--").unwrap_or(text).replace(" and --", " and ");
        let told = Error::usage(format!("{file}, line {line}: {}", bare(&error.to_string())));
        let Some(hint) = error.hint() else { return told };
        let key = format!("--{} ", self.row.name);
        told.with_hint(match hint.strip_prefix(&key) {
            // `--net none`: what stands on a command line, as it stands in a file.
            Some(word) if !word.contains(' ') && self.row.repeat => {
                format!("{} = [\"{word}\"]", self.row.name)
            }
            Some(word) if !word.contains(' ') => format!("{} = \"{word}\"", self.row.name),
            _ => bare(hint),
        })
    }

    fn setting(&self) -> Setting {
        let value = match (self.row.value, self.row.name) {
            (options::Value::None, _) => OsString::new(),
            // A value may be a secret.
            (_, "env") => OsStr::from_bytes(variable(&self.value)).to_owned(),
            _ => self.value.clone(),
        };
        Setting { option: self.row.name, value, origin: self.origin.clone(), layer: self.layer }
    }
}

/// What is in effect, nearest layer first.
#[derive(Debug, Default)]
pub struct Given {
    pub words: Vec<Word>,
    /// What the administrator lets nobody lift.
    pub line: Line,
    pub files: Vec<Arc<File>>,
    /// Each profile that has a part in it, be it only what another one is based on.
    pub profiles: Vec<Word>,
}

impl Given {
    pub fn one(&self, name: &str) -> Option<&Word> {
        self.words.iter().find(|word| word.is(name))
    }

    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Word> {
        self.words.iter().filter(move |word| word.is(name))
    }

    pub fn flag(&self, name: &str) -> bool {
        self.one(name).is_some_and(|word| word.value == "true")
    }

    /// A message about an option that was given, in the terms of where it was.
    pub fn told(&self, name: &str, error: Error) -> Error {
        match self.one(name) {
            Some(word) => word.told(error),
            None => error,
        }
    }

    pub fn settings(&self) -> Vec<Setting> {
        let off = |word: &&Word| word.row.value != options::Value::None || word.value == "true";
        self.words.iter().filter(off).map(Word::setting).collect()
    }

    pub fn of_line(options: &ArgMatches) -> Given {
        Given { words: command_line(options), ..Given::default() }
    }
}

/// Reads the files that a line leads to; `check` is what one layer by itself must pass.
pub fn gather(options: &ArgMatches, find: Find<'_>, check: fn(&Given) -> Result<()>) -> Result<Given> {
    let mut given = Given::of_line(options);
    let mut layers: Vec<keys::Read> = Vec::new();
    let system = find(Which::System)?.map(|found| keys::read(&found)).transpose()?;
    if let Some(path) = values::one(options, "policy") {
        let path = values::path("policy", path)?;
        layers.extend(find(Which::Named(&path))?.map(|found| keys::read(&found)).transpose()?);
    }
    let mut base = match values::one(options, "profile") {
        Some(name) => Some((name.to_string_lossy().into_owned(), None)),
        None => layers.first().and_then(keys::Read::base).or(system.as_ref().and_then(keys::Read::base)),
    };
    let mut passed: Vec<String> = Vec::new();
    while let Some((name, by)) = base {
        if passed.contains(&name) || passed.len() == MAX_BASES {
            let shown = show(name.as_ref()).to_string();
            return Err(at(&by, Error::usage(format!("profile {shown} is based on itself"))));
        }
        let read = keys::read(&profile(&name, find).map_err(|error| at(&by, error))?)?;
        base = read.base();
        if let Some(row) = options::RUN.iter().find(|row| row.name == "profile") {
            let (value, origin) = (name.clone().into(), by.unwrap_or_default());
            given.profiles.push(Word { row, value, origin, layer: 0 });
        }
        passed.push(name);
        layers.push(read);
    }
    layers.extend(system);
    for (index, layer) in layers.into_iter().enumerate() {
        let words = layer.words.into_iter().map(|word| Word { layer: index + 1, ..word }).collect();
        let alone = Given { words, ..Given::default() };
        check(&alone)?;
        given.words.extend(alone.words);
        given.files.push(layer.file);
        // Only the administrator's file has one.
        given.line.extend(layer.line);
    }
    given.words = effective(given.words);
    Ok(given)
}

pub fn profile(name: &str, find: Find<'_>) -> Result<Document> {
    if let Some(found) = find(Which::Profile(name))? {
        return Ok(found);
    }
    let names = files::names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let error = Error::usage(format!("no profile {}", show(name.as_ref())));
    Err(match values::nearest(name, &names) {
        Some(near) => error.with_hint(format!("did you mean '{near}'?")),
        None => error.with_hint(format!("there are {}", names.join(", "))),
    })
}

/// What is wrong with the base that a file names, at its place.
pub(super) fn at(by: &Option<Origin>, error: Error) -> Error {
    let Some(origin) = by else { return error };
    // What a file of its own says about itself names that file.
    let told = Error::usage(format!("{origin}: {error}"));
    match error.hint() {
        Some(hint) => told.with_hint(hint),
        None => told,
    }
}

fn command_line(options: &ArgMatches) -> Vec<Word> {
    let mut words = Vec::new();
    for row in options::RUN {
        let word = |value| Word { row, value, origin: Origin::CommandLine, layer: 0 };
        match row.value {
            options::Value::None if values::flag(options, row.name) => words.push(word("true".into())),
            options::Value::None => {}
            _ => words.extend(values::all(options, row.name).into_iter().map(word)),
        }
    }
    words
}

/// Without what a nearer layer says otherwise. Within one layer nothing is decided here: there a contradiction is
/// an error.
fn effective(words: Vec<Word>) -> Vec<Word> {
    let mut kept: Vec<Word> = Vec::with_capacity(words.len());
    for word in words {
        let beaten = |nearer: &Word| nearer.layer < word.layer && beats(nearer, &word);
        if !kept.iter().any(beaten) {
            kept.push(word);
        }
    }
    kept
}

const PATHS: [&str; 5] = ["workspace", "ro", "rw", "hide", "seal"];

fn beats(nearer: &Word, word: &Word) -> bool {
    let (name, other) = (nearer.row.name, word.row.name);
    if name == other && !word.row.repeat {
        return true;
    }
    let own_loopback = |word: &Word| word.is("loopback") && word.value != "host";
    let ruled = |word: &Word| word.is("connect") || word.is("listen");
    match (name, other) {
        // One path has one access.
        _ if PATHS.contains(&name) && PATHS.contains(&other) => {
            lexical(Path::new(&nearer.value)) == lexical(Path::new(&word.value))
        }
        ("require", "waive") | ("waive", "require") => nearer.value == word.value,
        ("strict", "waive") => nearer.value == "true",
        ("env", "env") => variable(&nearer.value) == variable(&word.value),
        ("workspace", "no-workspace") | ("no-workspace", "workspace") => true,
        ("listen", "listen") => (nearer.value == "any") != (word.value == "any"),
        // The host's network as a whole, by ports, or none of it: see `network` in rules.
        ("net", _) if ruled(word) => true,
        (_, "net") if ruled(nearer) => true,
        ("net", _) if own_loopback(word) => nearer.value == "host",
        (_, "net") if own_loopback(nearer) => word.value == "host",
        _ => own_loopback(nearer) && ruled(word) || ruled(nearer) && own_loopback(word),
    }
}

/// The name in `NAME=VALUE`.
fn variable(word: &OsStr) -> &[u8] {
    word.as_bytes().split(|&byte| byte == b'=').next().unwrap_or_default()
}

/// Without `.` components and double or trailing slashes; `..` stays, for what it leads to depends on links.
pub fn lexical(path: &Path) -> PathBuf {
    let plain: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
    if plain.as_os_str().is_empty() { PathBuf::from(".") } else { plain }
}

/// `confine explain --profile NAME`: the file itself, with where it lies.
pub fn text(found: &Document) -> String {
    let place = match (&found.file.place, &found.file.kind) {
        (None, Kind::Profile(name)) => format!("# profile {name}, built in\n"),
        _ => format!("# {}\n", found.file),
    };
    format!("{place}\n{}", found.file.text)
}

#[cfg(test)]
#[path = "layers/tests.rs"]
mod tests;
