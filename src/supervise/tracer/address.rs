//! Sockets that could not be reached.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;

use libc::{EACCES, EAFNOSUPPORT, ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, ENOENT, ENOTDIR, EPERM};

use super::advice::{self, Advice, Grant, OUT_OF_REACH};
use super::calls::{Call, Reaches};
use super::judge::{Denial, Judge, Object};
use super::names::absolute;
use crate::enforce::seccomp::Inet;
use crate::supervise::broker::endpoint;
use crate::view::sockets;

impl Judge {
    pub(super) fn address(
        &self,
        thread: i32,
        call: &Call,
        reaches: Reaches,
        bytes: &[u8],
        errno: i32,
    ) -> Option<Denial> {
        let family = u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?);
        if i32::from(family) == libc::AF_UNIX {
            return self.local(thread, reaches, bytes.get(2..)?, errno);
        }
        let address = endpoint(bytes).ok()?;
        let datagram = fs::read_link(format!("/proc/{thread}/fd/{}", call.int(0)))
            .ok()
            .and_then(|name| self.sockets.get(&name).copied())
            .unwrap_or(false);
        let port = address.port();
        let ruled = !self.own_network && errno == EACCES && self.rules.inet == Inet::Tcp;
        let words = |operation, layer, advice| {
            Some(Denial { operation, object: Object::Words(address.to_string()), layer, advice })
        };
        match reaches {
            Reaches::Bind => {
                let advice = || Advice::grant(Grant::Listen(port));
                if ruled { words("listen on", "Landlock", advice()) } else { None }
            }
            _ if port == 0 => None,
            Reaches::Connect | Reaches::Send => {
                let local = address.ip().to_canonical().is_loopback();
                let layer = match errno {
                    _ if ruled => "Landlock",
                    ENETUNREACH | EHOSTUNREACH if self.own_network => "network namespace",
                    ECONNREFUSED if self.own_network && local && self.listens(port) => "network namespace",
                    EAFNOSUPPORT => "seccomp",
                    _ => return None,
                };
                words("connect to", layer, advice::for_address(address, datagram))
            }
        }
    }

    /// Whether a program of the host serves this port: a state of 0A is LISTEN (proc_pid_net_tcp).
    fn listens(&self, port: u16) -> bool {
        ["tcp", "tcp6"].iter().any(|name| {
            let text = fs::read_to_string(format!("/proc/{}/net/{name}", self.caller)).unwrap_or_default();
            text.lines().any(|line| {
                let mut fields = line.split_ascii_whitespace().skip(1);
                let (local, state) = (fields.next().unwrap_or_default(), fields.nth(1));
                state == Some("0A") && local.ends_with(&format!(":{port:04X}"))
            })
        })
    }

    fn local(&self, thread: i32, reaches: Reaches, name: &[u8], errno: i32) -> Option<Denial> {
        if reaches == Reaches::Bind || !matches!(errno, ENOENT | ENOTDIR | ECONNREFUSED | EACCES | EPERM) {
            return None;
        }
        let (object, key) = match name.split_first() {
            None => return None,
            Some((0, rest)) => {
                let mut key = b"@".to_vec();
                key.extend_from_slice(rest);
                (
                    Object::Words(format!("abstract socket {}", crate::error::show(OsStr::from_bytes(rest)))),
                    key,
                )
            }
            Some(_) => {
                let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
                let path = absolute(thread, libc::AT_FDCWD, OsStr::from_bytes(name.get(..end)?))?;
                if !path.metadata().is_ok_and(|found| found.file_type().is_socket()) {
                    return None;
                }
                let key = path.as_os_str().as_bytes().to_vec();
                (Object::Path(path), key)
            }
        };
        // One that nobody serves is refused outside as well.
        let list = fs::read(format!("/proc/{}/net/unix", self.caller)).unwrap_or_default();
        let lives = sockets::names(&list).any(|name| name == key);
        let layer = match errno {
            EACCES | EPERM => "Landlock",
            _ if self.viewed => "view: covered",
            _ => "broker",
        };
        lives.then(|| Denial {
            operation: "connect to",
            object,
            layer,
            advice: Advice::nothing(OUT_OF_REACH).but("a socket: who serves it acts for the command"),
        })
    }
}
