//! The compiler of filters: its program, interpreted, against the rules taken one by one.

use confine::enforce::seccomp::{Arch, BROKER, Outcome, Program, Relation, Test, Width, assemble};

use super::chance::Chance;

/// The interpreter of the unit tests.
#[allow(dead_code)]
#[path = "../../src/enforce/seccomp/interpret.rs"]
mod interpret;

/// An outcome begins with its kind; see `outcome`.
pub const CORPUS: &[&[u8]] = &[
    &[0, 2, 0, 1, 0, 3, 1, 1, 0, 2, 9, 9, 9, 9],
    &[1, 3, 2, 2, 1, 0, 1, 5, 0, 0, 0, 2, 1, 1, 0, 0, 0, 0, 3, 2, 5, 255, 0, 255, 0, 1, 0, 1, 0],
    &[2, 0, 0, 0, 1, 0, 1, 1, 0, 0, 1, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9],
];

/// More than the kernel has calls, fewer than a program may have instructions (BPF_MAXINSNS).
const CALLS: usize = 480;
const LONGEST: usize = 4096;
const ERRNOS: [i32; 4] = [BROKER, libc::EPERM, libc::ENOSYS, libc::EACCES];

fn test(chance: &mut Chance<'_>) -> Test {
    let value = match chance.byte() % 4 {
        0 => chance.word(),
        1 => u32::MAX,
        _ => u32::from(chance.byte()),
    };
    let relation = match chance.byte() % 4 {
        0 => Relation::Is(value),
        1 => Relation::IsNot(value),
        2 => Relation::Any(value),
        _ => Relation::Masked(chance.word(), value),
    };
    Test { argument: chance.byte() % 6, width: chance.pick(&[Width::Int, Width::Pointer]), relation }
}

fn outcome(chance: &mut Chance<'_>) -> Outcome {
    match chance.byte() % 4 {
        0 => Outcome::Errno(chance.pick(&ERRNOS)),
        1 => {
            let rules = (0..1 + chance.below(3)).map(|_| {
                let tests: Vec<Test> = (0..chance.below(4)).map(|_| test(chance)).collect();
                // The table is static; so much is lost that a run of an hour does not notice.
                let tests: &'static [Test] = tests.leak();
                (chance.pick(&ERRNOS), tests)
            });
            Outcome::Judge(rules.collect())
        }
        _ => Outcome::Allow,
    }
}

fn holds(test: &Test, arguments: &[u64; 6]) -> bool {
    let register = arguments[usize::from(test.argument)];
    let low = register as u32;
    match (test.relation, test.width) {
        (Relation::Is(value), Width::Int) => low == value,
        (Relation::Is(value), Width::Pointer) => register == u64::from(value),
        (Relation::IsNot(value), Width::Int) => low != value,
        (Relation::IsNot(value), Width::Pointer) => register != u64::from(value),
        (Relation::Any(bits), _) => low & bits != 0,
        (Relation::Masked(mask, value), _) => low & mask == value,
    }
}

fn answer(errno: i32) -> u32 {
    if errno == BROKER { libc::SECCOMP_RET_USER_NOTIF } else { libc::SECCOMP_RET_ERRNO | errno as u32 }
}

fn expected(arch: Arch, outcomes: &[Outcome], call: &interpret::Call) -> u32 {
    if call.arch != arch.audit() {
        return libc::SECCOMP_RET_KILL_PROCESS;
    }
    match outcomes.get(call.number as usize) {
        None => answer(libc::ENOSYS),
        Some(Outcome::Allow) => libc::SECCOMP_RET_ALLOW,
        Some(Outcome::Errno(errno)) => answer(*errno),
        Some(Outcome::Judge(rules)) => rules
            .iter()
            .find(|(_, tests)| tests.iter().all(|test| holds(test, &call.arguments)))
            .map_or(libc::SECCOMP_RET_ALLOW, |(errno, _)| answer(*errno)),
    }
}

/// Values at the edge of what the outcome compares with.
fn edges(outcome: Option<&Outcome>) -> Vec<u64> {
    let mut edges = vec![0, 1, u64::MAX, 1 << 32, 0xdead_beef_0000_0000];
    if let Some(Outcome::Judge(rules)) = outcome {
        for test in rules.iter().flat_map(|(_, tests)| *tests) {
            let values = match test.relation {
                Relation::Is(value) | Relation::IsNot(value) | Relation::Any(value) => [value, value],
                Relation::Masked(mask, value) => [mask, value],
            };
            for value in values.map(u64::from) {
                edges.extend([value, value ^ 1, value.wrapping_sub(1), value | 1 << 40, !value]);
            }
        }
    }
    edges
}

pub fn check(bytes: &[u8]) {
    let mut chance = Chance::new(bytes);
    let arch = chance.pick(&Arch::ALL);
    let gap = chance.below(64);
    let mut outcomes = Vec::new();
    while !chance.is_over() && outcomes.len() < CALLS {
        outcomes.push(outcome(&mut chance));
        let run = outcomes.len() + chance.below(gap + 1);
        outcomes.resize(run.min(CALLS), outcomes[outcomes.len() - 1].clone());
    }
    let program = assemble(arch, &outcomes);
    if program.len() > LONGEST {
        return;
    }
    let programs = [program];
    let numbers = (0..outcomes.len() as u32 + 2).chain([0x4000_0000, u32::MAX]);
    for number in numbers {
        let edges = edges(outcomes.get(number as usize));
        for turn in 0..edges.len() {
            // Each argument gets each edge, beside differing others.
            let arguments = std::array::from_fn(|place| edges[(turn * (place + 1) + place) % edges.len()]);
            for audit in [arch.audit(), arch.audit() ^ 1] {
                let call = interpret::Call { number, arch: audit, arguments };
                let verdict = interpret::run(&programs, &call);
                assert_eq!(verdict.value, expected(arch, &outcomes, &call), "{call:?}");
            }
        }
    }
}
