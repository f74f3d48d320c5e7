//! For root as the caller: system trees in which root's files belong to nobody, so that uid 0 without capabilities
//! reads there only what everybody may.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{mounts::clone, namespaces};
use crate::plan::{Namespace, Plan};
use crate::sys::{self, MountAttr};
use crate::view::inside::Veils;
use crate::view::{Backing, Source, View};

const IDMAP: u64 = 0x0010_0000;

/// Trees in which administrators keep secrets; the rest of /usr is what the distribution ships to everybody, and
/// walking it would cost a second.
const WALKED: &[&str] = &["/etc", "/opt", "/usr/local", "/usr/etc", "/var/lib/dpkg", "/var/lib/rpm"];

pub struct Veil {
    /// None where this process may not make idmapped mounts.
    map: Option<OwnedFd>,
}

impl Veil {
    pub fn make(plan: &Plan) -> Option<Veil> {
        // mount_setattr(2): an idmapped mount needs CAP_SYS_ADMIN over the file system's own user namespace.
        let map = if plan.has(Namespace::User) { None } else { namespaces::nobody_map().ok() };
        Some(Veil { map })
    }

    /// Turns root's files into nobody's on a clone, if its file systems can do that (each is asked, and all is set
    /// or nothing), and sets these flags in any case.
    pub fn put_on(&self, tree: &OwnedFd, flags: u64) -> io::Result<()> {
        let plain = MountAttr { attr_set: flags, ..MountAttr::default() };
        let set = |attr: &MountAttr| sys::mount_setattr(tree.as_fd(), libc::AT_RECURSIVE, attr);
        let Some(map) = &self.map else { return set(&plain) };
        let mapped =
            MountAttr { attr_set: flags | IDMAP, userns_fd: map.as_raw_fd() as u64, ..MountAttr::default() };
        // A refusal leaves the clone as it was; `unreadable` sees that and covers instead.
        set(&mapped).or_else(|_| set(&plain))
    }
}

/// What will be mapped and what covered, for whoever asks and does not run. Needs the capabilities of a run.
pub fn foresee(plan: &Plan, view: &View) -> io::Result<Veils> {
    let mut veils = Veils::default();
    let veil = if plan.world.veil && plan.has(Namespace::Mount) { Veil::make(plan) } else { None };
    for entry in view.entries.values().filter(|entry| entry.place.backing == Backing::Veiled) {
        let Source::Object { fd, .. } = &entry.source else { continue };
        let path = &entry.place.path;
        match &veil {
            Some(veil) => {
                let tree = clone::open_tree_clone(fd)?;
                veil.put_on(&tree, 0)?;
                if rustix::fs::fstat(&tree)?.st_uid != 0 {
                    veils.mapped.push(path.clone());
                }
                veils.covered.extend(unreadable(&tree, path)?);
            }
            None => veils.covered.extend(unreadable(fd, path)?),
        }
    }
    Ok(veils)
}

/// What others cannot read, where no map could be put on: to be covered.
pub fn unreadable(mount: &OwnedFd, at: &Path) -> io::Result<Vec<(PathBuf, bool)>> {
    let mut found = Vec::new();
    // The map shows at the root of the tree: it is root's nowhere but where the map is missing.
    if rustix::fs::fstat(mount)?.st_uid != 0 {
        return Ok(found);
    }
    let base = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
    let mut left: Vec<PathBuf> = match WALKED.iter().find(|walked| Path::new(walked).starts_with(at)) {
        _ if WALKED.iter().any(|walked| at.starts_with(walked)) => vec![PathBuf::new()],
        Some(_) => WALKED
            .iter()
            .filter_map(|walked| Path::new(walked).strip_prefix(at).ok())
            .map(Path::to_owned)
            .collect(),
        None => return Ok(found),
    };
    while let Some(directory) = left.pop() {
        let Ok(entries) = fs::read_dir(base.join(&directory)) else { continue };
        for entry in entries {
            let entry = entry?;
            let metadata = entry.metadata()?;
            let name = directory.join(entry.file_name());
            let wanted = if metadata.is_dir() { 0o005 } else { 0o004 };
            if metadata.is_symlink() {
            } else if metadata.mode() & wanted != wanted {
                found.push((at.join(name), metadata.is_dir()));
            } else if metadata.is_dir() {
                left.push(name);
            }
        }
    }
    Ok(found)
}
