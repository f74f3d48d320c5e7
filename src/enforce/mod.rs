//! Applying a plan. `apply` is the order, one screen: each line is a step, and where a line may not move, it says
//! so. Why a step is taken at all is the plan's business.
#![forbid(unsafe_code)]

pub mod cgroup;
pub mod credentials;
pub mod descriptors;
pub mod direct;
pub mod environment;
pub mod exec;
mod kept;
pub mod landlock;
pub mod limits;
pub mod mounts;
pub mod namespaces;
pub mod seccomp;
pub mod self_check;
pub mod standard;
mod sysfs;
pub mod veil;
pub mod writable;

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use nix::unistd::Pid;
use rustix::thread::CapabilitySet;

use crate::enforce::seccomp::Inet;
use crate::error::{Error, Result};
use crate::plan::note::Note;
use crate::plan::{Namespace, Plan};
use crate::policy::Git;
use crate::record::{Record, Timings};
use crate::supervise::broker::{Internet, Scope, Seat, Serving};
use crate::supervise::ceilings::Ceilings;
use crate::supervise::monitor::Monitor;
use crate::supervise::output::Output;
use crate::supervise::result::{Before, Report};
use crate::supervise::sample::Sampler;
use crate::supervise::surroundings::Surroundings;
use crate::supervise::tracer::{self, Judge, Tracer};
use crate::supervise::{self, Role};
use crate::sys;
use crate::view::caller::Caller;
use crate::view::{Access, Backing, Place, View};

/// Everything a run needs besides the plan: what is open, and what must not be written down.
pub struct Run<'a> {
    pub plan: &'a Plan,
    pub view: View,
    pub caller: &'a Caller,
    pub cgroup: &'a cgroup::Site,
    pub target: exec::Target,
    pub note: Note,
    pub record: Record,
    pub timings: Timings,
    /// Who was the parent when confine began.
    pub parent: Pid,
    /// As it was asked for; what changes among git's files is compared under it.
    pub git: Git,
}

/// Closes the boundary around this process and becomes the command. Returns with the reason why not; or, as the
/// parent of a supervised command, with its status.
pub fn apply(mut run: Run<'_>) -> Result<u8> {
    let mut record = std::mem::take(&mut run.record);
    let tmp = run.plan.world.tmp;
    steps(run, &mut record).map_err(|error| lay_to_tmp(error, tmp)).inspect_err(|error| record.refused(error))
}

/// Confine's own files lie in the private places too, and nobody thinks of those who asks for little.
fn lay_to_tmp(error: Error, limit: Option<u64>) -> Error {
    let (Error::Step { source, hint: None, .. } | Error::Path { source, hint: None, .. }) = &error else {
        return error;
    };
    match limit {
        Some(limit) if source.raw_os_error() == Some(libc::ENOSPC) => error.with_hint(format!(
            "`--max-tmp {limit}` leaves no room for what confine puts there itself: raise it"
        )),
        _ => error,
    }
}

fn steps(run: Run<'_>, record: &mut Record) -> Result<u8> {
    let Run { plan, view, caller, cgroup, target, note, mut timings, parent, git, .. } = run;
    let writable = writable::roots(&view);
    let viewed = plan.has(Namespace::Mount);

    raise_oom_score();
    if viewed {
        namespaces::enter_rest(plan.has(Namespace::Network), plan.has(Namespace::Pid))
            .map_err(|error| Error::step("enter the network and IPC namespaces", error))?;
        if plan.world.loopback {
            namespaces::raise_loopback().map_err(|error| Error::step("bring the loopback up", error))?;
        }
    }
    timings.mark("namespaces");
    let serving = match plan.process.seccomp.broker.any().then(Seat::new) {
        None => None,
        Some(seat) => {
            let seat = seat.map_err(|error| Error::step("make the broker's socket", error))?;
            Some(Serving { seat, scope: broker_scope(plan, &view), arch: native()? })
        }
    };
    let mut tracee = None;
    // From here on there may be two of us: the monitor waits, the child goes on.
    let before = match &plan.supervision {
        None => None,
        Some(supervision) => {
            let namespace = plan.has(Namespace::Pid);
            let surroundings = Surroundings::look(supervision, parent)?;
            let forward = !record.takes_output();
            let output = match &supervision.relay {
                Some(relay) => Some(Output::prepare(relay, forward, &plan.process)?),
                None => None,
            };
            let report = if record.is_kept() {
                Some(Report::new().map_err(|error| Error::step("make a pipe", error))?)
            } else {
                None
            };
            // Compared with what is there at the end.
            let watched = if record.has_result() { Some(Before::look(&view, git)?) } else { None };
            // What is counted later is opened now: after the pivot no path leads there.
            let ceilings = match &supervision.ceilings {
                Some(limits) => {
                    let own_tmp = private_tmpfs(&view).filter(|_| viewed);
                    Some(Ceilings::prepare(limits, cgroup, open_roots(&view)?, namespace, own_tmp)?)
                }
                None => None,
            };
            // Somebody is told what was used.
            let counter = record.is_kept().then(Sampler::of_the_end).transpose()?;
            let tracing = supervision.trace.map(|how| tracer::pair().map(|ends| (how, ends))).transpose()?;
            match supervise::split(surroundings, namespace, plan.world.ruleset.abi)? {
                Role::Init(before) => {
                    tracee = tracing.map(|(_, (outside, inside))| {
                        drop(outside);
                        inside
                    });
                    if let Some((_, ends)) = output {
                        ends.attach()?;
                    }
                    drop((watched, counter));
                    if let Some(report) = report {
                        record.leave_to_parent(report);
                    }
                    // In the group before anything is mounted, so that the private tmpfs is charged to it.
                    if let Some(ceilings) = ceilings {
                        ceilings.await_admission()?;
                    }
                    if let Some(tracee) = &tracee {
                        tracee.await_leaving()?;
                    }
                    Some(before)
                }
                Role::Monitor { init, link, surroundings, tree } => {
                    let home = view.home.clone();
                    // What is open here would be kept busy for as long as the command runs.
                    drop((view, target));
                    plan.process.descriptors.iter().copied().for_each(sys::close);
                    let mut monitor = Monitor::new(link, init, tree, surroundings)?;
                    if let Some(counter) = counter {
                        monitor.count(counter);
                    }
                    if let Some((output, ends)) = output {
                        // Or the end of a stream would never be seen.
                        drop(ends);
                        monitor.relay(output);
                    }
                    let how = match tracing {
                        None => None,
                        Some((how, (outside, inside))) => {
                            drop(inside);
                            if viewed {
                                // The host's names, whatever becomes of the root on the other side.
                                namespaces::leave_mounts()
                                    .map_err(|error| Error::step("keep the host's mounts", error))?;
                            }
                            outside.has_left()?;
                            let judge = Judge::new(plan, native()?, home, parent.as_raw());
                            monitor.trace(Tracer::new(outside, judge, init.as_raw()));
                            Some(how)
                        }
                    };
                    // What the command closed to itself is looked at all the same.
                    let looks =
                        watched.as_ref().map_or(CapabilitySet::empty(), |_| CapabilitySet::DAC_READ_SEARCH);
                    let needs = ceilings.as_ref().map_or(CapabilitySet::empty(), Ceilings::capabilities);
                    if let Some(ceilings) = ceilings {
                        monitor.watch_ceilings(ceilings)?;
                    }
                    // Where the command is another user, or Yama wants it.
                    let traces = match how {
                        Some(_) if plan.process.switch_user => {
                            CapabilitySet::SYS_PTRACE | CapabilitySet::DAC_READ_SEARCH
                        }
                        Some(_) => CapabilitySet::SYS_PTRACE,
                        None => CapabilitySet::empty(),
                    };
                    credentials::drop_capabilities(&plan.process, looks | needs | traces)?;
                    // After unshare(CLONE_NEWPID) no thread can be started here: there the init serves.
                    if let Some(serving) = serving.filter(|_| !namespace) {
                        serving.serve()?;
                    }
                    // Nor must the end of standard error wait, unless something may have to be said there. A
                    // terminal ends with the last descriptor, and who drives it hangs up on what has not exited then.
                    if !(monitor.may_speak() || record.is_kept() || io::stderr().is_terminal()) {
                        sys::close(2);
                    }
                    let end = monitor.run();
                    if let (Some(how), Some(denied)) = (how, &end.denied) {
                        let _ = io::stderr().write_all(denied.text(&how).as_bytes());
                    }
                    return Ok(record.ended(plan, &end, report, watched.as_ref()));
                }
            }
        }
    };
    if viewed {
        namespaces::enter_cgroup().map_err(|error| Error::step("enter the cgroup namespace", error))?;
    }
    let (grants, served) = if viewed {
        let named = standard::reopen_unnamed(caller, &view)?;
        let (root, mut grants, served) = mounts::build(plan, view, &note)?;
        standard::reopen(caller, &named, &root)?;
        timings.mark("mounts");
        mounts::enter(&root)?;
        grants.push(mounts::Grant { fd: root, right: mounts::Right::List, directory: true });
        (grants, served)
    } else {
        (direct::grants(view, &note)?, Vec::new())
    };
    timings.mark("pivot");
    // What has served is left to execve, which closes it with all others: a close each would be a hundred calls.
    // An init does not exec, and would keep the old root.
    let _served = before.is_none().then_some(served);
    enter_directory(caller)?;
    let seat = match before {
        Some(before) => supervise::init::become_init(before, &plan.process, serving)?,
        None => None,
    };
    // After unshare, or the limit of processes would count the host's.
    limits::apply(&plan.process.limits, plan.supervision.is_some())?;
    let emptied = credentials::apply(&plan.process)?;
    writable::check(&writable)?;
    timings.mark("credentials");
    // After the mounts: a landlocked process may not mount.
    landlock::apply(&plan.world.ruleset, &grants, &standard::handed(&caller.standard))?;
    timings.mark("landlock");
    drop_keyring()?;
    descriptors::close_above_on_exec(&plan.process.descriptors)
        .map_err(|error| Error::step("close the inherited descriptors", error))?;
    let program = seccomp::program(native()?, &plan.process.seccomp);
    // Last of all layers: it denies what the steps above use.
    match seat {
        None => {
            seccomp::install(&program).map_err(|error| Error::step("install the seccomp filters", error))?
        }
        Some(seat) => seccomp::install_brokered(&program)
            .and_then(|listener| seat.hand_over(listener))
            .map_err(|error| Error::step("install the seccomp filters and start their broker", error))?,
    }
    timings.mark("seccomp");
    let status = self_check::Status::read()?;
    status.verify(emptied, viewed)?;
    if let Some(tracee) = tracee {
        tracee.await_tracer()?;
    }
    // Nothing but the kernel can refuse any more. While signals that a write can bring are still ignored.
    record.started(plan, || target.executable())?;
    // nohup(1) asks for SIGHUP to stay ignored.
    sys::reset_signals(status.ignored & !(1 << (libc::SIGHUP - 1)))
        .map_err(|error| Error::step("reset the signals", error))?;
    limits::apply_file_size(&plan.process.limits)?;
    timings.mark("self-check");
    timings.print();
    Err(target.become_it())
}

/// What the broker may change and reach, from the same view and plan as everything else.
fn broker_scope(plan: &Plan, view: &View) -> Scope {
    let internet = match (plan.process.seccomp.inet, &plan.world.ruleset.connect) {
        (Inet::All, _) => Internet::Anywhere,
        (Inet::Tcp, Some(ports)) => Internet::Ports(ports.clone()),
        (Inet::Loopback, ports) => Internet::Loopback(ports.clone().unwrap_or_default()),
        _ => Internet::Nowhere,
    };
    let serving = match &plan.world.ruleset.bind {
        _ if !plan.process.seccomp.broker.listen => Internet::Nowhere,
        _ if plan.process.seccomp.inet == Inet::Loopback => Internet::Loopback(Vec::new()),
        None => Internet::Anywhere,
        Some(ports) => Internet::Ports(ports.clone()),
    };
    // In a view the private places too: what listens there is the command's own.
    let viewed = plan.has(Namespace::Mount);
    let writable =
        |place: &&Place| place.access == Access::Write && (viewed || place.backing == Backing::Bind);
    let roots = view.places().filter(writable).map(|place| place.path.clone()).collect();
    Scope::new(roots, view.foreign_sockets.clone(), internet).serving(serving)
}

fn native() -> Result<seccomp::Arch> {
    seccomp::native().ok_or_else(|| {
        Error::refused("no-gain cannot be kept: there is no system call table for this processor")
    })
}

/// For what is asked of their file systems while the command runs.
fn open_roots(view: &View) -> Result<Vec<OwnedFd>> {
    use rustix::fs::{CWD, Mode, OFlags, openat};
    let open = |path: PathBuf| {
        openat(CWD, &path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| Error::path("open", path, errno))
    };
    writable::roots(view).into_iter().map(open).collect()
}

/// A directory of the private tmpfs: `--state` has /tmp elsewhere.
fn private_tmpfs(view: &View) -> Option<PathBuf> {
    view.places().find(|place| matches!(place.backing, Backing::Fresh { .. })).map(|place| place.path.clone())
}

/// The kernel picks the sandbox first when memory runs out. Best effort: a container may forbid it, and nothing
/// was promised. Before /proc becomes read-only.
fn raise_oom_score() {
    use std::os::unix::fs::FileExt;
    const RAISED: i32 = 500;
    let options = fs::OpenOptions::new().read(true).write(true).open("/proc/self/oom_score_adj");
    let Ok(file) = options else { return };
    let mut text = [0; 16];
    let present = file
        .read_at(&mut text, 0)
        .ok()
        .and_then(|length| std::str::from_utf8(text.get(..length)?).ok()?.trim().parse::<i32>().ok());
    if present.is_some_and(|present| present < RAISED) {
        let _ = file.write_at(RAISED.to_string().as_bytes(), 0);
    }
}

/// By path, and compared: a working directory kept over the pivot would still see `..` of the old root.
fn enter_directory(caller: &Caller) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    std::env::set_current_dir(&caller.cwd).map_err(|_| caller.outside_view())?;
    let here = fs::metadata(".").map_err(|error| Error::path("look at", ".", error))?;
    let same = caller.cwd_object.is_none_or(|object| object == (here.dev(), here.ino()));
    if same { Ok(()) } else { Err(caller.outside_view()) }
}

/// Containers forbid keyctl(2), and a user has a quota of keys: the seccomp filter keeps every keyring out of
/// reach in any case.
fn drop_keyring() -> Result<()> {
    match sys::join_new_session_keyring() {
        Err(error)
            if !matches!(
                error.raw_os_error(),
                Some(libc::EPERM | libc::ENOSYS | libc::EDQUOT | libc::EACCES)
            ) =>
        {
            Err(Error::step("start a new session keyring", error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_private_place_is_laid_to_its_limit_and_nothing_else_is() {
        let full = || Error::path("write", "/.confine", io::Error::from_raw_os_error(libc::ENOSPC));
        assert!(lay_to_tmp(full(), Some(4096)).hint().unwrap().contains("--max-tmp 4096"));
        assert_eq!(lay_to_tmp(full(), None).hint(), None);
        let denied = Error::step("write", io::Error::from_raw_os_error(libc::EACCES));
        assert_eq!(lay_to_tmp(denied, Some(4096)).hint(), None);
    }
}
