//! The walk: each directory is opened by its path below the root's descriptor, so that depth costs no descriptors.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Statx, StatxFlags, openat2, statx};
use rustix::io::Errno;

use super::{Kind, Mark, Root, Snapshot, Unseen, settings};
use crate::error::describe;
use crate::view::control::{FILES, GIT, is_unpacked};
use crate::view::trace::normalise;

/// Of a longer file only so much is read; its size and times tell of the rest.
const READ: u64 = 1 << 20;
/// Directories of the table are small; deeper or larger ones are somebody's trick.
const DEPTH: u32 = 8;
const ENTRIES: usize = 4096;
const UNSEEN: usize = 4096;

/// Besides what is guarded: these lead git to another repository or worktree.
const LEADING: [&str; 3] = ["commondir", "gitdir", "objects/info/alternates"];
/// Settings that name more than this are somebody's trick.
const NAMED: usize = 64;
const HOOKS: &str = "core.hooksPath names it: git runs these hooks";
const INCLUDED: &str = "git settings name it as more of them";
const LEADS: &str = "leads git to another directory, whose settings it then reads";

pub struct Look<'a> {
    pub snapshot: Snapshot,
    pub go_on: &'a mut dyn FnMut() -> bool,
    /// What settings of git name, wherever it lies: hooks, and further settings.
    named: Vec<(PathBuf, &'static str)>,
}

/// A directory that is being looked at.
struct Here<'a> {
    fd: &'a OwnedFd,
    path: PathBuf,
}

impl<'a> Look<'a> {
    pub fn new(go_on: &'a mut dyn FnMut() -> bool) -> Look<'a> {
        let snapshot = Snapshot { complete: true, ..Snapshot::default() };
        Look { snapshot, go_on, named: Vec::new() }
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
            if done.len() < NAMED && done.insert(path.clone()) {
                self.row(&Here { fd: &root.fd, path: root.path.clone() }, below, Kind::Git, reason);
            }
        }
    }

    pub fn root(&mut self, root: &Root) {
        let mut queue = vec![(PathBuf::new(), false)];
        while let Some((path, unpacked)) = queue.pop() {
            if !(self.go_on)() {
                self.snapshot.complete = false;
                return;
            }
            let below = if path.as_os_str().is_empty() { Path::new(".") } else { &path };
            let full = if path.as_os_str().is_empty() { root.path.clone() } else { root.path.join(&path) };
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let listed = open(root.fd.as_fd(), below, flags).and_then(|fd| {
                let names = self.list(&Here { fd: &fd, path: full.clone() }, unpacked)?;
                Ok(names)
            });
            match listed {
                Ok(names) => queue.extend(names.into_iter().map(|name| {
                    let unpacked = unpacked || is_unpacked(name.as_bytes());
                    (path.join(name), unpacked)
                })),
                // Gone meanwhile, a root that is a file, or the root of another file system.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => {}
                Err(errno) => self.unseen(full, errno.into()),
            }
        }
    }

    /// Notes what is in a directory and returns its directories.
    fn list(&mut self, here: &Here<'_>, unpacked: bool) -> rustix::io::Result<Vec<OsString>> {
        let mut directories = Vec::new();
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
                directories.push(name.to_os_string());
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
        Ok(directories)
    }

    /// Of the command's making it cannot be: the filters see to that. A second look costs nothing.
    fn setuid(&mut self, here: &Here<'_>, name: &OsStr, stat: &Statx) {
        let mode = u32::from(stat.stx_mode);
        let as_group = mode & 0o2010 == 0o2010;
        if FileType::from_raw_mode(mode).is_file() && (mode & 0o4000 != 0 || as_group) {
            let digest = digest(stat, &stat.stx_ctime.tv_sec.to_ne_bytes());
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
                    return self.unseen(here.path.join(path), io::Error::other("too large"));
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
        let contents = match file_type {
            FileType::Symlink => target(here.fd.as_fd(), path),
            FileType::RegularFile => read(here.fd.as_fd(), path),
            _ => Ok(Vec::new()),
        };
        let contents = match contents {
            Ok(contents) => contents,
            Err(error) => {
                self.unseen(here.path.join(path), error);
                Vec::new()
            }
        };
        let named = matches!(path.to_str(), Some("config" | "config.worktree")) || reason == INCLUDED;
        let is_settings = named && kind == Kind::Git && file_type.is_file();
        if is_settings {
            self.follow(&here.path, path, &contents);
        }
        let keys = if is_settings { settings::keys(&contents) } else { Default::default() };
        let digest = digest(&stat, &contents);
        self.snapshot.marks.insert(here.path.join(path), Mark { kind, reason, digest, keys });
    }

    /// Notes what a settings file names (git-config(1), "core.hooksPath", "Includes"). Hooks are run in the worktree,
    /// which is above a directory `.git`, and in the repository itself where there is none.
    fn follow(&mut self, here: &Path, file: &Path, contents: &[u8]) {
        let git = here.join(file.parent().unwrap_or(Path::new("")));
        let worktree = if here.ends_with(".git") { here.parent().unwrap_or(here) } else { here };
        for (key, value) in crate::view::git::settings(contents) {
            let (base, reason) = match key.as_str() {
                "hookspath" => (worktree, HOOKS),
                "path" => (git.as_path(), INCLUDED),
                _ => continue,
            };
            // A link on the way is met where the path is looked at.
            self.named.push((normalise(&base.join(value)), reason));
        }
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
        self.snapshot.marks.insert(path, Mark { kind, reason, digest, keys: Default::default() });
    }

    fn unseen(&mut self, path: PathBuf, error: io::Error) {
        self.snapshot.complete &= self.snapshot.unseen.len() < UNSEEN;
        if self.snapshot.unseen.len() < UNSEEN {
            self.snapshot.unseen.push(Unseen { path, reason: describe(&error) });
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

const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

fn open(dir: BorrowedFd<'_>, path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    openat2(dir, path, flags | OFlags::CLOEXEC, Mode::empty(), BENEATH)
}

/// A directory as a start for further calls, and the name in it.
fn holder<'a>(dir: BorrowedFd<'_>, path: &'a Path) -> rustix::io::Result<(OwnedFd, &'a OsStr)> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let fd = open(dir, parent, OFlags::PATH | OFlags::DIRECTORY)?;
    Ok((fd, path.file_name().unwrap_or_default()))
}

fn target(dir: BorrowedFd<'_>, path: &Path) -> io::Result<Vec<u8>> {
    let (parent, name) = holder(dir, path)?;
    Ok(rustix::fs::readlinkat(parent, name, Vec::new())?.into_bytes())
}

/// Never waits: what was a file a moment ago may be a FIFO.
fn read(dir: BorrowedFd<'_>, path: &Path) -> io::Result<Vec<u8>> {
    let mut contents = Vec::new();
    let file = File::from(open(dir, path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?);
    file.take(READ).read_to_end(&mut contents)?;
    Ok(contents)
}

fn digest(stat: &Statx, contents: &[u8]) -> [u8; 32] {
    let mut hash = hmac_sha256::Hash::new();
    hash.update(stat.stx_mode.to_ne_bytes());
    if stat.stx_size > READ {
        hash.update(stat.stx_size.to_ne_bytes());
        hash.update(stat.stx_ctime.tv_sec.to_ne_bytes());
        hash.update(stat.stx_ctime.tv_nsec.to_ne_bytes());
    }
    hash.update(contents);
    hash.finalize()
}
