//! clean-start and what surrounds it: what the command inherits, what confine leaves, and what a hostile tree can do to the start.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use common::run::wait;
use common::table::options;
use common::{EVERYONE, Findings, Run, Scratch, Snapshot, Who};
use rustix::fs::{CWD, Mode, OFlags, RenameFlags};

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
fn a_mount_inside_the_workspace_is_read_only_unless_it_was_named() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        scratch.dir("w/mounted");
        let attack = scratch.attack();
        let id = who.id().to_string();
        let (from, to) = (scratch.path("outside/f"), scratch.path("w/mounted"));
        let wrapper = [
            attack.as_os_str(),
            "with-bind".as_ref(),
            from.as_os_str(),
            to.as_os_str(),
            attack.as_os_str(),
            "as".as_ref(),
            id.as_ref(),
            id.as_ref(),
        ];
        let words = |operation: &str| [operation.to_owned(), to.to_str().unwrap().to_owned()];
        for operation in
            ["open-wronly", "open-creat", "mkdirat", "unlinkat", "fchmodat", "utimensat", "fsetxattr"]
        {
            scratch.fixture("outside/f");
            let before = Snapshot::of(&from);
            let outcome =
                Run::confined(&scratch).by(Who::Root).under(wrapper).attack(&scratch, words(operation));
            let changed = before.difference(&Snapshot::of(&from));
            findings.claim(outcome.denied() && changed.is_none(), || {
                format!("{who:?}: {operation}: {changed:?}, {}", outcome.tell())
            });
            for grant in ["--rw", "--workspace"] {
                scratch.fixture("outside/f");
                let before = Snapshot::of(&from);
                let twin = Run::confined(&scratch)
                    .by(Who::Root)
                    .option(grant)
                    .option(&to)
                    .under(wrapper)
                    .attack(&scratch, words(operation));
                findings.claim(twin.ok() && before != Snapshot::of(&from), || {
                    format!("{who:?}: {operation} with {grant}: {}", twin.tell())
                });
            }
        }
        scratch.fixture("outside/f");
        let read =
            Run::confined(&scratch).by(Who::Root).under(wrapper).command(["cat", "mounted/file"]).run();
        findings.claim(read.out.contains("the original text"), || format!("{who:?}: read: {}", read.tell()));
    }
    findings.settle();
}

#[test]
fn a_device_node_in_the_workspace_keeps_the_command_from_starting() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        scratch.dir("w/deep");
        let node = scratch.path("w/deep/device");
        // Number 1:3, which swallows what is written and gives nothing.
        let made =
            Run::plain(&scratch).by(Who::Root).attack(&scratch, ["mknod-null".as_ref(), node.as_os_str()]);
        assert!(made.ok(), "{}", made.tell());
        scratch.give(&node);
        let outcome = Run::confined(&scratch).command(["touch", "started"]).run();
        findings.claim(outcome.code() == Some(125) && outcome.err.contains("device"), || {
            format!("{who:?}: {}", outcome.tell())
        });
        findings.claim(!scratch.path("w/started").exists(), || format!("{who:?}: was started"));
        fs::remove_file(&node).unwrap();
        let twin = Run::confined(&scratch).command(["touch", "started"]).run();
        findings.claim(twin.ok(), || format!("{who:?}: without the node: {}", twin.tell()));
    }
    findings.settle();
}

const GIT_ATTACK: &str = "for f in .git/hooks/x .git/config .git/info/attributes .envrc .vscode/tasks.json; do \
     (echo pwned > $f) 2>/dev/null; cat $f 2>/dev/null; done; mkdir .git/hooks/d 2>/dev/null; true";

#[test]
fn links_planted_where_mount_points_go_lead_nowhere() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        for layout in [
            "git is a link",
            "parts are links",
            "git is a file",
            "links to themselves",
            "links through the root of a process",
        ] {
            let scratch = Scratch::new(who);
            for dir in ["outside/git", "outside/git/hooks", "outside/git/info", "outside/vscode"] {
                scratch.dir(dir);
            }
            for file in ["git/config", "git/hooks/x", "git/info/attributes", "envrc", "vscode/tasks.json"] {
                scratch.file(&format!("outside/{file}"), "outside secret\n");
            }
            let outside = scratch.outside();
            match layout {
                "git is a link" => {
                    scratch.link("../outside/git", "w/.git");
                }
                "git is a file" => {
                    scratch.file("w/.git", &format!("gitdir: {}/git\n", outside.display()));
                }
                "parts are links" => {
                    scratch.dir("w/.git");
                    for part in ["hooks", "config", "info"] {
                        scratch.link(outside.join("git").join(part), &format!("w/.git/{part}"));
                    }
                }
                "links to themselves" => {
                    scratch.dir("w/.git");
                    for part in ["hooks", "config", "info"] {
                        scratch.link(part, &format!("w/.git/{part}"));
                    }
                }
                _ => {
                    scratch.dir("w/.git");
                    let through = format!("/proc/self/root{}/git", outside.display());
                    for part in ["hooks", "config", "info"] {
                        scratch.link(format!("{through}/{part}"), &format!("w/.git/{part}"));
                    }
                }
            }
            scratch.link(outside.join("envrc"), "w/.envrc");
            scratch.link("../outside/vscode", "w/.vscode");
            let before = Snapshot::of(&outside);
            let outcome =
                Run::confined(&scratch).shell(format!("{GIT_ATTACK}; rm -rf .git/hooks/ .git/hooks; true"));
            let changed = before.difference(&Snapshot::of(&outside));
            findings.claim(changed.is_none() && !outcome.out.contains("outside secret"), || {
                format!("{who:?}: {layout}: {changed:?}, {}", outcome.tell())
            });
            findings.claim(outcome.ok(), || format!("{who:?}: {layout}: does not start: {}", outcome.tell()));
            let twin = Run::plain(&scratch).shell(GIT_ATTACK);
            let changed = before != Snapshot::of(&outside);
            findings.claim(changed, || format!("{who:?}: {layout}: {}", twin.tell()));
        }
    }
    findings.settle();
}

#[test]
fn what_git_runs_by_itself_is_guarded_in_an_ordinary_repository() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let attacks = [
            "echo pwned > .git/hooks/x",
            "echo pwned > .git/hooks/new",
            "rm .git/hooks/x",
            "echo pwned > .git/config",
            "rm -f .git/config",
            "mv .git/hooks .git/other",
            "mv .git moved",
            "echo pwned > .git/new-config && mv -f .git/new-config .git/config",
            "chmod 777 .git/hooks/x",
        ];
        for script in attacks {
            let _ = fs::remove_dir_all(scratch.path("w/.git"));
            for dir in ["w/.git", "w/.git/hooks", "w/.git/info"] {
                scratch.dir(dir);
            }
            for file in ["w/.git/config", "w/.git/hooks/x", "w/.git/info/attributes"] {
                scratch.file(file, "as it was\n");
            }
            let before = ["w/.git/config", "w/.git/hooks"].map(|path| Snapshot::of(&scratch.path(path)));
            let outcome = Run::confined(&scratch).shell(script);
            let same = ["w/.git/config", "w/.git/hooks"].iter().zip(&before).all(|(path, before)| {
                scratch.path(path).exists() && *before == Snapshot::of(&scratch.path(path))
            });
            findings.claim(same && !outcome.ok(), || {
                format!("{who:?}: {script}: same {same}, {}", outcome.tell())
            });
        }
        let work = Run::confined(&scratch)
            .shell("echo x > .git/index && mkdir .git/objects && mv .git/index .git/HEAD");
        findings.claim(work.ok(), || format!("{who:?}: the rest of .git: {}", work.tell()));
        let free = Run::confined(&scratch)
            .options(["--git", "free"])
            .shell("echo ours > .git/hooks/x && echo ours > .git/config");
        findings.claim(free.ok(), || format!("{who:?}: --git free: {}", free.tell()));
    }
    findings.settle();
}

/// Exchanges two names as fast as it can while a test runs.
fn while_swapping(one: &Path, other: &Path, run: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut turns = 0u64;
            while !stop.load(Ordering::Relaxed) || turns % 2 == 1 {
                rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
                turns += 1;
                // Long enough that some starts see one state only.
                thread::sleep(Duration::from_micros(turns % 17 * 60));
            }
        });
        // A claim that fails must not leave the other thread turning.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        stop.store(true, Ordering::Relaxed);
        if let Err(cause) = result {
            std::panic::resume_unwind(cause);
        }
    });
}

#[test]
fn a_workspace_that_is_swapped_for_a_refused_one_is_never_written() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        // HOME is too broad; the other holds a link to a file elsewhere.
        for victim in ["home", "outside/aliased"] {
            let scratch = Scratch::new(who);
            scratch.dir("outside/aliased");
            let text = scratch.file("outside/text", "precious\n");
            fs::hard_link(text, scratch.path("outside/aliased/file")).unwrap();
            let swapped = scratch.link(scratch.path(victim), "swapped");
            let before = Snapshot::of(&scratch.path(victim));
            let workspace = scratch.workspace();
            let (mut started, mut refused) = (0, 0);
            while_swapping(&workspace, &swapped, || {
                for _ in 0..60 {
                    let script = "cd \"$1\" && echo pwned > pwned; echo pwned > \"$1/file\"";
                    let words =
                        ["sh".as_ref(), "-c".as_ref(), script.as_ref(), "sh".as_ref(), workspace.as_os_str()];
                    let outcome = Run::confined(&scratch).cwd("/usr").command(words).run();
                    match outcome.code() {
                        Some(125) => refused += 1,
                        _ => started += 1,
                    }
                }
            });
            let changed = before.difference(&Snapshot::of(&scratch.path(victim)));
            findings.claim(changed.is_none(), || format!("{who:?}: {victim}: {changed:?}"));
            // The race has to have been run, both ways.
            findings.claim(started > 0 && refused > 0, || {
                format!("{who:?}: {victim}: started {started}, refused {refused}")
            });
        }
    }
    findings.settle();
}

#[test]
fn parts_of_the_workspace_that_are_swapped_for_links_lead_nowhere() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        for part in ["w/.git/hooks", "w/.git", "w/part"] {
            let scratch = Scratch::new(who);
            for dir in ["w/.git", "w/.git/hooks", "w/.git/info", "w/part", "outside/hooks", "outside/info"] {
                scratch.dir(dir);
            }
            for file in ["w/.git/config", "outside/config", "outside/x", "outside/hooks/x", "w/part/x"] {
                scratch.file(file, "as it was\n");
            }
            let swapped = scratch.link(scratch.outside(), "swapped");
            let before = Snapshot::of(&scratch.outside());
            while_swapping(&scratch.path(part), &swapped, || {
                for _ in 0..40 {
                    let protect =
                        options(&scratch, if part == "w/part" { &["--ro", "@w/part"] } else { &[] });
                    let script = format!("{GIT_ATTACK}; echo pwned > part/x");
                    Run::confined(&scratch).options(protect).shell(&script);
                }
            });
            let changed = before.difference(&Snapshot::of(&scratch.outside()));
            findings.claim(changed.is_none(), || format!("{who:?}: {part}: {changed:?}"));
        }
    }
    findings.settle();
}

#[test]
fn without_namespaces_the_command_does_not_start_by_default() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let attack = scratch.attack();
        let wrapper = [attack.as_os_str(), "no-namespaces".as_ref()];
        let state = scratch.dir("state");
        fs::set_permissions(&state, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        for (grants, named) in [(&[][..], "HOME"), (&["--state", "@state"], "metadata-scope")] {
            let run = Run::confined(&scratch).options(options(&scratch, grants)).under(wrapper);
            let outcome = run.command(["touch", "started"]).run();
            let told = outcome.err.contains(named) && outcome.err.contains("hint: ");
            findings.claim(outcome.code() == Some(125) && told, || {
                format!("{who:?}: {grants:?}: {}", outcome.tell())
            });
        }
        findings.claim(!scratch.path("w/started").exists(), || format!("{who:?}: was started"));
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
        for _ in 0..500 {
            if scratch.path("w/up").exists() {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let status = wait(&mut child);
        findings.claim(status.code() == Some(3), || format!("{who:?}: {status:?}"));
    }
    findings.settle();
}
