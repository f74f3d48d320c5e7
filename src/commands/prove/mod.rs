//! `confine check --prove`: real attempts to get out of the very boundary that the given options make here.
//!
//! This process makes the victims and looks at them; it starts confine with the options as they were given, and as
//! the command confine itself, which tries what it is told. A verdict is what became of the victim; what the attempt
//! says of itself is shown for information, and counts only where nobody outside could see an effect.

mod aims;
mod bystander;
mod files;
mod inside;
mod kernel;
mod network;
mod processes;
mod report;
mod rows;
mod session;
mod victims;

use std::collections::BTreeMap;
use std::ffi::{CStr, OsString};
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use serde::Serialize;

use super::Judgement;
use crate::cli::{PROVE_INSIDE, Proof};
use crate::error::{Error, Result};
use crate::policy::{Allowance, FileAccess, Listen, Loopback, Net, Policy, Promise};
use aims::Aims;
pub use inside::run as inside;
use report::Report;
use rows::{Grants, Judged, ROWS, Row};
use session::Session;
use victims::{Standing, Victims};

/// Where the victims and a workspace of confine's own lie; its options say what is granted there.
const SHOWN: &str = "shown";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The victim is as it was.
    Denied,
    /// It had its effect, as the options allow.
    Granted,
    /// It had its effect; the promise was waived.
    Waived,
    /// It had its effect; no promise of this run is about it.
    Open,
    Escaped,
    /// An allowed twin.
    Works,
    Fails,
    /// This host has no such victim.
    Untried,
}

#[derive(Debug, Serialize)]
pub struct Finding {
    pub attempt: &'static str,
    pub promise: Promise,
    pub reason: &'static str,
    pub outcome: Outcome,
    /// What the attempt met: the name of an errno or of a signal.
    pub errno: Option<String>,
    /// Which victims are not as they were.
    pub changed: Vec<String>,
    pub why: Option<String>,
}

pub fn run(proof: &Proof, json: bool) -> Result<Judgement> {
    let policy = &proof.policy;
    for (option, given) in [("--status-fd", policy.status_fd.is_some()), ("--result", policy.result)] {
        if given {
            return Err(Error::usage(format!("{option} has no meaning with check --prove"))
                .with_hint("--json makes an object of what was found"));
        }
    }
    let granted = Granted::of(policy);
    let report = trial(policy, c"/proc/self/exe", |ground| {
        let program = std::env::current_exe()?;
        let mut words = proof.words.clone();
        let mut add =
            |option: &str, value: &Path| words.extend([option.into(), value.as_os_str().to_owned()]);
        add("--status-fd", Path::new(&ground.status.to_string()));
        if policy.workspaces.is_empty() && !policy.no_workspace {
            add("--workspace", ground.workspace);
        }
        if policy.chdir.is_none() && !policy.no_workspace {
            add("--chdir", ground.workspace);
        }
        // What lies in a writable root is seen there, and without namespaces could not be narrowed.
        for shown in [program.as_path(), &ground.arena.join(SHOWN)] {
            if !granted.writes(shown) {
                add("--ro", shown);
            }
        }
        words.extend(["--".into(), program.into()]);
        Ok(words)
    })?;
    Ok(Judgement { text: report.text(json)?, good: report.holds })
}

/// Where a trial takes place.
pub struct Ground<'a> {
    pub arena: &'a Path,
    pub workspace: &'a Path,
    /// For the status lines of the run.
    pub status: RawFd,
}

/// Makes victims, starts `program` with the words of `line` and those that make confine the one that tries, and
/// judges. Without confine in `line` there is no boundary: a test sees that the attempts are real ones.
pub fn trial(
    policy: &Policy,
    program: &CStr,
    line: impl FnOnce(&Ground<'_>) -> io::Result<Vec<OsString>>,
) -> Result<Report> {
    // With `--user` other processes of that user, who have nothing to do with this run, could change its victims or
    // put others in their place: they lie in a directory of root's, unless the options show that to the command.
    let granted = Granted::of(policy);
    let temporary = fs::canonicalize(std::env::temp_dir()).unwrap_or_default();
    let exposed = policy.user.is_none() || granted.writes(&temporary) || granted.reads(&temporary);
    let mut victims = Victims::make(victims::identity(policy.user), exposed)?;
    let workspace = match policy.workspaces.first() {
        Some(first) => fs::canonicalize(first).map_err(|error| Error::path("resolve", first, error))?,
        None => victims.arena.join("workspace"),
    };
    let place = workspace.join(format!(".{}", victims.at.name()));
    let mut session = Session::start(&mut victims, program, |at, arena, status| {
        let mut words = line(&Ground { arena, workspace: &workspace, status })?;
        words.push(PROVE_INSIDE.into());
        words.extend(Aims::words(arena.to_owned(), place.clone(), at));
        Ok(words)
    })?;
    let found = prove(&mut session, &mut victims, policy);
    let ending = session.end();
    // Its maker does so too, unless it was killed.
    let _ = fs::remove_dir_all(&place);
    Ok(match found? {
        Some((findings, promises)) => Report::of(findings, promises, None),
        None => Report::of(Vec::new(), Promises::default(), Some(ending)),
    })
}

/// As the status line of the run has them.
#[derive(Debug, Default)]
pub struct Promises {
    kept: BTreeMap<Promise, Vec<String>>,
    waived: BTreeMap<Promise, String>,
}

type Found = Option<(Vec<Finding>, Promises)>;

/// None when the run did not start.
fn prove(session: &mut Session, victims: &mut Victims, policy: &Policy) -> Result<Found> {
    let granted = Granted::of(policy);
    let step = |error| Error::step("look at the victims", error);
    let mut before = victims.look().map_err(step)?;
    let mut findings = Vec::new();
    let mut told: Option<(Promises, Grants)> = None;
    for (number, row) in ROWS.iter().enumerate() {
        let mut finding = Finding {
            attempt: row.name,
            promise: row.promise,
            reason: row.reason,
            outcome: Outcome::Untried,
            errno: None,
            changed: Vec::new(),
            why: victims.untried.get(row.name).cloned(),
        };
        if finding.why.is_some() {
            findings.push(finding);
            continue;
        }
        let Some(answer) = session.ask(number)? else {
            if told.is_none() {
                return Ok(None);
            }
            // Killed under way (by a limit, say): nothing more was tried.
            finding.outcome = Outcome::Fails;
            finding.why = Some("the program inside has ended".to_owned());
            findings.push(finding);
            break;
        };
        if told.is_none() {
            let promises = session.promises()?;
            let grants = granted.grants(policy, &victims.arena, &promises);
            told = Some((promises, grants));
        }
        let Some((promises, grants)) = &told else { return Ok(None) };
        if let Judged::Works(applies) = row.judged
            && !applies(grants)
        {
            continue;
        }
        finding.errno = answer.errno.map(errno).or(answer.signal.map(signal));
        let succeeded = finding.errno.is_none();
        let mut after = victims.look().map_err(step)?;
        if succeeded && after == before && matches!(row.judged, Judged::Victims(_)) {
            // What was sent may be on its way.
            std::thread::sleep(Duration::from_millis(2));
            after = victims.look().map_err(step)?;
        }
        finding.changed = difference(&before, &after);
        let touched = !finding.changed.is_empty();
        let effect = match row.judged {
            Judged::Victims(_) => touched,
            // No attempt of these aims at a victim: whatever changed is an effect all the same.
            Judged::Secret(_) => touched || victims.is_betrayed(&answer.brought),
            Judged::Call(_) => touched || succeeded,
            Judged::Works(_) => touched,
        };
        finding.outcome = outcome(row, effect, succeeded, grants, promises);
        findings.push(finding);
        before = if touched {
            victims.renew().map_err(step)?;
            victims.look().map_err(step)?
        } else {
            after
        };
    }
    Ok(told.map(|(promises, _)| (findings, promises)))
}

fn outcome(row: &Row, effect: bool, succeeded: bool, grants: &Grants, promises: &Promises) -> Outcome {
    let granted = match row.judged {
        Judged::Works(_) if effect => return Outcome::Escaped,
        Judged::Works(_) if succeeded => return Outcome::Works,
        Judged::Works(_) => return Outcome::Fails,
        Judged::Victims(granted) | Judged::Secret(granted) | Judged::Call(granted) => granted,
    };
    match effect {
        false => Outcome::Denied,
        true if granted(grants) => Outcome::Granted,
        true if promises.waived.contains_key(&row.promise) => Outcome::Waived,
        true if !promises.kept.contains_key(&row.promise) => Outcome::Open,
        true => Outcome::Escaped,
    }
}

fn difference(before: &Standing, after: &Standing) -> Vec<String> {
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    let other = after.iter().filter(|(name, text)| before.get(*name) != Some(text)).map(|(name, _)| name);
    gone.chain(other).cloned().collect()
}

fn errno(number: i32) -> String {
    format!("{:?}", nix::errno::Errno::from_raw(number))
}

fn signal(number: i32) -> String {
    nix::sys::signal::Signal::try_from(number).map_or(format!("signal {number}"), |it| it.as_str().to_owned())
}

/// Which paths the options open.
struct Granted {
    written: Vec<PathBuf>,
    read: Vec<PathBuf>,
}

impl Granted {
    fn of(policy: &Policy) -> Granted {
        let resolved = |path: &Path| fs::canonicalize(path).ok();
        let rules = |access: &[FileAccess]| -> Vec<PathBuf> {
            let chosen = policy.files.iter().filter(|rule| access.contains(&rule.access));
            chosen.filter_map(|rule| resolved(&rule.path)).collect()
        };
        let workspaces: Vec<PathBuf> = policy.workspaces.iter().filter_map(|path| resolved(path)).collect();
        let (mut written, mut read) =
            (rules(&[FileAccess::Write]), rules(&[FileAccess::Read, FileAccess::Seal]));
        if policy.read_only { &mut read } else { &mut written }.extend(workspaces);
        Granted { written, read }
    }

    fn writes(&self, path: &Path) -> bool {
        self.written.iter().any(|root| path.starts_with(root))
    }

    fn reads(&self, path: &Path) -> bool {
        self.read.iter().any(|root| path.starts_with(root))
    }

    fn grants(&self, policy: &Policy, arena: &Path, promises: &Promises) -> Grants {
        let write = self.writes(arena);
        let by = |promise: Promise, layer: &str| {
            promises.kept.get(&promise).is_some_and(|layers| layers.iter().any(|by| by == layer))
        };
        let private_loopback = by(Promise::NetworkScope, "network-namespace") && policy.network.is_own();
        Grants {
            write,
            read: write || self.reads(arena),
            workspace: !policy.read_only && !policy.no_workspace,
            host_network: policy.network.net == Net::Host,
            host_loopback: policy.network.grants_loopback(),
            private_loopback: policy.network.net == Net::Host
                || policy.network.grants_loopback()
                || private_loopback && policy.network.loopback == Loopback::Private,
            namespaces: policy.allow.contains(&Allowance::Userns),
            unix_datagrams: policy.allow.contains(&Allowance::UnixDatagram)
                && by(Promise::SocketScope, "broker"),
            // A broker cannot tell one's own from others', and where ports are ruled without one nothing listens.
            abstract_names: !by(Promise::SocketScope, "broker")
                && !policy.network.grants_loopback()
                && (!policy.network.is_ruled() || policy.network.listen != Listen::None),
        }
    }
}
