//! `CONFINE_NOTE`: what a command, or the model behind it, needs to know about where it runs.

use std::fmt::Write;

use super::{Ceilings, Namespace, Plan, facts};
use crate::enforce::cgroup::Mechanism;
use crate::enforce::limits::What;
use crate::enforce::seccomp::Inet;
use crate::error::show;
use crate::view::{Access, Backing, Origin, Place, View};

/// What is told to whoever runs inside: a text for people and models, and the same facts for programs.
#[derive(Debug)]
pub struct Note {
    text: String,
    facts: Vec<u8>,
}

pub const TEXT: &str = "note";
pub const FACTS: &str = "plan.json";
/// Only where a layer turned out to be less than the plan says.
pub const LESSER: &str = "layers";

impl Note {
    pub fn of(plan: &Plan, view: &View) -> Note {
        Note { text: text(plan, view), facts: facts::write(plan, view) }
    }

    /// By their names, which lie beside each other.
    pub fn files(&self) -> [(&'static str, &[u8]); 2] {
        [(TEXT, self.text.as_bytes()), (FACTS, &self.facts)]
    }

    /// In a file system that counts whole pages.
    pub fn bytes(&self) -> u64 {
        const PAGE: u64 = 4096;
        self.files().iter().map(|(_, bytes)| (bytes.len() as u64).next_multiple_of(PAGE)).sum()
    }
}

/// Plain text, short lines, facts first; beside each denial its errno and what to ask for. Names come from the user
/// and from hostile trees, so each is escaped.
pub fn text(plan: &Plan, view: &View) -> String {
    let mut note = Lines(String::new());
    note.line(
        "You run inside `confine`. What follows is enforced by the kernel: retrying or going around it does",
    );
    note.line("not help. Where something is missing, tell the user which option to add.");
    files(&mut note, plan);
    guards(&mut note, plan, view);
    network(&mut note, plan);
    processes(&mut note, plan);
    limits(&mut note, plan);
    if !plan.waived.is_empty() {
        note.line("\nGIVEN UP ON THIS HOST (by `--waive`; what can be kept is kept all the same)");
        for (promise, why) in &plan.waived {
            note.line(&format!("  {promise}: {why}"));
        }
    }
    let _ = write!(note.0, "\npolicy {}\n", plan.id());
    note.0
}

struct Lines(String);

impl Lines {
    fn line(&mut self, text: &str) {
        self.0.push_str(text);
        self.0.push('\n');
    }

    /// A heading and the paths under it, or nothing where there are none.
    fn places<'a>(&mut self, heading: &str, places: impl Iterator<Item = &'a Place>) {
        let mut places = places.peekable();
        if places.peek().is_some() {
            self.line(&format!("  {heading}:"));
        }
        for place in places {
            let path = show(place.path.as_os_str()).to_string();
            self.line(&format!("    {path} ({})", place.reason));
        }
    }
}

fn files(note: &mut Lines, plan: &Plan) {
    let list = || plan.world.view.iter();
    let shown = |place: &&Place| matches!(place.backing, Backing::Bind | Backing::Kept | Backing::Sealed);
    note.line("\nFILES");
    note.places("read and write", list().filter(shown).filter(|place| place.access == Access::Write));
    note.places(
        "read only, as asked",
        list().filter(shown).filter(|place| place.access == Access::Read && place.origin == Origin::Option),
    );
    let fresh = |place: &&Place| matches!(place.backing, Backing::Fresh { .. });
    note.places("private, empty at the start, gone at the end", list().filter(fresh));
    let layer = |place: &&Place| place.backing == Backing::Layer;
    note.places("caches; what is written there is gone at the end", list().filter(layer));
    let kept = |place: &&Place| place.backing == Backing::KeptLayer;
    note.places(
        "caches; what is written there is kept, unless another run keeps its own",
        list().filter(kept),
    );
    if plan.has(Namespace::Mount) {
        note.line("  the rest of the system is read only, or does not exist here:");
        note.line(
            "    ENOENT (No such file or directory) for what exists on the host: it is not shown here;",
        );
        note.line("      ask for `--ro PATH` to read it or `--rw PATH` to change it");
        note.line(
            "    EROFS (Read-only file system) on creating, changing, chmod, chown, touch: not a writable",
        );
        note.line("      place; ask for `--rw PATH`");
        note.line(
            "    EACCES (Permission denied) on reading: a secret, or another program's socket, is covered",
        );
    } else {
        note.line("  this host gives no private view: paths are the host's own");
        note.line("    EACCES (Permission denied) on reading or listing: not granted; ask for `--ro PATH`");
        note.line("    EACCES on creating or changing: not a writable place; ask for `--rw PATH`");
        if plan.process.seccomp.broker.metadata {
            note.line(
                "    EPERM on chmod, chown, touch, attributes: not a writable place; or a program that hides",
            );
            note.line("      its memory (unreadable file, PR_SET_DUMPABLE) asks, which is always refused");
        }
        note.line("    /tmp, /dev/shm and new terminals cannot be used (EACCES): write to $TMPDIR or $HOME; what does");
        note.line("      not read TMPDIR has to be told (`java -Djava.io.tmpdir=$TMPDIR`)");
        note.line("    a directory with a secret in it can be used by name but not listed (as /etc may be)");
    }
    note.line(
        "    EXDEV (Invalid cross-device link) on rename or link: the two places are apart; copy instead",
    );
}

fn guards(note: &mut Lines, plan: &Plan, view: &View) {
    let guarded = |place: &&Place| place.origin == Origin::Found && place.backing == Backing::Itself;
    let list = || plan.world.view.iter().filter(guarded);
    if list().next().is_some() {
        note.line(
            "  guarded, since they run by themselves outside: EROFS on changing, EBUSY (Device or resource",
        );
        note.line("  busy) on removing or renaming them or what holds them:");
        for place in list().filter(|place| place.access == Access::Read) {
            note.line(&format!("    {}", show(place.path.as_os_str())));
        }
        note.line("    commits work; a new hook or git setting is for the user to make");
        note.line("    a setting for one command: `git -c KEY=VALUE ...`");
    }
    if !view.unguarded.is_empty() {
        note.line("  these run by themselves outside, and this host cannot guard them; leave them alone:");
        for path in &view.unguarded {
            note.line(&format!("    {}", show(path.as_os_str())));
        }
    }
}

fn network(note: &mut Lines, plan: &Plan) {
    note.line("\nNETWORK");
    match (plan.process.seccomp.inet, plan.has(Namespace::Network)) {
        (Inet::All, true) => {
            note.line("  none but a private loopback: what runs in here reaches itself on 127.0.0.1 and ::1");
            note.line(
                "    ENETUNREACH (Network is unreachable), or a name that does not resolve: there is no",
            );
            note.line("      outside; ask for `--connect PORT` (TCP) or `--net host`");
            note.line(
                "    ECONNREFUSED (Connection refused) on 127.0.0.1: servers of the user are not here;",
            );
            note.line("      start your own inside");
        }
        (Inet::All, false) => note.line("  the host's"),
        (Inet::Loopback, _) => {
            note.line(
                "  TCP on 127.0.0.1 and ::1 of the host: its services are reached, and yours are by them",
            );
            note.line(
                "    EACCES on connect: another address; ask for `--connect PORT` (TCP) or `--net host`",
            );
            note.line("    EACCES on listen: bind to 127.0.0.1 or ::1 first, and to no other address");
            note.line(
                "    EINVAL on listen while the socket connects; EPERM on choosing a device or a route",
            );
            let ports = plan.world.ruleset.connect.as_deref().unwrap_or_default();
            if !ports.is_empty() {
                let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
                note.line(&format!("  connections over TCP to port {} of any address", ports.join(", ")));
            }
            note.line("    EPROTONOSUPPORT or EAFNOSUPPORT: UDP and all other protocols");
        }
        (Inet::Tcp, _) => {
            let ports = plan.world.ruleset.connect.as_deref().unwrap_or_default();
            let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
            let to = if ports.is_empty() {
                "nowhere".to_owned()
            } else {
                format!("to port {} only", ports.join(", "))
            };
            note.line(&format!("  connections over TCP {to}"));
            note.line("    EACCES (Permission denied) on connect: another port; ask for `--connect PORT`");
            match &plan.world.ruleset.bind {
                None => note.line("  servers on any TCP port, reachable from outside"),
                Some(ports) if ports.is_empty() => {
                    note.line("    EACCES or EPERM on bind and listen: nothing can be served; ask for `--listen PORT`");
                }
                Some(ports) => {
                    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
                    note.line(&format!("  servers on TCP port {}, reachable from outside", ports.join(", ")));
                    note.line("    EACCES on bind and listen: another port; ask for `--listen PORT`");
                }
            }
            note.line(
                "    EPROTONOSUPPORT or EAFNOSUPPORT: UDP and all other protocols; names need port 53 too",
            );
        }
        (Inet::None, _) => {
            note.line("  none, no loopback either: EAFNOSUPPORT (Address family not supported by protocol)");
            if !plan.has(Namespace::Mount) {
                note.line("    a private loopback needs a network namespace, which this host does not give");
            }
            note.line("    ask for `--connect PORT` (TCP) or `--net host`");
        }
    }
    if plan.process.seccomp.broker.connect {
        note.line(
            "  UNIX sockets: streams by path work; abstract names give ECONNREFUSED, also among your own;",
        );
        if !plan.process.seccomp.unix_datagrams {
            note.line("    datagrams EPROTONOSUPPORT: ask for `--allow unix-datagram`");
        }
    }
    note.line("  raw, packet and other special sockets: EAFNOSUPPORT, EPROTONOSUPPORT or EPERM, always");
    if plan.waived.contains_key(&crate::policy::Promise::SocketScope) {
        note.line(
            "  sockets of other programs are not yours to use, though this host cannot hide all of them",
        );
    } else {
        note.line(
            "  sockets of other programs (agents, docker, D-Bus, X11) are out of reach: ENOENT, EACCES or",
        );
        note.line("    ECONNREFUSED");
    }
}

fn processes(note: &mut Lines, plan: &Plan) {
    note.line("\nPROCESSES");
    note.line(
        "  others cannot be signalled, traced, limited or read: EPERM (Operation not permitted) or EACCES;",
    );
    note.line("    your own children can; a lock file whose owner `kill -0` does not find may be of a server outside:");
    note.line("      start no second one on the same data");
    note.line(
        "  no privilege can be had, asking is no use: sudo, setuid programs and modes, mount, device nodes,",
    );
    note.line("    keyrings and namespaces give EPERM");
    note.line(
        "    bubblewrap, podman, and the sandboxes of Chromium and bazel need their option without sandbox;",
    );
    note.line("    `--allow userns` gives user namespaces back, but no mounts");
    note.line(
        "  io_uring, clone3 and other new calls give ENOSYS (Function not implemented); callers fall back",
    );
    if !plan.process.seccomp.sysv_ipc {
        note.line("  System V IPC and POSIX message queues give ENOSYS (Function not implemented), POSIX semaphores and");
        note.line(
            "    shared memory EACCES: no multiprocessing locks, no PostgreSQL; use files, pipes or threads",
        );
    }
    note.line("  signing with gpg or ssh keys is not possible: keys and agents are outside");
}

fn limits(note: &mut Lines, plan: &Plan) {
    let timeout = plan.supervision.as_ref().and_then(|supervision| supervision.timeout);
    let bounds = timeout.is_some() || plan.process.limits.iter().any(|limit| limit.what != What::Core);
    if bounds || plan.has(Namespace::Mount) {
        note.line("\nLIMITS");
    }
    for limit in &plan.process.limits {
        let value = limit.value;
        match limit.what {
            What::Procs => note.line(&format!("  {value} threads in all: EAGAIN on fork; `--max-procs`")),
            What::FileSize => note.line(&format!(
                "  {value} bytes a file: EFBIG (File too large) or signal XFSZ; `--max-file-size`"
            )),
            What::OpenFiles => {
                note.line(&format!("  {value} open files a process: EMFILE; `--max-open-files`"))
            }
            What::Core | What::Data => {}
        }
    }
    for (what, value, mechanism) in plan.ceilings().into_iter().flat_map(Ceilings::rows) {
        let end = match what {
            "threads" if mechanism != Mechanism::Sampling.name() => "EAGAIN on fork",
            _ => "above that everything in here is killed",
        };
        note.line(&format!("  {what}: {value} in all, {end}"));
    }
    if let Some(timeout) = timeout {
        note.line(&format!(
            "  {} s in all, then everything in here is ended; `--timeout`",
            timeout.as_secs_f64()
        ));
    }
    if plan.has(Namespace::Mount) {
        let size = match plan.world.tmp {
            Some(bytes) => format!("{bytes} bytes"),
            None => "a quarter of the memory".to_owned(),
        };
        note.line(&format!("  {size} in all private places: ENOSPC (No space left on device); `--max-tmp`"));
    }
}
