//! The tables of the system applied to this host: system trees, /dev, /proc, /sys.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, accessat};

use super::caller::{Caller, read_bounded};
use super::trace::{self, file_type, object, trace};
use super::{Access, Backing, Origin, Place, Source, View, system};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::policy::{Net, Policy};

pub fn add(view: &mut View, policy: &Policy, caller: &Caller, host: &Host) -> Result<()> {
    // Where a user namespace maps one id, root's files are nobody's anyway; where uid 0 stays itself, they must
    // be made so, since it owns them without any capability.
    let backing = if host.owns_system() { Backing::Veiled } else { Backing::Bind };
    let merged = trace::merged_links(system::READABLE.iter().map(|(path, _)| Path::new(path)));
    for (path, reason) in system::READABLE {
        let path = Path::new(path);
        if let Some((_, to)) = merged.iter().find(|(link, _)| link == path)
            && view.is_shown(&Path::new("/").join(to))
        {
            view.links(vec![(path.to_owned(), to.clone())], Origin::Table);
            continue;
        }
        match trace::directory(path) {
            Ok(traced) => view.show_known(traced, true, backing.clone(), reason),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(_) => {
                if let Ok(traced) = trace(path) {
                    view.show_object(traced, backing.clone(), reason);
                }
            }
        }
    }
    for (path, reason) in system::LINKS {
        if let Ok(to) = fs::read_link(path) {
            view.table(*path, Access::Read, Backing::Link { to }, reason, Source::None);
        }
    }
    for (path, reason) in system::RESOLVED {
        if let Ok(traced) = trace(Path::new(path))
            && !traced.links.is_empty()
        {
            view.show_object(traced, Backing::Bind, reason);
        }
    }
    for name in system::CA_VARIABLES {
        if let Some(path) = caller.trusted_variable(name).map(Path::new)
            && path.is_absolute()
            && let Some(traced) = view.trusted(path)
            && !view.home.starts_with(&traced.path)
        {
            view.show_object(traced, Backing::Bind, "CA certificates that a variable names");
        }
    }
    if uses_host_resolver(policy) {
        add_resolver(view)?;
    }
    add_ssh(view, caller);
    hide(view, host);
    add_devices(view, caller, host)?;
    add_kernel(view, policy, host)
}

/// Names are looked up over TCP where only TCP ports were granted: resolv.conf(5) "use-vc", in a private copy.
fn uses_host_resolver(policy: &Policy) -> bool {
    policy.network.net == Net::None && !policy.network.connect.is_empty()
}

fn add_resolver(view: &mut View) -> Result<()> {
    let path = Path::new("/etc/resolv.conf");
    let Ok(traced) = trace(path) else { return Ok(()) };
    let mut bytes = fs::read(path).map_err(|error| Error::path("read", path, error))?;
    bytes.extend_from_slice(b"\noptions use-vc\n");
    view.table(
        traced.path,
        Access::Read,
        Backing::Copy,
        "name servers, asked over TCP only",
        Source::File(bytes),
    );
    Ok(())
}

fn hide(view: &mut View, host: &Host) {
    for (path, reason) in system::HIDDEN {
        let path = Path::new(path);
        // One call for the many rows that do not exist or refuse this caller anyway. Listing /etc would be 20 calls
        // fewer and three times the time (73 us of getdents64 for 180 names).
        if !may_read(path, host) || !view.is_visible(path) {
            continue;
        }
        if let Ok(traced) = trace(path)
            && traced.links.is_empty()
        {
            let directory = traced.is_dir();
            view.table(path, Access::Hidden, Backing::Cover { directory }, reason, Source::None);
        }
    }
}

/// uid 0 will see root's files as nobody's where the file system can show them so, but a row of this table does
/// not depend on that.
fn may_read(path: &Path, host: &Host) -> bool {
    let wanted = if host.owns_system() { rustix::fs::Access::EXISTS } else { rustix::fs::Access::READ_OK };
    accessat(CWD, path, wanted, AtFlags::EACCESS).is_ok()
}

/// The public part of /etc/ssh as private copies that belong to the caller.
fn add_ssh(view: &mut View, caller: &Caller) {
    const LIMIT: u64 = 1 << 20;
    const PUBLIC: &[&str] = &["ssh_config", "ssh_known_hosts", "moduli", "ssh_revoked_hosts"];
    let root = Path::new(system::SSH);
    if caller.switch || !view.is_visible(root) {
        return;
    }
    let read = |path: &Path| read_bounded(path, LIMIT).ok();
    let Some(config) = read(&root.join("ssh_config")) else { return };
    let mut files = vec![(PathBuf::from("ssh_config"), config)];
    for name in &PUBLIC[1..] {
        if let Some(bytes) = read(&root.join(name)) {
            files.push((name.into(), bytes));
        }
    }
    for entry in fs::read_dir(root.join("ssh_config.d")).into_iter().flatten().flatten() {
        if let Some(bytes) = read(&entry.path()) {
            files.push((Path::new("ssh_config.d").join(entry.file_name()), bytes));
        }
    }
    view.table(
        root,
        Access::Read,
        Backing::Copy,
        "ssh refuses files of an unknown owner",
        Source::Files(files),
    );
}

fn add_devices(view: &mut View, caller: &Caller, host: &Host) -> Result<()> {
    for name in system::DEVICES {
        let path = Path::new("/dev").join(name);
        // A mount of it is made by name: /dev is the host's, and nobody else's to change.
        let source = if host.namespaces() {
            Source::None
        } else {
            Source::other(trace(&path).map_err(|error| Error::path("find", &path, error))?.fd)
        };
        view.table(path, Access::Write, Backing::Device, "harmless", source);
    }
    for (name, to) in system::DEVICE_LINKS {
        let backing = Backing::Link { to: to.into() };
        view.table(Path::new("/dev").join(name), Access::Read, backing, "as on every system", Source::None);
    }
    view.table("/dev/pts", Access::Write, Backing::Terminals, "pseudo-terminals of its own", Source::None);
    add_terminal(view, caller)
}

/// The caller's terminal, if it is one of the standard descriptors: /dev/tty, and the terminal itself as
/// /dev/console so that ttyname(3) finds it. Other terminals of the user are never visible.
fn add_terminal(view: &mut View, caller: &Caller) -> Result<()> {
    let Some(standard) = caller.standard.iter().find(|standard| standard.is_terminal()) else {
        return Ok(());
    };
    let name = format!("/proc/self/fd/{}", standard.fd);
    let path = fs::read_link(&name).map_err(|error| Error::path("read", name, error))?;
    // A terminal of another mount namespace has no name here; the descriptor itself works all the same.
    let Ok(terminal) = trace(&path) else { return Ok(()) };
    let Ok(stat) = terminal.stat() else { return Ok(()) };
    if object(&stat) != (standard.device, standard.inode) || file_type(&stat) != FileType::CharacterDevice {
        return Ok(());
    }
    for (path, fd, reason) in [
        ("/dev/console", terminal.fd, "the caller's terminal"),
        ("/dev/tty", open_tty()?, "the controlling terminal"),
    ] {
        let (access, origin) = (Access::Write, Origin::Found);
        let place =
            Place { path: path.into(), access, backing: Backing::Terminal, origin, reason: reason.into() };
        view.insert(place, Source::other(fd));
    }
    Ok(())
}

fn open_tty() -> Result<std::os::fd::OwnedFd> {
    let traced = trace(Path::new("/dev/tty")).map_err(|error| Error::path("find", "/dev/tty", error))?;
    Ok(traced.fd)
}

fn add_kernel(view: &mut View, policy: &Policy, host: &Host) -> Result<()> {
    let proc = trace(Path::new("/proc")).map_err(|error| Error::path("find", "/proc", error))?;
    view.table("/proc", Access::Read, Backing::Proc, "processes; read-only", Source::directory(proc.fd));
    if let Ok(sys) = trace(Path::new("/sys")) {
        // Whether a new sysfs can be had is seen only when it is mounted, so the host's own is kept at hand.
        view.table("/sys", Access::Read, Backing::Sys, "devices; read-only", Source::directory(sys.fd));
    }
    if host.owns_system() {
        hide_roots_own(view, policy);
    }
    Ok(())
}

/// What uid 0 may read by its mode, and nobody else. A row of /proc itself is hidden whatever its mode.
fn hide_roots_own(view: &mut View, policy: &Policy) {
    let mut cover = |path: PathBuf, reason: &str| {
        view.table(path, Access::Hidden, Backing::Cover { directory: false }, reason, Source::None);
    };
    let there = |path: &Path| {
        let of_settings = path.starts_with("/proc/sys");
        fs::metadata(path).is_ok_and(|found| !of_settings || is_roots_alone(&found))
    };
    let host_network = policy.network.net == Net::Host;
    let of_network = system::NET_HIDDEN.iter().filter(|_| host_network);
    for (path, reason) in
        system::PROC_HIDDEN.iter().chain(of_network).map(|(path, reason)| (Path::new(path), reason))
    {
        if there(path) {
            cover(path.to_owned(), reason);
        }
    }
    if host_network {
        for interface in fs::read_dir(system::NET_INTERFACES).into_iter().flatten().flatten() {
            cover(interface.path().join(system::NET_SECRET), "a key");
        }
    }
    for (directory, kind, name) in system::SYS_ROOTS_OWN {
        let directory = Path::new(directory);
        // One stands for all: they are made alike.
        let first = directory.join(format!("{kind}0")).join(name);
        if !fs::metadata(first).is_ok_and(|found| is_roots_alone(&found)) {
            continue;
        }
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let number = entry.file_name();
            let number = number.as_bytes().strip_prefix(kind.as_bytes()).unwrap_or_default();
            if number.first().is_some_and(u8::is_ascii_digit) {
                cover(entry.path().join(name), "a file that only root reads");
            }
        }
    }
}

fn is_roots_alone(found: &fs::Metadata) -> bool {
    found.mode() & 0o004 == 0
}
