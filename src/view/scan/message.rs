//! What the user is told: how many, which, where they come from, and the one command that helps.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::{Reason, Report, filesystem};
use crate::error::{Error, describe, show};
use crate::policy::Hardlinks;
use crate::view::trace::PATH_MAX;

const SHOWN: usize = 3;
/// A longer path is cut in front: its end tells more.
const LONGEST: usize = 160;
/// Each protected name is a mount.
const PROTECTED: usize = 1000;

/// What makes links to a place outside on an ordinary day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tool {
    Git,
    Pnpm,
    Node,
    Uv,
    Ccache,
    Copy,
}

impl Tool {
    fn of(path: &Path) -> Tool {
        let names: Vec<&[u8]> = path
            .components()
            .filter_map(|part| match part {
                Component::Normal(name) => Some(name.as_bytes()),
                _ => None,
            })
            .collect();
        let has = |name: &[u8]| names.contains(&name);
        let in_git = names.windows(2).any(|pair| {
            let holder = pair[0] == b".git" || pair[0].ends_with(b".git");
            holder && matches!(pair[1], b"objects" | b"modules")
        });
        // A bare repository is the root itself.
        if in_git || (names.first() == Some(&b"objects".as_slice()) && names.len() == 3) {
            Tool::Git
        } else if has(b".pnpm") {
            Tool::Pnpm
        } else if has(b"site-packages") {
            Tool::Uv
        } else if has(b"node_modules") {
            Tool::Node
        } else if path.extension().is_some_and(|extension| extension == "o") {
            Tool::Ccache
        } else {
            Tool::Copy
        }
    }

    fn cause(self) -> &'static str {
        match self {
            Tool::Git => "a git clone of a local path shares its objects with the source",
            Tool::Pnpm => "pnpm links packages from its store",
            Tool::Node => "the package manager links packages from its store",
            Tool::Uv => "uv links packages from its cache",
            Tool::Ccache => "ccache with hard_link shares objects with its cache",
            Tool::Copy => "cp -l, rsync --link-dest and backups make such links",
        }
    }

    /// How to have none next time.
    fn prevention(self) -> Option<&'static str> {
        match self {
            Tool::Git => Some("git clone --no-hardlinks"),
            Tool::Pnpm => Some("pnpm config set package-import-method copy"),
            Tool::Node => Some("bun install --backend=copyfile, or yarn's nmMode: classic"),
            Tool::Uv => Some("UV_LINK_MODE=copy"),
            Tool::Ccache => Some("ccache --set-config hard_link=false"),
            Tool::Copy => None,
        }
    }
}

pub fn verdict(report: &Report, hardlinks: Hardlinks) -> Result<Vec<(usize, PathBuf)>, Error> {
    unverifiable(report)?;
    devices(report)?;
    if report.suspects.is_empty() {
        return Ok(Vec::new());
    }
    match hardlinks {
        Hardlinks::Reject => Err(aliases(report)),
        Hardlinks::Protect if report.suspects.len() > PROTECTED => {
            let message = format!(
                "{} names lead to files that also have names outside the workspace, and at most {PROTECTED} can be shown read-only",
                report.suspects.len()
            );
            Err(Error::refused(message).with_hint(separate(report)))
        }
        Hardlinks::Protect => {
            Ok(report.suspects.iter().map(|suspect| (suspect.root, suspect.path.clone())).collect())
        }
    }
}

fn unverifiable(report: &Report) -> Result<(), Error> {
    let Some(first) = report.unverifiable.first() else { return Ok(()) };
    let path = report.full(first.root, &first.path);
    let more = match report.unverifiable.len() {
        1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    let (reason, hint) = match &first.reason {
        Reason::Unreadable(error) => (
            describe(error),
            format!(
                "make it readable, leave it out with --hide {}, or use --waive alias-free",
                quote(usable(&path))
            ),
        ),
        Reason::FileSystem(magic) => (
            format!("link counts on {} cannot be trusted", filesystem::name(*magic)),
            "--waive alias-free runs without this check".to_string(),
        ),
    };
    let message = format!("cannot verify that {} has no hard links outside: {reason}{more}", shown(&path));
    Err(Error::refused(message).with_hint(hint))
}

fn devices(report: &Report) -> Result<(), Error> {
    if report.devices.is_empty() {
        return Ok(());
    }
    let paths = report.devices.iter().map(|device| report.full(device.root, &device.path));
    let message =
        format!("{} in the workspace: {}", plural(report.devices.len(), "device node"), list(paths));
    let first = report.devices.first().map(|device| report.full(device.root, &device.path));
    let hint = format!("rm {}", first.as_deref().map(quote).unwrap_or_default());
    Err(Error::refused(message).with_hint(hint))
}

fn aliases(report: &Report) -> Error {
    let tool = main_tool(report);
    let paths = report.suspects.iter().map(|suspect| report.full(suspect.root, &suspect.path));
    let count = report.suspects.len();
    let message = format!(
        "{} to files that also have names outside the workspace ({}): {}",
        if count == 1 { "1 name leads".to_string() } else { format!("{count} names lead") },
        tool.cause(),
        list(paths)
    );
    Error::refused(message).with_hint(separate(report))
}

/// The command comes first, so that it can be pasted; a shell takes the rest for a comment.
fn separate(report: &Report) -> String {
    let roots: BTreeSet<usize> = report.suspects.iter().map(|suspect| suspect.root).collect();
    let mut hint = String::from("confine scan --separate");
    for root in roots {
        if let Some(path) = report.roots.get(root) {
            let _ = write!(hint, " {}", quote(path));
        }
    }
    hint.push_str("  # gives them copies of their own");
    if let Some(prevention) = main_tool(report).prevention() {
        let _ = write!(hint, "; next time: {prevention}");
    }
    hint
}

fn main_tool(report: &Report) -> Tool {
    let mut counts = std::collections::BTreeMap::new();
    for suspect in &report.suspects {
        let path = report.full(suspect.root, &suspect.path);
        // The root's own path tells as well: a workspace may lie inside node_modules.
        let tool = match Tool::of(&suspect.path) {
            Tool::Copy => Tool::of(&path),
            tool => tool,
        };
        *counts.entry(tool).or_insert(0_usize) += 1;
    }
    let most = counts.into_iter().rev().max_by_key(|(_, count)| *count);
    most.map_or(Tool::Copy, |(tool, _)| tool)
}

pub fn changing(roots: &[PathBuf], looks: u32) -> Error {
    let roots = roots.iter().map(|path| show(path.as_os_str()).to_string()).collect::<Vec<_>>().join(", ");
    Error::refused(format!(
        "the workspace is changing: files in {roots} were linked, moved or removed during each of {looks} looks for hard links"
    ))
    .with_hint("start again when what writes there has finished, or use --waive alias-free")
}

fn list(paths: impl ExactSizeIterator<Item = PathBuf>) -> String {
    let count = paths.len();
    let mut text = paths.take(SHOWN).map(|path| shown(&path)).collect::<Vec<_>>().join(", ");
    if count > SHOWN {
        let _ = write!(text, " and {} more", count - SHOWN);
    }
    text
}

/// What of a path can be given to a program: of a longer one, a directory above.
fn usable(path: &Path) -> &Path {
    path.ancestors().find(|above| above.as_os_str().len() < PATH_MAX).unwrap_or(path)
}

pub fn shown(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    match bytes.len().checked_sub(LONGEST) {
        None | Some(0) => show(path.as_os_str()).to_string(),
        Some(cut) => format!("…{}", show(OsStr::from_bytes(&bytes[cut..]))),
    }
}

fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// A path that a shell reads back as it is, on one line and without control characters.
pub fn quote(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    let plain =
        std::str::from_utf8(bytes).is_ok_and(|text| !text.chars().any(|c| c.is_control() || hides(c)));
    if plain {
        return format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"));
    }
    let mut text = String::from("$'");
    for byte in bytes {
        match byte {
            b'\'' | b'\\' => {
                text.push('\\');
                text.push(char::from(*byte));
            }
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => {
                // Always three digits: a digit that follows is then not taken in.
                let _ = write!(text, "\\{byte:03o}");
            }
        }
    }
    text.push('\'');
    text
}

/// Marks that turn the direction of text or hide characters.
fn hides(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::super::{Device, Suspect, Unverifiable};
    use super::*;

    fn report(paths: &[&str]) -> Report {
        let suspect =
            |path: &&str| Suspect { root: 0, path: PathBuf::from(path), dev: 1, ino: 2, nlink: 2, seen: 1 };
        Report {
            roots: vec![PathBuf::from("/home/u/it's")],
            suspects: paths.iter().map(suspect).collect(),
            ..Report::default()
        }
    }

    #[test]
    fn each_tool_is_named_with_the_command_that_helps() {
        for (path, cause, prevention) in [
            (".git/objects/ab/cdef", "git clone of a local path", "git clone --no-hardlinks"),
            ("node_modules/.pnpm/a@1/node_modules/a/index.js", "pnpm", "package-import-method copy"),
            (".venv/lib/python3.11/site-packages/a.py", "uv", "UV_LINK_MODE=copy"),
            ("build/main.o", "ccache", "hard_link=false"),
            ("node_modules/a/index.js", "package manager", "copyfile"),
        ] {
            let error = verdict(&report(&[path]), Hardlinks::Reject).unwrap_err();
            assert!(error.to_string().contains(cause), "{error}");
            let hint = error.hint().unwrap();
            assert!(hint.starts_with(r"confine scan --separate '/home/u/it'\''s'  #"), "{hint}");
            assert!(hint.contains(prevention), "{hint}");
        }
    }

    #[test]
    fn names_are_counted_and_only_the_first_are_shown() {
        let error =
            verdict(&report(&["a", "b", "c\n", "d", "e"]), Hardlinks::Reject).unwrap_err().to_string();
        assert!(error.starts_with("5 names lead to files"), "{error}");
        assert!(error.ends_with(r"/c\n' and 2 more") && !error.contains('\n'), "{error}");
    }

    #[test]
    fn protect_returns_the_names_up_to_its_bound() {
        assert_eq!(verdict(&report(&["a", "b"]), Hardlinks::Protect).unwrap().len(), 2);
        let many = vec!["a"; 1001];
        assert!(verdict(&report(&many), Hardlinks::Protect).unwrap_err().to_string().contains("1001 names"));
        assert!(verdict(&report(&[]), Hardlinks::Reject).unwrap().is_empty());
    }

    #[test]
    fn what_cannot_be_verified_and_devices_are_refused_under_protect_too() {
        let mut unreadable = report(&[]);
        let reason = Reason::Unreadable(std::io::Error::from_raw_os_error(13));
        unreadable.unverifiable.push(Unverifiable { root: 0, path: PathBuf::from("d"), reason });
        let error = verdict(&unreadable, Hardlinks::Protect).unwrap_err().to_string();
        assert!(error.contains("cannot verify") && error.ends_with("permission denied"), "{error}");
        let mut device = report(&[]);
        device.devices.push(Device { root: 0, path: PathBuf::from("sda") });
        assert!(verdict(&device, Hardlinks::Protect).unwrap_err().to_string().starts_with("1 device node"));
    }

    #[test]
    fn quoted_paths_survive_a_shell() {
        for bytes in [&b"/a b"[..], b"/it's", b"/\xff\n7'\\x", "/\u{202e}é".as_bytes()] {
            let path = Path::new(OsStr::from_bytes(bytes));
            let quoted = quote(path);
            assert!(!quoted.chars().any(char::is_control));
            let script = format!("printf %s {quoted}");
            let output = std::process::Command::new("bash").arg("-c").arg(script).output().unwrap();
            assert_eq!(output.stdout, bytes);
        }
    }
}
