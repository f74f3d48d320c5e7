//! Attempts on sockets of every kind, and on System V and POSIX objects.

use std::ffi::CString;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{self as unix, UnixDatagram, UnixListener, UnixStream};
use std::time::Duration;

use rustix::net::{
    AddressFamily, Protocol, SendFlags, SocketFlags, SocketType, connect, netlink as netlinks, send, sendto,
    socket_with,
};

use super::aims::Aims;
use super::files::nothing;
use super::rows::Tried;
use crate::sys::attempt;

const MESSAGE: &[u8] = b"hello";
/// linux/in.h and linux/socket.h.
const MPTCP: u32 = 262;
const FAST_OPEN: SendFlags = SendFlags::from_bits_retain(0x2000_0000);
/// For what has to come from one's own process.
const PATIENCE: Duration = Duration::from_secs(2);

fn loopback(port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)
}

fn stream(protocol: Option<Protocol>) -> rustix::io::Result<std::os::fd::OwnedFd> {
    socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, protocol)
}

fn over(protocol: Option<Protocol>, port: u16) -> Tried {
    let socket = stream(protocol)?;
    connect(&socket, &loopback(port))?;
    nothing(send(&socket, MESSAGE, SendFlags::NOSIGNAL))
}

pub fn tcp(aims: &Aims) -> Tried {
    over(None, aims.at.tcp)
}

pub fn multipath(aims: &Aims) -> Tried {
    over(std::num::NonZero::new(MPTCP).map(Protocol::from_raw), aims.at.tcp)
}

pub fn fast_open(aims: &Aims) -> Tried {
    let socket = stream(None)?;
    nothing(sendto(&socket, MESSAGE, FAST_OPEN | SendFlags::NOSIGNAL, &loopback(aims.at.tcp)))
}

/// The second one tells whether the first was thrown away: where nobody is, the answer is ECONNREFUSED.
pub fn udp(aims: &Aims) -> Tried {
    let socket = UdpSocket::bind(loopback(0))?;
    socket.connect(loopback(aims.at.udp))?;
    socket.send(MESSAGE)?;
    nothing(socket.send(MESSAGE))
}

pub fn netlink(_: &Aims) -> Tried {
    nothing(socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(netlinks::SOCK_DIAG),
    ))
}

pub fn raw(_: &Aims) -> Tried {
    let icmp = Some(rustix::net::ipproto::ICMP);
    nothing(socket_with(AddressFamily::INET, SocketType::RAW, SocketFlags::CLOEXEC, icmp))
}

pub fn packet(_: &Aims) -> Tried {
    nothing(socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None))
}

pub fn own_loopback(_: &Aims) -> Tried {
    let listener = TcpListener::bind(loopback(0))?;
    let mut client = TcpStream::connect_timeout(&listener.local_addr()?, PATIENCE)?;
    client.write_all(MESSAGE)?;
    let (mut server, from) = listener.accept()?;
    server.set_read_timeout(Some(PATIENCE))?;
    server.read_exact(&mut [0; MESSAGE.len()])?;
    match from {
        SocketAddr::V4(from) if from.ip().is_loopback() => Ok(Vec::new()),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

pub fn stream_shown(aims: &Aims) -> Tried {
    nothing(UnixStream::connect(aims.shown("stream"))?.write_all(MESSAGE))
}

pub fn stream_hidden(aims: &Aims) -> Tried {
    nothing(UnixStream::connect(aims.hidden("stream"))?.write_all(MESSAGE))
}

pub fn datagram_shown(aims: &Aims) -> Tried {
    nothing(UnixDatagram::unbound()?.send_to(MESSAGE, aims.shown("datagram")))
}

pub fn abstract_stream(aims: &Aims) -> Tried {
    let address = unix::SocketAddr::from_abstract_name(aims.at.name())?;
    nothing(UnixStream::connect_addr(&address)?.write_all(MESSAGE))
}

pub fn abstract_datagram(aims: &Aims) -> Tried {
    let address = unix::SocketAddr::from_abstract_name(format!("{}-datagram", aims.at.name()))?;
    nothing(UnixDatagram::unbound()?.send_to_addr(MESSAGE, &address))
}

pub fn own_abstract(aims: &Aims) -> Tried {
    let address = unix::SocketAddr::from_abstract_name(format!("{}-own", aims.at.name()))?;
    let listener = UnixListener::bind_addr(&address)?;
    UnixStream::connect_addr(&address)?.write_all(MESSAGE)?;
    nothing(listener.accept()?.0.read_exact(&mut [0; MESSAGE.len()]))
}

pub fn own_pair(_: &Aims) -> Tried {
    let (mut near, mut far) = UnixStream::pair()?;
    near.write_all(MESSAGE)?;
    nothing(far.read_exact(&mut [0; MESSAGE.len()]))
}

pub fn segment(aims: &Aims) -> Tried {
    nothing(attempt::segment_by_key(aims.at.segment, Some(b'x')))
}

pub fn queue(aims: &Aims) -> Tried {
    let name = CString::new(format!("/{}", aims.at.name()))?;
    let queue = attempt::open_queue(&name, false)?;
    nothing(attempt::send_to_queue(std::os::fd::AsFd::as_fd(&queue)))
}
