//! The socket between monitor and init: short fixed messages, one a packet.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    // From init.
    /// The command has stopped by this signal, after having been continued so many times; and whether a group inside
    /// has the terminal.
    Stopped(i32, u64, bool),
    Exited(i32),
    /// The command was ended by this signal.
    Killed(i32),
    /// This signal went to a command that does not catch it.
    Uncaught(i32),
    // From the monitor.
    /// To be sent to the command.
    Signal(i32),
    /// To be sent to the command with a value, as sigqueue(3) does.
    Queue(i32, u64),
    /// SIGCONT, to be sent to the command: this is how many times now.
    Continue(u64),
    /// To be sent to everything inside.
    SignalAll(i32),
}

const SIZE: usize = 1 + 4 + 8;
const STOPPED: u8 = 1;
const STOPPED_WITH_TERMINAL: u8 = 10;

impl Message {
    fn encode(self) -> [u8; SIZE] {
        let (kind, number, value) = match self {
            Message::Stopped(number, turn, false) => (STOPPED, number, turn),
            Message::Stopped(number, turn, true) => (STOPPED_WITH_TERMINAL, number, turn),
            Message::Exited(status) => (2, status, 0),
            Message::Killed(number) => (3, number, 0),
            Message::Uncaught(number) => (5, number, 0),
            Message::Signal(number) => (6, number, 0),
            Message::Queue(number, value) => (7, number, value),
            Message::Continue(turn) => (8, 0, turn),
            Message::SignalAll(number) => (9, number, 0),
        };
        let mut bytes = [kind; SIZE];
        bytes[1..5].copy_from_slice(&i32::to_ne_bytes(number));
        bytes[5..].copy_from_slice(&u64::to_ne_bytes(value));
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Message> {
        let (&kind, rest) = bytes.split_first()?;
        let (number, value) = rest.split_at_checked(4)?;
        let number = i32::from_ne_bytes(number.try_into().ok()?);
        let value = u64::from_ne_bytes(value.try_into().ok()?);
        Some(match kind {
            STOPPED => Message::Stopped(number, value, false),
            STOPPED_WITH_TERMINAL => Message::Stopped(number, value, true),
            2 => Message::Exited(number),
            3 => Message::Killed(number),
            5 => Message::Uncaught(number),
            6 => Message::Signal(number),
            7 => Message::Queue(number, value),
            8 => Message::Continue(value),
            9 => Message::SignalAll(number),
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

    /// Never waits: the other end may be stopped, and whoever waits for it watches nothing else meanwhile. An error
    /// means that the other end has gone, or has not read for hundreds of messages.
    pub fn send(&self, message: Message) -> io::Result<()> {
        send(&self.0, &message.encode(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
        Ok(())
    }

    /// None when the other end has gone, or speaks nonsense: both end the run.
    pub fn receive(&self) -> Option<Message> {
        let mut bytes = [0; SIZE];
        loop {
            match recv(&self.0, &mut bytes[..], RecvFlags::empty()) {
                // Told once, of an end that left something unread behind; what that end said last comes after it
                // (unix(7)).
                Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNRESET) => {}
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
            Message::Stopped(20, u64::MAX, true),
            Message::Stopped(19, 0, false),
            Message::Exited(255),
            Message::Killed(9),
            Message::Uncaught(2),
            Message::Signal(64),
            Message::Queue(34, 1 << 40),
            Message::Continue(7),
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
    fn the_last_word_arrives_also_from_an_end_that_has_not_listened() {
        let (a, b) = pair().unwrap();
        let (a, b) = (Link::new(a), Link::new(b));
        b.send(Message::Signal(15)).unwrap();
        a.send(Message::Killed(15)).unwrap();
        drop(a);
        assert_eq!(b.receive(), Some(Message::Killed(15)));
        assert_eq!(b.receive(), None);
    }

    #[test]
    fn who_does_not_read_holds_nobody_up() {
        let (a, _b) = pair().unwrap();
        let a = Link::new(a);
        assert!((0..100_000).any(|_| a.send(Message::Signal(15)).is_err()));
    }

    #[test]
    fn nonsense_is_the_end() {
        assert_eq!(Message::decode(&[99; SIZE]), None);
        assert_eq!(Message::decode(&[1, 0]), None);
        assert_eq!(Message::decode(&[]), None);
    }
}
