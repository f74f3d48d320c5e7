//! What a tree uses, as /proc tells it: for hosts on which no control group counts.
//!
//! What it sees is memory that is mapped in or held by a descriptor, and the private /tmp. Shared memory that was
//! filled and then unmapped, or a descriptor on its way through a socket, is seen by nobody but the kernel.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::unistd::{Pid, SysconfVar, sysconf};
use rustix::fs::{
    AtFlags, CWD, Dir, MemfdFlags, Mode, OFlags, fstat, fstatvfs, memfd_create, openat, readlinkat, statat,
};

use super::stat::{Clock, Stat, descendants};
use super::walk::{Shares, Walk};
use crate::error::{Error, Result};
use crate::sys;

pub struct Sampler {
    /// The caller's /proc, opened before the pivot.
    host: OwnedFd,
    /// That of the PID namespace, once the view shows it: nothing but the tree is in it.
    inner: Option<OwnedFd>,
    /// A directory of the private tmpfs, by its name inside.
    own_tmp: Option<PathBuf>,
    tmp: Option<OwnedFd>,
    /// The file system of memfds and shared mappings.
    shared: Option<u64>,
    swap: bool,
    clock: Clock,
    /// A count that is not finished.
    walk: Option<Walk>,
    page: u64,
}

/// Of everything but the init itself.
#[derive(Debug, Default)]
pub struct Use {
    /// At most this much: pages that are shared count for each.
    pub resident: u64,
    pub threads: u64,
    pub cpu: Duration,
    members: Vec<Stat>,
    unmapped: u64,
}

/// What a tree had used when it was ended: of what nobody waits for the kernel keeps no account (getrusage(2)).
#[derive(Debug, Clone, Copy)]
pub struct Spent {
    pub user: Duration,
    pub system: Duration,
    /// Resident memory of the largest process, at most.
    pub peak: u64,
}

impl Sampler {
    pub fn new(own_tmp: Option<PathBuf>) -> io::Result<Sampler> {
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let shared = memfd_create("confine", MemfdFlags::CLOEXEC).and_then(fstat).map(|found| found.st_dev);
        let number = |variable, otherwise| match sysconf(variable) {
            Ok(Some(value)) if value > 0 => value as u64,
            _ => otherwise,
        };
        Ok(Sampler {
            host: openat(CWD, "/proc", DIRECTORY, Mode::empty())?,
            inner: None,
            own_tmp,
            tmp: None,
            shared: shared.ok(),
            swap: kilobytes(&meminfo, "SwapTotal").is_some_and(|total| total > 0),
            walk: None,
            clock: Clock::new(number(SysconfVar::CLK_TCK, 100)),
            page: number(SysconfVar::PAGE_SIZE, 4096),
        })
    }

    /// For a look at what was used.
    pub fn of_the_end() -> Result<Sampler> {
        Sampler::new(None).map_err(|error| Error::step("count what is used", error))
    }

    /// `enough` processes are not looked at one by one any more: that they are too many is known already. `resident`
    /// costs a look at every descriptor, and is zero unless `memory` is asked for.
    pub fn look(&mut self, init: Pid, enough: Option<u64>, memory: bool) -> Use {
        self.find_inner();
        if let (Some(inner), Some(enough)) = (&self.inner, enough) {
            let count = numbers(inner).count() as u64;
            if count > enough + 1 {
                return Use { threads: count - 1, ..Use::default() };
            }
        }
        let mut members = self.members(init);
        let mut found = Use { cpu: self.clock.count(&members), ..Use::default() };
        if memory {
            found.unmapped = self.unmapped(&members);
            found.resident = found.unmapped;
        }
        members.retain(|member| member.pid != self.number(init));
        for member in &members {
            found.threads += member.threads;
            if memory {
                found.resident += member.resident * self.page;
                if self.swap {
                    found.resident += self.status(&member.place(), "VmSwap").unwrap_or(0);
                }
            }
        }
        found.members = members;
        found
    }

    /// Just before the end of all of it, which must not wait for long.
    pub fn spent(&mut self, init: Pid) -> Spent {
        const SLICE: Duration = Duration::from_millis(20);
        self.find_inner();
        let members = self.members(init);
        let (user, system) = self.clock.accounts(&members);
        let end = Instant::now() + SLICE;
        let others = members.iter().filter(|member| member.pid != self.number(init));
        let peaks = others
            .take_while(|_| Instant::now() < end)
            .filter_map(|member| self.status(&member.place(), "VmHWM"));
        Spent { user, system, peak: peaks.max().unwrap_or(0) }
    }

    /// Processes and threads that were there at one moment. Asked when `Use::threads` is over the line: one that ends
    /// and one that begins while they are listed were never there together.
    pub fn threads(&mut self, init: Pid, enough: u64) -> u64 {
        if let Some(inner) = &self.inner {
            let first: HashSet<i32> = numbers(inner).collect();
            let count = numbers(inner).filter(|pid| first.contains(pid)).count() as u64;
            if count > enough + 1 {
                return count - 1;
            }
        }
        let first: HashMap<_, _> =
            self.members(init).iter().map(|member| (member.key(), member.threads)).collect();
        let again = self.members(init);
        let others = again.iter().filter(|member| member.pid != self.number(init));
        others.filter_map(|member| Some(member.threads.min(*first.get(&member.key())?))).sum()
    }

    /// Whether there is more than `limit`, each page counted once. Dearer, so only asked when `Use::resident` is over the
    /// line, and again while it is: one call reads for a slice of time and goes on with the next.
    pub fn is_over(&mut self, init: Pid, limit: u64, found: &Use) -> bool {
        const SLICE: Duration = Duration::from_millis(100);
        let end = Instant::now() + SLICE;
        let mut walk = self.walk.take().unwrap_or_else(|| self.begin(init, found));
        while let Some(member) = walk.next() {
            let shares = self.shares(&member);
            walk.add(member, shares);
            if walk.sum() > limit {
                walk.retain(|member| self.has_memory(member));
                if walk.sum() > limit {
                    return true;
                }
            }
            if Instant::now() > end {
                self.walk = Some(walk);
                return false;
            }
        }
        false
    }

    /// What was read of an unfinished count is old.
    pub fn start_over(&mut self) {
        self.walk = None;
    }

    fn begin(&self, init: Pid, found: &Use) -> Walk {
        // Between vfork(2) and execve(2) a child has its parent's memory, and both tell all of it.
        let same = self.sharing(init, &found.members);
        let counts = |member: &&Stat| {
            let borrows = same.contains(&member.pid) && member.thread.is_none();
            member.resident > 0 && !borrows
        };
        Walk::new(found.members.iter().filter(counts).copied().collect(), found.unmapped)
    }

    /// Of one process: anonymous memory, and shared.
    fn shares(&self, member: &Stat) -> Shares {
        let place = member.place();
        let rollup = self.read(&format!("{place}/smaps_rollup")).unwrap_or_default();
        match (kilobytes(&rollup, "Pss_Anon"), kilobytes(&rollup, "Pss_Shmem")) {
            (Some(anonymous), Some(shared)) => {
                (anonymous + kilobytes(&rollup, "SwapPss").unwrap_or(0), shared)
            }
            // Not to be read: then all that is not a file's.
            _ => (self.anonymous(&place), 0),
        }
    }

    fn anonymous(&self, place: &str) -> u64 {
        let text = self.read(&format!("{place}/statm")).unwrap_or_default();
        let mut fields = text.split_ascii_whitespace().skip(1).map(|field| field.parse::<u64>().unwrap_or(0));
        let (resident, shared) = (fields.next().unwrap_or(0), fields.next().unwrap_or(0));
        resident.saturating_sub(shared) * self.page
    }

    /// Whether it is still there, and not on its way out: exit(2) takes the memory first.
    fn has_memory(&self, member: &Stat) -> bool {
        self.stat(member.pid).is_some_and(|now| now.key() == member.key() && now.resident > 0)
    }

    /// Those that have the memory of their parent, by the numbers of `members`.
    fn sharing(&self, init: Pid, members: &[Stat]) -> HashSet<i32> {
        let same = |one: i32, other: i32| sys::share_memory(one, other).unwrap_or(false);
        if self.inner.is_none() {
            let same = members.iter().filter(|member| same(member.pid, member.parent));
            return same.map(|member| member.pid).collect();
        }
        // The kernel takes the numbers that this process knows them by, and tells in the inner ones' own /proc others.
        let (mut found, mut above) = (HashSet::new(), vec![init.as_raw()]);
        while let Some(parent) = above.pop() {
            for child in self.children(parent) {
                if same(child, parent) {
                    found.extend(self.number_inside(child));
                }
                above.push(child);
            }
        }
        found
    }

    /// By the host's numbers: /proc/PID/task/TID/children, of each thread.
    fn children(&self, pid: i32) -> Vec<i32> {
        let task = openat(&self.host, format!("{pid}/task"), DIRECTORY, Mode::empty());
        let threads: Vec<i32> = task.iter().flat_map(numbers).collect();
        let listed = threads.into_iter().filter_map(|thread| {
            let text = read(&self.host, &format!("{pid}/task/{thread}/children")).ok()?;
            Some(text.split_ascii_whitespace().filter_map(|child| child.parse().ok()).collect::<Vec<i32>>())
        });
        listed.flatten().collect()
    }

    fn number_inside(&self, pid: i32) -> Option<i32> {
        let status = read(&self.host, &format!("{pid}/status")).ok()?;
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
        numbers.split_ascii_whitespace().next_back()?.parse().ok()
    }

    /// The private /tmp, memfds and System V segments, whether or not somebody has them mapped.
    fn unmapped(&self, members: &[Stat]) -> u64 {
        let tmp = self.tmp.as_ref().map_or(0, used);
        let mut seen = HashSet::new();
        let memfds: u64 = members.iter().map(|member| self.memfds(&member.place(), &mut seen)).sum();
        tmp + memfds + self.segments()
    }

    fn memfds(&self, place: &str, seen: &mut HashSet<u64>) -> u64 {
        let Ok(directory) = openat(self.proc(), format!("{place}/fd"), DIRECTORY, Mode::empty()) else {
            return 0;
        };
        let Ok(entries) = Dir::read_from(&directory) else { return 0 };
        let mut bytes = 0;
        for entry in entries.flatten() {
            // The link's text first: to stat what it leads to may wait for a file system that is out of reach.
            let Ok(target) = readlinkat(&directory, entry.file_name(), Vec::new()) else { continue };
            if !target.to_bytes().starts_with(b"/memfd:") {
                continue;
            }
            let Ok(found) = statat(&directory, entry.file_name(), AtFlags::empty()) else { continue };
            if Some(found.st_dev) == self.shared && seen.insert(found.st_ino) {
                bytes += found.st_blocks as u64 * 512;
            }
        }
        bytes
    }

    /// This process is in the command's IPC namespace (sysvipc(7), /proc/sysvipc/shm).
    fn segments(&self) -> u64 {
        if self.inner.is_none() {
            return 0;
        }
        let text = self.read("sysvipc/shm").unwrap_or_default();
        let mut lines = text.lines();
        let header = lines.next().unwrap_or_default();
        let columns: Vec<usize> = header
            .split_ascii_whitespace()
            .enumerate()
            .filter(|(_, name)| ["rss", "swap"].contains(name))
            .map(|(index, _)| index)
            .collect();
        let value = |line: &str, column: usize| -> u64 {
            line.split_ascii_whitespace().nth(column).and_then(|field| field.parse().ok()).unwrap_or(0)
        };
        lines.map(|line| columns.iter().map(|column| value(line, *column)).sum::<u64>()).sum()
    }

    /// The pivot of the command's side moves this process's root too. In the new /proc this process does not
    /// exist, being outside the PID namespace; that tells it from the old one.
    fn find_inner(&mut self) {
        if self.inner.is_some() {
            return;
        }
        let elsewhere = readlinkat(CWD, "/proc/self", Vec::new()) == Err(rustix::io::Errno::NOENT);
        if elsewhere
            && let Ok(fd) = openat(CWD, "/proc", DIRECTORY, Mode::empty())
            && openat(&fd, "1/stat", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).is_ok()
        {
            self.inner = Some(fd);
            self.tmp = self.own_tmp.take().and_then(|path| openat(CWD, path, DIRECTORY, Mode::empty()).ok());
        }
    }

    fn proc(&self) -> &OwnedFd {
        self.inner.as_ref().unwrap_or(&self.host)
    }

    fn members(&self, init: Pid) -> Vec<Stat> {
        let all: Vec<Stat> = numbers(self.proc()).filter_map(|pid| self.stat(pid)).collect();
        if self.inner.is_some() { all } else { descendants(all, init.as_raw()) }
    }

    fn stat(&self, pid: i32) -> Option<Stat> {
        let mut found = Stat::parse(&self.read(&format!("{pid}/stat")).ok()?)?;
        if found.is_headless() {
            let task = openat(self.proc(), format!("{pid}/task"), DIRECTORY, Mode::empty()).ok()?;
            let threads = numbers(&task).filter(|thread| *thread != pid);
            let mut living = threads.filter_map(|thread| {
                let stat = Stat::parse(&self.read(&format!("{pid}/task/{thread}/stat")).ok()?)?;
                (stat.resident > 0).then_some((thread, stat.resident))
            });
            if let Some((thread, resident)) = living.next() {
                (found.thread, found.resident) = (Some(thread), resident);
            }
        }
        Some(found)
    }

    /// By which the init is listed.
    fn number(&self, init: Pid) -> i32 {
        if self.inner.is_some() { 1 } else { init.as_raw() }
    }

    fn status(&self, place: &str, key: &str) -> Option<u64> {
        kilobytes(&self.read(&format!("{place}/status")).ok()?, key)
    }

    fn read(&self, path: &str) -> io::Result<String> {
        read(self.proc(), path)
    }
}

fn read(proc: &OwnedFd, path: &str) -> io::Result<String> {
    let fd = openat(proc, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut bytes = Vec::with_capacity(1024);
    io::Read::read_to_end(&mut fs::File::from(fd), &mut bytes)?;
    // A process may call itself anything.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

fn numbers(proc: &OwnedFd) -> impl Iterator<Item = i32> {
    let entries = Dir::read_from(proc).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str().ok()?.parse().ok())
}

fn used(fd: &OwnedFd) -> u64 {
    fstatvfs(fd)
        .map_or(0, |found| found.f_blocks.saturating_sub(found.f_bfree).saturating_mul(found.f_frsize))
}

/// `Key:   123 kB`, in bytes.
fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    rest.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_of_ours_is_seen_with_its_memory() {
        let mut sampler = Sampler::new(None).unwrap();
        let own = Pid::this();
        assert!(sampler.members(own).iter().any(|stat| stat.pid == own.as_raw() && stat.resident > 0));
        // Without children there is nothing but the "init" itself.
        let block = vec![1_u8; 32 << 20];
        let child = std::process::Command::new("sleep").arg("10").spawn();
        let mut child = child.unwrap();
        // Right after its execve(2) it may have no page yet that the kernel's own counters tell.
        let end = std::time::Instant::now() + Duration::from_secs(5);
        let mut found = sampler.look(own, None, true);
        while found.resident == 0 && std::time::Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
            found = sampler.look(own, None, true);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.threads >= 1 && found.resident > 0, "{found:?}");
        assert_eq!(block.iter().filter(|byte| **byte == 1).count(), 32 << 20);
    }

    #[test]
    fn a_process_that_ended_meanwhile_counts_for_nothing() {
        let sampler = Sampler::new(None).unwrap();
        let mut child = std::process::Command::new("sleep").arg("10").spawn().unwrap();
        let pid = child.id() as i32;
        let members: Vec<Stat> =
            sampler.members(Pid::this()).into_iter().filter(|stat| stat.pid == pid).collect();
        assert_eq!(members.len(), 1);
        let end = std::time::Instant::now() + Duration::from_secs(5);
        let count = |member: &Stat| {
            let mut walk = Walk::default();
            walk.add(*member, sampler.shares(member));
            walk.retain(|member| sampler.has_memory(member));
            walk.sum()
        };
        while count(&members[0]) == 0 && std::time::Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(count(&members[0]) > 0);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(count(&members[0]), 0);
    }

    #[test]
    fn sizes_of_proc_are_kilobytes() {
        let text = "Pss:  10 kB\nPss_Anon:        3 kB\nPss_Shmem:  1 kB\n";
        assert_eq!(kilobytes(text, "Pss_Anon"), Some(3072));
        assert_eq!(kilobytes(text, "Pss"), Some(10240));
        assert_eq!(kilobytes(text, "Swap"), None);
    }
}
