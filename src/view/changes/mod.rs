//! What is new or changed, after a run, among the files that later run outside by themselves. The guard of `control`
//! keeps those that exist; this tells of those that were made, wherever in the writable roots.
//!
//! All is reached from the roots' descriptors and never by a link, for who made the tree is hostile, and the paths
//! may lead elsewhere by the time of the second look.
#![forbid(unsafe_code)]

mod look;
mod reading;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::git_settings::Keys;
use super::path_text;

/// One writable root.
pub struct Root {
    pub path: PathBuf,
    pub fd: OwnedFd,
}

/// More of a kind are counted and not listed, so that many of one do not hide another.
const LISTED: usize = 500;
/// Bytes, as JSON at its longest, of what is listed of a kind: who made the tree chose the names.
const TOLD: usize = 1 << 20;
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
    keys: Keys,
}

/// The state at one moment.
#[derive(Debug, Default)]
pub struct Snapshot {
    marks: BTreeMap<PathBuf, Mark>,
    /// Why, for each directory that could not be looked into.
    unseen: Vec<Unseen>,
    unseen_more: usize,
    /// Bytes that may still be noted as unseen.
    room_unseen: usize,
    complete: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Unseen {
    #[serde(with = "path_text")]
    pub path: PathBuf,
    pub reason: String,
    /// It is too large or too many to be looked at.
    #[serde(skip)]
    pub beyond: bool,
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
    /// How many more there are.
    #[serde(skip_serializing_if = "is_none")]
    pub keys_more: usize,
}

fn is_none(count: &usize) -> bool {
    *count == 0
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
    /// How many more of that there are.
    pub unseen_more: usize,
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
            keys: mark.keys.set.iter().map(|(key, _)| key.as_str()).collect(),
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
        let mut room = BTreeMap::new();
        let all = files.len();
        files.retain(|change| {
            let keys: usize = change.keys.iter().map(String::len).sum();
            let weight = 6 * (change.path.as_os_str().len() + keys) + 200;
            has_room(room.entry(change.kind).or_default(), weight)
        });
        let more = all - files.len();
        // What could not be looked into before is not known to be as it was.
        let known: BTreeSet<&Unseen> = self.unseen.iter().chain(&before.unseen).collect();
        let mut room = (0, 0);
        let fits = |unseen: &&&Unseen| has_room(&mut room, 6 * unseen.path.as_os_str().len() + 200);
        let unseen: Vec<Unseen> = known.iter().filter(fits).map(|unseen| (*unseen).clone()).collect();
        let unseen_more = known.len() - unseen.len() + self.unseen_more + before.unseen_more;
        let complete = self.complete && before.complete && known.is_empty();
        Changes { complete, files, more, unseen, unseen_more }
    }
}

/// Counts one more of so many bytes, if it can still be listed.
fn has_room((count, bytes): &mut (usize, usize), weight: usize) -> bool {
    let fits = *count < LISTED && *bytes + weight <= TOLD;
    if fits {
        *count += 1;
        *bytes += weight;
    }
    fits
}

fn change(path: &Path, mark: &Mark, before: Option<&Mark>) -> Option<Change> {
    let change = match before {
        Some(before) if before.digest == mark.digest && before.kind == mark.kind => return None,
        Some(_) => "changed",
        None => "new",
    };
    let fresh = |key: &&(String, u64)| before.is_none_or(|before| !before.keys.set.contains(key));
    let mut keys: Vec<String> = mark.keys.set.iter().filter(fresh).map(|(key, _)| key.clone()).collect();
    keys.dedup();
    let keys_more = keys.len().saturating_sub(KEYS);
    keys.truncate(KEYS);
    Some(Change { path: path.to_owned(), kind: mark.kind, change, reason: mark.reason, keys, keys_more })
}

#[cfg(test)]
mod tests;
