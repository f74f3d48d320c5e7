//! Whether a file may be policy: it must belong to the user or to root, and so must every directory and link that
//! leads to it, and nobody else may write to any of them. Judged on the descriptor that is then read.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Stat, StatVfsMountFlags, fstatvfs, statat, statvfs};

use crate::error::{Error, Result, paste, show};
use crate::view::trace::{Traced, file_type};

/// A policy of this size is a mistake, such as the path of a disk image.
const MAX_BYTES: u64 = 256 << 10;

/// How root's files look where root is not mapped (user_namespaces(7)), and how confine shows them to root.
const NOBODY: u32 = 65534;

/// Who may have written a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Writers {
    pub user: u32,
    /// The administrator's place: root alone. Inside a boundary, where nobody can write to /etc, root's files look
    /// like nobody's.
    pub administrator: bool,
}

impl Writers {
    fn owns(self, owner: u32, read_only: impl Fn() -> bool) -> bool {
        owner == 0
            || (!self.administrator && owner == self.user)
            || (self.administrator && owner == NOBODY && read_only())
    }
}

/// The text, once the file and the way to it are found to be trusted. `named` is for messages.
pub fn read(named: &Path, traced: &Traced, writers: Writers) -> Result<String> {
    let cannot = |error: io::Error| Error::path("read policy file", named, error);
    let stat = traced.stat().map_err(cannot)?;
    if file_type(&stat) != FileType::RegularFile {
        return Err(refuse(named, "is not a regular file"));
    }
    let read_only =
        || fstatvfs(&traced.fd).is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::RDONLY));
    if !writers.owns(stat.st_uid, read_only) {
        return Err(owned_by_another(named, named, stat.st_uid, writers));
    }
    // The group bits are the mask of an ACL as well (acl(5)).
    if stat.st_mode & 0o022 != 0 {
        return Err(open_to_others(named, named));
    }
    // The other name may lie in a workspace. In the administrator's place none of root's files can be reached so by
    // a user, nor on a read-only file system, such as a store that keeps equal files once.
    let others = stat.st_uid == writers.user && !(writers.administrator && read_only());
    if others && stat.st_nlink > 1 {
        return Err(refuse(named, "has another name, a hard link").with_hint(format!(
            "make it a file of its own: `cp -p {0} {0}.new && mv {0}.new {0}`",
            paste(named.as_os_str())
        )));
    }
    way(named, &traced.path, writers)?;
    links(named, traced, writers)?;
    let bytes = contents(&traced.fd).map_err(cannot)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(refuse(named, "is larger than 256 KiB"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|&&byte| byte == b'\n').count() + 1;
        Error::usage(format!("{}, line {line}: not UTF-8", show(named.as_os_str())))
    })
}

/// A directory that links lead to, where no file was found: whoever chose where they lead chose that there is none.
pub fn directory(named: &Path, traced: &Traced, writers: Writers) -> Result<()> {
    way(named, &traced.path.join("-"), writers)?;
    links(named, traced, writers)
}

fn links(named: &Path, traced: &Traced, writers: Writers) -> Result<()> {
    let cannot = |error: io::Error| Error::path("read policy file", named, error);
    for (link, _) in &traced.links {
        let stat = statat(CWD, link, AtFlags::SYMLINK_NOFOLLOW).map_err(|errno| cannot(errno.into()))?;
        if !writers.owns(stat.st_uid, || is_read_only(link)) {
            return Err(owned_by_another(named, link, stat.st_uid, writers));
        }
        way(named, link, writers)?;
    }
    Ok(())
}

/// Every directory above. One that all may write to has to be sticky, like /tmp: there nobody moves what belongs to
/// another, and what lies in it was found to belong to the user.
fn way(named: &Path, path: &Path, writers: Writers) -> Result<()> {
    for directory in path.ancestors().skip(1) {
        let stat = stat_directory(directory).map_err(|error| Error::path("look at", directory, error))?;
        // The root of a boundary is whoever's that made it; no name can be changed in it.
        let user_root = directory == Path::new("/") && stat.st_uid == writers.user;
        if !user_root && !writers.owns(stat.st_uid, || is_read_only(directory)) {
            return Err(owned_by_another(named, directory, stat.st_uid, writers));
        }
        if stat.st_mode & 0o022 != 0 && stat.st_mode & 0o1000 == 0 {
            return Err(open_to_others(named, directory));
        }
    }
    Ok(())
}

fn stat_directory(path: &Path) -> io::Result<Stat> {
    Ok(statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?)
}

fn is_read_only(path: &Path) -> bool {
    statvfs(path).is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// Through the descriptor that was judged, and one byte more than is allowed.
fn contents(found: &OwnedFd) -> io::Result<Vec<u8>> {
    let file = File::open(format!("/proc/self/fd/{}", found.as_raw_fd()))?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn refuse(named: &Path, reason: &str) -> Error {
    Error::usage(format!("policy file {} {reason}", show(named.as_os_str())))
}

fn owned_by_another(named: &Path, what: &Path, owner: u32, writers: Writers) -> Error {
    let who = if writers.administrator { "root" } else { "you or root" };
    let error = match named == what {
        true => refuse(named, &format!("belongs to uid {owner}, not to {who}")),
        false => refuse(
            named,
            &format!(
                "is reached through {}, which belongs to uid {owner}, not to {who}",
                show(what.as_os_str())
            ),
        ),
    };
    match writers.administrator {
        true => error.with_hint(format!("as root: `chown -h root: {}`", paste(what.as_os_str()))),
        false => error.with_hint("keep policy files in directories that are yours alone"),
    }
}

fn open_to_others(named: &Path, what: &Path) -> Error {
    let error = match named == what {
        true => refuse(named, "can be written by others"),
        false => refuse(named, &format!("lies below {}, which others can write to", show(what.as_os_str()))),
    };
    error.with_hint(format!("chmod go-w {}", paste(what.as_os_str())))
}
