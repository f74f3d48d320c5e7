//! Mount points: made where the directory is our own, found where it is somebody's.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags, mkdirat, openat2};
use rustix::io::Errno;
use rustix::mount::{MoveMountFlags, move_mount};

use super::clone::mount_on;
use super::file::{empty_file, identity, relative};
use super::{Builder, Region};
use crate::enforce::kept;

impl Builder<'_> {
    pub(super) fn attach(
        &mut self,
        mount: &OwnedFd,
        path: &Path,
        directory: bool,
        region: Region,
    ) -> io::Result<()> {
        if region == Region::Foreign {
            let target = self.open_foreign(path)?.ok_or(Errno::NOENT)?;
            mount_on(mount, &target)?;
            self.serve([target]);
            return Ok(());
        }
        if region == Region::Kept {
            let owner = identity(self.plan);
            return mount_on(mount, &kept::mount_point(&self.root, relative(path), directory, owner)?);
        }
        if directory {
            self.mount_point(path)?;
        } else {
            self.parents(path)?;
            empty_file(&self.root, relative(path), 0o600)?;
        }
        Ok(move_mount(mount, "", &self.root, relative(path), MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
    }

    /// A directory of our own.
    pub(super) fn mount_point(&mut self, path: &Path) -> io::Result<()> {
        self.parents(path)?;
        let path = relative(path);
        if self.directories.contains(path) { Ok(()) } else { self.directory(path) }
    }

    pub(super) fn parents(&mut self, path: &Path) -> io::Result<()> {
        let path = relative(path);
        let missing: Vec<&Path> = path
            .ancestors()
            .skip(1)
            .take_while(|parent| !parent.as_os_str().is_empty() && !self.directories.contains(*parent))
            .collect();
        missing.into_iter().rev().try_for_each(|parent| self.directory(parent))
    }

    pub(super) fn directory(&mut self, path: &Path) -> io::Result<()> {
        match mkdirat(&self.root, path, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {
                self.directories.insert(path.to_owned());
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn open_foreign(&self, path: &Path) -> io::Result<Option<OwnedFd>> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat2(&self.root, relative(path), flags, Mode::empty(), resolve) {
            Ok(fd) => Ok(Some(fd)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
