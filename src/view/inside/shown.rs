//! The view before it is built: each entry answers for what will stand behind its names.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::CWD;

use super::layer;
use super::real::{self, at};
use super::{May, Node, What, World};
use crate::enforce::mounts::OWN;
use crate::view::{Access, Backing, Entry, Source, View};

/// How root's files look in the system's trees, where root is the caller.
#[derive(Debug, Default)]
pub struct Veils {
    /// Roots of trees in which they belong to nobody.
    pub mapped: Vec<PathBuf>,
    /// What is covered instead in the others.
    pub covered: Vec<(PathBuf, bool)>,
}

pub struct Shown<'a> {
    pub view: &'a View,
    pub veils: &'a Veils,
    /// What is made on the way belongs to confine's own identity.
    pub switch_user: bool,
    pub uid: u32,
    pub groups: Vec<u32>,
}

impl World for Shown<'_> {
    fn look(&self, path: &Path) -> Node {
        if self.veils.covered.iter().any(|(covered, _)| covered == path) {
            return Node::own(What::Covered, May::default());
        }
        match self.view.entries.get(path) {
            Some(entry) => self.entry(entry),
            None => match self.holder(path, false) {
                Some(holder) => self.below(holder, path),
                None => self.own(path),
            },
        }
    }
}

impl Shown<'_> {
    /// The entry above a path whose mount the path lies on.
    fn holder(&self, path: &Path, with_itself: bool) -> Option<&Entry> {
        let skip = usize::from(!with_itself);
        path.ancestors().skip(skip).filter_map(|above| self.view.entries.get(above)).find(|entry| {
            !matches!(
                entry.place.backing,
                Backing::Link { .. } | Backing::Cover { .. } | Backing::Itself | Backing::Lifted
            ) && !matches!((&entry.place.backing, &entry.source), (Backing::Copy, Source::File(_)))
        })
    }

    /// Whether names below this entry are somebody's and not made by us.
    fn is_foreign(entry: &Entry) -> bool {
        !matches!(entry.place.backing, Backing::Fresh { .. }) && !is_unmade(entry)
    }

    fn entry(&self, entry: &Entry) -> Node {
        let path = &entry.place.path;
        let above = self.holder(path, false);
        let foreign = above.filter(|above| Self::is_foreign(above));
        match &entry.place.backing {
            // What exists already keeps what it is.
            Backing::Link { .. } | Backing::Itself | Backing::Lifted if foreign.is_some() => {
                foreign.map_or_else(Node::missing, |above| self.below(above, path))
            }
            Backing::Link { to } => Node::own(What::Link(to.clone()), May::ALL),
            Backing::Cover { .. } => match foreign {
                Some(above) if self.below(above, path).what != What::Missing => {
                    Node::own(What::Covered, May::default())
                }
                _ => Node::missing(),
            },
            Backing::Fresh { .. } => Node::own(What::Directory, May::ALL),
            Backing::Terminals => Node::own(What::Directory, May::LOOK),
            Backing::Device => Self::device(at(CWD, path)),
            Backing::Terminal => match &entry.source {
                Source::Object { fd, .. } => Self::device(at(fd.as_fd(), Path::new(""))),
                _ => Node::missing(),
            },
            Backing::Copy => match (&entry.source, foreign) {
                (Source::Files(_), _) => Node::own(What::Directory, May::LOOK),
                (_, Some(_)) => Node::own(What::File, May { read: true, ..May::default() }),
                (_, None) => Node::own(What::File, May::FILE),
            },
            Backing::Itself | Backing::Lifted => Node::missing(),
            _ if is_unmade(entry) => Node::own(What::Directory, May::ALL),
            _ => self.below(entry, path),
        }
    }

    /// The host's own node, with the mode that it has there; on a mount without programs.
    fn device(node: Node) -> Node {
        Node { what: What::Device { shared: true }, may: May { execute: false, ..node.may }, ..node }
    }

    /// A name on the mount of this entry, the entry's own included.
    fn below(&self, holder: &Entry, path: &Path) -> Node {
        let Ok(name) = path.strip_prefix(&holder.place.path) else { return Node::missing() };
        let made = self.leads_to_something(path);
        match (&holder.place.backing, &holder.source) {
            (Backing::Fresh { .. }, _) if made => self.made(true),
            (Backing::Fresh { .. }, _) => Node::missing(),
            (Backing::Copy, Source::Files(files)) => {
                if files.iter().any(|(file, _)| file == name) {
                    Node::own(What::File, May { read: true, ..May::default() })
                } else if files.iter().any(|(file, _)| file.starts_with(name)) {
                    Node::own(What::Directory, May::LOOK)
                } else {
                    Node::missing()
                }
            }
            (Backing::Terminals, _) if name == Path::new("ptmx") => {
                Node::own(What::Device { shared: true }, May::FILE)
            }
            (_, Source::Object { fd, .. }) => self.of_host(holder, fd.as_fd(), name),
            (_, Source::Layer { lower, upper, .. }) => match layer::written(upper.as_fd(), name) {
                Some(node) if node.what == What::Missing => node,
                Some(_) => self.of_host(holder, upper.as_fd(), name),
                None => self.of_host(holder, lower.as_fd(), name),
            },
            _ if is_unmade(holder) && made => self.made(true),
            _ => Node::missing(),
        }
    }

    fn of_host(&self, holder: &Entry, fd: BorrowedFd<'_>, name: &Path) -> Node {
        let mut node = at(fd, name);
        if node.what == What::Missing {
            // A state directory gets the mount points that it lacks.
            let kept = matches!(holder.place.backing, Backing::Kept | Backing::KeptLayer);
            let path = holder.place.path.join(name);
            return if kept && self.leads_to_something(&path) { self.made(true) } else { node };
        }
        let (Ok(root), Ok(stat)) = (real::stat(fd, Path::new("")), real::stat(fd, name)) else { return node };
        if self.veils.mapped.contains(&holder.place.path) && !matches!(node.what, What::Link(_)) {
            node.may = self.veiled(&stat);
        }
        node.other_mount = root.stx_mnt_id != stat.stx_mnt_id;
        // The mount of the view is a clone with flags of its own: of these the layer alone takes no file system's no.
        if holder.place.backing.is_layer() {
            node.may.write |= stat.stx_uid == self.uid && stat.stx_mode & 0o200 != 0;
        }
        node
    }

    /// The mode as it is seen where files of uid and gid 0 belong to nobody. Access lists are not read.
    fn veiled(&self, stat: &rustix::fs::Statx) -> May {
        let owner = stat.stx_uid != 0 && stat.stx_uid == self.uid;
        let group = stat.stx_gid != 0 && self.groups.contains(&stat.stx_gid);
        let shift = if owner {
            6
        } else if group {
            3
        } else {
            0
        };
        let bits = stat.stx_mode >> shift;
        May { read: bits & 4 != 0, write: bits & 2 != 0, execute: bits & 1 != 0 }
    }

    /// A name in the root directory that nothing of the host stands behind.
    fn own(&self, path: &Path) -> Node {
        let note = ["note", "plan.json"].iter().any(|name| path == Path::new(OWN).join(name));
        if path == Path::new("/") || path == Path::new(OWN) || self.leads_to_something(path) {
            self.made(false)
        } else if note {
            Node::own(What::File, May { read: true, ..May::default() })
        } else if path == Path::new(OWN).join("self-check") {
            Node::own(What::File, May::default())
        } else {
            Node::missing()
        }
    }

    fn made(&self, writable: bool) -> Node {
        let own = writable && !self.switch_user;
        Node::own(What::Directory, if own { May::ALL } else { May::LOOK })
    }

    /// Something is put below this name, so its directories are made.
    fn leads_to_something(&self, path: &Path) -> bool {
        let after = (std::ops::Bound::Excluded(path.to_owned()), std::ops::Bound::Unbounded);
        let mut below = self
            .view
            .entries
            .range(after)
            .map(|(_, entry)| entry)
            .take_while(|entry| entry.place.path.starts_with(path));
        below.any(|entry| entry.place.access > Access::Hidden && entry.place.backing != Backing::Lifted)
    }
}

/// A state directory that only a run makes.
fn is_unmade(entry: &Entry) -> bool {
    entry.place.backing == Backing::Kept && matches!(entry.source, Source::None)
}
