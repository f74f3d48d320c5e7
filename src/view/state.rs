//! Where state may be kept; for `--state auto` a directory of confine's own for each workspace, so that what its
//! commands keep is seen by no other's.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access as Mode, AtFlags, CWD, accessat};

use super::caller::Caller;
use super::own;
use super::roots::{Asked, refuse_links, written};
use super::trace::{links_passed, trace};
use super::ways::Ways;
use super::{Access, Backing, Place, View};
use crate::digest;
use crate::error::{Error, Result, paste, show};
use crate::policy::Policy;

/// Where it is, or would be. Its name tells the workspace to people; the hash of the canonical path tells it apart.
pub fn of_workspace(policy: &Policy, caller: &Caller) -> Result<PathBuf> {
    if caller.switch {
        // root would make directories along a way that the other user chooses.
        return Err(Error::refused("--state auto and --user do not go together")
            .with_hint("name a directory of that user's with `--state DIR`"));
    }
    let absolute = |word: &OsStr| Some(PathBuf::from(word)).filter(|path| path.is_absolute());
    let own = match &caller.entry {
        Some(entry) => absolute(entry.home.as_os_str()),
        None => caller.trusted_variable("HOME").and_then(absolute),
    };
    let named = caller.trusted_variable("XDG_STATE_HOME").and_then(absolute);
    let base = named.or_else(|| own.map(|home| home.join(".local/state")));
    let Some(base) = base else {
        return Err(Error::usage("--state auto: neither HOME nor XDG_STATE_HOME says where")
            .with_hint("name a directory with `--state DIR`"));
    };
    let name = match policy.workspaces.first() {
        None => "no-workspace".to_owned(),
        Some(workspace) => {
            let path = trace(&caller.absolute(workspace))
                .map_err(|error| Error::path("find the workspace", workspace, error))?
                .path;
            let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
            let own = path.file_name().map(|name| name.as_bytes()).unwrap_or_default();
            let told: String =
                own.iter().filter(|byte| plain(byte)).take(32).map(|byte| char::from(*byte)).collect();
            let hash = digest::short(path.as_os_str().as_bytes());
            format!("{}-{hash}", told.trim_start_matches(['.', '-']))
        }
    };
    Ok(base.join("confine").join(name))
}

/// What is missing above it, for its owner alone. Whether the directory itself is the owner's is looked at later, as
/// of every state directory; here, that nobody else could have put one there.
pub fn make_parents(state: &Path) -> Result<()> {
    let Some(parent) = state.parent() else { return Ok(()) };
    let cannot = |error: io::Error| Error::path("create the state directory", parent, error);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(cannot)?;
    judge_parent(parent)
}

fn judge_parent(parent: &Path) -> Result<()> {
    let found = fs::metadata(parent).map_err(|error| Error::path("look at", parent, error))?;
    let user = rustix::process::geteuid().as_raw();
    if found.uid() != user || found.mode() & 0o022 != 0 {
        return Err(Error::refused(format!(
            "--state auto: {} does not belong to uid {user} alone",
            show(parent.as_os_str())
        ))
        .with_hint("name a directory with `--state DIR`"));
    }
    Ok(())
}

/// HOME and /tmp of later runs lie in the state directory: a command that could write there from its workspace
/// would prepare them.
pub fn refuse_above(named: &Path, state: &Path, asked: &[Asked]) -> Result<()> {
    let mut ways = Ways::default();
    for other in asked.iter().filter(|other| other.root.writable) {
        if ways.overlap(state, other.path())? {
            return Err(Error::usage(format!(
                "--state {} overlaps the writable root {}",
                show(named.as_os_str()),
                show(other.root.path.as_os_str())
            ))
            .with_hint("keep the state outside every workspace"));
        }
    }
    Ok(())
}

/// An earlier command may have led it to what it wants for its HOME.
pub fn refuse_planted(caller: &Caller, named: &Path, asked: &[Asked]) -> Result<()> {
    let links = links_passed(&caller.absolute(named));
    let hint = "name the directory itself, outside every workspace";
    refuse_links("--state", named, &links, &written(asked), hint)?;
    if caller.switch && !links.is_empty() {
        // root would make something where the other user leads it.
        return Err(
            Error::refused("--state with --user: a link on the way").with_hint("name the directory itself")
        );
    }
    Ok(())
}

/// Every command would see what one of them keeps. The view holds the tables, and nothing that was asked for.
pub fn refuse_inside(state: &Path, view: &View) -> Result<()> {
    let (state, _) = own::settled(state);
    let of_host = |place: &&Place| {
        place.access >= Access::Read
            && matches!(place.backing, Backing::Bind | Backing::Veiled | Backing::Layer)
    };
    let shown: Vec<&Path> = view.places().filter(of_host).map(|place| place.path.as_path()).collect();
    let Some(path) = Ways::default().within(&state, &shown)? else { return Ok(()) };
    let (state, path) = (show(state.as_os_str()), show(path.as_os_str()));
    Err(Error::usage(format!("--state {state} lies in {path}, which every command sees"))
        .with_hint("keep the state elsewhere, best below ~/.local/state"))
}

/// What making it would meet, where nothing may be made: whoever asks is told what a run would be told.
pub fn foresee(state: &Path, with_parents: bool) -> Result<()> {
    let is_missing =
        |path: &Path| fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    if let Some(parent) = state.parent().filter(|parent| with_parents && !is_missing(parent)) {
        judge_parent(parent)?;
    }
    if !is_missing(state) {
        return Ok(());
    }
    let above = state.ancestors().skip(1).find(|above| !with_parents || !is_missing(above));
    let Some(above) = above else { return Ok(()) };
    accessat(CWD, above, Mode::WRITE_OK | Mode::EXEC_OK, AtFlags::EACCESS)
        .map_err(|errno| cannot_make(state, errno.into()))
}

pub fn cannot_make(state: &Path, error: io::Error) -> Error {
    let error = Error::path("create the state directory", state, error);
    match state.parent().filter(|above| !above.exists()) {
        Some(above) => error.with_hint(format!("mkdir -p {}", paste(above.as_os_str()))),
        None => error,
    }
}
