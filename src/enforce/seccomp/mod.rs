//! The system call filter: from [`Rules`] to BPF, and its installation as the last step before execve.
//!
//! One program. A balanced search over the call's number ends in "allow", in an errno, or in the argument rules
//! of that one call. Foreign architectures are killed, everything else that is denied is an errno: whoever reads
//! the message of a failing tool needs one. Numbers that the table has not seen are ENOSYS.
//!
//! Invariant: a call without argument rules is decided by loads of `arch` and `nr` alone, so that the kernel's
//! bitmap answers for it without running the program (`seccomp_cache_prepare` in kernel/seccomp.c, since 5.11).
#![forbid(unsafe_code)]

#[cfg(test)]
mod claims;
mod compile;
#[cfg(test)]
mod interpret;
mod row;
mod table;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::OwnedFd;

use crate::sys;
pub use compile::{Outcome, program as assemble};
pub use row::{BROKER, Group, Relation, Row, Test, When, Width};
pub(crate) use row::{call, same, x86};
pub use table::LAST_VETTED;

/// What the filter of one run depends on.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Rules {
    pub inet: Inet,
    /// The run has an IPC namespace of its own: SysV IPC and message queues pass.
    pub sysv_ipc: bool,
    /// The command may make and enter namespaces.
    pub namespaces: bool,
    /// The command may call listen(2), on sockets of any family.
    pub listen: bool,
    /// What the supervisor's broker is asked about.
    pub broker: Brokered,
    /// UNIX datagram sockets pass although the broker cannot see where they send to.
    pub unix_datagrams: bool,
    /// A PID namespace keeps processes outside from being named.
    pub own_processes: bool,
}

/// Calls that no other layer of this host rules, and that are rare enough to ask a parent about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Brokered {
    /// Mode, owner, times, extended attributes, inode flags.
    pub metadata: bool,
    /// connect(2); datagrams over UNIX sockets are then refused, since their destination lies in memory.
    pub connect: bool,
    /// listen(2): which port a socket is bound to cannot be seen in the call.
    pub listen: bool,
}

impl Brokered {
    pub fn any(self) -> bool {
        self.metadata || self.connect || self.listen
    }
}

/// Which IPv4 and IPv6 sockets can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Inet {
    None,
    /// Streams of TCP and nothing else, to and at the host's loopback and to ports that are granted besides.
    Loopback,
    /// Streams of TCP and nothing else, for runs whose ports are ruled.
    Tcp,
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arch {
    X86_64,
    Aarch64,
    Riscv64,
}

impl Arch {
    pub const ALL: [Arch; 3] = [Arch::X86_64, Arch::Aarch64, Arch::Riscv64];

    /// AUDIT_ARCH_* of linux/audit.h: the ELF machine with the 64-bit and little-endian marks.
    pub fn audit(self) -> u32 {
        let machine = match self {
            Arch::X86_64 => 62,
            Arch::Aarch64 => 183,
            Arch::Riscv64 => 243,
        };
        machine | 0xc000_0000
    }
}

pub type Program = seccompiler::BpfProgram;

/// The architecture that this binary runs on, if the table has its numbers.
pub fn native() -> Option<Arch> {
    // x32 and ILP32 share a name with their 64-bit twins, but not the numbers.
    if !cfg!(all(target_pointer_width = "64", target_endian = "little")) {
        return None;
    }
    match std::env::consts::ARCH {
        "x86_64" => Some(Arch::X86_64),
        "aarch64" => Some(Arch::Aarch64),
        "riscv64" => Some(Arch::Riscv64),
        _ => None,
    }
}

/// The program to install.
pub fn program(arch: Arch, rules: &Rules) -> Program {
    let mut outcomes = vec![Outcome::Allow; LAST_VETTED as usize + 1];
    let numbered = in_force(rules).filter_map(|(group, row)| Some((group.errno, row, row.number(arch)?)));
    for (errno, row, number) in numbered {
        if let Some(outcome) = outcomes.get_mut(number as usize) {
            outcome.add(errno, row.tests);
        }
    }
    for number in table::holes(arch).iter().cloned().flatten() {
        if let Some(outcome) = outcomes.get_mut(number as usize) {
            outcome.add(libc::ENOSYS, &[]);
        }
    }
    compile::program(arch, &outcomes)
}

/// Installs the program, for the calling thread and all it starts. The last step before execve: from here on
/// confine itself is denied what the command is. After no_new_privs, which the kernel demands (EACCES).
pub fn install(program: &Program) -> io::Result<()> {
    sys::install_filter(program)
}

/// The same, for a program that asks a broker: it makes the listener.
pub fn install_brokered(program: &Program) -> io::Result<OwnedFd> {
    sys::install_listening_filter(program)
}

/// Every row that this architecture has a number for, in the table's order, with the group it belongs to.
pub fn rows(arch: Arch) -> impl Iterator<Item = (&'static Group, &'static Row)> {
    every_row().filter(move |(_, row)| row.number(arch).is_some())
}

fn every_row() -> impl Iterator<Item = (&'static Group, &'static Row)> {
    table::TABLE.iter().flat_map(|group| group.rows.iter().map(move |row| (group, row)))
}

/// Those that hold in a run.
pub fn in_force(rules: &Rules) -> impl Iterator<Item = (&'static Group, &'static Row)> {
    every_row().filter(|(group, _)| group.when.holds(rules))
}
