//! Whether the command's own identity can write what it was given: root's has no capability to override a mode.
#![forbid(unsafe_code)]

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access as Mode, AtFlags, CWD, accessat};

use crate::error::{Error, Result, paste, show};
use crate::view::{Access, Backing, Source, View};

pub fn roots(view: &View) -> Vec<PathBuf> {
    view.places()
        .filter(|place| place.access == Access::Write && place.backing == Backing::Bind)
        .map(|place| place.path.clone())
        .collect()
}

/// With the command's own identity.
pub fn check(roots: &[PathBuf]) -> Result<()> {
    roots.iter().try_for_each(|root| judge(root, root))
}

/// What that would say, for whoever only asks and has taken the same identity. In a view of its own (`viewed`) the
/// directories above a root are confine's, so that only the root itself counts.
pub fn foresee(view: &View, viewed: bool) -> Result<()> {
    for root in roots(view) {
        match view.entries.get(&root).map(|entry| &entry.source) {
            Some(Source::Object { fd, .. }) if viewed => {
                judge(&root, Path::new(&format!("/proc/self/fd/{}", fd.as_raw_fd())))?;
            }
            Some(Source::Object { .. }) => judge(&root, &root)?,
            // A state directory that the run will make.
            _ => {}
        }
    }
    Ok(())
}

fn judge(root: &Path, at: &Path) -> Result<()> {
    if accessat(CWD, at, Mode::WRITE_OK, AtFlags::EACCESS).is_ok() {
        return Ok(());
    }
    let owner = fs::metadata(at).map(|found| found.uid());
    let path = show(root.as_os_str()).to_string();
    let error =
        Error::refused(format!("{path} cannot be written by the identity that the command will have"));
    let shown = format!("show it with `--read-only` or `--ro {}`", paste(root.as_os_str()));
    Err(match owner {
        Ok(owner) if owner != 0 && nix::unistd::geteuid().is_root() => {
            error.with_hint(format!("as root, run as its owner with `--user {owner}`; or {shown}"))
        }
        _ => error.with_hint(shown),
    })
}
