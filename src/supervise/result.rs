//! The result: one JSON object about a run that has ended, or was refused. docs/result.schema.json describes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::unistd::{Pid, getppid};
use serde::Serialize;
use serde_json::{Value, json};

use super::bounded::Kept;
use super::monitor::End;
use crate::error::{Error, Told, describe};
use crate::policy::{Git, Promise};
use crate::record::event::Line;
use crate::view::changes::{self, Root, Snapshot};
use crate::view::scan;
use crate::view::{View, path_text};

/// No tree takes longer that people run commands in; what was not seen by then is said not to have been.
const LOOK: Duration = Duration::from_secs(60);
const LISTED: usize = 500;
const TOLD: usize = 1 << 20;

/// What is compared with the end of the run: looked at before the command starts, and reached by descriptors, since
/// the paths lead elsewhere once there is a new root.
pub struct Before {
    roots: Vec<Root>,
    files: Snapshot,
    /// None: hard links were not asked about (`--waive alias-free`).
    links: Option<BTreeSet<(PathBuf, u64)>>,
    apart: Vec<PathBuf>,
    git: Git,
}

impl Before {
    pub fn look(view: &View, git: Git) -> crate::error::Result<Before> {
        let mut roots = Vec::new();
        for root in view.roots.iter().filter(|root| root.writable) {
            let fd = root.fd.try_clone().map_err(|error| Error::step("keep a writable root open", error))?;
            roots.push(Root { path: root.path.clone(), fd });
        }
        let files = changes::look(&roots, &mut patience(getppid()));
        let links = view.scan.as_ref().map(names);
        Ok(Before { roots, files, links, apart: view.apart(), git })
    }

    /// What is new or changed now.
    fn compare(&self) -> Value {
        let files = changes::look(&self.roots, &mut patience(getppid())).since(&self.files);
        json!({ "files": files, "links": self.compare_links() })
    }

    fn compare_links(&self) -> Value {
        let Some(known) = &self.links else {
            return json!({ "complete": false, "reason": format!("{} was waived", Promise::AliasFree) });
        };
        let roots: Vec<scan::Root<'_>> = self
            .roots
            .iter()
            .map(|root| scan::Root { dir: root.fd.as_fd(), path: &root.path, writable: true })
            .collect();
        if roots.is_empty() {
            return json!({ "complete": true, "outside": [], "more": 0 });
        }
        let options = scan::Options { git: self.git, apart: &self.apart, max_threads: 0 };
        match scan::scan(&roots, &options) {
            Ok(report) => {
                let mut outside: Vec<PathBuf> = names(&report)
                    .into_iter()
                    .filter(|name| !known.contains(name))
                    .map(|(path, _)| path)
                    .collect();
                let all = outside.len();
                let mut bytes = 0;
                outside.truncate(LISTED);
                // As JSON at its longest: who made the names may have wished for many bytes.
                outside.retain(|path| {
                    bytes += 6 * path.as_os_str().len();
                    bytes <= TOLD
                });
                let more = all - outside.len();
                let outside: Vec<Value> = outside.iter().map(|path| text(path)).collect();
                json!({ "complete": report.unverifiable.is_empty(), "outside": outside, "more": more })
            }
            Err(error) => json!({ "complete": false, "reason": error.to_string() }),
        }
    }
}

/// Names inside that lead to something with a name outside.
fn names(report: &scan::Report) -> BTreeSet<(PathBuf, u64)> {
    let place = |suspect: &scan::Suspect| {
        let root = report.roots.get(suspect.root)?;
        let path = if suspect.path.as_os_str().is_empty() { root.clone() } else { root.join(&suspect.path) };
        Some((path, suspect.ino))
    };
    report.suspects.iter().filter_map(place).collect()
}

fn text(path: &std::path::Path) -> Value {
    path_text::serialize(path, serde_json::value::Serializer).unwrap_or_default()
}

/// Nobody waits for a result once the caller has gone.
fn patience(parent: Pid) -> impl FnMut() -> bool {
    let began = Instant::now();
    move || began.elapsed() < LOOK && getppid() == parent
}

/// How the child that sets the boundary up tells the monitor that it could not: the command never has this pipe, so
/// it cannot tell tales.
pub struct Report {
    reader: File,
    writer: File,
}

impl Report {
    pub fn new() -> io::Result<Report> {
        let (reader, writer) = io::pipe()?;
        Ok(Report { reader: OwnedFd::from(reader).into(), writer: OwnedFd::from(writer).into() })
    }

    pub fn into_writer(self) -> File {
        self.writer
    }

    pub fn into_reader(self) -> File {
        self.reader
    }
}

pub fn report(mut writer: &File, error: &Error) {
    // Within what a pipe takes without a reader.
    const MOST: usize = 2000;
    if let Ok(line) = serde_json::to_vec(&Told::from(error).cut(MOST)) {
        let _ = writer.write_all(&line);
    }
}

/// What was reported, if anything was. All writers have gone.
pub fn reported(mut reader: File) -> Option<Told> {
    let mut line = Vec::new();
    reader.read_to_end(&mut line).ok()?;
    serde_json::from_slice(&line).ok()
}

/// The line that tells of the end, with what only the result has.
#[derive(Serialize)]
pub struct Whole<'a, 'b> {
    #[serde(flatten)]
    pub line: &'b Line<'a>,
    #[serde(flatten)]
    pub extras: Option<BTreeMap<&'static str, Value>>,
}

pub fn extras(end: &End, before: &Before) -> BTreeMap<&'static str, Value> {
    let mut extras: BTreeMap<&'static str, Value> = end
        .output
        .iter()
        .flat_map(|output| output.told())
        .map(|(name, bytes, kept)| {
            (name, kept.map_or_else(|| json!({ "bytes": bytes }), |kept| stream(bytes, kept)))
        })
        .collect();
    // Whoever told the run to end is waiting for it.
    let changes = if end.hurried { Value::Null } else { before.compare() };
    extras.insert("changes", changes);
    extras
}

/// `data` is all of it, or its beginning when something was `cut` between it and `tail`.
fn stream(bytes: u64, kept: &Kept) -> Value {
    let parts = kept.parts();
    let plain = (std::str::from_utf8(&parts.head), std::str::from_utf8(&parts.tail));
    let (encoding, data, tail) = match plain {
        (Ok(head), Ok(tail)) => ("utf-8", head.to_owned(), tail.to_owned()),
        _ => ("base64", base64(&parts.head), base64(&parts.tail)),
    };
    let mut value = json!({ "bytes": bytes, "encoding": encoding, "data": data, "cut": parts.missing });
    if parts.missing > 0 {
        value["tail"] = tail.into();
    }
    value
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let letter = LETTERS.get((bits >> (18 - 6 * place)) as usize & 63).copied().unwrap_or(b'=');
            text.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

/// Why the result could not be written, in the words of the system.
pub fn unwritten(error: &io::Error) -> String {
    format!("confine: cannot write the result: {}\n", describe(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        let pairs = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (plain, text) in pairs {
            assert_eq!(base64(plain.as_bytes()), text);
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
    }

    #[test]
    fn a_stream_is_text_when_it_is_and_base64_when_it_is_not() {
        let kept = |bytes: &[u8], limit| {
            let mut kept = Kept::new(limit, limit / 2);
            kept.take(bytes);
            stream(bytes.len() as u64, &kept)
        };
        let whole = json!({ "bytes": 2, "encoding": "utf-8", "data": "hi", "cut": 0 });
        assert_eq!(kept(b"hi", 10), whole);
        let cut = json!({ "bytes": 6, "encoding": "utf-8", "data": "ab", "cut": 2, "tail": "ef" });
        assert_eq!(kept(b"abcdef", 4), cut);
        let binary = json!({ "bytes": 2, "encoding": "base64", "data": "AP8=", "cut": 0 });
        assert_eq!(kept(&[0, 0xff], 10), binary);
    }
}
