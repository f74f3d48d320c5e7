//! The command line: an argv becomes a [`Request`]. The rows of [`options`] are the one source of what can be
//! asked, of help, manual page and completions. No system call is made here: whatever must be looked up comes
//! later.
#![forbid(unsafe_code)]

mod complaint;
mod options;
mod rules;
mod values;

use std::ffi::{OsStr, OsString};

use clap::builder::{PossibleValuesParser, StyledStr};
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};

use crate::error::{Error, Result};
use crate::policy::{Policy, Promise};
use options::{Row, Value};

/// What confine is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    Run(Invocation),
    Check {
        json: bool,
    },
    Explain {
        invocation: Invocation,
        json: bool,
    },
    Scan {
        dirs: Vec<OsString>,
        separate: bool,
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

const SUBCOMMANDS: [&str; 3] = ["check", "explain", "scan"];

/// How much of the command is built: the texts are copied into it, and an ordinary run needs none of them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Texts {
    Without,
    With,
}

/// The whole command with every text, for help, manual page and completions.
pub fn command() -> Command {
    run(Texts::With)
        .subcommands([check(Texts::With), explain(Texts::With), scan(Texts::With)])
        .subcommand_precedence_over_arg(true)
        .args_conflicts_with_subcommands(true)
}

/// What the argv asks for; its first word is the name that confine was called by.
pub fn parse(argv: impl IntoIterator<Item = OsString>) -> Result<Request> {
    let words: Vec<OsString> = argv.into_iter().skip(1).collect();
    match words.first().and_then(|word| word.to_str()) {
        Some("help") => parse_help(&words),
        Some("check") => parse_check(&words),
        Some("explain") => parse_explain(words),
        Some("scan") => parse_scan(&words),
        _ => parse_run(words),
    }
}

fn parse_run(mut words: Vec<OsString>) -> Result<Request> {
    let command = take_command(&mut words);
    match matches(run, &["confine"], &words)? {
        Matched::Text(text) => Ok(*text),
        Matched::Options(options) => invocation(&["confine"], &options, &words, command).map(Request::Run),
    }
}

fn parse_explain(mut words: Vec<OsString>) -> Result<Request> {
    let command = take_command(&mut words);
    let words = &words[1..];
    match matches(explain, &["confine", "explain"], words)? {
        Matched::Text(text) => Ok(*text),
        Matched::Options(options) => {
            let json = options.get_flag("json");
            let invocation = invocation(&["confine", "explain"], &options, words, command)?;
            Ok(Request::Explain { invocation, json })
        }
    }
}

fn parse_check(words: &[OsString]) -> Result<Request> {
    match matches(check, &["confine", "check"], &words[1..])? {
        Matched::Text(text) => Ok(*text),
        Matched::Options(options) => Ok(Request::Check { json: options.get_flag("json") }),
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
            Ok(Request::Scan { dirs, separate: options.get_flag("separate"), json: options.get_flag("json") })
        }
    }
}

/// `confine help [SUBCOMMAND]`, for those who try it first.
fn parse_help(words: &[OsString]) -> Result<Request> {
    let mut asked: Vec<OsString> = words[1..].iter().take(1).cloned().collect();
    if let Some(word) = asked.first()
        && !SUBCOMMANDS.iter().any(|name| word == name)
    {
        return Err(
            Error::usage(format!("no help on {}", crate::error::show(word))).with_hint("confine --help")
        );
    }
    asked.push("--help".into());
    parse(std::iter::once("confine".into()).chain(asked))
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
    let policy = rules::policy(options)?;
    if policy.workspaces.is_empty() {
        return Err(complaint::no_workspace(called, given, &command));
    }
    Ok(Invocation { policy, command })
}

/// Boxed, as the request inside is much the larger; made once, and only for a text.
enum Matched {
    Options(ArgMatches),
    Text(Box<Request>),
}

fn matches(build: fn(Texts) -> Command, called: &[&str], words: &[OsString]) -> Result<Matched> {
    let argv = || std::iter::once(OsStr::new("confine")).chain(words.iter().map(OsString::as_os_str));
    let error = match build(Texts::Without).try_get_matches_from(argv()) {
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
    let long = words.iter().find_map(|word| match word.as_encoded_bytes() {
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

fn base(name: &'static str) -> Command {
    Command::new(name).disable_help_subcommand(true).disable_colored_help(true)
}

fn run(texts: Texts) -> Command {
    let command = base("confine")
        .version(env!("CARGO_PKG_VERSION"))
        .args(options::RUN.iter().map(|row| arg(row, texts)))
        .arg(command_arg(texts));
    match texts {
        Texts::Without => command,
        Texts::With => command
            .about("Run COMMAND inside a boundary that neither it nor anything it starts can widen")
            .override_usage(
                "confine [OPTIONS] -- COMMAND [ARG]...\n       confine explain [OPTIONS] -- COMMAND [ARG]...\n       \
                 confine check [--json]\n       confine scan [--separate] [--json] DIR...",
            )
            .after_help(AFTER)
            .after_long_help(after_long()),
    }
}

fn explain(texts: Texts) -> Command {
    let command = base("explain")
        .args(options::RUN.iter().map(|row| arg(row, texts)))
        .arg(arg(&options::JSON, texts))
        .arg(command_arg(texts));
    match texts {
        Texts::Without => command,
        Texts::With => command
            .about("Show how a run would be confined, and run nothing")
            .long_about(
                "Show how a run would be confined, and run nothing: what is visible with which access, which \
                 layer keeps each promise, and which variables are dropped.",
            )
            .override_usage("confine explain [OPTIONS] -- COMMAND [ARG]..."),
    }
}

fn check(texts: Texts) -> Command {
    let command = base("check").arg(arg(&options::JSON, texts));
    match texts {
        Texts::Without => command,
        Texts::With => command
            .about("Tell which promises this host can keep, and the fix for the rest")
            .long_about(
                "Tell, promise by promise, whether this host can keep it and by what, or why not and what would \
                 help; found by doing the whole set-up in a child. Exits 0 when every default promise holds, 1 \
                 otherwise.",
            )
            .override_usage("confine check [--json]"),
    }
}

fn scan(texts: Texts) -> Command {
    let mut dirs = Arg::new("dir").value_name("DIR").num_args(0..).value_parser(value_parser!(OsString));
    if texts == Texts::With {
        dirs = dirs.help("Directories to look through").value_hint(ValueHint::DirPath);
    }
    let command = base("scan").args([arg(&options::SEPARATE, texts), arg(&options::JSON, texts), dirs]);
    match texts {
        Texts::Without => command,
        Texts::With => command
            .about("List files in DIR that have a name elsewhere too, and device nodes")
            .override_usage("confine scan [--separate] [--json] DIR..."),
    }
}

/// One row as a clap argument. Words stay bytes here: what they mean is for `values` to say, so that a wrong
/// one is reported in confine's own words.
fn arg(row: &Row, texts: Texts) -> Arg {
    let mut arg = Arg::new(row.name).long(row.name);
    if let Some(letter) = row.short {
        arg = arg.short(letter);
    }
    arg = match (row.value, row.repeat) {
        (Value::None, _) => arg.action(ArgAction::SetTrue),
        (_, false) => arg.action(ArgAction::Set).value_parser(value_parser!(OsString)),
        (_, true) => arg.action(ArgAction::Append).value_parser(value_parser!(OsString)),
    };
    if let Value::Number(_) = row.value {
        arg = arg.allow_negative_numbers(true);
    }
    if texts == Texts::Without {
        return arg;
    }
    arg = match row.value {
        Value::None => arg,
        Value::Directory => arg.value_name("DIR").value_hint(ValueHint::DirPath),
        Value::Path => arg.value_name("PATH").value_hint(ValueHint::AnyPath),
        Value::Word(name) | Value::Number(name) => arg.value_name(name),
        // The placeholder or the detail names them; here they are for completions.
        Value::OneOf(name, values) => {
            arg.value_name(name).value_parser(PossibleValuesParser::new(values)).hide_possible_values(true)
        }
    };
    arg.help(row.summary)
        .long_help(format!("{}\n{}", filled(&format!("{}.", row.summary), 70), filled(row.detail, 70)))
        .help_heading(row.group)
        .hide(row.hidden)
}

fn command_arg(texts: Texts) -> Arg {
    let arg = Arg::new("command").num_args(1..).value_parser(value_parser!(OsString));
    match texts {
        // `--` has been taken off: whatever lands here stands where it should have been.
        Texts::Without => arg.trailing_var_arg(true),
        Texts::With => arg
            .value_names(["COMMAND", "ARG"])
            .last(true)
            .value_hint(ValueHint::CommandWithArguments)
            .help("What to run, after '--'; passed on byte for byte"),
    }
}

const AFTER: &str = "Example:\n  confine -w . -- make test";

fn after_long() -> String {
    let mut text = String::from("Promises:\n");
    for promise in Promise::ALL {
        let meaning = filled(promise.meaning(), 60).replace('\n', &format!("\n{:19}", ""));
        text.push_str(&format!("  {:<16} {meaning}\n", promise.name()));
    }
    text + CLOSING
}

const CLOSING: &str = "
Sizes are whole bytes, or K, M, G, T (powers of 1024). Times are whole
numbers with ms, s, m or h.

Exit status:
  that of COMMAND, or
  124  timed out
  125  confine refused or failed; COMMAND was not started
  126  COMMAND was found but cannot be run, or is not visible inside
  127  COMMAND was not found

Examples:
  confine -w . -- make test
  confine -w . --ro ../library --connect 443 --connect 53 -- npm ci
  confine explain -w . -- make test";

/// The text in lines of at most `width`: clap wraps only with a feature that asks the terminal for its size.
fn filled(text: &str, width: usize) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut column = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if column + 1 + length > width && column > 0 {
            filled.push('\n');
            column = 0;
        } else if column > 0 {
            filled.push(' ');
            column += 1;
        }
        filled.push_str(word);
        column += length;
    }
    filled
}

#[cfg(test)]
mod tests;
