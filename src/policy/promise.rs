//! The promises: the vocabulary shared by options, JSON, documents and record.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What holds inside. The names are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Promise {
    WriteScope,
    MetadataScope,
    ReadScope,
    PathHiding,
    AliasFree,
    NetworkScope,
    SocketScope,
    ProcessScope,
    ProcessHiding,
    NoGain,
    CleanStart,
    Ceilings,
    Teardown,
}

impl Promise {
    pub const ALL: [Promise; 13] = [
        Promise::WriteScope,
        Promise::MetadataScope,
        Promise::ReadScope,
        Promise::PathHiding,
        Promise::AliasFree,
        Promise::NetworkScope,
        Promise::SocketScope,
        Promise::ProcessScope,
        Promise::ProcessHiding,
        Promise::NoGain,
        Promise::CleanStart,
        Promise::Ceilings,
        Promise::Teardown,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Promise::WriteScope => "write-scope",
            Promise::MetadataScope => "metadata-scope",
            Promise::ReadScope => "read-scope",
            Promise::PathHiding => "path-hiding",
            Promise::AliasFree => "alias-free",
            Promise::NetworkScope => "network-scope",
            Promise::SocketScope => "socket-scope",
            Promise::ProcessScope => "process-scope",
            Promise::ProcessHiding => "process-hiding",
            Promise::NoGain => "no-gain",
            Promise::CleanStart => "clean-start",
            Promise::Ceilings => "ceilings",
            Promise::Teardown => "teardown",
        }
    }

    /// What holds inside, in one sentence, for `check`, `explain` and the man page.
    pub fn meaning(self) -> &'static str {
        match self {
            Promise::WriteScope => "contents and directory entries change only beneath writable roots",
            Promise::MetadataScope => {
                "mode, owner, times, ACLs, xattrs and inode flags change only beneath writable roots"
            }
            Promise::ReadScope => "contents and listings are readable only beneath readable roots",
            Promise::PathHiding => "names outside cannot be probed",
            Promise::AliasFree => {
                "no hard link, device node or submount of a writable root reaches outside it"
            }
            Promise::NetworkScope => "no network but what was asked for",
            Promise::SocketScope => "no other program's socket or System V or POSIX IPC can be reached",
            Promise::ProcessScope => "no process outside can be signalled, traced, read or limited",
            Promise::ProcessHiding => "other processes cannot be seen",
            Promise::NoGain => "no new privilege and no new kernel surface",
            Promise::CleanStart => "no inherited descriptor, ambient secret, keyring or signal state",
            Promise::Ceilings => "each limit asked for holds",
            Promise::Teardown => "when the command ends nothing it started is left",
        }
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownPromise;

impl FromStr for Promise {
    type Err = UnknownPromise;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Promise::ALL.into_iter().find(|promise| promise.name() == text).ok_or(UnknownPromise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_parses_back_and_is_what_serde_writes() {
        for promise in Promise::ALL {
            assert_eq!(promise.name().parse(), Ok(promise));
            assert_eq!(serde_json::to_string(&promise).unwrap(), format!("\"{promise}\""));
        }
        assert_eq!("write_scope".parse::<Promise>(), Err(UnknownPromise));
    }
}
