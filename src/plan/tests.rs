use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use std::result::Result as Either;

use super::*;
use crate::host::{Lack, Landlock};
use crate::supervise::broker::probe::Abilities;
use crate::view::{Access, Entry, Origin, Source};

fn host(abi: u32, world: World) -> Host {
    let landlock = match abi {
        0 => Landlock::NotBuilt,
        abi => Landlock::Available { abi },
    };
    Host {
        uid: 1000,
        gid: 1000,
        landlock,
        world,
        broker: None,
        cgroup: cgroup::Site::Nowhere,
        own_pid_max: false,
        private_home: false,
    }
}

fn missing() -> World {
    World::Missing(Lack { why: "there is none".into(), help: Some("get some".into()) })
}

fn policy(waive: &[Promise]) -> Policy {
    Policy {
        workspaces: vec!["/w".into()],
        state: Some("/s".into()),
        waive: waive.iter().copied().collect(),
        ..Policy::default()
    }
}

fn decide(policy: &Policy, host: &Host) -> Result<Plan> {
    let promises = promises(policy, host)?;
    Plan::decide(policy, &View::empty("/h".into()), host, (1000, 1000), vec!["PATH".into()], promises)
}

const SECOND_TIER: &[Promise] = &[Promise::MetadataScope, Promise::SocketScope];

#[test]
fn without_namespaces_landlock_below_abi_3_is_refused_whatever_is_waived() {
    for abi in 0..=9 {
        let kept = decide(&policy(&Promise::ALL), &host(abi, missing()));
        assert_eq!(kept.is_ok(), abi >= 3, "ABI {abi}: {kept:?}");
    }
    let error = decide(&policy(SECOND_TIER), &host(2, missing())).unwrap_err();
    assert!(error.to_string().contains(
        "write-scope and read-scope and process-scope cannot be kept: ruling writes needs Landlock ABI 3"
    ));
    assert_eq!(error.status(), 125);
}

#[test]
fn with_namespaces_abi_2_keeps_what_the_view_keeps() {
    for abi in 0..=9 {
        let kept = decide(&policy(&[]), &host(abi, World::User));
        assert_eq!(kept.is_ok(), abi >= 2, "ABI {abi}: {kept:?}");
    }
}

#[test]
fn below_abi_6_process_scope_needs_a_pid_namespace_or_a_waiver() {
    let plan = decide(&policy(&[]), &host(5, World::User)).unwrap();
    assert!(plan.has(Namespace::Pid) && plan.promises[&Promise::ProcessScope][0] == "pid-namespace");
    let error = decide(&policy(SECOND_TIER), &host(5, missing())).unwrap_err();
    assert!(
        error.to_string().starts_with("process-scope cannot be kept: ruling signals needs Landlock ABI 6")
    );
    assert!(error.hint().unwrap().contains("--waive process-scope"));
    let waived = [SECOND_TIER, &[Promise::ProcessScope]].concat();
    assert!(
        decide(&policy(&waived), &host(5, missing())).unwrap().waived.contains_key(&Promise::ProcessScope)
    );
}

#[test]
fn every_lacking_promise_is_told_at_once_with_the_whole_remedy() {
    let mut asked = policy(&[]);
    asked.state = None;
    let error = decide(&asked, &host(7, missing())).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("metadata-scope and socket-scope cannot be kept: Landlock does not rule chmod"));
    assert_eq!(text.matches("there is none").count(), 1, "{text}");
    assert_eq!(
        error.hint(),
        Some("get some; or give them up with `--waive metadata-scope --waive socket-scope`")
    );
}

/// A hint that is pasted onto the line must not be refused as well.
#[test]
fn what_is_required_is_left_out_and_not_waived() {
    let hint = |require: &[Promise]| {
        let mut asked = policy(SECOND_TIER);
        asked.require = require.iter().copied().collect();
        decide(&asked, &host(7, missing())).unwrap_err().hint().unwrap().to_owned()
    };
    assert!(
        hint(&[Promise::Teardown])
            .ends_with("leave out `--require teardown` (`--waive teardown` where a profile asks for it)")
    );
    assert!(
        hint(&Promise::ALL).contains("leave out `--strict` (`--waive path-hiding --waive process-hiding")
    );
    let mut asked = policy(&[]);
    asked.require = [Promise::Teardown, Promise::SocketScope].into();
    asked.state = None;
    let error = decide(&asked, &host(7, missing())).unwrap_err();
    assert!(
        error.hint().unwrap().contains(
            "leave out `--require socket-scope --require teardown` and give them up with \
             `--waive metadata-scope --waive socket-scope`"
        ),
        "{error:?}"
    );
}

#[test]
fn a_private_home_without_a_view_needs_a_parent_that_removes_it() {
    let mut asked = policy(SECOND_TIER);
    assert_eq!(decide(&asked, &host(7, missing())).unwrap().supervision, None);
    asked.state = None;
    let supervision = decide(&asked, &host(7, missing())).unwrap().supervision.unwrap();
    assert_eq!(supervision.reasons, ["HOME and TMPDIR, which have to be removed afterwards"]);
    assert_eq!(decide(&asked, &host(7, World::User)).unwrap().supervision, None);
    // It stands in the policy like one that was named, and is removed all the same.
    asked.state = Some("/tmp/fresh".into());
    let made = Host { private_home: true, ..host(7, missing()) };
    assert!(decide(&asked, &made).unwrap().supervision.is_some());
}

fn with_broker(metadata: Either<(), &str>, connect: Either<(), &str>) -> Host {
    let owned = |ability: Either<(), &str>| ability.map_err(str::to_owned);
    let broker = Abilities { metadata: owned(metadata), connect: owned(connect) };
    Host { broker: Some(broker), ..host(7, missing()) }
}

#[test]
fn without_namespaces_the_broker_keeps_metadata_and_sockets() {
    let plan = decide(&policy(&[]), &with_broker(Ok(()), Ok(()))).unwrap();
    assert_eq!(plan.promises[&Promise::MetadataScope], ["broker"]);
    assert_eq!(plan.promises[&Promise::SocketScope][0], "broker");
    assert!(plan.process.seccomp.broker.metadata && plan.process.seccomp.broker.connect);
    assert_eq!(plan.supervision.unwrap().reasons.len(), 2);
    // From Landlock ABI 9 on connect needs no broker.
    let newer = Landlock::Available { abi: 9 };
    let plan = decide(&policy(&[]), &Host { landlock: newer, ..with_broker(Ok(()), Ok(())) }).unwrap();
    assert_eq!(plan.promises[&Promise::SocketScope], ["landlock", "seccomp"]);
    assert!(plan.process.seccomp.broker.metadata && !plan.process.seccomp.broker.connect);
}

#[test]
fn what_the_broker_cannot_do_is_refused_with_its_reason() {
    let error = decide(&policy(&[]), &with_broker(Ok(()), Err("no pidfd_getfd"))).unwrap_err().to_string();
    assert!(
        error.starts_with("socket-scope cannot be kept: ") && error.contains("no pidfd_getfd"),
        "{error}"
    );
    let error = decide(&policy(&[]), &with_broker(Err("busy"), Err("busy"))).unwrap_err().to_string();
    assert!(error.starts_with("metadata-scope and socket-scope cannot be kept: "), "{error}");
}

#[test]
fn a_waiver_of_what_is_kept_changes_nothing() {
    let plain = decide(&policy(&[]), &host(7, World::User)).unwrap();
    let waived = decide(&policy(SECOND_TIER), &host(7, World::User)).unwrap();
    assert_eq!(plain, waived);
}

/// xorshift: the same cases on every run, without a dependency.
struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }

    fn name(&mut self) -> OsString {
        let length = 1 + self.next(12);
        OsString::from_vec(
            (0..length).map(|_| [b'a', b' ', b'\n', b'"', 0xff, 0xc3, 0x1b][self.next(7) as usize]).collect(),
        )
    }

    fn path(&mut self) -> PathBuf {
        let mut path = PathBuf::from("/");
        for _ in 0..1 + self.next(4) {
            path.push(self.name());
        }
        path
    }

    fn place(&mut self) -> Place {
        let backing = match self.next(10) {
            0 => Backing::Bind,
            1 => Backing::Veiled,
            2 => Backing::Sealed,
            3 => Backing::Layer,
            4 => Backing::Fresh { mode: self.next(0o7777) as u32 },
            5 => Backing::Copy,
            6 => Backing::Link { to: self.path() },
            7 => Backing::Cover { directory: self.next(2) == 0 },
            8 => Backing::KeptLayer,
            _ => Backing::Itself,
        };
        Place {
            path: self.path(),
            access: [Access::Hidden, Access::Read, Access::Write][self.next(3) as usize],
            backing,
            origin: [Origin::Table, Origin::Option, Origin::Found][self.next(3) as usize],
            reason: self.name().to_string_lossy().into_owned(),
        }
    }

    fn case(&mut self) -> (Policy, View, Host, Vec<String>) {
        let mut asked = policy(if self.next(2) == 0 { &[] } else { SECOND_TIER });
        asked.limits.tmp = (self.next(2) == 0).then(|| self.next(1 << 40));
        asked.limits.open_files = (self.next(2) == 0).then(|| self.next(1 << 20));
        asked.limits.timeout = (self.next(4) == 0).then(|| Duration::from_millis(self.next(1 << 40)));
        for _ in 0..self.next(3) {
            asked.network.connect.insert(1 + self.next(65535) as u16);
        }
        let mut view = View::empty(self.path());
        for _ in 0..self.next(8) {
            let place = self.place();
            view.entries.insert(place.path.clone(), Entry { place, source: Source::None });
        }
        let world = if self.next(2) == 0 { World::User } else { World::Privileged };
        let names = (0..self.next(6)).map(|_| self.name().to_string_lossy().into_owned()).collect();
        (asked, view, host(6 + self.next(4) as u32, world), names)
    }
}

#[test]
fn a_plan_comes_back_from_its_text_as_it_was_and_with_its_id() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..2000 {
        let (policy, view, host, names) = random.case();
        let promises = promises(&policy, &host).unwrap();
        let plan = Plan::decide(&policy, &view, &host, (1, 2), names, promises).unwrap();
        plan.id();
        let text = serde_json::to_string(&plan).unwrap();
        let back: Plan = serde_json::from_str(&text).unwrap();
        assert_eq!(back, plan);
        assert_eq!(back.id(), plan.id());
    }
}

#[test]
fn what_differs_from_run_to_run_under_one_policy_is_not_in_the_id() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for _ in 0..500 {
        let (policy, view, host, names) = random.case();
        let promises = promises(&policy, &host).unwrap();
        let plan = Plan::decide(&policy, &view, &host, (1, 2), names, promises).unwrap();
        let mut other = plan.clone();
        other.process.descriptors = vec![random.next(1000) as i32];
        other.process.environment.push("CONFINE_NOTE".into());
        let found = Place { origin: Origin::Found, ..random.place() };
        other.world.view.push(found);
        for why in other.waived.values_mut() {
            why.push_str(", today");
        }
        assert_ne!(other, plan);
        assert_eq!(other.id(), plan.id());
    }
}

#[test]
fn what_is_decided_is_in_the_id() {
    let plan = decide(&policy(&[]), &host(7, World::User)).unwrap();
    type Change = fn(&mut Plan);
    let changes: &[(&str, Change)] = &[
        ("promises", |plan| drop(plan.promises.remove(&Promise::ReadScope))),
        ("waived", |plan| drop(plan.waived.insert(Promise::ReadScope, String::new()))),
        ("namespaces", |plan| plan.world.namespaces.clear()),
        ("view", |plan| {
            let mut random = Random(7);
            plan.world.view.push(Place { origin: Origin::Option, ..random.place() });
        }),
        ("ruleset", |plan| plan.world.ruleset.connect = Some(vec![443])),
        ("loopback", |plan| plan.world.loopback = false),
        ("tmp", |plan| plan.world.tmp = Some(1)),
        ("uid", |plan| plan.process.uid += 1),
        ("seccomp", |plan| plan.process.seccomp.namespaces = true),
        ("limits", |plan| plan.process.limits.clear()),
        ("environment", |plan| plan.process.environment.clear()),
    ];
    for (what, change) in changes {
        let mut other = plan.clone();
        change(&mut other);
        assert_ne!(other.id(), plan.id(), "{what}");
    }
}

#[test]
fn what_only_a_parent_keeps_is_claimed_only_where_there_is_one() {
    let beyond = [Promise::ProcessHiding, Promise::Teardown];
    let claimed = |policy: &Policy, abi| {
        let plan = decide(policy, &host(abi, World::User)).unwrap();
        beyond.map(|promise| plan.promises.contains_key(&promise))
    };
    assert_eq!(claimed(&policy(&[]), 7), [false, false]);
    // The PID namespace that keeps process-scope hides processes too, but a dead caller does not end it.
    assert_eq!(claimed(&policy(&[]), 5), [true, false]);
    for (promise, expected) in [(beyond[0], [true, false]), (beyond[1], [true, true])] {
        let mut asked = policy(&[]);
        asked.require = [promise].into();
        assert_eq!(claimed(&asked, 7), expected, "{promise}");
    }
}
