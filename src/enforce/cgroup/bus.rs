//! The few words of D-Bus that starting a transient scope takes (D-Bus specification 0.43; org.freedesktop.systemd1(5)).
//! Every answer is waited for with a time limit, and what is longer than any answer can be is refused.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::plan::Ceilings;

const MANAGER: &str = "org.freedesktop.systemd1";
const DAEMON: &str = "org.freedesktop.DBus";
const PATIENCE: Duration = Duration::from_secs(5);
const LONGEST: usize = 1 << 20;
const ENDIAN: u8 = if cfg!(target_endian = "little") { b'l' } else { b'B' };

const CALL: u8 = 1;
const RETURN: u8 = 2;
const ERROR: u8 = 3;
const SIGNAL: u8 = 4;

pub struct Bus {
    stream: BufReader<UnixStream>,
    serial: u32,
    until: Instant,
}

/// Where the user's bus is: as the session says, else where logind puts it.
pub fn find() -> Option<PathBuf> {
    let named = std::env::var("DBUS_SESSION_BUS_ADDRESS").ok().and_then(|address| path_in(&address));
    let runtime = || Some(Path::new(&std::env::var_os("XDG_RUNTIME_DIR")?).join("bus"));
    let path = named.or_else(runtime)?;
    // Somebody else's bus would decide over our processes.
    let own = nix::unistd::geteuid().as_raw();
    path.metadata().is_ok_and(|found| found.uid() == own).then_some(path)
}

/// The first address of `unix:path=…,guid=…;…`; bytes may be escaped as %XX.
fn path_in(address: &str) -> Option<PathBuf> {
    let first = address.split(';').next()?.strip_prefix("unix:")?;
    let path = first.split(',').find_map(|pair| pair.strip_prefix("path="))?;
    (!path.contains('%')).then(|| PathBuf::from(path))
}

pub fn has_manager(path: &Path) -> bool {
    Bus::connect(path).and_then(|mut bus| bus.has_owner(MANAGER)).unwrap_or(false)
}

impl Bus {
    /// Says who we are (SASL EXTERNAL: the kernel vouches for it) and hello.
    pub fn connect(path: &Path) -> io::Result<Bus> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut bus = Bus { stream: BufReader::new(stream), serial: 0, until: Instant::now() + PATIENCE };
        let uid: String =
            nix::unistd::geteuid().to_string().bytes().map(|byte| format!("{byte:02x}")).collect();
        bus.stream.get_mut().write_all(format!("\0AUTH EXTERNAL {uid}\r\n").as_bytes())?;
        let mut line = String::new();
        (&mut bus.stream).take(1024).read_line(&mut line)?;
        if !line.starts_with("OK ") {
            return Err(io::Error::other("the bus does not take this user"));
        }
        bus.stream.get_mut().write_all(b"BEGIN\r\n")?;
        bus.call(DAEMON, "/org/freedesktop/DBus", DAEMON, "Hello", "", &[])?;
        Ok(bus)
    }

    fn has_owner(&mut self, name: &str) -> io::Result<bool> {
        let mut body = Body::default();
        body.string(name);
        let reply = self.call(DAEMON, "/org/freedesktop/DBus", DAEMON, "NameHasOwner", "s", &body.0)?;
        Ok(Cursor::new(&reply.body).u32() == Some(1))
    }

    /// Starts `unit` with this process in it, and waits until the manager has done so.
    pub fn start_scope(&mut self, unit: &str, pid: u32, limits: &Ceilings) -> io::Result<()> {
        self.until = Instant::now() + PATIENCE;
        let mut body = Body::default();
        body.string(
            "type='signal',sender='org.freedesktop.systemd1',\
             interface='org.freedesktop.systemd1.Manager',member='JobRemoved'",
        );
        // Before the job exists, or its end could be missed.
        self.call(DAEMON, "/org/freedesktop/DBus", DAEMON, "AddMatch", "s", &body.0)?;
        let body = scope_request(unit, pid, limits);
        let interface = "org.freedesktop.systemd1.Manager";
        let serial = self.send(
            MANAGER,
            "/org/freedesktop/systemd1",
            interface,
            "StartTransientUnit",
            "ssa(sv)a(sa(sv))",
            &body,
        )?;
        let mut job = None;
        let mut ended: Vec<(String, String)> = Vec::new();
        loop {
            let message = self.receive()?;
            match message.kind {
                RETURN if message.reply_to == Some(serial) => job = Cursor::new(&message.body).string(),
                ERROR if message.reply_to == Some(serial) => return Err(message.error()),
                // The signal may come before the reply.
                SIGNAL if message.member.as_deref() == Some("JobRemoved") => {
                    let mut cursor = Cursor::new(&message.body);
                    let (_, path, _, result) =
                        (cursor.u32(), cursor.string(), cursor.string(), cursor.string());
                    ended.extend(path.zip(result));
                }
                _ => {}
            }
            if let Some(job) = &job
                && let Some((_, result)) = ended.iter().find(|(path, _)| path == job)
            {
                return match result.as_str() {
                    "done" => Ok(()),
                    other => Err(io::Error::other(format!("the job ended as {other:?}"))),
                };
            }
        }
    }

    fn call(
        &mut self,
        to: &str,
        path: &str,
        interface: &str,
        member: &str,
        signature: &str,
        body: &[u8],
    ) -> io::Result<Message> {
        let serial = self.send(to, path, interface, member, signature, body)?;
        loop {
            let message = self.receive()?;
            match message.kind {
                RETURN if message.reply_to == Some(serial) => return Ok(message),
                ERROR if message.reply_to == Some(serial) => return Err(message.error()),
                _ => {}
            }
        }
    }

    fn send(
        &mut self,
        to: &str,
        path: &str,
        interface: &str,
        member: &str,
        signature: &str,
        body: &[u8],
    ) -> io::Result<u32> {
        self.serial += 1;
        let mut bytes = Body(vec![ENDIAN, CALL, 0, 1]);
        bytes.u32(body.len() as u32);
        bytes.u32(self.serial);
        bytes.array(8, |fields| {
            for (code, kind, value) in
                [(1, "o", path), (2, "s", interface), (3, "s", member), (6, "s", to), (8, "g", signature)]
            {
                if code == 8 && value.is_empty() {
                    continue;
                }
                fields.align(8);
                fields.0.push(code);
                fields.signature(kind);
                if kind == "g" { fields.signature(value) } else { fields.string(value) }
            }
        });
        bytes.align(8);
        bytes.0.extend_from_slice(body);
        self.stream.get_mut().write_all(&bytes.0)?;
        Ok(self.serial)
    }

    fn receive(&mut self) -> io::Result<Message> {
        let nonsense = || io::Error::other("the bus speaks nonsense");
        // A bus that keeps talking of other things must not keep us.
        if self.until < Instant::now() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut head = [0; 16];
        self.stream.read_exact(&mut head).map_err(timed_out)?;
        let mut cursor = Cursor { bytes: &head, at: 4 };
        let (body, _, fields) = (cursor.u32(), cursor.u32(), cursor.u32());
        let (Some(body), Some(fields), ENDIAN) = (body, fields, head[0]) else { return Err(nonsense()) };
        let (body, fields) = (body as usize, fields as usize);
        if body > LONGEST || fields > LONGEST {
            return Err(nonsense());
        }
        let mut bytes = vec![0; fields.next_multiple_of(8) + body];
        self.stream.read_exact(&mut bytes).map_err(timed_out)?;
        let body = bytes.split_off(fields.next_multiple_of(8));
        bytes.truncate(fields);
        Message::parse(head[1], &bytes, body).ok_or_else(nonsense)
    }
}

fn timed_out(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    }
}

/// The arguments of StartTransientUnit: name, mode, properties, no further units.
fn scope_request(unit: &str, pid: u32, limits: &Ceilings) -> Vec<u8> {
    let mut body = Body::default();
    body.string(unit);
    body.string("fail");
    body.array(8, |properties| {
        properties.property("Description", "s", |value| value.string("A command run by confine"));
        properties.property("PIDs", "au", |value| value.array(4, |list| list.u32(pid)));
        // Gone when its last process is, however that ended.
        properties.property("CollectMode", "s", |value| value.string("inactive-or-failed"));
        if let Some(bytes) = limits.memory {
            properties.property("MemoryAccounting", "b", |value| value.u32(1));
            properties.property("MemoryMax", "t", |value| value.u64(bytes));
            properties.property("MemorySwapMax", "t", |value| value.u64(0));
        }
        if let Some(count) = limits.procs {
            properties.property("TasksAccounting", "b", |value| value.u32(1));
            properties.property("TasksMax", "t", |value| value.u64(count));
        }
    });
    body.array(8, |_| {});
    body.0
}

/// Bytes in the wire format. Everything is aligned from the start of the message, and a body starts aligned to 8.
#[derive(Debug, Default)]
struct Body(Vec<u8>);

impl Body {
    fn align(&mut self, to: usize) {
        self.0.resize(self.0.len().next_multiple_of(to), 0);
    }

    fn u32(&mut self, value: u32) {
        self.align(4);
        self.0.extend_from_slice(&value.to_ne_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.align(8);
        self.0.extend_from_slice(&value.to_ne_bytes());
    }

    fn string(&mut self, text: &str) {
        self.u32(text.len() as u32);
        self.0.extend_from_slice(text.as_bytes());
        self.0.push(0);
    }

    fn signature(&mut self, text: &str) {
        self.0.push(text.len() as u8);
        self.0.extend_from_slice(text.as_bytes());
        self.0.push(0);
    }

    /// The length that precedes an array counts neither itself nor the padding before the first element.
    fn array(&mut self, align: usize, fill: impl FnOnce(&mut Body)) {
        self.u32(0);
        let length_at = self.0.len() - 4;
        self.align(align);
        let start = self.0.len();
        fill(self);
        let length = (self.0.len() - start) as u32;
        if let Some(place) = self.0.get_mut(length_at..length_at + 4) {
            place.copy_from_slice(&length.to_ne_bytes());
        }
    }

    fn property(&mut self, name: &str, kind: &str, value: impl FnOnce(&mut Body)) {
        self.align(8);
        self.string(name);
        self.signature(kind);
        value(self);
    }
}

struct Message {
    kind: u8,
    reply_to: Option<u32>,
    member: Option<String>,
    error: Option<String>,
    body: Vec<u8>,
}

impl Message {
    fn parse(kind: u8, fields: &[u8], body: Vec<u8>) -> Option<Message> {
        let mut message = Message { kind, reply_to: None, member: None, error: None, body };
        let mut cursor = Cursor::new(fields);
        while cursor.at < fields.len() {
            cursor.align(8);
            let code = cursor.byte()?;
            match (code, cursor.signature()?.as_str()) {
                (3, "s") => message.member = cursor.string(),
                (4, "s") => message.error = cursor.string(),
                (5, "u") => message.reply_to = cursor.u32(),
                (_, "s" | "o") => drop(cursor.string()?),
                (_, "u") => drop(cursor.u32()?),
                (_, "g") => drop(cursor.signature()?),
                _ => return None,
            }
        }
        Some(message)
    }

    fn error(&self) -> io::Error {
        let name = self.error.as_deref().unwrap_or("an error");
        let text = Cursor::new(&self.body).string().unwrap_or_default();
        io::Error::other(format!("{name}: {text}").escape_debug().to_string())
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { bytes, at: 0 }
    }

    fn align(&mut self, to: usize) {
        self.at = self.at.next_multiple_of(to);
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn u32(&mut self) -> Option<u32> {
        self.align(4);
        Some(u32::from_ne_bytes(self.take(4)?.try_into().ok()?))
    }

    fn string(&mut self) -> Option<String> {
        let length = self.u32()? as usize;
        self.text(length)
    }

    fn signature(&mut self) -> Option<String> {
        let length = self.byte()?;
        self.text(length.into())
    }

    fn text(&mut self, length: usize) -> Option<String> {
        let text = String::from_utf8(self.take(length)?.to_vec()).ok()?;
        (self.byte()? == 0).then_some(text)
    }
}

#[cfg(test)]
#[path = "bus_tests.rs"]
mod tests;
