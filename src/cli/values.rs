//! From the words of one option to a value, or to a message that names the option, the word and the reason.

use std::ffi::{OsStr, OsString};
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use clap::ArgMatches;

use crate::error::{Error, Result, show};
use crate::policy::User;
use crate::policy::quantity::{self, Invalid};

// An option that was not built, for no word begins like it, was not given: `try_` says so without a panic.

pub fn one<'a>(options: &'a ArgMatches, name: &str) -> Option<&'a OsStr> {
    options.try_get_one::<OsString>(name).ok().flatten().map(OsString::as_os_str)
}

pub fn all(options: &ArgMatches, name: &str) -> Vec<OsString> {
    match options.try_get_many::<OsString>(name) {
        Ok(Some(words)) => words.cloned().collect(),
        _ => Vec::new(),
    }
}

pub fn flag(options: &ArgMatches, name: &str) -> bool {
    matches!(options.try_get_one::<bool>(name), Ok(Some(true)))
}

pub fn path(name: &str, word: &OsStr) -> Result<PathBuf> {
    if word.is_empty() {
        return Err(Error::usage(format!("--{name} has an empty path")));
    }
    Ok(PathBuf::from(word))
}

/// A word that must be one of a few.
pub fn choice<T: Copy>(name: &str, word: &OsStr, choices: &[(&'static str, T)]) -> Result<T> {
    if let Some(&(_, value)) = choices.iter().find(|(text, _)| word == *text) {
        return Ok(value);
    }
    let names: Vec<&str> = choices.iter().map(|&(text, _)| text).collect();
    let error = wrong(name, word, "not one of its values");
    // Of two values the nearer one is a guess.
    Err(match nearest(&word.to_string_lossy(), &names).filter(|_| names.len() > 2) {
        Some(near) => error.with_hint(format!("--{name} {near}")),
        None => error.with_hint(format!("--{name} takes {}", listing(&names))),
    })
}

pub fn port(name: &str, word: &OsStr) -> Result<u16> {
    number(word)
        .and_then(|number| u16::try_from(number).ok())
        .filter(|&port| port != 0)
        .ok_or_else(|| wrong(name, word, "not a port from 1 to 65535"))
}

/// A descriptor that is not one of the three streams, which belong to COMMAND.
pub fn descriptor(name: &str, word: &OsStr) -> Result<RawFd> {
    number(word)
        .and_then(|number| RawFd::try_from(number).ok())
        .filter(|&fd| fd > 2)
        .ok_or_else(|| wrong(name, word, "not the number of a descriptor above 2"))
}

pub fn user(name: &str, word: &OsStr) -> Result<User> {
    let mut parts = word.as_bytes().splitn(2, |&byte| byte == b':').map(OsStr::from_bytes);
    // The number -1 means "leave it" to setresuid(2).
    let mut id = || {
        let id = u32::try_from(number(parts.next()?)?).ok().filter(|&id| id != u32::MAX)?;
        Some(id)
    };
    let uid = id();
    let gid = if word.as_bytes().contains(&b':') { id().map(Some) } else { Some(None) };
    match (uid, gid) {
        (Some(uid), Some(gid)) => Ok(User { uid, gid }),
        _ => {
            Err(wrong(name, word, "not UID or UID:GID in numbers").with_hint("'id -u NAME' tells the number"))
        }
    }
}

/// A SHA-256 in hexadecimal digits.
pub fn hash(name: &str, word: &OsStr) -> Result<String> {
    word.to_str()
        .map(str::to_ascii_lowercase)
        .filter(|text| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()))
        .ok_or_else(|| wrong(name, word, "not a SHA-256 of 64 hexadecimal digits"))
}

/// `NAME` or `NAME=VALUE`.
pub fn variable(name: &str, word: &OsStr) -> Result<(OsString, Option<OsString>)> {
    let bytes = word.as_bytes();
    let (variable, value) = match bytes.iter().position(|&byte| byte == b'=') {
        Some(equals) => (&bytes[..equals], Some(OsStr::from_bytes(&bytes[equals + 1..]).to_owned())),
        None => (bytes, None),
    };
    let variable = OsStr::from_bytes(variable);
    // The value may be a secret, so no message shows more than the name.
    if variable.is_empty() {
        return Err(
            Error::usage(format!("--{name} has no variable name")).with_hint(format!("--{name} NAME=VALUE"))
        );
    }
    if crate::policy::env_file::is_reserved(variable) {
        return Err(wrong(name, variable, "set by confine itself"));
    }
    Ok((variable.to_owned(), value))
}

/// Zero bytes mean "unlimited" to a tmpfs (tmpfs(5)) and "nothing can start" elsewhere: never what was meant.
pub fn size(name: &str, word: &OsStr) -> Result<u64> {
    quantity(name, word, quantity::size).and_then(|bytes| not_zero(name, word, bytes))
}

/// A size for which zero is a meaning: no file may grow.
pub fn size_or_zero(name: &str, word: &OsStr) -> Result<u64> {
    quantity(name, word, quantity::size)
}

pub fn count(name: &str, word: &OsStr) -> Result<u64> {
    quantity(name, word, quantity::count).and_then(|count| not_zero(name, word, count))
}

/// Confine's own start takes some, with the limit in force already; a command finds less to be nothing to start with.
pub fn descriptors(name: &str, word: &OsStr) -> Result<u64> {
    const START: u64 = 8;
    let count = count(name, word)?;
    if count < START { Err(wrong(name, word, format!("a start takes {START}"))) } else { Ok(count) }
}

pub fn duration(name: &str, word: &OsStr) -> Result<Duration> {
    let time = duration_or_zero(name, word)?;
    if time.is_zero() { Err(wrong(name, word, Invalid::Zero)) } else { Ok(time) }
}

pub fn duration_or_zero(name: &str, word: &OsStr) -> Result<Duration> {
    quantity(name, word, quantity::duration)
}

fn quantity<T>(name: &str, word: &OsStr, read: fn(&str) -> std::result::Result<T, Invalid>) -> Result<T> {
    // What is not UTF-8 is no number either: read what a replacement character makes of it.
    read(&word.to_string_lossy()).map_err(|invalid| wrong(name, word, invalid))
}

fn not_zero(name: &str, word: &OsStr, value: u64) -> Result<u64> {
    if value == 0 { Err(wrong(name, word, Invalid::Zero)) } else { Ok(value) }
}

fn number(word: &OsStr) -> Option<u64> {
    quantity::count(word.to_str()?).ok()
}

fn wrong(name: &str, word: &OsStr, reason: impl std::fmt::Display) -> Error {
    Error::usage(format!("--{name} {}: {reason}", show(word)))
}

fn listing(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// The name that the word was most likely meant to be: at most a third of its letters differ.
pub fn nearest<'a>(word: &str, names: &[&'a str]) -> Option<&'a str> {
    let spelled = word.to_ascii_lowercase().replace(['_', ' '], "-");
    names
        .iter()
        .map(|name| (distance(&spelled, name), *name))
        .filter(|(distance, name)| *distance <= name.len().div_ceil(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Edits between two words: inserted, dropped, changed letters. Long words are cut: they are near to nothing.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}
