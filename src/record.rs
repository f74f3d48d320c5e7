//! What is told about a run: JSON lines on `--status-fd`, the audit record and the result, which are the same
//! events; and step times for measurements.
#![forbid(unsafe_code)]

pub mod audit;
pub mod chain;
pub mod event;
mod handed;

use std::collections::hash_map::RandomState;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::BuildHasher;
use std::io::{self, Write};
use std::os::fd::{AsFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use nix::unistd::getuid;
use serde::Serialize;

use crate::error::{Error, Result, Told};
use crate::plan::Plan;
use crate::policy::Policy;
use crate::supervise::monitor::End;
use crate::supervise::result::{self, Before, Report};
use crate::sys;
use crate::view::View;
use audit::{Audit, Place};
use event::{Asked, Ended, Event, Line, Refused, Roots, Scan, Started};

/// Where a run is told of. What is open here is closed by execve(2), so the command cannot write to it.
#[derive(Debug, Default)]
pub struct Record {
    status: Option<File>,
    audit: Option<Audit>,
    result: Where,
    /// Joins the lines of one run.
    run: String,
    asked: Asked,
    roots: Roots,
    scan: Option<Scan>,
    /// Once there is a plan.
    policy: Option<String>,
    /// In the child that goes on with the boundary: its parent tells why that came to nothing.
    parent: Option<File>,
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
}

impl Record {
    pub fn open(status_fd: Option<RawFd>) -> Result<Record> {
        let Some(number) = status_fd else { return Ok(Record::default()) };
        match duplicate(number) {
            Ok(file) => Ok(Record { status: Some(file), run: name_run(), ..Record::default() }),
            Err(_) => Err(Error::usage(format!("--status-fd {number} is not open")).with_hint(format!(
                "open it in the shell: `confine --status-fd {number} … {number}>status.json`"
            ))),
        }
    }

    /// All that was asked for.
    pub fn of_run(policy: &Policy, command: &[OsString]) -> Result<Record> {
        let mut record = Record::of_descriptors(policy)?;
        if policy.audit.is_some() || record.is_kept() {
            record.asked = Asked::new(getuid().as_raw(), command);
            record.run = name_run();
        }
        if let Some(file) = &policy.audit {
            let opened = Place::find(file).and_then(|place| {
                place.judge_by_names(policy)?;
                place.open()
            });
            let opened = opened.map_err(|error| policy.told_of("audit", error));
            record.audit = Some(opened.inspect_err(|error| record.refused(error))?);
        }
        Ok(record)
    }

    /// What a run would say of its audit record, for whoever only asks. Before ids are mapped: owners are checked.
    pub fn foresee(policy: &Policy) -> Result<()> {
        let Some(file) = &policy.audit else { return Ok(()) };
        Place::find(file)
            .and_then(|place| {
                place.judge_by_names(policy)?;
                place.foresee()
            })
            .map_err(|error| policy.told_of("audit", error))
    }

    /// With the result, if one is asked for.
    fn of_descriptors(policy: &Policy) -> Result<Record> {
        if !policy.result {
            return Record::open(policy.status_fd);
        }
        match (policy.status_fd, Record::open(policy.status_fd)) {
            (Some(_), Ok(record)) => Ok(Record { result: Where::Status, ..record }),
            (_, opened) => {
                let record = Record { result: Where::output()?, run: name_run(), ..Record::default() };
                opened.inspect_err(|error| record.refused(error))?;
                Ok(record)
            }
        }
    }

    /// Whether anybody is told anything.
    pub fn is_kept(&self) -> bool {
        self.status.is_some() || self.audit.is_some() || self.has_result()
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
        self.parent = Some(report.into_writer());
    }

    /// Once the view is known. A record that the command could change is not written to, not even about that.
    pub fn judge(&mut self, view: &View, policy: &Policy) -> Result<()> {
        match &self.audit {
            Some(audit) => audit.judge(view),
            // Only asked about.
            None => policy.audit.as_ref().map_or(Ok(()), |file| Place::find(file)?.judge(view)),
        }
        .inspect_err(|_| self.audit = None)
    }

    /// What the lines to come have of the plan and of the view, which will be gone by then.
    pub fn planned(&mut self, plan: &Plan, view: &View) {
        if !self.is_kept() {
            return;
        }
        self.policy = Some(plan.id().to_owned());
        self.roots = Roots::of(view);
        self.scan = view.scan.as_ref().map(|report| Scan {
            entries: report.entries,
            microseconds: u64::try_from(report.elapsed.as_micros()).unwrap_or(u64::MAX),
        });
    }

    /// `executable` is asked only where somebody is told.
    pub fn started(&self, plan: &Plan, executable: impl FnOnce() -> Option<PathBuf>) -> Result<()> {
        if self.status.is_none() && self.audit.is_none() {
            return Ok(());
        }
        let event = Event::Started(Started {
            pid: std::process::id(),
            policy: plan.id(),
            asked: &self.asked,
            executable: executable().map(Into::into),
            roots: &self.roots,
            promises: &plan.promises,
            waived: &plan.waived,
            supervised: plan.supervision.is_some(),
            scan: self.scan,
        });
        self.write_audit(&event)?;
        self.write_status(&self.line(&event)).map_err(|error| Error::step("write the status line", error))
    }

    /// The last line of a supervised run. Returns the status to end with.
    pub fn ended(&mut self, plan: &Plan, end: &End, report: Option<Report>, before: Option<&Before>) -> u8 {
        if let Some(told) = report.and_then(|report| result::reported(report.into_reader())) {
            // What the child said on standard error is among the command's output, which is not shown.
            if self.takes_output() {
                say(&told.text());
            }
            self.refuse(told);
            return end.outcome.status();
        }
        let event = Event::Ended(Ended::new(plan.id(), end));
        self.tell_last(&event, "", |line| {
            let extras = before.map(|before| result::extras(end, before));
            serde_json::to_string(&result::Whole { line, extras })
        });
        end.outcome.status()
    }

    /// Best effort: there is an error to report already.
    pub fn refused(&self, error: &Error) {
        match &self.parent {
            Some(parent) => result::report(parent, error),
            None => self.refuse(error.into()),
        }
    }

    fn refuse(&self, told: Told) {
        if self.is_kept() {
            let message = told.message.clone();
            let event = Event::Refused(Refused::new(told, self.policy.as_deref(), &self.asked));
            self.tell_last(&event, &message, serde_json::to_string);
        }
    }

    /// What cannot be written any more is said, since it can be no reason to refuse; unless it is the very reason.
    fn tell_last<'a>(
        &'a self,
        event: &'a Event<'a>,
        said: &str,
        result: impl FnOnce(&Line<'a>) -> serde_json::Result<String>,
    ) {
        if let Err(error) = self.write_audit(event)
            && error.to_string() != said
        {
            say(&Told::from(&error).text());
        }
        let line = self.line(event);
        let written = match &self.result {
            Where::Nowhere => return drop(self.write_status(&line)),
            Where::Status => result(&line).map_err(io::Error::from).and_then(|text| self.write_text(&text)),
            Where::Output(file) => {
                result(&line).map_err(io::Error::from).and_then(|text| write_line(file, &text))
            }
        };
        if let Err(error) = written {
            say(&result::unwritten(&error));
        }
    }

    fn line<'a>(&'a self, event: &'a Event<'a>) -> Line<'a> {
        Line::new(&self.run, event)
    }

    fn write_audit(&self, event: &Event<'_>) -> Result<()> {
        self.audit.as_ref().map_or(Ok(()), |audit| audit.append(|| self.line(event)))
    }

    fn write_status(&self, line: &impl Serialize) -> io::Result<()> {
        if self.status.is_none() {
            return Ok(());
        }
        self.write_text(&serde_json::to_string(line)?)
    }

    fn write_text(&self, text: &str) -> io::Result<()> {
        self.status.as_ref().map_or(Ok(()), |file| write_line(file, text))
    }
}

fn write_line(mut file: &File, text: &str) -> io::Result<()> {
    file.write_all(format!("{text}\n").as_bytes())
}

fn say(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Only to tell runs apart, so that nothing secret is needed: what the standard library has from the kernel for its
/// hash tables will do.
fn name_run() -> String {
    format!("{:016x}", RandomState::new().hash_one(std::process::id()))
}

impl Where {
    /// Found out now: at the end the command has done its work, and nobody is told how it went.
    fn output() -> Result<Where> {
        let writable = sys::borrow_with_flags(1)
            .is_ok_and(|(_, flags)| [libc::O_WRONLY, libc::O_RDWR].contains(&(flags & libc::O_ACCMODE)));
        if !writable {
            return Err(Error::usage(
                "standard output is not open for writing, and --result json goes there",
            )
            .with_hint("give it one, or another place with `--status-fd N`"));
        }
        duplicate(1)
            .map(Where::Output)
            .map_err(|error| Error::step("use standard output for the result", error))
    }
}

fn duplicate(number: RawFd) -> io::Result<File> {
    Ok(rustix::io::fcntl_dupfd_cloexec(sys::borrow(number)?.as_fd(), 3)?.into())
}

/// For a line that was not understood: whoever asked it for a result or a record, by two words that were, gets it.
pub fn refuse_line(argv: impl Iterator<Item = OsString>, error: &Error) {
    let mut argv = argv;
    let words: Vec<OsString> = argv.by_ref().take_while(|word| word != "--").collect();
    let command: Vec<OsString> = argv.collect();
    let value = |name: &str| {
        let joined = format!("{name}=");
        words.iter().enumerate().find_map(|(index, word)| {
            if word == name {
                return words.get(index + 1).cloned();
            }
            Some(OsStr::from_bytes(word.as_bytes().strip_prefix(joined.as_bytes())?).to_owned())
        })
    };
    let number = |word: OsString| word.to_str()?.parse().ok();
    let policy = Policy {
        result: value("--result").is_some_and(|word| word == "json"),
        status_fd: value("--status-fd").and_then(number).filter(|number| *number > 2),
        ..Policy::default()
    };
    let asked = Asked::new(getuid().as_raw(), &command);
    let asked_for = policy.result || policy.status_fd.is_some();
    let mut record = match asked_for.then(|| Record::of_descriptors(&policy)) {
        Some(Ok(record)) => record,
        _ => Record::default(),
    };
    // Where the command may write is not known, so that nothing is made, and no link is followed.
    record.audit = value("--audit").and_then(|file| {
        let place = Place::find(Path::new(&file)).ok().filter(Place::is_plain)?;
        place.open_existing().ok().flatten()
    });
    (record.run, record.asked) = (name_run(), asked);
    record.refused(error);
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
    say(&text);
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
        say(&text);
    }
}
