//! Reading one directory: what is in it, and whether it belongs to the walk.

use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use rustix::fs::{AtFlags, FileType, RawDir, Statx, StatxFlags};
use rustix::io::Errno;

use super::count::Look;
use super::filesystem;
use super::separate::LEFTOVER;
use super::tree::{Node, Traits};
use super::walk::{Local, Mode, Plan, Shared, Work, Worker};
use super::{Device, Reason, TOLD, TooMuch, Unverifiable};
use crate::view::control::{self, Id};

impl Worker<'_> {
    pub(super) fn start(&mut self, node: &Arc<Node>) -> io::Result<()> {
        let opener = self.shared.plan.opener;
        match self.cursor.reach(node, opener).and_then(|dir| opener.open(dir, c".")) {
            Ok(fd) => self.directory(fd, Place { node, name: None, traits: node.traits }),
            Err(error) => self.unopened(node, None, error),
        }
    }

    pub(super) fn child(&mut self, node: &Arc<Node>, name: &CStr) -> io::Result<()> {
        let opener = self.shared.plan.opener;
        // A way that is gone was moved; descriptors that are spent are another matter.
        let opened = match self.cursor.reach(node, opener) {
            Ok(dir) => opener.open(dir, name),
            Err(error) if is_own_limit(&error) => Err(error),
            Err(_) => Err(Errno::NOENT.into()),
        };
        match opened {
            Ok(fd) => self
                .directory(fd, Place { node, name: Some(name), traits: node.traits.below(name.to_bytes()) }),
            Err(error) => self.unopened(node, Some(name), error),
        }
    }

    fn unopened(&mut self, node: &Arc<Node>, name: Option<&CStr>, error: io::Error) -> io::Result<()> {
        let root = node.root as usize;
        let path = || node.path_of(name.map_or(b"", CStr::to_bytes));
        match Errno::from_io_error(&error) {
            Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => self.gathered.vanished = true,
            _ if is_own_limit(&error) => return Err(error),
            code => {
                // What is not visible or a root of its own inside needs no looking into.
                if let (Some(name), Some(dir)) = (name, node.fd())
                    && let Ok(stat) = rustix::fs::statx(
                        dir,
                        name,
                        AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT,
                        StatxFlags::INO,
                    )
                    && self.is_stop(Id::of(&stat), node.traits.below(name.to_bytes()))
                {
                    return Ok(());
                }
                if code == Some(Errno::XDEV) {
                    let path = self.told(path())?;
                    self.gathered.submounts.push((root, path));
                } else if self.shared.plan.mode != Mode::Changed {
                    let reason = Reason::Unreadable(error);
                    let path = self.told(path())?;
                    self.gathered.unverifiable.push(Unverifiable { root, path, reason });
                }
            }
        }
        Ok(())
    }

    fn told(&self, path: PathBuf) -> io::Result<PathBuf> {
        told(self.shared, path)
    }

    fn is_stop(&self, id: Id, traits: Traits) -> bool {
        let plan = self.shared.plan;
        plan.stops.binary_search(&id).is_ok()
            || (traits.dotted && plan.guarded.read().unwrap_or_else(PoisonError::into_inner).contains(&id))
    }

    fn directory(&mut self, fd: OwnedFd, place: Place<'_>) -> io::Result<()> {
        let plan = self.shared.plan;
        let fresh = place.name.is_some();
        let mut before = 0;
        if plan.mode != Mode::Full {
            let stat = own_stat(&fd)?;
            let id = Id::of(&stat);
            if fresh && (self.is_stop(id, place.traits) || is_mount(&stat, plan, place.root())) {
                return Ok(());
            }
            before = ctime(&stat);
            match plan.mode {
                Mode::Changed if before >= plan.since => self.gathered.changed.push((id, place.node())),
                Mode::Again if fresh && plan.visited.contains(&id) => return Ok(()),
                _ => {}
            }
        }
        self.children.clear();
        self.locals.clear();
        self.local_names.clear();
        let entries_before = self.gathered.entries;
        let devices_before = self.gathered.devices.len();
        let submounts_before = self.gathered.submounts.len();
        let leftovers_before = self.gathered.leftovers.len();
        let (has_git, concerned) = match self.entries(&fd, &place) {
            Ok(seen) => seen,
            Err(error) => {
                return self.unopened(&place.node(), None, error);
            }
        };
        // After the last entry, so that a name moved away while the listing was read shows.
        let stat = own_stat(&fd)?;
        let id = Id::of(&stat);
        if fresh {
            let mount = is_mount(&stat, plan, place.root());
            let stop = self.is_stop(id, place.traits);
            if mount || stop {
                self.gathered.entries = entries_before;
                self.gathered.devices.truncate(devices_before);
                self.gathered.submounts.truncate(submounts_before);
                self.gathered.leftovers.truncate(leftovers_before);
                if mount && !stop {
                    let path = self.told(place.path())?;
                    self.gathered.submounts.push((place.root(), path));
                }
                return Ok(());
            }
        }
        self.gathered.directories += 1;
        let mut node: Option<Arc<Node>> = None;
        if plan.mode != Mode::Changed {
            self.gathered.read.push(id);
            self.check_filesystem(&fd, id, &place)?;
            if plan.mode == Mode::Again {
                let known = place.node();
                self.gathered.times.push((Arc::clone(&known), id, before));
                node = Some(known);
            } else if ctime(&stat) >= plan.since {
                self.gathered.vanished = true;
            }
            if (has_git || concerned) && !place.traits.unpacked {
                self.control(&fd, &place)?;
            }
        }
        if self.locals.is_empty() && self.children.is_empty() {
            return Ok(());
        }
        let node = if self.children.is_empty() {
            node.unwrap_or_else(|| place.node())
        } else {
            match place.name {
                Some(name) => {
                    let (node, fd) = Node::holding(place.node, name, id, fd, plan.budget);
                    // Its children are what comes next.
                    if let Some(fd) = fd {
                        self.cursor.stand(&node, fd);
                    }
                    node
                }
                None => Arc::clone(place.node),
            }
        };
        if !self.locals.is_empty() {
            let dir = self.gathered.names.directory(id, Arc::clone(&node));
            for local in &self.locals {
                let name = self.local_names[local.name..].split(|byte| *byte == 0).next().unwrap_or_default();
                let look = Look { id: local.id, nlink: local.nlink, ctime: local.ctime };
                self.gathered.names.add(dir, name, look);
            }
        }
        if !self.children.is_empty() {
            // Copied to its exact size: a large tree keeps many of these at once.
            let names = self.children.as_slice().to_vec();
            self.stack.push(Work::Children { node, names, at: 0 });
        }
        Ok(())
    }

    /// Lists one directory and looks at what is no directory. Returns whether it contains `.git`, and whether it is
    /// a root that contains something else of the table of control files.
    fn entries(&mut self, fd: &OwnedFd, place: &Place<'_>) -> io::Result<(bool, bool)> {
        let plan = self.shared.plan;
        let look = plan.mode != Mode::Changed;
        let root_mount = plan.mounts.get(place.root()).copied();
        let (mut has_git, mut concerned) = (false, false);
        let root = place.is_root();
        let mut listing = RawDir::new(fd, &mut self.buffer);
        while let Some(entry) = listing.next() {
            let entry = entry?;
            let name = entry.file_name();
            let bytes = name.to_bytes();
            concerned |= root && !concerned && control::may_concern(bytes);
            if bytes.first() == Some(&b'.') {
                if bytes == b"." || bytes == b".." {
                    continue;
                }
                has_git |= bytes == b".git";
                if bytes.starts_with(LEFTOVER) {
                    let path = told(self.shared, place.path_of(bytes))?;
                    self.gathered.leftovers.push((place.root(), path));
                }
            }
            let mut kind = entry.file_type();
            if kind != FileType::Directory && (look || kind == FileType::Unknown) {
                let stat = match rustix::fs::statx(fd, name, LOOK, NEEDED) {
                    Ok(stat) => stat,
                    Err(Errno::NOENT) => {
                        self.gathered.vanished = true;
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                };
                self.gathered.entries += 1;
                kind = FileType::from_raw_mode(u32::from(stat.stx_mode));
                if kind != FileType::Directory && look {
                    let foreign = root_mount.is_some_and(|mount| mount != stat.stx_mnt_id);
                    if foreign {
                        let path = told(self.shared, place.path_of(bytes))?;
                        self.gathered.submounts.push((place.root(), path));
                        continue;
                    }
                    if kind.is_char_device() || kind.is_block_device() {
                        // A character device 0:0 is an overlay's whiteout, which opens nothing. The kernel makes many
                        // of one inode, with a name of its own in the work directory.
                        if kind.is_char_device() && (stat.stx_rdev_major, stat.stx_rdev_minor) == (0, 0) {
                            continue;
                        }
                        let path = told(self.shared, place.path_of(bytes))?;
                        self.gathered.devices.push(Device { root: place.root(), path });
                    }
                    if stat.stx_nlink > 1 {
                        // The change time is asked for on its own: the kernel then marks the inode as seen,
                        // which the many with one link are spared.
                        let stat = match rustix::fs::statx(fd, name, LOOK, NEEDED | StatxFlags::CTIME) {
                            Ok(stat) => stat,
                            Err(Errno::NOENT) => {
                                self.gathered.vanished = true;
                                continue;
                            }
                            Err(error) => return Err(error.into()),
                        };
                        self.locals.push(Local {
                            id: Id::of(&stat),
                            nlink: stat.stx_nlink,
                            ctime: ctime(&stat),
                            name: self.local_names.len(),
                        });
                        self.local_names.extend_from_slice(name.to_bytes_with_nul());
                    }
                    continue;
                }
            } else if look {
                self.gathered.entries += 1;
            }
            if kind == FileType::Directory {
                self.children.extend_from_slice(name.to_bytes_with_nul());
            }
        }
        Ok((has_git, concerned))
    }

    fn check_filesystem(&mut self, fd: &OwnedFd, id: Id, place: &Place<'_>) -> io::Result<()> {
        if self.gathered.filesystems.contains(&id.dev) {
            return Ok(());
        }
        self.gathered.filesystems.push(id.dev);
        let magic = filesystem::magic(fd)?;
        self.gathered.coarse_times |= !filesystem::has_fine_times(magic);
        if !filesystem::is_trusted(magic) {
            let reason = Reason::FileSystem(magic);
            self.gathered.unverifiable.push(Unverifiable { root: place.root(), path: place.path(), reason });
        }
        Ok(())
    }

    /// Before the children are handed out, so that they find what is guarded.
    fn control(&mut self, fd: &OwnedFd, place: &Place<'_>) -> io::Result<()> {
        let plan = self.shared.plan;
        let found = control::at_root(fd.as_fd(), plan.git)?;
        let root = place.root();
        let base = place.path();
        for (paths, list) in [
            (found.control, &mut self.gathered.control),
            (found.git_dirs, &mut self.gathered.git_dirs),
            (found.git_files, &mut self.gathered.git_files),
        ] {
            for path in paths {
                list.push((root, told(self.shared, base.join(path))?));
            }
        }
        if !found.guarded.is_empty() {
            let directories = found.guarded.iter().filter_map(|guarded| guarded.directory);
            plan.guarded.write().unwrap_or_else(PoisonError::into_inner).extend(directories);
            self.gathered.guarded.extend(found.guarded);
        }
        Ok(())
    }
}

/// Counts a path that is kept as it is: who made the tree chose how long it is, and how many.
fn told(shared: &Shared<'_>, path: PathBuf) -> io::Result<PathBuf> {
    let weight = path.as_os_str().len() + 64;
    if shared.told.fetch_add(weight, Ordering::Relaxed) > TOLD {
        return Err(io::Error::other(TooMuch));
    }
    Ok(path)
}

/// Of the process, and nothing about the tree.
fn is_own_limit(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM))
}

const LOOK: AtFlags = AtFlags::SYMLINK_NOFOLLOW.union(AtFlags::NO_AUTOMOUNT);
const NEEDED: StatxFlags =
    StatxFlags::NLINK.union(StatxFlags::INO).union(StatxFlags::TYPE).union(StatxFlags::MNT_ID);

/// Where a directory stands: a start itself (no name), or a name below a node.
struct Place<'a> {
    node: &'a Arc<Node>,
    name: Option<&'a CStr>,
    traits: Traits,
}

impl Place<'_> {
    fn root(&self) -> usize {
        self.node.root as usize
    }

    fn is_root(&self) -> bool {
        self.name.is_none() && self.node.is_root()
    }

    fn node(&self) -> Arc<Node> {
        match self.name {
            Some(name) => Node::child(self.node, name, None),
            None => Arc::clone(self.node),
        }
    }

    fn path(&self) -> PathBuf {
        match self.name {
            Some(name) => self.node.path_of(name.to_bytes()),
            None => self.node.path(),
        }
    }

    fn path_of(&self, entry: &[u8]) -> PathBuf {
        self.path().join(OsStr::from_bytes(entry))
    }
}

fn is_mount(stat: &Statx, plan: &Plan<'_>, root: usize) -> bool {
    plan.mounts.get(root).is_some_and(|mount| *mount != stat.stx_mnt_id)
}

pub fn own_stat(fd: &impl AsFd) -> io::Result<Statx> {
    let mask = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::CTIME | StatxFlags::MNT_ID;
    Ok(rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, mask)?)
}

/// Nanoseconds since the epoch.
pub fn ctime(stat: &Statx) -> i64 {
    stat.stx_ctime.tv_sec.saturating_mul(1_000_000_000).saturating_add(i64::from(stat.stx_ctime.tv_nsec))
}
