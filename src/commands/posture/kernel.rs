//! Settings of the kernel that make life easier for what is inside, or for what survived an earlier run.

use std::fs;

use super::{Findings, Rule, Severity};

enum Bad {
    Is(&'static str),
    Below(i64),
    /// A program that the kernel starts as root.
    Pipe,
}

struct Row {
    setting: &'static str,
    bad: Bad,
    rule: Rule,
}

const fn row(
    setting: &'static str,
    bad: Bad,
    id: &'static str,
    severity: Severity,
    why: &'static str,
    fix: &'static str,
) -> Row {
    Row { setting, bad, rule: Rule { id, severity, why, fix } }
}

use Severity::{Low, Medium};

/// proc(5), "/proc/sys", and the kernel's admin-guide/sysctl. The first three `confine check` tells as well.
const ROWS: &[Row] = &[
    row(
        "fs.protected_hardlinks",
        Bad::Is("0"),
        "kernel-protected-hardlinks",
        Medium,
        "others can link files of yours into what a command may write",
        "sudo sysctl fs.protected_hardlinks=1",
    ),
    row(
        "fs.protected_symlinks",
        Bad::Is("0"),
        "kernel-protected-symlinks",
        Medium,
        "a link that a command leaves in /tmp is followed by everybody",
        "sudo sysctl fs.protected_symlinks=1",
    ),
    row(
        "dev.tty.legacy_tiocsti",
        Bad::Is("1"),
        "kernel-legacy-tiocsti",
        Medium,
        "an unconfined program can type into the terminal (inside it is denied)",
        "sudo sysctl dev.tty.legacy_tiocsti=0",
    ),
    row(
        "kernel.yama.ptrace_scope",
        Bad::Is("0"),
        "kernel-ptrace-scope",
        Medium,
        "unconfined programs of one user can read each other's memory, agents and their keys included (inside it is denied)",
        "sudo sysctl kernel.yama.ptrace_scope=1",
    ),
    row(
        "kernel.unprivileged_bpf_disabled",
        Bad::Is("0"),
        "kernel-unprivileged-bpf",
        Medium,
        "a large and often broken part of the kernel is open to everybody (inside it is denied)",
        "sudo sysctl kernel.unprivileged_bpf_disabled=1",
    ),
    row(
        "kernel.core_pattern",
        Bad::Pipe,
        "kernel-core-pattern",
        Low,
        "a crash inside makes the kernel start that program as root, outside, with the crashed memory as its input",
        "sudo sysctl kernel.core_pattern=core, unless the program is known to be careful with its input",
    ),
    row(
        "fs.protected_fifos",
        Bad::Is("0"),
        "kernel-protected-fifos",
        Low,
        "a FIFO that a command leaves in a shared directory is opened for writing by programs that meant to make a file",
        "sudo sysctl fs.protected_fifos=1",
    ),
    row(
        "fs.protected_regular",
        Bad::Is("0"),
        "kernel-protected-regular",
        Low,
        "a file that a command leaves in a shared directory is opened for writing by programs that meant to make one",
        "sudo sysctl fs.protected_regular=1",
    ),
    row(
        "kernel.kptr_restrict",
        Bad::Is("0"),
        "kernel-kptr-restrict",
        Low,
        "kernel addresses are told, which attacks on the kernel need",
        "sudo sysctl kernel.kptr_restrict=1",
    ),
    row(
        "kernel.dmesg_restrict",
        Bad::Is("0"),
        "kernel-dmesg-restrict",
        Low,
        "everybody reads the kernel's log, which attacks on the kernel use (inside it is denied)",
        "sudo sysctl kernel.dmesg_restrict=1",
    ),
    row(
        "kernel.perf_event_paranoid",
        Bad::Below(2),
        "kernel-perf-event-paranoid",
        Low,
        "unprivileged programs measure the kernel (inside it is denied)",
        "sudo sysctl kernel.perf_event_paranoid=2",
    ),
];

impl Bad {
    fn matches(&self, value: &str) -> bool {
        match self {
            Bad::Is(bad) => value == *bad,
            Bad::Below(least) => value.parse::<i64>().is_ok_and(|value| value < *least),
            Bad::Pipe => value.starts_with('|'),
        }
    }
}

fn value(setting: &str) -> Option<String> {
    let path = format!("/proc/sys/{}", setting.replace('.', "/"));
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

pub fn look(findings: &mut Findings) {
    for row in ROWS {
        if let Some(value) = value(row.setting).filter(|value| row.bad.matches(value)) {
            let value = crate::error::show(value.as_ref()).to_string();
            findings.add(&row.rule, None, format!("{} is {value}", row.setting));
        }
    }
}

/// Those that `confine check` tells: setting, value, why, fix.
pub fn weak_settings() -> impl Iterator<Item = (&'static str, String, &'static str, &'static str)> {
    ROWS.iter().take(3).filter_map(|row| {
        let value = value(row.setting).filter(|value| row.bad.matches(value))?;
        Some((row.setting, value, row.rule.why, row.rule.fix))
    })
}
