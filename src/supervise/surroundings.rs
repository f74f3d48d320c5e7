//! What the monitor has to know of the outside, looked at before anything is forked or mounted: afterwards /proc
//! is the command's, and the caller may have gone.

use std::os::fd::OwnedFd;
use std::time::Duration;

use nix::sys::prctl::{get_pdeathsig, set_pdeathsig};
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid};
use rustix::process::{PidfdFlags, pidfd_open};
use rustix::time::{ClockId, clock_gettime};

use super::terminal::Terminal;
use crate::enforce::self_check::Status;
use crate::error::{Error, Result};
use crate::plan::Supervision;

/// After TERM, unless `--grace` says otherwise: short enough that nothing is left within a second, on a busy host too.
const GRACE: Duration = Duration::from_millis(600);

/// CLOCK_BOOTTIME: a lease runs on while the machine is suspended.
pub fn now() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

pub struct Surroundings {
    pub caller: Option<Watched>,
    pub terminal: Option<Terminal>,
    pub grace: Duration,
    pub deadline: Option<Duration>,
    /// SIGHUP was ignored when confine was started, as nohup(1) does it.
    pub hangup_ignored: bool,
}

/// The process that started confine.
pub struct Watched {
    parent: Pid,
    /// None where the kernel or a container's filter has no pidfd_open(2).
    pub pidfd: Option<OwnedFd>,
}

impl Surroundings {
    /// `parent` is who was the parent when confine began: if it is another process now, the caller has gone.
    pub fn look(supervision: &Supervision, parent: Pid) -> Result<Surroundings> {
        let caller = match supervision.teardown {
            true => Some(Watched::begin(parent)?),
            false => None,
        };
        Ok(Surroundings {
            caller,
            terminal: Terminal::find(),
            grace: supervision.grace.unwrap_or(GRACE),
            deadline: supervision.timeout.map(|timeout| now().saturating_add(timeout)),
            hangup_ignored: Status::read()?.ignored >> (libc::SIGHUP - 1) & 1 == 1,
        })
    }
}

impl Watched {
    /// Two ways at once. The pidfd tells of the end of the whole process, whichever of its threads started
    /// confine. The parent-death signal comes with the end of that thread (prctl(2), PR_SET_PDEATHSIG), so it may
    /// only be a hint to look who the parent is: but it continues a stopped monitor, and needs no pidfd.
    fn begin(parent: Pid) -> Result<Watched> {
        // Zero: the caller is outside this PID namespace.
        let pidfd = rustix::process::Pid::from_raw(parent.as_raw())
            .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let failed = |errno: nix::errno::Errno| Error::step("watch the caller", errno);
        // A caller that asked for another signal shall have it.
        if pidfd.is_none() || get_pdeathsig().map_err(failed)?.is_none() {
            set_pdeathsig(Some(Signal::SIGCONT)).map_err(failed)?;
        }
        let watched = Watched { parent, pidfd };
        if watched.has_gone() {
            return Err(Error::refused("the process that started confine has gone already"));
        }
        Ok(watched)
    }

    pub fn has_gone(&self) -> bool {
        getppid() != self.parent
    }
}
