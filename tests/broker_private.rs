//! HOME and TMPDIR where nothing can be mounted: fresh, owner-only, and gone at the end.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "broker/mod.rs"]
mod broker;
mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Child;
use std::thread::sleep;
use std::time::Duration;

use broker::{scratch, without_namespaces};
use common::{EVERYONE, Run, Scratch, Snapshot, wait_for};

/// The caller's TMPDIR is private, so theirs are made in it.
fn place(scratch: &Scratch) -> usize {
    fs::read_dir(scratch.path("tmp")).unwrap().count()
}

fn confined(scratch: &Scratch, forced: bool) -> Run {
    fs::set_permissions(scratch.path("tmp"), fs::Permissions::from_mode(0o700)).unwrap();
    without_namespaces(scratch, Run::confined(scratch), forced)
}

#[test]
fn they_are_fresh_private_usable_and_gone_afterwards() {
    for who in EVERYONE {
        for forced in [false, true] {
            let scratch = scratch(who);
            let script = "set -e; ls -A $HOME $TMPDIR | grep -c . || true; cd $HOME; echo x >file; mkdir -p .cache/a; \
                          chmod 700 .cache; mktemp >/dev/null; stat -c %a $(dirname $HOME); dirname $HOME; echo $XDG_CACHE_HOME; exit 3";
            let first = confined(&scratch, forced).shell(script);
            assert_eq!(first.code(), Some(3), "{who:?} {forced}: {}", first.tell());
            assert_eq!(place(&scratch), 0, "{}", first.tell());
            let lines: Vec<&str> = first.out.lines().collect();
            assert_eq!(lines[lines.len() - 3..][0], "700", "{}", first.tell());
            let tmp = scratch.path("tmp");
            assert!(first.out.contains(tmp.to_str().unwrap()), "{}", first.tell());
            // Not the same directory twice, and nothing of the real one.
            let second = confined(&scratch, forced).shell(format!("{script}; "));
            assert_ne!(first.out, second.out);
            let hidden = confined(&scratch, forced).shell("cat ~/.ssh/id; ls -A ..");
            assert!(!hidden.out.contains("secret key"), "{}", hidden.tell());
        }
    }
}

#[test]
fn whatever_the_command_leaves_is_removed_and_nothing_else() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let victim = scratch.fixture("outside/f");
        let before = Snapshot::of(&victim);
        let script = format!(
            "cd $TMPDIR; ln -s {0} link; ln -s {0}/file file; mkdir shut; ln -s {0} shut/link; mkdir shut/in; chmod 000 shut/in shut; \
             for i in $(seq 400); do mkdir {1}; cd {1}; done; touch end; mkfifo pipe; true",
            victim.display(),
            "long-name".repeat(20)
        );
        let outcome = confined(&scratch, false).option("--ro").option(&victim).shell(script);
        assert!(outcome.ok(), "{}", outcome.tell());
        assert_eq!(place(&scratch), 0);
        assert_eq!(before.difference(&Snapshot::of(&victim)), None);
    }
}

fn started(run: Run, scratch: &Scratch) -> Child {
    let child = run.command(["bash", "-c", "touch $HOME/x; echo $$ >started; sleep 60"]).spawn();
    wait_for(&scratch.path("w/started"));
    child
}

#[test]
fn a_killed_run_leaves_what_the_next_one_removes() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let mut child = started(confined(&scratch, false), &scratch);
        assert_eq!(place(&scratch), 1);
        // A living one is not touched by a second run.
        assert!(confined(&scratch, false).shell("true").ok());
        assert_eq!(place(&scratch), 1);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(place(&scratch), 1);
        // Once the init has ended the tree, which takes a busy machine a while.
        let gone = |_| {
            assert!(confined(&scratch, false).shell("true").ok());
            place(&scratch) == 0 || {
                sleep(Duration::from_millis(200));
                false
            }
        };
        assert!((0..60).any(gone), "{who:?}: {} left", place(&scratch));
    }
}

#[test]
fn a_run_that_is_asked_to_end_removes_them() {
    for who in EVERYONE {
        let scratch = scratch(who);
        for options in [&[][..], &["--timeout", "2s", "--grace", "100ms"]] {
            let _ = fs::remove_file(scratch.path("w/started"));
            let mut child = started(confined(&scratch, false).options(options), &scratch);
            if options.is_empty() {
                rustix::process::kill_process(
                    rustix::process::Pid::from_raw(child.id() as i32).unwrap(),
                    rustix::process::Signal::TERM,
                )
                .unwrap();
            }
            common::run::wait(&mut child);
            assert_eq!(place(&scratch), 0, "{who:?} {options:?}");
        }
    }
}

#[test]
fn what_belongs_to_somebody_else_is_left_alone() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let id = who.id();
        // Another user's directory under our name, one that others may enter, and a link.
        let others = scratch.path(&format!("tmp/confine-{id}-1-1"));
        fs::create_dir(&others).unwrap();
        fs::write(others.join("kept"), "").unwrap();
        std::os::unix::fs::chown(&others, Some(77), Some(77)).unwrap();
        fs::set_permissions(&others, fs::Permissions::from_mode(0o700)).unwrap();
        scratch.dir(&format!("tmp/confine-{id}-1-2"));
        scratch.file(&format!("tmp/confine-{id}-1-2/kept"), "");
        let target = scratch.dir("outside/target");
        fs::set_permissions(&target, fs::Permissions::from_mode(0o700)).unwrap();
        scratch.file("outside/target/kept", "");
        scratch.link(&target, &format!("tmp/confine-{id}-1-3"));
        assert!(confined(&scratch, false).shell("true").ok());
        for kept in [
            format!("tmp/confine-{id}-1-1/kept"),
            format!("tmp/confine-{id}-1-2/kept"),
            "outside/target/kept".into(),
        ] {
            assert!(scratch.path(&kept).exists(), "{who:?} {kept}");
        }
        assert_eq!(place(&scratch), 3);
    }
}

/// What is handed in by name is used as it is and stays.
#[test]
fn a_state_directory_takes_their_place() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let state = scratch.path("home/state");
        let outcome =
            confined(&scratch, false).option("--state").option(&state).shell("touch $HOME/x; echo $HOME");
        assert_eq!(outcome.out, format!("{}\n", state.join("home").display()), "{}", outcome.tell());
        assert!(state.join("home/x").exists());
        assert_eq!(place(&scratch), 0);
    }
}

#[test]
fn git_knows_its_user_in_a_private_home_and_no_credential() {
    for who in EVERYONE {
        for forced in [false, true] {
            let scratch = scratch(who);
            let settings = "[user]\n\tname = n\n\temail = n@example.org\n[http]\n\textraHeader = Authorization: sesame\n";
            scratch.file("home/.gitconfig", settings);
            let script = "git init -q r && cd r && git commit -q --allow-empty -m x && git log --format=%an; cat ~/.gitconfig";
            let outcome = confined(&scratch, forced).shell(script);
            assert!(outcome.ok() && outcome.out.starts_with("n\n"), "{who:?}: {}", outcome.tell());
            assert!(!outcome.out.contains("sesame"), "{who:?}: {}", outcome.tell());
            assert_eq!(fs::read_to_string(scratch.path("home/.gitconfig")).unwrap(), settings);
            assert_eq!(place(&scratch), 0, "{}", outcome.tell());
        }
    }
}

/// What an earlier run left in a kept HOME is not followed to anywhere.
#[test]
fn a_copy_into_a_kept_home_follows_no_link_and_overwrites_nothing() {
    for who in EVERYONE {
        let scratch = scratch(who);
        scratch.dir("home/.config");
        scratch.dir("home/.config/git");
        scratch.file("home/.config/git/ignore", "*.mine\n");
        scratch.file("home/.gitconfig", "[user]\n\tname = outer\n");
        let state = scratch.dir("state");
        fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap();
        let victim = scratch.fixture("outside/f");
        let before = Snapshot::of(&victim);
        let run = |script: String| confined(&scratch, false).option("--state").option(&state).shell(script);
        let first = run("cat ~/.config/git/ignore; rm -r ~/.config; echo '# own' >~/.gitconfig".into());
        assert_eq!(first.out, "*.mine\n", "{who:?}: {}", first.tell());
        assert!(run(format!("ln -s {} ~/.config", victim.display())).ok());
        let third = run("cat ~/.gitconfig".into());
        assert_eq!(third.out, "# own\n", "{who:?}: {}", third.tell());
        assert_eq!(before.difference(&Snapshot::of(&victim)), None, "{who:?}");
    }
}
