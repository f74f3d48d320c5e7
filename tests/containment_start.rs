//! clean-start and what surrounds it: what the command inherits, what confine leaves, and what a hostile tree can do to the start.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::thread;
use std::time::Duration;

use common::run::wait;
use common::table::options;
use common::{EVERYONE, Findings, Run, Scratch, Snapshot, wait_for};
use rustix::fs::{Mode, OFlags};

#[test]
fn the_command_is_the_process_that_was_spawned_and_ends_as_it_ends() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let outcome = Run::confined(&scratch).shell("echo $$");
        findings.claim(outcome.out.trim() == outcome.pid.to_string(), || {
            format!("{who:?}: pid {}: {}", outcome.pid, outcome.tell())
        });
        for status in [0, 1, 2, 42, 124, 125, 126, 127, 128, 130, 255] {
            let outcome = Run::confined(&scratch).shell(format!("exit {status}"));
            findings.claim(outcome.code() == Some(status), || {
                format!("{who:?}: exit {status}: {}", outcome.tell())
            });
        }
        for (name, number) in [("SEGV", 11), ("TERM", 15), ("KILL", 9), ("USR1", 10)] {
            let outcome = Run::confined(&scratch).shell(format!("kill -{name} $$"));
            findings.claim(outcome.signal() == Some(number), || {
                format!("{who:?}: SIG{name}: {}", outcome.tell())
            });
        }
    }
    findings.settle();
}

#[test]
fn a_run_is_silent_and_leaves_the_disk_as_it_was() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for dir in ["w/.git", "w/.git/hooks", "w/.vscode", "w/sub"] {
            scratch.dir(dir);
        }
        scratch.file("w/.git/config", "[core]\n");
        scratch.file("w/.envrc", "\n");
        let before = Snapshot::of(scratch.root());
        let outcome =
            Run::confined(&scratch).options(options(&scratch, &["--ro", "@outside"])).command(["true"]).run();
        findings.claim(outcome.ok() && outcome.out.is_empty() && outcome.err.is_empty(), || {
            format!("{who:?}: {}", outcome.tell())
        });
        let trace = before.difference(&Snapshot::of(scratch.root()));
        findings.claim(trace.is_none(), || format!("{who:?}: {}", trace.unwrap()));
        // Wherever in its start it is killed.
        for step in 0..40 {
            let mut child = Run::confined(&scratch).command(["true"]).spawn();
            thread::sleep(Duration::from_micros(step * 120));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let trace = before.difference(&Snapshot::of(scratch.root()));
        findings.claim(trace.is_none(), || format!("{who:?} killed: {}", trace.unwrap()));
        let twin = Run::confined(&scratch).command(["touch", "made"]).run();
        findings.claim(twin.ok() && before != Snapshot::of(scratch.root()), || {
            format!("{who:?}: {}", twin.tell())
        });
    }
    findings.settle();
}

fn variables(out: &str) -> BTreeMap<&str, &str> {
    out.split('\0').filter_map(|pair| pair.split_once('=')).collect()
}

#[test]
fn only_named_variables_reach_the_command() {
    let dropped = [
        "SECRET_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "GITHUB_TOKEN",
        "ANTHROPIC_API_KEY",
        "SSH_AUTH_SOCK",
        "GPG_AGENT_INFO",
        "DBUS_SESSION_BUS_ADDRESS",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "DOCKER_HOST",
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "LD_AUDIT",
        "BASH_ENV",
        "ENV",
        "PROMPT_COMMAND",
        "BASH_FUNC_ls%%",
        "GIT_SSH_COMMAND",
        "GIT_EXTERNAL_DIFF",
        "GIT_ASKPASS",
        "GIT_DIR",
        "PYTHONSTARTUP",
        "NODE_OPTIONS",
        "PERL5OPT",
        "RUBYOPT",
    ];
    let kept = ["LANG", "LC_ALL", "TERM", "TZ", "NO_COLOR", "CI", "USER", "GIT_AUTHOR_NAME", "SHELL"];
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let with = |mut run: Run| {
            for name in dropped.iter().chain(&kept) {
                // A library that does not exist: named to the loader, it would only be complained of.
                let value = if name.starts_with("LD_") { "/nonexistent/library.so" } else { "C.UTF-8" };
                run = run.env(name, value);
            }
            run
        };
        let outcome = with(Run::confined(&scratch)).command(["env", "-0"]).run();
        let inside = variables(&outcome.out);
        for name in dropped {
            findings.claim(!inside.contains_key(name), || format!("{who:?}: {name} reached the command"));
        }
        for name in kept.iter().chain(&["PATH", "HOME", "CONFINE", "CONFINE_POLICY", "CONFINE_NOTE"]) {
            findings.claim(inside.contains_key(name), || {
                format!("{who:?}: {name} is missing: {}", outcome.tell())
            });
        }
        findings.claim(inside.get("PATH") == std::env::var("PATH").ok().as_deref().as_ref(), || {
            format!("{who:?}: PATH is {:?}", inside.get("PATH"))
        });
        let file = scratch.file("home/env", "FROM_FILE=a=b\n");
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let named = with(Run::confined(&scratch))
            .options(["--env", "SECRET_TOKEN", "--env", "SET=here", "--env", "LD_LIBRARY_PATH", "--env-file"])
            .option(&file)
            .command(["env", "-0"])
            .run();
        let inside = variables(&named.out);
        for (name, value) in [
            ("SECRET_TOKEN", "C.UTF-8"),
            ("SET", "here"),
            ("LD_LIBRARY_PATH", "/nonexistent/library.so"),
            ("FROM_FILE", "a=b"),
        ] {
            findings.claim(inside.get(name) == Some(&value), || {
                format!("{who:?}: {name} is {:?}: {}", inside.get(name), named.err)
            });
        }
        findings
            .claim(!inside.contains_key("GITHUB_TOKEN"), || format!("{who:?}: another variable came along"));
        let twin = with(Run::plain(&scratch)).command(["env", "-0"]).run();
        let outside = variables(&twin.out);
        findings.claim(dropped.iter().all(|name| outside.contains_key(name)), || {
            format!("{who:?}: {}", twin.tell())
        });
    }
    findings.settle();
}

#[test]
fn no_inherited_descriptor_reaches_the_command_but_those_named() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let attack = scratch.attack();
        let secret = scratch.file("outside/secret", "an open secret\n");
        for (number, limit) in
            [("3", "0"), ("9", "0"), ("900", "0"), ("3000", "0"), ("3000", "256"), ("100", "64")]
        {
            let wrapper =
                [attack.as_os_str(), "with-fd".as_ref(), number.as_ref(), secret.as_os_str(), limit.as_ref()];
            let outcome = Run::confined(&scratch).under(wrapper).attack(&scratch, ["descriptor", number]);
            findings.claim(outcome.verdict() == "EBADF" && outcome.denied(), || {
                format!("{who:?}: descriptor {number}, limit {limit}: {}", outcome.tell())
            });
            let named = Run::confined(&scratch)
                .options(["--fd", number])
                .under(wrapper)
                .attack(&scratch, ["descriptor", number]);
            findings.claim(named.out.contains("an open secret"), || {
                format!("{who:?}: --fd {number}, limit {limit}: {}", named.tell())
            });
            let twin = Run::plain(&scratch).under(wrapper).attack(&scratch, ["descriptor", number]);
            findings.claim(twin.out.contains("an open secret"), || {
                format!("{who:?}: descriptor {number}, limit {limit} unconfined: {}", twin.tell())
            });
        }
        let all = Run::confined(&scratch).attack(&scratch, ["list", "/proc/self/fd"]);
        let open = all.out.lines().filter(|line| line.parse::<u32>().is_ok()).count();
        // 0, 1, 2 and the one that lists.
        findings.claim(open == 4, || format!("{who:?}: descriptors inside: {}", all.tell()));

        let directory = scratch.outside();
        let wrapper =
            [attack.as_os_str(), "with-fd".as_ref(), "9".as_ref(), directory.as_os_str(), "0".as_ref()];
        let refused =
            Run::confined(&scratch).options(["--fd", "9"]).under(wrapper).command(["touch", "started"]).run();
        findings.claim(refused.code() == Some(125), || {
            format!("{who:?}: --fd of a directory: {}", refused.tell())
        });
        let closed = Run::confined(&scratch).options(["--fd", "77"]).command(["touch", "started"]).run();
        findings.claim(closed.code() == Some(125), || {
            format!("{who:?}: --fd that is not open: {}", closed.tell())
        });
        findings.claim(!scratch.path("w/started").exists(), || format!("{who:?}: was started"));
    }
    findings.settle();
}

fn dangerous(kind: &str, scratch: &Scratch) -> OwnedFd {
    match kind {
        "directory" => File::open(scratch.outside()).unwrap().into(),
        "O_PATH of a directory" => rustix::fs::open(scratch.outside(), OFlags::PATH, Mode::empty()).unwrap(),
        "O_PATH of a file" => {
            rustix::fs::open(scratch.path("home/.ssh/id"), OFlags::PATH, Mode::empty()).unwrap()
        }
        "network namespace" => File::open("/proc/self/ns/net").unwrap().into(),
        "mount namespace" => File::open("/proc/self/ns/mnt").unwrap().into(),
        "process" => {
            rustix::process::pidfd_open(rustix::process::getpid(), rustix::process::PidfdFlags::empty())
                .unwrap()
        }
        "listening TCP socket" => TcpListener::bind("127.0.0.1:0").unwrap().into(),
        "UDP socket" => UdpSocket::bind("127.0.0.1:0").unwrap().into(),
        "TCP connection" => {
            let server = TcpListener::bind("127.0.0.1:0").unwrap();
            TcpStream::connect(server.local_addr().unwrap()).unwrap().into()
        }
        "listening unix socket" => {
            let _ = fs::remove_file(scratch.path("outside/listener"));
            UnixListener::bind(scratch.path("outside/listener")).unwrap().into()
        }
        _ => UnixDatagram::unbound().unwrap().into(),
    }
}

#[test]
fn standard_streams_that_are_a_way_out_are_refused() {
    let kinds = [
        "directory",
        "O_PATH of a directory",
        "O_PATH of a file",
        "network namespace",
        "mount namespace",
        "process",
        "listening TCP socket",
        "UDP socket",
        "TCP connection",
        "listening unix socket",
        "unix datagram socket",
    ];
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for kind in kinds {
            for number in 0..3 {
                let outcome = Run::confined(&scratch)
                    .stdio(number, dangerous(kind, &scratch))
                    .command(["touch", "started"])
                    .run();
                let started = fs::remove_file(scratch.path("w/started")).is_ok();
                findings.claim(outcome.code() == Some(125) && !started, || {
                    format!("{who:?}: {kind} as {number}: started {started}, {}", outcome.tell())
                });
            }
        }
        for (kind, stream) in [
            ("file", OwnedFd::from(File::open(scratch.path("home/.ssh/id")).unwrap())),
            ("/dev/null", File::open("/dev/null").unwrap().into()),
            ("unix stream", UnixStream::pair().unwrap().0.into()),
        ] {
            let twin = Run::confined(&scratch).stdio(0, stream).command(["true"]).run();
            findings.claim(twin.ok(), || format!("{who:?}: {kind} as stdin: {}", twin.tell()));
        }
    }
    findings.settle();
}

#[test]
fn signal_state_is_the_default_but_what_nohup_asked_for_and_the_umask_stays() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        // Bits 31 and 32 are of glibc's own signals, which its posix_spawn leaves ignored.
        let set = |out: &str, name: &str| {
            let line = out.lines().find_map(|line| line.strip_prefix(name)).unwrap_or(":\tf");
            u64::from_str_radix(line.trim_start_matches(":\t"), 16).unwrap() & !(3 << 31)
        };
        let plain = Run::confined(&scratch).attack(&scratch, ["signals"]);
        for name in ["SigBlk", "SigIgn", "SigCgt"] {
            findings.claim(set(&plain.out, name) == 0, || format!("{who:?}: {name}: {}", plain.tell()));
        }
        let ignoring = ["sh", "-c", "trap '' PIPE INT USR1 HUP; exec \"$@\"", "sh"];
        let outcome = Run::confined(&scratch).under(ignoring).attack(&scratch, ["signals"]);
        findings.claim(set(&outcome.out, "SigIgn") == 1, || {
            format!("{who:?}: ignored before: {}", outcome.tell())
        });
        for mask in ["0022", "0077", "0002"] {
            let outcome = Run::confined(&scratch)
                .under(["sh", "-c", &format!("umask {mask}; exec \"$@\""), "sh"])
                .shell("umask");
            findings
                .claim(outcome.out.trim() == mask, || format!("{who:?}: umask {mask}: {}", outcome.tell()));
        }
    }
    findings.settle();
}

#[test]
fn without_namespaces_the_same_promises_are_kept_or_the_command_does_not_start() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let attack = scratch.attack();
        let wrapper = [attack.as_os_str(), "no-namespaces".as_ref()];
        let victim = scratch.fixture("outside/f");
        let before = Snapshot::of(&victim);
        let script = format!("chmod 777 {0} {0}/file; echo x > {0}/file; touch inside", victim.display());
        let outcome = Run::confined(&scratch).under(wrapper).shell(script);
        let changed = before.difference(&Snapshot::of(&victim));
        findings.claim(changed.is_none() && scratch.path("w/inside").exists(), || {
            format!("{who:?}: {changed:?}, {}", outcome.tell())
        });
        let run = Run::confined(&scratch).options(["--require", "process-hiding"]).under(wrapper);
        let outcome = run.command(["touch", "started"]).run();
        let told = outcome.err.contains("process-hiding") && outcome.err.contains("hint: ");
        findings.claim(outcome.code() == Some(125) && told && !scratch.path("w/started").exists(), || {
            format!("{who:?}: {}", outcome.tell())
        });
        let twin = Run::plain(&scratch).under(wrapper).command(["touch", "started"]).run();
        findings.claim(twin.ok(), || format!("{who:?}: unconfined: {}", twin.tell()));
    }
    findings.settle();
}

#[test]
fn a_signal_to_the_wrapper_is_a_signal_to_the_command() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let script = "trap 'exit 3' TERM; touch up; while :; do sleep 0.02; done";
        let mut child = Run::confined(&scratch).command(["bash", "-c", script]).spawn();
        wait_for(&scratch.path("w/up"));
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let status = wait(&mut child);
        findings.claim(status.code() == Some(3), || format!("{who:?}: {status:?}"));
    }
    findings.settle();
}

#[test]
fn variables_come_through_a_pipe_by_either_name_of_it() {
    let scratch = Scratch::new(common::Who::User);
    let confine = scratch.confine().display().to_string();
    for name in ["/dev/fd/0", "/dev/stdin"] {
        let line = format!("printf 'A=piped\\n' | {confine} -w . --env-file {name} -- sh -c 'echo $A'");
        let outcome = Run::plain(&scratch).command(["sh", "-c", &line]).run();
        assert_eq!(outcome.out, "piped\n", "{name}: {}", outcome.tell());
    }
}
