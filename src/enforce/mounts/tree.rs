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
use crate::plan::facts::Lesser;
use crate::sys::{self, MountAttr};
use crate::view::Access;

/// The upper and the work directory of a layer that is kept.
pub type Upper = (OwnedFd, OwnedFd);

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

    /// What is written goes to `kept` where that can be had for this run alone, else to the private tmpfs. A cache
    /// that cannot be layered is still worth reading.
    pub fn layer(&mut self, lower: &OwnedFd, kept: Option<&Upper>, at: &Path) -> io::Result<OwnedFd> {
        let lower_dir = ("lowerdir", by_fd(lower));
        let written = |upper: &OwnedFd, work: &OwnedFd| {
            [lower_dir.clone(), ("upperdir", by_fd(upper)), ("workdir", by_fd(work))]
        };
        if let Some((upper, work)) = kept {
            let [lower, upper, work] = written(upper, work);
            // Of two mounts that write to one upper layer the kernel refuses the second (EBUSY) as long as a process
            // of the first run lives, but only if an index is asked for. An ordinary user gets none after that.
            if let Ok(mount) = self.overlay(&[lower, upper, work, ("index", "on".to_owned())], Access::Write)
            {
                return Ok(mount);
            }
            self.lesser.push((at.to_owned(), Lesser::Vanishes));
        }
        let (upper, work) = (self.fresh_directory(0o755)?, self.fresh_directory(0o755)?);
        self.overlay(&written(&upper, &work), Access::Write).or_else(|_| {
            self.lesser.push((at.to_owned(), Lesser::ReadOnly));
            self.clone_tree(lower, Access::Read, false)
        })
    }

    /// A seal is a demand: there is nothing to fall back on. Without an upper layer at least two lower ones are wanted
    /// (overlayfs.rst).
    pub fn seal(&mut self, lower: &OwnedFd) -> io::Result<OwnedFd> {
        let empty = self.fresh_directory(0o755)?;
        self.overlay(&[("lowerdir", format!("{}:{}", by_fd(lower), by_fd(&empty)))], Access::Read)
    }

    fn overlay(&self, layers: &[(&str, String)], access: Access) -> io::Result<OwnedFd> {
        let fs = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
        for (key, value) in layers {
            fsconfig_set_string(&fs, *key, value)?;
        }
        if self.plan.has(Namespace::User) {
            rustix::mount::fsconfig_set_flag(&fs, "userxattr")?;
        }
        fsconfig_create(&fs)?;
        let mut flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        flags.set(MountAttrFlags::MOUNT_ATTR_RDONLY, access < Access::Write);
        Ok(fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, flags)?)
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

fn by_fd(fd: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}
