//! listen(2), performed on the caller's own socket once it is known what it is bound to. A socket that was never bound
//! would be bound by listen itself, to every address and a port of the kernel's choice that no bind rule sees.
//!
//! What was looked at must still be so when listen comes. A port and an address stay with a socket that is closed and
//! bound: bind(2) refuses a second time, and shutdown(2) leaves a closed socket alone (net/ipv4/af_inet.c). Only
//! connect(2) changes the address, by AF_UNSPEC or by failing; so no connection may be under way on that socket.

use std::os::fd::AsFd;

use rustix::io::{Errno, Result};
use rustix::net::{AddressFamily, SocketAddrAny, SocketType, getsockname, sockopt};

use super::connecting::Connecting;
use super::target::Target;
use super::{Answer, Scope, errno};
use crate::sys::{self, Notification};

/// net/tcp_states.h.
const CLOSE: u8 = 7;
const LISTEN: u8 = 10;

pub fn perform(target: &Target<'_>, scope: &Scope, connecting: &Connecting, call: &Notification) -> Answer {
    let [number, backlog, ..] = call.arguments;
    let backlog = backlog as i32;
    let socket = target.socket(number as i32)?;
    match sockopt::socket_domain(&socket)? {
        AddressFamily::UNIX => rustix::net::listen(&socket, backlog),
        AddressFamily::INET | AddressFamily::INET6
            if sockopt::socket_type(&socket)? == SocketType::STREAM =>
        {
            let bound = || -> Answer {
                match sys::socket::tcp_state(socket.as_fd()).map_err(|error| errno(&error))? {
                    CLOSE => {
                        scope.may_serve(address(&getsockname(&socket)?)?)?;
                        if scope.serves_loopback_alone() {
                            // A second lock on the same door: whatever the address, no packet of another host
                            // arrives by this device.
                            sys::socket::bind_to_device(socket.as_fd(), c"lo")
                                .map_err(|error| errno(&error))?;
                        }
                        rustix::net::listen(&socket, backlog)
                    }
                    // It has been judged. Only the backlog would change, but shutdown(2) could have freed the
                    // address before it did.
                    LISTEN => Ok(()),
                    _ => Err(Errno::INVAL),
                }
            };
            connecting.unless(&socket, bound)
        }
        _ => Err(Errno::ACCESS),
    }
}

fn address(address: &SocketAddrAny) -> Result<std::net::SocketAddr> {
    std::net::SocketAddr::try_from(address.clone()).map_err(|_| Errno::ACCESS)
}
