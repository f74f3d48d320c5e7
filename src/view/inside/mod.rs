//! What a path leads to inside, walked as the kernel there will walk it: one name after the other, links and `..`
//! followed in the view. What lies there and what its mode lets the command do is asked of the kernel, through the
//! view's own descriptors; which rule decides is for the reader of the place.
#![forbid(unsafe_code)]

mod layer;
mod real;
mod shown;

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub use real::Real;
pub use shown::{Shown, Veils};

/// path_resolution(7).
const MAX_LINKS: usize = 40;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    Missing,
    Directory,
    File,
    Socket,
    Fifo,
    /// `shared`: one of the few that the view itself shows; others are dead on a nodev mount.
    Device {
        shared: bool,
    },
    Link(PathBuf),
    /// Something empty that nobody may open lies over it.
    Covered,
}

/// What mode, owner and mount let the command do, whatever rules there are besides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct May {
    pub read: bool,
    pub write: bool,
    /// Of a directory: to search it.
    pub execute: bool,
}

impl May {
    pub const ALL: May = May { read: true, write: true, execute: true };
    pub const LOOK: May = May { read: true, write: false, execute: true };
    pub const FILE: May = May { read: true, write: true, execute: false };
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub what: What,
    pub may: May,
    /// The file system is mounted there inside a root, which shows it read-only.
    pub other_mount: bool,
    pub links: u32,
    pub owner: Option<(u32, u32)>,
    /// Device and inode number, where it is the host's.
    pub object: Option<(u64, u64)>,
}

impl Node {
    pub fn missing() -> Node {
        Node::own(What::Missing, May::default())
    }

    pub fn own(what: What, may: May) -> Node {
        Node { what, may, other_mount: false, links: 1, owner: None, object: None }
    }
}

pub trait World {
    /// The name itself; all above it is known to be a directory without a link on the way.
    fn look(&self, path: &Path) -> Node;
}

/// Where a walk has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Without links as far as it exists, then as it was named.
    pub path: PathBuf,
    pub node: Node,
    /// The name that was asked for is there, if only as a link that leads nowhere.
    pub named: bool,
    /// The deepest directory that exists on the way, and what it is.
    pub directory: (PathBuf, Node),
    /// Set where the way ends early: a directory that may not be searched, or something that is none.
    pub stopped: Option<Stop>,
    pub links: Vec<(PathBuf, PathBuf)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// EACCES
    Search(PathBuf),
    /// ENOTDIR
    NoDirectory(PathBuf),
    /// ELOOP
    Loop(PathBuf),
}

/// `path` is absolute.
pub fn walk(world: &dyn World, path: &Path) -> Seen {
    let mut seen = walk_names(world, path);
    // A slash at the end asks for a directory, through a link too (path_resolution(7)).
    let slash = [&b"/"[..], b"/."].iter().any(|end| path.as_os_str().as_bytes().ends_with(end));
    if slash && seen.node.what != What::Directory {
        seen.named = false;
        if !matches!(seen.node.what, What::Missing | What::Covered) {
            let here = seen.path.clone();
            return stop(seen, Stop::NoDirectory(here.clone()), here, VecDeque::new(), true);
        }
    }
    seen
}

fn walk_names(world: &dyn World, path: &Path) -> Seen {
    let mut left: VecDeque<(OsString, bool)> =
        names(path.as_os_str()).into_iter().map(|name| (name, true)).collect();
    let root = PathBuf::from("/");
    let mut seen = Seen {
        node: world.look(&root),
        path: root.clone(),
        named: true,
        directory: (root.clone(), world.look(&root)),
        stopped: None,
        links: Vec::new(),
    };
    // `.` and `..` at the end name a directory by another way.
    while let Some((name, original)) = left.pop_front() {
        if name == ".." {
            if !seen.node.may.execute {
                let (at, here) = (seen.path.clone(), seen.path.join(&name));
                return stop(seen, Stop::Search(at), here, left, original);
            }
            seen.path.pop();
            seen.node = world.look(&seen.path);
            seen.directory = (seen.path.clone(), seen.node.clone());
            continue;
        }
        let here = seen.path.join(&name);
        if !seen.node.may.execute {
            let at = seen.path.clone();
            return stop(seen, Stop::Search(at), here, left, original);
        }
        let node = world.look(&here);
        let last_named = original && !left.iter().any(|(_, original)| *original);
        if last_named {
            seen.named = node.what != What::Missing;
        }
        match node.what.clone() {
            What::Link(to) => {
                if seen.links.len() == MAX_LINKS {
                    return stop(seen, Stop::Loop(here.clone()), here, left, false);
                }
                seen.links.push((here, to.clone()));
                if to.is_absolute() {
                    seen.path = root.clone();
                    seen.node = world.look(&root);
                }
                names(to.as_os_str()).into_iter().rev().for_each(|name| left.push_front((name, false)));
            }
            What::Directory => {
                seen.path = here;
                seen.directory = (seen.path.clone(), node.clone());
                seen.node = node;
            }
            What::Missing => {
                seen.named &= !left.iter().any(|(_, original)| *original);
                seen.path = rest(here, left);
                seen.node = node;
                return seen;
            }
            _ if left.is_empty() => {
                seen.path = here;
                seen.node = node;
            }
            What::Covered => {
                return stop(seen, Stop::Search(here.clone()), here, left, false);
            }
            _ => return stop(seen, Stop::NoDirectory(here.clone()), here, left, false),
        }
    }
    seen
}

/// `unlooked`: the name at hand is one that was asked about, and was not come to. A link that was come to is there,
/// wherever it leads.
fn stop(mut seen: Seen, why: Stop, here: PathBuf, left: VecDeque<(OsString, bool)>, unlooked: bool) -> Seen {
    seen.stopped = Some(why);
    seen.named &= !unlooked && !left.iter().any(|(_, original)| *original);
    seen.path = rest(here, left);
    seen.node = Node::missing();
    seen
}

fn rest(here: PathBuf, left: VecDeque<(OsString, bool)>) -> PathBuf {
    left.into_iter().fold(here, |path, (name, _)| path.join(name))
}

fn names(path: &OsStr) -> Vec<OsString> {
    path.as_bytes()
        .split(|&byte| byte == b'/')
        .filter(|name| !matches!(*name, b"" | b"."))
        .map(|name| OsStr::from_bytes(name).to_owned())
        .collect()
}
