//! Resource limits: what the kernel counts for each process, and the number of threads of a user namespace.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use crate::enforce::cgroup::Mechanism;
use crate::error::{Error, Result};
use crate::plan::Supervision;
use crate::policy;

/// Threads of the whole tree, unless asked otherwise: enough for any build, and no fork bomb.
const PROCS: u64 = 4096;

/// Beyond twice the memory: RLIMIT_DATA counts what is reserved (since Linux 4.7 private mappings too), thread
/// stacks above all, and most of that is never touched. It only stops what outruns the sampling.
const DATA_SLACK: u64 = 128 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    pub what: What,
    pub value: u64,
    /// Asked for, so that it must hold exactly; otherwise a lower limit of the caller stays.
    pub asked: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    Procs,
    Core,
    FileSize,
    OpenFiles,
    Data,
}

/// `own_count`: the user namespace is our own, so that RLIMIT_NPROC counts nothing else (since Linux 5.14).
/// `keeps_procs`: and it holds for this user.
pub fn decide(
    limits: &policy::Limits,
    own_count: bool,
    keeps_procs: bool,
    supervision: Option<&Supervision>,
) -> Vec<Limit> {
    let mut list = Vec::new();
    match limits.procs {
        Some(value) if keeps_procs => {
            list.push(Limit { what: What::Procs, value, asked: true });
        }
        None if own_count => list.push(Limit { what: What::Procs, value: PROCS, asked: false }),
        _ => {}
    }
    let sampled = supervision
        .and_then(|supervision| supervision.ceilings.as_ref())
        .filter(|ceilings| ceilings.mechanism == Some(Mechanism::Sampling))
        .and_then(|ceilings| ceilings.memory);
    if let Some(memory) = sampled {
        let value = memory.saturating_mul(2).saturating_add(DATA_SLACK);
        list.push(Limit { what: What::Data, value, asked: false });
    }
    // core(5): a core_pattern that pipes ignores 0, and 1 is its documented off.
    list.push(Limit { what: What::Core, value: 1, asked: false });
    if let Some(value) = limits.file_size {
        list.push(Limit { what: What::FileSize, value, asked: true });
    }
    if let Some(value) = limits.open_files {
        list.push(Limit { what: What::OpenFiles, value, asked: true });
    }
    list
}

/// After unshare(2): before it RLIMIT_NPROC would count every process of the user.
pub fn apply(limits: &[Limit], supervised: bool) -> Result<()> {
    for limit in limits {
        let (resource, name) = match limit.what {
            What::Procs => (Resource::RLIMIT_NPROC, "processes"),
            What::Core => (Resource::RLIMIT_CORE, "core file size"),
            What::FileSize => (Resource::RLIMIT_FSIZE, "file size"),
            What::OpenFiles => (Resource::RLIMIT_NOFILE, "open files"),
            What::Data => (Resource::RLIMIT_DATA, "private memory"),
        };
        let (_, hard) =
            getrlimit(resource).map_err(|errno| Error::step(format!("read the limit of {name}"), errno))?;
        if limit.asked && limit.value > hard {
            return Err(Error::usage(format!(
                "the limit of {name} cannot be raised above {hard}, the caller's own"
            )));
        }
        // Monitor and init are of the same user and user namespace, and not the command's.
        let ours = if supervised && limit.what == What::Procs { 2 } else { 0 };
        let value = limit.value.saturating_add(ours).min(hard);
        setrlimit(resource, value, value).map_err(|errno| Error::step(format!("limit {name}"), errno))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_run_bounds_threads_only_where_the_count_is_its_own() {
        let has_procs =
            |own| decide(&policy::Limits::default(), own, own, None).iter().any(|l| l.what == What::Procs);
        assert!(has_procs(true) && !has_procs(false));
    }
}
