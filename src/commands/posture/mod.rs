//! `confine check --posture`: weak spots of the set-up around the runs. It looks and judges; nothing is executed,
//! changed or asked of a network. What it reads was written by others, perhaps by a command: bounded, and escaped
//! where it is told.

mod agents;
mod kernel;
mod policy_files;
mod secrets;
mod shell;
mod workspace;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::Judgement;
use crate::error::{Error, Result, show};
use crate::plan::JSON_VERSION;
use crate::view::trace::trace;

pub use kernel::weak_settings;

/// All looking together; what was not reached by then is said to be unseen.
const PATIENCE: Duration = Duration::from_secs(20);
/// More of one kind are counted and not listed.
const LISTED: usize = 20;
/// In all: who made a workspace chose its names, and could fill a disk with them.
const TOLD: usize = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    High,
    Medium,
    Low,
}

impl Severity {
    fn name(self) -> &'static str {
        match self {
            Severity::High => "high",
            Severity::Medium => "medium",
            Severity::Low => "low",
        }
    }
}

/// A rule: what is found under this name, and what to do about it.
#[derive(Debug)]
pub struct Rule {
    pub id: &'static str,
    pub severity: Severity,
    pub why: &'static str,
    pub fix: &'static str,
}

#[derive(Debug, Serialize)]
pub struct Finding {
    pub id: &'static str,
    pub severity: Severity,
    /// One line, with names escaped.
    pub what: String,
    /// Of a finding about a file; names that are not UTF-8 have U+FFFD.
    pub path: Option<String>,
    pub why: &'static str,
    pub fix: String,
}

#[derive(Debug, Serialize)]
struct Report {
    version: u32,
    /// The worst severity among the findings.
    worst: Option<Severity>,
    findings: Vec<Finding>,
    /// How many more there are of a rule than are listed.
    more: Vec<More>,
    /// What could not be looked at, and why.
    unseen: Vec<String>,
}

#[derive(Debug, Serialize)]
struct More {
    id: &'static str,
    count: usize,
}

/// What the looking is about.
pub struct Setup {
    pub home: Option<PathBuf>,
    /// Where the user's own settings lie; HOME/.config unless said otherwise.
    pub config: Option<PathBuf>,
    pub uid: u32,
    pub workspaces: Vec<PathBuf>,
    end: Instant,
}

impl Setup {
    pub fn time_is_up(&self) -> bool {
        Instant::now() > self.end
    }
}

#[derive(Default)]
pub struct Findings {
    list: Vec<Finding>,
    more: Vec<More>,
    unseen: Vec<String>,
    /// Of all findings, also of those that are only counted.
    worst: Option<Severity>,
    /// Bytes of what is listed.
    told: usize,
}

impl Findings {
    /// `what` is a line; `{}` in the rule's fix stands for the path, as it can be pasted.
    pub fn add(&mut self, rule: &'static Rule, path: Option<&Path>, what: String) {
        self.worst = self.worst.into_iter().chain([rule.severity]).min();
        let known = self.list.iter().filter(|finding| finding.id == rule.id).count();
        let weight = what.len() + path.map_or(0, |path| 2 * path.as_os_str().len());
        if known >= LISTED || self.told + weight > TOLD {
            match self.more.iter_mut().find(|more| more.id == rule.id) {
                Some(more) => more.count += 1,
                None => self.more.push(More { id: rule.id, count: 1 }),
            }
            return;
        }
        self.told += weight;
        let pasted = path.map_or_else(String::new, |path| crate::error::paste(path.as_os_str()));
        self.list.push(Finding {
            id: rule.id,
            severity: rule.severity,
            what,
            path: path.map(|path| path.to_string_lossy().into_owned()),
            why: rule.why,
            fix: rule.fix.replace("{}", &pasted),
        });
    }

    pub fn unseen(&mut self, path: &Path, why: &str) {
        let line = format!("{}: {why}", show(path.as_os_str()));
        if self.unseen.len() < LISTED && self.told + line.len() <= TOLD {
            self.told += line.len();
            self.unseen.push(line);
        }
    }
}

pub fn run(workspaces: &[PathBuf], json: bool) -> Result<Judgement> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = variable("HOME");
    let mut roots = Vec::new();
    for named in workspaces {
        let path = std::path::absolute(named).and_then(|path| trace(&path));
        roots.push(path.map_err(|error| Error::path("look at the workspace", named, error))?.path);
    }
    let setup = Setup {
        config: variable("XDG_CONFIG_HOME").or_else(|| Some(home.as_ref()?.join(".config"))),
        home,
        uid: nix::unistd::geteuid().as_raw(),
        workspaces: roots,
        end: Instant::now() + PATIENCE,
    };
    let mut findings = Findings::default();
    policy_files::look(&setup, &mut findings);
    agents::look(&setup, &mut findings);
    kernel::look(&mut findings);
    shell::look(&mut findings);
    workspace::look(&setup, &mut findings)?;
    secrets::look(&setup, &mut findings);
    findings.list.sort_by(|a, b| (a.severity, a.id, &a.path).cmp(&(b.severity, b.id, &b.path)));
    let Findings { list, more, unseen, worst, .. } = findings;
    let report = Report { version: JSON_VERSION, worst, findings: list, more, unseen };
    let text = if json {
        let text = serde_json::to_string(&report);
        text.map_err(|error| Error::step("write JSON", std::io::Error::other(error)))? + "\n"
    } else {
        prose(&report)
    };
    Ok(Judgement { text, good: worst != Some(Severity::High) })
}

fn prose(report: &Report) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        let _ = writeln!(text, "{:<7} {}: {}", finding.severity.name(), finding.id, finding.what);
        let _ = writeln!(text, "        {}", finding.why);
        let _ = writeln!(text, "        fix: {}\n", finding.fix);
    }
    for more in &report.more {
        let _ = writeln!(text, "        and {} more of {}", more.count, more.id);
    }
    for unseen in &report.unseen {
        let _ = writeln!(text, "unseen  {unseen}");
    }
    let count = |severity| report.findings.iter().filter(|finding| finding.severity == severity).count();
    let _ = writeln!(
        text,
        "{} high, {} medium, {} low",
        count(Severity::High),
        count(Severity::Medium),
        count(Severity::Low)
    );
    text
}
