//! check, explain, the status lines and the note: what they say is what is done, and saying it does nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::net::UnixListener;

use common::victim::Victim;
use common::{EVERYONE, Findings, Outcome, Run, Scratch, Snapshot, Who};
use confine::error::show;
use confine::plan::Plan;
use confine::policy::Promise;
use serde_json::Value;

fn check(scratch: &Scratch, options: &[&str]) -> Outcome {
    let mut command: Vec<OsString> = vec![scratch.confine().into(), "check".into()];
    command.extend(options.iter().map(OsString::from));
    Run::plain(scratch).command(command).run()
}

/// `confine explain` with the options of an ordinary run in the scratch directory.
fn explain<S: AsRef<OsStr>>(scratch: &Scratch, options: &[S], command: &[&str]) -> Outcome {
    let mut line: Vec<OsString> =
        vec![scratch.confine().into(), "explain".into(), "-w".into(), scratch.workspace().into()];
    line.extend(options.iter().map(|option| option.as_ref().to_owned()));
    line.push("--".into());
    line.extend(command.iter().map(OsString::from));
    Run::plain(scratch).env("TOKEN", "do-not-tell").command(line).run()
}

fn object(outcome: &Outcome) -> Value {
    assert_eq!(outcome.out.lines().count(), 1, "{}", outcome.tell());
    let object: Value = serde_json::from_str(&outcome.out).unwrap();
    assert_eq!(object["version"], 1);
    object
}

fn explained<S: AsRef<OsStr>>(scratch: &Scratch, options: &[S], command: &[&str]) -> Value {
    let mut all: Vec<&OsStr> = vec!["--json".as_ref()];
    all.extend(options.iter().map(AsRef::as_ref));
    let outcome = explain(scratch, &all, command);
    assert!(outcome.ok() && outcome.err.is_empty(), "{}", outcome.tell());
    object(&outcome)
}

#[test]
fn check_finds_every_promise_kept_here_and_leaves_nothing_behind() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let before = Snapshot::of(scratch.root());
        let outcome = check(&scratch, &[]);
        assert_eq!((outcome.code(), outcome.err.as_str()), (Some(0), ""), "{}", outcome.tell());
        for promise in Promise::ALL {
            let line = outcome.out.lines().find(|line| line.starts_with(promise.name()));
            assert!(line.is_some_and(|line| line.contains(" kept ")), "{promise}: {}", outcome.out);
        }
        assert_eq!(before.difference(&Snapshot::of(scratch.root())), None);
    }
}

#[test]
fn check_as_json_is_one_object_with_facts_of_the_host() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let outcome = check(&scratch, &["--json"]);
        assert!(outcome.ok(), "{}", outcome.tell());
        let report = object(&outcome);
        assert_eq!((&report["holds"], &report["failure"]), (&Value::Bool(true), &Value::Null));
        assert_eq!(report["uid"], who.id());
        let kind = if who == Who::Root { "privileged" } else { "user" };
        assert_eq!(report["namespaces"]["kind"], kind);
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        assert_eq!(report["kernel"]["release"], release.trim());
        assert!(report["landlock"]["abi"].as_u64().unwrap() >= 3 && report["landlock"]["errata"].is_array());
        let promises = report["promises"].as_object().unwrap();
        assert_eq!(promises.len(), Promise::ALL.len());
        for (name, row) in promises {
            assert_eq!(row["kept"], true, "{name}: {row}");
            assert!(!row["layers"].as_array().unwrap().is_empty(), "{name}: {row}");
        }
    }
}

#[test]
fn explain_runs_nothing_and_makes_nothing() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let before = Snapshot::of(scratch.root());
        for json in [&[][..], &["--json"]] {
            let state = scratch.path("home/state");
            let options: Vec<&OsStr> = ["--state".as_ref(), state.as_os_str()]
                .into_iter()
                .chain(json.iter().map(OsStr::new))
                .collect();
            let outcome = explain(&scratch, &options, &["touch", "started"]);
            assert!(outcome.ok() && outcome.err.is_empty(), "{}", outcome.tell());
        }
        assert_eq!(before.difference(&Snapshot::of(scratch.root())), None);
        // The twin: the same options make both when they are run.
        let outcome = Run::confined(&scratch)
            .option("--state")
            .option(scratch.path("home/state"))
            .command(["touch", "started"])
            .run();
        assert!(outcome.ok(), "{}", outcome.tell());
        assert!(scratch.path("w/started").exists() && scratch.path("home/state/home").exists());
    }
}

#[test]
fn explain_shows_the_plan_and_no_value() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let options = ["--env", "GIVEN=do-not-tell", "--env", "ABSENT", "--max-open-files", "99"];
        let outcome = explain(&scratch, &options, &["true"]);
        let said = |text: &str| assert!(outcome.out.contains(text), "no {text:?}: {}", outcome.out);
        said(&format!("write  host     {}  (a workspace)", show(scratch.workspace().as_os_str())));
        said("dropped: TOKEN");
        said("asked for and not set: ABSENT");
        said("write-scope     view, landlock");
        said("none but a private loopback");
        said("open files      99 for each process");
        said(" entries in ");
        assert!(outcome.out.lines().any(|line| line.starts_with("  passed:") && line.contains(" GIVEN ")));
        assert!(!outcome.out.contains("do-not-tell"), "{}", outcome.out);
        let object = explained(&scratch, &options, &["true"]);
        assert_eq!(object["dropped"], serde_json::json!(["TOKEN"]));
        assert_eq!(object["absent"], serde_json::json!(["ABSENT"]));
        assert!(object["scan"]["entries"].as_u64().unwrap() > 0);
        assert!(!object.to_string().contains("do-not-tell"), "{object}");
    }
}

#[test]
fn the_plan_comes_back_from_its_json_and_is_the_one_of_the_run() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        // A name that is no text, and one that would drive a terminal.
        let odd = scratch.path("w").join(OsStr::from_bytes(b"odd \xff\n\x1b[31m"));
        fs::create_dir(&odd).unwrap();
        scratch.give(&odd);
        std::os::unix::fs::symlink(OsStr::from_bytes(b"\xfe"), scratch.path("w/link")).unwrap();
        let options: [&OsStr; 2] = ["--ro".as_ref(), odd.as_os_str()];
        let object = explained(&scratch, &options, &["true"]);
        let plan: Plan = serde_json::from_value(object["plan"].clone()).unwrap();
        assert_eq!(serde_json::to_value(&plan).unwrap(), object["plan"]);
        assert_eq!(object["policy"], plan.id());
        assert!(plan.world.view.iter().any(|place| place.path == odd));
        let run = Run::confined(&scratch).options(options).env("TOKEN", "x").shell("echo $CONFINE_POLICY");
        assert_eq!(run.out.trim(), plan.id(), "{}", run.tell());
    }
}

#[test]
fn no_value_and_no_argument_changes_the_policy_id_and_every_option_does() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let id = |options: &[&str], command: &[&str]| {
            explained(&scratch, options, command)["policy"].as_str().unwrap().to_owned()
        };
        let first = id(&["--env", "A=1"], &["true"]);
        assert_eq!(first, id(&["--env", "A=1"], &["true"]));
        assert_eq!(first, id(&["--env", "A=another value"], &["cat", "/etc/passwd"]));
        scratch.file("w/new", "what lies in the workspace is no policy\n");
        assert_eq!(first, id(&["--env", "A=1"], &["true"]));
        let outside = scratch.outside();
        for options in [
            &["--env", "B=1"][..],
            &["--env", "A=1", "--net", "host"],
            &["--env", "A=1", "--connect", "443"],
            &["--env", "A=1", "--ro", outside.to_str().unwrap()],
            &["--env", "A=1", "--rw", outside.to_str().unwrap()],
            &["--env", "A=1", "--max-tmp", "1M"],
            &["--env", "A=1", "--max-open-files", "50"],
            &["--env", "A=1", "--read-only"],
            &["--env", "A=1", "--loopback", "off"],
        ] {
            assert_ne!(first, id(options, &["true"]), "{options:?}");
        }
    }
}

#[test]
fn explain_tells_the_refusal_that_a_run_would_meet() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let options = ["--namespaces", "off", "--state", "s"];
        let run = Run::confined(&scratch).options(options).shell("true");
        let outcome = explain(&scratch, &options, &["true"]);
        assert_eq!((outcome.code(), outcome.out.as_str()), (Some(125), ""), "{}", outcome.tell());
        assert_eq!(outcome.err, run.err);
        let outcome = explain(&scratch, &[&options[..], &["--json"]].concat(), &["true"]);
        assert_eq!(outcome.code(), Some(125));
        let refused = &object(&outcome)["refused"];
        assert_eq!(refused["status"], 125);
        assert_eq!(
            run.err,
            format!(
                "confine: {}\nhint: {}\n",
                refused["message"].as_str().unwrap(),
                refused["hint"].as_str().unwrap()
            )
        );
    }
}

#[test]
fn what_stops_a_run_at_its_last_steps_is_told_by_explain_and_why() {
    const STRANGER: u32 = 54399;
    let mut findings = Findings::default();
    for who in EVERYONE {
        for namespaces in ["auto", "off"] {
            let scratch = Scratch::new(who);
            scratch.dir("tools/bin");
            scratch.file("outside/open", "");
            fs::set_permissions(scratch.path("outside/open"), fs::Permissions::from_mode(0o666)).unwrap();
            scratch.dir("outside/record");
            chown(scratch.dir("outside/strange"), Some(STRANGER), Some(STRANGER)).unwrap();
            let path = format!("{}:/usr/bin:/bin", scratch.path("tools/bin").display());
            let whole = ["explain", "why", ""];
            for (cwd, option, value, starts) in [
                ("w", "", "", true),
                ("outside", "", "", false),
                (".", "", "", false),
                // The workspace is where the command starts, wherever confine does.
                ("outside", "--chdir", "w", true),
                // On PATH, and so seen by every command.
                ("w", "--state", "tools/state", false),
                ("w", "--state", "tools/bin/state", false),
                ("w", "--state", "outside/none/state", false),
                ("w", "--state", "outside/state", true),
                ("w", "--audit", "outside/none/record", false),
                ("w", "--audit", "outside/record", false),
                ("w", "--audit", "outside/open", false),
                ("w", "--audit", "outside/audit", true),
                ("w", "--rw", "outside/strange", false),
                ("w", "--ro", "outside/strange", true),
            ] {
                let [explained, asked, run] = whole.map(|command| {
                    let mut line: Vec<OsString> = vec![scratch.confine().into()];
                    line.extend((!command.is_empty()).then(|| command.into()));
                    line.extend(["--namespaces", namespaces, "-w"].map(OsString::from));
                    line.push(scratch.workspace().into());
                    if !option.is_empty() {
                        line.extend([option.into(), scratch.path(value).into()]);
                    }
                    line.extend(
                        if command == "why" { ["--", "/usr"] } else { ["--", "true"] }.map(OsString::from),
                    );
                    Run::plain(&scratch).cwd(scratch.path(cwd)).env("PATH", &path).command(line).run()
                });
                let case = format!("{who:?} {namespaces}: in {cwd} {option} {value}");
                findings.claim(run.code() == Some(if starts { 0 } else { 125 }), || {
                    format!("{case}: run: {}", run.tell())
                });
                findings.claim((explained.code(), &explained.err) == (run.code(), &run.err), || {
                    format!("{case}: explain: {} run: {}", explained.tell(), run.tell())
                });
                let message = run.err.lines().next().unwrap_or_default().replace("confine: ", "");
                let told = match asked.code() {
                    Some(0) => asked.out.starts_with(&format!("such a run does not start: {message}\n")),
                    _ => asked.err == run.err,
                };
                findings
                    .claim(told != starts, || format!("{case}: why: {} run: {}", asked.tell(), run.tell()));
                if !starts && option == "--state" {
                    findings.claim(!scratch.path(value).exists(), || format!("{case}: it was made"));
                }
            }
        }
    }
    findings.settle();
}

/// The status lines of a run with these options, in the workspace.
fn status(scratch: &Scratch, options: &str, command: &str) -> (Outcome, Vec<Value>) {
    let lines = scratch.path("tmp/status");
    let outcome = Run::plain(scratch).shell(format!(
        "exec {} -w {} --status-fd 7 {options} -- {command} 7>{}",
        scratch.confine().display(),
        scratch.workspace().display(),
        lines.display()
    ));
    let text = fs::read_to_string(&lines).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().all(|line| line["version"] == 1), "{text}");
    (outcome, lines)
}

fn events(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["event"].as_str().unwrap()).collect()
}

#[test]
fn the_status_line_tells_how_a_run_was_started() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let (outcome, lines) = status(&scratch, "", "bash -c 'echo $CONFINE_POLICY $$; ls /proc/self/fd'");
        assert!(outcome.ok(), "{}", outcome.tell());
        assert_eq!(events(&lines), ["started"]);
        let started = &lines[0];
        assert_eq!(
            outcome.out.lines().next(),
            Some(format!("{} {}", started["policy"].as_str().unwrap(), started["pid"]).as_str())
        );
        assert!(
            !outcome.out.lines().any(|line| line == "7"),
            "the command has the descriptor: {}",
            outcome.out
        );
        assert_eq!(started["promises"]["write-scope"], serde_json::json!(["view", "landlock"]));
        assert_eq!(started["waived"], serde_json::json!({}));
        assert!(started["scan"]["entries"].as_u64().unwrap() > 0 && started["scan"]["microseconds"].is_u64());
    }
}

#[test]
fn a_waiver_that_counts_is_in_the_status_line() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let waive = "--waive path-hiding";
        let state = scratch.path("home/s");
        let options = format!("--namespaces off {waive} --state {}", state.display());
        let (outcome, lines) = status(&scratch, &options, "true");
        assert!(outcome.ok(), "{}", outcome.tell());
        let waived = lines[0]["waived"].as_object().unwrap();
        assert_eq!(waived.keys().collect::<Vec<_>>(), ["path-hiding"]);
        assert!(waived["path-hiding"].as_str().unwrap().contains("--namespaces off"), "{}", lines[0]);
        assert!(lines[0]["promises"].get("path-hiding").is_none());
        // Where it is kept all the same, nothing has been given up.
        let (_, lines) = status(&scratch, waive, "true");
        assert_eq!(lines[0]["waived"], serde_json::json!({}));
        assert_eq!(lines[0]["promises"]["path-hiding"], serde_json::json!(["view"]));
    }
}

#[test]
fn a_refusal_is_in_the_status_line_whichever_step_it_comes_from() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let outside = scratch.outside();
        let from_outside = format!("--chdir {}", outside.display());
        for (options, command, code, sequence) in [
            ("--ro /nonexistent", "true", 125, &["refused"][..]),
            ("--namespaces off --state s", "true", 125, &["refused"]),
            ("--waive alias-free --user 1:1 --namespaces off", "true", 125, &["refused"]),
            (from_outside.as_str(), "true", 125, &["refused"]),
            ("", "no-such-command", 127, &["started", "refused"]),
            ("", "/etc/passwd", 126, &["started", "refused"]),
        ] {
            let (outcome, lines) = status(&scratch, options, command);
            assert_eq!(outcome.code(), Some(code), "{options} {command}: {}", outcome.tell());
            assert_eq!(events(&lines), sequence, "{options} {command}: {lines:?}");
            let refused = lines.last().unwrap();
            assert_eq!(refused["status"], code);
            let mut expected = format!("confine: {}\n", refused["message"].as_str().unwrap());
            if let Some(hint) = refused["hint"].as_str() {
                expected.push_str(&format!("hint: {hint}\n"));
            }
            assert_eq!(outcome.err, expected);
        }
    }
}

#[test]
fn options_are_seen_from_where_confine_was_started() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let sub = scratch.dir("w/sub");
        let outcome = Run::bare(&scratch)
            .cwd(scratch.root())
            .options(["-w", "w", "-C", "w/sub", "--ro", "outside"])
            .command(["pwd"])
            .run();
        assert_eq!(outcome.out, format!("{}\n", sub.display()), "{}", outcome.tell());
    }
}

fn note(scratch: &Scratch, options: &[OsString]) -> String {
    let outcome = Run::confined(scratch).options(options).shell("cat $CONFINE_NOTE");
    assert!(outcome.ok(), "{}", outcome.tell());
    outcome.out
}

fn section<'a>(note: &'a str, name: &str) -> &'a str {
    let start = note.find(&format!("\n{name}\n")).unwrap_or_else(|| panic!("no section {name}: {note}"));
    let rest = &note[start + 1..];
    &rest[..rest.find("\n\n").unwrap_or(rest.len())]
}

/// An operation of the attack program and the section of the note that has to name the errno it meets.
type Denial = (&'static str, Vec<OsString>);

fn denial<S: AsRef<OsStr>>(section: &'static str, words: &[S]) -> Denial {
    (section, words.iter().map(|word| word.as_ref().to_owned()).collect())
}

#[track_caller]
fn assert_explained(findings: &mut Findings, scratch: &Scratch, options: &[OsString], denials: Vec<Denial>) {
    let note = note(scratch, options);
    for (name, words) in denials {
        let outcome = Run::confined(scratch).options(options).attack(scratch, &words);
        let errno = outcome.verdict();
        findings.claim(outcome.denied() && errno.starts_with('E'), || {
            format!("{:?} {words:?} is not denied: {}", scratch.who, outcome.tell())
        });
        findings.claim(section(&note, name).contains(errno), || {
            format!("{:?} {words:?}: {name} does not explain {errno}:\n{note}", scratch.who)
        });
    }
}

#[test]
fn the_note_explains_the_errno_of_every_denial_about_files() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let secret = scratch.file("outside/secret", "secret\n");
        scratch.fixture("outside/f");
        for dir in ["w/.git", "w/.git/objects", "w/.git/refs"] {
            scratch.dir(dir);
        }
        scratch.file("w/.git/HEAD", "ref: refs/heads/main\n");
        let config = scratch.file("w/.git/config", "[core]\n");
        let seen = scratch.file("w/seen", "seen\n");
        let socket = scratch.path("w/socket");
        let _server = UnixListener::bind(&socket).unwrap();
        scratch.give(&socket);
        let (outside, own) = (scratch.path("outside/f"), scratch.path("w/own"));
        let ordinary = vec![
            denial("FILES", &["read".as_ref(), secret.as_os_str()]),
            denial("FILES", &["list".as_ref(), scratch.outside().as_os_str()]),
            denial("FILES", &["stat".as_ref(), scratch.home().join(".ssh").as_os_str()]),
            denial("FILES", &["open-write", "/etc/passwd"]),
            denial("FILES", &["make-file", "/usr/new"]),
            denial("FILES", &["make-file", "/new"]),
            denial("FILES", &["make-file", "/proc/sys/kernel/new"]),
            denial("FILES", &["append-to".as_ref(), config.as_os_str()]),
            denial("FILES", &["read-rename-in".as_ref(), seen.as_os_str(), "/tmp/taken".as_ref()]),
            denial("NETWORK", &["unix-stream".as_ref(), socket.as_os_str()]),
        ];
        assert_explained(&mut findings, &scratch, &[], ordinary);
        let readable: Vec<OsString> = vec!["--ro".into(), scratch.outside().into()];
        let narrowed = vec![
            denial("FILES", &["open-wronly".as_ref(), outside.as_os_str(), own.as_os_str()]),
            denial("FILES", &["fchmodat".as_ref(), outside.as_os_str(), own.as_os_str()]),
            denial("FILES", &["link-out".as_ref(), outside.as_os_str(), own.as_os_str()]),
        ];
        assert_explained(&mut findings, &scratch, &readable, narrowed);
        let mut direct: Vec<OsString> =
            ["--namespaces", "off", "--waive", "metadata-scope", "--waive", "socket-scope"]
                .map(OsString::from)
                .to_vec();
        direct.extend(["--state".into(), scratch.path("home/state").into()]);
        let without_view = vec![
            denial("FILES", &["read".as_ref(), secret.as_os_str()]),
            denial("FILES", &["list".as_ref(), scratch.outside().as_os_str()]),
            denial("FILES", &["append-to".as_ref(), secret.as_os_str()]),
            denial("FILES", &["make-file", "/tmp/confine-inspect-new"]),
            denial("FILES", &["make-file", "/dev/shm/confine-inspect-new"]),
            denial("FILES", &["link-out".as_ref(), outside.as_os_str(), own.as_os_str()]),
            denial("NETWORK", &["tcp", "127.0.0.1", "9"]),
            denial("PROCESSES", &["sysv-self"]),
        ];
        assert_explained(&mut findings, &scratch, &direct, without_view);
    }
    findings.settle();
}

#[test]
fn the_note_explains_the_errno_of_every_denial_of_the_network() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        // TEST-NET-1 of RFC 5737: nobody's, and inside there is no route to anywhere.
        let ordinary = vec![
            denial("NETWORK", &["tcp", "192.0.2.1", "80"]),
            denial("NETWORK", &["udp", "192.0.2.1", "53"]),
            denial("NETWORK", &["tcp", "127.0.0.1", "9"]),
            denial("NETWORK", &["mptcp", "127.0.0.1", "9"]),
            denial("NETWORK", &["socket", "17", "3", "0"]),
            denial("NETWORK", &["socket", "40", "1", "0"]),
            denial("NETWORK", &["unix-stream", "/run/no-such-service"]),
        ];
        assert_explained(&mut findings, &scratch, &[], ordinary);
        let off = ["--loopback", "off"].map(OsString::from);
        assert_explained(&mut findings, &scratch, &off, vec![denial("NETWORK", &["tcp", "127.0.0.1", "9"])]);
        let port = ["--connect", "4433"].map(OsString::from);
        let ruled = vec![
            denial("NETWORK", &["tcp", "127.0.0.1", "9"]),
            denial("NETWORK", &["udp", "127.0.0.1", "9"]),
            denial("NETWORK", &["bind-listen", "127.0.0.1", "4433"]),
            denial("NETWORK", &["autobind-listen", "127.0.0.1"]),
        ];
        assert_explained(&mut findings, &scratch, &port, ruled);
        let loopback = ["--loopback", "host"].map(OsString::from);
        let by_address = vec![
            denial("NETWORK", &["tcp", "192.0.2.1", "80"]),
            denial("NETWORK", &["udp", "127.0.0.1", "9"]),
            denial("NETWORK", &["bind-listen", "0.0.0.0", "0"]),
            denial("NETWORK", &["autobind-listen", "127.0.0.1"]),
        ];
        assert_explained(&mut findings, &scratch, &loopback, by_address);
    }
    findings.settle();
}

#[test]
fn the_note_explains_the_errno_of_every_denial_about_processes_and_privilege() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let victim = Victim::start(&scratch);
        scratch.fixture("w/f");
        let (pid, address) = (victim.pid.as_str(), victim.address.as_str());
        let file = scratch.path("w/f");
        let denials = vec![
            denial("PROCESSES", &["kill", pid]),
            denial("PROCESSES", &["ptrace-attach", pid, address]),
            denial("PROCESSES", &["vm-read", pid, address]),
            denial("PROCESSES", &["mem-read", pid, address]),
            denial("PROCESSES", &["setpriority", pid]),
            denial("PROCESSES", &["prlimit", pid]),
            denial("PROCESSES", &["unshare", "0x10000000"]),
            denial("PROCESSES", &["mount-tmpfs", "/tmp"]),
            denial("PROCESSES", &["key-add", "x"]),
            denial("PROCESSES", &["clone3", "0x10000000"]),
            denial("PROCESSES", &["beyond-the-table"]),
            denial("PROCESSES", &["suid-fchmodat".as_ref(), file.as_os_str()]),
            denial("PROCESSES", &["mknod-null".as_ref(), scratch.path("w/null").as_os_str()]),
            denial("PROCESSES", &["unshare", "0x20000"]),
        ];
        assert_explained(&mut findings, &scratch, &[], denials);
    }
    findings.settle();
}

#[test]
fn the_note_names_roots_limits_and_what_was_given_up() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let state = scratch.path("home/state");
        let options: Vec<OsString> = ["--max-open-files", "77", "--max-tmp", "1M", "--state"]
            .map(OsString::from)
            .into_iter()
            .chain([state.clone().into(), "--ro".into(), scratch.outside().into()])
            .collect();
        let text = note(&scratch, &options);
        let files = section(&text, "FILES");
        for path in [scratch.workspace(), scratch.home(), scratch.outside()] {
            assert!(files.contains(&show(path.as_os_str()).to_string()), "{path:?}: {text}");
        }
        // Inside, what is kept has another name.
        assert!(!text.contains(state.to_str().unwrap()), "{text}");
        assert!(section(&text, "LIMITS").contains("77 open files") && text.contains("EMFILE"), "{text}");
        assert!(section(&text, "LIMITS").contains("1048576 bytes") && text.contains("ENOSPC"), "{text}");
        assert!(!text.contains("GIVEN UP"), "{text}");
        assert!(text.lines().all(|line| line.len() <= 160 && !line.contains('\u{1b}')), "{text}");
    }
}
