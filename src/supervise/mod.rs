//! The parent, when a promise or an option needs one. Three processes: the monitor (the process that was started),
//! a small init (process 1 of the PID namespace, or a subreaper where there is none), and the command, which is
//! never process 1 and so keeps its default signal actions.
//!
//! Everything hangs on one socket between monitor and init. When either end goes, however it goes, the other sees
//! it and ends the tree: there is no moment in which the command runs without somebody who would end it. Should the
//! init be stopped, the kernel kills it with the monitor all the same (`Before::end_with_monitor`).
#![forbid(unsafe_code)]

mod bounded;
pub mod broker;
pub mod ceilings;
mod enclosure;
pub mod init;
pub mod link;
pub mod monitor;
pub mod output;
pub mod private;
pub mod result;
pub mod sample;
mod scrub;
mod stat;
pub mod surroundings;
mod terminal;
pub mod tracer;
mod tree;
mod walk;

use std::os::fd::OwnedFd;
use std::time::Duration;

use nix::poll::PollTimeout;
use nix::sys::signal::{SigmaskHow, sigprocmask};
use nix::unistd::Pid;

use crate::error::{Error, Result};
use crate::sys;
use init::Before;
use link::Link;
use surroundings::{Surroundings, now};
use tree::Tree;

/// Which of the processes this is now.
pub enum Role {
    /// The started process: watches, and ends with the command's status.
    Monitor { init: Pid, link: Link, surroundings: Surroundings, tree: Option<Tree> },
    /// The child that goes on with the boundary.
    Init(Before),
}

/// Forks the init. The PID namespace, if one was entered, begins with it; where there is none, `landlock` is the version
/// of the kernel's.
pub fn split(surroundings: Surroundings, namespace: bool, landlock: u32) -> Result<Role> {
    let failed = |what: &'static str| move |errno: nix::errno::Errno| Error::step(what, errno);
    // A caller that ignores SIGCHLD has its children reaped unseen, and that is inherited (sigaction(2)).
    sys::default_action(libc::SIGCHLD).map_err(|error| Error::step("reset SIGCHLD", error))?;
    scrub::scrub().map_err(|error| Error::step("clear the supervisor's command line", error))?;
    // Should the init be killed, its children come here to be ended.
    let tree = if namespace { None } else { Some(Tree::begin(landlock)?) };
    // Blocked before the fork, so that no signal is lost or takes its default action between the processes: both
    // read them from a descriptor. The command starts with an empty mask (`sys::reset_signals`).
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&sys::all_signals()), None)
        .map_err(failed("block the signals"))?;
    let (outer, inner) = link::pair().map_err(|error| Error::step("make the supervisor's socket", error))?;
    match sys::fork_into_two().map_err(|error| Error::step("start the supervisor's child", error))? {
        Some(child) => {
            drop::<OwnedFd>(inner);
            Ok(Role::Monitor { init: Pid::from_raw(child), link: Link::new(outer), surroundings, tree })
        }
        None => {
            drop::<OwnedFd>(outer);
            let tree = tree.as_ref().map(Tree::inherited);
            let before = Before { link: Link::new(inner), surroundings, tree };
            before.end_with_monitor()?;
            Ok(Role::Init(before))
        }
    }
}

/// How long poll(2) may wait for a moment. Rounded up: an early wake-up would only spin.
fn until(moment: Option<Duration>) -> PollTimeout {
    match moment {
        Some(at) => PollTimeout::try_from(at.saturating_sub(now()) + Duration::from_millis(1))
            .unwrap_or(PollTimeout::MAX),
        None => PollTimeout::NONE,
    }
}
