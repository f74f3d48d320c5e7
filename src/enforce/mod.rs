//! Applying a plan. `apply` is the order, one screen: each line is a step, and where a line may not move, it says
//! so. Why a step is taken at all is the plan's business.
#![forbid(unsafe_code)]

pub mod credentials;
pub mod descriptors;
mod direct;
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
mod veil;

use std::fs;
use std::path::PathBuf;

use crate::enforce::seccomp::Inet;
use crate::error::{Error, Result, paste, show};
use crate::plan::{Namespace, Plan};
use crate::record::{Record, Timings};
use crate::supervise::broker::{Internet, Scope, Seat};
use crate::supervise::monitor::Monitor;
use crate::supervise::{self, Role};
use crate::sys;
use crate::view::caller::Caller;
use crate::view::{Access, Backing, View};

/// Everything a run needs besides the plan: what is open, and what must not be written down.
pub struct Run<'a> {
    pub plan: &'a Plan,
    pub view: View,
    pub caller: &'a Caller,
    pub target: exec::Target,
    pub note: String,
    pub record: Record,
    pub timings: Timings,
}

/// Closes the boundary around this process and becomes the command. Returns with the reason why not; or, as the
/// parent of a supervised command, with its status.
pub fn apply(mut run: Run<'_>) -> Result<u8> {
    let mut record = std::mem::take(&mut run.record);
    steps(run, &mut record).inspect_err(|error| record.refused(error))
}

fn steps(run: Run<'_>, record: &mut Record) -> Result<u8> {
    let Run { plan, view, caller, target, note, mut timings, .. } = run;
    let writable = writable_roots(&view);
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
    let brokered = plan.process.seccomp.broker.any();
    let seat = match brokered.then(Seat::new) {
        None => None,
        Some(seat) => Some(seat.map_err(|error| Error::step("make the broker's socket", error))?),
    };
    // From here on there may be two of us: the monitor waits, the child goes on.
    let link = match &plan.supervision {
        None => None,
        Some(supervision) => {
            let watched = Monitor::watch_caller();
            match supervise::split()? {
                Role::Init { link } => Some(link),
                Role::Monitor { init, link } => {
                    // What is open here would be kept busy for as long as the command runs.
                    let scope = broker_scope(plan, &view);
                    drop((view, target));
                    plan.process.descriptors.iter().copied().for_each(sys::close);
                    let monitor = Monitor::new(link, init, supervision, watched)?;
                    credentials::drop_capabilities(&plan.process)?;
                    // After the capabilities: the broker may do no more than the command.
                    if let Some(seat) = seat {
                        let arch = native()?;
                        seat.serve(scope, arch).map_err(|error| Error::step("start the broker", error))?;
                    }
                    return Ok(record.ended(monitor.run()));
                }
            }
        }
    };
    let (grants, served) = if viewed {
        let (root, grants, mut served) = mounts::build(plan, view, &note)?;
        timings.mark("mounts");
        mounts::enter(&root)?;
        served.push(root);
        (grants, served)
    } else {
        (direct::grants(view, &note)?, Vec::new())
    };
    timings.mark("pivot");
    // What has served is left to execve, which closes it with all others: a close each would be a hundred calls.
    // An init does not exec, and would keep the old root.
    let _served = link.is_none().then_some(served);
    enter_directory(caller)?;
    let handed = standard::reopen(&caller.standard, viewed)?;
    if let Some(link) = link {
        supervise::init::become_init(link, plan.has(Namespace::Pid), &plan.process)?;
    }
    // After unshare, or the limit of processes would count the host's.
    limits::apply(&plan.process.limits)?;
    let emptied = credentials::apply(&plan.process)?;
    check_writable(&writable)?;
    timings.mark("credentials");
    // After the mounts: a landlocked process may not mount.
    landlock::apply(&plan.world.ruleset, &grants, &handed)?;
    timings.mark("landlock");
    drop_keyring()?;
    descriptors::close_above_on_exec(&plan.process.descriptors)
        .map_err(|error| Error::step("close the inherited descriptors", error))?;
    let programs = seccomp_programs(plan)?;
    // Last of all layers: it denies what the steps above use.
    match seat {
        None => {
            seccomp::install(&programs).map_err(|error| Error::step("install the seccomp filters", error))?
        }
        Some(seat) => seccomp::install_brokered(&programs)
            .and_then(|listener| seat.hand_over(listener))
            .map_err(|error| Error::step("install the seccomp filters and start their broker", error))?,
    }
    timings.mark("seccomp");
    let status = self_check::Status::read()?;
    status.verify(emptied, viewed)?;
    // nohup(1) asks for SIGHUP to stay ignored.
    sys::reset_signals(status.ignored & !(1 << (libc::SIGHUP - 1)))
        .map_err(|error| Error::step("reset the signals", error))?;
    timings.mark("self-check");
    record.started(plan)?;
    timings.print();
    Err(target.become_it())
}

/// What the broker may change and reach, from the same view and plan as everything else.
fn broker_scope(plan: &Plan, view: &View) -> Scope {
    let internet = match (plan.process.seccomp.inet, &plan.world.ruleset.connect) {
        (Inet::All, _) => Internet::Anywhere,
        (Inet::Tcp, Some(ports)) => Internet::Ports(ports.clone()),
        _ => Internet::Nowhere,
    };
    Scope::new(writable_roots(view), view.foreign_sockets.clone(), internet)
}

fn native() -> Result<seccomp::Arch> {
    seccomp::native().ok_or_else(|| {
        Error::refused("no-gain cannot be kept: there is no system call table for this processor")
    })
}

fn writable_roots(view: &View) -> Vec<PathBuf> {
    view.places()
        .filter(|place| place.access == Access::Write && place.backing == Backing::Bind)
        .map(|place| place.path.clone())
        .collect()
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
    if (here.dev(), here.ino()) == caller.cwd_object { Ok(()) } else { Err(caller.outside_view()) }
}

/// With the command's own identity, which for root has no capability to override a mode any more.
fn check_writable(roots: &[PathBuf]) -> Result<()> {
    use rustix::fs::{Access as Mode, AtFlags, CWD, accessat};
    for root in roots {
        if accessat(CWD, root, Mode::WRITE_OK, AtFlags::EACCESS).is_ok() {
            continue;
        }
        let owner = fs::metadata(root).map(|found| std::os::unix::fs::MetadataExt::uid(&found));
        let path = show(root.as_os_str()).to_string();
        let error =
            Error::refused(format!("{path} cannot be written by the identity that the command will have"));
        return Err(match owner {
            Ok(owner) if owner != 0 => error.with_hint(format!(
                "as root, run as its owner with `--user {owner}`; or show it with `--read-only` or `--ro {}`",
                paste(root.as_os_str())
            )),
            _ => error.with_hint("show it with `--read-only`"),
        });
    }
    Ok(())
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

fn seccomp_programs(plan: &Plan) -> Result<Vec<seccomp::Program>> {
    seccomp::programs(native()?, &plan.process.seccomp)
        .map_err(|error| Error::step("compile the seccomp filters", std::io::Error::other(error.to_string())))
}
