//! Attempts on a process outside. Its signals are blocked, so that what reaches it stays visible as pending.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, Resource, Rlimit, pidfd_getfd, pidfd_open, pidfd_send_signal, prlimit,
    setpriority_process,
};

use super::aims::Aims;
use super::files::nothing;
use super::rows::Tried;
use crate::sys::{self, attempt, ptrace};

/// As long as the victim's secret at least.
const LENGTH: usize = 64;

fn victim(aims: &Aims) -> io::Result<Pid> {
    Pid::from_raw(aims.at.victim).ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))
}

pub fn probe(aims: &Aims) -> Tried {
    nothing(sys::kill(aims.at.victim, 0))
}

pub fn kill(aims: &Aims) -> Tried {
    nothing(sys::kill(aims.at.victim, libc::SIGUSR1))
}

pub fn resume(aims: &Aims) -> Tried {
    nothing(sys::kill(aims.at.victim, libc::SIGCONT))
}

pub fn queue(aims: &Aims) -> Tried {
    nothing(sys::queue(aims.at.victim, libc::SIGRTMIN() + 1, 0))
}

pub fn by_descriptor(aims: &Aims) -> Tried {
    let process = pidfd_open(victim(aims)?, PidfdFlags::empty())?;
    nothing(pidfd_send_signal(&process, rustix::process::Signal::USR2))
}

pub fn trace(aims: &Aims) -> Tried {
    nothing(attempt::seize(aims.at.victim))
}

pub fn read_memory(aims: &Aims) -> Tried {
    let mut bytes = vec![0; LENGTH];
    let read = ptrace::read(aims.at.victim, aims.at.address, &mut bytes)?;
    bytes.truncate(read);
    Ok(bytes)
}

pub fn read_memory_file(aims: &Aims) -> Tried {
    let mut bytes = vec![0; LENGTH];
    let read = File::open(format!("/proc/{}/mem", aims.at.victim))?.read_at(&mut bytes, aims.at.address)?;
    bytes.truncate(read);
    Ok(bytes)
}

pub fn take_descriptor(aims: &Aims) -> Tried {
    let process = pidfd_open(victim(aims)?, PidfdFlags::empty())?;
    let pipe = pidfd_getfd(&process, aims.at.pipe, PidfdGetfdFlags::empty())?;
    nothing(rustix::io::write(pipe, b"x"))
}

pub fn limit(aims: &Aims) -> Tried {
    nothing(prlimit(Some(victim(aims)?), Resource::Core, Rlimit { current: Some(0), maximum: Some(4096) }))
}

pub fn renice(aims: &Aims) -> Tried {
    nothing(setpriority_process(Some(victim(aims)?), 19))
}

pub fn see(aims: &Aims) -> Tried {
    nothing(fs::metadata(format!("/proc/{}", aims.at.victim)))
}

pub fn reschedule(aims: &Aims) -> Tried {
    nothing(attempt::make_batch(aims.at.victim))
}

pub fn own_child(_: &Aims) -> Tried {
    let child = sys::fork(|| {
        nix::unistd::pause();
        0
    })?;
    sys::kill(child, libc::SIGKILL)?;
    match waitpid(nix::unistd::Pid::from_raw(child), None)? {
        WaitStatus::Signaled(_, Signal::SIGKILL, _) => Ok(Vec::new()),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}
