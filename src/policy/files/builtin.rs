//! The profiles that come with confine: the files of `profiles/`, as they are.

use super::{Document, document};
use crate::error::Result;
use crate::policy::origin::{File, Kind};

/// In the order in which they are documented.
pub const NAMES: &[&str] =
    &["workspace-write", "read-only", "build", "dev-server", "kernel", "mcp", "strict"];

const TEXTS: &[&str] = &[
    include_str!("../../../profiles/workspace-write.toml"),
    include_str!("../../../profiles/read-only.toml"),
    include_str!("../../../profiles/build.toml"),
    include_str!("../../../profiles/dev-server.toml"),
    include_str!("../../../profiles/kernel.toml"),
    include_str!("../../../profiles/mcp.toml"),
    include_str!("../../../profiles/strict.toml"),
];

pub fn find(name: &str) -> Result<Option<Document>> {
    let found = NAMES.iter().zip(TEXTS).find(|(known, _)| **known == name);
    let file = |text: &str| File { kind: Kind::Profile(name.to_owned()), place: None, text: text.to_owned() };
    found.map(|(_, text)| document(file(text))).transpose()
}
