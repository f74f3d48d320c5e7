//! `confine check --prove`: what it says is what became of victims, and with no boundary every attempt has its effect.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::ffi::CString;
use std::fs;

use common::{EVERYONE, Findings, Outcome, Run, Scratch};
use confine::commands::prove;
use confine::policy::Policy;
use serde_json::Value;

/// Refused by this kernel or to this user whatever confine does, so that nothing is learnt from them here.
const REFUSED_ANYWAY: &[(&str, &str)] = &[
    ("set an inode flag", "ENOTTY"),
    ("set an inode flag", "EOPNOTSUPP"),
    ("type into the terminal", "EIO"),
];

/// As root, whom no rule of the kernel stops: what is denied elsewhere is denied by confine.
#[test]
fn without_a_boundary_every_attempt_has_its_effect_and_is_seen() {
    let program = CString::new(env!("CARGO_BIN_EXE_confine")).unwrap();
    // One of them mounts.
    nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS).unwrap();
    let private = nix::mount::MsFlags::MS_REC | nix::mount::MsFlags::MS_PRIVATE;
    nix::mount::mount(None::<&str>, "/", None::<&str>, private, None::<&str>).unwrap();
    let mut arena = std::path::PathBuf::new();
    let report = prove::trial(&Policy::default(), &program, |ground| {
        arena = ground.arena.to_owned();
        Ok(Vec::new())
    })
    .unwrap();
    let mut findings = Findings::default();
    assert!(report.attempts.len() > 60);
    assert!(arena.starts_with(std::env::temp_dir()) && !arena.exists(), "{} is left behind", arena.display());
    for found in &report.attempts {
        let errno = found.errno.as_deref().unwrap_or_default();
        let anyway =
            REFUSED_ANYWAY.iter().any(|(name, with)| found.attempt.starts_with(name) && errno == *with);
        let open = matches!(found.outcome, prove::Outcome::Open | prove::Outcome::Works);
        findings.claim(open || anyway, || format!("{found:?}"));
    }
    findings.settle();
}

fn proved(scratch: &Scratch, options: &[&str]) -> (Outcome, Value) {
    let confine = scratch.confine();
    let command = [confine.to_str().unwrap(), "check", "--prove", "--json"];
    let outcome = Run::plain(scratch).command(command.iter().chain(options)).run();
    let object = serde_json::from_str(&outcome.out).unwrap_or_default();
    (outcome, object)
}

/// The outcomes that are among the attempts, by name of the attempt.
fn with<'a>(object: &'a Value, outcome: &str) -> Vec<&'a str> {
    let attempts = object["attempts"].as_array().map(Vec::as_slice).unwrap_or_default();
    attempts
        .iter()
        .filter(|row| row["outcome"] == outcome)
        .map(|row| row["attempt"].as_str().unwrap())
        .collect()
}

const NOT_PROMISED: [&str; 3] = ["probe a name", "see a process", "change its scheduling"];

#[test]
fn the_boundary_holds_as_root_and_as_a_user_by_every_tier() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        for options in [
            &[][..],
            &["--namespaces", "off"],
            &["--strict"],
            &["--timeout", "1m"],
            &["--connect", "443"],
            &["--read-only"],
            &["--loopback", "off"],
            &["--no-workspace"],
            &["--profile", "mcp"],
        ] {
            let scratch = Scratch::new(who);
            let (outcome, object) = proved(&scratch, options);
            let tell = |what: &str| format!("{who:?} {options:?}: {what}: {}", outcome.tell());
            let holds =
                outcome.ok() && outcome.err.is_empty() && object["holds"] == true && object["version"] == 1;
            findings.claim(holds, || tell("does not hold"));
            let denied = with(&object, "denied").len();
            findings.claim(denied >= 65, || tell(&format!("only {denied} are denied")));
            findings.claim(with(&object, "works").len() >= 5, || tell("twins are missing"));
            findings.claim(with(&object, "granted").is_empty(), || tell("something is granted"));
            let open = with(&object, "open");
            findings.claim(open.iter().all(|name| NOT_PROMISED.contains(name)), || tell("too much is open"));
            findings.claim(!options.contains(&"--strict") || open.is_empty(), || {
                tell("--strict leaves something open")
            });
            let left: Vec<_> = fs::read_dir(scratch.path("tmp")).unwrap().collect();
            findings.claim(left.is_empty(), || tell(&format!("{left:?} is left behind")));
        }
    }
    findings.settle();
}

#[test]
fn what_the_options_grant_is_granted_and_no_failure() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let (outcome, object) = proved(&scratch, &["--net", "host"]);
        assert_eq!(with(&object, "granted"), ["TCP", "UDP"], "{}", outcome.tell());
        assert!(outcome.ok(), "{}", outcome.tell());
        for tier in ["auto", "off"] {
            let (outcome, object) = proved(&scratch, &["--loopback", "host", "--namespaces", tier]);
            assert_eq!(with(&object, "granted"), ["TCP"], "{}", outcome.tell());
            assert!(outcome.ok() && with(&object, "works").contains(&"own loopback"), "{}", outcome.tell());
        }
        let (outcome, object) = proved(&scratch, &["--allow", "userns"]);
        let namespaces = [
            "unshare a user namespace",
            "clone a user namespace",
            "clone a sibling",
            "clone3 a user namespace",
        ];
        assert_eq!(with(&object, "granted"), namespaces, "{}", outcome.tell());
        assert!(outcome.ok(), "{}", outcome.tell());
    }
}

/// The verdict is the victim's: what is written there is seen, without a word from inside.
#[test]
fn a_writable_place_of_the_victims_is_seen_to_change() {
    for who in EVERYONE {
        for tier in ["auto", "off"] {
            let scratch = Scratch::new(who);
            let tmp = scratch.path("tmp");
            let (outcome, object) = proved(&scratch, &["--namespaces", tier, "--rw", tmp.to_str().unwrap()]);
            let granted = with(&object, "granted");
            for name in ["write a file", "truncate a file", "remove a file", "change the mode", "read a file"]
            {
                assert!(granted.contains(&name), "{who:?} {tier} {name}: {}", outcome.tell());
            }
            let attempts = object["attempts"].as_array().unwrap();
            let write = attempts.iter().find(|row| row["attempt"] == "write a file").unwrap();
            assert_eq!(write["changed"], serde_json::json!(["shown/file"]), "{}", outcome.tell());
            assert!(outcome.ok() && !granted.contains(&"an abstract socket"), "{}", outcome.tell());
        }
    }
}

#[test]
fn a_workspace_is_left_as_it_was() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let before = common::Snapshot::of(&scratch.workspace());
        let (outcome, object) = proved(&scratch, &["-w", "."]);
        assert!(outcome.ok() && object["holds"] == true, "{}", outcome.tell());
        assert!(with(&object, "works").contains(&"write in the workspace"), "{}", outcome.tell());
        let after = common::Snapshot::of(&scratch.workspace());
        // The directory itself has another time.
        let difference = before.difference(&after).unwrap_or_default();
        assert!(!difference.contains("own") && !difference.contains("confine-prove"), "{difference}");
    }
}

#[test]
fn a_run_that_is_refused_proves_nothing() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let (outcome, object) = proved(&scratch, &["--namespaces", "off", "--require", "process-hiding"]);
        assert_eq!(outcome.code(), Some(1), "{}", outcome.tell());
        assert!(
            object["refused"]["message"].as_str().unwrap().contains("process-hiding"),
            "{}",
            outcome.tell()
        );
        assert_eq!(object["holds"], false);
        let (outcome, _) = proved(&scratch, &["--status-fd", "9"]);
        assert_eq!(outcome.code(), Some(125), "{}", outcome.tell());
        let confine = scratch.confine();
        let without =
            Run::plain(&scratch).command([confine.to_str().unwrap(), "check", "--net", "host"]).run();
        assert_eq!(without.code(), Some(125));
        assert!(without.err.contains("confine check --prove --net host"), "{}", without.tell());
        assert_eq!(fs::read_dir(scratch.path("tmp")).unwrap().count(), 0);
    }
}

#[test]
fn the_table_says_the_same_in_words() {
    let scratch = Scratch::new(common::Who::User);
    let confine = scratch.confine();
    let start = std::time::Instant::now();
    let outcome = Run::plain(&scratch).command([confine.to_str().unwrap(), "check", "--prove"]).run();
    assert!(outcome.ok(), "{}", outcome.tell());
    assert!(outcome.out.contains("write-scope     write a file  ") && outcome.out.contains(" EROFS\n"));
    assert!(outcome.out.contains("The boundary held"), "{}", outcome.out);
    // A second on an idle machine; here others work too.
    assert!(start.elapsed() < std::time::Duration::from_secs(10), "{:?}", start.elapsed());
}

/// Whom the command is to be has other processes, which the proof is not about.
#[test]
fn the_victims_of_another_user_are_out_of_reach_of_that_users_processes() {
    let scratch = Scratch::new(common::Who::Root);
    fs::set_permissions(scratch.path("tmp"), std::os::unix::fs::PermissionsExt::from_mode(0o1777)).unwrap();
    let user = "54321:54321";
    // Who looks for a place to interfere in, for as long as the proof goes on.
    let script = "while [ ! -e end ]; do for d in confine-prove-*; do [ ! -d $d ] || echo seen; \
         { echo other > $d/hidden/file; mv $d/shown/file $d/shown/other; ls $d; } 2>&- && echo reached; done; sleep 0.02; done";
    let mut other = std::process::Command::new("setpriv")
        .args(["--reuid", "54321", "--regid", "54321", "--clear-groups", "sh", "-c", script])
        .current_dir(scratch.path("tmp"))
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let (outcome, object) = proved(&scratch, &["--user", user]);
    fs::write(scratch.path("tmp/end"), "").unwrap();
    let mut said = String::new();
    std::io::Read::read_to_string(&mut other.stdout.take().unwrap(), &mut said).unwrap();
    other.wait().unwrap();
    assert!(said.contains("seen"), "{said}");
    assert!(outcome.ok() && object["holds"] == true, "{}", outcome.tell());
    assert!(with(&object, "denied").len() >= 65 && with(&object, "works").len() >= 5, "{}", outcome.tell());
    assert!(!said.contains("reached"), "{said}");
}
