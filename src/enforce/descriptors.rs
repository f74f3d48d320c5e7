//! What the command inherits: 0, 1, 2 and what `--fd` names, each inspected. A descriptor is a right that no
//! later rule takes back: Landlock and a new root bind at open(2) and at look-up (landlock(7)), so a directory,
//! a socket or a namespace handed in is a way out.
#![forbid(unsafe_code)]

use std::fmt;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, RawFd};
use std::path::PathBuf;

use rustix::fs::{FileType, OFlags, Stat};
use rustix::net::{AddressFamily, SocketType};

use crate::error::{Error, Result};
use crate::sys;

/// What a descriptor leads to. Only the first five are passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Regular,
    Fifo,
    Terminal,
    /// null, zero, full, random, urandom, and a terminal that has been hung up.
    Device,
    /// A connected UNIX stream.
    Stream,

    Directory,
    /// Opened with O_PATH: no reading, but a start for every *at call and for /proc/self/fd.
    PathOnly,
    Namespace,
    Process,
    /// A file of a file system that is the kernel's own surface: /proc, /sys, cgroups, message queues.
    KernelFile,
    /// epoll, inotify, io_uring, bpf, perf, userfaultfd, eventfd and so on.
    Anonymous,
    BlockDevice,
    /// The other end of somebody's terminal: what is written there is typed.
    TerminalMaster,
    OtherDevice,
    Listening,
    Datagram,
    /// Any family but UNIX, by its number.
    OtherFamily(u16),
    /// A UNIX stream without a peer, or of another type.
    Unconnected,
    Unknown,
}

impl Kind {
    pub fn may_pass(self) -> bool {
        matches!(self, Kind::Regular | Kind::Fifo | Kind::Terminal | Kind::Device | Kind::Stream)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Regular => "a file",
            Kind::Fifo => "a pipe",
            Kind::Terminal => "a terminal",
            Kind::Device => "a plain device",
            Kind::Stream => "a connected UNIX socket",
            Kind::Directory => "a directory",
            Kind::PathOnly => "a path descriptor (O_PATH)",
            Kind::Namespace => "a namespace",
            Kind::Process => "a process descriptor",
            Kind::KernelFile => "a file of the kernel (as in /proc or /sys)",
            Kind::Anonymous => "a kernel object without a name (such as epoll, eventfd, io_uring or bpf)",
            Kind::BlockDevice => "a block device",
            Kind::TerminalMaster => "the controlling end of a terminal",
            Kind::OtherDevice => "a device",
            Kind::Listening => "a listening socket",
            Kind::Datagram => "a datagram socket",
            Kind::OtherFamily(family) if is_internet(*family) => "an internet socket",
            Kind::OtherFamily(_) => "a socket that is not of the UNIX family",
            Kind::Unconnected => "a UNIX socket that is not a connected stream",
            Kind::Unknown => "of a kind that is not known",
        })
    }
}

/// 0, 1, 2, or one that `--fd` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inherited {
    pub fd: RawFd,
    pub kind: Kind,
    pub read: bool,
    pub write: bool,
    /// Of what is behind it; two equal pairs are one file, or one terminal.
    pub device: u64,
    pub inode: u64,
    /// Which device it is, major and minor.
    pub number: u64,
    pub owner: u32,
    pub mode: u32,
    /// It has no name any more.
    pub unlinked: bool,
    /// How it was opened, fcntl(2) F_GETFL.
    pub flags: OFlags,
    /// Of a regular file, in the caller's mounts. The directories in it are those that the kernel goes up by when
    /// the descriptor is opened again; `deleted` when its own name is gone (proc_pid_fd(5)).
    pub path: Option<PathBuf>,
}

impl Inherited {
    pub fn is_terminal(&self) -> bool {
        self.kind == Kind::Terminal
    }

    pub fn object(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// For messages.
    pub fn what(&self) -> String {
        what(self.fd)
    }

    pub fn remedy(&self) -> String {
        remedy(self.fd)
    }
}

fn what(fd: RawFd) -> String {
    match fd {
        0 => "standard input".to_owned(),
        1 => "standard output".to_owned(),
        2 => "standard error".to_owned(),
        _ => format!("descriptor {fd} of --fd"),
    }
}

fn remedy(fd: RawFd) -> String {
    let other = match fd {
        0 => "< /dev/null",
        1 => "| cat",
        2 => "2> /dev/null",
        _ => return "pass a file, a pipe, a terminal or a connected UNIX stream".to_owned(),
    };
    format!("give the command another one, as by '{other}'")
}

// File system types (linux/magic.h; binfmt_misc, bpf and secretmem are there as well).
const NSFS: u64 = 0x6e73_6673;
const PIDFS: u64 = 0x5049_4446;
const ANON_INODE_FS: u64 = 0x0904_1934;

/// File systems whose files are calls into the kernel. /proc is among them for all its harmless files: a
/// descriptor of /proc/PID/mem or environ looks just like one of /proc/cpuinfo, and only its name, which
/// another mount can fake, tells them apart. A pipe carries the harmless ones in.
const KERNEL_FILES: [u64; 18] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0xf97c_ff8c, // selinuxfs
    0x4341_5d53, // smackfs
    0x6265_6570, // configfs
    0xde5e_81e4, // efivarfs
    0x6165_676c, // pstorefs
    0x4249_4e4d, // binfmt_misc
    0xcafe_4a11, // bpf
    0x1980_0202, // mqueue: a descriptor of a POSIX message queue
    0x5345_434d, // secretmem
    0x444d_4142, // dma-buf
    0x0765_5821, // resctrl
];

/// Looks at one descriptor; nothing is read from it and nothing changes.
fn look(fd: BorrowedFd<'_>, flags: OFlags) -> io::Result<(Kind, Stat)> {
    let stat = rustix::fs::fstat(fd)?;
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        // First: on an O_PATH descriptor everything below would speak of the file, not of the right.
        _ if flags.contains(OFlags::PATH) => Kind::PathOnly,
        FileType::Directory => Kind::Directory,
        FileType::Fifo => Kind::Fifo,
        FileType::Socket => inspect_socket(fd)?,
        FileType::BlockDevice => Kind::BlockDevice,
        FileType::CharacterDevice => {
            character_device(rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev), fd)
        }
        // Process descriptors and namespaces are "regular" too (pidfs since 6.9; before, an anonymous inode
        // without a type). Asked only here: a dead network file system may take its time to answer.
        kind => by_file_system(rustix::fs::fstatfs(fd)?.f_type as u64, kind == FileType::RegularFile),
    };
    Ok((kind, stat))
}

fn by_file_system(magic: u64, regular: bool) -> Kind {
    // f_type is an int on some architectures: compare its low half.
    match magic & 0xffff_ffff {
        NSFS => Kind::Namespace,
        PIDFS => Kind::Process,
        ANON_INODE_FS => Kind::Anonymous,
        magic if KERNEL_FILES.contains(&magic) => Kind::KernelFile,
        _ if regular => Kind::Regular,
        _ => Kind::Unknown,
    }
}

/// By number (Documentation/admin-guide/devices.txt): mem has 1:1 and kmsg 1:11, so only the five plain ones.
fn character_device(major: u32, minor: u32, fd: BorrowedFd<'_>) -> Kind {
    match (major, minor) {
        (1, 3 | 5 | 7 | 8 | 9) => Kind::Device,
        // A master answers TCGETS as well, so it must be told from a terminal first: /dev/ptmx, a devpts
        // ptmx (5:2) and the old BSD masters (2) and Unix98 masters (128 to 135).
        (5, 2) | (2, _) | (128..=135, _) => Kind::TerminalMaster,
        _ if fd.is_terminal() => Kind::Terminal,
        // The other end has gone, for good: reads end, writes and ioctls fail.
        (136..=143, _) => Kind::Device,
        _ => Kind::OtherDevice,
    }
}

fn inspect_socket(fd: BorrowedFd<'_>) -> io::Result<Kind> {
    use rustix::net::sockopt::{socket_acceptconn, socket_domain, socket_type};

    let family = socket_domain(fd)?;
    let listening = socket_acceptconn(fd).unwrap_or(false);
    if listening {
        return Ok(Kind::Listening);
    }
    if family != AddressFamily::UNIX {
        return Ok(Kind::OtherFamily(family.as_raw()));
    }
    Ok(match socket_type(fd)? {
        SocketType::DGRAM => Kind::Datagram,
        // Without a peer it could still connect, in the network namespace that it was made in.
        SocketType::STREAM if rustix::net::getpeername(fd).is_ok() => Kind::Stream,
        _ => Kind::Unconnected,
    })
}

fn is_internet(family: u16) -> bool {
    [AddressFamily::INET, AddressFamily::INET6].iter().any(|known| known.as_raw() == family)
}

/// Opens /dev/null in place of a closed 0, 1 or 2. Must come before anything else is opened: a descriptor of
/// confine's own that landed there would be inherited. Rust's start-up does the same today without promising it.
pub fn fill_standard() -> io::Result<()> {
    for (fd, open) in (0..).zip(sys::are_open([0, 1, 2])?) {
        if open {
            continue;
        }
        let access = if fd == 0 { OFlags::RDONLY } else { OFlags::WRONLY };
        // Everything below is open by now, so the kernel's lowest free number is this one (open(2)).
        let null = rustix::fs::open("/dev/null", access, rustix::fs::Mode::empty())?;
        if null.into_raw_fd() != fd {
            return Err(io::Error::other("another thread opens files"));
        }
    }
    Ok(())
}

/// 0, 1 and 2, or a refusal. A closed one is left out: `fill_standard` has run.
pub fn check_standard() -> Result<Vec<Inherited>> {
    let mut streams = Vec::with_capacity(3);
    for fd in 0..=2 {
        if let Ok((stream, flags)) = sys::borrow_with_flags(fd) {
            streams.push(check_stream(stream, fd, OFlags::from_bits_retain(flags as u32))?);
        }
    }
    Ok(streams)
}

/// `fd` is the number that the command will know it by.
fn check_stream(stream: BorrowedFd<'_>, fd: RawFd, flags: OFlags) -> Result<Inherited> {
    let cannot = |source: io::Error| Error::step(format!("look at {}", what(fd)), source);
    let (kind, stat) = look(stream, flags).map_err(cannot)?;
    if !kind.may_pass() {
        return Err(
            Error::refused(format!("{} is {kind}, which could lead outside", what(fd))).with_hint(remedy(fd))
        );
    }
    let (read, write) = access(flags);
    // Before there are mounts of our own, in which the kernel would go by another root.
    let path = match kind {
        Kind::Regular => Some(name_of(stream).map_err(cannot)?),
        _ => None,
    };
    Ok(Inherited {
        fd,
        kind,
        read,
        write,
        device: stat.st_dev,
        inode: stat.st_ino,
        number: stat.st_rdev,
        owner: stat.st_uid,
        mode: stat.st_mode,
        unlinked: stat.st_nlink == 0,
        flags,
        path,
    })
}

/// The name by which the kernel knows what is open, in the mounts that it was opened in.
pub fn name_of(fd: BorrowedFd<'_>) -> io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}

/// Whether it was opened for reading and for writing. 3 is for neither (open(2), "ioctl only").
fn access(flags: OFlags) -> (bool, bool) {
    match flags & OFlags::ACCMODE {
        OFlags::RDONLY => (true, false),
        OFlags::WRONLY => (false, true),
        OFlags::RDWR => (true, true),
        _ => (false, false),
    }
}

/// Where output goes through the supervisor the command has pipes instead: no terminal or file that only 1 or 2 leads
/// to is shown or granted.
pub fn replace_by_pipes(standard: &mut [Inherited]) {
    for stream in standard.iter_mut().filter(|stream| stream.fd > 0) {
        stream.kind = Kind::Fifo;
    }
}

/// What `--fd` names.
pub fn check_passed(fds: &[RawFd]) -> Result<Vec<Inherited>> {
    let check = |&fd: &RawFd| {
        let Ok((passed, flags)) = sys::borrow_with_flags(fd) else {
            return Err(Error::refused(format!("descriptor {fd} of --fd is not open"))
                .with_hint(format!("open it in the shell, as by '{fd}< FILE'")));
        };
        check_stream(passed, fd, OFlags::from_bits_retain(flags as u32))
    };
    fds.iter().map(check).collect()
}

/// Closes what was inherited above 2, but for `keep`. To be called before confine opens anything itself: a
/// supervisor that held a caller's pipe open would keep its reader waiting.
pub fn close_inherited(keep: &[RawFd]) -> io::Result<()> {
    close_all_but(3, keep)
}

/// From `first` on.
pub fn close_all_but(mut first: u32, keep: &[RawFd]) -> io::Result<()> {
    let mut keep: Vec<u32> =
        keep.iter().filter_map(|&fd| u32::try_from(fd).ok()).filter(|&fd| fd >= first).collect();
    keep.sort_unstable();
    for fd in keep {
        if fd > first {
            sys::close_range(first, fd - 1)?;
        }
        first = first.max(fd.saturating_add(1));
    }
    sys::close_range(first, u32::MAX)
}

/// Every descriptor above 2 closes at execve, but for `keep`. By range and not up to a limit: descriptors opened
/// before the limit was lowered lie above it. They stay open till then, for an execve that fails must still
/// be reported.
pub fn close_above_on_exec(keep: &[RawFd]) -> io::Result<()> {
    sys::close_range_on_exec(3)?;
    for &fd in keep {
        let kept = sys::borrow(fd)?;
        rustix::io::fcntl_setfd(kept.as_fd(), rustix::io::FdFlags::empty())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
