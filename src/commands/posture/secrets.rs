//! Secrets and sockets in places that a command would read: the system's own trees, and the workspaces.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::{Findings, Rule, Setup, Severity};
use crate::error::show;
use crate::view::caller::read_bounded;
use crate::view::control::is_unpacked;
use crate::view::danger::Name;
use crate::view::sockets::{self, RESOLVE_UNIX_ABI};
use crate::view::system;

/// Trees in which administrators put things; the rest is what a distribution gives to everybody.
const SYSTEM: &[&str] = &["/etc", "/opt", "/usr/local"];
const ENTRIES: usize = 50_000;
const DEPTH: usize = 8;
/// Bytes of the names of directories that are still to be looked into.
const LEFT: usize = 16 << 20;
const HEAD: u64 = 64 << 10;

const KEY: Rule = Rule {
    id: "readable-private-key",
    severity: Severity::High,
    why: "every command can read the key, and with a network hand it on",
    fix: "chmod go-r {}, move it to a place that is not shown, or give `--hide {}` with every run",
};
const TOKEN: Rule = Rule {
    id: "readable-credential",
    severity: Severity::High,
    why: "every command can read it, and with a network hand it on",
    fix: "chmod go-r {}, move it to a place that is not shown, or give `--hide {}` with every run",
};
const IN_WORKSPACE: Rule = Rule {
    id: "secret-in-workspace",
    severity: Severity::Medium,
    why: "commands in the workspace can read it, and with a network hand it on",
    fix: "give `--hide {}` with the runs that do not need it",
};
const SOCKET: Rule = Rule {
    id: "reachable-socket",
    severity: Severity::Medium,
    why: "it is not on the kernel's list under this name, so that a run does not cover it, and this kernel's Landlock does not rule sockets",
    fix: "move {} out of what is shown, or give `--hide {}`",
};

/// What makes a file a secret: its name, and what must stand in it.
struct Row {
    name: Name,
    contents: Contents,
    rule: &'static Rule,
    what: &'static str,
}

enum Contents {
    Any,
    /// One of these words, whatever the case.
    Word(&'static [&'static str]),
    /// A line that gives a value to a name with one of these words in it.
    Setting(&'static [&'static str]),
}

const PEM: Contents = Contents::Word(&["private key-----"]);
const SECRET_NAMES: Contents =
    Contents::Setting(&["token", "secret", "passw", "api_key", "apikey", "private_key", "credential"]);

const fn row(name: Name, contents: Contents, rule: &'static Rule, what: &'static str) -> Row {
    Row { name, contents, rule, what }
}

const ROWS: &[Row] = &[
    row(Name::Begins("id_"), PEM, &KEY, "a private key of ssh"),
    row(Name::Begins("ssh_host_"), PEM, &KEY, "a host key of ssh"),
    row(Name::Ends(".pem"), PEM, &KEY, "a private key"),
    row(Name::Ends(".key"), PEM, &KEY, "a private key"),
    row(Name::Ends(".p12"), Contents::Any, &KEY, "a store of private keys"),
    row(Name::Ends(".pfx"), Contents::Any, &KEY, "a store of private keys"),
    row(Name::Ends(".kdbx"), Contents::Any, &KEY, "a store of passwords"),
    row(Name::Is(".env"), SECRET_NAMES, &TOKEN, "an environment file with credentials"),
    row(Name::Begins(".env."), SECRET_NAMES, &TOKEN, "an environment file with credentials"),
    row(
        Name::Is(".npmrc"),
        Contents::Word(&["_authtoken=", "_password=", "_auth="]),
        &TOKEN,
        "a registry token",
    ),
    row(Name::Is(".pypirc"), Contents::Setting(&["password"]), &TOKEN, "a registry token"),
    row(Name::Is(".netrc"), Contents::Word(&["password"]), &TOKEN, "passwords"),
    row(Name::Is(".git-credentials"), Contents::Word(&["://"]), &TOKEN, "passwords"),
    row(Name::Is(".pgpass"), Contents::Any, &TOKEN, "database passwords"),
    row(Name::Is("credentials"), Contents::Setting(&["aws_secret_access_key"]), &TOKEN, "cloud credentials"),
    row(
        Name::Is("kubeconfig"),
        Contents::Word(&["client-key-data", "token:"]),
        &TOKEN,
        "cluster credentials",
    ),
    row(
        Name::Ends(".kubeconfig"),
        Contents::Word(&["client-key-data", "token:"]),
        &TOKEN,
        "cluster credentials",
    ),
    row(
        Name::Ends(".tfstate"),
        Contents::Any,
        &TOKEN,
        "terraform's state, which holds the secrets it has made",
    ),
    row(Name::Ends(".tfvars"), SECRET_NAMES, &TOKEN, "terraform's values with credentials"),
    row(
        Name::Ends(".json"),
        Contents::Word(&["-----begin private key-----", "\"private_key_id\""]),
        &KEY,
        "a service account's key",
    ),
];

pub fn look(setup: &Setup, findings: &mut Findings) {
    let listed: Option<HashSet<PathBuf>> = (landlock_abi() < RESOLVE_UNIX_ABI)
        .then(|| sockets::listed().ok())
        .flatten()
        .map(|names| names.iter().filter_map(|name| fs::canonicalize(name).ok()).collect());
    for (root, workspace) in SYSTEM
        .iter()
        .map(|root| (PathBuf::from(root), false))
        .chain(setup.workspaces.iter().map(|root| (root.clone(), true)))
    {
        let mut walk = Walk { setup, findings, listed: listed.as_ref(), workspace, seen: 0 };
        walk.tree(&root);
    }
}

fn landlock_abi() -> u32 {
    crate::sys::landlock_query(false).unwrap_or(0)
}

struct Walk<'a> {
    setup: &'a Setup,
    findings: &'a mut Findings,
    /// Live sockets that a run covers; None where nothing has to be.
    listed: Option<&'a HashSet<PathBuf>>,
    workspace: bool,
    seen: usize,
}

impl Walk<'_> {
    /// Never through a link, never onto another file system.
    fn tree(&mut self, root: &Path) {
        let Ok(top) = fs::symlink_metadata(root) else { return };
        let mut left = vec![(root.to_owned(), 0)];
        let mut bytes = 0;
        while let Some((directory, depth)) = left.pop() {
            bytes -= directory.as_os_str().len().min(bytes);
            let Ok(entries) = fs::read_dir(&directory) else { continue };
            for entry in entries.flatten() {
                self.seen += 1;
                if self.seen > ENTRIES || bytes > LEFT || self.setup.time_is_up() {
                    return self.findings.unseen(root, "too many files for this look");
                }
                let path = entry.path();
                let Ok(found) = fs::symlink_metadata(&path) else { continue };
                if found.is_dir() {
                    let apart = self.workspace && is_unpacked(entry.file_name().as_bytes());
                    if depth < DEPTH && found.dev() == top.dev() && !apart && !is_hidden(&path) {
                        bytes += path.as_os_str().len();
                        left.push((path, depth + 1));
                    }
                } else if found.is_file() {
                    self.file(&path, &found);
                } else if found.file_type().is_socket() {
                    self.socket(&path);
                }
            }
        }
    }

    fn file(&mut self, path: &Path, found: &Metadata) {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return };
        // Only what a command could read. Of root's own files in the system's trees it reads what everybody may.
        let readable = match (self.setup.uid, self.workspace) {
            (0, false) => found.mode() & 0o004 != 0,
            _ => accessat(CWD, path, Access::READ_OK, AtFlags::EACCESS).is_ok(),
        };
        let of_name = ROWS.iter().find(|row| row.name.matches(name));
        let Some(row) = of_name.filter(|_| readable && !is_hidden(path)) else { return };
        // ssh_host_*_key.pub and examples are for everybody.
        if name.ends_with(".pub")
            || [".example", ".sample", ".template", ".dist"].iter().any(|end| name.ends_with(end))
        {
            return;
        }
        let holds = match &row.contents {
            Contents::Any => found.len() > 0,
            contents => head(path, found).is_some_and(|text| contents.is_in(&text)),
        };
        if holds {
            let rule = if self.workspace { &IN_WORKSPACE } else { row.rule };
            self.findings.add(rule, Some(path), format!("{} is {}", show(path.as_os_str()), row.what));
        }
    }

    fn socket(&mut self, path: &Path) {
        let Some(listed) = self.listed else { return };
        let covered = fs::canonicalize(path).is_ok_and(|path| listed.contains(&path));
        if !covered && !is_hidden(path) {
            self.findings.add(&SOCKET, Some(path), format!("{} is a socket", show(path.as_os_str())));
        }
    }
}

/// What confine's own table covers in every run.
fn is_hidden(path: &Path) -> bool {
    system::HIDDEN.iter().any(|(hidden, _)| path.starts_with(hidden)) || path.starts_with(system::SSH)
}

fn head(path: &Path, found: &Metadata) -> Option<String> {
    // Larger files of these names are something else.
    let bytes = if found.len() <= HEAD { read_bounded(path, HEAD).ok()? } else { return None };
    Some(String::from_utf8_lossy(&bytes).to_ascii_lowercase())
}

impl Contents {
    fn is_in(&self, text: &str) -> bool {
        match self {
            Contents::Any => true,
            Contents::Word(words) => words.iter().any(|word| text.contains(word)),
            Contents::Setting(words) => text.lines().any(|line| {
                let Some((name, value)) = line.split_once(['=', ':']) else { return false };
                let value = value.trim().trim_matches(['"', '\'']);
                // A reference to another variable, or a gap to be filled in, is no secret.
                let blank = value.is_empty() || value.starts_with(['$', '<', '{']);
                !line.trim_start().starts_with('#') && !blank && words.iter().any(|word| name.contains(word))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_told_by_name_and_contents() {
        for (name, text, expected) in [
            (".env", "API_TOKEN=abc\n", true),
            (".env", "# API_TOKEN=abc\nDEBUG=1\n", false),
            (".env", "API_TOKEN=\nPASSWORD=$OTHER\nSECRET=<fill in>\n", false),
            ("server.key", "-----BEGIN RSA PRIVATE KEY-----\n", true),
            ("server.pem", "-----BEGIN CERTIFICATE-----\n", false),
            (".npmrc", "//r/:_authToken=x\n", true),
            (".npmrc", "save-exact=true\n", false),
            ("package.json", "{\"private\": true}", false),
        ] {
            let row = ROWS.iter().find(|row| row.name.matches(name)).unwrap();
            assert_eq!(row.contents.is_in(&text.to_ascii_lowercase()), expected, "{name} {text}");
        }
        assert!(!ROWS.iter().any(|row| row.name.matches("environment")));
    }
}
