//! The terminal under supervision: who is in the foreground, and how it was set.

use std::os::fd::OwnedFd;

use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};

use crate::sys;

/// What the terminal was like when the command started. Changing the foreground group from the background would
/// stop this process (SIGTTOU), but every signal is blocked here, and then it is allowed (tcsetpgrp(3)).
pub struct Terminal {
    fd: OwnedFd,
    settings: Option<Termios>,
    /// Whether this process's group had the terminal.
    foreground: bool,
    /// The group that had it when the command stopped.
    inner: Option<Pid>,
}

impl Terminal {
    /// The first of the standard descriptors that is this session's terminal.
    pub fn find() -> Option<Terminal> {
        (0..=2).find_map(|number| {
            let fd = sys::borrow(number).ok()?;
            let group = tcgetpgrp(fd).ok()?;
            let settings = tcgetattr(fd).ok();
            let fd = fd.try_clone_to_owned().ok()?;
            Some(Terminal { fd, settings, foreground: group == getpgrp(), inner: None })
        })
    }

    /// The command has stopped: the shell that started confine gets its terminal back.
    pub fn give_back(&mut self) {
        self.inner = tcgetpgrp(&self.fd).ok().filter(|group| *group != getpgrp());
        if self.foreground && self.inner.is_some() {
            let _ = tcsetpgrp(&self.fd, getpgrp());
        }
    }

    /// The command goes on: in the foreground only if confine was put there.
    pub fn hand_over(&mut self) {
        self.foreground = tcgetpgrp(&self.fd).is_ok_and(|group| group == getpgrp());
        if let (true, Some(inner)) = (self.foreground, self.inner.take()) {
            let _ = tcsetpgrp(&self.fd, inner);
        }
    }

    /// The command is gone. What it set on purpose stays when it ended by itself, as without confine.
    pub fn restore(&self, died: bool) {
        if !self.foreground {
            return;
        }
        // A group that is gone, or that of a job that was inside, must not keep the terminal.
        if tcgetpgrp(&self.fd).ok() != Some(getpgrp()) {
            let _ = tcsetpgrp(&self.fd, getpgrp());
        }
        if let (true, Some(settings)) = (died, &self.settings) {
            let _ = tcsetattr(&self.fd, SetArg::TCSANOW, settings);
        }
    }
}
