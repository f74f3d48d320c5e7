//! Directories that the walk still needs, as a chain of names with descriptors where they can be afforded.
//!
//! A tree may be thousands of levels deep and a process has often 1024 descriptors, so a directory keeps its
//! descriptor only while a budget lasts. Without one it is reached from where the walk stands, up by `..` and down by
//! names, or from the nearest ancestor that has one: a walk goes each way down and up once, so that depth costs no
//! more than it has levels. Nothing here recurses: depth is the tree's choice, the stack is not.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

pub use super::read::own_stat;
use crate::view::control::{Id, is_unpacked};

/// Longest string handed to one openat2; PATH_MAX is 4096.
const CHUNK: usize = 4000;

pub struct Budget(AtomicIsize);

impl Budget {
    pub fn new(descriptors: usize) -> Arc<Budget> {
        Arc::new(Budget(AtomicIsize::new(descriptors.try_into().unwrap_or(isize::MAX))))
    }
}

struct Lease {
    fd: OwnedFd,
    budget: Arc<Budget>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.budget.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// What a directory has from the names on the way to it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Traits {
    /// Below a directory of unpacked packages or of build results.
    pub unpacked: bool,
    /// Below a name that begins with a dot: only there is anything guarded.
    pub dotted: bool,
}

impl Traits {
    pub fn below(self, name: &[u8]) -> Traits {
        Traits {
            unpacked: self.unpacked || is_unpacked(name),
            dotted: self.dotted || name.first() == Some(&b'.'),
        }
    }
}

pub struct Node {
    pub root: u32,
    pub traits: Traits,
    /// From the root, which is 0.
    depth: u32,
    /// Bytes of its path below the root.
    length: u32,
    parent: Option<Arc<Node>>,
    name: Box<CStr>,
    /// What it is, where that is known: a way back by `..` has to end at it.
    id: Option<Id>,
    lease: Option<Lease>,
}

impl Node {
    /// The start of a walk: always keeps its descriptor.
    pub fn root(root: u32, fd: OwnedFd, budget: &Arc<Budget>) -> Arc<Node> {
        budget.0.fetch_sub(1, Ordering::Relaxed);
        let lease = Some(Lease { fd, budget: Arc::clone(budget) });
        Arc::new(Node {
            root,
            traits: Traits::default(),
            depth: 0,
            length: 0,
            parent: None,
            name: CString::default().into_boxed_c_str(),
            id: None,
            lease,
        })
    }

    pub fn child(parent: &Arc<Node>, name: &CStr, id: Option<Id>) -> Arc<Node> {
        Node::below(parent, name, id, None)
    }

    /// The same with its descriptor, or without it and the descriptor back where the budget is spent.
    pub fn holding(
        parent: &Arc<Node>,
        name: &CStr,
        id: Id,
        fd: OwnedFd,
        budget: &Arc<Budget>,
    ) -> (Arc<Node>, Option<OwnedFd>) {
        if budget.0.fetch_sub(1, Ordering::Relaxed) > 0 {
            let lease = Lease { fd, budget: Arc::clone(budget) };
            return (Node::below(parent, name, Some(id), Some(lease)), None);
        }
        budget.0.fetch_add(1, Ordering::Relaxed);
        (Node::below(parent, name, Some(id), None), Some(fd))
    }

    fn below(parent: &Arc<Node>, name: &CStr, id: Option<Id>, lease: Option<Lease>) -> Arc<Node> {
        let length = u32::try_from(name.count_bytes() + 1).unwrap_or(u32::MAX);
        Arc::new(Node {
            root: parent.root,
            traits: parent.traits.below(name.to_bytes()),
            depth: parent.depth.saturating_add(1),
            length: parent.length.saturating_add(length),
            parent: Some(Arc::clone(parent)),
            name: name.into(),
            id,
            lease,
        })
    }

    /// Of its path below the root.
    pub fn length(&self) -> usize {
        self.length as usize
    }

    pub fn is_root(&self) -> bool {
        self.parent.is_none()
    }

    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.lease.as_ref().map(|lease| lease.fd.as_fd())
    }

    /// Relative to the root.
    pub fn path(&self) -> PathBuf {
        let mut names = Vec::new();
        let mut node = self;
        while let Some(parent) = &node.parent {
            names.push(node.name.to_bytes());
            node = parent;
        }
        let joined = names.iter().rev().copied().collect::<Vec<_>>().join(&b'/');
        PathBuf::from(OsStr::from_bytes(&joined))
    }

    pub fn path_of(&self, name: &[u8]) -> PathBuf {
        self.path().join(OsStr::from_bytes(name))
    }

    /// Opens the directory again from the nearest ancestor with a descriptor.
    pub fn reopen(&self, opener: &Opener) -> io::Result<OwnedFd> {
        let mut names = Vec::new();
        let mut node = self;
        let start = loop {
            if let Some(fd) = node.fd() {
                break fd;
            }
            names.push(&*node.name);
            match &node.parent {
                Some(parent) => node = parent,
                None => return Err(Errno::BADF.into()),
            }
        };
        descend(start, names, opener)
    }
}

/// From a directory down by names, of which the last is the first to be taken.
fn descend(start: BorrowedFd<'_>, mut names: Vec<&CStr>, opener: &Opener) -> io::Result<OwnedFd> {
    let mut here: Option<OwnedFd> = None;
    while !names.is_empty() {
        let mut path = Vec::new();
        while let Some(name) = names.last() {
            let full = path.len() + name.count_bytes() + 1 > CHUNK || !opener.has_openat2();
            if full && !path.is_empty() {
                break;
            }
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(name.to_bytes());
            names.pop();
        }
        let path = CString::new(path)?;
        let from = here.as_ref().map_or(start, |fd| fd.as_fd());
        here = Some(opener.open(from, &path)?);
    }
    match here {
        Some(fd) => Ok(fd),
        None => opener.open(start, c"."),
    }
}

/// Where a walk stands: the last directory it has reached that keeps no descriptor of its own.
#[derive(Default)]
pub struct Cursor(Option<(Arc<Node>, OwnedFd)>);

impl Cursor {
    pub fn stand(&mut self, node: &Arc<Node>, fd: OwnedFd) {
        self.0 = Some((Arc::clone(node), fd));
    }

    pub fn reach<'a>(&'a mut self, node: &'a Arc<Node>, opener: &Opener) -> io::Result<BorrowedFd<'a>> {
        if let Some(fd) = node.fd() {
            return Ok(fd);
        }
        if !self.0.as_ref().is_some_and(|(at, _)| Arc::ptr_eq(at, node)) {
            let fd = match self.go(node, opener) {
                Some(fd) => fd,
                None => node.reopen(opener)?,
            };
            self.stand(node, fd);
        }
        self.0.as_ref().map(|(_, fd)| fd.as_fd()).ok_or(Errno::BADF.into())
    }

    /// Through the nearest directory above both. None where a descriptor is nearer, or somebody has moved something.
    fn go(&self, node: &Node, opener: &Opener) -> Option<OwnedFd> {
        let (at, fd) = self.0.as_ref()?;
        let (mut from, mut to): (&Node, &Node) = (at, node);
        let (mut up, mut names) = (0, Vec::new());
        while !std::ptr::eq(from, to) {
            if to.depth >= from.depth {
                if to.fd().is_some() {
                    return None;
                }
                names.push(&*to.name);
                to = to.parent.as_deref()?;
            } else {
                up += 1;
                from = from.parent.as_deref()?;
            }
        }
        let above = (up > 0).then(|| climb(fd.as_fd(), up, to.id?, opener)).flatten();
        if up > 0 && above.is_none() {
            return None;
        }
        if names.is_empty() {
            return above;
        }
        descend(above.as_ref().map_or(fd.as_fd(), |fd| fd.as_fd()), names, opener).ok()
    }
}

/// `..` leads to where a directory is now, which may no longer be where it was.
fn climb(start: BorrowedFd<'_>, mut levels: usize, wanted: Id, opener: &Opener) -> Option<OwnedFd> {
    let mut here: Option<OwnedFd> = None;
    while levels > 0 {
        let now = levels.min(CHUNK / 3);
        let mut path = b"../".repeat(now);
        path.pop();
        let from = here.as_ref().map_or(start, |fd| fd.as_fd());
        here = Some(opener.open(from, &CString::new(path).ok()?).ok()?);
        levels -= now;
    }
    let found = here?;
    own_stat(&found).is_ok_and(|stat| Id::of(&stat) == wanted).then_some(found)
}

/// Dropping the last holder of a chain would otherwise recurse once a level.
impl Drop for Node {
    fn drop(&mut self) {
        let mut next = self.parent.take();
        while let Some(node) = next {
            next = Arc::into_inner(node).and_then(|mut node| node.parent.take());
        }
    }
}

/// Opens directories for reading without following a symlink or crossing a mount.
pub struct Opener {
    openat2: AtomicBool,
}

impl Opener {
    pub fn new() -> Opener {
        Opener { openat2: AtomicBool::new(true) }
    }

    fn has_openat2(&self) -> bool {
        self.openat2.load(Ordering::Relaxed)
    }

    /// `path` has one component, unless openat2 is there, which alone refuses symlinks in the middle. EXDEV is a
    /// mount point; where openat2 is missing (a filter above us answers ENOSYS) the mount id has to tell.
    pub fn open(&self, dir: BorrowedFd<'_>, path: &CStr) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if self.has_openat2() {
            let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
            match rustix::fs::openat2(dir, path, flags, Mode::empty(), resolve) {
                Err(Errno::NOSYS) if !path.to_bytes().contains(&b'/') => {
                    self.openat2.store(false, Ordering::Relaxed);
                }
                result => return Ok(result?),
            }
        }
        Ok(rustix::fs::openat(dir, path, flags, Mode::empty())?)
    }
}
