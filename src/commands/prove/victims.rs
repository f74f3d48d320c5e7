//! What the attempts are aimed at: made here, outside, for this proof alone, and looked at after each of them.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, DirBuilder, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, PipeReader, Read};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};

use nix::pty::{OpenptyResult, openpty};
use nix::unistd::Gid;

use super::aims::{Numbers, name};
use super::bystander::Bystander;
use crate::error::{Error, Result};
use crate::sys::{self, attempt};
use crate::view::caller::{account, read_bounded};

pub struct Victims {
    pub arena: PathBuf,
    pub at: Numbers,
    pub secret: String,
    /// None where this host gives no terminal.
    pub terminal: Option<OpenptyResult>,
    /// Open for writing, for confine to close.
    pub leaked: File,
    /// Rows that cannot be tried, and why.
    pub untried: BTreeMap<&'static str, String>,
    bystander: Bystander,
    pipe: PipeReader,
    tcp: TcpListener,
    udp: UdpSocket,
    streams: Vec<(&'static str, UnixListener)>,
    datagrams: Vec<(&'static str, UnixDatagram)>,
    segment: Option<i32>,
    queue: Option<OwnedFd>,
    shared: PathBuf,
    /// What arrived so far, by victim.
    arrived: BTreeMap<&'static str, u64>,
}

const TRIES: u32 = 100;
/// A victim is never longer; what is, was put in its place.
const LONGEST: u64 = 1 << 20;

/// Every victim by name, as it stands.
pub type Standing = BTreeMap<String, String>;

impl Victims {
    /// `exposed`: the options show the directory that this lies in, and the command has to get there.
    pub fn make((uid, gid): (u32, u32), exposed: bool) -> Result<Victims> {
        let parent = std::env::temp_dir();
        // Without links on the way, as the view will have it.
        let parent = fs::canonicalize(&parent).map_err(|error| Error::path("resolve", &parent, error))?;
        let mut tries = 0;
        let (id, arena) = loop {
            let id = RandomState::new().build_hasher().finish();
            let arena = parent.join(name(id));
            match DirBuilder::new().mode(0o700).create(&arena) {
                Ok(()) => break (id, arena),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < TRIES => tries += 1,
                Err(error) => return Err(Error::path("create", &arena, error)),
            }
        };
        let made = Victims::make_in(&arena, id, uid, gid).and_then(|victims| {
            if exposed {
                chown(&arena, Some(uid), Some(gid))?;
            }
            Ok(victims)
        });
        made.map_err(|error| {
            let _ = fs::remove_dir_all(&arena);
            Error::step("make victims for the proof", error)
        })
    }

    fn make_in(arena: &Path, id: u64, uid: u32, gid: u32) -> io::Result<Victims> {
        let mut untried = BTreeMap::new();
        let secret = format!("secret-{:016x}", RandomState::new().build_hasher().finish());
        for name in ["shown", "hidden", "hidden/list", "workspace"] {
            directory(&arena.join(name), uid, gid)?;
        }
        let leaked = arena.join("leaked");
        fs::write(&leaked, "open")?;
        let (pipe, writer) = io::pipe()?;
        nonblocking(&pipe)?;
        // Before anything else is open, of which it would keep a copy.
        let bystander = Bystander::start(&secret, &writer, uid, gid)?;
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        tcp.set_nonblocking(true)?;
        udp.set_nonblocking(true)?;
        let mut at = Numbers {
            id,
            uid,
            gid,
            victim: bystander.pid,
            address: bystander.address,
            pipe: writer.as_raw_fd(),
            tcp: tcp.local_addr()?.port(),
            udp: udp.local_addr()?.port(),
            key: 0,
            // Positive, and none that a program would choose.
            segment: (RandomState::new().build_hasher().finish() >> 33) as i32 | 1,
            leaked: -1,
        };
        drop(writer);
        // The session is this process's own from here on: the caller's keyring is left alone.
        match sys::join_new_session_keyring()
            .and_then(|()| attempt::add_key(&CString::new(at.name())?, secret.as_bytes()))
        {
            Ok(serial) => at.key = serial,
            Err(error) => drop(untried.insert("a key of the caller", crate::error::describe(&error))),
        }
        let segment = attempt::make_segment(at.segment)
            .map_err(|error| untried.insert("System V shared memory", crate::error::describe(&error)))
            .ok();
        let queue = attempt::open_queue(&CString::new(format!("/{}", at.name()))?, true)
            .map_err(|error| untried.insert("a POSIX message queue", crate::error::describe(&error)))
            .ok();
        let shared = Path::new("/dev/shm").join(at.name());
        if let Err(error) = file(&shared, "shared", uid, gid) {
            untried.insert("write POSIX shared memory", crate::error::describe(&error));
        }
        let terminal = openpty(None, None).ok();
        if terminal.is_none() {
            for row in ["type into the terminal", "type into the terminal, high bits"] {
                untried.insert(row, "no terminal is to be had".to_owned());
            }
        }
        let abstracted = |suffix: &str| SocketAddr::from_abstract_name(format!("{}{suffix}", at.name()));
        let stream = |name: &str| {
            let path = arena.join(name);
            let listener = UnixListener::bind(&path)?;
            chown(&path, Some(uid), Some(gid)).map(|()| listener)
        };
        let streams = vec![
            ("the socket in shown", stream("shown/stream")?),
            ("the socket in hidden", stream("hidden/stream")?),
            ("the abstract socket", UnixListener::bind_addr(&abstracted("")?)?),
        ];
        let datagrams = vec![
            ("the datagram socket", UnixDatagram::bind(arena.join("shown/datagram"))?),
            ("the abstract datagram socket", UnixDatagram::bind_addr(&abstracted("-datagram")?)?),
        ];
        chown(arena.join("shown/datagram"), Some(uid), Some(gid))?;
        streams.iter().try_for_each(|(_, listener)| listener.set_nonblocking(true))?;
        datagrams.iter().try_for_each(|(_, socket)| socket.set_nonblocking(true))?;
        let victims = Victims {
            arena: arena.to_owned(),
            at,
            secret,
            terminal,
            leaked: File::options().write(true).open(&leaked)?,
            untried,
            bystander,
            pipe,
            tcp,
            udp,
            streams,
            datagrams,
            segment,
            queue,
            shared,
            arrived: BTreeMap::new(),
        };
        victims.renew()?;
        Ok(victims)
    }

    /// The files as they are meant to be: an attempt that has effect leaves a victim to the next.
    pub fn renew(&self) -> io::Result<()> {
        let Numbers { uid, gid, .. } = self.at;
        for entry in fs::read_dir(self.arena.join("shown"))?.flatten() {
            let path = entry.path();
            match entry.file_type()? {
                kind if kind.is_dir() => fs::remove_dir_all(path)?,
                kind if kind.is_file() || kind.is_symlink() => fs::remove_file(path)?,
                _ => {}
            }
        }
        let _ = fs::remove_file(self.arena.join("hidden/created"));
        file(&self.arena.join("shown/file"), "text that can be read", uid, gid)?;
        file(&self.arena.join("hidden/file"), &self.secret, uid, gid)?;
        file(&self.arena.join("hidden/list").join(&self.secret), "", uid, gid)
    }

    pub fn look(&mut self) -> io::Result<Standing> {
        let mut standing = Standing::new();
        for place in ["shown", "hidden", "leaked"] {
            files(&self.arena, Path::new(place), &mut standing)?;
        }
        if let Ok(text) = read_bounded(&self.shared, LONGEST) {
            standing.insert("the shared memory".into(), String::from_utf8_lossy(&text).into_owned());
        }
        for (what, text) in self.bystander.look()? {
            standing.insert(format!("the process's {what}"), text);
        }
        let Victims { tcp, udp, pipe, streams, datagrams, arrived, .. } = self;
        let mut count = |name, came: &mut dyn FnMut() -> bool| {
            let sum = arrived.entry(name).or_insert(0);
            while came() {
                *sum += 1;
            }
            standing.insert(name.into(), sum.to_string());
        };
        let mut byte = [0; 64];
        count("the TCP server", &mut || tcp.accept().is_ok());
        count("the UDP server", &mut || udp.recv(&mut byte).is_ok());
        count("the process's pipe", &mut || pipe.read(&mut byte).is_ok_and(|read| read > 0));
        for (name, listener) in streams {
            count(name, &mut || listener.accept().is_ok());
        }
        for (name, socket) in datagrams {
            count(name, &mut || socket.recv(&mut byte).is_ok());
        }
        if let Some(terminal) = &self.terminal {
            let typed = rustix::io::ioctl_fionread(&terminal.slave)?;
            standing.insert("the terminal's input".into(), typed.to_string());
        }
        if self.segment.is_some() {
            let byte = attempt::segment_by_key(self.at.segment, None)?;
            standing.insert("the System V segment".into(), byte.to_string());
        }
        if let Some(queue) = &self.queue {
            let length = attempt::queue_length(queue.as_fd())?;
            standing.insert("the message queue".into(), length.to_string());
        }
        Ok(standing)
    }

    /// Whether what came out holds what it must not.
    pub fn is_betrayed(&self, brought: &[u8]) -> bool {
        brought.windows(self.secret.len()).any(|window| window == self.secret.as_bytes())
    }
}

impl Drop for Victims {
    fn drop(&mut self) {
        if let Some(id) = self.segment {
            let _ = attempt::remove_segment(id);
        }
        if let (Some(_), Ok(name)) = (&self.queue, CString::new(format!("/{}", self.at.name()))) {
            let _ = attempt::unlink_queue(&name);
        }
        if !self.untried.contains_key("write POSIX shared memory") {
            let _ = fs::remove_file(&self.shared);
        }
        let _ = fs::remove_dir_all(&self.arena);
    }
}

fn directory(path: &Path, uid: u32, gid: u32) -> io::Result<()> {
    DirBuilder::new().mode(0o755).create(path)?;
    chown(path, Some(uid), Some(gid))
}

/// Of the command's own user and open to all: whatever refuses a change, it is not the mode.
fn file(path: &Path, text: &str, uid: u32, gid: u32) -> io::Result<()> {
    let _ = fs::remove_file(path);
    let mut file = File::create_new(path)?;
    io::Write::write_all(&mut file, text.as_bytes())?;
    file.set_permissions(fs::Permissions::from_mode(0o644))?;
    std::os::unix::fs::fchown(&file, Some(uid), Some(gid))
}

fn nonblocking(pipe: &PipeReader) -> io::Result<()> {
    Ok(rustix::fs::fcntl_setfl(pipe, rustix::fs::OFlags::NONBLOCK)?)
}

/// All but the time of access, which reading may change.
fn files(arena: &Path, name: &Path, standing: &mut Standing) -> io::Result<()> {
    let path = arena.join(name);
    let found = fs::symlink_metadata(&path)?;
    // Never waits for what was put in its place meanwhile.
    let contents = match found.is_file() {
        true => read_bounded(&path, LONGEST)
            .unwrap_or_else(|error| format!("unreadable: {}", crate::error::describe(&error)).into_bytes()),
        false => Vec::new(),
    };
    let attributes = if found.is_file() {
        let mut list = vec![0u8; 1024];
        let length = rustix::fs::listxattr(&path, &mut list[..]).unwrap_or(0);
        list[..length].to_vec()
    } else {
        Vec::new()
    };
    // Of a directory only the entries: its times follow from them.
    let times =
        (!found.is_dir()).then(|| (found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()));
    let links = (!found.is_dir()).then(|| found.nlink());
    let text = format!(
        "{:o} {}:{} {:?} {:?} {:?} {:?}",
        found.mode(),
        found.uid(),
        found.gid(),
        links,
        times,
        contents,
        attributes
    );
    standing.insert(name.display().to_string(), text);
    if found.is_dir() {
        for entry in fs::read_dir(&path)? {
            files(arena, &name.join(entry?.file_name()), standing)?;
        }
    }
    Ok(())
}

/// The identity that the command will have.
pub fn identity(user: Option<crate::policy::User>) -> (u32, u32) {
    match user {
        None => (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw()),
        Some(user) => {
            let group = account(user.uid).map(|entry| entry.gid);
            (user.uid, user.gid.or(group).unwrap_or(Gid::current().as_raw()))
        }
    }
}
