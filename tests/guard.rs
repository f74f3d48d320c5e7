//! The guard of control files: what lifts it, and what it is until then.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::fs;

use common::{EVERYONE, Findings, Run, Scratch};

const REPLACE: &str = "echo 2 > new && mv -f new .envrc && rm .envrc && echo 3 > .envrc && cat .envrc";

#[test]
fn a_guarded_file_is_ordinary_once_the_guard_is_lifted() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        for (options, lifted) in [(&[][..], false), (&["--git", "free"], true), (&["--rw", ".envrc"], true)] {
            let scratch = Scratch::new(who);
            scratch.file("w/.envrc", "1\n");
            let outcome = Run::confined(&scratch).options(options).cwd(scratch.workspace()).shell(REPLACE);
            let text = fs::read_to_string(scratch.path("w/.envrc")).unwrap_or_default();
            let wanted = if lifted { "3\n" } else { "1\n" };
            findings.claim(outcome.ok() == lifted && text == wanted, || {
                format!("{who:?} {options:?}: {text:?}, {}", outcome.tell())
            });
        }
    }
    findings.settle();
}

#[test]
fn a_tracked_control_file_follows_a_checkout_once_it_is_lifted() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let git = "git -c user.name=a -c user.email=a@example.org -c init.defaultBranch=main";
        let made = Run::plain(&scratch).cwd(scratch.workspace()).shell(format!(
            "{git} init -q . && echo 1 > .envrc && git add . && {git} commit -qm 1 && git checkout -qb two && \
             echo 2 > .envrc && {git} commit -qam 2 && git checkout -q main"
        ));
        findings.claim(made.ok(), || format!("{who:?}: {}", made.tell()));
        let run = Run::confined(&scratch).options(["--rw", ".envrc"]).cwd(scratch.workspace());
        let outcome = run.shell("git checkout -q two && cat .envrc && git status --short");
        findings.claim(outcome.out == "2\n", || format!("{who:?}: {}", outcome.tell()));
    }
    findings.settle();
}
