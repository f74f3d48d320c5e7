//! The new root: a tmpfs with clones of what the view shows, entered by pivot_root(2).
//!
//! Everything is mounted by descriptor. What lies in a workspace is hostile, so a mount point there is opened
//! without following any link and without leaving the new root, and nothing is ever created in it.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, umount2};
use nix::unistd::{fchdir, pivot_root};
use rustix::fs::{
    AtFlags, CWD, Gid, Mode, OFlags, ResolveFlags, StatxFlags, Uid, chownat, mkdirat, openat, openat2, statx,
    symlinkat,
};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

use super::veil::Veil;
use crate::error::{Error, Result};
use crate::plan::{Namespace, Plan};
use crate::sys::{self, MountAttr};
use crate::view::{Access, Backing, Entry, Place, Source, View, system};

const RDONLY: u64 = 1;
const NOSUID: u64 = 2;
const NODEV: u64 = 4;
const NOEXEC: u64 = 8;

/// Where the note and the self-check's canary lie.
pub const OWN: &str = "/run/confine";

/// Something that Landlock is to grant: the descriptor is that of the mount itself.
#[derive(Debug)]
pub struct Grant {
    pub fd: OwnedFd,
    pub right: Right,
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
    /// Somebody's tree: nothing is created, and no link is followed.
    Foreign,
}

pub struct Builder<'a> {
    plan: &'a Plan,
    root: OwnedFd,
    private: OwnedFd,
    veil: Option<Veil>,
    directories: HashSet<PathBuf>,
    /// What is mounted already, from the root down to the present entry.
    above: Vec<(PathBuf, Region, Option<Right>)>,
    grants: Vec<Grant>,
    count: u32,
}

/// Builds the new root beside the old one. Nothing of it is visible to any path yet.
pub fn build(plan: &Plan, view: View, note: &str) -> Result<(OwnedFd, Vec<Grant>)> {
    // First: once something covers "/", the kernel takes this process for one in a chroot and refuses it, and
    // its children, user namespaces (unshare(2), EPERM).
    let veil = if plan.world.veil { Veil::make(plan) } else { None };
    let private = attach_tmpfs(&tmp_size(plan), "0755")?;
    let root = attach_tmpfs("4m", "0755")?;
    let mut builder = Builder {
        plan,
        root,
        private,
        veil,
        directories: HashSet::new(),
        above: Vec::new(),
        grants: Vec::new(),
        count: 0,
    };
    for (_, entry) in view.entries {
        let path = entry.place.path.clone();
        builder.show(entry).map_err(|error| Error::path("show", path, error))?;
    }
    builder.add_own(note).map_err(|error| Error::path("write", OWN, error))?;
    builder.grant_directories().map_err(|error| Error::step("open the new root", error))?;
    Ok((builder.root, builder.grants))
}

/// Makes the new root the root of this process and lets the old one go.
pub fn enter(root: &OwnedFd) -> Result<()> {
    let change = || -> io::Result<()> {
        fchdir(root)?;
        // pivot_root(2), "pivot_root(".", ".")": the old root lies on top of the new one and is taken off.
        pivot_root(".", ".")?;
        // umount2(2) takes the topmost: first what was stacked on the old root, then that. `..` of the root leads
        // to whatever is left there, the whole host.
        while mount_id("/..")? != mount_id("/")? {
            umount2("/..", MntFlags::MNT_DETACH)?;
        }
        sys::mount_setattr(root.as_fd(), 0, &MountAttr { attr_set: RDONLY, ..MountAttr::default() })
    };
    change().map_err(|error| Error::step("enter the new root", error))
}

fn mount_id(path: &str) -> io::Result<u64> {
    Ok(statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID)?.stx_mnt_id)
}

/// Both tmpfs are stacked on the old root, so that taking that off takes the private one along: what is bound
/// from it stays.
fn attach_tmpfs(size: &str, mode: &str) -> Result<OwnedFd> {
    let make = || -> io::Result<OwnedFd> {
        let fs = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_set_string(&fs, "size", size)?;
        fsconfig_set_string(&fs, "mode", mode)?;
        fsconfig_create(&fs)?;
        let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        let mount = fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, flags)?;
        move_mount(&mount, "", CWD, "/", MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
        Ok(mount)
    };
    make().map_err(|error| Error::step("mount a private tmpfs", error))
}

fn tmp_size(plan: &Plan) -> String {
    match plan.world.tmp {
        Some(bytes) => bytes.to_string(),
        None => "25%".to_owned(),
    }
}

fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

fn identity(plan: &Plan) -> (Option<Uid>, Option<Gid>) {
    (Some(Uid::from_raw(plan.process.uid)), Some(Gid::from_raw(plan.process.gid)))
}

impl Builder<'_> {
    fn show(&mut self, entry: Entry) -> io::Result<()> {
        let Entry { place, source } = entry;
        while self.above.last().is_some_and(|(path, ..)| !place.path.starts_with(path)) {
            self.above.pop();
        }
        let region = self.above.last().map_or(Region::Own, |(_, region, _)| *region);
        let shown = match &place.backing {
            Backing::Link { to } => return self.link(&place.path, to, region),
            Backing::Cover { directory } => return self.cover(&place.path, *directory, region),
            Backing::Copy => return self.copy(&place, source, region),
            Backing::Itself => return self.guard(&place),
            Backing::Bind => (self.clone_tree(&object(source)?, place.access, false)?, Region::Foreign),
            Backing::Veiled => (self.clone_tree(&object(source)?, place.access, true)?, Region::Foreign),
            Backing::Sealed => (self.overlay(&object(source)?, false)?, Region::Foreign),
            Backing::Layer => (self.overlay(&object(source)?, true)?, Region::Foreign),
            Backing::Fresh { mode } => (self.fresh(*mode)?, Region::Own),
            Backing::Device | Backing::Terminal => {
                let mount = clone(&object(source)?, RDONLY | NOSUID | NOEXEC)?;
                return self.attach(&mount, &place.path, false, region);
            }
            Backing::Terminals => {
                let mount = devpts()?;
                return self.attach(&mount, &place.path, true, region);
            }
            Backing::Proc => (self.procfs(source)?, Region::Foreign),
            Backing::Sys => (self.sysfs(source)?, Region::Foreign),
        };
        let (mount, inner) = shown;
        let directory = is_directory(&mount)?;
        self.attach(&mount, &place.path, directory, region)?;
        if place.backing == Backing::Sys {
            self.cover_below_sys()?;
        }
        if place.backing == Backing::Veiled
            && let Some(veil) = &self.veil
        {
            for (path, directory) in veil.unreadable(&mount, &place.path)? {
                self.cover(&path, directory, Region::Foreign)?;
            }
        }
        let right = if place.access == Access::Write { Right::Write } else { Right::Read };
        let inherited = self.above.last().and_then(|(_, _, right)| *right);
        if inherited.is_none_or(|inherited| inherited < right) {
            self.grants.push(Grant { fd: mount, right });
        }
        self.above.push((place.path, inner, inherited.max(Some(right))));
        Ok(())
    }

    /// A clone of a tree with everything mounted below it. Submounts are read-only: each that may be written is
    /// an entry of its own.
    fn clone_tree(&self, object: &OwnedFd, access: Access, veiled: bool) -> io::Result<OwnedFd> {
        let tree = open_tree_clone(object)?;
        let attr = MountAttr { attr_set: RDONLY | NOSUID | NODEV, ..MountAttr::default() };
        if veiled && let Some(veil) = &self.veil {
            veil.put_on(&tree);
        }
        sys::mount_setattr(tree.as_fd(), libc::AT_RECURSIVE, &attr)?;
        if access == Access::Write {
            let writable = MountAttr { attr_clr: RDONLY, ..MountAttr::default() };
            sys::mount_setattr(tree.as_fd(), 0, &writable).map_err(|error| match error.raw_os_error() {
                Some(libc::EPERM) => io::Error::from_raw_os_error(libc::EROFS),
                _ => error,
            })?;
        }
        Ok(tree)
    }

    fn overlay(&mut self, lower: &OwnedFd, writable: bool) -> io::Result<OwnedFd> {
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

    /// A new directory of the private tmpfs, opened.
    fn fresh_directory(&mut self, mode: u32) -> rustix::io::Result<OwnedFd> {
        self.count += 1;
        let name = self.count.to_string();
        mkdirat(&self.private, &name, Mode::from_raw_mode(mode))?;
        let fd = openat(&self.private, &name, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        // Past the umask, which stays the caller's.
        rustix::fs::fchmod(&fd, Mode::from_raw_mode(mode))?;
        let (uid, gid) = identity(self.plan);
        rustix::fs::fchown(&fd, uid, gid)?;
        Ok(fd)
    }

    fn fresh(&mut self, mode: u32) -> io::Result<OwnedFd> {
        let directory = self.fresh_directory(mode)?;
        clone(&directory, NOSUID | NODEV)
    }

    fn procfs(&self, source: Source) -> io::Result<OwnedFd> {
        let flags = RDONLY | NOSUID | NODEV | NOEXEC;
        if !self.plan.has(Namespace::Pid) {
            return clone(&object(source)?, flags);
        }
        // The host's would show the host's processes: there is nothing to fall back on.
        let fs = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&fs)?;
        Ok(fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::from_bits_retain(flags as u32))?)
    }

    fn sysfs(&self, source: Source) -> io::Result<OwnedFd> {
        let flags = RDONLY | NOSUID | NODEV | NOEXEC;
        if self.plan.has(Namespace::Network) {
            let fresh = (|| {
                let fs = fsopen("sysfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
                fsconfig_create(&fs)?;
                let flags = MountAttrFlags::from_bits_retain(flags as u32);
                fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, flags)
            })();
            // Refused where a container masks parts of /sys ("mount too revealing").
            if let Ok(mount) = fresh {
                return Ok(mount);
            }
        }
        clone(&object(source)?, flags)
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
        if region == Region::Foreign {
            return Ok(());
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
        let Some(target) = self.open_foreign(path)? else { return Ok(()) };
        let empty = if directory { self.fresh_directory(0)? } else { self.private_file(b"", 0)? };
        let mount = clone(&empty, RDONLY | NOSUID | NODEV | NOEXEC)?;
        mount_on(&mount, &target)
    }

    fn private_file(&mut self, bytes: &[u8], mode: u32) -> io::Result<OwnedFd> {
        self.count += 1;
        let name = self.count.to_string();
        write_file(self.private.as_fd(), Path::new(&name), bytes, mode, identity(self.plan))?;
        Ok(openat(&self.private, &name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
    }

    fn copy(&mut self, place: &Place, source: Source, region: Region) -> io::Result<()> {
        let mount = match (source, region) {
            (Source::File(bytes), Region::Own) => {
                self.parents(&place.path)?;
                let path = relative(&place.path);
                return write_file(self.root.as_fd(), path, &bytes, 0o600, identity(self.plan));
            }
            (Source::File(bytes), Region::Foreign) => self.private_file(&bytes, 0o644)?,
            (Source::Files(files), _) => {
                let directory = self.fresh_directory(0o755)?;
                for (name, bytes) in files {
                    if let Some(parent) = name.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                        match mkdirat(&directory, parent, Mode::from_raw_mode(0o755)) {
                            Ok(()) => {
                                let (uid, gid) = identity(self.plan);
                                chownat(&directory, parent, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
                            }
                            Err(Errno::EXIST) => {}
                            Err(error) => return Err(error.into()),
                        }
                    }
                    write_file(directory.as_fd(), &name, &bytes, 0o644, identity(self.plan))?;
                }
                directory
            }
            (Source::None | Source::Object(_), _) => return Err(Errno::INVAL.into()),
        };
        let directory = is_directory(&mount)?;
        let mount = clone(&mount, RDONLY | NOSUID | NODEV)?;
        self.attach(&mount, &place.path, directory, region)?;
        if self.above.last().is_none_or(|(_, _, right)| right.is_none()) {
            self.grants.push(Grant { fd: mount, right: Right::Read });
        }
        self.above.push((place.path.clone(), Region::Foreign, Some(Right::Read)));
        Ok(())
    }

    /// A part of a writable root bound onto itself. What is gone meanwhile needs no guard; what has become a link
    /// is an attack and an error.
    fn guard(&mut self, place: &Place) -> io::Result<()> {
        let Some(target) = self.open_foreign(&place.path)? else { return Ok(()) };
        let flags = if place.access == Access::Write { NOSUID | NODEV } else { RDONLY | NOSUID | NODEV };
        let mount = clone(&target, flags)?;
        mount_on(&mount, &target)
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
            return mount_on(mount, &target);
        }
        let path = relative(path);
        self.parents(path)?;
        if directory {
            self.directory(path)?;
        } else {
            write_file(self.root.as_fd(), path, b"", 0o600, (None, None))?;
        }
        Ok(move_mount(mount, "", &self.root, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
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

    fn add_own(&mut self, note: &str) -> io::Result<()> {
        let note_path = Path::new(OWN).join("note");
        self.parents(&note_path)?;
        write_file(self.root.as_fd(), relative(&note_path), note.as_bytes(), 0o444, (None, None))?;
        write_file(
            self.root.as_fd(),
            relative(&Path::new(OWN).join("self-check")),
            b"\n",
            0o444,
            (None, None),
        )?;
        let fd = openat(&self.root, relative(&note_path), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        self.grants.push(Grant { fd, right: Right::Read });
        Ok(())
    }

    fn grant_directories(&mut self) -> io::Result<()> {
        for (path, right) in [(".", Right::List), ("dev", Right::Device)] {
            let fd =
                openat(&self.root, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
            self.grants.push(Grant { fd, right });
        }
        Ok(())
    }
}

fn object(source: Source) -> io::Result<OwnedFd> {
    match source {
        Source::Object(fd) => Ok(fd),
        Source::None | Source::File(_) | Source::Files(_) => Err(Errno::INVAL.into()),
    }
}

/// Recursive always: a user namespace may not clone a mount without the mounts below it that it cannot take off.
fn open_tree_clone(object: impl AsFd) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    Ok(open_tree(object, "", flags)?)
}

fn clone(object: impl AsFd, set: u64) -> io::Result<OwnedFd> {
    let tree = open_tree_clone(object)?;
    let attr = MountAttr { attr_set: set, ..MountAttr::default() };
    sys::mount_setattr(tree.as_fd(), libc::AT_RECURSIVE, &attr)?;
    Ok(tree)
}

fn mount_on(mount: &OwnedFd, target: &OwnedFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(mount, "", target, "", flags)?)
}

fn is_directory(fd: &OwnedFd) -> io::Result<bool> {
    let mode = rustix::fs::fstat(fd)?.st_mode;
    Ok(rustix::fs::FileType::from_raw_mode(mode) == rustix::fs::FileType::Directory)
}

fn devpts() -> io::Result<OwnedFd> {
    let fs = fsopen("devpts", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&fs, "ptmxmode", "0666")?;
    fsconfig_set_string(&fs, "mode", "0620")?;
    fsconfig_create(&fs)?;
    let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    Ok(fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, flags)?)
}

fn write_file(
    directory: BorrowedFd<'_>,
    path: &Path,
    bytes: &[u8],
    mode: u32,
    owner: (Option<Uid>, Option<Gid>),
) -> io::Result<()> {
    use std::io::Write;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = match openat(directory, path, flags, Mode::from_raw_mode(0o600)) {
        // A name that is there already, in a tree of our own, is a mount point of an earlier entry.
        Err(Errno::EXIST) => return Ok(()),
        other => other?,
    };
    let mut file = std::fs::File::from(fd);
    if !bytes.is_empty() {
        file.write_all(bytes)?;
    }
    rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
    if owner != (None, None) {
        rustix::fs::fchown(&file, owner.0, owner.1)?;
    }
    Ok(())
}
