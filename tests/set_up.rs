//! Every call of the set-up fails once, from outside: the command is then not started, with a message, or it is started
//! behind the whole boundary, since the call was one that no promise rests on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "hosts/mod.rs"]
mod host;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

use common::victim::Victim;
use common::{EVERYONE, Findings, Outcome, Run, Scratch, Who};

/// Memory and processes end as such, some of these calls cannot fail at all, and where wait4(2) fails it is a shell that
/// waits for ever.
const NO_STEPS: &[&str] = &[
    "wait4",
    "mmap",
    "munmap",
    "mprotect",
    "mremap",
    "madvise",
    "brk",
    "futex",
    "exit",
    "exit_group",
    "rt_sigreturn",
    "restart_syscall",
    "umask",
    "rt_sigprocmask",
    "close",
    "geteuid",
    "getegid",
    "getuid",
    "getgid",
    "getpid",
    "getppid",
    "gettid",
    "getrandom",
];

/// What a run on this host is made of. Each of these has to end a run in which it fails.
const VIEW: &[&str] = &["mount", "open_tree", "move_mount", "mount_setattr", "pivot_root", "umount2"];
const ALWAYS: &[&str] = &[
    "prctl",
    "capset",
    "landlock_create_ruleset",
    "landlock_add_rule",
    "landlock_restrict_self",
    "seccomp",
    "close_range",
    "execve",
];

struct Ground {
    scratch: Scratch,
    victim: Victim,
    server: TcpListener,
}

impl Ground {
    fn new(who: Who) -> Ground {
        assert!(
            std::process::Command::new("strace").arg("-V").output().is_ok_and(|told| told.status.success()),
            "strace is needed: apt-get install strace"
        );
        let scratch = host::scratch(who);
        // Private, or there would be no place for HOME and TMPDIR without namespaces.
        fs::set_permissions(scratch.path("tmp"), fs::Permissions::from_mode(0o700)).unwrap();
        let victim = Victim::start(&scratch);
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        server.set_nonblocking(true).unwrap();
        Ground { scratch, victim, server }
    }

    /// The command, which tries the boundary and says nothing; `tracer` is what strace is told.
    fn run(&self, options: &[&str], tracer: &[&str]) -> Outcome {
        let scratch = &self.scratch;
        scratch.file("outside/secret", "secret\n");
        let _ = fs::remove_dir_all(scratch.path("w/seen"));
        scratch.dir("w/seen");
        let script = format!(
            ": >seen/started; cat {secret} >seen/secret; echo x >>{secret}; chmod 600 {secret}; touch {secret}.new; \
             kill -0 {victim} && : >seen/signalled; (: >/dev/tcp/127.0.0.1/{port}) && : >seen/connected; \
             for twice in 1 2; do while read -r line; do echo \"$line\"; done </proc/self/status; done >seen/status; \
             echo \"$TOKEN\" >seen/token; : >seen/end; exit 7",
            secret = scratch.path("outside/secret").display(),
            victim = self.victim.pid,
            port = self.server.local_addr().unwrap().port(),
        );
        let mut before = vec!["timeout", "--foreground", "20", "strace", "-f", "-qq"];
        before.extend(tracer);
        let run = Run::confined(scratch).under(before).env("TOKEN", "secret").options(options);
        // What it is denied it need not tell.
        let run = run.command(["bash", "-c", &format!("exec 2>/dev/null; {script}")]);
        run.run()
    }

    fn has(&self, name: &str) -> bool {
        self.scratch.path("w/seen").join(name).exists()
    }

    /// What the command has done that it may not do, seen from outside.
    fn breach(&self) -> Option<String> {
        let read = |name: &str| fs::read_to_string(self.scratch.path(name)).unwrap_or_default();
        let secret = self.scratch.path("outside/secret");
        missing(&[
            ("read", read("w/seen/secret").is_empty()),
            ("write", fs::read_to_string(&secret).unwrap() == "secret\n"),
            ("mode", fs::metadata(&secret).unwrap().permissions().mode() & 0o777 == 0o644),
            ("create", !self.scratch.path("outside/secret.new").exists()),
            ("signal", !self.has("signalled")),
            ("network", !self.has("connected") && self.server.accept().is_err()),
        ])
    }

    /// That, and what a command that came to its end had.
    fn hole(&self) -> Option<String> {
        let read = |name: &str| fs::read_to_string(self.scratch.path(name)).unwrap_or_default();
        let status = read("w/seen/status");
        let empty = |set: &str| status.contains(&format!("{set}:\t0000000000000000\n"));
        self.breach().or_else(|| {
            missing(&[
                ("the end", self.has("end")),
                ("no_new_privs", status.contains("NoNewPrivs:\t1\n")),
                ("seccomp", status.contains("Seccomp:\t2\n")),
                // The bounding set is not a user's to empty without a namespace.
                ("capabilities", ["CapInh", "CapPrm", "CapEff", "CapAmb"].into_iter().all(empty)),
                ("environment", read("w/seen/token") == "\n"),
            ])
        })
    }

    /// The calls up to the execve of the command, and which one of its name and process each is.
    fn calls(&self, options: &[&str]) -> BTreeSet<(String, usize)> {
        let log = self.scratch.file("log", "");
        let outcome = self.run(options, &["-o", log.to_str().unwrap()]);
        assert_eq!((outcome.code(), self.hole()), (Some(7), None), "{}", outcome.tell());
        let text = fs::read_to_string(log).unwrap();
        let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        let mut calls = BTreeSet::new();
        let (mut started, mut before) = (false, BTreeMap::new());
        for line in text.lines() {
            let Some((process, rest)) = line.split_once(' ') else { continue };
            let Some((name, arguments)) = rest.trim_start().split_once('(') else { continue };
            if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                continue;
            }
            let count = counts.entry((process, name)).or_default();
            *count += 1;
            if !started {
                // The program is loaded, and its runtime made, up to here; another process begins to count anew.
                before.insert(name.to_owned(), *count);
                started = name == "sigaltstack";
                continue;
            }
            // Without namespaces these are the parent's, which receives and answers; before or after the start, as it comes.
            if name == "ioctl" && options.contains(&"off") {
                continue;
            }
            let asks = name == "prlimit64" && arguments.contains("NULL, ");
            let early = before.get(name).is_some_and(|before| *count <= *before);
            if !early && !asks && !NO_STEPS.contains(&name) {
                // What is younger than this strace it cannot make fail.
                if !name.starts_with("syscall_") {
                    calls.insert((name.to_owned(), *count));
                }
            }
            if name == "execve" && arguments.contains("\"bash\", \"-c\"") && *count > 1 {
                return calls;
            }
        }
        panic!("no start of the command in {text}");
    }
}

fn missing(facts: &[(&str, bool)]) -> Option<String> {
    let missing: Vec<&str> = facts.iter().filter(|(_, holds)| !holds).map(|(name, _)| *name).collect();
    (!missing.is_empty()).then(|| missing.join(", "))
}

/// All of them, but of a call that is made over and over (a walk over directories) so many, from its first to its last.
fn chosen(calls: BTreeSet<(String, usize)>) -> Vec<(String, usize)> {
    const MANY: usize = 3;
    let mut of: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (name, count) in calls {
        of.entry(name).or_default().push(count);
    }
    let spread = |(name, counts): (String, Vec<usize>)| {
        let last = counts.len() - 1;
        let places: BTreeSet<usize> = (0..MANY).map(|place| place * last / (MANY - 1)).collect();
        places.into_iter().map(move |place| (name.clone(), counts[place]))
    };
    of.into_iter().flat_map(spread).collect()
}

/// strace counts for each process by itself, so that a fork of the command's shell can be the one that fails.
const BASH_CANNOT_FORK: i32 = 254;

fn every_call_fails_once(who: Who, options: &[&str], needed: &[&str]) {
    let ground = Ground::new(who);
    let calls = ground.calls(options);
    assert!(calls.len() > 100, "{calls:?}");
    let calls = chosen(calls);
    let mut findings = Findings::default();
    let mut ending = BTreeSet::new();
    for (number, (name, count)) in calls.into_iter().enumerate() {
        let error = if number % 2 == 0 { "EPERM" } else { "EIO" };
        let inject = format!("inject={name}:error={error}:when={count}");
        let traced = format!("trace={name}");
        let attempt = || ground.run(options, &["-o", "/dev/null", "-e", &traced, "-e", &inject]);
        // strace itself stumbles over a process that is killed while it stops.
        let stumbled = |outcome: &Outcome| outcome.err.contains("strace: ptrace");
        let outcome = (0..5).map(|_| attempt()).find(|outcome| !stumbled(outcome)).expect("strace goes on");
        let tell = || format!("{who:?} {options:?} {name} {count} {error}: {}", outcome.tell());
        if ground.has("started") {
            let hole = ground.hole();
            // The parent that answers the command's calls may fail later, and holds no stream to tell it; the command then
            // ends in the midst.
            let ended =
                outcome.code() == Some(125) || (name == "clone" && outcome.code() == Some(BASH_CANNOT_FORK));
            let right =
                if ended { ground.breach().is_none() } else { hole.is_none() && outcome.code() == Some(7) };
            findings.claim(right, || format!("{hole:?} {}", tell()));
            continue;
        }
        let told = matches!(outcome.code(), Some(125..=127)) && outcome.err.starts_with("confine: ");
        findings.claim(told, tell);
        ending.insert(name);
    }
    for name in needed {
        findings
            .claim(ending.contains(*name), || format!("{who:?} {options:?}: a failing {name} ended no run"));
    }
    findings.settle();
}

#[test]
fn no_call_that_fails_opens_the_boundary_of_a_user() {
    every_call_fails_once(Who::User, &[], &[VIEW, ALWAYS].concat());
}

#[test]
fn no_call_that_fails_opens_the_boundary_of_root() {
    every_call_fails_once(Who::Root, &[], &[VIEW, ALWAYS].concat());
}

#[test]
fn no_call_that_fails_opens_the_boundary_of_a_user_without_namespaces() {
    every_call_fails_once(Who::User, &["--namespaces", "off"], ALWAYS);
}

#[test]
fn no_call_that_fails_opens_the_boundary_of_root_without_namespaces() {
    every_call_fails_once(Who::Root, &["--namespaces", "off"], ALWAYS);
}

/// The namespace is there by then, and cannot be left again: what would come is neither tier.
#[test]
fn an_id_map_that_cannot_be_written_is_refused_with_the_way_round() {
    for who in EVERYONE {
        // A read-only /proc, and a Landlock layer that lets nothing be written there.
        for (outer, why) in [("auto", "read-only file system"), ("off", "permission denied")] {
            let scratch = host::scratch(who);
            fs::set_permissions(scratch.path("tmp"), fs::Permissions::from_mode(0o700)).unwrap();
            let confine = scratch.confine();
            let inner = |words: &[&str]| {
                let run = Run::confined(&scratch).options(["--allow", "userns", "--namespaces", outer]);
                let mut command = vec![confine.to_str().unwrap(), "-w", "."];
                command.extend(words);
                command.extend(["--", "touch", "started"]);
                run.option("--ro").option(&confine).command(command).run()
            };
            let outcome = inner(&[]);
            let lines: Vec<&str> = outcome.err.lines().collect();
            assert_eq!((outcome.code(), lines.len()), (Some(125), 2), "{who:?} {outer}: {}", outcome.tell());
            assert!(
                lines[0].starts_with("confine: cannot map the user and group id: ") && lines[0].contains(why),
                "{who:?} {outer}: {}",
                outcome.tell()
            );
            assert!(lines[1].contains("`--namespaces off`"), "{}", outcome.tell());
            assert!(!scratch.path("w/started").exists());
            // The way round. A parent that answers calls is had once in a chain, and the outer one may have it.
            let waived = ["--namespaces", "off", "--waive", "metadata-scope", "--waive", "socket-scope"];
            let twin = inner(if outer == "off" { &waived } else { &waived[..2] });
            assert!(twin.ok() && scratch.path("w/started").exists(), "{who:?} {outer}: {}", twin.tell());
        }
    }
}
