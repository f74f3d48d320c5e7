//! What the look through the writable roots finds: aliases, for which a run is refused or which are shown read-only, and
//! what runs by itself outside, which is guarded.

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use super::trace::PATH_MAX;
use super::{Access, Origin, Place, Purpose, Root, View, control, scan, system};
use crate::error::{Error, Result};
use crate::policy::{Policy, Promise};

/// Why a place is read-only.
pub const ALIAS: &str = "an alias: read-only";

impl View {
    pub(super) fn look_for_aliases(&mut self, policy: &Policy, purpose: Purpose) -> Result<()> {
        let mut apart = self.apart();
        // No walk gets there: they are file systems of their own, and not ones that links are counted on.
        apart.retain(|path| !system::KERNEL.iter().any(|kernel| path.starts_with(kernel)));
        let roots: Vec<scan::Root<'_>> =
            self.roots.iter().filter(|root| root.writable).map(Root::to_scan).collect();
        if roots.is_empty() {
            return Ok(());
        }
        if policy.waive.contains(&Promise::AliasFree) {
            let mut found = Vec::new();
            for (index, root) in roots.iter().enumerate().filter(|(_, root)| is_directory(root.dir)) {
                let here = control::at_root(root.dir, policy.git)
                    .map_err(|error| Error::path("look for control files in", root.path, error))?;
                found.push((index, here));
            }
            let paths: Vec<_> = roots.iter().map(|root| root.path.to_owned()).collect();
            for (index, here) in found {
                self.guard(&paths[index], &here.control, &here.git_dirs);
            }
            return self.refuse_unnameable(purpose);
        }
        let options = scan::Options { git: policy.git, apart: &apart, max_threads: 0 };
        let report = scan::scan(&roots, &options)?;
        let writable = self.roots.iter().filter(|root| root.writable);
        let paths: Vec<_> = writable.map(|root| (root.path.clone(), root.inside.clone())).collect();
        let protected = match scan::verdict(&report, policy.hardlinks) {
            Err(refusal) if purpose == Purpose::Ask => {
                self.refusal = Some(refusal);
                Vec::new()
            }
            verdict => verdict?,
        };
        let hides =
            self.places().any(|place| place.access == Access::Hidden && place.origin == Origin::Option);
        for (index, (path, inside)) in paths.iter().enumerate() {
            let of = |list: &[(usize, PathBuf)]| -> Vec<PathBuf> {
                list.iter().filter(|(root, _)| *root == index).map(|(_, name)| name.clone()).collect()
            };
            self.guard(path, &of(&report.control), &of(&report.git_dirs));
            for name in of(&protected) {
                // The other name may be a hidden one: what is read by either is the same file.
                if hides {
                    self.cover_found(inside.join(name), false, "an alias, perhaps of what is hidden");
                } else {
                    self.found(inside.join(name), Access::Read, ALIAS);
                }
            }
        }
        self.protected = protected.len();
        self.scan = Some(report);
        self.refuse_unnameable(purpose)
    }

    /// A command can make files deeper than a path can say, and what has no path cannot be guarded.
    fn refuse_unnameable(&mut self, purpose: Purpose) -> Result<()> {
        let too_long = |place: &&Place| place.path.as_os_str().len() > PATH_MAX;
        let Some(place) = self.places().filter(|_| self.mounts).find(too_long) else { return Ok(()) };
        let refusal = Error::refused(format!(
            "{} lies too deep to be guarded: its path is longer than {} bytes",
            scan::shown(&place.path),
            PATH_MAX
        ))
        .with_hint("remove or move what lies so deep, or run without the guard: `--git free`");
        if purpose != Purpose::Ask {
            return Err(refusal);
        }
        self.refusal.get_or_insert(refusal);
        Ok(())
    }

    /// Control files are shown read-only, and the .git that holds them cannot be renamed away.
    fn guard(&mut self, root: &Path, control: &[PathBuf], git_dirs: &[PathBuf]) {
        // A state directory is shown elsewhere, and nothing outside ever runs what lies in it.
        if !self.entries.contains_key(root) {
            return;
        }
        for name in git_dirs {
            self.found(root.join(name), Access::Write, "holds guarded files: cannot be renamed away");
        }
        for name in control {
            self.found(root.join(name), Access::Read, "runs by itself outside: guarded");
        }
    }
}

fn is_directory(fd: BorrowedFd<'_>) -> bool {
    rustix::fs::fstat(fd).is_ok_and(|stat| {
        rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Directory
    })
}
