//! What is confine's own in a user's directories: later runs go by it, so no command may write there.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::fstat;

use super::caller::{Caller, account};
use super::mounted::mount_of;
use super::trace::{Traced, trace};
use super::ways::Ways;
use crate::error::{Error, Result, show};
use crate::policy::{Allowance, Policy};

/// Where policy is read from: by the environment and by the password file, whichever of them has one now.
fn configuration(caller: &Caller, by_account: bool) -> Vec<PathBuf> {
    places(caller, "XDG_CONFIG_HOME", ".config", by_account)
}

/// Where `--state auto` keeps what commands have written; canonical.
pub fn states(caller: &Caller) -> Vec<PathBuf> {
    places(caller, "XDG_STATE_HOME", ".local/state", true).iter().map(|path| settled(path).0).collect()
}

fn places(caller: &Caller, variable: &str, below: &str, by_account: bool) -> Vec<PathBuf> {
    let absolute = |word: &OsStr| Some(PathBuf::from(word)).filter(|path| path.is_absolute());
    let named = caller.trusted_variable(variable).and_then(absolute);
    let environment = caller.trusted_variable("HOME").and_then(absolute);
    let read = || account(caller.uid).filter(|_| by_account).map(|entry| entry.home);
    let entry = caller.entry.as_ref().map(|entry| entry.home.clone()).or_else(read);
    let homes = environment.into_iter().chain(entry.filter(|home| home.is_absolute()));
    let mut found: Vec<PathBuf> = named
        .into_iter()
        .chain(homes.map(|home| home.join(below)))
        .map(|base| base.join("confine"))
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Canonical as far as it is there, and what is there.
pub fn settled(path: &Path) -> (PathBuf, Option<Traced>) {
    let Some((above, found)) = path.ancestors().find_map(|above| Some((above, trace(above).ok()?))) else {
        return (path.to_owned(), None);
    };
    let canonical = match path.strip_prefix(above) {
        // An empty end would leave a slash.
        Ok(rest) if !rest.as_os_str().is_empty() => found.path.join(rest),
        _ => found.path.clone(),
    };
    (canonical, Some(found))
}

/// Where an object was found: the device of its file system, and the mount that it was reached by.
pub struct Found {
    device: u64,
    mount: Option<u64>,
}

impl Found {
    pub fn of(fd: &OwnedFd, device: u64) -> Found {
        Found { device, mount: mount_of(fd) }
    }
}

/// A canonical path with the names that it has through other mounts, looked up only for what could be one.
struct Known {
    path: PathBuf,
    nearest: Option<Found>,
    names: Option<Vec<PathBuf>>,
}

impl Known {
    fn new(path: &Path) -> Known {
        let (path, found) = settled(path);
        let nearest = found.and_then(|found| Some(Found::of(&found.fd, fstat(&found.fd).ok()?.st_dev)));
        Known { path, nearest, names: None }
    }

    /// Those that may matter for this object: another mount shows the same file system.
    fn names(&mut self, found: &Found) -> Result<&[PathBuf]> {
        let other = |near: &Found| near.device == found.device && near.mount != found.mount;
        let elsewhere = self.nearest.as_ref().is_some_and(other);
        if !elsewhere {
            return Ok(std::slice::from_ref(&self.path));
        }
        match &mut self.names {
            Some(names) => Ok(names),
            none => Ok(none.insert(Ways::default().to(&self.path)?)),
        }
    }

    /// Whether it holds the object, or lies in it.
    fn meets(&mut self, path: &Path, found: &Found) -> Result<bool> {
        let names = self.names(found)?;
        if names.iter().any(|name| name.starts_with(path) || path.starts_with(name)) {
            return Ok(true);
        }
        // Only a part of it may be mounted there.
        Ok(self.names.is_some() && Ways::default().overlap(&self.path, path)?)
    }
}

/// What a writable root is compared with.
pub struct Own {
    home: Known,
    /// With whether the password file has been asked.
    configuration: Option<(bool, Vec<Known>)>,
}

impl Own {
    /// By the host's HOME.
    pub fn new(home: &Path) -> Own {
        Own { home: Known::new(home), configuration: None }
    }

    /// HOME, by each name that it may have as seen from this object.
    pub fn homes(&mut self, found: &Found) -> Result<&[PathBuf]> {
        self.home.names(found)
    }

    /// A command that writes where policy is read from says what a later run may do.
    pub fn refuse(
        &mut self,
        policy: &Policy,
        caller: &Caller,
        named: &Path,
        root: &Path,
        found: &Found,
    ) -> Result<()> {
        let homes = self.home.names(found)?;
        let above_home = homes.iter().any(|home| home.starts_with(root));
        // Whoever hands out the home directory hands out what the user's programs run by themselves.
        if above_home && policy.shell.is_none() && policy.allow.contains(&Allowance::BroadWorkspace) {
            return Ok(());
        }
        // The password file is read only where its home could be another one.
        let by_account = !homes.iter().any(|home| root.starts_with(home)) || above_home;
        if self.configuration.as_ref().is_none_or(|(whole, _)| by_account && !whole) {
            let places = configuration(caller, by_account);
            let places = places.iter().map(|place| Known::new(place)).collect();
            self.configuration = Some((by_account, places));
        }
        for place in self.configuration.iter_mut().flat_map(|(_, places)| places) {
            if place.meets(root, found)? {
                return Err(Error::usage(format!(
                    "{} overlaps {}, where policy is read from: not where commands can write",
                    show(named.as_os_str()),
                    show(place.path.as_os_str())
                ))
                .with_hint("name the project's own directory"));
            }
        }
        Ok(())
    }
}
