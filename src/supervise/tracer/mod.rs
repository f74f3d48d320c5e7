//! `confine trace`: the monitor watches by ptrace(2) which calls of the command fail, and afterwards says which of
//! those the boundary denied.
//!
//! By ptrace, not by user notification: a notification comes before the call and without its result, the kernel
//! lets a chain of processes have one listener, which the broker may be, and a listener would have to perform each
//! call itself or let it go on by its own judgement. ptrace shows what every layer has answered and changes
//! nothing: the tracee is never given another argument, result or signal. Its price is two stops a call, and that a
//! debugger inside cannot attach to what is traced already (EPERM).
//!
//! What the command does to its own memory meanwhile can only change which names are listed.
#![forbid(unsafe_code)]

mod address;
mod advice;
mod calls;
mod judge;
mod names;
mod told;

use std::collections::HashMap;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketFlags, SocketType,
    recv, recvmsg, send, socketpair, sockopt,
};
use rustix::process::{WaitOptions, WaitStatus, wait};

use crate::error::{Error, Result};
use crate::sys::ptrace::{self, EVENT_EXEC, EVENT_STOP, SYSCALL_STOP, Stop};
use calls::Call;
pub use judge::Judge;
pub use told::Told;

/// The two ends by which tracer and tracee find each other.
pub fn pair() -> Result<(Outside, Inside)> {
    let make = || -> io::Result<(Outside, Inside)> {
        let (outer, inner) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        // So that the kernel tells the sender's number as this PID namespace has it.
        sockopt::set_socket_passcred(&outer, true)?;
        Ok((Outside(outer), Inside(inner)))
    };
    make().map_err(|error| Error::step("make the tracer's socket", error))
}

pub struct Outside(OwnedFd);
pub struct Inside(OwnedFd);

impl Outside {
    /// The tracer sees the host from here on whatever the other side mounts.
    pub fn has_left(&self) -> Result<()> {
        self.send(0).map_err(|error| Error::step("let the traced process go on", error))
    }

    fn send(&self, errno: i32) -> io::Result<()> {
        send(&self.0, &errno.to_ne_bytes(), SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Who asks to be traced; None when it has ended instead.
    fn receive(&self) -> Option<i32> {
        let mut byte = [0];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received =
            recvmsg(&self.0, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::DONTWAIT);
        if received.ok()?.bytes == 0 {
            return None;
        }
        ancillary.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmCredentials(sender) => Some(sender.pid.as_raw_nonzero().get()),
            _ => None,
        })
    }
}

impl Inside {
    /// Until the tracer is out of reach of what is mounted here.
    pub fn await_leaving(&self) -> Result<()> {
        self.receive().map_err(|error| Error::step("wait for the tracer", error))
    }

    /// Until this process is traced.
    pub fn await_tracer(&self) -> Result<()> {
        send(&self.0, &[0], SendFlags::NOSIGNAL)
            .map_err(io::Error::from)
            .and_then(|_| self.receive())
            .map_err(|error| {
                let denied = error.raw_os_error() == Some(libc::EPERM);
                let error = Error::step("be traced", error);
                match denied {
                    true => error.with_hint(
                        "ptrace is forbidden here: look at `sysctl kernel.yama.ptrace_scope`, or at the container's \
                         seccomp profile",
                    ),
                    false => error,
                }
            })
    }

    fn receive(&self) -> io::Result<()> {
        let mut errno = [0; 4];
        match recv(&self.0, &mut errno[..], RecvFlags::empty())?.0 {
            4 => match i32::from_ne_bytes(errno) {
                0 => Ok(()),
                errno => Err(io::Error::from_raw_os_error(errno)),
            },
            _ => Err(io::Error::from_raw_os_error(libc::EPIPE)),
        }
    }
}

pub struct Tracer {
    /// Until the command has come.
    outside: Option<Outside>,
    judge: Judge,
    /// The call that each thread is in.
    calls: HashMap<i32, Call>,
    /// The command itself is running: what confine does before is no denial.
    begun: bool,
    told: Told,
    init: i32,
    init_status: Option<WaitStatus>,
}

impl Tracer {
    pub fn new(outside: Outside, judge: Judge, init: i32) -> Tracer {
        Tracer {
            outside: Some(outside),
            judge,
            calls: HashMap::new(),
            begun: false,
            told: Told::default(),
            init,
            init_status: None,
        }
    }

    pub fn watched(&self) -> Option<BorrowedFd<'_>> {
        self.outside.as_ref().map(|outside| outside.0.as_fd())
    }

    pub fn into_told(self) -> Told {
        self.told
    }

    /// The init's end: while there are tracees every child is waited for here.
    pub fn init_status(&self) -> Option<WaitStatus> {
        self.init_status
    }

    /// The command's process says that it is there.
    pub fn attach(&mut self) {
        let Some(outside) = self.outside.take() else { return };
        let Some(command) = outside.receive() else { return };
        let attached = ptrace::seize(command).and_then(|()| ptrace::interrupt(command));
        let errno = attached.err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO));
        // If it has ended there is nobody to be told.
        let _ = outside.send(errno);
    }

    /// Everything that has happened to tracees, and to the init.
    pub fn turn(&mut self) {
        let options = WaitOptions::NOHANG | WaitOptions::from_bits_retain(libc::__WALL as u32);
        loop {
            match wait(options) {
                Ok(Some((pid, status))) => self.on_change(pid.as_raw_nonzero().get(), status),
                Err(rustix::io::Errno::INTR) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }

    fn on_change(&mut self, thread: i32, status: WaitStatus) {
        let ended = status.exited() || status.signaled();
        if thread == self.init {
            if ended {
                self.init_status = Some(status);
            }
            return;
        }
        if ended {
            self.calls.remove(&thread);
            return;
        }
        let raw = status.as_raw();
        let (signal, event) = (raw >> 8 & 0xff, raw >> 16 & 0xff);
        // A tracee that was killed meanwhile is told of by its end.
        let _ = match (signal, event) {
            (SYSCALL_STOP, 0) => {
                self.on_call(thread);
                ptrace::resume(thread, 0)
            }
            // A group stop has a stop signal; what is attached or continued has SIGTRAP.
            (signal, EVENT_STOP) if signal != libc::SIGTRAP => ptrace::listen(thread),
            (_, EVENT_EXEC) => {
                self.begun = true;
                if let Ok(before) = ptrace::event_message(thread) {
                    self.calls.remove(&(before as i32));
                }
                self.calls.remove(&thread);
                ptrace::resume(thread, 0)
            }
            (_, event) if event != 0 => ptrace::resume(thread, 0),
            (signal, _) => ptrace::resume(thread, signal),
        };
    }

    fn on_call(&mut self, thread: i32) {
        match ptrace::stop(thread) {
            Ok(Some(Stop::Entry { arch, number, arguments })) if self.begun => {
                match self.judge.find(arch, number, arguments) {
                    Some(call) => _ = self.calls.insert(thread, call),
                    None => _ = self.calls.remove(&thread),
                }
            }
            Ok(Some(Stop::Exit { value, failed })) => {
                let Some(call) = self.calls.remove(&thread) else { return };
                if !failed {
                    return self.judge.succeeded(thread, &call, value);
                }
                let errno = i32::try_from(-value).unwrap_or(0);
                if let Some(denial) = self.judge.judge(thread, &call, errno) {
                    self.told.add(denial);
                }
            }
            _ => _ = self.calls.remove(&thread),
        }
    }
}
