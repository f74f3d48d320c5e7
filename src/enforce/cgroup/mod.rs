//! Control groups: which way this host offers to bound a whole tree, from what was read of it.
//!
//! In order: a cgroup v2 directory of our own, the systemd user manager, cgroup v1 directories, and where there is
//! none of them the supervisor's own sampling. Facts are read here and decided upon without touching anything;
//! what is made of them is in `group`.
#![forbid(unsafe_code)]

pub mod bus;
pub mod group;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};
use serde::{Deserialize, Serialize};

use crate::view::caller::unescape;

/// Who holds the tree to its memory, processes and processor time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    CgroupV2,
    /// A scope that the systemd user manager makes, cgroup v2 too.
    UserManager,
    CgroupV1,
    /// The supervisor looks, and ends the tree.
    Sampling,
}

impl Mechanism {
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::CgroupV2 => "cgroup-v2",
            Mechanism::UserManager => "user-manager",
            Mechanism::CgroupV1 => "cgroup-v1",
            Mechanism::Sampling => "sampling",
        }
    }
}

/// What has to be bounded for the whole tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wanted {
    pub memory: bool,
    pub procs: bool,
    pub cpu: bool,
}

impl Wanted {
    pub fn any(self) -> bool {
        self.memory || self.procs || self.cpu
    }
}

/// The mechanism, with the place where it is to be had.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Site {
    /// A new directory in `parent`; `enable` names controllers that its children do not have yet.
    V2 {
        parent: PathBuf,
        enable: String,
    },
    UserManager {
        bus: PathBuf,
        mount: PathBuf,
    },
    /// A new directory in each of the hierarchies that are needed, by controller.
    V1(BTreeMap<Controller, PathBuf>),
    #[default]
    Nowhere,
}

impl Site {
    pub fn mechanism(&self) -> Mechanism {
        match self {
            Site::V2 { .. } => Mechanism::CgroupV2,
            Site::UserManager { .. } => Mechanism::UserManager,
            Site::V1(_) => Mechanism::CgroupV1,
            Site::Nowhere => Mechanism::Sampling,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Controller {
    Memory,
    Pids,
    Cpuacct,
}

impl Controller {
    const ALL: [Controller; 3] = [Controller::Memory, Controller::Pids, Controller::Cpuacct];

    fn name(self) -> &'static str {
        match self {
            Controller::Memory => "memory",
            Controller::Pids => "pids",
            Controller::Cpuacct => "cpuacct",
        }
    }

    fn needed(wanted: Wanted) -> impl Iterator<Item = Controller> {
        Controller::ALL.into_iter().filter(move |controller| match controller {
            Controller::Memory => wanted.memory,
            Controller::Pids => wanted.procs,
            Controller::Cpuacct => wanted.cpu,
        })
    }
}

/// A cgroup v2 directory in which ours might be made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Candidate {
    pub path: PathBuf,
    /// The directory, its `cgroup.procs` and its `cgroup.subtree_control`.
    pub writable: bool,
    pub root: bool,
    pub controllers: Vec<String>,
    pub enabled: Vec<String>,
    /// It has a limit of its own, which a sibling would escape.
    pub limited: bool,
}

/// All that the decision rests on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Where this process is in the one hierarchy of cgroup v2.
    pub own: Option<Candidate>,
    pub parent: Option<Candidate>,
    /// Where cgroup v2 is mounted.
    pub unified: Option<PathBuf>,
    /// Writable directories of this process in the hierarchies of cgroup v1.
    pub v1: BTreeMap<Controller, PathBuf>,
    /// The user's bus, if the manager answers on it.
    pub bus: Option<PathBuf>,
}

/// The first mechanism that bounds all that is wanted: two for one tree would be two places that can fail.
pub fn decide(facts: &Facts, wanted: Wanted) -> Site {
    if let Some(site) = decide_v2(facts, wanted) {
        return site;
    }
    if let (Some(bus), Some(mount)) = (&facts.bus, &facts.unified) {
        return Site::UserManager { bus: bus.clone(), mount: mount.clone() };
    }
    let v1: BTreeMap<_, _> = Controller::needed(wanted)
        .filter_map(|controller| Some((controller, facts.v1.get(&controller)?.clone())))
        .collect();
    if !v1.is_empty() && v1.len() == Controller::needed(wanted).count() {
        Site::V1(v1)
    } else {
        Site::Nowhere
    }
}

/// Only a root cgroup may have both processes and children with controllers ("no internal processes",
/// Documentation/admin-guide/cgroup-v2.rst); anywhere else ours is made beside the one that we are in, whose
/// parent is the common ancestor that has to be writable for a process to be moved.
fn decide_v2(facts: &Facts, wanted: Wanted) -> Option<Site> {
    let own = facts.own.as_ref()?;
    // cpu.stat tells the time used without any controller.
    let needed: Vec<&str> = Controller::needed(wanted)
        .filter(|controller| *controller != Controller::Cpuacct)
        .map(Controller::name)
        .collect();
    let lacks = |list: &[String]| -> Vec<&str> {
        needed.iter().copied().filter(|name| !list.iter().any(|have| have == name)).collect()
    };
    if own.writable && own.root && lacks(&own.controllers).is_empty() {
        let enable = lacks(&own.enabled).iter().map(|name| format!("+{name}")).collect::<Vec<_>>().join(" ");
        return Some(Site::V2 { parent: own.path.clone(), enable });
    }
    if own.writable && needed.is_empty() {
        return Some(Site::V2 { parent: own.path.clone(), enable: String::new() });
    }
    let parent = facts.parent.as_ref()?;
    // Moving on needs both directories' cgroup.procs; and a bound that the caller is under must not be left.
    if parent.writable && own.writable && !own.limited && lacks(&parent.enabled).is_empty() {
        return Some(Site::V2 { parent: parent.path.clone(), enable: String::new() });
    }
    None
}

/// Reads what there is. To be called before the cgroup namespace is entered, which changes what the paths are
/// relative to.
pub fn look(wanted: Wanted) -> Facts {
    let cgroups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
    let places = places(&cgroups, &mounts);
    let mut facts = Facts { unified: places.unified, ..Facts::default() };
    if let Some(path) = places.v2 {
        facts.parent = match (path.parent(), &facts.unified) {
            (Some(parent), Some(mount)) if path != *mount => Some(candidate(parent)),
            _ => None,
        };
        facts.own = Some(candidate(&path));
    }
    facts.v1 = places.v1.into_iter().filter(|(_, path)| may_add_to(path)).collect();
    // Asked last, since it is a conversation with another process.
    if facts.unified.is_some() && decide_v2(&facts, wanted).is_none() {
        facts.bus = bus::find().filter(|path| bus::has_manager(path));
    }
    facts
}

fn may_add_to(directory: &Path) -> bool {
    let writable = |path: &Path| accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok();
    writable(directory) && writable(&directory.join("cgroup.procs"))
}

fn candidate(path: &Path) -> Candidate {
    let words = |name: &str| -> Vec<String> {
        let text = fs::read_to_string(path.join(name)).unwrap_or_default();
        text.split_ascii_whitespace().map(str::to_owned).collect()
    };
    let limit = |name: &str| fs::read_to_string(path.join(name)).is_ok_and(|text| !text.starts_with("max"));
    Candidate {
        writable: may_add_to(path),
        // Only the real root has no type (cgroup-v2.rst, "cgroup.type": exists on non-root cgroups).
        root: !path.join("cgroup.type").exists(),
        controllers: words("cgroup.controllers"),
        enabled: words("cgroup.subtree_control"),
        limited: ["memory.max", "memory.high", "pids.max", "cpu.max"].into_iter().any(limit),
        path: path.to_owned(),
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Places {
    unified: Option<PathBuf>,
    v2: Option<PathBuf>,
    v1: BTreeMap<Controller, PathBuf>,
}

/// `/proc/self/cgroup` (cgroups(7)) tells the path in each hierarchy, mountinfo (proc_pid_mountinfo(5)) where that
/// hierarchy is mounted and which part of it.
fn places(cgroups: &str, mountinfo: &[u8]) -> Places {
    let mut found = Places::default();
    for line in mountinfo.split(|byte| *byte == b'\n') {
        let Some(mount) = Mount::parse(line) else { continue };
        for entry in cgroups.lines() {
            let mut parts = entry.splitn(3, ':');
            let (Some(_), Some(names), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
                continue;
            };
            let Some(directory) = mount.directory(Path::new(path)) else { continue };
            if mount.unified && names.is_empty() {
                found.unified = Some(mount.point.clone());
                found.v2 = Some(directory);
            } else if !mount.unified {
                for controller in Controller::ALL {
                    if names.split(',').any(|name| name == controller.name()) && mount.has(controller.name())
                    {
                        found.v1.insert(controller, directory.clone());
                    }
                }
            }
        }
    }
    found
}

struct Mount {
    unified: bool,
    root: PathBuf,
    point: PathBuf,
    options: String,
}

impl Mount {
    fn parse(line: &[u8]) -> Option<Mount> {
        let mut fields = line.split(|byte| *byte == b' ').skip(3);
        let (root, point) = (unescape(fields.next()?), unescape(fields.next()?));
        // Optional fields end with a hyphen.
        let mut rest = fields.skip_while(|field| *field != b"-").skip(1);
        let unified = match rest.next()? {
            b"cgroup2" => true,
            b"cgroup" => false,
            _ => return None,
        };
        let options = String::from_utf8_lossy(rest.nth(1)?).into_owned();
        Some(Mount { unified, root, point, options })
    }

    fn has(&self, controller: &str) -> bool {
        self.options.split(',').any(|option| option == controller)
    }

    fn directory(&self, path: &Path) -> Option<PathBuf> {
        // Outside the own cgroup namespace the path starts with "..", and is not to be reached.
        let inner = path.strip_prefix(&self.root).ok()?;
        if inner.components().any(|part| part.as_os_str() == "..") {
            return None;
        }
        Some(if inner.as_os_str().is_empty() { self.point.clone() } else { self.point.join(inner) })
    }
}
