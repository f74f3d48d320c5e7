//! `confine trace`: every class of denial is listed with the option that allows it, what is no denial is not listed,
//! and the command itself notices nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod command;
#[path = "../common/mod.rs"]
mod common;
mod denials;
mod list;
#[path = "../supervise/mod.rs"]
mod supervise;

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::Command;

use common::{EVERYONE, Outcome, Run, Scratch, Who};
use serde_json::Value;
use supervise::terminal::Terminal;
use supervise::{await_that, mark, marked, program, state};

fn trace(scratch: &Scratch) -> Run {
    // The first word of confine's, not of the command's.
    Run::bare(scratch)
        .option("trace")
        .option("--workspace")
        .option(scratch.workspace())
        .env("PATH", "/usr/bin:/bin")
}

fn plain(scratch: &Scratch) -> Run {
    Run::confined(scratch).env("PATH", "/usr/bin:/bin")
}

/// The lines of the list: what was denied, and below it what is said about it.
fn listed(outcome: &Outcome) -> Vec<(String, String)> {
    let mut list: Vec<(String, String)> = Vec::new();
    let from = outcome.err.find("confine: ").unwrap_or_else(|| panic!("{}", outcome.tell()));
    for line in outcome.err[from..].lines().skip(1) {
        match (line.strip_prefix("      "), line.strip_prefix("  ")) {
            (Some(advice), _) => list.last_mut().unwrap().1 = advice.to_owned(),
            (None, Some(denial)) => list.push((denial.to_owned(), String::new())),
            _ => panic!("{}", outcome.tell()),
        }
    }
    list
}

struct Case {
    options: Vec<String>,
    script: String,
    denied: String,
    layer: &'static str,
    advice: String,
    /// With the advice it is allowed.
    twin: bool,
}

/// What is tried is a Python statement: one call, and an exception if it fails.
fn case(options: &str, script: String, denied: String, layer: &'static str, advice: String) -> Case {
    let options = options.split_whitespace().map(str::to_owned).collect();
    let twin = advice.starts_with("--") && !advice.contains("PORT");
    Case { options, script, denied, layer, advice, twin }
}

fn judge(scratch: &Scratch, case: &Case, common: &[&str]) {
    let python = |run: Run, options: &[String]| {
        let prelude = "import os, socket, ctypes\n";
        run.options(common).options(&case.options).options(options).command([
            "python3",
            "-c",
            &format!("{prelude}{}", case.script),
        ])
    };
    let outcome = python(trace(scratch), &[]).run();
    let told = format!("{:?} {}: {}", scratch.who, case.script, outcome.tell());
    assert_eq!(outcome.code(), Some(1), "{told}");
    let list = listed(&outcome);
    let entry = list.iter().find(|(denial, _)| denial.starts_with(&case.denied));
    let (denial, advice) = entry.unwrap_or_else(|| panic!("{} is not in {list:?}: {told}", case.denied));
    assert!(denial.ends_with(&format!("({})", case.layer)), "{denial}: {told}");
    assert!(advice.starts_with(&case.advice), "{advice}: {told}");
    assert_eq!(list.iter().filter(|(denial, _)| denial.starts_with(&case.denied)).count(), 1, "{told}");
    // Untraced it is denied as well, and with the advice it is not.
    assert_eq!(python(plain(scratch), &[]).run().code(), Some(1), "{told}");
    if case.twin {
        let words: Vec<String> = case.advice.split_whitespace().map(str::to_owned).collect();
        let twin = python(plain(scratch), &words).run();
        assert!(twin.ok(), "{words:?} does not help: {} after {told}", twin.tell());
        let twin = python(trace(scratch), &words).run();
        let still = listed(&twin).iter().any(|(denial, _)| denial.starts_with(&case.denied));
        assert!(!still, "{}", twin.tell());
    }
}

fn fill(scratch: &Scratch) {
    for name in ["f", "g", "h", "i", "j"] {
        scratch.file(&format!("outside/{name}"), "text\n");
    }
    scratch.script("outside/tool", "#!/bin/sh\n");
    scratch.dir("outside/sub");
}
