//! Where there is no PID namespace: what a run leaves behind is ended, however fast it changes its number, and nothing
//! else is. Judged from outside, by what is written by whoever is left.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod supervise;

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{EVERYONE, Findings, Run, Scratch, Who};
use supervise::*;

/// For so long they go on, unless somebody ends them.
const SECONDS: u64 = 5;
const STAY: &str = "60";

struct Hoppers {
    name: String,
    scratch: Scratch,
    child: Child,
}

impl Hoppers {
    /// They are on their way.
    fn start(who: Who, options: &[&str], stay: &str) -> Hoppers {
        let scratch = Scratch::new(who);
        let seconds = SECONDS.to_string();
        let file = scratch.path("w/late");
        let words = ["hop", "4", &seconds, file.to_str().unwrap(), stay].map(str::to_owned);
        let program = scratch.inside_attack().into_os_string();
        let command = std::iter::once(program).chain(words.into_iter().map(Into::into));
        let run = Run::confined(&scratch).options(["--namespaces", "off"]).options(options);
        let mut child = run.command(command).spawn();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        // A result has it in its text.
        out.read_line(&mut line).unwrap();
        assert!(line.contains("hopping"), "{who:?} {options:?}: {line} {:?}", child.wait_with_output());
        Hoppers { name: format!("{who:?} {options:?} {stay}"), scratch, child }
    }

    /// Where they write when they are left.
    fn ended(mut self) -> (String, Scratch, PathBuf) {
        common::run::wait(&mut self.child);
        let file = self.scratch.path("w/late");
        (self.name, self.scratch, file)
    }
}

/// After the last of them would have written.
fn none_is_left(runs: Vec<(String, Scratch, PathBuf)>, last: Instant) {
    let end = last + Duration::from_secs(SECONDS + 2);
    std::thread::sleep(end.saturating_duration_since(Instant::now()));
    let mut findings = Findings::default();
    for (name, _scratch, file) in &runs {
        let left = std::fs::read(file).map_or(0, |written| written.len());
        findings.claim(left == 0, || format!("{name}: {left} processes outlived the run"));
    }
    findings.settle();
}

/// A machine that has others to serve, on which a look at all processes takes many of their turns.
struct Busy(Arc<AtomicBool>);

impl Busy {
    fn begin() -> Busy {
        let over = Arc::new(AtomicBool::new(false));
        for _ in 0..2 * std::thread::available_parallelism().unwrap().get() {
            let over = Arc::clone(&over);
            std::thread::spawn(move || while !over.load(Ordering::Relaxed) {});
        }
        Busy(over)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn pid_hoppers_do_not_outlive_the_run() {
    let busy = Busy::begin();
    let cases: [(&[&str], &str); 5] = [
        (&[], "0"),
        (&["--timeout", "2s"], STAY),
        (&["--timeout", "20s"], "0"),
        (&["--result", "json"], "0"),
        (&["--max-memory", "300M"], "0"),
    ];
    let mut runs = Vec::new();
    for _ in 0..4 {
        for who in EVERYONE {
            for (options, stay) in cases {
                runs.push(Hoppers::start(who, options, stay).ended());
            }
        }
    }
    drop(busy);
    none_is_left(runs, Instant::now());
}

#[test]
fn pid_hoppers_do_not_outlive_the_monitor_or_the_init() {
    let mut runs = Vec::new();
    for _ in 0..4 {
        for who in EVERYONE {
            for of_init in [false, true] {
                let run = Hoppers::start(who, &["--timeout", "50s"], STAY);
                let monitor = run.child.id() as i32;
                let init = children(monitor)[0];
                send(if of_init { init } else { monitor }, libc::SIGKILL);
                runs.push(run.ended());
            }
        }
    }
    none_is_left(runs, Instant::now());
}

#[test]
fn whom_the_caller_had_before_is_not_of_the_run() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let mark = mark();
        let line = format!("sleep {mark} >/dev/null 2>&1 & exec \"$@\"");
        let outcome = Run::confined(&scratch)
            .under(["bash", "-c", &line, "caller"])
            .options(["--namespaces", "off"])
            .shell("sleep 60 & setsid sleep 60 & echo done");
        let left = marked(&mark);
        left.iter().for_each(|pid| send(*pid, libc::SIGKILL));
        assert_eq!((outcome.out.as_str(), outcome.err.as_str()), ("done\n", ""), "{who:?}");
        assert_eq!((left.len(), outcome.code()), (1, Some(0)), "{who:?}");
    }
}

/// Within a PID namespace of the test's own, so that a supervisor that is taken in ends nobody else.
#[test]
fn a_domain_that_is_said_to_be_in_force_and_is_not_ends_nobody() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let attack = scratch.attack();
        let user = if who == Who::Root { "-pf" } else { "-Urpf" };
        let line = format!(
            "sleep 60 & bystander=$!; {} \"$@\"; echo $?; kill $bystander && echo alive",
            format_args!("{} fake-landlock", attack.display())
        );
        let outcome = Run::confined(&scratch)
            .under(["unshare", user, "--mount-proc", "bash", "-c", &line, "caller"])
            .options(["--namespaces", "off"])
            .shell("true");
        assert_eq!(outcome.out, "125\nalive\n", "{who:?}: {}", outcome.tell());
    }
}

#[test]
fn what_the_run_may_do_with_its_own_is_not_less() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        scratch.dir("w/a");
        scratch.dir("w/b");
        let outcome = Run::confined(&scratch).options(["--namespaces", "off"]).shell(
            "sleep 60 & kill -STOP $! && kill -CONT $! && kill $!; wait; \
             echo x >a/f && python3 -c 'import os; os.rename(\"a/f\", \"b/g\"); os.link(\"b/g\", \"a/h\")' && cat a/h; \
             kill -0 $PPID 2>/dev/null || echo out of reach",
        );
        assert_eq!(
            (outcome.out.as_str(), outcome.code()),
            ("x\nout of reach\n", Some(0)),
            "{who:?}: {}",
            outcome.tell()
        );
    }
}
