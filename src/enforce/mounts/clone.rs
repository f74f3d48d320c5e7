//! Clones of mounts that exist already, and where they are put (open_tree(2), move_mount(2), mount_setattr(2)).

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree};

use crate::sys::{self, MountAttr};

pub const RDONLY: u64 = 1;
pub const NOSUID: u64 = 2;
pub const NODEV: u64 = 4;
pub const NOEXEC: u64 = 8;

/// Recursive always: a user namespace may not clone a mount without the mounts below it that it cannot take off.
const RECURSIVE: OpenTreeFlags =
    OpenTreeFlags::OPEN_TREE_CLONE.union(OpenTreeFlags::OPEN_TREE_CLOEXEC).union(OpenTreeFlags::AT_RECURSIVE);

/// As it is, flags too.
pub fn open_tree_clone(object: impl AsFd) -> io::Result<OwnedFd> {
    let flags = RECURSIVE | OpenTreeFlags::AT_EMPTY_PATH;
    Ok(open_tree(object, "", flags)?)
}

pub fn clone(object: impl AsFd, set: u64) -> io::Result<OwnedFd> {
    clone_at(object.as_fd(), c"", set)
}

/// With an empty name, of the object itself.
pub fn clone_at(directory: BorrowedFd<'_>, name: &CStr, set: u64) -> io::Result<OwnedFd> {
    let attr = MountAttr { attr_set: set, ..MountAttr::default() };
    let flags = RECURSIVE | OpenTreeFlags::AT_EMPTY_PATH;
    // One call since Linux 6.15. Whatever it fails of, the two that are older say so in their own words.
    if let Ok(tree) = sys::open_tree_attr(directory, name, flags.bits(), &attr) {
        return Ok(tree);
    }
    let tree = open_tree(directory, name, flags)?;
    sys::mount_setattr(tree.as_fd(), libc::AT_RECURSIVE, &attr)?;
    Ok(tree)
}

/// Of something in the private tmpfs, where only the empty ones are mount points, and are meant.
pub fn clone_by_name(private: &OwnedFd, name: impl rustix::path::Arg) -> io::Result<OwnedFd> {
    let flags = RECURSIVE | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    Ok(open_tree(private, name, flags)?)
}

pub fn mount_on(mount: &OwnedFd, target: &OwnedFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(mount, "", target, "", flags)?)
}
