//! read-scope and path-hiding: what lies outside cannot be read, listed, or found to be there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use common::scratch::{attack_program, copy};
use common::table::options;
use common::victim::Victim;
use common::{EVERYONE, Findings, Outcome, Run, Scratch, Who};

const SECRET: &str = "a secret of the user";

/// Operation and whether it needs no more than to read, so that it works in a readable root too.
const READS: &[(&str, bool)] = &[
    ("read", true),
    ("read-rdwr", false),
    ("read-openat2", true),
    ("read-opath", true),
    ("read-mmap", true),
    ("read-sendfile", true),
    ("read-splice", true),
    ("read-copy", true),
    ("read-link-in", false),
    ("read-rename-in", false),
];

fn attempt(scratch: &Scratch, run: Run, operation: &str, file: &Path) -> Outcome {
    let copy = scratch.path("w/own/copy");
    let _ = fs::remove_file(&copy);
    let outcome = run.attack(scratch, [operation.as_ref(), file.as_os_str(), copy.as_os_str()]);
    let _ = fs::remove_file(&copy);
    outcome
}

/// A place that only `--ro /` shows, on every Linux.
#[test]
fn what_is_hidden_stays_hidden_when_the_whole_root_is_shown() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let list =
            |options: &[&str]| Run::confined(&scratch).options(options).command(["ls", "/var/log"]).run();
        assert!(list(&["--ro", "/"]).ok());
        let hidden = list(&["--ro", "/", "--hide", "/var/log"]);
        assert!(!hidden.ok() && hidden.err.contains("Permission denied"), "{}", hidden.tell());
        // Without mounts nothing private stands before the host's own /tmp.
        let secret = scratch.file("outside/secret", "outside secret\n");
        let bare = |options: &[&str]| {
            let options = ["--namespaces", "off", "--ro", "/"].iter().chain(options);
            Run::confined(&scratch).options(options).command(["cat".as_ref(), secret.as_os_str()]).run()
        };
        assert_eq!(bare(&[]).out, "outside secret\n");
        let hidden = bare(&["--hide", secret.to_str().unwrap()]);
        assert!(!hidden.ok() && hidden.out.is_empty(), "{}", hidden.tell());
    }
}

#[test]
fn a_secret_outside_is_not_read() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        scratch.dir("w/part");
        for (label, file, grants) in [
            ("outside", "outside/secret", &[][..]),
            ("in HOME", "home/.ssh/id", &[]),
            ("in HOME's credentials", "home/.netrc", &[]),
            ("beside the workspace", "secret", &[]),
            ("through a planted link", "w/planted", &[]),
            ("in a hidden part of the workspace", "w/part/secret", &["--hide", "@w/part"]),
            (
                "in a hidden part of a readable root",
                "outside/secret",
                &["--ro", "@outside", "--hide", "@outside/secret"],
            ),
            (
                "in a hidden part of a sealed root",
                "outside/secret",
                &["--seal", "@outside", "--hide", "@outside/secret"],
            ),
        ] {
            for (operation, _) in READS {
                for twin in [false, true] {
                    if label == "through a planted link" {
                        scratch.file("outside/secret", SECRET);
                        let _ = fs::remove_file(scratch.path("w/planted"));
                        // To link or to rename the planted link itself is not to read what it names.
                        if operation.contains("link-in") || operation.contains("rename-in") {
                            continue;
                        }
                        scratch.link(scratch.path("outside/secret"), "w/planted");
                    } else {
                        scratch.file(file, SECRET);
                    }
                    let run = if twin {
                        Run::plain(&scratch)
                    } else {
                        Run::confined(&scratch).options(options(&scratch, grants))
                    };
                    // Without the right to this directory no name in it can be made or taken away.
                    scratch.give(scratch.root());
                    let outcome = attempt(&scratch, run, operation, &scratch.path(file));
                    let seen = outcome.out.contains(SECRET);
                    if twin {
                        let absent = *operation == "read-openat2" && outcome.verdict() == "ENOSYS";
                        findings.claim(seen || absent, || {
                            format!("{who:?}: {operation} {label} unconfined: {}", outcome.tell())
                        });
                    } else {
                        findings.claim(!seen && outcome.denied(), || {
                            format!("{who:?}: {operation} {label}: {}", outcome.tell())
                        });
                    }
                }
            }
        }
    }
    findings.settle();
}

#[test]
fn what_was_granted_is_read() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for (label, file, grants, writable) in [
            ("in the workspace", "w/secret", &[][..], true),
            ("in a readable root", "outside/secret", &["--ro", "@outside"], false),
            ("in a sealed root", "outside/secret", &["--seal", "@outside"], false),
            ("a readable file", "outside/secret", &["--ro", "@outside/secret"], false),
        ] {
            for (operation, only_reads) in READS {
                // copy_file_range(2) does not reach from an overlay to another file system.
                let unlike = label == "in a sealed root" && *operation == "read-copy";
                if unlike || !writable && !only_reads {
                    continue;
                }
                scratch.file(file, SECRET);
                let run = Run::confined(&scratch).options(options(&scratch, grants));
                let outcome = attempt(&scratch, run, operation, &scratch.path(file));
                let absent = *operation == "read-openat2" && outcome.verdict() == "ENOSYS";
                findings.claim(outcome.out.contains(SECRET) || absent, || {
                    format!("{who:?}: {operation} {label}: {}", outcome.tell())
                });
            }
        }
    }
    findings.settle();
}

/// A name that exists and one that does not must get the same answer.
#[test]
fn names_outside_cannot_be_probed() {
    let probes = [
        "stat",
        "lstat",
        "statx",
        "access",
        "opath",
        "statfs",
        "chdir",
        "readlink",
        "getxattr",
        "inotify",
        "name-handle",
        "list",
        "read",
        "open-write",
        "execute",
    ];
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        scratch.fixture("outside/f");
        copy(attack_program(), &scratch.path("outside/tool"));
        for there in
            ["outside", "outside/f", "outside/f/file", "outside/f/link", "outside/tool", "bin/confine"]
        {
            let there = scratch.path(there);
            let missing = there.with_file_name("missing");
            for probe in probes {
                let [real, none] = [&there, &missing]
                    .map(|path| Run::confined(&scratch).attack(&scratch, [probe.as_ref(), path.as_os_str()]));
                findings.claim(real.denied() && real.out == none.out, || {
                    format!(
                        "{who:?}: {probe} {}: {} but missing: {}",
                        there.display(),
                        real.tell(),
                        none.tell()
                    )
                });
            }
            let twin = Run::plain(&scratch).attack(&scratch, ["stat".as_ref(), there.as_os_str()]);
            findings.claim(twin.ok(), || format!("{who:?}: {} unconfined: {}", there.display(), twin.tell()));
        }
        let home = Run::confined(&scratch).attack(&scratch, ["list".as_ref(), scratch.home().as_os_str()]);
        findings.claim(home.ok() && !home.out.contains(".ssh"), || format!("{who:?}: HOME: {}", home.tell()));
    }
    findings.settle();
}

/// Mounts may lie on top of one another at the root; `..` of the root leads to the topmost.
#[test]
fn nothing_lies_above_the_root() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let [here, above] = ["/", "/.."].map(|path| Run::confined(&scratch).attack(&scratch, ["list", path]));
        findings.claim(here.ok() && here.out == above.out, || format!("{who:?}: /..: {}", above.tell()));
        for top in ["/..", "/../..", "/proc/self/root/..", "/proc/self/cwd/../../../../.."] {
            let road = format!("{top}{}", scratch.outside().display());
            let outcome = Run::confined(&scratch).attack(&scratch, ["stat", &road]);
            findings.claim(outcome.denied(), || format!("{who:?}: {road}: {}", outcome.tell()));
            let twin = Run::plain(&scratch).attack(&scratch, ["stat", &road]);
            findings.claim(twin.ok(), || format!("{who:?}: {road} unconfined: {}", twin.tell()));
        }
        let mounts = Run::confined(&scratch).attack(&scratch, ["read", "/proc/self/mountinfo"]);
        let roots = mounts.out.lines().filter(|line| line.split(' ').nth(4) == Some("/")).count();
        findings.claim(roots == 1, || format!("{who:?}: {roots} mounts at the root: {}", mounts.tell()));
    }
    findings.settle();
}

#[test]
fn directories_of_the_machine_that_no_program_needs_do_not_exist_inside() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let machine =
            ["/boot", "/srv", "/mnt", "/media", "/var/log", "/var/spool", "/lost+found", "/var/lib/systemd"];
        let there: Vec<&str> = machine.into_iter().filter(|path| Path::new(path).exists()).collect();
        assert!(!there.is_empty());
        for path in there {
            let outcome = Run::confined(&scratch).attack(&scratch, ["stat", path]);
            findings.claim(outcome.denied(), || format!("{who:?}: {path} exists: {}", outcome.tell()));
        }
        for path in ["/usr", "/etc/passwd", "/dev/null", "/proc/self", "/tmp"] {
            let outcome = Run::confined(&scratch).attack(&scratch, ["stat", path]);
            findings.claim(outcome.ok(), || format!("{who:?}: {path} is missing: {}", outcome.tell()));
        }
    }
    findings.settle();
}

/// Only opened, never read: to read some of these acts.
#[test]
fn root_cannot_open_what_others_may_not_of_the_kernels_files() {
    let scratch = Scratch::new(Who::Root);
    let open = |run: Run, files: &[String]| {
        let script = files.iter().fold(String::new(), |script, file| {
            script + &format!("(: <{file}) 2>/dev/null && echo {file}\n")
        });
        run.shell(script + "true").out
    };
    let named = |path: &str| path.to_owned();
    let mut files = vec![named("/proc/sys/kernel/cad_pid"), named("/proc/sys/vm/mmap_rnd_bits")];
    files.extend(["/sys/kernel/slab", "/sys/module", "/sys/firmware/acpi/tables"].iter().flat_map(|tree| {
        roots_own(Path::new(tree)).into_iter().take(20).map(|path| path.display().to_string())
    }));
    files.retain(|file| fs::metadata(file).is_ok());
    let network = vec![
        named("/proc/sys/net/ipv4/tcp_fastopen_key"),
        named("/proc/sys/net/ipv6/conf/lo/stable_secret"),
        named("/proc/sys/net/core/bpf_jit_harden"),
    ];
    let lines = |text: &str| text.lines().count();
    for (options, files) in [
        (&[][..], &files),
        (&["--net", "host"], &files),
        (&["--net", "host"], &network),
        (&["--require", "process-hiding"], &files),
    ] {
        let opened = open(Run::confined(&scratch).options(options), files);
        assert_eq!(opened, "", "{options:?}");
        assert_eq!(lines(&open(Run::plain(&scratch), files)), files.len(), "unconfined");
    }
    let opened = open(Run::confined(&scratch).options(["--namespaces", "off"]), &files);
    // Without a view /proc can only be granted whole.
    assert!(opened.lines().all(|file| file.starts_with("/proc/")), "{opened}");
}

fn roots_own(tree: &Path) -> Vec<PathBuf> {
    use std::os::unix::fs::MetadataExt as _;
    let mut found = Vec::new();
    for entry in fs::read_dir(tree).into_iter().flatten().flatten() {
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_dir() {
            found.extend(roots_own(&entry.path()));
        } else if metadata.is_file() && metadata.mode() & 0o404 == 0o400 {
            found.push(entry.path());
        }
        if found.len() > 20 {
            break;
        }
    }
    found
}

#[test]
fn everybody_reads_what_programs_ask_the_kernel_about_the_machine() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for file in [
            "/sys/devices/system/cpu/online",
            "/sys/devices/system/cpu/cpu0/topology/core_id",
            "/sys/devices/system/node/online",
            "/sys/kernel/mm/transparent_hugepage/enabled",
            "/sys/class/net/lo/mtu",
            "/proc/sys/kernel/pid_max",
            "/proc/sys/net/core/somaxconn",
        ] {
            let outcome = Run::confined(&scratch).command(["cat", file]).run();
            findings.claim(outcome.ok() && !outcome.out.is_empty(), || {
                format!("{who:?}: {file}: {}", outcome.tell())
            });
        }
        let outcome = Run::confined(&scratch).shell("lscpu && nproc && ls /sys/class /sys/module");
        findings.claim(outcome.ok(), || format!("{who:?}: {}", outcome.tell()));
    }
    findings.settle();
}

/// What the machine keeps for root alone: nothing of it is shown, only whether the read succeeded.
#[test]
fn root_cannot_read_what_others_may_not() {
    let scratch = Scratch::new(Who::Root);
    let files = [
        "/etc/shadow",
        "/etc/shadow-",
        "/etc/gshadow",
        "/etc/sudoers",
        "/etc/security/opasswd",
        "/etc/ssh/ssh_host_ed25519_key",
        "/etc/ssh/ssh_host_rsa_key",
        "/etc/krb5.keytab",
        "/proc/kcore",
        "/proc/kpagecount",
        "/proc/kpageflags",
        "/proc/slabinfo",
        "/proc/keys",
        "/dev/mem",
        "/dev/kmsg",
    ];
    let mut findings = Findings::default();
    let mut met = 0;
    for file in files.into_iter().filter(|file| Path::new(file).exists()) {
        let twin = Run::plain(&scratch).attack(&scratch, ["access", file]);
        findings.claim(twin.ok(), || format!("{file} unconfined: {}", twin.tell()));
        met += 1;
        let outcome = Run::confined(&scratch).attack(&scratch, ["read-quiet", file]);
        findings.claim(outcome.denied(), || format!("Root: read {file}: {}", outcome.tell()));
    }
    findings.claim(met >= 3, || format!("only {met} of these files exist here"));
    let twin = Run::confined(&scratch).attack(&scratch, ["read-quiet", "/etc/passwd"]);
    findings.claim(twin.ok(), || format!("Root: read /etc/passwd: {}", twin.tell()));
    let scratch = Scratch::new(Who::User);
    let shadow = Run::confined(&scratch).attack(&scratch, ["read-quiet", "/etc/shadow"]);
    findings.claim(shadow.denied(), || format!("User: read /etc/shadow: {}", shadow.tell()));
    findings.settle();
}

#[test]
fn nothing_private_is_read_of_an_outside_process() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        scratch.file("outside/secret", SECRET);
        let victim = Victim::start(&scratch);
        let of = |name: &str| PathBuf::from(format!("/proc/{}/{name}", victim.pid)).into_os_string();
        let secret_by_root = of(&format!("root{}", scratch.path("outside/secret").display()));
        let rows = [
            (vec!["read".into(), of("environ")], "environment secret"),
            (
                vec!["mem-read".into(), victim.pid.clone().into(), victim.address.clone().into()],
                "memory of the victim",
            ),
            (
                vec!["vm-read".into(), victim.pid.clone().into(), victim.address.clone().into()],
                "memory of the victim",
            ),
            (vec!["take-descriptor".into(), victim.pid.clone().into()], "held secret"),
            (vec!["read".into(), of("fd/7")], "held secret"),
            (vec!["read".into(), of("maps")], "attack"),
            (vec!["readlink".into(), of("cwd")], "outside"),
            (vec!["readlink".into(), of("exe")], "attack"),
            (vec!["readlink".into(), of("fd/7")], "held"),
            (vec!["list".into(), of("cwd")], "secret"),
            (vec!["read".into(), of("cwd/secret")], SECRET),
            (vec!["read".into(), secret_by_root], SECRET),
        ];
        for (words, secret) in rows {
            let outcome = Run::confined(&scratch).attack(&scratch, &words);
            findings.claim(outcome.denied() && !outcome.out.contains(secret), || {
                format!("{who:?}: {words:?}: {}", outcome.tell())
            });
            let twin = Run::plain(&scratch).attack(&scratch, &words);
            findings.claim(twin.ok() && twin.out.contains(secret), || {
                format!("{who:?}: {words:?} unconfined: {}", twin.tell())
            });
        }
        for own in ["/proc/self/environ", "/proc/self/maps"] {
            let twin = Run::confined(&scratch).attack(&scratch, ["read", own]);
            findings.claim(twin.ok(), || format!("{who:?}: {own}: {}", twin.tell()));
        }
    }
    findings.settle();
}

#[test]
fn a_program_outside_cannot_be_executed_and_one_inside_can() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for (place, grants, runs) in [
            ("outside/tool", &[][..], false),
            ("outside/tool", &["--ro", "@outside"], true),
            ("w/tool", &[], true),
        ] {
            copy(attack_program(), &scratch.path(place));
            let run = Run::confined(&scratch).options(options(&scratch, grants));
            let outcome = run.attack(&scratch, ["execute".as_ref(), scratch.path(place).as_os_str()]);
            findings.claim(outcome.out.contains("euid") == runs, || {
                format!("{who:?}: {place} {grants:?}: {}", outcome.tell())
            });
        }
    }
    findings.settle();
}

#[test]
fn the_whole_host_is_shown_read_only_when_that_is_asked_for() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let script = "ls /var/log >/dev/null && ls /home >/dev/null && echo x > \"$HOME/own\" && echo x > /tmp/own && \
            ! mkdir /var/lib/confine-was-here 2>/dev/null && echo ok > inside && cat inside";
        let outcome = Run::confined(&scratch).options(["--ro", "/"]).shell(script);
        findings.claim(outcome.out == "ok\n", || format!("{who:?}: {}", outcome.tell()));
        let twin = Run::confined(&scratch).shell("ls /var/log");
        findings.claim(!twin.ok(), || format!("{who:?}: unasked: {}", twin.tell()));
    }
    findings.settle();
}

#[test]
fn without_namespaces_what_is_hidden_has_no_other_name_that_opens_it() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        scratch.dir("outside/deep");
        let hidden = scratch.file("outside/deep/hidden", "hidden\n");
        std::fs::hard_link(&hidden, scratch.path("outside/deep/twin")).unwrap();
        scratch.file("outside/deep/plain", "plain\n");
        let run = |options: &[&OsStr]| {
            let run =
                Run::confined(&scratch).options(["--namespaces", "off", "--ro"]).option(scratch.outside());
            run.options(options).shell("cd ../outside/deep; cat hidden twin plain; echo ran")
        };
        let outcome = run(&["--hide".as_ref(), hidden.as_os_str()]);
        findings.claim(outcome.out == "plain\nran\n", || format!("{who:?}: {}", outcome.tell()));
        let twin = run(&[]);
        findings.claim(twin.out == "hidden\nhidden\nplain\nran\n", || format!("{who:?}: {}", twin.tell()));
    }
    findings.settle();
}
