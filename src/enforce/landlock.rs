//! Landlock: one ruleset, everything that the running kernel rules is handled, and only the view is granted.
//!
//! After the mounts (a landlocked process may not mount) and after the capabilities.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, Ruleset, RulesetAttr,
    RulesetCreatedAttr, Scope,
};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::thread::set_no_new_privs;

use super::mounts::{Grant, Right};
use crate::error::{Error, Result};
use crate::plan;
use crate::sys;

/// The newest version whose rights this program knows; a newer kernel is asked for these.
const NEWEST: u32 = 10;

/// Denials of the programs that are executed under this ruleset are logged too (linux/landlock.h, ABI 7).
const LOG_NEW_EXEC_ON: u32 = 1 << 1;

/// The first version that rules signals.
const SCOPES_ABI: u32 = 6;

fn version(abi: u32) -> ABI {
    match abi.min(NEWEST) {
        0 => ABI::Unsupported,
        1 => ABI::V1,
        2 => ABI::V2,
        3 => ABI::V3,
        4 => ABI::V4,
        5 => ABI::V5,
        6 => ABI::V6,
        7 => ABI::V7,
        8 => ABI::V8,
        9 => ABI::V9,
        _ => ABI::V10,
    }
}

/// What a grant means in this version's rights.
fn rights(right: Right, abi: ABI) -> BitFlags<AccessFs> {
    // A device node made in the workspace would be an alias; nothing there needs ioctls of devices; and a socket
    // of another program stays out of reach wherever it lies.
    let never = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev | AccessFs::ResolveUnix;
    let all = AccessFs::from_all(abi);
    match right {
        Right::List => AccessFs::ReadDir.into(),
        Right::Read => AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::Execute,
        Right::Device => {
            (AccessFs::ReadFile
                | AccessFs::ReadDir
                | AccessFs::WriteFile
                | AccessFs::Truncate
                | AccessFs::IoctlDev)
                & all
        }
        Right::Write => all & !never,
    }
}

/// A descriptor that was handed in and may be opened again by name, with its own access only.
pub struct Handed<'a> {
    pub fd: BorrowedFd<'a>,
    pub read: bool,
    pub write: bool,
}

pub fn apply(ruleset: &plan::Ruleset, grants: &[Grant], handed: &[Handed<'_>]) -> Result<()> {
    restrict(ruleset, grants, handed)
        .map_err(|error| Error::step("apply the Landlock ruleset", std::io::Error::other(error.to_string())))
}

fn restrict(
    asked: &plan::Ruleset,
    grants: &[Grant],
    handed: &[Handed<'_>],
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let abi = version(asked.abi);
    // The kernel said that it has this version, so anything less is a failure and not a compromise.
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))?;
    if asked.connect.is_some() {
        ruleset = ruleset.handle_access(AccessNet::ConnectTcp)?;
    }
    if asked.bind.is_some() {
        ruleset = ruleset.handle_access(AccessNet::BindTcp)?;
    }
    let scopes = Scope::from_all(abi);
    if !scopes.is_empty() {
        ruleset = ruleset.scope(scopes)?;
    }
    let mut created = ruleset.create()?.set_compatibility(CompatLevel::HardRequirement);
    for port in asked.connect.iter().flatten() {
        created = created.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
    }
    for port in asked.bind.iter().flatten() {
        created = created.add_rule(NetPort::new(*port, AccessNet::BindTcp))?;
    }
    let ruleset: OwnedFd =
        Option::<OwnedFd>::from(created).ok_or("the kernel made no ruleset of what was asked")?;
    // Not by the crate, which looks first what each descriptor is: that is known here, and a right that does not
    // fit is an error of the kernel's too (EINVAL).
    for grant in grants {
        let mut wanted = rights(grant.right, abi);
        if !grant.directory {
            wanted &= AccessFs::from_file(abi);
        }
        sys::landlock_add_path(ruleset.as_fd(), grant.fd.as_fd(), wanted.bits())?;
    }
    for file in handed {
        let mut wanted = BitFlags::<AccessFs>::EMPTY;
        if file.read {
            wanted |= AccessFs::ReadFile;
        }
        if file.write {
            wanted |= (AccessFs::WriteFile | AccessFs::Truncate) & AccessFs::from_all(abi);
        }
        // One that is open for neither grants nothing, and the kernel takes no empty rule (ENOMSG).
        if !wanted.is_empty() {
            sys::landlock_add_path(ruleset.as_fd(), file.fd, wanted.bits())?;
        }
    }
    // Unasked only what confine's own program is denied would be logged, and it execs at once.
    let flags = if asked.log { LOG_NEW_EXEC_ON } else { 0 };
    Ok(sys::landlock_restrict_self(ruleset.as_fd(), flags)?)
}

/// A domain that rules nothing but to whom signals may be sent: none outside. The calling thread's and its children's.
pub fn scope_signals(abi: u32) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// Since ABI 7: this program's own denials are not logged, of which there is one for each process of the host.
    const LOG_SAME_EXEC_OFF: u32 = 1 << 0;
    if abi < SCOPES_ABI {
        return Err("there is no signal scope in this version".into());
    }
    // Moving between directories is denied by every layer that does not grant it, whether it handles that or not; before
    // Linux 6.13 by one that handles nothing of the file system either (landlock(7), LANDLOCK_ACCESS_FS_REFER).
    let created = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::Refer)?
        .scope(Scope::Signal)?
        .create()?;
    let ruleset = Option::<OwnedFd>::from(created).ok_or("the kernel made no ruleset of what was asked")?;
    let root = openat(CWD, "/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    sys::landlock_add_path(ruleset.as_fd(), root.as_fd(), BitFlags::from(AccessFs::Refer).bits())?;
    set_no_new_privs(true)?;
    let flags = if abi > SCOPES_ABI { LOG_SAME_EXEC_OFF } else { 0 };
    Ok(sys::landlock_restrict_self(ruleset.as_fd(), flags)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writable_root_never_gets_devices_or_sockets_of_others() {
        for abi in [ABI::V1, ABI::V3, ABI::V7, ABI::V10] {
            let granted = rights(Right::Write, abi);
            assert!(!granted.intersects(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::ResolveUnix));
            assert!(granted.contains(AccessFs::WriteFile | AccessFs::MakeReg | AccessFs::RemoveFile));
        }
    }

    #[test]
    fn renaming_between_directories_is_granted_from_abi_2_on() {
        assert!(rights(Right::Write, ABI::V2).contains(AccessFs::Refer));
        assert!(!rights(Right::Write, ABI::V1).contains(AccessFs::Refer));
    }

    #[test]
    fn a_readable_root_is_never_written() {
        let write = AccessFs::from_write(ABI::V10);
        assert!(!rights(Right::Read, ABI::V10).intersects(write));
        assert!(!rights(Right::List, ABI::V10).intersects(write | AccessFs::ReadFile));
    }
}
