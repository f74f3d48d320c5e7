//! What the program inside is told: where its victims are. Not what they hold.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub struct Aims {
    /// The victims' directory.
    pub arena: PathBuf,
    /// A directory inside that may be written, made for this.
    pub place: PathBuf,
    pub at: Numbers,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Numbers {
    /// Distinguishes the names of this proof; nobody else can know it before and take the names.
    pub id: u64,
    pub uid: u32,
    pub gid: u32,
    pub victim: i32,
    /// Of the secret in the victim's memory.
    pub address: u64,
    /// The writing end of a pipe, in the victim.
    pub pipe: i32,
    pub tcp: u16,
    pub udp: u16,
    pub key: i32,
    pub segment: i32,
    /// Left open for confine to close.
    pub leaked: i32,
}

pub fn name(id: u64) -> String {
    format!("confine-prove-{id:016x}")
}

impl Numbers {
    pub fn name(&self) -> String {
        name(self.id)
    }
}

impl Aims {
    /// As words of a command line, and back.
    pub fn words(arena: PathBuf, place: PathBuf, at: &Numbers) -> [OsString; 3] {
        [arena.into(), place.into(), serde_json::to_string(at).unwrap_or_default().into()]
    }

    pub fn read(words: &[OsString]) -> Option<Aims> {
        let [arena, place, numbers] = words else { return None };
        let at = serde_json::from_str(numbers.to_str()?).ok()?;
        Some(Aims { arena: arena.into(), place: place.into(), at })
    }

    /// Read-only inside.
    pub fn shown(&self, name: &str) -> PathBuf {
        self.arena.join("shown").join(name)
    }

    /// Not there inside.
    pub fn hidden(&self, name: &str) -> PathBuf {
        self.arena.join("hidden").join(name)
    }

    pub fn own(&self, name: &str) -> PathBuf {
        self.place.join(name)
    }
}
