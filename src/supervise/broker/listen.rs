//! listen(2), performed on the caller's own socket once its port is known. A socket that was never bound would be
//! bound by listen itself, to a port of the kernel's choice that no bind rule sees.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::{Errno, Result};
use rustix::net::{AddressFamily, SocketAddrAny, SocketType, getsockname, sockopt};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use super::{Answer, Scope};
use crate::sys::{self, Notification};

/// PIDFD_THREAD, Linux 6.9: O_EXCL.
const THREAD: PidfdFlags = PidfdFlags::from_bits_retain(libc::O_EXCL as u32);

/// `proc` is the /proc in whose numbers the listener tells who calls.
pub fn perform(listener: &OwnedFd, proc: &OwnedFd, scope: &Scope, call: &Notification) -> Answer {
    let [number, backlog, ..] = call.arguments;
    let process = process(proc, call.thread)?;
    // The number may name another process by now, unless the call still waits.
    if !sys::notification_is_valid(std::os::fd::AsFd::as_fd(listener), call.id) {
        return Err(Errno::SRCH);
    }
    let socket = pidfd_getfd(&process, number as i32, PidfdGetfdFlags::empty())?;
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

fn process(proc: &OwnedFd, thread: i32) -> Result<OwnedFd> {
    let open = |number: i32, flags| pidfd_open(Pid::from_raw(number).ok_or(Errno::SRCH)?, flags);
    match open(thread, THREAD) {
        // Before 6.9 only a group's leader can be named; the descriptors are the group's.
        Err(Errno::INVAL) => open(group(proc, thread)?, PidfdFlags::empty()),
        other => other,
    }
}

fn group(proc: &OwnedFd, thread: i32) -> Result<i32> {
    let file = openat(proc, format!("{thread}/status"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let text = std::io::read_to_string(std::fs::File::from(file)).map_err(|_| Errno::PERM)?;
    text.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok()).ok_or(Errno::PERM)
}

/// 0 for a socket that was not bound.
fn port(address: &SocketAddrAny) -> Result<u16> {
    let address = std::net::SocketAddr::try_from(address.clone()).map_err(|_| Errno::ACCESS)?;
    Ok(address.port())
}
