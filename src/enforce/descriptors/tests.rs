use std::fs::File;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};

use rustix::fs::{CWD, Mode};

use super::*;

fn kind(fd: impl AsFd) -> Kind {
    let fd = fd.as_fd();
    look(fd, rustix::fs::fcntl_getfl(fd).unwrap()).unwrap().0
}

fn open(path: &str, flags: OFlags) -> OwnedFd {
    rustix::fs::openat(CWD, path, flags | OFlags::CLOEXEC | OFlags::NOCTTY, Mode::empty()).unwrap()
}

struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("confine-descriptors-{}-{name}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn files_pipes_plain_devices_and_connected_streams_pass() {
    let scratch = Scratch::new("pass");
    let path = scratch.0.join("file");
    assert_eq!(kind(File::create(&path).unwrap()), Kind::Regular);
    assert_eq!(kind(File::open(&path).unwrap()), Kind::Regular);
    let (reader, writer) = io::pipe().unwrap();
    assert_eq!((kind(reader), kind(writer)), (Kind::Fifo, Kind::Fifo));
    for device in ["null", "zero", "full", "random", "urandom"] {
        assert_eq!(kind(open(&format!("/dev/{device}"), OFlags::RDONLY)), Kind::Device, "{device}");
    }
    let memory = rustix::fs::memfd_create("m", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    assert_eq!(kind(memory), Kind::Regular);

    let (left, right) = UnixStream::pair().unwrap();
    assert_eq!(kind(&left), Kind::Stream);
    // The usual case of a parent that has gone: still connected, still no way to anyone else.
    drop(right);
    assert_eq!(kind(left), Kind::Stream);
    for kind in [Kind::Regular, Kind::Fifo, Kind::Terminal, Kind::Device, Kind::Stream] {
        assert!(kind.may_pass());
    }
}

#[test]
fn what_leads_outside_is_told_apart_and_does_not_pass() {
    let scratch = Scratch::new("refuse");
    let file = scratch.0.join("file");
    File::create(&file).unwrap();
    let file = file.to_str().unwrap();
    let directory = scratch.0.to_str().unwrap();

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let named = UnixListener::bind(scratch.0.join("socket")).unwrap();
    let connected = UnixStream::connect(scratch.0.join("socket")).unwrap();
    let (datagram, _other) = UnixDatagram::pair().unwrap();
    let loose = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
    let packets = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )
    .unwrap();
    let netlink = rustix::net::socket(AddressFamily::NETLINK, SocketType::RAW, None).unwrap();
    let me =
        rustix::process::pidfd_open(rustix::process::getpid(), rustix::process::PidfdFlags::empty()).unwrap();

    let refused: Vec<(&str, Kind, Kind)> = vec![
        ("directory", kind(open(directory, OFlags::RDONLY)), Kind::Directory),
        ("O_PATH of a directory", kind(open(directory, OFlags::PATH)), Kind::PathOnly),
        ("O_PATH of a file", kind(open(file, OFlags::PATH)), Kind::PathOnly),
        ("network namespace", kind(open("/proc/self/ns/net", OFlags::RDONLY)), Kind::Namespace),
        ("mount namespace", kind(open("/proc/self/ns/mnt", OFlags::RDONLY)), Kind::Namespace),
        ("proc", kind(open("/proc/self/environ", OFlags::RDONLY)), Kind::KernelFile),
        (
            "sysfs",
            kind(open("/sys/kernel/mm/transparent_hugepage/enabled", OFlags::RDONLY)),
            Kind::KernelFile,
        ),
        ("TCP listener", kind(&listener), Kind::Listening),
        ("TCP stream", kind(client), Kind::OtherFamily(AddressFamily::INET.as_raw())),
        (
            "UDP",
            kind(UdpSocket::bind("127.0.0.1:0").unwrap()),
            Kind::OtherFamily(AddressFamily::INET.as_raw()),
        ),
        ("IPv6", kind(UdpSocket::bind("[::1]:0").unwrap()), Kind::OtherFamily(AddressFamily::INET6.as_raw())),
        ("netlink", kind(netlink), Kind::OtherFamily(AddressFamily::NETLINK.as_raw())),
        ("UNIX listener", kind(named), Kind::Listening),
        ("UNIX datagram", kind(datagram), Kind::Datagram),
        ("UNIX stream that is not connected", kind(loose), Kind::Unconnected),
        ("UNIX packets", kind(packets.0), Kind::Unconnected),
        ("terminal master", kind(open("/dev/ptmx", OFlags::RDWR)), Kind::TerminalMaster),
        ("Landlock ruleset", kind(ruleset()), Kind::Anonymous),
    ];
    for (what, found, expected) in refused {
        assert_eq!(found, expected, "{what}");
        assert!(!found.may_pass(), "{what}");
    }
    // A pidfd is on pidfs since 6.9 and an anonymous inode before; either way it is out.
    assert!(matches!(kind(me), Kind::Process | Kind::Anonymous));
    // The twin of the listener: one who was let in by name.
    assert_eq!(kind(connected), Kind::Stream);
}

/// An anonymous inode that needs no rights to make.
fn ruleset() -> OwnedFd {
    use landlock::{ABI, Access, AccessFs, Ruleset, RulesetAttr};
    let ruleset = Ruleset::default().handle_access(AccessFs::from_all(ABI::V1)).unwrap().create().unwrap();
    Option::<OwnedFd>::from(ruleset).unwrap()
}

#[test]
fn the_terminal_end_of_a_pair_passes_and_its_master_does_not() {
    let pair = nix::pty::openpty(None, None).unwrap();
    assert_eq!((kind(&pair.master), kind(&pair.slave)), (Kind::TerminalMaster, Kind::Terminal));
    // A background job may outlive its window: the terminal is dead then, and nothing to refuse.
    drop(pair.master);
    assert_eq!(kind(pair.slave), Kind::Device);
}

#[test]
fn numbers_of_devices_settle_what_is_plain() {
    let null = open("/dev/null", OFlags::RDONLY);
    for (major, minor, expected) in [
        (1, 3, Kind::Device),
        (1, 1, Kind::OtherDevice),    // mem
        (1, 4, Kind::OtherDevice),    // port
        (1, 11, Kind::OtherDevice),   // kmsg
        (10, 229, Kind::OtherDevice), // fuse
        (5, 2, Kind::TerminalMaster),
        (2, 0, Kind::TerminalMaster),
        (128, 0, Kind::TerminalMaster),
    ] {
        assert_eq!(character_device(major, minor, null.as_fd()), expected, "{major}:{minor}");
    }
}

#[test]
fn a_file_system_of_the_kernel_is_one_whatever_the_width_of_its_number() {
    for magic in KERNEL_FILES {
        assert_eq!(by_file_system(magic, true), Kind::KernelFile);
        assert_eq!(by_file_system(magic | 0xffff_ffff_0000_0000, true), Kind::KernelFile);
    }
    assert_eq!(by_file_system(0xef53, true), Kind::Regular);
    assert_eq!(by_file_system(0xef53, false), Kind::Unknown);
}

fn check_open(stream: BorrowedFd<'_>, fd: RawFd) -> Result<Inherited> {
    check_stream(stream, fd, rustix::fs::fcntl_getfl(stream).unwrap())
}

#[test]
fn streams_tell_their_access_and_identity() {
    let scratch = Scratch::new("streams");
    let path = scratch.0.join("log");
    let file = File::create(&path).unwrap();
    let checked = check_open(file.as_fd(), 2).unwrap();
    let stat = rustix::fs::stat(&path).unwrap();
    assert_eq!((checked.fd, checked.kind), (2, Kind::Regular));
    assert_eq!((checked.read, checked.write), (false, true));
    assert_eq!((checked.device, checked.inode), (stat.st_dev, stat.st_ino));
    assert!(!checked.is_terminal());
    let checked = check_open(File::open(&path).unwrap().as_fd(), 0).unwrap();
    assert_eq!((checked.read, checked.write), (true, false));

    let error = check_open(File::open(&scratch.0).unwrap().as_fd(), 0).unwrap_err();
    assert_eq!(error.to_string(), "standard input is a directory, which could lead outside");
    assert_eq!(error.hint(), Some("give the command another one, as by '< /dev/null'"));
}

#[test]
fn passed_descriptors_must_be_open_and_of_a_kind_that_passes() {
    let (reader, _writer) = io::pipe().unwrap();
    check_passed(&[reader.as_raw_fd()]).unwrap();
    let directory = File::open("/").unwrap();
    let error = check_passed(&[reader.as_raw_fd(), directory.as_raw_fd()]).unwrap_err();
    assert!(error.to_string().ends_with("is a directory, which could lead outside"), "{error}");
    // Far above what this process has open.
    let error = check_passed(&[1_000_000]).unwrap_err();
    assert_eq!(error.to_string(), "descriptor 1000000 of --fd is not open");
    assert_eq!(error.status(), 125);
}

#[test]
fn at_exec_everything_above_two_closes_but_what_is_kept() {
    use rustix::io::{FdFlags, fcntl_getfd};

    let file = File::open("/dev/null").unwrap();
    // dup(2) leaves close-on-exec off; the last lies far above the others, as after a lowered limit.
    let (kept, other) = (rustix::io::dup(&file).unwrap(), rustix::io::dup(&file).unwrap());
    let far = nix::fcntl::fcntl(&file, nix::fcntl::FcntlArg::F_DUPFD(900)).unwrap();
    let far = sys::borrow(far).unwrap();
    for fd in [kept.as_fd(), other.as_fd(), far] {
        assert_eq!(fcntl_getfd(fd).unwrap(), FdFlags::empty());
    }
    close_above_on_exec(&[kept.as_raw_fd()]).unwrap();
    assert_eq!(fcntl_getfd(&kept).unwrap(), FdFlags::empty());
    assert_eq!(fcntl_getfd(&other).unwrap(), FdFlags::CLOEXEC);
    assert_eq!(fcntl_getfd(far).unwrap(), FdFlags::CLOEXEC);
    // Nothing was closed, and 0 to 2 are as they were.
    assert_eq!(kind(&other), Kind::Device);
    assert_eq!(fcntl_getfd(sys::borrow(2).unwrap()).unwrap(), FdFlags::empty());
    assert!(close_above_on_exec(&[1_000_000]).is_err());
}
