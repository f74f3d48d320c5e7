//! What the black-box tests share: a scratch directory, the two identities, how a command is run with and without confine.
//!
//! Everything is judged from outside. The tests run as root, since half of the promises are root's; the other half runs as a user
//! of no rights and no name. Needed: gcc and a static C library (`apt-get install gcc libc6-dev`).
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod run;
pub mod scratch;
pub mod snapshot;
pub mod table;
pub mod victim;

use std::time::{Duration, Instant};

pub use run::{Outcome, Run};
pub use scratch::Scratch;
pub use snapshot::Snapshot;

/// Who calls confine. The user has no entry in the password file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    Root,
    User,
}

pub const USER: u32 = 54321;
pub const EVERYONE: [Who; 2] = [Who::Root, Who::User];

impl Who {
    pub fn id(self) -> u32 {
        match self {
            Who::Root => 0,
            Who::User => USER,
        }
    }
}

/// Once a command has made its mark; a command that never does is an end of the test, not a wait for ever.
#[track_caller]
pub fn wait_for(mark: &std::path::Path) {
    for _ in 0..6000 {
        if mark.exists() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{} has not appeared within a minute", mark.display());
}

/// For what is promised within a second. A machine that takes long over the least thing says nothing about it: there
/// it only has to come.
pub fn within_a_second(mut holds: impl FnMut() -> bool) -> bool {
    within(Duration::from_secs(1), &mut holds) || is_overloaded() && within(Duration::from_secs(20), holds)
}

/// Whether it comes to hold in this time.
pub fn within(time: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + time;
    loop {
        if holds() {
            return true;
        }
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Where nothing else runs a program that does nothing takes one millisecond or two.
fn is_overloaded() -> bool {
    let least = (0..5).map(|_| {
        let start = Instant::now();
        assert!(std::process::Command::new("true").status().unwrap().success());
        start.elapsed()
    });
    least.min().is_some_and(|least| least > Duration::from_millis(15))
}

/// Collects what went wrong over a whole table, so that one run tells of every gap at once.
#[derive(Default)]
pub struct Findings(Vec<String>);

impl Findings {
    pub fn claim(&mut self, holds: bool, tell: impl FnOnce() -> String) {
        if !holds {
            self.0.push(tell());
        }
    }

    #[track_caller]
    pub fn settle(self) {
        assert!(self.0.is_empty(), "{} findings:\n{}", self.0.len(), self.0.join("\n"));
    }
}
