//! The walk. All of it is bounded, since who made the tree is hostile and this runs outside of every limit: what is read
//! of a file and in all, and what is held in memory. What is over a bound is told as such.

use std::collections::HashSet;
use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Dir, FileType, OFlags, Statx, StatxFlags, statx};
use rustix::io::Errno;

use super::reading::{digest, holder, open, read, target};
use super::{Kind, Mark, Root, Snapshot, Unseen};
use crate::error::describe;
use crate::view::control::{FILES, GIT, Id};
use crate::view::git_settings;
use crate::view::scan::tree::{Budget, Cursor, Node, Opener, own_stat};
use crate::view::trace::{PATH_MAX, normalise};

/// Of a longer file only so much is read, and of all together.
const READ: u64 = 1 << 20;
const READ_ALL: u64 = 64 << 20;
/// Bytes of what is noted: some fifty thousand files.
const HELD: usize = 16 << 20;
/// The same of what could not be looked at.
const UNSEEN: usize = 2 << 20;
/// Bytes of names of directories that wait for their turn.
const WAITING: usize = 16 << 20;
/// Directories of the table are small; deeper or larger ones are somebody's trick.
const DEPTH: u32 = 8;
const ENTRIES: usize = 4096;
/// Of the walk, besides which one directory is open.
const DESCRIPTORS: usize = 64;

/// Besides what is guarded: these lead git to another repository or worktree.
const LEADING: [&str; 3] = ["commondir", "gitdir", "objects/info/alternates"];
/// Settings that name more than this, or through more directories, are somebody's trick.
const NAMED: usize = 64;
const HOOKS: &str = "core.hooksPath names it: git runs these hooks";
const INCLUDED: &str = "git settings name it as more of them";
const LEADS: &str = "leads git to another directory, whose settings it then reads";

pub struct Look<'a> {
    pub snapshot: Snapshot,
    pub go_on: &'a mut dyn FnMut() -> bool,
    /// What settings of git name, wherever it lies: hooks, and further settings.
    named: Vec<(PathBuf, &'static str)>,
    left_to_read: u64,
    held: usize,
    /// Nothing more can be noted, so that there is no use in looking on.
    full: bool,
}

/// A directory that is being looked at.
struct Here<'a> {
    fd: &'a OwnedFd,
    path: PathBuf,
}

/// What is in a directory.
#[derive(Default)]
struct Listed {
    /// Its directories, each name ended by NUL.
    names: Vec<u8>,
    /// There are more than can wait.
    cut: bool,
}

/// One root on its way down: names of directories, below the directory that holds them.
struct Descent<'r> {
    root: &'r Root,
    levels: Vec<(Arc<Node>, Vec<u8>, usize)>,
    waiting: usize,
    cursor: Cursor,
    opener: Opener,
    budget: Arc<Budget>,
}

impl<'a> Look<'a> {
    pub fn new(go_on: &'a mut dyn FnMut() -> bool) -> Look<'a> {
        let snapshot = Snapshot { complete: true, room_unseen: UNSEEN, ..Snapshot::default() };
        Look { snapshot, go_on, named: Vec::new(), left_to_read: READ_ALL, held: 0, full: false }
    }

    /// After all roots: a settings file in one may name what lies in another. What lies in none cannot change.
    pub fn named(&mut self, roots: &[Root]) {
        let mut done = HashSet::new();
        while let Some((path, reason)) = self.named.pop() {
            let holds = |root: &&Root| path.starts_with(&root.path) && path != root.path;
            let Some(root) = roots.iter().filter(holds).max_by_key(|root| root.path.as_os_str().len()) else {
                continue;
            };
            let Some(below) = path.strip_prefix(&root.path).ok().and_then(Path::to_str) else { continue };
            if done.contains(&path) {
                continue;
            }
            if done.len() == NAMED || below.split('/').count() > NAMED {
                self.beyond(path, "not looked at: git settings name too much");
                continue;
            }
            done.insert(path.clone());
            self.row(&Here { fd: &root.fd, path: root.path.clone() }, below, Kind::Git, reason);
        }
    }

    pub fn root(&mut self, root: &Root) {
        let mut descent = Descent {
            root,
            levels: Vec::new(),
            waiting: 0,
            cursor: Cursor::default(),
            opener: Opener::new(),
            budget: Budget::new(DESCRIPTORS),
        };
        match descent.opener.open(root.fd.as_fd(), c".") {
            Ok(fd) => self.directory(&mut descent, None, fd),
            Err(error) => self.unopened(root.path.clone(), error),
        }
        while let Some((node, names, at)) = descent.levels.last_mut() {
            if !(self.go_on)() {
                self.snapshot.complete = false;
                return;
            }
            if self.full {
                return self
                    .beyond(root.path.clone(), "not looked through to its end: too much runs by itself");
            }
            let Ok(name) = CStr::from_bytes_until_nul(&names[*at..]).map(CStr::to_owned) else { return };
            let node = Arc::clone(node);
            *at += name.count_bytes() + 1;
            if *at >= names.len() {
                descent.waiting -= names.len();
                descent.levels.pop();
            }
            let path = || root.path.join(node.path_of(name.to_bytes()));
            if root.path.as_os_str().len() + node.length() + name.count_bytes() + 1 > PATH_MAX {
                // Nobody uses a longer path, and each file would be noted with its own.
                self.unseen(path(), Errno::NAMETOOLONG.into());
                continue;
            }
            let dir = descent.cursor.reach(&node, &descent.opener);
            match dir.and_then(|dir| descent.opener.open(dir, &name)) {
                Ok(fd) => self.directory(&mut descent, Some((&node, &name)), fd),
                Err(error) => self.unopened(path(), error),
            }
        }
    }

    fn directory(&mut self, descent: &mut Descent<'_>, place: Option<(&Arc<Node>, &CStr)>, fd: OwnedFd) {
        let (path, traits) = match place {
            None => (descent.root.path.clone(), Default::default()),
            Some((node, name)) => {
                (descent.root.path.join(node.path_of(name.to_bytes())), node.traits.below(name.to_bytes()))
            }
        };
        let here = Here { fd: &fd, path };
        let room = WAITING - descent.waiting;
        let listed = match self.list(&here, traits.unpacked, room) {
            Ok(listed) => listed,
            Err(errno) => return self.unopened(here.path, errno.into()),
        };
        if listed.cut {
            self.beyond(here.path, "not looked through to its end: too many directories");
        }
        if listed.names.is_empty() {
            return;
        }
        let node = match place {
            None => Node::root(0, fd, &descent.budget),
            Some((parent, name)) => {
                let Ok(stat) = own_stat(&fd) else { return };
                let (node, fd) = Node::holding(parent, name, Id::of(&stat), fd, &descent.budget);
                if let Some(fd) = fd {
                    descent.cursor.stand(&node, fd);
                }
                node
            }
        };
        descent.waiting += listed.names.len();
        descent.levels.push((node, listed.names, 0));
    }

    /// Gone meanwhile, a root that is a file, or the root of another file system: there is nothing to see.
    fn unopened(&mut self, path: PathBuf, error: io::Error) {
        match Errno::from_io_error(&error) {
            Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => {}
            _ => self.unseen(path, error),
        }
    }

    /// Notes what is in a directory and returns its directories.
    fn list(&mut self, here: &Here<'_>, unpacked: bool, room: usize) -> rustix::io::Result<Listed> {
        let mut listed = Listed::default();
        let (mut head, mut objects, mut refs, mut common) = (false, false, false, false);
        let mut tools = false;
        for entry in Dir::read_from(here.fd)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            let mut kind = entry.file_type();
            if matches!(name, b"." | b"..") {
                continue;
            }
            match name {
                b"HEAD" => head = true,
                b"objects" => objects = true,
                b"refs" => refs = true,
                b"commondir" => common = true,
                _ => {}
            }
            tools |= !unpacked && is_of_table(name);
            let name = OsStr::from_bytes(name);
            if matches!(kind, FileType::RegularFile | FileType::Unknown) {
                let Some(stat) = self.look_at(here, Path::new(name)) else { continue };
                kind = FileType::from_raw_mode(u32::from(stat.stx_mode));
                self.setuid(here, name, &stat);
            }
            if name == ".git" {
                let reason = "a repository: its hooks and settings run when git is used in it";
                if kind == FileType::Directory {
                    // What it holds is told by its files.
                    self.mark(here.path.join(name), Kind::Repository, reason, [0; 32]);
                } else {
                    self.file(here, Path::new(name), Kind::Repository, reason);
                }
            }
            if kind == FileType::Directory {
                let bytes = entry.file_name().to_bytes_with_nul();
                if name == ".git" {
                    // First: what else there is may be there to use up what can be noted.
                    listed.names.splice(0..0, bytes.iter().copied());
                } else if listed.names.len() + bytes.len() <= room {
                    listed.names.extend_from_slice(bytes);
                } else {
                    listed.cut = true;
                }
            }
        }
        let named = here.path.file_name() == Some(OsStr::new(".git"));
        if named || head && (common || objects && refs) {
            if !named {
                let reason = "a repository without a worktree: git uses it when it is started in there";
                self.mark(here.path.clone(), Kind::Repository, reason, [0; 32]);
            }
            GIT.iter().for_each(|row| self.row(here, row.path, Kind::Git, row.reason));
            LEADING.iter().for_each(|path| self.row(here, path, Kind::Git, LEADS));
        }
        if tools {
            FILES.iter().for_each(|row| self.row(here, row.path, Kind::Tool, row.reason));
        }
        Ok(listed)
    }

    /// Of the command's making it cannot be: the filters see to that. A second look costs nothing.
    fn setuid(&mut self, here: &Here<'_>, name: &OsStr, stat: &Statx) {
        let mode = u32::from(stat.stx_mode);
        let as_group = mode & 0o2010 == 0o2010;
        if FileType::from_raw_mode(mode).is_file() && (mode & 0o4000 != 0 || as_group) {
            let digest = digest(stat, &[], false);
            self.mark(here.path.join(name), Kind::Setuid, "runs as its owner or group", digest);
        }
    }

    /// One path of a table. A link on the way is what counts then: whoever follows it runs what it names.
    fn row(&mut self, here: &Here<'_>, path: &str, kind: Kind, reason: &'static str) {
        let path = Path::new(path);
        let mut ways: Vec<&Path> = path.ancestors().filter(|way| !way.as_os_str().is_empty()).collect();
        ways.reverse();
        for way in ways {
            let Some(stat) = self.look_at(here, way) else { return };
            match FileType::from_raw_mode(u32::from(stat.stx_mode)) {
                FileType::Directory if way != path => {}
                FileType::Directory => return self.tree(here, path, kind, reason),
                _ => return self.file(here, way, kind, reason),
            }
        }
    }

    fn tree(&mut self, here: &Here<'_>, path: &Path, kind: Kind, reason: &'static str) {
        let mut queue = vec![(path.to_owned(), 0)];
        let mut seen = 0;
        while let Some((path, depth)) = queue.pop() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let listing = open(here.fd.as_fd(), &path, flags).and_then(|fd| Dir::read_from(&fd));
            let listing = match listing {
                Ok(listing) => listing,
                Err(errno) => return self.unseen(here.path.join(path), errno.into()),
            };
            for entry in listing.flatten() {
                let name = entry.file_name().to_bytes();
                if matches!(name, b"." | b"..") {
                    continue;
                }
                seen += 1;
                if seen > ENTRIES || depth > DEPTH {
                    return self.beyond(here.path.join(path), "not looked at: too large");
                }
                let path = path.join(OsStr::from_bytes(name));
                match self.look_at(here, &path) {
                    Some(stat) if FileType::from_raw_mode(u32::from(stat.stx_mode)).is_dir() => {
                        queue.push((path, depth + 1));
                    }
                    Some(_) => self.file(here, &path, kind, reason),
                    None => {}
                }
            }
        }
    }

    fn file(&mut self, here: &Here<'_>, path: &Path, kind: Kind, reason: &'static str) {
        let Some(stat) = self.look_at(here, path) else { return };
        let file_type = FileType::from_raw_mode(u32::from(stat.stx_mode));
        let kept = match file_type {
            FileType::Symlink => target(here.fd.as_fd(), path).map(|target| (target, true)),
            FileType::RegularFile => {
                let most = READ.min(self.left_to_read);
                if stat.stx_size > 0 && most == 0 {
                    Ok((Vec::new(), false))
                } else {
                    read(here.fd.as_fd(), path, most.max(1))
                }
            }
            _ => Ok((Vec::new(), true)),
        };
        let (contents, whole) = kept.unwrap_or_else(|error| {
            self.unseen(here.path.join(path), error);
            (Vec::new(), false)
        });
        self.left_to_read = self.left_to_read.saturating_sub(contents.len() as u64);
        let named = matches!(path.to_str(), Some("config" | "config.worktree")) || reason == INCLUDED;
        let mut keys = git_settings::Keys::default();
        if named && kind == Kind::Git && file_type.is_file() {
            self.follow(&here.path, path, &contents);
            keys = git_settings::keys(&contents);
            if !whole || keys.cut {
                self.beyond(here.path.join(path), "not looked at: too large");
            }
        }
        let digest = digest(&stat, &contents, whole);
        self.hold(here.path.join(path), Mark { kind, reason, digest, keys });
    }

    /// Notes what a settings file names (git-config(1), "core.hooksPath", "Includes"). Hooks are run in the worktree,
    /// which is above a directory `.git`, and in the repository itself where there is none.
    fn follow(&mut self, here: &Path, file: &Path, contents: &[u8]) {
        let git = here.join(file.parent().unwrap_or(Path::new("")));
        let worktree = if here.ends_with(".git") { here.parent().unwrap_or(here) } else { here };
        let mut left = NAMED;
        git_settings::for_each(contents, |_, key, value| {
            let (base, reason) = match key.to_ascii_lowercase().as_str() {
                "hookspath" => (worktree, HOOKS),
                "path" => (git.as_path(), INCLUDED),
                _ => return true,
            };
            let value = git_settings::plain(value);
            // Names nothing.
            if value.is_empty() || value.len() > PATH_MAX {
                return true;
            }
            left -= 1;
            // A link on the way is met where the path is looked at.
            let path = normalise(&base.join(value));
            if left == 0 || self.named.len() >= 16 * NAMED {
                self.beyond(path, "not looked at: git settings name too much");
                return false;
            }
            self.named.push((path, reason));
            true
        });
    }

    /// None where there is nothing.
    fn look_at(&mut self, here: &Here<'_>, path: &Path) -> Option<Statx> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        let looked = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => holder(here.fd.as_fd(), path)
                .and_then(|(parent, name)| statx(parent, name, flags, StatxFlags::BASIC_STATS)),
            _ => statx(here.fd, path, flags, StatxFlags::BASIC_STATS),
        };
        match looked {
            Ok(stat) => Some(stat),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => None,
            Err(errno) => {
                self.unseen(here.path.join(path), errno.into());
                None
            }
        }
    }

    fn mark(&mut self, path: PathBuf, kind: Kind, reason: &'static str, digest: [u8; 32]) {
        self.hold(path, Mark { kind, reason, digest, keys: Default::default() });
    }

    fn hold(&mut self, path: PathBuf, mark: Mark) {
        self.held += path.as_os_str().len() + mark.keys.weight() + 200;
        self.full |= self.held > HELD;
        if !self.full {
            self.snapshot.marks.insert(path, mark);
        }
    }

    fn unseen(&mut self, path: PathBuf, error: io::Error) {
        self.note(Unseen { path, reason: describe(&error), beyond: false });
    }

    /// Of a size that no honest tree has.
    fn beyond(&mut self, path: PathBuf, reason: &str) {
        self.note(Unseen { path, reason: reason.to_owned(), beyond: true });
    }

    /// These have a share of their own, so that something is told of what made it full.
    fn note(&mut self, unseen: Unseen) {
        let weight = unseen.path.as_os_str().len() + unseen.reason.len() + 100;
        if weight <= self.snapshot.room_unseen {
            self.snapshot.room_unseen -= weight;
            self.snapshot.unseen.push(unseen);
        } else {
            self.snapshot.unseen_more += 1;
            self.snapshot.complete = false;
        }
    }
}

/// Whether a row of the table begins with this name.
fn is_of_table(name: &[u8]) -> bool {
    // Rows are sorted, and their first components with them, but for `/` and `.` that may follow the name.
    FILES.iter().any(|row| {
        row.path
            .as_bytes()
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.first() == Some(&b'/'))
    })
}
