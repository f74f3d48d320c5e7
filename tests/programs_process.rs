//! The command is the process that was started: its status, its signals, its streams, its arguments.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod programs;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead as _, BufReader, Seek as _, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use common::{EVERYONE, Findings, Run, Scratch, Who, run};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use programs::{for_everyone, need, works, works_as};

#[test]
fn every_exit_status_passes_unchanged() {
    for_everyone(|scratch| {
        thread::scope(|scope| {
            for quarter in 0..4 {
                scope.spawn(move || {
                    for code in (0..256).filter(|code| code % 4 == quarter) {
                        let outcome =
                            Run::confined(scratch).command(["sh", "-c", &format!("exit {code}")]).run();
                        assert_eq!(outcome.code(), Some(code), "{}", outcome.tell());
                        assert!(outcome.out.is_empty() && outcome.err.is_empty(), "{}", outcome.tell());
                    }
                });
            }
        });
    });
}

#[test]
fn death_by_a_signal_passes_unchanged() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for signal in [1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 13, 14, 15, 24, 25, 31, 34, 64] {
            let outcome = Run::confined(&scratch).command(["sh", "-c", &format!("kill -{signal} $$")]).run();
            findings.claim(outcome.signal() == Some(signal), || format!("{signal}: {}", outcome.tell()));
        }
    }
    findings.settle();
}

#[test]
fn signals_to_the_started_process_reach_the_command() {
    for_everyone(|scratch| {
        for (signal, code) in
            [(Signal::SIGTERM, 41), (Signal::SIGUSR1, 42), (Signal::SIGHUP, 43), (Signal::SIGINT, 44)]
        {
            let script = format!(
                "trap 'exit {code}' {}; echo $$; while :; do sleep 0.01; done",
                signal.as_str().trim_start_matches("SIG")
            );
            let mut child = Run::confined(scratch).command(["sh", "-c", &script]).spawn();
            let mut line = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
            let id = child.id().try_into().unwrap();
            assert_eq!(line.trim().parse(), Ok(id), "the command is another process");
            kill(Pid::from_raw(id), signal).unwrap();
            assert_eq!(run::wait(&mut child).code(), Some(code), "{:?} {signal}", scratch.who);
        }
    });
}

#[test]
fn stopping_and_continuing_act_on_the_command() {
    for_everyone(|scratch| {
        let mut child = Run::confined(scratch).command(["sleep", "0.3"]).spawn();
        let id = Pid::from_raw(child.id().try_into().unwrap());
        let state = || {
            let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
            stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
        };
        kill(id, Signal::SIGSTOP).unwrap();
        let end = Instant::now() + Duration::from_secs(5);
        while state() != 'T' {
            assert!(Instant::now() < end, "not stopped: {}", state());
        }
        kill(id, Signal::SIGCONT).unwrap();
        assert_eq!(run::wait(&mut child).code(), Some(0));
    });
}

#[test]
fn streams_are_the_callers_own_and_nothing_is_relayed() {
    for_everyone(|scratch| {
        let path = scratch.file("w/input", "0123456789");
        let mut input = fs::File::open(&path).unwrap();
        let output = fs::File::create(scratch.path("w/output")).unwrap();
        let outcome = Run::confined(scratch)
            .stdio(0, input.try_clone().unwrap())
            .stdio(1, output)
            .command(["sh", "-c", "dd bs=1 count=4 status=none; readlink /proc/self/fd/1"])
            .run();
        assert!(outcome.ok(), "{}", outcome.tell());
        // A relay would have read ahead.
        assert_eq!(input.stream_position().unwrap(), 4);
        let text = fs::read_to_string(scratch.path("w/output")).unwrap();
        assert_eq!(text, format!("0123{}\n", scratch.path("w/output").display()));
    });
}

#[test]
fn a_long_lived_interpreter_is_driven_over_pipes() {
    need(&["/usr/bin/python3", "node"]);
    for_everyone(|scratch| {
        for (words, ask) in [
            (vec!["/usr/bin/python3", "-u", "-i", "-q"], "print({} * {})\n"),
            (vec!["node", "-i"], "console.log({} * {})\n"),
            (vec!["bash"], "echo $(({} * {}))\n"),
        ] {
            let mut child = Run::confined(scratch).stdio(0, Stdio::piped()).command(&words).spawn();
            let mut input = child.stdin.take().unwrap();
            let mut output = BufReader::new(child.stdout.take().unwrap());
            for number in 1..20 {
                let line = ask.replacen("{}", &number.to_string(), 1).replacen("{}", "1000003", 1);
                input.write_all(line.as_bytes()).unwrap();
                let wanted = (number * 1_000_003).to_string();
                let mut line = String::new();
                while !line.contains(&wanted) {
                    line.clear();
                    assert_ne!(output.read_line(&mut line).unwrap(), 0, "{words:?} ended before {wanted}");
                }
            }
            drop(input);
            assert!(run::wait(&mut child).success(), "{words:?}");
        }
    });
}

#[test]
fn sixty_start_at_once_in_one_workspace() {
    for_everyone(|scratch| {
        scratch.dir("w/.git/hooks");
        thread::scope(|scope| {
            for number in 0..60 {
                scope.spawn(move || {
                    let script =
                        format!("echo {number} > f{number}; cat f{number}; rm f{number}; mkdir d{number}");
                    let outcome = Run::confined(scratch).shell(script);
                    assert!(outcome.ok() && outcome.out == format!("{number}\n"), "{}", outcome.tell());
                });
            }
        });
        assert_eq!(fs::read_dir(scratch.workspace()).unwrap().count(), 60 + 3);
    });
}

#[test]
fn names_and_arguments_of_any_bytes_pass_unchanged() {
    for_everyone(|scratch| {
        let odd = OsString::from_vec(b"new\nline \xff\xfe \x1b[31m'\"$x ".to_vec());
        let workspace = scratch.workspace().join(&odd);
        fs::create_dir(&workspace).unwrap();
        scratch.give(&workspace);
        let at = || Run::bare(scratch).option("--workspace").option(&workspace).cwd(&workspace);
        let script = "touch -- \"$1\" && test \"$PWD\" = \"$2\" && cd /tmp && cd \"$2\" && ls | wc -l";
        let words = [
            OsStr::new("sh"),
            OsStr::new("-c"),
            OsStr::new(script),
            OsStr::new("sh"),
            &odd,
            workspace.as_os_str(),
        ];
        let outcome = at().command(words).run();
        assert!(outcome.ok(), "{}", outcome.tell());
        assert!(workspace.join(&odd).exists(), "the name arrived changed: {}", outcome.tell());
        let named = at().command(["./here"]).run();
        assert_eq!(named.code(), Some(127), "{}", named.tell());
        fs::copy("/bin/true", workspace.join(&odd)).unwrap();
        let mut program = OsString::from("./");
        program.push(&odd);
        let made = at().command([program]).run();
        assert!(made.ok(), "a program of an odd name: {}", made.tell());

        // MAX_ARG_STRLEN: 128 KiB with the closing NUL (execve(2)).
        let long = OsStr::from_bytes(&[b'x'; 131_071]).to_owned();
        let mut words: Vec<OsString> =
            ["sh", "-c", "printf %s \"$@\" | wc -c", "sh"].map(OsString::from).into();
        words.extend(vec![long; 10]);
        let outcome = at().command(words).run();
        assert_eq!(outcome.out.trim(), "1310710", "{}", outcome.tell());
    });
}

#[test]
fn debuggers_work_on_children_of_their_own() {
    need(&["gcc", "gdb", "strace"]);
    for_everyone(|scratch| {
        let script = r#"printf 'int twice(int x) { return 2 * x; }\nint main(void) { return twice(21); }\n' > m.c
            gcc -g -O0 -o m m.c
            gdb -batch -nx -ex 'break twice' -ex run -ex 'print x + 1' -ex bt -ex continue ./m > gdb.log 2>&1
            grep -q '^\$1 = 22$' gdb.log; grep -q 'main () at m.c:2' gdb.log; grep -q 'exited with code 052' gdb.log
            strace -f -o trace sh -c './m; true'; grep -q '+++ exited with 42 +++' trace
            sleep 30 & strace -p $! -o attached & sleep 0.3; kill $!; kill %1; wait; test -e attached"#;
        works(scratch, script);
    });
}

#[test]
fn an_inner_confine_keeps_its_own_promises_and_refuses_what_it_cannot_keep() {
    for_everyone(|scratch| {
        let inner = scratch.path("w/confine");
        common::scratch::copy(&scratch.confine(), &inner);
        scratch.give(&inner);
        let nested = |options: &[&str], script: &str| {
            let mut words = vec!["./confine", "--workspace", "sub", "--chdir", "sub"];
            words.extend(options);
            words.extend(["--", "sh", "-c", script]);
            Run::confined(scratch).command(words).run()
        };
        scratch.dir("w/sub");
        let refused = nested(&["--require", "process-hiding"], "touch started");
        assert_eq!(refused.code(), Some(125), "{}", refused.tell());
        assert!(refused.err.contains("process-hiding cannot be kept"), "{}", refused.tell());
        assert!(!scratch.path("w/sub/started").exists());
        let kept = ["--state", "/tmp/state"];
        let script = "echo in > file && cat file && echo kept > $HOME/x && ! echo out > ../own/own && ! cat ../own/own";
        let outcome = nested(&kept, script);
        assert!(outcome.ok() && outcome.out == "in\n", "{}", outcome.tell());
        assert_eq!(fs::read_to_string(scratch.path("w/own/own")).unwrap(), "my own\n");
        assert_eq!(fs::read_to_string(scratch.path("w/sub/file")).unwrap(), "in\n");
    });
}

#[test]
fn state_keeps_home_and_tmp_and_nothing_else_does() {
    for_everyone(|scratch| {
        let state = scratch.path("home/state");
        let kept = |run: Run| run.option("--state").option(&state);
        let write =
            "echo x > /tmp/x; echo y > ~/y; echo z > /var/tmp/z; mkfifo /tmp/p; test \"$TMPDIR\" = /tmp";
        works_as(scratch, |run| run.env("TMPDIR", "/elsewhere"), write);
        let script = "test ! -e /tmp/x; test ! -e ~/y";
        works(scratch, script);
        let outcome = kept(Run::confined(scratch)).shell(write);
        assert!(outcome.ok(), "{}", outcome.tell());
        let outcome = kept(Run::confined(scratch)).shell("cat /tmp/x ~/y; test -p /tmp/p");
        assert_eq!(outcome.out, "x\ny\n", "{}", outcome.tell());
        works(scratch, script);
        fs::set_permissions(&state, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let open = kept(Run::confined(scratch)).command(["true"]).run();
        assert!(open.code() == Some(125) && open.err.contains("chmod 700"), "{}", open.tell());
    });
}

#[test]
fn what_is_written_to_a_cache_is_kept_with_the_state_of_one_run_at_a_time() {
    for_everyone(|scratch| {
        let state = scratch.path("home/state");
        scratch.dir("home/.cargo/registry");
        scratch.file("home/.cargo/credentials.toml", "a token\n");
        scratch.file("home/.cargo/registry/old", "host\n");
        scratch.file("home/.cargo/registry/gone", "host\n");
        // The layer is the kernel's where a user namespace maps one id; root has none.
        let keeps = scratch.who == Who::User;
        let with =
            |state: &Path, script: &str| Run::confined(scratch).option("--state").option(state).shell(script);
        let kept = |script: &str| with(&state, script);
        let first = kept(
            "cd ~/.cargo/registry; echo new > new; echo changed > old; rm gone; ! rm ../credentials.toml",
        );
        assert!(first.ok(), "{}", first.tell());
        let look = "cd ~/.cargo/registry; ls; cat old; ! cat ../credentials.toml";
        let host = "gone\nold\nhost\n";
        let second = kept(look);
        assert_eq!(second.out, if keeps { "new\nold\nchanged\n" } else { host }, "{}", second.tell());
        for (name, visible) in [("new", keeps), ("old", true), ("gone", !keeps)] {
            let why = format!(
                "{} why -w {} --state {} {}",
                scratch.confine().display(),
                scratch.workspace().display(),
                state.display(),
                scratch.path("home/.cargo/registry").join(name).display()
            );
            let why = Run::plain(scratch).shell(why);
            assert_eq!(why.out.contains(": missing"), !visible, "{name}: {}", why.tell());
        }
        // Neither the cache itself nor another state has any of it.
        assert_eq!(with(&scratch.path("home/other"), look).out, host);
        assert_eq!(Run::confined(scratch).shell(look).out, host);
        assert_eq!(fs::read_to_string(scratch.path("home/.cargo/registry/old")).unwrap(), "host\n");
        if !keeps {
            return;
        }
        // As long as a process of one run lives, another one's writes are its own.
        let daemon = "(setsid sh -c 'echo > ~/started; while [ ! -e ~/stop ]; do sleep 0.05; done; \
                      echo daemon > ~/.cargo/registry/new; echo > ~/stopped' </dev/null >/dev/null 2>&1 &); \
                      while [ ! -e ~/started ]; do sleep 0.01; done";
        assert!(kept(daemon).ok());
        let beside = kept("cd ~/.cargo/registry; cat old; echo beside > new; cat new");
        assert_eq!(beside.out, "host\nbeside\n", "{}", beside.tell());
        assert!(kept("echo > ~/stop; while [ ! -e ~/stopped ]; do sleep 0.01; done; sleep 0.3").ok());
        assert_eq!(kept("cat ~/.cargo/registry/new").out, "daemon\n");
        // A name elsewhere of what is kept would be written too.
        let layer = fs::read_dir(state.join("layers")).unwrap().next().unwrap().unwrap().path();
        fs::hard_link(layer.join("upper/registry/new"), scratch.path("outside/alias")).unwrap();
        let refused = kept("echo hostile > ~/.cargo/registry/new");
        assert!(refused.code() == Some(125) && refused.err.contains("outside"), "{}", refused.tell());
        assert_eq!(fs::read_to_string(scratch.path("outside/alias")).unwrap(), "daemon\n");
    });
}

#[test]
fn state_shows_what_lies_beneath_home_and_keeps_a_planted_link_from_leading_anywhere() {
    for_everyone(|scratch| {
        let state = scratch.path("home/state");
        let workspace = scratch.dir("home/project");
        scratch.dir("home/.rustup/bin");
        scratch.file("home/.rustup/bin/tool", "a tool\n");
        scratch.file("home/.gitconfig", "[user]\n\tname = Named\n");
        let run = |script: &str| {
            Run::bare(scratch)
                .options([
                    "--workspace".as_ref(),
                    workspace.as_os_str(),
                    "--state".as_ref(),
                    state.as_os_str(),
                ])
                .cwd(&workspace)
                .shell(script)
        };
        let first = run(
            "cat ~/.rustup/bin/tool; git config user.name; git config --global user.name Other; echo x > made; ls -A ~",
        );
        assert!(first.ok(), "{}", first.tell());
        assert_eq!(first.out, "a tool\nNamed\n.gitconfig\n.rustup\nproject\n", "{}", first.tell());
        assert_eq!(fs::read_to_string(workspace.join("made")).unwrap(), "x\n");
        let second = run(
            "git config user.name; ! echo y > ~/.rustup/bin/tool; rmdir ~/project; mv ~/project ~/gone; cd /; ls ~/project",
        );
        assert_eq!(second.out, "Other\nmade\n", "{}", second.tell());
        // What an earlier run, or anyone, leaves where a mount point goes.
        let own = state.join("home/.rustup");
        fs::remove_dir(&own).unwrap();
        std::os::unix::fs::symlink(scratch.outside(), &own).unwrap();
        scratch.give(&own);
        let third = run("touch started");
        assert!(third.code() == Some(125) && third.err.contains(".rustup"), "{}", third.tell());
        assert!(!workspace.join("started").exists());
        assert_eq!(fs::read_dir(scratch.outside()).unwrap().count(), 0);
    });
}
