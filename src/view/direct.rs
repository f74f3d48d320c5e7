//! The view of a host on which nothing can be mounted: the host's own paths, as far as Landlock can grant them.
//! What has no meaning there is taken out, so that the plan shows what will be.

use std::fs;
use std::path::{Path, PathBuf};

use super::caller::unescape;
use super::{Access, Backing, Entry, Origin, Source, View, system};
use crate::error::{Error, Result};

pub fn reduce(view: &mut View) -> Result<()> {
    for (path, mut entry) in std::mem::take(&mut view.entries) {
        let place = &mut entry.place;
        match place.backing {
            // Private places, copies and pseudo-terminals have nowhere to be.
            Backing::Fresh { .. } | Backing::Copy | Backing::Terminals => continue,
            Backing::Itself => {
                if place.access == Access::Read && place.origin == Origin::Found {
                    view.unguarded.push(path);
                }
                continue;
            }
            // Processes come and go below /proc, so it cannot be granted by parts.
            Backing::Cover { .. } if path.starts_with("/proc") => continue,
            Backing::Layer => {
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

/// Mount points beneath writable roots that are not roots themselves.
fn mounted_inside(view: &View) -> Result<Vec<PathBuf>> {
    const LIST: &str = "/proc/self/mountinfo";
    let list = fs::read(LIST).map_err(|error| Error::path("read", LIST, error))?;
    let inside = |path: &PathBuf| {
        !view.entries.contains_key(path)
            && view.roots.iter().any(|root| root.writable && path.starts_with(&root.path))
    };
    Ok(mount_points(&list).filter(inside).collect())
}

/// The fifth column of proc_pid_mountinfo(5).
fn mount_points(list: &[u8]) -> impl Iterator<Item = PathBuf> + '_ {
    list.split(|&byte| byte == b'\n').filter_map(|line| line.split(|&byte| byte == b' ').nth(4).map(unescape))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_and_backslashes_in_mount_points_are_read_back() {
        let list =
            b"36 35 98:0 /root /a\\040b\\134c rw - ext4 /dev/x rw\n37 35 98:0 / /plain rw - ext4 x rw\n";
        let found: Vec<PathBuf> = mount_points(list).collect();
        assert_eq!(found, [PathBuf::from("/a b\\c"), PathBuf::from("/plain")]);
    }
}
