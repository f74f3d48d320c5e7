//! git inside, as it is used every day; and what its guard keeps from being written.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod programs;

use std::fs;

use common::{Run, Scratch};
use programs::{for_everyone, named, need, works, works_as};

/// Who commits, by the variables that confine passes on.
fn author(run: Run) -> Run {
    ["AUTHOR", "COMMITTER"].into_iter().fold(run, |run, who| {
        run.env(format!("GIT_{who}_NAME"), "Tester").env(format!("GIT_{who}_EMAIL"), "tester@example.org")
    })
}

/// A repository that exists before the run, so that its control files are guarded.
fn repository(scratch: &Scratch, name: &str) {
    need(&["git"]);
    let script = "set -e; git init -q -b main; echo one > file; git add file; git commit -qm one; \
         git branch topic; git branch other";
    let outcome = author(Run::plain(scratch)).cwd(scratch.dir(name)).shell(script);
    assert!(outcome.ok(), "{}", outcome.tell());
}

#[test]
fn a_new_repository_is_made_and_used() {
    need(&["git"]);
    for_everyone(|scratch| {
        let script = "git init -q -b main r; cd r; echo one > file; git add file; git commit -qm one
            echo two >> file; git stash -q; test \"$(cat file)\" = one; git stash pop -q; git commit -qam two
            git worktree add -q ../tree -b side; git -C ../tree log --format=%s; git worktree remove ../tree
            git branch -q -D side; git gc -q; git fsck 2>&1";
        let out = works_as(scratch, author, script);
        assert!(out.starts_with("two\none\n"), "{out}");
    });
}

#[test]
fn daily_work_in_a_guarded_repository() {
    for_everyone(|scratch| {
        repository(scratch, "w");
        let script = "git status --short; echo two >> file; git stash -q; git stash pop -q; git commit -qam two
            git worktree add -q tree -b side; (cd tree; echo three > three; git add three; git commit -qm three)
            git merge -q side; git worktree remove tree; git rebase -q HEAD~1; git tag v1; git reset -q --hard v1
            git gc -q; git log --format=%s";
        let out = works_as(scratch, author, script);
        assert!(out.ends_with("three\ntwo\none\n"), "{out}");
        let log = Run::plain(scratch).command(["git", "log", "--format=%s", "-1", "v1"]).run();
        assert_eq!(log.out, "three\n", "outside sees what was committed: {}", log.tell());
    });
}

#[test]
fn a_tracking_branch_is_checked_out_though_its_settings_stay_unwritten() {
    for_everyone(|scratch| {
        repository(scratch, "origin");
        let clone = Run::plain(scratch).shell("rm -rf ./* && git clone -q --no-hardlinks ../origin .");
        assert!(clone.ok(), "{}", clone.tell());
        let before = fs::read(scratch.path("w/.git/config")).unwrap();
        let script = "git checkout topic; git switch other; git checkout -q --no-track -b mine origin/topic
            git branch --format='%(refname:short)'; git checkout -q main; git branch -q -D topic other";
        let out = works(scratch, script);
        assert!(out.ends_with("main\nmine\nother\ntopic\n"), "{out}");
        assert_eq!(fs::read(scratch.path("w/.git/config")).unwrap(), before, "the guard was passed");
        let denied = Run::confined(scratch).command(["git", "config", "core.pager", "cat"]).run();
        assert!(denied.err.contains("Device or resource busy"), "{}", denied.tell());
        let lifted = Run::confined(scratch)
            .options(["--git", "free"])
            .command(["git", "checkout", "-q", "-b", "kept", "--track", "origin/topic"])
            .run();
        assert!(lifted.ok() && lifted.err.is_empty(), "{}", lifted.tell());
        let kept = fs::read_to_string(scratch.path("w/.git/config")).unwrap();
        assert!(kept.contains("[branch \"kept\"]"), "{kept}");
    });
}

#[test]
fn a_clone_with_linked_objects_is_refused_and_its_hint_leads_through() {
    for_everyone(|scratch| {
        repository(scratch, "origin");
        let clone = Run::plain(scratch).shell("rm -rf ./* && git clone -q ../origin .");
        assert!(clone.ok(), "{}", clone.tell());
        let log = ["git", "log", "--format=%s"];
        let refused = Run::confined(scratch).command(log).run();
        assert_eq!(refused.code(), Some(125), "{}", refused.tell());
        assert!(refused.err.contains("git clone"), "the tool is recognised: {}", refused.err);
        // One step, by the user, outside; the waiver is the other one.
        let waived = Run::confined(scratch).options(["--waive", "alias-free"]).command(log).run();
        assert_eq!(waived.out, "one\n", "{}", waived.tell());
        // As the message says it, word for word.
        let hint = refused.err.lines().find_map(|line| line.strip_prefix("hint: ")).unwrap_or_default();
        let line = format!("PATH='{}':\"$PATH\"; {hint}", scratch.path("bin").display());
        let separate = Run::plain(scratch).shell(line);
        assert!(hint.starts_with("confine scan --separate ") && separate.ok(), "{hint}: {}", separate.tell());
        let log = Run::confined(scratch).command(log).run();
        assert_eq!(log.out, "one\n", "{}", log.tell());
    });
}

#[test]
fn a_linked_worktree_reads_its_repository_and_writes_it_when_granted() {
    for_everyone(|scratch| {
        repository(scratch, "main");
        let made =
            Run::plain(scratch).cwd(scratch.path("main")).shell("git worktree add -q ../w/tree -b feat");
        assert!(made.ok(), "{}", made.tell());
        let tree = scratch.path("w/tree");
        let at = |run: Run| author(run).option("--workspace").option(&tree).cwd(&tree);
        let read = at(Run::bare(scratch)).shell("echo x > new; git status --short; git log --format=%s");
        assert_eq!(read.out, "?? new\none\n", "{}", read.tell());
        let commit = "git add new && git commit -qm new";
        let denied = at(Run::bare(scratch)).shell(commit);
        assert!(!denied.ok() && denied.err.contains("index.lock"), "{}", denied.tell());
        let granted = at(Run::bare(scratch)).option("--rw").option(scratch.path("main/.git")).shell(commit);
        assert!(granted.ok(), "{}", granted.tell());
    });
}

#[test]
fn commit_hooks_run_but_new_ones_cannot_be_left_behind() {
    need(&["pre-commit"]);
    for_everyone(|scratch| {
        repository(scratch, "w");
        scratch.file(
            "w/.pre-commit-config.yaml",
            "repos:\n- repo: local\n  hooks:\n  - id: words\n    name: words\n    language: system\n    \
             entry: grep -q good\n    files: ^file$\n",
        );
        let run = "git add .pre-commit-config.yaml file; pre-commit run --all-files";
        let bad = author(Run::confined(scratch)).shell(run);
        assert!(bad.code() == Some(1) && bad.out.contains("Failed"), "{}", bad.tell());
        scratch.file("w/file", "good\n");
        let good = works_as(scratch, author, run);
        assert!(good.contains("Passed"), "{good}");
        let install = author(Run::confined(scratch)).command(["pre-commit", "install"]).run();
        assert!(!install.ok(), "{}", install.tell());
        let outside = author(Run::plain(scratch)).command(["pre-commit", "install"]).run();
        assert!(outside.ok() && scratch.path("w/.git/hooks/pre-commit").exists(), "{}", outside.tell());
        scratch.file("w/file", "bad\n");
        let stopped = author(Run::confined(scratch)).shell("git commit -qam bad");
        assert!(!stopped.ok() && stopped.err.contains("words"), "the hook runs inside: {}", stopped.tell());
        scratch.file("w/file", "good, and more\n");
        works_as(scratch, author, "git commit -qam good");
    });
}

#[test]
fn settings_of_the_user_are_seen_without_their_secrets() {
    for_everyone(|scratch| {
        scratch.file(
            "home/.gitconfig",
            "[user]\n\tname = Named\n\temail = named@example.org\n[url \"https://u:secret@host/\"]\n\tinsteadOf = x:\n",
        );
        let script =
            "git init -q r; cd r; git commit -q --allow-empty -m one; git log --format=%an; git config -l";
        let out = works(scratch, script);
        assert!(out.starts_with("Named\n") && !out.contains("secret"), "{out}");
    });
}

#[test]
fn ssh_reads_its_configuration() {
    need(&["ssh"]);
    for_everyone(|scratch| {
        let run = named(scratch, Run::confined(scratch));
        let outcome = run.command(["ssh", "-G", "localhost"]).run();
        assert!(outcome.ok() && outcome.out.contains("hostname localhost"), "{}", outcome.tell());
        assert!(!outcome.err.contains("Bad owner"), "{}", outcome.tell());
    });
}
