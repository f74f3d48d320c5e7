//! The only room with `unsafe`: calls that nix, rustix, landlock and caps do not have. Each wrapper is a few
//! lines, holds no policy, returns `io::Result` and owns the descriptors it makes.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{BorrowedFd, RawFd};

/// A descriptor that the caller of confine handed in, by number; EBADF when it is not open.
pub fn borrow(fd: RawFd) -> io::Result<BorrowedFd<'static>> {
    // SAFETY: fcntl takes any number; F_GETFD changes nothing and has no third argument.
    if unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `fd` is open, hence not -1, and it was inherited: nothing in confine owns it, so nothing closes it
    // while the process lives.
    Ok(unsafe { BorrowedFd::borrow_raw(fd) })
}

/// close_range(2) with CLOSE_RANGE_CLOEXEC, which is Linux 5.11.
pub fn close_range_on_exec(first: libc::c_uint) -> io::Result<()> {
    // SAFETY: three integers; the flag closes nothing now, so no owned descriptor is pulled from its owner.
    match unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) }
    {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
