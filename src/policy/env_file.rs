//! `--env-file`: variables that must not stand in an argv. NAME=VALUE lines without quoting, or pairs
//! separated by NUL, from a file that only its owner can read or from a pipe. No message ever shows a value, nor a
//! name that may be part of one.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};

use crate::error::{Error, paste, show};

/// More than the kernel takes as environment is a mistake, such as the path of a disk image.
const MAX_BYTES: u64 = 1 << 20;

/// pipefs (linux/magic.h): tells an anonymous pipe, which only its holders reach, from a named FIFO.
const PIPEFS_MAGIC: i64 = 0x5049_5045;

/// The pairs of FILE, in its order. Owners are looked at, so this comes before identities are mapped.
pub fn read(path: &Path) -> Result<Vec<(OsString, OsString)>, Error> {
    let cannot = |source: io::Error| Error::path("read environment file", path, source);
    // An O_PATH open neither waits for the writer of a FIFO nor wakes a device; what it found is then opened
    // through itself, so that check and use are one inode.
    let found = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| cannot(errno.into()))?;
    read_open(path, &found)
}

/// The same of a file that has been found already; `path` is for messages.
pub fn read_open(path: &Path, found: &OwnedFd) -> Result<Vec<(OsString, OsString)>, Error> {
    let cannot = |source: io::Error| Error::path("read environment file", path, source);
    let stat = rustix::fs::fstat(found).map_err(|errno| cannot(errno.into()))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => owner_only(path, &stat)?,
        FileType::Fifo => {
            let system = rustix::fs::fstatfs(found).map_err(|errno| cannot(errno.into()))?;
            if system.f_type != PIPEFS_MAGIC {
                owner_only(path, &stat)?;
            }
        }
        _ => return Err(refuse(path, "is neither a file nor a pipe")),
    }
    let file = File::open(format!("/proc/self/fd/{}", found.as_raw_fd())).map_err(cannot)?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(refuse(path, "is larger than 1 MiB"));
    }
    parse(&bytes).map_err(|fault| {
        let error = refuse(path, &format!("{} {} {}", fault.kind, fault.number, fault.what));
        match fault.hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    })
}

fn owner_only(path: &Path, stat: &rustix::fs::Stat) -> Result<(), Error> {
    match exposed(stat.st_uid, stat.st_mode, rustix::process::geteuid().as_raw()) {
        None => Ok(()),
        Some(Exposed::Owner) => Err(refuse(path, "belongs to another user")),
        Some(Exposed::Mode) => Err(refuse(path, "is open to other users")
            .with_hint(format!("chmod 600 {}", paste(path.as_os_str())))),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Exposed {
    Owner,
    Mode,
}

fn exposed(owner: u32, mode: u32, me: u32) -> Option<Exposed> {
    if owner != me && owner != 0 {
        return Some(Exposed::Owner);
    }
    // The group bits are the mask of an ACL as well (acl(5)), so this covers named users and groups.
    (mode & 0o077 != 0).then_some(Exposed::Mode)
}

fn refuse(path: &Path, reason: &str) -> Error {
    Error::usage(format!("environment file {} {reason}", show(path.as_os_str())))
}

/// What is wrong with one entry, without a byte of it.
#[derive(Debug, PartialEq, Eq)]
struct Fault {
    kind: &'static str,
    number: usize,
    what: &'static str,
    hint: Option<&'static str>,
}

fn parse(bytes: &[u8]) -> Result<Vec<(OsString, OsString)>, Fault> {
    // One NUL anywhere settles the form. A line file into which a NUL has slipped is then read as pairs, and
    // its newlines would end up inside names: the check of the name finds that.
    if bytes.contains(&0) { parse_pairs(bytes) } else { parse_lines(bytes) }
}

fn parse_lines(bytes: &[u8]) -> Result<Vec<(OsString, OsString)>, Fault> {
    let mut pairs = Vec::new();
    for (index, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let fault = |what, hint| Fault { kind: "line", number: index + 1, what, hint };
        if line.ends_with(b"\r") {
            return Err(fault(
                "ends with a carriage return",
                Some("end lines with a newline alone, or separate pairs by NUL"),
            ));
        }
        pairs.push(pair(line).map_err(|(what, hint)| fault(what, hint))?);
    }
    Ok(pairs)
}

fn parse_pairs(bytes: &[u8]) -> Result<Vec<(OsString, OsString)>, Fault> {
    let fault = |index, what, hint| Fault { kind: "pair", number: index + 1, what, hint };
    // NUL may end the last pair or only stand between two. A newline there instead is a line file into which
    // a NUL has slipped, not a value that happens to end so: whoever means that ends the pair with NUL.
    let body = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    if bytes.ends_with(b"\n") {
        let last = bytes.split(|&byte| byte == 0).count() - 1;
        return Err(fault(
            last,
            "ends with a newline, yet NUL stands before it",
            Some("separate all by NUL, or all by newlines"),
        ));
    }
    let mut pairs = Vec::new();
    for (index, entry) in body.split(|&byte| byte == 0).enumerate() {
        pairs.push(pair(entry).map_err(|(what, hint)| fault(index, what, hint))?);
    }
    Ok(pairs)
}

type Entry = Result<(OsString, OsString), (&'static str, Option<&'static str>)>;

fn pair(entry: &[u8]) -> Entry {
    let Some(equals) = entry.iter().position(|&byte| byte == b'=') else {
        return Err(("has no '='", Some("write NAME=VALUE")));
    };
    let (name, value) = (&entry[..equals], &entry[equals + 1..]);
    if name.is_empty() {
        return Err(("has no name before '='", Some("write NAME=VALUE")));
    }
    // Wider than a shell's identifiers on purpose: npm reads names with slashes and colons. Blanks and controls
    // are what a forgotten `export`, an indented line or a NUL inside a pair looks like.
    if name.iter().any(|byte| byte.is_ascii_whitespace() || byte.is_ascii_control()) {
        return Err((
            "has a blank or a control character in its name",
            Some("write NAME=VALUE, without 'export'"),
        ));
    }
    if is_reserved(OsStr::from_bytes(name)) {
        return Err(("names a variable that confine itself sets", None));
    }
    Ok((OsString::from_vec(name.to_vec()), OsString::from_vec(value.to_vec())))
}

/// CONFINE and CONFINE_*: what a program inside learns about its boundary is never the caller's to choose.
pub fn is_reserved(name: &OsStr) -> bool {
    name == "CONFINE" || name.as_bytes().starts_with(b"CONFINE_")
}

#[cfg(test)]
#[path = "env_file/tests.rs"]
mod tests;
