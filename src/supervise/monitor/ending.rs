//! The end of a run: what is killed, what is still delivered, and what the caller is told.

use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};

use super::{Monitor, Outcome, stop};
use crate::supervise::link::Message;
use crate::supervise::output::{self, Output};
use crate::supervise::surroundings::{Watched, now};
use crate::supervise::until;

impl Monitor {
    /// How the run ended. What was decided here before stays: the command's death followed from it.
    pub(super) fn learn(&mut self, message: Message) {
        match message {
            Message::Exited(status) => _ = self.outcome.get_or_insert(Outcome::Exited(status)),
            Message::Killed(signal) => _ = self.outcome.get_or_insert(Outcome::Signalled(signal)),
            _ => {}
        }
    }

    /// From here on there is nothing to protect, and what is left to do can be ended like any program.
    pub(super) fn let_go(&mut self) {
        const ENDING: [Signal; 5] =
            [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTSTP];
        // Those that have come were about the command.
        while let Ok(Some(info)) = self.signals.read_signal() {
            if ENDING.iter().take(4).any(|signal| *signal as u32 == info.ssi_signo) {
                self.hurried.get_or_insert(info.ssi_signo as i32);
            }
        }
        let _ = SigSet::from_iter(ENDING).thread_unblock();
    }

    /// What the command wrote last. Its reader is waited for as the command itself would have to; one that does not
    /// read holds up nothing that was ended by force. What cut this short would have ended the command as well.
    fn deliver(&mut self, forced: bool) -> Option<Outcome> {
        let output = self.output.as_mut()?;
        output.drain();
        // An interrupt that the command has handled is no order.
        let mut order = self.hurried.filter(|number| ![libc::SIGINT, libc::SIGQUIT].contains(number));
        let mut last = now();
        loop {
            if output.turn() {
                last = now();
            }
            let hurry = forced || order.is_some();
            let at = if hurry { Some(last.saturating_add(output::PATIENCE)) } else { self.deadline };
            if output.is_delivered() {
                return None;
            }
            if at.is_some_and(|at| at <= now()) {
                return Some(order.map_or(Outcome::TimedOut, Outcome::Signalled));
            }
            let mut watched = vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
            let caller = self.caller.as_ref().and_then(|caller| caller.pidfd.as_ref());
            watched.extend(caller.map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN)));
            watched.extend(output.watched());
            let _ = poll(&mut watched, until(at));
            drop(watched);
            while let Ok(Some(info)) = self.signals.read_signal() {
                match info.ssi_signo as i32 {
                    libc::SIGHUP if self.hangup_ignored => {}
                    number @ (libc::SIGTERM | libc::SIGHUP | libc::SIGINT | libc::SIGQUIT) => {
                        order = Some(number);
                    }
                    number @ (libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU) => stop(number),
                    _ => {}
                }
            }
            if self.caller.as_ref().is_some_and(Watched::has_gone) {
                return Some(Outcome::Ended);
            }
        }
    }

    /// Process 1 takes its namespace with it. Without either that or an enclosure the init has to do the killing, and
    /// does it when the socket closes.
    pub(super) fn kill_all(&mut self) {
        if let (Some(mut counter), None) = (self.counter.take(), self.outcome) {
            self.spent = Some(counter.spent(self.init));
        }
        self.outcome.get_or_insert(Outcome::Ended);
        let Some(tree) = &self.tree else {
            let _ = kill(self.init, Signal::SIGKILL);
            return;
        };
        if !tree.strike() {
            let _ = rustix::net::shutdown(&self.link, rustix::net::Shutdown::Both);
            let _ = kill(self.init, Signal::SIGCONT);
        }
    }

    pub(super) fn reap(&self) -> Option<Outcome> {
        if let Some(tracer) = &self.tracer {
            let status = tracer.init_status()?;
            return Some(status.exit_status().map_or(Outcome::Ended, Outcome::Exited));
        }
        match waitpid(self.init, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) | Err(Errno::EINTR) => None,
            Ok(WaitStatus::Exited(_, status)) => Some(Outcome::Exited(status)),
            _ => Some(Outcome::Ended),
        }
    }

    /// `ended` is how the init went, which is how the run went unless it said more.
    pub(super) fn finish(&mut self, ended: Outcome) -> Outcome {
        // What init said last may still wait in the socket. Nothing is followed any more.
        while let Some(message) = self.linked.then(|| self.link.receive()).flatten() {
            self.learn(message);
        }
        let left = self.tree.as_ref().and_then(|tree| tree.end().err());
        // Taken, so that the group is removed before the end is told.
        let seen_late = self.ceilings.take().and_then(|ceilings| ceilings.last_look());
        let mut outcome = if let Some(reached) = self.reached.or(seen_late) {
            reached.tell();
            Outcome::Limit(reached)
        } else if self.timed_out {
            Outcome::TimedOut
        } else {
            self.outcome.unwrap_or(ended)
        };
        if let Some(left) = left {
            left.tell();
            // Whatever the command said of itself, the run has not gone well.
            if matches!(outcome, Outcome::Exited(_) | Outcome::Signalled(_)) {
                outcome = Outcome::Ended;
            }
        }
        let by_itself = matches!(outcome, Outcome::Exited(_));
        if let (Some(cut), true) = (self.deliver(!by_itself), by_itself) {
            outcome = cut;
        }
        if let Some((stream, limit)) = self.output.as_ref().and_then(Output::exceeded) {
            output::tell_limit(stream, limit);
            outcome = Outcome::OutputLimit;
        }
        if let Some(terminal) = &self.terminal {
            // A shell says 128+N of what it ran last.
            terminal.restore(!matches!(outcome, Outcome::Exited(..=128)));
        }
        outcome
    }
}
