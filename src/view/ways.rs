//! Every path by which a name can be reached. One tree may be mounted more than once, so that no path by itself tells
//! where a thing lies. Looked up only for what a decision hangs on.

use std::path::{Path, PathBuf};

use super::mounted::Mounts;
use super::trace::plain;
use crate::error::Result;

/// The table of mounts, read when it is needed first.
#[derive(Default)]
pub struct Ways(Option<Mounts>);

impl Ways {
    /// The path itself first. It is canonical; its own name may be that of a link, or what ends it may be missing.
    pub fn to(&mut self, path: &Path) -> Result<Vec<PathBuf>> {
        let mounts = match &mut self.0 {
            Some(mounts) => mounts,
            none => none.insert(Mounts::read()?),
        };
        let mut ways = vec![path.to_owned()];
        // A file may be mounted by itself.
        if let Ok(found) = plain(path) {
            ways.extend(mounts.other_names(&found));
        }
        let above = path.ancestors().skip(1).find_map(|above| Some((above, plain(above).ok()?)));
        if let Some((above, found)) = above
            && let Ok(below) = path.strip_prefix(above)
        {
            ways.extend(mounts.other_names(&found).into_iter().map(|other| other.join(below)));
        }
        ways.sort_unstable();
        ways.dedup();
        Ok(ways)
    }

    /// The first of these trees that a name lies in, by whichever mount.
    pub fn within<'a>(&mut self, path: &Path, roots: &[&'a Path]) -> Result<Option<&'a Path>> {
        let holding = |path: &Path| roots.iter().find(|root| path.starts_with(root)).copied();
        match holding(path) {
            Some(root) => Ok(Some(root)),
            None if roots.is_empty() => Ok(None),
            None => Ok(self.to(path)?.iter().find_map(|way| holding(way))),
        }
    }

    /// The first of these links that lies in one of these trees, and which.
    pub fn first_within<'l, 'a>(
        &mut self,
        links: impl IntoIterator<Item = &'l PathBuf>,
        roots: &[&'a Path],
    ) -> Result<Option<(&'l Path, &'a Path)>> {
        for link in links {
            if let Some(root) = self.within(link, roots)? {
                return Ok(Some((link, root)));
            }
        }
        Ok(None)
    }

    /// Whether one of two trees holds the other, by whichever mounts.
    pub fn overlap(&mut self, one: &Path, other: &Path) -> Result<bool> {
        let (ones, others) = (self.to(one)?, self.to(other)?);
        let meet =
            |one: &PathBuf| others.iter().any(|other| one.starts_with(other) || other.starts_with(one));
        Ok(ones.iter().any(meet))
    }
}
