//! `--listen`: exactly the named ports are served on the host's network, and nothing is reached from inside.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use common::{EVERYONE, Findings, Run, Scratch};

/// Tries what its arguments name, a line each, and serves one connection on the port that comes last.
const SERVER: &str = r#"
import errno, os, socket, sys, threading
port, other, outside = map(int, sys.argv[1:4])
def word(call):
    try: call(); return "works"
    except OSError as error: return errno.errorcode[error.errno]
def bound(port, family=socket.AF_INET, address="127.0.0.1"):
    s = socket.socket(family); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, port)); return s
print("other port:", word(lambda: bound(other).listen()))
print("unbound:", word(lambda: socket.socket().listen()))
print("connect out:", word(lambda: socket.create_connection(("127.0.0.1", outside), 5)))
print("udp:", word(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)))
def unix():
    s = socket.socket(socket.AF_UNIX); s.bind("u.sock"); s.listen(1)
    c = socket.socket(socket.AF_UNIX); c.connect("u.sock"); os.unlink("u.sock")
print("unix:", word(unix))
found = []
def serve():
    s = bound(port); found.append(word(lambda: s.listen(5))); found.append(s)
thread = threading.Thread(target=serve); thread.start(); thread.join()
print("named port, from a thread:", found[0], flush=True)
open("ready", "w").close()
if found[0] == "works":
    peer, _ = found[1].accept(); peer.sendall(b"hello"); peer.close()
"#;

/// Ports that are free now: nothing else here binds fixed ones.
fn free(count: usize) -> Vec<u16> {
    let held: Vec<TcpListener> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    held.iter().map(|listener| listener.local_addr().unwrap().port()).collect()
}

#[test]
fn exactly_the_named_port_is_served_and_nothing_is_reached() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        for tier in ["auto", "off"] {
            for (listen, other, unbound) in
                [("named", "EACCES", "EACCES"), ("any", "works", "works"), ("none", "EACCES", "EPERM")]
            {
                let scratch = Scratch::new(who);
                let server = scratch.file("w/server.py", SERVER);
                let ports = free(2);
                let outside = TcpListener::bind("127.0.0.1:0").unwrap();
                outside.set_nonblocking(true).unwrap();
                let named = ports[0].to_string();
                let grants = match listen {
                    "named" => ["--listen", &named],
                    "any" => ["--listen", "any"],
                    _ => ["--connect", &named],
                };
                let mut child = Run::confined(&scratch)
                    .options(["--namespaces", tier])
                    .options(grants)
                    .command(
                        ["/usr/bin/python3".as_ref(), server.as_os_str()].into_iter().chain(
                            [
                                &named,
                                &ports[1].to_string(),
                                &outside.local_addr().unwrap().port().to_string(),
                            ]
                            .map(|port| std::ffi::OsStr::new(port.as_str())),
                        ),
                    )
                    .spawn();
                for _ in 0..200 {
                    if scratch.path("w/ready").exists() || child.try_wait().unwrap().is_some() {
                        break;
                    }
                    std::thread::sleep(Duration::from_millis(50));
                }
                let mut served = String::new();
                let address = SocketAddr::from(([127, 0, 0, 1], ports[0]));
                if let Ok(mut peer) = TcpStream::connect_timeout(&address, Duration::from_secs(5)) {
                    let _ = peer.set_read_timeout(Some(Duration::from_secs(5)));
                    let _ = peer.read_to_string(&mut served);
                }
                common::run::wait(&mut child);
                let mut said = String::new();
                child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
                let mut complained = String::new();
                child.stderr.take().unwrap().read_to_string(&mut complained).unwrap();
                let (own, hello) = if listen == "none" { ("EACCES", "") } else { ("works", "hello") };
                let unix = if listen == "none" { "EPERM" } else { "works" };
                let wanted = format!(
                    "other port: {other}\nunbound: {unbound}\nconnect out: EACCES\nudp: EPROTONOSUPPORT\nunix: {unix}\n"
                );
                // Binding comes first: where no port is granted it is what fails.
                let last = said.lines().last().unwrap_or_default().to_owned();
                let ends = if listen == "none" {
                    complained.contains("PermissionError")
                } else {
                    last == format!("named port, from a thread: {own}")
                };
                let reached = outside.accept().is_ok();
                findings.claim(said.starts_with(&wanted) && ends && served == hello && !reached, || {
                    format!(
                        "{who:?} {tier} {listen}: served {served:?}, reached {reached}: {said}{complained}"
                    )
                });
            }
        }
    }
    findings.settle();
}
