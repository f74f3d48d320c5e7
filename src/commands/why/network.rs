//! Ports of hosts, and abstract sockets.

use std::ffi::OsStr;
use std::net::IpAddr;

use super::answer::{Answer, From, Rule};
use crate::enforce::seccomp::Inet;
use crate::plan::facts::Facts;
use crate::plan::{Namespace, Plan};
use crate::policy::Promise;

const LOCAL: &str =
    "it is a service of this machine: debuggers, databases and agents there act on what they are told";

pub fn judge(facts: &Facts<'_>, subject: &OsStr, host: &str, port: u16) -> Answer {
    let plan = &facts.plan;
    let mut answer = Answer::about(subject, "network");
    let local = is_local(host);
    let bind = plan.world.ruleset.bind.as_ref();
    let serves = plan.process.seccomp.listen && bind.is_none_or(|ports| ports.contains(&port));
    let (connect, listen, from, text, option) = match (plan.process.seccomp.inet, own_network(plan)) {
        (Inet::All, true) => (
            false,
            false,
            From::Default,
            "a network of its own: only what is started inside listens there",
            None,
        ),
        (Inet::All, false) => {
            (true, serves, From::Option, "the host's network as a whole", Some("--net host".to_owned()))
        }
        (Inet::Loopback, _) => {
            let own = is_loopback(host);
            let named = plan.world.ruleset.connect.iter().flatten().any(|known| *known == port);
            let text = match (own, named) {
                (true, _) => "TCP on the host's loopback",
                (false, true) => "TCP to this port of any host",
                (false, false) => "TCP on the host's loopback and to the named ports only",
            };
            let option = if own {
                Some("--loopback host".to_owned())
            } else {
                named.then(|| format!("--connect {port}"))
            };
            (own || named, own, if option.is_some() { From::Option } else { From::Default }, text, option)
        }
        (Inet::Tcp, _) => {
            let allowed = plan.world.ruleset.connect.iter().flatten().any(|known| *known == port);
            let text = if allowed { "TCP to this port of any host" } else { "TCP to the named ports only" };
            let option = if allowed {
                Some(format!("--connect {port}"))
            } else if serves {
                Some(if bind.is_none() { "--listen any".to_owned() } else { format!("--listen {port}") })
            } else {
                None
            };
            (allowed, serves, if option.is_some() { From::Option } else { From::Default }, text, option)
        }
        (Inet::None, _) => {
            (false, false, From::Default, "no socket of the internet families can be made", None)
        }
    };
    (answer.connectable, answer.listenable) = (Some(connect), Some(listen));
    answer.rule = Rule { from, text: text.to_owned(), option, ..Rule::default() };
    match (plan.process.seccomp.inet, own_network(plan)) {
        (Inet::All, true) if local => {
            answer.note(
                "the command reaches its own servers there (a private loopback), and none of the host's",
            );
        }
        (Inet::Tcp, _) if connect => answer.note("over TCP only; names resolve with `--connect 53`"),
        _ => {}
    }
    if !connect {
        answer.suggest(format!("--connect {port}"), local.then(|| LOCAL.to_owned()));
        if !host.is_empty() && host.parse::<IpAddr>().is_err() && !local && port != 53 {
            answer.note(format!(
                "the name resolves with `--connect 53` besides: `--connect {port} --connect 53`"
            ));
        }
        if !listen {
            answer.note(format!("to serve there: `--listen {port}`"));
        }
        answer.note("for UDP and everything else: `--net host`");
    } else if local {
        answer.note(format!("careful: {LOCAL}"));
    }
    answer
}

/// What no option opens: only where namespaces and Landlock are both too old is anything reached.
pub fn abstract_socket(facts: &Facts<'_>, subject: &OsStr) -> Answer {
    let plan = &facts.plan;
    let mut answer = Answer::about(subject, "abstract");
    let scoped = plan.world.ruleset.abi >= 6;
    let layers = plan.promises.get(&Promise::SocketScope).map(|layers| layers.join(", "));
    let apart = scoped || own_network(plan) || plan.process.seccomp.broker.connect;
    answer.connectable = Some(!apart);
    answer.rule.text = match (apart, layers) {
        (true, Some(layers)) => format!("socket-scope: no other program's abstract socket ({layers})"),
        (true, None) => "no other program's abstract socket".to_owned(),
        (false, _) => "this host cannot keep abstract sockets apart, and socket-scope was waived".to_owned(),
    };
    if apart {
        answer.note("those that are made inside are the command's own; no option opens another's");
    }
    answer
}

fn own_network(plan: &Plan) -> bool {
    plan.has(Namespace::Network)
}

/// What `--loopback host` opens: an address that stays on this machine whatever its routes say.
fn is_loopback(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => is_local(host) && !host.is_empty(),
    }
}

/// Names that mean this machine, without asking anybody.
fn is_local(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(address) => address.is_loopback() || address.is_unspecified(),
        Err(_) => host.is_empty() || host == "localhost" || host.ends_with(".localhost"),
    }
}
