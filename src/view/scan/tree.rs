//! Directories that the walk still needs, as a chain of names with descriptors where they can be afforded.
//!
//! A tree may be thousands of levels deep and a process has often 1024 descriptors, so a directory keeps its
//! descriptor only while a budget lasts; without one it is reached again, link by link, from the nearest
//! ancestor that has. Nothing here recurses: depth is the tree's choice, the stack is not.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::view::control::is_unpacked;

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
    parent: Option<Arc<Node>>,
    name: Box<CStr>,
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
            parent: None,
            name: CString::default().into_boxed_c_str(),
            lease,
        })
    }

    pub fn child(parent: &Arc<Node>, name: &CStr, fd: Option<(OwnedFd, &Arc<Budget>)>) -> Arc<Node> {
        let lease = fd.and_then(|(fd, budget)| {
            if budget.0.fetch_sub(1, Ordering::Relaxed) > 0 {
                return Some(Lease { fd, budget: Arc::clone(budget) });
            }
            budget.0.fetch_add(1, Ordering::Relaxed);
            None
        });
        let traits = parent.traits.below(name.to_bytes());
        Arc::new(Node {
            root: parent.root,
            traits,
            parent: Some(Arc::clone(parent)),
            name: name.into(),
            lease,
        })
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
