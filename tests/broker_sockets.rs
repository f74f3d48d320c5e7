//! socket-scope without namespaces: connect(2) through the broker.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "broker/mod.rs"]
mod broker;
mod common;

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;

use broker::{confined, operation, scratch, without_namespaces};
use common::{EVERYONE, Findings, Run, Scratch};

/// A server of "another program of the user", which everybody may connect to as far as modes go.
fn server(path: &Path) -> UnixListener {
    let listener = UnixListener::bind(path).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
    listener.set_nonblocking(true).unwrap();
    listener
}

#[test]
fn a_socket_of_another_program_cannot_be_reached_wherever_it_lies() {
    for who in EVERYONE {
        for forced in [false, true] {
            let scratch = scratch(who);
            for name in ["outside/s", "w/live"] {
                let path = scratch.path(name);
                let listener = server(&path);
                let run = without_namespaces(&scratch, Run::confined(&scratch), forced)
                    .option("--ro")
                    .option(scratch.outside());
                let outcome = operation(&scratch, run, &["reach", path.to_str().unwrap()]);
                assert!(outcome.ok(), "{}", outcome.tell());
                let mut findings = Findings::default();
                for line in outcome.out.lines() {
                    findings.claim(line.ends_with("connect EACCES"), || {
                        format!("{who:?} {forced} {name}: {line}")
                    });
                }
                assert_eq!(outcome.out.lines().count(), 7, "{}", outcome.tell());
                findings.settle();
                assert!(listener.accept().is_err(), "somebody has connected to {name}");
                // The twin.
                let outcome = operation(&scratch, Run::plain(&scratch), &["reach", path.to_str().unwrap()]);
                assert_eq!(outcome.out.matches("connect ok").count(), 6, "{}", outcome.tell());
                drop(listener);
                std::fs::remove_file(path).unwrap();
            }
        }
    }
}

#[track_caller]
fn inside(words: &[&str], wanted: &str) {
    for who in EVERYONE {
        for forced in [false, true] {
            let scratch = scratch(who);
            let run = without_namespaces(&scratch, Run::confined(&scratch), forced);
            let outcome = operation(&scratch, run, words);
            assert!(outcome.ok() && outcome.out == wanted, "{who:?} {forced}: {}", outcome.tell());
        }
    }
}

/// As the kernel has it.
#[track_caller]
fn like_bare(words: &[&str]) {
    for who in EVERYONE {
        let scratch = scratch(who);
        let bare = operation(&scratch, Run::plain(&scratch), words);
        let brokered = operation(&scratch, confined(&scratch), words);
        assert!(bare.ok() && bare.out.lines().count() > 1, "{}", bare.tell());
        assert_eq!(bare.out, brokered.out, "{who:?}: {}", brokered.tell());
    }
}

#[test]
fn streams_and_packets_inside_connect_and_speak() {
    inside(&["serve-self", "own/s"], "again: connect errno 106\nagain: connect errno 106\n");
}

#[test]
fn a_descriptor_is_passed_inside() {
    inside(&["pass-rights", "own/s"], "");
}

#[test]
fn a_full_backlog_is_waited_for_or_told_at_once() {
    inside(&["full", "own/s"], "full: connect EAGAIN\nwaited 1 status 0\n");
}

#[test]
fn a_connection_that_waits_ends_with_a_signal_and_with_its_caller() {
    inside(
        &["interrupted", "own/s"],
        "no restart: connect EINTR\nrung 1\nrestart: connect ok\nrung 1\nafter the killed: connect ok\n",
    );
}

#[test]
fn odd_arguments_are_answered_as_the_kernel_answers_them() {
    like_bare(&["kinds", "own/s"]);
}

#[test]
fn threads_without_a_common_table_connect_their_own_sockets() {
    inside(&["table-socket", "own/s"], "thread 0\nleader: write errno 107\n");
}

#[test]
fn datagrams_are_refused_where_the_socket_is_made_unless_they_are_allowed() {
    inside(
        &["datagrams"],
        "datagram: socket errno 93\nraw: socket errno 93\ndatagram: socketpair errno 93\n\
         stream: socketpair ok\nseqpacket: socketpair ok\n",
    );
    for who in EVERYONE {
        let scratch = scratch(who);
        let run = confined(&scratch).options(["--allow", "unix-datagram"]);
        let outcome = operation(&scratch, run, &["datagrams"]);
        assert_eq!(outcome.out.matches(" ok\n").count(), 5, "{}", outcome.tell());
    }
}

/// Allowed to be sent anywhere, they are connected like streams: to what the command has made.
#[test]
fn allowed_datagram_sockets_are_connected_inside_and_to_nobody_outside() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let run =
            || confined(&scratch).options(["--allow", "unix-datagram", "--ro"]).option(scratch.outside());
        let own = scratch.path("w/own/d");
        let outcome = operation(&scratch, run(), &["datagram-self", own.to_str().unwrap()]);
        assert_eq!(
            outcome.out,
            "own: connect ok\nown: received ok\nnobody: connect ok\n",
            "{}",
            outcome.tell()
        );
        let path = scratch.path("outside/d");
        let server = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
        let outside = |run: Run| run.attack(&scratch, ["unix-dgram-connect".as_ref(), path.as_os_str()]);
        let outcome = outside(run());
        assert!(outcome.denied() && outcome.verdict() == "EACCES", "{who:?}: {}", outcome.tell());
        assert!(outside(Run::plain(&scratch)).ok());
        drop(server);
    }
}

fn ports(scratch: &Scratch, options: &[&str], ports: &[u16]) -> String {
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    let words: Vec<&str> = std::iter::once("inet").chain(ports.iter().map(String::as_str)).collect();
    let outcome = operation(scratch, confined(scratch).options(options), &words);
    assert!(outcome.ok(), "{}", outcome.tell());
    outcome.out
}

#[test]
fn one_granted_port_is_reached_and_no_other() {
    for who in EVERYONE {
        let scratch = scratch(who);
        let (one, other) =
            (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        let [one, other] = [&one, &other].map(|listener| listener.local_addr().unwrap().port());
        let out = ports(&scratch, &["--connect", &one.to_string()], &[one, other]);
        assert_eq!(
            out,
            format!(
                "{one}: v4 ok\n{one}: end ok\n{one}: mapped ok\n\
                 {other}: v4 EACCES\n{other}: end ok\n{other}: mapped EACCES\nudp: socket errno 93\n"
            )
        );
        let out = ports(&scratch, &["--net", "host"], &[one, other]);
        assert_eq!(out.matches(" ok\n").count(), 7, "{out}");
        // Without a network there is no socket to connect with.
        let out = ports(&scratch, &[], &[one]);
        assert_eq!(out.matches("EBADF").count(), 3, "{out}");
        assert!(out.ends_with("udp: socket errno 97\n"), "{out}");
    }
}
