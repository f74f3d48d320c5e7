//! The system-call broker, for hosts without namespaces: the rare calls that nothing else rules are asked of a
//! parent (seccomp_unotify(2)). Each is resolved to one descriptor, checked against the writable roots, and
//! performed on that descriptor.
//!
//! What keeps it sound: the target's memory is read once and acted on as it was read; the caller is asked for
//! again before anything is done (its thread id may name another process by then); "continue" is never answered;
//! every error denies. The broker has no more rights than the command: the same user, no capability.
#![forbid(unsafe_code)]

mod connect;
mod connecting;
mod listen;
mod metadata;
pub mod probe;
mod resolve;
mod scope;
mod seat;
mod target;
mod waiting;

use std::collections::HashMap;
use std::io::Write as _;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::io::Errno;

use crate::enforce::seccomp::{self, Arch};
use crate::error::Error;
use crate::sys::{self, Notification};
pub use connect::endpoint;
use connecting::Connecting;
pub use scope::{Internet, Scope};
pub use seat::{Seat, Serving};
use target::Target;
use waiting::Waiting;

/// Calls that may wait for somebody (connect(2)) get a thread each, up to this many.
const WAITING: usize = 128;

type Answer = rustix::io::Result<()>;

/// What the kernel said; where it was not the kernel, a denial.
fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::PERM)
}

/// Ends this process, and with it the tree: nothing goes on where nobody answers.
fn give_up(error: &Error) -> ! {
    let line = format!("confine: {error}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
    sys::leave(125)
}

pub struct Broker {
    listener: OwnedFd,
    scope: Scope,
    names: HashMap<u32, &'static str>,
    workers: AtomicUsize,
    waiting: Waiting,
    connecting: Connecting,
}

impl Broker {
    pub fn new(listener: OwnedFd, scope: Scope, arch: Arch) -> Broker {
        let brokered = seccomp::rows(arch).filter(|(group, _)| group.errno == seccomp::BROKER);
        let names = brokered.filter_map(|(_, row)| Some((row.number(arch)?, row.name))).collect();
        Broker {
            listener,
            scope,
            names,
            workers: AtomicUsize::new(0),
            waiting: Waiting::default(),
            connecting: Connecting::default(),
        }
    }

    /// Answers until nobody is left to ask. A broker that cannot go on ends this process, and with it the tree.
    pub fn serve(self) {
        // Faster where the kernel has it.
        let _ = sys::wake_synchronously(self.listener.as_fd());
        let broker = Arc::new(self);
        let watcher = Arc::clone(&broker);
        let watched = Waiting::prepare().and_then(|()| {
            thread::Builder::new().spawn(move || watcher.waiting.watch(&watcher.listener)).map(drop)
        });
        if let Err(error) = watched {
            give_up(&Error::step("watch the calls that wait", error));
        }
        loop {
            match sys::receive_notification(broker.listener.as_fd()) {
                Ok(call) => broker.take(call),
                // The caller died, or a signal came.
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => {
                    // Without any process left under the filter this would spin.
                    if broker.is_over() {
                        return broker.waiting.end();
                    }
                }
                Err(error) => give_up(&Error::step("receive the calls of the command", error)),
            }
        }
    }

    /// Whether no process is left under the filter: the listener then reports a hang-up, since Linux 5.9.
    fn is_over(&self) -> bool {
        use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
        let mut watched = [PollFd::new(self.listener.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut watched, PollTimeout::ZERO);
        watched[0].revents().is_none_or(|events| events.contains(PollFlags::POLLHUP))
    }

    fn take(self: &Arc<Self>, call: Notification) {
        let name = self.names.get(&call.number).copied();
        if name != Some("connect") {
            return self.answer(&call, self.perform(name, &call));
        }
        if self.workers.fetch_add(1, Ordering::Relaxed) >= WAITING {
            self.workers.fetch_sub(1, Ordering::Relaxed);
            return self.answer(&call, Err(Errno::AGAIN));
        }
        let broker = Arc::clone(self);
        let spawned = thread::Builder::new().spawn(move || {
            broker.answer(&call, broker.perform(name, &call));
            broker.workers.fetch_sub(1, Ordering::Relaxed);
        });
        if spawned.is_err() {
            self.workers.fetch_sub(1, Ordering::Relaxed);
            self.answer(&call, Err(Errno::AGAIN));
        }
    }

    fn perform(&self, name: Option<&str>, call: &Notification) -> Answer {
        let target = Target::open(call, &self.listener)?;
        match name {
            Some("listen") => listen::perform(&target, &self.scope, &self.connecting, call),
            Some("connect") => connect::perform(&target, &self.scope, &self.connecting, &self.waiting, call),
            Some(name) => metadata::perform(name, &target, &self.scope, call),
            None => Err(Errno::NOSYS),
        }
    }

    fn answer(&self, call: &Notification, answer: Answer) {
        let errno = answer.err().map_or(0, Errno::raw_os_error);
        // Gone meanwhile: nobody waits.
        let _ = sys::answer_notification(self.listener.as_fd(), call.id, errno);
    }
}
