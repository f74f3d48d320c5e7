//! File systems that are made for this run (fsopen(2)).

use std::io;
use std::os::fd::OwnedFd;

use nix::sys::sysinfo::sysinfo;
use rustix::fs::{CWD, Mode, mkdirat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, fsconfig_create, fsconfig_set_string, fsmount,
    fsopen, move_mount,
};

use super::clone::clone_by_name;
use crate::plan::Plan;

/// The smallest of any machine; where it is larger the command has a little more.
const PAGE: u64 = 4096;

/// What the new root itself takes of the tmpfs that it shares with /tmp: on top of what was asked for.
pub struct Own {
    pub bytes: u64,
    /// Paths of the view.
    pub names: u64,
}

/// One tmpfs for the new root and for what is private: the root is a directory of it, bound onto itself so that it
/// can be read-only where the rest is not. Mounted in the old tree, so that taking that off takes the rest along;
/// what is bound from it stays. Not on the old root: what is stacked there would have to be taken off one by one.
/// Returns the mount, the context that it was made with, and the root.
pub fn attach_tmpfs(bytes: u64, own: Own) -> io::Result<(OwnedFd, OwnedFd, OwnedFd)> {
    const ROOT: &str = "root";
    // tmpfs counts whole pages.
    let size = bytes.saturating_add(own.bytes.next_multiple_of(PAGE));
    let inodes = tmp_inodes(bytes).saturating_add(64 + 4 * own.names);
    let options = [("size", size.to_string()), ("nr_inodes", inodes.to_string())];
    let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let (mount, context) = new_filesystem("tmpfs", &options, flags)?;
    move_mount(&mount, "", CWD, "/dev", MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    mkdirat(&mount, ROOT, Mode::from_raw_mode(0o755))?;
    let root = clone_by_name(&mount, ROOT)?;
    move_mount(&root, "", &mount, ROOT, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    Ok((mount, context, root))
}

/// A mount that is nowhere yet, and the context that it was made with, which serves no more.
pub fn new_filesystem(
    kind: &str,
    options: &[(&str, String)],
    flags: MountAttrFlags,
) -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        fsconfig_set_string(&context, *key, value)?;
    }
    fsconfig_create(&context)?;
    Ok((fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, flags)?, context))
}

/// A quarter of memory unless asked otherwise.
pub fn tmp_bytes(plan: &Plan) -> u64 {
    plan.world.tmp.unwrap_or_else(|| sysinfo().map_or(1 << 30, |found| found.ram_total() / 4))
}

/// An inode takes a kilobyte of kernel memory that the size does not count (tmpfs(5), nr_inodes): empty files alone
/// must not fill what the size bounds.
fn tmp_inodes(bytes: u64) -> u64 {
    (bytes / 4096).max(1024)
}

pub fn devpts() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let options = [("ptmxmode", "0666".to_owned()), ("mode", "0620".to_owned())];
    let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    new_filesystem("devpts", &options, flags)
}

/// The message queues of this IPC namespace. Landlock takes mq_open(3) for an open beneath their file system's root,
/// which no path leads to; a rule on that inode holds wherever it is mounted, or nowhere. Mounted in the old tree: to
/// close one that is nowhere takes it down by itself, and with it a second grace period of the kernel's.
pub fn queues() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let (mount, context) = new_filesystem("mqueue", &[], MountAttrFlags::MOUNT_ATTR_NOSUID)?;
    move_mount(&mount, "", CWD, "/dev", MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    Ok((mount, context))
}
