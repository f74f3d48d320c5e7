//! Which internet sockets the broker is connecting: on none of them may it listen meanwhile.

use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::fstat;
use rustix::io::{Errno, Result};

use super::Answer;

/// By inode number; one for each connection under way.
#[derive(Debug, Default)]
pub struct Connecting(Mutex<Vec<u64>>);

/// Until this is dropped the socket counts as being connected.
pub struct Begun<'a> {
    connecting: &'a Connecting,
    socket: u64,
}

impl Connecting {
    /// Waits for a listen that is being decided, and no longer.
    pub fn begin(&self, socket: &OwnedFd) -> Result<Begun<'_>> {
        let socket = fstat(socket)?.st_ino;
        self.lock().push(socket);
        Ok(Begun { connecting: self, socket })
    }

    /// Runs `act`, which does not wait, while nobody begins to connect the socket; EINVAL when somebody does already,
    /// as listen(2) has it.
    pub fn unless(&self, socket: &OwnedFd, act: impl FnOnce() -> Answer) -> Answer {
        let socket = fstat(socket)?.st_ino;
        let sockets = self.lock();
        if sockets.contains(&socket) {
            return Err(Errno::INVAL);
        }
        act()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        let mut sockets = self.connecting.lock();
        if let Some(place) = sockets.iter().position(|socket| *socket == self.socket) {
            sockets.swap_remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_being_connected_is_not_listened_on() {
        let connecting = Connecting::default();
        let socket: OwnedFd = std::os::unix::net::UnixStream::pair().unwrap().0.into();
        let begun = (connecting.begin(&socket).unwrap(), connecting.begin(&socket).unwrap());
        assert_eq!(connecting.unless(&socket, || Ok(())), Err(Errno::INVAL));
        drop(begun.0);
        assert_eq!(connecting.unless(&socket, || Ok(())), Err(Errno::INVAL));
        drop(begun.1);
        assert_eq!(connecting.unless(&socket, || Ok(())), Ok(()));
    }
}
