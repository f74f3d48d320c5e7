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
}

impl Waiting {
    pub fn prepare() -> std::io::Result<()> {
        sys::make_interrupting(WAKE as i32)
    }

    /// Runs `wait`, in a thread of its own, until it ends or its caller has something else to do.
    pub fn interruptible(&self, call: &Notification, wait: impl FnOnce() -> Answer) -> Answer {
        let worker = gettid();
        let only = SigSet::from(WAKE);
        only.thread_unblock().map_err(|_| Errno::INTR)?;
        self.lock().push(Call { id: call.id, caller: call.thread, worker });
        self.some.notify_one();
        let answer = wait();
        // Whoever interrupts holds the lock: from here on nobody names this thread.
        self.lock().retain(|waiting| waiting.worker != worker);
        let _ = only.thread_block();
        answer.map_err(|errno| if errno == Errno::INTR { RESTART } else { errno })
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
            for call in self.lock().iter() {
                let gone = !sys::notification_is_valid(listener.as_fd(), call.id);
                if gone || has_signal(call.caller) {
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

/// Whether a signal waits for this thread that it does not block (proc_pid_status(5)).
fn has_signal(thread: i32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{thread}/status")) else { return false };
    is_pending(&status)
}

fn is_pending(status: &str) -> bool {
    let set = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0)
    };
    (set("SigPnd:") | set("ShdPnd:")) & !set("SigBlk:") != 0
}

#[cfg(test)]
mod tests {
    use super::is_pending;

    #[test]
    fn a_signal_waits_unless_it_is_blocked() {
        let status =
            |own, shared, blocked| format!("SigPnd:\t{own}\nShdPnd:\t{shared}\nSigBlk:\t{blocked}\n");
        assert!(!is_pending(&status("0000000000000000", "0000000000000000", "0000000000000000")));
        assert!(is_pending(&status("0000000000000002", "0000000000000000", "0000000000000000")));
        assert!(is_pending(&status("0000000000000000", "0000000000002000", "0000000000000002")));
        assert!(!is_pending(&status("0000000000000000", "0000000000002000", "0000000000002000")));
    }
}
