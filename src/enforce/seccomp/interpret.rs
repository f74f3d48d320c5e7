//! Runs a filter the way the kernel does, and notes which parts of the call it looked at.
#![forbid(unsafe_code)]

use super::Program;

/// struct seccomp_data of linux/seccomp.h.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    pub number: u32,
    pub arch: u32,
    pub arguments: [u64; 6],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    pub value: u32,
    /// Only what the kernel's emulation for the bitmap knows was executed: `seccomp_is_const_allow`.
    pub cacheable: bool,
    pub steps: usize,
}

/// The most severe verdict of all programs; on equal severity that of the newest.
pub fn run(programs: &[Program], call: &Call) -> Verdict {
    let mut result = Verdict { value: libc::SECCOMP_RET_ALLOW, cacheable: true, steps: 0 };
    for program in programs.iter().rev() {
        let one = run_one(program, call);
        if severity(one.value) < severity(result.value) {
            result.value = one.value;
        }
        result.cacheable &= one.cacheable;
        result.steps += one.steps;
    }
    result
}

/// Actions as signed numbers: the lower, the more severe (kernel/seccomp.c, ACTION_ONLY).
fn severity(value: u32) -> i32 {
    (value & libc::SECCOMP_RET_ACTION_FULL).cast_signed()
}

fn run_one(program: &Program, call: &Call) -> Verdict {
    let (mut accumulator, mut at, mut steps, mut cacheable) = (0u32, 0usize, 0, true);
    loop {
        let instruction = program.get(at).expect("a jump leaves the program");
        steps += 1;
        at += 1;
        let k = instruction.k;
        let mut branch = |holds: bool| at += usize::from(if holds { instruction.jt } else { instruction.jf });
        match instruction.code {
            0x20 => {
                cacheable &= k == 0 || k == 4;
                accumulator = load(call, k);
            }
            0x05 => at += k as usize,
            0x15 => branch(accumulator == k),
            0x25 => branch(accumulator > k),
            0x35 => branch(accumulator >= k),
            0x45 => branch(accumulator & k != 0),
            0x54 => accumulator &= k,
            0x06 => return Verdict { value: k, cacheable, steps },
            other => panic!("instruction {other:#x} is not in use here"),
        }
    }
}

fn load(call: &Call, offset: u32) -> u32 {
    assert!(offset.is_multiple_of(4) && offset < 64, "load at {offset}");
    match offset {
        0 => call.number,
        4 => call.arch,
        8 | 12 => 0,
        _ => {
            let place = (offset as usize - 16) / 4;
            // Little endian: the low half comes first.
            (call.arguments[place / 2] >> (32 * (place % 2))) as u32
        }
    }
}
