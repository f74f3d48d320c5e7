//! The trees that a view shows: clones of the host's, layers over them, and the kernel's own.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use nix::mount::MsFlags;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen,
};

use super::Builder;
use super::clone::{NODEV, NOEXEC, NOSUID, RDONLY, clone, open_tree_clone};
use super::file::relative;
use super::filesystem::mount_new;
use crate::plan::Namespace;
use crate::sys::{self, MountAttr};
use crate::view::Access;

impl Builder<'_> {
    /// A clone of a tree with everything mounted below it. Submounts are read-only: each that may be written is
    /// an entry of its own.
    pub fn clone_tree(&self, object: &OwnedFd, access: Access, veiled: bool) -> io::Result<OwnedFd> {
        const FLAGS: u64 = RDONLY | NOSUID | NODEV;
        let tree = match &self.veil {
            Some(veil) if veiled => {
                let tree = open_tree_clone(object)?;
                veil.put_on(&tree, FLAGS)?;
                tree
            }
            _ => clone(object, FLAGS)?,
        };
        if access == Access::Write {
            let writable = MountAttr { attr_clr: RDONLY, ..MountAttr::default() };
            sys::mount_setattr(tree.as_fd(), 0, &writable).map_err(|error| match error.raw_os_error() {
                Some(libc::EPERM) => io::Error::from_raw_os_error(libc::EROFS),
                _ => error,
            })?;
        }
        Ok(tree)
    }

    pub fn overlay(&mut self, lower: &OwnedFd, writable: bool) -> io::Result<OwnedFd> {
        let by_fd = |fd: &OwnedFd| format!("/proc/self/fd/{}", fd.as_raw_fd());
        let mount = (|| {
            let fs = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
            let mut flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
            let (first, second) = (self.fresh_directory(0o755)?, self.fresh_directory(0o755)?);
            if writable {
                fsconfig_set_string(&fs, "lowerdir", by_fd(lower))?;
                fsconfig_set_string(&fs, "upperdir", by_fd(&first))?;
                fsconfig_set_string(&fs, "workdir", by_fd(&second))?;
            } else {
                // Without an upper layer at least two lower ones are wanted (overlayfs.rst).
                fsconfig_set_string(&fs, "lowerdir", format!("{}:{}", by_fd(lower), by_fd(&first)))?;
                flags |= MountAttrFlags::MOUNT_ATTR_RDONLY;
            }
            if self.plan.has(Namespace::User) {
                rustix::mount::fsconfig_set_flag(&fs, "userxattr")?;
            }
            fsconfig_create(&fs)?;
            fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, flags)
        })();
        match mount {
            // A cache that cannot be layered is still worth reading; a seal is a demand.
            Err(_) if writable => self.clone_tree(lower, Access::Read, false),
            other => Ok(other?),
        }
    }

    /// `made` says whether it is a new one, mounted already, with nothing of the host below.
    pub fn procfs(&mut self, host: &OwnedFd, at: &Path, made: &mut bool) -> io::Result<OwnedFd> {
        if !self.plan.has(Namespace::Pid) {
            return clone(host, RDONLY | NOSUID | NODEV | NOEXEC);
        }
        // The host's would show the host's processes: there is nothing to fall back on.
        *made = true;
        self.kernel_filesystem("proc", at)
    }

    /// The same.
    pub fn sysfs(&mut self, host: &OwnedFd, at: &Path, made: &mut bool) -> io::Result<OwnedFd> {
        if self.plan.has(Namespace::Network) {
            // Refused where a container masks parts of /sys ("mount too revealing").
            if let Ok(mount) = self.kernel_filesystem("sysfs", at) {
                *made = true;
                return Ok(mount);
            }
        }
        clone(host, RDONLY | NOSUID | NODEV | NOEXEC)
    }

    fn kernel_filesystem(&mut self, kind: &str, at: &Path) -> io::Result<OwnedFd> {
        let flags = MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        self.mount_point(at)?;
        Ok(mount_new(kind, relative(at), flags, "")?)
    }
}
