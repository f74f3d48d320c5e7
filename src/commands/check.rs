//! `confine check`: which promises this host keeps, found by doing the whole set-up in a child.

mod attempt;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use serde::Serialize;

use super::Judgement;
use crate::error::Result;
use crate::plan::JSON_VERSION;
use crate::policy::Promise;

#[derive(Debug, Serialize)]
struct Report {
    version: u32,
    holds: bool,
    kernel: Kernel,
    uid: u32,
    landlock: Landlock,
    namespaces: Namespaces,
    promises: BTreeMap<Promise, Row>,
    /// Why the set-up as a whole fails, if it does.
    failure: Option<Lack>,
    weak: Vec<Weak>,
}

#[derive(Debug, Serialize)]
struct Kernel {
    release: String,
    machine: &'static str,
}

/// Errata say which fixes the kernel has; they are independent of the ABI.
#[derive(Debug, Default, Serialize, serde::Deserialize)]
struct Landlock {
    abi: u32,
    errata: Vec<u32>,
}

#[derive(Debug, Default, Serialize, serde::Deserialize)]
struct Namespaces {
    /// "user": entered through a user namespace; "privileged": entered by root without one; or none.
    kind: Option<String>,
    why: Option<String>,
    help: Option<String>,
}

#[derive(Debug, Serialize, serde::Deserialize)]
struct Row {
    /// Whether an ordinary run asks for it on this host.
    default: bool,
    kept: bool,
    layers: Vec<String>,
    why: Option<String>,
    help: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
struct Lack {
    why: String,
    help: Option<String>,
}

/// A setting of the host that makes life easier for what is inside, or for what survived an earlier run.
#[derive(Debug, Serialize)]
struct Weak {
    setting: &'static str,
    value: String,
    why: &'static str,
    help: String,
}

pub fn run(json: bool) -> Result<Judgement> {
    let found = attempt::attempt(&[])?;
    let mut promises = found.promises;
    // Tried apart: their parent is not part of an ordinary run, and may fail where that does not.
    let supervised: Vec<Promise> =
        promises.iter().filter(|(_, row)| row.kept && !row.default).map(|(promise, _)| *promise).collect();
    if found.failure.is_none()
        && !supervised.is_empty()
        && let Some(failure) = attempt::attempt(&supervised)?.failure
    {
        for row in promises.values_mut().filter(|row| row.kept && !row.default) {
            (row.kept, row.why, row.help) = (false, Some(failure.why.clone()), failure.help.clone());
        }
    }
    if let Some(failure) = &found.failure {
        // A set-up that fails as a whole keeps nothing.
        for row in promises.values_mut().filter(|row| row.kept) {
            row.kept = false;
            row.why = Some("the set-up as a whole fails".to_owned());
            row.help = failure.help.clone();
        }
    }
    let holds = found.failure.is_none() && promises.values().all(|row| row.kept || !row.default);
    let report = Report {
        version: JSON_VERSION,
        holds,
        kernel: Kernel {
            release: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
            machine: std::env::consts::ARCH,
        },
        uid: nix::unistd::geteuid().as_raw(),
        landlock: found.landlock,
        namespaces: found.namespaces,
        promises,
        failure: found.failure,
        weak: weak(),
    };
    let text = if json {
        let text = serde_json::to_string(&report)
            .map_err(|error| crate::error::Error::step("write JSON", std::io::Error::other(error)))?;
        text + "\n"
    } else {
        prose(&report)
    };
    Ok(Judgement { text, good: holds })
}

fn weak() -> Vec<Weak> {
    super::posture::weak_settings()
        .map(|(setting, value, why, fix)| Weak { setting, value, why, help: fix.to_owned() })
        .collect()
}

fn prose(report: &Report) -> String {
    let mut text = format!("kernel      {} on {}\n", report.kernel.release, report.kernel.machine);
    let landlock = match report.landlock.abi {
        0 => "none".to_owned(),
        abi => {
            let errata: Vec<String> = report.landlock.errata.iter().map(u32::to_string).collect();
            let errata = if errata.is_empty() { "none".to_owned() } else { errata.join(", ") };
            format!("ABI {abi}; errata fixed: {errata}")
        }
    };
    let _ = writeln!(text, "landlock    {landlock}");
    let namespaces = match (report.namespaces.kind.as_deref(), &report.namespaces.why) {
        (Some("user"), _) => "through a user namespace",
        (Some(_), _) => "as root, without a user namespace",
        (None, Some(why)) => why,
        (None, None) => "unknown",
    };
    let _ = writeln!(text, "namespaces  {namespaces}");
    if report.namespaces.kind.is_none() {
        text.push_str("loopback    none inside: a private one needs a network namespace\n");
    }
    if let Some(failure) = &report.failure {
        let _ = writeln!(text, "set-up      FAILS: {}", failure.why);
    }
    text.push('\n');
    for (promise, row) in &report.promises {
        let state = match (row.kept, row.default) {
            (true, _) => "kept",
            (false, true) => "NOT KEPT",
            (false, false) => "no",
        };
        let by = if row.kept { row.layers.join(", ") } else { row.why.clone().unwrap_or_default() };
        let _ = writeln!(text, "{:<15} {state:<9} {by}", promise.name());
    }
    // One fix often mends several promises.
    let mut fixes: Vec<(&str, Vec<&str>)> = Vec::new();
    let failed = report.promises.iter().filter(|(_, row)| !row.kept);
    for (promise, help) in failed.filter_map(|(promise, row)| Some((promise, row.help.as_deref()?))) {
        match fixes.iter_mut().find(|(known, _)| *known == help) {
            Some((_, promises)) => promises.push(promise.name()),
            None => fixes.push((help, vec![promise.name()])),
        }
    }
    for (help, promises) in fixes {
        let _ = writeln!(text, "\nfix for {}:\n  {help}", promises.join(", "));
    }
    for weak in &report.weak {
        let _ = writeln!(text, "\nweak: {} is {}: {}\n  {}", weak.setting, weak.value, weak.why, weak.help);
    }
    text.push_str(match (report.holds, report.promises.values().any(|row| !row.kept)) {
        (true, true) => "\nEvery default promise holds; the others are not asked for by an ordinary run.\n",
        (true, false) => "\nEvery promise holds.\n",
        (false, _) => "\nNot every default promise holds.\n",
    });
    text
}
