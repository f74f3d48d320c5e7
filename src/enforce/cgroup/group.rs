//! One run's control group: made, entered by the init, read while the tree runs, removed.
//!
//! Everything is reached by descriptors from before the pivot: afterwards no path of the monitor leads to a
//! cgroup file.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::poll::PollFlags;
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::unistd::Pid;
use rustix::fs::{AtFlags, Dir, Mode, OFlags, fstat, mkdirat, open, openat, unlinkat};

use super::bus::Bus;
use super::{Controller, Site};
use crate::error::{Error, Result};
use crate::plan::Ceilings;

/// The init is inside too, and is not one of the command's.
const INIT: u64 = 1;

pub struct Group {
    /// Only the process that made the directories removes them, not its children.
    owner: u32,
    name: String,
    directories: Vec<Directory>,
    manager: Option<(Bus, PathBuf)>,
    limits: Ceilings,
    notice: Option<Notice>,
}

struct Directory {
    /// None when it is not ours to remove.
    parent: Option<OwnedFd>,
    fd: OwnedFd,
    /// None for the one hierarchy of cgroup v2.
    v1: Option<Controller>,
}

/// Becomes ready when the kernel had to kill for want of memory.
enum Notice {
    Events(File),
    EventFd(EventFd),
}

impl Group {
    /// Makes the directories and sets the limits; nothing is in them yet.
    pub fn make(site: &Site, limits: &Ceilings) -> Result<Option<Group>> {
        let failed = |error: io::Error| {
            Error::step(format!("make a control group ({})", site.mechanism().name()), error)
        };
        let identity = Identity::read("self").map_err(failed)?;
        let mut group = Group {
            owner: std::process::id(),
            name: identity.name(),
            directories: Vec::new(),
            manager: None,
            limits: limits.clone(),
            notice: None,
        };
        match site {
            Site::Nowhere => return Ok(None),
            Site::UserManager { bus, mount } => {
                group.manager = Some((Bus::connect(bus).map_err(failed)?, mount.clone()));
            }
            Site::V2 { parent, enable } => {
                if !enable.is_empty() {
                    fs::write(parent.join("cgroup.subtree_control"), enable).map_err(failed)?;
                }
                group.add(parent, None).map_err(failed)?;
            }
            Site::V1(parents) => {
                for (controller, parent) in parents {
                    group.add(parent, Some(*controller)).map_err(failed)?;
                }
            }
        }
        Ok(Some(group))
    }

    fn add(&mut self, parent: &Path, v1: Option<Controller>) -> io::Result<()> {
        let parent = open_directory(parent)?;
        remove_dead(&parent);
        mkdirat(&parent, &self.name, Mode::from_raw_mode(0o755))?;
        let made = openat(&parent, &self.name, DIRECTORY, Mode::empty());
        let Ok(fd) = made else {
            let _ = unlinkat(&parent, &self.name, AtFlags::REMOVEDIR);
            return Err(io::ErrorKind::NotFound.into());
        };
        // In the list before anything can fail: what is listed is removed.
        self.directories.push(Directory { parent: Some(parent), fd, v1 });
        let Some(directory) = self.directories.last() else { return Ok(()) };
        if v1.is_none_or(|controller| controller == Controller::Memory)
            && let Some(bytes) = self.limits.memory
        {
            directory.limit_memory(bytes)?;
            self.notice = directory.notice();
        }
        if v1.is_none_or(|controller| controller == Controller::Pids)
            && let Some(count) = self.limits.procs
        {
            directory.write("pids.max", &count.saturating_add(INIT).to_string())?;
        }
        Ok(())
    }

    /// Moves the init in, before it has a child.
    pub fn admit(&mut self, init: Pid) -> Result<()> {
        let failed = |error: io::Error| Error::step("put the command into its control group", error);
        for directory in &self.directories {
            directory.write("cgroup.procs", &init.to_string()).map_err(failed)?;
        }
        if let Some((bus, mount)) = &mut self.manager {
            let unit = format!("{}.scope", self.name);
            let limits =
                Ceilings { procs: self.limits.procs.map(|n| n.saturating_add(INIT)), ..self.limits.clone() };
            bus.start_scope(&unit, init.as_raw() as u32, &limits).map_err(|error| {
                Error::step("have the systemd user manager start a scope", error)
                    .with_hint("`systemctl --user status` tells whether it works")
            })?;
            // Believed only when the kernel says so too.
            let path = scope_of(init, &unit).map_err(failed)?;
            let fd = open_directory(&mount.join(path)).map_err(failed)?;
            let directory = Directory { parent: None, fd, v1: None };
            for (file, asked) in [("memory.max", self.limits.memory), ("pids.max", limits.procs)] {
                if asked.is_some() && directory.read(file).map_err(failed)?.trim() == "max" {
                    return Err(Error::refused(format!("the systemd user manager has not set {file}"))
                        .with_hint("the controller is not delegated to it: see Delegate= in systemd.resource-control(5)"));
                }
            }
            self.notice = self.limits.memory.and_then(|_| directory.notice());
            self.directories.push(directory);
            self.manager = None;
        }
        Ok(())
    }

    /// How often the kernel has killed because the tree was at its limit, or None when it does not tell.
    pub fn memory_kills(&self) -> Option<u64> {
        self.limits.memory?;
        let told = |directory: &Directory| match directory.v1 {
            None => value_of(&directory.read("memory.events").ok()?, "oom_kill"),
            Some(Controller::Memory) => value_of(&directory.read("memory.oom_control").ok()?, "oom_kill"),
            Some(_) => None,
        };
        self.directories.iter().find_map(told)
    }

    pub fn cpu(&self) -> Option<Duration> {
        let told = |directory: &Directory| match directory.v1 {
            None => value_of(&directory.read("cpu.stat").ok()?, "usage_usec").map(Duration::from_micros),
            Some(Controller::Cpuacct) => {
                directory.read("cpuacct.usage").ok()?.trim().parse().ok().map(Duration::from_nanos)
            }
            Some(_) => None,
        };
        self.directories.iter().find_map(told)
    }

    /// What poll(2) is to wait for, besides the clock.
    pub fn notice(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        self.notice.as_ref().map(|notice| match notice {
            Notice::Events(file) => (file.as_fd(), PollFlags::POLLPRI),
            Notice::EventFd(event) => (event.as_fd(), PollFlags::POLLIN),
        })
    }

    /// Whether memory ran out since the last call; makes the descriptor of `notice` wait again.
    pub fn noticed(&self) -> bool {
        match &self.notice {
            // Reading from the start is what re-arms the file (kernfs, as for PSI and cgroup.events).
            Some(Notice::Events(file)) => {
                let mut bytes = [0; 512];
                let count = rustix::io::pread(file, &mut bytes, 0).unwrap_or(0);
                let text = String::from_utf8_lossy(bytes.get(..count).unwrap_or_default()).into_owned();
                value_of(&text, "oom_kill").is_some_and(|kills| kills > 0)
            }
            Some(Notice::EventFd(event)) => event.read().is_ok_and(|count| count > 0),
            None => false,
        }
    }

    /// Everything inside, forks in flight too (cgroup-v2.rst, "cgroup.kill", since Linux 5.14).
    pub fn kill(&self) {
        for directory in self.directories.iter().filter(|directory| directory.v1.is_none()) {
            let _ = directory.write("cgroup.kill", "1");
        }
    }

    /// A root cgroup's directory has no write permission for its owner, so removing takes more than being root.
    pub fn needs_override(&self) -> bool {
        let read_only = |parent: &OwnedFd| fstat(parent).is_ok_and(|found| found.st_mode & 0o200 == 0);
        self.directories.iter().any(|directory| directory.parent.as_ref().is_some_and(read_only))
    }

    /// What has just been killed may be inside for a moment yet.
    fn remove(&mut self) {
        const TRIES: u32 = 100;
        for directory in &self.directories {
            let Some(parent) = &directory.parent else { continue };
            for _ in 0..TRIES {
                match unlinkat(parent, &self.name, AtFlags::REMOVEDIR) {
                    Err(rustix::io::Errno::BUSY) => std::thread::sleep(Duration::from_millis(5)),
                    _ => break,
                }
            }
        }
        self.directories.clear();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.owner == std::process::id() {
            self.remove();
        }
    }
}

impl Directory {
    fn write(&self, name: &str, value: &str) -> io::Result<()> {
        let fd = openat(&self.fd, name, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
        File::from(fd).write_all(value.as_bytes())
    }

    fn open(&self, name: &str) -> io::Result<File> {
        Ok(openat(&self.fd, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?.into())
    }

    fn read(&self, name: &str) -> io::Result<String> {
        let mut text = String::new();
        self.open(name)?.read_to_string(&mut text)?;
        Ok(text)
    }

    fn limit_memory(&self, bytes: u64) -> io::Result<()> {
        // A file that is not there stands for a thing that this kernel or host does not have, such as swap.
        let optional = |result: io::Result<()>| match result {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        };
        let bytes = bytes.to_string();
        match self.v1 {
            None => {
                self.write("memory.max", &bytes)?;
                // Or the limit would only make the tree swap.
                optional(self.write("memory.swap.max", "0"))?;
                optional(self.write("memory.oom.group", "1"))
            }
            Some(_) => {
                self.write("memory.limit_in_bytes", &bytes)?;
                // Memory and swap together; it may not be below the other, hence the order.
                optional(self.write("memory.memsw.limit_in_bytes", &bytes))
            }
        }
    }

    fn notice(&self) -> Option<Notice> {
        if self.v1.is_none() {
            return Some(Notice::Events(self.open("memory.events").ok()?));
        }
        // Documentation/admin-guide/cgroup-v1/memory.rst, 10: OOM control.
        let event = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK).ok()?;
        let control = self.open("memory.oom_control").ok()?;
        use std::os::fd::AsRawFd;
        let line = format!("{} {}", event.as_fd().as_raw_fd(), control.as_raw_fd());
        self.write("cgroup.event_control", &line).ok()?;
        Some(Notice::EventFd(event))
    }
}

const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    Ok(open(path, DIRECTORY, Mode::empty())?)
}

/// `key value` on a line of its own.
fn value_of(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

/// The path of the init's cgroup, which has to be the scope's.
fn scope_of(init: Pid, unit: &str) -> io::Result<PathBuf> {
    let text = fs::read_to_string(format!("/proc/{init}/cgroup"))?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::/")).map(PathBuf::from);
    path.filter(|path| path.file_name().is_some_and(|name| name == unit))
        .ok_or_else(|| io::Error::other("the scope was started without the command"))
}

/// Names a process for good: no other has had this number at this time in this PID namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Identity {
    namespace: u64,
    pid: u32,
    start: u64,
}

impl Identity {
    /// As /proc numbers it, which is what the next run will ask.
    fn read(process: &str) -> io::Result<Identity> {
        let nonsense = || io::Error::other("/proc cannot be understood");
        let namespace = fs::read_link("/proc/self/ns/pid")?;
        let namespace =
            namespace.to_str().and_then(|text| text.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok());
        let stat = fs::read(format!("/proc/{process}/stat"))?;
        let stat = String::from_utf8_lossy(&stat);
        let pid = stat.split(' ').next().and_then(|field| field.parse().ok());
        // Field 22; the name in parentheses may hold anything (proc_pid_stat(5)).
        let start = stat
            .rsplit_once(')')
            .and_then(|(_, rest)| rest.split_ascii_whitespace().nth(22 - 3))
            .and_then(|field| field.parse().ok());
        match (namespace, pid, start) {
            (Some(namespace), Some(pid), Some(start)) => Ok(Identity { namespace, pid, start }),
            _ => Err(nonsense()),
        }
    }

    fn name(&self) -> String {
        format!("confine-{}-{}-{}", self.namespace, self.pid, self.start)
    }

    fn parse(name: &str) -> Option<Identity> {
        let mut parts = name.strip_prefix("confine-")?.split('-');
        let identity = Identity {
            namespace: parts.next()?.parse().ok()?,
            pid: parts.next()?.parse().ok()?,
            start: parts.next()?.parse().ok()?,
        };
        (parts.next().is_none() && identity.name() == name).then_some(identity)
    }

    /// Provably: the number is free, or somebody else's. What another PID namespace counts cannot be told.
    fn is_dead(&self, namespace: u64) -> bool {
        if self.namespace != namespace {
            return false;
        }
        match Identity::read(&self.pid.to_string()) {
            Ok(found) => found != *self,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }
}

/// Groups of runs whose monitor was killed. rmdir(2) refuses a group with a process in it, so nothing that lives
/// can be hit.
fn remove_dead(parent: &OwnedFd) {
    // Not by the descriptor itself, which is open as a path only.
    let list = openat(parent, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let (Ok(entries), Ok(own)) = (list.and_then(Dir::new), Identity::read("self")) else { return };
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().to_str() else { continue };
        if Identity::parse(name).is_some_and(|identity| identity.is_dead(own.namespace)) {
            let _ = unlinkat(parent, name, AtFlags::REMOVEDIR);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_back_and_nothing_else_is_taken_for_one() {
        let own = Identity::read("self").unwrap();
        assert_eq!(Identity::parse(&own.name()), Some(own.clone()));
        assert_eq!(own.pid, std::process::id());
        for name in
            ["confine-1-2", "confine-1-2-3-4", "confine-1-2-03", "confine-a-2-3", "x-1-2-3", "confine-1--3"]
        {
            assert_eq!(Identity::parse(name), None, "{name}");
        }
    }

    #[test]
    fn only_what_is_provably_dead_is_dead() {
        let own = Identity::read("self").unwrap();
        assert!(!own.is_dead(own.namespace));
        // The same number at another time is another process.
        let earlier = Identity { start: own.start + 1, ..own.clone() };
        assert!(earlier.is_dead(own.namespace));
        // Above the largest number that a kernel can be told to use.
        let never = Identity { pid: 4_194_305, ..own.clone() };
        assert!(never.is_dead(own.namespace));
        assert!(!Identity { namespace: own.namespace + 1, ..never }.is_dead(own.namespace));
    }

    #[test]
    fn counters_are_read_by_their_whole_name() {
        let events = "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 1\n";
        assert_eq!(value_of(events, "oom_kill"), Some(2));
        assert_eq!(value_of(events, "oom"), Some(3));
        assert_eq!(value_of(events, "kill"), None);
    }
}
