//! The argument rules of one call, compiled by seccompiler.
//!
//! seccompiler knows one action a filter, and its filters try one number after the other. So each call gets
//! filters of its own, one an errno, and they stand behind one another in one program: what one lets pass, the
//! next one judges.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

use super::compile::{ALLOW, JUMP, RETURN};
use super::table::{Relation, Test, Width};
use super::{Arch, Program};
use crate::error::Error;

/// The errno to answer with when all tests hold.
pub type Rule = (i32, &'static [Test]);

/// A program that judges `number` alone. It loads what it needs itself and ends in a return on every way.
pub fn compile(arch: Arch, number: u32, rules: &[Rule]) -> Result<Program, Error> {
    let filters: Result<Vec<Program>, seccompiler::BackendError> =
        rules.chunk_by(|one, next| one.0 == next.0).map(|rules| filter(arch, number, rules)).collect();
    let filters =
        filters.map_err(|error| Error::step("compile the system call filter", io::Error::other(error)))?;
    Ok(chain(filters))
}

fn filter(arch: Arch, number: u32, rules: &[Rule]) -> Result<Program, seccompiler::BackendError> {
    let errno = rules.first().map_or(libc::EPERM, |rule| rule.0);
    let rules = rules.iter().map(|(_, tests)| rule(tests)).collect::<Result<Vec<_>, _>>()?;
    SeccompFilter::new(
        BTreeMap::from([(i64::from(number), rules)]),
        SeccompAction::Allow,
        SeccompAction::Errno(errno.unsigned_abs()),
        match arch {
            Arch::X86_64 => TargetArch::x86_64,
            Arch::Aarch64 => TargetArch::aarch64,
            Arch::Riscv64 => TargetArch::riscv64,
        },
    )?
    .try_into()
}

fn rule(tests: &[Test]) -> Result<SeccompRule, seccompiler::BackendError> {
    let conditions = tests.iter().map(|test| {
        let width = match test.width {
            Width::Int => SeccompCmpArgLen::Dword,
            Width::Pointer => SeccompCmpArgLen::Qword,
        };
        let (operator, value) = match test.relation {
            Relation::Is(value) => (SeccompCmpOp::Eq, value),
            Relation::IsNot(value) => (SeccompCmpOp::Ne, value),
            Relation::Masked(mask, value) => (SeccompCmpOp::MaskedEq(mask.into()), value),
        };
        SeccompCondition::new(test.argument, width, operator, value.into())
    });
    SeccompRule::new(conditions.collect::<Result<_, _>>()?)
}

/// Joins filters: in all but the last one, "allow" becomes a jump behind its own end.
fn chain(filters: Vec<Program>) -> Program {
    let last = filters.len().saturating_sub(1);
    let mut joined = Program::new();
    for (position, mut filter) in filters.into_iter().enumerate() {
        if position != last {
            let length = filter.len();
            for (index, instruction) in filter.iter_mut().enumerate() {
                if instruction.code == RETURN && instruction.k == ALLOW {
                    // The length is far below the 4096 instructions that a program can have.
                    *instruction = super::compile::jump(JUMP, (length - index - 1) as u32, 0, 0);
                }
            }
        }
        joined.append(&mut filter);
    }
    joined
}
