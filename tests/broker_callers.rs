//! The broker and hostile or unlucky callers: many at once, interrupted, killed, racing with themselves.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "broker/mod.rs"]
mod broker;
mod common;

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::time::Duration;

use broker::{confined, operation, scratch, without_namespaces};
use common::{EVERYONE, Run, Scratch, Snapshot, wait_for};

const OWN: &str = "own/own";

#[track_caller]
fn does(words: &[&str], wanted: &str) {
    for who in EVERYONE {
        let scratch = scratch(who);
        let outcome = operation(&scratch, confined(&scratch), words);
        assert!(outcome.ok() && outcome.out == wanted, "{who:?}: {}", outcome.tell());
    }
}

fn done_and_failed(scratch: &Scratch, words: &[&str]) -> (u64, u64) {
    let outcome = operation(scratch, confined(scratch), words);
    let numbers: Vec<u64> = outcome.out.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert!(outcome.ok() && numbers.len() == 2, "{}", outcome.tell());
    (numbers[0], numbers[1])
}

#[test]
fn thousands_of_calls_at_once_are_all_answered() {
    does(&["threads", OWN, "200", "10", "20"], "done 10 failed 0\n");
}

#[test]
fn a_storm_of_signals_changes_no_answer() {
    for who in EVERYONE {
        let scratch = scratch(who);
        for words in [["storm", OWN, "1"], ["alarms", OWN, "1"]] {
            let (done, failed) = done_and_failed(&scratch, &words);
            assert!(done > 100 && failed == 0, "{who:?} {words:?}: {done} {failed}");
        }
    }
}

#[test]
fn a_killed_caller_leaves_the_broker_at_work() {
    does(&["killed", OWN, "300"], "done 300 failed 0\n");
}

#[test]
fn a_child_of_vfork_is_answered() {
    does(&["vforked", OWN], "done 200 failed 0\n");
}

/// Its memory cannot be read, so its calls are refused: nothing is guessed.
#[test]
fn a_caller_that_hides_its_memory_is_refused() {
    does(&["undumpable", OWN], "undumpable: chmod EPERM\nundumpable: fchmod EPERM\ndumpable: chmod ok\n");
    for who in EVERYONE {
        let scratch = scratch(who);
        fs::set_permissions(scratch.path("w/broker"), fs::Permissions::from_mode(0o111)).unwrap();
        let outcome = operation(&scratch, confined(&scratch), &["killed", OWN, "1"]);
        // Root owns the file, and still has no capability to read it.
        assert_eq!(outcome.out, "done 0 failed 1\n", "{who:?}: {}", outcome.tell());
    }
}

#[test]
fn threads_without_a_common_table_or_directory_change_what_they_mean() {
    for who in EVERYONE {
        let scratch = scratch(who);
        for name in ["w/leaders", "w/mine", "w/own/inner", "w/inner"] {
            scratch.file(name, "");
        }
        let outcome = operation(&scratch, confined(&scratch), &["tables", "leaders", "mine", "own"]);
        assert!(outcome.ok() && outcome.out == "0 0\n", "{}", outcome.tell());
        let mode = |name: &str| fs::metadata(scratch.path(name)).unwrap().mode() & 0o777;
        assert_eq!((mode("w/leaders"), mode("w/mine")), (0o644, 0o600));
        assert_eq!((mode("w/inner"), mode("w/own/inner")), (0o644, 0o600));
    }
}

#[test]
fn an_execve_under_calls_of_other_threads_leaves_the_broker_at_work() {
    does(&["executes", OWN, "100"], "");
}

/// Names, memory, links, descriptors and directories are swapped while the broker looks; both sides are struck often.
#[test]
fn whatever_is_swapped_the_victim_stays_as_it_was() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let dir = scratch.fixture("outside/f");
        let own = scratch.file("w/own/file", "");
        let victim = dir.join("file");
        let before = Snapshot::of(&dir);
        let words = ["race", victim.to_str().unwrap(), own.to_str().unwrap(), "1.5"];
        let run = confined(&scratch).option("--ro").option(&dir).cwd(scratch.path("w/own"));
        let outcome = operation(&scratch, run, &words);
        assert!(outcome.ok(), "{who:?}: {}", outcome.tell());
        assert_eq!(before.difference(&Snapshot::of(&dir)), None, "{}", outcome.tell());
    }
}

/// The broker's process, by its parent's number: its descriptors and its resident memory in kilobytes.
fn weight(pid: u32) -> (usize, u64) {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    (descriptors, line.trim().trim_end_matches(" kB").parse().unwrap())
}

/// The whole million is `benches/broker.rs`.
#[test]
fn neither_descriptors_nor_memory_grow() {
    for who in EVERYONE {
        let scratch = scratch(who);
        for socket in ["-", "own/s"] {
            let program = scratch.path("w/broker");
            let script = format!(
                "{0} repeat {OWN} {socket} 500 && touch warm && {0} repeat {OWN} {socket} 20000 && touch done && sleep 60",
                program.display()
            );
            let mut child = confined(&scratch).command(["bash", "-c", &script]).spawn();
            let wait = |name: &str| {
                let path = scratch.path("w").join(name);
                for _ in 0..6000 {
                    if path.exists() {
                        return fs::remove_file(path).unwrap();
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
                panic!("no {name}");
            };
            wait("warm");
            let before = weight(child.id());
            wait("done");
            // The last connections are given back by threads of their own.
            let mut after = weight(child.id());
            for _ in 0..200 {
                if after.0 <= before.0 + 1 {
                    break;
                }
                std::thread::sleep(Duration::from_millis(20));
                after = weight(child.id());
            }
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(
                after.0 <= before.0 + 1 && after.1 < before.1 + 1024,
                "{who:?} {socket}: {before:?} {after:?}"
            );
        }
    }
}

/// Nothing is answered by nobody: the tree ends with its broker.
#[test]
fn a_killed_broker_ends_the_tree() {
    for who in EVERYONE {
        for forced in [false, true] {
            let scratch = scratch(who);
            let script =
                "touch started; while chmod 600 own/own; do date +%N >own/beat; done; touch lost; sleep 60";
            let run = without_namespaces(&scratch, Run::confined(&scratch), forced);
            let mut child = run.command(["bash", "-c", script]).spawn();
            wait_for(&scratch.path("w/own/beat"));
            child.kill().unwrap();
            child.wait().unwrap();
            // Ended soon, not at once: on a busy machine nothing is. Two looks half a second apart see the same beat.
            let beat = || fs::read_to_string(scratch.path("w/own/beat")).unwrap();
            let still = |_| {
                let before = beat();
                std::thread::sleep(Duration::from_millis(500));
                before == beat()
            };
            assert!((0..40).any(still), "{who:?} {forced}: still at work");
        }
    }
}
