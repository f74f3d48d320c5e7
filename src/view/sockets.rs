//! Live sockets with a name inside the view. Below Landlock ABI 9 a read-only mount still lets a process connect,
//! so each is covered; sockets bound by a relative name, or in another network namespace, are not listed.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::caller::read_proc;
use super::trace::{object, trace};
use super::{Access, Backing, Origin, Place, Source, View};
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
        if !view.is_visible(&traced.path) || view.entries.contains_key(&traced.path) {
            continue;
        }
        let place = Place {
            path: traced.path,
            access: Access::Hidden,
            backing: Backing::Cover { directory: false },
            origin: Origin::Found,
            reason: "a live socket of another program".to_owned(),
        };
        view.insert(place, Source::None);
    }
    Ok(())
}

/// Where nothing can be covered: which sockets the broker must not connect to.
pub fn note(view: &mut View) -> Result<()> {
    let found = listed()?.into_iter().filter_map(|named| trace(&named).ok()?.stat().ok());
    view.foreign_sockets.extend(found.map(|stat| object(&stat)));
    Ok(())
}

/// Each name once: it stands there for every connection that was accepted.
pub fn listed() -> Result<BTreeSet<PathBuf>> {
    let list = read_proc(LIST).map_err(|error| Error::path("read", LIST, error))?;
    Ok(names(&list).collect())
}

/// The last column of each entry, where it is an absolute path. Names hold any byte but NUL, and the kernel shows all
/// as they are: the fixed columns are counted off from the left, and what does not begin as an entry does goes on with
/// the name before it.
fn names(list: &[u8]) -> impl Iterator<Item = PathBuf> {
    const COLUMNS: usize = 7;
    let mut entries: Vec<Vec<u8>> = Vec::new();
    for line in list.strip_suffix(b"\n").unwrap_or(list).split(|&byte| byte == b'\n').skip(1) {
        match entries.last_mut().filter(|_| !begins(line)) {
            None => entries.push(line.to_owned()),
            Some(name) => {
                name.push(b'\n');
                name.extend_from_slice(line);
            }
        }
    }
    entries.into_iter().filter_map(|entry| {
        let mut rest = entry.as_slice();
        for _ in 0..COLUMNS {
            let start = rest.iter().position(|&byte| byte != b' ')?;
            let length = rest[start..].iter().position(|&byte| byte == b' ')?;
            rest = &rest[start + length..];
        }
        let path = Path::new(OsStr::from_bytes(rest.strip_prefix(b" ")?));
        path.is_absolute().then(|| path.to_owned())
    })
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
        assert_eq!(names(list).collect::<Vec<_>>(), [PathBuf::from("/run/a b.sock")]);
        let list = b"Num       RefCount Protocol Flags    Type St Inode Path\n\
            ffff: 00000002 00000000 00010000 0001 01 12345 /run/a\nb:\n\n\
            ffff: 00000002 00000000 00010000 0001 01    46 /run/c\n";
        assert_eq!(names(list).collect::<Vec<_>>(), ["/run/a\nb:\n", "/run/c"].map(PathBuf::from));
    }
}
