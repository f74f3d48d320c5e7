//! What the arguments of a call name: read from the memory of who makes it, and resolved from where that is.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::calls::Call;
use crate::sys::ptrace;
use crate::view::trace::normalise;

/// The smallest of all architectures.
const PAGE: u64 = 4096;

/// The path that a call names, from the root of the view, whose names are those of the host.
pub fn name(thread: i32, call: &Call, directory: Option<u8>, path: u8) -> Option<PathBuf> {
    let directory = directory.map_or(libc::AT_FDCWD, |index| call.int(index));
    let address = call.argument(path);
    if address == 0 {
        return absolute(thread, directory, OsStr::new(""));
    }
    let bytes = read(thread, address, libc::PATH_MAX as usize)?;
    let end = bytes.iter().position(|&byte| byte == 0)?;
    absolute(thread, directory, OsStr::from_bytes(bytes.get(..end)?))
}

pub fn absolute(thread: i32, directory: i32, path: &OsStr) -> Option<PathBuf> {
    let path = Path::new(path);
    let base = match directory {
        _ if path.is_absolute() => PathBuf::new(),
        libc::AT_FDCWD => fs::read_link(format!("/proc/{thread}/cwd")).ok()?,
        fd => fs::read_link(format!("/proc/{thread}/fd/{fd}")).ok()?,
    };
    let whole = base.join(path);
    whole.is_absolute().then(|| normalise(&whole))
}

/// As much as there is: what follows a string may not be mapped, and the kernel copies whole pieces.
pub fn read(thread: i32, address: u64, length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length];
    let count = match ptrace::read(thread, address, &mut bytes) {
        Ok(count) => count,
        Err(_) => {
            let first = usize::try_from(PAGE - address % PAGE).ok()?.min(length);
            ptrace::read(thread, address, bytes.get_mut(..first)?).ok()?
        }
    };
    bytes.truncate(count);
    (count > 0).then_some(bytes)
}
