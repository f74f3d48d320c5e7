//! Something empty over what is hidden.

use std::io;
use std::os::fd::AsFd;
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
        // Of the kernel's own directory there is nothing to look out for on the way.
        let target = match path.parent() == Some(Path::new("/proc")) {
            true => None,
            false => match self.open_foreign(path)? {
                None => return Ok(()),
                target => target,
            },
        };
        let name = self.empty(directory)?;
        let mount = clone_by_name(&self.private, name)?;
        match target {
            Some(target) => {
                mount_on(&mount, &target)?;
                self.serve([target]);
            }
            None => {
                let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
                move_mount(&mount, "", &self.root, relative(path), flags)?;
            }
        }
        self.serve([mount]);
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

    /// What covers: without any mode bit, and mounted onto itself with flags that its clones inherit.
    pub(super) fn empty(&mut self, directory: bool) -> io::Result<&'static str> {
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
        Ok(name)
    }
}
