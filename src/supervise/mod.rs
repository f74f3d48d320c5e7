//! The parent, when a promise or an option needs one. Three processes: the monitor (the process that was started),
//! a small init (process 1 of the PID namespace, or a subreaper where there is none), and the command, which is
//! never process 1 and so keeps its default signal actions.
//!
//! Everything hangs on one socket between monitor and init. When either end goes, however it goes, the other sees
//! it and ends the tree: there is no moment in which the command runs without somebody who would end it.
#![forbid(unsafe_code)]

pub mod broker;
pub mod init;
pub mod link;
pub mod monitor;
pub mod private;
mod scrub;
mod terminal;

use std::os::fd::OwnedFd;

use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use nix::unistd::Pid;

use crate::error::{Error, Result};
use crate::sys;
use link::Link;

/// Which of the processes this is now.
pub enum Role {
    /// The started process: watches, and ends with the command's status.
    Monitor { init: Pid, link: Link },
    /// The child that goes on with the boundary.
    Init { link: Link },
}

/// Forks the init. The PID namespace, if one was entered, begins with it.
pub fn split() -> Result<Role> {
    let failed = |what: &'static str| move |errno: nix::errno::Errno| Error::step(what, errno);
    scrub::scrub().map_err(|error| Error::step("clear the supervisor's command line", error))?;
    // Blocked before the fork, so that no signal is lost or takes its default action between the processes: both
    // read them from a descriptor. The command starts with an empty mask (`sys::reset_signals`).
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None).map_err(failed("block the signals"))?;
    let (outer, inner) = link::pair().map_err(|error| Error::step("make the supervisor's socket", error))?;
    match sys::fork_into_two().map_err(|error| Error::step("start the supervisor's child", error))? {
        Some(child) => {
            drop::<OwnedFd>(inner);
            Ok(Role::Monitor { init: Pid::from_raw(child), link: Link::new(outer) })
        }
        None => {
            drop::<OwnedFd>(outer);
            Ok(Role::Init { link: Link::new(inner) })
        }
    }
}
