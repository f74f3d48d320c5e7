//! Where a rule comes from, and what makes a grant dangerous.

use std::path::Path;

use super::answer::{From, Rule};
use crate::error::paste;
use crate::policy::{self, Policy};
pub use crate::view::danger::control;
use crate::view::{self, Access, Backing, Origin, Place, View};

/// The one place that says who made an entry of the view: a row of a table, an option, or what was met.
pub fn of(place: &Place) -> Rule {
    let (from, option) = match place.origin {
        Origin::Table => (From::Table, None),
        Origin::Found => (From::Found, None),
        Origin::Option => (From::Option, option(place)),
    };
    let path = Some(place.path.to_string_lossy().into_owned());
    Rule { from, text: text(place), path, option, file: None, line: None }
}

/// Where a policy file says it, if one does.
pub fn cite(policy: &Policy, view: &View, rule: &mut Rule) {
    let origin = match (&rule.path, &rule.option) {
        (Some(path), _) if rule.from == From::Option => view.asked_by.get(Path::new(path)),
        (None, Some(option)) => {
            let (name, value) = option.split_once([' ', '=']).unwrap_or((option, ""));
            let name = name.trim_start_matches('-');
            let value = value.split('=').next().unwrap_or_default();
            policy.setting(name, value).or_else(|| policy.asked(name)).map(|setting| &setting.origin)
        }
        _ => None,
    };
    if let Some(policy::Origin::File { file, line }) = origin {
        rule.file = Some(file.to_string());
        rule.line = u32::try_from(*line).ok();
    }
}

fn option(place: &Place) -> Option<String> {
    let path = paste(place.path.as_os_str());
    match place.reason.strip_prefix("asked for by ") {
        Some(name) => Some(format!("{name} {path}")),
        None if place.reason == "a workspace" => Some(format!("--workspace {path}")),
        None if place.reason.ends_with("--state") => Some("--state".to_owned()),
        None => None,
    }
}

fn text(place: &Place) -> String {
    let reason = &place.reason;
    match &place.backing {
        Backing::Cover { .. } => format!("covered: {reason}"),
        Backing::Fresh { .. } => format!("private, empty at the start and gone at the end: {reason}"),
        Backing::Layer => format!("the host's, with private writes that vanish: {reason}"),
        Backing::KeptLayer => format!("the host's, with private writes that --state keeps: {reason}"),
        Backing::Copy => format!("a private copy: {reason}"),
        Backing::Sealed => format!("a picture of the host's, apart from its sockets: {reason}"),
        Backing::Veiled => format!("the host's, read only, where root's own files are nobody's: {reason}"),
        Backing::Bind | Backing::Lifted if place.access == Access::Write => format!("writable: {reason}"),
        Backing::Bind => format!("read only: {reason}"),
        _ => reason.clone(),
    }
}

/// Why granting this path is to be thought over twice.
pub fn danger(path: &Path, home: &Path, write: bool, socket: bool) -> Option<String> {
    if socket {
        return Some(
            "a socket of another program, which acts on what it is told, outside of the boundary".into(),
        );
    }
    view::danger::danger(path, home, write)
}
