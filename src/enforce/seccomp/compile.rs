//! From outcomes to one BPF program.
//!
//! The number line is cut into intervals that share an outcome, from 0 up to "everything above the last vetted
//! number", which takes in x32 (bit 30 set) and -1. A balanced tree of `>=` tests finds the interval in about
//! eight steps. Where a call has argument rules, the tree leads into the code that judges that one call.
//!
//! What installing costs is the JIT, by the instruction, and the kernel's walk through the program for each
//! number, by the step. So the program is written from its end to its start: every target is then known when a
//! jump to it is written, and returns are shared by all jumps within reach.
#![forbid(unsafe_code)]

use seccompiler::sock_filter;

use super::row::{BROKER, Relation, Test, Width};
use super::{Arch, Program};

// linux/bpf_common.h
const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
const AND: u16 = 0x54; // BPF_ALU | BPF_AND | BPF_K
const JUMP: u16 = 0x05; // BPF_JMP | BPF_JA
const IF_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const IF_AT_LEAST: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
const IF_ANY_BIT: u16 = 0x45; // BPF_JMP | BPF_JSET | BPF_K
const RETURN: u16 = 0x06; // BPF_RET | BPF_K

/// A conditional jump skips up to 255 instructions; two are kept for what its other branch may need.
const REACH: usize = 253;

// struct seccomp_data: nr, arch, instruction pointer, six arguments.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;

const ALLOW: Target = Target::Return(libc::SECCOMP_RET_ALLOW);
const KILL: Target = Target::Return(libc::SECCOMP_RET_KILL_PROCESS);

/// What becomes of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Allow,
    Errno(i32),
    /// The errno of the first rule all tests of which hold; without one the call passes.
    Judge(Vec<Rule>),
}

pub type Rule = (i32, &'static [Test]);

impl Outcome {
    /// Adds a row of the table. One without tests prevails over any with tests.
    pub fn add(&mut self, errno: i32, tests: &'static [Test]) {
        match self {
            Outcome::Errno(_) => {}
            // The broker is asked about what no other rule has denied.
            Outcome::Judge(rules) if errno == BROKER => rules.push((errno, tests)),
            _ if tests.is_empty() => *self = Outcome::Errno(errno),
            Outcome::Judge(rules) => rules.push((errno, tests)),
            Outcome::Allow => *self = Outcome::Judge(vec![(errno, tests)]),
        }
    }
}

/// Where a jump leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Return(u32),
    /// An instruction, counted from the program's end; the last one is 1.
    Place(usize),
}

fn errno(errno: i32) -> Target {
    if errno == BROKER {
        return Target::Return(libc::SECCOMP_RET_USER_NOTIF);
    }
    Target::Return(libc::SECCOMP_RET_ERRNO | errno.unsigned_abs())
}

/// The outcome of each number from 0 on; whatever comes after the last one is ENOSYS.
pub fn program(arch: Arch, outcomes: &[Outcome]) -> Program {
    let mut writer = Writer::default();
    let mut intervals: Vec<(u32, Target)> = Vec::with_capacity(outcomes.len());
    let mut above = 0;
    for (number, outcome) in (0..).zip(outcomes) {
        let target = match outcome {
            Outcome::Allow => ALLOW,
            Outcome::Errno(value) => errno(*value),
            Outcome::Judge(rules) => writer.judge(rules),
        };
        if intervals.last().is_none_or(|(_, last)| *last != target) {
            intervals.push((number, target));
        }
        above = number + 1;
    }
    intervals.push((above, errno(libc::ENOSYS)));
    let tree = writer.tree(&intervals);
    let tree = writer.load(NUMBER, tree);
    let known = writer.branch(IF_EQUAL, arch.audit(), tree, KILL);
    writer.load(ARCH, known);
    writer.finish()
}

/// The program, last instruction first.
#[derive(Default)]
struct Writer {
    reversed: Program,
    /// Each return written so far and its place.
    returns: Vec<(u32, usize)>,
}

impl Writer {
    fn finish(mut self) -> Program {
        self.reversed.reverse();
        self.reversed
    }

    fn push(&mut self, code: u16, k: u32, jt: u8, jf: u8) -> Target {
        self.reversed.push(sock_filter { code, jt, jf, k });
        Target::Place(self.reversed.len())
    }

    /// How many instructions the next one has to skip to get to `place`.
    fn distance(&self, place: usize) -> usize {
        self.reversed.len() - place
    }

    fn tree(&mut self, intervals: &[(u32, Target)]) -> Target {
        match intervals {
            [] => ALLOW,
            [(_, target)] => *target,
            _ => {
                let (below, above) = intervals.split_at(intervals.len() / 2);
                let least = above.first().map_or(0, |(start, _)| *start);
                let above = self.tree(above);
                let below = self.tree(below);
                self.branch(IF_AT_LEAST, least, above, below)
            }
        }
    }

    fn judge(&mut self, rules: &[Rule]) -> Target {
        let mut next = ALLOW;
        for (value, tests) in rules.iter().rev() {
            let mut hit = errno(*value);
            for test in tests.iter().rev() {
                hit = self.test(test, hit, next);
            }
            next = hit;
        }
        next
    }

    fn test(&mut self, test: &Test, yes: Target, no: Target) -> Target {
        // Little endian, so the low half comes first.
        let low = 16 + 8 * u32::from(test.argument);
        match (test.relation, test.width) {
            (Relation::Is(value), Width::Int) => {
                let branch = self.branch(IF_EQUAL, value, yes, no);
                self.load(low, branch)
            }
            (Relation::IsNot(value), Width::Int) => {
                let branch = self.branch(IF_EQUAL, value, no, yes);
                self.load(low, branch)
            }
            (Relation::Is(value), Width::Pointer) => self.wide(low, value, yes, no),
            (Relation::IsNot(value), Width::Pointer) => self.wide(low, value, no, yes),
            (Relation::Any(bits), _) => {
                let branch = self.branch(IF_ANY_BIT, bits, yes, no);
                self.load(low, branch)
            }
            (Relation::Masked(mask, value), _) => {
                let branch = self.branch(IF_EQUAL, value, yes, no);
                let masked = self.before(AND, mask, branch);
                self.load(low, masked)
            }
        }
    }

    /// Compares both halves with a value that fits the lower one.
    fn wide(&mut self, low: u32, value: u32, equal: Target, other: Target) -> Target {
        let branch = self.branch(IF_EQUAL, value, equal, other);
        let lower = self.load(low, branch);
        let branch = self.branch(IF_EQUAL, 0, lower, other);
        self.load(low + 4, branch)
    }

    fn branch(&mut self, code: u16, k: u32, yes: Target, no: Target) -> Target {
        // In this order: what the second one writes moves the first by one, which REACH allows for.
        let (yes, no) = (self.near(yes), self.near(no));
        let (jt, jf) = (self.distance(yes) as u8, self.distance(no) as u8);
        self.push(code, k, jt, jf)
    }

    fn load(&mut self, offset: u32, then: Target) -> Target {
        self.before(LOAD, offset, then)
    }

    /// An instruction that goes on to the next one, which has to be `then`.
    fn before(&mut self, code: u16, k: u32, then: Target) -> Target {
        let place = self.near(then);
        if self.distance(place) > 0 {
            self.push(JUMP, self.distance(place) as u32, 0, 0);
        }
        self.push(code, k, 0, 0)
    }

    /// A place within reach that is, or leads to, the target.
    fn near(&mut self, target: Target) -> usize {
        match target {
            Target::Return(value) => match self.returns.iter().rev().find(|(known, _)| *known == value) {
                Some((_, place)) if self.distance(*place) <= REACH => *place,
                _ => {
                    self.push(RETURN, value, 0, 0);
                    self.returns.push((value, self.reversed.len()));
                    self.reversed.len()
                }
            },
            Target::Place(place) if self.distance(place) <= REACH => place,
            Target::Place(place) => {
                self.push(JUMP, self.distance(place) as u32, 0, 0);
                self.reversed.len()
            }
        }
    }
}
