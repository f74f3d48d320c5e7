//! Where something that was asked for was said. No part of a plan: the same policy from a file and from a command
//! line is the same boundary.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::{Error, show};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Origin {
    #[default]
    CommandLine,
    File {
        file: Arc<File>,
        line: usize,
    },
}

/// A policy file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    pub kind: Kind,
    /// None for what is built in.
    pub place: Option<Location>,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// The administrator's.
    System,
    Profile(String),
    /// `--policy FILE`.
    Named,
    /// confine-shell's.
    Shell,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// As it was looked up.
    pub named: PathBuf,
    /// Where that led.
    pub path: PathBuf,
    /// Each link on the way, at its own canonical path.
    pub links: Vec<PathBuf>,
}

impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.place, &self.kind) {
            (Some(place), Kind::Profile(name)) => {
                write!(f, "profile {} ({})", show(name.as_ref()), show(place.named.as_os_str()))
            }
            (Some(place), _) => write!(f, "{}", show(place.named.as_os_str())),
            (None, Kind::Profile(name)) => write!(f, "built-in profile {}", show(name.as_ref())),
            (None, _) => f.write_str("built in"),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::CommandLine => f.write_str("command line"),
            Origin::File { file, line } => write!(f, "{file}, line {line}"),
        }
    }
}

impl Origin {
    pub fn is_file(&self) -> bool {
        matches!(self, Origin::File { .. })
    }

    /// A message about what this key says, in the terms of where it stands: with file and line, and with the key. The
    /// hint is what a command line would say.
    pub fn told(&self, key: &str, error: Error) -> Error {
        if !self.is_file() {
            return error;
        }
        let text = error.to_string();
        let bare = text.strip_prefix("--").unwrap_or(&text).replace(" and --", " and ");
        let named = bare.starts_with(key) || text.contains(&format!("--{key}"));
        let told = match named {
            true => Error::usage(format!("{self}: {bare}")),
            false => Error::usage(format!("{self}: {key}: {bare}")),
        };
        match error.hint() {
            Some(hint) => told.with_hint(hint),
            None => told,
        }
    }
}

/// One word of an option that is in effect: a nearer layer has not said otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The option without its dashes.
    pub option: &'static str,
    /// As the policy has it: a path from a file without `~`, of `NAME=VALUE` the name. Empty for a switch.
    pub value: OsString,
    pub origin: Origin,
    /// How far from the command line, which is 0.
    pub layer: usize,
}

impl Setting {
    pub fn is(&self, option: &str, value: &OsStr) -> bool {
        self.option == option && self.value == value
    }

    pub fn told(&self, error: Error) -> Error {
        self.origin.told(self.option, error)
    }
}
