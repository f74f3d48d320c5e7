//! Names made in a directory that `--state` keeps: the mount points of what is shown beneath HOME and /tmp. The
//! one place on the user's disk where confine makes something, since the directory was given to it for that.
//! Earlier commands wrote there: no link is followed, and what is in the way is an error.
#![forbid(unsafe_code)]

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid, chownat, mkdirat, openat, symlinkat};
use rustix::io::Errno;

pub type Identity = (Option<Uid>, Option<Gid>);

/// `path` is relative to `root`, and a mount of the kept directory lies on the way. Returns the mount point.
pub fn mount_point(root: impl AsFd, path: &Path, directory: bool, owner: Identity) -> io::Result<OwnedFd> {
    let (parent, name) = parent(root, path, owner)?;
    if directory {
        return below(&parent, name, owner);
    }
    file(&parent, name, b"", owner)?;
    Ok(openat(&parent, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?)
}

pub fn link(root: impl AsFd, path: &Path, to: &Path, owner: Identity) -> io::Result<()> {
    let (parent, name) = parent(root, path, owner)?;
    match symlinkat(to, &parent, name) {
        Ok(()) => own(&parent, name, owner),
        Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Unless an earlier run has left one, which counts as newer.
pub fn copy(root: impl AsFd, path: &Path, bytes: &[u8], owner: Identity) -> io::Result<()> {
    let (parent, name) = parent(root, path, owner)?;
    file(&parent, name, bytes, owner)
}

fn file(parent: &OwnedFd, name: &OsStr, bytes: &[u8], owner: Identity) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(parent, name, flags, Mode::RUSR | Mode::WUSR) {
        Ok(fd) => {
            io::Write::write_all(&mut std::fs::File::from(fd), bytes)?;
            own(parent, name, owner)
        }
        Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn parent(root: impl AsFd, path: &Path, owner: Identity) -> io::Result<(OwnedFd, &OsStr)> {
    let name = path.file_name().ok_or(Errno::INVAL)?;
    let mut here = root.as_fd().try_clone_to_owned()?;
    for component in path.parent().into_iter().flat_map(Path::iter) {
        here = below(&here, component, owner)?;
    }
    Ok((here, name))
}

fn below(parent: &OwnedFd, name: &OsStr, owner: Identity) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(parent, name, flags, Mode::empty()) {
        Err(Errno::NOENT) => {
            mkdirat(parent, name, Mode::RWXU)?;
            own(parent, name, owner)?;
            Ok(openat(parent, name, flags, Mode::empty())?)
        }
        result => Ok(result?),
    }
}

fn own(parent: &OwnedFd, name: &OsStr, (uid, gid): Identity) -> io::Result<()> {
    Ok(chownat(parent, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?)
}
