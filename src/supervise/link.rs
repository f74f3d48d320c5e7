//! The socket between monitor and init: short fixed messages, one a packet.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    // From init.
    /// The command has stopped by this signal.
    Stopped(i32),
    Exited(i32),
    /// The command was ended by this signal.
    Killed(i32),
    // From the monitor.
    /// To be sent to the command.
    Signal(i32),
    /// To be sent to everything inside.
    SignalAll(i32),
}

impl Message {
    fn encode(self) -> [u8; 5] {
        let (kind, value) = match self {
            Message::Stopped(value) => (1, value),
            Message::Exited(value) => (2, value),
            Message::Killed(value) => (3, value),
            Message::Signal(value) => (4, value),
            Message::SignalAll(value) => (5, value),
        };
        let mut bytes = [kind; 5];
        bytes[1..].copy_from_slice(&value.to_ne_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Message> {
        let (&kind, value) = bytes.split_first()?;
        let value = i32::from_ne_bytes(value.try_into().ok()?);
        Some(match kind {
            1 => Message::Stopped(value),
            2 => Message::Exited(value),
            3 => Message::Killed(value),
            4 => Message::Signal(value),
            5 => Message::SignalAll(value),
            _ => return None,
        })
    }
}

#[derive(Debug)]
pub struct Link(OwnedFd);

pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

impl Link {
    pub fn new(fd: OwnedFd) -> Link {
        Link(fd)
    }

    /// An error means that the other end has gone.
    pub fn send(&self, message: Message) -> io::Result<()> {
        send(&self.0, &message.encode(), SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// None when the other end has gone, or speaks nonsense: both end the run.
    pub fn receive(&self) -> Option<Message> {
        let mut bytes = [0; 5];
        loop {
            match recv(&self.0, &mut bytes[..], RecvFlags::empty()) {
                Err(rustix::io::Errno::INTR) => {}
                Ok((count, _)) => return Message::decode(bytes.get(..count)?),
                Err(_) => return None,
            }
        }
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_arrives_as_it_was_sent_and_the_end_is_seen() {
        let (a, b) = pair().unwrap();
        let (a, b) = (Link::new(a), Link::new(b));
        let messages = [
            Message::Stopped(20),
            Message::Exited(255),
            Message::Killed(9),
            Message::Signal(64),
            Message::SignalAll(15),
        ];
        for message in messages {
            a.send(message).unwrap();
        }
        for message in messages {
            assert_eq!(b.receive(), Some(message));
        }
        drop(a);
        assert_eq!(b.receive(), None);
    }

    #[test]
    fn nonsense_is_the_end() {
        assert_eq!(Message::decode(&[9, 0, 0, 0, 0]), None);
        assert_eq!(Message::decode(&[1, 0]), None);
        assert_eq!(Message::decode(&[]), None);
    }
}
