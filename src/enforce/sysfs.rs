//! What uid 0 is granted of /sys: without any capability it may read what root alone may, so it is given the trees of
//! a table, and names.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, openat};

use super::mounts::{Grant, Right};
use crate::view::system;

/// What of the processors is left where files of root's own lie among theirs and cannot be covered.
const PLAIN: &[&str] = &["online", "possible", "present", "kernel_max", "smt", "vulnerabilities"];

/// `hidden`: paths that are to be granted around.
pub fn grants(sys: &OwnedFd, hidden: &[impl AsRef<Path>]) -> Vec<Grant> {
    let mut grants = Vec::new();
    let mut grant = |path: &Path| {
        let Ok(below) = path.strip_prefix("/sys") else { return };
        let open = |flags| {
            openat(sys, below, flags | OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
        };
        // A machine has not all of them.
        if let Ok(fd) = open(OFlags::DIRECTORY) {
            grants.push(Grant { fd, right: Right::Read, directory: true });
        } else if let Ok(fd) = open(OFlags::empty()) {
            grants.push(Grant { fd, right: Right::Read, directory: false });
        }
    };
    for (path, _) in system::SYS_READABLE {
        let path = Path::new(path);
        if hidden.iter().any(|hidden| hidden.as_ref().starts_with(path)) {
            PLAIN.iter().for_each(|name| grant(&path.join(name)));
        } else {
            grant(path);
        }
    }
    grants
}
