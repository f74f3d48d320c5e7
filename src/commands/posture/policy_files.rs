//! Files that may say how runs are confined: whoever can write one, or put one in its place, decides.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Findings, Rule, Setup, Severity};
use crate::error::show;
use crate::policy::files::document::{Element, Value, parse};
use crate::view::caller::read_bounded;
use crate::view::system;

const WRITABLE: Rule = Rule {
    id: "policy-writable",
    severity: Severity::High,
    why: "whoever can write it, or a directory above it, decides how the next run is confined",
    fix: "chmod go-w {}",
};
const OWNER: Rule = Rule {
    id: "policy-owner",
    severity: Severity::High,
    why: "its owner decides how the next run is confined, and is neither root nor you",
    fix: "sudo chown root {}",
};
const IN_WORKSPACE: Rule = Rule {
    id: "policy-in-workspace",
    severity: Severity::High,
    why: "a command in that workspace can rewrite what confines the next one",
    fix: "move {} out of every workspace",
};
const UNREADABLE: Rule = Rule {
    id: "policy-unreadable",
    severity: Severity::Medium,
    why: "what it says is not known, and a run that needs it will not start",
    fix: "look at {} yourself",
};

const FILE: u64 = 1 << 20;
const FILES: usize = 200;

/// A key that opens much, and the values that make it do so.
struct Key {
    key: &'static str,
    opens: Opens,
    rule: Rule,
}

enum Opens {
    Any,
    Word(&'static str),
    /// A directory of the system, HOME, or what is above it.
    Broad,
}

const fn key(
    key: &'static str,
    opens: Opens,
    id: &'static str,
    severity: Severity,
    why: &'static str,
) -> Key {
    Key {
        key,
        opens,
        rule: Rule { id, severity, why, fix: "take the line out of {}, or keep it on purpose" },
    }
}

const KEYS: &[Key] = &[
    key(
        "waive",
        Opens::Any,
        "profile-waives",
        Severity::Medium,
        "a promise that the host cannot keep is given up without a word on the command line",
    ),
    key(
        "allow",
        Opens::Word("broad-workspace"),
        "profile-broad-workspace",
        Severity::Medium,
        "HOME or a directory of the system may become a workspace",
    ),
    key(
        "allow",
        Opens::Word("userns"),
        "profile-allows-userns",
        Severity::Medium,
        "user namespaces open more of the kernel to the command",
    ),
    key(
        "net",
        Opens::Word("host"),
        "profile-net-host",
        Severity::Medium,
        "all of the host's network, its local services included",
    ),
    key(
        "listen",
        Opens::Word("any"),
        "profile-listen-any",
        Severity::Medium,
        "the command may serve on every port of every interface",
    ),
    key(
        "rw",
        Opens::Broad,
        "profile-grants-broadly",
        Severity::High,
        "much more than a project may be changed",
    ),
    key(
        "workspace",
        Opens::Broad,
        "profile-grants-broadly",
        Severity::High,
        "much more than a project may be changed",
    ),
    key(
        "ro",
        Opens::Broad,
        "profile-reads-broadly",
        Severity::Medium,
        "every secret that is not in confine's tables can be read",
    ),
    key(
        "git",
        Opens::Word("free"),
        "profile-lifts-guard",
        Severity::Medium,
        "hooks and settings that run by themselves outside can be written",
    ),
];

pub fn look(setup: &Setup, findings: &mut Findings) {
    let places =
        setup.config.iter().map(|config| config.join("confine")).chain([PathBuf::from("/etc/confine")]);
    for place in places {
        if fs::symlink_metadata(&place).is_err() {
            continue;
        }
        let mut left = vec![(place, 0)];
        let mut count = 0;
        while let Some((path, depth)) = left.pop() {
            count += 1;
            if count > FILES || depth > 4 {
                findings.unseen(&path, "too many files");
                break;
            }
            judge(setup, findings, &path, depth == 0);
            for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
                left.push((entry.path(), depth + 1));
            }
        }
    }
}

fn judge(setup: &Setup, findings: &mut Findings, path: &Path, with_parents: bool) {
    // What the name leads to is what counts, and every directory on the way there.
    let Ok(canonical) = fs::canonicalize(path) else {
        return findings.add(&UNREADABLE, Some(path), format!("{} leads nowhere", show(path.as_os_str())));
    };
    // Of a device or a FIFO everybody's right to write says nothing, and must not be taken away.
    if fs::metadata(&canonical).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        let what = format!("{} cannot be read: not a regular file", show(path.as_os_str()));
        return findings.add(&UNREADABLE, Some(path), what);
    }
    let linked = canonical != path;
    let above = if with_parents || linked { usize::MAX } else { 1 };
    for part in canonical.ancestors().take(above) {
        let Ok(found) = fs::metadata(part) else { continue };
        let name = show(part.as_os_str());
        // In a sticky directory nobody replaces what is another's.
        let sticky = found.is_dir() && found.mode() & 0o1000 != 0 && part != canonical;
        if found.mode() & 0o022 != 0 && !sticky {
            findings.add(
                &WRITABLE,
                Some(part),
                format!("{name} may be written by others (mode {:o})", found.mode() & 0o7777),
            );
        }
        if found.uid() != 0 && found.uid() != setup.uid {
            findings.add(&OWNER, Some(part), format!("{name} belongs to uid {}", found.uid()));
        }
    }
    if let Some(workspace) = setup.workspaces.iter().find(|root| canonical.starts_with(root)) {
        let text =
            format!("{} lies in the workspace {}", show(path.as_os_str()), show(workspace.as_os_str()));
        findings.add(&IN_WORKSPACE, Some(path), text);
    }
    if canonical.is_dir() {
        return;
    }
    match read_bounded(&canonical, FILE) {
        Ok(bytes) => read(setup, findings, path, &String::from_utf8_lossy(&bytes)),
        Err(error) => {
            let why = crate::error::describe(&error);
            findings.add(
                &UNREADABLE,
                Some(path),
                format!("{} cannot be read: {why}", show(path.as_os_str())),
            );
        }
    }
}

fn read(setup: &Setup, findings: &mut Findings, path: &Path, text: &str) {
    let items = match parse(text) {
        Ok(items) => items,
        Err(fault) => {
            let what =
                format!("{}, line {}: {}", show(path.as_os_str()), fault.line, show(fault.what.as_ref()));
            return findings.add(&UNREADABLE, Some(path), what);
        }
    };
    for item in items {
        let words: Vec<(usize, String)> = match item.value {
            Value::Word(word) => vec![(item.line, word)],
            Value::List(list) => list
                .into_iter()
                .filter_map(|(line, element)| match element {
                    Element::Word(word) => Some((line, word)),
                    Element::Other(_) => None,
                })
                .collect(),
            // No key of a policy is a table; the loader says so.
            Value::Table(_) | Value::Flag(_) | Value::Other(_) => Vec::new(),
        };
        for (line, word) in words {
            for row in KEYS.iter().filter(|row| row.key == item.key && row.opens.matches(setup, &word)) {
                let (path_shown, word) = (show(path.as_os_str()), show(word.as_ref()));
                let what = format!("{path_shown} has {} {word} in line {line}", row.key);
                findings.add(&row.rule, Some(path), what);
            }
        }
    }
}

impl Opens {
    fn matches(&self, setup: &Setup, word: &str) -> bool {
        match self {
            Opens::Any => true,
            Opens::Word(opens) => word == *opens,
            Opens::Broad => {
                let home = setup.home.as_deref().unwrap_or(Path::new("/"));
                let path = match word.strip_prefix('~') {
                    Some(rest) => home.join(rest.trim_start_matches('/')),
                    None => PathBuf::from(word),
                };
                home.starts_with(&path)
                    || system::BROAD.iter().any(|broad| Path::new(broad).starts_with(&path))
            }
        }
    }
}
