//! Random bytes against whatever reads what a stranger wrote, each beside a second, naive answer.
//!
//!     CONFINE_FUZZ_SECONDS=600 cargo test --locked --test fuzz -- --nocapture [NAME]
//!
//! A few seconds each unless told. The seed is fixed and printed; CONFINE_FUZZ_SEED=$RANDOM tries others. What
//! failed is printed as bytes, to become a test of its own beside the code. The functions take bytes and panic, which
//! is what libFuzzer and its like want too.
//!
//! | target | reads | second answer |
//! |---|---|---|
//! | `quantity` | sizes, durations, counts | 128-bit arithmetic, digit by digit |
//! | `policy` | policy files | a document written from chance, whose meaning is known |
//! | `env_file` | `--env-file` | what was read, written anew, reads the same; messages do not depend on letters |
//! | `links` | trees of hard links | a count of all names by a plain walk |
//! | `filter` | tables of system call rules | the rules taken one by one, for calls at their edges |
//! | `broker` | arguments of the calls that a parent answers | nothing outside changes, and it still answers |
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "fuzz/mod.rs"]
mod targets;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Instant;

use common::scratch::copy;
use common::{EVERYONE, Findings, Run, Scratch, Snapshot};
use targets::drive::{drive, seconds, seed};
use targets::{env_file, filter, links, policy, quantity};

#[test]
fn sizes_and_durations_are_exact_or_refused() {
    drive("quantity", quantity::CORPUS, quantity::check);
}

#[test]
fn a_policy_file_means_what_it_says_or_is_refused_with_its_line() {
    drive("policy", policy::CORPUS, policy::check);
}

#[test]
fn an_environment_file_is_read_as_it_is_written_or_refused_without_a_word_of_it() {
    drive("env_file", env_file::CORPUS, env_file::check);
}

#[test]
fn links_that_lead_outside_are_found_in_every_tree() {
    drive("links", links::CORPUS, links::check);
}

#[test]
fn a_filter_decides_as_its_rules_do() {
    drive("filter", filter::CORPUS, filter::check);
}

/// The broker reads memory and numbers of a hostile process: a C program makes the calls, whose arguments are
/// taken from a list of edges and from chance.
#[test]
fn random_calls_change_nothing_outside_and_leave_the_broker_answering() {
    let (first, end) = (seed(), Instant::now() + seconds());
    let mut findings = Findings::default();
    let mut round = 0;
    while round == 0 || Instant::now() < end {
        for who in EVERYONE {
            let seed = first.wrapping_add(round);
            let scratch = Scratch::new(who);
            let program = scratch.path("w/calls");
            copy(calls(), &program);
            scratch.give(&program);
            scratch.dir("w/play");
            scratch.file("outside/f", "outside\n");
            scratch.dir("outside/d");
            scratch.link("../../outside/f", "w/play/way");
            let before = Snapshot::of(&scratch.outside());
            let words = [
                program.as_os_str().to_owned(),
                seed.to_string().into(),
                "1000".into(),
                scratch.path("w/play").into(),
                scratch.outside().into(),
            ];
            let outcome = Run::confined(&scratch).options(["--namespaces", "off"]).command(words).run();
            findings.claim(outcome.ok() && outcome.verdict() == "ok", || {
                format!("CONFINE_FUZZ_SEED={seed} as {who:?}: {}", outcome.tell())
            });
            findings.claim(Snapshot::of(&scratch.outside()) == before, || {
                format!("CONFINE_FUZZ_SEED={seed} as {who:?}: something outside has changed")
            });
            round += 1;
        }
    }
    println!("broker: {round} rounds from seed {first}");
    findings.settle();
}

fn calls() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("calls-{}", std::process::id()));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/calls.c");
        let status = Command::new("gcc")
            .args(["-O1", "-static", "-Wall", "-Wextra", "-o"])
            .args([&built, &source])
            .status()
            .expect("gcc is needed: apt-get install gcc libc6-dev");
        assert!(status.success(), "{} does not compile", source.display());
        built
    })
}
