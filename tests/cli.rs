//! The parser from outside: what a user sees who asks for help or makes a mistake. Nothing here starts a
//! command, and each wrong line must leave no trace of one: COMMAND would make a file.
#![allow(clippy::unwrap_used)]

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("confine-cli-{}-{name}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Scratch(path)
    }

    fn is_empty(&self) -> bool {
        std::fs::read_dir(&self.0).unwrap().next().is_none()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn confine(scratch: &Scratch, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_confine"))
        .args(words)
        .current_dir(&scratch.0)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Exit 125, nothing on stdout, one line and at most one hint on stderr, nothing started.
fn assert_refused(words: &[&str], message: &str, hint: Option<&str>) {
    let scratch = Scratch::new(&format!("{:?}", std::thread::current().id()));
    let output = confine(&scratch, words);
    let expected = match hint {
        Some(hint) => format!("confine: {message}\nhint: {hint}\n"),
        None => format!("confine: {message}\n"),
    };
    assert_eq!(text(&output.stderr), expected, "{words:?}");
    assert_eq!(output.status.code(), Some(125), "{words:?}");
    assert_eq!(text(&output.stdout), "", "{words:?}");
    assert!(scratch.is_empty(), "{words:?}");
}

#[test]
fn a_forgotten_separator_is_answered_by_the_right_line() {
    assert_refused(
        &["-w", ".", "touch", "x"],
        "no '--' before the command 'touch'",
        Some("confine -w . -- touch x"),
    );
}

#[test]
fn the_workspace_is_never_guessed() {
    assert_refused(
        &["--", "touch", "x"],
        "no workspace: say which directory the command may change",
        Some("confine -w . -- touch x"),
    );
}

#[test]
fn no_argument_at_all_is_a_mistake_and_not_help() {
    assert_refused(&[], "no command to run", Some("confine -w . -- COMMAND (or 'confine --help')"));
}

#[test]
fn unknown_options_and_promises_are_answered_by_near_ones() {
    assert_refused(
        &["--worksapce", ".", "--", "touch", "x"],
        "unknown option '--worksapce'",
        Some("did you mean '--workspace'?"),
    );
    assert_refused(
        &["-w", ".", "--require", "write-scop", "--", "touch", "x"],
        "--require 'write-scop': not one of its values",
        Some("--require write-scope"),
    );
}

#[test]
fn wrong_ports_sizes_and_times_are_refused_with_the_reason() {
    for port in ["0", "65536", "-1", "x"] {
        assert_refused(
            &["-w", ".", "--connect", port, "--", "touch", "x"],
            &format!("--connect '{port}': not a port from 1 to 65535"),
            None,
        );
    }
    assert_refused(
        &["-w", ".", "--max-tmp", "18446744073709551616", "--", "touch", "x"],
        "--max-tmp '18446744073709551616': too large",
        None,
    );
    assert_refused(
        &["-w", ".", "--max-file-size", "1.5G", "--", "touch", "x"],
        "--max-file-size '1.5G': not a whole number of bytes, or of K, M, G or T (as in 512M)",
        None,
    );
    assert_refused(
        &["-w", ".", "--timeout", "10", "--", "touch", "x"],
        "--timeout '10': not a whole number with one of the units ms, s, m or h (as in 90s)",
        None,
    );
}

#[test]
fn one_path_with_two_kinds_of_access_is_refused() {
    assert_refused(
        &["-w", ".", "--ro", "/usr/share", "--rw", "/usr//share/", "--", "touch", "x"],
        "--ro and --rw give '/usr//share/' different access",
        None,
    );
}

#[test]
fn terminal_escapes_in_an_argument_are_shown_and_not_sent() {
    assert_refused(
        &["-w", ".", "--git", "\u{1b}[31mred\n", "--", "touch", "x"],
        r"--git '\u{1b}[31mred\n': not one of its values",
        Some("--git takes guard, read-only or free"),
    );
}

#[test]
fn an_argument_that_is_not_utf8_is_reported_byte_by_byte() {
    let scratch = Scratch::new("bytes");
    let output = Command::new(env!("CARGO_BIN_EXE_confine"))
        .args(["-w", "."])
        .arg(OsString::from_vec(b"\xff".to_vec()))
        .current_dir(&scratch.0)
        .output()
        .unwrap();
    assert_eq!(
        text(&output.stderr),
        "confine: no '--' before the command '\\xff'\nhint: confine -w . -- $'\\xff'\n"
    );
    assert_eq!(output.status.code(), Some(125));
}

#[test]
fn help_and_version_go_to_standard_output_and_succeed() {
    let scratch = Scratch::new("help");
    for words in
        [&["-h"][..], &["--help"], &["help"], &["check", "--help"], &["explain", "-h"], &["scan", "-h"]]
    {
        let output = confine(&scratch, words);
        assert_eq!(output.status.code(), Some(0), "{words:?}");
        assert!(text(&output.stdout).contains("Usage: confine"), "{words:?}");
        assert_eq!(text(&output.stderr), "", "{words:?}");
    }
    let output = confine(&scratch, &["--version"]);
    assert_eq!(text(&output.stdout), format!("confine {}\n", env!("CARGO_PKG_VERSION")));
    assert!(scratch.is_empty());
}

#[test]
fn help_that_cannot_be_written_is_a_failure_and_a_reader_that_left_is_not() {
    let scratch = Scratch::new("full");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let help = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_confine"));
        command.arg("--help").current_dir(&scratch.0);
        command
    };
    let output = help().stdout(full).output().unwrap();
    assert_eq!(text(&output.stderr), "confine: cannot write to standard output: no space left on device\n");
    assert_eq!(output.status.code(), Some(125));

    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = help().stdout(writer).output().unwrap();
    assert_eq!(text(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn closed_standard_streams_do_not_stop_it() {
    let output = Command::new("sh")
        .args(["-c", "\"$0\" --version <&- 2>&-"])
        .arg(env!("CARGO_BIN_EXE_confine"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).starts_with("confine "));
}
