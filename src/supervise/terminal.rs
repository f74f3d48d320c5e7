//! The terminal under supervision: who is in the foreground, and how it was set.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::signal::killpg;
use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};

use crate::sys;

/// What the terminal was like when the command started. Changing the foreground group from the background would
/// stop this process (SIGTTOU), but every signal is blocked here, and then it is allowed (tcsetpgrp(3)).
pub struct Terminal {
    fd: OwnedFd,
    settings: Option<Termios>,
    /// The group inside that was in the foreground when the command stopped.
    inner: Option<Pid>,
}

impl Terminal {
    /// The first of the standard descriptors that is this session's terminal.
    pub fn find() -> Option<Terminal> {
        (0..=2).find_map(|number| {
            let fd = sys::borrow(number).ok()?;
            tcgetpgrp(fd).ok()?;
            let settings = tcgetattr(fd).ok();
            let fd = fd.try_clone_to_owned().ok()?;
            Some(Terminal { fd, settings, inner: None })
        })
    }

    pub fn foreground(&self) -> Option<Pid> {
        tcgetpgrp(&self.fd).ok()
    }

    /// The command has stopped while a group inside, which is not confine's own, was in the foreground: the shell
    /// that started confine gets its terminal back.
    pub fn give_back(&mut self) {
        self.inner = self.foreground().filter(|group| *group != getpgrp());
        if self.inner.is_some() {
            let _ = tcsetpgrp(&self.fd, getpgrp());
        }
    }

    /// The command goes on: in the foreground only if confine was put there.
    pub fn hand_over(&mut self) {
        if let (true, Some(inner)) = (self.foreground() == Some(getpgrp()), self.inner.take()) {
            let _ = tcsetpgrp(&self.fd, inner);
        }
    }

    /// The command is gone. What it set on purpose stays when it ended by itself, as without confine.
    pub fn restore(&self, died: bool) {
        let Some(group) = self.foreground() else { return };
        // A group that was inside is gone with everything else and must not keep the terminal. One that lives is
        // another job of the caller's shell.
        if group != getpgrp() {
            if !is_gone(group) {
                return;
            }
            let _ = tcsetpgrp(&self.fd, getpgrp());
        }
        if let (true, Some(settings)) = (died, &self.settings) {
            let _ = tcsetattr(&self.fd, SetArg::TCSANOW, settings);
        }
    }
}

impl AsFd for Terminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn is_gone(group: Pid) -> bool {
    killpg(group, None) == Err(Errno::ESRCH)
}
