//! no-gain: no new privilege and no new kernel surface, and nothing left behind that would give one later.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use common::scratch::{attack_program, copy};
use common::table::options;
use common::victim::Victim;
use common::{EVERYONE, Findings, Run, Scratch, Snapshot, Who};

#[test]
fn the_command_has_no_capability_and_cannot_get_one() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let outcome = Run::confined(&scratch).attack(&scratch, ["whoami"]);
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            let empty = format!("{set}:\t0000000000000000\n");
            findings.claim(outcome.out.contains(&empty), || format!("{who:?}: {set}: {}", outcome.tell()));
        }
        for line in ["NoNewPrivs:\t1\n", "Seccomp:\t2\n", &format!("euid {} egid {0}\n", who.id())] {
            findings.claim(outcome.out.contains(line), || format!("{who:?}: {line:?}: {}", outcome.tell()));
        }
        for operation in [["become-other"], ["drop-groups"]] {
            let outcome = Run::confined(&scratch).attack(&scratch, operation);
            findings.claim(outcome.denied(), || format!("{who:?}: {operation:?}: {}", outcome.tell()));
        }
    }
    let scratch = Scratch::new(Who::Root);
    for operation in [["become-other"], ["drop-groups"]] {
        let twin = Run::plain(&scratch).attack(&scratch, operation);
        findings.claim(twin.ok(), || format!("{operation:?} unconfined: {}", twin.tell()));
    }
    findings.settle();
}

#[test]
fn set_user_id_files_and_file_capabilities_give_nothing() {
    let mut findings = Findings::default();
    // For the user a file of root's, for root a file of somebody else.
    for (who, owner) in [(Who::User, 0), (Who::Root, 12345)] {
        let scratch = Scratch::new(who);
        for (place, grants) in [("w/tool", &[][..]), ("outside/tool", &["--ro", "@outside"])] {
            let tool = scratch.path(place);
            copy(attack_program(), &tool);
            std::os::unix::fs::chown(&tool, Some(owner), Some(owner)).unwrap();
            fs::set_permissions(&tool, fs::Permissions::from_mode(0o6755)).unwrap();
            let command = [tool.as_os_str(), "whoami".as_ref()];
            let outcome = Run::confined(&scratch).options(options(&scratch, grants)).command(command).run();
            let same = format!("euid {} egid {0}\n", who.id());
            findings.claim(outcome.out.contains(&same), || format!("{who:?}: {place}: {}", outcome.tell()));
            let twin = Run::plain(&scratch).command(command).run();
            findings.claim(twin.out.contains(&format!("euid {owner} egid {owner}\n")), || {
                format!("{who:?}: {place} unconfined: {}", twin.tell())
            });
        }
    }
    let scratch = Scratch::new(Who::User);
    for (place, grants) in [("w/capable", &[][..]), ("outside/capable", &["--ro", "@outside"])] {
        let tool = scratch.path(place);
        copy(attack_program(), &tool);
        let words = ["set-file-capability".as_ref(), tool.as_os_str()];
        assert!(Run::plain(&scratch).by(Who::Root).attack(&scratch, words).ok());
        let command = [tool.as_os_str(), "whoami".as_ref()];
        let outcome = Run::confined(&scratch).options(options(&scratch, grants)).command(command).run();
        findings.claim(outcome.out.contains("CapEff:\t0000000000000000\n"), || {
            format!("{place}: {}", outcome.tell())
        });
        let twin = Run::plain(&scratch).command(command).run();
        findings.claim(twin.out.contains("CapEff:\t0000000000002000\n"), || {
            format!("{place} unconfined: {}", twin.tell())
        });
    }
    findings.settle();
}

/// Every call that can make an inode with a mode, or give it one.
const SET_USER_ID: &[&str] = &[
    "suid-fchmodat",
    "suid-fchmodat-high",
    "suid-fchmod",
    "suid-fchmod-high",
    "suid-fchmodat2",
    "suid-fchmodat2-empty-path",
    "suid-openat",
    "suid-openat-high",
    "suid-openat2",
    "suid-tmpfile",
    "suid-mknodat",
    #[cfg(target_arch = "x86_64")]
    "suid-chmod",
    #[cfg(target_arch = "x86_64")]
    "suid-chmod-high",
    #[cfg(target_arch = "x86_64")]
    "suid-open",
    #[cfg(target_arch = "x86_64")]
    "suid-creat",
    #[cfg(target_arch = "x86_64")]
    "suid-mknod",
];

fn set_user_id_below(dir: &Path) -> Option<PathBuf> {
    Snapshot::modes(dir).into_iter().find(|(_, mode)| mode & 0o4000 != 0).map(|(path, _)| path)
}

#[test]
fn no_set_user_id_file_is_left_in_the_workspace() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for operation in SET_USER_ID {
            let dir = scratch.fixture("w/f");
            let words = [operation.as_ref(), dir.as_os_str()];
            let outcome = Run::confined(&scratch).attack(&scratch, words);
            let left = set_user_id_below(&dir);
            // openat2 keeps its mode in memory, where no filter looks; there and for calls that are missing the rest refuses.
            findings.claim(outcome.denied() && left.is_none(), || {
                format!("{who:?}: {operation}: left {left:?}, {}", outcome.tell())
            });
            let dir = scratch.fixture("w/f");
            let twin = Run::plain(&scratch).attack(&scratch, words);
            findings.claim(set_user_id_below(&dir).is_some() || twin.verdict() == "ENOSYS", || {
                format!("{who:?}: {operation} unconfined: {}", twin.tell())
            });
        }
        scratch.fixture("w/f");
        let modes = Run::confined(&scratch).shell(
            "cd f && chmod 1777 empty && chmod 2755 full && chmod 755 file && install -m 700 file copy && umask 0 && mkfifo -m 622 p",
        );
        findings.claim(modes.ok(), || format!("{who:?}: other modes: {}", modes.tell()));
        for (name, mode) in
            [("empty", 0o1777), ("full", 0o2755), ("file", 0o755), ("copy", 0o700), ("p", 0o622)]
        {
            let now = fs::metadata(scratch.path("w/f").join(name)).map(|meta| meta.mode() & 0o7777).ok();
            findings.claim(now == Some(mode), || format!("{who:?}: {name} has mode {now:?}"));
        }
    }
    findings.settle();
}

#[test]
fn neither_file_capabilities_nor_device_nodes_are_left_in_the_workspace() {
    let mut findings = Findings::default();
    let scratch = Scratch::new(Who::Root);
    for (operation, name) in [("set-file-capability", "w/attack"), ("mknod-null", "w/null")] {
        let path = scratch.path(name);
        let words = [operation.as_ref(), path.as_os_str()];
        let outcome = Run::confined(&scratch).attack(&scratch, words);
        findings.claim(outcome.denied(), || format!("{operation}: {}", outcome.tell()));
        let twin = Run::plain(&scratch).attack(&scratch, words);
        findings.claim(twin.ok(), || format!("{operation} unconfined: {}", twin.tell()));
    }
    findings.settle();
}

#[test]
fn no_namespace_is_made_or_entered() {
    const USER: u64 = 0x1000_0000;
    let kinds: [(&str, u64); 8] = [
        ("mount", 0x2_0000),
        ("cgroup", 0x200_0000),
        ("UTS", 0x400_0000),
        ("IPC", 0x800_0000),
        ("user", USER),
        ("PID", 0x2000_0000),
        ("network", 0x4000_0000),
        ("time", 0x80),
    ];
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for (kind, flag) in kinds {
            for (call, errno) in [("unshare", "EPERM"), ("clone", "EPERM"), ("clone3", "ENOSYS")] {
                // In clone the low byte is the signal of the child's end.
                if call == "clone" && flag == 0x80 {
                    continue;
                }
                for flags in [flag, flag | USER] {
                    let words = [call.to_owned(), format!("{flags:#x}")];
                    let outcome = Run::confined(&scratch).attack(&scratch, &words);
                    findings.claim(outcome.verdict() == errno && outcome.denied(), || {
                        format!("{who:?}: {words:?} ({kind}): {}", outcome.tell())
                    });
                    if who == Who::Root || flags & USER != 0 {
                        let twin = Run::plain(&scratch).attack(&scratch, &words);
                        findings
                            .claim(twin.ok(), || format!("{who:?}: {words:?} unconfined: {}", twin.tell()));
                    }
                }
            }
        }
        // The kernel takes the low half of clone's flags.
        let high = Run::confined(&scratch).attack(&scratch, ["clone", "0xab10000000"]);
        findings.claim(high.denied(), || format!("{who:?}: clone with high bits: {}", high.tell()));
        let sibling = Run::confined(&scratch).attack(&scratch, ["clone", "0x8000"]);
        findings.claim(sibling.verdict() == "EPERM" && sibling.denied(), || {
            format!("{who:?}: clone a sibling: {}", sibling.tell())
        });
        let fork = Run::confined(&scratch).attack(&scratch, ["clone", "0"]);
        findings.claim(fork.ok(), || format!("{who:?}: clone without flags: {}", fork.tell()));

        let victim = Victim::start(&scratch);
        for kind in ["net", "uts", "mnt", "ipc", "user", "cgroup", "pid"] {
            for of in ["self", victim.pid.as_str()] {
                let words = ["setns".to_owned(), format!("/proc/{of}/ns/{kind}")];
                let outcome = Run::confined(&scratch).attack(&scratch, &words);
                findings.claim(outcome.denied(), || format!("{who:?}: {words:?}: {}", outcome.tell()));
                if who == Who::Root && kind != "user" {
                    let twin = Run::plain(&scratch).attack(&scratch, &words);
                    findings.claim(twin.ok(), || format!("{who:?}: {words:?} unconfined: {}", twin.tell()));
                }
            }
        }
        let by_process = Run::confined(&scratch).attack(&scratch, ["setns-pidfd", &victim.pid, "0x40000000"]);
        findings.claim(by_process.denied(), || format!("{who:?}: setns by pidfd: {}", by_process.tell()));
    }
    findings.settle();
}

#[test]
fn nothing_is_mounted_unmounted_or_shown_anew() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let attack = scratch.attack();
        let state = if who == Who::Root { "in-private-mounts" } else { "in-user-namespace" };
        let own = scratch.path("w/own").into_os_string();
        let workspace = scratch.workspace().into_os_string();
        // Operation, operands, whether an unprivileged owner of a namespace may do it to mounts that it was given.
        let rows = [
            (vec!["mount-tmpfs".into(), own.clone()], true),
            (vec!["mount-bind".into(), "/etc".into(), own.clone()], true),
            (vec!["mount-bind".into(), workspace.clone(), own.clone()], true),
            (vec!["mount-remount".into(), "/".into()], true),
            (vec!["mount-private".into(), "/".into()], true),
            (vec!["umount".into(), "/dev/shm".into()], false),
            (vec!["chroot".into(), own.clone()], true),
            (vec!["fsopen".into()], true),
            (vec!["open-tree".into(), "/etc".into()], true),
            (vec!["fspick".into(), "/dev/shm".into()], false),
            (vec!["mount-setattr".into(), "/".into()], true),
        ];
        for (words, unprivileged) in rows {
            let outcome = Run::confined(&scratch).attack(&scratch, &words);
            findings.claim(outcome.denied() && ["EPERM", "ENOSYS"].contains(&outcome.verdict()), || {
                format!("{who:?}: {words:?}: {}", outcome.tell())
            });
            if who == Who::Root || unprivileged {
                let twin =
                    Run::plain(&scratch).under([attack.as_os_str(), state.as_ref()]).attack(&scratch, &words);
                findings.claim(twin.ok(), || format!("{who:?}: {words:?} unconfined: {}", twin.tell()));
            }
        }
        // Their arguments would have to fit a host's mounts for a twin; the filter has to answer before they matter.
        for words in [
            vec!["umount".into(), workspace.clone()],
            vec!["umount".into(), "/tmp".into()],
            vec!["umount".into(), "/proc".into()],
            vec!["mount-move".into(), "/tmp".into(), own.clone()],
            vec!["mount-remount".into(), "/usr".into()],
            vec!["mount-setattr".into(), "/usr".into()],
            vec!["pivot-root".into(), "/".into()],
            vec!["move-mount".into(), "/tmp".into(), own.clone()],
            vec!["open-tree-attr".into(), "/".into()],
        ] {
            let outcome = Run::confined(&scratch).attack(&scratch, &words);
            findings.claim(outcome.denied() && ["EPERM", "ENOSYS"].contains(&outcome.verdict()), || {
                format!("{who:?}: {words:?}: {}", outcome.tell())
            });
        }
    }
    findings.settle();
}

#[cfg(target_arch = "x86_64")]
#[test]
fn calls_of_another_architecture_are_stopped() {
    const SIGSYS: i32 = 31;
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let dir = scratch.fixture("w/f");
        let words = ["mkdir-int80".as_ref(), dir.as_os_str()];
        let outcome = Run::confined(&scratch).attack(&scratch, words);
        findings.claim(outcome.signal() == Some(SIGSYS) && !dir.join("new").exists(), || {
            format!("{who:?}: mkdir by int 0x80: {}", outcome.tell())
        });
        let twin = Run::plain(&scratch).attack(&scratch, words);
        // A kernel without 32-bit emulation ends the program at the instruction.
        findings.claim(dir.join("new").exists() || twin.signal() == Some(11), || {
            format!("{who:?}: int 0x80 unconfined: {}", twin.tell())
        });
        let unshare = Run::confined(&scratch).attack(&scratch, ["unshare-int80", "0x10000000"]);
        findings.claim(unshare.signal() == Some(SIGSYS), || {
            format!("{who:?}: unshare by int 0x80: {}", unshare.tell())
        });
        for words in [vec!["unshare-x32", "0x10000000"], vec!["getpid-x32"], vec!["beyond-the-table"]] {
            let outcome = Run::confined(&scratch).attack(&scratch, &words);
            findings
                .claim(outcome.verdict() == "ENOSYS", || format!("{who:?}: {words:?}: {}", outcome.tell()));
        }
    }
    findings.settle();
}

/// The arguments are such that an unfiltered kernel gives root another answer than "not permitted".
#[test]
fn calls_that_no_program_needs_are_refused_by_name() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let names = Run::plain(&scratch).attack(&scratch, ["call-names"]).out;
        assert!(names.lines().count() > 20, "{names}");
        for name in names.lines().filter(|name| *name != "ok") {
            let outcome = Run::confined(&scratch).attack(&scratch, ["call", name]);
            findings.claim(outcome.denied() && ["EPERM", "ENOSYS"].contains(&outcome.verdict()), || {
                format!("{who:?}: {name}: {}", outcome.tell())
            });
            if who == Who::Root {
                let twin = Run::plain(&scratch).attack(&scratch, ["call", name]);
                findings.claim(twin.verdict() != "EPERM", || format!("{name} unconfined: {}", twin.tell()));
            }
        }
    }
    findings.settle();
}

/// Opened for writing, never written.
#[test]
fn settings_of_the_kernel_cannot_be_opened_for_writing() {
    let files = [
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/hostname",
        "/proc/sys/kernel/modprobe",
        "/proc/sys/kernel/randomize_va_space",
        "/proc/sys/vm/overcommit_memory",
        "/proc/sys/fs/suid_dumpable",
        "/proc/sys/net/ipv4/ip_forward",
        "/proc/sysrq-trigger",
        "/proc/irq/default_smp_affinity",
        "/proc/self/uid_map",
        "/sys/power/state",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/sys/kernel/profiling",
        "/sys/fs/cgroup/cgroup.procs",
        "/sys/fs/cgroup/unified/cgroup.procs",
        "/sys/fs/cgroup/memory/cgroup.procs",
        "/etc/passwd",
        "/etc/ld.so.cache",
        "/usr/bin/env",
        "/dev/kmsg",
        "/dev/mem",
    ];
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for file in files.into_iter().filter(|file| Path::new(file).exists()) {
            let outcome = Run::confined(&scratch).attack(&scratch, ["open-write", file]);
            findings.claim(outcome.denied(), || format!("{who:?}: {file}: {}", outcome.tell()));
        }
        // No twin without a boundary: these are the machine's own. The same call works on what is the command's.
        let own = scratch.file("w/own-file", "");
        for run in [Run::confined(&scratch), Run::plain(&scratch)] {
            let twin = run.attack(&scratch, ["open-write".as_ref(), own.as_os_str()]);
            findings.claim(twin.ok(), || format!("{who:?}: an own file: {}", twin.tell()));
        }
        for file in ["/dev/null", "/dev/zero", "/dev/full", "/dev/ptmx"] {
            let twin = Run::confined(&scratch).attack(&scratch, ["open-write", file]);
            findings.claim(twin.ok(), || format!("{who:?}: {file}: {}", twin.tell()));
        }
    }
    findings.settle();
}
