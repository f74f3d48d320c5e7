//! A bus of the test's own. The request is compared with one that GLib's `gdbus call` sent to such a bus, and the
//! answers have the form of the specification, written here by other means than the client's.

use std::fs;
use std::os::unix::net::UnixListener;
use std::thread::{self, JoinHandle};

use super::*;

/// The body that gdbus made of the same arguments.
const RECORDED: &str = "15000000636f6e66696e652d372d34322d39392e73636f7065000000040000006661696c0000000018010000000000000b\
    0000004465736372697074696f6e0001730000180000004120636f6d6d616e642072756e20627920636f6e66696e65000000000000000\
    00400000050494473000261750000000004000000671200000b000000436f6c6c6563744d6f6465000173000012000000696e61637469\
    76652d6f722d6661696c6564000000000000100000004d656d6f72794163636f756e74696e67000162000100000000000000090000004\
    d656d6f72794d6178000174000000000000000000000004000000000d0000004d656d6f7279537761704d617800017400000000000000\
    00000000000f0000005461736b734163636f756e74696e6700016200000100000000000000080000005461736b734d617800017400410\
    00000000000000000000000000000";

fn limits() -> Ceilings {
    Ceilings { memory: Some(64 << 20), procs: Some(65), ..Ceilings::default() }
}

#[test]
#[cfg(target_endian = "little")]
fn the_request_is_the_one_that_another_client_makes() {
    let hex: String = scope_request("confine-7-42-99.scope", 4711, &limits())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(hex, RECORDED);
}

/// What the bus is to say when StartTransientUnit comes.
#[derive(Clone, Copy)]
enum Answer {
    /// (result of the job, whether its end is told before the reply)
    Job(&'static str, bool),
    Refusal,
    Silence,
    Nonsense,
}

struct FakeBus {
    directory: PathBuf,
    /// The members that were called.
    server: JoinHandle<Vec<String>>,
}

fn fake(name: &str, answer: Answer) -> FakeBus {
    let directory = std::env::temp_dir().join(format!("confine-bus-{}-{name}", std::process::id()));
    fs::create_dir(&directory).unwrap();
    let listener = UnixListener::bind(directory.join("bus")).unwrap();
    let server = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        serve(BufReader::new(stream), answer)
    });
    FakeBus { directory, server }
}

impl FakeBus {
    fn path(&self) -> PathBuf {
        self.directory.join("bus")
    }

    fn called(self) -> Vec<String> {
        fs::remove_dir_all(&self.directory).unwrap();
        self.server.join().unwrap()
    }
}

fn serve(mut stream: BufReader<UnixStream>, answer: Answer) -> Vec<String> {
    let mut line = Vec::new();
    stream.read_until(b'\n', &mut line).unwrap();
    let uid: String = nix::unistd::geteuid().to_string().bytes().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(line, format!("\0AUTH EXTERNAL {uid}\r\n").into_bytes());
    stream.get_mut().write_all(b"OK 0123456789abcdef0123456789abcdef\r\n").unwrap();
    line.clear();
    stream.read_until(b'\n', &mut line).unwrap();
    assert_eq!(line, b"BEGIN\r\n");
    let mut called = Vec::new();
    loop {
        let mut head = [0; 16];
        if stream.read_exact(&mut head).is_err() {
            return called;
        }
        let number = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().unwrap());
        let (length, serial, fields) = (number(4) as usize, number(8), number(12) as usize);
        let mut rest = vec![0; fields.next_multiple_of(8) + length];
        stream.read_exact(&mut rest).unwrap();
        let text = String::from_utf8_lossy(&rest[..fields]).into_owned();
        let known = ["Hello", "NameHasOwner", "AddMatch", "StartTransientUnit"];
        let member = known.into_iter().find(|member| text.contains(member)).unwrap();
        called.push(member.to_owned());
        let out = stream.get_mut();
        // Something that nobody asked for comes first, as it does on a real bus.
        out.write_all(&message(4, 0, "s", &string(":1.7"))).unwrap();
        let reply = match (member, answer) {
            ("Hello", _) => message(2, serial, "s", &string(":1.7")),
            ("NameHasOwner", _) => message(2, serial, "b", &1_u32.to_ne_bytes()),
            ("AddMatch", _) => message(2, serial, "", &[]),
            (_, Answer::Job(result, early)) => {
                let reply = message(2, serial, "o", &string("/job/1"));
                let other = removed("/job/2", "failed");
                let end = removed("/job/1", result);
                if early { [other, end, reply].concat() } else { [other, reply, end].concat() }
            }
            (_, Answer::Refusal) => message(3, serial, "s", &string("Unit exists\nalready")),
            (_, Answer::Silence) => return called,
            (_, Answer::Nonsense) => vec![0xff; 64],
        };
        out.write_all(&reply).unwrap();
    }
}

fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_ne_bytes()[..], text.as_bytes(), b"\0"].concat()
}

fn removed(job: &str, result: &str) -> Vec<u8> {
    let mut body = 7_u32.to_ne_bytes().to_vec();
    for text in [job, "confine-7-42-99.scope", result] {
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend(string(text));
    }
    message(4, 0, "uoss", &body)
}

fn message(kind: u8, reply_to: u32, signature: &str, body: &[u8]) -> Vec<u8> {
    let mut fields = Vec::new();
    let mut field = |code: u8, kind: u8, value: &[u8]| {
        fields.resize(fields.len().next_multiple_of(8), 0);
        fields.extend([code, 1, kind, 0]);
        fields.extend(value);
    };
    match kind {
        4 => {
            field(1, b'o', &string("/org/freedesktop/systemd1"));
            field(2, b's', &string("org.freedesktop.systemd1.Manager"));
            field(3, b's', &string(if signature == "uoss" { "JobRemoved" } else { "NameAcquired" }));
        }
        _ => field(5, b'u', &reply_to.to_ne_bytes()),
    }
    if kind == 3 {
        field(4, b's', &string("org.freedesktop.systemd1.UnitExists"));
    }
    if !signature.is_empty() {
        field(8, b'g', &[&[signature.len() as u8], signature.as_bytes(), b"\0"].concat());
    }
    let mut bytes = vec![ENDIAN, kind, 1, 1];
    bytes.extend((body.len() as u32).to_ne_bytes());
    bytes.extend(1_u32.to_ne_bytes());
    bytes.extend((fields.len() as u32).to_ne_bytes());
    bytes.extend(fields);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes.extend(body);
    bytes
}

fn start(name: &str, answer: Answer) -> (io::Result<()>, Vec<String>) {
    let bus = fake(name, answer);
    let mut client = Bus::connect(&bus.path()).unwrap();
    let result = client.start_scope("confine-7-42-99.scope", 4711, &limits());
    drop(client);
    (result, bus.called())
}

#[test]
fn a_scope_is_started_when_its_job_is_done() {
    for (name, early) in [("late", false), ("early", true)] {
        let (result, called) = start(name, Answer::Job("done", early));
        result.unwrap();
        assert_eq!(called, ["Hello", "AddMatch", "StartTransientUnit"]);
    }
}

#[test]
fn a_job_that_fails_is_an_error() {
    let (result, _) = start("failed", Answer::Job("failed", false));
    assert_eq!(result.unwrap_err().to_string(), "the job ended as \"failed\"");
}

#[test]
fn a_refusal_is_told_on_one_line() {
    let (result, _) = start("refusal", Answer::Refusal);
    let text = result.unwrap_err().to_string();
    assert_eq!(text, "org.freedesktop.systemd1.UnitExists: Unit exists\\nalready");
}

#[test]
fn silence_and_nonsense_end_the_conversation() {
    assert!(start("silence", Answer::Silence).0.is_err());
    assert!(start("nonsense", Answer::Nonsense).0.is_err());
}

#[test]
fn a_bus_is_asked_whether_the_manager_is_there() {
    let bus = fake("manager", Answer::Silence);
    assert!(has_manager(&bus.path()));
    assert_eq!(bus.called(), ["Hello", "NameHasOwner"]);
    assert!(!has_manager(Path::new("/nonexistent/bus")));
}

#[test]
fn addresses_are_read_as_far_as_they_are_plain() {
    assert_eq!(path_in("unix:path=/run/user/1/bus,guid=a;tcp:host=x"), Some("/run/user/1/bus".into()));
    assert_eq!(path_in("unix:guid=a,path=/b"), Some("/b".into()));
    for address in ["unix:abstract=/tmp/x", "tcp:host=localhost", "unix:path=/a%20b", ""] {
        assert_eq!(path_in(address), None, "{address}");
    }
}
