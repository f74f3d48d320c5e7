//! What is asked: promises, roots, network, environment, limits. Knows nothing of the kernel.
#![forbid(unsafe_code)]

pub mod env_file;
pub mod files;
pub mod origin;
pub mod promise;
pub mod quantity;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use origin::{Origin, Setting};
pub use promise::Promise;

use crate::error::Error;
use crate::view::caller::PasswdEntry;

/// Everything a run was asked for, as it was asked: paths are not resolved and nothing has been looked up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// Workspaces in the order given; the first is the primary one.
    pub workspaces: Vec<PathBuf>,
    /// There is none on purpose: the command starts in its private HOME.
    pub no_workspace: bool,
    pub chdir: Option<PathBuf>,
    /// Show the workspaces read-only.
    pub read_only: bool,
    pub hardlinks: Hardlinks,
    pub git: Git,
    /// Where HOME and /tmp are kept from one run to the next.
    pub state: Option<PathBuf>,
    /// In a directory of confine's own for each workspace.
    pub state_auto: bool,
    pub files: Vec<FileRule>,
    pub toolchains: bool,
    pub network: Network,
    pub environment: Environment,
    /// Descriptors above 2 that are passed on.
    pub descriptors: Vec<RawFd>,
    pub user: Option<User>,
    pub limits: Limits,
    /// Promises beyond the default set that must hold.
    pub require: BTreeSet<Promise>,
    /// Promises that may be given up where the host cannot keep them.
    pub waive: BTreeSet<Promise>,
    pub allow: BTreeSet<Allowance>,
    pub namespaces: Namespaces,
    pub status_fd: Option<RawFd>,
    /// The file that keeps a line of every decision.
    pub audit: Option<PathBuf>,
    /// One JSON object at the end, with what the command wrote.
    pub result: bool,
    /// Denials by Landlock also go to the kernel's audit.
    pub kernel_log: bool,
    /// `confine trace`: what is denied is listed at the end.
    pub trace: Option<Trace>,
    pub verbose: bool,
    /// Print what each step took to standard error (hidden option, for measurements).
    pub timings: bool,
    /// What the administrator shows to nobody, whatever else was asked for.
    pub never_visible: Vec<(PathBuf, Origin)>,
    /// Promises that the administrator lets nobody give up.
    pub never_waive: BTreeSet<Promise>,
    /// The command is a shell that somebody else's program takes for its own.
    pub shell: Option<Shell>,
    /// Every word that is in effect, nearest layer first: who asked for what.
    pub settings: Vec<Setting>,
    /// The policy files that were read, so that none of them lies where a command can write.
    pub files_read: Vec<Arc<origin::File>>,
}

impl Policy {
    /// Who asked for this value of this option (without its dashes); of a path as the policy has it.
    pub fn setting(&self, option: &str, value: impl AsRef<OsStr>) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.is(option, value.as_ref()))
    }

    /// Who gave this option, whatever its value.
    pub fn asked(&self, option: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.option == option)
    }

    /// A message about the value of an option that has one, in the terms of where that was said.
    pub fn told_of(&self, option: &str, error: Error) -> Error {
        match self.asked(option) {
            Some(setting) => setting.told(error),
            None => error,
        }
    }

    /// A message about this value of this option, in the terms of where that was said.
    pub fn told(&self, option: &str, value: impl AsRef<OsStr>, error: Error) -> Error {
        match self.setting(option, value) {
            Some(setting) => setting.told(error),
            None => error,
        }
    }
}

impl FileAccess {
    /// The option that asks for it.
    pub fn option(self) -> &'static str {
        match self {
            FileAccess::Hide => "hide",
            FileAccess::Read => "ro",
            FileAccess::Seal => "seal",
            FileAccess::Write => "rw",
        }
    }
}

/// How the list of a trace is told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// As a profile that would allow it.
    pub suggest: bool,
    pub json: bool,
}

/// How confine-shell was called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shell {
    /// The real one.
    pub path: PathBuf,
    /// The shell's own name, argv[0]: from it a shell learns whether it is a login shell.
    pub name: OsString,
    /// Of the password file.
    pub account: Option<PasswdEntry>,
    /// Whoever wrote the command did not set the variables: what they name may be shown.
    pub trusts_environment: bool,
}

/// One of `--ro`, `--rw`, `--hide`, `--seal`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRule {
    pub access: FileAccess,
    pub path: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileAccess {
    Hide,
    Read,
    /// Readable through inodes of its own, so that sockets, FIFOs and locks below it stay apart.
    Seal,
    Write,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Hardlinks {
    #[default]
    Reject,
    Protect,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Git {
    #[default]
    Guard,
    ReadOnly,
    Free,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Namespaces {
    #[default]
    Auto,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Allowance {
    BroadWorkspace,
    Userns,
    UnixDatagram,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Network {
    pub net: Net,
    pub loopback: Loopback,
    /// TCP ports that may be connected to on the host's network.
    pub connect: BTreeSet<u16>,
    pub listen: Listen,
}

impl Network {
    /// Whether the run has nothing to do with the host's network.
    pub fn is_own(&self) -> bool {
        self.net == Net::None && !self.is_ruled() && !self.grants_loopback()
    }

    /// Whether the host's loopback is granted, and not all of its network.
    pub fn grants_loopback(&self) -> bool {
        self.net == Net::None && self.loopback == Loopback::Host
    }

    /// Whether TCP ports of the host's network are granted one by one.
    pub fn is_ruled(&self) -> bool {
        !self.connect.is_empty() || self.listen != Listen::None
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Net {
    #[default]
    None,
    Host,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Loopback {
    #[default]
    Private,
    Off,
    Host,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Listen {
    #[default]
    None,
    Ports(BTreeSet<u16>),
    Any,
}

/// What is added to the allowlist. Values never leave the process except into the command's environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// Nothing of the caller's but the least that programs need.
    pub clear: bool,
    /// `--env NAME`: passed on from the caller.
    pub pass: Vec<OsString>,
    /// `--env NAME=VALUE`, in order.
    pub set: Vec<(OsString, OsString)>,
    /// The same of a layer that is further away than some `files`, which win over it.
    pub set_below_files: Vec<(OsString, OsString)>,
    /// `--env-file FILE`.
    pub files: Vec<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    pub uid: u32,
    /// Taken from the password file when not given.
    pub gid: Option<u32>,
}

/// Sizes are bytes. `None` is "not asked".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    pub procs: Option<u64>,
    pub memory: Option<u64>,
    pub tmp: Option<u64>,
    pub disk: Option<u64>,
    pub output: Option<u64>,
    pub on_output_limit_kill: bool,
    /// Processor time of the whole tree.
    pub cpu: Option<Duration>,
    pub file_size: Option<u64>,
    pub open_files: Option<u64>,
    pub timeout: Option<Duration>,
    pub grace: Option<Duration>,
}
