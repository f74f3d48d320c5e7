//! What is told about a run: JSON lines on `--status-fd`, and step times for measurements.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, RawFd};
use std::time::Instant;

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::plan::{JSON_VERSION, Plan};
use crate::policy::Policy;
use crate::supervise::monitor::{End, Outcome};
use crate::supervise::result::{self, Before, Report};
use crate::sys;

/// The status descriptor, if one was given. It is closed by execve(2), so the command cannot write to it.
#[derive(Debug, Default)]
pub struct Record {
    status: Option<File>,
    result: Where,
    /// Added to "started".
    scan: Option<(u64, u128)>,
}

/// Where the result goes.
#[derive(Debug, Default)]
enum Where {
    #[default]
    Nowhere,
    /// It is the last of the status lines.
    Status,
    /// Standard output, which the command then does not get.
    Output(File),
    /// Only why the command could not be started is told, and to the parent.
    Parent(File),
}

impl Record {
    pub fn open(status_fd: Option<RawFd>) -> Result<Record> {
        let Some(number) = status_fd else { return Ok(Record::default()) };
        match duplicate(number) {
            Ok(file) => Ok(Record { status: Some(file), ..Record::default() }),
            Err(_) => Err(Error::usage(format!("--status-fd {number} is not open")).with_hint(format!(
                "open it in the shell: `confine --status-fd {number} … {number}>status.json`"
            ))),
        }
    }

    /// With the result, if one is asked for.
    pub fn of_run(policy: &Policy) -> Result<Record> {
        if !policy.result {
            return Record::open(policy.status_fd);
        }
        match (policy.status_fd, Record::open(policy.status_fd)) {
            (Some(_), Ok(record)) => Ok(Record { result: Where::Status, ..record }),
            (_, opened) => {
                let mut record = Record { result: Where::output()?, ..Record::default() };
                opened.inspect_err(|error| record.refused(error))?;
                Ok(record)
            }
        }
    }

    /// Whether the command's own output would get into the result.
    pub fn takes_output(&self) -> bool {
        matches!(self.result, Where::Output(_))
    }

    pub fn has_result(&self) -> bool {
        !matches!(self.result, Where::Nowhere)
    }

    /// In the child that goes on with the boundary: the parent has the last word.
    pub fn leave_to_parent(&mut self, report: Report) {
        self.result = Where::Parent(report.into_writer());
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
    pub fn ended(&mut self, plan: &Plan, end: &End, watched: Option<(Report, Before)>) -> u8 {
        let status = end.outcome.status();
        let mut line = json!({
            "version": JSON_VERSION,
            "event": "ended",
            "outcome": result::name(end.outcome),
            "status": status,
        });
        if let Outcome::Signalled(signal) = end.outcome {
            line["signal"] = signal.into();
        }
        if let Some((report, before)) = watched {
            if let Some(told) = result::reported(report.into_reader()) {
                // What the child said on standard error is among the command's output, which is not shown.
                if self.takes_output() {
                    tell(&told);
                }
                line = result::refused(Some(plan.id()), &told);
            } else {
                result::fill(&mut line, plan.id(), end, Some(&before));
            }
        }
        if let Outcome::Limit(reached) = end.outcome {
            line["limit"] = reached.limit.into();
            line["mechanism"] = reached.mechanism.into();
        }
        self.last(line);
        status
    }

    /// Best effort: there is an error to report already.
    pub fn refused(&mut self, error: &Error) {
        if let Where::Parent(report) = &mut self.result {
            return result::report(report, error);
        }
        let told = json!({ "status": error.status(), "message": error.to_string(), "hint": error.hint() });
        self.last(result::refused(None, &told));
    }

    fn last(&mut self, line: Value) {
        let written = match &mut self.result {
            Where::Output(file) => file.write_all(format!("{line}\n").as_bytes()),
            _ => self.write(line),
        };
        if let (true, Err(error)) = (self.has_result(), written) {
            let _ = std::io::stderr().write_all(result::unwritten(&error).as_bytes());
        }
    }

    fn write(&mut self, line: Value) -> std::io::Result<()> {
        match &mut self.status {
            Some(file) => file.write_all(format!("{line}\n").as_bytes()),
            None => Ok(()),
        }
    }
}

impl Where {
    fn output() -> Result<Where> {
        duplicate(1)
            .map(Where::Output)
            .map_err(|error| Error::step("use standard output for the result", error))
    }
}

fn duplicate(number: RawFd) -> std::io::Result<File> {
    Ok(rustix::io::fcntl_dupfd_cloexec(sys::borrow(number)?.as_fd(), 3)?.into())
}

/// For a line that was not understood: whoever asked it for a result, by two words that were, reads one.
pub fn refuse_line(argv: impl Iterator<Item = OsString>, error: &Error) {
    let words: Vec<OsString> = argv.take_while(|word| word != "--").collect();
    let value = |name: &str| {
        let joined = format!("{name}=");
        words.iter().enumerate().find_map(|(index, word)| match word.to_str()? {
            word if word == name => words.get(index + 1)?.to_str(),
            word => word.strip_prefix(&joined),
        })
    };
    if value("--result") == Some("json") {
        let status_fd =
            value("--status-fd").and_then(|number| number.parse().ok()).filter(|number| *number > 2);
        let policy = Policy { result: true, status_fd, ..Policy::default() };
        if let Ok(mut record) = Record::of_run(&policy) {
            record.refused(error);
        }
    }
}

/// As `main` says it.
fn tell(told: &Value) {
    let mut text = format!("confine: {}\n", told["message"].as_str().unwrap_or_default());
    if let Some(hint) = told["hint"].as_str() {
        text.push_str(&format!("hint: {hint}\n"));
    }
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// How the promises are kept, for `--verbose`.
pub fn explain_start(plan: &Plan) {
    let mut text = String::new();
    let mut line = |words: String| text.push_str(&format!("confine: {words}\n"));
    for (promise, layers) in &plan.promises {
        line(format!("{promise} is kept by {}", layers.join(", ")));
    }
    for (promise, why) in &plan.waived {
        line(format!("{promise} is waived: {why}"));
    }
    match &plan.supervision {
        Some(supervision) => line(format!("a supervisor stays for {}", supervision.reasons.join(", "))),
        None => line("no supervisor is needed: this process becomes the command".to_owned()),
    }
    line(format!("policy {}", plan.id()));
    let _ = std::io::stderr().write_all(text.as_bytes());
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
