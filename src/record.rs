//! What is told about a run: JSON lines on `--status-fd`, and step times for measurements.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::Write;
use std::os::fd::RawFd;
use std::time::Instant;

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::plan::{JSON_VERSION, Plan};
use crate::supervise::monitor::Outcome;
use crate::sys;

/// The status descriptor, if one was given. It is closed by execve(2), so the command cannot write to it.
#[derive(Debug, Default)]
pub struct Record {
    status: Option<File>,
    /// Added to "started".
    scan: Option<(u64, u128)>,
}

impl Record {
    pub fn open(status_fd: Option<RawFd>) -> Result<Record> {
        let Some(number) = status_fd else { return Ok(Record::default()) };
        let duplicate = sys::borrow(number).and_then(|fd| fd.try_clone_to_owned());
        match duplicate {
            Ok(fd) => Ok(Record { status: Some(fd.into()), scan: None }),
            Err(_) => Err(Error::usage(format!("--status-fd {number} is not open")).with_hint(format!(
                "open it in the shell: `confine --status-fd {number} … {number}>status.json`"
            ))),
        }
    }

    pub fn scanned(&mut self, entries: u64, microseconds: u128) {
        self.scan = Some((entries, microseconds));
    }

    pub fn started(&mut self, plan: &Plan) -> Result<()> {
        if self.status.is_none() {
            return Ok(());
        }
        let mut line = json!({
            "version": JSON_VERSION,
            "event": "started",
            "pid": std::process::id(),
            "policy": plan.id(),
            "promises": plan.promises,
            "waived": plan.waived,
        });
        if let Some((entries, microseconds)) = self.scan {
            line["scan"] = json!({ "entries": entries, "microseconds": microseconds });
        }
        self.write(line).map_err(|error| Error::step("write the status line", error))
    }

    /// The last line of a supervised run. Returns the status to end with.
    pub fn ended(&mut self, outcome: Outcome) -> u8 {
        let status = outcome.status();
        let mut line = json!({ "version": JSON_VERSION, "event": "ended", "status": status });
        line["outcome"] = match outcome {
            Outcome::Exited(_) => "exited".into(),
            Outcome::Signalled(signal) => {
                line["signal"] = signal.into();
                "signalled".into()
            }
            Outcome::TimedOut => "timed-out".into(),
            Outcome::Limit(reached) => {
                line["limit"] = reached.limit.into();
                line["mechanism"] = reached.mechanism.into();
                reached.outcome().into()
            }
            Outcome::Ended => "ended".into(),
        };
        let _ = self.write(line);
        status
    }

    /// Best effort: there is an error to report already.
    pub fn refused(&mut self, error: &Error) {
        let line = json!({
            "version": JSON_VERSION,
            "event": "refused",
            "status": error.status(),
            "message": error.to_string(),
            "hint": error.hint(),
        });
        let _ = self.write(line);
    }

    fn write(&mut self, line: Value) -> std::io::Result<()> {
        match &mut self.status {
            Some(file) => file.write_all(format!("{line}\n").as_bytes()),
            None => Ok(()),
        }
    }
}

/// Microseconds a step, for `--timings`.
#[derive(Debug)]
pub struct Timings {
    steps: Option<Vec<(&'static str, u128)>>,
    last: Instant,
}

impl Timings {
    pub fn new(wanted: bool) -> Timings {
        Timings { steps: wanted.then(Vec::new), last: Instant::now() }
    }

    pub fn mark(&mut self, step: &'static str) {
        if let Some(steps) = &mut self.steps {
            let now = Instant::now();
            steps.push((step, (now - self.last).as_micros()));
            self.last = now;
        }
    }

    pub fn print(&self) {
        let Some(steps) = &self.steps else { return };
        let mut text = String::new();
        for (step, microseconds) in steps {
            text.push_str(&format!("{step:<14} {microseconds:>7} us\n"));
        }
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}
