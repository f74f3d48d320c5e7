//! The monitor: the process that was started. It forwards signals, follows stops, keeps the deadline, notices when
//! its caller has gone, and ends with the command's status.

mod ending;

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::prctl::set_dumpable;
use nix::sys::signal::{SigEvent, SigevNotify};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd, siginfo};
use nix::sys::time::TimeSpec;
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::ClockId;
use nix::unistd::{Pid, getpid, getsid};

use super::ceilings::{Ceilings, Reached};
use super::link::{Link, Message};
use super::output::Output;
use super::sample::{Sampler, Spent};
use super::surroundings::{Surroundings, Watched, now};
use super::terminal::Terminal;
use super::tracer::{Told, Tracer};
use super::tree::Tree;
use super::until;
use crate::error::{Error, Result};
use crate::sys;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Exited(i32),
    Signalled(i32),
    TimedOut,
    /// The tree was ended because it wrote more than it may.
    OutputLimit,
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
            Outcome::OutputLimit | Outcome::Limit(_) | Outcome::Ended => 137,
        }
    }
}

/// The end of a run, and what came out of it.
pub struct End {
    pub outcome: Outcome,
    pub wall: Duration,
    pub output: Option<Output>,
    /// Somebody waits for the end: what else there is to be told must not take its time.
    pub hurried: bool,
    /// What the boundary denied, if the run was traced.
    pub denied: Option<Told>,
    /// Until it was ended by force, if it was.
    pub spent: Option<Spent>,
}

pub struct Monitor {
    link: Link,
    /// The init has not closed its end.
    linked: bool,
    init: Pid,
    /// None where the init takes everything with it, as the first process of a PID namespace.
    tree: Option<Tree>,
    signals: SignalFd,
    terminal: Option<Terminal>,
    /// None: the run does not end with its caller.
    caller: Option<Watched>,
    teardown: bool,
    hangup_ignored: bool,
    grace: Duration,
    deadline: Option<Duration>,
    /// Held, so that it fires.
    _alarm: Option<Timer>,
    /// When the tree is killed, because it was asked to end.
    kill_at: Option<Duration>,
    /// How many times the command has been continued.
    turn: u64,
    outcome: Option<Outcome>,
    timed_out: bool,
    /// None: the command has the caller's own streams.
    output: Option<Output>,
    began: Duration,
    /// A signal that ends programs has come here: the last order, or else the first question.
    hurried: Option<i32>,
    ceilings: Option<Ceilings>,
    /// Everything inside was stopped along with the command.
    frozen: bool,
    reached: Option<Reached>,
    tracer: Option<Tracer>,
    /// Somebody is told what was used.
    counter: Option<Sampler>,
    spent: Option<Spent>,
}

impl Monitor {
    pub fn new(link: Link, init: Pid, tree: Option<Tree>, surroundings: Surroundings) -> Result<Monitor> {
        let signals =
            SignalFd::with_flags(&sys::all_signals(), SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
                .map_err(|errno| Error::step("watch the signals", errno))?;
        set_dumpable(false).map_err(|errno| Error::step("hide the supervisor's memory", errno))?;
        // Who reads the command's output must see its end, and who writes its input the end of its reader.
        (0..=1).for_each(sys::close);
        Ok(Monitor {
            link,
            linked: true,
            init,
            tree,
            signals,
            terminal: surroundings.terminal,
            teardown: surroundings.caller.is_some(),
            caller: surroundings.caller,
            hangup_ignored: surroundings.hangup_ignored,
            grace: surroundings.grace,
            deadline: surroundings.deadline,
            _alarm: surroundings.deadline.map(alarm).transpose()?,
            kill_at: None,
            turn: 0,
            outcome: None,
            timed_out: false,
            output: None,
            began: now(),
            hurried: None,
            ceilings: None,
            frozen: false,
            reached: None,
            tracer: None,
            counter: None,
            spent: None,
        })
    }

    pub fn trace(&mut self, tracer: Tracer) {
        self.tracer = Some(tracer);
    }

    pub fn count(&mut self, counter: Sampler) {
        self.counter = Some(counter);
    }

    pub fn relay(&mut self, output: Output) {
        self.output = Some(output);
    }

    /// Lets the init go on, under these.
    pub fn watch_ceilings(&mut self, mut ceilings: Ceilings) -> Result<()> {
        ceilings.begin(self.init, now())?;
        self.ceilings = Some(ceilings);
        Ok(())
    }

    /// Whether a reason for ending the run, what was denied, or what could not be ended may have to be told on standard
    /// error.
    pub fn may_speak(&self) -> bool {
        self.tree.is_some() || self.output.is_some() || self.ceilings.is_some() || self.tracer.is_some()
    }

    /// Until nothing of the run is left.
    pub fn run(mut self) -> End {
        let _ = std::env::set_current_dir("/");
        loop {
            if let Some(tracer) = &mut self.tracer {
                tracer.turn();
            }
            if let Some(outcome) = self.reap() {
                let outcome = self.finish(outcome);
                self.let_go();
                let (wall, hurried) = (now().saturating_sub(self.began), self.hurried.is_some());
                let denied = self.tracer.map(Tracer::into_told);
                return End { outcome, wall, output: self.output, hurried, denied, spent: self.spent };
            }
            let ready = self.wait();
            if ready.caller || self.caller.as_ref().is_some_and(Watched::has_gone) {
                self.caller = None;
                self.hurried = Some(libc::SIGKILL);
                self.kill_all();
            }
            self.pass_on();
            if let Some(tracer) = self.tracer.as_mut().filter(|_| ready.tracee) {
                tracer.attach();
            }
            if ready.signal {
                self.on_signals();
            }
            if ready.link {
                self.on_message();
            }
            self.on_time();
        }
    }

    fn wait(&self) -> Ready {
        let link = self.linked.then(|| self.link.as_fd());
        let caller = self.caller.as_ref().and_then(|caller| caller.pidfd.as_ref()).map(|fd| fd.as_fd());
        let tracee = self.tracer.as_ref().and_then(Tracer::watched);
        let mut watched = vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        let more = link.iter().chain(caller.iter()).chain(tracee.iter());
        watched.extend(more.map(|fd: &BorrowedFd<'_>| PollFd::new(*fd, PollFlags::POLLIN)));
        // Once the end has begun there is nothing more to be counted.
        let ceilings = self.ceilings.as_ref().filter(|_| self.outcome.is_none());
        let look = ceilings.and_then(Ceilings::next);
        // Only to be woken: what it is about is asked of the ceilings themselves.
        let notice = ceilings.and_then(Ceilings::notice);
        watched.extend(notice.map(|(fd, flags)| PollFd::new(fd, flags)));
        let deadline = self.deadline.filter(|_| self.outcome.is_none());
        let next = [deadline, self.kill_at, look].into_iter().flatten().min();
        // Each stream finds out by itself what it can do.
        watched.extend(self.output.iter().flat_map(Output::watched));
        let _ = poll(&mut watched, until(next));
        let is_ready = |index: usize| watched.get(index).and_then(PollFd::any).unwrap_or(false);
        Ready {
            signal: is_ready(0),
            link: link.is_some() && is_ready(1),
            caller: caller.is_some() && is_ready(1 + usize::from(link.is_some())),
            tracee: tracee.is_some()
                && is_ready(1 + usize::from(link.is_some()) + usize::from(caller.is_some())),
        }
    }

    fn on_signals(&mut self) {
        while let Ok(Some(info)) = self.signals.read_signal() {
            self.on_signal(&info);
        }
    }

    fn on_signal(&mut self, info: &siginfo) {
        let number = info.ssi_signo as i32;
        // The kernel's own come from the terminal, to its whole foreground group, and the command is in it: once is
        // enough. Only of a hangup the leader of the session is told alone.
        let kernels = info.ssi_code > 0;
        match number {
            libc::SIGHUP if self.hangup_ignored => {}
            libc::SIGTERM | libc::SIGHUP => self.hurried = Some(number),
            libc::SIGINT | libc::SIGQUIT => _ = self.hurried.get_or_insert(number),
            _ => {}
        }
        match number {
            // From a write of our own, to a reader that has gone.
            libc::SIGPIPE if info.ssi_pid == getpid().as_raw() as u32 => {}
            libc::SIGCHLD if kernels => {}
            // The alarm, or a word of init (POLL_IN to POLL_HUP): only to look.
            libc::SIGCONT if info.ssi_code == libc::SI_TIMER || (1..=6).contains(&info.ssi_code) => {}
            libc::SIGCONT => self.go_on(),
            libc::SIGHUP if kernels => {
                if getsid(None) == Ok(getpid()) {
                    let _ = self.link.send(Message::Signal(number));
                }
                self.begin_to_end(!self.hangup_ignored);
            }
            _ if kernels => {}
            _ => {
                let _ = self.link.send(match info.ssi_code {
                    libc::SI_QUEUE => Message::Queue(number, info.ssi_ptr),
                    _ => Message::Signal(number),
                });
                self.begin_to_end(match number {
                    libc::SIGTERM => true,
                    libc::SIGHUP => !self.hangup_ignored,
                    _ => false,
                });
            }
        }
    }

    /// Under teardown who is told to end has the grace to do so, and no more.
    fn begin_to_end(&mut self, told: bool) {
        if self.teardown && told {
            self.kill_at.get_or_insert(now().saturating_add(self.grace));
        }
    }

    fn on_message(&mut self) {
        match self.link.receive() {
            Some(message @ (Message::Exited(_) | Message::Killed(_))) => {
                self.learn(message);
                self.tree.iter().for_each(|tree| _ = tree.strike());
            }
            Some(Message::Uncaught(_)) => self.begin_to_end(true),
            Some(Message::Stopped(signal, turn, with_terminal)) => self.on_stop(signal, turn, with_terminal),
            // The init is ending, and its status says why.
            _ => self.linked = false,
        }
    }

    fn on_stop(&mut self, signal: i32, turn: u64, with_terminal: bool) {
        if let (true, Some(terminal)) = (with_terminal, &mut self.terminal) {
            terminal.give_back();
        }
        // Whatever else runs inside cannot without its tracer; only a shell at the terminal has to see the stop.
        if self.tracer.is_some() && self.terminal.is_none() {
            return;
        }
        // What has been continued since is not stopped any more, and stopping would throw a SIGCONT away that has
        // come meanwhile (signal(7)).
        self.on_signals();
        if turn == self.turn && self.outcome.is_none() && !self.is_late(now()) {
            // What is counted by looking is not counted while this process is stopped, so nothing may run then.
            if self.ceilings.as_ref().and_then(Ceilings::next).is_some() {
                self.frozen = self.link.send(Message::SignalAll(libc::SIGSTOP)).is_ok();
            }
            // What init has to say wakes it up again: the command may be continued from inside, and end.
            let armed = sys::signal_on_input(self.link.as_fd(), libc::SIGCONT, true).is_ok();
            if !self.has_message() {
                stop(signal);
            }
            if armed {
                let _ = sys::signal_on_input(self.link.as_fd(), libc::SIGCONT, false);
            }
        }
    }

    fn has_message(&self) -> bool {
        let mut watched = [PollFd::new(self.link.as_fd(), PollFlags::POLLIN)];
        poll(&mut watched, nix::poll::PollTimeout::ZERO).is_ok_and(|count| count > 0)
    }

    fn pass_on(&mut self) {
        let Some(output) = &mut self.output else { return };
        output.turn();
        if output.exceeded().is_some() && self.outcome.is_none() {
            self.kill_all();
        }
    }

    fn go_on(&mut self) {
        if let Some(terminal) = &mut self.terminal {
            terminal.hand_over();
        }
        // Stopped with its group, the init could not hand the signal on. Queued, so that it is not taken for the
        // copy of one that the command got too.
        let _ = sys::queue(self.init.as_raw(), libc::SIGCONT, 0);
        self.turn += 1;
        let _ = self.link.send(Message::Continue(self.turn));
        if std::mem::take(&mut self.frozen) {
            let _ = self.link.send(Message::SignalAll(libc::SIGCONT));
        }
    }

    fn is_late(&self, now: Duration) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    fn on_time(&mut self) {
        let now = now();
        // Who has ended in time is not late for what the kernel takes to clear away.
        if self.outcome.is_none() && self.is_late(now) {
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
}

/// A SIGCONT at the deadline, since a stopped process has no other way to notice it. And again: stopping throws one
/// away that has just come (signal(7)).
fn alarm(deadline: Duration) -> Result<Timer> {
    let event = SigEvent::new(SigevNotify::SigevSignal { signal: Signal::SIGCONT, si_value: 0 });
    Timer::new(ClockId::CLOCK_BOOTTIME, event)
        .and_then(|mut timer| {
            let again = TimeSpec::from_duration(Duration::from_secs(1));
            let at = Expiration::IntervalDelayed(TimeSpec::from_duration(deadline), again);
            timer.set(at, TimerSetTimeFlags::TFD_TIMER_ABSTIME).map(|()| timer)
        })
        .map_err(|errno| Error::step("set the timer", errno))
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
    tracee: bool,
}
