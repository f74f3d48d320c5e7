//! With a parent in between a run looks like the command itself: status, signals, descriptors, time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod supervise;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{EVERYONE, Findings, Run, Scratch, USER, Who};
use supervise::*;

fn supervised(scratch: &Scratch) -> Run {
    Run::confined(scratch).option("--require=process-hiding")
}

#[test]
fn every_exit_status_is_passed_on() {
    let scratch = Scratch::new(Who::User);
    let mut findings = Findings::default();
    for status in 0..=255 {
        let got = supervised(&scratch).shell(format!("exit {status}"));
        findings.claim(got.code() == Some(status), || format!("{status}: {}", got.tell()));
    }
    findings.settle();
}

#[test]
fn a_command_that_dies_of_a_signal_gives_128_and_its_number() {
    // Left out: those that bash or the kernel ignores, that stop, and the two of the C library.
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for signal in (1..=64).filter(|signal| ![3, 17, 18, 19, 20, 21, 22, 23, 28, 32, 33].contains(signal))
        {
            let got = supervised(&scratch).shell(format!("ulimit -c 0; kill -{signal} $$; sleep 5"));
            findings.claim(got.code() == Some(128 + signal), || format!("{signal}: {}", got.tell()));
        }
    }
    findings.settle();
}

#[test]
fn an_orphan_that_dies_of_a_real_time_signal_is_not_the_end() {
    let scratch = Scratch::new(Who::User);
    let got = supervised(&scratch).shell("(bash -c 'kill -40 $$' &); sleep 0.3; exit 9");
    assert_eq!(got.code(), Some(9), "{}", got.tell());
}

#[test]
fn a_command_that_cannot_start_says_so_as_ever() {
    let scratch = Scratch::new(Who::User);
    let missing = supervised(&scratch).command(["no-such-command"]).run();
    assert_eq!(missing.code(), Some(127), "{}", missing.tell());
    let refused = supervised(&scratch).command([scratch.path("w/own/own")]).run();
    assert_eq!(refused.code(), Some(126), "{}", refused.tell());
    let hidden = supervised(&scratch).option("--chdir=/root").shell("true");
    assert_eq!(hidden.code(), Some(125), "{}", hidden.tell());
    assert_eq!(hidden.err.lines().filter(|line| line.starts_with("confine: ")).count(), 1);
}

/// Whether there is something to read, in time.
fn is_readable(out: &BufReader<std::process::ChildStdout>, within: Duration) -> bool {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::os::fd::AsFd as _;
    let mut fds = [PollFd::new(out.get_ref().as_fd(), PollFlags::POLLIN)];
    let within = PollTimeout::try_from(within).unwrap();
    !out.buffer().is_empty() || poll(&mut fds, within).unwrap() == 1
}

#[test]
fn every_signal_reaches_a_trap_exactly_once() {
    let program = r#"
import os, signal, sys, time
def told(number, frame):
    os.write(1, b"%d\n" % number)
for number in range(1, 65):
    if number not in (9, 19, 32, 33):
        signal.signal(number, told)
os.write(1, b"ready\n")
while True:
    time.sleep(10)
"#;
    let mut findings = Findings::default();
    for who in EVERYONE {
        for group in [false, true] {
            let scratch = Scratch::new(who);
            // A group of its own: what is sent to it shall not reach the test.
            let mut child =
                supervised(&scratch).under(["setsid"]).command(["python3", "-c", program]).spawn();
            let monitor = child.id() as i32;
            let mut out = BufReader::new(child.stdout.take().unwrap());
            let mut line = String::new();
            out.read_line(&mut line).unwrap();
            assert_eq!(line, "ready\n");
            let mut text = String::new();
            for signal in (1..=64).filter(|number| ![9, 19, 32, 33].contains(number)) {
                let target = if group { format!("-{monitor}") } else { monitor.to_string() };
                let number = format!("-{signal}");
                let kill = std::process::Command::new("kill").args([&number, "--", &target]).status();
                assert!(kill.unwrap().success());
                // One after the other: a stop signal takes a SIGCONT that still waits with it (signal(7)).
                let mut line = String::new();
                let waited = Duration::from_secs(10);
                if is_readable(&out, waited) {
                    out.read_line(&mut line).unwrap();
                }
                text.push_str(&line);
            }
            std::thread::sleep(Duration::from_millis(50));
            send(monitor, libc::SIGKILL);
            out.read_to_string(&mut text).unwrap();
            for signal in (1..=64).filter(|number| ![9, 19, 32, 33].contains(number)) {
                let times = text.lines().filter(|line| *line == signal.to_string()).count();
                findings.claim(times == 1, || {
                    format!("{who:?}, group {group}: signal {signal} came {times} times")
                });
            }
            common::run::wait(&mut child);
        }
    }
    findings.settle();
}

#[test]
fn a_value_that_comes_with_a_signal_is_passed_on() {
    let program = r#"
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [40])
os.write(1, b"ready\n")
info = signal.sigwaitinfo([40])
os.write(1, b"%d\n" % info.si_code)
"#;
    let scratch = Scratch::new(Who::User);
    let mut child = supervised(&scratch).command(["python3", "-c", program]).spawn();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    let kill =
        std::process::Command::new("kill").args(["-q", "7", "-s", "40", &child.id().to_string()]).status();
    // procps and util-linux both have the option; a shell's built-in has not.
    assert!(kill.unwrap().success());
    line.clear();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "-1\n");
    common::run::wait(&mut child);
}

/// A caller in the same session with confine in a group of its own, as a shell has its jobs: an orphaned group is
/// not stopped by a terminal's signals.
const JOB: &str = "import os, subprocess, sys
job = subprocess.Popen(sys.argv[1:], preexec_fn=os.setpgrp)
print(job.pid, flush=True)
job.wait()";

#[test]
fn stop_and_continue_are_followed_in_both_directions() {
    for (who, switched) in [(Who::Root, false), (Who::User, false), (Who::User, true)] {
        let scratch = Scratch::new(who);
        let mut run = supervised(&scratch).under(["setsid", "python3", "-c", JOB]);
        if switched {
            run = run.by(Who::Root).options(["--user", &format!("{USER}:{USER}")]);
        }
        let mark = mark();
        let mut child = run.command(["sleep", &mark]).spawn();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let monitor: i32 = line.trim().parse().unwrap();
        let (_, command) = init_and_command(monitor);
        let is = |pid: i32, stopped: bool| (state(pid) == Some('T')) == stopped;
        for round in 0..5 {
            // From the caller.
            send(monitor, libc::SIGTSTP);
            await_that("both stopped by TSTP", || is(monitor, true) && is(command, true));
            send(monitor, libc::SIGCONT);
            await_that("both going on", || is(monitor, false) && is(command, false));
            // From the command.
            send(command, [libc::SIGSTOP, libc::SIGTTIN, libc::SIGTTOU, libc::SIGTSTP, libc::SIGSTOP][round]);
            await_that("both stopped by the command", || is(monitor, true) && is(command, true));
            send(monitor, libc::SIGCONT);
            await_that("both going on again", || is(monitor, false) && is(command, false));
        }
        // Quickly one after the other: nobody may be left behind.
        for _ in 0..200 {
            send(monitor, libc::SIGTSTP);
            send(monitor, libc::SIGCONT);
        }
        // Both, and for as long as it takes to follow what is on its way.
        await_that("both going on at last", || {
            (0..30).all(|_| {
                std::thread::sleep(Duration::from_millis(10));
                is(monitor, false) && is(command, false)
            })
        });
        send(monitor, libc::SIGTERM);
        common::run::wait(&mut child);
        assert!(common::within_a_second(|| marked(&mark).is_empty()));
    }
}

#[test]
fn a_group_that_is_stopped_and_continued_goes_on() {
    let scratch = Scratch::new(Who::User);
    let mut child = supervised(&scratch).under(["setsid"]).command(["sleep", "1000"]).spawn();
    let monitor = child.id() as i32;
    let (init, command) = init_and_command(monitor);
    for _ in 0..5 {
        rustix::process::kill_process_group(pid(monitor), rustix::process::Signal::STOP).unwrap();
        await_that("all stopped", || [monitor, init, command].iter().all(|pid| state(*pid) == Some('T')));
        // To confine alone: the init, which stopped with its group, must go on as well.
        send(monitor, libc::SIGCONT);
        await_that("all going on", || [monitor, init, command].iter().all(|pid| state(*pid) != Some('T')));
    }
    send(monitor, libc::SIGTERM);
    assert_eq!(common::run::wait(&mut child).code(), Some(128 + libc::SIGTERM));
}

fn pid(number: i32) -> rustix::process::Pid {
    rustix::process::Pid::from_raw(number).unwrap()
}

trait Shell {
    fn shell_spawn(self, script: &str) -> std::process::Child;
}

impl Shell for Run {
    fn shell_spawn(self, script: &str) -> std::process::Child {
        self.command(["bash", "-c", script]).spawn()
    }
}

#[test]
fn streams_are_the_callers_own_and_their_ends_are_seen() {
    let scratch = Scratch::new(Who::User);
    // The same open file: a position that the command moves has moved for the caller.
    let file =
        std::fs::File::options().read(true).write(true).open(scratch.file("w/own/in", "abcdef")).unwrap();
    let got = supervised(&scratch)
        .stdio(0, file.try_clone().unwrap())
        .shell("head -c 3 >/dev/null; echo to-err >&2");
    assert_eq!((got.code(), got.err.as_str()), (Some(0), "to-err\n"));
    let mut rest = String::new();
    { file }.read_to_string(&mut rest).unwrap();
    assert!(rest.is_empty() || rest == "def", "{rest:?}");
    // Who closes its output is seen to have closed it, while it still runs.
    let mut child = supervised(&scratch).shell_spawn("exec >&-; sleep 20");
    let start = Instant::now();
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(start.elapsed() < Duration::from_secs(10));
    send(child.id() as i32, libc::SIGTERM);
    common::run::wait(&mut child);
    // Standard error as well, and where both are one.
    let start = Instant::now();
    let mut child = supervised(&scratch).shell_spawn("exec 2>&-; sleep 20");
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(start.elapsed() < Duration::from_secs(15), "seen at the end only");
    send(child.id() as i32, libc::SIGTERM);
    common::run::wait(&mut child);
    let (mut reader, writer) = std::io::pipe().unwrap();
    let start = Instant::now();
    let mut child = supervised(&scratch)
        .stdio(1, writer.try_clone().unwrap())
        .stdio(2, writer)
        .shell_spawn("echo both; exec >&- 2>&-; sleep 20");
    reader.read_to_string(&mut text).unwrap();
    assert!(text == "both\n" && start.elapsed() < Duration::from_secs(15), "{text:?}");
    send(child.id() as i32, libc::SIGTERM);
    common::run::wait(&mut child);
    // And who writes to a command that has closed its input is told.
    let mut child = supervised(&scratch).stdio(0, Stdio::piped()).shell_spawn("exec <&-; echo; sleep 20");
    child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
    let error = child.stdin.take().unwrap().write_all(b"x").unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    send(child.id() as i32, libc::SIGTERM);
    common::run::wait(&mut child);
}

#[test]
fn closed_streams_are_no_obstacle() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for closed in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"] {
            let wrapper = format!("\"$@\" {closed}");
            let got = supervised(&scratch).under(["bash", "-c", &wrapper, "caller"]).shell("exit 6");
            assert_eq!(got.code(), Some(6), "{closed}: {}", got.tell());
        }
    }
}

#[test]
fn a_run_past_its_time_is_asked_and_then_ended() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let timed = |script: &str, options: &[&str]| {
            let start = Instant::now();
            let got = Run::confined(&scratch).options(options).shell(script);
            (got.code(), got.out, start.elapsed())
        };
        let (code, _, took) = timed("sleep 30", &["--timeout", "300ms"]);
        assert!(code == Some(124) && (300..20_000).contains(&took.as_millis()), "{code:?} {took:?}");
        // Everything is asked, not only the command.
        let asked = "(trap 'echo inner; exit' TERM; while :; do sleep 0.02; done) & \
            trap 'wait; echo outer; exit' TERM; wait";
        let (code, out, _) = timed(asked, &["--timeout", "2s", "--grace", "20s"]);
        assert_eq!((code, out.as_str()), (Some(124), "inner\nouter\n"));
        // What is stopped is asked too, and what does not answer is ended.
        let (code, _, took) = timed("trap '' TERM; sleep 30", &["--timeout", "300ms", "--grace", "200ms"]);
        assert!(code == Some(124) && took < Duration::from_secs(20), "{code:?} {took:?}");
        let (code, _, took) = timed("kill -STOP $$; sleep 30", &["--timeout", "300ms", "--grace", "200ms"]);
        assert!(code == Some(124) && took < Duration::from_secs(20), "{code:?} {took:?}");
        let (code, out, _) = timed("echo early", &["--timeout", "30s"]);
        assert_eq!((code, out.as_str()), (Some(0), "early\n"));
    }
}

#[test]
fn time_goes_on_while_confine_is_stopped() {
    let scratch = Scratch::new(Who::User);
    let mark = mark();
    let run = Run::confined(&scratch).options(["--timeout", "3s", "--grace", "100ms"]);
    let mut child = run.command(["sleep", &mark]).spawn();
    let monitor = child.id() as i32;
    init_and_command(monitor);
    send(monitor, libc::SIGSTOP);
    assert!(within(Duration::from_secs(20), || marked(&mark).is_empty()));
    send(monitor, libc::SIGCONT);
    assert_eq!(common::run::wait(&mut child).code(), Some(124));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let scratch = Scratch::new(Who::User);
    for options in [
        &["--grace", "1s"][..],
        &["--timeout", "0"],
        &["--timeout", "1.5s"],
        &["--timeout", "10"],
        &["--timeout", "-1s"],
        &["--timeout", "99999999999999999999h"],
        &["--timeout", "5124095576030432h"],
        &["--timeout", "1s", "--grace", "x"],
        &["--require", "tear-down"],
        &["--strict", "--waive", "teardown"],
    ] {
        let got = Run::confined(&scratch).options(options).shell("echo started");
        assert_eq!((got.code(), got.out.as_str()), (Some(125), ""), "{options:?}: {}", got.tell());
        assert!(got.err.starts_with("confine: "), "{options:?}: {}", got.err);
    }
    for options in [&["--timeout", "1h"][..], &["--require=teardown", "--grace", "0s"]] {
        let got = Run::confined(&scratch).options(options).shell("echo started");
        assert_eq!(got.out, "started\n", "{options:?}: {}", got.tell());
    }
}
