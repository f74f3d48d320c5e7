//! The file that confine-shell goes by, and the line that it stands for.

use std::ffi::OsString;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Invocation, Request, layers, parse, values};
use crate::error::{Error, Result, show};
use crate::policy::Origin;
use crate::policy::files::document::{Element, Item, Value};
use crate::policy::files::{Document, Find, check_name, expand};
use crate::policy::origin::File;

/// In the order of the manual page.
pub const KEYS: &[&str] = &["workspaces", "profile", "profiles", "shell", "start", "trust-environment"];

/// More would be a mistake, and each is looked for at every start.
const MAX_AREAS: usize = 256;

#[derive(Debug)]
pub struct ShellFile {
    pub file: Arc<File>,
    /// With the line that says so.
    pub shell: Option<(PathBuf, usize)>,
    pub start: Option<PathBuf>,
    pub start_line: usize,
    pub areas: Vec<Area>,
    pub workspaces_line: Option<usize>,
    pub trusts_environment: bool,
    profile: Option<Named>,
}

/// A workspace; or, ending in `/*`, each directory right below.
#[derive(Debug)]
pub struct Area {
    pub base: PathBuf,
    pub each: bool,
    pub profile: Option<Named>,
}

#[derive(Debug, Clone)]
pub struct Named {
    profile: String,
    line: usize,
}

impl ShellFile {
    pub fn read(found: &Document) -> Result<ShellFile> {
        let mut read = ShellFile {
            file: Arc::clone(&found.file),
            shell: None,
            start: None,
            start_line: 1,
            areas: Vec::new(),
            workspaces_line: None,
            trusts_environment: false,
            profile: None,
        };
        let home = found.home.as_deref();
        for item in &found.items {
            read.take(item, home)?;
        }
        if read.areas.is_empty() {
            return Err(read
                .wrong(1, "no workspace is named")
                .with_hint("workspaces = [\"~/src/*\", \"~/project\"]"));
        }
        if read.areas.len() > MAX_AREAS {
            return Err(read.wrong(1, "more than 256 workspaces"));
        }
        Ok(read)
    }

    pub fn wrong(&self, line: usize, what: impl Display) -> Error {
        Error::usage(format!("{}, line {line}: {what}", self.file))
    }

    fn take(&mut self, item: &Item, home: Option<&Path>) -> Result<()> {
        let Item { key, line, value } = item;
        let line = *line;
        match (key.as_str(), value) {
            ("workspaces", Value::List(list)) => {
                self.workspaces_line = Some(line);
                for (line, element) in list {
                    let Element::Word(text) = element else {
                        return Err(self.wrong(*line, "workspaces is a list of paths"));
                    };
                    let area = self.area(*line, text, None, home)?;
                    self.areas.push(area);
                }
            }
            ("profiles", Value::Table(named)) => {
                for (line, path, element) in named {
                    let Element::Word(profile) = element else {
                        return Err(self.wrong(*line, "profiles has a profile for each path"));
                    };
                    let named = self.named(*line, profile)?;
                    let area = self.area(*line, path, Some(named), home)?;
                    self.areas.push(area);
                }
            }
            ("profile", Value::Word(name)) => self.profile = Some(self.named(line, name)?),
            ("shell", Value::Word(path)) => {
                if !Path::new(path).is_absolute() || path.contains('\0') {
                    return Err(self
                        .wrong(line, format_args!("shell {}: not absolute", show(path.as_ref())))
                        .with_hint("shell = \"/bin/bash\""));
                }
                self.shell = Some((path.into(), line));
            }
            ("start", Value::Word(path)) => {
                self.start = Some(self.path(line, "start", path, home)?);
                self.start_line = line;
            }
            ("trust-environment", Value::Flag(flag)) => self.trusts_environment = *flag,
            (name, _) if KEYS.contains(&name) => {
                return Err(self.wrong(line, format_args!("not a value of {name}")).with_hint(sample(name)));
            }
            (name, _) => {
                let error = self.wrong(line, format_args!("unknown key {}", show(name.as_ref())));
                return Err(match values::nearest(name, KEYS) {
                    Some(near) => error.with_hint(format!("did you mean '{near}'?")),
                    None => {
                        error.with_hint(format!("there are {}; options belong in a profile", KEYS.join(", ")))
                    }
                });
            }
        }
        Ok(())
    }

    fn named(&self, line: usize, profile: &str) -> Result<Named> {
        check_name(profile).map_err(|error| self.at(line, error))?;
        Ok(Named { profile: profile.to_owned(), line })
    }

    fn at(&self, line: usize, error: Error) -> Error {
        layers::at(&Some(Origin::File { file: Arc::clone(&self.file), line }), error)
    }

    fn area(&self, line: usize, text: &str, profile: Option<Named>, home: Option<&Path>) -> Result<Area> {
        let (base, each) = match text.strip_suffix("/*") {
            Some("") => ("/", true),
            Some(base) => (base, true),
            None => (text, false),
        };
        if base.split('/').any(|part| part.contains('*')) {
            return Err(self.wrong(
                line,
                format_args!("workspace {}: '*' stands alone, as the last part", show(text.as_ref())),
            ));
        }
        Ok(Area { base: self.path(line, "workspace", base, home)?, each, profile })
    }

    fn path(&self, line: usize, what: &str, text: &str, home: Option<&Path>) -> Result<PathBuf> {
        let shown = show(text.as_ref());
        if text.contains('\0') {
            return Err(self.wrong(line, format_args!("{what} {shown} holds a NUL")));
        }
        expand(text, home).map_err(|why| self.wrong(line, format_args!("{what} {shown}: {why}")))
    }
}

fn sample(name: &str) -> &'static str {
    match name {
        "workspaces" => "workspaces = [\"~/src/*\", \"~/project\"]",
        "profiles" => "[profiles]  and lines such as  \"~/src/web\" = \"dev-server\"",
        "profile" => "profile = \"workspace-write\"",
        "shell" => "shell = \"/bin/bash\"",
        "start" => "start = \"~/project\"",
        _ => "trust-environment = true",
    }
}

/// `confine --profile PROFILE --workspace WORKSPACE --chdir START -- COMMAND`
pub fn invocation(
    file: &ShellFile,
    area: &Area,
    workspace: PathBuf,
    start: Option<PathBuf>,
    command: Vec<OsString>,
    find: Find<'_>,
) -> Result<Invocation> {
    let named = area.profile.as_ref().or(file.profile.as_ref());
    let mut line: Vec<OsString> = vec!["confine".into()];
    if let Some(named) = named {
        line.extend(["--profile".into(), named.profile.clone().into()]);
    }
    line.extend(["--workspace".into(), workspace.into()]);
    if let Some(start) = start {
        line.extend(["--chdir".into(), start.into()]);
    }
    line.push("--".into());
    line.extend(command);
    match parse(line, find) {
        Ok(Request::Run(invocation)) => Ok(invocation),
        Ok(_) => Err(Error::refused("no line of confine came of it")),
        // Whoever named a profile that does not exist did it in the file.
        Err(error) => Err(match named.map(|named| (named, layers::profile(&named.profile, find))) {
            Some((named, Err(inner))) => file.at(named.line, inner),
            _ => error,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::files::document;
    use crate::policy::origin::Kind;

    fn read(text: &str) -> Result<ShellFile> {
        let items = document::parse(text).map_err(|fault| Error::usage(fault.what))?;
        let file = Arc::new(File { kind: Kind::Shell, place: None, text: text.to_owned() });
        ShellFile::read(&Document { file, items, home: Some("/home/u".into()) })
    }

    #[test]
    fn paths_begin_at_the_home_of_the_account_and_a_star_means_each() {
        let file = read(
            "workspaces = ['~/src/*', '/srv/x']\nshell = '/bin/zsh'\nprofile = 'build'\n\
             [profiles]\n'~/src/web' = 'dev-server'\n",
        )
        .unwrap();
        let areas: Vec<(&str, bool, Option<&str>)> = file
            .areas
            .iter()
            .map(|area| {
                let profile = area.profile.as_ref().map(|named| named.profile.as_str());
                (area.base.to_str().unwrap(), area.each, profile)
            })
            .collect();
        let expected = [
            ("/home/u/src", true, None),
            ("/srv/x", false, None),
            ("/home/u/src/web", false, Some("dev-server")),
        ];
        assert_eq!(areas, expected);
        assert_eq!(file.shell, Some(("/bin/zsh".into(), 2)));
    }

    #[test]
    fn what_cannot_be_understood_is_told_with_line_and_key() {
        for (text, words) in [
            ("", "line 1: no workspace is named"),
            ("workspaces = []", "no workspace is named"),
            ("workspaces = ['a']", "neither absolute"),
            ("workspaces = '~/a'", "not a value of workspaces"),
            ("workspaces = [1.5]", "a list of paths"),
            ("workspaces = ['~/*/a']", "'*' stands alone"),
            ("workspaces = ['~/a*']", "'*' stands alone"),
            ("\nworkspace = ['~/a']", "line 2: unknown key 'workspace'"),
            ("net = 'host'", "unknown key 'net'"),
            ("workspaces = ['/a']\nshell = 'bash'", "line 2: shell 'bash': not absolute"),
            ("profile = '../x'", "not a plain name"),
            ("[profiles]\n'~/a' = true", "line 2: profiles has a profile"),
            ("trust-environment = 'yes'", "not a value of trust-environment"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text:?}: {error}");
        }
    }
}
