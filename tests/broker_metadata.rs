//! metadata-scope without namespaces: what a broker answers is what the kernel would, and nothing outside changes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "broker/mod.rs"]
mod broker;
mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use broker::{confined, operation, scratch, without_namespaces};
use common::table::{METADATA, Place, denied, works};
use common::{EVERYONE, Findings, Run, Snapshot};

/// The whole table without namespaces.
const OFF: [&str; 2] = ["--namespaces", "off"];

#[test]
fn changes_outside_are_denied_by_every_entry_point() {
    denied(
        METADATA,
        &[
            Place { label: "outside", dir: "outside/f", options: &OFF },
            Place {
                label: "in a readable root",
                dir: "outside/f",
                options: &[OFF[0], OFF[1], "--ro", "@outside"],
            },
        ],
    );
}

#[test]
fn changes_in_the_workspace_work_by_every_entry_point() {
    works(
        METADATA,
        &[
            Place { label: "in the workspace", dir: "w/f", options: &OFF },
            Place {
                label: "in a further root",
                dir: "outside/f",
                options: &[OFF[0], OFF[1], "--rw", "@outside/f"],
            },
        ],
    );
}

/// Errno by errno: names, links, descriptors of all kinds, bad pointers, sizes.
#[test]
fn every_answer_is_the_one_that_the_kernel_gives_without_a_boundary() {
    for who in EVERYONE {
        for forced in [false, true] {
            let scratch = scratch(who);
            let run = |confined: bool| {
                let dir = scratch.dir("w/same");
                let run = match confined {
                    true => without_namespaces(&scratch, Run::confined(&scratch), forced),
                    // Without capabilities, which root has not inside either.
                    false => without_namespaces(&scratch, Run::plain(&scratch), true),
                };
                let outcome = operation(&scratch, run, &["same", dir.to_str().unwrap()]);
                fs::set_permissions(dir.join("shut"), fs::Permissions::from_mode(0o755)).unwrap();
                fs::remove_dir_all(dir).unwrap();
                assert!(outcome.ok(), "{who:?}: {}", outcome.tell());
                outcome.out
            };
            let (bare, brokered) = (run(false), run(true));
            assert!(bare.lines().count() > 1000, "{bare}");
            let mut findings = Findings::default();
            for (number, (bare, brokered)) in bare.lines().zip(brokered.lines()).enumerate() {
                findings.claim(bare == brokered, || {
                    format!(
                        "{who:?} forced {forced} line {number}: {bare:?}, but through the broker {brokered:?}"
                    )
                });
            }
            findings.settle();
            assert_eq!(bare.lines().count(), brokered.lines().count());
        }
    }
}

#[test]
fn no_way_of_naming_leads_outside() {
    for who in EVERYONE {
        for forced in [false, true] {
            let scratch = scratch(who);
            let dir = scratch.fixture("outside/f");
            let (victim, own) = (dir.join("file"), scratch.path("w/own"));
            for readable in [false, true] {
                let before = Snapshot::of(&dir);
                let mut run = without_namespaces(&scratch, Run::confined(&scratch), forced);
                if readable {
                    run = run.option("--ro").option(scratch.outside());
                }
                let words = ["outside", victim.to_str().unwrap(), own.to_str().unwrap()];
                let outcome = operation(&scratch, run, &words);
                assert!(outcome.ok() && outcome.out.lines().count() > 100, "{}", outcome.tell());
                let mut findings = Findings::default();
                for line in outcome.out.lines() {
                    let harmless = line.contains("getflags")
                        || line.contains("fsgetxattr")
                        // The link itself is one's own.
                        || line.starts_with("link ") && line.contains(" link ");
                    let refused = [" EPERM", " EBADF", " ENOENT", " EACCES", " errno 95"]
                        .iter()
                        .any(|errno| line.ends_with(errno));
                    findings.claim(harmless || refused, || format!("{who:?} {forced}: {line}"));
                }
                findings.settle();
                assert_eq!(before.difference(&Snapshot::of(&dir)), None);
            }
            // The twin: the same words change a file of one's own.
            let own_dir = scratch.fixture("w/f");
            let before = Snapshot::of(&own_dir);
            let words =
                ["outside", own_dir.join("file").to_str().unwrap().to_owned().leak(), own.to_str().unwrap()];
            let outcome = operation(&scratch, confined(&scratch), &words);
            assert!(outcome.ok() && outcome.out.contains(" ok\n"), "{}", outcome.tell());
            assert!(before.difference(&Snapshot::of(&own_dir)).is_some());
        }
    }
}

#[test]
fn a_set_user_id_bit_is_refused_before_the_broker_is_asked() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let outcome = confined(&scratch).shell("chmod 4755 own/own; chmod 2755 own/own; stat -c %a own/own");
        assert!(outcome.out.starts_with("2755") || outcome.out.starts_with("755"), "{}", outcome.tell());
        assert!(outcome.err.contains("Operation not permitted"), "{}", outcome.tell());
    }
}

#[test]
fn a_descriptor_handed_in_to_be_read_is_not_changed() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let dir = scratch.fixture("outside/f");
        let before = Snapshot::of(&dir);
        for words in [
            ["fd-fchmod", "0"],
            ["fd-fchown", "0"],
            ["fd-fremovexattr", "0"],
            ["fd-setxattr-path", "0"],
            ["fd-futimens", "0"],
            ["fd-fsetxattr", "0"],
            ["fd-setflags", "0"],
            ["fd-chmod-path", "0"],
        ] {
            let run = confined(&scratch).stdio(0, fs::File::open(dir.join("file")).unwrap());
            let outcome = run.attack(&scratch, words);
            assert!(outcome.denied(), "{who:?} {words:?}: {}", outcome.tell());
        }
        assert_eq!(before.difference(&Snapshot::of(&dir)), None);
        let own = scratch.fixture("w/f");
        let run = confined(&scratch).stdio(0, fs::File::open(own.join("file")).unwrap());
        assert!(run.attack(&scratch, ["fd-fchmod", "0"]).ok());
    }
}
