//! The ceilings of a whole tree: each is reached by a victim of the test's own, small enough for any machine, and
//! each has a twin that stays below and is let be. Run as root, every claim is made for root (who may make control
//! groups where the host has any) and for an ordinary user (who has none, so that the supervisor samples).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

const STRANGER: u32 = 54321;

/// None is whoever runs the tests.
fn identities() -> Vec<Option<u32>> {
    if nix::unistd::geteuid().is_root() { vec![None, Some(STRANGER)] } else { vec![None] }
}

/// A directory for everybody, with the workspace in it.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("confine-ceilings-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        fs::create_dir(path.join("workspace")).unwrap();
        common::scratch::copy(&common::scratch::confine_program(), &path.join("confine"));
        for path in [&path, &path.join("workspace")] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
        }
        Scratch(path)
    }

    fn workspace(&self) -> PathBuf {
        self.0.join("workspace")
    }

    /// Where an ordinary user can run it.
    fn program(&self) -> PathBuf {
        self.0.join("confine")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[derive(Debug)]
struct Ended {
    status: Option<i32>,
    stdout: String,
    stderr: String,
    started: Value,
    ended: Value,
    took: Duration,
    pid: u32,
}

impl Ended {
    fn outcome(&self) -> &str {
        self.ended["outcome"].as_str().unwrap_or_default()
    }

    /// Ended by this ceiling, and said so in all three places, with the mechanism that the plan named.
    fn assert_reached(&self, outcome: &str, option: &str) {
        assert_eq!(self.outcome(), outcome, "{self:?}");
        assert_eq!(self.status, Some(137), "{self:?}");
        let mechanism = self.ended["mechanism"].as_str().unwrap();
        let layers = self.started["promises"]["ceilings"].as_array();
        // A run that is ended before it starts has no such line.
        if let Some(layers) = layers {
            assert!(layers.iter().any(|layer| layer == mechanism), "{self:?}");
        }
        let line = self.stderr.lines().find(|line| line.starts_with("confine: the command was ended: "));
        let line = line.unwrap_or_else(|| panic!("{self:?}"));
        assert!(line.contains(option) && line.contains(mechanism), "{line}");
        assert!(!self.stdout.contains("survived"), "{self:?}");
        assert!(self.took < Duration::from_secs(20), "{self:?}");
    }

    fn assert_survived(&self) {
        assert_eq!(self.stdout, "survived\n", "{self:?}");
        assert_eq!((self.status, self.stderr.as_str()), (Some(0), ""), "{self:?}");
    }
}

/// What is done before confine takes the process over, in words of a shell.
const AS_IS: &str = "exec \"$@\"";
/// A world without control groups, so that root has nothing but sampling either.
const NO_CGROUPS: &str = "umount -R /sys/fs/cgroup 2>/dev/null; exec \"$@\"";
/// A workspace of its own file system: what neighbours write elsewhere is not seen in it.
const OWN_DISK: &str = "mount -t tmpfs -o size=128m,mode=777 confine-test . && cd . && exec \"$@\"";

struct Start {
    scratch: Scratch,
    child: Child,
    since: Instant,
}

fn start(who: Option<u32>, before: &str, options: &[&str], script: &str) -> Start {
    let scratch = Scratch::new();
    let status = scratch.0.join("status");
    let mut words: Vec<String> = Vec::new();
    if before != AS_IS {
        let user = if nix::unistd::geteuid().is_root() { "-m" } else { "-rm" };
        words.extend(["unshare", user].map(str::to_owned));
    }
    words.extend(["sh", "-c"].map(str::to_owned));
    words.push(format!("cd \"$0\" || exit 99; exec 3>>../status; {before}"));
    words.push(scratch.workspace().to_str().unwrap().to_owned());
    if let Some(uid) = who {
        let id = uid.to_string();
        words.extend(["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"].map(str::to_owned));
    }
    words.push(scratch.program().to_str().unwrap().to_owned());
    words.extend(["-w", ".", "--status-fd", "3"].map(str::to_owned));
    words.extend(options.iter().map(|&word| word.to_owned()));
    words.extend(["--", "sh", "-c", script].map(str::to_owned));
    fs::write(&status, "").unwrap();
    let since = Instant::now();
    let child = Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    Start { scratch, child, since }
}

impl Start {
    fn wait(self) -> Ended {
        let Start { scratch, child, since } = self;
        let pid = child.id();
        let output = child.wait_with_output().unwrap();
        let took = since.elapsed();
        let text = fs::read_to_string(scratch.0.join("status")).unwrap();
        let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let event =
            |name: &str| events.iter().find(|event| event["event"] == name).cloned().unwrap_or_default();
        Ended {
            status: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            started: event("started"),
            ended: event("ended"),
            took,
            pid,
        }
    }
}

fn run(who: Option<u32>, before: &str, options: &[&str], script: &str) -> Ended {
    start(who, before, options, script).wait()
}

/// Directories of control groups that a run of this process has.
fn groups(pid: u32) -> Vec<PathBuf> {
    fn walk(directory: &Path, depth: u32, pid: u32, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) || depth == 0 {
                continue;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("confine-") && name.split('-').nth(2) == Some(&pid.to_string()) {
                found.push(entry.path());
            }
            walk(&entry.path(), depth - 1, pid, found);
        }
    }
    let mut found = Vec::new();
    walk(Path::new("/sys/fs/cgroup"), 8, pid, &mut found);
    found
}

/// Three processes that hold 40 MB each: no one of them is over 64 MB.
const HOLD_120M: &str = "hold() { (head -c 40M /dev/zero; sleep 15) | tail -c 40M >/dev/null; }; hold & hold & hold & wait; echo survived";
const HOLD_20M: &str = "(head -c 20M /dev/zero; sleep 0.5) | tail -c 20M >/dev/null; echo survived";

#[test]
fn memory_is_bounded_for_the_tree_as_a_whole() {
    for who in identities() {
        let options = ["--max-memory", "64M"];
        run(who, AS_IS, &options, HOLD_120M).assert_reached("memory-limit", "--max-memory");
        run(who, AS_IS, &options, HOLD_20M).assert_survived();
    }
}

#[test]
fn memory_is_sampled_where_there_are_no_control_groups() {
    for who in identities() {
        let options = ["--max-memory", "64M"];
        let over = run(who, NO_CGROUPS, &options, HOLD_120M);
        over.assert_reached("memory-limit", "--max-memory");
        assert_eq!(over.ended["mechanism"], "sampling");
        run(who, NO_CGROUPS, &options, HOLD_20M).assert_survived();
    }
}

#[test]
fn memory_that_a_fork_shares_is_counted_once() {
    for who in identities() {
        // Some 20 MB in the shell, and six subshells that have not written to theirs.
        let script = "x=$(head -c 10M /dev/zero | tr '\\0' x); i=0; \
                      while [ $i -lt 6 ]; do (sleep 0.5; :) & i=$((i+1)); done; wait; echo survived";
        run(who, NO_CGROUPS, &["--max-memory", "64M"], script).assert_survived();
    }
}

/// Until its execve(2) a child of vfork(2), as most programs start others, has its parent's memory.
#[test]
fn memory_that_a_child_borrows_is_counted_once() {
    let script = "python3 -c 'import subprocess; held = bytearray(40 << 20); \
                  [subprocess.run([\"/bin/true\"]) for _ in range(500)]' && echo survived";
    for who in identities() {
        run(who, NO_CGROUPS, &["--max-memory", "64M"], script).assert_survived();
    }
}

#[test]
fn memory_of_a_process_without_its_first_thread_counts() {
    // exit(2) of the first thread alone; 40 MB each stay with the second.
    let holder = "python3 -c 'import ctypes, threading, time, sys\n\
        def hold():\n  held = bytearray(int(sys.argv[1]) << 20); time.sleep(float(sys.argv[2]))\n\
        threading.Thread(target=hold).start(); time.sleep(0.2); ctypes.CDLL(None).syscall(EXIT, 0)'";
    let holder = holder.replace("EXIT", &libc::SYS_exit.to_string());
    for who in identities() {
        let options = ["--max-memory", "96M"];
        let three = format!("{holder} 40 15 & {holder} 40 15 & {holder} 40 15 & wait; echo survived");
        run(who, NO_CGROUPS, &options, &three).assert_reached("memory-limit", "--max-memory");
        // Neither has memory then: that is not the same memory.
        let starter = "HOLD=\"$1\" python3 -c 'import ctypes, os, subprocess, sys, threading\n\
            def start():\n  held = [subprocess.Popen([sys.executable, \"-c\", os.environ[\"HOLD\"], \"40\", \"15\"]) for _ in range(3)]\n\
            \x20 [one.wait() for one in held]\n\
            threading.Thread(target=start).start(); ctypes.CDLL(None).syscall(EXIT, 0)'; echo survived";
        let code = holder.split('\'').nth(1).unwrap();
        let below = format!("set -- '{code}'; {}", starter.replace("EXIT", &libc::SYS_exit.to_string()));
        run(who, NO_CGROUPS, &options, &below).assert_reached("memory-limit", "--max-memory");
        let one = format!("{holder} 40 0.5 & wait; echo survived");
        run(who, NO_CGROUPS, &options, &one).assert_survived();
    }
}

#[test]
fn what_lies_in_private_places_is_memory_beside_a_kept_tmp() {
    for who in identities() {
        let owner = who.map_or(String::new(), |uid| format!("-o {uid} -g {uid}"));
        let scratch = Scratch::new();
        let state = scratch.0.join("state");
        let state = state.to_str().unwrap();
        let before = format!("install -d -m 700 {owner} {state} && {NO_CGROUPS}");
        let options = ["--max-memory", "64M", "--max-tmp", "1G", "--state", state];
        let fill = |size, wait| format!("head -c {size} /dev/zero >/dev/shm/x; sleep {wait}; echo survived");
        run(who, &before, &options, &fill("80M", "15")).assert_reached("memory-limit", "--max-memory");
        run(who, &before, &options, &fill("8M", "0.5")).assert_survived();
    }
}

#[test]
fn without_namespaces_a_user_is_held_all_the_same() {
    let who = nix::unistd::geteuid().is_root().then_some(STRANGER);
    let owner = who.map_or(String::new(), |uid| format!("-o {uid} -g {uid}"));
    let scratch = Scratch::new();
    let state = scratch.0.join("state");
    let state = state.to_str().unwrap();
    let before = format!("install -d -m 700 {owner} {state} && exec \"$@\"");
    let options = ["--namespaces", "off", "--state", state, "--waive", "metadata-scope"];
    let options = [&options[..], &["--waive", "socket-scope", "--max-memory", "64M"]].concat();
    run(who, &before, &options, HOLD_120M).assert_reached("memory-limit", "--max-memory");
    run(who, &before, &options, HOLD_20M).assert_survived();
    let options = [&options[..], &["--max-cpu", "400ms"]].concat();
    run(who, &before, &options, "while :; do :; done").assert_reached("cpu-limit", "--max-cpu");
}

#[test]
fn what_lies_in_the_private_tmp_is_memory() {
    for who in identities() {
        for before in [AS_IS, NO_CGROUPS] {
            let options = ["--max-memory", "64M", "--max-tmp", "1G"];
            let fill = |size, wait| format!("head -c {size} /dev/zero >/tmp/x; sleep {wait}; echo survived");
            // Little over the line and at once: nothing of it may pass for what was there before the command.
            run(who, before, &options, &fill("68M", "15")).assert_reached("memory-limit", "--max-memory");
            run(who, before, &options, &fill("8M", "0.3")).assert_survived();
        }
    }
}

/// What threads reserve for their stacks is not memory that they use.
#[test]
fn threads_that_use_little_are_no_memory() {
    let script = "ulimit -s 8192; exec python3 -c 'import threading\n\
        over = threading.Event()\n\
        all = [threading.Thread(target=over.wait, daemon=True) for _ in range(100)]\n\
        [one.start() for one in all]; over.set(); [one.join() for one in all]; print(\"survived\")'";
    for who in identities() {
        run(who, NO_CGROUPS, &["--max-memory", "128M"], script).assert_survived();
    }
}

/// A single process that allocates faster than anything can be sampled is stopped by what it may reserve, or by
/// the line itself; either way it does not get there.
#[test]
fn a_memory_bomb_does_not_go_off() {
    for who in identities() {
        for before in [AS_IS, NO_CGROUPS] {
            let ended = run(who, before, &["--max-memory", "64M"], "tail /dev/zero && echo survived");
            assert!(!ended.stdout.contains("survived"), "{ended:?}");
            assert!(
                ended.outcome() == "memory-limit" || ended.stderr.contains("memory exhausted"),
                "{ended:?}"
            );
        }
    }
}

#[test]
fn a_limit_too_low_to_start_says_so() {
    for who in identities() {
        let ended = run(who, AS_IS, &["--max-memory", "64K"], "sleep 10; echo survived");
        ended.assert_reached("memory-limit", "--max-memory");
    }
}

/// `count` sleeping children beside the shell, all of them at one time on a busy machine as well.
fn children(count: u32) -> String {
    format!("i=0; while [ $i -lt {count} ]; do sleep 3 & i=$((i+1)); done; wait; echo survived")
}

#[test]
fn processes_are_bounded_to_the_exact_number() {
    for who in identities() {
        let options = ["--max-procs", "10"];
        run(who, AS_IS, &options, &children(9)).assert_survived();
        let over = run(who, AS_IS, &options, &children(10));
        // fork(2) says EAGAIN, and what the shell makes of it is its own affair.
        assert_ne!(over.status, Some(137), "{over:?}");
        assert!(over.stderr.contains("Cannot fork") || over.stderr.contains("fork"), "{over:?}");
        assert!(!over.stdout.contains("survived"), "{over:?}");
    }
}

#[test]
fn processes_of_root_are_sampled_where_there_are_no_control_groups() {
    if !nix::unistd::geteuid().is_root() {
        // An ordinary user's are counted by the kernel, always: the claim above.
        return;
    }
    let options = ["--max-procs", "10"];
    run(None, NO_CGROUPS, &options, &children(9)).assert_survived();
    run(None, NO_CGROUPS, &options, &children(20)).assert_reached("procs-limit", "--max-procs");
}

#[test]
fn processes_that_follow_one_another_are_not_counted_together() {
    // Nine at a time, and a thousand in all.
    let script = "worker() { i=0; while [ $i -lt 250 ]; do /bin/true; i=$((i+1)); done; }; \
                  worker & worker & worker & worker & wait; echo survived";
    for who in identities() {
        run(who, NO_CGROUPS, &["--max-procs", "10"], script).assert_survived();
    }
}

#[test]
fn a_fork_bomb_leaves_the_host_responsive_and_nothing_behind() {
    for who in identities() {
        for before in [AS_IS, NO_CGROUPS] {
            let options =
                ["--max-procs", "64", "--max-memory", "256M", "--timeout", "2s", "--grace", "100ms"];
            // Doubles ten times and no more: should it not be stopped, the host survives.
            let bomb = "f() { if [ $1 -gt 0 ]; then f $(($1-1)) & f $(($1-1)) & fi; sleep 20; }; f 10; echo survived";
            let start = start(who, before, &options, bomb);
            std::thread::sleep(Duration::from_millis(500));
            let since = Instant::now();
            assert!(Command::new("true").status().unwrap().success());
            assert!(since.elapsed() < Duration::from_secs(5));
            let ended = start.wait();
            assert!(!ended.stdout.contains("survived"), "{:?}", ended.outcome());
            assert!(ended.took < Duration::from_secs(15), "{:?}", ended.took);
            assert_eq!(groups(ended.pid), Vec::<PathBuf>::new());
        }
    }
}

#[test]
fn processor_time_is_that_of_the_whole_tree() {
    for who in identities() {
        for before in [AS_IS, NO_CGROUPS] {
            let burn = "while :; do :; done & while :; do :; done";
            run(who, before, &["--max-cpu", "400ms"], burn).assert_reached("cpu-limit", "--max-cpu");
            let short = "i=0; while [ $i -lt 1000 ]; do i=$((i+1)); done; echo survived";
            run(who, before, &["--max-cpu", "20s"], short).assert_survived();
        }
    }
}

#[test]
fn processor_time_of_children_that_are_gone_counts() {
    for who in identities() {
        for before in [AS_IS, NO_CGROUPS] {
            let burn = "while :; do sh -c :; done";
            run(who, before, &["--max-cpu", "400ms"], burn).assert_reached("cpu-limit", "--max-cpu");
        }
    }
}

#[test]
fn what_the_workspaces_file_system_loses_is_bounded() {
    for who in identities() {
        let options = ["--max-disk", "8M"];
        let fill = |size, wait| format!("head -c {size} /dev/zero >x; sleep {wait}; rm x; echo survived");
        let over = run(who, OWN_DISK, &options, &fill("64M", "15"));
        over.assert_reached("disk-limit", "--max-disk");
        assert_eq!(over.ended["mechanism"], "file-system-watch");
        run(who, OWN_DISK, &options, &fill("4M", "0.3")).assert_survived();
    }
}

#[test]
fn nothing_runs_while_a_stop_keeps_the_counting_from_being_done() {
    for who in identities() {
        let scratch = Scratch::new();
        let script = "(sleep 0.3; while :; do echo x >> alive; sleep 0.05; done) & kill -STOP $$; wait";
        let mut command = Command::new(scratch.program());
        command.current_dir(scratch.workspace()).args([
            "-w",
            ".",
            "--max-cpu",
            "100s",
            "--",
            "sh",
            "-c",
            script,
        ]);
        command.env("HOME", "/nonexistent").stdin(Stdio::null()).process_group(0);
        if let Some(id) = who {
            command.uid(id).gid(id);
        }
        let mut child = command.spawn().unwrap();
        let pid = child.id() as i32;
        let state = || {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit_once(')').and_then(|(_, rest)| rest.trim().chars().next())
        };
        let begun = Instant::now();
        while state() != Some('T') && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(state(), Some('T'), "{who:?}: the monitor follows the stop");
        std::thread::sleep(Duration::from_millis(900));
        let lines =
            || fs::read_to_string(scratch.workspace().join("alive")).unwrap_or_default().lines().count();
        let stopped = lines();
        let send = |signal| nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(lines(), stopped, "{who:?}: something ran uncounted");
        send(nix::sys::signal::Signal::SIGCONT);
        let begun = Instant::now();
        while lines() == stopped && begun.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(lines() > stopped, "{who:?}: goes on with the command");
        send(nix::sys::signal::Signal::SIGKILL);
        child.wait().unwrap();
    }
}

#[test]
fn descriptors_are_bounded_in_each_process() {
    for who in identities() {
        let hold = |count| {
            format!(
                "bash -c 'for i in $(seq 10 {count}); do eval \"exec $i</dev/null\" || exit 7; done; echo survived'"
            )
        };
        let options = ["--max-open-files", "64"];
        run(who, AS_IS, &options, &hold(60)).assert_survived();
        let over = run(who, AS_IS, &options, &hold(70));
        assert!(!over.stdout.contains("survived") && over.status != Some(0), "{over:?}");
    }
}

/// Before the start the reason is what was asked for, not what the kernel made of it.
#[test]
fn a_limit_below_what_a_start_takes_is_said_by_its_name() {
    for who in identities() {
        let refused = run(who, AS_IS, &["--max-open-files", "3"], "echo survived");
        assert_eq!((refused.status, refused.stdout.as_str()), (Some(125), ""), "{refused:?}");
        assert!(refused.stderr.contains("--max-open-files"), "{refused:?}");
        // What confine puts there itself is more in one home than in another.
        let little = run(who, AS_IS, &["--max-tmp", "1"], "echo survived");
        assert!(little.status == Some(0) || little.stderr.contains("--max-tmp 1"), "{little:?}");
        run(who, AS_IS, &["--max-open-files", "8", "--max-tmp", "256K"], "echo survived").assert_survived();
    }
}

#[test]
fn the_private_tmp_is_bounded_in_bytes_and_in_files() {
    for who in identities() {
        let options = ["--max-tmp", "4M"];
        let fill = |size| format!("head -c {size} /dev/zero >/tmp/x && echo survived");
        let files = |count| {
            format!("mkdir /tmp/d && cd /tmp/d && seq {count} | xargs touch && cd / && echo survived")
        };
        run(who, AS_IS, &options, &fill("2M")).assert_survived();
        run(who, AS_IS, &options, &files(500)).assert_survived();
        for script in [fill("8M"), files(3000)] {
            let over = run(who, AS_IS, &options, &script);
            assert!(over.stderr.contains("No space left on device"), "{over:?}");
            assert!(!over.stdout.contains("survived"), "{over:?}");
        }
    }
}

#[test]
fn control_groups_are_removed_with_the_run_and_after_a_dead_one() {
    let options = ["--max-memory", "64M", "--max-procs", "32", "--max-cpu", "60s"];
    let first = start(None, AS_IS, &options, "echo ready; sleep 30");
    let pid = first.child.id();
    let until = Instant::now() + Duration::from_secs(10);
    let status = first.scratch.0.join("status");
    while !fs::read_to_string(&status).unwrap().contains("started") {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(20));
    }
    let text = fs::read_to_string(&status).unwrap();
    let grouped = text.contains("cgroup-v");
    // Where the host offers none, none may be there.
    assert_eq!(!groups(pid).is_empty(), grouped, "{text}");
    let mut first = first;
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    // The tree goes at once; its group stays until somebody else comes along.
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let second = run(None, AS_IS, &options, "echo survived");
        second.assert_survived();
        assert_eq!(groups(second.pid), Vec::<PathBuf>::new());
        if groups(pid).is_empty() {
            break;
        }
        assert!(Instant::now() < until, "{:?}", groups(pid));
    }
}
