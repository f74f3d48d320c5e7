//! Promise by promise: which layers of this host keep it, or what is lacking.

use super::{Ceilings, Namespace};
use crate::enforce::cgroup::Mechanism;
use crate::host::{Host, Lack, Landlock, World};
use crate::policy::{Listen, Net, Policy, Promise};
use crate::supervise::broker::probe::Abilities;
use crate::supervise::ceilings::DISK;
use crate::view::sockets::RESOLVE_UNIX_ABI;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Kept(Vec<&'static str>),
    Lacking(Lack),
}

/// Signal and abstract-socket scopes, Linux 6.12.
pub const SCOPES_ABI: u32 = 6;
/// Truncation is ruled, Linux 6.2.
const TRUNCATE_ABI: u32 = 3;
/// Renaming between directories can be granted, Linux 5.19: below it git and cargo break.
const REFER_ABI: u32 = 2;
/// TCP ports, Linux 6.7.
pub const PORTS_ABI: u32 = 4;

/// Every promise, in the order in which they are documented.
pub fn outcomes(policy: &Policy, host: &Host, namespaces: &[Namespace]) -> Vec<(Promise, Outcome)> {
    let facts = Facts { policy, host, view: namespaces.contains(&Namespace::Mount), namespaces };
    Promise::ALL.into_iter().map(|promise| (promise, facts.outcome(promise))).collect()
}

struct Facts<'a> {
    policy: &'a Policy,
    host: &'a Host,
    view: bool,
    namespaces: &'a [Namespace],
}

impl Facts<'_> {
    fn outcome(&self, promise: Promise) -> Outcome {
        match promise {
            Promise::WriteScope => self.with_view("ruling writes"),
            Promise::ReadScope => self.with_view("ruling reads"),
            Promise::MetadataScope if self.view => kept(&["view"]),
            Promise::MetadataScope => match &self.host.broker {
                Some(Abilities { metadata: Ok(()), .. }) => kept(&["broker"]),
                Some(Abilities { metadata: Err(why), .. }) => self
                    .no_view(&format!("the broker cannot be had ({why}), Landlock does not rule metadata")),
                None => self.no_view("Landlock does not rule chmod, chown, utime and xattr"),
            },
            Promise::PathHiding if self.view => kept(&["view"]),
            Promise::PathHiding => self.no_view("names can be hidden by a view only"),
            Promise::AliasFree if self.policy.waive.contains(&Promise::AliasFree) => {
                lacking("the scan was left out as asked", None)
            }
            Promise::AliasFree => kept(&["scan"]),
            Promise::NetworkScope => self.network(),
            Promise::SocketScope => self.sockets(),
            Promise::ProcessScope => match landlock_lack(self.host.landlock, SCOPES_ABI, "ruling signals") {
                None => kept(&["landlock", "seccomp"]),
                Some(_) if self.namespaces.contains(&Namespace::Pid) => kept(&["pid-namespace", "seccomp"]),
                Some(lack) => Outcome::Lacking(lack),
            },
            Promise::ProcessHiding => {
                self.with_pid_namespace("other processes are hidden by a PID namespace only")
            }
            Promise::NoGain => kept(&["no-new-privs", "capabilities", "securebits", "seccomp"]),
            Promise::CleanStart => kept(&["descriptors", "environment", "keyring", "signals"]),
            Promise::Ceilings => self.ceilings(),
            Promise::Teardown => self.with_pid_namespace(
                "only the end of a PID namespace leaves nothing, however its parent died",
            ),
        }
    }

    /// Kept by Landlock and a view; by Landlock alone only where it rules truncation.
    fn with_view(&self, what: &str) -> Outcome {
        let floor = if self.view { REFER_ABI } else { TRUNCATE_ABI };
        match landlock_lack(self.host.landlock, floor, what) {
            Some(lack) => Outcome::Lacking(lack),
            None if self.view => kept(&["view", "landlock"]),
            None => kept(&["landlock"]),
        }
    }

    fn no_view(&self, why: &str) -> Outcome {
        match &self.host.world {
            World::Missing(lack) => {
                Outcome::Lacking(Lack { why: format!("{why}, and {}", lack.why), help: lack.help.clone() })
            }
            // Whoever asks has seen that there is no view.
            World::User | World::Privileged => lacking(why, None),
        }
    }

    fn with_pid_namespace(&self, why: &str) -> Outcome {
        if self.view { kept(&["pid-namespace"]) } else { self.no_view(why) }
    }

    fn network(&self) -> Outcome {
        if self.policy.network.net == Net::Host {
            return kept(&["seccomp"]);
        }
        let network = &self.policy.network;
        let brokered = network.listen != Listen::None || network.grants_loopback();
        let ports = landlock_lack(self.host.landlock, PORTS_ABI, "ruling TCP ports");
        if network.is_ruled() || network.grants_loopback() {
            return match ports {
                None if brokered => kept(&["landlock", "seccomp", "broker"]),
                None => kept(&["landlock", "seccomp"]),
                Some(lack) if network.is_ruled() => Outcome::Lacking(lack),
                Some(_) => kept(&["seccomp", "broker"]),
            };
        }
        if self.namespaces.contains(&Namespace::Network) {
            kept(&["network-namespace", "seccomp"])
        } else {
            kept(&["seccomp"])
        }
    }

    fn sockets(&self) -> Outcome {
        if let Some(lack) = landlock_lack(self.host.landlock, SCOPES_ABI, "ruling abstract sockets")
            && !self.namespaces.contains(&Namespace::Network)
        {
            return Outcome::Lacking(lack);
        }
        match (self.view, self.host.landlock.abi() >= RESOLVE_UNIX_ABI) {
            (true, true) => kept(&["view", "ipc-namespace", "landlock"]),
            (true, false) => kept(&["view", "ipc-namespace"]),
            (false, true) => kept(&["landlock", "seccomp"]),
            (false, false) => match &self.host.broker {
                Some(Abilities { connect: Ok(()), .. }) => kept(&["broker", "landlock", "seccomp"]),
                Some(Abilities { connect: Err(why), .. }) => self.no_view(&format!(
                    "the broker cannot be had ({why}), this kernel's Landlock does not rule pathname sockets"
                )),
                None => self.no_view("this kernel's Landlock does not rule pathname sockets"),
            },
        }
    }

    fn ceilings(&self) -> Outcome {
        let mut layers = vec!["rlimits", "tmpfs-size"];
        if let Some(ceilings) = Ceilings::decide(&self.policy.limits, self.host) {
            let sampled = ceilings.mechanism == Some(Mechanism::Sampling);
            let sealed = self.host.own_pid_max && self.namespaces.contains(&Namespace::Pid);
            if sampled && ceilings.procs.is_some() && !sealed {
                // A fork bomb is faster than whoever counts it.
                return lacking(
                    "--max-procs needs a pids control group here, or an ordinary user in a user namespace, or a PID \
                     namespace of Linux 6.14",
                    Some("run as an ordinary user"),
                );
            }
            layers.extend(ceilings.mechanism.map(Mechanism::name));
            layers.extend(ceilings.disk.map(|_| DISK));
        }
        kept(&layers)
    }
}

fn kept(layers: &[&'static str]) -> Outcome {
    Outcome::Kept(layers.to_vec())
}

fn lacking(why: &str, help: Option<&str>) -> Outcome {
    Outcome::Lacking(Lack { why: why.to_owned(), help: help.map(str::to_owned) })
}

/// Below these the promises that Landlock alone keeps cannot be kept.
fn landlock_lack(landlock: Landlock, wanted: u32, for_what: &str) -> Option<Lack> {
    let (why, help) = match landlock {
        Landlock::Available { abi } if abi >= wanted => return None,
        Landlock::Available { abi } => (
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
    Some(Lack { why, help: Some(help) })
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
