//! What a hostile tree can do to the start: mounts, device nodes, links where mount points go, names that change meanwhile.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use common::table::options;
use common::{EVERYONE, Findings, Run, Scratch, Snapshot, Who};
use rustix::fs::{CWD, RenameFlags};

#[test]
fn a_mount_inside_the_workspace_is_read_only_unless_it_was_named() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        scratch.dir("w/mounted");
        let attack = scratch.attack();
        let id = who.id().to_string();
        let (from, to) = (scratch.path("outside/f"), scratch.path("w/mounted"));
        let wrapper = [
            attack.as_os_str(),
            "with-bind".as_ref(),
            from.as_os_str(),
            to.as_os_str(),
            attack.as_os_str(),
            "as".as_ref(),
            id.as_ref(),
            id.as_ref(),
        ];
        let words = |operation: &str| [operation.to_owned(), to.to_str().unwrap().to_owned()];
        for operation in
            ["open-wronly", "open-creat", "mkdirat", "unlinkat", "fchmodat", "utimensat", "fsetxattr"]
        {
            scratch.fixture("outside/f");
            let before = Snapshot::of(&from);
            let outcome =
                Run::confined(&scratch).by(Who::Root).under(wrapper).attack(&scratch, words(operation));
            let changed = before.difference(&Snapshot::of(&from));
            findings.claim(outcome.denied() && changed.is_none(), || {
                format!("{who:?}: {operation}: {changed:?}, {}", outcome.tell())
            });
            for grant in ["--rw", "--workspace"] {
                scratch.fixture("outside/f");
                let before = Snapshot::of(&from);
                let twin = Run::confined(&scratch)
                    .by(Who::Root)
                    .option(grant)
                    .option(&to)
                    .under(wrapper)
                    .attack(&scratch, words(operation));
                findings.claim(twin.ok() && before != Snapshot::of(&from), || {
                    format!("{who:?}: {operation} with {grant}: {}", twin.tell())
                });
            }
        }
        scratch.fixture("outside/f");
        let read =
            Run::confined(&scratch).by(Who::Root).under(wrapper).command(["cat", "mounted/file"]).run();
        findings.claim(read.out.contains("the original text"), || format!("{who:?}: read: {}", read.tell()));
    }
    findings.settle();
}

#[test]
fn a_device_node_in_the_workspace_keeps_the_command_from_starting() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        scratch.dir("w/deep");
        let node = scratch.path("w/deep/device");
        // Number 1:3, which swallows what is written and gives nothing.
        let made =
            Run::plain(&scratch).by(Who::Root).attack(&scratch, ["mknod-null".as_ref(), node.as_os_str()]);
        assert!(made.ok(), "{}", made.tell());
        scratch.give(&node);
        let outcome = Run::confined(&scratch).command(["touch", "started"]).run();
        findings.claim(outcome.code() == Some(125) && outcome.err.contains("device"), || {
            format!("{who:?}: {}", outcome.tell())
        });
        findings.claim(!scratch.path("w/started").exists(), || format!("{who:?}: was started"));
        fs::remove_file(&node).unwrap();
        let twin = Run::confined(&scratch).command(["touch", "started"]).run();
        findings.claim(twin.ok(), || format!("{who:?}: without the node: {}", twin.tell()));
    }
    findings.settle();
}

const GIT_ATTACK: &str = "for f in .git/hooks/x .git/config .git/info/attributes .envrc .vscode/tasks.json; do \
     (echo pwned > $f) 2>/dev/null; cat $f 2>/dev/null; done; mkdir .git/hooks/d 2>/dev/null; true";

#[test]
fn links_planted_where_mount_points_go_lead_nowhere() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        for layout in [
            "git is a link",
            "parts are links",
            "git is a file",
            "links to themselves",
            "links through the root of a process",
        ] {
            let scratch = Scratch::new(who);
            for dir in ["outside/git", "outside/git/hooks", "outside/git/info", "outside/vscode"] {
                scratch.dir(dir);
            }
            for file in ["git/config", "git/hooks/x", "git/info/attributes", "envrc", "vscode/tasks.json"] {
                scratch.file(&format!("outside/{file}"), "outside secret\n");
            }
            let outside = scratch.outside();
            match layout {
                "git is a link" => {
                    scratch.link("../outside/git", "w/.git");
                }
                "git is a file" => {
                    scratch.file("w/.git", &format!("gitdir: {}/git\n", outside.display()));
                }
                "parts are links" => {
                    scratch.dir("w/.git");
                    for part in ["hooks", "config", "info"] {
                        scratch.link(outside.join("git").join(part), &format!("w/.git/{part}"));
                    }
                }
                "links to themselves" => {
                    scratch.dir("w/.git");
                    for part in ["hooks", "config", "info"] {
                        scratch.link(part, &format!("w/.git/{part}"));
                    }
                }
                _ => {
                    scratch.dir("w/.git");
                    let through = format!("/proc/self/root{}/git", outside.display());
                    for part in ["hooks", "config", "info"] {
                        scratch.link(format!("{through}/{part}"), &format!("w/.git/{part}"));
                    }
                }
            }
            scratch.link(outside.join("envrc"), "w/.envrc");
            scratch.link("../outside/vscode", "w/.vscode");
            let before = Snapshot::of(&outside);
            let outcome =
                Run::confined(&scratch).shell(format!("{GIT_ATTACK}; rm -rf .git/hooks/ .git/hooks; true"));
            let changed = before.difference(&Snapshot::of(&outside));
            findings.claim(changed.is_none() && !outcome.out.contains("outside secret"), || {
                format!("{who:?}: {layout}: {changed:?}, {}", outcome.tell())
            });
            findings.claim(outcome.ok(), || format!("{who:?}: {layout}: does not start: {}", outcome.tell()));
            let twin = Run::plain(&scratch).shell(GIT_ATTACK);
            let changed = before != Snapshot::of(&outside);
            findings.claim(changed, || format!("{who:?}: {layout}: {}", twin.tell()));
        }
    }
    findings.settle();
}

#[test]
fn what_git_runs_by_itself_is_guarded_in_an_ordinary_repository() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let attacks = [
            "echo pwned > .git/hooks/x",
            "echo pwned > .git/hooks/new",
            "rm .git/hooks/x",
            "echo pwned > .git/config",
            "rm -f .git/config",
            "mv .git/hooks .git/other",
            "mv .git moved",
            "echo pwned > .git/new-config && mv -f .git/new-config .git/config",
            "chmod 777 .git/hooks/x",
        ];
        for script in attacks {
            let _ = fs::remove_dir_all(scratch.path("w/.git"));
            for dir in ["w/.git", "w/.git/hooks", "w/.git/info"] {
                scratch.dir(dir);
            }
            for file in ["w/.git/config", "w/.git/hooks/x", "w/.git/info/attributes"] {
                scratch.file(file, "as it was\n");
            }
            let before = ["w/.git/config", "w/.git/hooks"].map(|path| Snapshot::of(&scratch.path(path)));
            let outcome = Run::confined(&scratch).shell(script);
            let same = ["w/.git/config", "w/.git/hooks"].iter().zip(&before).all(|(path, before)| {
                scratch.path(path).exists() && *before == Snapshot::of(&scratch.path(path))
            });
            findings.claim(same && !outcome.ok(), || {
                format!("{who:?}: {script}: same {same}, {}", outcome.tell())
            });
        }
        let work = Run::confined(&scratch)
            .shell("echo x > .git/index && mkdir .git/objects && mv .git/index .git/HEAD");
        findings.claim(work.ok(), || format!("{who:?}: the rest of .git: {}", work.tell()));
        let free = Run::confined(&scratch)
            .options(["--git", "free"])
            .shell("echo ours > .git/hooks/x && echo ours > .git/config");
        findings.claim(free.ok(), || format!("{who:?}: --git free: {}", free.tell()));
    }
    findings.settle();
}

/// Exchanges two names as fast as it can while a test runs.
fn while_swapping(one: &Path, other: &Path, run: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut turns = 0u64;
            while !stop.load(Ordering::Relaxed) || turns % 2 == 1 {
                rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
                turns += 1;
                // Long enough that some starts see one state only.
                thread::sleep(Duration::from_micros(turns % 17 * 60));
            }
        });
        // A claim that fails must not leave the other thread turning.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        stop.store(true, Ordering::Relaxed);
        if let Err(cause) = result {
            std::panic::resume_unwind(cause);
        }
    });
}

#[test]
fn a_workspace_that_is_swapped_for_a_refused_one_is_never_written() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        // HOME is too broad; the other holds a link to a file elsewhere.
        for victim in ["home", "outside/aliased"] {
            let scratch = Scratch::new(who);
            scratch.dir("outside/aliased");
            let text = scratch.file("outside/text", "precious\n");
            fs::hard_link(text, scratch.path("outside/aliased/file")).unwrap();
            let swapped = scratch.link(scratch.path(victim), "swapped");
            let before = Snapshot::of(&scratch.path(victim));
            let workspace = scratch.workspace();
            let (mut started, mut refused) = (0, 0);
            while_swapping(&workspace, &swapped, || {
                for _ in 0..50 {
                    let script = "cd \"$1\" && echo pwned > pwned; echo pwned > \"$1/file\"";
                    let words =
                        ["sh".as_ref(), "-c".as_ref(), script.as_ref(), "sh".as_ref(), workspace.as_os_str()];
                    let outcome = Run::confined(&scratch).cwd("/usr").command(words).run();
                    match outcome.code() {
                        Some(125) => refused += 1,
                        _ => started += 1,
                    }
                }
            });
            let changed = before.difference(&Snapshot::of(&scratch.path(victim)));
            findings.claim(changed.is_none(), || format!("{who:?}: {victim}: {changed:?}"));
            // The race has to have been run, both ways.
            findings.claim(started > 0 && refused > 0, || {
                format!("{who:?}: {victim}: started {started}, refused {refused}")
            });
        }
    }
    findings.settle();
}

#[test]
fn parts_of_the_workspace_that_are_swapped_for_links_lead_nowhere() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        for part in ["w/.git/hooks", "w/.git", "w/part"] {
            let scratch = Scratch::new(who);
            for dir in ["w/.git", "w/.git/hooks", "w/.git/info", "w/part", "outside/hooks", "outside/info"] {
                scratch.dir(dir);
            }
            for file in ["w/.git/config", "outside/config", "outside/x", "outside/hooks/x", "w/part/x"] {
                scratch.file(file, "as it was\n");
            }
            let swapped = scratch.link(scratch.outside(), "swapped");
            let before = Snapshot::of(&scratch.outside());
            while_swapping(&scratch.path(part), &swapped, || {
                for _ in 0..40 {
                    let protect =
                        options(&scratch, if part == "w/part" { &["--ro", "@w/part"] } else { &[] });
                    let script = format!("{GIT_ATTACK}; echo pwned > part/x");
                    Run::confined(&scratch).options(protect).shell(&script);
                }
            });
            let changed = before.difference(&Snapshot::of(&scratch.outside()));
            findings.claim(changed.is_none(), || format!("{who:?}: {part}: {changed:?}"));
        }
    }
    findings.settle();
}
