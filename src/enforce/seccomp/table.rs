//! The one table of what the filter denies. Whatever is not in it passes, up to the last number vetted here.
//!
//! Numbers of x86_64 are those of the kernel's `arch/x86/entry/syscalls/syscall_64.tbl`; aarch64 and riscv64
//! share the generic ones of `scripts/syscall.tbl` (before Linux 6.11 `asm-generic/unistd.h`). From 424 on all
//! architectures agree.
#![forbid(unsafe_code)]

use std::ops::RangeInclusive;

use libc::{EAFNOSUPPORT, ENOPROTOOPT, ENOSYS, EOPNOTSUPP, EPERM, EPROTONOSUPPORT};

use super::Arch;
use super::row::{BROKER, Group, Row, Test, When, any, call, is, is_not, masked, not_null, same, x86};

/// The newest call read and judged: fchroot, Linux 7.3.
pub const LAST_VETTED: u32 = 472;

/// Holes in the numbering. Kernels do fill them (x86 got 335 and 336 that way), so they are not vetted either.
pub fn holes(arch: Arch) -> &'static [RangeInclusive<u32>] {
    match arch {
        Arch::X86_64 => &[337..=423],
        Arch::Aarch64 => &[244..=259, 295..=423],
        // 258 and 259 are riscv_hwprobe and riscv_flush_icache.
        Arch::Riscv64 => &[244..=257, 295..=423],
    }
}

const SETUID: u32 = 0o4000;
/// O_CREAT, and the bit of O_TMPFILE that makes open(2) take a mode. O_TMPFILE proper adds O_DIRECTORY, whose
/// value differs by architecture and without which the kernel says EINVAL.
const CREATES: u32 = 0o100 | 0o20_000_000;
const MSG_FASTOPEN: u32 = 0x2000_0000;

const UNIX: u32 = 1;
const INET: u32 = 2;
const INET6: u32 = 10;
const NETLINK: u32 = 16;
/// AF_INET (2) and AF_INET6 (10) differ in one bit, so that one test finds both.
const EITHER_INET: Test = masked(0, !8, INET);

const IOCTL: Row = call("ioctl", 16, 29);
const SOCKET: Row = call("socket", 41, 198);
const CLONE: Row = call("clone", 56, 220);
const FCNTL: Row = call("fcntl", 72, 25);
const SETSOCKOPT: Row = call("setsockopt", 54, 208);
const SETPRIORITY: Row = call("setpriority", 141, 140);
const IOPRIO_SET: Row = call("ioprio_set", 251, 30);

pub const TABLE: &[Group] = &[
    Group {
        name: "terminal",
        errno: EPERM,
        when: When::Always,
        reason: "TIOCSTI and TIOCLINUX type into the caller's shell; TIOCSETD loads line disciplines",
        rows: &[IOCTL.when(&[is(1, 0x5412)]), IOCTL.when(&[is(1, 0x541c)]), IOCTL.when(&[is(1, 0x5423)])],
    },
    Group {
        name: "volumes",
        errno: EPERM,
        when: When::Always,
        // Every btrfs call that takes a `btrfs_ioctl_vol_args` (4096 bytes, _IOW): snapshots, subvolumes, devices.
        reason: "a snapshot or a copy by reference shows what is hidden in the original, and no Landlock hook sees it made",
        // Likewise every call of bcachefs, which only its own tools make (0xbc), and OCFS2_IOC_REFLINK (linux/ocfs2_fs.h).
        rows: &[
            IOCTL.when(&[masked(1, 0xffff_ff00, 0x5000_9400)]),
            IOCTL.when(&[masked(1, 0x0000_ff00, 0x0000_bc00)]),
            IOCTL.when(&[is(1, 0x4018_6f04)]),
        ],
    },
    Group {
        name: "keyring",
        errno: EPERM,
        when: When::Always,
        reason: "keys are not namespaced and outlive the run",
        rows: &[
            call("keyctl", 250, 219),
            call("add_key", 248, 217),
            call("request_key", 249, 218),
            // FS_IOC_ADD_ENCRYPTION_KEY, FS_IOC_REMOVE_ENCRYPTION_KEY and that for all users (linux/fscrypt.h): the keys
            // of a file system, which their user may take away from everybody.
            IOCTL.when(&[is(1, 0xc050_6617)]),
            IOCTL.when(&[is(1, 0xc040_6618)]),
            IOCTL.when(&[is(1, 0xc040_6619)]),
        ],
    },
    Group {
        name: "surface",
        errno: EPERM,
        when: When::Always,
        reason: "kernel surface with a long record of flaws, which ordinary commands do without",
        rows: &[
            call("bpf", 321, 280),
            call("perf_event_open", 298, 241),
            call("userfaultfd", 323, 282),
            call("kcmp", 312, 272),
            call("syslog", 103, 116),
            x86("modify_ldt", 154),
            same("lsm_set_self_attr", 460),
            same("listns", 470),
        ],
    },
    Group {
        name: "io_uring",
        errno: ENOSYS,
        when: When::Always,
        reason: "its requests pass no system call filter; callers fall back to ordinary calls",
        rows: &[same("io_uring_setup", 425), same("io_uring_enter", 426), same("io_uring_register", 427)],
    },
    Group {
        name: "hidden-arguments",
        errno: ENOSYS,
        when: When::Always,
        reason: "its flags and mode lie behind a pointer, out of a filter's sight; callers fall back to openat",
        rows: &[same("openat2", 437)],
    },
    Group {
        name: "memory",
        errno: ENOSYS,
        when: When::Always,
        reason: "memory that the kernel itself cannot look into, or bound to a node, without being asked for",
        rows: &[same("memfd_secret", 447), same("set_mempolicy_home_node", 450)],
    },
    Group {
        name: "other-processes",
        errno: EPERM,
        when: When::Always,
        // ptrace, process_vm_*, pidfd_getfd stay: Landlock keeps them to the command's own processes.
        reason: "moves or drops the memory of another process; no debugger needs it",
        rows: &[
            same("process_madvise", 440),
            same("process_mrelease", 448),
            call("move_pages", 279, 239),
            call("migrate_pages", 256, 238),
        ],
    },
    Group {
        name: "priority",
        errno: EPERM,
        when: When::Always,
        reason: "limits and priority of another process; 0 names the caller itself",
        rows: &[
            call("prlimit64", 302, 261).when(&[is_not(0, 0), not_null(2)]),
            // PRIO_PROCESS is 0, IOPRIO_WHO_PROCESS is 1.
            SETPRIORITY.when(&[is_not(0, 0)]),
            SETPRIORITY.when(&[is_not(1, 0)]),
            IOPRIO_SET.when(&[is_not(0, 1)]),
            IOPRIO_SET.when(&[is_not(1, 0)]),
        ],
    },
    Group {
        name: "init",
        errno: EPERM,
        when: When::OwnProcesses,
        // It has the command's user id, so the kernel would allow it. A thread's own number is no 1 anywhere but in
        // the first process of a namespace.
        reason: "would starve process 1, whose end ends everything inside",
        rows: &[
            call("sched_setparam", 142, 118).when(&[is(0, 1)]),
            call("sched_setscheduler", 144, 119).when(&[is(0, 1)]),
            call("sched_setaffinity", 203, 122).when(&[is(0, 1)]),
            call("sched_setattr", 314, 274).when(&[is(0, 1)]),
        ],
    },
    Group {
        name: "scheduling",
        errno: EPERM,
        when: When::SharedProcesses,
        reason: "scheduling and nice value of another process of the user; 0 names the caller itself",
        rows: &[
            call("sched_setparam", 142, 118).when(&[is_not(0, 0)]),
            call("sched_setscheduler", 144, 119).when(&[is_not(0, 0)]),
            call("sched_setattr", 314, 274).when(&[is_not(0, 0)]),
        ],
    },
    Group {
        name: "mounts",
        errno: EPERM,
        when: When::Always,
        reason: "would change which paths exist inside",
        rows: &[
            call("mount", 165, 40),
            call("umount2", 166, 39),
            call("pivot_root", 155, 41),
            call("chroot", 161, 51),
            same("fchroot", 472),
        ],
    },
    Group {
        name: "mounts",
        errno: ENOSYS,
        when: When::Always,
        reason: "the newer interface to mounts; callers fall back to mount(2)",
        rows: &[
            same("open_tree", 428),
            same("move_mount", 429),
            same("fsopen", 430),
            same("fsconfig", 431),
            same("fsmount", 432),
            same("fspick", 433),
            same("mount_setattr", 442),
            same("open_tree_attr", 467),
        ],
    },
    Group {
        name: "namespaces",
        errno: EPERM,
        when: When::NoNamespaces,
        reason: "a new user namespace gives capabilities over kernel code that others cannot reach",
        rows: &[
            call("unshare", 272, 97),
            call("setns", 308, 268),
            // NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. CLONE_NEWTIME lies in the byte of the exit
            // signal: clone(2) does not read it as a flag.
            CLONE.when(&[any(0, 0x7e02_0000)]),
        ],
    },
    Group {
        name: "siblings",
        errno: EPERM,
        when: When::NoNamespaces,
        // CLONE_PARENT. runc starts its containers with it.
        reason: "makes children of the parent, who may be outside: it would have to wait for what it never started",
        rows: &[CLONE.when(&[any(0, 0x8000)])],
    },
    Group {
        name: "namespaces",
        errno: ENOSYS,
        when: When::NoNamespaces,
        reason: "its flags lie behind a pointer; callers fall back to clone(2)",
        rows: &[same("clone3", 435)],
    },
    Group {
        name: "handles",
        errno: EPERM,
        when: When::Always,
        reason: "opens a file by number, past every directory on its path",
        rows: &[call("open_by_handle_at", 304, 265)],
    },
    Group {
        name: "watching",
        errno: EPERM,
        when: When::Always,
        reason: "tells what other programs do with files",
        rows: &[call("fanotify_init", 300, 262), call("fanotify_mark", 301, 263)],
    },
    Group {
        name: "administration",
        errno: EPERM,
        when: When::Always,
        reason: "administers the host; denied for the case that root is the caller",
        rows: &[
            call("acct", 163, 89),
            call("quotactl", 179, 60),
            same("quotactl_fd", 443),
            call("swapon", 167, 224),
            call("swapoff", 168, 225),
            call("reboot", 169, 142),
            call("kexec_load", 246, 104),
            call("kexec_file_load", 320, 294),
            call("init_module", 175, 105),
            call("finit_module", 313, 273),
            call("delete_module", 176, 106),
            x86("iopl", 172),
            x86("ioperm", 173),
            call("settimeofday", 164, 170),
            call("clock_settime", 227, 112),
            call("sethostname", 170, 161),
            call("setdomainname", 171, 162),
            call("vhangup", 153, 58),
        ],
    },
    Group {
        name: "retired",
        errno: ENOSYS,
        when: When::Always,
        reason: "obsolete: current kernels lack most of them, and an older one now answers likewise",
        rows: &[
            x86("uselib", 134),
            x86("ustat", 136),
            x86("sysfs", 139),
            x86("_sysctl", 156),
            x86("create_module", 174),
            x86("get_kernel_syms", 177),
            x86("query_module", 178),
            call("nfsservctl", 180, 42),
            x86("getpmsg", 181),
            x86("putpmsg", 182),
            x86("afs_syscall", 183),
            x86("tuxcall", 184),
            x86("security", 185),
            call("lookup_dcookie", 212, 18),
            x86("vserver", 236),
        ],
    },
    Group {
        name: "ipc",
        errno: ENOSYS,
        when: When::NoOwnIpc,
        reason: "without an IPC namespace its objects are those of the user's other programs",
        rows: &[
            call("shmget", 29, 194),
            call("shmat", 30, 196),
            call("shmctl", 31, 195),
            call("shmdt", 67, 197),
            call("semget", 64, 190),
            call("semop", 65, 193),
            call("semctl", 66, 191),
            call("semtimedop", 220, 192),
            call("msgget", 68, 186),
            call("msgsnd", 69, 189),
            call("msgrcv", 70, 188),
            call("msgctl", 71, 187),
            call("mq_open", 240, 180),
            // Has no Landlock hook of its own, unlike mq_open.
            call("mq_unlink", 241, 181),
        ],
    },
    Group {
        name: "personality",
        errno: EPERM,
        when: When::Always,
        reason: "READ_IMPLIES_EXEC and its like weaken a program; PER_LINUX32, UNAME26 and a debugger's fixed addresses pass",
        rows: &[call("personality", 135, 92).when(&[any(0, !0x6_0008), is_not(0, 0xffff_ffff)])],
    },
    Group {
        name: "setuid",
        errno: EPERM,
        when: When::Always,
        reason: "a setuid file left behind gives its owner's identity to whoever runs it outside",
        rows: &[
            x86("chmod", 90).when(&[any(1, SETUID)]),
            call("fchmod", 91, 52).when(&[any(1, SETUID)]),
            call("fchmodat", 268, 53).when(&[any(2, SETUID)]),
            same("fchmodat2", 452).when(&[any(2, SETUID)]),
            x86("mknod", 133).when(&[any(1, SETUID)]),
            call("mknodat", 259, 33).when(&[any(2, SETUID)]),
            x86("mkdir", 83).when(&[any(1, SETUID)]),
            call("mkdirat", 258, 34).when(&[any(2, SETUID)]),
            x86("creat", 85).when(&[any(1, SETUID)]),
            x86("open", 2).when(&[any(1, CREATES), any(2, SETUID)]),
            call("openat", 257, 56).when(&[any(2, CREATES), any(3, SETUID)]),
        ],
    },
    Group {
        name: "write-hints",
        errno: EPERM,
        when: When::Always,
        // F_SET_RW_HINT, and F_SET_FILE_RW_HINT, which is the descriptor's own where it exists (linux/fcntl.h).
        reason: "sets how long what is written to an inode is expected to last, through a descriptor open for reading only",
        rows: &[FCNTL.when(&[is(1, 1036)]), FCNTL.when(&[is(1, 1038)])],
    },
    Group {
        name: "families",
        errno: EAFNOSUPPORT,
        when: When::Always,
        reason: "only unix, IPv4, IPv6 and netlink sockets: vsock, packet, AF_ALG, SMC and the rest leave the boundary",
        rows: &[
            SOCKET.when(&[is_not(0, UNIX), is_not(0, INET), is_not(0, INET6), is_not(0, NETLINK)]),
            call("socketpair", 53, 199).when(&[is_not(0, UNIX)]),
        ],
    },
    Group {
        name: "network",
        errno: EAFNOSUPPORT,
        when: When::NoInet,
        reason: "this run has no network",
        rows: &[SOCKET.when(&[EITHER_INET])],
    },
    Group {
        name: "protocols",
        errno: EPROTONOSUPPORT,
        when: When::Always,
        reason: "of netlink only the routing tables, which name lookups read",
        rows: &[SOCKET.when(&[is(0, NETLINK), is_not(2, 0)])],
    },
    Group {
        name: "protocols",
        errno: EPROTONOSUPPORT,
        when: When::AllInet,
        reason: "streams and datagrams of TCP, UDP and ping; MPTCP, SCTP, UDP-Lite, SMC, raw and packet sockets pass other rules by",
        rows: &[
            // Types 1 (stream) and 2 (datagram) are left.
            SOCKET.when(&[EITHER_INET, masked(1, 0xf, 3)]),
            SOCKET.when(&[EITHER_INET, any(1, 0xc)]),
            SOCKET.when(&[
                EITHER_INET,
                is_not(2, 0),
                is_not(2, 6),
                is_not(2, 17),
                is_not(2, 1),
                is_not(2, 58),
            ]),
        ],
    },
    Group {
        name: "protocols",
        errno: EPROTONOSUPPORT,
        when: When::TcpOnly,
        reason: "ports are ruled for TCP alone",
        rows: &[
            // Type 1 (stream) is left; the kernel refuses 0.
            SOCKET.when(&[EITHER_INET, any(1, 0xe)]),
            SOCKET.when(&[EITHER_INET, is_not(2, 0), is_not(2, 6)]),
        ],
    },
    Group {
        name: "upper-layer",
        errno: ENOPROTOOPT,
        when: When::TcpOnly,
        reason: "TCP_ULP turns a TCP socket into an SMC one, which Landlock's port rules do not know",
        // SOL_TCP is 6, TCP_ULP 31; net/smc had it from 5.17 until 7.0. TLS in the kernel goes the same way, and
        // its users fall back.
        rows: &[SETSOCKOPT.when(&[is(1, 6), is(2, 31)])],
    },
    Group {
        name: "routes",
        errno: EPERM,
        when: When::LoopbackOnly,
        reason: "send what is addressed to the loopback elsewhere first: source routes, and a device to leave by",
        rows: &[
            // SO_BINDTODEVICE, which takes no privilege since 5.7, and SO_BINDTOIFINDEX (asm-generic/socket.h).
            SETSOCKOPT.when(&[is(1, 1), is(2, 25)]),
            SETSOCKOPT.when(&[is(1, 1), is(2, 62)]),
            // IP_OPTIONS and IP_UNICAST_IF (linux/in.h).
            SETSOCKOPT.when(&[is(1, 0), is(2, 4)]),
            SETSOCKOPT.when(&[is(1, 0), is(2, 50)]),
            // IPV6_2292RTHDR, IPV6_2292PKTOPTIONS, IPV6_FLOWINFO_SEND, IPV6_RTHDR, IPV6_UNICAST_IF (linux/in6.h).
            SETSOCKOPT.when(&[is(1, 41), is(2, 5)]),
            SETSOCKOPT.when(&[is(1, 41), is(2, 6)]),
            SETSOCKOPT.when(&[is(1, 41), is(2, 33)]),
            SETSOCKOPT.when(&[is(1, 41), is(2, 57)]),
            SETSOCKOPT.when(&[is(1, 41), is(2, 76)]),
        ],
    },
    Group {
        name: "deferred",
        errno: EOPNOTSUPP,
        when: When::LoopbackOnly,
        // TCP_FASTOPEN_CONNECT (linux/tcp.h). When such a connection fails, send(2) takes the socket's address away
        // (tcp_sendmsg_fastopen in net/ipv4/tcp.c), and nobody sees it between a look at the address and listen(2).
        reason: "connects in a later send(2), where the broker is not asked",
        rows: &[SETSOCKOPT.when(&[is(1, 6), is(2, 30)])],
    },
    Group {
        name: "fast-open",
        // What tcp(7) gives where the sysctl is off: callers then connect.
        errno: EOPNOTSUPP,
        when: When::SomeInet,
        reason: "MSG_FASTOPEN connects past Landlock's port rules on several kernels",
        rows: &[
            call("sendto", 44, 206).when(&[any(3, MSG_FASTOPEN)]),
            call("sendmsg", 46, 211).when(&[any(2, MSG_FASTOPEN)]),
            call("sendmmsg", 307, 269).when(&[any(3, MSG_FASTOPEN)]),
        ],
    },
    Group {
        name: "unix-datagrams",
        errno: EPROTONOSUPPORT,
        when: When::NoUnixDatagrams,
        reason: "a datagram's destination lies in memory, where it can change after it was looked at",
        rows: &[
            // SOCK_RAW (3) means SOCK_DGRAM (2) to this family.
            SOCKET.when(&[is(0, UNIX), masked(1, 0xe, 2)]),
            call("socketpair", 53, 199).when(&[is(0, UNIX), masked(1, 0xe, 2)]),
        ],
    },
    Group {
        name: "inode-settings",
        errno: EPERM,
        when: When::BrokeredMetadata,
        reason: "inode settings with a call of their own, through a descriptor that may be read-only",
        rows: &[
            // FS_IOC_SETVERSION and its 32-bit form, EXT4_IOC_SETVERSION, FS_IOC_SET_ENCRYPTION_POLICY,
            // FS_IOC_ENABLE_VERITY, FAT_IOCTL_SET_ATTRIBUTES, BTRFS_IOC_SUBVOL_SETFLAGS,
            // BTRFS_IOC_SET_RECEIVED_SUBVOL and its 32-bit form, EXT4_IOC_MIGRATE, F2FS_IOC_SET_PIN_FILE (linux/fs.h,
            // fscrypt.h, fsverity.h, msdos_fs.h, btrfs.h, f2fs.h; fs/ext4/ext4.h).
            IOCTL.when(&[is(1, 0x4008_7602)]),
            IOCTL.when(&[is(1, 0x4004_7602)]),
            IOCTL.when(&[is(1, 0x4008_6604)]),
            IOCTL.when(&[is(1, 0x800c_6613)]),
            IOCTL.when(&[is(1, 0x4080_6685)]),
            IOCTL.when(&[is(1, 0x4004_7211)]),
            IOCTL.when(&[is(1, 0x4008_941a)]),
            IOCTL.when(&[is(1, 0xc0c8_9425)]),
            IOCTL.when(&[is(1, 0xc0c0_9425)]),
            IOCTL.when(&[is(1, 0x0000_6609)]),
            IOCTL.when(&[is(1, 0x4004_f50d)]),
        ],
    },
    Group {
        name: "listen",
        errno: EPERM,
        when: When::NoListen,
        reason: "listening on an unbound socket takes a port that no bind rule sees",
        rows: &[call("listen", 50, 201)],
    },
    // Last: a broker is asked only about what no rule above has denied.
    Group {
        name: "metadata",
        errno: BROKER,
        when: When::BrokeredMetadata,
        reason: "Landlock rules no metadata; the broker acts on the one object that it has looked at",
        rows: &[
            x86("chmod", 90),
            call("fchmod", 91, 52),
            call("fchmodat", 268, 53),
            same("fchmodat2", 452),
            x86("chown", 92),
            x86("lchown", 94),
            call("fchown", 93, 55),
            call("fchownat", 260, 54),
            x86("utime", 132),
            x86("utimes", 235),
            x86("futimesat", 261),
            call("utimensat", 280, 88),
            call("setxattr", 188, 5),
            call("lsetxattr", 189, 6),
            call("fsetxattr", 190, 7),
            same("setxattrat", 463),
            call("removexattr", 197, 14),
            call("lremovexattr", 198, 15),
            call("fremovexattr", 199, 16),
            same("removexattrat", 466),
            same("file_setattr", 469),
            // FS_IOC_SETFLAGS, its 32-bit form, FS_IOC_FSSETXATTR (linux/fs.h).
            IOCTL.when(&[is(1, 0x4008_6602)]),
            IOCTL.when(&[is(1, 0x4004_6602)]),
            IOCTL.when(&[is(1, 0x401c_5820)]),
        ],
    },
    Group {
        name: "connect",
        errno: BROKER,
        when: When::BrokeredConnect,
        reason: "below Landlock ABI 9 a pathname socket outside could be reached; and no rule tells addresses apart",
        rows: &[call("connect", 42, 203)],
    },
    Group {
        name: "listen",
        errno: BROKER,
        when: When::BrokeredListen,
        reason: "the port that a socket is bound to is not in the call, and an unbound one gets any",
        rows: &[call("listen", 50, 201)],
    },
];
