//! `confine scan [--separate] [--json] DIR...`
#![forbid(unsafe_code)]

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use serde::Serialize;

use super::Judgement;
use crate::error::{Error, Result, describe, show};
use crate::plan::JSON_VERSION;
use crate::view::scan::separate::{self, Lock, Outcome};
use crate::view::scan::{Options, Reason, Report, Root, scan};

/// Not good: something was found that a run would refuse.
pub fn run(dirs: &[PathBuf], separate: bool, json: bool) -> Result<Judgement> {
    let opened: Vec<(OwnedFd, PathBuf)> = dirs.iter().map(|dir| open(dir)).collect::<Result<_>>()?;
    let roots: Vec<Root<'_>> =
        opened.iter().map(|(fd, path)| Root { dir: fd.as_fd(), path, writable: true }).collect();
    let options = Options::default();
    let mut report = scan(&roots, &options)?;
    let mut outcome = Outcome::default();
    if separate {
        let lock = Lock::take(&roots)?;
        if separate::clean(&roots, &report, &lock)? > 0 {
            report = scan(&roots, &options)?;
        }
        if !report.suspects.is_empty() {
            outcome = separate::separate(&roots, &report, &lock);
            report = scan(&roots, &options)?;
        }
    }
    let text = if json { as_json(&report, &outcome)? } else { as_text(&report, &outcome, separate) };
    let clean = report.suspects.is_empty() && report.devices.is_empty() && report.unverifiable.is_empty();
    Ok(Judgement { text, good: clean && outcome.failures.is_empty() })
}

fn open(dir: &Path) -> Result<(OwnedFd, PathBuf)> {
    let fd = rustix::fs::open(dir, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        .map_err(|error| Error::path("open", dir, error))?;
    let path = std::fs::canonicalize(dir).map_err(|error| Error::path("resolve", dir, error))?;
    Ok((fd, path))
}

fn as_text(report: &Report, outcome: &Outcome, separate: bool) -> String {
    let mut lines = Vec::new();
    let at = |root: usize, path: &Path| report.full(root, path);
    for suspect in &report.suspects {
        let path = at(suspect.root, &suspect.path);
        let (inside, all) = (suspect.seen, suspect.nlink);
        lines.push(format!("alias {}: {inside} of {all} names are inside", show(path.as_os_str())));
    }
    for device in &report.devices {
        lines.push(format!("device node {}", show(at(device.root, &device.path).as_os_str())));
    }
    for unverifiable in &report.unverifiable {
        let path = at(unverifiable.root, &unverifiable.path);
        lines.push(format!("cannot verify {}: {}", show(path.as_os_str()), reason(&unverifiable.reason)));
    }
    for (kind, list) in [("mount point", &report.submounts), ("runs by itself", &report.control)] {
        for (root, path) in list {
            lines.push(format!("{kind} {}", show(at(*root, path).as_os_str())));
        }
    }
    for (path, reason) in &outcome.failures {
        lines.push(format!("not separated {}: {reason}", show(path.as_os_str())));
    }
    if separate {
        let names = if outcome.separated == 1 { "name" } else { "names" };
        lines.push(format!("{} {names} separated", outcome.separated));
    }
    lines.push(format!(
        "{} entries in {} directories, {} aliases, {:.1} ms",
        report.entries,
        report.directories,
        report.suspects.len(),
        report.elapsed.as_secs_f64() * 1e3
    ));
    lines.push(String::new());
    lines.join("\n")
}

fn reason(reason: &Reason) -> String {
    match reason {
        Reason::Unreadable(error) => describe(error),
        Reason::FileSystem(magic) => format!("link counts cannot be trusted on file system type {magic:#x}"),
    }
}

/// Paths that are not UTF-8 are shown with U+FFFD: the object is for reading, not for opening.
#[derive(Serialize)]
struct Json {
    version: u32,
    roots: Vec<String>,
    entries: u64,
    directories: u64,
    microseconds: u64,
    passes: u32,
    aliases: Vec<Alias>,
    devices: Vec<String>,
    unverifiable: Vec<Refused>,
    submounts: Vec<String>,
    control_files: Vec<String>,
    separated: usize,
    not_separated: Vec<Refused>,
}

#[derive(Serialize)]
struct Alias {
    path: String,
    device: u64,
    inode: u64,
    links: u32,
    inside: u32,
}

#[derive(Serialize)]
struct Refused {
    path: String,
    reason: String,
}

fn as_json(report: &Report, outcome: &Outcome) -> Result<String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let at = |root: usize, path: &Path| text(&report.full(root, path));
    let list = |paths: &[(usize, PathBuf)]| paths.iter().map(|(root, path)| at(*root, path)).collect();
    let json = Json {
        version: JSON_VERSION,
        roots: report.roots.iter().map(|root| text(root)).collect(),
        entries: report.entries,
        directories: report.directories,
        microseconds: u64::try_from(report.elapsed.as_micros()).unwrap_or(u64::MAX),
        passes: report.passes,
        aliases: report
            .suspects
            .iter()
            .map(|suspect| Alias {
                path: at(suspect.root, &suspect.path),
                device: suspect.dev,
                inode: suspect.ino,
                links: suspect.nlink,
                inside: suspect.seen,
            })
            .collect(),
        devices: report.devices.iter().map(|device| at(device.root, &device.path)).collect(),
        unverifiable: report
            .unverifiable
            .iter()
            .map(|entry| Refused { path: at(entry.root, &entry.path), reason: reason(&entry.reason) })
            .collect(),
        submounts: list(&report.submounts),
        control_files: list(&report.control),
        separated: outcome.separated,
        not_separated: outcome
            .failures
            .iter()
            .map(|(path, reason)| Refused { path: text(path), reason: reason.clone() })
            .collect(),
    };
    let mut line = serde_json::to_string(&json)
        .map_err(|error| Error::step("write the report", std::io::Error::from(error)))?;
    line.push('\n');
    Ok(line)
}
