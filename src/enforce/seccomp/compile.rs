//! The search over the call's number.
//!
//! The number line is cut into intervals that share an outcome, from 0 up to "everything above the last vetted
//! number", which takes in x32 (bit 30 set) and -1. A balanced tree of `>=` tests finds the interval in about
//! eight steps: the kernel walks them once for each call number on installation, and a list of tests took three
//! times as long there.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use seccompiler::sock_filter;

use super::table::LAST_VETTED;
use super::{Arch, Program};

// linux/bpf_common.h
const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
pub const JUMP: u16 = 0x05; // BPF_JMP | BPF_JA
const IF_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const IF_AT_LEAST: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
pub const RETURN: u16 = 0x06; // BPF_RET | BPF_K

// struct seccomp_data: nr, arch, instruction pointer, six arguments.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;

pub const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;

/// What becomes of one number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Errno(i32),
    /// Decided by a program of its own.
    Judge(Program),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaf {
    Return(u32),
    /// The program at this place of the list of judges.
    Judge(usize),
}

/// An instruction of the tree. Where the judges stand is known only when the tree is complete.
enum Step {
    Plain(sock_filter),
    Judge(usize),
}

pub fn jump(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

fn ret(value: u32) -> sock_filter {
    jump(RETURN, value, 0, 0)
}

/// One program for numbers and arguments. What `outcomes` does not name is allowed up to [`LAST_VETTED`].
pub fn program(arch: Arch, outcomes: &BTreeMap<u32, Outcome>) -> Program {
    let mut judges: Vec<&Program> = Vec::new();
    let mut intervals: Vec<(u32, Leaf)> = Vec::new();
    for number in 0..=LAST_VETTED {
        let leaf = match outcomes.get(&number) {
            None => Leaf::Return(ALLOW),
            Some(Outcome::Errno(errno)) => Leaf::Return(errno_value(*errno)),
            Some(Outcome::Judge(program)) => {
                judges.push(program);
                Leaf::Judge(judges.len() - 1)
            }
        };
        if intervals.last().is_none_or(|(_, last)| *last != leaf) {
            intervals.push((number, leaf));
        }
    }
    intervals.push((LAST_VETTED + 1, Leaf::Return(errno_value(libc::ENOSYS))));
    link(arch, &tree(&intervals), &judges)
}

fn errno_value(errno: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno.unsigned_abs()
}

fn tree(intervals: &[(u32, Leaf)]) -> Vec<Step> {
    match intervals {
        [] => Vec::new(),
        [(_, Leaf::Return(value))] => vec![Step::Plain(ret(*value))],
        [(_, Leaf::Judge(index))] => vec![Step::Judge(*index)],
        _ => {
            let (below, above) = intervals.split_at(intervals.len() / 2);
            let least = above.first().map_or(0, |(start, _)| *start);
            let (below, above) = (tree(below), tree(above));
            let mut steps = Vec::with_capacity(below.len() + above.len() + 2);
            match u8::try_from(below.len()) {
                Ok(distance) => steps.push(Step::Plain(jump(IF_AT_LEAST, least, distance, 0))),
                // A conditional jump reaches 255 instructions, an unconditional one any place.
                Err(_) => {
                    steps.push(Step::Plain(jump(IF_AT_LEAST, least, 0, 1)));
                    steps.push(Step::Plain(jump(JUMP, below.len() as u32, 0, 0)));
                }
            }
            steps.extend(below);
            steps.extend(above);
            steps
        }
    }
}

/// Prologue, tree, judges, with the jumps from the one into the others.
fn link(arch: Arch, steps: &[Step], judges: &[&Program]) -> Program {
    let mut program = vec![
        jump(LOAD, ARCH, 0, 0),
        jump(IF_EQUAL, arch.audit(), 1, 0),
        ret(libc::SECCOMP_RET_KILL_PROCESS),
        jump(LOAD, NUMBER, 0, 0),
    ];
    let mut entry = program.len() + steps.len();
    let mut entries = Vec::with_capacity(judges.len());
    for judge in judges {
        entries.push(entry);
        entry += judge.len();
    }
    for step in steps {
        let here = program.len();
        program.push(match step {
            Step::Plain(instruction) => instruction.clone(),
            Step::Judge(index) => match entries.get(*index) {
                Some(entry) => jump(JUMP, (entry - here - 1) as u32, 0, 0),
                None => ret(libc::SECCOMP_RET_KILL_PROCESS),
            },
        });
    }
    for judge in judges {
        program.extend_from_slice(judge);
    }
    program
}
