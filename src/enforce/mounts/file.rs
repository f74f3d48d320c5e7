//! Files and directories in the private tmpfs.

use std::io::{self, Write as _};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid, chownat, mkdirat, mknodat, openat};
use rustix::io::Errno;

use crate::enforce::kept::Identity;
use crate::plan::Plan;

pub fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

/// Who has to own what is made, where that is not who makes it.
pub fn identity(plan: &Plan) -> Identity {
    if !plan.process.switch_user {
        return (None, None);
    }
    (Some(Uid::from_raw(plan.process.uid)), Some(Gid::from_raw(plan.process.gid)))
}

/// Fails where there is one.
pub fn directory(at: &OwnedFd, path: &Path, mode: u32, (uid, gid): Identity) -> rustix::io::Result<()> {
    mkdirat(at, path, Mode::from_raw_mode(mode))?;
    if uid.is_some() {
        chownat(at, path, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
    }
    Ok(())
}

pub fn write_file(
    directory: BorrowedFd<'_>,
    path: &Path,
    bytes: &[u8],
    mode: u32,
    owner: Identity,
) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = match openat(directory, path, flags, Mode::from_raw_mode(mode)) {
        // A name that is there already, in a tree of our own, is a mount point of an earlier entry.
        Err(Errno::EXIST) => return Ok(()),
        other => other?,
    };
    let mut file = std::fs::File::from(fd);
    file.write_all(bytes)?;
    if owner != (None, None) {
        rustix::fs::fchown(&file, owner.0, owner.1)?;
    }
    Ok(())
}

/// Made without being opened.
pub fn empty_file(directory: &OwnedFd, path: &Path, mode: u32) -> io::Result<()> {
    match mknodat(directory, path, FileType::RegularFile, Mode::from_raw_mode(mode), 0) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
