//! The policy id: equal plans have equal ids, and nothing that differs from run to run under one policy is in it.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Serialize;

use super::{Namespace, Plan, Ruleset, Supervision};
use crate::digest::sha256;
use crate::enforce::{limits, seccomp};
use crate::policy::Promise;
use crate::view::{Origin, Place};

/// The canonical form: fields in the order of the alphabet, maps sorted by key, so that one plan has one text.
/// Written straight to bytes, since building values first costs more than all the hashing.
#[derive(Serialize)]
struct Canonical<'a> {
    environment: Vec<&'a String>,
    gid: u32,
    limits: &'a [limits::Limit],
    loopback: bool,
    namespaces: &'a [Namespace],
    promises: &'a BTreeMap<Promise, Vec<String>>,
    ruleset: &'a Ruleset,
    seccomp: &'a seccomp::Rules,
    supervision: &'a Option<Supervision>,
    switch_user: bool,
    tmp: Option<u64>,
    uid: u32,
    version: u32,
    view: Vec<&'a Place>,
    waived: Vec<&'a Promise>,
}

/// The id, once it has been asked for. It is no part of what a plan is: plans are equal without it, and a copy,
/// which may be changed, makes its own.
#[derive(Debug, Default)]
pub struct Made(OnceLock<String>);

impl Made {
    pub fn get_or_make(&self, plan: &Plan) -> &str {
        self.0.get_or_init(|| of(plan))
    }
}

impl Clone for Made {
    fn clone(&self) -> Self {
        Made::default()
    }
}

impl PartialEq for Made {
    fn eq(&self, _: &Made) -> bool {
        true
    }
}

impl Eq for Made {}

fn of(plan: &Plan) -> String {
    let (world, process) = (&plan.world, &plan.process);
    let canonical = Canonical {
        environment: process.environment.iter().filter(|name| !name.starts_with("CONFINE")).collect(),
        gid: process.gid,
        limits: &process.limits,
        loopback: world.loopback,
        namespaces: &world.namespaces,
        promises: &plan.promises,
        ruleset: &world.ruleset,
        seccomp: &process.seccomp,
        supervision: &plan.supervision,
        switch_user: process.switch_user,
        tmp: world.tmp,
        uid: process.uid,
        version: plan.version,
        view: world.view.iter().filter(|place| place.origin != Origin::Found).collect(),
        waived: plan.waived.keys().collect(),
    };
    // Numbers, names and text: nothing in it can fail to be written.
    sha256(&serde_json::to_vec(&canonical).unwrap_or_default())
}
