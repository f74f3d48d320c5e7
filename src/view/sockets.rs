//! Live sockets with a name inside the view. Below Landlock ABI 9 a read-only mount still lets a process connect,
//! so each is covered; sockets bound by a relative name, or in another network namespace, are not listed.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::View;
use super::caller::read_proc;
use super::trace::{file_type, object, trace};
use crate::error::{Error, Result};
use crate::host::Host;

/// The Landlock version that rules pathname sockets by itself (LANDLOCK_ACCESS_FS_RESOLVE_UNIX, Linux 7.1).
pub const RESOLVE_UNIX_ABI: u32 = 9;

const LIST: &str = "/proc/net/unix";

pub fn cover(view: &mut View, host: &Host) -> Result<()> {
    if host.landlock.abi() >= RESOLVE_UNIX_ABI {
        return Ok(());
    }
    for named in listed()? {
        let Ok(traced) = trace(&named) else { continue };
        let mut names = view.names_inside(&traced.path);
        names.retain(|path| !view.entries.contains_key(path));
        // The list is text, and an abstract name in it may hold whole lines.
        if names.is_empty() || !traced.stat().is_ok_and(|stat| file_type(&stat) == FileType::Socket) {
            continue;
        }
        for path in names {
            view.cover_found(path, false, "a live socket of another program");
        }
    }
    Ok(())
}

/// Where nothing can be covered: which sockets the broker must not connect to.
pub fn note(view: &mut View) -> Result<()> {
    let found = listed()?.into_iter().filter_map(|named| trace(&named).ok()?.stat().ok());
    view.foreign_sockets.extend(found.map(|stat| object(&stat)));
    Ok(())
}

/// Each absolute path once: it stands there for every connection that was accepted.
pub fn listed() -> Result<BTreeSet<PathBuf>> {
    let list = read_proc(LIST).map_err(|error| Error::path("read", LIST, error))?;
    Ok(paths(&list).map(Path::to_owned).collect())
}

fn paths(list: &[u8]) -> impl Iterator<Item = &Path> {
    names(list).map(|name| Path::new(OsStr::from_bytes(name))).filter(|path| path.is_absolute())
}

/// The last column of each entry that has one; abstract names begin with `@` there. Names hold any byte but NUL, and
/// the kernel shows all as they are: the fixed columns are counted off from the left, and what does not begin as an
/// entry does goes on with the name before it.
pub fn names(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    const COLUMNS: usize = 7;
    let mut left = after_line(list);
    let entries = std::iter::from_fn(move || {
        let begun = left;
        while !left.is_empty() {
            left = after_line(left);
            if begins(left) {
                break;
            }
        }
        let entry = &begun[..begun.len() - left.len()];
        (!entry.is_empty()).then(|| entry.strip_suffix(b"\n").unwrap_or(entry))
    });
    entries.filter_map(|entry| {
        let mut rest = entry;
        for _ in 0..COLUMNS {
            let start = rest.iter().position(|&byte| byte != b' ')?;
            let length = rest[start..].iter().position(|&byte| byte == b' ')?;
            rest = &rest[start + length..];
        }
        rest.strip_prefix(b" ")
    })
}

fn after_line(text: &[u8]) -> &[u8] {
    text.iter().position(|&byte| byte == b'\n').map_or(&[], |end| &text[end + 1..])
}

/// An address in hexadecimal, a colon, and a count of references (unix_seq_show in net/unix/af_unix.c).
fn begins(line: &[u8]) -> bool {
    let hex = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_hexdigit);
    match line.iter().position(|&byte| byte == b':') {
        Some(colon) => {
            hex(&line[..colon])
                && line[colon..].starts_with(b": ")
                && hex(&line[colon + 2..][..8.min(line.len() - colon - 2)])
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_names_are_listed_and_blanks_in_them_stay() {
        let list = b"Num       RefCount Protocol Flags    Type St Inode Path\n\
            ffff: 00000002 00000000 00010000 0001 01 12345 /run/a b.sock\n\
            ffff: 00000002 00000000 00010000 0001 01    46 @abstract\n\
            ffff: 00000002 00000000 00010000 0001 01 12346 rel.sock\n\
            ffff: 00000003 00000000 00000000 0001 03  9922\n";
        assert_eq!(paths(list).collect::<Vec<_>>(), [Path::new("/run/a b.sock")]);
        let list = b"Num       RefCount Protocol Flags    Type St Inode Path\n\
            ffff: 00000002 00000000 00010000 0001 01 12345 /run/a\nb:\n\n\
            ffff: 00000002 00000000 00010000 0001 01    46 /run/c\n";
        assert_eq!(paths(list).collect::<Vec<_>>(), ["/run/a\nb:\n", "/run/c"].map(Path::new));
    }
}
