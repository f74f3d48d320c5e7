//! What is new or changed, after a run, among the files that later run outside by themselves. The guard of `control`
//! keeps those that exist; this tells of those that were made, wherever in the writable roots.
//!
//! All is reached from the roots' descriptors and never by a link, for who made the tree is hostile, and the paths
//! may lead elsewhere by the time of the second look.
#![forbid(unsafe_code)]

mod look;
mod settings;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::path_text;

/// One writable root.
pub struct Root {
    pub path: PathBuf,
    pub fd: OwnedFd,
}

/// More are counted and not listed.
const LISTED: usize = 500;
const KEYS: usize = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A `.git`, a bare repository, or one that is a submodule or linked worktree.
    Repository,
    /// A hook, a setting or another file that git acts upon.
    Git,
    /// A file of an editor, a shell, an agent or another tool.
    Tool,
    /// Runs as its owner or group.
    Setuid,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Mark {
    kind: Kind,
    reason: &'static str,
    /// Of contents, mode and type: equal marks are equal files.
    digest: [u8; 32],
    /// Of a git settings file: each key, with a digest of its value.
    keys: BTreeSet<(String, u64)>,
}

/// The state at one moment.
#[derive(Debug, Default)]
pub struct Snapshot {
    marks: BTreeMap<PathBuf, Mark>,
    /// Why, for each directory that could not be looked into.
    unseen: Vec<Unseen>,
    complete: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Unseen {
    #[serde(with = "path_text")]
    pub path: PathBuf,
    pub reason: String,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    #[serde(with = "path_text")]
    pub path: PathBuf,
    pub kind: Kind,
    /// "new" or "changed".
    pub change: &'static str,
    pub reason: &'static str,
    /// Git settings that are new or have another value, without their values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct Changes {
    /// Every writable root was looked through.
    pub complete: bool,
    pub files: Vec<Change>,
    /// How many more there are.
    pub more: usize,
    /// What could not be looked into.
    pub unseen: Vec<Unseen>,
}

/// Looks through all roots, for as long as `go_on` says.
pub fn look(roots: &[Root], go_on: &mut dyn FnMut() -> bool) -> Snapshot {
    let mut look = look::Look::new(go_on);
    for root in roots {
        look.root(root);
    }
    look.named(roots);
    look.snapshot
}

/// One file of a snapshot.
#[derive(Debug)]
pub struct Present<'a> {
    pub path: &'a Path,
    pub kind: Kind,
    pub reason: &'static str,
    /// Of a git settings file.
    pub keys: Vec<&'a str>,
}

impl Snapshot {
    /// All that is there, whether it has changed or not.
    pub fn present(&self) -> impl Iterator<Item = Present<'_>> {
        self.marks.iter().map(|(path, mark)| Present {
            path,
            kind: mark.kind,
            reason: mark.reason,
            keys: mark.keys.iter().map(|(key, _)| key.as_str()).collect(),
        })
    }

    pub fn unseen(&self) -> &[Unseen] {
        &self.unseen
    }

    pub fn is_complete(&self) -> bool {
        self.complete
    }

    pub fn since(&self, before: &Snapshot) -> Changes {
        let mut files: Vec<Change> =
            self.marks.iter().filter_map(|(path, mark)| change(path, mark, before.marks.get(path))).collect();
        // Repositories first: they say what the others belong to.
        files.sort_by(|a, b| (a.kind, &a.path).cmp(&(b.kind, &b.path)));
        let more = files.len().saturating_sub(LISTED);
        files.truncate(LISTED);
        // What could not be looked into before is not known to be as it was.
        let unseen: BTreeSet<&Unseen> = self.unseen.iter().chain(&before.unseen).collect();
        let mut unseen: Vec<Unseen> = unseen.into_iter().cloned().collect();
        let complete = self.complete && before.complete && unseen.is_empty();
        unseen.truncate(LISTED);
        Changes { complete, files, more, unseen }
    }
}

fn change(path: &Path, mark: &Mark, before: Option<&Mark>) -> Option<Change> {
    let change = match before {
        Some(before) if before.digest == mark.digest && before.kind == mark.kind => return None,
        Some(_) => "changed",
        None => "new",
    };
    let fresh = |key: &&(String, u64)| before.is_none_or(|before| !before.keys.contains(key));
    let mut keys: Vec<String> = mark.keys.iter().filter(fresh).map(|(key, _)| key.clone()).collect();
    keys.dedup();
    keys.truncate(KEYS);
    Some(Change { path: path.to_owned(), kind: mark.kind, change, reason: mark.reason, keys })
}

#[cfg(test)]
mod tests;
