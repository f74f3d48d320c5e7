//! File systems that are made for this run (mount(2)).

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use nix::mount::{MsFlags, mount};
use nix::sys::sysinfo::sysinfo;
use nix::unistd::fchdir;
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use rustix::mount::{MoveMountFlags, move_mount};

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
/// Returns the mount and the root, which is the working directory from here on.
pub fn attach_tmpfs(bytes: u64, own: Own) -> io::Result<(OwnedFd, OwnedFd)> {
    const ROOT: &str = "root";
    // tmpfs counts whole pages.
    let size = bytes.saturating_add(own.bytes.next_multiple_of(PAGE));
    let inodes = tmp_inodes(bytes).saturating_add(64 + 4 * own.names);
    let options = format!("size={size},nr_inodes={inodes}");
    let mount = mount_new("tmpfs", Path::new(OLD), MsFlags::MS_NOSUID | MsFlags::MS_NODEV, &options)?;
    mkdirat(&mount, ROOT, Mode::from_raw_mode(0o755))?;
    let root = clone_by_name(&mount, ROOT)?;
    move_mount(&root, "", &mount, ROOT, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    fchdir(&root)?;
    Ok((mount, root))
}

/// A directory of the old tree that nothing more is looked up in.
const OLD: &str = "/dev";

/// A new file system at a path of the host's or of our own making, relative to the working directory. In one call, and
/// one for the descriptor: fsopen(2) and its like are six, and make a namespace for a moment.
pub fn mount_new(kind: &str, at: &Path, flags: MsFlags, options: &str) -> rustix::io::Result<OwnedFd> {
    mount_over(kind, at, flags, options)?;
    openat(CWD, at, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

fn mount_over(kind: &str, at: &Path, flags: MsFlags, options: &str) -> rustix::io::Result<()> {
    mount(Some(kind), at, Some(kind), flags, Some(options))
        .map_err(|errno| rustix::io::Errno::from_raw_os_error(errno as i32))
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

pub fn devpts(at: &Path) -> rustix::io::Result<()> {
    mount_over("devpts", at, MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC, "ptmxmode=0666,mode=0620")
}

/// The message queues of this IPC namespace. Landlock takes mq_open(3) for an open beneath their file system's root,
/// which no path leads to; a rule on that inode holds wherever it is mounted, or nowhere. Mounted in the old tree: to
/// close one that is nowhere takes it down by itself, and with it a second grace period of the kernel's.
pub fn queues() -> rustix::io::Result<OwnedFd> {
    mount_new("mqueue", Path::new(OLD), MsFlags::MS_NOSUID, "")
}
