//! What the filter denies and its allowed twins, call by call.
#![forbid(unsafe_code)]

use libc::{EAFNOSUPPORT, ENOSYS, EOPNOTSUPP, EPERM, EPROTONOSUPPORT};

use super::interpret::{Call, run};
use super::tests::{errno, every_rules, filter, number, ordinary};
use super::*;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
/// What a caller may leave in the upper half of an int's register.
const GARBAGE: u64 = 0xdead_beef_0000_0000;

fn decide(arch: Arch, rules: &Rules, name: &str, arguments: &[u64]) -> u32 {
    let number = number(arch, name);
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    run(&filter(arch, rules), &Call { number, arch: arch.audit(), arguments: all }).value
}

/// (call, arguments, verdict) on all three architectures.
fn claims(rules: &Rules, claims: &[(&str, &[u64], u32)]) {
    for arch in Arch::ALL {
        for (name, arguments, expected) in claims {
            assert_eq!(decide(arch, rules, name, arguments), *expected, "{arch:?} {name} {arguments:x?}");
            let high: Vec<u64> = arguments.iter().map(|value| value | GARBAGE).collect();
            if *name != "prlimit64" {
                assert_eq!(decide(arch, rules, name, &high), *expected, "{arch:?} {name} {high:x?}");
            }
        }
    }
}

#[test]
fn terminal_injection_is_denied_and_termios_is_not() {
    let tcgets = 0x5401;
    claims(
        &ordinary(),
        &[
            ("ioctl", &[0, 0x5412], errno(EPERM)),
            ("ioctl", &[0, 0x541c], errno(EPERM)),
            ("ioctl", &[0, 0x5423], errno(EPERM)),
            ("ioctl", &[0, tcgets], ALLOW),
        ],
    );
}

#[test]
fn copies_past_every_rule_are_denied_and_clones_of_files_are_not() {
    let (snapshot, snapshot_v2, clone, clone_range) = (0x5000_9401, 0x5000_9417, 0x4004_9409, 0x4020_940d);
    let (bcachefs, ocfs2_reflink) = (0x4020_bc10, 0x4018_6f04);
    claims(
        &ordinary(),
        &[
            ("ioctl", &[0, snapshot], errno(EPERM)),
            ("ioctl", &[0, snapshot_v2], errno(EPERM)),
            ("ioctl", &[0, bcachefs], errno(EPERM)),
            ("ioctl", &[0, ocfs2_reflink], errno(EPERM)),
            ("ioctl", &[0, clone], ALLOW),
            ("ioctl", &[0, clone_range], ALLOW),
        ],
    );
}

#[test]
fn keys_of_file_systems_are_denied_and_what_policy_a_file_has_can_be_asked() {
    let (add, remove, remove_all, get_policy) = (0xc050_6617, 0xc040_6618, 0xc040_6619, 0xc009_6616);
    claims(
        &ordinary(),
        &[
            ("ioctl", &[0, add], errno(EPERM)),
            ("ioctl", &[0, remove], errno(EPERM)),
            ("ioctl", &[0, remove_all], errno(EPERM)),
            ("ioctl", &[0, get_policy], ALLOW),
        ],
    );
}

#[test]
fn inode_settings_with_calls_of_their_own_are_denied_where_metadata_is_asked_about() {
    let settings =
        [0x4008_7602, 0x4008_6604, 0x800c_6613, 0x4080_6685, 0x4004_7211, 0x4008_941a, 0xc0c8_9425];
    let more = [0xc0c0_9425, 0x6609, 0x4004_f50d];
    let brokered = Rules { broker: Brokered { metadata: true, ..Brokered::default() }, ..ordinary() };
    for request in settings.into_iter().chain(more) {
        claims(&brokered, &[("ioctl", &[0, request], errno(EPERM))]);
        // A view's mounts are read-only for these.
        claims(&ordinary(), &[("ioctl", &[0, request], ALLOW)]);
    }
}

#[test]
fn new_namespaces_are_denied_unless_allowed() {
    let (fork, thread, user) = (17, 0x003d_0f00, 0x1000_0011);
    for flag in [0x2_0000, 0x200_0000, 0x400_0000, 0x800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000] {
        claims(&ordinary(), &[("clone", &[flag | 17], errno(EPERM))]);
    }
    let open = Rules { namespaces: true, ..ordinary() };
    claims(
        &ordinary(),
        &[
            ("clone", &[fork], ALLOW),
            ("clone", &[thread], ALLOW),
            ("clone", &[user], errno(EPERM)),
            ("clone3", &[], errno(ENOSYS)),
            ("unshare", &[], errno(EPERM)),
            ("setns", &[], errno(EPERM)),
            ("mount", &[], errno(EPERM)),
        ],
    );
    claims(
        &open,
        &[
            ("clone", &[user], ALLOW),
            ("clone3", &[], ALLOW),
            ("unshare", &[], ALLOW),
            ("setns", &[], ALLOW),
            ("mount", &[], errno(EPERM)),
        ],
    );
}

#[test]
fn siblings_are_denied_and_own_children_and_threads_are_not() {
    let (parent, fork, vfork, thread, spawn) = (0x8000, 17, 0x4111, 0x003d_0f00, 0x4100 | 17);
    claims(
        &ordinary(),
        &[
            ("clone", &[parent | 17], errno(EPERM)),
            ("clone", &[parent | vfork], errno(EPERM)),
            ("clone", &[parent], errno(EPERM)),
            ("clone", &[fork], ALLOW),
            ("clone", &[vfork], ALLOW),
            ("clone", &[thread], ALLOW),
            ("clone", &[spawn], ALLOW),
        ],
    );
    // clone3(2) passes there, and what it asks for cannot be seen.
    claims(&Rules { namespaces: true, ..ordinary() }, &[("clone", &[parent | 17], ALLOW)]);
}

#[test]
fn write_hints_are_denied_and_what_else_a_descriptor_can_is_not() {
    let (get, set, get_file, set_file, set_flags, lock) = (1035, 1036, 1037, 1038, 4, 6);
    claims(
        &ordinary(),
        &[
            ("fcntl", &[3, set], errno(EPERM)),
            ("fcntl", &[3, set_file], errno(EPERM)),
            ("fcntl", &[3, get], ALLOW),
            ("fcntl", &[3, get_file], ALLOW),
            ("fcntl", &[3, set_flags], ALLOW),
            ("fcntl", &[3, lock], ALLOW),
        ],
    );
}

#[test]
fn limits_and_priority_of_others_are_denied_own_ones_are_not() {
    let (me, other, pointer) = (0, 4321, 0x7f00_0000_0000);
    claims(
        &ordinary(),
        &[
            ("prlimit64", &[me, 7, pointer], ALLOW),
            ("prlimit64", &[other, 7, 0, pointer], ALLOW),
            ("prlimit64", &[other, 7, pointer], errno(EPERM)),
            ("prlimit64", &[other, 7, 1], errno(EPERM)),
            ("setpriority", &[0, me, 5], ALLOW),
            ("setpriority", &[0, other, 5], errno(EPERM)),
            ("setpriority", &[2, me, 5], errno(EPERM)),
            ("ioprio_set", &[1, me, 5], ALLOW),
            ("ioprio_set", &[1, other, 5], errno(EPERM)),
            ("ioprio_set", &[3, me, 5], errno(EPERM)),
            ("sched_setscheduler", &[me, 5, pointer], ALLOW),
            ("sched_setscheduler", &[other, 5, pointer], errno(EPERM)),
        ],
    );
    // With a PID namespace the others are the command's own, but for process 1.
    claims(
        &Rules { own_processes: true, ..ordinary() },
        &[
            ("sched_setscheduler", &[other, 5, pointer], ALLOW),
            ("sched_setaffinity", &[me, 8, pointer], ALLOW),
            ("sched_setaffinity", &[other, 8, pointer], ALLOW),
            ("sched_setaffinity", &[1, 8, pointer], errno(EPERM)),
            ("sched_setscheduler", &[1, 5, pointer], errno(EPERM)),
            ("sched_setattr", &[1, pointer, 0], errno(EPERM)),
            ("sched_setparam", &[1, pointer], errno(EPERM)),
        ],
    );
}

#[test]
fn setuid_files_are_denied_and_setgid_directories_are_not() {
    let (creat, tmpfile) = (0o101, 0o20_200_002);
    claims(
        &ordinary(),
        &[
            ("fchmod", &[3, 0o4755], errno(EPERM)),
            ("fchmod", &[3, 0o2770], ALLOW),
            ("fchmodat", &[3, 1, 0o6755], errno(EPERM)),
            ("fchmodat", &[3, 1, 0o1777], ALLOW),
            ("fchmodat2", &[3, 1, 0o4755], errno(EPERM)),
            ("mknodat", &[3, 1, 0o104755], errno(EPERM)),
            ("mknodat", &[3, 1, 0o10644], ALLOW),
            ("mkdirat", &[3, 1, 0o4755], errno(EPERM)),
            ("mkdirat", &[3, 1, 0o755], ALLOW),
            ("openat", &[3, 1, creat, 0o4755], errno(EPERM)),
            ("openat", &[3, 1, tmpfile, 0o4755], errno(EPERM)),
            ("openat", &[3, 1, creat, 0o644], ALLOW),
            ("openat", &[3, 1, 0, 0o4755], ALLOW),
            ("openat2", &[], errno(ENOSYS)),
        ],
    );
    for (name, arguments) in [
        ("open", &[1, creat, 0o4755][..]),
        ("open", &[1, tmpfile, 0o4755]),
        ("creat", &[1, 0o4755]),
        ("chmod", &[1, 0o4755]),
        ("mknod", &[1, 0o104755]),
        ("mkdir", &[1, 0o4755]),
    ] {
        assert_eq!(decide(Arch::X86_64, &ordinary(), name, arguments), errno(EPERM), "{name}");
    }
    assert_eq!(decide(Arch::X86_64, &ordinary(), "open", &[1, 0, 0o4755]), ALLOW);
}

const STREAM: u64 = 0o2_000_001; // SOCK_STREAM | SOCK_CLOEXEC
const DATAGRAM: u64 = 2;

#[test]
fn only_four_socket_families_exist() {
    for rules in every_rules() {
        for family in [0, 3, 4, 17, 21, 30, 31, 38, 40, 43, 44, 99] {
            claims(&rules, &[("socket", &[family, STREAM, 0], errno(EAFNOSUPPORT))]);
        }
        claims(
            &rules,
            &[
                ("socket", &[1, STREAM, 0], ALLOW),
                ("socket", &[16, 3, 0], ALLOW),
                ("socket", &[16, 3, 9], errno(EPROTONOSUPPORT)),
                ("socketpair", &[1, STREAM, 0], ALLOW),
                ("socketpair", &[30, STREAM, 0], errno(EAFNOSUPPORT)),
            ],
        );
    }
}

#[test]
fn network_sockets_follow_the_rules() {
    let (refused, other_protocol) = (errno(EAFNOSUPPORT), errno(EPROTONOSUPPORT));
    for family in [2, 10] {
        for (kind, protocol, tcp, all) in [
            (STREAM, 0, ALLOW, ALLOW),
            (STREAM, 6, ALLOW, ALLOW),
            (DATAGRAM, 0, other_protocol, ALLOW),
            (DATAGRAM, 17, other_protocol, ALLOW),
            (DATAGRAM, 1, other_protocol, ALLOW),
            (DATAGRAM, 136, other_protocol, other_protocol), // UDP-Lite
            (STREAM, 262, other_protocol, other_protocol),   // MPTCP
            (STREAM, 132, other_protocol, other_protocol),   // SCTP
            (STREAM, 256, other_protocol, other_protocol),   // SMC
            (5, 132, other_protocol, other_protocol),        // SCTP, SOCK_SEQPACKET
            (3, 255, other_protocol, other_protocol),        // raw
            (6, 33, other_protocol, other_protocol),         // DCCP
            (10, 0x300, other_protocol, other_protocol),     // SOCK_PACKET
        ] {
            for (inet, expected) in
                [(Inet::None, refused), (Inet::Tcp, tcp), (Inet::Loopback, tcp), (Inet::All, all)]
            {
                let rules = Rules { inet, ..ordinary() };
                claims(&rules, &[("socket", &[family, kind, protocol], expected)]);
            }
        }
    }
}

#[test]
fn fast_open_is_denied_and_sending_is_not() {
    for inet in [Inet::Loopback, Inet::Tcp, Inet::All] {
        let rules = Rules { inet, ..ordinary() };
        let (fast, nosignal) = (0x2000_4000, 0x4000);
        claims(
            &rules,
            &[
                ("sendto", &[3, 1, 1, fast], errno(EOPNOTSUPP)),
                ("sendmsg", &[3, 1, fast], errno(EOPNOTSUPP)),
                ("sendmmsg", &[3, 1, 1, fast], errno(EOPNOTSUPP)),
                ("sendto", &[3, 1, 1, nosignal], ALLOW),
                ("sendmsg", &[3, 1, nosignal], ALLOW),
                ("sendmmsg", &[3, 1, 1, nosignal], ALLOW),
            ],
        );
    }
}

#[test]
fn tcp_sockets_stay_tcp_where_ports_are_ruled() {
    let (tcp, ulp, nodelay) = (6, 31, 1);
    let ruled = Rules { inet: Inet::Tcp, ..ordinary() };
    claims(
        &ruled,
        &[
            ("setsockopt", &[3, tcp, ulp], errno(libc::ENOPROTOOPT)),
            ("setsockopt", &[3, tcp, nodelay], ALLOW),
            ("setsockopt", &[3, 1, ulp], ALLOW),
        ],
    );
    claims(&ordinary(), &[("setsockopt", &[3, tcp, ulp], ALLOW)]);
}

#[test]
fn what_is_sent_to_the_loopback_takes_no_other_way_and_no_other_time() {
    let loopback = Rules { inet: Inet::Loopback, ..ordinary() };
    // SO_BINDTODEVICE, SO_BINDTOIFINDEX; IP_OPTIONS, IP_UNICAST_IF; and those of IPv6.
    let routes = [(1, 25), (1, 62), (0, 4), (0, 50), (41, 5), (41, 6), (41, 33), (41, 57), (41, 76)];
    for (level, option) in routes {
        claims(&loopback, &[("setsockopt", &[3, level, option], errno(EPERM))]);
        claims(&Rules { inet: Inet::Tcp, ..ordinary() }, &[("setsockopt", &[3, level, option], ALLOW)]);
    }
    let (tcp, fast_open_connect, reuse) = (6, 30, 2);
    claims(
        &loopback,
        &[
            ("setsockopt", &[3, tcp, fast_open_connect], errno(libc::EOPNOTSUPP)),
            ("setsockopt", &[3, tcp, 31], errno(libc::ENOPROTOOPT)),
            ("setsockopt", &[3, 1, reuse], ALLOW),
            ("socket", &[2, 1, 0], ALLOW),
            ("socket", &[2, 2, 0], errno(libc::EPROTONOSUPPORT)),
        ],
    );
    claims(&ordinary(), &[("setsockopt", &[3, tcp, fast_open_connect], ALLOW)]);
}

#[test]
fn ipc_and_listen_follow_the_rules() {
    let shut = Rules { sysv_ipc: false, listen: false, ..ordinary() };
    let calls = ["shmget", "semget", "msgget", "semtimedop", "mq_open", "mq_unlink"];
    for name in calls {
        claims(&shut, &[(name, &[], errno(ENOSYS))]);
        claims(&ordinary(), &[(name, &[], ALLOW)]);
    }
    claims(&shut, &[("listen", &[], errno(EPERM))]);
    claims(&ordinary(), &[("listen", &[], ALLOW)]);
}

#[test]
fn personality_keeps_harmless_values() {
    for value in [0, 8, 0x2_0000, 0x2_0008, 0x4_0000, 0x4_0008, 0xffff_ffff] {
        claims(&ordinary(), &[("personality", &[value], ALLOW)]);
    }
    // READ_IMPLIES_EXEC, ADDR_COMPAT_LAYOUT, MMAP_PAGE_ZERO
    for value in [0x40_0000, 0x20_0000, 0x10_0000, 0x44_0000, 1] {
        claims(&ordinary(), &[("personality", &[value], errno(EPERM))]);
    }
}

#[test]
fn debuggers_and_nested_sandboxes_keep_their_calls() {
    // ptrace, process_vm_readv, process_vm_writev, pidfd_getfd, landlock_create_ruleset, seccomp, memfd_create
    for number in [101, 310, 311, 438, 444, 317, 319] {
        let call = Call { number, arch: Arch::X86_64.audit(), arguments: [0; 6] };
        assert_eq!(run(&filter(Arch::X86_64, &ordinary()), &call).value, ALLOW, "{number}");
    }
}
