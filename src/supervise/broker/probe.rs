//! Whether this host lets a parent be asked: found by doing it once with a child that ends at once.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use nix::unistd::Pid;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use rustix::thread::set_no_new_privs;
use seccompiler::sock_filter;

use crate::attendant::attended;
use crate::sys;

/// What the broker could do here; each error says why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abilities {
    /// A listener can be had, and the memory of a child be read.
    pub metadata: Result<(), String>,
    /// The child's own socket can be reached as well.
    pub connect: Result<(), String>,
}

/// BPF_RET | BPF_K of SECCOMP_RET_ALLOW.
const ALLOW_ALL: [sock_filter; 1] = [sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW }];

/// The caller has one thread.
pub fn probe() -> Abilities {
    match attempt() {
        Ok(abilities) => abilities,
        Err(error) => {
            let why = crate::error::describe(&error);
            Abilities { metadata: Err(why.clone()), connect: Err(why) }
        }
    }
}

fn attempt() -> io::Result<Abilities> {
    let there = |far: &mut UnixStream| {
        set_no_new_privs(true)?;
        let listener = sys::install_listening_filter(&ALLOW_ALL);
        let number = match &listener {
            Ok(fd) => fd.as_raw_fd(),
            Err(error) => -error.raw_os_error().unwrap_or(libc::EIO),
        };
        far.write_all(&number.to_ne_bytes()).map(|()| listener)
    };
    attended(there, |child, near| {
        let mut bytes = [0; 4];
        near.read_exact(&mut bytes).map(|()| judge(child, i32::from_ne_bytes(bytes)))
    })?
}

fn judge(child: Pid, number: i32) -> Abilities {
    let why = |what: &str, error: io::Error| format!("{what}: {}", crate::error::describe(&error));
    let metadata = if number < 0 {
        // EBUSY: a listener is held already, by a container engine or an outer sandbox; a chain has one only.
        Err(why("seccomp user notification", io::Error::from_raw_os_error(-number)))
    } else {
        let memory = File::open(format!("/proc/{child}/mem")).map(drop);
        memory.map_err(|error| why("reading a child's memory", error))
    };
    let connect = metadata.clone().and_then(|()| {
        let socket = || {
            let pid = rustix::process::Pid::from_raw(child.as_raw()).ok_or(rustix::io::Errno::SRCH)?;
            let process = pidfd_open(pid, PidfdFlags::empty())?;
            pidfd_getfd(&process, number, PidfdGetfdFlags::empty())
        };
        socket().map(drop).map_err(|errno| why("pidfd_getfd", errno.into()))
    });
    Abilities { metadata, connect }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_listener_is_named() {
        let abilities = judge(Pid::this(), -libc::EBUSY);
        assert!(abilities.metadata.unwrap_err().contains("user notification"));
        assert!(abilities.connect.is_err());
    }
}
