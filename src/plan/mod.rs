//! What will be done, decided before anything is: Policy x View x Host -> Plan or refusal. Pure: no system calls.
#![forbid(unsafe_code)]

pub mod facts;
mod id;
pub mod note;
mod promises;
mod refuse;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::enforce::cgroup::{self, Mechanism};
use crate::enforce::limits;
use crate::enforce::seccomp;
use crate::error::Result;
use crate::host::{Host, World};
use crate::policy::{Allowance, Limits, Listen, Loopback, Net, Policy, Promise, Trace};
use crate::supervise::ceilings::DISK;
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
    #[serde(skip)]
    id: id::Made,
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
    /// None: the command has the caller's own streams.
    pub relay: Option<Relay>,
    /// None: nothing is asked of the parent in this.
    pub ceilings: Option<Ceilings>,
    /// None: nothing is watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
}

/// What is done to the command's output on its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relay {
    /// Bytes of each stream.
    pub limit: Option<u64>,
    /// Reaching the limit ends the run.
    pub kill: bool,
    /// It is kept for the result.
    pub result: bool,
}

impl Relay {
    pub fn decide(policy: &Policy) -> Option<Relay> {
        let limits = &policy.limits;
        let wanted = limits.output.is_some() || policy.result;
        wanted.then_some(Relay {
            limit: limits.output,
            kill: limits.on_output_limit_kill,
            result: policy.result,
        })
    }
}

/// What the whole tree is held to by the parent. What an rlimit or a tmpfs keeps by itself is not here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ceilings {
    pub memory: Option<u64>,
    pub procs: Option<u64>,
    pub cpu: Option<Duration>,
    /// What the file systems of the writable roots may lose, by whomever.
    pub disk: Option<u64>,
    /// Of memory, processes and processor time; None if none of them is asked for.
    pub mechanism: Option<Mechanism>,
}

impl Ceilings {
    /// None when nothing is left for the parent to do.
    pub fn decide(limits: &Limits, host: &Host) -> Option<Ceilings> {
        let wanted = wanted_of_tree(limits, host);
        if !wanted.any() && limits.disk.is_none() {
            return None;
        }
        Some(Ceilings {
            memory: limits.memory,
            procs: limits.procs.filter(|_| wanted.procs),
            cpu: limits.cpu,
            disk: limits.disk,
            mechanism: wanted.any().then(|| host.cgroup.mechanism()),
        })
    }

    /// For people: what, how much, and who sees to it.
    pub fn rows(&self) -> Vec<(&'static str, String, &'static str)> {
        let counted = self.mechanism.unwrap_or(Mechanism::Sampling).name();
        let bytes = |value: u64| format!("{value} bytes");
        [
            self.memory.map(|value| ("memory", bytes(value), counted)),
            self.procs.map(|value| ("threads", value.to_string(), counted)),
            self.cpu.map(|value| ("processor time", format!("{} s", value.as_secs_f64()), counted)),
            self.disk.map(|value| ("disk loss", bytes(value), DISK)),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// RLIMIT_NPROC bounds a tree alone where the count is that of an own user namespace (Linux 5.14), and never uid 0
/// (getrlimit(2)).
pub fn rlimit_keeps_procs(host: &Host) -> bool {
    host.world == World::User && host.uid != 0
}

/// What needs a control group or sampling.
pub fn wanted_of_tree(limits: &Limits, host: &Host) -> cgroup::Wanted {
    cgroup::Wanted {
        memory: limits.memory.is_some(),
        procs: limits.procs.is_some() && !rlimit_keeps_procs(host),
        cpu: limits.cpu.is_some(),
    }
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
    /// TCP ports that may be bound and listened on; None leaves that to the other layers.
    pub bind: Option<Vec<u16>>,
    /// Denials go to the kernel's audit as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub log: bool,
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
        Promises { kept: promises, waived }: Promises,
    ) -> Result<Plan> {
        let supervision = supervision(policy, host);
        let namespaces = namespaces(policy, host, supervision.is_some());
        refuse::without_view(view, host)?;
        let inet = match (policy.network.net, policy.network.is_ruled(), policy.network.loopback) {
            (Net::Host, ..) => seccomp::Inet::All,
            (Net::None, _, Loopback::Host) => seccomp::Inet::Loopback,
            (Net::None, true, _) => seccomp::Inet::Tcp,
            (Net::None, false, Loopback::Private) if namespaces.contains(&Namespace::Network) => {
                seccomp::Inet::All
            }
            (Net::None, false, _) => seccomp::Inet::None,
        };
        let serves = policy.network.listen != Listen::None;
        let loopback = inet == seccomp::Inet::Loopback;
        let ports = loopback || inet == seccomp::Inet::Tcp;
        // Nothing but the broker connects on the host's loopback; where Landlock has the rule, it says so too.
        let ruled = ports && (!loopback || host.landlock.abi() >= promises::PORTS_ABI);
        let brokered = host.brokered();
        let rules = seccomp::Rules {
            inet,
            sysv_ipc: namespaces.contains(&Namespace::Ipc),
            namespaces: policy.allow.contains(&Allowance::Userns),
            // Without a parent listen(2) cannot be told apart by family, and a socket that was never bound
            // listens on a port of the kernel's choice.
            listen: !ports || serves || loopback,
            broker: seccomp::Brokered {
                metadata: brokered.metadata,
                connect: brokered.connect || loopback,
                listen: serves || loopback,
            },
            // Asked about connect(2) for the sake of addresses, the broker is not what keeps datagrams in.
            unix_datagrams: policy.allow.contains(&Allowance::UnixDatagram) || loopback && !brokered.connect,
            own_processes: namespaces.contains(&Namespace::Pid),
        };
        Ok(Plan {
            version: JSON_VERSION,
            promises,
            waived,
            world: Scenery {
                view: view.places().cloned().collect(),
                ruleset: Ruleset {
                    abi: host.landlock.abi(),
                    connect: ruled.then(|| policy.network.connect.iter().copied().collect()),
                    bind: match &policy.network.listen {
                        Listen::Any => None,
                        // A bound socket takes no connection before it listens, and that the broker rules.
                        Listen::None if loopback => None,
                        Listen::None => ports.then(Vec::new),
                        Listen::Ports(list) => Some(list.iter().copied().collect()),
                    },
                    log: policy.kernel_log,
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
                limits: limits::decide(
                    &policy.limits,
                    host.world == World::User,
                    rlimit_keeps_procs(host),
                    supervision.as_ref(),
                ),
                descriptors: policy.descriptors.clone(),
                environment,
            },
            supervision,
            id: id::Made::default(),
        })
    }

    /// SHA-256 over what was decided by policy: no argv, value, descriptor, inode, or what was merely met.
    pub fn id(&self) -> &str {
        self.id.get_or_make(self)
    }

    pub fn ceilings(&self) -> Option<&Ceilings> {
        self.supervision.as_ref()?.ceilings.as_ref()
    }

    pub fn has(&self, namespace: Namespace) -> bool {
        self.world.namespaces.contains(&namespace)
    }
}

/// Other processes are hidden wherever there is a PID namespace; the end of a caller is followed only when asked for.
fn is_claimed(policy: &Policy, promise: Promise, namespaces: &[Namespace]) -> bool {
    match promise {
        Promise::ProcessHiding => namespaces.contains(&Namespace::Pid),
        Promise::Teardown => policy.require.contains(&promise),
        _ => true,
    }
}

/// What is promised, and what was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promises {
    pub kept: BTreeMap<Promise, Vec<String>>,
    pub waived: BTreeMap<Promise, String>,
}

/// The part of the decision that needs no view: a run that is refused here has looked at nothing yet.
pub fn promises(policy: &Policy, host: &Host) -> Result<Promises> {
    refuse::without_broker(policy, host)?;
    let namespaces = namespaces(policy, host, supervision(policy, host).is_some());
    let (mut kept, mut waived, mut lacking) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    for (promise, outcome) in outcomes(policy, host, &namespaces) {
        match outcome {
            // By the plan that is made, not by one that could be.
            Outcome::Kept(_) if !is_claimed(policy, promise, &namespaces) => {}
            Outcome::Kept(layers) => {
                kept.insert(promise, layers.into_iter().map(str::to_owned).collect());
            }
            Outcome::Lacking(lack) if policy.waive.contains(&promise) && refuse::can_be_waived(promise) => {
                waived.insert(promise, lack.why);
            }
            Outcome::Lacking(lack) if is_wanted(policy, promise, &namespaces) => {
                lacking.push((promise, lack));
            }
            Outcome::Lacking(_) => {}
        }
    }
    refuse::lacking(policy, host, &lacking)?;
    refuse::options(policy, host)?;
    Ok(Promises { kept, waived })
}

/// The default set, what was required, and less nothing: a waiver matters only where a promise is lacking.
pub fn is_wanted(policy: &Policy, promise: Promise, namespaces: &[Namespace]) -> bool {
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
            host.namespaces() && host.landlock.abi() < promises::SCOPES_ABI,
        ),
        ("--timeout", limits.timeout.is_some()),
        ("--listen", policy.network.listen != Listen::None),
        ("--loopback host, which the broker rules by address", policy.network.grants_loopback()),
        ("metadata-scope, which needs a broker without namespaces", host.brokered().metadata),
        ("socket-scope, which needs a broker without namespaces", host.brokered().connect),
        (
            "HOME and TMPDIR, which have to be removed afterwards",
            !host.namespaces() && (policy.state.is_none() || host.private_home),
        ),
        ("--max-output", limits.output.is_some()),
        ("--result json", policy.result),
        ("--max-memory", limits.memory.is_some()),
        ("--max-procs, which the kernel does not hold uid 0 to", wanted_of_tree(limits, host).procs),
        ("--max-cpu", limits.cpu.is_some()),
        ("--max-disk", limits.disk.is_some()),
        ("confine trace", policy.trace.is_some()),
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
        relay: Relay::decide(policy),
        ceilings: Ceilings::decide(limits, host),
        trace: policy.trace,
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
