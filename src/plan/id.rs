//! The policy id: equal plans have equal ids, and nothing that differs from run to run under one policy is in it.

use std::fmt::Write;

use serde_json::{Value, json};

use super::Plan;
use crate::view::Origin;

pub fn of(plan: &Plan) -> String {
    // serde_json's maps are sorted by key, so one plan has one text.
    let places: Vec<Value> = plan
        .world
        .view
        .iter()
        .filter(|place| place.origin != Origin::Found)
        .map(|place| json!(place))
        .collect();
    let environment: Vec<&String> =
        plan.process.environment.iter().filter(|name| !name.starts_with("CONFINE")).collect();
    let canonical = json!({
        "version": plan.version,
        "promises": plan.promises,
        "waived": plan.waived.keys().collect::<Vec<_>>(),
        "namespaces": plan.world.namespaces,
        "view": places,
        "ruleset": plan.world.ruleset,
        "loopback": plan.world.loopback,
        "tmp": plan.world.tmp,
        "uid": plan.process.uid,
        "gid": plan.process.gid,
        "switch_user": plan.process.switch_user,
        "seccomp": plan.process.seccomp,
        "limits": plan.process.limits,
        "environment": environment,
        "supervision": plan.supervision,
    });
    let mut id = String::with_capacity(64);
    for byte in hmac_sha256::Hash::hash(canonical.to_string().as_bytes()) {
        let _ = write!(id, "{byte:02x}");
    }
    id
}
