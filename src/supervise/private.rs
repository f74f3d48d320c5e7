//! HOME and TMPDIR on hosts where nothing can be mounted: a fresh owner-only directory, removed when the run ends.
//! What a killed run left behind is removed by the next one, as soon as it is provably dead.
//!
//! Everything is done by descriptor: what lies inside is hostile, and if somebody killed monitor and init at once,
//! whoever made it may be at work still.

use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, CWD, Dir, Mode, OFlags, StatxAttributes, StatxFlags, chmod, fstat, mkdirat, openat, renameat,
    statx, unlinkat,
};
use rustix::io::{Errno, Result as Kernel};

use crate::error::{Error, Result};

/// Held open, and locked, by every process of the run but the command's own: the lock ends with the last of them.
#[derive(Debug)]
pub struct Private {
    path: PathBuf,
    base: OwnedFd,
    /// flock(2) on the directory itself; systemd-tmpfiles(8) then leaves it alone too.
    directory: File,
}

/// A survivor that fills the tree faster than it is emptied shall not keep anybody for ever.
const PATIENCE: Duration = Duration::from_secs(20);
const OWN: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Private {
    /// In the first of these places that takes it. In all of them are files of other users, or none can be.
    pub fn make(uid: u32, places: &[&Path]) -> Result<Private> {
        let mut refused = Error::refused("there is no place for a private HOME and TMPDIR");
        for place in places {
            match Self::make_in(uid, place) {
                Ok(private) => return Ok(private),
                Err(errno) => refused = Error::path("make a private HOME and TMPDIR in", *place, errno),
            }
        }
        Err(refused.with_hint("name a directory of yours for them with `--state DIR`"))
    }

    fn make_in(uid: u32, place: &Path) -> Kernel<Private> {
        let base = openat(CWD, place, OWN | OFlags::RDONLY, Mode::empty())?;
        clean(&base, uid);
        let clock = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic).tv_nsec;
        for count in 0..1000 {
            let name = format!("confine-{uid}-{}-{}", std::process::id(), clock + count);
            match mkdirat(&base, &name, Mode::RWXU) {
                Err(Errno::EXIST) => continue,
                made => made?,
            }
            // A cleaner may come between, or have finished already.
            let directory = match openat(&base, &name, OWN | OFlags::RDONLY, Mode::empty()) {
                Err(Errno::NOENT) => continue,
                found => File::from(found?),
            };
            if directory.try_lock().is_ok() && is_there(&base, &name, directory.as_fd()) {
                return Ok(Private { path: place.join(name), base, directory });
            }
        }
        Err(Errno::EXIST)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// When nobody is left who could write there.
    pub fn remove(self) {
        if let Some(name) = self.path.file_name() {
            remove(&self.base, name, self.directory.as_fd());
        }
    }
}

fn is_there(base: &OwnedFd, name: &str, directory: BorrowedFd<'_>) -> bool {
    let by_name = openat(base, name, OWN | OFlags::PATH, Mode::empty()).and_then(fstat);
    match (by_name, fstat(directory)) {
        (Ok(by_name), Ok(held)) => (by_name.st_dev, by_name.st_ino) == (held.st_dev, held.st_ino),
        _ => false,
    }
}

/// Removes what belongs to this user alone, is named like ours, and is not locked by anybody.
fn clean(base: &OwnedFd, uid: u32) {
    let prefix = format!("confine-{uid}-");
    for name in names(base.as_fd()).unwrap_or_default() {
        if !name.to_bytes().starts_with(prefix.as_bytes()) {
            continue;
        }
        let Ok(found) = openat(base, &*name, OWN | OFlags::RDONLY, Mode::empty()) else { continue };
        let own = fstat(&found).is_ok_and(|stat| stat.st_uid == uid && stat.st_mode & 0o77 == 0);
        if !own || is_mounted(found.as_fd()) {
            continue;
        }
        let found = File::from(found);
        if found.try_lock().is_ok() {
            remove(base, OsStr::from_bytes(name.to_bytes()), found.as_fd());
        }
    }
}

fn remove(base: &OwnedFd, name: &OsStr, directory: BorrowedFd<'_>) {
    let _ = empty(directory);
    // Only an empty directory goes, whatever has the name by now.
    let _ = unlinkat(base, name, AtFlags::REMOVEDIR);
}

/// Flattens instead of descending: directories inside directories are moved up to `top`. So neither the depth of
/// the tree nor the length of its paths matters, and two descriptors are enough.
fn empty(top: BorrowedFd<'_>) -> Kernel<()> {
    let end = Instant::now() + PATIENCE;
    let mut moved = 0u64;
    loop {
        let left = names(top)?;
        if left.is_empty() {
            return Ok(());
        }
        let mut gone = false;
        for name in left {
            gone |= dispose(top, &name, &mut moved).is_ok();
        }
        if !gone || Instant::now() > end {
            return Err(Errno::NOTEMPTY);
        }
    }
}

fn dispose(top: BorrowedFd<'_>, name: &CStr, moved: &mut u64) -> Kernel<()> {
    match unlinkat(top, name, AtFlags::empty()) {
        Err(Errno::ISDIR) => {}
        other => return other,
    }
    let directory = enter(top, name)?;
    for inner in names(directory.as_fd())? {
        if unlinkat(&directory, &*inner, AtFlags::empty()) != Err(Errno::ISDIR) {
            continue;
        }
        // Moving a directory writes its `..`, which takes the right to write in it.
        enter(directory.as_fd(), &inner)?;
        let fresh = loop {
            *moved += 1;
            let fresh = format!("{moved}.moved");
            if rustix::fs::statat(top, &fresh, AtFlags::SYMLINK_NOFOLLOW).is_err() {
                break fresh;
            }
        };
        renameat(&directory, &*inner, top, &fresh)?;
    }
    unlinkat(top, name, AtFlags::REMOVEDIR)
}

/// Opens a directory that even its owner may have no right to enter.
fn enter(parent: BorrowedFd<'_>, name: &CStr) -> Kernel<OwnedFd> {
    let found = openat(parent, name, OWN | OFlags::PATH, Mode::empty())?;
    if is_mounted(found.as_fd()) {
        return Err(Errno::BUSY);
    }
    let path = format!("/proc/self/fd/{}", found.as_raw_fd());
    chmod(&path, Mode::RWXU)?;
    openat(CWD, path, OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY, Mode::empty())
}

/// Somebody mounted something there: it is not ours to empty (statx(2), Linux 5.8).
fn is_mounted(directory: BorrowedFd<'_>) -> bool {
    let found = statx(directory, "", AtFlags::EMPTY_PATH, StatxFlags::empty());
    !found.is_ok_and(|found| !found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

fn names(directory: BorrowedFd<'_>) -> Kernel<Vec<CString>> {
    let entries = Dir::read_from(directory)?;
    let names = entries.map(|entry| entry.map(|entry| entry.file_name().to_owned()));
    names.filter(|name| !name.as_ref().is_ok_and(|name| matches!(name.to_bytes(), b"." | b".."))).collect()
}

#[cfg(test)]
mod tests;
