//! `--audit`: a line for every decision, in a chain that shows what was changed; and nothing starts without its line.
//! Judged by what is in the file and by whether the command left a mark.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod chain;
#[path = "../common/mod.rs"]
mod common;
mod place;
#[path = "../schema/mod.rs"]
mod schema;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{EVERYONE, Findings, Outcome, Run, Scratch, USER, Who};
use serde_json::{Value, json};

fn record(scratch: &Scratch) -> PathBuf {
    scratch.dir("log").join("audit")
}

fn run(scratch: &Scratch) -> Run {
    Run::confined(scratch).option("--audit").option(record(scratch))
}

/// The lines, each of which is as the schema says, in a chain that holds.
#[track_caller]
fn lines(scratch: &Scratch) -> Vec<Value> {
    let verified = verify(scratch, &[]);
    assert!(verified.ok(), "{}", verified.tell());
    let text = fs::read_to_string(record(scratch)).unwrap();
    text.lines()
        .map(|line| {
            let line = serde_json::from_str(line).unwrap();
            schema::check(schema::AUDIT, &line);
            line
        })
        .collect()
}

fn verify(scratch: &Scratch, options: &[&str]) -> Outcome {
    Run::plain(scratch)
        .command(
            [scratch.confine().as_os_str(), OsStr::new("verify")]
                .into_iter()
                .chain(options.iter().map(OsStr::new))
                .chain([record(scratch).as_os_str()]),
        )
        .run()
}

fn events(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["event"].as_str().unwrap()).collect()
}

/// The run is refused, for this reason, and left no mark.
#[track_caller]
fn assert_refused(scratch: &Scratch, run: Run, reason: &str) {
    let outcome = run.command(["touch", "started"]).run();
    assert_eq!(outcome.code(), Some(125), "{reason}: {}", outcome.tell());
    assert!(outcome.err.contains(reason), "{reason}: {}", outcome.tell());
    assert!(!scratch.path("w/started").exists(), "{reason}");
}

fn to(scratch: &Scratch, file: &Path) -> Run {
    Run::confined(scratch).option("--audit").option(file)
}

/// The rest of a script that has prepared something as root.
fn as_who(who: Who) -> String {
    match who {
        Who::Root => "exec \"$@\"".into(),
        Who::User => format!("exec setpriv --reuid {USER} --regid {USER} --clear-groups \"$@\""),
    }
}

fn in_mounts(scratch: &Scratch, script: &str, file: &Path, command: &str) -> Outcome {
    Run::confined(scratch)
        .by(Who::Root)
        .under(["unshare", "-m", "--propagation", "private", "bash", "-c", script, "bash"])
        .option("--audit")
        .option(file)
        .shell(command)
}

#[test]
fn every_decision_has_its_line() {
    for who in EVERYONE {
        for namespaces in ["--namespaces=auto", "--namespaces=off"] {
            let scratch = Scratch::new(who);
            let run = || {
                run(&scratch).env("PATH", "/usr/bin:/bin").option(namespaces).option("--waive=path-hiding")
            };
            let supervised = namespaces == "--namespaces=off";
            let mut expected = Vec::new();
            let mut judge = |outcome: Outcome, status: i32, events_of_it: &[&str]| {
                assert_eq!(outcome.code(), Some(status), "{who:?} {namespaces}: {}", outcome.tell());
                expected.extend(events_of_it.iter().map(|&event| (event.to_owned(), status)));
            };
            let plain: &[&str] = if supervised { &["started", "ended"] } else { &["started"] };
            judge(run().command(["true"]).run(), 0, plain);
            judge(run().option("--timeout=1m").shell("exit 3"), 3, &["started", "ended"]);
            judge(
                run().options(["--timeout=2s", "--grace=0s"]).shell("sleep 60"),
                124,
                &["started", "ended"],
            );
            judge(run().command(["nonesuch"]).run(), 127, &["started", "refused"]);
            judge(run().command(["/etc/passwd"]).run(), 126, &["started", "refused"]);
            judge(run().option("--timeout=1m").command(["nonesuch"]).run(), 127, &["started", "refused"]);
            judge(run().option("--workspace=nonesuch").command(["true"]).run(), 125, &["refused"]);
            judge(run().option("--fd=77").command(["true"]).run(), 125, &["refused"]);
            judge(run().option("--user=1:2:3").command(["true"]).run(), 125, &["refused"]);
            judge(run().option("--no-such-option").command(["true"]).run(), 125, &["refused"]);
            judge(run().option("--timeout=soon").command(["true"]).run(), 125, &["refused"]);
            let lines = lines(&scratch);
            let names: Vec<&str> = expected.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(events(&lines), names, "{who:?} {namespaces}");
            for (line, (name, status)) in lines.iter().zip(&expected) {
                assert!(name == "started" || line["status"] == json!(status), "{line}: not {status}");
            }
            assert_eq!(lines[0]["supervised"], json!(supervised));
            assert_eq!(lines[0]["uid"], json!(who.id()));
            // The lines of a run have its name, and no other's.
            let run_of = |at: usize| lines[at]["run"].as_str().unwrap();
            assert_eq!(supervised, run_of(0) == run_of(1));
            assert_eq!(fs::metadata(record(&scratch)).unwrap().permissions().mode() & 0o7777, 0o600);
        }
    }
}

#[test]
fn a_line_says_what_was_decided() {
    use std::os::unix::fs::MetadataExt as _;
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        scratch.script("w/tool", "#!/bin/sh\necho $CONFINE_POLICY\n");
        let shown = scratch.dir("shown");
        let outcome =
            run(&scratch).options(["--max-cpu=1m", "--ro"]).option(&shown).command(["./tool", "a b"]).run();
        let lines = lines(&scratch);
        assert_eq!(events(&lines), ["started", "ended"], "{}", outcome.tell());
        let (started, ended) = (&lines[0], &lines[1]);
        assert_eq!(started["policy"], json!(outcome.out.trim()));
        assert_eq!(ended["policy"], started["policy"]);
        assert_eq!(started["argv"], json!(["./tool", "a b"]));
        assert_eq!(started["executable"], json!(scratch.path("w/tool").to_str().unwrap()));
        for (root, path, access, workspace) in [
            (&started["roots"][0], scratch.workspace(), "write", true),
            (&started["roots"][1], shown, "read", false),
        ] {
            let found = fs::metadata(&path).unwrap();
            let expected = json!({
                "path": path.to_str().unwrap(), "access": access, "workspace": workspace,
                "device": found.dev(), "inode": found.ino(),
            });
            assert_eq!(root, &expected);
        }
        assert_eq!(started["promises"]["write-scope"], json!(["view", "landlock"]));
        assert_eq!((&ended["outcome"], &ended["status"]), (&json!("exited"), &json!(0)));
        let times: Vec<&str> = lines.iter().map(|line| line["time"].as_str().unwrap()).collect();
        let now = Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%S.999Z"]).output().unwrap().stdout;
        assert!(times[0] <= times[1] && times[1] <= String::from_utf8(now).unwrap().trim(), "{times:?}");
    }
}

#[test]
fn a_waiver_is_told_and_a_limit_that_was_reached() {
    let scratch = Scratch::new(Who::User);
    let outcome = run(&scratch)
        .options(["--namespaces=off", "--waive=path-hiding", "--max-cpu=200ms"])
        .shell("while :; do :; done");
    assert_eq!(outcome.code(), Some(137), "{}", outcome.tell());
    let lines = lines(&scratch);
    assert!(lines[0]["waived"]["path-hiding"].as_str().unwrap().contains("--namespaces off"));
    assert_eq!((&lines[1]["outcome"], &lines[1]["limit"]), (&json!("cpu-limit"), &json!(200)));
}

#[test]
fn the_status_lines_carry_the_same_facts() {
    let scratch = Scratch::new(Who::User);
    let status = scratch.path("tmp/status");
    for (options, command) in
        [("", "true"), ("--timeout=9s", "true"), ("", "nonesuch"), ("--ro=/nonesuch", "true")]
    {
        let outcome = Run::plain(&scratch).shell(format!(
            "{} -w . --audit {} --status-fd 7 {options} -- {command} 7>>{}",
            scratch.confine().display(),
            record(&scratch).display(),
            status.display()
        ));
        assert_eq!(outcome.out, "", "{}", outcome.tell());
    }
    let told = fs::read_to_string(&status).unwrap();
    let told: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let strip = |line: &Value, names: &[&str]| {
        let mut line = line.as_object().unwrap().clone();
        names.iter().for_each(|name| drop(line.remove(*name)));
        Value::Object(line)
    };
    let (kept, told): (Vec<_>, Vec<_>) = lines(&scratch)
        .iter()
        .zip(&told)
        .map(|(kept, told)| {
            schema::check(schema::STATUS, told);
            (strip(kept, &["sequence", "previous", "time"]), strip(told, &["time"]))
        })
        .unzip();
    assert_eq!(kept.len(), 6);
    assert_eq!(kept, told);
}

#[test]
fn what_is_not_text_comes_back_and_what_is_long_is_cut() {
    let scratch = Scratch::new(Who::User);
    let odd = OsString::from_vec(b"\xff\n\x1b".to_vec());
    let status = run(&scratch).command([OsStr::new("true"), &odd]).run();
    assert!(status.ok(), "{}", status.tell());
    let long = "x".repeat(100_000);
    assert!(run(&scratch).command(["true", "y", &long, &long]).run().ok());
    let lines = lines(&scratch);
    assert_eq!(lines[0]["argv"], json!(["true", [255, 10, 27]]));
    assert_eq!(lines[0]["argv_cut"], Value::Null);
    let cut = &lines[1]["argv_cut"];
    assert_eq!((&cut["arguments"], &cut["bytes"]), (&json!(4), &json!(200_000 + 4 + 5)));
    let beginning = lines[1]["argv"][2].as_str().unwrap();
    assert!(!beginning.is_empty() && long.starts_with(beginning) && beginning.len() < 20_000);
}

#[test]
fn no_value_of_a_variable_is_ever_in_it() {
    const SENTINEL: &str = "s3ntinel-of-a-value";
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let file = scratch.file("home/secrets", &format!("FROM_FILE={SENTINEL}\n"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let run = || {
            run(&scratch)
                .env("KEPT", SENTINEL)
                .env("EDITOR", SENTINEL)
                .options([&format!("--env=SET={SENTINEL}"), "--env=KEPT", "--env-file"])
                .option(&file)
        };
        let outcome = run().shell("echo $SET$KEPT$FROM_FILE$EDITOR");
        assert_eq!(outcome.out, format!("{}\n", SENTINEL.repeat(4)));
        run().option("--timeout=1m").command(["true"]).run();
        run().option("--nonesuch").command(["true"]).run();
        run().option("--workspace=nonesuch").command(["true"]).run();
        run().command(["nonesuch"]).run();
        fs::write(&file, format!("{SENTINEL}\n")).unwrap();
        run().command(["true"]).run();
        assert_eq!(
            events(&lines(&scratch)),
            ["started", "started", "ended", "refused", "refused", "started", "refused", "refused"]
        );
        assert!(!fs::read_to_string(record(&scratch)).unwrap().contains(SENTINEL));
    }
}
