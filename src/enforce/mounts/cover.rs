//! Something empty over what is hidden.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, mkdirat, mknodat};
use rustix::mount::{MoveMountFlags, move_mount};

use super::clone::{NODEV, NOEXEC, NOSUID, RDONLY, clone_by_name, mount_on};
use super::file::relative;
use super::{Builder, Region};
use crate::sys::{self, MountAttr};
use crate::view::system;

impl Builder<'_> {
    pub(super) fn cover(&mut self, path: &Path, directory: bool, region: Region) -> io::Result<()> {
        if region == Region::Own {
            return Ok(());
        }
        // Of the kernel's own directory there is nothing to look out for on the way. What belongs to an interface may be
        // gone.
        let setting = path.starts_with("/proc/sys") && !path.starts_with("/proc/sys/net");
        let always = setting || path.parent() == Some(Path::new("/proc"));
        let target = match always {
            true => None,
            false => match self.open_foreign(path)? {
                None => return Ok(()),
                target => target,
            },
        };
        let mount = self.empty(directory)?;
        let Some(target) = target else {
            let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
            move_mount(&mount, "", &self.root, relative(path), flags)?;
            self.serve([mount]);
            return Ok(());
        };
        let mount = match mount_on(&mount, &target) {
            Ok(()) => mount,
            // In what is kept an earlier command may have put a directory in a file's place.
            Err(_) => {
                let other = self.empty(!directory)?;
                mount_on(&other, &target)?;
                other
            }
        };
        self.serve([target, mount]);
        Ok(())
    }

    pub(super) fn cover_below_sys(&mut self) -> io::Result<()> {
        let sys = rustix::fs::statat(&self.root, "sys", AtFlags::empty())?;
        for (path, _) in system::SYS_HIDDEN {
            if let Ok(found) =
                rustix::fs::statat(&self.root, relative(Path::new(path)), AtFlags::SYMLINK_NOFOLLOW)
                && found.st_dev != sys.st_dev
            {
                self.cover(Path::new(path), true, Region::Foreign)?;
            }
        }
        Ok(())
    }

    /// A clone of what covers: that is without any mode bit, and mounted onto itself with flags that its clones inherit.
    pub(super) fn empty(&mut self, directory: bool) -> io::Result<OwnedFd> {
        let (name, made) = match directory {
            true => ("empty-directory", &mut self.covers.0),
            false => ("empty-file", &mut self.covers.1),
        };
        if !*made {
            *made = true;
            if directory {
                mkdirat(&self.private, name, Mode::empty())?;
            } else {
                mknodat(&self.private, name, FileType::RegularFile, Mode::empty(), 0)?;
            }
            let mount = clone_by_name(&self.private, name)?;
            let attr = MountAttr { attr_set: RDONLY | NOSUID | NODEV | NOEXEC, ..MountAttr::default() };
            sys::mount_setattr(mount.as_fd(), 0, &attr)?;
            move_mount(&mount, "", &self.private, name, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
        }
        clone_by_name(&self.private, name)
    }
}
