//! Workspaces and `--ro`, `--rw`, `--hide`, `--seal`: each opened once, checked and kept as a descriptor.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Stat, StatxFlags, statx};

use super::caller::Caller;
use super::danger::danger;
use super::mounted::Mounts;
use super::never::Never;
use super::own::{self, Found, Own};
use super::trace::{Traced, file_type, object, trace, trace_present};
use super::ways::Ways;
use super::{Access, Backing, Origin, Place, Source, View, cannot_show, hidden, scan, state, system};
use crate::error::{Error, Result, paste, show};
use crate::host::Host;
use crate::policy::{self, Allowance, FileAccess, FileRule, Policy};

/// A root that was asked for, canonical and open.
#[derive(Debug)]
pub struct Root {
    pub path: PathBuf,
    /// Where the command sees it: what `--state` keeps has a name of its own inside.
    pub inside: PathBuf,
    pub fd: OwnedFd,
    pub object: (u64, u64),
    pub directory: bool,
    pub writable: bool,
    pub workspace: bool,
}

impl Root {
    pub fn to_scan(&self) -> scan::Root<'_> {
        scan::Root { dir: self.fd.as_fd(), path: &self.path, writable: self.writable }
    }
}

/// A root with all that the view needs to show it.
pub struct Asked {
    pub root: Root,
    pub option: &'static str,
    access: FileAccess,
    pub links: Vec<(PathBuf, PathBuf)>,
    /// Where in it the home directory is.
    homes: Vec<PathBuf>,
    /// Who asked, and how far that is from the command line. None for what `--ro /` brought.
    pub by: Option<(policy::Origin, usize)>,
}

impl Asked {
    pub fn path(&self) -> &Path {
        &self.root.path
    }

    pub fn is_shown(&self) -> bool {
        self.access != FileAccess::Hide
    }

    /// A message about it, in the terms of where it was asked for.
    pub fn told(&self, error: Error) -> Error {
        match &self.by {
            Some((origin, _)) => origin.told(self.option.trim_start_matches('-'), error),
            None => error,
        }
    }
}

pub fn resolve(
    policy: &Policy,
    caller: &Caller,
    home: &Path,
    host: &Host,
    never: &[Never],
) -> Result<Vec<Asked>> {
    let mounts = host.namespaces();
    let mut asked = Vec::new();
    let mut own = Own::new(home);
    for named in &policy.workspaces {
        workspace(&mut asked, &mut own, policy, caller, named)
            .map_err(|error| policy.told("workspace", named, error))?;
    }
    let mut whole = false;
    for rule in &policy.files {
        whole |= file(&mut asked, &mut own, policy, caller, (home, mounts), rule)
            .map_err(|error| policy.told(rule.access.option(), &rule.path, error))?;
    }
    if whole {
        push_root(&mut asked, home)?;
    }
    if !mounts {
        push_continuing(&mut asked)?;
    }
    for found in never {
        found.refuse(&asked)?;
        found.refuse_planted(&written(&asked))?;
    }
    refuse_planted_links(&asked, home)?;
    refuse_policy_inside(policy, caller, &asked)?;
    for Asked { root, homes, .. } in &mut asked {
        let names = own.homes(&Found::of(&root.fd, root.object.0))?;
        homes.extend(names.iter().filter(|home| home.starts_with(&root.path)).cloned());
    }
    if let Some(named) = &policy.state {
        state::refuse_above(named, &own::settled(&caller.absolute(named)).0, &asked)
            .and_then(|()| match host.private_home {
                true => Ok(()),
                false => state::refuse_planted(caller, named, &asked),
            })
            .map_err(|error| policy.told_of("state", error))?;
    }
    Ok(asked)
}

fn workspace(
    asked: &mut Vec<Asked>,
    own: &mut Own,
    policy: &Policy,
    caller: &Caller,
    named: &Path,
) -> Result<()> {
    let traced = open(caller, "--workspace", named)?;
    let stat = traced.stat().map_err(|error| cannot_show("--workspace", named, error))?;
    if file_type(&stat) != FileType::Directory {
        return Err(Error::usage(format!("--workspace {}: not a directory", show(named.as_os_str()))));
    }
    let found = Found::of(&traced.fd, stat.st_dev);
    refuse_broad(policy, own.homes(&found)?, named, &traced.path)?;
    if !policy.read_only {
        own.refuse(policy, caller, named, &traced.path, &found)?;
    }
    let access = if policy.read_only { FileAccess::Read } else { FileAccess::Write };
    let by = asked_by(policy, "workspace", named);
    push(asked, "--workspace", access, true, (traced, stat), by)
}

/// True for the whole of the host's root, which is shown by its parts.
fn file(
    asked: &mut Vec<Asked>,
    own: &mut Own,
    policy: &Policy,
    caller: &Caller,
    (home, mounts): (&Path, bool),
    rule: &FileRule,
) -> Result<bool> {
    let option = match rule.access {
        FileAccess::Hide => "--hide",
        FileAccess::Read => "--ro",
        FileAccess::Seal => "--seal",
        FileAccess::Write => "--rw",
    };
    let by = asked_by(policy, rule.access.option(), &rule.path);
    // A file hides on every machine what may be on this one.
    let absent = || matches!(trace_present(&caller.absolute(&rule.path)), Ok(None));
    if rule.access == FileAccess::Hide && by.as_ref().is_some_and(|(by, _)| by.is_file()) && absent() {
        return Ok(false);
    }
    let traced = open(caller, option, &rule.path)?;
    // Without mounts the host's root is the view's, and is granted as it is.
    if mounts && traced.path == Path::new("/") {
        match rule.access {
            FileAccess::Read => return Ok(true),
            FileAccess::Write => refuse_broad(policy, &[home.to_owned()], &rule.path, &traced.path)?,
            FileAccess::Seal | FileAccess::Hide => {
                return Err(Error::usage(format!("{option} /: the root itself can only be shown"))
                    .with_hint("`--ro /`"));
            }
        }
        return Ok(false);
    }
    if rule.access == FileAccess::Hide && ["/proc", "/dev"].iter().any(|own| traced.path == Path::new(own)) {
        let path = show(traced.path.as_os_str());
        return Err(Error::usage(format!("--hide {path}: no command can start without it"))
            .with_hint("hide what is meant in it"));
    }
    let stat = traced.stat().map_err(|error| cannot_show(option, &rule.path, error))?;
    if rule.access == FileAccess::Write {
        refuse_kernel(option, &rule.path, &traced.path)?;
        match file_type(&stat) {
            FileType::Directory | FileType::RegularFile => {}
            _ => {
                return Err(Error::usage(format!(
                    "{option} {}: neither a directory nor a regular file",
                    show(rule.path.as_os_str())
                )));
            }
        }
        let found = Found::of(&traced.fd, stat.st_dev);
        refuse_broad(policy, own.homes(&found)?, &rule.path, &traced.path)?;
        own.refuse(policy, caller, &rule.path, &traced.path, &found)?;
    }
    if rule.access == FileAccess::Seal && file_type(&stat) != FileType::Directory {
        return Err(Error::usage(format!("{option} {}: not a directory", show(rule.path.as_os_str())))
            .with_hint(format!(
                "a file has nothing to be set apart from: `--ro {}`",
                paste(rule.path.as_os_str())
            )));
    }
    push(asked, option, rule.access, false, (traced, stat), by)?;
    Ok(false)
}

/// Where nothing can be mounted, what is mounted inside a root is not its own. But parts that are mounted onto
/// themselves are, and belong to the root.
fn push_continuing(asked: &mut Vec<Asked>) -> Result<()> {
    let table = Mounts::read()?;
    let roots: Vec<PathBuf> =
        asked.iter().filter(|asked| asked.root.writable).map(|asked| asked.path().to_owned()).collect();
    for traced in roots.iter().flat_map(|root| table.continuing(root)) {
        let above = asked.iter().filter(|other| traced.path.starts_with(other.path()));
        let nearest = above.max_by_key(|other| other.path().components().count());
        if nearest.is_none_or(|other| !other.root.writable || other.path() == traced.path) {
            continue;
        }
        let stat = traced.stat().map_err(|error| cannot_show("--workspace", &traced.path, error))?;
        push(asked, "--workspace", FileAccess::Write, false, (traced, stat), None)?;
    }
    Ok(())
}

fn open(caller: &Caller, option: &str, named: &Path) -> Result<Traced> {
    if named.as_os_str().is_empty() {
        return Err(Error::usage(format!("{option}: the path is empty")));
    }
    trace(&caller.absolute(named)).map_err(|error| cannot_show(option, named, error))
}

fn push(
    asked: &mut Vec<Asked>,
    option: &'static str,
    access: FileAccess,
    workspace: bool,
    (traced, stat): (Traced, Stat),
    by: Option<(policy::Origin, usize)>,
) -> Result<()> {
    if let Some(other) = asked.iter_mut().find(|other| other.root.path == traced.path) {
        let layer =
            |by: &Option<(policy::Origin, usize)>| by.as_ref().map_or(usize::MAX, |(_, layer)| *layer);
        // Two spellings of one path: the nearer layer has it, as with one spelling.
        if other.access != access && layer(&by) < layer(&other.by) {
            (other.option, other.access, other.by) = (option, access, by);
            (other.root.writable, other.root.workspace) = (access == FileAccess::Write, workspace);
        } else if other.access != access && layer(&by) == layer(&other.by) {
            let path = show(traced.path.as_os_str()).to_string();
            return Err(Error::usage(format!("{option} and {} both name {path}", other.option))
                .with_hint("give the path one access"));
        }
        other.links.extend(traced.links);
        return Ok(());
    }
    let root = Root {
        object: object(&stat),
        directory: file_type(&stat) == FileType::Directory,
        writable: access == FileAccess::Write,
        workspace,
        inside: traced.path.clone(),
        path: traced.path,
        fd: traced.fd,
    };
    asked.push(Asked { root, option, access, links: traced.links, by, homes: Vec::new() });
    Ok(())
}

fn asked_by(policy: &Policy, option: &str, path: &Path) -> Option<(policy::Origin, usize)> {
    policy.setting(option, path).map(|setting| (setting.origin.clone(), setting.layer))
}

/// A policy that a command could have written, now or in an earlier run, would be its own.
fn refuse_policy_inside(policy: &Policy, caller: &Caller, asked: &[Asked]) -> Result<()> {
    let state = policy.state.as_ref().map(|state| own::settled(&caller.absolute(state)).0);
    let read = policy.files_read.iter().any(|file| file.place.is_some());
    let kept = if read { own::states(caller) } else { Vec::new() };
    let kept = kept.iter().map(PathBuf::as_path);
    let roots: Vec<&Path> = written(asked).into_iter().chain(state.as_deref()).chain(kept).collect();
    let mut ways = Ways::default();
    for place in policy.files_read.iter().filter_map(|file| file.place.as_ref()) {
        for at in place.links.iter().chain([&place.path]) {
            let Some(root) = ways.within(at, &roots)? else { continue };
            let way = if *at == place.path { "lies" } else { "is reached through a link" };
            return Err(Error::usage(format!(
                "policy file {} {way} in {}, where commands can write",
                show(place.named.as_os_str()),
                show(root.as_os_str())
            ))
            .with_hint("keep policy files outside every workspace, best in ~/.config/confine"));
        }
    }
    Ok(())
}

/// `--ro /`: the root directory of the view is its own, so each directory of the host's is shown in it. What is private
/// stays so, and another option for one of them wins.
fn push_root(asked: &mut Vec<Asked>, home: &Path) -> Result<()> {
    const PRIVATE: &[&str] = &["/tmp"];
    let root = Path::new("/");
    for entry in std::fs::read_dir(root).map_err(|error| Error::path("list", root, error))? {
        let path = root.join(entry.map_err(|error| Error::path("list", root, error))?.file_name());
        let kept = system::KERNEL.iter().chain(PRIVATE).any(|kept| path == Path::new(kept));
        if kept || path == home || asked.iter().any(|other| other.root.path == path) {
            continue;
        }
        // A link of the host's root is a link of the view's; what cannot be opened is not shown.
        if let Ok(traced) = trace(&path)
            && traced.links.is_empty()
            && let Ok(stat) = traced.stat()
        {
            push(asked, "--ro", FileAccess::Read, false, (traced, stat), None)?;
        }
    }
    Ok(())
}

fn refuse_kernel(option: &str, named: &Path, path: &Path) -> Result<()> {
    match system::KERNEL.iter().find(|kernel| path.starts_with(kernel)) {
        Some(kernel) => Err(Error::usage(format!(
            "{option} {}: {kernel} is the kernel's and never a writable root",
            show(named.as_os_str())
        ))),
        None => Ok(()),
    }
}

fn refuse_broad(policy: &Policy, homes: &[PathBuf], named: &Path, path: &Path) -> Result<()> {
    refuse_kernel("--workspace", named, path)?;
    const NEVER: &[&str] = &["/", "/run", "/tmp", "/var/tmp"];
    let never = NEVER.iter().any(|never| path == Path::new(never));
    let table = system::BROAD.iter().any(|broad| Path::new(broad).starts_with(path));
    let above_home = homes.iter().any(|home| home.starts_with(path));
    if !never && (policy.allow.contains(&Allowance::BroadWorkspace) || !(table || above_home)) {
        return Ok(());
    }
    let what = if homes.iter().any(|home| path == home) {
        "is the home directory, with every key and history in it"
    } else if above_home {
        "contains the home directory"
    } else {
        "is a directory of the system"
    };
    let error = Error::usage(format!("{} {what}: too broad for a writable root", show(named.as_os_str())));
    Err(if never {
        error.with_hint("name the project's own directory")
    } else {
        error.with_hint("name the project's own directory, or give `--allow broad-workspace` as well")
    })
}

/// A link inside a workspace may have been made by an earlier command, so an option does not follow one.
fn refuse_planted_links(asked: &[Asked], home: &Path) -> Result<()> {
    let (mut ways, written) = (Ways::default(), written(asked));
    for named in asked {
        let links = named.links.iter().map(|(at, _)| at);
        let Some((at, root)) = ways.first_within(links, &written)? else { continue };
        let path = &named.root.path;
        let warning = danger(path, home, named.root.writable)
            .map(|warning| format!("  # careful, a command may have chosen it: {warning}"))
            .unwrap_or_default();
        let error = Error::usage(format!(
            "{} follows the link {}, which lies in the writable root {}",
            named.option,
            show(at.as_os_str()),
            show(root.as_os_str())
        ));
        return Err(named.told(error.with_hint(format!(
            "name what is meant itself: `{} {}`{warning}",
            named.option,
            paste(path.as_os_str())
        ))));
    }
    Ok(())
}

/// The same where an option does not show what it names but goes by it.
pub fn refuse_links(
    option: &str,
    named: &Path,
    links: &[(PathBuf, PathBuf)],
    written: &[&Path],
    hint: &str,
) -> Result<()> {
    let links = links.iter().map(|(at, _)| at);
    let Some((at, _)) = Ways::default().first_within(links, written)? else { return Ok(()) };
    Err(Error::usage(format!(
        "{option} {} follows the link {}, which a command may have made",
        show(named.as_os_str()),
        show(at.as_os_str())
    ))
    .with_hint(hint))
}

/// Where commands write, or have written.
pub fn written(asked: &[Asked]) -> Vec<&Path> {
    asked.iter().filter(|other| other.root.writable || other.root.workspace).map(Asked::path).collect()
}

/// Adds the roots to a view that holds the tables already. Returns what is to be hidden, for `hide`.
pub fn add(view: &mut View, policy: &Policy, asked: Vec<Asked>) -> Result<Vec<Asked>> {
    let (hidden, shown): (Vec<Asked>, Vec<Asked>) = asked.into_iter().partition(|asked| !asked.is_shown());
    for Asked { root, option, access, links, by, homes } in shown {
        view.links(links, Origin::Option);
        view.asked_by.extend(by.map(|(origin, _)| (root.path.clone(), origin)));
        let (access, backing) = match access {
            FileAccess::Write => (Access::Write, Backing::Bind),
            FileAccess::Seal => (Access::Read, Backing::Sealed),
            FileAccess::Read | FileAccess::Hide => (Access::Read, Backing::Bind),
        };
        let fd = root.fd.try_clone().map_err(|error| Error::path("keep open", &root.path, error))?;
        let reason = if root.workspace { "a workspace".to_owned() } else { format!("asked for by {option}") };
        let place = Place { path: root.path.clone(), access, backing, origin: Origin::Option, reason };
        view.insert(place, Source::Object { fd, directory: root.directory });
        hidden::credentials(view, policy, &homes, &root);
        view.roots.push(root);
    }
    lift(view);
    Ok(hidden)
}

/// A mount point can be neither renamed nor removed, so what may be written anyway gets none: `--rw` on a guarded
/// file of the workspace means that it is an ordinary file.
fn lift(view: &mut View) {
    let mount = |root: &Root| {
        statx(&root.fd, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok().map(|found| found.stx_mnt_id)
    };
    let writable = view.roots.iter().filter(|root| root.writable);
    let mut lifted = Vec::new();
    for root in writable.clone() {
        let above = root.path.parent().and_then(|parent| view.nearest(parent));
        let holder = above.and_then(|entry| writable.clone().find(|other| other.path == entry.place.path));
        if holder.is_some_and(|holder| mount(holder).is_some() && mount(holder) == mount(root)) {
            lifted.push(root.path.clone());
        }
    }
    for path in lifted {
        if let Some(entry) = view.entries.get_mut(&path) {
            entry.place.backing = Backing::Lifted;
        }
    }
}
