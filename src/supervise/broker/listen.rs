//! listen(2), performed on the caller's own socket once its port is known. A socket that was never bound would be
//! bound by listen itself, to a port of the kernel's choice that no bind rule sees.

use rustix::io::{Errno, Result};
use rustix::net::{AddressFamily, SocketAddrAny, SocketType, getsockname, sockopt};

use super::target::Target;
use super::{Answer, Scope};
use crate::sys::Notification;

pub fn perform(target: &Target<'_>, scope: &Scope, call: &Notification) -> Answer {
    let [number, backlog, ..] = call.arguments;
    let socket = target.socket(number as i32)?;
    match sockopt::socket_domain(&socket)? {
        AddressFamily::UNIX => {}
        AddressFamily::INET | AddressFamily::INET6
            if sockopt::socket_type(&socket)? == SocketType::STREAM =>
        {
            scope.may_serve(port(&getsockname(&socket)?)?)?;
        }
        _ => return Err(Errno::ACCESS),
    }
    rustix::net::listen(&socket, backlog as i32)
}

/// 0 for a socket that was not bound.
fn port(address: &SocketAddrAny) -> Result<u16> {
    let address = std::net::SocketAddr::try_from(address.clone()).map_err(|_| Errno::ACCESS)?;
    Ok(address.port())
}
