//! The init: starts the command, reaps what is orphaned, tells the monitor what happened, and takes everything
//! with it when it goes.

use std::fs;
use std::io::Write as _;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::{set_child_subreaper, set_dumpable, set_pdeathsig};
use nix::sys::signal::Signal;
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{Pid, getpgid, getpgrp};
use rustix::process::{WaitOptions, wait};

use super::broker::{Seat, Serving};
use super::link::{Link, Message};
use super::surroundings::{Surroundings, now};
use super::tree::{self, Tree};
use crate::enforce::{credentials, descriptors};
use crate::error::{Error, Result};
use crate::plan::Process;
use crate::sys;

const STDERR: RawFd = 2;

/// What the forked child is told before it closes the boundary.
pub struct Before {
    pub link: Link,
    pub surroundings: Surroundings,
    /// None where the init is the first process of a PID namespace, which ends with it.
    pub tree: Option<Tree>,
}

impl Before {
    /// As soon as the init exists: whatever it is doing, even stopped, it ends with the monitor. Where there is no
    /// PID namespace its end would free the others, so there it is only woken to end them.
    pub fn end_with_monitor(&self) -> Result<()> {
        let signal = if self.tree.is_none() { Signal::SIGKILL } else { Signal::SIGCONT };
        set_pdeathsig(Some(signal)).map_err(|errno| Error::step("end with the supervisor", errno))
    }
}

/// Forks the command's process, which returns. The init does not: it ends with this call.
pub fn become_init(before: Before, process: &Process, serving: Option<Serving>) -> Result<Option<Seat>> {
    let failed = |what: &'static str| move |errno: Errno| Error::step(what, errno);
    if before.tree.is_some() {
        set_child_subreaper(true).map_err(failed("become the reaper of orphans"))?;
    }
    let signals = SignalFd::with_flags(&sys::all_signals(), SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .map_err(failed("watch the signals"))?;
    // Before there is anybody who could look into its memory. The command's process has no other like it yet.
    set_dumpable(false).map_err(failed("hide the supervisor's memory"))?;
    match sys::fork_into_two().map_err(|error| Error::step("start the command's process", error))? {
        None => {
            set_dumpable(true).map_err(failed("become the command"))?;
            Ok(serving.map(|serving| serving.seat))
        }
        Some(child) => {
            let serving = serving.filter(|_| before.tree.is_none());
            let mut init =
                Init { before, signals, command: Pid::from_raw(child), turn: 0, copies: Vec::new() };
            // Never dropped: most of what it owns was closed by number when it settled.
            let status = match init.settle(process, serving) {
                Ok(()) => init.run(),
                Err(error) => {
                    let _ = std::io::stderr().write_all(format!("confine: {error}\n").as_bytes());
                    125
                }
            };
            sys::leave(status)
        }
    }
}

struct Init {
    before: Before,
    signals: SignalFd,
    command: Pid,
    /// How many times the command has been continued.
    turn: u64,
    /// Signals that came to this process too, and when: the whole group was meant.
    copies: Vec<(i32, Duration)>,
}

impl Init {
    /// No stream is held open, or who reads the command's output would not see its end; nor anything of the view,
    /// which would keep file systems busy. Standard error goes last: a step that fails is told there.
    fn settle(&self, process: &Process, serving: Option<Serving>) -> Result<()> {
        let terminal =
            self.before.surroundings.terminal.as_ref().map(|terminal| terminal.as_fd().as_raw_fd());
        let mut kept = vec![STDERR, self.before.link.as_fd().as_raw_fd(), self.signals.as_raw_fd()];
        kept.extend(terminal);
        kept.extend(serving.iter().flat_map(|serving| serving.seat.descriptors()));
        descriptors::close_all_but(0, &kept)
            .map_err(|error| Error::step("close the supervisor's files", error))?;
        // As the command's user, or it could not be signalled; without any capability. Becoming another user makes
        // a process dumpable where suid_dumpable says so, and forgets the parent-death signal (prctl(2)).
        credentials::apply(process)?;
        set_dumpable(false).map_err(|errno| Error::step("hide the supervisor's memory", errno))?;
        self.before.end_with_monitor()?;
        // With the command's own rights from here on: the broker may do no more.
        serving.map_or(Ok(()), Serving::serve)?;
        sys::close(STDERR);
        Ok(())
    }

    /// Ends when the command or the monitor has ended. As process 1 of a PID namespace that is the end of
    /// everything in it (pid_namespaces(7)).
    fn run(&mut self) -> i32 {
        loop {
            let mut watched = [
                PollFd::new(self.before.link.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
            ];
            if !matches!(poll(&mut watched, PollTimeout::NONE), Ok(_) | Err(Errno::EINTR)) {
                return self.end(125);
            }
            if watched[0].any().unwrap_or(false) && !self.on_message() {
                return self.end(125);
            }
            self.read_signals();
            if let Some(status) = self.reap() {
                return self.end(status);
            }
        }
    }

    /// Whether the monitor is still there.
    fn on_message(&mut self) -> bool {
        let command = self.command.as_raw();
        match self.before.link.receive() {
            Some(Message::Signal(number)) => self.signal(number),
            // Gone meanwhile is no fault, here and below: its status is on the way.
            Some(Message::Queue(number, value)) => drop(sys::queue(command, number, value)),
            Some(Message::Continue(turn)) => {
                self.turn = turn;
                self.signal(libc::SIGCONT);
            }
            Some(Message::SignalAll(number)) => self.signal_all(number),
            _ => return false,
        }
        true
    }

    fn reap(&self) -> Option<i32> {
        let link = &self.before.link;
        loop {
            let (pid, status) = match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
                Ok(Some((pid, status))) => (pid.as_raw_nonzero().get(), status),
                Err(rustix::io::Errno::INTR) => continue,
                Ok(None) | Err(_) => return None,
            };
            if pid != self.command.as_raw() {
                continue;
            }
            if let Some(signal) = status.stopping_signal() {
                let _ = link.send(Message::Stopped(signal, self.turn, self.has_terminal()));
            } else if let Some(signal) = status.terminating_signal() {
                let _ = link.send(Message::Killed(signal));
                return Some(128 + signal);
            } else if let Some(status) = status.exit_status() {
                let _ = link.send(Message::Exited(status));
                return Some(status);
            }
        }
    }

    /// Signals are only a wake-up: what happened is asked of wait(2). Those of the terminal reach the command by
    /// themselves, and the monitor knows them.
    fn read_signals(&mut self) {
        while let Ok(Some(info)) = self.signals.read_signal() {
            if info.ssi_code == libc::SI_USER {
                self.copies.push((info.ssi_signo as i32, now()));
            }
        }
    }

    fn signal(&mut self, number: i32) {
        if self.reached_by_group(number) {
            return;
        }
        if number == libc::SIGINT && !self.catches(number) {
            let _ = self.before.link.send(Message::Uncaught(number));
        }
        let _ = sys::kill(self.command.as_raw(), number);
    }

    /// A signal to the whole group reaches the command by itself, and a trap must not run twice. It came here as
    /// well, before the monitor could tell of it.
    fn reached_by_group(&mut self, number: i32) -> bool {
        const FRESH: Duration = Duration::from_secs(1);
        self.read_signals();
        let oldest = now().saturating_sub(FRESH);
        self.copies.retain(|(_, at)| *at >= oldest);
        match self.copies.iter().position(|(copy, _)| *copy == number) {
            Some(index) => {
                self.copies.remove(index);
                getpgid(Some(self.command)).is_ok_and(|group| group == getpgrp())
            }
            None => false,
        }
    }

    /// SIGINT is a question to a program that catches it, and an order to one that does not.
    fn catches(&self, number: i32) -> bool {
        let caught = || {
            let text = fs::read_to_string(format!("/proc/{}/status", self.command)).ok()?;
            let value = text.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
            u64::from_str_radix(value.trim(), 16).ok()
        };
        caught().is_some_and(|caught| caught >> (number - 1) & 1 == 1)
    }

    /// Whether a group of the command's making is in the foreground. Seen from inside a PID namespace, groups
    /// outside have the number 0.
    fn has_terminal(&self) -> bool {
        let foreground =
            self.before.surroundings.terminal.as_ref().and_then(|terminal| terminal.foreground());
        let Some(group) = foreground.filter(|group| group.as_raw() != 0 && *group != getpgrp()) else {
            return false;
        };
        self.before.tree.is_none() || tree::descendants().iter().any(|pid| getpgid(Some(*pid)) == Ok(group))
    }

    fn signal_all(&self, number: i32) {
        if self.before.tree.is_none() {
            let _ = sys::kill(-1, number);
        } else {
            for pid in tree::descendants() {
                let _ = sys::kill(pid.as_raw(), number);
            }
        }
    }

    /// Where one blow ends all, the monitor would be hit as well: it strikes itself, having heard how the command ended,
    /// and only when it has gone is it done from here.
    fn end(&self, status: i32) -> i32 {
        let Some(tree) = &self.before.tree else { return status };
        if tree.is_enclosed() {
            if !self.hears_the_end() {
                return status;
            }
            // Its files are closed before it is gone; and one that fails while it sets up has a reason to tell.
            while !tree.is_orphaned() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let _ = tree.end();
        status
    }

    /// Until the other end of the link is closed. It has nothing to say any more.
    fn hears_the_end(&self) -> bool {
        loop {
            let mut watched = [PollFd::new(self.before.link.as_fd(), PollFlags::POLLIN)];
            match poll(&mut watched, PollTimeout::NONE) {
                Ok(_) if self.before.link.receive().is_none() => return true,
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => return false,
            }
        }
    }
}
