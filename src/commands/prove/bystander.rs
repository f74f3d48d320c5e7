//! Another process of the same user, which does nothing but hold what others want.

use std::fs;
use std::io::{self, PipeWriter};

use nix::sys::prctl::{set_dumpable, set_pdeathsig};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{Gid, Pid, Uid, getpid, getppid, pause, setgroups, setresgid, setresuid};

use crate::sys;

pub struct Bystander {
    pub pid: i32,
    /// Of the secret in its memory.
    pub address: u64,
}

impl Bystander {
    /// The caller has one thread. `writer` stays open in the child by the same number.
    pub fn start(secret: &str, writer: &PipeWriter, uid: u32, gid: u32) -> io::Result<Bystander> {
        let address = secret.as_ptr() as u64;
        let (mut ready, tell) = io::pipe()?;
        let parent = getpid();
        let pid = sys::fork(|| {
            // Never to be delivered, so that what was sent can be seen as pending.
            if sys::all_signals().thread_block().is_err() || become_user(uid, gid).is_err() {
                return 1;
            }
            // Changing identity takes both of these away: a process that nobody may trace proves nothing.
            if set_dumpable(true).is_err() || set_pdeathsig(Some(Signal::SIGKILL)).is_err() {
                return 1;
            }
            if getppid() != parent || io::Write::write_all(&mut (&tell), b"!").is_err() {
                return 1;
            }
            let _ = writer;
            loop {
                pause();
            }
        })?;
        drop(tell);
        io::Read::read_exact(&mut ready, &mut [0])?;
        Ok(Bystander { pid, address })
    }

    /// What signals, tracers and other meddlers leave behind (proc_pid_status(5), proc_pid_stat(5)).
    pub fn look(&self) -> io::Result<Vec<(String, String)>> {
        let read = |name: &str| fs::read_to_string(format!("/proc/{}/{name}", self.pid));
        let mut seen = Vec::new();
        for line in read("status")?.lines() {
            if let Some((name, value)) = line.split_once(':')
                && matches!(name, "TracerPid" | "SigPnd" | "ShdPnd")
            {
                seen.push((name.to_owned(), value.trim().to_owned()));
            }
        }
        let stat = read("stat")?;
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        for (name, index) in [("state", 0), ("nice value", 16), ("policy", 38)] {
            // Asleep or on its way there.
            let value = fields.get(index).copied().unwrap_or_default().replace(['R', 'S'], "alive");
            seen.push((name.to_owned(), value));
        }
        let limits = read("limits")?;
        let core = limits.lines().find(|line| line.starts_with("Max core"));
        seen.push(("limits".to_owned(), core.unwrap_or_default().to_owned()));
        Ok(seen)
    }
}

fn become_user(uid: u32, gid: u32) -> nix::Result<()> {
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    if uid == Uid::effective() {
        return Ok(());
    }
    setgroups(&[])?;
    setresgid(gid, gid, gid)?;
    setresuid(uid, uid, uid)
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.pid);
        let _ = kill(pid, Signal::SIGKILL);
        let _ = waitpid(pid, None);
    }
}
