//! What the administrator of the machine shows to nobody (`never-visible`), whatever table or option would.

use std::path::{Path, PathBuf};

use super::View;
use super::hidden;
use super::mounted::Mounts;
use super::roots::Asked;
use super::trace::{links_passed, trace};
use super::ways::Ways;
use crate::error::{Error, Result, show};
use crate::policy::{self, Policy};

/// The reason that stands at what it hides.
pub const NOBODY: &str = "the administrator shows it to nobody";

/// A path that the administrator shows to nobody: where it leads on this machine.
#[derive(Debug)]
pub struct Never {
    pub path: PathBuf,
    pub directory: bool,
    /// Whether it is there: of a link to nothing only the way counts.
    pub present: bool,
    pub named: PathBuf,
    /// What the way to it passes, also where that ends nowhere.
    pub links: Vec<PathBuf>,
    pub origin: policy::Origin,
}

impl Never {
    /// With every other mount of the same tree. What is not there, or cannot be reached by this user at all, needs no hiding.
    pub fn all(policy: &Policy) -> Result<Vec<Never>> {
        let mut mounts = None;
        let mut found = Vec::new();
        for (named, origin) in &policy.never_visible {
            let never = |path: PathBuf, present, directory, links| Never {
                path,
                present,
                directory,
                named: named.clone(),
                links,
                origin: origin.clone(),
            };
            match trace(named) {
                Ok(traced) => {
                    let mounts = match &mounts {
                        Some(mounts) => mounts,
                        // Only where there is something to hide.
                        None => mounts.insert(Mounts::read()?),
                    };
                    let links: Vec<PathBuf> = traced.links.iter().map(|(at, _)| at.clone()).collect();
                    for traced in mounts.other_ways(&traced.path, &traced.fd).into_iter().chain([traced]) {
                        found.push(never(traced.path.clone(), true, traced.is_dir(), links.clone()));
                    }
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::ENOENT | libc::ENOTDIR | libc::EACCES | libc::ELOOP) => {
                        let links: Vec<PathBuf> = links_passed(named).into_iter().map(|(at, _)| at).collect();
                        // A link to nothing, which a command may have led there.
                        found.extend((!links.is_empty()).then(|| never(named.clone(), false, false, links)));
                    }
                    _ => return Err(Error::path("find, to hide it, ", named, error)),
                },
            }
        }
        Ok(found)
    }

    /// Where it leads must not be for a command to say: an earlier one may have led it elsewhere.
    pub fn refuse_planted(&self, roots: &[&Path]) -> Result<()> {
        let Some((at, root)) = Ways::default().first_within(&self.links, roots)? else { return Ok(()) };
        Err(Error::refused(format!(
            "{} is shown to nobody on this machine ({}), but is named through the link {}, which lies in the \
             writable root {}",
            show(self.named.as_os_str()),
            self.origin,
            show(at.as_os_str()),
            show(root.as_os_str())
        ))
        .with_hint("the administrator of this machine can name the directory itself"))
    }

    /// The same for a file whose contents are given to the command.
    pub fn refuse_file(&self, option: &str, named: &Path, path: &Path) -> Result<()> {
        match self.present && path.starts_with(&self.path) {
            true => Err(self.told(option, named)),
            false => Ok(()),
        }
    }

    fn told(&self, option: &str, named: &Path) -> Error {
        Error::refused(format!(
            "{option} {} is shown to nobody on this machine ({})",
            show(named.as_os_str()),
            self.origin
        ))
        .with_hint("leave it out; only the administrator of this machine can change that")
    }

    /// Who names it, or something in it, has to be told; what `--ro /` brings is left out.
    pub fn refuse(&self, asked: &[Asked]) -> Result<()> {
        let inside = |other: &&Asked| {
            other.is_shown() && other.by.is_some() && self.present && other.path().starts_with(&self.path)
        };
        match asked.iter().find(inside) {
            None => Ok(()),
            Some(other) => Err(other.told(self.told(other.option, other.path()))),
        }
    }
}

/// What the administrator shows to nobody, by whichever row it came in. Private places stay: they have nothing of
/// the host's.
pub fn hide(view: &mut View, never: Vec<Never>) -> Result<()> {
    for Never { path, directory, origin, .. } in never.into_iter().filter(|never| never.present) {
        let own = view
            .state
            .as_ref()
            .filter(|state| state.path.starts_with(&path) || hidden::holds_kept(view, &path));
        if let Some(state) = own {
            let state = show(state.path.as_os_str()).to_string();
            return Err(Error::refused(format!(
                "--state {state} is shown to nobody on this machine ({origin})"
            ))
            .with_hint("keep the state elsewhere"));
        }
        view.roots.retain(|root| !root.path.starts_with(&path));
        for path in hidden::cover(view, directory, path, true, NOBODY) {
            view.asked_by.insert(path, origin.clone());
        }
    }
    Ok(())
}
