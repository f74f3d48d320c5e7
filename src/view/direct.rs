//! The view of a host on which nothing can be mounted: the host's own paths, as far as Landlock can grant them.
//! What has no meaning there is taken out, so that the plan shows what will be.

use std::fs;
use std::path::{Path, PathBuf};

use super::mounted::Mounts;
use super::{Access, Backing, Entry, Origin, Source, View, system};
use crate::error::Result;

pub fn reduce(view: &mut View, real_home: &Path) -> Result<()> {
    for (path, mut entry) in std::mem::take(&mut view.entries) {
        let place = &mut entry.place;
        match place.backing {
            // What is copied into HOME goes where HOME is.
            Backing::Copy if view.state.is_some() && matches!(entry.source, Source::File(_)) => {
                let Ok(below) = path.strip_prefix(real_home) else { continue };
                place.path = view.home.join(below);
            }
            // Private places, other copies and pseudo-terminals have nowhere to be.
            Backing::Fresh { .. } | Backing::Copy | Backing::Terminals => continue,
            Backing::Itself => {
                if place.access == Access::Read && place.origin == Origin::Found {
                    view.unguarded.push(path);
                }
                continue;
            }
            // Processes come and go below /proc, so it cannot be granted by parts.
            Backing::Cover { .. } if path.starts_with("/proc") => continue,
            Backing::Layer | Backing::KeptLayer => {
                place.backing = Backing::Bind;
                place.access = Access::Read;
                place.reason.push_str("; read-only without a view");
            }
            Backing::Terminal => name_terminal(&mut entry),
            _ => {}
        }
        view.entries.insert(entry.place.path.clone(), entry);
    }
    for (path, reason) in system::SYS_HIDDEN.iter().filter(|(path, _)| Path::new(path).exists()) {
        view.table(*path, Access::Hidden, Backing::Cover { directory: true }, reason, Source::None);
    }
    view.mounted = mounted_inside(view)?;
    Ok(())
}

/// A terminal keeps the name that it has on the host.
fn name_terminal(entry: &mut Entry) {
    use std::os::fd::AsRawFd;
    if let Source::Object { fd, .. } = &entry.source
        && let Ok(path) = fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()))
    {
        entry.place.path = path;
    }
}

/// Mount points beneath writable roots that are not roots themselves, and could be written.
fn mounted_inside(view: &View) -> Result<Vec<PathBuf>> {
    let mounts = Mounts::read()?;
    let writable = view.roots.iter().filter(|root| root.writable);
    let inside = writable.flat_map(|root| mounts.writable_below(&root.path));
    Ok(inside.filter(|path| !view.entries.contains_key(*path)).map(Path::to_owned).collect())
}
