//! From the options of a run to a policy, and the rules between options: what contradicts itself is an error
//! here, before anything has been looked up.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::fd::RawFd;
use std::path::{Component, Path, PathBuf};

use clap::ArgMatches;

use super::values::{self, choice, one};
use crate::error::{Error, Result, show};
use crate::policy::{
    Allowance, Environment, FileAccess, FileRule, Git, Hardlinks, Limits, Listen, Loopback, Namespaces, Net,
    Network, Policy, Promise,
};

/// The options that give access to a path.
const FILE_RULES: [(&str, FileAccess); 4] = [
    ("ro", FileAccess::Read),
    ("rw", FileAccess::Write),
    ("hide", FileAccess::Hide),
    ("seal", FileAccess::Seal),
];

pub fn policy(options: &ArgMatches) -> Result<Policy> {
    let policy = Policy {
        workspaces: values::paths(options, "workspace")?,
        chdir: read(options, "chdir", values::path)?,
        read_only: values::flag(options, "read-only"),
        hardlinks: read(options, "hardlinks", |name, word| {
            choice(name, word, &[("reject", Hardlinks::Reject), ("protect", Hardlinks::Protect)])
        })?
        .unwrap_or_default(),
        git: read(options, "git", |name, word| {
            choice(name, word, &[("guard", Git::Guard), ("read-only", Git::ReadOnly), ("free", Git::Free)])
        })?
        .unwrap_or_default(),
        state: read(options, "state", values::path)?,
        files: files(options)?,
        toolchains: !values::flag(options, "no-toolchains"),
        network: network(options)?,
        environment: environment(options)?,
        descriptors: descriptors(options)?,
        user: read(options, "user", values::user)?,
        limits: limits(options)?,
        require: if values::flag(options, "strict") {
            Promise::ALL.into()
        } else {
            many(options, "require", promise)?
        },
        waive: many(options, "waive", promise)?,
        allow: many(options, "allow", |name, word| {
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
        namespaces: read(options, "namespaces", |name, word| {
            choice(name, word, &[("auto", Namespaces::Auto), ("off", Namespaces::Off)])
        })?
        .unwrap_or_default(),
        status_fd: read(options, "status-fd", values::descriptor)?,
        result: read(options, "result", |name, word| choice(name, word, &[("json", ())]))?.is_some(),
        verbose: values::flag(options, "verbose"),
        timings: values::flag(options, "timings"),
    };
    // Read even where --strict makes it redundant, so that a misspelt name is never passed over.
    many::<Promise, Vec<_>>(options, "require", promise)?;
    promises_agree(&policy, values::flag(options, "strict"))?;
    grace_has_an_end(&policy)?;
    paths_agree(&policy)?;
    if let Some(fd) = policy.status_fd
        && policy.descriptors.contains(&fd)
    {
        return Err(Error::usage(format!("descriptor {fd} is given to both --fd and --status-fd"))
            .with_hint("COMMAND must not write the status: use two descriptors"));
    }
    Ok(policy)
}

fn read<T>(
    options: &ArgMatches,
    name: &'static str,
    value: impl Fn(&str, &OsStr) -> Result<T>,
) -> Result<Option<T>> {
    one(options, name).map(|word| value(name, word)).transpose()
}

fn many<T, C: FromIterator<T>>(
    options: &ArgMatches,
    name: &'static str,
    value: impl Fn(&str, &OsStr) -> Result<T>,
) -> Result<C> {
    values::all(options, name).iter().map(|word| value(name, word)).collect()
}

fn promise(name: &str, word: &OsStr) -> Result<Promise> {
    choice(name, word, &Promise::ALL.map(|promise| (promise.name(), promise)))
}

fn files(options: &ArgMatches) -> Result<Vec<FileRule>> {
    let mut files: Vec<FileRule> = Vec::new();
    for (name, access) in FILE_RULES {
        for path in values::paths(options, name)? {
            let rule = FileRule { access, path };
            if !files.contains(&rule) {
                files.push(rule);
            }
        }
    }
    Ok(files)
}

fn network(options: &ArgMatches) -> Result<Network> {
    let net =
        read(options, "net", |name, word| choice(name, word, &[("none", Net::None), ("host", Net::Host)]))?;
    let loopback = read(options, "loopback", |name, word| {
        choice(
            name,
            word,
            &[("private", Loopback::Private), ("off", Loopback::Off), ("host", Loopback::Host)],
        )
    })?;
    let network = Network {
        net: net.unwrap_or_default(),
        loopback: loopback.unwrap_or_default(),
        connect: many(options, "connect", values::port)?,
        listen: listen(options)?,
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
        return Err(Error::usage(format!("--net {word} and --{ruled} contradict each other"))
            .with_hint(format!("--{ruled} alone opens the host's network for that port only")));
    }
    if let Some(loopback) = loopback
        && loopback != Loopback::Host
        && let Some(other) = ruled.or((network.net == Net::Host).then_some("net host"))
    {
        let word = if loopback == Loopback::Off { "off" } else { "private" };
        return Err(Error::usage(format!("--loopback {word} and --{other} contradict each other"))
            .with_hint(format!(
                "--{other} uses the host's network, its loopback included: drop --loopback"
            )));
    }
    Ok(network)
}

fn listen(options: &ArgMatches) -> Result<Listen> {
    let words = values::all(options, "listen");
    if words.is_empty() {
        return Ok(Listen::None);
    }
    if words.iter().any(|word| word == "any") {
        if let Some(port) = words.iter().find(|word| *word != "any") {
            values::port("listen", port)?;
            return Err(Error::usage(format!(
                "--listen any and --listen {} contradict each other",
                show(port)
            )));
        }
        return Ok(Listen::Any);
    }
    let port = |word| {
        values::port("listen", word).map_err(|error| error.with_hint("--listen takes a port or the word any"))
    };
    words.iter().map(|word| port(word)).collect::<Result<_>>().map(Listen::Ports)
}

fn environment(options: &ArgMatches) -> Result<Environment> {
    let mut environment =
        Environment { files: values::paths(options, "env-file")?, ..Environment::default() };
    for word in values::all(options, "env") {
        match values::variable("env", &word)? {
            (name, Some(value)) => environment.set.push((name, value)),
            (name, None) => environment.pass.push(name),
        }
    }
    Ok(environment)
}

fn descriptors(options: &ArgMatches) -> Result<Vec<RawFd>> {
    let mut fds: Vec<RawFd> = many(options, "fd", values::descriptor)?;
    fds.sort_unstable();
    fds.dedup();
    Ok(fds)
}

fn limits(options: &ArgMatches) -> Result<Limits> {
    let on_output_limit = read(options, "on-output-limit", |name, word| {
        choice(name, word, &[("truncate", false), ("kill", true)])
    })?;
    let limits = Limits {
        procs: read(options, "max-procs", values::count)?,
        memory: read(options, "max-memory", values::size)?,
        tmp: read(options, "max-tmp", values::size)?,
        disk: read(options, "max-disk", values::size)?,
        output: read(options, "max-output", values::size)?,
        on_output_limit_kill: on_output_limit.unwrap_or_default(),
        cpu: read(options, "max-cpu", values::duration)?,
        file_size: read(options, "max-file-size", values::size_or_zero)?,
        open_files: read(options, "max-open-files", values::count)?,
        timeout: read(options, "timeout", values::duration)?,
        grace: read(options, "grace", values::duration_or_zero)?,
    };
    if on_output_limit.is_some() && limits.output.is_none() {
        return Err(Error::usage("--on-output-limit has no meaning without --max-output")
            .with_hint("add --max-output SIZE"));
    }
    Ok(limits)
}

/// What ends a run from outside: without it there is nothing to be graceful about.
fn grace_has_an_end(policy: &Policy) -> Result<()> {
    let ends = policy.limits.timeout.is_some() || policy.require.contains(&Promise::Teardown);
    if policy.limits.grace.is_none() || ends {
        return Ok(());
    }
    Err(Error::usage("--grace has no meaning without --timeout or --require teardown")
        .with_hint("add --timeout TIME"))
}

fn promises_agree(policy: &Policy, strict: bool) -> Result<()> {
    match policy.require.intersection(&policy.waive).next() {
        None => Ok(()),
        Some(promise) if strict => {
            Err(Error::usage(format!("--strict requires {promise}, which --waive gives up"))
                .with_hint("name what must hold by --require instead of --strict"))
        }
        Some(promise) => Err(Error::usage(format!("{promise} is both required and waived"))),
    }
}

/// One path has one access. Names are compared as they were given; the view compares what they lead to.
fn paths_agree(policy: &Policy) -> Result<()> {
    let workspace = if policy.read_only { FileAccess::Read } else { FileAccess::Write };
    let mut seen: BTreeMap<PathBuf, (&str, FileAccess)> = BTreeMap::new();
    for path in &policy.workspaces {
        seen.insert(lexical(path), ("workspace", workspace));
    }
    for rule in &policy.files {
        let name = FILE_RULES.iter().find(|(_, access)| *access == rule.access).map_or("", |(name, _)| name);
        match seen.get(&lexical(&rule.path)) {
            Some((other, access)) if *access != rule.access => {
                let error = Error::usage(format!(
                    "--{other} and --{name} give {} different access",
                    show(rule.path.as_os_str())
                ));
                return Err(match (*other, rule.access) {
                    ("workspace", FileAccess::Read) => {
                        error.with_hint("--read-only shows a workspace read-only")
                    }
                    _ => error,
                });
            }
            _ => seen.insert(lexical(&rule.path), (name, rule.access)),
        };
    }
    Ok(())
}

/// Without `.` components and double or trailing slashes; `..` stays, for what it leads to depends on links.
fn lexical(path: &Path) -> PathBuf {
    let plain: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
    if plain.as_os_str().is_empty() { PathBuf::from(".") } else { plain }
}

#[cfg(test)]
mod tests;
