//! From a call that failed to a denial, if it was the boundary that denied it. What would have failed outside as
//! well is none, so every case asks the host what it would have said.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use libc::{EACCES, EBUSY, ENOENT, ENOSYS, ENOTDIR, EPERM, EROFS, EXDEV};
use rustix::fs::{Access as Mode, AtFlags, CWD, StatVfsMountFlags, accessat, statvfs};

use super::advice::{self, Advice, Grant};
use super::calls::{Call, Does, Known, Names, Reaches};
use super::names::{name, read};
use crate::enforce::seccomp::{self, Arch, Inet, Rules};
use crate::plan::{Namespace, Plan};
use crate::view::system::BROAD;
use crate::view::{Access, Backing, Place};

/// Something that the boundary refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    pub operation: &'static str,
    pub object: Object,
    pub layer: &'static str,
    pub advice: Advice,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Object {
    Path(PathBuf),
    Words(String),
}

/// What is known of the run, to be compared with what the host would say.
pub struct Judge {
    arch: Arch,
    known: Known,
    pub(super) rules: Rules,
    view: BTreeMap<PathBuf, Place>,
    pub home: PathBuf,
    /// A mount namespace: what is not shown does not exist.
    pub(super) viewed: bool,
    pub(super) own_network: bool,
    own_processes: bool,
    uid: u32,
    gid: u32,
    /// The command is another user than this process.
    switched: bool,
    /// The host's network, as the process that started confine has it.
    pub(super) caller: i32,
    /// Sockets that were made, by what /proc calls them: whether they are for datagrams.
    pub(super) sockets: HashMap<PathBuf, bool>,
}

const SOCKETS: usize = 10_000;

impl Judge {
    pub fn new(plan: &Plan, arch: Arch, home: PathBuf, caller: i32) -> Judge {
        let rules = plan.process.seccomp.clone();
        Judge {
            arch,
            known: Known::new(arch, &rules),
            rules,
            view: plan.world.view.iter().map(|place| (place.path.clone(), place.clone())).collect(),
            home,
            viewed: plan.has(Namespace::Mount),
            own_network: plan.has(Namespace::Network),
            own_processes: plan.has(Namespace::Pid),
            uid: plan.process.uid,
            gid: plan.process.gid,
            switched: plan.process.switch_user,
            caller,
            sockets: HashMap::new(),
        }
    }

    pub fn find(&self, arch: u32, number: u64, arguments: [u64; 6]) -> Option<Call> {
        (arch == self.arch.audit()).then(|| self.known.find(number, arguments)).flatten()
    }

    pub fn succeeded(&mut self, thread: i32, call: &Call, value: i64) {
        if let Names::Socket = call.names
            && self.sockets.len() < SOCKETS
            && let Ok(name) = fs::read_link(format!("/proc/{thread}/fd/{value}"))
        {
            // SOCK_STREAM is 1; the bits above are flags.
            self.sockets.insert(name, call.argument(1) & 0xf != 1);
        }
    }

    pub fn judge(&self, thread: i32, call: &Call, errno: i32) -> Option<Denial> {
        if let Some(denial) = self.filtered(call, errno) {
            return denial;
        }
        match call.names {
            Names::Path(does, directory, path) => {
                let name = name(thread, call, directory, path)?;
                self.path(self.resolved(does, call, &name), name, call, errno)
            }
            Names::Descriptor(does, fd) => {
                let name = fs::read_link(format!("/proc/{thread}/fd/{}", call.int(fd))).ok()?;
                name.is_absolute().then(|| self.path(does, name, call, errno))?
            }
            Names::Rename(from_dir, from, to_dir, to) | Names::Link(from_dir, from, to_dir, to) => {
                let (from, to) = (name(thread, call, from_dir, from)?, name(thread, call, to_dir, to)?);
                self.two(from, to, matches!(call.names, Names::Rename(..)), call, errno)
            }
            Names::Address(reaches, address, length) => {
                let bytes = read(thread, call.argument(address), call.argument(length).min(128) as usize)?;
                self.address(thread, call, reaches, &bytes, errno)
            }
            Names::Message(message) => {
                let header = read(thread, call.argument(message), 12)?;
                let address = u64::from_ne_bytes(header.get(..8)?.try_into().ok()?);
                let length = u32::from_ne_bytes(header.get(8..12)?.try_into().ok()?);
                let bytes = read(thread, address, length.min(128) as usize)?;
                self.address(thread, call, Reaches::Send, &bytes, errno)
            }
            Names::Process(process) => self.process(call, call.int(process), errno),
            Names::Socket | Names::Nothing => None,
        }
    }

    /// What the filter's own table says. Where callers fall back to another call nothing is missing.
    fn filtered(&self, call: &Call, errno: i32) -> Option<Option<Denial>> {
        let (group, _) = seccomp::in_force(&self.rules).find(|(group, row)| {
            group.errno == errno
                && row.number(self.arch) == Some(call.number)
                && row.tests.iter().all(|test| test.holds(&call.arguments))
        })?;
        if errno == ENOSYS && group.name != "ipc" || matches!(group.name, "fast-open" | "upper-layer") {
            return Some(None);
        }
        let datagram = call.argument(1) & 0xf != 1;
        let (object, advice) = match group.name {
            "namespaces" => (call.name.to_owned(), Advice::grant(Grant::Allow("userns"))),
            "unix-datagrams" => {
                ("a UNIX datagram socket".to_owned(), Advice::grant(Grant::Allow("unix-datagram")))
            }
            "network" | "protocols" if matches!(call.argument(0) & 0xffff, 2 | 10) => {
                let kind = if datagram { "an internet datagram socket" } else { "an internet stream socket" };
                let advice = if self.rules.inet == Inet::All {
                    Advice::nothing(group.reason)
                } else if datagram {
                    Advice::grant(Grant::Net)
                } else {
                    Advice::nothing("--connect PORT, with the port that it is for")
                };
                (kind.to_owned(), advice)
            }
            "families" => (format!("a socket of family {}", call.int(0)), Advice::nothing(group.reason)),
            "listen" => {
                ("a socket".to_owned(), Advice::nothing("--listen PORT, with the port that it is for"))
            }
            _ => (call.name.to_owned(), Advice::nothing(group.reason)),
        };
        let operation = match call.names {
            Names::Socket => "make",
            _ if group.name == "listen" => "listen on",
            _ => "call",
        };
        Some(Some(Denial { operation, object: Object::Words(object), layer: "seccomp", advice }))
    }

    fn resolved(&self, does: Does, call: &Call, path: &Path) -> Does {
        match does {
            Does::Open(flags) => {
                let flags = call.int(flags);
                let exists = || path.symlink_metadata().is_ok();
                if flags & libc::O_PATH != 0 {
                    Does::Look
                } else if flags & libc::O_CREAT != 0 && !exists() {
                    Does::Create
                } else if flags & libc::O_ACCMODE != libc::O_RDONLY || flags & libc::O_TRUNC != 0 {
                    Does::Write
                } else {
                    Does::Read
                }
            }
            does => does,
        }
    }

    fn path(&self, does: Does, path: PathBuf, call: &Call, errno: i32) -> Option<Denial> {
        // Of the processes inside; what it tells of others is not there. A terminal that there is none of is no
        // device to open outside either.
        if path.starts_with("/proc") || path == Path::new("/dev/tty") {
            return None;
        }
        // Where programs look on their way to something, which is what would be missing.
        if matches!(does, Does::Look | Does::Ask(_)) && BROAD.iter().any(|broad| path == Path::new(broad)) {
            return None;
        }
        let layer = match errno {
            ENOENT | ENOTDIR if self.viewed && self.exists(does, &path) => "view: not visible",
            // Only asked, and answered.
            _ if matches!(does, Does::Ask(_)) => return None,
            EACCES if !self.viewed && self.host_allows(does, &path) => "Landlock",
            EACCES if self.host_allows(does, &path) => match self.nearest(&path) {
                Some(place) if place.access == Access::Hidden => "view: hidden",
                Some(place) if place.backing == Backing::Veiled => "view: root's own",
                _ => "Landlock",
            },
            EROFS if self.host_allows(does, &path) && !is_read_only(&path) => "view: read-only",
            // A guard is bound onto itself, so that it cannot be replaced.
            EBUSY if self.view.get(&path).is_some_and(|place| place.backing == Backing::Itself) => {
                return Some(Denial {
                    operation: "replace",
                    layer: "view: guarded",
                    advice: advice::for_path(self, Does::Write, &path),
                    object: Object::Path(path),
                });
            }
            EPERM if does == Does::Metadata && call.name.contains("chown") => {
                return (self.uid == 0).then(|| Denial {
                    operation: "change the owner of",
                    object: Object::Path(path),
                    layer: "capabilities",
                    advice: Advice::nothing("no option: no capability is left inside"),
                });
            }
            EPERM if does == Does::Metadata && self.owns(&path) && !self.viewed => "broker",
            _ => return None,
        };
        Some(self.denial(does, path, layer))
    }

    fn denial(&self, does: Does, path: PathBuf, layer: &'static str) -> Denial {
        let operation = match does {
            Does::Look | Does::Ask(_) => "look at",
            Does::Read | Does::Open(_) => "read",
            Does::Enter => "enter",
            Does::Execute => "execute",
            Does::Write => "write",
            Does::Metadata => "change the metadata of",
            Does::Create => "create",
            Does::Remove => "remove",
        };
        let advice = advice::for_path(self, does, &path);
        Denial { operation, object: Object::Path(path), layer, advice }
    }

    fn two(&self, from: PathBuf, to: PathBuf, moves: bool, call: &Call, errno: i32) -> Option<Denial> {
        if errno == EXDEV {
            let device = |path: &Path| existing(path)?.metadata().ok().map(|found| found.dev());
            // Programs that move files copy then: what is left is a name.
            return (device(&from)? == device(&to)?).then(|| Denial {
                operation: if moves { "rename" } else { "link" },
                object: Object::Path(from),
                layer: "view: another part of it",
                advice: Advice::nothing("no option: both names have to lie in one root; copying works"),
            });
        }
        if moves && let Some(denial) = self.path(Does::Remove, from, call, errno) {
            return Some(denial);
        }
        self.path(Does::Create, to, call, errno)
    }

    /// Whether the host has what the command did not find.
    fn exists(&self, does: Does, path: &Path) -> bool {
        match does {
            Does::Create => path.parent().is_some_and(Path::is_dir),
            _ => path.symlink_metadata().is_ok(),
        }
    }

    fn host_allows(&self, does: Does, path: &Path) -> bool {
        let (path, mode) = match does {
            Does::Create | Does::Remove => (path.parent().unwrap_or(path), Mode::WRITE_OK | Mode::EXEC_OK),
            Does::Write => (path, Mode::WRITE_OK),
            Does::Execute | Does::Enter => (path, Mode::EXEC_OK),
            Does::Metadata if self.owns(path) => return true,
            // The times may be set to now by whoever may write.
            Does::Metadata => (path, Mode::WRITE_OK),
            Does::Read | Does::Open(_) | Does::Ask(_) => (path, Mode::READ_OK),
            Does::Look => (path, Mode::EXISTS),
        };
        if !self.switched {
            return accessat(CWD, path, mode, AtFlags::EACCESS).is_ok();
        }
        path.metadata().is_ok_and(|found| {
            let shift = match (found.uid() == self.uid, found.gid() == self.gid) {
                (true, _) => 6,
                (false, true) => 3,
                _ => 0,
            };
            let wanted = mode.bits();
            found.mode() >> shift & wanted == wanted
        })
    }

    fn owns(&self, path: &Path) -> bool {
        path.metadata().is_ok_and(|found| found.uid() == self.uid)
    }

    pub fn nearest(&self, path: &Path) -> Option<&Place> {
        path.ancestors().find_map(|above| self.view.get(above))
    }

    fn process(&self, call: &Call, process: i32, errno: i32) -> Option<Denial> {
        if errno != EPERM {
            return None;
        }
        if call.name == "ptrace" {
            return Some(Denial {
                operation: "trace",
                object: Object::Words("a process".into()),
                layer: "the trace itself",
                advice: Advice::nothing("debuggers on own children work without `confine trace`"),
            });
        }
        let owner = fs::metadata(format!("/proc/{process}")).ok()?.uid();
        (!self.own_processes && owner == self.uid).then(|| Denial {
            operation: "signal",
            object: Object::Words(format!("process {process}")),
            layer: "Landlock",
            advice: Advice::nothing("no option: other processes are out of reach"),
        })
    }
}

/// The nearest that the host has, the path itself or above it.
pub fn existing(path: &Path) -> Option<&Path> {
    path.ancestors().find(|above| above.symlink_metadata().is_ok())
}

/// Outside as well.
fn is_read_only(path: &Path) -> bool {
    existing(path)
        .and_then(|path| statvfs(path).ok())
        .is_some_and(|found| found.f_flag.contains(StatVfsMountFlags::RDONLY))
}
