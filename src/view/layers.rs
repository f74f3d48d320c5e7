//! What is written to a cache, kept in the directory of `--state`: an upper layer for each. One run at a time writes
//! there, and the kernel sees to that (`enforce::mounts::tree`). No command has a name for these directories; what is
//! in an upper layer is what earlier commands of the same state have written to the cache.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, fstat, mkdirat, openat};
use rustix::io::Errno;

use super::roots::Root;
use super::trace::object;
use super::{Backing, Purpose, Source, View};
use crate::digest;
use crate::error::{Error, Result};

/// Turns the layer at `path` into one that is kept.
pub fn keep(view: &mut View, path: &Path, uid: u32, purpose: Purpose) -> Result<()> {
    let Some(entry) = view.entries.get_mut(path).filter(|entry| entry.place.backing == Backing::Layer) else {
        return Ok(());
    };
    entry.place.backing = Backing::KeptLayer;
    // Explaining makes nothing, so there may be nothing to look at.
    let Some(state) = &view.state else { return Ok(()) };
    let own = PathBuf::from("layers").join(digest::short(path.as_os_str().as_bytes()));
    let place = state.path.join(&own);
    let (upper, work) = match open(&state.fd, &own, uid, purpose == Purpose::Run) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound && purpose != Purpose::Run => return Ok(()),
        Err(error) => return Err(Error::path("keep what is written to a cache in", place, error)),
    };
    let cannot = |errno: Errno| Error::path("look at", &place, errno);
    let fd = upper.try_clone().map_err(|error| Error::path("keep open", &place, error))?;
    // What is written through the layer lands here: an alias of it would be written as well.
    view.roots.push(Root {
        object: object(&fstat(&fd).map_err(cannot)?),
        path: place.join(UPPER),
        inside: path.to_owned(),
        fd,
        directory: true,
        writable: true,
        workspace: false,
    });
    if let Source::Object { fd: lower, .. } = std::mem::replace(&mut entry.source, Source::None) {
        entry.source = Source::Layer { lower, upper, work };
    }
    Ok(())
}

const UPPER: &str = "upper";

fn open(state: &OwnedFd, own: &Path, uid: u32, make: bool) -> io::Result<(OwnedFd, OwnedFd)> {
    let mut here = state.try_clone()?;
    for name in own {
        here = below(&here, name, uid, make)?;
    }
    Ok((below(&here, OsStr::new(UPPER), uid, make)?, below(&here, OsStr::new("work"), uid, make)?))
}

fn below(parent: &OwnedFd, name: &OsStr, uid: u32, make: bool) -> io::Result<OwnedFd> {
    if make {
        match mkdirat(parent, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = openat(parent, name, flags, Mode::empty())?;
    match fstat(&found)?.st_uid == uid {
        true => Ok(found),
        false => Err(io::Error::other("it belongs to another user")),
    }
}
