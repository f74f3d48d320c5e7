//! Ending a tree without a PID namespace. Every orphan comes to a subreaper, so whatever is left is a descendant of the
//! monitor, and of the init while that lives.

use std::fs;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getppid, getsid};
use rustix::process::{WaitId, WaitIdOptions, WaitOptions, wait, waitid};

use super::enclosure::Enclosure;
use super::stat::{self, Stat};
use crate::error::{Error, Result};

/// What the kernel takes to clear away, on a machine that is busy with just that.
const PATIENCE: Duration = Duration::from_secs(10);

/// All that the calling process starts from now on.
#[derive(Debug, Clone)]
pub struct Tree {
    root: Pid,
    enclosure: Option<Enclosure>,
    /// Children that whoever became confine had before.
    foreign: Vec<Pid>,
}

/// Processes that could not be ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left(Vec<Pid>);

impl Left {
    /// One line on standard error. When that is gone there is nobody left to tell.
    pub fn tell(&self) {
        let _ = io::stderr().write_all(self.text().as_bytes());
    }

    fn text(&self) -> String {
        const NAMED: usize = 8;
        let names: Vec<String> = self.0.iter().take(NAMED).map(Pid::to_string).collect();
        let more = if self.0.len() > NAMED { ", ..." } else { "" };
        let (count, names) = (self.0.len(), names.join(", "));
        format!("confine: {count} of the run's processes could not be ended: {names}{more}\n")
    }
}

impl Tree {
    /// Before the first child and the first thread.
    pub fn begin(landlock: u32) -> Result<Tree> {
        set_child_subreaper(true).map_err(|errno| Error::step("become the reaper of orphans", errno))?;
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let foreign = match waitid(WaitId::All, look) {
            Err(rustix::io::Errno::CHILD) => Vec::new(),
            _ => children(std::process::id() as i32),
        };
        Ok(Tree { root: Pid::this(), enclosure: Enclosure::enter(landlock), foreign })
    }

    /// For the init, which is forked with what its parent has and without its children.
    pub fn inherited(&self) -> Tree {
        Tree { root: self.root, enclosure: self.enclosure, foreign: Vec::new() }
    }

    /// Of a child of the root: whether that has gone.
    pub fn is_orphaned(&self) -> bool {
        getppid() != self.root
    }

    /// Whether `strike` reaches whoever else is enclosed: from the init the monitor, from the monitor the init.
    pub fn is_enclosed(&self) -> bool {
        self.enclosure.is_some()
    }

    /// Ends everything enclosed but the calling process, without waiting for it. False if there is no enclosure.
    pub fn strike(&self) -> bool {
        self.enclosure.is_some_and(Enclosure::kill)
    }

    /// Ends everything but the calling process and waits until it has gone.
    pub fn end(&self) -> std::result::Result<(), Left> {
        let until = Instant::now() + PATIENCE;
        // Enclosed, nothing is born after the first blow, and one look finds all that is left. Where it has to be
        // chased no look proves anything: a process that forks and ends was looked for where it had not come yet, or
        // where it was no more.
        let struck = self.strike();
        let mut empty = 0;
        loop {
            if !struck {
                chase(&self.foreign);
            }
            // The kernel's own word: no child, so none that any could come from.
            if reap() == Err(Errno::ECHILD) {
                return Ok(());
            }
            let left = self.members();
            empty = if left.is_empty() { empty + 1 } else { 0 };
            if empty > 0 && (struck || !self.foreign.is_empty() && empty > LOOKS) {
                return Ok(());
            }
            if Instant::now() > until {
                return if left.is_empty() { Ok(()) } else { Err(Left(left)) };
            }
            if struck || left.is_empty() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    fn members(&self) -> Vec<Pid> {
        let mut members = pids(below(&self.foreign));
        members.retain(|pid| self.enclosure.is_none_or(|enclosure| enclosure.holds(*pid)));
        members
    }
}

/// How often in a row nothing is seen before it is believed, where the kernel's word cannot be had: this process has
/// children that are none of the run's.
const LOOKS: u32 = 100;

/// Whoever has ended. ECHILD when there is no child any more; those count too that were made to end with another signal
/// than SIGCHLD, or are traced (wait(2), __WALL).
fn reap() -> std::result::Result<(), Errno> {
    let options = WaitOptions::NOHANG | WaitOptions::from_bits_retain(libc::__WALL as u32);
    loop {
        match wait(options) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return Ok(()),
            Err(errno) => return Err(Errno::from_raw(errno.raw_os_error())),
        }
    }
}

/// One blow at each that is seen. A process group is hit as a whole, forks in flight too, and one in a session of the
/// run's making has nobody else in it: setsid(2) begins with the caller alone, and setpgid(2) stays in a session.
fn chase(foreign: &[Pid]) {
    // Orphans come here, so who forks and ends at every turn passes by. This list is read in less than a turn.
    for _ in 0..LOOKS {
        let children = children_of_this();
        if children.is_empty() {
            break;
        }
        for pid in children.iter().filter(|pid| !foreign.contains(pid)) {
            let _ = kill(*pid, Signal::SIGKILL);
        }
        let _ = reap();
    }
    let own = getsid(None).map_or(0, Pid::as_raw);
    for process in below(foreign) {
        if process.session != own && process.session > 0 && process.group > 1 {
            let _ = killpg(Pid::from_raw(process.group), Signal::SIGKILL);
        }
        let _ = kill(Pid::from_raw(process.pid), Signal::SIGKILL);
    }
}

/// Children of the calling process, of all its threads, where the kernel lists them (CONFIG_PROC_CHILDREN).
fn children_of_this() -> Vec<Pid> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<i32>>())
        .map(Pid::from_raw)
        .collect()
}

fn children(parent: i32) -> Vec<Pid> {
    pids(processes().into_iter().filter(|process| process.parent == parent))
}

/// Every process below this one, from the parents that /proc tells.
pub fn descendants() -> Vec<Pid> {
    pids(below(&[]))
}

fn pids(processes: impl IntoIterator<Item = Stat>) -> Vec<Pid> {
    processes.into_iter().map(|process| Pid::from_raw(process.pid)).collect()
}

fn below(foreign: &[Pid]) -> Vec<Stat> {
    let own = std::process::id() as i32;
    let mut all = processes();
    all.retain(|process| !foreign.contains(&Pid::from_raw(process.pid)));
    let mut members = stat::descendants(all, own);
    members.retain(|process| process.pid != own);
    members
}

/// All that live.
fn processes() -> Vec<Stat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit))
        .filter_map(|entry| fs::read(entry.path().join("stat")).ok())
        .filter_map(|text| Stat::parse(&String::from_utf8_lossy(&text)))
        .filter(|process| !process.dead)
        .collect()
}

#[cfg(test)]
mod tests;
