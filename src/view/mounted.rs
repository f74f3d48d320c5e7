//! What is mounted where: by the table of mounts, since no path tells.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, StatxFlags, statx};

use super::caller::{read_proc, unescape};
use super::trace::{Traced, trace};
use crate::error::{Error, Result};

const TABLE: &str = "/proc/self/mountinfo";

/// One line of mountinfo (proc_pid_mountinfo(5)).
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    id: u64,
    /// What it is mounted on.
    parent: u64,
    /// Of the whole file system, also where its parts have numbers of their own (btrfs).
    device: Vec<u8>,
    /// What of the file system is mounted.
    root: PathBuf,
    at: PathBuf,
    /// By its own flags, whatever those of the file system.
    read_only: bool,
}

pub struct Mounts(Vec<Mount>);

impl Mounts {
    pub fn read() -> Result<Mounts> {
        Ok(Mounts::parse(&read_proc(TABLE).map_err(|error| Error::path("read", TABLE, error))?))
    }

    fn parse(text: &[u8]) -> Mounts {
        let line = |line: &[u8]| {
            let mut fields = line.split(|&byte| byte == b' ');
            let mut number = || std::str::from_utf8(fields.next()?).ok()?.parse().ok();
            let (id, parent) = (number()?, number()?);
            let device = fields.next()?.to_owned();
            let (root, at) = (unescape(fields.next()?), unescape(fields.next()?));
            let read_only = fields.next()?.split(|&byte| byte == b',').any(|flag| flag == b"ro");
            Some(Mount { id, parent, device, root, at, read_only })
        };
        Mounts(text.split(|&byte| byte == b'\n').filter_map(line).collect())
    }

    /// What is mounted below a path and could be written there.
    pub fn writable_below<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = &'a Path> {
        let below = move |mount: &&Mount| !mount.read_only && mount.at != path && mount.at.starts_with(path);
        self.0.iter().filter(below).map(|mount| mount.at.as_path())
    }

    /// Parts of the tree at a path that are mounted onto themselves, as another confine does it with `.git`: nothing
    /// comes from elsewhere with them.
    pub fn continuing(&self, path: &Path) -> Vec<Traced> {
        let continues = |mount: &&Mount| {
            let below = !mount.read_only && mount.at != path && mount.at.starts_with(path);
            below && self.parent_of(mount).is_some_and(|parent| parent.continues_in(mount))
        };
        let seen = |mount: &Mount| {
            let traced = trace(&mount.at).ok()?;
            // Unless another mount is on top there.
            (mount_of(&traced.fd) == Some(mount.id)).then_some(traced)
        };
        self.0.iter().filter(continues).filter_map(seen).collect()
    }

    fn parent_of(&self, mount: &Mount) -> Option<&Mount> {
        self.0.iter().find(|other| other.id == mount.parent)
    }

    /// The other paths by which what is open there, or a part of it, can be reached.
    pub fn other_ways(&self, path: &Path, fd: &OwnedFd) -> Vec<Traced> {
        self.others(path, fd, Mount::way)
    }

    /// The other paths of what was traced itself.
    pub fn other_names(&self, to: &Traced) -> Vec<PathBuf> {
        self.others(&to.path, &to.fd, Mount::name).into_iter().map(|traced| traced.path).collect()
    }

    fn others(&self, path: &Path, fd: &OwnedFd, way: fn(&Mount, &Path) -> Option<PathBuf>) -> Vec<Traced> {
        let Some(own) = mount_of(fd).and_then(|id| self.0.iter().find(|mount| mount.id == id)) else {
            return Vec::new();
        };
        let Ok(below) = path.strip_prefix(&own.at) else { return Vec::new() };
        let inner = join(&own.root, below);
        let others = self.0.iter().filter(|other| other.device == own.device && other.id != own.id);
        others
            .filter_map(|other| {
                let traced = trace(&way(other, &inner)?).ok()?;
                // Unless another mount is on top there.
                (mount_of(&traced.fd) == Some(other.id)).then_some(traced)
            })
            .collect()
    }
}

impl Mount {
    /// What is mounted there is what lies there.
    fn continues_in(&self, mount: &Mount) -> bool {
        let below = mount.at.strip_prefix(&self.at).ok().filter(|below| !below.as_os_str().is_empty());
        mount.device == self.device && below.is_some_and(|below| mount.root == join(&self.root, below))
    }

    /// Where this mount shows what lies at a path of its file system, or a part of that.
    fn way(&self, inner: &Path) -> Option<PathBuf> {
        self.name(inner).or_else(|| self.root.starts_with(inner).then(|| self.at.clone()))
    }

    fn name(&self, inner: &Path) -> Option<PathBuf> {
        inner.strip_prefix(&self.root).ok().map(|below| join(&self.at, below))
    }
}

pub fn mount_of(found: &OwnedFd) -> Option<u64> {
    statx(found, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok().map(|found| found.stx_mnt_id)
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

    #[test]
    fn a_part_that_is_mounted_onto_itself_continues_its_tree_and_no_other_does() {
        let mounts = Mounts::parse(
            b"1 0 8:1 /home/w /w rw - ext4 x rw\n2 1 8:1 /home/w/.git /w/.git rw,nosuid - ext4 x rw\n\
              3 2 8:1 /home/w/.git/hooks /w/.git/hooks ro,nosuid - ext4 x rw\n4 1 8:1 /home/v /w/v rw - ext4 x rw\n\
              5 1 8:2 /home/w/d /w/d rw - ext4 y rw\n6 2 8:1 /home/w/.git /w/.git rw - ext4 x rw\n",
        );
        let continuing: Vec<u64> = mounts
            .0
            .iter()
            .filter(|mount| mounts.parent_of(mount).is_some_and(|parent| parent.continues_in(mount)))
            .map(|mount| mount.id)
            .collect();
        assert_eq!(continuing, [2, 3]);
        let writable: Vec<&Path> = mounts.writable_below(Path::new("/w")).collect();
        assert_eq!(writable, ["/w/.git", "/w/v", "/w/d", "/w/.git"].map(Path::new));
    }

    #[test]
    fn blanks_and_backslashes_in_mount_points_are_read_back() {
        let mounts = Mounts::parse(b"36 35 98:0 /root /a\\040b\\134c rw - ext4 /dev/x rw\n");
        assert_eq!(mounts.0[0].at, Path::new("/a b\\c"));
    }
}
