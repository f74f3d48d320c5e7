//! Everything that can go wrong, one variant a step: a message, a hint where the user can act, a status.
#![forbid(unsafe_code)]

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// confine itself refused or failed; the command was not started.
pub const REFUSED: u8 = 125;
/// COMMAND was found but cannot be run, or is not visible inside.
pub const NOT_RUNNABLE: u8 = 126;
/// COMMAND was not found.
pub const NOT_FOUND: u8 = 127;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A command line that cannot be understood.
    #[error("{message}")]
    Usage { message: String, hint: Option<String> },
    /// A promise or option that this host, or this version, cannot keep.
    #[error("{message}")]
    Refused { message: String, hint: Option<String> },
    /// A step of setting the boundary up failed.
    #[error("cannot {step}: {}", describe(.source))]
    Step { step: String, source: io::Error, hint: Option<String> },
    #[error("cannot {verb} {}: {}", show(.path.as_os_str()), describe(.source))]
    Path { verb: &'static str, path: PathBuf, source: io::Error, hint: Option<String> },
    #[error("cannot run {}: {reason}", show(.command))]
    NotRunnable { command: OsString, reason: String, hint: Option<String> },
    #[error("cannot find command {}", show(.command))]
    NotFound { command: OsString, hint: Option<String> },
}

impl Error {
    pub fn usage(message: impl Into<String>) -> Self {
        Error::Usage { message: message.into(), hint: None }
    }

    pub fn refused(message: impl Into<String>) -> Self {
        Error::Refused { message: message.into(), hint: None }
    }

    pub fn step(step: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Error::Step { step: step.into(), source: source.into(), hint: None }
    }

    pub fn path(verb: &'static str, path: impl Into<PathBuf>, source: impl Into<io::Error>) -> Self {
        Error::Path { verb, path: path.into(), source: source.into(), hint: None }
    }

    /// The same error with a pasteable remedy.
    pub fn with_hint(mut self, text: impl Into<String>) -> Self {
        match &mut self {
            Error::Usage { hint, .. }
            | Error::Refused { hint, .. }
            | Error::Step { hint, .. }
            | Error::Path { hint, .. }
            | Error::NotRunnable { hint, .. }
            | Error::NotFound { hint, .. } => *hint = Some(text.into()),
        }
        self
    }

    pub fn hint(&self) -> Option<&str> {
        match self {
            Error::Usage { hint, .. }
            | Error::Refused { hint, .. }
            | Error::Step { hint, .. }
            | Error::Path { hint, .. }
            | Error::NotRunnable { hint, .. }
            | Error::NotFound { hint, .. } => hint.as_deref(),
        }
    }

    pub fn status(&self) -> u8 {
        match self {
            Error::NotRunnable { .. } => NOT_RUNNABLE,
            Error::NotFound { .. } => NOT_FOUND,
            _ => REFUSED,
        }
    }
}

/// An error as it is told: on standard error, in JSON, and to a parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    pub status: u8,
    pub message: String,
    pub hint: Option<String>,
}

impl From<&Error> for Told {
    fn from(error: &Error) -> Told {
        Told { status: error.status(), message: error.to_string(), hint: error.hint().map(str::to_owned) }
    }
}

impl Told {
    /// The lines on standard error.
    pub fn text(&self) -> String {
        let hint = self.hint.as_ref().map_or_else(String::new, |hint| format!("hint: {hint}\n"));
        format!("confine: {}\n{hint}", self.message)
    }

    /// With texts of at most so many characters.
    pub fn cut(mut self, most: usize) -> Told {
        for text in [Some(&mut self.message), self.hint.as_mut()].into_iter().flatten() {
            if let Some((end, _)) = text.char_indices().nth(most) {
                text.truncate(end);
                text.push('…');
            }
        }
        self
    }
}

/// The kernel's words for an error, without Rust's "(os error N)".
pub fn describe(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => lower_first(&text[..end]),
        None => lower_first(&text),
    }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => String::new(),
    }
}

/// A name in single quotes on one line: control characters, bytes that are not UTF-8, quotes and backslashes
/// are escaped, so that what a hostile tree calls its files cannot drive the user's terminal.
pub fn show(name: &OsStr) -> Shown<'_> {
    Shown(name.as_bytes())
}

pub struct Shown<'a>(&'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("'")?;
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '\n' => f.write_str("\\n")?,
                    '\t' => f.write_str("\\t")?,
                    '\r' => f.write_str("\\r")?,
                    '\'' | '\\' => write!(f, "\\{c}")?,
                    c if c.is_control() || is_format_control(c) => write!(f, "\\u{{{:x}}}", c as u32)?,
                    c => write!(f, "{c}")?,
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        f.write_str("'")
    }
}

/// A word as it can be pasted into a shell: bare when it is plain, else in single quotes, or in bash's and
/// zsh's `$'...'` where it holds what a terminal must not see.
pub fn paste(word: &OsStr) -> String {
    let bytes = word.as_bytes();
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"@%+=:,./_-".contains(byte);
    match word.to_str() {
        Some(text) if !bytes.is_empty() && bytes.iter().all(plain) => text.to_owned(),
        Some(text) if !text.chars().any(|c| c.is_control() || is_format_control(c)) => {
            format!("'{}'", text.replace('\'', r"'\''"))
        }
        _ => {
            let mut quoted = String::from("$'");
            for &byte in bytes {
                match byte {
                    b'\'' | b'\\' => quoted.extend(['\\', char::from(byte)]),
                    b' '..=b'~' => quoted.push(char::from(byte)),
                    _ => quoted.push_str(&format!("\\x{byte:02x}")),
                }
            }
            quoted.push('\'');
            quoted
        }
    }
}

/// Marks that turn the direction of text or hide characters: they make one name look like another.
fn is_format_control(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_on_one_line_without_controls() {
        let name = OsStr::from_bytes(b"a\n\x1b[31m\xff'\\\xe2\x80\xae.txt");
        assert_eq!(show(name).to_string(), r"'a\n\u{1b}[31m\xff\'\\\u{202e}.txt'");
        assert_eq!(show(OsStr::new("plain é name")).to_string(), "'plain é name'");
    }

    #[test]
    fn pasted_words_are_one_word_to_a_shell() {
        let pasted = |bytes| paste(OsStr::from_bytes(bytes));
        assert_eq!(pasted(b"--ro=/a/b.c"), "--ro=/a/b.c");
        assert_eq!(pasted(b""), "''");
        assert_eq!(pasted(b"it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(pasted("é".as_bytes()), "'é'");
        assert_eq!(pasted(b"a\n\x1b'\\\xff"), r"$'a\x0a\x1b\'\\\xff'");
    }

    #[test]
    fn kernel_errors_are_described_in_lower_case_without_numbers() {
        assert_eq!(describe(&io::Error::from_raw_os_error(libc::EACCES)), "permission denied");
    }
}
