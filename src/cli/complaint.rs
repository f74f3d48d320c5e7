//! What is said about a command line that cannot be understood: one line in confine's own words, and the line
//! that was most likely meant.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::SUBCOMMANDS;
use crate::error::{Error, paste, show};

/// A corrected line longer than this helps nobody; its end is left out.
const LINE: usize = 400;

/// `confine -w . make test`
pub fn no_separator(called: &[&str], given: &[OsString], command: &[OsString]) -> Error {
    let Some(first) = command.first() else { return no_command(called, given) };
    if called.len() == 1 && SUBCOMMANDS.iter().any(|name| first == name) && !given.is_empty() {
        return out_of_place(first, given, &command[1..], None);
    }
    let command = &without_values(given, command);
    let first = &command[0];
    Error::usage(format!("no '--' before the command {}", show(first))).with_hint(line(
        called,
        &with_workspace(called, given),
        Some(command),
    ))
}

/// `confine -w . extra -- make test`
pub fn stray_words(called: &[&str], given: &[OsString], stray: &[OsString], command: &[OsString]) -> Error {
    let stray = without_values(given, stray);
    match stray.first() {
        Some(first) if called.len() == 1 && SUBCOMMANDS.iter().any(|name| first == name) => {
            out_of_place(first, given, &stray[1..], Some(command))
        }
        Some(first) => Error::usage(format!("unexpected word {} before '--'", show(first))).with_hint(line(
            called,
            &with_workspace(called, given),
            Some(command),
        )),
        None => no_command(called, given),
    }
}

/// Without a workspace the line would be refused too. A policy file may name one.
fn with_workspace(called: &[&str], given: &[OsString]) -> Vec<OsString> {
    const NAMES: &[&str] = &["-w", "--workspace", "--no-workspace", "--policy", "--profile"];
    let runs = matches!(called, [_] | [_, "explain" | "trace"]);
    let named =
        given.iter().any(|word| NAMES.iter().any(|name| word.as_bytes().starts_with(name.as_bytes())));
    match runs && !named {
        true => [&["-w".into(), ".".into()], given].concat(),
        false => given.to_vec(),
    }
}

fn out_of_place(
    name: &OsString,
    given: &[OsString],
    more: &[OsString],
    command: Option<&[OsString]>,
) -> Error {
    let name = name.to_string_lossy();
    let words = [given, more].concat();
    Error::usage(format!("'{name}' is not the first word")).with_hint(line(
        &["confine", &name],
        &words,
        command,
    ))
}

pub fn no_command(called: &[&str], given: &[OsString]) -> Error {
    let error = Error::usage("no command to run");
    if given.is_empty() {
        return error.with_hint(format!("{} -w . -- COMMAND (or 'confine --help')", called.join(" ")));
    }
    error.with_hint(line(called, &with_workspace(called, given), Some(&["COMMAND".into()])))
}

pub fn no_workspace(called: &[&str], given: &[OsString], command: &[OsString]) -> Error {
    let words = [&["-w".into(), ".".into()], given].concat();
    Error::usage("no workspace: say which directory the command may change").with_hint(line(
        called,
        &words,
        Some(command),
    ))
}

/// A line that can be pasted into a shell. Values of --env are left out of it: they may be secrets, and
/// messages end up in logs.
pub fn line(called: &[&str], given: &[OsString], command: Option<&[OsString]>) -> String {
    let mut text = called.join(" ");
    let mut after_env = false;
    for word in given {
        text.push(' ');
        text.push_str(&paste(&without_value(word, after_env)));
        after_env = word == "--env";
    }
    if let Some(command) = command {
        text.push_str(" --");
        for word in command {
            text.push(' ');
            text.push_str(&paste(word));
            if text.len() > LINE {
                break;
            }
        }
    }
    if text.len() > LINE {
        let end = (0..=LINE).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        text.truncate(end);
        text.push_str(" ...");
    }
    text
}

/// `--env A=1 B=2`: the second was meant to be one as well.
fn without_values(given: &[OsString], words: &[OsString]) -> Vec<OsString> {
    let env = given.iter().any(|word| word.as_bytes().starts_with(b"--env"));
    words.iter().map(|word| if env { without_value(word, true) } else { word.clone() }).collect()
}

fn without_value(word: &OsString, after_env: bool) -> OsString {
    let bytes = word.as_bytes();
    let from = if after_env { 0 } else { "--env=".len() };
    if !after_env && !bytes.starts_with(b"--env=") {
        return word.clone();
    }
    match bytes[from..].iter().position(|&byte| byte == b'=') {
        Some(equals) => OsString::from_vec([&bytes[..from + equals + 1], b"..."].concat()),
        None => word.clone(),
    }
}

/// clap's findings in one line. Only the kinds that `super::arg` can lead to are worded.
pub fn from_clap(error: &clap::Error, called: &[&str]) -> Error {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let given = text(ContextKind::InvalidArg).unwrap_or_default();
    // clap writes an option with its placeholder: '--workspace <DIR>'.
    let option = given.split(' ').next().unwrap_or_default();
    let help = format!("'{} --help' lists the options", called.join(" "));
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let what = if given.starts_with('-') { "unknown option" } else { "unexpected word" };
            let unknown = Error::usage(format!("{what} {}", show(given.as_ref())));
            match text(ContextKind::SuggestedArg) {
                Some(near) => unknown.with_hint(format!("did you mean '{near}'?")),
                None => unknown.with_hint(help),
            }
        }
        ErrorKind::InvalidValue | ErrorKind::TooFewValues | ErrorKind::WrongNumberOfValues => {
            Error::usage(format!("{option} needs a value")).with_hint(help)
        }
        ErrorKind::ArgumentConflict => Error::usage(format!("{option} is given more than once")),
        ErrorKind::TooManyValues => Error::usage(format!("{option} takes no value")),
        _ => {
            let said = error.to_string();
            let first = said.lines().next().unwrap_or_default();
            Error::usage(first.strip_prefix("error: ").unwrap_or(first).to_owned()).with_hint(help)
        }
    }
}
