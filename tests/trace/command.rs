//! That the command notices nothing.

use super::*;

#[test]
fn honest_programs_work_and_nothing_is_listed() {
    const MAKE: &str = "printf 'all: a b c d e f g h\\n%%:\\n\\t@sh -c \"echo $@ > $@; sleep 0.01\"\\n' > Makefile; make -s -j4; ls | wc -l";
    const GIT: &str = "git init -q . && git add Makefile && git -c user.name=a -c user.email=b commit -qm x && git log --format=%s";
    const PYTHON: &str = "python3 -c 'import threading, subprocess
def work(n):
    for _ in range(20): open(\"t%d\" % n, \"w\").write(\"x\")
    subprocess.run([\"true\"], check=True)
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(\"done\")'";
    for who in EVERYONE {
        for namespaces in ["auto", "off"] {
            let scratch = Scratch::new(who);
            for (script, out) in [(MAKE, "12\n"), (GIT, "x\n"), (PYTHON, "done\n")] {
                let outcome = trace(&scratch)
                    .options(["--waive=path-hiding", &format!("--namespaces={namespaces}")])
                    .shell(script);
                assert_eq!(outcome.out, out, "{who:?} {namespaces}: {}", outcome.tell());
                assert_eq!(outcome.err, "confine: nothing was denied\n", "{who:?} {namespaces}: {script}");
            }
        }
    }
}

#[test]
fn status_signals_and_streams_are_the_commands() {
    for who in EVERYONE {
        for namespaces in ["auto", "off"] {
            let scratch = Scratch::new(who);
            for (script, status, out) in [
                ("exit 7", 7, ""),
                ("echo out; kill -TERM $$", 143, "out\n"),
                ("kill -40 $$", 168, ""),
                ("trap 'echo got' USR1; kill -USR1 $$; echo after", 0, "got\nafter\n"),
                // Again and again, as the first may come before the stop.
                (
                    "(while sleep 0.1; do kill -CONT $$; done) & kill -STOP $$; echo continued; kill $!",
                    0,
                    "continued\n",
                ),
                ("sleep 0.1 & kill -STOP $!; kill -CONT $!; wait $!; echo $?", 0, "0\n"),
                ("mkfifo f; (sleep 0.2; echo late; : >f) & exec cat f", 0, "late\n"),
                ("exec sh -c 'exec sh -c \"exit 3\"'", 3, ""),
                ("cat", 0, ""),
            ] {
                let outcome = trace(&scratch)
                    .options(["--waive=path-hiding", &format!("--namespaces={namespaces}")])
                    .command(["sh", "-c", script])
                    .run();
                assert_eq!(
                    (outcome.code(), outcome.out.as_str()),
                    (Some(status), out),
                    "{script}: {}",
                    outcome.tell()
                );
                assert_eq!(outcome.err, "confine: nothing was denied\n", "{script}");
            }
            let outcome = trace(&scratch).options(["--timeout=200ms", "--grace=0s"]).shell("sleep 100");
            assert_eq!(outcome.code(), Some(124), "{}", outcome.tell());
            assert_eq!(trace(&scratch).command(["nonesuch"]).run().code(), Some(127));
        }
    }
}

#[test]
fn a_debugger_inside_is_told_why_it_fails() {
    let scratch = Scratch::new(Who::User);
    let script = "import ctypes\nraise SystemExit(1 if ctypes.CDLL(None).ptrace(0, 0, 0, 0) else 0)";
    let outcome = trace(&scratch).command(["python3", "-c", script]).run();
    let (denial, advice) = &listed(&outcome)[0];
    assert!(
        denial.contains("the trace itself") && advice.contains("without `confine trace`"),
        "{}",
        outcome.tell()
    );
    assert!(plain(&scratch).command(["python3", "-c", script]).run().ok());
}

#[test]
fn nothing_outlives_the_tracer() {
    for who in EVERYONE {
        for namespaces in ["auto", "off"] {
            let scratch = Scratch::new(who);
            let mark = mark();
            let mut child = trace(&scratch)
                .options(["--waive=path-hiding", &format!("--namespaces={namespaces}")])
                .command(["sh", "-c", &format!("setsid sleep {mark} & sleep {mark}")])
                .spawn();
            await_that("both", || {
                marked(&mark)
                    .iter()
                    .filter(|pid| supervise::status(**pid, "Name").is_some_and(|name| name == "sleep"))
                    .count()
                    == 2
            });
            child.kill().unwrap();
            child.wait().unwrap();
            await_that("the end of all", || marked(&mark).is_empty());
        }
    }
}

#[test]
fn on_a_terminal_a_traced_job_stops_and_goes_on() {
    let scratch = Scratch::new(Who::Root);
    let mut terminal = Terminal::new();
    let side = || terminal.slave.try_clone().unwrap();
    let mut shell = Command::new("setsid")
        .args(["--ctty", "bash", "--norc", "--noprofile", "-i"])
        .env_clear()
        .current_dir(scratch.workspace())
        .envs([
            ("PATH", "/usr/bin:/bin"),
            ("TERM", "dumb"),
            ("LANG", "C"),
            ("HOME", scratch.home().to_str().unwrap()),
        ])
        .stdin(side())
        .stdout(side())
        .stderr(side())
        .spawn()
        .unwrap();
    let mark = mark();
    terminal.type_in(&format!("{} trace -w . -- sleep {mark}\n", scratch.confine().display()));
    let command = program(&mark, "sleep");
    await_that("the foreground", || terminal.foreground() != shell.id() as i32);
    for _ in 0..2 {
        terminal.type_in("\x1a");
        terminal.expect("Stopped");
        await_that("stopped", || matches!(state(command), Some('T' | 't')));
        terminal.type_in("fg\n");
        await_that("going on", || state(command) == Some('S'));
        await_that("the foreground", || terminal.foreground() != shell.id() as i32);
    }
    terminal.type_in("\x03");
    await_that("interrupted", || marked(&mark).is_empty());
    terminal.type_in("echo status $?\n");
    terminal.expect("status 130");
    terminal.type_in("exit\n");
    shell.wait().unwrap();
}

#[test]
fn the_kernel_is_asked_to_log_only_when_it_shall() {
    let scratch = Scratch::new(Who::User);
    let confine = scratch.confine();
    for (option, logs) in [("--kernel-log", true), ("--verbose", false)] {
        assert!(plain(&scratch).option(option).command(["true"]).run().ok());
        let words = [confine.to_str().unwrap(), "explain", "--json", "-w", ".", option, "--", "true"];
        let explained: Value = serde_json::from_str(&Run::plain(&scratch).command(words).run().out).unwrap();
        assert_eq!(explained["plan"]["world"]["ruleset"]["log"].as_bool().unwrap_or(false), logs);
    }
}
