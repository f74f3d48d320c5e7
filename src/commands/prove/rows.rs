//! The table: every attempt, what it is about, how it is seen from outside, and what makes it no escape.

use std::io;

use super::aims::Aims;
use super::{files, kernel, network, processes};
use crate::policy::Promise::{self, *};

/// What an attempt brought out, or the error that ended it.
pub type Tried = io::Result<Vec<u8>>;

pub struct Row {
    pub name: &'static str,
    pub promise: Promise,
    pub reason: &'static str,
    /// Inside, in a process of its own.
    pub attempt: fn(&Aims) -> Tried,
    pub judged: Judged,
}

#[derive(Clone, Copy)]
pub enum Judged {
    /// By the victims, which are looked at from outside; unless the options allow it.
    Victims(fn(&Grants) -> bool),
    /// By the secret among what came out.
    Secret(fn(&Grants) -> bool),
    /// By what the call says, since nobody outside could see it.
    Call(fn(&Grants) -> bool),
    /// A twin that has to succeed wherever this holds, or a table of refusals would mean nothing.
    Works(fn(&Grants) -> bool),
}

/// What the options of the run allow on purpose.
#[derive(Debug, Clone, Copy, Default)]
pub struct Grants {
    /// The victims lie in what may be written, or read.
    pub write: bool,
    pub read: bool,
    /// The workspace may be written.
    pub workspace: bool,
    pub host_network: bool,
    pub host_loopback: bool,
    pub private_loopback: bool,
    pub namespaces: bool,
    /// Datagrams whose destination nobody looks at.
    pub unix_datagrams: bool,
    /// Abstract names can be used among one's own.
    pub abstract_names: bool,
}

fn never(_: &Grants) -> bool {
    false
}

fn always(_: &Grants) -> bool {
    true
}

fn write(grants: &Grants) -> bool {
    grants.write
}

fn read(grants: &Grants) -> bool {
    grants.read
}

fn tcp(grants: &Grants) -> bool {
    grants.host_network || grants.host_loopback
}

fn udp(grants: &Grants) -> bool {
    grants.host_network
}

fn namespaces(grants: &Grants) -> bool {
    grants.namespaces
}

const fn row(
    promise: Promise,
    name: &'static str,
    judged: Judged,
    attempt: fn(&Aims) -> Tried,
    reason: &'static str,
) -> Row {
    Row { name, promise, reason, attempt, judged }
}

use Judged::{Call, Secret, Victims, Works};

const WRITE: Judged = Victims(write);
const NEVER: Judged = Victims(never);
const CALL: Judged = Call(never);

pub const ROWS: &[Row] = &[
    row(WriteScope, "write a file", WRITE, files::write, "a file that can be read is opened for writing"),
    row(WriteScope, "truncate a file", WRITE, files::truncate, "by path, without opening it"),
    row(WriteScope, "create a file", WRITE, files::create, "in a directory that can be read"),
    row(WriteScope, "make a directory", WRITE, files::make_directory, "likewise"),
    row(WriteScope, "make a symbolic link", WRITE, files::symlink, "likewise"),
    row(WriteScope, "remove a file", WRITE, files::remove, "an entry is taken out of a directory"),
    row(WriteScope, "rename a file", WRITE, files::rename, "an entry takes another name"),
    row(WriteScope, "move a file into the workspace", WRITE, files::move_in, "an entry leaves its directory"),
    row(
        WriteScope,
        "link a file into the workspace",
        WRITE,
        files::link_in,
        "linkat(2): a second name, which could be written",
    ),
    row(
        WriteScope,
        "write a file that is not shown",
        WRITE,
        files::write_hidden,
        "a path outside every root",
    ),
    row(WriteScope, "create a file where nothing is shown", WRITE, files::create_hidden, "likewise"),
    row(WriteScope, "write POSIX shared memory", NEVER, files::write_shared, "/dev/shm of the host"),
    row(
        WriteScope,
        "write in the workspace",
        Works(|grants| grants.workspace),
        files::write_own,
        "the twin: it can be written",
    ),
    row(MetadataScope, "change the mode", WRITE, files::chmod, "chmod(2) by path"),
    row(
        MetadataScope,
        "change the mode by descriptor",
        WRITE,
        files::fchmod,
        "fchmod(2): a read-only descriptor is enough for it",
    ),
    row(
        MetadataScope,
        "change the owner",
        WRITE,
        files::chown,
        "chown(2) to the same owner, which still changes the inode",
    ),
    row(MetadataScope, "change the times", WRITE, files::utimensat, "utimensat(2) by path"),
    row(
        MetadataScope,
        "change the times by descriptor",
        WRITE,
        files::futimens,
        "a read-only descriptor is enough for it",
    ),
    row(MetadataScope, "set an attribute", WRITE, files::setxattr, "setxattr(2) by path"),
    row(
        MetadataScope,
        "set an attribute by descriptor",
        WRITE,
        files::fsetxattr,
        "a read-only descriptor is enough for it",
    ),
    row(
        MetadataScope,
        "set an inode flag",
        WRITE,
        files::set_flag,
        "FS_IOC_SETFLAGS on a read-only descriptor",
    ),
    row(
        MetadataScope,
        "change a mode in the workspace",
        Works(|grants| grants.workspace),
        files::chmod_own,
        "the twin",
    ),
    row(ReadScope, "read a file", Secret(read), files::read_hidden, "a path outside every root"),
    row(ReadScope, "list a directory", Secret(read), files::list_hidden, "likewise"),
    row(
        ReadScope,
        "read what is readable",
        Works(always),
        files::read_shown,
        "the twin: --ro shows this one",
    ),
    row(PathHiding, "probe a name", Call(read), files::probe, "lstat(2) tells whether a path exists"),
    row(NetworkScope, "TCP", Victims(tcp), network::tcp, "a server on the host's loopback"),
    row(NetworkScope, "UDP", Victims(udp), network::udp, "likewise"),
    row(NetworkScope, "TCP fast open", NEVER, network::fast_open, "sendto(2) connects by itself"),
    row(
        NetworkScope,
        "multipath TCP",
        NEVER,
        network::multipath,
        "a protocol of its own that falls back to TCP",
    ),
    row(NetworkScope, "netlink", CALL, network::netlink, "sock_diag lists the host's sockets"),
    row(NetworkScope, "raw socket", CALL, network::raw, "packets past the rules for TCP and UDP"),
    row(NetworkScope, "packet socket", CALL, network::packet, "frames of the host's devices"),
    row(
        NetworkScope,
        "own loopback",
        Works(|grants| grants.private_loopback),
        network::own_loopback,
        "the twin: a server and a client inside",
    ),
    row(
        SocketScope,
        "a socket in a readable directory",
        NEVER,
        network::stream_shown,
        "connect(2) needs no right to write",
    ),
    row(SocketScope, "a socket that is not shown", NEVER, network::stream_hidden, "by its path"),
    row(
        SocketScope,
        "a datagram to a socket",
        Victims(|grants| grants.unix_datagrams),
        network::datagram_shown,
        "sendto(2) connects nothing",
    ),
    row(SocketScope, "an abstract socket", NEVER, network::abstract_stream, "a name that no directory holds"),
    row(SocketScope, "a datagram to an abstract socket", NEVER, network::abstract_datagram, "likewise"),
    row(SocketScope, "System V shared memory", NEVER, network::segment, "found by its key"),
    row(SocketScope, "a POSIX message queue", NEVER, network::queue, "found by its name"),
    row(SocketScope, "own socket pair", Works(always), network::own_pair, "the twin"),
    row(
        SocketScope,
        "own abstract socket",
        Works(|grants| grants.abstract_names),
        network::own_abstract,
        "the twin",
    ),
    row(ProcessScope, "probe a process", CALL, processes::probe, "kill(2) with signal 0"),
    row(ProcessScope, "signal a process", NEVER, processes::kill, "kill(2)"),
    row(
        ProcessScope,
        "continue a process",
        NEVER,
        processes::resume,
        "SIGCONT, which a session may send to its own",
    ),
    row(ProcessScope, "queue a signal", NEVER, processes::queue, "rt_sigqueueinfo(2)"),
    row(ProcessScope, "signal by descriptor", NEVER, processes::by_descriptor, "pidfd_send_signal(2)"),
    row(ProcessScope, "trace a process", NEVER, processes::trace, "ptrace(2) PTRACE_SEIZE"),
    row(ProcessScope, "read its memory", Secret(never), processes::read_memory, "process_vm_readv(2)"),
    row(ProcessScope, "read its memory file", Secret(never), processes::read_memory_file, "/proc/PID/mem"),
    row(ProcessScope, "take its descriptor", NEVER, processes::take_descriptor, "pidfd_getfd(2)"),
    row(ProcessScope, "limit a process", NEVER, processes::limit, "prlimit(2)"),
    row(ProcessScope, "change its priority", NEVER, processes::renice, "setpriority(2)"),
    row(ProcessScope, "signal an own child", Works(always), processes::own_child, "the twin"),
    row(ProcessHiding, "see a process", CALL, processes::see, "its directory in /proc"),
    row(ProcessHiding, "change its scheduling", NEVER, processes::reschedule, "sched_setscheduler(2)"),
    row(NoGain, "type into the terminal", NEVER, kernel::type_plain, "TIOCSTI"),
    row(
        NoGain,
        "type into the terminal, high bits",
        NEVER,
        kernel::type_high,
        "the kernel cuts the request off, a filter must too",
    ),
    row(NoGain, "io_uring", CALL, kernel::io_uring, "its requests pass no filter"),
    row(
        NoGain,
        "unshare a user namespace",
        Call(namespaces),
        kernel::unshare_user,
        "capabilities over more kernel code",
    ),
    row(NoGain, "unshare a mount namespace", CALL, kernel::unshare_mount, "the view could be taken apart"),
    row(NoGain, "clone a user namespace", Call(namespaces), kernel::clone_user, "clone(2)"),
    row(NoGain, "clone a sibling", Call(namespaces), kernel::clone_sibling, "a child of the caller's"),
    row(
        NoGain,
        "clone3 a user namespace",
        Call(namespaces),
        kernel::clone3_user,
        "its flags lie behind a pointer",
    ),
    row(NoGain, "enter a namespace", CALL, kernel::enter, "setns(2)"),
    row(NoGain, "mount", CALL, kernel::mount, "a tmpfs"),
    row(NoGain, "mount by descriptor", CALL, kernel::open_file_system, "fsopen(2)"),
    row(NoGain, "clone a mount", CALL, kernel::clone_mount, "open_tree(2)"),
    row(NoGain, "32-bit call", CALL, kernel::other_numbers, "the numbers of another architecture"),
    row(
        NoGain,
        "set-user-id mode",
        CALL,
        kernel::set_user_id,
        "a program that gives its owner's identity to others",
    ),
    row(NoGain, "set-user-id mode at creation", CALL, kernel::create_set_user_id, "the same by open(2)"),
    row(NoGain, "executable memory", CALL, kernel::personality, "personality(2) READ_IMPLIES_EXEC"),
    row(NoGain, "start a program", Works(always), kernel::start_program, "the twin: fork(2) and execve(2)"),
    row(
        CleanStart,
        "an inherited descriptor",
        NEVER,
        kernel::inherited,
        "a file that the caller has open for writing",
    ),
    row(
        CleanStart,
        "a variable of the caller",
        Secret(never),
        kernel::variable,
        "a token in the environment",
    ),
    row(CleanStart, "a key of the caller", Secret(never), kernel::key, "the session keyring"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_promise_with_attempts_has_them() {
        let names: std::collections::BTreeSet<_> = ROWS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), ROWS.len());
        for promise in Promise::ALL {
            // Scanned before the start, or about what is spent or left over: nothing to be tried in a second.
            let elsewhere = matches!(promise, AliasFree | Ceilings | Teardown);
            assert_eq!(ROWS.iter().any(|row| row.promise == promise), !elsewhere, "{promise}");
        }
    }
}
