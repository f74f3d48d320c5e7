//! metadata-scope: mode, owner, times, access lists, attributes and flags change only beneath writable roots.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::fs::{self, File};

use common::table::{Attack, Place, at, by_path, denied, works, works_unconfined};
use common::{EVERYONE, Findings, Run, Scratch, Snapshot};

const ATTACKS: &[Attack] = &[
    at("chmod-dir"),
    at("fchmodat"),
    at("fchmod"),
    at("fchmod-dir"),
    at("chmod-proc-fd"),
    // Linux 6.6.
    at("fchmodat2").lacking(&["ENOSYS"]),
    at("fchmodat2-nofollow").lacking(&["ENOSYS"]),
    at("fchmodat2-empty-path").lacking(&["ENOSYS"]),
    at("fchownat"),
    at("fchownat-link"),
    at("fchown"),
    at("fchownat-empty-path"),
    at("utimensat"),
    at("utimensat-now"),
    at("utimensat-link"),
    at("utimensat-empty-path"),
    at("futimens"),
    by_path("setxattr"),
    by_path("lsetxattr"),
    at("fsetxattr"),
    at("setxattr-proc-fd"),
    // Linux 6.13.
    at("setxattrat").lacking(&["ENOSYS"]),
    at("setxattrat-empty-path").lacking(&["ENOSYS"]),
    by_path("removexattr"),
    by_path("lremovexattr"),
    at("fremovexattr"),
    at("removexattrat").lacking(&["ENOSYS"]),
    at("removexattrat-empty-path").lacking(&["ENOSYS"]),
    at("set-acl"),
    at("setflags"),
    at("fssetxattr"),
    // Linux 6.17; ENOSYS inside too for as long as its number is above the last one vetted.
    at("file-setattr").lacking(&["ENOSYS"]),
    at("file-setattr-empty-path").lacking(&["ENOSYS"]),
    #[cfg(target_arch = "x86_64")]
    by_path("chmod"),
    #[cfg(target_arch = "x86_64")]
    by_path("chown"),
    #[cfg(target_arch = "x86_64")]
    by_path("lchown"),
    #[cfg(target_arch = "x86_64")]
    by_path("utime"),
    #[cfg(target_arch = "x86_64")]
    by_path("utimes"),
    #[cfg(target_arch = "x86_64")]
    at("futimesat"),
    #[cfg(target_arch = "x86_64")]
    at("futimesat-fd"),
];

#[test]
fn every_change_works_without_a_boundary() {
    works_unconfined(ATTACKS);
}

#[test]
fn every_change_works_inside_the_workspace() {
    works(ATTACKS, &[Place { label: "in the workspace", dir: "w/f", options: &[] }]);
}

#[test]
fn changes_in_a_readable_root_are_denied() {
    denied(
        ATTACKS,
        &[Place { label: "in a readable root", dir: "outside/f", options: &["--ro", "@outside"] }],
    );
}

#[test]
fn changes_outside_are_denied() {
    denied(ATTACKS, &[Place { label: "outside", dir: "outside/f", options: &[] }]);
}

#[test]
fn changes_in_a_read_only_part_of_the_workspace_are_denied() {
    denied(ATTACKS, &[Place { label: "in a read-only part", dir: "w/part", options: &["--ro", "@w/part"] }]);
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
