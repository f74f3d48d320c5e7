//! The command line: an argv becomes a [`Request`]. The rows of [`options`] are the one source of what can be
//! asked, of help, manual page, completions and the keys of policy files. No system call is made here: whatever must
//! be looked up comes later, but for policy files, which the caller's `Find` brings.
#![forbid(unsafe_code)]

mod build;
mod complaint;
pub mod keys;
mod layers;
mod options;
mod row;
mod rules;
pub mod shell;
mod values;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::builder::StyledStr;
use clap::{ArgMatches, Command};

use crate::error::{Error, Result};
use crate::policy::files::Find;
use crate::policy::{Policy, Trace};
use build::{Build, check, explain, run, scan, trace, verify, why};

/// What confine is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    Run(Invocation),
    Check {
        json: bool,
        /// With `--prove`, the run whose boundary is to be tried.
        prove: Option<Box<Proof>>,
    },
    /// What `check --prove` runs inside: for no one else.
    ProveInside(Vec<OsString>),
    /// `check --posture`
    Posture {
        workspaces: Vec<PathBuf>,
        json: bool,
    },
    Explain {
        invocation: Invocation,
        json: bool,
    },
    /// A profile itself: its text, and where it comes from.
    Profile {
        name: String,
        text: String,
        json: bool,
    },
    Scan {
        dirs: Vec<OsString>,
        separate: bool,
        json: bool,
    },
    Verify {
        file: OsString,
        expect: Option<String>,
        json: bool,
    },
    Why {
        /// Of a run with these options; None asks about the run that this is part of.
        policy: Option<Policy>,
        subjects: Vec<OsString>,
        json: bool,
    },
    /// A text for standard output.
    Help(String),
    Version(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    pub policy: Policy,
    /// COMMAND and its arguments, byte for byte; never empty.
    pub command: Vec<OsString>,
}

/// A run without a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    pub policy: Policy,
    /// Its options, word for word.
    pub words: Vec<OsString>,
}

/// Not among the subcommands: nobody calls it but confine itself.
pub const PROVE_INSIDE: &str = "prove-inside";

const SUBCOMMANDS: [&str; 6] = ["check", "explain", "scan", "trace", "verify", "why"];

/// The whole command with every text, for help, manual page and completions.
pub fn command() -> Command {
    run(Build::Whole)
        .subcommands([
            check(Build::Whole),
            explain(Build::Whole),
            scan(Build::Whole),
            trace(Build::Whole),
            verify(Build::Whole),
            why(Build::Whole),
        ])
        .subcommand_precedence_over_arg(true)
        .args_conflicts_with_subcommands(true)
}

/// What the argv asks for; its first word is the name that confine was called by. Policy files are found by `find`.
pub fn parse(argv: impl IntoIterator<Item = OsString>, find: Find<'_>) -> Result<Request> {
    let words: Vec<OsString> = argv.into_iter().skip(1).collect();
    match words.first().and_then(|word| word.to_str()) {
        Some("help") => parse_help(&words, find),
        Some("check") => parse_check(&words, find),
        Some("explain") => parse_explain(words, find),
        Some("scan") => parse_scan(&words),
        Some(PROVE_INSIDE) => Ok(Request::ProveInside(words[1..].to_vec())),
        Some("trace") => parse_trace(words, find),
        Some("verify") => parse_verify(&words),
        Some("why") => parse_why(&words, find),
        _ => parse_run(words, find),
    }
}

fn parse_run(mut words: Vec<OsString>, find: Find<'_>) -> Result<Request> {
    let command = take_command(&mut words);
    match matches(run, &["confine"], &words)? {
        Matched::Text(text) => Ok(*text),
        Matched::Options(options) => {
            invocation(&["confine"], &options, &words, command, find).map(Request::Run)
        }
    }
}

fn parse_explain(mut words: Vec<OsString>, find: Find<'_>) -> Result<Request> {
    let command = take_command(&mut words);
    let words = &words[1..];
    match matches(explain, &["confine", "explain"], words)? {
        Matched::Text(text) => Ok(*text),
        Matched::Options(options) => {
            let json = values::flag(&options, "json");
            if let (Some(name), None) = (values::one(&options, "profile"), &command)
                && options.get_raw("command").is_none()
            {
                let name = name.to_string_lossy().into_owned();
                let text = layers::text(&layers::profile(&name, find)?);
                return Ok(Request::Profile { name, text, json });
            }
            let invocation = invocation(&["confine", "explain"], &options, words, command, find)?;
            Ok(Request::Explain { invocation, json })
        }
    }
}

fn parse_trace(mut words: Vec<OsString>, find: Find<'_>) -> Result<Request> {
    let command = take_command(&mut words);
    let words = &words[1..];
    match matches(trace, &["confine", "trace"], words)? {
        Matched::Text(text) => Ok(*text),
        Matched::Options(options) => {
            let mut invocation = invocation(&["confine", "trace"], &options, words, command, find)?;
            let (suggest, json) = (values::flag(&options, "suggest"), values::flag(&options, "json"));
            invocation.policy.trace = Some(Trace { suggest, json });
            Ok(Request::Run(invocation))
        }
    }
}

fn parse_check(words: &[OsString], find: Find<'_>) -> Result<Request> {
    match matches(check, &["confine", "check"], &words[1..])? {
        Matched::Text(text) => Ok(*text),
        Matched::Options(options) => {
            let json = values::flag(&options, "json");
            let of_run: Vec<OsString> = words[1..]
                .iter()
                .filter(|word| !["--prove", "--posture", "--json"].iter().any(|own| word == own))
                .cloned()
                .collect();
            let (prove, posture) = (values::flag(&options, "prove"), values::flag(&options, "posture"));
            if prove && posture {
                return Err(Error::usage("--prove and --posture are two questions")
                    .with_hint("confine check --posture, then confine check --prove"));
            }
            if posture {
                let other = |row: &&options::Row| {
                    let given = values::flag(&options, row.name) || values::one(&options, row.name).is_some();
                    given && row.name != "workspace"
                };
                if let Some(row) = options::RUN.iter().find(other) {
                    return Err(Error::usage(format!("--{} has no meaning with --posture", row.name))
                        .with_hint("confine check --posture -w ."));
                }
                let workspaces = values::all(&options, "workspace");
                let workspaces =
                    workspaces.iter().map(|word| values::path("workspace", word)).collect::<Result<_>>()?;
                return Ok(Request::Posture { workspaces, json });
            }
            if prove {
                let policy = rules::policy(&layers::gather(&options, find, rules::check)?)?;
                return Ok(Request::Check { json, prove: Some(Box::new(Proof { policy, words: of_run })) });
            }
            if let Some(word) = of_run.first() {
                return Err(Error::usage(format!(
                    "check takes {} only with --prove, which tries a run with it, or --posture",
                    crate::error::show(word)
                ))
                .with_hint(complaint::line(
                    &["confine", "check", "--prove"],
                    &words[1..],
                    None,
                )));
            }
            Ok(Request::Check { json, prove: None })
        }
    }
}

fn parse_scan(words: &[OsString]) -> Result<Request> {
    match matches(scan, &["confine", "scan"], &words[1..])? {
        Matched::Text(text) => Ok(*text),
        Matched::Options(options) => {
            let dirs = values::all(&options, "dir");
            if dirs.is_empty() {
                return Err(Error::usage("no directory to scan").with_hint("confine scan ."));
            }
            if dirs.iter().any(|dir| dir.is_empty()) {
                return Err(Error::usage("a directory to scan has an empty name"));
            }
            Ok(Request::Scan {
                dirs,
                separate: values::flag(&options, "separate"),
                json: values::flag(&options, "json"),
            })
        }
    }
}

fn parse_verify(words: &[OsString]) -> Result<Request> {
    match matches(verify, &["confine", "verify"], &words[1..])? {
        Matched::Text(text) => Ok(*text),
        Matched::Options(options) => {
            let file = values::one(&options, "file").filter(|file| !file.is_empty());
            let file = file.ok_or_else(|| {
                Error::usage("no record to check").with_hint("confine verify FILE, the file of --audit")
            })?;
            let expect =
                values::one(&options, "expect").map(|word| values::hash("expect", word)).transpose()?;
            Ok(Request::Verify { file: file.to_owned(), expect, json: values::flag(&options, "json") })
        }
    }
}

fn parse_why(words: &[OsString], find: Find<'_>) -> Result<Request> {
    let options = match matches(why, &["confine", "why"], &words[1..])? {
        Matched::Text(text) => return Ok(*text),
        Matched::Options(options) => options,
    };
    let subjects = values::all(&options, "subject");
    if subjects.is_empty() {
        return Err(Error::usage("nothing to ask about").with_hint("confine why -w . PATH"));
    }
    // Without any option it may be about the run that this is part of.
    let own = words
        .iter()
        .skip(1)
        .all(|word| !word.as_bytes().starts_with(b"-") || word == "--json" || word == "--");
    let policy = rules::policy(&layers::gather(&options, find, rules::check)?)?;
    let named = !policy.workspaces.is_empty() || policy.no_workspace;
    if !named && !own {
        return Err(
            Error::usage("no workspace: these options make no run").with_hint("confine why -w . SUBJECT")
        );
    }
    let policy = named.then_some(policy);
    Ok(Request::Why { policy, subjects, json: values::flag(&options, "json") })
}

/// `confine help [SUBCOMMAND]`, for those who try it first.
fn parse_help(words: &[OsString], find: Find<'_>) -> Result<Request> {
    let mut asked: Vec<OsString> = words[1..].iter().take(1).cloned().collect();
    if let Some(word) = asked.first()
        && !SUBCOMMANDS.iter().any(|name| word == name)
    {
        return Err(
            Error::usage(format!("no help on {}", crate::error::show(word))).with_hint("confine --help")
        );
    }
    asked.push("--help".into());
    parse(std::iter::once("confine".into()).chain(asked), find)
}

/// Everything after the first `--`, which clap would end the options at as well. Taken off beforehand, the
/// largest argv costs nothing to parse and no byte of it is looked at.
fn take_command(words: &mut Vec<OsString>) -> Option<Vec<OsString>> {
    let end = words.iter().position(|word| word == "--")?;
    let command = words.split_off(end + 1);
    words.truncate(end);
    Some(command)
}

fn invocation(
    called: &[&str],
    options: &ArgMatches,
    words: &[OsString],
    command: Option<Vec<OsString>>,
    find: Find<'_>,
) -> Result<Invocation> {
    let stray = options.get_raw("command").map_or(0, |values| values.len());
    let (given, rest) = words.split_at(words.len() - stray);
    let command = match command {
        Some(command) if stray > 0 => return Err(complaint::stray_words(called, given, rest, &command)),
        None if stray > 0 => return Err(complaint::no_separator(called, given, rest)),
        None => return Err(complaint::no_command(called, given)),
        Some(command) if command.is_empty() => return Err(complaint::no_command(called, given)),
        Some(command) => command,
    };
    let policy = rules::policy(&layers::gather(options, find, rules::check)?)?;
    if policy.workspaces.is_empty() && !policy.no_workspace {
        return Err(complaint::no_workspace(called, given, &command));
    }
    Ok(Invocation { policy, command })
}

/// Boxed, as the request inside is much the larger; made once, and only for a text.
enum Matched {
    Options(ArgMatches),
    Text(Box<Request>),
}

fn matches(build: fn(Build<'_>) -> Command, called: &[&str], words: &[OsString]) -> Result<Matched> {
    let argv = || std::iter::once(OsStr::new("confine")).chain(words.iter().map(OsString::as_os_str));
    if let Ok(options) = build(Build::MeantBy(words)).try_get_matches_from(argv()) {
        return Ok(Matched::Options(options));
    }
    let error = match build(Build::Options).try_get_matches_from(argv()) {
        Ok(options) => return Ok(Matched::Options(options)),
        Err(error) => error,
    };
    match error.kind() {
        clap::error::ErrorKind::DisplayHelp => {
            Ok(Matched::Text(Box::new(Request::Help(help(called, words)))))
        }
        clap::error::ErrorKind::DisplayVersion => {
            Ok(Matched::Text(Box::new(Request::Version(error.to_string()))))
        }
        _ => Err(complaint::from_clap(&error, called)),
    }
}

/// The text, from the whole command; the short one when `-h` comes first.
fn help(called: &[&str], words: &[OsString]) -> String {
    let long = words.iter().find_map(|word| match word.as_bytes() {
        b"--help" => Some(true),
        b"-h" => Some(false),
        _ => None,
    });
    let mut whole = command();
    whole.build();
    let target = match called {
        [_, name] => whole.find_subcommand_mut(name),
        _ => Some(&mut whole),
    };
    let Some(target) = target else { return String::new() };
    let text: StyledStr = match long {
        Some(false) => target.render_help(),
        _ => target.render_long_help(),
    };
    text.to_string()
}

#[cfg(test)]
mod tests;
