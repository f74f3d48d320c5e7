//! connect(2) on a UNIX socket, performed on the caller's own socket and on the one socket file that was judged.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd};

use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, sockopt};

use super::target::Target;
use super::waiting::Waiting;
use super::{Answer, Scope, errno, resolve};
use crate::sys::{self, Notification};

/// sizeof(struct sockaddr_storage).
const LONGEST: usize = 128;

pub fn perform(target: &Target<'_>, scope: &Scope, waiting: &Waiting, call: &Notification) -> Answer {
    let [number, address, length, ..] = call.arguments;
    let length = length as u32 as usize;
    if length > LONGEST {
        return Err(Errno::INVAL);
    }
    let socket = target.socket(number as i32)?;
    let address = target.read(address, length)?;
    // The family of the socket decides which addresses it can be connected to.
    match sockopt::socket_domain(&socket)? {
        AddressFamily::UNIX => {}
        AddressFamily::INET | AddressFamily::INET6 => {
            if !ends_connection(&address) {
                scope.may_reach(port(&address)?)?;
            }
            target.still_there()?;
            return waiting.interruptible(call, || {
                sys::connect(socket.as_fd(), &address).map_err(|error| errno(&error))
            });
        }
        _ => return Err(Errno::ACCESS),
    }
    if !matches!(sockopt::socket_type(&socket)?, SocketType::STREAM | SocketType::SEQPACKET) {
        return Err(Errno::ACCESS);
    }
    let path = path(&address)?;
    let file = resolve::resolve(target, libc::AT_FDCWD, &path, true)?;
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::Socket {
        return Err(Errno::CONNREFUSED);
    }
    scope.may_connect(file.as_fd())?;
    target.still_there()?;
    let address = SocketAddrUnix::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    waiting.interruptible(call, || rustix::net::connect(&socket, &address))
}

/// AF_UNSPEC: reaches nobody (connect(2)).
fn ends_connection(address: &[u8]) -> bool {
    address.starts_with(&AddressFamily::UNSPEC.as_raw().to_ne_bytes())
}

/// The port of a `sockaddr_in` or `sockaddr_in6` (ip(7), ipv6(7)): third and fourth byte of both.
fn port(address: &[u8]) -> rustix::io::Result<u16> {
    match address {
        [_, _, high, low, ..] => Ok(u16::from_be_bytes([*high, *low])),
        _ => Err(Errno::INVAL),
    }
}

/// The path in a `sockaddr_un` (unix(7)). An abstract name cannot be told from one of another program's; the other
/// layers keep those apart, but what the broker does is not under them.
fn path(address: &[u8]) -> rustix::io::Result<CString> {
    let (family, name) = address.split_at_checked(2).ok_or(Errno::INVAL)?;
    if family != AddressFamily::UNIX.as_raw().to_ne_bytes() {
        return Err(Errno::INVAL);
    }
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    match name.get(..end) {
        Some(name) if !name.is_empty() => CString::new(name).map_err(|_| Errno::INVAL),
        _ => Err(Errno::CONNREFUSED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_path_is_taken_from_an_address() {
        assert_eq!(path(b"\x01\x00/a/b\0junk"), Ok(c"/a/b".to_owned()));
        assert_eq!(path(b"\x01\x00rel"), Ok(c"rel".to_owned()));
        assert_eq!(path(b"\x01\x00\0abstract"), Err(Errno::CONNREFUSED));
        assert_eq!(path(b"\x02\x00\x00\x50\x7f\x00\x00\x01"), Err(Errno::INVAL));
        assert_eq!(path(b"\x01"), Err(Errno::INVAL));
    }
}
