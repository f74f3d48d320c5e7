//! The calls that are looked at when they fail, and where their arguments name something.

use std::collections::HashMap;

use crate::enforce::seccomp::{self, Arch, Row, Rules, call, same, x86};

/// What a call does to what it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    /// By its flags, this argument.
    Open(u8),
    Look,
    /// By its mode, this argument.
    Ask(u8),
    Read,
    Enter,
    Execute,
    /// What is there.
    Write,
    Metadata,
    Create,
    Remove,
}

#[derive(Debug, Clone, Copy)]
pub enum Names {
    /// A path in this argument, below the directory in that one.
    Path(Does, Option<u8>, u8),
    /// Two of them: the first loses the name, the second gains it.
    Rename(Option<u8>, u8, Option<u8>, u8),
    /// A second name; only the new one changes anything.
    Link(Option<u8>, u8, Option<u8>, u8),
    /// What a descriptor is open on.
    Descriptor(Does, u8),
    /// A socket address and its length.
    Address(Reaches, u8, u8),
    /// `struct msghdr`.
    Message(u8),
    Process(u8),
    Socket,
    /// Only the filter's own table says what it is.
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaches {
    Connect,
    Send,
    Bind,
}

use Does::{Ask, Create, Enter, Execute, Look, Metadata, Open, Read, Remove, Write};
use Names::{Address, Descriptor, Link, Message, Path, Process, Rename};

const TABLE: &[(Row, Names)] = &[
    (x86("open", 2), Path(Open(1), None, 0)),
    (call("openat", 257, 56), Path(Open(2), Some(0), 1)),
    (x86("creat", 85), Path(Create, None, 0)),
    (x86("stat", 4), Path(Look, None, 0)),
    (x86("lstat", 6), Path(Look, None, 0)),
    (call("newfstatat", 262, 79), Path(Look, Some(0), 1)),
    (call("statx", 332, 291), Path(Look, Some(0), 1)),
    (x86("access", 21), Path(Ask(1), None, 0)),
    (call("faccessat", 269, 48), Path(Ask(2), Some(0), 1)),
    (same("faccessat2", 439), Path(Ask(2), Some(0), 1)),
    (x86("readlink", 89), Path(Look, None, 0)),
    (call("readlinkat", 267, 78), Path(Look, Some(0), 1)),
    (call("statfs", 137, 43), Path(Look, None, 0)),
    (call("execve", 59, 221), Path(Execute, None, 0)),
    (call("execveat", 322, 281), Path(Execute, Some(0), 1)),
    (call("chdir", 80, 49), Path(Enter, None, 0)),
    (call("inotify_add_watch", 254, 27), Path(Read, None, 1)),
    (call("truncate", 76, 45), Path(Write, None, 0)),
    (x86("mkdir", 83), Path(Create, None, 0)),
    (call("mkdirat", 258, 34), Path(Create, Some(0), 1)),
    (x86("mknod", 133), Path(Create, None, 0)),
    (call("mknodat", 259, 33), Path(Create, Some(0), 1)),
    (x86("symlink", 88), Path(Create, None, 1)),
    (call("symlinkat", 266, 36), Path(Create, Some(1), 2)),
    (x86("rmdir", 84), Path(Remove, None, 0)),
    (x86("unlink", 87), Path(Remove, None, 0)),
    (call("unlinkat", 263, 35), Path(Remove, Some(0), 1)),
    (x86("rename", 82), Rename(None, 0, None, 1)),
    (call("renameat", 264, 38), Rename(Some(0), 1, Some(2), 3)),
    (call("renameat2", 316, 276), Rename(Some(0), 1, Some(2), 3)),
    (x86("link", 86), Link(None, 0, None, 1)),
    (call("linkat", 265, 37), Link(Some(0), 1, Some(2), 3)),
    (x86("chmod", 90), Path(Metadata, None, 0)),
    (call("fchmod", 91, 52), Descriptor(Metadata, 0)),
    (call("fchmodat", 268, 53), Path(Metadata, Some(0), 1)),
    (same("fchmodat2", 452), Path(Metadata, Some(0), 1)),
    (x86("chown", 92), Path(Metadata, None, 0)),
    (x86("lchown", 94), Path(Metadata, None, 0)),
    (call("fchown", 93, 55), Descriptor(Metadata, 0)),
    (call("fchownat", 260, 54), Path(Metadata, Some(0), 1)),
    (x86("utime", 132), Path(Metadata, None, 0)),
    (x86("utimes", 235), Path(Metadata, None, 0)),
    (x86("futimesat", 261), Path(Metadata, Some(0), 1)),
    (call("utimensat", 280, 88), Path(Metadata, Some(0), 1)),
    (call("setxattr", 188, 5), Path(Metadata, None, 0)),
    (call("lsetxattr", 189, 6), Path(Metadata, None, 0)),
    (call("fsetxattr", 190, 7), Descriptor(Metadata, 0)),
    (call("removexattr", 197, 14), Path(Metadata, None, 0)),
    (call("lremovexattr", 198, 15), Path(Metadata, None, 0)),
    (call("fremovexattr", 199, 16), Descriptor(Metadata, 0)),
    (call("socket", 41, 198), Names::Socket),
    (call("connect", 42, 203), Address(Reaches::Connect, 1, 2)),
    (call("bind", 49, 200), Address(Reaches::Bind, 1, 2)),
    (call("sendto", 44, 206), Address(Reaches::Send, 4, 5)),
    (call("sendmsg", 46, 211), Message(1)),
    (call("kill", 62, 129), Process(0)),
    (call("tkill", 200, 130), Process(0)),
    (call("tgkill", 234, 131), Process(0)),
    (call("ptrace", 101, 117), Process(1)),
];

/// A call that somebody is in.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    pub number: u32,
    pub name: &'static str,
    pub names: Names,
    pub arguments: [u64; 6],
}

impl Call {
    pub fn argument(&self, index: u8) -> u64 {
        self.arguments.get(usize::from(index)).copied().unwrap_or(0)
    }

    /// An int: the upper half is anything.
    pub fn int(&self, index: u8) -> i32 {
        self.argument(index) as i32
    }
}

/// Every call whose failure may tell something, by number.
#[derive(Debug)]
pub struct Known(HashMap<u32, (&'static str, Names)>);

impl Known {
    pub fn new(arch: Arch, rules: &Rules) -> Known {
        let filtered = seccomp::in_force(rules).map(|(_, row)| (row, Names::Nothing));
        let named = TABLE.iter().map(|(row, names)| (row, *names));
        // What names something comes last, and stays.
        Known(
            filtered
                .chain(named)
                .filter_map(|(row, names)| Some((row.number(arch)?, (row.name, names))))
                .collect(),
        )
    }

    pub fn find(&self, number: u64, arguments: [u64; 6]) -> Option<Call> {
        let number = u32::try_from(number).ok()?;
        self.0.get(&number).map(|&(name, names)| Call { number, name, names, arguments })
    }
}
