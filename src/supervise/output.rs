//! The streams between the command and the caller, where they are bounded or kept for the result. Otherwise there is
//! nothing in between: the command has the caller's own descriptors.
//!
//! A stream that waits for its reader is not read either, so that memory is bounded and the command waits as it would
//! without us. What is over the limit is read and dropped, whether the reader reads or not. The caller's descriptors
//! are shared with whoever else has them, so their flags stay as they are: a pipe or terminal is opened again for
//! writes that do not wait, and where that cannot be, poll(2) is asked before each write of at most PIPE_BUF.

use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_getfl, fcntl_setfl, fstat, openat};
use rustix::io::{Errno, fcntl_dupfd_cloexec, ioctl_fionread, read, write};
use rustix::net::{SendFlags, send};

use super::bounded::{HeadTail, Kept};
use crate::error::{Error, Result};
use crate::plan::{Process, Relay};
use crate::sys;

/// What is read at once, and the most that waits for a reader.
const CHUNK: usize = 64 << 10;
/// The most of a truncated stream that is held back, to end it with.
const TAIL: u64 = 64 << 10;
/// Of each stream, for the result, where no limit is asked for.
const KEPT: u64 = 256 << 10;
/// However much is asked for, the result is put together in memory.
const MOST_KEPT: u64 = 64 << 20;

pub struct Output {
    streams: [Stream; 2],
    /// Set: reaching it ends the run.
    deadly: Option<u64>,
}

/// The command's ends.
pub struct Ends([OwnedFd; 2]);

impl Output {
    /// Before the fork. `forward` is whether the caller's streams are for the command's output: with the result on
    /// standard output they are not.
    pub fn prepare(relay: &Relay, forward: bool, process: &Process) -> Result<(Output, Ends)> {
        let failed = |error: io::Error| Error::step("put a pipe between the command and its output", error);
        let (out, out_end) = Stream::prepare("stdout", 1, relay, forward, process).map_err(failed)?;
        let (err, err_end) = Stream::prepare("stderr", 2, relay, forward, process).map_err(failed)?;
        let deadly = relay.limit.filter(|_| relay.kill);
        Ok((Output { streams: [out, err], deadly }, Ends([out_end, err_end])))
    }

    /// What to wait for.
    pub fn watched(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.streams.iter().flat_map(Stream::watched)
    }

    /// Moves on what can be moved without waiting. Returns whether something was.
    pub fn turn(&mut self) -> bool {
        self.streams.iter_mut().fold(false, |moved, stream| stream.turn() | moved)
    }

    /// After the last writer has gone: what is still in the pipes. Counted first, so that a writer that was handed the
    /// pipe by some way out could not keep this going.
    pub fn drain(&mut self) {
        for stream in &mut self.streams {
            stream.drain();
        }
    }

    pub fn is_delivered(&self) -> bool {
        self.streams.iter().all(Stream::is_delivered)
    }

    /// The stream that has had more written to it than the run may survive, and the limit.
    pub fn exceeded(&self) -> Option<(&'static str, u64)> {
        let limit = self.deadly?;
        self.streams.iter().find(|stream| stream.total > limit).map(|stream| (stream.name, limit))
    }

    /// Name, bytes that the command has written, and what is kept of them.
    pub fn told(&self) -> impl Iterator<Item = (&'static str, u64, Option<&Kept>)> {
        self.streams.iter().map(|stream| (stream.name, stream.total, stream.kept.as_ref()))
    }
}

impl Ends {
    pub fn attach(&self) -> Result<()> {
        for (end, number) in self.0.iter().zip([1, 2]) {
            sys::place_descriptor(end.as_fd(), number)
                .map_err(|error| Error::step("replace a standard descriptor", error))?;
        }
        Ok(())
    }
}

/// One line on standard error. When that is gone there is nobody left to tell.
pub fn tell_limit(stream: &str, limit: u64) {
    let line = format!(
        "confine: the command was ended: it wrote more than {limit} bytes to {stream} (--max-output)\n"
    );
    let _ = io::stderr().write_all(line.as_bytes());
}

struct Stream {
    name: &'static str,
    /// None once the last writer has gone, or when nobody reads any more.
    source: Option<OwnedFd>,
    /// The caller's; None when it has gone, or has got everything.
    sink: Option<Sink>,
    pending: Vec<u8>,
    /// What of it the caller has got.
    sent: usize,
    bound: Option<HeadTail>,
    kept: Option<Kept>,
    total: u64,
}

impl Stream {
    fn prepare(
        name: &'static str,
        number: RawFd,
        relay: &Relay,
        forward: bool,
        process: &Process,
    ) -> io::Result<(Stream, OwnedFd)> {
        let (source, end) = io::pipe()?;
        let (source, end) = (OwnedFd::from(source), OwnedFd::from(end));
        // Each end has a description of its own: the command's stays one that waits.
        fcntl_setfl(&source, fcntl_getfl(&source)? | OFlags::NONBLOCK)?;
        if process.switch_user {
            // Or /dev/stdout could not be opened.
            let (uid, gid) = (rustix::fs::Uid::from_raw(process.uid), rustix::fs::Gid::from_raw(process.gid));
            rustix::fs::fchown(&end, Some(uid), Some(gid))?;
        }
        let bounded = |limit: u64| match relay.kill {
            true => HeadTail::cut(limit),
            false => HeadTail::new(limit, (limit / 2).min(TAIL)),
        };
        let kept = relay.limit.unwrap_or(KEPT).min(MOST_KEPT);
        let stream = Stream {
            name,
            source: Some(source),
            sink: if forward { Some(Sink::open(number)?) } else { None },
            pending: Vec::new(),
            sent: 0,
            bound: relay.limit.filter(|_| forward).map(bounded),
            kept: relay.result.then(|| Kept::new(kept, if relay.kill { 0 } else { kept / 2 })),
            total: 0,
        };
        Ok((stream, end))
    }

    fn is_waiting(&self) -> bool {
        self.sent < self.pending.len()
    }

    /// Once nothing is passed on any more, the reader need not have read for the rest to be read.
    fn may_read(&self) -> bool {
        !self.is_waiting() || self.bound.as_ref().is_some_and(HeadTail::is_head_full)
    }

    fn watched(&self) -> impl Iterator<Item = PollFd<'_>> {
        let source = self.source.as_ref().filter(|_| self.may_read());
        let events = if self.is_waiting() { PollFlags::POLLOUT } else { PollFlags::empty() };
        // Without an event it is only told when the reader goes.
        let sink = self.sink.as_ref().filter(|sink| self.is_waiting() || sink.can_go);
        source
            .map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN))
            .into_iter()
            .chain(sink.map(|sink| PollFd::new(sink.fd.as_fd(), events)))
    }

    fn turn(&mut self) -> bool {
        let mut moved = self.send();
        if self.may_read() {
            moved |= self.receive(CHUNK) > 0;
            moved |= self.send();
        }
        if self.sink.as_ref().is_some_and(|sink| sink.can_go && sink.has_gone()) {
            self.lose_sink();
        }
        moved
    }

    fn receive(&mut self, most: usize) -> usize {
        let Some(source) = &self.source else { return 0 };
        let mut bytes = vec![0; most.min(CHUNK)];
        match read(source, &mut bytes[..]) {
            Ok(0) => self.end(),
            Ok(count) => {
                self.accept(bytes.get(..count).unwrap_or_default());
                return count;
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.end(),
        }
        0
    }

    fn accept(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        if let Some(kept) = &mut self.kept {
            kept.take(bytes);
        }
        let passed = match &mut self.bound {
            Some(bound) => bound.take(bytes),
            None => bytes,
        };
        if self.sink.is_some() {
            self.pending.extend_from_slice(passed);
        }
    }

    /// The last writer has gone: what was held back can go out.
    fn end(&mut self) {
        self.source = None;
        if let (Some(bound), Some(_)) = (self.bound.take(), &self.sink) {
            bound.finish(&mut self.pending);
        }
        self.close_when_sent();
    }

    fn drain(&mut self) {
        let left = self.source.as_ref().and_then(|source| ioctl_fionread(source).ok()).unwrap_or(0);
        let mut left = usize::try_from(left).unwrap_or(usize::MAX);
        while left > 0 {
            match self.receive(left) {
                0 => break,
                count => left -= count.min(left),
            }
        }
        self.end();
    }

    fn send(&mut self) -> bool {
        let mut moved = false;
        while self.is_waiting() {
            let Some(sink) = &self.sink else { break };
            match sink.put(self.pending.get(self.sent..).unwrap_or_default()) {
                Ok(count) => {
                    moved |= count > 0;
                    self.sent += count;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return moved,
                Err(_) => self.lose_sink(),
            }
        }
        self.pending.clear();
        self.sent = 0;
        self.close_when_sent();
        moved
    }

    /// Who reads the command's output must see its end.
    fn close_when_sent(&mut self) {
        if self.source.is_none() && !self.is_waiting() {
            self.sink = None;
        }
    }

    /// The command is told by its next write, as it would be without us: SIGPIPE.
    fn lose_sink(&mut self) {
        self.sink = None;
        self.source = None;
        self.pending.clear();
        self.sent = 0;
    }

    fn is_delivered(&self) -> bool {
        self.sink.is_none() || self.source.is_none() && !self.is_waiting()
    }
}

/// One of the caller's descriptors.
struct Sink {
    fd: OwnedFd,
    socket: bool,
    /// Writes do not wait, for the description is our own.
    own: bool,
    /// There is a reader, whose end poll(2) tells.
    can_go: bool,
}

impl Sink {
    fn open(number: RawFd) -> io::Result<Sink> {
        let fd = sys::borrow(number)?;
        let kind = FileType::from_raw_mode(fstat(fd)?.st_mode);
        let terminal = kind.is_char_device() && nix::unistd::isatty(fd).unwrap_or(false);
        let access = fcntl_getfl(fd)? & OFlags::ACCMODE;
        // Not more than the caller gave.
        let again = (kind.is_fifo() || terminal) && access != OFlags::RDONLY;
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = again
            .then(|| openat(CWD, format!("/proc/self/fd/{}", fd.as_raw_fd()), flags, Mode::empty()).ok())
            .flatten();
        let own = opened.is_some();
        let fd = match opened {
            Some(fd) => fd,
            None => fcntl_dupfd_cloexec(fd, 3)?,
        };
        Ok(Sink { fd, socket: kind.is_socket(), own, can_go: kind.is_fifo() || kind.is_socket() || terminal })
    }

    fn put(&self, bytes: &[u8]) -> rustix::io::Result<usize> {
        if self.socket {
            return send(&self.fd, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        }
        if self.own || !self.can_go {
            return write(&self.fd, bytes);
        }
        if self.asked(PollFlags::POLLOUT).is_none_or(|found| found.is_empty()) {
            return Err(Errno::AGAIN);
        }
        write(&self.fd, bytes.get(..libc::PIPE_BUF).unwrap_or(bytes))
    }

    fn has_gone(&self) -> bool {
        self.asked(PollFlags::empty()).is_some_and(|found| {
            // A socket's peer that has only finished writing is told by another flag.
            found.intersects(PollFlags::POLLERR | PollFlags::POLLHUP | PollFlags::POLLNVAL)
        })
    }

    fn asked(&self, events: PollFlags) -> Option<PollFlags> {
        let mut watched = [PollFd::new(self.fd.as_fd(), events)];
        poll(&mut watched, PollTimeout::ZERO).ok()?;
        watched[0].revents()
    }
}

/// How long somebody who does not read is waited for, once the run has been ended by force.
pub const PATIENCE: Duration = Duration::from_millis(300);
