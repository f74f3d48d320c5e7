//! What will be done, decided before anything is: Policy x View x Host -> Plan or refusal. Pure: no system calls.
#![forbid(unsafe_code)]

mod id;
pub mod note;
mod promises;

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::enforce::limits;
use crate::enforce::seccomp;
use crate::error::{Error, Result};
use crate::host::{Host, Landlock, World};
use crate::policy::{Allowance, Listen, Loopback, Net, Policy, Promise};
use crate::view::{Backing, Place, View};

pub use promises::{Outcome, outcomes};

/// The version of every JSON object that confine prints.
pub const JSON_VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub version: u32,
    /// Each promise that holds, with the layers that keep it.
    pub promises: BTreeMap<Promise, Vec<String>>,
    /// Each promise given up by `--waive`, and why this host cannot keep it.
    pub waived: BTreeMap<Promise, String>,
    pub world: Scenery,
    pub process: Process,
    /// None: the command has no parent but confine's own caller.
    pub supervision: Option<Supervision>,
    /// Made at most once: a plan does not change after it has been decided.
    #[serde(skip)]
    id: OnceLock<String>,
}

/// What a parent is there for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Supervision {
    /// The promises and options that need it.
    pub reasons: Vec<String>,
    /// The tree ends with confine's caller, and on TERM after the grace.
    pub teardown: bool,
    pub timeout: Option<Duration>,
    pub grace: Option<Duration>,
}

/// What is made once and could be shared by several spawns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scenery {
    pub namespaces: Vec<Namespace>,
    pub view: Vec<Place>,
    pub ruleset: Ruleset,
    pub loopback: bool,
    /// Bytes of the private tmpfs; None is a quarter of the memory.
    pub tmp: Option<u64>,
    /// Root's files are shown as nobody's.
    pub veil: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Namespace {
    User,
    Mount,
    Network,
    Ipc,
    Uts,
    Cgroup,
    Pid,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ruleset {
    pub abi: u32,
    /// TCP ports that may be connected to; None leaves TCP to the other layers.
    pub connect: Option<Vec<u16>>,
}

/// What is applied to each spawned process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pub uid: u32,
    pub gid: u32,
    pub switch_user: bool,
    pub seccomp: seccomp::Rules,
    pub limits: Vec<limits::Limit>,
    pub descriptors: Vec<i32>,
    /// Names only: values are never part of a plan.
    pub environment: Vec<String>,
}

impl Plan {
    pub fn decide(
        policy: &Policy,
        view: &View,
        host: &Host,
        identity: (u32, u32),
        environment: Vec<String>,
    ) -> Result<Plan> {
        refuse_unbuilt(policy)?;
        let supervision = supervision(policy, host);
        let namespaces = namespaces(policy, host, supervision.is_some());
        refuse_without_view(policy, view, &namespaces)?;
        let (mut promises, mut waived) = (BTreeMap::new(), BTreeMap::new());
        for (promise, outcome) in outcomes(policy, host, &namespaces) {
            match outcome {
                Outcome::Kept(layers) => {
                    promises.insert(promise, layers.into_iter().map(str::to_owned).collect());
                }
                Outcome::Lacking(lack) if policy.waive.contains(&promise) => {
                    waived.insert(promise, lack.why);
                }
                Outcome::Lacking(lack) if is_wanted(policy, promise, &namespaces) => {
                    let error = Error::refused(format!("{promise} cannot be kept: {}", lack.why));
                    let waive = format!("or give it up with `--waive {promise}`");
                    return Err(error.with_hint(match lack.help {
                        Some(help) => format!("{help}; {waive}"),
                        None => waive,
                    }));
                }
                Outcome::Lacking(_) => {}
            }
        }
        let inet = match (policy.network.net, policy.network.connect.is_empty(), policy.network.loopback) {
            (Net::Host, ..) => seccomp::Inet::All,
            (Net::None, false, _) => seccomp::Inet::Tcp,
            (Net::None, true, Loopback::Private) if namespaces.contains(&Namespace::Network) => {
                seccomp::Inet::All
            }
            (Net::None, true, _) => seccomp::Inet::None,
        };
        let ports = inet == seccomp::Inet::Tcp;
        let rules = seccomp::Rules {
            inet,
            sysv_ipc: namespaces.contains(&Namespace::Ipc),
            namespaces: policy.allow.contains(&Allowance::Userns),
            // Without a parent listen(2) cannot be told apart by family, and a socket that was never bound
            // listens on a port of the kernel's choice.
            listen: !ports,
            broker: seccomp::Brokered::default(),
        };
        Ok(Plan {
            version: JSON_VERSION,
            promises,
            waived,
            world: Scenery {
                view: view.places().cloned().collect(),
                ruleset: Ruleset {
                    abi: host.landlock.abi(),
                    connect: ports.then(|| policy.network.connect.iter().copied().collect()),
                },
                loopback: inet == seccomp::Inet::All && namespaces.contains(&Namespace::Network),
                tmp: policy.limits.tmp,
                veil: view.places().any(|place| place.backing == Backing::Veiled),
                namespaces,
            },
            process: Process {
                uid: identity.0,
                gid: identity.1,
                switch_user: policy.user.is_some(),
                seccomp: rules,
                limits: limits::decide(&policy.limits, host.world == World::User),
                descriptors: policy.descriptors.clone(),
                environment,
            },
            supervision,
            id: OnceLock::new(),
        })
    }

    /// SHA-256 over what was decided by policy: no argv, value, descriptor, inode, or what was merely met.
    pub fn id(&self) -> &str {
        self.id.get_or_init(|| id::of(self))
    }

    pub fn has(&self, namespace: Namespace) -> bool {
        self.world.namespaces.contains(&namespace)
    }
}

/// The default set, what was required, and less nothing: a waiver matters only where a promise is lacking.
fn is_wanted(policy: &Policy, promise: Promise, namespaces: &[Namespace]) -> bool {
    match promise {
        Promise::ProcessHiding | Promise::Teardown => policy.require.contains(&promise),
        Promise::PathHiding => !namespaces.is_empty() || policy.require.contains(&promise),
        _ => true,
    }
}

/// The reasons for a parent, if there are any.
pub fn supervision(policy: &Policy, host: &Host) -> Option<Supervision> {
    let required = |promise: Promise| policy.require.contains(&promise);
    let limits = &policy.limits;
    let reasons: Vec<String> = [
        ("--require process-hiding", required(Promise::ProcessHiding)),
        ("--require teardown", required(Promise::Teardown)),
        (
            "process-scope, which Landlock does not keep below ABI 6",
            host.namespaces() && host.landlock.abi() < 6,
        ),
        ("--timeout", limits.timeout.is_some()),
    ]
    .into_iter()
    .filter(|(_, needed)| *needed)
    .map(|(reason, _)| reason.to_owned())
    .collect();
    (!reasons.is_empty()).then(|| Supervision {
        reasons,
        teardown: required(Promise::Teardown),
        timeout: limits.timeout,
        grace: limits.grace,
    })
}

pub fn namespaces(policy: &Policy, host: &Host, supervised: bool) -> Vec<Namespace> {
    if !host.namespaces() {
        return Vec::new();
    }
    let mut list = vec![Namespace::Mount, Namespace::Ipc, Namespace::Uts, Namespace::Cgroup];
    if host.world == World::User {
        list.insert(0, Namespace::User);
    }
    if policy.network.is_own() {
        list.push(Namespace::Network);
    }
    if supervised {
        list.push(Namespace::Pid);
    }
    list
}

/// Options whose mechanism is the supervisor or the broker, which this version does not have.
fn refuse_unbuilt(policy: &Policy) -> Result<()> {
    let limits = &policy.limits;
    let options = [
        ("--max-memory", limits.memory.is_some()),
        ("--max-disk", limits.disk.is_some()),
        ("--max-output", limits.output.is_some()),
        ("--max-cpu", limits.cpu.is_some()),
        ("--listen", policy.network.listen != Listen::None),
        ("--loopback host", policy.network.loopback == Loopback::Host),
        ("--allow unix-datagram", policy.allow.contains(&Allowance::UnixDatagram)),
    ];
    match options.iter().find(|(_, asked)| *asked) {
        Some((option, _)) => Err(Error::refused(format!("{option} is not available in this version"))),
        None => Ok(()),
    }
}

/// What only a view can do: Landlock adds rights and takes none away.
fn refuse_without_view(policy: &Policy, view: &View, namespaces: &[Namespace]) -> Result<()> {
    if namespaces.contains(&Namespace::Mount) {
        return Ok(());
    }
    const HINT: &str = "this host has no namespaces to do it with: `confine check` says why";
    if policy.user.is_some() {
        return Err(Error::refused("--user needs a mount namespace").with_hint(HINT));
    }
    if policy.state.is_none() {
        return Err(Error::refused("a private HOME needs a mount namespace")
            .with_hint("keep HOME and TMPDIR in a directory of your own: `--state DIR`"));
    }
    let inside = |place: &&Place| {
        view.roots
            .iter()
            .any(|root| root.writable && place.path != root.path && place.path.starts_with(&root.path))
    };
    let asked = |place: &&Place| place.origin == crate::view::Origin::Option;
    if let Some(place) = view.places().filter(asked).find(|place| {
        place.backing == Backing::Sealed || place.access < crate::view::Access::Write && inside(place)
    }) {
        let path = crate::error::show(place.path.as_os_str());
        return Err(
            Error::refused(format!("{path} cannot be narrowed without a mount namespace")).with_hint(HINT)
        );
    }
    Ok(())
}

/// Below these the promises that Landlock alone keeps cannot be kept.
pub fn landlock_lack(landlock: Landlock, wanted: u32, for_what: &str) -> Option<crate::host::Lack> {
    let (why, help) = match landlock {
        Landlock::Available { abi, .. } if abi >= wanted => return None,
        Landlock::Available { abi, .. } => (
            format!("{for_what} needs Landlock ABI {wanted}, this kernel has {abi}"),
            format!("boot a kernel of at least {}", series(wanted)),
        ),
        Landlock::Disabled => (
            "Landlock is built into this kernel but switched off".to_owned(),
            "add landlock to the kernel's `lsm=` list".to_owned(),
        ),
        Landlock::NotBuilt => (
            "this kernel has no Landlock".to_owned(),
            format!("boot a kernel of at least {} with CONFIG_SECURITY_LANDLOCK", series(wanted)),
        ),
    };
    Some(crate::host::Lack { why, help: Some(help) })
}

/// The series that brought an ABI (Documentation/userspace-api/landlock.rst).
fn series(abi: u32) -> &'static str {
    match abi {
        0 | 1 => "5.13",
        2 => "5.19",
        3 => "6.2",
        4 => "6.7",
        5 => "6.10",
        6 => "6.12",
        7 => "6.15",
        8 => "7.0",
        _ => "7.1",
    }
}
