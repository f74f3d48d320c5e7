//! One path of the view: what may be done there, what stands behind it, where it comes from.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::path_text;

/// Ordered: the most specific path wins, and on one path a user's rule wins over a table's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    Hidden,
    /// Read, list and execute.
    Read,
    Write,
}

/// What stands behind a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backing {
    /// The host's own tree.
    Bind,
    /// A tree of `--state`: mount points are made in it.
    Kept,
    /// The host's tree, with root's files shown as nobody's (where root is the caller).
    Veiled,
    /// The host's tree through inodes of its own.
    Sealed,
    /// The host's tree; what is written stays private and vanishes.
    Layer,
    /// The same, but what is written is kept in the directory of `--state`.
    KeptLayer,
    /// A directory of the private, bounded tmpfs, with this mode.
    Fresh {
        mode: u32,
    },
    /// A private copy of one file or of a directory of files.
    Copy,
    /// A symbolic link.
    Link {
        #[serde(with = "path_text")]
        to: PathBuf,
    },
    /// Something empty over what is hidden.
    Cover {
        directory: bool,
    },
    /// A device node.
    Device,
    /// The caller's terminal.
    Terminal,
    /// A new pseudo-terminal file system.
    Terminals,
    /// A part of a writable root that is only kept from being guarded: nothing is mounted.
    Lifted,
    Proc,
    Sys,
    /// A part of a writable root bound onto itself: read-only, or so that it cannot be renamed away.
    Itself,
}

impl Backing {
    pub fn is_layer(&self) -> bool {
        matches!(self, Backing::Layer | Backing::KeptLayer)
    }
}

/// Where a path comes from; decides which of two entries on one path stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A row of a table.
    Table,
    /// An option of this run.
    Option,
    /// Met in the workspace or among the caller's descriptors: the same policy may have other ones next time.
    Found,
}

/// One path of the view, as `explain` prints it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    #[serde(with = "path_text")]
    pub path: PathBuf,
    pub access: Access,
    pub backing: Backing,
    pub origin: Origin,
    pub reason: String,
}

#[derive(Debug)]
pub enum Source {
    None,
    /// Opened before any mount covers its path. Whether it is a directory is asked once, here.
    Object {
        fd: OwnedFd,
        directory: bool,
    },
    /// A directory of the host's, and where what is written over it is kept.
    Layer {
        lower: OwnedFd,
        upper: OwnedFd,
        work: OwnedFd,
    },
    File(Vec<u8>),
    Files(Vec<(PathBuf, Vec<u8>)>),
}

impl Source {
    pub(super) fn directory(fd: OwnedFd) -> Source {
        Source::Object { fd, directory: true }
    }

    pub(super) fn other(fd: OwnedFd) -> Source {
        Source::Object { fd, directory: false }
    }
}

#[derive(Debug)]
pub struct Entry {
    pub place: Place,
    pub source: Source,
}
