//! Environment variables, by name: no value is ever told.

use std::ffi::OsStr;

use super::answer::{Answer, From, Rule};
use crate::enforce::environment::{Composed, Given, allowed};
use crate::error::paste;
use crate::policy::env_file::is_reserved;

/// What a name gives away about its value, in capital letters.
const SECRETS: &[&str] = &["TOKEN", "SECRET", "PASS", "KEY", "CREDENTIAL", "AUTH", "COOKIE", "SESSION"];
/// Names, or how they begin, that make programs run other programs or lead to one that is running.
const LEADING: &[(&str, &str)] = &[
    ("LD_", "the loader takes code from where it points"),
    ("BASH_ENV", "every shell script runs it first"),
    ("ENV", "every shell runs it first"),
    ("PYTHONSTARTUP", "it names a program that is run"),
    ("PERL5OPT", "it names a program that is run"),
    ("NODE_OPTIONS", "it names a program that is run"),
    ("GIT_", "git runs what it names"),
    ("SSH_AUTH_SOCK", "an agent that signs with the user's keys"),
    ("GPG_AGENT_INFO", "an agent that signs with the user's keys"),
    ("DBUS_", "a bus on which programs outside are started"),
    ("DOCKER_HOST", "a daemon that is root"),
    ("DISPLAY", "a screen on which others type"),
    ("WAYLAND_DISPLAY", "a screen on which others type"),
];

/// From outside, by what was composed for the run.
pub fn judge(subject: &OsStr, name: &OsStr, composed: &Composed, in_caller: bool, clear: bool) -> Answer {
    let mut answer = Answer::about(subject, "variable");
    let place = composed.pairs.iter().position(|(known, _)| known == name);
    let given = place.and_then(|place| composed.given.get(place));
    let shown = paste(name);
    let (from, text, option) = match given {
        Some(Given::Allowed(reason)) => (From::Table, format!("on the allowlist: {reason}"), None),
        Some(Given::Fixed) => (From::Table, "set by confine itself".to_owned(), None),
        Some(Given::Asked) => {
            (From::Option, "asked for by --env, from the caller".to_owned(), Some(format!("--env {shown}")))
        }
        Some(Given::File) => (From::Option, "set by --env-file".to_owned(), Some("--env-file".to_owned())),
        Some(Given::Set) => (From::Option, "set by --env".to_owned(), Some(format!("--env {shown}=..."))),
        None if reserved(name) => {
            (From::Table, "of confine's own names, which nobody else sets".to_owned(), None)
        }
        None if composed.absent.iter().any(|known| known == name) => (
            From::Option,
            "asked for by --env, and the caller does not have it".to_owned(),
            Some(format!("--env {shown}")),
        ),
        None if !in_caller => (From::Default, "the caller does not have it".to_owned(), None),
        None if clear && allowed(name, false).is_some() && allowed(name, true).is_none() => (
            From::Option,
            "on the allowlist, which --clear-env cuts short".to_owned(),
            Some("--clear-env".to_owned()),
        ),
        None if allowed(name, clear).is_some() => {
            (From::Table, "on the allowlist, but an address in its value names a user".to_owned(), None)
        }
        None => (From::Default, "not on the allowlist".to_owned(), None),
    };
    let passed = given.is_some() || name == "CONFINE_POLICY";
    answer.passed = Some(passed);
    answer.rule = Rule { from, text, option, ..Rule::default() };
    if !passed && !reserved(name) {
        let option = match in_caller {
            true => format!("--env {shown}"),
            // Other users read the command line.
            false if is_secret(name) => "--env-file FILE".to_owned(),
            false => format!("--env {shown}=VALUE"),
        };
        answer.suggest(option, danger(name));
    } else if passed
        && given != Some(&Given::Fixed)
        && let Some(danger) = danger(name)
    {
        answer.note(format!("careful: {danger}"));
    }
    answer
}

/// From inside, by the plan's names and this process's own environment.
pub fn judge_inside(subject: &OsStr, name: &OsStr, names: &[String]) -> Answer {
    let mut answer = Answer::about(subject, "variable");
    let passed = names.iter().any(|known| OsStr::new(known) == name) || name == "CONFINE_POLICY";
    answer.passed = Some(passed);
    answer.rule.text =
        if passed { "passed when the run began" } else { "not passed when the run began" }.to_owned();
    if std::env::var_os(name).is_some() != passed {
        answer.note("something inside has changed that since");
    }
    if !passed && !reserved(name) {
        answer.suggest(format!("--env {}", paste(name)), danger(name));
    }
    answer
}

fn reserved(name: &OsStr) -> bool {
    is_reserved(name)
}

fn danger(name: &OsStr) -> Option<String> {
    let upper = name.to_string_lossy().to_ascii_uppercase();
    let leads = LEADING
        .iter()
        .find(|(known, _)| if known.ends_with('_') { upper.starts_with(known) } else { upper == *known });
    if let Some((_, reason)) = leads {
        return Some((*reason).to_owned());
    }
    is_secret(name).then(|| "its name says that it is a credential".to_owned())
}

fn is_secret(name: &OsStr) -> bool {
    let upper = name.to_string_lossy().to_ascii_uppercase();
    SECRETS.iter().any(|word| upper.contains(word))
}
