//! Hosts that lack something: without user namespaces, root of a container, without Landlock, confine inside confine.
//! What cannot be kept is refused with a remedy; once it is waived the rest still holds.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "hosts/mod.rs"]
mod host;

use std::fs;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

use common::table::{Attack, Place, at, by_path, denied, works};
use common::victim::Victim;
use common::{EVERYONE, Findings, Outcome, Run, Scratch, Who};
use host::{kind, on, scratch};

const WAIVED: &[&str] = &["--waive", "metadata-scope", "--waive", "socket-scope"];

/// On the poor host, where nothing has to be given up.
fn poor(scratch: &Scratch) -> Run {
    on(scratch, kind(scratch.who), Run::confined(scratch)).option("--state").option(scratch.path("states/s"))
}

/// The poor host where the broker cannot be had either.
fn poorest(scratch: &Scratch, lack: &str) -> Run {
    on(scratch, lack, on(scratch, kind(scratch.who), Run::confined(scratch)))
}

#[track_caller]
fn assert_refused(outcome: &Outcome, message: &[&str], hint: &[&str]) {
    assert_eq!(outcome.code(), Some(125), "{}", outcome.tell());
    let lines: Vec<&str> = outcome.err.lines().collect();
    assert!(lines.len() <= 2 && lines[0].starts_with("confine: "), "{}", outcome.tell());
    for part in message {
        assert!(lines[0].contains(part), "no {part:?}: {}", outcome.tell());
    }
    for part in hint {
        assert!(lines.get(1).is_some_and(|line| line.contains(part)), "no {part:?}: {}", outcome.tell());
    }
}

#[test]
fn a_host_without_namespaces_keeps_every_default_promise() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let status = scratch.path("w/status");
        let outcome = on(&scratch, kind(who), Run::confined(&scratch))
            .options(["--status-fd", "9"])
            .under([
                scratch.attack().as_os_str(),
                "with-fd".as_ref(),
                "9".as_ref(),
                scratch.file("w/status", "").as_os_str(),
                "0".as_ref(),
            ])
            .shell("touch started");
        assert!(outcome.ok() && outcome.err.is_empty(), "{}", outcome.tell());
        assert!(scratch.path("w/started").exists());
        let told = fs::read_to_string(status).unwrap();
        for kept in ["\"metadata-scope\":[\"broker\"]", "\"socket-scope\":[\"broker\""] {
            assert!(told.contains(kept), "no {kept}: {told}");
        }
    }
}

/// A chain of filters has one listener (seccomp_unotify(2)): a container engine may hold it.
/// In the words of the C library that confine is linked with.
fn busy() -> String {
    confine::error::describe(&std::io::Error::from_raw_os_error(libc::EBUSY))
}

#[test]
fn where_the_broker_cannot_be_had_it_is_refused_at_once_with_reason_and_remedy() {
    for who in EVERYONE {
        let scratch = scratch(who);
        // Private, so a directory for HOME would be made in it.
        fs::set_permissions(scratch.path("tmp"), fs::Permissions::from_mode(0o700)).unwrap();
        let outcome = poorest(&scratch, "listener-held").shell("touch started");
        assert_refused(
            &outcome,
            &[
                "metadata-scope and socket-scope cannot be kept",
                &format!("seccomp user notification: {}", busy()),
                "user namespaces",
            ],
            &["sudo sysctl user.max_user_namespaces=", "`--waive metadata-scope --waive socket-scope`"],
        );
        assert!(!scratch.path("w/started").exists());
        let each = |waived: &[&str]| poorest(&scratch, "listener-held").options(waived).shell("exit 7");
        assert_refused(&each(&WAIVED[..2]), &["socket-scope cannot be kept"], &["--waive socket-scope"]);
        assert_refused(&each(&WAIVED[2..]), &["metadata-scope cannot be kept"], &["--waive metadata-scope"]);
        let twin = each(WAIVED);
        assert_eq!((twin.code(), twin.err.as_str()), (Some(7), ""), "{}", twin.tell());
        assert_eq!(fs::read_dir(scratch.path("tmp")).unwrap().count(), 0);
    }
}

/// As under Docker's default profile on kernels before 5.8's rule for it.
#[test]
fn without_pidfd_getfd_sockets_are_refused_and_metadata_is_kept() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let run = || poorest(&scratch, "no-getfd");
        assert_refused(
            &run().shell("true"),
            &["socket-scope cannot be kept", "pidfd_getfd: operation not permitted"],
            &["--waive socket-scope"],
        );
        let file = scratch.file("outside/file", "x");
        let outcome = run()
            .options(["--waive", "socket-scope"])
            .shell(format!("chmod 600 own/own || exit 9; chmod 600 {}", file.display()));
        assert_eq!(outcome.code(), Some(1), "{}", outcome.tell());
        assert!(outcome.err.contains("Operation not permitted"), "{}", outcome.tell());
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o644);
    }
}

#[test]
fn a_refused_run_makes_no_state_directory() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let state = scratch.path("states/s");
        let run = |waived: &[&str]| {
            poorest(&scratch, "listener-held").options(waived).option("--state").option(&state).shell("true")
        };
        assert_eq!(run(&[]).code(), Some(125));
        assert!(!state.exists(), "a refused run has made the state directory");
        assert!(run(WAIVED).ok() && state.exists());
    }
}

const WRITES: &[Attack] = &[
    at("open-wronly"),
    at("open-append"),
    at("open-through-link"),
    at("open-rdonly-trunc"),
    at("open-creat"),
    at("reopen-rdonly"),
    at("reopen-opath"),
    at("mkdirat"),
    at("mknodat-fifo"),
    at("mknodat-sock"),
    at("symlinkat"),
    at("linkat"),
    at("link-in"),
    at("link-out"),
    at("link-out-proc-fd"),
    at("tmpfile-link"),
    at("own-tmpfile-link"),
    at("renameat"),
    at("rename-exchange"),
    at("rename-in"),
    at("rename-over"),
    at("rename-out"),
    by_path("truncate"),
    at("ftruncate"),
    at("copy-file-range"),
    at("splice"),
    at("mmap-shared"),
    at("unlinkat"),
    at("unlinkat-dir"),
    at("bind-socket"),
];

/// The same tier by request, so that the table is the one of the ordinary run.
const TIER: [&str; 4] = ["--namespaces", "off", "--state", "@home/state"];
const TIER_READABLE: [&str; 6] = [TIER[0], TIER[1], TIER[2], TIER[3], "--ro", "@outside"];

#[test]
fn writes_outside_are_denied_by_landlock_alone() {
    denied(
        WRITES,
        &[
            Place { label: "outside", dir: "outside/f", options: &TIER },
            Place { label: "in a readable root", dir: "outside/f", options: &TIER_READABLE },
        ],
    );
}

#[test]
fn writes_in_the_workspace_work_without_a_view() {
    works(WRITES, &[Place { label: "in the workspace", dir: "w/f", options: &TIER }]);
}

#[test]
fn reads_outside_are_denied_and_inside_allowed() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let secret = scratch.file("outside/secret", "secret\n");
        let mut findings = Findings::default();
        for operation in ["read", "read-rdwr", "read-mmap", "read-opath", "read-sendfile", "open-write"] {
            let outcome = poor(&scratch).attack(&scratch, [operation.as_ref(), secret.as_os_str()]);
            findings.claim(outcome.denied() && outcome.verdict() == "EACCES", || {
                format!("{who:?} {operation}: {}", outcome.tell())
            });
        }
        for (operation, path) in
            [("list", scratch.outside()), ("list", scratch.home()), ("execute", scratch.attack())]
        {
            let outcome = poor(&scratch).attack(&scratch, [operation.as_ref(), path.as_os_str()]);
            findings.claim(outcome.denied(), || format!("{who:?} {operation}: {}", outcome.tell()));
        }
        let twin = poor(&scratch).option("--ro").option(scratch.outside()).shell(format!(
            "cat {} && cat own/own && head -c 1 /etc/passwd >/dev/null && ls /usr/bin >/dev/null",
            secret.display()
        ));
        findings.claim(twin.ok() && twin.out == "secret\nmy own\n", || format!("{who:?}: {}", twin.tell()));
        findings.settle();
    }
}

#[test]
fn secrets_of_the_system_stay_hidden_from_root_of_a_container() {
    let scratch = scratch(Who::Root);
    let mut private = vec!["/etc/shadow".to_owned()];
    for entry in fs::read_dir("/etc").unwrap().map(Result::unwrap) {
        let metadata = entry.metadata().unwrap();
        if metadata.is_file() && metadata.permissions().mode() & 0o004 == 0 {
            private.push(entry.path().to_str().unwrap().to_owned());
        }
    }
    assert!(private.len() > 2, "nothing private found in /etc: {private:?}");
    for path in private {
        let outcome = poor(&scratch).attack(&scratch, ["read-quiet", &path]);
        assert!(outcome.denied(), "{path}: {}", outcome.tell());
        let twin = Run::plain(&scratch).attack(&scratch, ["read-quiet", &path]);
        assert!(twin.ok(), "{path}: {}", twin.tell());
    }
    let twin = poor(&scratch).shell("cat /etc/passwd /etc/hosts >/dev/null");
    assert!(twin.ok(), "{}", twin.tell());
}

#[test]
fn no_internet_socket_can_be_made() {
    for who in EVERYONE {
        let scratch = scratch(who);
        for operation in ["tcp", "udp", "mptcp", "udplite", "sctp", "dccp"] {
            let outcome = poor(&scratch).attack(&scratch, [operation, "127.0.0.1", "9"]);
            let refused = ["EAFNOSUPPORT", "EPROTONOSUPPORT"].contains(&outcome.verdict());
            assert!(outcome.denied() && refused, "{who:?} {operation}: {}", outcome.tell());
        }
        let twin = Run::plain(&scratch).attack(&scratch, ["udp-connect", "127.0.0.1", "9"]);
        assert!(twin.ok(), "{}", twin.tell());
        let twin = poor(&scratch).attack(&scratch, ["socketpair-self"]);
        assert!(twin.ok(), "{}", twin.tell());
    }
}

#[test]
fn other_processes_cannot_be_signalled_traced_or_read() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let mut victim = Victim::start(&scratch);
        let mut findings = Findings::default();
        let (pid, address) = (victim.pid.clone(), victim.address.clone());
        for operation in [
            "kill",
            "kill-probe",
            "tkill",
            "sigqueue",
            "pidfd-signal",
            "take-descriptor",
            "prlimit",
            "setpriority",
        ] {
            let outcome = poor(&scratch).attack(&scratch, [operation, &pid]);
            findings.claim(outcome.denied(), || format!("{who:?} {operation}: {}", outcome.tell()));
        }
        for operation in ["ptrace-attach", "ptrace-seize", "vm-read", "vm-write", "mem-read", "mem-write"] {
            let outcome = poor(&scratch).attack(&scratch, [operation, &pid, &address]);
            findings.claim(outcome.denied(), || format!("{who:?} {operation}: {}", outcome.tell()));
        }
        let environ = poor(&scratch).attack(&scratch, ["read", &format!("/proc/{pid}/environ")]);
        findings.claim(environ.denied(), || format!("{who:?}: {}", environ.tell()));
        findings.claim(victim.alive(), || format!("{who:?}: the victim is gone"));
        let twin = poor(&scratch).attack(&scratch, ["on-child", "kill"]);
        findings.claim(twin.ok(), || format!("{who:?} own child: {}", twin.tell()));
        let twin = poor(&scratch).shell("head -c 1 /proc/self/environ >/dev/null && sleep 9 & kill $!");
        findings.claim(twin.ok(), || format!("{who:?} own child: {}", twin.tell()));
        findings.settle();
    }
}

#[test]
fn abstract_sockets_and_system_v_ipc_of_others_are_out_of_reach() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let name = format!("confine-hosts-{}-{who:?}", std::process::id());
        let _server = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let outcome = poor(&scratch).attack(&scratch, ["abstract-stream", &name]);
        assert!(outcome.denied() && outcome.verdict() == "ECONNREFUSED", "{who:?}: {}", outcome.tell());
        let twin = Run::plain(&scratch).attack(&scratch, ["abstract-stream", &name]);
        assert!(twin.ok(), "{}", twin.tell());
        // Nobody can tell whose an abstract name is, so one's own is refused too.
        let own = poor(&scratch).attack(&scratch, ["abstract-self", &format!("{name}-own")]);
        assert!(own.denied() && own.verdict() == "ECONNREFUSED", "{who:?}: {}", own.tell());
        // Where connect is not brokered, Landlock's scope keeps others' names apart and lets one's own be used.
        let run = || poorest(&scratch, "listener-held").options(WAIVED);
        let outcome = run().attack(&scratch, ["abstract-stream", &name]);
        assert!(outcome.denied() && outcome.verdict() == "EPERM", "{who:?}: {}", outcome.tell());
        let twin = run().attack(&scratch, ["abstract-self", &format!("{name}-own")]);
        assert!(twin.ok(), "{who:?}: {}", twin.tell());
        let outcome = poor(&scratch).attack(&scratch, ["sysv-self"]);
        assert!(outcome.denied(), "{who:?}: {}", outcome.tell());
    }
}

#[test]
fn no_privilege_is_to_be_had() {
    for who in EVERYONE {
        let scratch = scratch(who);
        for words in [
            &["unshare", "0x10000000"][..],
            &["unshare", "0x20000"],
            &["chroot", "/"],
            &["become-other"],
            &["beyond-the-table"],
            &["key-add", "x"],
        ] {
            let outcome = poor(&scratch).attack(&scratch, words);
            assert!(outcome.denied(), "{who:?} {words:?}: {}", outcome.tell());
        }
        let status = poor(&scratch).shell("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status");
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert!(status.out.contains(&format!("{set}:\t0000000000000000")), "{who:?}: {}", status.tell());
        }
        assert!(
            status.out.contains("NoNewPrivs:\t1") && status.out.contains("Seccomp:\t2"),
            "{}",
            status.tell()
        );
    }
}

#[test]
fn home_and_tmpdir_lie_in_the_state_directory_and_are_kept() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let state = scratch.path("states/s");
        let first = poor(&scratch).shell("echo one >$HOME/kept; echo two >$TMPDIR/kept; echo $HOME $TMPDIR");
        let (home, tmp) = (state.join("home"), state.join("tmp"));
        assert_eq!(first.out, format!("{} {}\n", home.display(), tmp.display()), "{}", first.tell());
        let second = poor(&scratch).shell("cat $HOME/kept $TMPDIR/kept; mktemp >/dev/null");
        assert!(second.ok() && second.out == "one\ntwo\n", "{}", second.tell());
        let mode = fs::metadata(&state).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o700);
        let beside = poor(&scratch)
            .shell("touch $HOME/../x; touch /tmp/confine-hosts-x; touch /dev/shm/confine-hosts-x");
        assert!(
            !state.join("x").exists() && !Path::new("/tmp/confine-hosts-x").exists(),
            "{}",
            beside.tell()
        );
        assert_eq!(beside.err.matches("Permission denied").count(), 3, "{}", beside.tell());
    }
}

#[test]
fn plain_devices_and_proc_are_usable() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let outcome = poor(&scratch).shell(
            "set -e; echo x >/dev/null; head -c 4 /dev/urandom | wc -c; head -c 2 /dev/zero | wc -c; cat </dev/null; \
             { echo to >/dev/stderr; } 2>&1 | cat; bash -c 'cat /proc/self/comm'; test -r /proc/cpuinfo; nproc >/dev/null",
        );
        assert!(outcome.ok() && outcome.out == "4\n2\nto\ncat\n", "{who:?}: {}", outcome.tell());
        let disks = poor(&scratch).shell("ls /dev; cat /sys/kernel/debug/x; ls /sys/kernel/debug");
        assert!(!disks.ok() && disks.out.is_empty(), "{}", disks.tell());
    }
}

#[test]
fn toolchains_of_the_real_home_are_found_by_their_variables() {
    for who in EVERYONE {
        let scratch = scratch(who);
        for dir in ["home/.rustup/toolchains", "home/.cargo/registry", "home/.pyenv/versions"] {
            scratch.dir(dir);
        }
        scratch.file("home/.rustup/settings.toml", "rust\n");
        scratch.file("home/.cargo/registry/index", "crates\n");
        scratch.file("home/.cargo/credentials.toml", "a token\n");
        scratch.file("home/.pyenv/version", "3\n");
        let outcome = poor(&scratch).shell(
            "cat $RUSTUP_HOME/settings.toml $CARGO_HOME/registry/index $PYENV_ROOT/version; echo $RUSTUP_HOME; \
             cat $CARGO_HOME/credentials.toml; touch $CARGO_HOME/registry/new",
        );
        let wanted = format!("rust\ncrates\n3\n{}\n", scratch.path("home/.rustup").display());
        assert_eq!(outcome.out, wanted, "{}", outcome.tell());
        assert_eq!(outcome.err.matches("Permission denied").count(), 2, "{}", outcome.tell());
    }
}

#[test]
fn a_hidden_part_of_a_readable_root_is_left_out() {
    for who in EVERYONE {
        let scratch = scratch(who);
        for dir in ["outside/a", "outside/a/b"] {
            scratch.dir(dir);
        }
        let hidden = scratch.file("outside/a/b/hidden", "hidden\n");
        scratch.file("outside/a/b/shown", "shown\n");
        scratch.file("outside/top", "top\n");
        let run = || poor(&scratch).option("--ro").option(scratch.outside());
        let script = format!("cd {}; cat a/b/shown top a/b/hidden", scratch.outside().display());
        let outcome = run().option("--hide").option(&hidden).shell(&script);
        assert_eq!(outcome.out, "shown\ntop\n", "{}", outcome.tell());
        assert!(outcome.err.contains("a/b/hidden: Permission denied"), "{}", outcome.tell());
        assert_eq!(run().shell(&script).out, "shown\ntop\nhidden\n");
    }
}

#[test]
fn what_only_a_view_could_narrow_is_refused() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let part = scratch.dir("w/part");
        for option in ["--ro", "--hide", "--seal"] {
            let outcome = poor(&scratch).option(option).option(&part).shell("true");
            assert_refused(&outcome, &["w/part' cannot be narrowed without a mount namespace"], &["sysctl"]);
        }
        for options in [["--git", "read-only"], ["--hardlinks", "protect"]] {
            let outcome = poor(&scratch).options(options).shell("true");
            assert_refused(&outcome, &[&options.join(" "), "needs a mount namespace"], &["sysctl"]);
        }
        // The twin on the ordinary host.
        let outcome = Run::confined(&scratch).option("--ro").option(&part).shell("test -d part");
        assert!(outcome.ok(), "{}", outcome.tell());
    }
}

#[test]
fn a_mount_inside_the_workspace_is_refused_unless_it_is_made_writable_on_purpose() {
    let scratch = scratch(Who::Root);
    let inner = scratch.dir("w/inner");
    let run = || {
        let wrapper =
            [scratch.attack().as_os_str(), "with-tmpfs".as_ref(), inner.as_os_str()].map(ToOwned::to_owned);
        Run::confined(&scratch)
            .under(wrapper)
            .options(["--namespaces", "off"])
            .option("--state")
            .option(scratch.path("states/s"))
    };
    assert_refused(
        &run().shell("true"),
        &["w/inner' is mounted inside a writable root"],
        &[&format!("`--rw {}`", inner.display())],
    );
    let twin = run().option("--rw").option(&inner).shell("touch inner/x");
    assert!(twin.ok(), "{}", twin.tell());
}

#[test]
fn a_state_directory_that_leads_into_the_workspace_is_refused() {
    for who in EVERYONE {
        let scratch = scratch(who);
        fs::set_permissions(scratch.dir("w/state"), fs::Permissions::from_mode(0o700)).unwrap();
        scratch.link(scratch.path("w/state"), "states/link");
        for named in [scratch.path("states/link"), scratch.path("states/../w/state"), scratch.path("w/new")] {
            let outcome = on(&scratch, kind(who), Run::confined(&scratch))
                .option("--state")
                .option(&named)
                .shell("true");
            assert_refused(&outcome, &["overlaps the writable root"], &["outside every workspace"]);
        }
        assert!(!scratch.path("w/new").exists());
    }
}

#[test]
fn what_the_note_says_of_shared_memory_is_what_comes() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let lock = "python3 -c 'import multiprocessing; multiprocessing.Lock()'";
        let made = format!("{lock} 2>&1 | tail -1; ipcmk --shmem 64 2>&1; tr -s '\\n ' '  ' < $CONFINE_NOTE");
        let outcome = poor(&scratch).shell(&made);
        for wanted in [
            "PermissionError: [Errno 13]",
            "failed: Function not implemented",
            "System V IPC and POSIX message queues give ENOSYS",
            "POSIX semaphores and shared memory EACCES",
        ] {
            assert!(outcome.out.contains(wanted), "{who:?} {wanted}: {}", outcome.tell());
        }
        let twin = Run::confined(&scratch).shell(format!("{lock} && ipcmk --shmem 64 && cat $CONFINE_NOTE"));
        assert!(twin.ok() && !twin.out.contains("System V IPC"), "{who:?}: {}", twin.tell());
    }
}

#[test]
fn a_working_directory_that_is_not_granted_is_refused() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let outcome = poor(&scratch).cwd(scratch.outside()).shell("pwd");
        assert_refused(&outcome, &["the working directory", "is not visible inside"], &["--chdir"]);
        let twin =
            poor(&scratch).cwd(scratch.outside()).option("--chdir").option(scratch.workspace()).shell("pwd");
        assert_eq!(twin.out, format!("{}\n", scratch.workspace().display()), "{}", twin.tell());
    }
}

#[test]
fn everything_readable_can_be_asked_for() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let secret = scratch.file("outside/file", "text\n");
        let outcome =
            poor(&scratch).options(["--ro", "/"]).shell(format!("cat {0}; echo x >>{0}", secret.display()));
        assert_eq!(outcome.out, "text\n", "{}", outcome.tell());
        assert_eq!(fs::read_to_string(&secret).unwrap(), "text\n");
    }
}

#[test]
fn unguarded_control_files_are_named_in_plan_and_note() {
    for who in EVERYONE {
        let scratch = scratch(who);
        for dir in ["w/.git", "w/.git/objects", "w/.git/refs"] {
            scratch.dir(dir);
        }
        scratch.file("w/.git/HEAD", "ref: refs/heads/main\n");
        let config = scratch.file("w/.git/config", "[core]\n");
        let outcome = poor(&scratch).shell("cat $CONFINE_NOTE; echo '[x]' >>.git/config");
        assert!(outcome.ok(), "{}", outcome.tell());
        let path = format!("'{}'", config.display());
        let said = outcome.out.split("cannot guard them").nth(1).is_some_and(|rest| rest.contains(&path));
        assert!(said, "{}", outcome.out);
        let ordinary = Run::confined(&scratch).shell("cat $CONFINE_NOTE; echo '[x]' >>.git/config");
        assert!(!ordinary.ok() && !ordinary.out.contains("cannot guard them"), "{}", ordinary.tell());
    }
}

#[test]
fn the_note_cannot_be_changed_from_inside() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let outcome = poor(&scratch).shell(
            "head -n 1 $CONFINE_NOTE; echo x >>$CONFINE_NOTE; rm -f $CONFINE_NOTE; mv $HOME/x $CONFINE_NOTE",
        );
        assert!(outcome.out.starts_with("You run inside `confine`"), "{}", outcome.tell());
        let note = fs::read_to_string(scratch.path("states/s/note")).unwrap();
        assert!(note.starts_with("You run inside `confine`") && !note.ends_with("x\n"), "{note}");
        assert!(!note.contains("GIVEN UP"), "{note}");
        let waived = poorest(&scratch, "listener-held").options(WAIVED).shell("cat $CONFINE_NOTE").out;
        for promise in ["metadata-scope", "socket-scope"] {
            let given_up = waived.split("GIVEN UP").nth(1).unwrap();
            assert!(given_up.contains(promise), "{waived}");
        }
    }
}

#[test]
fn a_kernel_without_landlock_is_refused_with_and_without_namespaces() {
    for who in EVERYONE {
        let scratch = scratch(who);
        for (kind, why, remedy) in [
            ("no-landlock", "this kernel has no Landlock", "CONFIG_SECURITY_LANDLOCK"),
            ("landlock-off", "switched off", "`lsm=`"),
        ] {
            let everything = ["write-scope", "read-scope", "process-scope", "metadata-scope", "socket-scope"];
            let waived = everything.iter().flat_map(|promise| ["--waive", promise]);
            let run = || on(&scratch, kind, Run::confined(&scratch));
            assert_refused(
                &run().shell("true"),
                &["write-scope and read-scope", "cannot be kept", why],
                &[remedy],
            );
            let outcome = run()
                .options(waived)
                .options(["--namespaces", "off", "--state"])
                .option(scratch.path("states/s"))
                .shell("true");
            assert_refused(&outcome, &["write-scope and read-scope", "cannot be kept", why], &[remedy]);
            assert!(
                !outcome.err.contains("give"),
                "a waiver is offered that would not help: {}",
                outcome.err
            );
        }
    }
}

/// `depth` confines, one inside the other, each with a workspace one directory deeper; `options` for the innermost.
fn nested(scratch: &Scratch, outermost: Run, depth: usize, options: &[&str], script: &str) -> Run {
    let confine = scratch.confine();
    let confine = confine.to_str().unwrap();
    let mut command: Vec<String> = Vec::new();
    let mut workspace = scratch.workspace();
    for level in 1..depth {
        workspace = workspace.join("in");
        command.extend([confine, "--ro", confine, "--workspace"].map(str::to_owned));
        let path = workspace.to_str().unwrap().to_owned();
        command.extend([path.clone(), "--chdir".to_owned(), path]);
        if level + 1 == depth {
            command.extend(options.iter().map(|word| (*word).to_owned()));
        }
        command.push("--".to_owned());
    }
    (1..depth).for_each(|level| drop(scratch.dir(&format!("w{}", "/in".repeat(level)))));
    command.extend(["bash", "-c", script].map(str::to_owned));
    outermost.option("--ro").option(scratch.confine()).command(command)
}

#[test]
fn confine_inside_confine_keeps_every_default_promise_and_is_narrower() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let secret = scratch.file("outside/secret", "secret\n");
        let script = format!(
            "chmod 600 ../own/own; touch ../up; cat {}; echo deep >made; chmod 600 made; touch $HOME/x $TMPDIR/y; exit 5",
            secret.display()
        );
        let outcome = nested(&scratch, Run::confined(&scratch), 2, &[], &script).run();
        assert_eq!((outcome.code(), outcome.out.as_str()), (Some(5), ""), "{who:?}: {}", outcome.tell());
        assert_eq!(outcome.err.lines().count(), 3, "{}", outcome.tell());
        let mode = |name: &str| fs::metadata(scratch.path(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("w/own/own"), mode("w/in/made")), (0o644, 0o600));
        assert!(!scratch.path("w/up").exists());
        // The twin: it is the inner one that denies.
        let outer = nested(&scratch, Run::confined(&scratch), 1, &[], "chmod 600 own/own; touch up").run();
        assert!(outer.ok() && mode("w/own/own") == 0o600, "{}", outer.tell());
    }
}

/// The outer one has mounted `.git` onto itself: nothing foreign came with it.
#[test]
fn confine_inside_confine_works_in_a_repository_whose_control_files_stay_guarded() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let git = "git -c user.name=n -c user.email=n@example.org -c safe.directory=*";
        let made = Run::plain(&scratch).shell("git init -q . && git config a.b c");
        assert!(made.ok(), "{}", made.tell());
        let confine = scratch.confine();
        let inner = format!(
            "{} -w . -- sh -c '{git} commit -q --allow-empty -m inner && touch .git/made; touch .git/hooks/planted; true'",
            confine.display()
        );
        let outcome = Run::confined(&scratch).option("--ro").option(&confine).shell(&inner);
        assert!(outcome.ok() && outcome.err.contains("Read-only file system"), "{who:?}: {}", outcome.tell());
        assert!(scratch.path("w/.git/made").exists(), "{who:?}: {}", outcome.tell());
        assert!(!scratch.path("w/.git/hooks/planted").exists(), "{who:?}");
        let log = Run::plain(&scratch).shell(format!("{git} log --format=%s"));
        assert_eq!(log.out, "inner\n", "{}", log.tell());
    }
}

/// The one listener of a chain is taken; what can be kept is kept all the same.
#[test]
fn where_the_outer_one_has_the_broker_the_inner_one_refuses_or_gives_up() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let outermost = [
            (3, Run::confined as fn(&Scratch) -> Run),
            (2, |scratch: &Scratch| on(scratch, kind(scratch.who), Run::confined(scratch))),
        ];
        for (depth, outer) in outermost {
            let outcome = nested(&scratch, outer(&scratch), depth, &[], "true").run();
            assert_refused(
                &outcome,
                &["metadata-scope and socket-scope cannot be kept", &busy()],
                &["inside confine already", "`--waive metadata-scope --waive socket-scope`"],
            );
            let inner = "/in".repeat(depth - 1);
            let script = "touch ../up; mkdir -p $TMPDIR/a && touch $TMPDIR/a/b made; chmod 640 made; exit 5";
            let outcome = nested(&scratch, outer(&scratch), depth, WAIVED, script).run();
            assert_eq!(outcome.code(), Some(5), "{who:?} {depth}: {}", outcome.tell());
            assert!(outcome.err.contains("../up': Permission denied"), "{}", outcome.tell());
            let made = fs::metadata(scratch.path(&format!("w{inner}/made"))).unwrap();
            assert_eq!(made.permissions().mode() & 0o777, 0o640);
        }
    }
}

#[test]
fn tools_that_make_namespaces_fail_at_once_and_the_note_names_the_option() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let script = "unshare -U true; echo $?; unshare -m true; echo $?; bwrap --ro-bind / / true; echo $?; cat $CONFINE_NOTE";
        for run in [Run::confined(&scratch), poor(&scratch)] {
            let start = std::time::Instant::now();
            let outcome = run.shell(script);
            assert!(outcome.out.starts_with("1\n1\n1\n"), "{who:?}: {}", outcome.tell());
            assert!(outcome.err.matches("Operation not permitted").count() >= 2, "{}", outcome.tell());
            assert!(start.elapsed() < std::time::Duration::from_secs(20), "{:?}", start.elapsed());
            assert!(
                outcome.out.contains("bubblewrap") && outcome.out.contains("`--allow userns`"),
                "{}",
                outcome.out
            );
        }
        let twin = Run::confined(&scratch).options(["--allow", "userns"]).shell("unshare -U true");
        assert!(twin.ok(), "{who:?}: {}", twin.tell());
    }
}

#[test]
fn a_private_loopback_that_cannot_be_had_is_told() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let confine = scratch.confine();
        let explained = on(&scratch, kind(who), Run::plain(&scratch))
            .command([confine.to_str().unwrap(), "explain", "-w", ".", "--", "true"])
            .run();
        assert!(explained.out.contains("a private one needs a network namespace"), "{}", explained.tell());
        let checked =
            on(&scratch, kind(who), Run::plain(&scratch)).command([confine.to_str().unwrap(), "check"]).run();
        assert!(checked.out.contains("\nloopback    none inside"), "{}", checked.tell());
        let noted = poor(&scratch).shell("cat $CONFINE_NOTE").out;
        assert!(noted.contains("a private loopback needs a network namespace"), "{noted}");
        // Nor can the host's be given where nobody can be asked.
        let run = poorest(&scratch, "listener-held").options(WAIVED).options(["--loopback", "host"]);
        assert_refused(
            &run.shell("true"),
            &["--loopback host needs a broker, which cannot be had here", &busy()],
            &[],
        );
        // The twin on the ordinary host.
        let ordinary = Run::confined(&scratch).shell("cat $CONFINE_NOTE").out;
        assert!(
            ordinary.contains("private loopback") && !ordinary.contains("needs a network namespace"),
            "{ordinary}"
        );
    }
}

#[test]
fn check_tells_what_such_a_host_lacks_and_leaves_nothing_behind() {
    for who in EVERYONE {
        let scratch = scratch(who);
        for (kind, failing, fix) in [
            (
                vec![kind(who), "listener-held"],
                "metadata-scope  NOT KEPT",
                "sudo sysctl user.max_user_namespaces=",
            ),
            (vec!["no-landlock"], "write-scope     NOT KEPT", "CONFIG_SECURITY_LANDLOCK"),
        ] {
            let command = [scratch.confine().into_os_string(), "check".into()];
            let run = kind.iter().fold(Run::plain(&scratch), |run, kind| on(&scratch, kind, run));
            let outcome = run.command(command).run();
            assert_eq!((outcome.code(), outcome.err.as_str()), (Some(1), ""), "{}", outcome.tell());
            assert!(outcome.out.contains(failing) && outcome.out.contains(fix), "{}", outcome.out);
        }
        // With a broker everything is kept that an ordinary run asks for.
        let command = [scratch.confine().into_os_string(), "check".into()];
        let outcome = on(&scratch, kind(who), Run::plain(&scratch)).command(command).run();
        assert!(
            outcome.ok() && outcome.out.contains("write-scope     kept      landlock\n"),
            "{}",
            outcome.out
        );
        assert!(outcome.out.contains("metadata-scope  kept      broker\n"), "{}", outcome.out);
        assert_eq!(fs::read_dir(scratch.path("tmp")).unwrap().count(), 0);
    }
}

#[test]
fn an_attempt_on_a_waived_promise_is_seen_to_have_its_effect() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let confine = scratch.confine();
        let run = |waived: &[&str]| {
            let command = [confine.to_str().unwrap(), "check", "--prove"];
            let run = Run::plain(&scratch).command(command.iter().chain(waived));
            on(&scratch, "listener-held", on(&scratch, kind(who), run)).run()
        };
        let outcome = run(WAIVED);
        for line in [
            "metadata-scope  change the mode                      waived   shown/file\n",
            "                a socket that is not shown           waived   the socket in hidden\n",
        ] {
            assert!(outcome.out.contains(line), "{who:?}: no {line:?}: {}", outcome.out);
        }
        assert!(outcome.ok() && outcome.out.contains("The boundary held"), "{}", outcome.out);
        let refused = run(&[]);
        assert_eq!(refused.code(), Some(1), "{}", refused.tell());
        assert!(refused.out.starts_with("not started: metadata-scope and socket-scope"), "{}", refused.out);
        assert_eq!(fs::read_dir(scratch.path("tmp")).unwrap().count(), 0);
    }
}

const NO_CGROUPS: &str = "umount -R /sys/fs/cgroup 2>/dev/null; exec \"$@\"";

#[test]
fn the_note_names_what_the_memory_of_others_and_their_semaphores_give() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let noted = poor(&scratch).shell("cat $CONFINE_NOTE").out;
        let of = |line: &str| noted.lines().find(|found| found.contains(line)).unwrap_or_default().to_owned();
        let shared = poor(&scratch).attack(&scratch, ["sysv-self"]);
        assert!(shared.denied() && of("System V IPC").contains(shared.verdict()), "{}{noted}", shared.tell());
        let posix = poor(&scratch).shell(": >/dev/shm/confine-hosts-x");
        assert!(
            posix.err.contains("Permission denied") && of("multiprocessing").contains("EACCES"),
            "{noted}"
        );
        assert!(noted.contains("java.io.tmpdir"), "{noted}");
        // The twin: with a view both are the command's own, and nothing is said of them.
        let view = Run::confined(&scratch).shell("cat $CONFINE_NOTE; : >/dev/shm/confine-hosts-x");
        assert!(view.ok() && !view.out.contains("System V IPC"), "{}", view.tell());
    }
}

/// What a kernel calls itself says nothing of what a distribution has put into it, or a container's host left out.
#[test]
fn a_kernel_that_gives_itself_another_number_is_taken_for_what_it_does() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let confine = scratch.confine();
        let confine = confine.to_str().unwrap();
        for words in [
            &["check"][..],
            &[
                "explain",
                "-w",
                ".",
                "--max-procs",
                "20",
                "--max-memory",
                "1G",
                "--timeout",
                "9s",
                "--",
                "true",
            ],
            &["explain", "-w", ".", "--namespaces", "off", "--connect", "443", "--", "true"],
        ] {
            let run = |before: &[&str]| {
                let run = Run::plain(&scratch).command([before, &[confine], words].concat());
                // Without a control group a limit rests on what the kernel has of its own.
                let outcome = match who {
                    Who::Root => run.under(["unshare", "-m", "sh", "-c", NO_CGROUPS, "sh"]).run(),
                    Who::User => run.run(),
                };
                let told = outcome.out.lines().filter(|line| !line.starts_with("kernel ")).map(str::to_owned);
                (outcome.code(), outcome.err.clone(), told.collect::<Vec<String>>())
            };
            // UNAME26 of personality(2): 6.18 is told as 2.6.78.
            let uname = Run::plain(&scratch).command(["setarch", "--uname-2.6", "uname", "-r"]).run();
            assert!(uname.out.starts_with("2.6."), "{}", uname.tell());
            let (old, own) = (run(&["setarch", "--uname-2.6"]), run(&[]));
            // Scan times differ.
            let facts = |(code, err, lines): (Option<i32>, String, Vec<String>)| {
                (code, err, lines.into_iter().filter(|line| !line.contains(" ms")).collect::<Vec<_>>())
            };
            assert_eq!(facts(old), facts(own), "{who:?} {words:?}");
        }
    }
}
