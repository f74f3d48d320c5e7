//! The new root: a tmpfs with clones of what the view shows, entered by pivot_root(2).
//!
//! Everything is mounted by descriptor. What lies in a workspace is hostile, so a mount point there is opened
//! without following any link and without leaving the new root, and nothing is ever created in it.

pub mod clone;
mod cover;
mod file;
mod filesystem;
mod own;
mod point;
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
use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags, openat, statx, symlinkat};
use rustix::io::Errno;

use self::clone::{NODEV, NOEXEC, NOSUID, RDONLY, clone, clone_at, mount_on};
use self::file::{empty_file, identity, relative, write_file};
use self::filesystem::{Own, attach_tmpfs, devpts, queues, tmp_bytes};
use self::tree::Upper;
use super::veil::{Veil, unreadable};
use super::{kept, sysfs};
use crate::error::{Error, Result, paste};
use crate::plan::Plan;
use crate::plan::facts::{self, Lesser};
use crate::plan::note::{self, Note};
use crate::sys::{self, MountAttr};
use crate::view::{Access, Backing, Entry, Place, Source, View};

/// No more come of the tables and options; beyond, it is the kernel's number of mounts that an ENOSPC is about.
const MANY: usize = 5000;

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
    /// Layers that are less than was planned, for the note.
    lesser: Vec<(PathBuf, Lesser)>,
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
        lesser: Vec::new(),
    };
    let places = view.entries.len();
    let workspace = view.roots.iter().find(|root| root.writable).map(|root| root.path.clone());
    for (_, entry) in view.entries {
        let path = entry.place.path.clone();
        builder.show(entry).map_err(|error| {
            let kept = builder.above.last().is_some_and(|(_, region, _)| *region == Region::Kept);
            let full = error.raw_os_error() == Some(libc::ENOSPC) && places > MANY;
            let error = Error::path("show", path, error);
            if let Some(workspace) = workspace.as_ref().filter(|_| full) {
                return error.with_hint(format!(
                    "find {} -name .git  # each file of a nested repository that is guarded takes a mount, here {places}, and fs.mount-max says how many there may be",
                    paste(workspace.as_os_str())
                ));
            }
            match view.state.as_ref().filter(|_| kept) {
                Some(state) => error.with_hint(format!(
                    "an earlier command left something else there: `rm -r {}` starts afresh",
                    paste(state.path.as_os_str())
                )),
                None => error,
            }
        })?;
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
                    _ => self.layer(&fd, kept.as_ref(), &place.path)?,
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
        let right = match place.access {
            Access::Write => Right::Write,
            _ if place.backing == Backing::Sys && self.plan.world.veil => {
                self.grants.extend(sysfs::grants(&mount, &[] as &[&Path]));
                Right::List
            }
            _ => Right::Read,
        };
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

    fn add_own(&mut self, note: &Note) -> io::Result<()> {
        let own = Path::new(OWN);
        self.parents(&own.join(note::TEXT))?;
        let lesser = facts::lesser(&self.lesser);
        let lesser = (!lesser.is_empty()).then_some((note::LESSER, lesser.as_slice()));
        for (name, bytes) in note.files().into_iter().chain(lesser) {
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
