//! The ceilings of a whole tree: who counts, when to look again, and which one was reached.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::poll::PollFlags;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, SysconfVar, sysconf};
use rustix::fs::{fstat, fstatvfs};
use rustix::thread::{CapabilitySet, capabilities};

use super::sample::Sampler;
use crate::enforce::cgroup::group::Group;
use crate::enforce::cgroup::{Mechanism, Site};
use crate::error::{Error, Result};
use crate::plan;
use crate::sys;

/// How often is looked where the kernel does not tell by itself.
const PERIOD: Duration = Duration::from_millis(50);
/// And once more than half is used, since what grows may grow fast.
const NEAR: Duration = Duration::from_millis(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Memory,
    Procs,
    Cpu,
    Disk,
}

/// The ceiling that ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reached {
    pub what: What,
    /// Bytes, processes or milliseconds.
    pub limit: u64,
    pub mechanism: &'static str,
}

impl Reached {
    pub fn outcome(self) -> &'static str {
        match self.what {
            What::Memory => "memory-limit",
            What::Procs => "procs-limit",
            What::Cpu => "cpu-limit",
            What::Disk => "disk-limit",
        }
    }

    /// One line on standard error. When that is gone there is nobody left to tell.
    pub fn tell(&self) {
        let limit = self.limit;
        let reason = match self.what {
            What::Memory => format!("it used more than {limit} bytes of memory (--max-memory"),
            What::Procs => format!("it had more than {limit} processes and threads (--max-procs"),
            What::Cpu => {
                format!("it used more than {} s of processor time (--max-cpu", limit as f64 / 1000.0)
            }
            What::Disk => format!("its file system lost more than {limit} bytes (--max-disk"),
        };
        let line = format!("confine: the command was ended: {reason}, {})\n", self.mechanism);
        let _ = io::stderr().write_all(line.as_bytes());
    }
}

pub struct Ceilings {
    limits: plan::Ceilings,
    init: Option<Pid>,
    group: Option<Group>,
    sampler: Option<Sampler>,
    disks: Vec<Disk>,
    cpus: u32,
    next: Option<Duration>,
    gate: Option<(PipeReader, PipeWriter)>,
    /// The init is process 1 of a PID namespace.
    sealed: bool,
}

/// The nice value that comes before all others.
const FIRST: i32 = -20;

/// The last number that this PID namespace gives out (sysctl kernel.pid_max; its own since Linux 6.14): what a fork
/// bomb runs into while it is being counted. Numbers below 300 are given once only, and a number lasts as long as a
/// process group or session of its name.
fn seal(procs: u64) -> io::Result<()> {
    const ONCE: u64 = 300;
    const MOST: u64 = 1 << 22;
    let last = procs.saturating_mul(2).saturating_add(ONCE + 64).min(MOST);
    std::fs::write("/proc/sys/kernel/pid_max", last.to_string())
}

/// A file system with a writable root on it, and what it had free at first.
struct Disk {
    fd: OwnedFd,
    device: u64,
    before: u64,
}

impl Ceilings {
    /// Before the fork and the pivot: opens all that is looked at later, and makes the control group.
    pub fn prepare(
        limits: &plan::Ceilings,
        site: &Site,
        roots: Vec<OwnedFd>,
        sealed: bool,
        own_tmp: Option<PathBuf>,
    ) -> Result<Ceilings> {
        let failed = |error: io::Error| Error::step("watch the ceilings", error);
        let tree = limits.memory.is_some() || limits.procs.is_some() || limits.cpu.is_some();
        let group = if tree { Group::make(site, limits)? } else { None };
        let sampler =
            if tree && group.is_none() { Some(Sampler::new(own_tmp).map_err(failed)?) } else { None };
        let mut disks: Vec<Disk> = Vec::new();
        if limits.disk.is_some() {
            for fd in roots {
                let device = fstat(&fd).map_err(|errno| failed(errno.into()))?.st_dev;
                let found = fstatvfs(&fd).map_err(|errno| failed(errno.into()))?;
                if found.f_blocks == 0 {
                    return Err(Error::refused(
                        "--max-disk cannot be kept: the workspace's file system does not tell what is free",
                    ));
                }
                if disks.iter().all(|disk| disk.device != device) {
                    disks.push(Disk { before: free(&found), fd, device });
                }
            }
        }
        let cpus = match sysconf(SysconfVar::_NPROCESSORS_ONLN) {
            Ok(Some(count)) => u32::try_from(count).unwrap_or(1).max(1),
            _ => 1,
        };
        let gate = match &group {
            Some(_) => Some(io::pipe().map_err(failed)?),
            None => None,
        };
        Ok(Ceilings {
            limits: limits.clone(),
            init: None,
            group,
            sampler,
            disks,
            cpus,
            next: None,
            gate,
            sealed,
        })
    }

    /// The init's side: nothing is done until the init is in its group. Lets go of all that belongs to the monitor.
    pub fn await_admission(mut self) -> Result<()> {
        if self.sampler.is_some()
            && self.sealed
            && let Some(procs) = self.limits.procs
        {
            seal(procs).map_err(|error| Error::step("bound the PID namespace", error))?;
        }
        let Some((mut reader, writer)) = self.gate.take() else { return Ok(()) };
        drop(writer);
        if reader.read_exact(&mut [0]).is_err() {
            // The monitor could not, and has said why.
            sys::leave(125);
        }
        Ok(())
    }

    /// The monitor's side.
    pub fn begin(&mut self, init: Pid, now: Duration) -> Result<()> {
        self.init = Some(init);
        if self.sampler.is_some() {
            // Who counts must not wait for those who are counted. Only root may.
            let _ = rustix::process::setpriority_process(None, FIRST);
        }
        if let Some(group) = &mut self.group {
            group.admit(init)?;
        }
        if let Some((_, mut writer)) = self.gate.take() {
            writer.write_all(&[1]).map_err(|error| Error::step("start the command", error))?;
        }
        let watches = self.sampler.is_some() || !self.disks.is_empty();
        let counts =
            self.group.as_ref().is_some_and(|group| self.limits.cpu.is_some() || self.is_deaf(group));
        self.next = (watches || counts).then_some(now);
        Ok(())
    }

    /// What the monitor may not give up. Only those that it has can stay.
    pub fn capabilities(&self) -> CapabilitySet {
        let mut needs = CapabilitySet::empty();
        if self.sampler.is_some() {
            // Memory and descriptors of processes that are not dumpable (ptrace(2), access mode checks). An ordinary
            // user has this one in the user namespace of the run, over nothing but the run.
            needs |= CapabilitySet::SYS_PTRACE;
            // For `kill`.
            needs |= CapabilitySet::SYS_NICE;
        }
        if self.group.as_ref().is_some_and(Group::needs_override) {
            needs |= CapabilitySet::DAC_OVERRIDE;
        }
        capabilities(None).map_or(CapabilitySet::empty(), |sets| needs & sets.permitted)
    }

    /// When to look again, whatever happens.
    pub fn next(&self) -> Option<Duration> {
        self.next
    }

    /// What wakes the monitor up before that.
    pub fn notice(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        self.group.as_ref()?.notice()
    }

    /// The first ceiling that was reached, if one was.
    pub fn look(&mut self, now: Duration) -> Option<Reached> {
        if self.group.as_ref().is_some_and(Group::noticed) {
            return self.reached(What::Memory);
        }
        if self.next.is_none_or(|next| next > now) {
            return None;
        }
        let mut wait: Option<Duration> = None;
        let mut again = |after: Duration| wait = Some(wait.map_or(after, |wait| wait.min(after)));
        let mut over = None;
        if let Some(group) = &self.group {
            if let Some(limit) = self.limits.cpu {
                let used = group.cpu().unwrap_or(Duration::ZERO);
                if used >= limit {
                    over = Some(What::Cpu);
                }
                // Not before it could be reached with every processor busy.
                again(((limit.saturating_sub(used)) / self.cpus).max(NEAR));
            }
            if self.is_deaf(group) {
                if group.memory_kills().is_some_and(|kills| kills > 0) {
                    over = Some(What::Memory);
                }
                again(PERIOD);
            }
        }
        if let (Some(sampler), Some(init)) = (&mut self.sampler, self.init) {
            let begun = Instant::now();
            let found = sampler.look(init, self.limits.procs, self.limits.memory.is_some());
            let mut near = false;
            if let Some(limit) = self.limits.memory {
                near |= found.resident > limit / 2;
                if found.resident <= limit {
                    sampler.start_over();
                } else if sampler.is_over(init, limit, &found) {
                    over = Some(What::Memory);
                }
            }
            if let Some(limit) = self.limits.procs {
                near |= found.threads > limit / 2;
                if found.threads > limit && sampler.threads(init, limit) > limit {
                    over = Some(What::Procs);
                }
            }
            if self.limits.cpu.is_some_and(|limit| found.cpu >= limit) {
                over = Some(What::Cpu);
            }
            // A tree that takes long to look through is looked at less often, and signals and deadlines come between.
            again((begun.elapsed() / 4).max(if near { NEAR } else { PERIOD }));
        }
        if let Some(limit) = self.limits.disk {
            let lost: u64 = self.disks.iter().map(Disk::lost).sum();
            if lost > limit {
                over = Some(What::Disk);
            }
            again(if lost > limit / 2 { NEAR } else { PERIOD });
        }
        self.next = wait.map(|wait| now + wait);
        over.and_then(|what| self.reached(what))
    }

    /// The kernel may have killed the init or the command itself before anybody looked.
    pub fn last_look(&self) -> Option<Reached> {
        let killed = self.group.as_ref()?.memory_kills().is_some_and(|kills| kills > 0);
        if killed { self.reached(What::Memory) } else { None }
    }

    /// Ends all of it, whatever the init is doing. Among thousands of others the init would be slow to find out that
    /// it should, and slow to do it, unless it is put before them.
    pub fn kill(&self) {
        if let Some(group) = &self.group {
            group.kill();
        }
        if let (true, Some(init)) = (self.sealed, self.init) {
            if let Some(pid) = rustix::process::Pid::from_raw(init.as_raw()) {
                let _ = rustix::process::setpriority_process(Some(pid), FIRST);
            }
            let _ = kill(init, Signal::SIGKILL);
        }
    }

    /// A memory limit is set and nothing wakes us when it is reached.
    fn is_deaf(&self, group: &Group) -> bool {
        self.limits.memory.is_some() && group.notice().is_none()
    }

    fn reached(&self, what: What) -> Option<Reached> {
        let limit = match what {
            What::Memory => self.limits.memory,
            What::Procs => self.limits.procs,
            What::Cpu => self.limits.cpu.map(|limit| limit.as_millis() as u64),
            What::Disk => self.limits.disk,
        }?;
        let mechanism = match what {
            What::Disk => DISK,
            _ => self.limits.mechanism.map_or(Mechanism::Sampling.name(), Mechanism::name),
        };
        Some(Reached { what, limit, mechanism })
    }
}

/// What holds `--max-disk`: a look at the file system, which others write to as well.
pub const DISK: &str = "file-system-watch";

impl Disk {
    fn lost(&self) -> u64 {
        fstatvfs(&self.fd).map_or(0, |found| self.before.saturating_sub(free(&found)))
    }
}

fn free(found: &rustix::fs::StatVfs) -> u64 {
    found.f_bfree.saturating_mul(found.f_frsize)
}
