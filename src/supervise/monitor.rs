//! The monitor: the process that was started. It forwards signals, follows stops, keeps the deadline, notices when
//! its caller has gone, and ends with the command's status.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::set_dumpable;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd, siginfo};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getppid};
use rustix::process::{PidfdFlags, pidfd_open};
use rustix::time::{ClockId, clock_gettime};

use super::ceilings::{Ceilings, Reached};
use super::link::{Link, Message};
use super::terminal::Terminal;
use crate::error::{Error, Result};
use crate::plan::Supervision;
use crate::sys;

/// After TERM, unless `--grace` says otherwise: short enough that nothing is left within a second.
const GRACE: Duration = Duration::from_millis(800);

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Exited(i32),
    Signalled(i32),
    TimedOut,
    /// The tree was ended because it went over a ceiling.
    Limit(Reached),
    /// The caller has gone, or somebody killed the init: the tree was ended.
    Ended,
}

impl Outcome {
    /// 124 is timeout(1)'s, 128+N the shell's.
    pub fn status(self) -> u8 {
        match self {
            Outcome::Exited(status) => status as u8,
            Outcome::Signalled(signal) => 128u8.saturating_add(signal as u8),
            Outcome::TimedOut => 124,
            Outcome::Limit(_) | Outcome::Ended => 137,
        }
    }
}

pub struct Monitor {
    link: Link,
    init: Pid,
    signals: SignalFd,
    terminal: Option<Terminal>,
    caller: Option<OwnedFd>,
    grace: Duration,
    deadline: Option<Duration>,
    /// When the tree is killed, because it was asked to end.
    kill_at: Option<Duration>,
    outcome: Option<Outcome>,
    timed_out: bool,
    teardown: bool,
    ceilings: Option<Ceilings>,
    reached: Option<Reached>,
}

/// CLOCK_BOOTTIME: a lease runs on while the machine is suspended.
fn now() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

impl Monitor {
    /// To be called before the init is forked, since the caller may go at any moment: if its parent is another
    /// process afterwards, it has gone already.
    pub fn watch_caller() -> Option<OwnedFd> {
        let parent = getppid();
        let pid = rustix::process::Pid::from_raw(parent.as_raw())?;
        let fd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        (getppid() == parent).then_some(fd)
    }

    pub fn new(link: Link, init: Pid, supervision: &Supervision, caller: Option<OwnedFd>) -> Result<Monitor> {
        let signals = SignalFd::with_flags(&SigSet::all(), SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
            .map_err(|errno| Error::step("watch the signals", errno))?;
        let _ = set_dumpable(false);
        let terminal = Terminal::find();
        // Who reads the command's output must see its end, and who writes its input the end of its reader.
        // Standard error stays: a reason for ending the run is told there.
        (0..=1).for_each(sys::close);
        Ok(Monitor {
            link,
            init,
            signals,
            terminal,
            caller: caller.filter(|_| supervision.teardown),
            grace: supervision.grace.unwrap_or(GRACE),
            deadline: supervision.timeout.map(|timeout| now().saturating_add(timeout)),
            kill_at: None,
            outcome: None,
            timed_out: false,
            teardown: supervision.teardown,
            ceilings: None,
            reached: None,
        })
    }

    /// Lets the init go on, under these.
    pub fn watch_ceilings(&mut self, mut ceilings: Ceilings) -> Result<()> {
        ceilings.begin(self.init, now())?;
        self.ceilings = Some(ceilings);
        Ok(())
    }

    /// Until nothing of the run is left.
    pub fn run(mut self) -> Outcome {
        let _ = std::env::set_current_dir("/");
        loop {
            if let Some(outcome) = self.reap() {
                return self.finish(outcome);
            }
            let ready = self.wait();
            if ready.caller {
                self.caller = None;
                self.kill_all();
            }
            if ready.signal {
                while let Ok(Some(info)) = self.signals.read_signal() {
                    self.on_signal(&info);
                }
            }
            if ready.link {
                self.on_message();
            }
            self.on_time();
        }
    }

    fn wait(&self) -> Ready {
        let link = self.outcome.is_none().then(|| self.link.as_fd());
        let caller = self.caller.as_ref().map(|fd| fd.as_fd());
        let mut watched = vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        watched.extend(
            link.iter().chain(caller.iter()).map(|fd: &BorrowedFd<'_>| PollFd::new(*fd, PollFlags::POLLIN)),
        );
        // Once the end has begun there is nothing more to be counted.
        let ceilings = self.ceilings.as_ref().filter(|_| self.outcome.is_none());
        let look = ceilings.and_then(Ceilings::next);
        // Only to be woken: what it is about is asked of the ceilings themselves.
        let notice = ceilings.and_then(Ceilings::notice);
        watched.extend(notice.map(|(fd, flags)| PollFd::new(fd, flags)));
        let next = [self.deadline, self.kill_at, look].into_iter().flatten().min();
        let timeout = match next {
            // Rounded up: an early wake-up would only spin.
            Some(at) => PollTimeout::try_from(at.saturating_sub(now()) + Duration::from_millis(1))
                .unwrap_or(PollTimeout::MAX),
            None => PollTimeout::NONE,
        };
        let _ = poll(&mut watched, timeout);
        let is_ready = |index: usize| watched.get(index).and_then(PollFd::any).unwrap_or(false);
        Ready {
            signal: is_ready(0),
            link: link.is_some() && is_ready(1),
            caller: caller.is_some() && is_ready(1 + usize::from(link.is_some())),
        }
    }

    fn on_signal(&mut self, info: &siginfo) {
        let number = info.ssi_signo as i32;
        // The terminal sends to its whole foreground group, and the command is in it: once is enough.
        let from_terminal = info.ssi_code == libc::SI_KERNEL;
        match Signal::try_from(number) {
            Ok(Signal::SIGCHLD) => {}
            Ok(Signal::SIGCONT) => self.go_on(),
            _ if from_terminal => {}
            Ok(Signal::SIGTERM) if self.teardown => {
                let _ = self.link.send(Message::Signal(number));
                self.kill_at.get_or_insert(now() + self.grace);
            }
            _ => {
                let _ = self.link.send(Message::Signal(number));
            }
        }
    }

    fn on_message(&mut self) {
        match self.link.receive() {
            Some(Message::Exited(status)) => self.outcome = Some(Outcome::Exited(status)),
            Some(Message::Killed(signal)) => self.outcome = Some(Outcome::Signalled(signal)),
            Some(Message::Stopped(signal)) => {
                if let Some(terminal) = &mut self.terminal {
                    terminal.give_back();
                }
                stop(signal);
            }
            Some(Message::Signal(_) | Message::SignalAll(_)) | None => self.outcome = Some(Outcome::Ended),
        }
    }

    fn go_on(&mut self) {
        if let Some(terminal) = &mut self.terminal {
            terminal.hand_over();
        }
        let _ = self.link.send(Message::Signal(Signal::SIGCONT as i32));
    }

    fn on_time(&mut self) {
        let now = now();
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.deadline = None;
            self.timed_out = true;
            let _ = self.link.send(Message::SignalAll(Signal::SIGTERM as i32));
            // A stopped process cannot answer TERM.
            let _ = self.link.send(Message::SignalAll(Signal::SIGCONT as i32));
            self.kill_at.get_or_insert(now + self.grace);
        }
        if self.outcome.is_none()
            && let Some(reached) = self.ceilings.as_mut().and_then(|ceilings| ceilings.look(now))
        {
            self.reached = Some(reached);
            self.kill_all();
            self.ceilings.iter().for_each(Ceilings::kill);
        }
        if self.kill_at.is_some_and(|at| at <= now) {
            self.kill_at = None;
            self.kill_all();
        }
    }

    /// Where there is no PID namespace the init has to do the killing, and does it when the socket closes.
    fn kill_all(&mut self) {
        let _ = rustix::net::shutdown(&self.link, rustix::net::Shutdown::Both);
        self.outcome.get_or_insert(Outcome::Ended);
    }

    fn reap(&self) -> Option<Outcome> {
        match waitpid(self.init, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) | Err(Errno::EINTR) => None,
            Ok(WaitStatus::Exited(_, status)) => Some(self.outcome.unwrap_or(Outcome::Exited(status))),
            _ => Some(self.outcome.unwrap_or(Outcome::Ended)),
        }
    }

    fn finish(&mut self, outcome: Outcome) -> Outcome {
        // What init said last may still wait in the socket.
        if self.outcome.is_none() {
            match self.link.receive() {
                Some(Message::Exited(status)) => self.outcome = Some(Outcome::Exited(status)),
                Some(Message::Killed(signal)) => self.outcome = Some(Outcome::Signalled(signal)),
                _ => {}
            }
        }
        // Taken, so that the group is removed before the end is told.
        let seen_late = self.ceilings.take().and_then(|ceilings| ceilings.last_look());
        let outcome = if let Some(reached) = self.reached.or(seen_late) {
            reached.tell();
            Outcome::Limit(reached)
        } else if self.timed_out {
            Outcome::TimedOut
        } else {
            self.outcome.unwrap_or(outcome)
        };
        if let Some(terminal) = &self.terminal {
            terminal.restore(!matches!(outcome, Outcome::Exited(_)));
        }
        outcome
    }
}

/// The shell must see this process stopped, and by what. Going on, it is told by SIGCONT, which is read from the
/// descriptor like any other signal.
fn stop(signal: i32) {
    let signal = Signal::try_from(signal).unwrap_or(Signal::SIGSTOP);
    let _ = kill(Pid::this(), signal);
    // SIGSTOP has taken effect already; the others of its kind are blocked until here.
    let alone = SigSet::from(signal);
    let _ = alone.thread_unblock();
    let _ = alone.thread_block();
}

struct Ready {
    signal: bool,
    link: bool,
    caller: bool,
}
