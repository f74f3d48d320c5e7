//! Inherited descriptors and the view: what is a terminal or a plain device is opened again through a read-only
//! mount, and a terminal that is not handed in is let go.
//!
//! A descriptor keeps the mount that it was opened through: the owner of a terminal, and root of any device, could
//! change mode, owner, times and ACL of the host's node through one that leads to the host's mount.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, statat};

use super::descriptors::{Inherited, Kind, name_of};
use super::landlock::Handed;
use super::mounts::clone::{NOEXEC, NOSUID, RDONLY, clone};
use crate::error::{Error, Result, describe};
use crate::sys;
use crate::view::View;
use crate::view::caller::Caller;
use crate::view::trace::{object, trace};

/// Regular files among 0, 1 and 2, which may be opened again by name (`/dev/stderr`) with their own access. Not what
/// memfd_create(2) made: Landlock takes no rule for it and needs none, since it has no place in any tree.
pub fn handed(standard: &[Inherited]) -> Vec<Handed<'static>> {
    let file = |stream: &Inherited| {
        let path = stream.path.as_ref().filter(|_| stream.kind == Kind::Regular)?;
        let memory = path.as_os_str().as_bytes().starts_with(b"/memfd:");
        let fd = sys::borrow(stream.fd).ok().filter(|_| !memory)?;
        Some(Handed { fd, read: stream.read, write: stream.write })
    };
    standard.iter().filter_map(file).collect()
}

/// What has a name in the view, for `reopen`; the rest is replaced here. Before the new root is built, which covers
/// names of the host.
pub fn reopen_unnamed<'a>(caller: &'a Caller, view: &View) -> Result<Vec<(&'a Inherited, &'static str)>> {
    let shown = view.entries.contains_key(Path::new("/dev/console"));
    let console = caller.standard.iter().find(|stream| shown && stream.is_terminal()).map(Inherited::object);
    let mut named = Vec::new();
    for stream in caller.inherited() {
        match stream.kind {
            Kind::Terminal if console == Some(stream.object()) => named.push((stream, "dev/console")),
            Kind::Terminal => replace(caller, stream, by_clone(stream).map(Some))?,
            Kind::Device => match plain(stream) {
                Some(name) => named.push((stream, name)),
                None => replace(caller, stream, unless_gone(stream))?,
            },
            _ => {}
        }
    }
    Ok(named)
}

/// By the names in the new root.
pub fn reopen(caller: &Caller, named: &[(&Inherited, &str)], root: &OwnedFd) -> Result<()> {
    named.iter().try_for_each(|(stream, name)| replace(caller, stream, by_name(root, name, stream).map(Some)))
}

fn replace(caller: &Caller, stream: &Inherited, again: io::Result<Option<OwnedFd>>) -> Result<()> {
    match again {
        Ok(Some(again)) => sys::place_descriptor(again.as_fd(), stream.fd)
            .map_err(|error| Error::step(format!("replace {}", stream.what()), error)),
        Ok(None) => Ok(()),
        // Only its owner may change a node, and the command will have no capability (su(1) leaves a terminal to the
        // one before).
        Err(_) if stream.owner != caller.uid => Ok(()),
        Err(error) => Err(Error::refused(format!(
            "{} is {} that cannot be opened anew ({}), so that the command could change its mode and owner",
            stream.what(),
            stream.kind,
            describe(&error)
        ))
        .with_hint(match stream.fd {
            0..=2 => stream.remedy(),
            number => format!("leave out `--fd {number}`, or open a pipe there"),
        })),
    }
}

/// One is like another: what a container's manager opened outside is as good as the view's own.
fn plain(stream: &Inherited) -> Option<&'static str> {
    match (rustix::fs::major(stream.number), rustix::fs::minor(stream.number)) {
        (1, 3) => Some("dev/null"),
        (1, 5) => Some("dev/zero"),
        (1, 7) => Some("dev/full"),
        (1, 8) => Some("dev/random"),
        (1, 9) => Some("dev/urandom"),
        _ => None,
    }
}

/// None for a terminal that has gone: it has no name, so nobody else will open it. While the name of one that was hung
/// up is there, it would be alive again once it is opened.
fn unless_gone(stream: &Inherited) -> io::Result<Option<OwnedFd>> {
    let path = name_of(sys::borrow(stream.fd)?)?;
    match trace(&path).and_then(|found| found.stat()) {
        Ok(found) if object(&found) == stream.object() => Err(io::Error::other("it was hung up")),
        _ => Ok(None),
    }
}

fn by_name(root: &OwnedFd, name: &str, stream: &Inherited) -> io::Result<OwnedFd> {
    let found = statat(root, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let device = FileType::from_raw_mode(found.st_mode) == FileType::CharacterDevice;
    if !device || found.st_rdev != stream.number {
        return Err(io::Error::other("another device has its name"));
    }
    Ok(openat(root, name, flags(stream), Mode::empty())?)
}

/// Through a mount that nothing but the descriptor leads to. Of the name, since a mount of another namespace cannot be
/// cloned (open_tree(2), EINVAL).
fn by_clone(stream: &Inherited) -> io::Result<OwnedFd> {
    let found = trace(&name_of(sys::borrow(stream.fd)?)?)?;
    let stat = fstat(&found.fd)?;
    if object(&stat) != stream.object() || stat.st_rdev != stream.number {
        return Err(io::Error::other("it has no name here"));
    }
    let mount = clone(&found.fd, RDONLY | NOSUID | NOEXEC)?;
    let name = format!("/proc/self/fd/{}", mount.as_raw_fd());
    Ok(openat(CWD, name, flags(stream), Mode::empty())?)
}

fn flags(stream: &Inherited) -> OFlags {
    let kept = OFlags::ACCMODE | OFlags::NONBLOCK | OFlags::APPEND;
    (stream.flags & kept) | OFlags::NOCTTY | OFlags::CLOEXEC
}

/// Without a terminal among 0, 1 and 2 the command has none at all: a background job must not type into, or
/// read from, the one that confine was started on. A session leader keeps it, since for it letting go hangs the
/// whole session up (ioctl_tty(2), TIOCNOTTY); it has no name inside either.
pub fn let_terminal_go(standard: &[Inherited]) {
    if standard.iter().any(Inherited::is_terminal) {
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
