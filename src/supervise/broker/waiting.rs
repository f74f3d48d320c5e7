//! Calls that wait for somebody. The kernel keeps the caller's signals back while the broker is at work
//! (WAIT_KILLABLE_RECV), so the broker looks for them itself: a connect(2) to a host that does not answer shall end
//! with Ctrl-C, and with the caller.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};
use rustix::io::Errno;
use rustix::thread::{Pid, gettid};

use super::Answer;
use crate::sys::{self, Notification};

/// Nobody sends this one (signal(7): unused), so no thread but the one that waits ever takes it.
const WAKE: Signal = Signal::SIGSTKFLT;
/// How long an idle watcher may take to see the end.
const PAUSE: Duration = Duration::from_secs(60);
const TICK: Duration = Duration::from_millis(20);
/// ERESTARTSYS, linux/errno.h: the call starts again, or ends with EINTR where the handler came without SA_RESTART.
const RESTART: Errno = Errno::from_raw_os_error(512);

#[derive(Default)]
pub struct Waiting {
    calls: Mutex<Vec<Call>>,
    some: Condvar,
    over: AtomicBool,
}

struct Call {
    id: u64,
    /// The caller's thread.
    caller: i32,
    /// The broker's.
    worker: Pid,
    gone: bool,
}

impl Waiting {
    pub fn prepare() -> std::io::Result<()> {
        sys::make_interrupting(WAKE as i32)
    }

    /// Runs `wait`, in a thread of its own, until it ends or its caller has something else to do.
    pub fn interruptible(&self, call: &Notification, wait: impl Fn() -> Answer) -> Answer {
        let worker = gettid();
        let only = SigSet::from(WAKE);
        only.thread_unblock().map_err(|_| Errno::INTR)?;
        self.lock().push(Call { id: call.id, caller: call.thread, worker, gone: false });
        self.some.notify_one();
        let answer = loop {
            match wait() {
                Err(Errno::INTR) => match signal_for(call.thread) {
                    // Another thread has taken it.
                    None if self.is_idle(call.id) => {}
                    found => break Err(found.unwrap_or(Errno::INTR)),
                },
                other => break other,
            }
        };
        // Whoever interrupts holds the lock: from here on nobody names this thread.
        self.lock().retain(|waiting| waiting.worker != worker);
        let _ = only.thread_block();
        answer
    }

    /// Whether the watcher still knows the call as one whose caller waits.
    fn is_idle(&self, id: u64) -> bool {
        self.lock().iter().any(|call| call.id == id && !call.gone)
    }

    /// Lets `watch` return: nobody is left who could wait.
    pub fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.some.notify_all();
    }

    /// Interrupts, in a thread of its own.
    pub fn watch(&self, listener: &OwnedFd) {
        loop {
            let mut calls = self.lock();
            while calls.is_empty() {
                if self.over.load(Ordering::Acquire) {
                    return;
                }
                let woken = self.some.wait_timeout(calls, PAUSE);
                calls = woken.unwrap_or_else(PoisonError::into_inner).0;
            }
            drop(calls);
            std::thread::sleep(TICK);
            for call in self.lock().iter_mut() {
                call.gone = !sys::notification_is_valid(listener.as_fd(), call.id);
                if call.gone || signal_for(call.caller).is_some() {
                    // Again at every tick: the thread may not have been waiting yet.
                    let _ = sys::signal_thread(call.worker.as_raw_nonzero().get(), WAKE as i32);
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Call>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a call ends for the sake of a signal that waits for its thread (proc_pid_status(5)), if one does.
fn signal_for(thread: i32) -> Option<Errno> {
    ending(&fs::read_to_string(format!("/proc/{thread}/status")).ok()?)
}

fn ending(status: &str) -> Option<Errno> {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let set = |name: &str| field(name).and_then(|set| u64::from_str_radix(set, 16).ok()).unwrap_or(0);
    let open = !set("SigBlk:");
    let alone = field("Threads:") == Some("1");
    if set("SigPnd:") & open != 0 || alone && set("ShdPnd:") & open != 0 {
        return Some(RESTART);
    }
    // The kernel wakes one thread, and nobody can see which: in another, ERESTARTSYS would reach the program.
    (set("ShdPnd:") & open != 0).then_some(Errno::INTR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_ends_a_call_unless_it_is_blocked() {
        let status = |threads, own, shared, blocked| {
            ending(&format!(
                "Threads:\t{threads}\nSigPnd:\t{own:016x}\nShdPnd:\t{shared:016x}\nSigBlk:\t{blocked:016x}\n"
            ))
        };
        assert_eq!(status(1, 0, 0, 0), None);
        assert_eq!(status(1, 0, 2, 2), None);
        assert_eq!(status(1, 0, 2, 0), Some(RESTART));
        assert_eq!(status(9, 2, 0, 0), Some(RESTART));
    }

    /// Whom the kernel woke is not to be seen.
    #[test]
    fn a_signal_to_a_process_of_many_threads_restarts_nothing() {
        let status = "Threads:\t2\nSigPnd:\t0\nShdPnd:\t4000\nSigBlk:\t0\n";
        assert_eq!(ending(status), Some(Errno::INTR));
    }
}
