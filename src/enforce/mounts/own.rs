//! What the private tmpfs holds for the command: fresh directories and private copies.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;

use super::clone::{NODEV, NOSUID, RDONLY, clone, clone_by_name};
use super::file::{directory, identity, relative, write_file};
use super::{Builder, Grant, Region, Right};
use crate::enforce::kept;
use crate::view::{Place, Source};

impl Builder<'_> {
    /// The clone has the private mount's own flags: nosuid and nodev. In a tree of our own it is the mount point
    /// itself.
    pub(super) fn fresh(&mut self, path: &Path, mode: u32, region: Region) -> io::Result<OwnedFd> {
        let here = relative(path);
        if region == Region::Own {
            self.parents(path)?;
            match directory(&self.root, here, mode, identity(self.plan)) {
                Ok(()) => {
                    self.directories.insert(here.to_owned());
                    return clone_by_name(&self.root, here);
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let name = self.fresh_name(mode)?;
        clone_by_name(&self.private, &name)
    }

    /// A new directory of the private tmpfs.
    pub(super) fn fresh_name(&mut self, mode: u32) -> rustix::io::Result<String> {
        self.count += 1;
        let name = self.count.to_string();
        directory(&self.private, Path::new(&name), mode, identity(self.plan))?;
        Ok(name)
    }

    pub(super) fn fresh_directory(&mut self, mode: u32) -> rustix::io::Result<OwnedFd> {
        let name = self.fresh_name(mode)?;
        openat(&self.private, &name, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
    }

    pub(super) fn private_file(&mut self, bytes: &[u8], mode: u32) -> io::Result<OwnedFd> {
        self.count += 1;
        let name = self.count.to_string();
        write_file(self.private.as_fd(), Path::new(&name), bytes, mode, identity(self.plan))?;
        Ok(openat(&self.private, &name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
    }

    pub(super) fn copy(&mut self, place: &Place, source: Source, region: Region) -> io::Result<()> {
        let mut is_directory = false;
        let original = match (source, region) {
            (Source::File(bytes), Region::Own) => {
                self.parents(&place.path)?;
                let path = relative(&place.path);
                write_file(self.root.as_fd(), path, &bytes, 0o600, identity(self.plan))?;
                // In HOME the grant of HOME reaches it; below the root's own directories nothing does.
                if self.inherited().is_none() {
                    let fd = openat(&self.root, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
                    self.grants.push(Grant { fd, right: Right::Read, directory: false });
                }
                return Ok(());
            }
            (Source::File(bytes), Region::Kept) => {
                return kept::copy(&self.root, relative(&place.path), &bytes, identity(self.plan));
            }
            (Source::File(bytes), Region::Foreign) => self.private_file(&bytes, 0o644)?,
            (Source::Files(files), _) => {
                is_directory = true;
                let owner = identity(self.plan);
                let top = self.fresh_directory(0o755)?;
                for (name, bytes) in files {
                    if let Some(parent) = name.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                        match directory(&top, parent, 0o755, owner) {
                            Ok(()) | Err(Errno::EXIST) => {}
                            Err(error) => return Err(error.into()),
                        }
                    }
                    write_file(top.as_fd(), &name, &bytes, 0o644, owner)?;
                }
                top
            }
            (Source::None | Source::Object { .. } | Source::Layer { .. }, _) => {
                return Err(Errno::INVAL.into());
            }
        };
        let mount = clone(&original, RDONLY | NOSUID | NODEV)?;
        self.attach(&mount, &place.path, is_directory, region)?;
        self.serve([original]);
        self.grant(mount, Right::Read, is_directory);
        self.above.push((place.path.clone(), Region::Foreign, Some(Right::Read)));
        Ok(())
    }
}
