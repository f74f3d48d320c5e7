//! Each class of denial, its layer and its option; and what is none.

use super::*;

#[test]
fn what_the_view_denies_is_listed_with_the_option_that_shows_it() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        fill(&scratch);
        let out = scratch.outside().display().to_string();
        let unseen = "view: not visible";
        let read_only = "view: read-only";
        for case in [
            case("", format!("open('{out}/f')"), format!("read '{out}/f'"), unseen, format!("--ro {out}/f")),
            case(
                "",
                format!("os.stat('{out}/sub')"),
                format!("look at '{out}/sub'"),
                unseen,
                format!("--ro {out}/sub"),
            ),
            case("", format!("os.chdir('{out}')"), format!("enter '{out}'"), unseen, format!("--ro {out}")),
            case(
                "",
                format!("os.execv('{out}/tool', ['tool'])"),
                format!("execute '{out}/tool'"),
                unseen,
                format!("--ro {out}/tool"),
            ),
            case(
                "",
                format!("open('{out}/f', 'r+')"),
                format!("write '{out}/f'"),
                unseen,
                format!("--rw {out}/f"),
            ),
            case(
                "",
                format!("open('{out}/new', 'w')"),
                format!("create '{out}/new'"),
                unseen,
                format!("--rw {out}"),
            ),
            case(
                "",
                format!("os.mkdir('{out}/dir')"),
                format!("create '{out}/dir'"),
                unseen,
                format!("--rw {out}"),
            ),
            case(
                "",
                format!("os.unlink('{out}/g')"),
                format!("remove '{out}/g'"),
                unseen,
                format!("--rw {out}"),
            ),
            case(
                "",
                format!("os.rename('{out}/h', '{out}/k')"),
                format!("remove '{out}/h'"),
                unseen,
                format!("--rw {out}"),
            ),
            case(
                &format!("--ro {out}"),
                format!("open('{out}/f', 'a')"),
                format!("write '{out}/f'"),
                read_only,
                format!("--rw {out}/f"),
            ),
            case(
                &format!("--ro {out}"),
                format!("os.chmod('{out}/f', 0o600)"),
                format!("change the metadata of '{out}/f'"),
                read_only,
                format!("--rw {out}/f"),
            ),
            case(
                &format!("--ro {out}"),
                format!("os.unlink('{out}/i')"),
                format!("remove '{out}/i'"),
                read_only,
                "read-only as asked: leave --ro".into(),
            ),
            case("", "open('/usr/x', 'w')".into(), "create '/usr/x'".into(), read_only, "too broad".into()),
        ] {
            // A user could not write there outside either.
            if who == Who::Root || case.denied != "create '/usr/x'" {
                judge(&scratch, &case, &[]);
            }
        }
    }
}

#[test]
fn a_path_relative_to_a_directory_is_listed_in_full() {
    let scratch = Scratch::new(Who::User);
    fill(&scratch);
    let out = scratch.outside().display().to_string();
    for script in ["open('../outside/f')", "os.stat('f', dir_fd=os.open('..', os.O_PATH | os.O_DIRECTORY))"] {
        let script = script.replace("stat('f'", "stat('outside/f'");
        let word = if script.starts_with("open") { "read" } else { "look at" };
        judge(
            &scratch,
            &case("", script, format!("{word} '{out}/f'"), "view: not visible", format!("--ro {out}/f")),
            &[],
        );
    }
}

#[test]
fn what_is_guarded_or_hidden_is_told_with_what_speaks_against_showing_it() {
    let scratch = Scratch::new(Who::User);
    let w = scratch.workspace().display().to_string();
    for dir in ["w/.git", "w/.git/hooks", "w/.git/objects", "w/.git/refs", "w/secret"] {
        scratch.dir(dir);
    }
    scratch.file("w/.git/HEAD", "ref: refs/heads/x\n");
    scratch.file("w/.git/config", "[core]\n");
    scratch.file("w/.git/lock", "[core]\n");
    scratch.file("w/secret/x", "x\n");
    scratch.file("home/.npmrc", "token\n");
    scratch.file("home/.bashrc", "alias\n");
    let home = scratch.home().display().to_string();
    for (script, denied, advice) in [
        (
            format!("open('{w}/.git/hooks/a', 'w')"),
            format!("create '{w}/.git/hooks/a'"),
            format!("--rw {w}/.git/hooks"),
        ),
        (
            format!("os.rename('{w}/.git/lock', '{w}/.git/config')"),
            format!("replace '{w}/.git/config'"),
            format!("--rw {w}/.git/config"),
        ),
        (format!("open('{home}/.npmrc')"), format!("read '{home}/.npmrc'"), format!("--ro {home}/.npmrc")),
        (format!("open('{home}/.bashrc')"), format!("read '{home}/.bashrc'"), format!("--ro {home}/.bashrc")),
    ] {
        let outcome = trace(&scratch).command(["python3", "-c", &format!("import os\n{script}")]).run();
        let list = listed(&outcome);
        let (_, told) = list
            .iter()
            .find(|(denial, _)| denial.starts_with(&denied))
            .unwrap_or_else(|| panic!("{denied}: {list:?}"));
        assert!(told.starts_with(&format!("{advice}  # ")), "{told}");
    }
    for (options, wanted) in [("--hide=secret", "hidden as asked"), ("--read-only", "read-only as asked")] {
        let script = if wanted.starts_with("hidden") { "os.listdir('secret')" } else { "os.mkdir('new')" };
        let outcome =
            trace(&scratch).option(options).command(["python3", "-c", &format!("import os\n{script}")]).run();
        let list = listed(&outcome);
        assert!(list.iter().any(|(_, advice)| advice.starts_with(wanted)), "{}", outcome.tell());
    }
}

#[test]
fn what_landlock_and_the_broker_deny_without_namespaces_is_listed_too() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        fill(&scratch);
        let out = scratch.outside().display().to_string();
        for case in [
            case(
                "",
                format!("open('{out}/f')"),
                format!("read '{out}/f'"),
                "Landlock",
                format!("--ro {out}/f"),
            ),
            case(
                "",
                format!("open('{out}/f', 'a')"),
                format!("write '{out}/f'"),
                "Landlock",
                format!("--rw {out}/f"),
            ),
            case(
                "",
                format!("open('{out}/new', 'w')"),
                format!("create '{out}/new'"),
                "Landlock",
                format!("--rw {out}"),
            ),
            case(
                "",
                format!("os.unlink('{out}/g')"),
                format!("remove '{out}/g'"),
                "Landlock",
                format!("--rw {out}"),
            ),
            case(
                "",
                format!("os.chmod('{out}/f', 0o600)"),
                format!("change the metadata of '{out}/f'"),
                "broker",
                format!("--rw {out}/f"),
            ),
            case(
                "",
                "socket.socket()".into(),
                "make an internet stream socket".into(),
                "seccomp",
                "--connect PORT".into(),
            ),
            case(
                "",
                "os.kill(os.getppid(), 0)\nos.kill(PID, 0)".replace("PID", &std::process::id().to_string()),
                "signal process".into(),
                "Landlock",
                "no option".into(),
            ),
        ] {
            // The test's own process is root's.
            if who == Who::Root || !case.denied.starts_with("signal") {
                judge(&scratch, &case, &["--namespaces=off", "--waive=path-hiding"]);
            }
        }
    }
}

#[test]
fn what_the_filter_denies_is_listed_by_its_name() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for (call, advice) in [
            ("unshare(0x10000000)", "--allow userns"),
            ("mount(b'x', b'/', b'tmpfs', 0, None)", "would change"),
        ] {
            let name = call.split('(').next().unwrap();
            let script = format!("raise SystemExit(1 if ctypes.CDLL(None).{call} else 0)");
            judge(&scratch, &case("", script, format!("call {name}"), "seccomp", advice.into()), &[]);
        }
        let script = "socket.socket(socket.AF_VSOCK)".to_owned();
        judge(
            &scratch,
            &case("", script, "make a socket of family 40".into(), "seccomp", "only unix".into()),
            &[],
        );
    }
}

#[test]
fn what_the_network_denies_is_listed_by_its_port() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let stream = |address: &str, port| format!("socket.create_connection(('{address}', {port}))");
        judge(
            &scratch,
            &case(
                "",
                stream("127.0.0.1", port),
                format!("connect to 127.0.0.1:{port}"),
                "network namespace",
                format!("--connect {port}"),
            ),
            &[],
        );
        judge(
            &scratch,
            &case(
                "--connect 1",
                stream("127.0.0.1", port),
                format!("connect to 127.0.0.1:{port}"),
                "Landlock",
                format!("--connect {port}"),
            ),
            &[],
        );
        judge(
            &scratch,
            &case(
                "--connect 1",
                format!("socket.socket().bind(('127.0.0.1', {free}))"),
                format!("listen on 127.0.0.1:{free}"),
                "Landlock",
                format!("--listen {free}"),
            ),
            &[],
        );
        // Nothing is sent anywhere: the private network has no way out.
        for (script, denied, advice) in [
            (stream("192.0.2.1", 443), "connect to 192.0.2.1:443", "--connect 443"),
            (
                stream("169.254.169.254", 80),
                "connect to 169.254.169.254:80",
                "--connect 80  # a cloud's metadata service",
            ),
            (
                "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))".into(),
                "connect to 192.0.2.1:53",
                "--connect 53",
            ),
            (
                "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 99))".into(),
                "connect to 192.0.2.1:99",
                "--net host",
            ),
        ] {
            let case =
                Case { twin: false, ..case("", script, denied.into(), "network namespace", advice.into()) };
            judge(&scratch, &case, &[]);
        }
        // Nobody serves it outside either.
        let outcome = trace(&scratch)
            .command(["python3", "-c", &format!("import socket\n{}", stream("127.0.0.1", free))])
            .run();
        assert!(outcome.err.ends_with("confine: nothing was denied\n"), "{}", outcome.tell());
    }
}

#[test]
fn a_socket_of_another_program_is_told_to_be_out_of_reach() {
    let scratch = Scratch::new(Who::Root);
    let path = scratch.path("outside/s");
    let _server = UnixListener::bind(&path).unwrap();
    let name = format!("confine-trace-{}", std::process::id());
    let address = <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(&name).unwrap();
    let _hidden = UnixListener::bind_addr(&address).unwrap();
    for (address, denied) in [
        (format!("'{}'", path.display()), format!("connect to '{}'", path.display())),
        (format!("'\\0{name}'"), format!("connect to abstract socket '{name}'")),
    ] {
        let script = format!("import socket\nsocket.socket(socket.AF_UNIX).connect({address})");
        let outcome = trace(&scratch).command(["python3", "-c", &script]).run();
        let list = listed(&outcome);
        let found = list.iter().find(|(denial, _)| denial.starts_with(&denied));
        assert!(found.unwrap_or_else(|| panic!("{}", outcome.tell())).1.contains("out of reach"), "{list:?}");
        assert!(Run::plain(&scratch).command(["python3", "-c", &script]).run().ok());
    }
}

/// Nothing of the boundary's making: what is not there, not allowed or only tried for.
#[test]
fn what_would_fail_outside_as_well_is_not_listed() {
    for who in EVERYONE {
        for namespaces in ["auto", "off"] {
            let scratch = Scratch::new(who);
            let closed = scratch.file("outside/closed", "x");
            fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
            std::os::unix::fs::chown(&closed, Some(4), Some(4)).unwrap();
            let script = format!(
                "cat {0}/none w/none /usr/none /none/none; cat {0}/closed; nonesuch; mkdir own; kill -0 99999999; true",
                scratch.outside().display()
            );
            let outcome = trace(&scratch)
                .options(["--waive=path-hiding", &format!("--namespaces={namespaces}"), "--ro"])
                .option(scratch.outside())
                .shell(script);
            assert!(
                outcome.ok() && outcome.err.ends_with("confine: nothing was denied\n"),
                "{who:?}: {}",
                outcome.tell()
            );
        }
    }
}
