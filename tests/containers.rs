//! Hosts as containers and hardened machines have them: an engine's system call filter, a /proc with parts masked, a
//! read-only root, a /dev without shm. Made in a mount namespace of each run's own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "hosts/mod.rs"]
mod host;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use common::{EVERYONE, Run, Scratch, Who};
use host::{kind, on, scratch};

/// The calls' numbers, of the C library's headers.
fn numbers() -> BTreeMap<String, u32> {
    let output = Command::new("gcc")
        .args(["-E", "-dM", "-include", "asm/unistd_64.h", "-x", "c", "/dev/null"])
        .stderr(Stdio::inherit())
        .output()
        .expect("gcc is needed: apt-get install gcc libc6-dev");
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |line: &str| {
        let (name, number) = line.strip_prefix("#define __NR_")?.split_once(' ')?;
        Some((name.to_owned(), number.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

/// moby's default profile for a container without added capabilities, as BPF in the kernel's own layout.
fn container_filter() -> Vec<u8> {
    const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
    const AND: u16 = 0x54; // BPF_ALU | BPF_AND | BPF_K
    const EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
    const REFUSE: u32 = libc::SECCOMP_RET_ERRNO | 1;
    let errno = |number: i32| libc::SECCOMP_RET_ERRNO | number.unsigned_abs();
    // Offsets in `struct seccomp_data`: the number, the low half of the first argument.
    let (number, first) = (0, 16);
    let known = numbers();
    let mut program: Vec<(u16, u8, u8, u32)> = vec![(LOAD, 0, 0, number)];
    let names = include_str!("hosts/container-calls").lines().filter(|line| !line.starts_with('#'));
    for name in names.flat_map(str::split_whitespace) {
        let number = known.get(name).unwrap_or_else(|| panic!("asm/unistd_64.h does not know {name}"));
        program.extend([(EQUAL, 0, 1, *number), (RETURN, 0, 0, ALLOW)]);
    }
    let mut ruled = |name: &str, rest: &[(u16, u8, u8, u32)]| {
        program.push((EQUAL, 0, u8::try_from(rest.len()).unwrap(), known[name]));
        program.extend(rest);
    };
    ruled("clone3", &[(RETURN, 0, 0, errno(libc::ENOSYS))]);
    // No namespace among the flags.
    let namespaces = 0x7e02_0000;
    ruled(
        "clone",
        &[
            (LOAD, 0, 0, first),
            (AND, 0, 0, namespaces),
            (EQUAL, 0, 1, 0),
            (RETURN, 0, 0, ALLOW),
            (RETURN, 0, 0, REFUSE),
        ],
    );
    // All but AF_VSOCK.
    ruled("socket", &[(LOAD, 0, 0, first), (EQUAL, 0, 1, 40), (RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW)]);
    let mut personality = vec![(LOAD, 0, 0, first)];
    for allowed in [0, 8, 0x2_0000, 0x2_0008, u32::MAX] {
        personality.extend([(EQUAL, 0, 1, allowed), (RETURN, 0, 0, ALLOW)]);
    }
    ruled("personality", &personality);
    program.push((RETURN, 0, 0, REFUSE));
    let bytes = |(code, yes, no, value): &(u16, u8, u8, u32)| {
        [&code.to_ne_bytes()[..], &[*yes, *no], &value.to_ne_bytes()].concat()
    };
    program.iter().flat_map(bytes).collect()
}

/// In a container: root without CAP_SYS_ADMIN, or a user; the filter over either.
fn contained(scratch: &Scratch, run: Run) -> Run {
    let file = scratch.path("filter");
    fs::write(&file, container_filter()).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let run = if scratch.who == Who::Root { on(scratch, kind(Who::Root), run) } else { run };
    on(scratch, &format!("filter:{}", file.display()), run)
}

#[test]
fn under_a_container_engines_filter_sockets_are_refused_and_all_else_is_kept() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let run = || contained(&scratch, Run::confined(&scratch));
        let refused = run().shell("touch started");
        assert_eq!(refused.code(), Some(125), "{}", refused.tell());
        assert!(
            refused.err.contains("socket-scope cannot be kept")
                && refused.err.contains("pidfd_getfd: operation not permitted")
                && refused.err.contains("`--waive socket-scope`"),
            "{}",
            refused.tell()
        );
        assert!(!scratch.path("w/started").exists());
        let secret = scratch.file("outside/secret", "secret\n");
        let script = format!(
            "touch made && chmod 600 made && mktemp >/dev/null || exit 9; cat {0}; echo x >>{0}; chmod 600 {0}; exit 7",
            secret.display()
        );
        let outcome = run().options(["--waive", "socket-scope"]).shell(&script);
        assert_eq!((outcome.code(), outcome.out.as_str()), (Some(7), ""), "{who:?}: {}", outcome.tell());
        assert_eq!(outcome.err.lines().count(), 3, "{}", outcome.tell());
        assert_eq!(fs::read_to_string(&secret).unwrap(), "secret\n");
        assert_eq!(fs::metadata(&secret).unwrap().permissions().mode() & 0o777, 0o644);
        // The twin: in the container as such all of it works.
        let twin = contained(&scratch, Run::plain(&scratch)).shell(&script);
        assert_eq!(
            (twin.code(), twin.out.as_str(), twin.err.as_str()),
            (Some(7), "secret\n", ""),
            "{}",
            twin.tell()
        );
    }
}

#[test]
fn under_a_container_engines_filter_check_tells_why_and_proves_the_rest() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let confine = scratch.confine();
        let check = |words: &[&str]| {
            let command = [confine.to_str().unwrap(), "check"];
            contained(&scratch, Run::plain(&scratch).command(command.iter().chain(words))).run()
        };
        let told = check(&[]);
        assert_eq!(told.code(), Some(1), "{}", told.tell());
        assert!(told.out.contains("socket-scope    NOT KEPT"), "{}", told.out);
        assert!(told.out.contains("metadata-scope  kept      broker\n"), "{}", told.out);
        let proved = check(&["--prove", "--waive", "socket-scope"]);
        assert!(proved.ok() && proved.out.contains("The boundary held"), "{}", proved.tell());
        assert!(proved.out.contains("a key of the caller                  untried"), "{}", proved.out);
    }
}

/// Runs in a mount namespace that `script` has changed; as the identity, which is dropped to afterwards.
fn changed(scratch: &Scratch, script: &str, run: Run) -> Run {
    let id = scratch.who.id().to_string();
    let script = format!(
        "set -e; mount --make-rprivate /; ROOT=$1; shift; {script}\n\
         [ $1 = 0 ] && shift && exec \"$@\"; id=$1; shift; exec setpriv --reuid $id --regid $id --clear-groups -- \"$@\""
    );
    let root = scratch.root().to_str().unwrap().to_owned();
    run.by(Who::Root).under(["unshare", "-m", "sh", "-c", &script, "sh", &root, &id])
}

/// Any other /proc in sight would do for the kernel.
const MASKED_PROC: &str = "while read -r _ _ _ _ at rest; do case \"$at $rest\" in \
    '/proc '*) ;; *' - proc '*) umount -l $at ;; esac; done </proc/self/mountinfo; for f in kcore keys timer_list latency_stats sched_debug; do \
    [ ! -e /proc/$f ] || mount --bind /dev/null /proc/$f; done; \
    for d in acpi scsi; do [ ! -d /proc/$d ] || mount -t tmpfs -o ro,size=4k tmpfs /proc/$d; done; \
    for d in bus fs irq sys sysrq-trigger; do [ -e /proc/$d ] || continue; \
    mount --bind /proc/$d /proc/$d; mount -o remount,bind,ro /proc/$d; done";

const READ_ONLY_ROOT: &str =
    "mount --bind $ROOT $ROOT; mount -o remount,bind,ro /; ! touch /tmp/x 2>/dev/null";

const NO_SHM: &str = "mkdir -p $ROOT/dev; mount -t tmpfs tmpfs $ROOT/dev; \
    for f in null zero full random urandom tty; do : >$ROOT/dev/$f; mount --bind /dev/$f $ROOT/dev/$f; done; \
    mount --rbind $ROOT/dev /dev; test ! -e /dev/shm && test ! -e /dev/ptmx";

/// HOME is missing as well, and the user has no entry in the password file.
#[test]
fn a_hardened_host_keeps_every_promise_that_is_asked_for() {
    for who in EVERYONE {
        for (name, change) in
            [("masked /proc", MASKED_PROC), ("read-only root", READ_ONLY_ROOT), ("no /dev/shm", NO_SHM)]
        {
            for tier in ["auto", "off"] {
                let scratch = Scratch::new(who);
                // Or there would be no place for HOME and TMPDIR without namespaces.
                fs::set_permissions(scratch.path("tmp"), fs::Permissions::from_mode(0o700)).unwrap();
                let secret = scratch.file("outside/secret", "secret\n");
                let run = || {
                    let run =
                        Run::confined(&scratch).env("HOME", "/nonexistent").options(["--namespaces", tier]);
                    changed(&scratch, change, run)
                };
                let script = format!(
                    "echo x >made && chmod 600 made && echo y >$HOME/y && mktemp >/dev/null && cat /proc/self/stat >/dev/null \
                     && : >/dev/null || exit 9; cat {0}; chmod 600 {0}; exit 7",
                    secret.display()
                );
                let outcome = run().shell(&script);
                let tell = format!("{who:?} {name} {tier}: {}", outcome.tell());
                assert_eq!((outcome.code(), outcome.out.as_str()), (Some(7), ""), "{tell}");
                assert_eq!(outcome.err.lines().count(), 2, "{tell}");
                assert_eq!(fs::metadata(&secret).unwrap().permissions().mode() & 0o777, 0o644, "{tell}");
                let confine = scratch.confine();
                let words = [confine.to_str().unwrap(), "check", "--prove", "--namespaces", tier];
                let proved = changed(&scratch, change, Run::plain(&scratch).command(words)).run();
                assert!(
                    proved.ok() && proved.out.contains("The boundary held"),
                    "{who:?} {name}: {}",
                    proved.tell()
                );
            }
        }
    }
}

/// The kernel gives an own /proc only to whom nothing of it is hidden already (mount_too_revealing in fs/namespace.c).
#[test]
fn a_masked_proc_is_no_reason_to_run_without_what_needs_an_own_one() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let run = || changed(&scratch, MASKED_PROC, Run::confined(&scratch));
        let outcome = run()
            .options(["--require", "process-hiding"])
            .shell("touch started; ls /proc | grep -c '^[0-9]'");
        match who {
            Who::Root => assert!(outcome.ok(), "{}", outcome.tell()),
            Who::User => {
                assert_eq!(outcome.code(), Some(125), "{}", outcome.tell());
                assert!(outcome.err.contains("/proc"), "{}", outcome.tell());
                assert!(!scratch.path("w/started").exists());
            }
        }
    }
}
