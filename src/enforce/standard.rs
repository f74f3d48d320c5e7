//! Standard descriptors and the view: what is a terminal or a plain device is opened again through the view's
//! read-only mounts, and a terminal that is not handed in is let go.
//!
//! A descriptor keeps the mount that it was opened through: root could chmod the host's /dev/null, and any user
//! the own terminal, through one that leads to the host's mount.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};

use super::descriptors::{Kind, Standard};
use super::landlock::Handed;
use crate::error::{Error, Result};
use crate::sys;
use crate::view::system;

/// Regular files among 0, 1 and 2, which may be opened again by name (`/dev/stderr`) with their own access.
pub fn reopen(standard: &[Standard], view: bool) -> Result<Vec<Handed<'static>>> {
    let mut handed = Vec::new();
    for stream in standard {
        if stream.kind == Kind::Regular
            && let Ok(fd) = sys::borrow(stream.fd)
            && !is_memory(stream.fd)
        {
            handed.push(Handed { fd, read: stream.read, write: stream.write });
        }
        if !view || !matches!(stream.kind, Kind::Terminal | Kind::Device) {
            continue;
        }
        if let Some(again) = find(stream) {
            sys::place_descriptor(again.as_fd(), stream.fd)
                .map_err(|error| Error::step("replace a standard descriptor", error))?;
        }
    }
    Ok(handed)
}

/// Of memfd_create(2): Landlock takes no rule for it and needs none, since it has no place in any tree.
fn is_memory(fd: i32) -> bool {
    std::fs::read_link(format!("/proc/self/fd/{fd}"))
        .is_ok_and(|path| path.as_os_str().as_bytes().starts_with(b"/memfd:"))
}

/// The same device by its name inside; one that has no name there is left as it is.
fn find(stream: &Standard) -> Option<OwnedFd> {
    let devices = system::DEVICES.iter().copied().filter(|_| stream.kind == Kind::Device);
    let terminal = std::iter::once("console").filter(|_| stream.kind == Kind::Terminal);
    devices.chain(terminal).find_map(|name| {
        let path = Path::new("/dev").join(name);
        let stat = rustix::fs::stat(&path).ok()?;
        ((stat.st_dev, stat.st_ino) == (stream.device, stream.inode)).then_some(())?;
        let kept = OFlags::ACCMODE | OFlags::NONBLOCK | OFlags::APPEND;
        openat(CWD, &path, (stream.flags & kept) | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).ok()
    })
}

/// Without a terminal among 0, 1 and 2 the command has none at all: a background job must not type into, or
/// read from, the one that confine was started on. A session leader keeps it, since for it letting go hangs the
/// whole session up (ioctl_tty(2), TIOCNOTTY); it has no name inside either.
pub fn let_terminal_go(standard: &[Standard]) {
    if standard.iter().any(Standard::is_terminal) {
        return;
    }
    // Failing means that there is none.
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let Ok(tty) = openat(CWD, "/dev/tty", flags, Mode::empty()) else { return };
    let leader = nix::unistd::getsid(None).is_ok_and(|sid| sid == nix::unistd::getpid());
    if !leader {
        let _ = sys::give_up_terminal(tty.as_fd());
    }
}
