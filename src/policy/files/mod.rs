//! Policy files: where they lie, whether they may be trusted, what they say. Nothing is looked for in a workspace.

pub mod builtin;
pub mod document;
mod trust;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::origin::{File, Kind, Location};
use crate::error::{Error, Result, show};
use crate::view::trace::{Traced, trace, trace_or_missing, trace_present};
use document::{Item, parse};
use trust::Writers;

/// The administrator's: what holds for everybody on this machine.
pub const SYSTEM: &str = "/etc/confine/policy.toml";
/// Profiles for everybody on this machine.
pub const SYSTEM_PROFILES: &str = "/etc/confine/profiles";
/// What confine-shell goes by for whoever has no file of their own.
pub const SYSTEM_SHELL: &str = "/etc/confine/shell.toml";

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which<'a> {
    System,
    Profile(&'a str),
    Named(&'a Path),
    /// What confine-shell goes by.
    Shell,
}

/// Where a user's own files are looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Own {
    home: Option<PathBuf>,
    config: Option<PathBuf>,
}

impl Own {
    /// `$XDG_CONFIG_HOME`, else `~/.config`; a relative one is to be ignored (XDG base directory specification).
    /// Whoever starts confine is trusted, and so is their environment.
    pub fn by_environment() -> Own {
        let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = absolute("HOME");
        let config = absolute("XDG_CONFIG_HOME").or_else(|| home.as_ref().map(|home| home.join(".config")));
        Own { home, config }
    }

    /// By the home directory of the password file: some who start a shell let whoever wrote the command set its
    /// variables too.
    pub fn of_account(home: Option<&Path>) -> Own {
        let home = home.filter(|home| home.is_absolute()).map(Path::to_owned);
        Own { config: home.as_ref().map(|home| home.join(".config")), home }
    }

    fn profiles(&self) -> Option<PathBuf> {
        self.config.as_ref().map(|config| config.join("confine/profiles"))
    }

    pub fn shell(&self) -> Option<PathBuf> {
        self.config.as_ref().map(|config| config.join("confine/shell.toml"))
    }
}

/// A file that was found, and its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    pub file: Arc<File>,
    pub items: Vec<Item>,
    /// What `~` means in it.
    pub home: Option<PathBuf>,
}

/// What finds policy files: `find`, or what a test puts in its place. None where there is no such file.
pub type Find<'a> = &'a dyn Fn(Which<'_>) -> Result<Option<Document>>;

/// Looks on this machine, by the caller's environment.
pub fn find(which: Which<'_>) -> Result<Option<Document>> {
    find_of(&Own::by_environment(), which)
}

/// Owners are looked at, so this comes before identities are mapped.
pub fn find_of(own: &Own, which: Which<'_>) -> Result<Option<Document>> {
    let found = look(own, which)?;
    Ok(found.map(|found| Document { home: own.home.clone(), ..found }))
}

fn look(own: &Own, which: Which<'_>) -> Result<Option<Document>> {
    let user = rustix::process::geteuid().as_raw();
    let administrator = Writers { user, administrator: true };
    let trusted = Writers { user, administrator: false };
    match which {
        // One system call where there is none.
        Which::System => open(Path::new(SYSTEM), Kind::System, administrator),
        Which::Named(path) => {
            let cannot = |error| Error::path("read policy file", path, error);
            let absolute = std::path::absolute(path).map_err(cannot)?;
            let traced = trace(&absolute).map_err(cannot)?;
            read(path, traced, Kind::Named, trusted).map(Some)
        }
        Which::Profile(name) => {
            check_name(name)?;
            let file = format!("{name}.toml");
            let kind = || Kind::Profile(name.to_owned());
            if let Some(directory) = own.profiles()
                && let Some(found) = open(&directory.join(&file), kind(), trusted)?
            {
                return Ok(Some(found));
            }
            if let Some(found) = open(&Path::new(SYSTEM_PROFILES).join(&file), kind(), administrator)? {
                return Ok(Some(found));
            }
            builtin::find(name)
        }
        Which::Shell => {
            if let Some(path) = own.shell()
                && let Some(found) = open(&path, Kind::Shell, trusted)?
            {
                return Ok(Some(found));
            }
            open(Path::new(SYSTEM_SHELL), Kind::Shell, administrator)
        }
    }
}

fn open(path: &Path, kind: Kind, writers: Writers) -> Result<Option<Document>> {
    match trace_or_missing(path) {
        Ok(Err(missing)) if missing.by_link && writers.administrator => absent(path, writers).map(|()| None),
        Ok(Err(_)) => Ok(None),
        Ok(Ok(traced)) => read(path, traced, kind, writers).map(Some),
        Err(error) => Err(Error::path("read policy file", path, error)),
    }
}

/// The administrator's file is missing. Where a link led to that, it must be one of root's, to a directory of root's.
fn absent(path: &Path, writers: Writers) -> Result<()> {
    for above in path.ancestors().skip(1) {
        match trace_present(above) {
            Ok(Some(traced)) if !traced.links.is_empty() => trust::directory(path, &traced, writers)?,
            Ok(_) => {}
            Err(error) => return Err(Error::path("read policy file", path, error)),
        }
    }
    Ok(())
}

fn read(named: &Path, traced: Traced, kind: Kind, writers: Writers) -> Result<Document> {
    let text = trust::read(named, &traced, writers)?;
    let place = Location {
        named: named.to_owned(),
        path: traced.path,
        links: traced.links.into_iter().map(|(at, _)| at).collect(),
    };
    document(File { kind, place: Some(place), text })
}

fn document(file: File) -> Result<Document> {
    let file = Arc::new(file);
    match parse(&file.text) {
        Ok(items) => Ok(Document { file, items, home: None }),
        Err(fault) => Err(Error::usage(format!("{file}, line {}: {}", fault.line, fault.what))),
    }
}

/// A name and never a path: what it means cannot be led elsewhere.
pub fn check_name(name: &str) -> Result<()> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.len() <= 64
        && name.bytes().all(plain)
        && name.bytes().next().is_some_and(|byte| byte != b'.' && byte != b'-')
    {
        return Ok(());
    }
    let error = Error::usage(format!("profile {}: not a plain name", show(name.as_ref())));
    Err(if name.contains('/') {
        error.with_hint("a file is named by `--policy FILE`")
    } else {
        error.with_hint("a name has letters, digits, '-', '_' and '.'")
    })
}

/// Every profile that could be named here, for a message: what cannot be listed is not.
pub fn names() -> Vec<String> {
    let mut names: Vec<String> = builtin::NAMES.iter().map(|name| (*name).to_owned()).collect();
    for directory in Own::by_environment().profiles().into_iter().chain([PathBuf::from(SYSTEM_PROFILES)]) {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().take(256);
        let name = |file: OsString| Some(file.to_str()?.strip_suffix(".toml")?.to_owned());
        names.extend(
            entries.filter_map(|entry| name(entry.file_name())).filter(|name| check_name(name).is_ok()),
        );
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// `~` and `~/...` are the home directory; everything else must be absolute.
pub fn expand(word: &str, home: Option<&Path>) -> std::result::Result<PathBuf, String> {
    let path = Path::new(word);
    if path.is_absolute() {
        return Ok(path.to_owned());
    }
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) if rest.as_os_str().is_empty() => Ok(home.to_owned()),
        (Ok(rest), Some(home)) => Ok(home.join(rest)),
        (Ok(_), None) => Err("there is no home directory, so that '~' means nothing".to_owned()),
        (Err(_), _) => Err("neither absolute nor below '~/'".to_owned()),
    }
}
