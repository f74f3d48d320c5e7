//! What the tests of the supervisor share: finding processes from outside, by an argument that nothing else has.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod terminal;

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

pub use crate::common::within;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A number of seconds for sleep(1) that no other process of the machine has.
pub fn mark() -> String {
    format!("1000.{}{:03}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Every living process with the mark in its command line.
pub fn marked(mark: &str) -> Vec<i32> {
    let pids =
        fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        state(*pid).is_some_and(|state| state != 'Z') && String::from_utf8_lossy(&line).contains(mark)
    })
    .collect()
}

/// The one process with the mark that runs this program. confine itself has the mark in its arguments until they are
/// scrubbed, and a shell in those of the child that it has forked but not yet replaced.
pub fn program(mark: &str, name: &str) -> i32 {
    let mut found = Vec::new();
    await_that(name, || {
        found = marked(mark);
        found.retain(|pid| status(*pid, "Name").is_some_and(|is| is == name));
        found.len() == 1
    });
    found[0]
}

pub fn state(pid: i32) -> Option<char> {
    field(pid, 0)?.chars().next()
}

/// Fields of /proc/PID/stat, counted from the state on.
pub fn field(pid: i32, number: usize) -> Option<String> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    stat.rsplit_once(')')?.1.split_whitespace().nth(number).map(str::to_owned)
}

/// A field of /proc/PID/status.
pub fn status(pid: i32, name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    text.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim().to_owned()))
}

pub fn children(pid: i32) -> Vec<i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

/// The init of a monitor and the command below it, once it runs: while the boundary is made the init has short-lived
/// children that are confine itself.
pub fn init_and_command(monitor: i32) -> (i32, i32) {
    let mut found = None;
    await_that("an init with a command", || {
        found = children(monitor).first().and_then(|init| {
            let command = children(*init)
                .into_iter()
                .find(|pid| status(*pid, "Name").is_some_and(|name| name != "confine" && name != "setsid"))?;
            Some((*init, command))
        });
        found.is_some()
    });
    found.unwrap()
}

/// Whether the process has a handler for the signal.
pub fn catches(pid: i32, signal: i32) -> bool {
    let caught = status(pid, "SigCgt").and_then(|mask| u64::from_str_radix(&mask, 16).ok());
    caught.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[track_caller]
pub fn await_that(what: &str, holds: impl FnMut() -> bool) {
    assert!(within(Duration::from_secs(20), holds), "never came: {what}");
}

pub fn send(pid: i32, signal: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    let signal = rustix::process::Signal::from_named_raw(signal).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}
