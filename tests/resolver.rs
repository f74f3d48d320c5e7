//! `--connect 53 --connect 443`: a name is looked up over TCP and its host is reached, and nothing else is. In a network
//! of the test's own (a new network namespace with a loopback), with a name server and a service of the test's own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{EVERYONE, Findings, Run, Scratch, Who};

/// A name server on TCP and UDP port 53, which counts what it is asked over each, and a service on 443 and 80.
const SERVERS: &str = r#"
import socket, struct, sys, threading
log = open(sys.argv[1], "a", buffering=1)
def answer(query):
    name_end = query.index(b"\0", 12) + 1
    kind = struct.unpack(">H", query[name_end:name_end + 2])[0]
    question = query[12:name_end + 4]
    records = b""
    if kind == 1:
        records = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + bytes([127, 0, 0, 9])
    return query[:2] + b"\x81\x80" + struct.pack(">HHHH", 1, 1 if records else 0, 0, 0) + question + records
def tcp():
    server = socket.create_server(("127.0.0.1", 53)); ready()
    while True:
        peer, _ = server.accept()
        threading.Thread(target=serve, args=(peer,), daemon=True).start()
def serve(peer):
    with peer:
        while True:
            size = peer.recv(2, socket.MSG_WAITALL)
            if len(size) < 2: return
            query = peer.recv(struct.unpack(">H", size)[0], socket.MSG_WAITALL)
            log.write("tcp\n"); reply = answer(query); peer.sendall(struct.pack(">H", len(reply)) + reply)
def udp():
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); server.bind(("127.0.0.1", 53)); ready()
    while True:
        query, peer = server.recvfrom(4096)
        log.write("udp\n"); server.sendto(answer(query), peer)
def web(port):
    server = socket.create_server(("127.0.0.9", port)); ready()
    while True:
        peer, _ = server.accept(); log.write("port %d\n" % port)
        with peer: peer.sendall(b"fetched\n")
done = threading.Semaphore(0)
def ready(): done.release()
for target in [tcp, udp, lambda: web(443), lambda: web(80)]:
    threading.Thread(target=target, daemon=True).start()
for _ in range(4): done.acquire()
log.write("ready\n")
threading.Event().wait(60)
"#;

const CLIENT: &str = r#"
import socket, sys
def attempt(host, port):
    try:
        with socket.create_connection((host, port), 10) as peer: return peer.recv(100).decode().strip()
    except OSError as error: return type(error).__name__
print("443", attempt("service.example", 443))
print("80", attempt("127.0.0.9", 80))
try: socket.socket(socket.AF_INET, socket.SOCK_DGRAM); print("udp made")
except OSError: print("udp refused")
"#;

/// Sets the network up, starts the servers, runs what follows, and ends the servers by their own pid.
const SETUP: &str = r#"set -e
/usr/bin/python3 -c 'import fcntl, socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(s, 0x8914, struct.pack("16sH", b"lo", 0x41))'
mount --bind "$1/resolv.conf" "$(readlink -f /etc/resolv.conf)"
/usr/bin/python3 "$1/servers.py" "$1/log" & servers=$!
for i in $(seq 100); do grep -q ready "$1/log" 2>/dev/null && break; sleep 0.05; done
log=$1; shift
status=0; "$@" || status=$?
kill $servers; exit $status"#;

#[test]
fn a_name_is_looked_up_over_tcp_and_only_the_named_ports_are_reached() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        scratch.file("outside/servers.py", SERVERS);
        scratch.file("outside/resolv.conf", "nameserver 127.0.0.1\noptions timeout:2 attempts:1\n");
        scratch.file("w/client.py", CLIENT);
        let outside = scratch.outside().display().to_string();
        let id = who.id().to_string();
        let attack = scratch.attack();
        let attack = attack.to_str().unwrap();
        let wrapper = ["unshare", "-m", "-n", "bash", "-c", SETUP, "setup", &outside, attack, "as", &id, &id];
        let run = |options: &[&str]| {
            let _ = std::fs::remove_file(scratch.path("outside/log"));
            let outcome = Run::confined(&scratch)
                .by(Who::Root)
                .options(options)
                .under(wrapper)
                .command(["/usr/bin/python3", "client.py"])
                .run();
            (outcome, std::fs::read_to_string(scratch.path("outside/log")).unwrap_or_default())
        };
        let (outcome, log) = run(&["--connect", "53", "--connect", "443"]);
        findings.claim(outcome.out.starts_with("443 fetched\n80 PermissionError\nudp refused\n"), || {
            format!("{who:?}: {}\n{log}", outcome.tell())
        });
        findings.claim(log.contains("tcp") && !log.contains("udp") && !log.contains("port 80"), || {
            format!("{who:?}: the servers heard {log:?}")
        });
        let (outcome, log) = run(&["--connect", "443"]);
        findings.claim(outcome.out.starts_with("443 gaierror") && !log.contains("tcp"), || {
            format!("{who:?}: without port 53: {}\n{log}", outcome.tell())
        });
        let (outcome, log) = run(&["--net", "host"]);
        findings.claim(
            outcome.out.starts_with("443 fetched\n80 fetched\nudp made\n") && log.contains("udp"),
            || format!("{who:?}: with the host's network: {}\n{log}", outcome.tell()),
        );
        let (outcome, log) = run(&[]);
        findings.claim(!outcome.out.contains("fetched") && log == "ready\n", || {
            format!("{who:?}: without a network: {}\n{log}", outcome.tell())
        });
    }
    findings.settle();
}

/// As under systemd-resolved: /etc/resolv.conf is a link to a file that no other row shows. In a mount namespace of the
/// test's own.
const LINKED: &str = r#"set -e
mount -t tmpfs layers "$1"; mkdir "$1/upper" "$1/work"
mount -t overlay etc -o "lowerdir=/etc,upperdir=$1/upper,workdir=$1/work" /etc
mount -t tmpfs run /run; mkdir -p /run/systemd/resolve
echo "nameserver 127.0.0.53" > /run/systemd/resolve/stub-resolv.conf
rm -f /etc/resolv.conf; ln -s ../run/systemd/resolve/stub-resolv.conf /etc/resolv.conf
shift; exec "$@""#;

#[test]
fn name_servers_behind_a_link_are_read_with_and_without_ruled_ports() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let layers = scratch.dir("layers").display().to_string();
        let id = who.id().to_string();
        let attack = scratch.attack();
        let attack = attack.to_str().unwrap();
        let wrapper = ["unshare", "-m", "bash", "-c", LINKED, "linked", &layers, attack, "as", &id, &id];
        for (options, wanted) in [
            (&["--connect", "443"][..], "nameserver 127.0.0.53\n\noptions use-vc\n"),
            (&[], "nameserver 127.0.0.53\n"),
        ] {
            let outcome = Run::confined(&scratch)
                .by(Who::Root)
                .options(options)
                .under(wrapper)
                .command(["cat", "/etc/resolv.conf"])
                .run();
            findings.claim(outcome.out == wanted, || format!("{who:?}: {options:?}: {}", outcome.tell()));
        }
    }
    findings.settle();
}
