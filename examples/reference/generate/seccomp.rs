//! The table of the system call filter.

use std::fmt::Write;

use confine::enforce::seccomp::{Arch, BROKER, Group, LAST_VETTED, Relation, Row, Test, When, rows};

use super::{code, head, row};

fn errno(number: i32) -> String {
    let name = match number {
        BROKER => return "the broker answers".to_owned(),
        libc::EPERM => "EPERM",
        libc::ENOSYS => "ENOSYS",
        libc::EAFNOSUPPORT => "EAFNOSUPPORT",
        libc::EPROTONOSUPPORT => "EPROTONOSUPPORT",
        libc::ENOPROTOOPT => "ENOPROTOOPT",
        libc::EOPNOTSUPP => "EOPNOTSUPP",
        libc::EACCES => "EACCES",
        other => return other.to_string(),
    };
    name.to_owned()
}

fn when(when: When) -> &'static str {
    match when {
        When::Always => "always",
        When::NoOwnIpc => "without an IPC namespace",
        When::NoNamespaces => "unless `--allow userns` is given",
        When::NoListen => "where ports are ruled and none is listened on",
        When::NoInet => "without any network",
        When::SomeInet => "with a network, be it the private loopback",
        When::TcpOnly => "with `--connect`, `--listen` or `--loopback host`",
        When::LoopbackOnly => "with `--loopback host`",
        When::AllInet => "with the private loopback or `--net host`",
        When::BrokeredMetadata => "without namespaces",
        When::BrokeredConnect => "without namespaces, or with `--loopback host`",
        When::BrokeredListen => "with `--listen` or `--loopback host`",
        When::NoUnixDatagrams => "without namespaces, unless `--allow unix-datagram` is given",
        When::SharedProcesses => "without a PID namespace",
        When::OwnProcesses => "in a PID namespace",
    }
}

fn condition(test: &Test) -> String {
    let argument = format!("argument {}", test.argument + 1);
    match test.relation {
        Relation::Is(value) => format!("{argument} is {value:#x}"),
        Relation::IsNot(0) => format!("{argument} is not 0"),
        Relation::IsNot(value) => format!("{argument} is not {value:#x}"),
        Relation::Any(bits) => format!("{argument} has a bit of {bits:#x}"),
        Relation::Masked(mask, value) => format!("{argument} & {mask:#x} is {value:#x}"),
    }
}

fn conditions(row: &Row) -> String {
    let all: Vec<String> = row.tests.iter().map(condition).collect();
    if all.is_empty() { "any".to_owned() } else { all.join(" and ") }
}

pub fn page() -> String {
    let mut text = format!(
        "# System calls\n\nThe filter allows what is not listed here, up to number {LAST_VETTED}, the last one that \
         was read and judged. Newer\nnumbers, and those of the x32 interface, give ENOSYS. A call of a foreign \
         architecture kills the process. Everything\nelse that is denied is an errno and not a signal.\n\nThis is the \
         table of x86_64. aarch64 and riscv64 have the same rows, as far as they have the calls.\n"
    );
    let mut shown: Vec<*const Group> = Vec::new();
    for (group, _) in rows(Arch::X86_64) {
        if shown.contains(&std::ptr::from_ref(group)) {
            continue;
        }
        shown.push(group);
        let _ = write!(
            text,
            "\n## {}: {}\n\n{}. In force {}.\n\n",
            group.name,
            errno(group.errno),
            upper(group.reason),
            when(group.when)
        );
        let of_group = rows(Arch::X86_64).filter(|(other, _)| std::ptr::eq(*other, group));
        let (plain, ruled): (Vec<&Row>, Vec<&Row>) =
            of_group.map(|(_, row)| row).partition(|row| row.tests.is_empty());
        if !plain.is_empty() {
            let names: Vec<String> = plain.iter().map(|row| code(row.name)).collect();
            let _ = writeln!(text, "{}.", names.join(", "));
        }
        if !ruled.is_empty() {
            if !plain.is_empty() {
                text.push('\n');
            }
            text.push_str(&head(&["call", "when"]));
            for one in ruled {
                text.push_str(&row([code(one.name), conditions(one)]));
            }
        }
    }
    text
}

fn upper(text: &str) -> String {
    // A name keeps its letters: btrfs, io_uring.
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().collect::<String>() + letters.as_str())
        .unwrap_or_default()
}
