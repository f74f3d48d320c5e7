//! The names of this process's own root: where nothing is mounted for the command, and inside the boundary itself.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{
    Access, AtFlags, CWD, FileType, Mode, OFlags, Statx, StatxFlags, accessat, openat, readlinkat, statx,
};

use super::{May, Node, What, World};

pub struct Real {
    /// Inside, what may be read is found by opening it: only that asks every layer.
    pub inside: bool,
}

impl World for Real {
    fn look(&self, path: &Path) -> Node {
        let mut node = at(CWD, path);
        if self.inside && node.may.read && matches!(node.what, What::File | What::Directory) {
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
            node.may.read = openat(CWD, path, flags, Mode::empty()).is_ok();
        }
        if let What::Device { shared } = &mut node.what {
            *shared = path.starts_with("/dev");
        }
        node
    }
}

/// One name below a directory, or with an empty name the object itself.
pub fn at(directory: BorrowedFd<'_>, name: &Path) -> Node {
    let (Ok(stat), may) = (stat(directory, name), may(directory, name)) else { return Node::missing() };
    let what = match FileType::from_raw_mode(u32::from(stat.stx_mode)) {
        FileType::Symlink => match readlinkat(directory, name, Vec::new()) {
            Ok(to) => What::Link(std::ffi::OsStr::from_bytes(to.to_bytes()).into()),
            Err(_) => What::Missing,
        },
        FileType::Directory => What::Directory,
        FileType::Socket => What::Socket,
        FileType::Fifo => What::Fifo,
        FileType::CharacterDevice | FileType::BlockDevice => What::Device { shared: false },
        _ => What::File,
    };
    let owner = Some((stat.stx_uid, stat.stx_gid));
    Node { what, may, other_mount: false, links: stat.stx_nlink, owner, object: Some(object(&stat)) }
}

pub fn object(stat: &Statx) -> (u64, u64) {
    (rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor), stat.stx_ino)
}

pub fn stat(directory: BorrowedFd<'_>, name: &Path) -> rustix::io::Result<Statx> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::EMPTY_PATH;
    statx(directory.as_fd(), name, flags, StatxFlags::BASIC_STATS | StatxFlags::MNT_ID)
}

/// access(2) with the identity that this process has by now.
fn may(directory: BorrowedFd<'_>, name: &Path) -> May {
    let name = if name.as_os_str().is_empty() { Path::new(".") } else { name };
    let ask = |mode| match accessat(directory, name, mode, AtFlags::EACCESS) {
        // A file has no `.`: it is asked by its descriptor.
        Err(rustix::io::Errno::NOTDIR) => {
            use std::os::fd::AsRawFd;
            let own = format!("/proc/self/fd/{}", directory.as_raw_fd());
            accessat(CWD, own, mode, AtFlags::EACCESS).is_ok()
        }
        asked => asked.is_ok(),
    };
    May { read: ask(Access::READ_OK), write: ask(Access::WRITE_OK), execute: ask(Access::EXEC_OK) }
}
