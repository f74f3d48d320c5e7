//! From a path in the target's terms to one descriptor. Step by step, since `/proc/self` and what lies in
//! `/proc/PID/fd` mean something else to the process that asks the kernel.

use std::collections::VecDeque;
use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{FileType, Mode, OFlags, fstat, fstatfs, openat, readlinkat};
use rustix::io::{Errno, Result};

use super::target::Target;

/// path_resolution(7).
const MAX_LINKS: usize = 40;
const PROC_SUPER_MAGIC: u64 = 0x9fa0;
/// The inode number of the root of every proc file system (PROC_ROOT_INO, linux/proc_fs.h).
const PROC_ROOT_INO: u64 = 1;

/// Opens with `O_PATH`. `follow` is about a link in the last place.
pub fn resolve(target: &Target<'_>, directory: i32, path: &CString, follow: bool) -> Result<OwnedFd> {
    let bytes = path.as_bytes();
    if bytes.is_empty() {
        return Err(Errno::NOENT);
    }
    let mut here = if bytes.starts_with(b"/") { target.root()? } else { target.directory(directory)? };
    let mut left = names(bytes);
    let mut links = 0;
    while let Some(name) = left.pop_front() {
        let last = left.is_empty();
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let next = openat(&here, OsStr::from_bytes(&name), flags, Mode::empty())?;
        let is_link = FileType::from_raw_mode(fstat(&next)?.st_mode) == FileType::Symlink;
        if !is_link || last && !follow {
            here = next;
            continue;
        }
        links += 1;
        if links > MAX_LINKS {
            return Err(Errno::LOOP);
        }
        if is_proc(&here)? {
            here = follow_proc(target, here, &name)?;
            continue;
        }
        let to = readlinkat(&next, "", Vec::new())?.into_bytes();
        if to.starts_with(b"/") {
            here = target.root()?;
        }
        let mut ahead = names(&to);
        ahead.append(&mut left);
        left = ahead;
    }
    target.still_there()?;
    Ok(here)
}

/// A trailing slash asks for a directory, as the kernel has it: an empty last name becomes `.`.
fn names(path: &[u8]) -> VecDeque<Vec<u8>> {
    let mut names: VecDeque<Vec<u8>> =
        path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect();
    if path.ends_with(b"/") {
        names.push_back(b".".to_vec());
    }
    names
}

fn is_proc(fd: &OwnedFd) -> Result<bool> {
    Ok(fstatfs(fd)?.f_type as u64 == PROC_SUPER_MAGIC)
}

/// `self` and `thread-self` are the target's; the other links in /proc lead straight to an object, and are
/// followed only in the target's own directories.
fn follow_proc(target: &Target<'_>, here: OwnedFd, name: &[u8]) -> Result<OwnedFd> {
    let open = |from: &OwnedFd, path: &str| {
        openat(from, path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
    };
    let group = target.group()?;
    if fstat(&here)?.st_ino == PROC_ROOT_INO {
        return match name {
            b"self" => open(&here, &group.to_string()),
            b"thread-self" => open(&here, &format!("{group}/task/{}", target.thread)),
            // `mounts` and `net` are plain links below `self`.
            _ => {
                let own = open(&here, &group.to_string())?;
                openat(&own, OsStr::from_bytes(name), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            }
        };
    }
    if !is_own(group, &here)? {
        return Err(Errno::ACCESS);
    }
    openat(&here, OsStr::from_bytes(name), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

/// Whether a directory of /proc belongs to the target: its path, as the kernel gives it, goes through the
/// target's number.
fn is_own(group: i32, directory: &OwnedFd) -> Result<bool> {
    let path = super::scope::path_of(directory.as_fd())?;
    let mut parts = path.split(|&byte| byte == b'/').skip_while(|part| *part != b"proc").skip(1);
    let group = group.to_string();
    Ok(parts.next() == Some(group.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubled_slashes_are_one_and_a_trailing_one_asks_for_a_directory() {
        assert_eq!(names(b"//a///b"), [b"a".to_vec(), b"b".to_vec()]);
        assert_eq!(names(b"a/"), [b"a".to_vec(), b".".to_vec()]);
        assert!(names(b"/").iter().eq([b".".as_slice()]));
    }
}
