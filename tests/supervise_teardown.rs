//! Nothing of a run is left within a second, however it ends. Judged from outside.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod supervise;

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Child;
use std::time::{Duration, Instant};

use common::{EVERYONE, Findings, Run, Scratch, USER, Who};
use supervise::*;

/// Everything that tries to stay: each process ignores what asks it to go; one is orphaned in a session of its own,
/// one stopped, one stopped in its own session, one traced by another.
const STAYING: &str = r#"trap "" TERM HUP INT QUIT
(setsid sleep MARK &)
(setsid bash -c 'sleep MARK & kill -STOP $!; wait' &)
sleep MARK & kill -STOP $!
strace -f -qq -o /dev/null sleep MARK &
(bash -c 'sleep MARK & sleep MARK' &)
"#;
/// Of the lines above, with the shell itself.
const PROCESSES: usize = 9;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum As {
    Root,
    User,
    /// Root calls, and the command is another user.
    Switched,
}

const IDENTITIES: [As; 3] = [As::Root, As::User, As::Switched];

fn scratch(identity: As) -> Scratch {
    Scratch::new(if identity == As::Root { Who::Root } else { Who::User })
}

fn run(scratch: &Scratch, identity: As) -> Run {
    let run = Run::confined(scratch).option("--require=teardown");
    match identity {
        As::Switched => run.by(Who::Root).option("--user").option(format!("{USER}:{USER}")),
        _ => run,
    }
}

/// Started, and everything is there.
#[track_caller]
fn stay(scratch: &Scratch, identity: As, mark: &str, last: &str, change: impl FnOnce(Run) -> Run) -> Child {
    let script = format!("{STAYING}{last}").replace("MARK", mark);
    let child = change(run(scratch, identity)).command(["bash", "-c", &script]).spawn();
    if !within(Duration::from_secs(20), || marked(mark).len() >= PROCESSES) {
        send(child.id() as i32, libc::SIGKILL);
        panic!("{identity:?}: only {:?} came: {:?}", marked(mark), child.wait_with_output());
    }
    child
}

fn is_gone(mark: &str) -> Result<Duration, String> {
    let start = Instant::now();
    match common::within_a_second(|| marked(mark).is_empty()) {
        true => Ok(start.elapsed()),
        false => Err(format!("{:?}", marked(mark))),
    }
}

#[test]
fn nothing_is_left_when_confine_is_told_to_go() {
    let mut findings = Findings::default();
    for identity in IDENTITIES {
        for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT, libc::SIGKILL] {
            let scratch = scratch(identity);
            let mark = mark();
            let mut child = stay(&scratch, identity, &mark, "wait", |run| run);
            send(child.id() as i32, signal);
            let gone = is_gone(&mark);
            findings.claim(gone.is_ok(), || format!("{identity:?}, signal {signal}: {gone:?} left"));
            common::run::wait(&mut child);
        }
    }
    findings.settle();
}

#[test]
fn nothing_is_left_when_the_init_is_killed() {
    for identity in IDENTITIES {
        let scratch = scratch(identity);
        let mark = mark();
        let mut child = stay(&scratch, identity, &mark, "wait", |run| run);
        send(init_and_command(child.id() as i32).0, libc::SIGKILL);
        assert!(is_gone(&mark).is_ok(), "{identity:?}");
        assert_eq!(common::run::wait(&mut child).code(), Some(137));
    }
}

#[test]
fn nothing_is_left_when_the_command_ends() {
    for identity in IDENTITIES {
        let scratch = scratch(identity);
        let mark = mark();
        let go = scratch.path("w/go");
        let last = format!("until test -e {}; do sleep 0.02; done; exit 7", go.display());
        let mut child = stay(&scratch, identity, &mark, &last, |run| run);
        scratch.file("w/go", "");
        assert_eq!(common::run::wait(&mut child).code(), Some(7));
        // Not even a moment later: confine's own end tells that everything has ended.
        assert_eq!(marked(&mark), [0; 0], "{identity:?}");
    }
}

/// `$!` of a shell that started confine.
fn behind_a_shell(scratch: &Scratch, identity: As, mark: &str, before: &str) -> (Child, i32) {
    let wrapper = format!("{before} \"$@\" >/dev/null & echo $!; wait");
    let mut child =
        stay(scratch, identity, mark, "wait", |run| run.under(["bash", "-c", &wrapper, "caller"]));
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (child, line.trim().parse().unwrap())
}

#[test]
fn nothing_is_left_when_the_caller_is_killed() {
    for identity in IDENTITIES {
        let scratch = scratch(identity);
        let mark = mark();
        let (mut caller, confine) = behind_a_shell(&scratch, identity, &mark, "");
        send(caller.id() as i32, libc::SIGKILL);
        assert!(is_gone(&mark).is_ok(), "{identity:?}");
        await_that("the end of confine", || state(confine).is_none());
        common::run::wait(&mut caller);
    }
}

#[test]
fn nothing_is_left_when_everything_was_stopped_and_the_caller_is_killed() {
    for identity in IDENTITIES {
        let scratch = scratch(identity);
        let mark = mark();
        let (mut caller, confine) = behind_a_shell(&scratch, identity, &mark, "");
        let (init, _) = init_and_command(confine);
        // The init too: all that could end the others stands still.
        send(init, libc::SIGSTOP);
        send(confine, libc::SIGSTOP);
        await_that("stopped", || state(confine) == Some('T') && state(init) == Some('T'));
        send(caller.id() as i32, libc::SIGKILL);
        assert!(is_gone(&mark).is_ok(), "{identity:?}");
        await_that("the end of confine", || state(confine).is_none());
        common::run::wait(&mut caller);
    }
}

#[test]
fn nothing_is_left_when_the_monitor_is_killed_while_the_init_is_stopped() {
    for identity in IDENTITIES {
        let scratch = scratch(identity);
        let mark = mark();
        let mut child = stay(&scratch, identity, &mark, "wait", |run| run);
        let (init, _) = init_and_command(child.id() as i32);
        send(init, libc::SIGSTOP);
        await_that("stopped", || state(init) == Some('T'));
        child.kill().unwrap();
        assert!(is_gone(&mark).is_ok(), "{identity:?}");
        common::run::wait(&mut child);
    }
}

#[test]
fn a_run_outlives_the_thread_that_started_it() {
    let scratch = Scratch::new(Who::Root);
    let mark = mark();
    let line = format!("sleep {mark}; true");
    let run = run(&scratch, As::Root).command(["bash", "-c", &line]);
    let mut child = std::thread::spawn(move || {
        let child = run.spawn();
        init_and_command(child.id() as i32);
        child
    })
    .join()
    .unwrap();
    await_that("the command", || marked(&mark).len() == 2);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(marked(&mark).len(), 2, "the command ended with a thread of its caller");
    child.kill().unwrap();
    assert!(is_gone(&mark).is_ok());
    common::run::wait(&mut child);
}

#[test]
fn who_handles_the_request_has_the_grace_and_no_more() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let slow = r#"trap 'sleep 1; echo cleaned; exit 3' TERM; echo ready; while :; do sleep 0.05; done"#;
        for (grace, out, code) in [("5s", "ready\ncleaned\n", 3), ("100ms", "ready\n", 137)] {
            let run = Run::confined(&scratch).options(["--require=teardown", "--grace", grace]);
            let child = run.command(["bash", "-c", slow]).spawn();
            let monitor = child.id() as i32;
            let (_, command) = init_and_command(monitor);
            await_that("a trap", || catches(command, libc::SIGTERM));
            send(monitor, libc::SIGTERM);
            let output = child.wait_with_output().unwrap();
            assert_eq!(
                (String::from_utf8_lossy(&output.stdout).as_ref(), output.status.code()),
                (out, Some(code))
            );
        }
    }
}

#[test]
fn a_command_that_catches_an_interrupt_goes_on() {
    let scratch = Scratch::new(Who::User);
    // Well over the grace. No shell: bash may pass over an interrupt that comes while it waits.
    let script = "import os, signal, time\n\
        signal.signal(signal.SIGINT, lambda *_: os.write(1, b'caught\\n'))\n\
        os.write(1, b'ready\\n')\n\
        end = time.monotonic() + 2\n\
        while time.monotonic() < end: time.sleep(0.1)\n\
        os.write(1, b'done\\n')";
    let mut child = run(&scratch, As::User).command(["python3", "-c", script]).spawn();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    out.read_line(&mut text).unwrap();
    send(child.id() as i32, libc::SIGINT);
    out.read_to_string(&mut text).unwrap();
    assert_eq!(text, "ready\ncaught\ndone\n");
    assert_eq!(common::run::wait(&mut child).code(), Some(0));
}

#[test]
fn without_teardown_nohup_and_a_request_to_go_are_the_commands_own() {
    let scratch = Scratch::new(Who::User);
    let script = "trap 'echo asked' TERM; for i in {1..20}; do sleep 0.1; done; echo done";
    let run = Run::confined(&scratch).option("--require=process-hiding").command(["bash", "-c", script]);
    let child = run.spawn();
    let (_, command) = init_and_command(child.id() as i32);
    await_that("a trap", || catches(command, libc::SIGTERM));
    send(child.id() as i32, libc::SIGTERM);
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "asked\ndone\n");
}

#[test]
fn a_hangup_that_was_ignored_before_ends_nothing() {
    let scratch = Scratch::new(Who::User);
    let child = run(&scratch, As::User)
        .under(["bash", "-c", r#"trap "" HUP; exec "$@""#, "nohup"])
        .command(["bash", "-c", "sleep 3; echo done"])
        .spawn();
    init_and_command(child.id() as i32);
    send(child.id() as i32, libc::SIGHUP);
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n");
}
