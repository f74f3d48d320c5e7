//! FIFOs in what is only to be read. A read-only mount does not keep one from being written to (open(2), EROFS), and
//! what Landlock grants above, of a private HOME or a workspace, reaches down through the mount point: where a place
//! that was asked for lies beneath one that may be written, each is covered.
//!
//! Trees of the tables are not looked through: tens of thousands of files that the user has installed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags, openat, openat2, statat};
use rustix::io::Errno;

use super::aliases::ALIAS;
use super::trace::file_type;
use super::{Access, Backing, Entry, Origin, Place, Source, View};
use crate::error::{Error, Result, paste, show};

/// Why a place is covered.
pub const FIFO: &str = "a FIFO: a read-only mount lets it be written to";

const BUFFER: usize = 64 << 10;

/// What is to be covered, and whether it is a directory.
type Found = BTreeMap<PathBuf, bool>;

pub fn cover(view: &mut View) -> Result<()> {
    let mut found = Found::new();
    for (path, entry) in &view.entries {
        if !beneath_writable(view, path) {
            continue;
        }
        let alias = entry.place.backing == Backing::Itself && entry.place.reason == ALIAS;
        if alias && is_fifo(rustix::fs::CWD, path) {
            found.insert(path.clone(), false);
        }
        match (&entry.place.backing, &entry.source) {
            (Backing::Bind, Source::Object { fd, directory: true }) if is_asked(entry) => {
                look(view, path, fd.as_fd(), &mut found)?;
            }
            (Backing::Bind, Source::Object { fd, .. }) if is_asked(entry) => refuse_fifo(&entry.place, fd)?,
            _ => {}
        }
    }
    for (path, directory) in found {
        let reason = match directory {
            false => FIFO,
            true => "cannot be looked through for FIFOs",
        };
        // In an alias's place it comes after the guard; everywhere else it is new.
        view.entries.remove(&path);
        view.cover_found(path, directory, reason);
    }
    Ok(())
}

/// What an option names is not covered: it was asked for.
fn refuse_fifo(place: &Place, fd: &OwnedFd) -> Result<()> {
    if !rustix::fs::fstat(fd).is_ok_and(|stat| file_type(&stat) == FileType::Fifo) {
        return Ok(());
    }
    let (option, path) = (place.reason.trim_start_matches("asked for by "), place.path.as_os_str());
    Err(Error::usage(format!("{option} {}: a FIFO at this place could be written to as well", show(path)))
        .with_hint(format!("hand it in for reading: `< {}`", paste(path))))
}

fn is_asked(entry: &Entry) -> bool {
    entry.place.origin == Origin::Option && entry.place.access == Access::Read
}

fn beneath_writable(view: &View, path: &Path) -> bool {
    let mut above = path.ancestors().skip(1).filter_map(|above| view.entries.get(above));
    above.any(|entry| entry.place.access == Access::Write)
}

/// By what the listings say, as deep as it goes, with what is mounted in it. What has an entry of its own is left to
/// that.
fn look(view: &View, root: &Path, fd: BorrowedFd<'_>, found: &mut Found) -> Result<()> {
    let mut buffer = vec![MaybeUninit::uninit(); BUFFER];
    let mut left = vec![PathBuf::new()];
    while let Some(directory) = left.pop() {
        let cannot = |errno| Error::path("look for FIFOs in", root.join(&directory), errno);
        let open = match open(fd, &directory) {
            Ok(open) => open,
            // Gone or replaced since it was listed.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
            Err(Errno::ACCESS) if directory.as_os_str().is_empty() => {
                let shown = show(root.as_os_str());
                return Err(Error::usage(format!(
                    "{shown} cannot be looked through for FIFOs: Permission denied"
                ))
                .with_hint(format!("`--seal {}` shows it without its FIFOs", paste(root.as_os_str()))));
            }
            // Names in it may be known all the same.
            Err(Errno::ACCESS | Errno::PERM) => {
                found.insert(root.join(&directory), true);
                continue;
            }
            Err(errno) => return Err(cannot(errno)),
        };
        let mut listing = RawDir::new(&open, &mut buffer);
        while let Some(entry) = listing.next() {
            let entry = entry.map_err(cannot)?;
            let name = entry.file_name();
            let named = OsStr::from_bytes(name.to_bytes());
            let kind = match entry.file_type() {
                FileType::Unknown => match statat(&open, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => file_type(&stat),
                    Err(_) => continue,
                },
                kind => kind,
            };
            let directory_below = kind == FileType::Directory && named != "." && named != "..";
            if !directory_below && kind != FileType::Fifo {
                continue;
            }
            let below = directory.join(named);
            let path = root.join(&below);
            if view.entries.contains_key(&path) {
                continue;
            }
            if directory_below {
                left.push(below);
            } else {
                found.insert(path, false);
            }
        }
    }
    Ok(())
}

fn open(root: BorrowedFd<'_>, path: &Path) -> rustix::io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(root, path, flags, Mode::empty(), resolve) {
        // A filter above us answers so.
        Err(Errno::NOSYS) => openat(root, path, flags, Mode::empty()),
        opened => opened,
    }
}

fn is_fifo(at: BorrowedFd<'_>, path: &Path) -> bool {
    statat(at, path, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| file_type(&stat) == FileType::Fifo)
}
