//! The shape of a row of the table.
#![forbid(unsafe_code)]

use super::{Arch, Inet, Rules};

/// Rows with a common name, errno, condition and reason.
#[derive(Debug)]
pub struct Group {
    pub name: &'static str,
    pub errno: i32,
    pub when: When,
    pub reason: &'static str,
    pub rows: &'static [Row],
}

/// One call, denied always (no tests) or when all its tests hold.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub name: &'static str,
    x86_64: Option<u32>,
    generic: Option<u32>,
    pub tests: &'static [Test],
}

impl Row {
    /// The call's number, if this architecture has it.
    pub fn number(&self, arch: Arch) -> Option<u32> {
        match arch {
            Arch::X86_64 => self.x86_64,
            Arch::Aarch64 | Arch::Riscv64 => self.generic,
        }
    }

    pub const fn when(mut self, tests: &'static [Test]) -> Self {
        self.tests = tests;
        self
    }
}

/// Which runs a group is in force for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    Always,
    NoOwnIpc,
    NoNamespaces,
    NoListen,
    NoInet,
    SomeInet,
    TcpOnly,
    LoopbackOnly,
    AllInet,
    BrokeredMetadata,
    BrokeredConnect,
    BrokeredListen,
    NoUnixDatagrams,
    SharedProcesses,
    OwnProcesses,
}

/// In the place of an errno: the broker answers.
pub const BROKER: i32 = 0;

impl When {
    pub fn holds(self, rules: &Rules) -> bool {
        match self {
            When::Always => true,
            When::NoOwnIpc => !rules.sysv_ipc,
            When::NoNamespaces => !rules.namespaces,
            When::NoListen => !rules.listen,
            When::NoInet => rules.inet == Inet::None,
            When::SomeInet => rules.inet != Inet::None,
            When::TcpOnly => matches!(rules.inet, Inet::Tcp | Inet::Loopback),
            When::LoopbackOnly => rules.inet == Inet::Loopback,
            When::AllInet => rules.inet == Inet::All,
            When::BrokeredMetadata => rules.broker.metadata,
            When::BrokeredConnect => rules.broker.connect,
            When::BrokeredListen => rules.broker.listen,
            When::NoUnixDatagrams => rules.broker.connect && !rules.unix_datagrams,
            When::SharedProcesses => !rules.own_processes,
            When::OwnProcesses => rules.own_processes,
        }
    }
}

/// A test of one argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Test {
    pub argument: u8,
    pub width: Width,
    pub relation: Relation,
}

/// How much of an argument's register the kernel reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// An int: the upper half is garbage of the caller's choosing.
    Int,
    Pointer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    Is(u32),
    IsNot(u32),
    /// One of these bits is set.
    Any(u32),
    /// `argument & .0 == .1`
    Masked(u32, u32),
}

impl Test {
    pub fn holds(&self, arguments: &[u64; 6]) -> bool {
        let value = arguments.get(usize::from(self.argument)).copied().unwrap_or(0);
        let value = match self.width {
            Width::Int => value & 0xffff_ffff,
            Width::Pointer => value,
        };
        match self.relation {
            Relation::Is(other) => value == u64::from(other),
            Relation::IsNot(other) => value != u64::from(other),
            Relation::Any(bits) => value & u64::from(bits) != 0,
            Relation::Masked(mask, other) => value & u64::from(mask) == u64::from(other),
        }
    }
}

pub const fn call(name: &'static str, x86_64: u32, generic: u32) -> Row {
    Row { name, x86_64: Some(x86_64), generic: Some(generic), tests: &[] }
}

pub const fn same(name: &'static str, number: u32) -> Row {
    call(name, number, number)
}

pub const fn x86(name: &'static str, number: u32) -> Row {
    Row { name, x86_64: Some(number), generic: None, tests: &[] }
}

const fn int(argument: u8, relation: Relation) -> Test {
    Test { argument, width: Width::Int, relation }
}

pub const fn is(argument: u8, value: u32) -> Test {
    int(argument, Relation::Is(value))
}

pub const fn is_not(argument: u8, value: u32) -> Test {
    int(argument, Relation::IsNot(value))
}

pub const fn masked(argument: u8, mask: u32, value: u32) -> Test {
    int(argument, Relation::Masked(mask, value))
}

pub const fn any(argument: u8, bits: u32) -> Test {
    int(argument, Relation::Any(bits))
}

pub const fn not_null(argument: u8) -> Test {
    Test { argument, width: Width::Pointer, relation: Relation::IsNot(0) }
}
