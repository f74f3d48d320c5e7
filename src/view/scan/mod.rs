//! The hard-link scan: does a name inside a writable root lead to an inode that also has a name outside?
//!
//! Mounts and Landlock confine names, and a write goes to an inode. So every inode with several links must have
//! all of them among the names that the command may write. Where that cannot be seen, the answer is no.
//!
//! The tree is not frozen meanwhile. What a neighbour does shows in change times, which nobody but the kernel
//! sets: a name that was made, removed or moved changes its directory, a link its inode. Where nothing changed
//! since the scan began, one walk is proof. Otherwise what changed is read again, alone, until a reading finds
//! everything as it was before that reading. That is tried five times, and for some seconds while no look has found
//! any name that leads elsewhere; then the workspace is changing, which is a refusal. What this leaves: a process
//! that was inside before, watches the scan and moves an alias between directories it has read already.
#![forbid(unsafe_code)]

mod copy;
mod count;
mod filesystem;
mod message;
mod progress;
mod read;
pub mod separate;
mod settle;
pub(in crate::view) mod tree;
mod walk;

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatxFlags};
use rustix::process::{Resource, getrlimit};

pub use self::message::shown;

use self::count::{Group, Look, Names};
use self::progress::Progress;
use self::read::{ctime, own_stat};
use self::tree::{Budget, Node, Opener};
use self::walk::{Gathered, Plan};
use crate::error::Error;
use crate::policy::{Git, Hardlinks};
use crate::view::control::Id;

pub struct Root<'a> {
    /// A directory, or the one file of `--rw FILE`.
    pub dir: BorrowedFd<'a>,
    /// Canonical, for messages.
    pub path: &'a Path,
    pub writable: bool,
}

#[derive(Default)]
pub struct Options<'a> {
    pub git: Git,
    /// Canonical paths that the view shows read-only or hidden. Names in there count as outside.
    pub apart: &'a [PathBuf],
    /// 0 lets the walk choose: by processors, and more when it waits for a disk.
    pub max_threads: usize,
}

#[derive(Debug, Default)]
pub struct Report {
    /// The roots' paths, in the order given; what follows points into it.
    pub roots: Vec<PathBuf>,
    pub entries: u64,
    pub directories: u64,
    pub elapsed: Duration,
    /// 1 when nothing changed meanwhile.
    pub passes: u32,
    /// Every name inside of an inode that also has names elsewhere.
    pub suspects: Vec<Suspect>,
    pub devices: Vec<Device>,
    /// Mount points inside a root: not walked, names there count as outside.
    pub submounts: Vec<(usize, PathBuf)>,
    pub unverifiable: Vec<Unverifiable>,
    /// Control files that exist, to be shown read-only.
    pub control: Vec<(usize, PathBuf)>,
    pub git_dirs: Vec<(usize, PathBuf)>,
    pub git_files: Vec<(usize, PathBuf)>,
    /// What a killed `scan --separate` has left.
    pub leftovers: Vec<(usize, PathBuf)>,
}

impl Report {
    /// What is told of a path that is relative to a root, empty for the root itself.
    pub fn full(&self, root: usize, path: &Path) -> PathBuf {
        match self.roots.get(root) {
            Some(root) if path.as_os_str().is_empty() => root.clone(),
            Some(root) => root.join(path),
            None => path.to_path_buf(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspect {
    pub root: usize,
    /// Relative to the root; empty when the root is the file itself.
    pub path: PathBuf,
    pub dev: u64,
    pub ino: u64,
    pub nlink: u32,
    /// Names that count as inside.
    pub seen: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Device {
    pub root: usize,
    pub path: PathBuf,
}

#[derive(Debug)]
pub struct Unverifiable {
    pub root: usize,
    pub path: PathBuf,
    pub reason: Reason,
}

#[derive(Debug)]
pub enum Reason {
    Unreadable(io::Error),
    /// By its magic number: inode numbers or link counts there cannot be trusted.
    FileSystem(u32),
}

/// Walks all writable roots. An unfinished scan is an error, never a report.
pub fn scan(roots: &[Root<'_>], options: &Options<'_>) -> Result<Report, Error> {
    let began = Instant::now();
    let report = || {
        let mut scan = Scan::new(roots, options).map_err(failed)?;
        let (passes, groups) = scan.passes()?;
        scan.report(passes, &groups, began.elapsed()).map_err(failed)
    };
    report().map_err(|error| match (&error, roots.first()) {
        (Error::Refused { hint: None, .. }, Some(root)) => {
            let root = message::quote(root.path);
            error.with_hint(format!(
                "find {root} -name .git -o -type d ! -readable  # and remove what an earlier command has left"
            ))
        }
        _ => error,
    })
}

/// What the names of suspects mean for this run: which to show read-only, or why it is refused.
pub fn verdict(report: &Report, hardlinks: Hardlinks) -> Result<Vec<(usize, PathBuf)>, Error> {
    message::verdict(report, hardlinks)
}

/// Bytes of paths of guarded files, mount points and the like: some hundred thousand, or fewer of longer ones.
const TOLD: usize = 16 << 20;
/// The same of names that lead elsewhere, of which a package store has many.
const SUSPECTS: usize = 128 << 20;

/// The tree has more that must be kept by its path than anybody's honest tree: who made it may have meant to fill the
/// memory of this process, which no limit of the run rules.
#[derive(Debug, thiserror::Error)]
#[error("too many nested repositories, unreadable directories or other names to keep")]
struct TooMuch;

fn failed(error: io::Error) -> Error {
    if error.get_ref().is_some_and(|inner| inner.is::<TooMuch>()) {
        return Error::refused(format!("the workspace has {TooMuch}"));
    }
    Error::step("look for hard links", error)
}

/// A root as the scan needs it.
struct Place {
    id: Id,
    mount: u64,
    /// Set for a directory that is walked.
    node: Option<Arc<Node>>,
    /// Set for a single file: the directory it stands in, and its name there.
    file: Option<(OwnedFd, OsString)>,
}

struct Scan<'a> {
    paths: Vec<PathBuf>,
    places: Vec<Place>,
    options: &'a Options<'a>,
    mounts: Vec<u64>,
    stops: Vec<Id>,
    /// Names that count as outside: control files and single files that are read-only or hidden.
    outside: HashSet<(Id, OsString)>,
    guarded: RwLock<HashSet<Id>>,
    opener: Opener,
    budget: Arc<Budget>,
    progress: Progress,
    gathered: Gathered,
}

impl<'a> Scan<'a> {
    fn new(roots: &[Root<'_>], options: &'a Options<'a>) -> io::Result<Scan<'a>> {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(1024);
        let budget = Budget::new(usize::try_from(limit / 4).unwrap_or(usize::MAX).clamp(8, 512));
        let mut scan = Scan {
            paths: roots.iter().map(|root| root.path.to_path_buf()).collect(),
            places: Vec::new(),
            options,
            mounts: Vec::new(),
            stops: Vec::new(),
            outside: HashSet::new(),
            guarded: RwLock::new(HashSet::new()),
            opener: Opener::new(),
            budget,
            progress: Progress::new(),
            gathered: Gathered::default(),
        };
        for (index, root) in roots.iter().enumerate() {
            scan.add_root(index, root)?;
        }
        for path in options.apart {
            scan.set_apart(path, roots)?;
        }
        scan.stops.sort_unstable();
        scan.stops.dedup();
        Ok(scan)
    }

    fn add_root(&mut self, index: usize, root: &Root<'_>) -> io::Result<()> {
        let stat = own_stat(&root.dir)?;
        let id = Id::of(&stat);
        let kind = FileType::from_raw_mode(u32::from(stat.stx_mode));
        let mut place = Place { id, mount: stat.stx_mnt_id, node: None, file: None };
        if kind.is_dir() {
            let repeated = self.places.iter().any(|other| other.node.is_some() && other.id == id);
            if root.writable && !repeated {
                let fd = self.opener.open(root.dir, c".")?;
                place.node = Some(Node::root(index as u32, fd, &self.budget));
            }
            self.stops.push(id);
        } else if root.writable
            && let (Some(parent), Some(name)) = (root.path.parent(), root.path.file_name())
        {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let parent = rustix::fs::open(parent, flags, Mode::empty())?;
            place.file = Some((parent, name.to_os_string()));
        }
        self.mounts.push(place.mount);
        self.places.push(place);
        Ok(())
    }

    fn set_apart(&mut self, path: &Path, roots: &[Root<'_>]) -> io::Result<()> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        let mask = StatxFlags::INO | StatxFlags::TYPE;
        // By the root's descriptor where it is one's part: later looks must not depend on what a path leads to then.
        let of_root = |index: usize, place: &Place| {
            let below = path.strip_prefix(self.paths.get(index)?).ok()?;
            (place.file.is_none() && !below.as_os_str().is_empty()).then_some((index, below))
        };
        let part = self.places.iter().enumerate().find_map(|(index, place)| of_root(index, place));
        let (dir, path) = match part.and_then(|(index, below)| Some((roots.get(index)?.dir, below))) {
            Some(part) => part,
            None => (rustix::fs::CWD, path),
        };
        let stat = match rustix::fs::statx(dir, path, flags, mask) {
            Ok(stat) => stat,
            // What is not there has no names.
            Err(rustix::io::Errno::NOENT) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if FileType::from_raw_mode(u32::from(stat.stx_mode)).is_dir() {
            let id = Id::of(&stat);
            let is_root = self.places.iter().any(|place| place.node.is_some() && place.id == id);
            if !is_root {
                self.stops.push(id);
            }
        } else if let (Some(parent), Some(name)) = (path.parent(), path.file_name()) {
            let parent = match parent.as_os_str().is_empty() {
                true => rustix::fs::statx(dir, c"", AtFlags::EMPTY_PATH, mask)?,
                false => rustix::fs::statx(dir, parent, flags, mask)?,
            };
            self.outside.insert((Id::of(&parent), name.to_os_string()));
        }
        Ok(())
    }

    fn starts(&self) -> Vec<Arc<Node>> {
        self.places.iter().filter_map(|place| place.node.clone()).collect()
    }

    fn walk(
        &self,
        mode: walk::Mode,
        since: i64,
        visited: &HashSet<Id>,
        starts: Vec<Arc<Node>>,
    ) -> io::Result<Gathered> {
        let plan = Plan {
            mode,
            since,
            git: self.options.git,
            stops: &self.stops,
            guarded: &self.guarded,
            visited,
            mounts: &self.mounts,
            opener: &self.opener,
            budget: &self.budget,
            progress: &self.progress,
            max_threads: self.options.max_threads,
        };
        walk::walk(&plan, starts)
    }

    fn is_directory(&self, node: &Node) -> bool {
        self.places.get(node.root as usize).is_some_and(|place| place.file.is_none())
    }

    fn groups(&mut self) -> io::Result<Vec<Group>> {
        for guarded in self.gathered.guarded.drain(..) {
            self.outside.insert((guarded.parent, guarded.name));
        }
        let names = &mut self.gathered.names;
        names.forget_files();
        for (index, place) in self.places.iter().enumerate() {
            if let Some((parent, name)) = &place.file {
                add_file(names, index, place.id, parent, name, &self.budget)?;
            }
        }
        let guarded = self.guarded.read().unwrap_or_else(PoisonError::into_inner);
        Ok(self.gathered.names.groups(|directory, name| {
            guarded.contains(&directory)
                || self.outside.contains(&(directory, OsString::from(bytes_as_name(name))))
        }))
    }

    fn report(self, passes: u32, groups: &[Group], elapsed: Duration) -> io::Result<Report> {
        let mut suspects = Vec::new();
        let mut weight = 0;
        for group in groups.iter().filter(|group| !group.is_inside()) {
            for name in &group.names {
                let Some((_, node, name)) = self.gathered.names.name(*name) else { continue };
                weight += node.length() + name.len() + 64;
                if weight > SUSPECTS {
                    return Err(io::Error::other(TooMuch));
                }
                suspects.push(Suspect {
                    root: node.root as usize,
                    path: if self.is_directory(node) { node.path_of(name) } else { PathBuf::new() },
                    dev: group.id.dev,
                    ino: group.id.ino,
                    nlink: group.nlink,
                    seen: group.seen,
                });
            }
        }
        suspects.sort_by(|a, b| (a.root, &a.path).cmp(&(b.root, &b.path)));
        let found = self.gathered;
        let mut unverifiable = found.unverifiable;
        unverifiable.sort_by(|a, b| (a.root, &a.path).cmp(&(b.root, &b.path)));
        unverifiable.dedup_by(|a, b| (a.root, &a.path) == (b.root, &b.path));
        Ok(Report {
            roots: self.paths,
            entries: found.entries,
            directories: found.directories,
            elapsed,
            passes,
            suspects,
            devices: sorted(found.devices),
            submounts: sorted(found.submounts),
            unverifiable,
            control: sorted(found.control),
            git_dirs: sorted(found.git_dirs),
            git_files: sorted(found.git_files),
            leftovers: sorted(found.leftovers),
        })
    }
}

fn sorted<T: Ord>(mut list: Vec<T>) -> Vec<T> {
    list.sort();
    list.dedup();
    list
}

fn bytes_as_name(name: &[u8]) -> &OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(name)
}

fn add_file(
    names: &mut Names,
    root: usize,
    id: Id,
    parent: &OwnedFd,
    name: &OsStr,
    budget: &Arc<Budget>,
) -> io::Result<()> {
    let mask = StatxFlags::INO | StatxFlags::NLINK | StatxFlags::CTIME;
    let stat = rustix::fs::statx(parent, name, AtFlags::SYMLINK_NOFOLLOW, mask)?;
    if Id::of(&stat) != id {
        return Err(io::Error::other("a writable file was replaced meanwhile"));
    }
    if stat.stx_nlink == 1 {
        return Ok(());
    }
    let directory = Id::of(&own_stat(parent)?);
    let node = Node::root(root as u32, rustix::io::fcntl_dupfd_cloexec(parent.as_fd(), 3)?, budget);
    let look = Look { id, nlink: stat.stx_nlink, ctime: ctime(&stat) };
    names.add_file(directory, node, bytes_of(name), look);
    Ok(())
}

fn bytes_of(name: &OsStr) -> &[u8] {
    std::os::unix::ffi::OsStrExt::as_bytes(name)
}
