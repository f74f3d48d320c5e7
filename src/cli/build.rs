//! The rows as a clap command, with as much of it as is needed.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Command, ValueHint, value_parser};

use super::options::{self, Row, Value};
use crate::policy::Promise;

/// How much of the command is built. Fifty options with their texts take longer than parsing any line does, so
/// an ordinary run builds those that its words begin like, and no texts.
#[derive(Clone, Copy)]
pub enum Build<'a> {
    /// Everything, for people and for generators.
    Whole,
    /// Every option, without texts: to tell what is wrong with a line.
    Options,
    /// The options that may be meant by one of these words, and those with a letter. An option that is left
    /// out reads as not given, which it was not; a line that does not parse is parsed again with all of them.
    MeantBy(&'a [OsString]),
}

impl Build<'_> {
    fn texts(self) -> bool {
        matches!(self, Build::Whole)
    }

    fn has(self, row: &Row) -> bool {
        match self {
            // Nobody is told of them.
            Build::Whole => !row.hidden,
            Build::Options => true,
            Build::MeantBy(words) => {
                row.short.is_some() || words.iter().any(|word| names(word.as_bytes(), row.name))
            }
        }
    }
}

/// Whether a word is `--name` or `--name=VALUE`.
fn names(word: &[u8], name: &str) -> bool {
    match word.strip_prefix(b"--").and_then(|word| word.strip_prefix(name.as_bytes())) {
        Some(rest) => rest.first().is_none_or(|&next| next == b'='),
        None => false,
    }
}

fn base(name: &'static str) -> Command {
    Command::new(name).disable_help_subcommand(true).disable_colored_help(true)
}

pub fn run(build: Build<'_>) -> Command {
    let command = base("confine")
        .version(env!("CARGO_PKG_VERSION"))
        .args(options::RUN.iter().filter(|row| build.has(row)).map(|row| arg(row, build)))
        .arg(command_arg(build));
    if !build.texts() {
        return command;
    }
    command
            .about("Run COMMAND inside a boundary that neither it nor anything it starts can widen")
            .override_usage(
                "confine [OPTIONS] -- COMMAND [ARG]...\n       confine explain [OPTIONS] -- COMMAND [ARG]...\n       \
                 confine trace [OPTIONS] -- COMMAND [ARG]...\n       confine check [--prove [OPTIONS]] [--json]\n       \
                 confine check --posture [-w DIR]... [--json]\n       confine scan [--separate] [--json] DIR...\n       \
                 confine verify [--expect HASH] [--json] FILE\n       confine why [OPTIONS] [--json] SUBJECT...",
            )
            .after_help(AFTER)
            .after_long_help(after_long())
}

pub fn explain(build: Build<'_>) -> Command {
    let command = base("explain")
        .args(options::RUN.iter().filter(|row| build.has(row)).map(|row| arg(row, build)))
        .arg(arg(&options::JSON, build))
        .arg(command_arg(build));
    if !build.texts() {
        return command;
    }
    command
        .about("Show how a run would be confined, and run nothing")
        .long_about(
            "Show how a run would be confined, and run nothing: what is visible with which access, which \
                 layer keeps each promise, and which variables are dropped.",
        )
        .override_usage("confine explain [OPTIONS] -- COMMAND [ARG]...")
}

pub fn trace(build: Build<'_>) -> Command {
    let command = base("trace")
        .args(options::RUN.iter().filter(|row| build.has(row)).map(|row| arg(row, build)))
        .args([arg(&options::SUGGEST, build), arg(&options::JSON, build)])
        .arg(command_arg(build));
    if !build.texts() {
        return command;
    }
    command
        .about("Run COMMAND and list what the boundary denied it")
        .long_about(
            "Run COMMAND inside the boundary that the options make, with its own streams and exit status, and \
             afterwards list on standard error, once each, what was denied, by which layer, and the smallest option \
             that allows it. COMMAND is traced, which makes its system calls slow, and debuggers inside fail.",
        )
        .override_usage("confine trace [--suggest] [--json] [OPTIONS] -- COMMAND [ARG]...")
}

pub fn check(build: Build<'_>) -> Command {
    let command = base("check")
        .args(options::RUN.iter().filter(|row| build.has(row)).map(|row| arg(row, build)))
        .args([&options::PROVE, &options::POSTURE, &options::JSON].map(|row| arg(row, build)));
    if !build.texts() {
        return command;
    }
    command
            .about("Tell which promises this host can keep, and the fix for the rest")
            .long_about(
                "Tell, promise by promise, whether this host can keep it and by what, or why not and what would \
                 help; found by doing the whole set-up in a child. Exits 0 when every default promise holds, 1 \
                 otherwise. With --prove, which takes the options of a run, attempts to get out are made inside \
                 the boundary that these options make, each against a victim that is watched from outside. With \
                 --posture the set-up around the runs is audited instead.",
            )
            .override_usage(
                "confine check [--json]\n       confine check --prove [OPTIONS] [--json]\n       \
                 confine check --posture [-w DIR]... [--json]",
            )
}

pub fn scan(build: Build<'_>) -> Command {
    let mut dirs = Arg::new("dir").value_name("DIR").num_args(0..).value_parser(value_parser!(OsString));
    if build.texts() {
        dirs = dirs.help("Directories to look through").value_hint(ValueHint::DirPath);
    }
    let command = base("scan").args([arg(&options::SEPARATE, build), arg(&options::JSON, build), dirs]);
    if !build.texts() {
        return command;
    }
    command
        .about("List files in DIR that have a name elsewhere too, and device nodes")
        .override_usage("confine scan [--separate] [--json] DIR...")
}

pub fn verify(build: Build<'_>) -> Command {
    let mut file = Arg::new("file").value_name("FILE").value_parser(value_parser!(OsString));
    if build.texts() {
        file = file.help("The record that --audit wrote").value_hint(ValueHint::FilePath);
    }
    let command = base("verify").args([arg(&options::EXPECT, build), arg(&options::JSON, build), file]);
    if !build.texts() {
        return command;
    }
    command
        .about("Check the chain of an audit record")
        .long_about(
            "Check that every line of an audit record follows from the one before, and print the hash of the last \
             one. Exits 0 when the chain is whole, 1 otherwise. What was cut off at the end, or changed in the last \
             line, shows only against a hash that was kept elsewhere.",
        )
        .override_usage("confine verify [--expect HASH] [--json] FILE")
}

pub fn why(build: Build<'_>) -> Command {
    let mut subjects =
        Arg::new("subject").value_name("SUBJECT").num_args(0..).value_parser(value_parser!(OsString));
    if build.texts() {
        subjects = subjects
            .help("A path, HOST:PORT, @ABSTRACT, or NAME= for a variable; a name with a slash is a path")
            .value_hint(ValueHint::AnyPath);
    }
    let command = base("why")
        .args(options::RUN.iter().filter(|row| build.has(row)).map(|row| arg(row, build)))
        .args([arg(&options::JSON, build), subjects]);
    if !build.texts() {
        return command;
    }
    command
        .about("Tell what is visible, writable, reachable or passed, and why")
        .long_about(
            "Tell, for each SUBJECT, whether it is visible, readable, writable, executable, connectable or \
             passed in a run with these options, which rule says so, and the smallest option that would change it. \
             Nothing is run. Inside a run it needs no options and answers by the plan that was enforced. Exits 0 \
             when it has answered, whatever the answer.",
        )
        .override_usage("confine why [OPTIONS] [--json] SUBJECT...")
}

/// One row as a clap argument. Words stay bytes here: what they mean is for `values` to say, so that a wrong
/// one is reported in confine's own words.
fn arg(row: &Row, build: Build<'_>) -> Arg {
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
    if !build.texts() {
        return arg;
    }
    arg = match row.value {
        Value::None => arg,
        Value::Directory => arg.value_name("DIR").value_hint(ValueHint::DirPath),
        Value::Path => arg.value_name("PATH").value_hint(ValueHint::AnyPath),
        Value::Word(name) | Value::Number(name) => arg.value_name(name).value_hint(ValueHint::Other),
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

fn command_arg(build: Build<'_>) -> Arg {
    let arg = Arg::new("command").num_args(1..).value_parser(value_parser!(OsString));
    if !build.texts() {
        // `--` has been taken off: whatever lands here stands where it should have been.
        return arg.trailing_var_arg(true);
    }
    arg.value_names(["COMMAND", "ARG"])
        .last(true)
        .value_hint(ValueHint::CommandWithArguments)
        .help("What to run, after '--'; passed on byte for byte")
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
pub fn filled(text: &str, width: usize) -> String {
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
