//! What is handed in by descriptor: no more can be done with it than what it was opened for, or than the view gives.
//!
//! The workspace lies in a tmpfs on /mnt, in mounts of the test's own: below HOME and /tmp, where the other tests have
//! theirs, the grant is that of a private directory, which no descriptor of the host's leads to.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use common::{EVERYONE, Findings, Outcome, Run, Scratch, Who};
use nix::pty::openpty;

/// Called with confine, the identity and its HOME; the victims are its own.
const GROUND: &str = r#"
P=$1 I=$2 H=$3
mount -t tmpfs -o mode=755 ground /mnt && mkdir -p /mnt/w/part /mnt/w/secret /mnt/out /mnt/way /mnt/state && cd /mnt/w || exit 99
echo kept > part/f; echo kept > part/named; echo kept > /mnt/out/f; echo kept > /mnt/out/g; echo kept > plain
ln /mnt/out/f alias; ln /mnt/out/g going
chmod 700 /mnt/state
chown -R $I:$I /mnt
mount --bind /mnt/w /mnt/way
as() { setpriv --reuid $I --regid $I --clear-groups env HOME=$H "$@"; }
confine() { as $P "$@"; }
"#;

/// A script on that ground, as root; what it prints.
fn on_ground(scratch: &Scratch, script: &str) -> Outcome {
    let id = scratch.who.id().to_string();
    let script = format!("{GROUND}{script}");
    let words = ["unshare", "-m", "--propagation", "private", "bash", "-c", &script, "ground"];
    let mut command: Vec<std::ffi::OsString> = words.iter().map(Into::into).collect();
    command.extend([scratch.confine().into(), id.into(), scratch.home().into()]);
    Run::plain(scratch).by(Who::Root).cwd("/").command(command).run()
}

#[test]
fn a_narrowed_file_that_is_handed_in_cannot_be_opened_for_more() {
    // What is run, and the file of which nothing may change or be told.
    let cases = [
        (
            "--ro",
            "rm alias going; confine -w . --ro part -- sh -c 'echo GAINED > /proc/self/fd/0' < part/f",
            "part/f",
        ),
        (
            "--ro of a file",
            "rm alias going; confine -w . --ro part/f -- sh -c 'echo GAINED > /proc/self/fd/0' < part/f",
            "part/f",
        ),
        (
            "--fd",
            "rm alias going; confine -w . --ro part --fd 5 -- sh -c 'echo GAINED > /proc/self/fd/5' 5< part/f",
            "part/f",
        ),
        (
            "a protected alias",
            "confine -w . --hardlinks protect -- sh -c 'echo GAINED > /proc/self/fd/0' < alias",
            "/mnt/out/f",
        ),
        (
            "an alias whose name is gone",
            "exec 6< going; rm alias going; confine -w . -- sh -c 'echo GAINED > /proc/self/fd/0' <&6",
            "/mnt/out/g",
        ),
        (
            "a guarded file",
            "rm alias going; as git init -q .; \
             confine -w . -- sh -c 'echo GAINED > /proc/self/fd/0' < .git/config",
            ".git/config",
        ),
        (
            "a hidden file, handed in for writing",
            "echo GAINED > secret/log; rm alias going; \
             confine -w . --hide secret --fd 5 -- sh -c 'cat /proc/self/fd/5' 5>> secret/log",
            "part/f",
        ),
        (
            "a hidden file of a readable tree",
            "echo GAINED > secret/log; rm alias going; \
             confine --no-workspace --ro . --hide secret --fd 5 -- sh -c 'cat /proc/self/fd/5' 5>> secret/log",
            "part/f",
        ),
        (
            "by another mount of the workspace",
            "rm alias going; confine -w . --ro part -- sh -c 'echo GAINED > /proc/self/fd/0' < /mnt/way/part/f",
            "part/f",
        ),
        (
            "in a part that is sealed",
            "rm alias going; confine -w . --seal part -- sh -c 'echo GAINED > /proc/self/fd/0' < part/f",
            "part/f",
        ),
    ];
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for (what, run, victim) in cases {
            let outcome = on_ground(&scratch, &format!("{run}\necho \"status $?\"; cat {victim}"));
            let refused = outcome.out.contains("status 125") && outcome.err.contains("could be opened for");
            findings.claim(refused && !outcome.out.contains("GAINED"), || {
                format!("{who:?}: {what}: {}", outcome.tell())
            });
            findings.claim(outcome.err.contains("hint: give it through a pipe: `"), || {
                format!("{who:?}: {what}: no hint: {}", outcome.tell())
            });
        }
    }
    findings.settle();
}

#[test]
fn a_file_that_is_handed_in_serves_as_it_was_opened_wherever_that_gains_nothing() {
    let cases = [
        ("outside", "confine -w . -- cat < /mnt/out/f", "kept\nstatus 0"),
        (
            "outside, and no way to write",
            "confine -w . -- sh -c 'echo GAINED > /proc/self/fd/0' < /mnt/out/f; cat /mnt/out/f",
            "kept\nstatus 0",
        ),
        (
            "written to outside",
            "confine -w . -- echo more >> /mnt/out/f; cat /mnt/out/f",
            "kept\nmore\nstatus 0",
        ),
        ("an ordinary part", "confine -w . -- cat < plain", "kept\nstatus 0"),
        (
            "an ordinary part, opened anew as by its name",
            "confine -w . -- sh -c 'echo new > /proc/self/fd/0' < plain; cat plain",
            "new\nstatus 0",
        ),
        (
            "an ordinary part, by another mount",
            "confine -w . -- sh -c 'echo new > /proc/self/fd/0' < /mnt/way/plain; cat plain",
            "new\nstatus 0",
        ),
        (
            "written to in a part that can be read",
            "confine -w . --ro part -- echo more >> part/f; cat part/f",
            "kept\nmore\nstatus 0",
        ),
        (
            "for both in a narrowed part",
            "confine -w . --ro part -- sh -c 'cat; echo more >&0' <> part/f; cat part/f",
            "kept\nkept\nmore\nstatus 0",
        ),
        ("through a pipe, as the hint says", "cat part/f | confine -w . --ro part -- cat", "kept\nstatus 0"),
        ("a part lifted again", "confine -w . --ro part --rw part/f -- cat < part/f", "kept\nstatus 0"),
        (
            "a here-document in a narrowed part",
            "TMPDIR=/mnt/w/part; confine -w . --ro part -- wc -c <<< $(printf %99999s | tr ' ' x)",
            "100000\nstatus 0",
        ),
        (
            "an offset that is shared",
            "printf 'a\\nb\\n' > /mnt/out/f; { confine -w . -- sh -c 'read x; echo $x'; cat; } < /mnt/out/f",
            "a\nb\nstatus 0",
        ),
    ];
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for (what, run, expected) in cases {
            let outcome = on_ground(&scratch, &format!("rm alias going\n{run}\necho \"status $?\""));
            findings.claim(outcome.out == format!("{expected}\n"), || {
                format!("{who:?}: {what}: {}", outcome.tell())
            });
        }
    }
    findings.settle();
}

#[test]
fn explain_refuses_what_a_run_refuses() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let explained = |file: &str| {
            on_ground(&scratch, &format!("rm alias going; confine explain -w . --ro part -- true < {file}"))
        };
        let outcome = explained("part/f");
        assert_eq!(outcome.code(), Some(125), "{who:?}: {}", outcome.tell());
        assert!(outcome.err.contains("could be opened for writing"), "{who:?}: {}", outcome.tell());
        let twin = explained("plain");
        assert!(twin.ok(), "{who:?}: {}", twin.tell());
    }
}

#[test]
fn in_a_home_a_narrowed_file_that_is_handed_in_is_read_and_not_written() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        scratch.dir("home/w");
        scratch.dir("home/w/part");
        let file = scratch.file("home/w/part/f", "kept\n");
        let workspace = scratch.path("home/w");
        let outcome = Run::bare(&scratch)
            .option("-w")
            .option(&workspace)
            .option("--ro")
            .option(workspace.join("part"))
            .cwd(&workspace)
            .stdio(0, File::open(&file).unwrap())
            .shell("cat; echo GAINED > /proc/self/fd/0");
        assert!(outcome.out == "kept\n" && !outcome.ok(), "{who:?}: {}", outcome.tell());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept\n", "{who:?}");
    }
}

const CHANGE: &str = "echo hello >&$N; chmod 777 /proc/self/fd/$N; touch -d @1 /proc/self/fd/$N; true";

#[test]
fn a_terminal_that_is_handed_in_keeps_its_mode_and_times() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for number in ["0", "7"] {
            let pair = openpty(None, None).unwrap();
            rustix::fs::fchown(&pair.slave, Some(rustix::fs::Uid::from_raw(who.id())), None).unwrap();
            rustix::fs::fchmod(&pair.slave, rustix::fs::Mode::from_raw_mode(0o620)).unwrap();
            let slave = std::fs::read_link(format!("/proc/self/fd/{}", pair.slave.as_raw_fd())).unwrap();
            let script = format!("exec {number}<> {}; exec \"$@\"", slave.display());
            let run = || Run::confined(&scratch).under(["sh", "-c", &script, "sh"]).env("N", number);
            let run = || if number == "0" { run() } else { run().option("--fd=7") };
            let state = || {
                let found = std::fs::metadata(&slave).unwrap();
                (found.permissions().mode() & 0o777, found.mtime() == 1)
            };
            let outcome = run().option("--env=N").shell(CHANGE);
            findings.claim(state() == (0o620, false), || {
                format!("{who:?}: {number}: {:?}: {}", state(), outcome.tell())
            });
            // It is the terminal all the same.
            let mut text = [0; 64];
            let read = rustix::io::read(&pair.master, &mut text).unwrap();
            findings.claim(outcome.ok() && text[..read].starts_with(b"hello"), || {
                format!("{who:?}: {number}: nothing came: {}", outcome.tell())
            });
            let script = format!("exec {number}<> {}; {CHANGE}", slave.display());
            let twin = Run::plain(&scratch).env("N", number).shell(script);
            findings.claim(state() == (0o777, true), || {
                format!("{who:?}: {number}, unconfined: {:?}: {}", state(), twin.tell())
            });
        }
    }
    findings.settle();
}

#[test]
fn a_plain_device_that_is_handed_in_keeps_its_mode_wherever_its_node_lies() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for (number, options) in [("0", ""), ("7", "--fd 7")] {
            let node = "rm alias going; mknod /mnt/out/null c 1 3; chmod 660 /mnt/out/null; chown $I:$I /mnt/out/null";
            let run = format!(
                "{node}; export N={number}; confine -w . {options} --env N -- sh -c '{CHANGE}' {number}<> /mnt/out/null; \
                 echo \"status $?\"; stat -c %a:%u /mnt/out/null"
            );
            let outcome = on_ground(&scratch, &run);
            findings.claim(outcome.out == format!("status 0\n660:{}\n", who.id()), || {
                format!("{who:?}: {number}: {}", outcome.tell())
            });
            let twin = on_ground(
                &scratch,
                &format!("{node}; chmod 777 /proc/self/fd/7 7<> /mnt/out/null; stat -c %a /mnt/out/null"),
            );
            findings.claim(twin.out == "777\n", || format!("{who:?}: unconfined: {}", twin.tell()));
        }
    }
    findings.settle();
}

#[test]
fn a_terminal_without_a_name_to_open_it_by_is_refused_to_its_owner_alone() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let refused = |owner: u32, number: &str| {
            // A devpts of its own takes the name away; the terminal stays open.
            let pair = openpty(None, None).unwrap();
            rustix::fs::fchown(&pair.slave, Some(rustix::fs::Uid::from_raw(owner)), None).unwrap();
            let slave = std::fs::read_link(format!("/proc/self/fd/{}", pair.slave.as_raw_fd())).unwrap();
            let script = format!(
                "exec {number}<> {}; mount -t devpts -o newinstance,ptmxmode=666 own /dev/pts && \
                 exec setpriv --reuid {1} --regid {1} --clear-groups \"$@\"",
                slave.display(),
                who.id()
            );
            let words = ["unshare", "-m", "--propagation", "private", "bash", "-c", &script, "bash"];
            let run = Run::confined(&scratch).by(Who::Root).under(words);
            let run = if number == "0" { run } else { run.option("--fd=7") };
            let outcome = run.command(["touch", "started"]).run();
            drop(pair);
            outcome
        };
        for number in ["0", "7"] {
            let outcome = refused(who.id(), number);
            assert!(
                outcome.refused(&["is a terminal that cannot be opened anew"]),
                "{who:?}: {}",
                outcome.tell()
            );
            assert!(!scratch.path("w/started").exists());
            // Another user's cannot be changed by the command, whatever leads to it.
            let twin = refused(12345, number);
            assert!(twin.ok() && scratch.path("w/started").exists(), "{who:?}: {}", twin.tell());
            std::fs::remove_file(scratch.path("w/started")).unwrap();
        }
    }
}
