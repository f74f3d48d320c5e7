//! No privilege and none to be gained: no_new_privs, locked securebits, empty capability sets; another user where
//! one was asked for. After the mounts, which need the capabilities.

use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set,
    set_capabilities, set_capabilities_secure_bits, set_no_new_privs,
};

use crate::error::{Error, Result};
use crate::plan::Process;

/// Whether the bounding set and the securebits could be changed; without CAP_SETPCAP they cannot, and
/// no_new_privs alone keeps execve(2) from adding anything (capabilities(7), "Capabilities and execution of
/// programs by root").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Emptied {
    pub bounding: bool,
}

pub fn apply(process: &Process) -> Result<Emptied> {
    set_no_new_privs(true).map_err(|errno| Error::step("set no_new_privs", errno))?;
    let bounding = capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SETPCAP));
    if bounding {
        // In this order: the securebits keep an exec of uid 0 from refilling the sets, the bounding set is what
        // it would refill them from, and both need the capability that goes last.
        set_capabilities_secure_bits(
            CapabilitiesSecureBits::NO_ROOT
                | CapabilitiesSecureBits::NO_ROOT_LOCKED
                | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
                | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED,
        )
        .map_err(|errno| Error::step("lock the securebits", errno))?;
        empty_bounding_set()?;
    }
    if process.switch_user {
        let (uid, gid) = (Uid::from_raw(process.uid), Gid::from_raw(process.gid));
        setgroups(&[])
            .and_then(|()| setresgid(gid, gid, gid))
            .and_then(|()| setresuid(uid, uid, uid))
            .map_err(|errno| Error::step(format!("become user {uid}"), errno))?;
    }
    set_bases(CapabilitySet::empty())?;
    Ok(Emptied { bounding })
}

/// For the monitor, which only signals and looks: where the command became another user, the right to signal it
/// stays, and what its looking still `needs`.
pub fn drop_capabilities(process: &Process, needs: CapabilitySet) -> Result<()> {
    let signal = if process.switch_user { CapabilitySet::KILL } else { CapabilitySet::empty() };
    let held = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.permitted);
    set_bases((signal | needs) & held)
}

/// For a thread that acts on behalf of the command, in whatever process it runs: capabilities are a thread's own.
pub fn drop_all_capabilities() -> Result<()> {
    set_bases(CapabilitySet::empty())
}

/// The ambient set goes with them: it holds nothing that is not both permitted and inheritable (capabilities(7)).
fn set_bases(kept: CapabilitySet) -> Result<()> {
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets).map_err(|errno| Error::step("empty the capability sets", errno))
}

/// One bit at a time up to the first that this kernel does not know (prctl(2), PR_CAPBSET_DROP: EINVAL).
fn empty_bounding_set() -> Result<()> {
    for bit in 0..64 {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << bit)) {
            Ok(()) => {}
            Err(rustix::io::Errno::INVAL) if bit > 0 => return Ok(()),
            Err(errno) => return Err(Error::step("empty the capability bounding set", errno)),
        }
    }
    Ok(())
}
