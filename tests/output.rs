//! `--max-output`: what comes through, how much, and that nobody's reading or not reading holds anything up.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::fs;
use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use common::{EVERYONE, Findings, Outcome, Run, Scratch, USER, Who};

const SECOND: Duration = Duration::from_secs(1);

fn bounded(scratch: &Scratch, size: &str) -> Run {
    Run::confined(scratch).option("--max-output").option(size)
}

/// Root, a user, and root's command as another user.
fn for_all(size: &str, mut judge: impl FnMut(&Scratch, &dyn Fn() -> Run, &str)) {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        judge(&scratch, &|| bounded(&scratch, size), &format!("{who:?}"));
    }
    let scratch = Scratch::new(Who::User);
    let user = format!("{USER}:{USER}");
    let run = || bounded(&scratch, size).by(Who::Root).option("--user").option(&user);
    judge(&scratch, &run, "another user");
}

/// Must be over within the time; killed if it is not.
fn ends_within(child: &mut Child, time: Duration) -> Option<Option<i32>> {
    let end = Instant::now() + time;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status.code());
        }
        if Instant::now() > end {
            child.kill().unwrap();
            child.wait().unwrap();
            return None;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

fn await_file(path: &std::path::Path) -> bool {
    common::within(20 * SECOND, || path.exists())
}

#[test]
fn of_a_flood_to_both_streams_head_and_tail_come_through_and_the_rest_is_counted() {
    const WRITTEN: usize = 10_000_000;
    const LIMIT: usize = 64 << 10;
    let script = "flood() { echo first-$1; head -c 9999983 /dev/zero | tr '\\0' $1; echo last-$1; }\n\
        flood o & flood e >&2; wait";
    for_all("64K", |_, run, name| {
        let Outcome { status, out, err, .. } = run().shell(script);
        assert_eq!(status.code(), Some(0), "{name}");
        for (text, letter) in [(out, 'o'), (err, 'e')] {
            // 8 and 7 bytes of words, two ends of line.
            let marker = format!("\n[confine: {} bytes left out]\n", WRITTEN - 2 - LIMIT);
            assert_eq!(text.len(), LIMIT + marker.len(), "{name}: {letter}");
            assert!(
                text.contains(&marker),
                "{name}: {letter}: {:?}",
                text.get(LIMIT / 2 - 9..LIMIT / 2 + 60)
            );
            assert!(text.starts_with(&format!("first-{letter}\n{letter}{letter}")), "{name}");
            assert!(text.ends_with(&format!("{letter}{letter}last-{letter}\n")), "{name}");
        }
    });
}

#[test]
fn what_stays_within_the_limit_comes_through_unchanged() {
    for_all("64K", |scratch, run, name| {
        let script = "i=0; while [ $i -lt 500 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done";
        let (bounded, plain) = (run().shell(script), Run::plain(scratch).shell(script));
        assert_eq!((bounded.out, bounded.err), (plain.out, plain.err), "{name}");
        // Exactly the limit, and every byte that there is.
        let all =
            "import os; d = bytes(range(256)) * 256; os.write(1, d[:65536]); open('all', 'wb').write(d)";
        let file = scratch.file("got", "");
        let got = fs::File::create(&file).unwrap();
        let outcome = run().stdio(1, got).command(["python3", "-c", all]).run();
        assert!(outcome.ok(), "{name}: {}", outcome.tell());
        assert!(fs::read(&file).unwrap() == fs::read(scratch.path("w/all")).unwrap(), "{name}");
    });
}

#[test]
fn the_command_has_its_own_pipes_which_it_can_open_by_name() {
    for_all("64K", |_, run, name| {
        let script = "echo by-name > /dev/stdout; echo other > /dev/stderr; readlink /proc/self/fd/1; ls /proc/self/fd";
        let outcome = run().shell(script);
        assert!(outcome.out.starts_with("by-name\npipe:"), "{name}: {}", outcome.tell());
        assert!(outcome.err == "other\n", "{name}: {}", outcome.tell());
        // The last is the directory that ls reads.
        assert!(outcome.out.ends_with("\n0\n1\n2\n3\n"), "{name}: {}", outcome.tell());
    });
    // Without the option there is nothing in between.
    let scratch = Scratch::new(Who::User);
    let file = fs::File::create(scratch.path("direct")).unwrap();
    let out =
        Run::confined(&scratch).option("--timeout=60s").stdio(1, file).shell("stat -Lc %i /proc/self/fd/1");
    let inode = std::os::unix::fs::MetadataExt::ino(&fs::metadata(scratch.path("direct")).unwrap());
    assert_eq!(fs::read_to_string(scratch.path("direct")).unwrap(), format!("{inode}\n"), "{}", out.tell());
}

#[test]
fn over_the_limit_the_run_is_ended_where_that_is_asked_for_and_only_then() {
    for_all("64K", |_, run, name| {
        let deadly = || run().option("--on-output-limit=kill");
        for (script, stream) in
            [("yes", "stdout"), ("yes >&2", "stderr"), ("head -c 65537 /dev/zero", "stdout")]
        {
            let outcome = deadly().shell(script);
            assert_eq!(outcome.code(), Some(137), "{name}: {script}");
            let line = format!(
                "confine: the command was ended: it wrote more than 65536 bytes to {stream} (--max-output)\n"
            );
            assert!(outcome.err.ends_with(&line), "{name}: {script}");
            let passed = if stream == "stdout" { outcome.out.len() } else { outcome.err.len() - line.len() };
            assert_eq!(passed, 65536, "{name}: {script}");
        }
        let within = deadly().shell("head -c 65536 /dev/zero");
        assert_eq!((within.code(), within.out.len(), within.err.as_str()), (Some(0), 65536, ""), "{name}");
    });
}

#[test]
fn the_smallest_limits_hold() {
    let scratch = Scratch::new(Who::User);
    for (limit, wanted) in [
        ("1", "a\n[confine: 9 bytes left out]\n"),
        ("2", "a\n[confine: 8 bytes left out]\nj"),
        ("10", "abcdefghij"),
    ] {
        let outcome = bounded(&scratch, limit).shell("printf abcdefghij");
        assert_eq!(outcome.out, wanted);
    }
}

#[test]
fn children_in_the_background_are_heard_until_the_run_ends() {
    for_all("64K", |_, run, name| {
        let outcome =
            run().shell("(sleep 0.2; echo late; setsid sh -c 'echo apart' &  wait) & echo early; wait");
        assert_eq!(outcome.out, "early\nlate\napart\n", "{name}: {}", outcome.tell());
        let began = Instant::now();
        let ended = run().shell("(sleep 1000; echo never) & echo early; exit 4");
        assert_eq!((ended.code(), ended.out.as_str()), (Some(4), "early\n"), "{name}: {}", ended.tell());
        assert!(began.elapsed() < 5 * SECOND, "{name}");
    });
}

#[test]
fn a_reader_that_does_not_read_holds_the_command_up_as_ever_but_not_what_is_over_the_limit() {
    for_all("32K", |scratch, run, name| {
        let mut child = run().shell_child("head -c 10000000 /dev/zero; touch past");
        assert_eq!(ends_within(&mut child, 20 * SECOND), Some(Some(0)), "{name}");
        assert!(scratch.path("w/past").exists(), "{name}");
        let mut text = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut text).unwrap();
        assert!(text.len() > 32 << 10 && text.len() < 33 << 10, "{name}: {}", text.len());
    });
    for_all("10M", |scratch, run, name| {
        let mut child = run().shell_child("head -c 2000000 /dev/zero; touch past");
        thread::sleep(Duration::from_millis(400));
        assert!(!scratch.path("w/past").exists(), "{name}: nobody has read, and it went on");
        let mut text = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut text).unwrap();
        assert_eq!(text.len(), 2_000_000, "{name}");
        assert_eq!(ends_within(&mut child, 20 * SECOND), Some(Some(0)), "{name}");
    });
}

#[test]
fn memory_is_bounded_whoever_reads() {
    let scratch = Scratch::new(Who::User);
    for size in ["64K", "100M"] {
        let mut child = bounded(&scratch, size).shell_child("yes");
        thread::sleep(Duration::from_millis(700));
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let peak: u64 = peak.trim().strip_suffix(" kB").unwrap().parse().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(peak < 16 << 10, "{size}: {peak} kB");
    }
}

#[test]
fn a_full_pipe_does_not_hold_up_the_end() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        for options in [&["--timeout=3s", "--grace=0s"][..], &["--require=teardown"], &[]] {
            let scratch = Scratch::new(who);
            let run = bounded(&scratch, "10M").options(options);
            let mut child = run.shell_child("touch up; exec yes");
            assert!(await_file(&scratch.path("w/up")), "{who:?} {options:?}");
            let timed = options.iter().any(|option| option.starts_with("--timeout"));
            let wanted = if timed { 124 } else { 128 + libc::SIGTERM };
            thread::sleep(Duration::from_millis(100));
            if !timed {
                let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
                rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
            }
            // The reader never reads: what waits for it waits for ever.
            let time = if timed { 3 * SECOND } else { Duration::ZERO };
            thread::sleep(time);
            let gone = common::within_a_second(|| child.try_wait().unwrap().is_some());
            let ended = gone.then(|| child.wait().unwrap().code());
            child.kill().unwrap();
            findings.claim(ended == Some(Some(wanted)), || format!("{who:?} {options:?}: {ended:?}"));
        }
    }
    findings.settle();
}

/// Past the deadline nothing is passed on any more, and what was lost must not look like all of it.
#[test]
fn who_has_not_read_by_the_deadline_is_told_so_by_the_status() {
    for_all("10M", |_, run, name| {
        // More than a pipe holds and less than two: the command is through with it at once.
        let ends = |read: bool| {
            let mut child = run().option("--timeout=3s").shell_child("head -c 100000 /dev/zero");
            let mut text = Vec::new();
            let mut out = child.stdout.take().unwrap();
            if read {
                out.read_to_end(&mut text).unwrap();
            }
            (ends_within(&mut child, 20 * SECOND), text.len())
        };
        assert_eq!(ends(false), (Some(Some(124)), 0), "{name}");
        assert_eq!(ends(true), (Some(Some(0)), 100_000), "{name}");
    });
}

#[test]
fn an_interrupt_that_was_handled_takes_nothing_from_a_slow_reader() {
    for_all("10M", |scratch, run, name| {
        let script = "import os, signal, time\n\
            got = []; signal.signal(signal.SIGINT, lambda *_: got.append(1))\n\
            open('up', 'w').close()\n\
            while not got: time.sleep(0.02)\n\
            os.write(1, bytes(100000))";
        let mut child = run().command(["python3", "-c", script]).spawn();
        assert!(await_file(&scratch.path("w/up")), "{name}");
        let send = |signal| {
            let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
            rustix::process::kill_process(pid, signal).unwrap();
        };
        send(rustix::process::Signal::INT);
        thread::sleep(SECOND);
        let mut text = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut text).unwrap();
        assert_eq!((ends_within(&mut child, 20 * SECOND), text.len()), (Some(Some(0)), 100_000), "{name}");
        fs::remove_file(scratch.path("w/up")).unwrap();
        // An order is one: who does not read for long gets no more, and the status says so.
        let mut child = run().shell_child("head -c 100000 /dev/zero; touch up");
        assert!(await_file(&scratch.path("w/up")), "{name}");
        thread::sleep(Duration::from_millis(300));
        let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert_eq!(ends_within(&mut child, 20 * SECOND), Some(Some(128 + libc::SIGTERM)), "{name}");
        fs::remove_file(scratch.path("w/up")).unwrap();
    });
}

#[test]
fn a_stream_that_the_command_closes_ends_for_its_reader() {
    for_all("64K", |_, run, name| {
        let mut child = run().shell_child("echo before; exec >&-; exec sleep 1000");
        let began = Instant::now();
        let mut text = String::new();
        child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        let running = child.try_wait().unwrap().is_none();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(text == "before\n" && running && began.elapsed() < 20 * SECOND, "{name}: {text:?}");
    });
}

#[test]
fn a_reader_that_goes_is_felt_by_the_command() {
    for_all("1M", |scratch, run, name| {
        // 141 is SIGPIPE, as without confine; and it may also be caught.
        for script in ["trap '' PIPE; yes 2>/dev/null; echo $? > status", "yes; echo $? > status"] {
            let mut child = run().shell_child(script);
            let mut out = child.stdout.take().unwrap();
            out.read_exact(&mut [0; 10]).unwrap();
            drop(out);
            assert!(ends_within(&mut child, 20 * SECOND).is_some(), "{name}: {script} went on");
            let status = fs::read_to_string(scratch.path("w/status")).unwrap();
            let wanted = if script.starts_with("trap") { "1\n" } else { "141\n" };
            assert_eq!(status, wanted, "{name}: {script}");
        }
    });
}

#[test]
fn the_callers_descriptors_stay_as_they_are() {
    use rustix::fs::{OFlags, fcntl_getfl};
    let scratch = Scratch::new(Who::User);
    let (mut reader, writer) = std::io::pipe().unwrap();
    let kept = writer.try_clone().unwrap();
    let before = fcntl_getfl(kept.as_fd()).unwrap();
    let outcome = bounded(&scratch, "64K").stdio(1, writer).shell("echo once");
    assert!(outcome.ok() && !before.contains(OFlags::NONBLOCK), "{}", outcome.tell());
    assert_eq!(fcntl_getfl(kept.as_fd()).unwrap(), before);
    drop(kept);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "once\n");
    // Appended where the caller was, and no further than that.
    let file = scratch.file("log", "old\n");
    let log = fs::OpenOptions::new().append(true).open(&file).unwrap();
    bounded(&scratch, "64K").stdio(1, log).shell("echo new");
    assert_eq!(fs::read_to_string(&file).unwrap(), "old\nnew\n");
}

#[test]
fn a_socket_as_output_works_and_its_end_is_felt() {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    let scratch = Scratch::new(Who::User);
    let (mut own, theirs) = UnixStream::pair().unwrap();
    let mut child = bounded(&scratch, "1M")
        .stdio(1, OwnedFd::from(theirs))
        .command(["head", "-c", "900000", "/dev/zero"])
        .spawn();
    let mut bytes = Vec::new();
    own.read_to_end(&mut bytes).unwrap();
    assert_eq!((ends_within(&mut child, 20 * SECOND), bytes.len()), (Some(Some(0)), 900_000));
    let (own, theirs) = UnixStream::pair().unwrap();
    let mut child = bounded(&scratch, "1M").stdio(1, OwnedFd::from(theirs)).command(["yes"]).spawn();
    drop(own);
    assert_eq!(ends_within(&mut child, 20 * SECOND), Some(Some(128 + libc::SIGPIPE)));
}

/// A command whose streams the test reads itself, or does not.
trait ShellChild {
    fn shell_child(self, script: &str) -> Child;
}

impl ShellChild for Run {
    fn shell_child(self, script: &str) -> Child {
        self.command(["bash", "-c", script]).spawn()
    }
}
