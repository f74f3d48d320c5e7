//! The note for programs: the plan as it was decided, so that `confine why` inside judges by what was enforced.
//!
//! Written by the run, in a place that the command cannot write. A command may set CONFINE_NOTE for what it starts and
//! so answer them falsely; it answers only its own, and nothing is ever enforced by this file.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{JSON_VERSION, Namespace, Plan};
use crate::view::{Access, Backing, Place, View, path_text};

/// What became of a layer that this host, or another run that has it, does not let be what was planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lesser {
    Vanishes,
    ReadOnly,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Facts<'a> {
    pub version: u32,
    /// Names of variables and no values, paths and no contents.
    pub plan: Cow<'a, Plan>,
    /// HOME and TMPDIR of the command.
    #[serde(with = "path_text")]
    pub home: PathBuf,
    #[serde(with = "path_text")]
    pub tmp: PathBuf,
    /// Control files that this host cannot guard.
    pub unguarded: Vec<String>,
}

impl<'a> Facts<'a> {
    pub fn of(plan: &'a Plan, view: &View) -> Facts<'a> {
        Facts {
            version: JSON_VERSION,
            plan: Cow::Borrowed(plan),
            home: view.home.clone(),
            tmp: view.tmp.clone(),
            unguarded: view.unguarded.iter().map(|path| path.to_string_lossy().into_owned()).collect(),
        }
    }

    pub fn read(bytes: &[u8]) -> Option<Facts<'static>> {
        let facts: Facts<'static> = serde_json::from_slice(bytes).ok()?;
        (facts.version == JSON_VERSION).then_some(facts)
    }

    /// Takes what became of layers into the view: `bytes` are those of `lesser`.
    pub fn correct(&mut self, bytes: &[u8]) {
        for record in bytes.split(|&byte| byte == 0) {
            let Some((kind, path)) = record.split_first() else { continue };
            let path = Path::new(OsStr::from_bytes(path));
            let view = &mut self.plan.to_mut().world.view;
            let Some(place) = view.iter_mut().find(|place| place.path == path && place.backing.is_layer())
            else {
                continue;
            };
            if *kind == b'v' {
                place.backing = Backing::Layer;
                place.reason.push_str("; another run has what --state keeps, or it cannot be kept there");
            } else {
                (place.access, place.backing) = (Access::Read, Backing::Bind);
                place.reason.push_str("; no private writes can be had here");
            }
        }
    }

    /// Names are not merely granted but put together anew.
    pub fn viewed(&self) -> bool {
        self.plan.has(Namespace::Mount)
    }

    /// The place that decides about a canonical path: the most specific one.
    pub fn place(&self, path: &Path) -> Option<&Place> {
        let above =
            |place: &&Place| path.starts_with(&place.path) && !matches!(place.backing, Backing::Link { .. });
        self.plan.world.view.iter().filter(above).max_by_key(|place| place.path.components().count())
    }

    /// Something below this path is hidden, so that Landlock alone cannot grant it as a whole.
    pub fn holds_hidden(&self, path: &Path) -> bool {
        let below = |place: &Place| place.path != path && place.path.starts_with(path);
        self.plan.world.view.iter().any(|place| place.access == Access::Hidden && below(place))
    }
}

/// A record each: a letter, a path, a NUL. The last about a path holds.
pub fn lesser(found: &[(PathBuf, Lesser)]) -> Vec<u8> {
    let record = |(path, lesser): &(PathBuf, Lesser)| {
        let kind: &[u8] = match lesser {
            Lesser::Vanishes => b"v",
            Lesser::ReadOnly => b"r",
        };
        [kind, path.as_os_str().as_bytes(), b"\0"].concat()
    };
    found.iter().flat_map(record).collect()
}

pub fn write(plan: &Plan, view: &View) -> Vec<u8> {
    // Numbers, names and text: nothing in it can fail to be written.
    serde_json::to_vec(&Facts::of(plan, view)).unwrap_or_default()
}
