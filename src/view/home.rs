//! HOME, /tmp and their like: private, bounded, gone afterwards; with the user's toolchains and git settings.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, lchown};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat};

use super::caller::{Caller, read_bounded};
use super::listing::Listing;
use super::roots::{Asked, Root};
use super::toolchains::{TOOLCHAINS, Toolchain, path_directories, prefix};
use super::trace::{Traced, file_type, object, trace};
use super::{
    Access, Backing, Origin, Place, Purpose, Source, State, View, cannot_show, layers, state, system,
};
use crate::error::{Error, Result, paste, show};
use crate::host::Host;
use crate::policy::Policy;

/// Where HOME is inside: its real place, since ssh and the JVM ask the password file and not the variable.
/// With the links that lead there.
pub fn location(caller: &Caller) -> (PathBuf, Vec<(PathBuf, PathBuf)>) {
    const FALLBACK: &str = "/tmp/home";
    let named = match &caller.entry {
        Some(entry) => entry.home.clone(),
        None => caller.trusted_variable("HOME").map(PathBuf::from).unwrap_or_default(),
    };
    if !named.is_absolute() {
        return (FALLBACK.into(), Vec::new());
    }
    let (path, links) = match trace(&named) {
        Ok(traced) => (traced.path, traced.links),
        Err(_) => (named, Vec::new()),
    };
    // A private directory there would hide the system, or could not be put there.
    let rows = system::READABLE.iter().map(|(row, _)| *row).chain(system::KERNEL.iter().copied());
    let clashes = |row: &str| Path::new(row).starts_with(&path) || (path.starts_with(row) && !path.exists());
    let path = if path == Path::new("/") || rows.into_iter().any(clashes) { FALLBACK.into() } else { path };
    (path, links)
}

pub fn add(
    view: &mut View,
    policy: &Policy,
    caller: &Caller,
    host: &Host,
    purpose: Purpose,
    asked: &[Asked],
) -> Result<()> {
    for (path, mode, reason) in [
        ("/tmp", 0o1777, "temporary files"),
        ("/var/tmp", 0o1777, "temporary files"),
        ("/dev/shm", 0o1777, "POSIX shared memory"),
    ] {
        if !(path == "/var/tmp" && fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())) {
            view.table(path, Access::Write, Backing::Fresh { mode }, reason, Source::None);
        }
    }
    if let Some(runtime) = caller.variable("XDG_RUNTIME_DIR").map(Path::new)
        && runtime.starts_with("/run/user")
    {
        view.table(runtime, Access::Write, Backing::Fresh { mode: 0o700 }, "run-time files", Source::None);
    }
    let home = view.home.clone();
    // A workspace that is HOME, or holds it, is what the user asked HOME to be; `--ro /` asks for nothing there.
    let inside = |asked: &Asked| home.starts_with(asked.path()) && asked.path() != Path::new("/");
    let inside_root = asked.iter().any(|asked| asked.is_shown() && inside(asked));
    if !inside_root {
        let backing = Backing::Fresh { mode: 0o700 };
        view.table(&home, Access::Write, backing, "a private HOME at its real place", Source::None);
        let links = std::mem::take(&mut view.home_links);
        view.links(links, Origin::Table);
    }
    // Tools are found at the real HOME wherever the command's own is.
    let listing = (policy.toolchains && !inside_root).then(|| Listing::of(&home));
    let tools = listing.as_ref().map_or_else(Vec::new, |listing| toolchains(view, caller, &home, listing));
    let layers = add_toolchains(view, tools);
    if policy.toolchains {
        add_path(view, caller, &home);
    }
    // Once all that every command sees is known, and before anything is made.
    let kept = match &policy.state {
        Some(state) => Some(
            keep_state(view, policy, caller, (state, host), purpose)
                .map_err(|error| policy.told_of("state", error))?,
        ),
        None => None,
    };
    if kept.is_some() && host.namespaces() && !host.owns_system() && !caller.switch {
        // There the kernel tells runs apart without an index, which an overlay of the machine's root would have, and
        // which takes no change of the cache meanwhile.
        for path in &layers {
            layers::keep(view, path, caller.uid, purpose)?;
        }
    }
    if let Some(listing) = &listing {
        add_git_settings(view, caller, &home, listing);
    }
    if let (Some(kept), false) = (kept, host.namespaces()) {
        view.tmp = kept.join("tmp");
        if !inside_root {
            view.home = kept.join("home");
        }
    }
    Ok(())
}

fn keep_state(
    view: &mut View,
    policy: &Policy,
    caller: &Caller,
    (state, host): (&Path, &Host),
    purpose: Purpose,
) -> Result<PathBuf> {
    if !host.private_home {
        state::refuse_inside(&caller.absolute(state), view)?;
    }
    if policy.state_auto && purpose == Purpose::Run {
        state::make_parents(state)?;
    }
    add_state(view, caller, (state, policy.state_auto), host, purpose)
}

/// HOME and /tmp live in the state directory instead of a tmpfs. It is owner-only, since what lies in it is
/// read by later runs.
fn add_state(
    view: &mut View,
    caller: &Caller,
    (named, auto): (&Path, bool),
    host: &Host,
    purpose: Purpose,
) -> Result<PathBuf> {
    let mounts = host.namespaces();
    // A directory of this run alone has another name in the next one, under the same policy.
    let (origin, reason) = match host.private_home {
        true => (Origin::Found, "made for this run and gone at its end"),
        false => (Origin::Option, "kept from one run to the next by --state"),
    };
    let path = caller.absolute(named);
    let private = |path: &Path| {
        if purpose != Purpose::Run {
            return state::foresee(path, auto);
        }
        let made = fs::DirBuilder::new().mode(0o700).create(path).and_then(|()| {
            // What is made for another user is made theirs.
            if caller.switch { lchown(path, Some(caller.uid), Some(caller.gid)) } else { Ok(()) }
        });
        match made {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(state::cannot_make(path, error)),
            Ok(()) => Ok(()),
        }
    };
    private(&path)?;
    // Explaining makes nothing, so there may be nothing to look at.
    let look = |path: &Path| match trace(path).and_then(|found| Ok((found.stat()?, found))) {
        Err(error) if purpose != Purpose::Run && error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some).map_err(|error| cannot_show("--state", named, error)),
    };
    let owned = |stat: &Stat| file_type(stat) == FileType::Directory && stat.st_uid == caller.uid;
    let state = look(&path)?;
    if state.as_ref().is_some_and(|(stat, _)| !owned(stat) || stat.st_mode & 0o077 != 0) {
        return Err(Error::usage(format!(
            "--state {}: must be a directory that only its owner, uid {}, may enter",
            show(named.as_os_str()),
            caller.uid
        ))
        .with_hint(match &state {
            Some((stat, _)) if owned(stat) => format!("chmod 700 {}", paste(named.as_os_str())),
            _ => "name a directory of that user's own, or one that does not exist yet".to_owned(),
        }));
    }
    let base = state.as_ref().map_or_else(|| path.clone(), |(_, state)| state.path.clone());
    let home = view.home.clone();
    for (name, at) in [("home", home.as_path()), ("tmp", Path::new("/tmp"))] {
        if purpose == Purpose::Run || state.is_some() {
            private(&base.join(name))?;
        }
        let kept = look(&base.join(name))?;
        if kept.as_ref().is_some_and(|(stat, kept)| !owned(stat) || !kept.links.is_empty()) {
            return Err(Error::usage(format!(
                "--state {}: {name} in it is not a directory of its owner",
                show(named.as_os_str())
            )));
        }
        let place = Place {
            path: if mounts { at.to_owned() } else { base.join(name) },
            access: Access::Write,
            // Without mounts it is the host's own directory at its own name.
            backing: if mounts { Backing::Kept } else { Backing::Bind },
            origin,
            reason: reason.to_owned(),
        };
        let Some((stat, kept)) = kept else {
            view.insert(place, Source::None);
            continue;
        };
        let fd = kept.fd.try_clone().map_err(|error| Error::path("keep open", &kept.path, error))?;
        view.roots.push(Root {
            object: object(&stat),
            inside: place.path.clone(),
            path: kept.path,
            fd: kept.fd,
            directory: true,
            writable: true,
            workspace: false,
        });
        view.insert(place, Source::directory(fd));
    }
    view.state = state.map(|(_, state)| State { path: state.path, fd: state.fd });
    Ok(base)
}

/// Caches that their tools can use without writing to them.
const READ_ONLY_CACHES: &[&str] = &["CARGO_HOME", "GOMODCACHE"];

/// The rows of the table that are there.
fn toolchains(
    view: &View,
    caller: &Caller,
    home: &Path,
    listing: &Listing,
) -> Vec<(&'static Toolchain, Traced)> {
    let found = |row: &'static Toolchain| {
        let named = row.variable.and_then(|name| caller.trusted_variable(name)).map(PathBuf::from);
        let path = match named {
            Some(path) if path.is_absolute() => path,
            _ => listing.may_hold(Path::new(row.path)).then(|| home.join(row.path))?,
        };
        let traced = view.trusted(&path)?;
        (traced.is_dir() && !is_too_wide(&traced.path, home)).then_some((row, traced))
    };
    TOOLCHAINS.iter().filter_map(found).collect()
}

/// Returns those that are written to.
fn add_toolchains(view: &mut View, tools: Vec<(&Toolchain, Traced)>) -> Vec<PathBuf> {
    let mut layers = Vec::new();
    for (row, traced) in tools {
        let path = traced.path.clone();
        let backing = if row.layered { Backing::Layer } else { Backing::Bind };
        view.show_known(traced, true, backing, row.reason);
        if row.layered {
            layers.push(path.clone());
        }
        if let Some(variable) = row.variable.filter(|name| !row.layered || READ_ONLY_CACHES.contains(name)) {
            view.tools.push((variable, path.clone()));
        }
        for hidden in row.hidden {
            if let Ok(found) = trace(&path.join(hidden)) {
                let directory = found.is_dir();
                let backing = Backing::Cover { directory };
                view.table(found.path, Access::Hidden, backing, "registry credentials", Source::None);
            }
        }
    }
    layers
}

/// What login(1) and its like put on everybody's PATH, for a PATH that cannot be gone by.
const PROGRAMS: &[&str] = &[".local/bin", "bin"];

/// What PATH leads to outside the trees shown already, and what the links in its directories lead to.
fn add_path(view: &mut View, caller: &Caller, home: &Path) {
    let path = caller.trusted_variable("PATH").map(OsStr::to_owned).unwrap_or_default();
    let own = PROGRAMS.iter().map(|name| home.join(name)).filter(|_| !caller.trusts_environment());
    for directory in path_directories(&path).chain(own) {
        if view.leads_to_shown(&directory) {
            continue;
        }
        let Some(traced) = view.trusted(&directory) else { continue };
        // A directory of the system may be named through a link (`/bin`).
        if view.is_shown(&traced.path) || !traced.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&traced.path).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_symlink())
                && let Some(target) = view.trusted(&entry.path())
            {
                show_program(view, target, home);
            }
        }
        let wide = prefix(&traced.path, home).to_owned();
        match trace(&wide) {
            Ok(whole) if !is_too_wide(&whole.path, home) => {
                view.links(traced.links, Origin::Table);
                view.show_object(whole, Backing::Bind, "on PATH");
            }
            _ => {}
        }
    }
}

/// The prefix of a program that a link on PATH names.
fn show_program(view: &mut View, target: Traced, home: &Path) {
    if view.is_shown(&target.path) || target.is_dir() {
        return;
    }
    let Some(directory) = target.path.parent() else { return };
    let Ok(whole) = trace(prefix(directory, home)) else { return };
    // A program that lies loose among other things is shown alone.
    let shown = if is_too_wide(&whole.path, home) { target } else { whole };
    view.show_object(shown, Backing::Bind, "a program that PATH leads to");
}

/// HOME, what is above it, and the directories in it that hold everything.
fn is_too_wide(path: &Path, home: &Path) -> bool {
    const IN_HOME: &[&str] =
        &[".local", ".local/share", ".config", ".cache", "Documents", "Downloads", "Desktop"];
    home.starts_with(path)
        || IN_HOME.iter().any(|part| path == home.join(part))
        || system::BROAD.iter().any(|broad| Path::new(broad).starts_with(path))
        || system::CREDENTIALS.iter().any(|(name, _)| {
            path.starts_with(home.join(name))
                || home.join(name).starts_with(path)
                    && path != home.join(".cargo")
                    && path != home.join(".docker")
        })
}

/// The user's git settings, and the plain files that they name, without credentials.
fn add_git_settings(view: &mut View, caller: &Caller, home: &Path, listing: &Listing) {
    const LIMIT: u64 = 1 << 20;
    const FILES: &[&str] =
        &[".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes"];
    const MOST: usize = 256;
    const NAMED: &[&str] = &["path", "excludesfile", "attributesfile", "template"];
    let read = |view: &View, path: &Path| {
        let found = view.trusted(path)?;
        let owner = found.stat().ok()?.st_uid;
        (owner == caller.uid || owner == 0).then_some(())?;
        read_bounded(&found.path, LIMIT).ok()
    };
    let mut queue: Vec<PathBuf> =
        FILES.iter().filter(|name| listing.may_hold(Path::new(name))).map(|name| home.join(name)).collect();
    let mut done: Vec<PathBuf> = Vec::new();
    while let Some(path) = queue.pop() {
        if done.contains(&path) || done.len() > 32 || view.entries.contains_key(&path) {
            continue;
        }
        done.push(path.clone());
        let Some(bytes) = read(view, &path) else { continue };
        super::git_settings::for_each(&bytes, |_, key, value| {
            if NAMED.contains(&key.to_ascii_lowercase().as_str()) {
                let value = super::git_settings::plain(value);
                let named = match value.strip_prefix("~/") {
                    Some(rest) => home.join(rest),
                    None => path.parent().unwrap_or(home).join(value),
                };
                let secret = system::CREDENTIALS.iter().any(|(name, _)| named.starts_with(home.join(name)));
                if named.starts_with(home) && !secret {
                    queue.push(named);
                }
            }
            queue.len() < MOST
        });
        let bytes = without_credentials(&bytes);
        view.table(path, Access::Write, Backing::Copy, "git settings, a private copy", Source::File(bytes));
    }
}

/// Lines that carry a password or a token: whatever stands before the host in an address (but a plain user name of
/// ssh, which has its secret elsewhere), headers, and keys that say so.
fn without_credentials(file: &[u8]) -> Vec<u8> {
    let secret = |line: &[u8]| {
        let line = OsStr::from_bytes(line).to_string_lossy().to_ascii_lowercase();
        let address = line.match_indices("://").any(|(at, _)| {
            let authority = line[at + 3..].split(['/', '"', ' ']).next().unwrap_or_default();
            let user = authority.rsplit_once('@').map(|(user, _)| user);
            user.is_some_and(|user| user.contains(':') || !line[..at].ends_with("ssh"))
        });
        address || ["extraheader", "pass", "token", "secret"].iter().any(|word| line.contains(word))
    };
    // A section whose header tells a secret goes whole: its lines would join the one before.
    let mut dropped = false;
    let mut kept = Vec::with_capacity(file.len());
    for line in file.split_inclusive(|&byte| byte == b'\n') {
        if line.trim_ascii_start().starts_with(b"[") {
            dropped = secret(line);
        }
        if !dropped && !secret(line) {
            kept.extend_from_slice(line);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_credentials_are_left_out_of_git_settings() {
        let file = b"[user]\n\tname = A\n[url \"https://u:secret@host/x\"]\n\tinsteadOf = https://host/x\n\
            [http]\n\textraHeader = Authorization: x\n[sendemail]\n\tsmtpPass = hush\n\
            [url \"https://ghp_secret@host/\"]\n[url \"ssh://git@host/\"]\n\tpushInsteadOf = x\n[alias]\n\tco = checkout\n";
        let kept = String::from_utf8(without_credentials(file)).unwrap();
        assert!(!["secret", "Authorization", "hush"].iter().any(|word| kept.contains(word)), "{kept}");
        assert!(kept.contains("ssh://git@host/"), "{kept}");
        assert!(!kept.contains("insteadOf = https://host/x"), "its section is gone: {kept}");
        assert!(kept.contains("name = A") && kept.contains("co = checkout"), "{kept}");
    }
}
