//! The pages of docs/reference are what the program's tables say, and what is written as JSON fits its schema.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../examples/reference/generate/mod.rs"]
mod generate;
#[path = "schema/mod.rs"]
mod schema;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs")
}

#[test]
fn the_pages_are_what_the_generator_writes() {
    for (name, text) in generate::files(&docs()).unwrap() {
        assert!(
            fs::read_to_string(docs().join(name)).unwrap() == text,
            "{name} is old: cargo run --locked --example reference -- docs"
        );
    }
}

#[test]
fn every_layer_in_the_tables_of_promises_is_explained() {
    let page = fs::read_to_string(docs().join("reference/promises.md")).unwrap();
    let (tables, layers) = page.split_once("## The layers").unwrap();
    let explained: BTreeSet<&str> =
        layers.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let used: BTreeSet<&str> = tables
        .split("## With namespaces")
        .nth(1)
        .unwrap()
        .lines()
        .filter(|line| line.starts_with("| `"))
        .flat_map(|line| line.split(" | ").skip(1))
        .flat_map(|cell| cell.trim_end_matches(" |").split(", "))
        .filter(|layer| *layer != "—")
        .collect();
    assert!(used.len() > 10, "{used:?}");
    assert_eq!(used, explained);
}

fn schema_of(name: &str) -> Value {
    serde_json::from_slice(&fs::read(docs().join(format!("{name}.schema.json"))).unwrap()).unwrap()
}

fn fits(name: &str, text: &str) {
    let schema = schema_of(name);
    let value: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}: {text}"));
    if let Err(why) = schema::fits(&schema, &schema, &value) {
        panic!("{name}: {why}: {value}");
    }
    // Whatever is taken away is missed, and a stranger is noticed.
    let mut without = value.clone();
    without.as_object_mut().unwrap().remove("version").unwrap();
    assert!(schema::fits(&schema, &schema, &without).is_err(), "{name} does not ask for a version");
    let mut more = value;
    more["stranger"] = 1.into();
    assert!(schema::fits(&schema, &schema, &more).is_err(), "{name} takes a stranger");
}

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let directory = fs::canonicalize(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let directory = directory.join(format!("reference-{}-{name}", std::process::id()));
        fs::create_dir_all(directory.join("w")).unwrap();
        Scratch(directory)
    }

    /// What a line of the shell writes; `confine` is the built program.
    fn says(&self, line: &str, status: i32) -> String {
        let mut bash = Command::new("bash");
        bash.args(["-c", &line.replace("confine ", concat!(env!("CARGO_BIN_EXE_confine"), " "))]);
        let output = bash.current_dir(&self.0).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{line}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn check_fits_its_schema() {
    let scratch = Scratch::new("check");
    fits("check", &scratch.says("confine check --json", 0));
}

#[test]
fn proofs_fit_their_schema() {
    let scratch = Scratch::new("prove");
    fits("prove", &scratch.says("confine check --prove --json", 0));
    fits("prove", &scratch.says("confine check --prove --json --net host -w w", 0));
    fits("prove", &scratch.says("confine check --prove --json -w /", 1));
}

#[test]
fn scan_fits_its_schema() {
    let scratch = Scratch::new("scan");
    scratch.says("touch w/clean w/.envrc outside && ln outside w/alias", 0);
    let report = scratch.says("confine scan --json w", 1);
    fits("scan", &report);
    assert!(report.contains("\"inside\":1"), "{report}");
    fits("scan", &scratch.says("confine scan --json --separate w", 0));
}

#[test]
fn explain_fits_its_schema() {
    let scratch = Scratch::new("explain");
    for options in [
        "",
        "--max-memory 1G --timeout 1h",
        "--connect 443 --listen 80",
        "--loopback host",
        "--namespaces off",
        "--strict",
    ] {
        fits("explain", &scratch.says(&format!("confine explain --json -w w -C w {options} -- true"), 0));
    }
    fits("explain", &scratch.says("confine explain --json --profile mcp", 0));
    fits("explain", &scratch.says("confine explain --json --profile mcp -- true", 0));
    fits("explain", &scratch.says("confine explain --json -w / -- true 2>/dev/null", 125));
}

#[test]
fn why_and_posture_fit_their_schemas() {
    let scratch = Scratch::new("why");
    scratch.says("touch w/.envrc w/file outside && ln -s nowhere w/link", 0);
    let subjects = "file link .envrc new /usr/bin/env /etc/shadow /dev/null x:443 @x PATH= TOKEN=";
    for options in ["", "--connect 443", "--namespaces off"] {
        let line = format!("cd w && confine why --json -w . {options} {subjects}");
        fits("why", &scratch.says(&line, 0));
    }
    fits("posture", &scratch.says("HOME=$PWD XDG_CONFIG_HOME= confine check --posture --json -w w", 0));
}

#[test]
fn status_lines_fit_their_schema() {
    let scratch = Scratch::new("status");
    for (options, command, status, lines) in [
        ("", "true", 0, 1),
        ("--timeout 1h", "exit 3", 3, 2),
        ("--timeout 1h", "kill -9 $$", 137, 2),
        ("--timeout 2s --grace 0s", "sleep 100", 124, 2),
        ("--max-output 10 --on-output-limit kill", "yes 1>&2", 137, 2),
        ("--namespaces off --waive socket-scope", "true", 0, 2),
        ("--net nowhere", "true", 125, 1),
        ("-w /", "true", 125, 1),
    ] {
        let line = format!(
            "confine -w w -C w {options} --status-fd 3 -- bash -c '{command}' 3>&1 >/dev/null 2>/dev/null"
        );
        let said = scratch.says(&line, status);
        assert_eq!(said.lines().count(), lines, "{line}: {said}");
        for one in said.lines() {
            fits("status", one);
        }
    }
}
