//! Calls on sockets, for the broker.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::check;

/// connect(2) with an address as it stood in another process's memory.
pub fn connect(socket: BorrowedFd<'_>, address: &[u8]) -> io::Result<()> {
    let length = address.len() as libc::socklen_t;
    // SAFETY: the descriptor is open while borrowed, and the kernel reads `length` bytes of the slice.
    check(unsafe { libc::connect(socket.as_raw_fd(), address.as_ptr().cast(), length) }.into()).map(drop)
}

/// The state of a TCP socket (net/tcp_states.h), the first byte of tcp(7) TCP_INFO.
pub fn tcp_state(socket: BorrowedFd<'_>) -> io::Result<u8> {
    let (mut state, mut length) = (0u8, 1);
    // SAFETY: the descriptor is open while borrowed, and the kernel writes at most `length` bytes, which is one.
    check(
        unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                (&raw mut state).cast(),
                &mut length,
            )
        }
        .into(),
    )
    .map(|_| state)
}

/// Lets a socket use one network device only, socket(7) SO_BINDTODEVICE; for one that has none yet a right of
/// everybody since Linux 5.7.
pub fn bind_to_device(socket: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    let bytes = name.to_bytes_with_nul();
    // SAFETY: the descriptor is open while borrowed, and the kernel reads as many bytes as the name has.
    check(
        unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_BINDTODEVICE,
                bytes.as_ptr().cast(),
                bytes.len() as libc::socklen_t,
            )
        }
        .into(),
    )
    .map(drop)
}
