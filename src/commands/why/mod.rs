//! `confine why`: what a subject is inside, which rule says so, and the smallest option that would change it. By the
//! plan and the view of a run with these options; inside the boundary, by the plan that was enforced.

mod answer;
mod change;
mod file;
mod network;
mod rule;
mod subject;
mod variable;

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use nix::unistd::getgroups;
use serde::Serialize;

use self::answer::Answer;
use self::file::Ask;
use self::subject::Subject;
use super::run;
use crate::enforce::{credentials, direct, mounts, veil, writable};
use crate::error::{Error, Result};
use crate::plan::facts::Facts;
use crate::plan::{JSON_VERSION, note};
use crate::policy::Policy;
use crate::record::{Record, Timings};
use crate::view::Purpose;
use crate::view::caller::read_bounded;
use crate::view::inside::{Real, Shown, World};

#[derive(Serialize)]
struct Report<'a> {
    version: u32,
    /// Asked from inside, of the run that this is part of.
    inside: bool,
    policy: &'a str,
    /// Why a run with these options would not start.
    refused: Option<String>,
    answers: &'a [Answer],
}

/// `None`: no option was given, so it is about the run that this is part of.
pub fn run(policy: Option<&Policy>, words: &[OsString], json: bool) -> Result<String> {
    let subjects: Vec<(&OsString, Subject)> =
        words.iter().map(|word| Ok((word, Subject::read(word)?))).collect::<Result<_>>()?;
    match policy {
        Some(policy) => outside(policy, &subjects, json),
        None => inside(&subjects, json),
    }
}

fn outside(policy: &Policy, subjects: &[(&OsString, Subject)], json: bool) -> Result<String> {
    let mut timings = Timings::new(false);
    let unrecorded = Record::foresee(policy).err();
    let entered = run::enter(policy, &mut timings)?;
    let prepared = entered.prepare(policy, Purpose::Ask, &mut timings)?;
    let run::Prepared { plan, view, caller, environment, .. } = &prepared;
    let look = |error| Error::step("look at what root's files would be", error);
    let veils = veil::foresee(plan, view).map_err(look)?;
    let facts = Facts::of(plan, view);
    let hidden = if facts.viewed() { Vec::new() } else { direct::hidden(view)? };
    let unrecorded = unrecorded.or_else(|| Record::default().judge(view, policy).err());
    // From here on the kernel answers as it will answer the command.
    credentials::apply(&plan.process)?;
    let groups = getgroups().map_err(|errno| Error::step("ask for the groups", errno))?;
    let shown = Shown {
        view,
        veils: &veils,
        switch_user: plan.process.switch_user,
        uid: plan.process.uid,
        groups: groups.into_iter().map(|gid| gid.as_raw()).chain([plan.process.gid]).collect(),
    };
    let real = Real { inside: false };
    let world: &dyn World = if facts.viewed() { &shown } else { &real };
    let aliases: Vec<PathBuf> = view.scan.as_ref().map_or_else(Vec::new, |report| {
        report.suspects.iter().map(|suspect| report.full(suspect.root, &suspect.path)).collect()
    });
    let ask = Ask {
        facts: &facts,
        world,
        hidden: &hidden,
        cwd: &caller.cwd,
        foreign: &view.foreign_sockets,
        aliases: &aliases,
        uid: plan.process.uid,
        inside: false,
        read_only: policy.read_only,
    };
    let answer = |(word, subject): &(&OsString, Subject)| match subject {
        Subject::Path(path) => file::judge(&ask, word, path),
        Subject::Network { host, port } => network::judge(&facts, word, host, *port),
        Subject::Abstract(_) => network::abstract_socket(&facts, word),
        Subject::Variable(name) => {
            let in_caller = caller.environment.iter().any(|(known, _)| known == name);
            variable::judge(word, name, environment, in_caller, policy.environment.clear)
        }
    };
    let mut answers: Vec<Answer> = subjects.iter().map(answer).collect();
    answers.iter_mut().for_each(|answer| rule::cite(policy, view, &mut answer.rule));
    let refused = unrecorded.or_else(|| writable::foresee(view, facts.viewed()).err());
    let refused = view.refusal.as_ref().or(refused.as_ref()).map(Error::to_string);
    print(&facts, false, refused, subjects, &answers, json)
}

fn inside(subjects: &[(&OsString, Subject)], json: bool) -> Result<String> {
    let (bytes, lesser) = own_facts()?;
    let mut facts = Facts::read(&bytes).ok_or_else(|| {
        Error::refused("what this run's confine has written cannot be understood by this one")
            .with_hint("use the same version inside and outside")
    })?;
    facts.correct(&lesser);
    let cwd = std::env::current_dir().map_err(|error| Error::step("find the working directory", error))?;
    let hidden: Vec<PathBuf> = facts
        .plan
        .world
        .view
        .iter()
        .filter(|place| place.access == crate::view::Access::Hidden)
        .map(|place| place.path.clone())
        .collect();
    let ask = Ask {
        facts: &facts,
        world: &Real { inside: true },
        hidden: &hidden,
        cwd: &cwd,
        foreign: &HashSet::new(),
        aliases: &[],
        uid: facts.plan.process.uid,
        inside: true,
        read_only: false,
    };
    let answer = |(word, subject): &(&OsString, Subject)| match subject {
        Subject::Path(path) => file::judge(&ask, word, path),
        Subject::Network { host, port } => network::judge(&facts, word, host, *port),
        Subject::Abstract(_) => network::abstract_socket(&facts, word),
        Subject::Variable(name) => variable::judge_inside(word, name, &facts.plan.process.environment),
    };
    let answers: Vec<Answer> = subjects.iter().map(answer).collect();
    print(&facts, true, None, subjects, &answers, json)
}

/// Where the view is a new one, the place that only confine can have made; else where the variable says. With what
/// became of layers.
fn own_facts() -> Result<(Vec<u8>, Vec<u8>)> {
    const LIMIT: u64 = 16 << 20;
    let own = Path::new(mounts::OWN).join(note::FACTS);
    let named = std::env::var_os("CONFINE_NOTE").map(|named| Path::new(&named).with_file_name(note::FACTS));
    let inside = std::env::var_os("CONFINE").is_some_and(|value| value == "1");
    let found = [Some(own), named].into_iter().flatten().find_map(|path| {
        let facts = read_bounded(&path, LIMIT).ok()?;
        Some((facts, read_bounded(&path.with_file_name(note::LESSER), LIMIT).unwrap_or_default()))
    });
    found.filter(|_| inside).ok_or_else(|| {
        Error::usage("no workspace: say which run is asked about").with_hint("confine why -w . SUBJECT")
    })
}

fn print(
    facts: &Facts<'_>,
    inside: bool,
    refused: Option<String>,
    subjects: &[(&OsString, Subject)],
    answers: &[Answer],
    json: bool,
) -> Result<String> {
    if json {
        let report = Report { version: JSON_VERSION, inside, policy: facts.plan.id(), refused, answers };
        let text = serde_json::to_string(&report);
        return Ok(text.map_err(|error| Error::step("write JSON", std::io::Error::other(error)))? + "\n");
    }
    let mut text =
        refused.map(|refused| format!("such a run does not start: {refused}\n\n")).unwrap_or_default();
    for (index, ((word, _), answer)) in subjects.iter().zip(answers).enumerate() {
        if index > 0 {
            text.push('\n');
        }
        text.push_str(&answer.text(word));
    }
    Ok(text)
}
