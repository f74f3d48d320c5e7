//! connect(2) on a UNIX socket, performed on the caller's own socket and on the one socket file that was judged.

use std::ffi::CString;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};

use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, sockopt};

use super::connecting::Connecting;
use super::target::Target;
use super::waiting::Waiting;
use super::{Answer, Scope, errno, resolve};
use crate::sys::{self, Notification};

/// sizeof(struct sockaddr_storage).
const LONGEST: usize = 128;

pub fn perform(
    target: &Target<'_>,
    scope: &Scope,
    connecting: &Connecting,
    waiting: &Waiting,
    call: &Notification,
) -> Answer {
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
                scope.may_reach(endpoint(&address)?)?;
            }
            target.still_there()?;
            let _begun = connecting.begin(&socket)?;
            return waiting.interruptible(call, || {
                sys::socket::connect(socket.as_fd(), &address).map_err(|error| errno(&error))
            });
        }
        _ => return Err(Errno::ACCESS),
    }
    // Datagram sockets can be made only where they are allowed; what is connected is judged all the same.
    match sockopt::socket_type(&socket)? {
        SocketType::STREAM | SocketType::SEQPACKET => {}
        SocketType::DGRAM if ends_connection(&address) => {
            return sys::socket::connect(socket.as_fd(), &address).map_err(|error| errno(&error));
        }
        SocketType::DGRAM => {}
        _ => return Err(Errno::ACCESS),
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

/// What a `sockaddr_in` or `sockaddr_in6` says (ip(7), ipv6(7)). The shortest that the kernel takes: the whole of the
/// one, and the other without its last field (SIN6_LEN_RFC2133).
pub fn endpoint(address: &[u8]) -> rustix::io::Result<SocketAddr> {
    let family = address.get(..2).ok_or(Errno::INVAL)?;
    let port = address.get(2..4).and_then(|port| port.try_into().ok()).ok_or(Errno::INVAL)?;
    let host = if family == AddressFamily::INET.as_raw().to_ne_bytes() && address.len() >= 16 {
        address.get(4..8).and_then(|host| <[u8; 4]>::try_from(host).ok()).map(IpAddr::from)
    } else if family == AddressFamily::INET6.as_raw().to_ne_bytes() && address.len() >= 24 {
        address.get(8..24).and_then(|host| <[u8; 16]>::try_from(host).ok()).map(IpAddr::from)
    } else {
        None
    };
    Ok(SocketAddr::new(host.ok_or(Errno::INVAL)?, u16::from_be_bytes(port)))
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
    fn an_address_is_read_as_the_kernel_reads_it() {
        let read = |bytes: &[u8]| endpoint(bytes).map(|address| address.to_string());
        let four = [2, 0, 0, 80, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(read(&four), Ok("127.0.0.1:80".to_owned()));
        assert_eq!(read(&four[..15]), Err(Errno::INVAL));
        let mut six = [0; 28];
        (six[0], six[3], six[23]) = (10, 80, 1);
        assert_eq!(read(&six), Ok("[::1]:80".to_owned()));
        assert_eq!(read(&six[..24]), Ok("[::1]:80".to_owned()));
        assert_eq!(read(&six[..23]), Err(Errno::INVAL));
        six[0] = 1;
        assert_eq!(read(&six), Err(Errno::INVAL));
    }

    #[test]
    fn only_a_path_is_taken_from_an_address() {
        assert_eq!(path(b"\x01\x00/a/b\0junk"), Ok(c"/a/b".to_owned()));
        assert_eq!(path(b"\x01\x00rel"), Ok(c"rel".to_owned()));
        assert_eq!(path(b"\x01\x00\0abstract"), Err(Errno::CONNREFUSED));
        assert_eq!(path(b"\x02\x00\x00\x50\x7f\x00\x00\x01"), Err(Errno::INVAL));
        assert_eq!(path(b"\x01"), Err(Errno::INVAL));
    }
}
