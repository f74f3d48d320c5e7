//! Where a rule comes from, and what makes a grant dangerous.

use std::path::Path;

use super::answer::{From, Rule};
use crate::error::paste;
use crate::policy::{self, Policy};
use crate::view::control::{FILES, GIT};
use crate::view::{Access, Backing, Origin, Place, View, system};

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
        Backing::Copy => format!("a private copy: {reason}"),
        Backing::Sealed => format!("a picture of the host's, apart from its sockets: {reason}"),
        Backing::Veiled => format!("the host's, read only, where root's own files are nobody's: {reason}"),
        Backing::Bind | Backing::Lifted if place.access == Access::Write => format!("writable: {reason}"),
        Backing::Bind => format!("read only: {reason}"),
        _ => reason.clone(),
    }
}

/// What runs by itself outside at the next login or start of a shell.
const AT_LOGIN: &[&str] = &[
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".config/autostart",
    ".config/fish",
    ".config/systemd/user",
    ".gitconfig",
    ".local/bin",
    ".profile",
    ".ssh/authorized_keys",
    ".ssh/rc",
    ".zprofile",
    ".zshenv",
    ".zshrc",
];

/// Why granting this path is to be thought over twice.
pub fn danger(path: &Path, home: &Path, write: bool, socket: bool) -> Option<String> {
    let meets = |row: &Path| path.starts_with(row) || row.starts_with(path);
    if socket {
        return Some(
            "a socket of another program, which acts on what it is told, outside of the boundary".into(),
        );
    }
    if let Some((_, reason)) = system::HIDDEN.iter().find(|(row, _)| meets(Path::new(row))) {
        return Some(format!("a credential of this host: {reason}"));
    }
    if home != Path::new("/")
        && let Some((name, reason)) = system::CREDENTIALS.iter().find(|(name, _)| meets(&home.join(name)))
    {
        return Some(format!("~/{name}: {reason}"));
    }
    if !write {
        return None;
    }
    if let Some(name) = AT_LOGIN.iter().find(|name| meets(&home.join(name))) {
        return Some(format!("~/{name} is run at the next login or start of a shell, outside"));
    }
    control(path).map(|reason| format!("runs by itself outside: {reason}"))
}

/// The reason of the row that a path falls under, wherever its repository or workspace begins.
pub fn control(path: &Path) -> Option<&'static str> {
    let below = |row: &Path| path.ancestors().any(|above| above.ends_with(row)) || path.ends_with(row);
    let git = GIT
        .iter()
        .find(|row| path.ancestors().any(|above| above.ends_with(Path::new(".git").join(row.path))));
    let file = FILES.iter().find(|row| below(Path::new(row.path)));
    git.or(file).map(|row| row.reason)
}
