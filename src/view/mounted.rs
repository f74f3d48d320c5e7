//! Where else a tree is mounted: by the table of mounts, since no path tells.

use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, StatxFlags, statx};

use super::caller::unescape;
use super::trace::{Traced, trace};

/// One line of mountinfo (proc_pid_mountinfo(5)).
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    id: u64,
    /// Of the whole file system, also where its parts have numbers of their own (btrfs).
    device: Vec<u8>,
    /// What of the file system is mounted.
    root: PathBuf,
    at: PathBuf,
}

pub struct Mounts(Vec<Mount>);

impl Mounts {
    pub fn parse(text: &[u8]) -> Mounts {
        let line = |line: &[u8]| {
            let mut fields = line.split(|&byte| byte == b' ');
            let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
            let device = fields.nth(1)?.to_owned();
            Some(Mount { id, device, root: unescape(fields.next()?), at: unescape(fields.next()?) })
        };
        Mounts(text.split(|&byte| byte == b'\n').filter_map(line).collect())
    }

    /// The other paths by which what was traced, or a part of it, can be reached.
    pub fn other_ways(&self, to: &Traced) -> Vec<Traced> {
        let Some(own) = mount_of(to).and_then(|id| self.0.iter().find(|mount| mount.id == id)) else {
            return Vec::new();
        };
        let Ok(below) = to.path.strip_prefix(&own.at) else { return Vec::new() };
        let inner = join(&own.root, below);
        let others = self.0.iter().filter(|other| other.device == own.device && other.id != own.id);
        others
            .filter_map(|other| {
                let traced = trace(&other.way(&inner)?).ok()?;
                // Unless another mount is on top there.
                (mount_of(&traced) == Some(other.id)).then_some(traced)
            })
            .collect()
    }
}

impl Mount {
    /// Where this mount shows what lies at a path of its file system, or a part of that.
    fn way(&self, inner: &Path) -> Option<PathBuf> {
        match inner.strip_prefix(&self.root) {
            Ok(below) => Some(join(&self.at, below)),
            Err(_) => self.root.starts_with(inner).then(|| self.at.clone()),
        }
    }
}

fn mount_of(traced: &Traced) -> Option<u64> {
    statx(&traced.fd, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok().map(|found| found.stx_mnt_id)
}

/// An empty end would leave a slash, which asks for a directory.
fn join(path: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() { path.to_owned() } else { path.join(below) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_the_file_system_is_found_through_every_mount_that_shows_it() {
        let mounts = Mounts::parse(
            b"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n30 22 8:1 /srv /mnt/a\\040b rw shared:1 - ext4 /dev/sda1 rw\n\
              31 22 8:1 /srv/pay/deep /deep rw - ext4 /dev/sda1 rw\n32 22 8:1 /home /h rw - ext4 /dev/sda1 rw\nnot a line\n",
        );
        let ways: Vec<Option<PathBuf>> =
            mounts.0.iter().map(|mount| mount.way(Path::new("/srv/pay"))).collect();
        let way = |path: &str| Some(PathBuf::from(path));
        assert_eq!(ways, [way("/srv/pay"), way("/mnt/a b/pay"), way("/deep"), None]);
        assert_eq!(mounts.0[1].way(Path::new("/srv")), way("/mnt/a b"));
    }
}
