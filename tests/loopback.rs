//! `--loopback host`: the host's loopback over TCP, and no other address of it or of anybody, either way. In a network
//! namespace of each test's own, whose loopback device has an address that stands for the machine's others.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "broker/mod.rs"]
mod broker;
mod common;

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{EVERYONE, Findings, Run, Scratch};

const OTHER: &str = "10.77.0.1";
const OTHER_6: &str = "fd77::1";
const TIERS: [&str; 2] = ["auto", "off"];
const HOST: [&str; 2] = ["--loopback", "host"];

/// For this thread and what it starts.
fn own_network() {
    nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
    for words in [
        "link set lo up".to_owned(),
        format!("address add {OTHER}/32 dev lo"),
        format!("address add {OTHER_6}/128 dev lo nodad"),
    ] {
        let status = Command::new("ip")
            .args(words.split(' '))
            .status()
            .expect("ip is needed: apt-get install iproute2");
        assert!(status.success(), "ip {words}");
    }
}

fn python(scratch: &Scratch, options: &[&str], script: &str) -> Run {
    let file = scratch.file("w/script.py", &format!("{COMMON}{script}"));
    Run::confined(scratch).options(options).command(["/usr/bin/python3".as_ref(), file.as_os_str()])
}

const COMMON: &str = r#"
import errno, os, socket, struct, sys, threading
def word(call):
    try: call(); return "works"
    except OSError as error: return errno.errorcode[error.errno]
def tell(name, call): print(name + ":", word(call), flush=True)
def family(address): return socket.AF_INET6 if ":" in address else socket.AF_INET
def reach(address, port):
    with socket.socket(family(address)) as s:
        s.settimeout(10); s.connect((address, port)); s.sendall(b"hello")
def bound(address, port=0):
    s = socket.socket(family(address)); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind((address, port))
    return s
"#;

/// The listener got exactly what it should.
fn visited(listener: &TcpListener) -> bool {
    listener.set_nonblocking(true).unwrap();
    let Ok((mut peer, _)) = listener.accept() else { return false };
    peer.set_nonblocking(false).unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut text = String::new();
    peer.read_to_string(&mut text).unwrap();
    assert_eq!(text, "hello");
    true
}

#[test]
fn loopback_services_are_reached_and_no_other_address_is() {
    own_network();
    let mut findings = Findings::default();
    for who in EVERYONE {
        for tier in TIERS {
            let addresses = ["127.0.0.1", "127.9.8.7", "::1", OTHER, OTHER_6];
            let servers: Vec<TcpListener> =
                addresses.iter().map(|address| TcpListener::bind((*address, 0)).unwrap()).collect();
            let ports: Vec<u16> = servers.iter().map(|server| server.local_addr().unwrap().port()).collect();
            let mapped = TcpListener::bind("127.0.0.1:0").unwrap();
            let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
            udp.set_nonblocking(true).unwrap();
            let tried: String = addresses
                .iter()
                .zip(&ports)
                .map(|(address, port)| format!("tell({address:?}, lambda: reach({address:?}, {port}))\n"))
                .collect();
            let script = format!(
                r#"{tried}
tell("mapped", lambda: reach("::ffff:127.0.0.1", {mapped}))
tell("mapped other", lambda: reach("::ffff:{OTHER}", {other}))
tell("udp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", {udp})))
tell("mptcp", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262))
tell("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
def fast():
    s = socket.socket(); s.sendto(b"hello", 0x20000000, ("{OTHER}", {other}))
tell("fast open", fast)
def deferred():
    s = socket.socket(); s.setsockopt(6, 30, 1)
tell("deferred", deferred)
def again():
    s = socket.socket(); s.connect(("127.0.0.1", {first})); s.sendall(b"hello")
    import ctypes
    ctypes.CDLL(None, use_errno=True).connect(s.fileno(), struct.pack("H14x", 0), 16)
    s.connect(("{OTHER}", {other}))
tell("reconnect", again)
def routed():
    s = socket.socket(); s.setsockopt(0, 4, b"\x83\x07\x04\x0a\x4d\x00\x01\x00")
tell("source route", routed)
tell("device", lambda: socket.socket().setsockopt(1, 25, b"lo\0"))
def unix():
    with socket.socket(socket.AF_UNIX) as s, socket.socket(socket.AF_UNIX) as c:
        s.bind(os.environ["TMPDIR"] + "/s" if "TMPDIR" in os.environ else "/tmp/s"); s.listen(1); c.connect(s.getsockname())
        os.unlink(s.getsockname())
tell("unix", unix)
"#,
                mapped = mapped.local_addr().unwrap().port(),
                other = ports[3],
                udp = udp.local_addr().unwrap().port(),
                first = ports[0],
            );
            let scratch = Scratch::new(who);
            let outcome = python(&scratch, &[&HOST[..], &["--namespaces", tier]].concat(), &script).run();
            let wanted = format!(
                "127.0.0.1: works\n127.9.8.7: works\n::1: works\n{OTHER}: EACCES\n{OTHER_6}: EACCES\nmapped: works\n\
                 mapped other: EACCES\nudp: EPROTONOSUPPORT\nmptcp: EPROTONOSUPPORT\nraw: EPROTONOSUPPORT\n\
                 fast open: ENOTSUP\ndeferred: ENOTSUP\nreconnect: EACCES\nsource route: EPERM\n\
                 device: EPERM\nunix: works\n"
            );
            findings.claim(outcome.ok() && outcome.out == wanted, || {
                format!("{who:?} {tier}: {}", outcome.tell())
            });
            let reached: Vec<bool> = servers.iter().chain([&mapped]).map(visited).collect();
            findings.claim(reached == [true, true, true, false, false, true], || {
                format!("{who:?} {tier}: reached {reached:?}")
            });
            findings.claim(udp.recv(&mut [0; 8]).is_err(), || format!("{who:?} {tier}: a datagram came"));
            // The twins: the same network without a boundary, and with one port granted besides.
            let reach = format!("tell('other', lambda: reach('{OTHER}', {}))", ports[3]);
            let port = ports[3].to_string();
            let options = [&HOST[..], &["--namespaces", tier, "--connect", &port]].concat();
            let outcome = python(&scratch, &options, &reach).run();
            findings.claim(outcome.out == "other: works\n" && visited(&servers[3]), || {
                format!("{who:?} {tier}: {}", outcome.tell())
            });
        }
    }
    findings.settle();
}

/// Says what it heard at each of these, from outside.
fn hello(address: &str, port: u16) -> String {
    let address = SocketAddr::new(address.parse::<IpAddr>().unwrap(), port);
    let mut text = String::new();
    match TcpStream::connect_timeout(&address, Duration::from_secs(5)) {
        Ok(mut peer) => {
            peer.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let _ = peer.read_to_string(&mut text);
            text
        }
        Err(error) => format!("{:?}", error.kind()),
    }
}

#[test]
fn a_server_inside_is_reached_on_the_loopback_and_can_listen_nowhere_else() {
    own_network();
    let mut findings = Findings::default();
    for who in EVERYONE {
        for tier in TIERS {
            let scratch = Scratch::new(who);
            let script = format!(
                r#"
for address in ["0.0.0.0", "::", "{OTHER}", "{OTHER_6}", "::ffff:{OTHER}"]:
    tell(address, lambda: bound(address).listen())
tell("unbound", lambda: socket.socket().listen())
def twice():
    s = bound("127.0.0.1"); s.listen(); s.listen(9)
tell("twice", twice)
def connected():
    t = bound("127.0.0.1"); t.listen(); s = socket.socket(); s.connect(t.getsockname()); s.listen()
tell("connected", connected)
def dissolved():
    # The port stays with the socket, the address that connecting gave it does not.
    t = bound("127.0.0.1"); t.listen(); s = bound("0.0.0.0"); s.connect(t.getsockname())
    import ctypes
    ctypes.CDLL(None, use_errno=True).connect(s.fileno(), struct.pack("H14x", 0), 16)
    s.listen()
tell("dissolved", dissolved)
four, six = bound("127.0.0.1"), bound("::1")
tell("four", four.listen)
tell("six", six.listen)
print(four.getsockname()[1], six.getsockname()[1], flush=True)
for s in [four, six]:
    peer, _ = s.accept(); peer.sendall(b"hello"); peer.close()
sys.stdin.read(1)
"#
            );
            let (stdin, mut told) = std::io::pipe().unwrap();
            let mut child = python(&scratch, &[&HOST[..], &["--namespaces", tier]].concat(), &script)
                .stdio(0, stdin)
                .spawn();
            let mut said = String::new();
            let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
            let ports: Vec<u16> = loop {
                let mut line = String::new();
                if std::io::BufRead::read_line(&mut out, &mut line).unwrap() == 0 {
                    break Vec::new();
                }
                if line.starts_with(|first: char| first.is_ascii_digit()) && !line.contains(':') {
                    break line.split_whitespace().map(|port| port.parse().unwrap()).collect();
                }
                said.push_str(&line);
            };
            let heard: Vec<String> = match ports[..] {
                [four, six] => [(OTHER, four), ("127.0.0.1", four), (OTHER_6, six), ("::1", six)]
                    .map(|(address, port)| hello(address, port))
                    .into(),
                _ => Vec::new(),
            };
            let _ = told.write_all(b"x");
            common::run::wait(&mut child);
            let mut complained = String::new();
            child.stderr.take().unwrap().read_to_string(&mut complained).unwrap();
            let wanted = format!(
                "0.0.0.0: EACCES\n::: EACCES\n{OTHER}: EACCES\n{OTHER_6}: EACCES\n::ffff:{OTHER}: EACCES\n\
                 unbound: EACCES\ntwice: works\nconnected: EINVAL\ndissolved: EACCES\nfour: works\nsix: works\n"
            );
            findings.claim(said == wanted, || format!("{who:?} {tier}: {said}{complained}"));
            findings.claim(heard == ["ConnectionRefused", "hello", "ConnectionRefused", "hello"], || {
                format!("{who:?} {tier}: heard {heard:?}: {complained}")
            });
        }
    }
    findings.settle();
}

/// Other threads give the socket a loopback address and take it away, while it listens; all that time somebody knocks
/// at another address of the machine.
#[test]
fn no_race_makes_a_server_of_every_address() {
    own_network();
    for who in EVERYONE {
        for tier in TIERS {
            let scratch = broker::scratch(who);
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let over = AtomicBool::new(false);
            let (opened, outcome) = std::thread::scope(|scope| {
                let knocking = scope.spawn(|| {
                    let address: SocketAddr = format!("{OTHER}:{port}").parse().unwrap();
                    let mut opened = 0;
                    while !over.load(Ordering::Relaxed) {
                        opened +=
                            u32::from(TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok());
                    }
                    opened
                });
                let run = Run::confined(&scratch).options(HOST).options(["--namespaces", tier]);
                let outcome = broker::operation(&scratch, run, &["race-listen", &port.to_string(), "2000"]);
                over.store(true, Ordering::Relaxed);
                (knocking.join().unwrap(), outcome)
            });
            assert_eq!(opened, 0, "{who:?} {tier}: {}", outcome.tell());
            assert!(
                outcome.ok() && outcome.out.ends_with(", open 0\n"),
                "{who:?} {tier}: {}",
                outcome.tell()
            );
            assert!(!outcome.out.contains("listened 0,"), "{who:?} {tier}: {}", outcome.tell());
        }
    }
    // The twin: without a boundary the same calls do make one.
    let scratch = broker::scratch(common::Who::Root);
    let run = Run::plain(&scratch);
    let outcome = broker::operation(&scratch, run, &["race-listen", "4711", "500"]);
    assert!(outcome.ok() && !outcome.out.ends_with(", open 0\n"), "{}", outcome.tell());
}

#[test]
fn where_nobody_can_be_asked_it_is_refused() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let outcome = Run::confined(&scratch).options(HOST).options(["--listen", "8080"]).shell("true");
        assert_eq!(outcome.code(), Some(125), "{}", outcome.tell());
        assert!(
            outcome.err.contains("--listen and --loopback host contradict each other"),
            "{}",
            outcome.tell()
        );
        let told = Run::confined(&scratch).options(HOST).options(["-v"]).shell("cat $CONFINE_NOTE");
        assert!(told.err.contains("network-scope is kept by landlock, seccomp, broker"), "{}", told.tell());
        assert!(told.out.contains("127.0.0.1 and ::1 of the host"), "{}", told.tell());
    }
}
