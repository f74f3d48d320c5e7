//! The program as a whole, against the table and a second source of numbers.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;

use libc::{ENOSYS, EPERM};

use super::interpret::{Call, Verdict, run};
use super::*;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;
const GARBAGE: u64 = 0xdead_beef_0000_0000;

pub(super) fn errno(errno: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno.unsigned_abs()
}

/// The ordinary run: namespaces of its own, private loopback.
pub(super) fn ordinary() -> Rules {
    Rules {
        inet: Inet::All,
        sysv_ipc: true,
        namespaces: false,
        listen: true,
        broker: Brokered::default(),
        unix_datagrams: false,
        own_processes: false,
    }
}

pub(super) fn every_rules() -> Vec<Rules> {
    let mut all = Vec::new();
    for inet in [Inet::None, Inet::Loopback, Inet::Tcp, Inet::All] {
        // Every combination of the first three, and the brokers with and without them.
        for bits in (0..8).chain([8, 16, 24, 31]) {
            let [sysv_ipc, namespaces, listen, metadata, connect] =
                [1, 2, 4, 8, 16].map(|bit| bits & bit != 0);
            let broker = Brokered { metadata, connect, listen: metadata && listen };
            all.push(Rules {
                inet,
                sysv_ipc,
                namespaces,
                listen,
                broker,
                unix_datagrams: bits == 24,
                own_processes: listen,
            });
        }
    }
    all
}

pub(super) fn filter(arch: Arch, rules: &Rules) -> Vec<Program> {
    vec![program(arch, rules)]
}

pub(super) fn number(arch: Arch, name: &str) -> u32 {
    let row = rows(arch).find(|(_, row)| row.name == name);
    row.and_then(|(_, row)| row.number(arch)).unwrap_or_else(|| panic!("{name} has no number on {arch:?}"))
}

/// What the table says, read straight from it.
fn reference(rules: &Rules, arch: Arch, call: &Call) -> u32 {
    if call.arch != arch.audit() {
        return KILL;
    }
    if call.number > LAST_VETTED || table::holes(arch).iter().any(|hole| hole.contains(&call.number)) {
        return errno(ENOSYS);
    }
    let here = || in_force(rules).filter(|(_, row)| row.number(arch) == Some(call.number));
    let denied = here()
        .find(|(group, row)| row.tests.is_empty() && group.errno != row::BROKER)
        .or_else(|| here().find(|(_, row)| row.tests.iter().all(|test| test_holds(test, call))));
    denied.map_or(ALLOW, |(group, _)| match group.errno {
        row::BROKER => libc::SECCOMP_RET_USER_NOTIF,
        value => errno(value),
    })
}

fn test_holds(test: &Test, call: &Call) -> bool {
    let value = call.arguments[usize::from(test.argument)];
    let value = match test.width {
        Width::Int => value & 0xffff_ffff,
        Width::Pointer => value,
    };
    match test.relation {
        Relation::Is(expected) => value == u64::from(expected),
        Relation::IsNot(expected) => value != u64::from(expected),
        Relation::Any(bits) => value & u64::from(bits) != 0,
        Relation::Masked(mask, expected) => value & u64::from(mask) == u64::from(expected),
    }
}

/// Values around every boundary of every test on this argument of this call.
fn telling_values(arch: Arch, number: u32, argument: u8) -> Vec<u64> {
    let mut values = BTreeSet::from([0, 1, u64::from(u32::MAX), u64::MAX, GARBAGE]);
    let tests =
        rows(arch).filter(|(_, row)| row.number(arch) == Some(number)).flat_map(|(_, row)| row.tests.iter());
    for test in tests.filter(|test| test.argument == argument) {
        let (mask, value) = match test.relation {
            Relation::Is(value) | Relation::IsNot(value) => (u32::MAX, value),
            Relation::Any(bits) => (bits, bits & bits.wrapping_neg()),
            Relation::Masked(mask, value) => (mask, value),
        };
        let bits = (0..32).map(|bit| mask & (1 << bit)).filter(|bit| *bit != 0 && mask != u32::MAX);
        values.extend(bits.map(u64::from));
        for near in [value, value.wrapping_add(1), value.wrapping_sub(1), value | !mask, value ^ 8, !value] {
            values.extend([u64::from(near), u64::from(near) | GARBAGE]);
        }
    }
    values.into_iter().collect()
}

/// Two hundred calls of one number with telling arguments, the same ones in every run.
fn variants(arch: Arch, number: u32) -> Vec<Call> {
    let values: Vec<Vec<u64>> = (0..6).map(|argument| telling_values(arch, number, argument)).collect();
    let mut state = 0x9e37_79b9_7f4a_7c15 ^ u64::from(number);
    let mut next = move |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound as u64) as usize
    };
    (0..200)
        .map(|_| {
            let mut arguments = [0; 6];
            for (argument, values) in arguments.iter_mut().zip(&values) {
                *argument = values[next(values.len())];
            }
            Call { number, arch: arch.audit(), arguments }
        })
        .collect()
}

#[test]
fn the_program_decides_as_the_table_says() {
    for arch in Arch::ALL {
        let with_rules: BTreeSet<u32> = rows(arch)
            .filter(|(_, row)| !row.tests.is_empty())
            .filter_map(|(_, row)| row.number(arch))
            .collect();
        for rules in every_rules() {
            let programs = filter(arch, &rules);
            let mut compared = 0;
            let mut compare = |call: &Call| {
                let (is, should) = (run(&programs, call).value, reference(&rules, arch, call));
                assert_eq!(is, should, "{arch:?} {rules:?} {call:x?}");
                compared += 1;
            };
            let boundaries = [0x3fff_ffff, 0x4000_0000, 0x7fff_ffff, 0x8000_0000, u32::MAX];
            let numbers = (0..=600).chain((0..=600).map(|number| number | 0x4000_0000)).chain(boundaries);
            for number in numbers {
                for argument in [0, 1, u64::MAX] {
                    compare(&Call { number, arch: arch.audit(), arguments: [argument; 6] });
                }
            }
            for number in &with_rules {
                variants(arch, *number).iter().for_each(&mut compare);
            }
            assert!(compared > 4000);
        }
    }
}

fn ruled(arch: Arch, rules: &Rules) -> BTreeSet<u32> {
    let tested = in_force(rules).filter(|(_, row)| !row.tests.is_empty());
    tested.filter_map(|(_, row)| row.number(arch)).collect()
}

#[test]
fn a_call_without_argument_rules_hits_the_bitmap() {
    for arch in Arch::ALL {
        for rules in every_rules() {
            let programs = filter(arch, &rules);
            let ruled = ruled(arch, &rules);
            for number in (0..=600).filter(|number| !ruled.contains(number)) {
                let call = Call { number, arch: arch.audit(), arguments: [u64::MAX; 6] };
                let Verdict { cacheable, steps, .. } = run(&programs, &call);
                assert!(cacheable, "{arch:?} {rules:?}: {number} loads more than nr and arch");
                assert!(steps <= 14, "{arch:?} {rules:?}: {number} takes {steps} steps");
            }
        }
    }
}

#[test]
fn a_call_with_argument_rules_does_not_pretend_to_be_cacheable() {
    let call = Call { number: number(Arch::X86_64, "openat"), arch: Arch::X86_64.audit(), arguments: [0; 6] };
    let verdict = run(&filter(Arch::X86_64, &ordinary()), &call);
    assert_eq!((verdict.value, verdict.cacheable), (ALLOW, false));
}

#[test]
fn common_calls_have_no_argument_rules() {
    // read, write, close, stat, fstat, mmap, newfstatat, futex, execve, getdents64, epoll_wait, exit_group
    let common = [0, 1, 3, 4, 5, 9, 262, 202, 59, 217, 232, 231];
    let ruled = ruled(Arch::X86_64, &ordinary());
    let programs = filter(Arch::X86_64, &ordinary());
    for number in common {
        assert!(!ruled.contains(&number), "{number}");
        let call = Call { number, arch: Arch::X86_64.audit(), arguments: [u64::MAX; 6] };
        assert_eq!(run(&programs, &call).value, ALLOW, "{number}");
    }
}

#[test]
fn programs_stay_below_the_kernels_limit() {
    for arch in Arch::ALL {
        for rules in every_rules() {
            // BPF_MAXINSNS, linux/bpf_common.h
            assert!(filter(arch, &rules).iter().all(|program| program.len() <= 4096));
        }
    }
}

#[test]
fn targets_beyond_the_reach_of_a_conditional_jump_are_found() {
    const TESTS: &[Test] = &[Test { argument: 5, width: Width::Pointer, relation: Relation::Is(7) }];
    let arch = Arch::X86_64;
    let value = |number: u32| (number % 120 + 1).cast_signed();
    let outcomes = (0..=LAST_VETTED).map(|number| match number % 3 {
        0 => Outcome::Allow,
        1 => Outcome::Errno(value(number)),
        _ => Outcome::Judge(vec![(value(number), TESTS)]),
    });
    let program = [compile::program(arch, &outcomes.collect::<Vec<_>>())];
    assert!(program[0].len() > 1000, "long enough to need long jumps");
    for number in 0..=LAST_VETTED {
        for argument in [7, 8, GARBAGE | 7] {
            let call = Call { number, arch: arch.audit(), arguments: [0, 0, 0, 0, 0, argument] };
            let denied = number % 3 == 1 || (number % 3 == 2 && argument == 7);
            let expected = if denied { errno(value(number)) } else { ALLOW };
            assert_eq!(run(&program, &call).value, expected, "{number} {argument:x}");
        }
    }
}

#[test]
fn foreign_architecture_is_killed() {
    const I386: u32 = 3 | 0x4000_0000;
    for arch in Arch::ALL {
        let programs = filter(arch, &ordinary());
        let foreign = Arch::ALL.into_iter().filter(|other| *other != arch).map(Arch::audit).chain([I386, 0]);
        for foreign in foreign {
            let call = Call { number: 39, arch: foreign, arguments: [0; 6] };
            assert_eq!(run(&programs, &call).value, KILL, "{arch:?} {foreign:x}");
        }
        let own = Call { number: 172, arch: arch.audit(), arguments: [0; 6] };
        assert_ne!(run(&programs, &own).value, KILL, "{arch:?}");
    }
}

#[test]
fn numbers_agree_with_a_second_source() {
    // Newer than the second source (Linux 6.12), or not in it.
    const NOT_THERE: &[&str] =
        &["open_tree_attr", "listns", "fchroot", "setxattrat", "removexattrat", "file_setattr"];
    for arch in Arch::ALL {
        for (_, row) in every_row() {
            let json = format!(
                r#"{{"f":{{"mismatch_action":"allow","match_action":{{"errno":1}},"filter":[{{"syscall":"{}"}}]}}}}"#,
                row.name
            );
            let target = std::convert::TryInto::try_into(match arch {
                Arch::X86_64 => "x86_64",
                Arch::Aarch64 => "aarch64",
                Arch::Riscv64 => "riscv64",
            })
            .unwrap();
            match (seccompiler::compile_from_json(json.as_bytes(), target), row.number(arch)) {
                (Ok(mut map), Some(number)) => {
                    let call = Call { number, arch: arch.audit(), arguments: [0; 6] };
                    let verdict = run(&[map.remove("f").unwrap()], &call);
                    assert_eq!(verdict.value, errno(EPERM), "{arch:?} {}", row.name);
                }
                (Err(_), Some(_)) => assert!(NOT_THERE.contains(&row.name), "{arch:?} {}", row.name),
                (Ok(_), None) => panic!("{} has a number on {arch:?}", row.name),
                (Err(_), None) => {}
            }
        }
    }
}

#[test]
fn names_numbers_and_reasons_are_complete() {
    for arch in Arch::ALL {
        let names: BTreeSet<&str> = rows(arch).map(|(_, row)| row.name).collect();
        let numbers: BTreeSet<u32> = rows(arch).filter_map(|(_, row)| row.number(arch)).collect();
        assert_eq!(names.len(), numbers.len(), "two names share a number on {arch:?}");
        assert!(numbers.iter().all(|number| *number <= LAST_VETTED));
        let holes = table::holes(arch);
        assert!(numbers.iter().all(|number| !holes.iter().any(|hole| hole.contains(number))), "{arch:?}");
    }
    assert!(table::TABLE.iter().all(|group| !group.reason.is_empty() && group.errno >= 0));
}
