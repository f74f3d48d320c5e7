//! A child that is at hand while something is asked about it, or with its help.
#![forbid(unsafe_code)]

use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use crate::sys;

/// `there` runs in the child, and what it returns is held until `here` is through; after an error the child ends at once.
/// The socket of each leads to the other's, and whoever is left sees its end, however the other goes: a signal would not
/// do, since a process under Landlock's scope sends none when it dies. The caller has one thread.
pub fn attended<K, T>(
    there: impl FnOnce(&mut UnixStream) -> io::Result<K>,
    here: impl FnOnce(Pid, &mut UnixStream) -> T,
) -> io::Result<T> {
    let (mut near, mut far) = UnixStream::pair()?;
    let number = near.as_raw_fd() as u32;
    let child = sys::fork(move || {
        // Or the end of the other process would never be seen.
        let _ = sys::close_range(number, number);
        let kept = there(&mut far);
        if kept.is_ok() {
            let _ = far.read(&mut [0]);
        }
        0
    })?;
    let child = Pid::from_raw(child);
    let result = here(child, &mut near);
    drop(near);
    let _ = waitpid(child, None);
    Ok(result)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_child_stays_until_it_is_not_needed_and_is_gone_afterwards() {
        let (child, said, lived) = attended(
            |far| far.write_all(b"!"),
            |child, near| {
                let mut said = [0];
                near.read_exact(&mut said).unwrap();
                (child, said, nix::sys::signal::kill(child, None).is_ok())
            },
        )
        .unwrap();
        assert!(said == *b"!" && lived);
        assert_eq!(waitpid(child, None), Err(nix::errno::Errno::ECHILD));
    }

    #[test]
    fn the_end_of_one_that_failed_is_seen() {
        let failed = |_: &mut UnixStream| Err::<(), _>(io::Error::other("no"));
        let read = attended(failed, |_, near| near.read(&mut [0]).unwrap()).unwrap();
        assert_eq!(read, 0);
    }
}
