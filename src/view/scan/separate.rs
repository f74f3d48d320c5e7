//! Mending, on purpose and outside a run: names of inodes that also have names elsewhere get a copy of their own.
//!
//! The copy is finished and on disk under a name of its own before it changes places with the original, in one
//! step (RENAME_EXCHANGE); only then, and only when that step brought out the inode that was copied, does the
//! original lose this one name. Killed at any point, every name shows either the old file or the whole copy, and
//! what is left over says by its name what it is.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags, Statx, StatxFlags};
use rustix::io::Errno;

use super::copy;
use super::{Report, Root, Suspect};
use crate::error::{Error, describe, show};
use crate::view::control::Id;

/// What is left when separating was killed: `.confine-separate.new.RANDOM`, a copy not yet finished, or
/// `.confine-separate.ORIGINAL.COPY`, inode numbers in hexadecimal, before and after the exchange.
pub const LEFTOVER: &[u8] = b".confine-separate.";

const NEW: &str = ".confine-separate.new.";

#[derive(Debug, Default)]
pub struct Outcome {
    /// Names that lead to a copy of their own now.
    pub separated: usize,
    /// Names that could not be helped, and why.
    pub failures: Vec<(PathBuf, String)>,
}

/// Held while names are exchanged, so that no other run takes this one's names for leftovers. Advisory, on the
/// directory itself: nothing is made.
pub struct Lock {
    _roots: Vec<OwnedFd>,
}

impl Lock {
    pub fn take(roots: &[Root<'_>]) -> Result<Lock, Error> {
        let mut held = Vec::new();
        for root in roots {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
            let opened = rustix::fs::open(root.path, flags, Mode::empty());
            let fd = opened.map_err(|error| Error::path("open", root.path, error))?;
            match rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => held.push(fd),
                Err(Errno::WOULDBLOCK) => {
                    let shown = show(root.path.as_os_str());
                    return Err(Error::refused(format!("{shown} is being separated by another process")));
                }
                Err(error) => return Err(Error::path("lock", root.path, error)),
            }
        }
        Ok(Lock { _roots: held })
    }
}

/// Removes what a run that was killed has left; returns how much that was.
pub fn clean(roots: &[Root<'_>], report: &Report, _lock: &Lock) -> Result<usize, Error> {
    let mut removed = 0;
    for (root, path) in &report.leftovers {
        let Some(root) = roots.get(*root) else { continue };
        let full = root.path.join(path);
        let done = open_parent(root.dir, path).and_then(|(dir, name)| {
            let stat = look(dir.as_fd(), &name)?;
            if !is_ours(&name, stat.stx_ino) {
                return Ok(false);
            }
            rustix::fs::unlinkat(&dir, &name, AtFlags::empty())?;
            Ok(true)
        });
        removed += usize::from(done.map_err(|error| Error::path("remove", full, error))?);
    }
    Ok(removed)
}

/// Anything else under such a name was put there by somebody in the middle of an exchange, and is theirs.
fn is_ours(name: &OsStr, ino: u64) -> bool {
    let Some(rest) = name.as_bytes().strip_prefix(LEFTOVER) else { return false };
    let mut parts = rest.split(|byte| *byte == b'.');
    let number = |part: Option<&[u8]>| {
        part.and_then(|part| std::str::from_utf8(part).ok())
            .and_then(|part| u64::from_str_radix(part, 16).ok())
    };
    if rest.starts_with(b"new.") {
        return number(parts.nth(1)).is_some() && parts.next().is_none();
    }
    let (original, copy) = (number(parts.next()), number(parts.next()));
    let both = original.is_some() && copy.is_some() && parts.next().is_none();
    both && (original == Some(ino) || copy == Some(ino))
}

/// Gives every suspect's names one copy; names that were links of each other inside stay so.
pub fn separate(roots: &[Root<'_>], report: &Report, _lock: &Lock) -> Outcome {
    let mut groups: BTreeMap<(u64, u64), Vec<&Suspect>> = BTreeMap::new();
    for suspect in &report.suspects {
        groups.entry((suspect.dev, suspect.ino)).or_default().push(suspect);
    }
    let mut outcome = Outcome::default();
    for ((dev, ino), names) in groups {
        let mut group = Group { original: Id { dev, ino }, copy: None };
        for suspect in names {
            let Some(root) = roots.get(suspect.root) else { continue };
            let full = root.path.join(&suspect.path);
            let place = if suspect.path.as_os_str().is_empty() {
                open_beside(root.path)
            } else {
                open_parent(root.dir, &suspect.path)
            };
            match place.and_then(|(dir, name)| group.mend(dir, name)) {
                Ok(()) => outcome.separated += 1,
                Err(error) => outcome.failures.push((full, describe(&error))),
            }
        }
    }
    outcome
}

/// One inode to be copied, and where its copy stands once there is one.
struct Group {
    original: Id,
    copy: Option<(OwnedFd, OsString, Id)>,
}

impl Group {
    fn mend(&mut self, dir: OwnedFd, name: OsString) -> io::Result<()> {
        let stat = look(dir.as_fd(), &name)?;
        if Id::of(&stat) != self.original {
            return Err(io::Error::other("it was replaced meanwhile"));
        }
        let linked = match &self.copy {
            Some((copy_dir, copy_name, copy)) => {
                link_copy(copy_dir.as_fd(), copy_name, *copy, dir.as_fd(), self.original)?
            }
            None => None,
        };
        let (temporary, copy) = match linked {
            Some(linked) => linked,
            None => self.make_copy(dir.as_fd(), &name, &stat)?,
        };
        exchange(dir.as_fd(), &temporary, &name, self.original)?;
        sync(&dir);
        if self.copy.is_none() {
            self.copy = Some((dir, name, copy));
        }
        Ok(())
    }

    fn make_copy(&self, dir: BorrowedFd<'_>, name: &OsStr, stat: &Statx) -> io::Result<(OsString, Id)> {
        let start = new_name()?;
        let kind = FileType::from_raw_mode(u32::from(stat.stx_mode));
        let made = match kind {
            FileType::RegularFile => copy::file(dir, name, self.original, &start),
            FileType::Symlink => copy::symlink(dir, name, stat, &start),
            _ => Err(io::Error::other("only files and symbolic links can be copied")),
        };
        let renamed = made.and_then(|()| {
            let copy = Id::of(&look(dir, &start)?);
            let temporary = exchange_name(self.original, copy);
            rustix::fs::renameat_with(dir, &start, dir, &temporary, RenameFlags::NOREPLACE)?;
            Ok((temporary, copy))
        });
        if renamed.is_err() {
            let _ = rustix::fs::unlinkat(dir, &start, AtFlags::empty());
        }
        renamed
    }
}

fn exchange_name(original: Id, copy: Id) -> OsString {
    OsString::from(format!(".confine-separate.{:x}.{:x}", original.ino, copy.ino))
}

/// A further name for the copy; `None` where the copy cannot be linked to (moved away, too many links).
fn link_copy(
    from: BorrowedFd<'_>,
    name: &OsStr,
    copy: Id,
    dir: BorrowedFd<'_>,
    original: Id,
) -> io::Result<Option<(OsString, Id)>> {
    let temporary = exchange_name(original, copy);
    if rustix::fs::linkat(from, name, dir, &temporary, AtFlags::empty()).is_err() {
        return Ok(None);
    }
    if Id::of(&look(dir, &temporary)?) == copy {
        return Ok(Some((temporary, copy)));
    }
    // Somebody put another file in the copy's place: this link to theirs is all that was made.
    rustix::fs::unlinkat(dir, &temporary, AtFlags::empty())?;
    Ok(None)
}

/// Puts the copy in the original's place, and takes the original's name away only when it was the original.
fn exchange(dir: BorrowedFd<'_>, temporary: &OsStr, name: &OsStr, original: Id) -> io::Result<()> {
    let swap = || rustix::fs::renameat_with(dir, temporary, dir, name, RenameFlags::EXCHANGE);
    if let Err(error) = swap() {
        rustix::fs::unlinkat(dir, temporary, AtFlags::empty())?;
        return Err(error.into());
    }
    if Id::of(&look(dir, temporary)?) == original {
        rustix::fs::unlinkat(dir, temporary, AtFlags::empty())?;
        return Ok(());
    }
    swap()?;
    rustix::fs::unlinkat(dir, temporary, AtFlags::empty())?;
    Err(io::Error::other("it was replaced meanwhile"))
}

/// The exchange reaches the disk in the order it was made anyway; this only makes it soon.
fn sync(dir: &OwnedFd) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    if let Ok(fd) = rustix::fs::openat(dir, c".", flags, Mode::empty()) {
        let _ = rustix::fs::fsync(fd);
    }
}

pub(super) fn look(dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<Statx> {
    Ok(rustix::fs::statx(dir, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS)?)
}

fn new_name() -> io::Result<OsString> {
    let mut random = [0_u8; 8];
    io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut random)?;
    Ok(OsString::from(format!("{NEW}{:016x}", u64::from_ne_bytes(random))))
}

/// The directory of a path below a root, link by link without following any, and the last name.
fn open_parent(root: BorrowedFd<'_>, path: &Path) -> io::Result<(OwnedFd, OsString)> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut dir = rustix::fs::openat(root, c".", flags, Mode::empty())?;
    let mut names: Vec<&[u8]> = path.as_os_str().as_bytes().split(|byte| *byte == b'/').collect();
    let last = names.pop().filter(|name| !name.is_empty()).ok_or(Errno::INVAL)?;
    for name in names {
        dir = rustix::fs::openat(&dir, name, flags, Mode::empty())?;
    }
    Ok((dir, OsString::from_vec(last.to_vec())))
}

fn open_beside(file: &Path) -> io::Result<(OwnedFd, OsString)> {
    let (Some(parent), Some(name)) = (file.parent(), file.file_name()) else {
        return Err(Errno::INVAL.into());
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok((rustix::fs::open(parent, flags, Mode::empty())?, name.to_os_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_leftovers_are_taken_for_such() {
        for (name, ino, ours) in [
            (".confine-separate.new.00000000000000ff", 7, true),
            (".confine-separate.new.x", 7, false),
            (".confine-separate.a.7", 7, true),
            (".confine-separate.7.a", 7, true),
            (".confine-separate.a.b", 7, false),
            (".confine-separate.7", 7, false),
            (".confine-separate.7.a.b", 7, false),
            (".confine-separate.notes", 7, false),
        ] {
            assert_eq!(is_ours(OsStr::new(name), ino), ours, "{name}");
        }
    }
}
