//! From the words of a run to a policy, and the rules between options: what contradicts itself is an error here,
//! before anything has been looked up. What the administrator lets nobody lift is held here.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::fd::RawFd;
use std::path::PathBuf;

use super::layers::{Given, Word, lexical};
use super::values::{self, choice};
use crate::error::{Error, Result, show};
use crate::policy::{
    Allowance, Environment, FileAccess, FileRule, Git, Hardlinks, Limits, Listen, Loopback, Namespaces, Net,
    Network, Origin, Policy, Promise, Setting,
};

/// The options that give access to a path.
const FILE_RULES: [(&str, FileAccess); 4] = [
    ("ro", FileAccess::Read),
    ("rw", FileAccess::Write),
    ("hide", FileAccess::Hide),
    ("seal", FileAccess::Seal),
];

/// Of one layer by itself, to find what is wrong with it though nearer ones may say otherwise.
pub fn check(alone: &Given) -> Result<()> {
    policy(alone).map(|_| ())
}

pub fn policy(given: &Given) -> Result<Policy> {
    let state = read(given, "state", values::path)?;
    let state_auto = state.as_ref().is_some_and(|word| word.as_os_str() == "auto");
    let policy = Policy {
        workspaces: paths(given, "workspace")?,
        no_workspace: given.flag("no-workspace"),
        chdir: read(given, "chdir", values::path)?,
        read_only: given.flag("read-only"),
        hardlinks: read(given, "hardlinks", |name, word| {
            choice(name, word, &[("reject", Hardlinks::Reject), ("protect", Hardlinks::Protect)])
        })?
        .unwrap_or_default(),
        git: read(given, "git", |name, word| {
            choice(name, word, &[("guard", Git::Guard), ("read-only", Git::ReadOnly), ("free", Git::Free)])
        })?
        .unwrap_or_default(),
        state: state.filter(|_| !state_auto),
        state_auto,
        files: files(given)?,
        toolchains: !given.flag("no-toolchains"),
        network: network(given)?,
        environment: environment(given)?,
        descriptors: descriptors(given)?,
        user: read(given, "user", values::user)?,
        limits: limits(given)?,
        require: required(given)?,
        waive: many(given, "waive", promise)?,
        allow: many(given, "allow", |name, word| {
            choice(
                name,
                word,
                &[
                    ("broad-workspace", Allowance::BroadWorkspace),
                    ("userns", Allowance::Userns),
                    ("unix-datagram", Allowance::UnixDatagram),
                ],
            )
        })?,
        namespaces: read(given, "namespaces", |name, word| {
            choice(name, word, &[("auto", Namespaces::Auto), ("off", Namespaces::Off)])
        })?
        .unwrap_or_default(),
        status_fd: read(given, "status-fd", values::descriptor)?,
        audit: read(given, "audit", values::path)?,
        result: read(given, "result", |name, word| choice(name, word, &[("json", ())]))?.is_some(),
        kernel_log: given.flag("kernel-log"),
        trace: None,
        verbose: given.flag("verbose"),
        timings: given.flag("timings"),
        never_visible: given.line.never_visible.clone(),
        never_waive: given.line.never_waive.keys().chain(given.line.always_require.keys()).copied().collect(),
        shell: None,
        settings: given.settings(),
        files_read: given.files.clone(),
    };
    workspace_or_none(given)?;
    promises_agree(given, &policy)?;
    let policy = grace_has_an_end(given, policy)?;
    paths_agree(given, &policy)?;
    if let Some(fd) = policy.status_fd
        && policy.descriptors.contains(&fd)
    {
        return Err(Error::usage(format!("descriptor {fd} is given to both --fd and --status-fd"))
            .with_hint("COMMAND must not write the status: use two descriptors"));
    }
    hold_the_line(given, policy)
}

fn read<T>(
    given: &Given,
    name: &'static str,
    value: impl Fn(&str, &OsStr) -> Result<T>,
) -> Result<Option<T>> {
    given.one(name).map(|word| value(name, &word.value).map_err(|error| word.told(error))).transpose()
}

fn many<T, C: FromIterator<T>>(
    given: &Given,
    name: &'static str,
    value: impl Fn(&str, &OsStr) -> Result<T>,
) -> Result<C> {
    given.all(name).map(|word| value(name, &word.value).map_err(|error| word.told(error))).collect()
}

fn paths(given: &Given, name: &'static str) -> Result<Vec<PathBuf>> {
    many(given, name, values::path)
}

fn promise(name: &str, word: &OsStr) -> Result<Promise> {
    choice(name, word, &Promise::ALL.map(|promise| (promise.name(), promise)))
}

/// `--strict` is all of them, but for what a nearer layer gives up by name.
fn required(given: &Given) -> Result<BTreeSet<Promise>> {
    // Read even where --strict makes it redundant, so that a misspelt name is never passed over.
    let named: BTreeSet<Promise> = many(given, "require", promise)?;
    let Some(strict) = given.one("strict").filter(|word| word.value == "true") else { return Ok(named) };
    let nearer = |promise: &Promise| {
        given.all("waive").any(|word| word.layer < strict.layer && word.value == promise.name())
    };
    Ok(Promise::ALL.into_iter().filter(|promise| !nearer(promise)).collect())
}

/// Nearest layer first, so that what the view finds to be one path is decided by it.
fn files(given: &Given) -> Result<Vec<FileRule>> {
    let mut files: Vec<(usize, FileRule)> = Vec::new();
    for (name, access) in FILE_RULES {
        for word in given.all(name) {
            let path = values::path(name, &word.value).map_err(|error| word.told(error))?;
            let rule = FileRule { access, path };
            if !files.iter().any(|(_, other)| *other == rule) {
                files.push((word.layer, rule));
            }
        }
    }
    files.sort_by_key(|(layer, _)| *layer);
    Ok(files.into_iter().map(|(_, rule)| rule).collect())
}

fn network(given: &Given) -> Result<Network> {
    let net =
        read(given, "net", |name, word| choice(name, word, &[("none", Net::None), ("host", Net::Host)]))?;
    let loopback = read(given, "loopback", |name, word| {
        choice(
            name,
            word,
            &[("private", Loopback::Private), ("off", Loopback::Off), ("host", Loopback::Host)],
        )
    })?;
    let network = Network {
        net: net.unwrap_or_default(),
        loopback: loopback.unwrap_or_default(),
        connect: many(given, "connect", values::port)?,
        listen: listen(given)?,
    };
    // Each of them narrows the host's network to some ports by itself; together with all of it one of the two
    // would have no effect, and the reader could not tell which.
    let ruled = if !network.connect.is_empty() {
        Some("connect")
    } else if network.listen != Listen::None {
        Some("listen")
    } else {
        None
    };
    if let Some(ruled) = ruled
        && let Some(net) = net
    {
        let word = if net == Net::Host { "host" } else { "none" };
        let error = Error::usage(format!("--net {word} and --{ruled} contradict each other"))
            .with_hint(format!("--{ruled} alone opens the host's network for that port only"));
        return Err(given.told("net", error));
    }
    if let Some(loopback) = loopback
        && loopback != Loopback::Host
        && let Some(other) = ruled.or((network.net == Net::Host).then_some("net host"))
    {
        let word = if loopback == Loopback::Off { "off" } else { "private" };
        let error = Error::usage(format!("--loopback {word} and --{other} contradict each other"))
            .with_hint(format!("--{other} uses the host's network, its loopback included: drop --loopback"));
        return Err(given.told("loopback", error));
    }
    if network.listen != Listen::None && network.loopback == Loopback::Host {
        return Err(Error::usage("--listen and --loopback host contradict each other").with_hint(
            "--loopback host lets COMMAND serve on loopback addresses; --listen PORT alone serves on every address",
        ));
    }
    Ok(network)
}

fn listen(given: &Given) -> Result<Listen> {
    let words: Vec<&Word> = given.all("listen").collect();
    if words.is_empty() {
        return Ok(Listen::None);
    }
    if words.iter().any(|word| word.value == "any") {
        if let Some(word) = words.iter().find(|word| word.value != "any") {
            values::port("listen", &word.value).map_err(|error| word.told(error))?;
            let port = show(&word.value).to_string();
            return Err(
                word.told(Error::usage(format!("--listen any and --listen {port} contradict each other")))
            );
        }
        return Ok(Listen::Any);
    }
    let port = |word: &&Word| {
        values::port("listen", &word.value)
            .map_err(|error| word.told(error.with_hint("--listen takes a port or the word any")))
    };
    words.iter().map(port).collect::<Result<_>>().map(Listen::Ports)
}

fn environment(given: &Given) -> Result<Environment> {
    let mut environment = Environment {
        clear: given.flag("clear-env"),
        files: paths(given, "env-file")?,
        ..Environment::default()
    };
    let nearest_file = given.all("env-file").map(|word| word.layer).min();
    for word in given.all("env") {
        match values::variable("env", &word.value).map_err(|error| word.told(error))? {
            (name, Some(value)) if nearest_file.is_some_and(|file| file < word.layer) => {
                environment.set_below_files.push((name, value));
            }
            (name, Some(value)) => environment.set.push((name, value)),
            (name, None) => environment.pass.push(name),
        }
    }
    Ok(environment)
}

fn descriptors(given: &Given) -> Result<Vec<RawFd>> {
    let mut fds: Vec<RawFd> = many(given, "fd", values::descriptor)?;
    fds.sort_unstable();
    fds.dedup();
    Ok(fds)
}

fn limits(given: &Given) -> Result<Limits> {
    let on_output_limit = read(given, "on-output-limit", |name, word| {
        choice(name, word, &[("truncate", false), ("kill", true)])
    })?;
    let limits = Limits {
        procs: read(given, "max-procs", values::count)?,
        memory: read(given, "max-memory", values::size)?,
        tmp: read(given, "max-tmp", values::size)?,
        disk: read(given, "max-disk", values::size)?,
        output: read(given, "max-output", values::size)?,
        on_output_limit_kill: on_output_limit.unwrap_or_default(),
        cpu: read(given, "max-cpu", values::duration)?,
        file_size: read(given, "max-file-size", values::size_or_zero)?,
        open_files: read(given, "max-open-files", values::descriptors)?,
        timeout: read(given, "timeout", values::duration)?,
        grace: read(given, "grace", values::duration_or_zero)?,
    };
    // In a file it may stand for runs that have the limit.
    let on_line = given.one("on-output-limit").is_some_and(|word| !word.origin.is_file());
    if on_line && limits.output.is_none() {
        return Err(Error::usage("--on-output-limit has no meaning without --max-output")
            .with_hint("add --max-output SIZE"));
    }
    Ok(limits)
}

/// What ends a run from outside: without it there is nothing to be graceful about. In a file it may stand for runs
/// that have one.
fn grace_has_an_end(given: &Given, mut policy: Policy) -> Result<Policy> {
    let required = policy.require.contains(&Promise::Teardown)
        || given.line.always_require.contains_key(&Promise::Teardown);
    let ends = policy.limits.timeout.is_some() || required;
    match given.one("grace") {
        Some(word) if !ends && word.origin.is_file() => policy.limits.grace = None,
        Some(_) if !ends => {
            return Err(Error::usage("--grace has no meaning without --timeout or --require teardown")
                .with_hint("add --timeout TIME"));
        }
        _ => {}
    }
    Ok(policy)
}

fn workspace_or_none(given: &Given) -> Result<()> {
    match given.one("workspace") {
        Some(word) if given.flag("no-workspace") => Err(word
            .told(Error::usage("--workspace and --no-workspace contradict each other"))
            .with_hint("drop one of them")),
        _ => Ok(()),
    }
}

fn promises_agree(given: &Given, policy: &Policy) -> Result<()> {
    let both = policy.require.intersection(&policy.waive).next();
    let Some(promise) = both else { return Ok(()) };
    let error = if given.flag("strict") {
        Error::usage(format!("--strict requires {promise}, which --waive gives up"))
            .with_hint("name what must hold by --require instead of --strict")
    } else {
        Error::usage(format!("{promise} is both required and waived"))
    };
    Err(given.told("waive", error))
}

/// One path has one access. Names are compared as they were given; the view compares what they lead to.
fn paths_agree(given: &Given, policy: &Policy) -> Result<()> {
    let workspace = if policy.read_only { FileAccess::Read } else { FileAccess::Write };
    let mut seen: BTreeMap<PathBuf, (&str, FileAccess)> = BTreeMap::new();
    for path in &policy.workspaces {
        seen.insert(lexical(path), ("workspace", workspace));
    }
    for rule in &policy.files {
        let name = rule.access.option();
        match seen.get(&lexical(&rule.path)) {
            Some((other, access)) if *access != rule.access => {
                let error = Error::usage(format!(
                    "--{other} and --{name} give {} different access",
                    show(rule.path.as_os_str())
                ));
                let error = match (*other, rule.access) {
                    ("workspace", FileAccess::Read) => {
                        error.with_hint("--read-only shows a workspace read-only")
                    }
                    _ => error,
                };
                return Err(match given.all(name).find(|word| word.value == rule.path.as_os_str()) {
                    Some(word) => word.told(error),
                    None => error,
                });
            }
            _ => seen.insert(lexical(&rule.path), (name, rule.access)),
        };
    }
    Ok(())
}

/// What the administrator demands is added; what goes past the line is refused.
fn hold_the_line(given: &Given, mut policy: Policy) -> Result<Policy> {
    let line = &given.line;
    let past = |word: &Word, rule: &Origin, what: &str| {
        let named = match word.value.to_str() {
            _ if word.is("env") => "--env".to_owned(),
            Some("true") => format!("--{}", word.row.name),
            _ => format!("--{} {}", word.row.name, show(&word.value)),
        };
        let by = if word.origin.is_file() { format!(" of {}", word.origin) } else { String::new() };
        Error::refused(format!("{named}{by} {what} ({rule})"))
            .with_hint("leave it out; only the administrator of this machine can change that")
    };
    for word in given.all("waive") {
        let promise = promise("waive", &word.value)?;
        if let Some(rule) = line.never_waive.get(&promise).or(line.always_require.get(&promise)) {
            return Err(past(word, rule, "gives up what must always hold on this machine"));
        }
    }
    for ban in &line.never_allow {
        if let Some(word) = given.words.iter().chain(&given.profiles).find(|word| ban.meets(word)) {
            return Err(past(word, &ban.origin, "is not allowed on this machine"));
        }
    }
    policy.require.extend(line.always_require.keys());
    let demanded = line.always_require.iter().map(|(promise, origin)| Setting {
        option: "require",
        value: promise.name().into(),
        origin: origin.clone(),
        layer: 0,
    });
    policy.settings.extend(demanded);
    Ok(policy)
}

#[cfg(test)]
mod tests;
