//! The list at the end: for people, as JSON, or as a profile.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write;
use std::path::Path;

use serde_json::{Value, json};

use super::advice::Grant;
use super::judge::{Denial, Object};
use crate::error::show;
use crate::plan::JSON_VERSION;
use crate::policy::Trace;
use crate::record::event::Text;

/// Entries; what is more is only counted.
const MOST: usize = 1000;

/// What was denied, once each, in the order in which it was first seen.
#[derive(Debug, Default)]
pub struct Told {
    list: Vec<Denial>,
    seen: HashSet<(&'static str, Object)>,
    /// Denials that the list has no room for.
    more: u64,
}

impl Told {
    pub fn add(&mut self, denial: Denial) {
        if self.seen.contains(&(denial.operation, denial.object.clone())) {
            return;
        }
        if self.list.len() == MOST {
            self.more += 1;
            return;
        }
        self.seen.insert((denial.operation, denial.object.clone()));
        self.list.push(denial);
    }

    pub fn text(&self, how: &Trace) -> String {
        match (how.json, how.suggest) {
            (true, _) => format!("{}\n", self.object()),
            (false, true) => self.profile(),
            (false, false) => self.prose(),
        }
    }

    fn prose(&self) -> String {
        if self.list.is_empty() {
            return "confine: nothing was denied\n".to_owned();
        }
        let mut text = format!("confine: {} denied\n", count(self.list.len(), "thing was", "things were"));
        for denial in &self.list {
            let _ = writeln!(text, "  {} {}  ({})", denial.operation, denial.object(), denial.layer);
            let advice = &denial.advice;
            if let Some(words) = advice.grant.as_ref().map(Grant::words).or_else(|| advice.note.clone()) {
                let warning =
                    advice.warning.as_ref().map_or_else(String::new, |warning| format!("  # {warning}"));
                let _ = writeln!(text, "      {words}{warning}");
            }
        }
        if self.more > 0 {
            let _ = writeln!(text, "  and {} more denials, which are not listed", self.more);
        }
        text
    }

    fn object(&self) -> Value {
        let entry = |denial: &Denial| {
            let (kind, object) = match &denial.object {
                Object::Path(path) => {
                    ("path", serde_json::to_value(Text::from(path.clone())).unwrap_or_default())
                }
                Object::Words(words) => ("what", words.clone().into()),
            };
            json!({
                "operation": denial.operation,
                kind: object,
                "layer": denial.layer,
                "option": denial.advice.grant.as_ref().map(Grant::words),
                "note": denial.advice.note,
                "warning": denial.advice.warning,
            })
        };
        let denied: Vec<Value> = self.list.iter().map(entry).collect();
        json!({ "version": JSON_VERSION, "event": "traced", "denied": denied, "more": self.more })
    }

    /// What a profile would say to allow all of it; what is dangerous is for somebody to decide.
    fn profile(&self) -> String {
        let mut text =
            String::from("# What the traced command was denied. Read every line before you keep it.\n");
        let (mut plain, mut doubtful) = (BTreeSet::new(), Vec::new());
        for denial in &self.list {
            let advice = &denial.advice;
            match (&advice.grant, &advice.warning) {
                (Some(grant), None) => _ = plain.insert(grant),
                (Some(grant), Some(warning)) => doubtful.push(format!("# {}  # {warning}", key(grant))),
                (None, _) => doubtful.push(format!(
                    "# {} {}: {}",
                    denial.operation,
                    denial.object(),
                    advice.note.as_deref().unwrap_or("no option")
                )),
            }
        }
        let writable: BTreeSet<_> = plain.iter().filter_map(|grant| path(grant, true)).collect();
        let is_within = |path: &Path, own: bool| {
            path.ancestors().skip(usize::from(own)).any(|above| writable.contains(above))
        };
        for (name, wants_write) in [("ro", false), ("rw", true)] {
            let all: BTreeSet<&Path> = plain.iter().filter_map(|grant| path(grant, wants_write)).collect();
            let lines: Vec<String> = all
                .iter()
                .filter(|one| !is_within(one, wants_write))
                .filter(|one| !one.ancestors().skip(1).any(|above| all.contains(above)))
                .filter_map(|one| Some(format!("    {},\n", quoted(one.to_str()?))))
                .collect();
            if !lines.is_empty() {
                let _ = writeln!(text, "{name} = [\n{}]", lines.concat());
            }
            for one in all.iter().filter(|one| one.to_str().is_none()) {
                let _ =
                    writeln!(text, "# {name}: {} is no text, and TOML has no other", show(one.as_os_str()));
            }
        }
        let mut list = |name: &str, values: Vec<String>| {
            if !values.is_empty() {
                let _ = writeln!(text, "{name} = [{}]", values.join(", "));
            }
        };
        let (mut connect, mut listen) = (Vec::new(), Vec::new());
        for grant in &plain {
            match grant {
                Grant::Connect(port) => connect.push(port.to_string()),
                Grant::Listen(port) => listen.push(port.to_string()),
                _ => {}
            }
        }
        list("connect", connect);
        list("listen", listen);
        doubtful.sort();
        doubtful.dedup();
        for line in doubtful {
            let _ = writeln!(text, "{line}");
        }
        if self.more > 0 {
            let _ = writeln!(text, "# {} more denials are not listed", self.more);
        }
        text
    }
}

fn path(grant: &Grant, writes: bool) -> Option<&Path> {
    match grant {
        Grant::Ro(path) if !writes => Some(path),
        Grant::Rw(path) if writes => Some(path),
        _ => None,
    }
}

/// A grant as a line of a profile.
fn key(grant: &Grant) -> String {
    let of = |name: &str, path: &Path| match path.to_str() {
        Some(text) => format!("{name} = [{}]", quoted(text)),
        None => format!("{name}: {}", show(path.as_os_str())),
    };
    match grant {
        Grant::Ro(path) => of("ro", path),
        Grant::Rw(path) => of("rw", path),
        Grant::Connect(port) => format!("connect = [{port}]"),
        Grant::Listen(port) => format!("listen = [{port}]"),
        Grant::Net => "net = \"host\"".to_owned(),
        Grant::Allow(what) => format!("allow = [\"{what}\"]"),
    }
}

/// A basic string of TOML, without anything that a terminal would obey.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_ascii_graphic() || c == ' ' || c.is_alphanumeric() => quoted.push(c),
            c => _ = write!(quoted, "\\U{:08X}", c as u32),
        }
    }
    quoted.push('"');
    quoted
}

fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

impl Denial {
    fn object(&self) -> String {
        match &self.object {
            Object::Path(path) => show(path.as_os_str()).to_string(),
            Object::Words(words) => words.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
