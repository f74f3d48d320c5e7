//! Resource limits: what the kernel counts for each process, and the number of threads of a user namespace.

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, prlimit};
use serde::{Deserialize, Serialize};

use crate::enforce::cgroup::Mechanism;
use crate::error::{Error, Result};
use crate::plan::Supervision;
use crate::policy;

/// Threads of the whole tree, unless asked otherwise: enough for any build, and no fork bomb.
const PROCS: u64 = 4096;

/// Beyond twice the memory: RLIMIT_DATA counts what is reserved (since Linux 4.7 private mappings too), thread
/// stacks above all, and most of that is never touched. It only stops what outruns the sampling.
/// A hundred threads reserve 800 MB and hardly use any.
const DATA_SLACK: u64 = 1 << 30;

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

/// After unshare(2): before it RLIMIT_NPROC would count every process of the user. A file size is only checked.
pub fn apply(limits: &[Limit], supervised: bool) -> Result<()> {
    for limit in limits {
        let (resource, name) = match limit.what {
            What::Procs => (Resource::Nproc, "processes"),
            What::Core => (Resource::Core, "core file size"),
            What::FileSize => (Resource::Fsize, "file size"),
            What::OpenFiles => (Resource::Nofile, "open files"),
            What::Data => (Resource::Data, "private memory"),
        };
        // Monitor and init are of the same user and user namespace, and not the command's.
        let ours = if supervised && limit.what == What::Procs { 2 } else { 0 };
        let failed = |errno: Errno| Error::step(format!("limit {name}"), errno);
        if limit.what == What::FileSize {
            refuse_raising(limit, name, getrlimit(resource).maximum)?;
            continue;
        }
        let hard = match lower(resource, limit.value.saturating_add(ours)).map_err(failed)? {
            Lowered::Done => continue,
            Lowered::Above(hard) => hard,
        };
        refuse_raising(limit, name, Some(hard))?;
        set(resource, hard).map_err(failed)?;
    }
    Ok(())
}

/// After the last line of confine's own, which may go to a file that is larger already.
pub fn apply_file_size(limits: &[Limit]) -> Result<()> {
    match limits.iter().find(|limit| limit.what == What::FileSize) {
        Some(limit) => {
            set(Resource::Fsize, limit.value).map(drop).map_err(|errno| Error::step("limit file size", errno))
        }
        None => Ok(()),
    }
}

fn refuse_raising(limit: &Limit, name: &str, hard: Option<u64>) -> Result<()> {
    match hard {
        Some(hard) if limit.asked && limit.value > hard => {
            Err(Error::usage(format!("the limit of {name} cannot be raised above {hard}, the caller's own")))
        }
        _ => Ok(()),
    }
}

enum Lowered {
    Done,
    /// The caller's own limit is lower.
    Above(u64),
}

/// Sets and asks in one call. What was lower before is refused, or for root, who may raise it, told afterwards.
fn lower(resource: Resource, value: u64) -> rustix::io::Result<Lowered> {
    let before = match set(resource, value) {
        Err(Errno::PERM) => getrlimit(resource),
        before => before?,
    };
    Ok(match before.maximum {
        Some(hard) if hard < value => Lowered::Above(hard),
        _ => Lowered::Done,
    })
}

fn set(resource: Resource, value: u64) -> rustix::io::Result<Rlimit> {
    prlimit(None, resource, Rlimit { current: Some(value), maximum: Some(value) })
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
