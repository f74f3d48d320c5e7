//! `confine explain`: the plan of a run, and nothing of the run.

use std::ffi::OsString;
use std::fmt::Write;

use serde_json::json;

use super::run::{self, Prepared};
use crate::cli::Invocation;
use crate::enforce::limits::What;
use crate::enforce::seccomp::Inet;
use crate::enforce::{credentials, writable};
use crate::error::{Error, Result, Told, paste, show};
use crate::plan::{Ceilings, JSON_VERSION, Namespace, Plan};
use crate::policy::{Origin, Policy, Setting};
use crate::record::{Record, Timings};
use crate::view::{Access, Backing, Place, Purpose};

/// What is printed, and the refusal that a run would meet, if it would.
pub struct Explained {
    pub text: String,
    pub refusal: Option<Error>,
}

pub fn run(invocation: &Invocation, json: bool) -> Result<Explained> {
    let policy = &invocation.policy;
    let mut record = Record::open(policy.status_fd)?;
    let mut timings = Timings::new(policy.timings);
    let entered = Record::foresee(policy).and_then(|()| run::enter(policy, &mut timings));
    let prepared = entered.and_then(|entered| {
        let prepared = entered.prepare(policy, Purpose::Explain, &mut timings)?;
        record.refuse_handed(policy, &prepared.caller)?;
        record.judge(&prepared.view, policy)?;
        // Nothing else is done with the identity that is given up here.
        credentials::apply(&prepared.plan.process)?;
        writable::foresee(&prepared.view, prepared.plan.has(Namespace::Mount))?;
        Ok(prepared)
    });
    timings.print();
    Ok(match prepared {
        Ok(prepared) => {
            let text =
                if json { format!("{}\n", object(&prepared, policy)) } else { prose(&prepared, policy) };
            Explained { text, refusal: None }
        }
        Err(error) => {
            record.refused(&error);
            let object = json!({ "version": JSON_VERSION, "refused": Told::from(&error) });
            Explained { text: if json { format!("{object}\n") } else { String::new() }, refusal: Some(error) }
        }
    })
}

/// The text of a profile.
pub fn profile(name: &str, text: &str, json: bool) -> String {
    match json {
        true => format!("{}\n", json!({ "version": JSON_VERSION, "profile": name, "text": text })),
        false => text.to_owned(),
    }
}

/// Who asked for what: each word that is in effect.
fn settings(policy: &Policy) -> Vec<serde_json::Value> {
    let one = |setting: &Setting| {
        let (file, line) = match &setting.origin {
            Origin::CommandLine => (None, None),
            Origin::File { file, line } => (Some(file.to_string()), Some(*line)),
        };
        json!({
            "option": setting.option,
            "value": (!setting.value.is_empty()).then(|| setting.value.to_string_lossy()),
            "file": file,
            "line": line,
        })
    };
    policy.settings.iter().map(one).collect()
}

fn names(list: &[OsString]) -> Vec<String> {
    list.iter().map(|name| name.to_string_lossy().into_owned()).collect()
}

fn object(prepared: &Prepared, policy: &Policy) -> serde_json::Value {
    let Prepared { plan, view, environment, .. } = prepared;
    json!({
        "version": JSON_VERSION,
        "policy": plan.id(),
        "plan": plan,
        "settings": settings(policy),
        "dropped": names(&environment.dropped),
        "absent": names(&environment.absent),
        "unguarded": view.unguarded.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
        "scan": view.scan.as_ref().map(|report| {
            json!({ "entries": report.entries, "microseconds": report.elapsed.as_micros() as u64 })
        }),
    })
}

fn prose(prepared: &Prepared, policy: &Policy) -> String {
    let Prepared { plan, view, environment, .. } = prepared;
    let mut text = format!("policy {}\n\npromises\n", plan.id());
    for (promise, layers) in &plan.promises {
        let _ = writeln!(text, "  {:<15} {}", promise.name(), layers.join(", "));
    }
    if !plan.waived.is_empty() {
        text.push_str("\ngiven up\n");
    }
    for (promise, why) in &plan.waived {
        let _ = writeln!(text, "  {:<15} {why}", promise.name());
    }
    text.push_str("\nasked for\n");
    for setting in &policy.settings {
        let value =
            if setting.value.is_empty() { String::new() } else { format!(" {}", paste(&setting.value)) };
        let asked = format!("{}{value}", setting.option);
        let _ = writeln!(text, "  {asked:<30} {}", setting.origin);
    }
    if let Some(supervision) = &plan.supervision {
        let _ = writeln!(text, "\na parent stays, for\n  {}", supervision.reasons.join("\n  "));
    }
    text.push_str("\nview\n");
    for place in &plan.world.view {
        let path = show(place.path.as_os_str()).to_string();
        let _ = writeln!(text, "  {:<6} {:<8} {path}  ({})", access(place), backing(place), place.reason);
    }
    if !view.unguarded.is_empty() {
        text.push_str("\nnot guarded on this host, though they run by themselves outside\n");
        for path in &view.unguarded {
            let _ = writeln!(text, "  {}", show(path.as_os_str()));
        }
    }
    let _ = writeln!(text, "\nnetwork\n  {}", network(plan));
    text.push_str("\nlimits\n");
    for limit in &plan.process.limits {
        let (what, scope) = match limit.what {
            What::Procs => ("threads", "of the whole tree"),
            What::Core => ("core file", "bytes for each process"),
            What::FileSize => ("file size", "bytes for each process"),
            What::OpenFiles => ("open files", "for each process"),
            What::Data => ("private memory", "bytes for each process, behind the sampling"),
        };
        let _ = writeln!(text, "  {what:<15} {} {scope}", limit.value);
    }
    for (what, value, mechanism) in plan.ceilings().into_iter().flat_map(Ceilings::rows) {
        let _ = writeln!(text, "  {what:<15} {value} of the whole tree, by {mechanism}");
    }
    if plan.has(Namespace::Mount) {
        match plan.world.tmp {
            Some(bytes) => text.push_str(&format!("  private files   {bytes} bytes in all\n")),
            None => text.push_str("  private files   a quarter of the memory in all\n"),
        }
    }
    text.push_str("\nenvironment, names only\n");
    let mut list = |title: &str, names: &[String]| {
        if !names.is_empty() {
            let shown: Vec<String> = names.iter().map(|name| bare(name)).collect();
            let _ = writeln!(text, "  {title}: {}", shown.join(" "));
        }
    };
    list("passed", &plan.process.environment);
    list("dropped", &names(&environment.dropped));
    list("asked for and not set", &names(&environment.absent));
    match &view.scan {
        Some(report) => {
            let milliseconds = report.elapsed.as_micros() as f64 / 1000.0;
            let _ = writeln!(text, "\nscan\n  {} entries in {milliseconds:.1} ms", report.entries);
        }
        None => text.push_str("\nscan\n  none\n"),
    }
    text
}

fn access(place: &Place) -> &'static str {
    match place.access {
        Access::Hidden => "hidden",
        Access::Read => "read",
        Access::Write => "write",
    }
}

fn backing(place: &Place) -> &'static str {
    match place.backing {
        Backing::Bind => "host",
        Backing::Kept => "kept",
        Backing::Veiled => "veiled",
        Backing::Sealed => "sealed",
        Backing::Layer => "layer",
        Backing::KeptLayer => "kept layer",
        Backing::Fresh { .. } => "private",
        Backing::Copy => "copy",
        Backing::Link { .. } => "link",
        Backing::Cover { .. } => "cover",
        Backing::Device => "device",
        Backing::Terminal | Backing::Terminals => "terminal",
        Backing::Proc => "proc",
        Backing::Sys => "sys",
        Backing::Itself => "guard",
        Backing::Lifted => "host",
    }
}

fn network(plan: &Plan) -> String {
    match (plan.process.seccomp.inet, plan.has(Namespace::Network)) {
        (Inet::All, true) => "none but a private loopback".to_owned(),
        (Inet::All, false) => "the host's".to_owned(),
        (Inet::Loopback, _) => {
            let ports = plan.world.ruleset.connect.as_deref().unwrap_or_default();
            let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
            let more = if ports.is_empty() {
                String::new()
            } else {
                format!("; to port {} of any address", ports.join(", "))
            };
            format!("the host's loopback, TCP only, every service there included{more}; no UDP")
        }
        (Inet::Tcp, _) => {
            let ports = plan.world.ruleset.connect.as_deref().unwrap_or_default();
            let list = |ports: &[u16]| ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
            let to = if ports.is_empty() { "no".to_owned() } else { list(ports) };
            let from = match plan.world.ruleset.bind.as_deref() {
                None => "listening on any port".to_owned(),
                Some([]) => "no listening".to_owned(),
                Some(ports) => format!("listening on port {}", list(ports)),
            };
            format!("TCP to port {to} of any address; no UDP, {from}")
        }
        (Inet::None, _) if plan.has(Namespace::Mount) => "none, no loopback either".to_owned(),
        (Inet::None, _) => "none, no loopback either: a private one needs a network namespace".to_owned(),
    }
}

/// A variable's name is almost always plain; one that is not cannot drive a terminal.
fn bare(name: &str) -> String {
    let plain = name.bytes().all(|byte| byte.is_ascii_graphic());
    if plain { name.to_owned() } else { show(name.as_ref()).to_string() }
}
