//! The supervisor itself: what can be seen and reached of it, what it costs while idle, and that nothing is free
//! when it is killed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod supervise;

use std::process::Child;
use std::time::{Duration, Instant};

use common::{Findings, Run, Scratch, USER, Who};
use supervise::*;

/// As root, as a user, and as a user for whom root calls.
fn everyone(mut with: impl FnMut(&Scratch, Run, &str)) {
    for (who, switched) in [(Who::Root, false), (Who::User, false), (Who::User, true)] {
        let scratch = Scratch::new(who);
        let run = Run::confined(&scratch);
        match switched {
            true => {
                let user = format!("--user={USER}:{USER}");
                with(&scratch, run.by(Who::Root).option(user), "for a user");
            }
            false => with(&scratch, run, &format!("{who:?}")),
        }
    }
}

#[test]
fn no_process_of_the_host_can_be_seen() {
    everyone(|_, run, name| {
        let got = run.option("--require=process-hiding").shell(
            "ls -d /proc/[0-9]* | wc -l; cat /proc/[0-9]*/comm | sort | tr '\\n' ' '; echo; \
             test $$ != 1 && readlink /proc/self/ns/pid; grep NSpid /proc/self/status",
        );
        let lines: Vec<&str> = got.out.lines().collect();
        assert!(
            lines[1].split(' ').all(|name| ["bash", "cat", "confine", "sort", "tr", ""].contains(&name)),
            "{}",
            got.tell()
        );
        let own = std::fs::read_link("/proc/self/ns/pid").unwrap();
        assert!(lines[2].starts_with("pid:[") && lines[2] != own.to_str().unwrap(), "{name}: {}", got.tell());
        assert_eq!(lines[3].split_whitespace().count(), 2, "{name}: {}", got.tell());
    });
}

#[test]
fn no_process_of_the_host_can_be_named() {
    // Every number that is not a process inside: nothing answers to it, whatever it is on the host.
    let program = r#"
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
here = {int(name) for name in os.listdir("/proc") if name.isdigit()}
def call(number, *arguments):
    ctypes.set_errno(0)
    return 0 if libc.syscall(number, *arguments) >= 0 else ctypes.get_errno()
mask = ctypes.create_string_buffer(128)
found = set()
for pid in map(int, sys.argv[1:]):
    if pid in here:
        continue
    for name, number, arguments in [("kill", 62, (pid, 0)), ("pidfd_open", 434, (pid, 0)), ("getsid", 124, (pid,)),
            ("getpgid", 121, (pid,)), ("sched_getaffinity", 204, (pid, 128, mask)), ("sched_setaffinity", 203, (pid, 128, mask)),
            ("sched_getscheduler", 145, (pid,)), ("getpriority", 140, (0, pid)), ("prlimit", 302, (pid, 7, 0, mask)),
            ("kcmp", 312, (os.getpid(), pid, 0, 0, 0)), ("tgkill", 234, (pid, pid, 0)), ("ioprio_get", 252, (1, pid)),
            ("ptrace", 101, (16, pid, 0, 0))]:
        error = call(number, *arguments)
        if error not in (errno.ESRCH, errno.EPERM, errno.ENOSYS):
            found.add("%s %d %s" % (name, pid, errno.errorcode.get(error, error)))
        if error == errno.EPERM and name in ("kill", "pidfd_open", "getsid", "tgkill"):
            found.add("%s %d EPERM" % (name, pid))
print(len(found), sorted(found)[:5])
"#;
    let pids: Vec<String> = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter(|name| name.parse::<u32>().is_ok_and(|pid| pid > 40))
        .take(60)
        .collect();
    everyone(|_, run, name| {
        let words = ["python3", "-c", program].into_iter().map(str::to_owned).chain(pids.clone());
        let got = run.option("--require=process-hiding").command(words).run();
        assert_eq!(got.out, "0 []\n", "{name}: {}", got.tell());
    });
}

#[test]
fn the_supervisor_shows_nothing_of_itself() {
    everyone(|_, run, name| {
        let secret = "s3cret-value";
        let got = run
            .option("--require=process-hiding")
            .option(format!("--env=TOKEN={secret}"))
            .env("OUTER_TOKEN", secret)
            .shell(
                "tr '\\0' '|' </proc/1/cmdline; echo; \
                 for f in environ mem maps auxv io stack syscall personality; do cat /proc/1/$f 2>&1 | head -c 300; done; \
                 ls -l /proc/1/fd /proc/1/fdinfo /proc/1/cwd/ /proc/1/root/ /proc/1/map_files 2>&1; readlink /proc/1/exe; \
                 kill -9 1; kill -STOP 1; sleep 0.1; grep State /proc/1/status",
            );
        assert_eq!(got.code(), Some(0), "{name}: {}", got.tell());
        let line = got.out.lines().next().unwrap();
        assert!(line.trim_end_matches('|').ends_with("/bin/confine") && line.len() < 60, "{name}: {line:?}");
        assert!(!got.out.contains(secret) && !got.err.contains(secret), "{name}: {}", got.tell());
        assert!(got.out.contains("Permission denied") && !got.out.contains("-> "), "{name}: {}", got.tell());
        assert!(got.out.ends_with("State:\tS (sleeping)\n"), "{name}: {}", got.tell());
    });
}

#[test]
fn the_supervisor_cannot_be_slowed_from_inside() {
    everyone(|_, run, name| {
        let got = run.option("--require=process-hiding").shell(
            "chrt -i -p 0 1; taskset -p 1 1; renice 19 1; renice 19 -g 0; ionice -c 3 -p 1; prlimit --pid 1 --nofile=1; \
             chrt -p 1; ps -o nice= -p 1",
        );
        let touched = ["SCHED_IDLE", "19\n"].iter().any(|word| got.out.contains(word));
        assert!(!touched && !got.out.contains("new affinity"), "{name}: {}", got.tell());
        // The last of them has answered: they were tried.
        let last = got.out.lines().last().and_then(|line| line.trim().parse::<i32>().ok());
        assert!(last.is_some_and(|nice| nice < 19), "{name}: {}", got.tell());
    });
}

#[test]
fn an_idle_supervisor_is_small_and_sleeps() {
    everyone(|_, run, name| {
        let mark = mark();
        let mut child = run.options(["--require=teardown", "--timeout=1h"]).command(["sleep", &mark]).spawn();
        let monitor = child.id() as i32;
        let (init, _) = init_and_command(monitor);
        let switches = || {
            [monitor, init].map(|pid| {
                ["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"]
                    .map(|name| status(pid, name).unwrap())
            })
        };
        // However long a busy machine takes over the start: then they sleep.
        let mut before = switches();
        await_that("the end of the start", || {
            std::thread::sleep(Duration::from_millis(200));
            std::mem::replace(&mut before, switches()) == switches()
        });
        std::thread::sleep(Duration::from_secs(2));
        assert_eq!(switches(), before, "{name}");
        let memory = |pid: i32, lines: &str| -> u64 {
            let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
            let of = |line: &str| line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap();
            text.lines().filter(|line| line.starts_with(lines)).map(of).sum()
        };
        let both = |lines| memory(monitor, lines) + memory(init, lines);
        let (own, private) = (both("Pss_Anon:"), both("Private_"));
        println!("{name}: {own} kB that no file is behind, {private} kB of private memory");
        assert!(own < 1024, "{name}: {own} kB");
        // Private are also pages of the program as long as nobody else runs it. The kernel maps as many around each
        // as it likes, and without optimisation they are several times as many.
        assert!(private < 1024 || cfg!(debug_assertions), "{name}: {private} kB");
        let open = |pid: i32| {
            let names = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
            names.map(|fd| std::fs::read_link(fd.path()).unwrap().display().to_string()).collect::<Vec<_>>()
        };
        // Their socket and their signals; the monitor also its caller and the standard error.
        assert!(
            open(init).len() == 2 && open(monitor).len() <= 4,
            "{name}: {:?} {:?}",
            open(init),
            open(monitor)
        );
        send(monitor, libc::SIGTERM);
        common::run::wait(&mut child);
    });
}

/// A generator of delays that needs no crate and gives other ones each time.
fn random() -> impl FnMut(u64) -> u64 {
    let mut state = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64 | 1;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    }
}

#[test]
fn nothing_is_free_when_the_supervisor_is_killed_at_any_moment() {
    let mut random = random();
    let mut findings = Findings::default();
    let (mut runs, mut started) = (0, 0);
    let end = Instant::now() + Duration::from_secs(30);
    // Some hundreds, and on a slow machine enough to say something.
    while runs < 100 || Instant::now() < end && runs < 600 {
        let who = [Who::Root, Who::User][runs / 20 % 2];
        let scratch = Scratch::new(who);
        let start = time_to_start(&scratch).as_micros() as u64;
        for victim in ["monitor", "init", "monitor", "both"].repeat(5) {
            runs += 1;
            let mark = mark();
            let mut child = escaping(&scratch, &mark);
            let monitor = child.id() as i32;
            // Half of the kills come while the start is under way, the others about when the command begins.
            let delay = if runs % 2 == 0 { random(start) } else { start * 3 / 4 + random(start) };
            std::thread::sleep(Duration::from_micros(delay));
            let init = children(monitor).first().copied();
            // Until it scrubs them the arguments are confine's own.
            started += u32::from(marked(&mark).iter().any(|pid| *pid != monitor));
            let kill = |pid: i32| {
                let _ = rustix::process::kill_process(
                    rustix::process::Pid::from_raw(pid).unwrap(),
                    rustix::process::Signal::KILL,
                );
            };
            if let (Some(init), true) = (init, victim != "monitor") {
                kill(init);
            }
            if victim != "init" || init.is_none() {
                kill(monitor);
            }
            common::run::wait(&mut child);
            let gone = common::within_a_second(|| marked(&mark).is_empty());
            findings.claim(gone, || format!("{who:?}, {victim} killed: {:?} left", marked(&mark)));
        }
    }
    println!("{runs} runs, {started} of them with the command started");
    assert!(started > 10, "{runs} runs, {started} started");
    findings.settle();
}

fn time_to_start(scratch: &Scratch) -> Duration {
    let mark = mark();
    let start = Instant::now();
    let mut child = escaping(scratch, &mark);
    await_that("the command", || marked(&mark).iter().any(|pid| *pid != child.id() as i32));
    let took = start.elapsed();
    child.kill().unwrap();
    common::run::wait(&mut child);
    took
}

fn escaping(scratch: &Scratch, mark: &str) -> Child {
    let script =
        format!("trap '' TERM HUP INT; (setsid sleep {mark} &); (sleep {mark} &); sleep {mark}; true");
    Run::confined(scratch).option("--require=teardown").command(["bash", "-c", &script]).spawn()
}

#[test]
fn proc_that_cannot_be_written_is_no_obstacle() {
    let scratch = Scratch::new(Who::Root);
    let got = Run::confined(&scratch)
        .option("--require=teardown")
        .under(["unshare", "-m", "bash", "-c", "mount -o remount,bind,ro /proc && exec \"$@\"", "caller"])
        .shell("exit 8");
    assert_eq!(got.code(), Some(8), "{}", got.tell());
}

#[test]
fn a_caller_is_watched_without_pidfd_open_too() {
    // As in containers whose filter is older than the call: x86-64, number 434, ENOSYS.
    let filtered = r#"
import ctypes, os, struct, sys
code = [(0x20, 0, 0, 0), (0x15, 0, 1, 434), (0x06, 0, 0, 0x00050000 | 38), (0x06, 0, 0, 0x7fff0000)]
filter = b"".join(struct.pack("HBBI", *row) for row in code)
buffer = ctypes.create_string_buffer(filter)
program = struct.pack("HxxxxxxQ", len(code), ctypes.addressof(buffer))
libc = ctypes.CDLL(None)
libc.prctl(38, 1, 0, 0, 0)
assert libc.prctl(22, 2, program) == 0
import subprocess
subprocess.Popen(sys.argv[1:]).wait()
"#;
    for who in common::EVERYONE {
        let scratch = Scratch::new(who);
        let mark = mark();
        let mut caller = Run::confined(&scratch)
            .option("--require=teardown")
            .under(["python3", "-c", filtered])
            .command(["bash", "-c", &format!("trap '' HUP TERM; sleep {mark}; true")])
            .spawn();
        let mut monitor = 0;
        await_that("confine", || {
            monitor = children(caller.id() as i32).first().copied().unwrap_or(0);
            monitor != 0 && marked(&mark).iter().any(|pid| status(*pid, "Name").as_deref() == Some("sleep"))
        });
        send(caller.id() as i32, libc::SIGKILL);
        assert!(common::within_a_second(|| marked(&mark).is_empty()), "{who:?}");
        await_that("the end of confine", || state(monitor).is_none_or(|state| state == 'Z'));
        common::run::wait(&mut caller);
    }
}

#[test]
fn a_command_that_was_continued_or_killed_from_inside_ends_the_run() {
    for (signal, status) in [("SIGCONT", 17), ("SIGKILL", 137)] {
        everyone(|_, run, name| {
            let script = format!(
                "import os, signal, time\n\
                 if os.fork() == 0:\n    time.sleep(0.5); os.kill(os.getppid(), signal.{signal}); os._exit(0)\n\
                 os.kill(os.getpid(), signal.SIGSTOP); os._exit(17)"
            );
            let got = run
                .option("--require=teardown")
                .under(["timeout", "--foreground", "20"])
                .command(["/usr/bin/python3", "-c", &script])
                .run();
            assert_eq!(got.code(), Some(status), "{name} {signal}: {}", got.tell());
        });
    }
}

#[test]
fn a_caller_that_ignores_its_children_gets_the_status_all_the_same() {
    everyone(|_, run, name| {
        let ignore = "import os, signal, sys\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n\
                      os.execv(sys.argv[1], sys.argv[1:])";
        let got = run
            .option("--require=teardown")
            .under(["timeout", "--foreground", "20", "/usr/bin/python3", "-c", ignore])
            .shell("exit 44");
        assert_eq!(got.code(), Some(44), "{name}: {}", got.tell());
    });
}
