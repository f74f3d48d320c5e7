//! The new root: a tmpfs with clones of what the view shows, entered by pivot_root(2).
//!
//! Everything is mounted by descriptor. What lies in a workspace is hostile, so a mount point there is opened
//! without following any link and without leaving the new root, and nothing is ever created in it.

pub mod clone;
mod file;
mod filesystem;
mod tree;

use std::collections::HashSet;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, umount2};
use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::pivot_root;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatxFlags, mkdirat, mknodat, openat, openat2, statx,
    symlinkat,
};
use rustix::io::Errno;
use rustix::mount::{MoveMountFlags, move_mount};

use self::clone::{NODEV, NOEXEC, NOSUID, RDONLY, clone, clone_at, clone_by_name, mount_on};
use self::file::{directory, empty_file, identity, relative, write_file};
use self::filesystem::{Own, attach_tmpfs, devpts, queues, tmp_bytes};
use self::tree::Upper;
use super::kept;
use super::veil::{Veil, unreadable};
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::plan::note::{self, Note};
use crate::sys::{self, MountAttr};
use crate::view::{Access, Backing, Entry, Place, Source, View, system};

/// Where the note and the self-check's canary lie.
pub const OWN: &str = "/.confine";

/// Something that Landlock is to grant: the descriptor is that of the mount itself.
#[derive(Debug)]
pub struct Grant {
    pub fd: OwnedFd,
    pub right: Right,
    pub directory: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    List,
    Read,
    /// Devices: read, write and control, nothing created.
    Device,
    Write,
}

/// Who owns the directory in which a mount point is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Region {
    /// Made by us, empty until we put something there.
    Own,
    /// A tree of `--state`: what is missing is made in it.
    Kept,
    /// Somebody's tree: nothing is created, and no link is followed.
    Foreign,
}

pub struct Builder<'a> {
    plan: &'a Plan,
    root: OwnedFd,
    private: OwnedFd,
    /// The host's, from before anything covered it.
    devices: OwnedFd,
    veil: Option<Veil>,
    directories: HashSet<PathBuf>,
    /// What is mounted already, from the root down to the present entry.
    above: Vec<(PathBuf, Region, Option<Right>)>,
    grants: Vec<Grant>,
    /// Directories and mounts that nothing more is done with.
    served: Vec<OwnedFd>,
    /// How many of those there may be: the limit of descriptors is the caller's.
    room: usize,
    count: u32,
    /// Whether the two that cover what is hidden exist: a directory, another file.
    covers: (bool, bool),
}

/// Builds the new root beside the old one. Nothing of it is visible to any path yet. Returns that root, which is the
/// working directory by then, what is to be granted, and descriptors that only have to be closed some time.
pub fn build(plan: &Plan, view: View, note: &Note) -> Result<(OwnedFd, Vec<Grant>, Vec<OwnedFd>)> {
    // Modes are meant as they are written; the caller's mask comes back for the command.
    let mask = rustix::process::umask(Mode::empty());
    let built = build_unmasked(plan, view, note);
    rustix::process::umask(mask);
    built
}

fn build_unmasked(plan: &Plan, view: View, note: &Note) -> Result<(OwnedFd, Vec<Grant>, Vec<OwnedFd>)> {
    // First: once something covers "/", the kernel takes this process for one in a chroot and refuses it, and
    // its children, user namespaces (unshare(2), EPERM).
    let veil = if plan.world.veil { Veil::make(plan) } else { None };
    let devices = openat(CWD, "/dev", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| Error::path("open", "/dev", errno))?;
    let own = Own { bytes: note.bytes(), names: view.entries.len() as u64 };
    let (private, root) =
        attach_tmpfs(tmp_bytes(plan), own).map_err(|error| Error::step("mount a private tmpfs", error))?;
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| soft);
    let mut builder = Builder {
        plan,
        root,
        private,
        devices,
        veil,
        directories: HashSet::new(),
        above: Vec::new(),
        grants: Vec::new(),
        served: Vec::new(),
        room: (limit / 4).min(256) as usize,
        count: 0,
        covers: (false, false),
    };
    for (_, entry) in view.entries {
        let path = entry.place.path.clone();
        builder.show(entry).map_err(|error| Error::path("show", path, error))?;
    }
    builder.add_own(note).map_err(|error| Error::path("write", OWN, error))?;
    builder.grant_directories().map_err(|error| Error::step("open the new root", error))?;
    builder.served.extend([builder.private, builder.devices]);
    Ok((builder.root, builder.grants, builder.served))
}

/// Makes the new root, and present working directory, the root of this process and lets the old one go.
pub fn enter(root: &OwnedFd) -> Result<()> {
    let change = || -> io::Result<()> {
        // pivot_root(2), "pivot_root(".", ".")": the old root lies on top of the new one and is taken off.
        pivot_root(".", ".")?;
        // umount2(2) takes the topmost: first what was stacked on the old root, then that. `..` of the root leads
        // to whatever is left there, the whole host; the old root itself is there in any case.
        let own = mount_id("/")?;
        loop {
            umount2("/..", MntFlags::MNT_DETACH)?;
            if mount_id("/..")? == own {
                break;
            }
        }
        sys::mount_setattr(root.as_fd(), 0, &MountAttr { attr_set: RDONLY, ..MountAttr::default() })
    };
    change().map_err(|error| Error::step("enter the new root", error))
}

fn mount_id(path: &str) -> io::Result<u64> {
    Ok(statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID)?.stx_mnt_id)
}

impl Builder<'_> {
    fn show(&mut self, entry: Entry) -> io::Result<()> {
        let Entry { place, source } = entry;
        while self.above.last().is_some_and(|(path, ..)| !place.path.starts_with(path)) {
            self.above.pop();
        }
        let region = self.above.last().map_or(Region::Own, |(_, region, _)| *region);
        let mut made = false;
        let shown = match &place.backing {
            Backing::Link { to } => return self.link(&place.path, to, region),
            Backing::Cover { directory } => return self.cover(&place.path, *directory, region),
            Backing::Copy => return self.copy(&place, source, region),
            Backing::Itself => return self.guard(&place),
            Backing::Lifted => return Ok(()),
            Backing::Fresh { mode } => (self.fresh(&place.path, *mode, region)?, Region::Own, true),
            Backing::Device => {
                let name = place.path.file_name().ok_or(Errno::INVAL)?;
                let name = CString::new(name.as_bytes()).map_err(|_| Errno::INVAL)?;
                let mount = clone_at(self.devices.as_fd(), &name, RDONLY | NOSUID | NOEXEC)?;
                self.attach(&mount, &place.path, false, region)?;
                self.serve([mount]);
                return Ok(());
            }
            Backing::Terminal => {
                let (fd, ..) = object(source)?;
                let mount = clone(&fd, RDONLY | NOSUID | NOEXEC)?;
                self.attach(&mount, &place.path, false, region)?;
                self.serve([fd, mount]);
                return Ok(());
            }
            Backing::Terminals => {
                if region != Region::Foreign {
                    self.mount_point(&place.path)?;
                    return Ok(devpts(relative(&place.path))?);
                }
                let target = self.open_foreign(&place.path)?.ok_or(Errno::NOENT)?;
                return Ok(devpts(Path::new(&format!("/proc/self/fd/{}", target.as_raw_fd())))?);
            }
            Backing::Bind
            | Backing::Kept
            | Backing::Veiled
            | Backing::Sealed
            | Backing::Layer
            | Backing::KeptLayer
            | Backing::Proc
            | Backing::Sys => {
                let (fd, directory, kept) = object(source)?;
                let mount = match &place.backing {
                    Backing::Bind | Backing::Kept => self.clone_tree(&fd, place.access, false)?,
                    Backing::Veiled => self.clone_tree(&fd, place.access, true)?,
                    Backing::Proc => self.procfs(&fd, &place.path, &mut made)?,
                    Backing::Sys => self.sysfs(&fd, &place.path, &mut made)?,
                    Backing::Sealed => self.seal(&fd)?,
                    _ => self.layer(&fd, kept.as_ref())?,
                };
                self.serve([fd]);
                let inner = match place.backing {
                    Backing::Kept | Backing::KeptLayer => Region::Kept,
                    _ => Region::Foreign,
                };
                (mount, inner, directory)
            }
        };
        let (mount, inner, directory) = shown;
        if !made {
            self.attach(&mount, &place.path, directory, region)?;
        }
        if place.backing == Backing::Sys && !made {
            self.cover_below_sys()?;
        }
        if place.backing == Backing::Veiled {
            for (path, directory) in unreadable(&mount, &place.path)? {
                self.cover(&path, directory, Region::Foreign)?;
            }
        }
        let right = if place.access == Access::Write { Right::Write } else { Right::Read };
        self.grant(mount, right, directory);
        self.above.push((place.path, inner, self.inherited().max(Some(right))));
        Ok(())
    }

    /// What Landlock grants above reaches down here too.
    fn grant(&mut self, mount: OwnedFd, right: Right, directory: bool) {
        if self.inherited().is_none_or(|inherited| inherited < right) {
            self.grants.push(Grant { fd: mount, right, directory });
        } else {
            self.serve([mount]);
        }
    }

    fn inherited(&self) -> Option<Right> {
        self.above.last().and_then(|(_, _, right)| *right)
    }

    /// Left open for execve to close.
    fn serve<const N: usize>(&mut self, descriptors: [OwnedFd; N]) {
        if self.served.len() < self.room {
            self.served.extend(descriptors);
        }
    }

    /// A new directory of the private tmpfs.
    fn fresh_name(&mut self, mode: u32) -> rustix::io::Result<String> {
        self.count += 1;
        let name = self.count.to_string();
        directory(&self.private, Path::new(&name), mode, identity(self.plan))?;
        Ok(name)
    }

    fn fresh_directory(&mut self, mode: u32) -> rustix::io::Result<OwnedFd> {
        let name = self.fresh_name(mode)?;
        openat(&self.private, &name, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
    }

    /// The clone has the private mount's own flags: nosuid and nodev. In a tree of our own it is the mount point
    /// itself.
    fn fresh(&mut self, path: &Path, mode: u32, region: Region) -> io::Result<OwnedFd> {
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

    fn cover_below_sys(&mut self) -> io::Result<()> {
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

    fn link(&mut self, path: &Path, to: &Path, region: Region) -> io::Result<()> {
        match region {
            Region::Foreign => return Ok(()),
            Region::Kept => return kept::link(&self.root, relative(path), to, identity(self.plan)),
            Region::Own => {}
        }
        self.parents(path)?;
        match symlinkat(to, &self.root, relative(path)) {
            Err(Errno::EXIST) => Ok(()),
            other => Ok(other?),
        }
    }

    fn cover(&mut self, path: &Path, directory: bool, region: Region) -> io::Result<()> {
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

    /// What covers: without any mode bit, and mounted onto itself with flags that its clones inherit.
    fn empty(&mut self, directory: bool) -> io::Result<&'static str> {
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

    fn private_file(&mut self, bytes: &[u8], mode: u32) -> io::Result<OwnedFd> {
        self.count += 1;
        let name = self.count.to_string();
        write_file(self.private.as_fd(), Path::new(&name), bytes, mode, identity(self.plan))?;
        Ok(openat(&self.private, &name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
    }

    fn copy(&mut self, place: &Place, source: Source, region: Region) -> io::Result<()> {
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

    /// A part of a writable root bound onto itself. What is gone meanwhile needs no guard; what has become a link
    /// is an attack and an error.
    fn guard(&mut self, place: &Place) -> io::Result<()> {
        let Some(target) = self.open_foreign(&place.path)? else { return Ok(()) };
        let flags = if place.access == Access::Write { NOSUID | NODEV } else { RDONLY | NOSUID | NODEV };
        let mount = clone(&target, flags)?;
        mount_on(&mount, &target)?;
        self.serve([target, mount]);
        Ok(())
    }

    fn open_foreign(&self, path: &Path) -> io::Result<Option<OwnedFd>> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat2(&self.root, relative(path), flags, Mode::empty(), resolve) {
            Ok(fd) => Ok(Some(fd)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn attach(&mut self, mount: &OwnedFd, path: &Path, directory: bool, region: Region) -> io::Result<()> {
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
    fn mount_point(&mut self, path: &Path) -> io::Result<()> {
        self.parents(path)?;
        let path = relative(path);
        if self.directories.contains(path) { Ok(()) } else { self.directory(path) }
    }

    fn parents(&mut self, path: &Path) -> io::Result<()> {
        let path = relative(path);
        let missing: Vec<&Path> = path
            .ancestors()
            .skip(1)
            .take_while(|parent| !parent.as_os_str().is_empty() && !self.directories.contains(*parent))
            .collect();
        missing.into_iter().rev().try_for_each(|parent| self.directory(parent))
    }

    fn directory(&mut self, path: &Path) -> io::Result<()> {
        match mkdirat(&self.root, path, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {
                self.directories.insert(path.to_owned());
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn add_own(&mut self, note: &Note) -> io::Result<()> {
        let own = Path::new(OWN);
        self.parents(&own.join(note::TEXT))?;
        for (name, bytes) in note.files() {
            let path = own.join(name);
            write_file(self.root.as_fd(), relative(&path), bytes, 0o444, (None, None))?;
            let fd = openat(&self.root, relative(&path), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
            self.grants.push(Grant { fd, right: Right::Read, directory: false });
        }
        empty_file(&self.root, relative(&own.join("self-check")), 0o444)
    }

    fn grant_directories(&mut self) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = openat(&self.root, "dev", flags, Mode::empty())?;
        self.grants.push(Grant { fd, right: Right::Device, directory: true });
        match queues() {
            Ok(fd) => self.grants.push(Grant { fd, right: Right::Write, directory: true }),
            // A kernel without POSIX message queues.
            Err(Errno::NODEV) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

/// With whether it is a directory.
fn object(source: Source) -> io::Result<(OwnedFd, bool, Option<Upper>)> {
    match source {
        Source::Object { fd, directory } => Ok((fd, directory, None)),
        Source::Layer { lower, upper, work } => Ok((lower, true, Some((upper, work)))),
        Source::None | Source::File(_) | Source::Files(_) => Err(Errno::INVAL.into()),
    }
}
