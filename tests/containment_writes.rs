//! write-scope and alias-free: contents and directory entries change only beneath writable roots.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::fs;
use std::path::PathBuf;

use common::table::{Attack, Place, at, by_path, denied, options, works, works_unconfined};
use common::victim::Victim;
use common::{EVERYONE, Findings, Run, Scratch, Snapshot, Who};

const ATTACKS: &[Attack] = &[
    at("open-wronly"),
    at("open-rdwr"),
    at("open-append"),
    at("open-through-link"),
    at("open-trunc"),
    at("open-rdonly-trunc"),
    at("open-creat"),
    at("open-creat-rdonly"),
    at("pwrite"),
    at("openat2").absent(&["ENOSYS"]),
    at("openat2-creat").absent(&["ENOSYS"]),
    at("reopen-rdonly"),
    at("reopen-opath"),
    at("reopen-dev-fd"),
    at("reopen-thread-self"),
    at("mkdirat"),
    at("mknodat-fifo"),
    at("mknodat-reg"),
    at("mknodat-sock"),
    at("symlinkat"),
    at("linkat"),
    at("link-in"),
    at("link-out"),
    at("link-out-proc-fd"),
    // Before Linux 6.10 an empty path takes CAP_DAC_READ_SEARCH.
    at("link-out-empty-path").lacking(&["ENOENT"]),
    at("tmpfile-link"),
    at("own-tmpfile-link"),
    at("renameat"),
    at("rename-noreplace"),
    at("rename-exchange"),
    at("rename-dir"),
    at("rename-in"),
    at("rename-over"),
    at("rename-out"),
    at("rename-exchange-out"),
    by_path("truncate"),
    at("ftruncate"),
    at("fallocate"),
    at("punch-hole"),
    at("copy-file-range"),
    at("sendfile"),
    at("splice"),
    // ext4 cannot share blocks: there the call itself answers, once the open has been let through.
    at("ficlone").lacking(&["EOPNOTSUPP", "EINVAL"]),
    at("mmap-shared"),
    at("unlinkat"),
    at("unlinkat-dir"),
    at("bind-socket"),
    #[cfg(target_arch = "x86_64")]
    by_path("open"),
    #[cfg(target_arch = "x86_64")]
    by_path("creat"),
    #[cfg(target_arch = "x86_64")]
    by_path("creat-new"),
    #[cfg(target_arch = "x86_64")]
    by_path("mkdir"),
    #[cfg(target_arch = "x86_64")]
    by_path("mknod"),
    #[cfg(target_arch = "x86_64")]
    by_path("symlink"),
    #[cfg(target_arch = "x86_64")]
    by_path("link"),
    #[cfg(target_arch = "x86_64")]
    by_path("rename"),
    #[cfg(target_arch = "x86_64")]
    by_path("unlink"),
    #[cfg(target_arch = "x86_64")]
    by_path("rmdir"),
];

/// A few of each sort, for what is tried in many places.
const SOME: &[Attack] = &[
    at("open-wronly"),
    at("open-rdonly-trunc"),
    at("open-creat"),
    at("mkdirat"),
    at("renameat"),
    at("rename-over"),
    at("link-out"),
    at("unlinkat"),
    by_path("truncate"),
    at("bind-socket"),
];

const READABLE: Place =
    Place { label: "in a readable root", dir: "outside/f", options: &["--ro", "@outside"] };
const HIDDEN: Place = Place { label: "outside", dir: "outside/f", options: &[] };

#[test]
fn every_attack_works_without_a_boundary() {
    works_unconfined(ATTACKS);
}

#[test]
fn every_attack_works_inside_the_workspace() {
    works(ATTACKS, &[Place { label: "in the workspace", dir: "w/f", options: &[] }]);
}

#[test]
fn writes_in_a_readable_root_are_denied() {
    denied(ATTACKS, &[READABLE]);
}

#[test]
fn writes_outside_are_denied() {
    denied(ATTACKS, &[HIDDEN]);
}

#[test]
fn writes_in_what_is_kept_from_the_command_inside_the_workspace_are_denied() {
    denied(
        SOME,
        &[
            Place { label: "in a read-only part", dir: "w/part", options: &["--ro", "@w/part"] },
            Place { label: "in a hidden part", dir: "w/part", options: &["--hide", "@w/part"] },
            Place {
                label: "in a read-only workspace",
                dir: "w/f",
                options: &["--read-only", "--rw", "@w/own"],
            },
        ],
    );
}

#[test]
fn writes_in_a_root_that_was_made_writable_work() {
    let roots = [
        Place { label: "in --rw", dir: "outside/f", options: &["--rw", "@outside"] },
        Place { label: "in a second workspace", dir: "outside/f", options: &["--workspace", "@outside"] },
        Place {
            label: "in a writable part",
            dir: "w/part/f",
            options: &["--ro", "@w/part", "--rw", "@w/part/f"],
        },
    ];
    // Between two mounts nothing can be linked or moved, whoever may write both.
    let within: Vec<Attack> =
        SOME.iter().filter(|attack| !["link-out", "rename-over"].contains(&attack.name)).copied().collect();
    works(&within, &roots);
}

/// Roads to one directory: DIR stands for its name in the scratch directory, PATH for its whole path.
const ROADS: &[&str] = &[
    "@w/../DIR",
    "@w/own/../../DIR",
    "/proc/self/root@DIR",
    "/proc/thread-self/root@DIR",
    "/proc/self/cwd/../DIR",
    "../DIR",
    "/..@DIR",
    "@w/planted",
    "@w/planted-above",
    "@w/planted-proc",
    "@planted-root/DIR",
];

fn road(scratch: &Scratch, template: &str, dir: &str) -> PathBuf {
    let root = scratch.root().to_str().unwrap();
    template
        .replace("@DIR", &format!("{root}/{dir}"))
        .replace('@', &format!("{root}/"))
        .replace("DIR", dir)
        .into()
}

/// Symbolic links that a hostile command could have left in the workspace.
fn plant(scratch: &Scratch, dir: &str) {
    for name in ["planted", "planted-above", "planted-proc"] {
        let _ = fs::remove_file(scratch.path("w").join(name));
    }
    let whole = scratch.path(dir);
    scratch.link(&whole, "w/planted");
    scratch.link(format!("../{dir}"), "w/planted-above");
    scratch.link(format!("/proc/self/root{}", whole.display()), "w/planted-proc");
}

#[test]
fn no_road_leads_a_write_outside_and_each_leads_inside() {
    let operations = ["open-wronly", "open-creat", "unlinkat", "fchmodat", "utimensat", "link-out"];
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        scratch.link(scratch.root(), "planted-root");
        for template in ROADS {
            for operation in operations {
                for (label, dir, grants) in [
                    ("readable", "outside/f", Some(&["--ro", "@outside"][..])),
                    ("hidden", "outside/f", Some(&[][..])),
                    ("inside", "w/f", Some(&[][..])),
                    ("unconfined", "outside/f", None),
                ] {
                    // A link beside the workspace does not exist inside.
                    if template.contains("planted-root") && label == "inside" {
                        continue;
                    }
                    for name in ["alias", "taken"] {
                        let _ = fs::remove_file(scratch.path("w/own").join(name));
                    }
                    let fixture = scratch.fixture(dir);
                    plant(&scratch, dir);
                    let before = Snapshot::of(&fixture);
                    let target = road(&scratch, template, dir);
                    let run = match grants {
                        Some(grants) => Run::confined(&scratch).options(options(&scratch, grants)),
                        None => Run::plain(&scratch),
                    };
                    let own = scratch.path("w/own");
                    let outcome =
                        run.attack(&scratch, [operation.as_ref(), target.as_os_str(), own.as_os_str()]);
                    let changed = before.difference(&Snapshot::of(&fixture)).is_some();
                    let allowed = matches!(label, "inside" | "unconfined");
                    let holds = if allowed { outcome.ok() && changed } else { outcome.denied() && !changed };
                    findings.claim(holds, || {
                        format!(
                            "{who:?}: {operation} by {template}, {label}: changed {changed}, {}",
                            outcome.tell()
                        )
                    });
                }
            }
        }
    }
    findings.settle();
}

#[test]
fn the_root_and_the_directory_of_another_process_are_no_road() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let fixture = scratch.fixture("outside/f");
        let victim = Victim::start(&scratch);
        let roads = [
            format!("/proc/{}/cwd/f", victim.pid),
            format!("/proc/{}/root{}", victim.pid, fixture.display()),
        ];
        for road in &roads {
            let before = Snapshot::of(&fixture);
            let outcome = Run::confined(&scratch).attack(&scratch, ["open-wronly", road]);
            findings.claim(outcome.denied() && before == Snapshot::of(&fixture), || {
                format!("{who:?}: {road}: {}", outcome.tell())
            });
            let twin = Run::plain(&scratch).attack(&scratch, ["open-wronly", road]);
            findings.claim(twin.ok() && before != Snapshot::of(&fixture), || {
                format!("{who:?}: {road} unconfined: {}", twin.tell())
            });
        }
    }
    findings.settle();
}

#[test]
fn a_file_handle_of_an_outside_file_cannot_be_opened() {
    // Without a boundary it takes CAP_DAC_READ_SEARCH, which only root has.
    let scratch = Scratch::new(Who::Root);
    let fixture = scratch.fixture("outside/f");
    let file = fixture.join("file");
    let made = Run::plain(&scratch).attack(&scratch, ["handle-make".as_ref(), file.as_os_str()]);
    let handle = made.out.lines().next().unwrap().to_owned();
    let workspace = scratch.workspace();
    let words = ["handle-open".as_ref(), workspace.as_os_str(), handle.as_ref()];
    let before = Snapshot::of(&fixture);
    let outcome = Run::confined(&scratch).attack(&scratch, words);
    assert!(outcome.denied(), "{}", outcome.tell());
    assert_eq!(before.difference(&Snapshot::of(&fixture)), None);
    let twin = Run::plain(&scratch).attack(&scratch, words);
    assert!(twin.ok() && before != Snapshot::of(&fixture), "unconfined: {}", twin.tell());
}

#[test]
fn a_hard_link_to_an_outside_file_keeps_the_command_from_starting() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let victim = scratch.file("outside/victim", "precious\n");
        fs::hard_link(&victim, scratch.path("w/alias")).unwrap();
        let script = "echo pwned > alias; touch started";
        let outcome = Run::confined(&scratch).shell(script);
        findings.claim(outcome.code() == Some(125), || format!("{who:?}: alias: {}", outcome.tell()));
        findings.claim(outcome.err.contains("alias"), || {
            format!("{who:?}: the link is not named: {}", outcome.err)
        });
        findings.claim(!scratch.path("w/started").exists(), || format!("{who:?}: the command was started"));
        let protected = Run::confined(&scratch).options(["--hardlinks", "protect"]).shell(script);
        findings.claim(protected.ok(), || format!("{who:?}: --hardlinks protect: {}", protected.tell()));
        findings.claim(scratch.path("w/started").exists(), || format!("{who:?}: protect did not start"));
        findings.claim(fs::read_to_string(&victim).unwrap() == "precious\n", || {
            format!("{who:?}: victim changed")
        });

        fs::remove_file(scratch.path("w/alias")).unwrap();
        fs::hard_link(scratch.path("w/own/own"), scratch.path("w/alias")).unwrap();
        let twin = Run::confined(&scratch).shell(script);
        findings.claim(twin.ok(), || format!("{who:?}: both names inside: {}", twin.tell()));
        let text = fs::read_to_string(scratch.path("w/own/own")).unwrap();
        findings.claim(text == "pwned\n", || format!("{who:?}: an inner link cannot be written: {text:?}"));
    }
    findings.settle();
}

#[test]
fn the_workspace_itself_cannot_be_removed_renamed_or_replaced() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let inode = |path: PathBuf| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap());
        let before = inode(scratch.workspace());
        let outcome = Run::confined(&scratch).shell("rm -rf ../w; mv ../w ../x; rmdir ../w; ls -A > left");
        findings.claim(inode(scratch.workspace()) == before, || format!("{who:?}: another workspace"));
        findings.claim(!scratch.path("x").exists(), || format!("{who:?}: moved: {}", outcome.tell()));
        findings.claim(scratch.path("w/left").exists(), || {
            format!("{who:?}: unusable after: {}", outcome.tell())
        });
    }
    findings.settle();
}
