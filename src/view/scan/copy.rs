//! A private copy of one file under a new name: contents, owner, extended attributes, mode, times.

use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, SeekFrom, Statx, StatxFlags, Timespec, Timestamps, Uid, XattrFlags,
};
use rustix::io::Errno;

use super::separate::look;
use crate::view::control::Id;

/// A file that is being written gives up after so many copies that did not hold still.
const ATTEMPTS: u32 = 3;

pub fn file(dir: BorrowedFd<'_>, name: &OsStr, original: Id, new: &OsStr) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let source = rustix::fs::openat(dir, name, flags, Mode::empty())?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let copy = rustix::fs::openat(dir, new, flags, Mode::RUSR | Mode::WUSR)?;
    for _ in 0..ATTEMPTS {
        let before = stat(source.as_fd())?;
        if Id::of(&before) != original {
            return Err(io::Error::other("it was replaced meanwhile"));
        }
        rustix::fs::ftruncate(&copy, 0)?;
        contents(&source, &copy, before.stx_size)?;
        metadata(&source, &copy, &before)?;
        rustix::fs::fsync(&copy)?;
        let after = stat(source.as_fd())?;
        let same = |a: &Statx, b: &Statx| {
            let time = |stat: &Statx| (stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec);
            a.stx_size == b.stx_size && time(a) == time(b)
        };
        if same(&before, &after) {
            return Ok(());
        }
    }
    Err(io::Error::other("it is being written to"))
}

pub fn symlink(dir: BorrowedFd<'_>, name: &OsStr, before: &Statx, new: &OsStr) -> io::Result<()> {
    let target = rustix::fs::readlinkat(dir, name, Vec::new())?;
    rustix::fs::symlinkat(target, dir, new)?;
    if look(dir, new)?.stx_uid != before.stx_uid || look(dir, new)?.stx_gid != before.stx_gid {
        let owner = (Uid::from_raw(before.stx_uid), Gid::from_raw(before.stx_gid));
        rustix::fs::chownat(dir, new, Some(owner.0), Some(owner.1), AtFlags::SYMLINK_NOFOLLOW)?;
    }
    rustix::fs::utimensat(dir, new, &times(before), AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(())
}

fn stat(fd: BorrowedFd<'_>) -> io::Result<Statx> {
    Ok(rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)?)
}

/// Shares the blocks where the file system can; holes stay holes.
fn contents(source: &OwnedFd, copy: &OwnedFd, size: u64) -> io::Result<()> {
    if size == 0 || rustix::fs::ioctl_ficlone(copy, source).is_ok() {
        return Ok(());
    }
    rustix::fs::ftruncate(copy, size)?;
    let mut at = 0;
    while at < size {
        let start = match rustix::fs::seek(source, SeekFrom::Data(at)) {
            Ok(start) => start,
            // No data behind this point.
            Err(Errno::NXIO) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let end = rustix::fs::seek(source, SeekFrom::Hole(start))?;
        part(source, copy, start, end)?;
        at = end;
    }
    Ok(())
}

fn part(source: &OwnedFd, copy: &OwnedFd, start: u64, end: u64) -> io::Result<()> {
    let (mut from, mut to) = (start, start);
    while from < end {
        let want = usize::try_from(end - from).unwrap_or(usize::MAX).min(1 << 30);
        match rustix::fs::copy_file_range(source, Some(&mut from), copy, Some(&mut to), want) {
            // It became shorter; the comparison afterwards finds that.
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::XDEV | Errno::PERM) => {
                return by_hand(source, copy, from, end);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn by_hand(source: &OwnedFd, copy: &OwnedFd, mut at: u64, end: u64) -> io::Result<()> {
    let mut buffer = vec![0_u8; 256 * 1024];
    while at < end {
        let want = usize::try_from(end - at).unwrap_or(usize::MAX).min(buffer.len());
        let got = rustix::io::pread(source, &mut buffer[..want], at)?;
        if got == 0 {
            return Ok(());
        }
        let mut written = 0;
        while written < got {
            written += rustix::io::pwrite(copy, &buffer[written..got], at + written as u64)?;
        }
        at += got as u64;
    }
    Ok(())
}

/// Owner first, because that clears setuid bits; times last, because everything else sets them.
fn metadata(source: &OwnedFd, copy: &OwnedFd, before: &Statx) -> io::Result<()> {
    let own = stat(copy.as_fd())?;
    if own.stx_uid != before.stx_uid || own.stx_gid != before.stx_gid {
        let (uid, gid) = (Uid::from_raw(before.stx_uid), Gid::from_raw(before.stx_gid));
        rustix::fs::fchown(copy, Some(uid), Some(gid)).map_err(|error| match error {
            Errno::PERM => io::Error::other("only its owner can copy it with its owner"),
            error => error.into(),
        })?;
    }
    attributes(source, copy)?;
    rustix::fs::fchmod(copy, Mode::from_raw_mode(u32::from(before.stx_mode)))?;
    rustix::fs::futimens(copy, &times(before))?;
    Ok(())
}

fn times(stat: &Statx) -> Timestamps {
    let time =
        |time: rustix::fs::StatxTimestamp| Timespec { tv_sec: time.tv_sec, tv_nsec: time.tv_nsec.into() };
    Timestamps { last_access: time(stat.stx_atime), last_modification: time(stat.stx_mtime) }
}

fn attributes(source: &OwnedFd, copy: &OwnedFd) -> io::Result<()> {
    let mut list = [MaybeUninit::<u8>::uninit(); 64 * 1024];
    let names = match rustix::fs::flistxattr(source, &mut list) {
        Ok((names, _)) => names,
        Err(Errno::OPNOTSUPP) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let mut room = Vec::new();
    for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        // XATTR_SIZE_MAX.
        room.resize(64 * 1024, 0);
        let name = OsString::from(<OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(name));
        let length = rustix::fs::fgetxattr(source, &*name, room.as_mut_slice())?;
        match rustix::fs::fsetxattr(copy, &*name, &room[..length], XattrFlags::empty()) {
            Ok(()) => {}
            // A label is the policy's to give, and the copy has got its own.
            Err(Errno::PERM | Errno::ACCESS | Errno::OPNOTSUPP) if name == "security.selinux" => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
