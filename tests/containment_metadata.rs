//! metadata-scope: mode, owner, times, access lists, attributes and flags change only beneath writable roots.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::fs::{self, File};

use common::table::{METADATA, Place, denied, works, works_unconfined};
use common::{EVERYONE, Findings, Run, Scratch, Snapshot};

#[test]
fn every_change_works_without_a_boundary() {
    works_unconfined(METADATA);
}

#[test]
fn every_change_works_inside_the_workspace() {
    works(METADATA, &[Place { label: "in the workspace", dir: "w/f", options: &[] }]);
}

#[test]
fn changes_in_a_readable_root_are_denied() {
    denied(
        METADATA,
        &[Place { label: "in a readable root", dir: "outside/f", options: &["--ro", "@outside"] }],
    );
}

#[test]
fn changes_outside_are_denied() {
    denied(METADATA, &[Place { label: "outside", dir: "outside/f", options: &[] }]);
}

#[test]
fn changes_in_a_read_only_part_of_the_workspace_are_denied() {
    denied(METADATA, &[Place { label: "in a read-only part", dir: "w/part", options: &["--ro", "@w/part"] }]);
}

/// What was handed in to be read stands on the caller's mount, which is writable.
#[test]
fn contents_and_names_of_a_file_handed_in_to_be_read_are_not_changed() {
    handed_in(&["fd-reopen", "fd-truncate", "fd-link-out"]);
}

/// As standard input, and as a descriptor that was named.
#[track_caller]
fn handed_in(operations: &[&str]) {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let attack = scratch.attack();
        for number in ["0", "9"] {
            for operation in operations {
                for confined in [true, false] {
                    let _ = fs::remove_file(scratch.path("w/own/alias"));
                    let dir = scratch.fixture("outside/f");
                    let file = dir.join("file");
                    let before = Snapshot::of(&dir);
                    let run = if confined { Run::confined(&scratch) } else { Run::plain(&scratch) };
                    let run = match (number, confined) {
                        ("0", _) => run.stdio(0, File::open(&file).unwrap()),
                        (_, false) => run,
                        (_, true) => run.options(["--fd", number]),
                    };
                    let wrapper = [
                        attack.as_os_str(),
                        "with-fd".as_ref(),
                        number.as_ref(),
                        file.as_os_str(),
                        "0".as_ref(),
                    ];
                    let run = if number == "0" { run } else { run.under(wrapper) };
                    let own = scratch.path("w/own");
                    let outcome =
                        run.attack(&scratch, [operation.as_ref(), number.as_ref(), own.as_os_str()]);
                    let changed = before.difference(&Snapshot::of(&dir));
                    let holds =
                        if confined { outcome.denied() && changed.is_none() } else { changed.is_some() };
                    findings.claim(holds, || {
                        format!(
                            "{who:?}: {operation} on {number}, confined {confined}: {changed:?}, {}",
                            outcome.tell()
                        )
                    });
                }
            }
        }
    }
    findings.settle();
}
