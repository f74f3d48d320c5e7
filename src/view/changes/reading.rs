//! One file or link of a tree, reached from a descriptor of its directory and never by a link, and never more of it
//! than is asked for.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Statx, openat2};

const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

pub fn open(dir: BorrowedFd<'_>, path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    openat2(dir, path, flags | OFlags::CLOEXEC, Mode::empty(), BENEATH)
}

/// A directory as a start for further calls, and the name in it.
pub fn holder<'a>(dir: BorrowedFd<'_>, path: &'a Path) -> rustix::io::Result<(OwnedFd, &'a OsStr)> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let fd = open(dir, parent, OFlags::PATH | OFlags::DIRECTORY)?;
    Ok((fd, path.file_name().unwrap_or_default()))
}

pub fn target(dir: BorrowedFd<'_>, path: &Path) -> io::Result<Vec<u8>> {
    let (parent, name) = holder(dir, path)?;
    Ok(rustix::fs::readlinkat(parent, name, Vec::new())?.into_bytes())
}

/// At most so many bytes, and whether that is all. Never waits: what was a file a moment ago may be a FIFO.
pub fn read(dir: BorrowedFd<'_>, path: &Path, most: u64) -> io::Result<(Vec<u8>, bool)> {
    let mut contents = Vec::new();
    let fd = open(dir, path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
    if !FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode).is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut file = File::from(fd);
    // It may grow meanwhile.
    file.by_ref().take(most).read_to_end(&mut contents)?;
    let whole = (contents.len() as u64) < most || file.read(&mut [0])? == 0;
    Ok((contents, whole))
}

/// Of a file that was not read to its end, the size and what nobody can set tell of the rest.
pub fn digest(stat: &Statx, contents: &[u8], whole: bool) -> [u8; 32] {
    let mut hash = hmac_sha256::Hash::new();
    hash.update(stat.stx_mode.to_ne_bytes());
    if !whole {
        hash.update(stat.stx_ino.to_ne_bytes());
        hash.update(stat.stx_size.to_ne_bytes());
        hash.update(stat.stx_ctime.tv_sec.to_ne_bytes());
        hash.update(stat.stx_ctime.tv_nsec.to_ne_bytes());
    }
    hash.update(contents);
    hash.finalize()
}
