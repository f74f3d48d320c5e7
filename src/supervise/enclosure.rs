//! What ends a run at one blow where there is no PID namespace: a Landlock domain of the supervisor's own, with the
//! command's domain nested in it.
//!
//! kill(-1) goes through all processes under the lock that a fork takes last, and a fork that finds a deadly signal
//! pending there gives up (kill_something_info in kernel/signal.c, copy_process in kernel/fork.c): no chain of
//! processes outruns it. The signal scope of the domain keeps it to what was started in here. The command cannot answer
//! in kind: monitor and init lie outside its own domain.
//!
//! As root, without the scope, the same call would end every process of the machine. So there is an `Enclosure` only
//! where a process outside was seen to be out of reach, and a second look comes before each use.

use std::io;

use nix::unistd::{Pid, getpid};

use crate::attendant::attended;
use crate::enforce::landlock;
use crate::sys;

/// The calling process and all that it starts from now on lie in the domain.
#[derive(Debug, Clone, Copy)]
pub struct Enclosure(());

impl Enclosure {
    /// While there is one thread: a domain is a thread's own. None where the kernel has no signal scope, or has too many
    /// domains nested here already.
    pub fn enter(abi: u32) -> Option<Enclosure> {
        // A child has this process's identity, so that nothing but the domain can keep it out of reach; and its number is
        // nobody else's until it is waited for.
        let look = |witness: Pid| sys::kill(witness.as_raw(), 0);
        let (before, entered, after) =
            attended(|_| Ok(()), |witness, _| (look(witness), landlock::scope_signals(abi), look(witness)))
                .ok()?;
        (entered.is_ok() && is_proof(&before, &after)).then_some(Enclosure(()))
    }

    /// Sends SIGKILL to all but the calling process. False if nothing was sent.
    pub fn kill(self) -> bool {
        // The first process of a PID namespace lies outside, unless it is this one. Root could reach it but for the
        // domain, and whom root cannot reach is nobody's to fear for.
        let first = sys::kill(1, 0);
        let guarded = getpid() == Pid::from_raw(1) || is_denied(&first);
        guarded && sys::kill(-1, libc::SIGKILL).is_ok()
    }

    /// Whether a process lies in here.
    pub fn holds(self, pid: Pid) -> bool {
        sys::kill(pid.as_raw(), 0).is_ok()
    }
}

fn is_denied(answer: &io::Result<()>) -> bool {
    answer.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::EPERM))
}

/// What could be signalled before the domain was entered and cannot be since.
fn is_proof(before: &io::Result<()>, after: &io::Result<()>) -> bool {
    before.is_ok() && is_denied(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_domain_itself_put_out_of_reach_is_proof() {
        let errno = |errno| move || Err(io::Error::from_raw_os_error(errno));
        let (denied, gone) = (errno(libc::EPERM), errno(libc::ESRCH));
        assert!(is_proof(&Ok(()), &denied()));
        for (before, after) in [(Ok(()), Ok(())), (denied(), denied()), (Ok(()), gone()), (gone(), gone())] {
            assert!(!is_proof(&before, &after), "{before:?} {after:?}");
        }
    }

    #[test]
    fn below_the_first_version_with_scopes_there_is_none() {
        assert!(Enclosure::enter(5).is_none());
    }
}
