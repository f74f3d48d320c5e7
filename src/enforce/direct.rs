//! Where there is no view of our own: the host's paths, granted to Landlock one by one. Landlock cannot take away,
//! so a tree with something hidden in it is granted as its other children, and cannot itself be listed.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fstat, openat, renameat};

use super::mounts::{Grant, Right};
use super::{kept, sysfs, veil};
use crate::error::{Error, Result};
use crate::plan::note::Note;
use crate::view::trace::object;
use crate::view::{Access, Backing, Source, View};

pub fn grants(view: View, note: &Note) -> Result<Vec<Grant>> {
    let hidden = hidden(&view)?;
    let owns_system = view.places().any(|place| place.backing == Backing::Veiled);
    let mut grants = Vec::new();
    let mut withheld = HashSet::new();
    if let Some(state) = &view.state {
        for (name, bytes) in note.files() {
            let fd = write_note(&state.fd, name, bytes)
                .map_err(|error| Error::path("write the note in", &state.path, error))?;
            grants.push(Grant { fd, right: Right::Read, directory: false });
        }
    }
    for (path, entry) in view.entries {
        if let (Backing::Copy, Source::File(bytes), Some(state)) =
            (&entry.place.backing, &entry.source, &view.state)
        {
            copy(&state.fd, path.strip_prefix(&state.path).unwrap_or(&path), bytes)
                .map_err(|error| Error::path("copy to", &path, error))?;
            continue;
        }
        let right = match (entry.place.access, &entry.place.backing) {
            (_, Backing::Device | Backing::Terminal) => Right::Device,
            (Access::Write, Backing::Bind) => Right::Write,
            (Access::Read, Backing::Bind | Backing::Veiled | Backing::Proc | Backing::Sys) => Right::Read,
            _ => continue,
        };
        if let Source::Object { fd, directory } = entry.source {
            if owns_system && entry.place.backing == Backing::Sys {
                grants.extend(sysfs::grants(&fd, &hidden));
                continue;
            }
            grant_around(fd, directory, &path, right, &hidden, &mut grants, &mut withheld)
                .map_err(|error| Error::path("look into", path, error))?;
        }
    }
    // A rule holds for the object whatever path leads to it: by another mount, or another hard link, it would be
    // granted after all.
    if !withheld.is_empty() {
        grants.retain(|grant| fstat(&grant.fd).is_ok_and(|stat| !withheld.contains(&object(&stat))));
    }
    Ok(grants)
}

/// Beneath HOME in the state directory. What earlier commands left there is newer, or in the way: their own loss.
fn copy(state: &OwnedFd, path: &Path, bytes: &[u8]) -> io::Result<()> {
    match kept::copy(state, path, bytes, (None, None)) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOTDIR | libc::ELOOP)) => Ok(()),
        made => made,
    }
}

/// What is granted around: no rule reaches it, and none its directories as a whole.
pub fn hidden(view: &View) -> Result<Vec<PathBuf>> {
    let mut hidden: Vec<PathBuf> = view
        .places()
        .filter(|place| place.access == Access::Hidden)
        .map(|place| place.path.clone())
        .collect();
    for entry in view.entries.values().filter(|entry| entry.place.backing == Backing::Veiled) {
        if let Source::Object { fd, .. } = &entry.source {
            let found = veil::unreadable(fd, &entry.place.path)
                .map_err(|error| Error::path("look into", &entry.place.path, error))?;
            hidden.extend(found.into_iter().map(|(path, _)| path));
        }
    }
    Ok(hidden)
}

fn grant_around(
    fd: OwnedFd,
    directory: bool,
    path: &Path,
    right: Right,
    hidden: &[PathBuf],
    grants: &mut Vec<Grant>,
    withheld: &mut HashSet<(u64, u64)>,
) -> io::Result<()> {
    if !hidden.iter().any(|hidden| hidden.starts_with(path)) {
        grants.push(Grant { fd, right, directory });
        return Ok(());
    }
    withheld.insert(object(&fstat(&fd)?));
    if hidden.iter().any(|hidden| hidden == path) {
        return Ok(());
    }
    let children = match fs::read_dir(format!("/proc/self/fd/{}", fd.as_raw_fd())) {
        // What this identity cannot list it cannot be granted by parts; nothing is lost but comfort.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
        other => other?,
    };
    for child in children {
        let name = child?.file_name();
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(inner) = openat(&fd, &name, flags, Mode::empty()) else { continue };
        // A rule on a link itself matches nothing; what it leads to is another path.
        let kind = FileType::from_raw_mode(fstat(&inner)?.st_mode);
        if kind != FileType::Symlink {
            grant_around(
                inner,
                kind == FileType::Directory,
                &path.join(&name),
                right,
                hidden,
                grants,
                withheld,
            )?;
        }
    }
    Ok(())
}

/// In the state directory itself, in which the command may not write. A run beside this one may be reading, so the
/// name changes hands in one step.
fn write_note(state: &OwnedFd, name: &str, note: &[u8]) -> io::Result<OwnedFd> {
    let draft = format!("{name}.{}", std::process::id());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // One that a killed run with the same pid left behind.
    let _ = rustix::fs::unlinkat(state, &draft, rustix::fs::AtFlags::empty());
    let mut file = fs::File::from(openat(state, &draft, flags, Mode::from_raw_mode(0o400))?);
    file.write_all(note)?;
    renameat(state, &draft, state, name)?;
    Ok(openat(state, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?)
}
