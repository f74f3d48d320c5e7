//! How the listener gets from the command's process, which makes it, to the process where the broker serves it: the
//! init of a PID namespace, since its monitor can start no thread, else the monitor.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::mpsc::sync_channel;
use std::thread;

use rustix::io::{IoSlice, IoSliceMut};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recv, recvmsg, send, sendmsg,
};

use super::{Broker, Scope};
use crate::enforce::credentials;
use crate::enforce::seccomp::Arch;
use crate::error::{Error, Result};
use crate::supervise::link;

/// A seat, and what whoever takes it has to know.
pub struct Serving {
    pub seat: Seat,
    pub scope: Scope,
    pub arch: Arch,
}

impl Serving {
    pub fn serve(self) -> Result<()> {
        self.seat.serve(self.scope, self.arch)
    }
}

/// Both ends, made before the processes part.
pub struct Seat {
    outer: OwnedFd,
    inner: OwnedFd,
}

impl Seat {
    pub fn new() -> io::Result<Seat> {
        let (outer, inner) = link::pair()?;
        Ok(Seat { outer, inner })
    }

    /// Both, by number: to be kept where everything else is closed.
    pub fn descriptors(&self) -> [RawFd; 2] {
        [self.outer.as_raw_fd(), self.inner.as_raw_fd()]
    }

    /// In the process that will be asked. Serves from the moment the listener arrives; if none does, there is no
    /// command either. The kernel tells who calls by the numbers of this process's PID namespace, as /proc does.
    fn serve(self, scope: Scope, arch: Arch) -> Result<()> {
        let failed = |error| Error::step("start the broker", error);
        drop(self.inner);
        let outer = self.outer;
        let thread = thread::Builder::new().name("broker".to_owned());
        let (tell, told) = sync_channel(1);
        let run = move || {
            // The monitor may need some; the broker does no more than the command could.
            let emptied = credentials::drop_all_capabilities();
            let served = emptied.is_ok();
            if tell.send(emptied).is_err() || !served {
                return;
            }
            let Ok(listener) = receive(&outer) else { return };
            if send(&outer, b"!", SendFlags::NOSIGNAL).is_ok() {
                drop(outer);
                Broker::new(listener, scope, arch).serve();
            }
        };
        thread.spawn(run).map_err(failed)?;
        told.recv().unwrap_or_else(|_| Err(failed(io::Error::from_raw_os_error(libc::EPIPE))))
    }

    /// In the command's process: hands the listener over and waits until it is served.
    pub fn hand_over(self, listener: OwnedFd) -> io::Result<()> {
        drop(self.outer);
        let descriptors = [listener.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        sendmsg(&self.inner, &[IoSlice::new(b"!")], &mut control, SendFlags::NOSIGNAL)?;
        // No descriptor of it may stay here: the broker must see when nobody is left to ask.
        drop(listener);
        match recv(&self.inner, &mut [0u8; 1][..], RecvFlags::empty())? {
            (1, _) => Ok(()),
            _ => Err(io::Error::from_raw_os_error(libc::EPIPE)),
        }
    }
}

fn receive(outer: &OwnedFd) -> io::Result<OwnedFd> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(outer, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(mut descriptors) = message
            && let Some(listener) = descriptors.next()
        {
            return Ok(listener);
        }
    }
    Err(io::Error::from_raw_os_error(libc::EPIPE))
}
