//! What the administrator of the machine shows to nobody (`never-visible`), whatever table or option would.

use std::path::PathBuf;

use super::mounted::Mounts;
use super::roots::Asked;
use super::trace::trace;
use super::{Access, Backing, Origin, Place, Source, View};
use crate::error::{Error, Result, show};
use crate::policy::{self, Policy};

/// A path that the administrator shows to nobody: where it leads on this machine.
#[derive(Debug)]
pub struct Never {
    pub path: PathBuf,
    pub directory: bool,
    pub origin: policy::Origin,
}

impl Never {
    /// With every other mount of the same tree. What is not there, or cannot be reached by this user at all, needs no hiding.
    pub fn all(policy: &Policy) -> Result<Vec<Never>> {
        let mut mounts = None;
        let mut found = Vec::new();
        for (path, origin) in &policy.never_visible {
            match trace(path) {
                Ok(traced) => {
                    let mounts = match &mounts {
                        Some(mounts) => mounts,
                        // Only where there is something to hide.
                        None => mounts.insert(Mounts::read()?),
                    };
                    for traced in mounts.other_ways(&traced).into_iter().chain([traced]) {
                        let directory = traced.is_dir();
                        found.push(Never { path: traced.path, directory, origin: origin.clone() });
                    }
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::ENOENT | libc::ENOTDIR | libc::EACCES) => {}
                    _ => return Err(Error::path("find, to hide it, ", path, error)),
                },
            }
        }
        Ok(found)
    }

    /// Who names it, or something in it, has to be told; what `--ro /` brings is left out.
    pub fn refuse(&self, asked: &[Asked]) -> Result<()> {
        let inside =
            |other: &&Asked| other.is_shown() && other.by.is_some() && other.path().starts_with(&self.path);
        match asked.iter().find(inside) {
            None => Ok(()),
            Some(other) => Err(Error::refused(format!(
                "{} {} is shown to nobody on this machine ({})",
                other.option,
                show(other.path().as_os_str()),
                self.origin
            ))
            .with_hint("leave it out; only the administrator of this machine can change that")),
        }
    }
}

/// What the administrator shows to nobody, by whichever row it came in. Private places stay: they have nothing of
/// the host's.
pub fn hide(view: &mut View, never: Vec<Never>) -> Result<()> {
    for Never { path, directory, origin } in never {
        if let Some(state) = view.state.as_ref().filter(|state| state.path.starts_with(&path)) {
            let state = show(state.path.as_os_str()).to_string();
            return Err(Error::refused(format!(
                "--state {state} is shown to nobody on this machine ({origin})"
            ))
            .with_hint("keep the state elsewhere"));
        }
        view.entries.retain(|at, entry| {
            let own = matches!(entry.place.backing, Backing::Fresh { .. } | Backing::Kept | Backing::Device);
            own || !at.starts_with(&path)
        });
        view.roots.retain(|root| !root.path.starts_with(&path));
        if view.is_visible(&path) {
            let place = Place {
                path: path.clone(),
                access: Access::Hidden,
                backing: Backing::Cover { directory },
                origin: Origin::Option,
                reason: "the administrator shows it to nobody".to_owned(),
            };
            view.insert(place, Source::None);
            view.asked_by.insert(path, origin);
        }
    }
    Ok(())
}
