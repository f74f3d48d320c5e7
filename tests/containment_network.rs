//! network-scope: nothing leaves, nothing comes in, but by what was asked for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::net::{TcpListener, UdpSocket};
use std::time::{Duration, Instant};

use common::{EVERYONE, Findings, Run, Scratch, Who};

/// A service of the host on a loopback address, TCP and UDP on one port.
struct Service {
    address: &'static str,
    tcp: TcpListener,
    udp: UdpSocket,
}

impl Service {
    fn on(address: &'static str) -> Self {
        // The port that is free for one protocol may be taken for the other.
        for _ in 0..50 {
            let tcp = TcpListener::bind((address, 0)).unwrap();
            if let Ok(udp) = UdpSocket::bind((address, tcp.local_addr().unwrap().port())) {
                tcp.set_nonblocking(true).unwrap();
                udp.set_nonblocking(true).unwrap();
                return Service { address, tcp, udp };
            }
        }
        panic!("no port is free for both protocols");
    }

    fn port(&self) -> String {
        self.tcp.local_addr().unwrap().port().to_string()
    }

    fn reached(&self) -> bool {
        let mut bytes = [0; 16];
        let mut reached = false;
        while self.tcp.accept().is_ok() || self.udp.recv(&mut bytes).is_ok() {
            reached = true;
        }
        reached
    }
}

const ADDRESSES: [&str; 2] = ["127.0.0.1", "::1"];

/// Operation, and whether it is plain enough to work where the host's network was asked for.
const CALLS: &[(&str, bool)] = &[
    ("tcp", true),
    ("udp", true),
    ("udp-connect", true),
    ("mptcp", false),
    ("fast-open", false),
    ("fast-open-high", false),
    ("fast-open-sendmsg", false),
    ("fast-open-sendmmsg", false),
];

#[test]
fn services_of_the_host_are_not_reached_by_default() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for service in ADDRESSES.map(Service::on) {
            let port = service.port();
            for (operation, plain) in CALLS.iter().chain(&[("fast-open-connect", true)]) {
                let words = [operation, service.address, port.as_str()];
                for options in [&[][..], &["--loopback", "off"]] {
                    let outcome = Run::confined(&scratch).options(options).attack(&scratch, words);
                    // A datagram to nobody is sent, and lost.
                    let denied = outcome.denied() || operation.contains("udp");
                    findings.claim(!service.reached() && denied, || {
                        format!("{who:?}: {words:?} {options:?}: {}", outcome.tell())
                    });
                }
                let twin = Run::plain(&scratch).attack(&scratch, words);
                findings
                    .claim(service.reached(), || format!("{who:?}: {words:?} unconfined: {}", twin.tell()));
                let host = Run::confined(&scratch).options(["--net", "host"]).attack(&scratch, words);
                findings.claim(!plain || service.reached(), || {
                    format!("{who:?}: {words:?} with --net host: {}", host.tell())
                });
            }
        }
    }
    findings.settle();
}

#[test]
fn programs_inside_reach_each_other_over_loopback() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for address in ADDRESSES {
            for operation in ["loopback-tcp", "loopback-udp"] {
                let outcome = Run::confined(&scratch).attack(&scratch, [operation, address]);
                findings
                    .claim(outcome.ok(), || format!("{who:?}: {operation} {address}: {}", outcome.tell()));
            }
        }
        let name = Run::confined(&scratch).shell("getent ahosts localhost");
        findings.claim(name.ok(), || format!("{who:?}: localhost: {}", name.tell()));
        let links = Run::confined(&scratch).attack(&scratch, ["netlink-route"]);
        findings.claim(links.out.contains("links 1\n"), || format!("{who:?}: interfaces: {}", links.tell()));
        let off = Run::confined(&scratch)
            .options(["--loopback", "off"])
            .attack(&scratch, ["loopback-tcp", "127.0.0.1"]);
        findings.claim(off.denied(), || format!("{who:?}: --loopback off: {}", off.tell()));
    }
    findings.settle();
}

#[test]
fn the_state_of_the_network_of_the_host_is_not_seen() {
    let service = Service::on("127.0.0.1");
    let port = format!(":{:04X}", service.tcp.local_addr().unwrap().port());
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let outcome = Run::confined(&scratch).attack(&scratch, ["read", "/proc/net/tcp"]);
        findings
            .claim(!outcome.out.contains(&port), || format!("{who:?}: /proc/net/tcp: {}", outcome.tell()));
        let unix = Run::confined(&scratch).attack(&scratch, ["read", "/proc/net/unix"]);
        findings.claim(!unix.out.contains('/'), || format!("{who:?}: /proc/net/unix: {}", unix.tell()));
        let names = Run::confined(&scratch).attack(&scratch, ["list", "/sys/class/net"]);
        let other = names.out.lines().find(|name| !["lo", ".", "..", "ok", "ENOENT"].contains(name));
        findings.claim(other.is_none(), || format!("{who:?}: /sys/class/net: {}", names.tell()));
    }
    findings.settle();
}

/// Family, type and protocol, and whether this kernel must have it for the test to say something.
const KINDS: &[(&str, [&str; 3], bool)] = &[
    ("raw ICMP", ["2", "3", "1"], true),
    ("raw ICMPv6", ["10", "3", "58"], true),
    ("raw IP", ["2", "3", "255"], true),
    ("packet", ["17", "3", "0x0300"], true),
    ("packet, datagrams", ["17", "2", "0x0300"], true),
    ("MPTCP", ["2", "1", "262"], true),
    ("MPTCP over IPv6", ["10", "1", "262"], true),
    ("SCTP", ["2", "1", "132"], false),
    ("SCTP, messages", ["2", "5", "132"], false),
    ("DCCP", ["2", "6", "33"], false),
    ("UDP-Lite", ["2", "2", "136"], false),
    ("UDP-Lite over IPv6", ["10", "2", "136"], false),
    ("vsock", ["40", "1", "0"], false),
    ("AF_ALG", ["38", "5", "0"], false),
    ("key management", ["15", "3", "2"], false),
    ("AX.25", ["3", "2", "0"], false),
    ("IPX", ["4", "2", "0"], false),
    ("AppleTalk", ["5", "2", "0"], false),
    ("X.25", ["9", "5", "0"], false),
    ("RDS", ["21", "5", "0"], false),
    ("PPPoX", ["24", "1", "0"], false),
    ("CAN", ["29", "3", "1"], false),
    ("TIPC", ["30", "1", "0"], false),
    ("Bluetooth", ["31", "3", "1"], false),
    ("NFC", ["39", "3", "0"], false),
    ("KCM", ["41", "2", "0"], false),
    ("QIPCRTR", ["42", "2", "0"], false),
    ("SMC", ["43", "1", "0"], false),
    ("XDP", ["44", "3", "0"], false),
    ("MCTP", ["45", "2", "0"], false),
    ("netlink sock_diag", ["16", "3", "4"], true),
    ("netlink xfrm", ["16", "3", "6"], false),
    ("netlink selinux", ["16", "3", "7"], false),
    ("netlink audit", ["16", "3", "9"], false),
    ("netlink netfilter", ["16", "3", "12"], false),
    ("netlink uevent", ["16", "3", "15"], true),
    ("netlink generic", ["16", "3", "16"], true),
    ("netlink crypto", ["16", "2", "21"], false),
    ("MPTCP with high bits", ["0xab00000002", "0xab00000001", "0xab00000106"], true),
    ("packet with high bits", ["0xab00000011", "3", "0x0300"], true),
    ("uevent with high bits", ["0xab00000010", "3", "0xab0000000f"], true),
    ("raw with flags", ["2", "0x80803", "1"], true),
];

#[test]
fn sockets_of_other_kinds_cannot_be_made_on_any_network() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for (kind, [family, sort, protocol], present) in KINDS {
            let words = ["socket", family, sort, protocol];
            for network in ["none", "host"] {
                let outcome = Run::confined(&scratch).options(["--net", network]).attack(&scratch, words);
                findings.claim(outcome.denied(), || {
                    format!("{who:?}: {kind}, --net {network}: {}", outcome.tell())
                });
            }
            if *present && who == Who::Root {
                let twin = Run::plain(&scratch).attack(&scratch, words);
                findings.claim(twin.ok(), || format!("{who:?}: {kind} unconfined: {}", twin.tell()));
            }
        }
        for words in [
            ["socket", "40", "1", "0"],
            ["socket", "38", "5", "0"],
            ["socket", "17", "3", "0x0300"],
            ["socketpair", "30", "1", "0"],
        ] {
            let outcome = Run::confined(&scratch).attack(&scratch, words);
            findings.claim(outcome.verdict() == "EAFNOSUPPORT", || {
                format!("{who:?}: {words:?}: {}", outcome.tell())
            });
        }
        for words in [
            ["socket", "1", "1", "0"],
            ["socket", "1", "2", "0"],
            ["socket", "1", "5", "0"],
            ["socket", "2", "1", "0"],
            ["socket", "2", "0x80801", "6"],
            ["socket", "2", "2", "17"],
            ["socket", "10", "1", "0"],
            ["socket", "10", "2", "0"],
            ["socket", "16", "3", "0"],
            ["socket", "16", "2", "0"],
            ["socketpair", "1", "1", "0"],
            ["socketpair", "1", "5", "0"],
        ] {
            let twin = Run::confined(&scratch).attack(&scratch, words);
            findings.claim(twin.ok(), || format!("{who:?}: {words:?} should work: {}", twin.tell()));
        }
    }
    findings.settle();
}

#[test]
fn a_connect_port_opens_that_port_and_nothing_else() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for address in ADDRESSES {
            let (granted, other) = (Service::on(address), Service::on(address));
            let (port, wrong) = (granted.port(), other.port());
            let confined = || Run::confined(&scratch).options(["--connect", &port]);
            let outcome = confined().attack(&scratch, ["tcp", address, &port]);
            findings.claim(granted.reached(), || format!("{who:?}: tcp {address}: {}", outcome.tell()));
            for (operation, _) in CALLS.iter().chain(&[("fast-open-connect", false)]) {
                let outcome = confined().attack(&scratch, [operation, address, wrong.as_str()]);
                findings.claim(outcome.denied() && !other.reached(), || {
                    format!("{who:?}: {operation} {address} to another port: {}", outcome.tell())
                });
            }
            for operation in
                ["udp", "udp-connect", "mptcp", "fast-open", "fast-open-high", "fast-open-sendmmsg"]
            {
                let outcome = confined().attack(&scratch, [operation, address, port.as_str()]);
                findings.claim(outcome.denied() && !granted.reached(), || {
                    format!("{who:?}: {operation} {address} to the granted port: {}", outcome.tell())
                });
            }
            let words = ["unspec-reconnect", address, port.as_str(), wrong.as_str()];
            let outcome = confined().attack(&scratch, words);
            findings.claim(outcome.denied() && !other.reached(), || {
                format!("{who:?}: AF_UNSPEC {address}: {}", outcome.tell())
            });
            let twin = Run::plain(&scratch).attack(&scratch, words);
            findings.claim(other.reached(), || {
                format!("{who:?}: AF_UNSPEC {address} unconfined: {}", twin.tell())
            });
            for words in [
                vec!["autobind-listen", address],
                vec!["bind-listen", address, "0"],
                vec!["bind-udp", address, "0"],
            ] {
                let outcome = confined().attack(&scratch, &words);
                findings.claim(outcome.denied() && !outcome.out.contains("listening"), || {
                    format!("{who:?}: {words:?} with --connect: {}", outcome.tell())
                });
                let host = Run::confined(&scratch).options(["--net", "host"]).attack(&scratch, &words);
                findings.claim(host.ok(), || format!("{who:?}: {words:?} with --net host: {}", host.tell()));
            }
        }
    }
    findings.settle();
}

#[test]
fn connections_and_lookups_outside_fail_at_once() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for address in ["192.0.2.1", "2001:db8::1"] {
            let start = Instant::now();
            let outcome = Run::confined(&scratch).attack(&scratch, ["tcp", address, "9"]);
            findings.claim(outcome.denied() && start.elapsed() < Duration::from_secs(1), || {
                format!("{who:?}: {address} after {:?}: {}", start.elapsed(), outcome.tell())
            });
        }
        let start = Instant::now();
        let lookup = Run::confined(&scratch).shell("getent hosts name.invalid");
        findings.claim(!lookup.ok() && start.elapsed() < Duration::from_secs(2), || {
            format!("{who:?}: lookup after {:?}: {}", start.elapsed(), lookup.tell())
        });
    }
    findings.settle();
}
