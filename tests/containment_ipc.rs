//! socket-scope and process-scope: no other program's socket, queue, memory, signal, priority or terminal.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::fs;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::Path;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};

use common::table::options;
use common::victim::Victim;
use common::{EVERYONE, Findings, Outcome, Run, Scratch, Who};

/// Servers of another program of the same user, and whether anything has come to them.
struct Servers {
    stream: UnixListener,
    datagram: UnixDatagram,
    packet: Option<OwnedFd>,
}

impl Servers {
    fn at(scratch: &Scratch, dir: &Path) -> Self {
        for name in KINDS {
            let _ = fs::remove_file(dir.join(name));
        }
        let stream = UnixListener::bind(dir.join("stream")).unwrap();
        let datagram = UnixDatagram::bind(dir.join("datagram")).unwrap();
        let packet = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        rustix::net::bind(&packet, &SocketAddrUnix::new(dir.join("packet")).unwrap()).unwrap();
        rustix::net::listen(&packet, 8).unwrap();
        rustix::io::ioctl_fionbio(&packet, true).unwrap();
        KINDS.iter().for_each(|name| scratch.give(&dir.join(name)));
        Servers { packet: Some(packet), ..Self::quiet(stream, datagram) }
    }

    fn abstract_ones(name: &str) -> Self {
        let address = |kind: &str| SocketAddr::from_abstract_name(format!("{name}-{kind}")).unwrap();
        let stream = UnixListener::bind_addr(&address("stream")).unwrap();
        let datagram = UnixDatagram::bind_addr(&address("datagram")).unwrap();
        Self::quiet(stream, datagram)
    }

    fn quiet(stream: UnixListener, datagram: UnixDatagram) -> Self {
        stream.set_nonblocking(true).unwrap();
        datagram.set_nonblocking(true).unwrap();
        Servers { stream, datagram, packet: None }
    }

    /// Takes what waits; true when there was something.
    fn reached(&self) -> bool {
        let mut bytes = [0; 16];
        let mut visitor = self.stream.accept().is_ok();
        visitor |= self.packet.as_ref().is_some_and(|packet| rustix::net::accept(packet).is_ok());
        self.datagram.recv(&mut bytes).is_ok() || visitor
    }
}

const KINDS: [&str; 3] = ["stream", "datagram", "packet"];

const PATHNAME: &[(&str, &str)] = &[
    ("unix-stream", "stream"),
    ("unix-seqpacket", "packet"),
    ("unix-dgram", "datagram"),
    ("unix-dgram-connect", "datagram"),
    ("unix-pair", "datagram"),
    ("unix-sendmsg", "datagram"),
    ("unix-sendmmsg", "datagram"),
    ("unix-via-proc-fd", "stream"),
    ("unix-via-chdir", "stream"),
];

fn call(scratch: &Scratch, run: Run, operation: &str, dir: &Path, name: &str) -> Outcome {
    if operation.contains("via") {
        run.attack(scratch, [operation.as_ref(), dir.as_os_str(), name.as_ref()])
    } else {
        run.attack(scratch, [operation.as_ref(), dir.join(name).as_os_str()])
    }
}

#[test]
fn sockets_of_other_programs_are_not_reached_wherever_they_lie() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        scratch.dir("w/live");
        scratch.dir("outside/n\nl");
        for (label, dir, grants) in [
            ("outside", "outside", &[][..]),
            ("in a readable root", "outside", &["--ro", "@outside"]),
            ("in a sealed root", "outside", &["--seal", "@outside"]),
            ("in a writable root", "outside", &["--rw", "@outside"]),
            ("in the workspace", "w/live", &[]),
            ("in HOME", "home", &[]),
            ("below a name of two lines", "outside/n\nl", &["--ro", "@outside"]),
            ("in TMPDIR", "tmp", &[]),
            ("through a planted link", "w/planted", &[]),
        ] {
            let dir = scratch.path(dir);
            if label == "through a planted link" {
                scratch.link(scratch.outside(), "w/planted");
            }
            let servers = Servers::at(&scratch, &dir);
            for (operation, name) in PATHNAME {
                let run = Run::confined(&scratch).options(options(&scratch, grants));
                let outcome = call(&scratch, run, operation, &dir, name);
                findings.claim(!servers.reached() && outcome.denied(), || {
                    format!("{who:?}: {operation} {label}: {}", outcome.tell())
                });
                let twin = call(&scratch, Run::plain(&scratch), operation, &dir, name);
                findings.claim(servers.reached(), || {
                    format!("{who:?}: {operation} {label} unconfined: {}", twin.tell())
                });
            }
            for name in KINDS {
                fs::remove_file(dir.join(name)).unwrap();
            }
        }
    }
    findings.settle();
}

/// A read-only mount lets a FIFO be written to, and what is written reaches whoever reads it outside.
#[track_caller]
fn fifo(rows: &[(&[&str], bool)]) {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let fifo = scratch.path("outside/fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o644.into()).unwrap();
        scratch.give(&fifo);
        for (grants, works) in rows {
            // Held open at both ends, so that to open it never waits.
            let reader = fs::OpenOptions::new().read(true).write(true).open(&fifo).unwrap();
            let run = Run::confined(&scratch).options(options(&scratch, grants));
            let outcome = run.attack(&scratch, ["write-rdwr".as_ref(), fifo.as_os_str()]);
            let waiting = rustix::io::ioctl_fionread(&reader).unwrap();
            findings.claim((waiting > 0) == *works, || {
                format!("{who:?}: {grants:?}: {waiting} bytes, {}", outcome.tell())
            });
        }
    }
    findings.settle();
}

#[test]
fn a_fifo_outside_or_in_a_sealed_root_is_not_written_to() {
    fifo(&[(&[], false), (&["--seal", "@outside"], false), (&["--rw", "@outside"], true)]);
}

/// Beneath a private directory or a workspace what Landlock grants there reaches into what is only to be read.
#[test]
fn a_fifo_in_what_is_only_read_is_not_written_to_wherever_it_lies() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        for (dir, grants, works) in [
            ("home/svc", &["--ro", "@home/svc"][..], false),
            ("home/svc/deep/er", &["--ro", "@home/svc"], false),
            ("tmp/svc", &["--ro", "@tmp/svc"], false),
            ("w/part", &["--ro", "@w/part"], false),
            ("w/part", &["--read-only"], false),
            ("w/part/in", &["--ro", "@w/part", "--rw", "@w/part/in"], true),
            ("w/part", &[], true),
        ] {
            let scratch = Scratch::new(who);
            let dir = scratch.dir(dir);
            let text = scratch.file(dir.join("file").to_str().unwrap(), "as it was\n");
            let fifo = dir.join("fifo");
            rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).unwrap();
            scratch.give(&fifo);
            let reader = fs::OpenOptions::new().read(true).write(true).open(&fifo).unwrap();
            let root = scratch.root().display().to_string();
            let grants = || grants.iter().map(|word| word.replace('@', &format!("{root}/")));
            let outcome = Run::confined(&scratch)
                .options(grants())
                .attack(&scratch, ["write-rdwr".as_ref(), fifo.as_os_str()]);
            let waiting = rustix::io::ioctl_fionread(&reader).unwrap();
            findings.claim((waiting > 0) == works, || {
                format!("{who:?}: {:?}: {waiting} bytes, {}", grants().collect::<Vec<_>>(), outcome.tell())
            });
            let twin =
                Run::confined(&scratch).options(grants()).command(["cat".as_ref(), text.as_os_str()]).run();
            findings.claim(twin.out == "as it was\n", || format!("{who:?}: {}", twin.tell()));
        }
    }
    findings.settle();
}

#[test]
fn a_fifo_that_is_named_to_be_read_is_refused_where_it_could_be_written() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let fifo = scratch.path("home/fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).unwrap();
        scratch.give(&fifo);
        let run = || Run::confined(&scratch).command(["cat"]);
        let refused = run().option("--ro").option(&fifo).run();
        assert!(refused.code() == Some(125) && refused.err.contains("FIFO"), "{}", refused.tell());
        let writer = fs::OpenOptions::new().read(true).write(true).open(&fifo).unwrap();
        rustix::io::write(&writer, b"handed in\n").unwrap();
        let reader = fs::File::open(&fifo).unwrap();
        drop(writer);
        let handed = run().stdio(0, reader).run();
        assert_eq!(handed.out, "handed in\n", "{}", handed.tell());
    }
}

#[test]
fn a_fifo_in_a_directory_that_cannot_be_listed_is_not_written_to() {
    use std::os::unix::fs::PermissionsExt as _;
    let scratch = Scratch::new(Who::User);
    let dir = scratch.dir("home/svc/closed");
    let fifo = dir.join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).unwrap();
    scratch.give(&fifo);
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o711)).unwrap();
    std::os::unix::fs::chown(&dir, Some(0), Some(0)).unwrap();
    let reader = fs::OpenOptions::new().read(true).write(true).open(&fifo).unwrap();
    let run = |shown: &str| {
        Run::confined(&scratch).options(options(&scratch, &["--ro"])).option(scratch.path(shown))
    };
    let outcome = run("home/svc").attack(&scratch, ["write-rdwr".as_ref(), fifo.as_os_str()]);
    assert_eq!(rustix::io::ioctl_fionread(&reader).unwrap(), 0, "{}", outcome.tell());
    let refused = run("home/svc/closed").command(["true"]).run();
    assert!(refused.code() == Some(125) && refused.err.contains("--seal"), "{}", refused.tell());
    let twin = Run::plain(&scratch).attack(&scratch, ["write-rdwr".as_ref(), fifo.as_os_str()]);
    assert!(rustix::io::ioctl_fionread(&reader).unwrap() > 0, "{}", twin.tell());
}

#[test]
fn abstract_sockets_of_other_programs_are_not_reached() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let name = scratch.root().file_name().unwrap().to_str().unwrap().to_owned();
        let servers = Servers::abstract_ones(&name);
        for network in [&[][..], &["--net", "host"]] {
            for (operation, kind) in
                [("abstract-stream", "stream"), ("abstract-dgram", "datagram"), ("abstract-pair", "datagram")]
            {
                let target = format!("{name}-{kind}");
                let outcome = Run::confined(&scratch).options(network).attack(&scratch, [operation, &target]);
                findings.claim(!servers.reached() && outcome.denied(), || {
                    format!("{who:?}: {operation} {network:?}: {}", outcome.tell())
                });
                let twin = Run::plain(&scratch).attack(&scratch, [operation, &target]);
                findings
                    .claim(servers.reached(), || format!("{who:?}: {operation} unconfined: {}", twin.tell()));
            }
        }
    }
    findings.settle();
}

#[test]
fn programs_inside_talk_to_each_other() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for words in [
            vec!["unix-self", "talk"],
            vec!["unix-self-dgram", "talk-datagram"],
            vec!["unix-self", "/tmp/talk"],
            vec!["abstract-self", "talk"],
            vec!["socketpair-self"],
            vec!["sysv-self"],
        ] {
            let outcome = Run::confined(&scratch).attack(&scratch, &words);
            findings.claim(outcome.ok(), || format!("{who:?}: {words:?}: {}", outcome.tell()));
        }
    }
    findings.settle();
}

/// System V objects belong to the whole machine until they are removed.
struct SystemV<'a> {
    scratch: &'a Scratch,
    kind: &'static str,
    id: String,
    key: String,
}

impl<'a> SystemV<'a> {
    fn make(scratch: &'a Scratch, kind: &'static str, number: u32) -> Self {
        let key = (0x5a00_0000 + (std::process::id() & 0xf_ffff) * 8 + number).to_string();
        let made = Run::plain(scratch).attack(scratch, [&format!("{kind}-make"), &key, "the shared text"]);
        assert!(made.ok(), "{kind}: {}", made.tell());
        SystemV { scratch, kind, id: made.out.lines().next().unwrap().to_owned(), key }
    }

    fn state(&self) -> String {
        let question = match self.kind {
            "shm" => "shm-read",
            "msg" => "msg-count",
            _ => "sem-value",
        };
        Run::plain(self.scratch).attack(self.scratch, [question, &self.id]).out
    }
}

impl Drop for SystemV<'_> {
    fn drop(&mut self) {
        Run::plain(self.scratch).attack(self.scratch, [&format!("{}-remove", self.kind), &self.id]);
    }
}

#[test]
fn system_v_objects_of_other_programs_are_not_reached() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for (number, (kind, attacks)) in [
            ("shm", &["shm-read", "shm-write", "shm-key", "shm-remove"][..]),
            ("msg", &["msg-send", "msg-count", "msg-key", "msg-remove"]),
            ("sem", &["sem-set", "sem-value", "sem-key", "sem-remove"]),
        ]
        .into_iter()
        .enumerate()
        {
            let object = SystemV::make(&scratch, kind, number as u32 * 2 + who as u32);
            let before = object.state();
            for operation in attacks {
                let target = if operation.ends_with("key") { &object.key } else { &object.id };
                let outcome = Run::confined(&scratch).attack(&scratch, [operation, target.as_str()]);
                findings.claim(outcome.denied() && object.state() == before, || {
                    format!("{who:?}: {operation}: {}", outcome.tell())
                });
            }
            let table = format!("/proc/sysvipc/{kind}");
            let listed = Run::confined(&scratch).attack(&scratch, ["read", &table]);
            findings.claim(!listed.out.contains(&object.key), || format!("{who:?}: {table} tells of it"));
            for operation in attacks {
                let target = if operation.ends_with("key") { &object.key } else { &object.id };
                let twin = Run::plain(&scratch).attack(&scratch, [operation, target.as_str()]);
                findings.claim(twin.ok(), || format!("{who:?}: {operation} unconfined: {}", twin.tell()));
            }
        }
    }
    findings.settle();
}

#[test]
fn message_queues_of_other_programs_are_not_reached() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let name = format!("/{}", scratch.root().file_name().unwrap().to_str().unwrap());
        assert!(Run::plain(&scratch).attack(&scratch, ["queue-make", &name]).ok());
        let count = || Run::plain(&scratch).attack(&scratch, ["queue-count", &name]).out;
        for operation in ["queue-send", "queue-count", "queue-remove"] {
            let outcome = Run::confined(&scratch).attack(&scratch, [operation, &name]);
            findings.claim(outcome.denied(), || format!("{who:?}: {operation}: {}", outcome.tell()));
        }
        findings.claim(count().starts_with('0'), || format!("{who:?}: the queue holds {:?}", count()));
        let twin = Run::plain(&scratch).attack(&scratch, ["queue-send", &name]);
        findings
            .claim(twin.ok() && count().starts_with('1'), || format!("{who:?}: unconfined: {}", twin.tell()));
        Run::plain(&scratch).attack(&scratch, ["queue-remove", &name]);
    }
    findings.settle();
}

const SIGNALS: &[&str] = &[
    "kill",
    "kill-group",
    "tkill",
    "tgkill",
    "sigqueue",
    "tgsigqueue",
    "pidfd-signal",
    "setown",
    "setown-group",
    "setown-ex",
    "setown-ex-group",
    "setown-ex-thread",
    "fiosetown",
    "siocspgrp",
];

#[test]
fn no_signal_reaches_an_outside_process() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let mut victim = Victim::start(&scratch);
        for operation in SIGNALS {
            let outcome = Run::confined(&scratch).attack(&scratch, [operation, victim.pid.as_str()]);
            std::thread::sleep(std::time::Duration::from_millis(5));
            // To be told that the signal was sent is no harm; that it arrives is.
            let by_owner = operation.contains("own") || operation.contains("siocspgrp");
            findings.claim(victim.alive() && (by_owner || outcome.denied()), || {
                format!("{who:?}: {operation}: alive {}, {}", victim.alive(), outcome.tell())
            });
            if !victim.alive() {
                victim = Victim::start(&scratch);
            }
            let inside = Run::confined(&scratch).attack(&scratch, ["on-child", operation]);
            findings
                .claim(inside.ok(), || format!("{who:?}: {operation} to an own child: {}", inside.tell()));
            let twin = Run::plain(&scratch).attack(&scratch, [operation, victim.pid.as_str()]);
            for _ in 0..500 {
                if !victim.alive() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            findings.claim(!victim.alive(), || format!("{who:?}: {operation} unconfined: {}", twin.tell()));
            victim = Victim::start(&scratch);
        }
        let probe = Run::confined(&scratch).attack(&scratch, ["kill-probe", victim.pid.as_str()]);
        findings.claim(probe.denied(), || format!("{who:?}: kill 0: {}", probe.tell()));
    }
    findings.settle();
}

#[test]
fn no_outside_process_is_traced_written_to_limited_or_slowed() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for (operation, own_child) in [
            ("ptrace-attach", true),
            ("ptrace-seize", true),
            ("vm-write", true),
            ("mem-write", false),
            ("kcmp", false),
            ("prlimit", false),
            ("setpriority", false),
            ("setpriority-group", false),
            ("setpriority-high", false),
            ("ioprio-set", false),
        ] {
            let victim = Victim::start(&scratch);
            let (memory, standing) = (victim.memory(), victim.standing());
            let words = [operation, victim.pid.as_str(), victim.address.as_str()];
            let outcome = Run::confined(&scratch).attack(&scratch, words);
            let untouched = victim.memory() == memory && victim.standing() == standing;
            findings.claim(outcome.denied() && untouched, || {
                format!("{who:?}: {operation}: untouched {untouched}, {}", outcome.tell())
            });
            let twin = Run::plain(&scratch).attack(&scratch, words);
            let touched = victim.memory() != memory || victim.standing() != standing;
            // These two leave nothing to see.
            let unseen = ["kcmp", "ioprio-set"].contains(&operation);
            findings.claim(twin.ok() && (touched || unseen), || {
                format!("{who:?}: {operation} unconfined: {}", twin.tell())
            });
            if own_child {
                let inside = Run::confined(&scratch).attack(&scratch, ["on-child", operation]);
                findings.claim(inside.ok(), || {
                    format!("{who:?}: {operation} on an own child: {}", inside.tell())
                });
            }
        }
        for own in ["own-priority", "own-limit"] {
            let outcome = Run::confined(&scratch).attack(&scratch, [own]);
            findings.claim(outcome.ok(), || format!("{who:?}: {own}: {}", outcome.tell()));
        }
    }
    findings.settle();
}

#[test]
fn files_of_an_outside_process_cannot_be_opened_for_writing() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let victim = Victim::start(&scratch);
        for name in
            ["oom_score_adj", "comm", "coredump_filter", "timerslack_ns", "clear_refs", "mem", "uid_map"]
        {
            let path = format!("/proc/{}/{name}", victim.pid);
            let outcome = Run::confined(&scratch).attack(&scratch, ["open-write", &path]);
            findings.claim(outcome.denied(), || format!("{who:?}: {path}: {}", outcome.tell()));
            let twin = Run::plain(&scratch).attack(&scratch, ["open-write", &path]);
            findings.claim(twin.ok(), || format!("{who:?}: {path} unconfined: {}", twin.tell()));
        }
    }
    findings.settle();
}

#[test]
fn nothing_is_typed_into_the_terminal_that_the_caller_will_read() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let attack = scratch.attack();
        let wrapper = [attack.as_os_str(), "on-terminal".as_ref()];
        for operation in ["tiocsti", "tiocsti-high", "tiocsti-stdin", "tiocsti-stdin-high"] {
            let outcome = Run::confined(&scratch).under(wrapper).attack(&scratch, [operation]);
            findings.claim(outcome.out.contains("left 0") && outcome.out.contains("EPERM"), || {
                format!("{who:?}: {operation}: {}", outcome.tell())
            });
            let twin = Run::plain(&scratch).under(wrapper).attack(&scratch, [operation]);
            // Linux may have this switched off by dev.tty.legacy_tiocsti: then it says EIO, to root excepted.
            let off = who == Who::User && twin.out.contains("EIO");
            findings.claim(twin.out.contains("left 1") || off, || {
                format!("{who:?}: {operation} unconfined: {}", twin.tell())
            });
        }
        for operation in ["tioclinux", "tiocsetd"] {
            let outcome = Run::confined(&scratch).under(wrapper).attack(&scratch, [operation]);
            findings
                .claim(outcome.out.contains("EPERM"), || format!("{who:?}: {operation}: {}", outcome.tell()));
        }
        let twin = Run::confined(&scratch).under(wrapper).attack(&scratch, ["window-size"]);
        findings
            .claim(twin.out.contains("ok"), || format!("{who:?}: the size of the terminal: {}", twin.tell()));
        // On a terminal made inside, too: its other end may be held by a program that runs longer.
        let own = Run::confined(&scratch).attack(&scratch, ["tiocsti-high"]);
        findings.claim(own.verdict() == "EPERM", || format!("{who:?}: on an own terminal: {}", own.tell()));
    }
    findings.settle();
}

#[test]
fn other_terminals_of_the_user_are_not_there() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let attack = scratch.attack();
        // The pty that the wrapper made is number 0 or more of the host's; inside only what confine shows may exist.
        let listed = Run::confined(&scratch).attack(&scratch, ["list", "/dev/pts"]);
        let numbers = listed.out.lines().filter(|line| line.parse::<u32>().is_ok()).count();
        findings.claim(listed.ok() && numbers == 0, || format!("{who:?}: /dev/pts: {}", listed.tell()));
        let twin = Run::plain(&scratch)
            .under([attack.as_os_str(), "on-terminal".as_ref()])
            .attack(&scratch, ["list", "/dev/pts"]);
        let shown = twin.out.lines().any(|line| line.trim().parse::<u32>().is_ok());
        findings.claim(shown, || format!("{who:?}: unconfined: {}", twin.tell()));
    }
    findings.settle();
}

#[test]
fn keys_of_the_caller_are_not_read() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let attack = scratch.attack();
        let wrapper =
            [attack.as_os_str(), "with-session-key".as_ref(), "token".as_ref(), "a secret key".as_ref()];
        for words in [["key-read", "token"], ["key-read-id", "@KEY"], ["key-request", "token"]] {
            let outcome = Run::confined(&scratch).under(wrapper).attack(&scratch, words);
            findings.claim(outcome.denied() && !outcome.out.contains("secret"), || {
                format!("{who:?}: {words:?}: {}", outcome.tell())
            });
            let twin = Run::plain(&scratch).under(wrapper).attack(&scratch, words);
            findings.claim(twin.ok(), || format!("{who:?}: {words:?} unconfined: {}", twin.tell()));
        }
    }
    findings.settle();
}

/// /proc/net/unix is text, and an abstract name may hold a line of it.
#[test]
fn a_name_that_looks_like_a_line_of_the_list_covers_nothing() {
    use std::os::linux::net::SocketAddrExt as _;
    let text = format!("x{}\n0: 00000002 00000000 00010000 0001 01 1 /usr/bin/env", std::process::id());
    let address = SocketAddr::from_abstract_name(text).unwrap();
    let _server = UnixListener::bind_addr(&address).unwrap();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let outcome = Run::confined(&scratch).shell("env true && echo ran");
        assert!(outcome.ok() && outcome.out == "ran\n", "{who:?}: {}", outcome.tell());
    }
}
