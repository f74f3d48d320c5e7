//! The init: starts the command, reaps what is orphaned, tells the monitor what happened, and takes everything
//! with it when it goes.

use std::fs;
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::{set_child_subreaper, set_dumpable};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::link::{Link, Message};
use crate::error::{Error, Result};
use crate::plan::Process;
use crate::sys;

/// Forks the command's process, which returns. The init does not: it ends with this call.
pub fn become_init(link: Link, namespace: bool, process: &Process) -> Result<()> {
    let failed = |what: &'static str| move |errno: Errno| Error::step(what, errno);
    if !namespace {
        set_child_subreaper(true).map_err(failed("become the reaper of orphans"))?;
    }
    let signals = SignalFd::with_flags(&SigSet::all(), SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .map_err(failed("watch the signals"))?;
    match sys::fork_into_two().map_err(|error| Error::step("start the command's process", error))? {
        None => Ok(()),
        Some(child) => {
            // Neither memory nor descriptors of the init are for the command to see, and no stream is held open:
            // who reads the command's output must see its end.
            let _ = set_dumpable(false);
            (0..=2).chain(process.descriptors.iter().copied()).for_each(sys::close);
            // As the command's user, or it could not be signalled; without any capability.
            let status = match crate::enforce::credentials::apply(process) {
                Ok(_) => Init { link, signals, command: Pid::from_raw(child), namespace }.run(),
                Err(_) => 125,
            };
            sys::leave(status)
        }
    }
}

struct Init {
    link: Link,
    signals: SignalFd,
    command: Pid,
    namespace: bool,
}

impl Init {
    /// Ends when the command or the monitor has ended. As process 1 of a PID namespace that is the end of
    /// everything in it (pid_namespaces(7)).
    fn run(self) -> i32 {
        loop {
            let mut watched = [
                PollFd::new(self.link.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
            ];
            if !matches!(poll(&mut watched, PollTimeout::NONE), Ok(_) | Err(Errno::EINTR)) {
                return self.end(125);
            }
            let told = watched[0].any().unwrap_or(false);
            if told {
                match self.link.receive() {
                    Some(Message::Signal(number)) => self.signal(number),
                    Some(Message::SignalAll(number)) => self.signal_all(number),
                    _ => return self.end(125),
                }
            }
            // Signals are only a wake-up: what happened is asked of wait(2). Those that the terminal sends to the
            // whole group reach the command by themselves.
            while let Ok(Some(_)) = self.signals.read_signal() {}
            if let Some(status) = self.reap() {
                return self.end(status);
            }
        }
    }

    fn reap(&self) -> Option<i32> {
        let flags = WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED;
        loop {
            match waitpid(None::<Pid>, Some(flags)) {
                Ok(WaitStatus::Exited(pid, status)) if pid == self.command => {
                    let _ = self.link.send(Message::Exited(status));
                    return Some(status);
                }
                Ok(WaitStatus::Signaled(pid, signal, _)) if pid == self.command => {
                    let _ = self.link.send(Message::Killed(signal as i32));
                    return Some(128 + signal as i32);
                }
                Ok(WaitStatus::Stopped(pid, signal)) if pid == self.command => {
                    let _ = self.link.send(Message::Stopped(signal as i32));
                }
                Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return None,
                Ok(_) | Err(Errno::EINTR) => {}
                // A real-time signal that nix has no name for; the command is gone all the same.
                Err(_) => return Some(128),
            }
        }
    }

    fn signal(&self, number: i32) {
        // Gone meanwhile is no fault: its status is on the way.
        let _ = sys::kill(self.command.as_raw(), number);
    }

    fn signal_all(&self, number: i32) {
        if self.namespace {
            let _ = sys::kill(-1, number);
        } else {
            for pid in descendants() {
                let _ = sys::kill(pid.as_raw(), number);
            }
        }
    }

    /// Without a PID namespace everything that is left is a descendant: orphans become children of this process.
    fn end(&self, status: i32) -> i32 {
        if self.namespace {
            return status;
        }
        const ROUNDS: u32 = 10_000;
        for _ in 0..ROUNDS {
            let left = descendants();
            if left.is_empty() {
                break;
            }
            // Stopped first, so that what forks is not chased.
            for pid in &left {
                let _ = kill(*pid, Signal::SIGSTOP);
            }
            for pid in &left {
                let _ = kill(*pid, Signal::SIGKILL);
            }
            while matches!(waitpid(None::<Pid>, Some(WaitPidFlag::WNOHANG)), Ok(status) if status != WaitStatus::StillAlive)
            {
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        status
    }
}

/// Every process below this one, from the parents that /proc tells.
fn descendants() -> Vec<Pid> {
    let mut parents: Vec<(i32, i32)> = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(stat) = fs::read(entry.path().join("stat")) else { continue };
        // The name in parentheses may hold anything: what follows the last one is state and parent (proc_pid_stat(5)).
        let stat = String::from_utf8_lossy(&stat);
        let Some((_, rest)) = stat.rsplit_once(')') else { continue };
        let mut fields = rest.split_ascii_whitespace();
        let (state, parent) = (fields.next(), fields.next().and_then(|field| field.parse().ok()));
        if let (Some(parent), false) = (parent, state == Some("Z")) {
            parents.push((pid, parent));
        }
    }
    let mut found = vec![std::process::id() as i32];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        next += 1;
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
    }
    found.split_off(1).into_iter().map(Pid::from_raw).collect()
}
