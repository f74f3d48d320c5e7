//! `--result json`: one object, whatever happens, which says what happened; and `--verbose`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../schema/mod.rs"]
mod schema;

use std::fs;
use std::io::Read as _;

use common::{EVERYONE, Outcome, Run, Scratch, USER, Who};
use serde_json::{Value, json};

fn run(scratch: &Scratch) -> Run {
    Run::confined(scratch).option("--result=json")
}

/// The object on standard output, which is all that stands there.
#[track_caller]
fn object(outcome: &Outcome) -> Value {
    let value: Value = serde_json::from_str(&outcome.out).unwrap_or_else(|_| panic!("{}", outcome.tell()));
    assert_eq!(outcome.out.lines().count(), 1, "{}", outcome.tell());
    schema::check(schema::RESULT, &value);
    assert_eq!(value["status"], json!(outcome.code()), "{}", outcome.tell());
    value
}

fn for_all(mut judge: impl FnMut(&Scratch, &dyn Fn() -> Run, &str)) {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        judge(&scratch, &|| run(&scratch), &format!("{who:?}"));
    }
    let scratch = Scratch::new(Who::User);
    let user = format!("{USER}:{USER}");
    let other = || run(&scratch).by(Who::Root).option("--user").option(&user);
    judge(&scratch, &other, "another user");
}

#[test]
fn the_end_of_a_run_is_told_with_all_that_it_wrote() {
    for_all(|_, run, name| {
        let outcome = run().shell("echo out; echo err >&2; exit 3");
        let told = object(&outcome);
        assert_eq!((&told["outcome"], &told["signal"]), (&json!("exited"), &Value::Null), "{name}");
        let text = |data: &str| json!({ "bytes": 4, "encoding": "utf-8", "data": data, "cut": 0 });
        assert_eq!((&told["stdout"], &told["stderr"]), (&text("out\n"), &text("err\n")), "{name}");
        assert_eq!(outcome.err, "", "{name}");
        assert_eq!(
            told["changes"]["files"],
            json!({ "complete": true, "files": [], "more": 0, "unseen": [], "unseen_more": 0 })
        );
        assert_eq!(told["changes"]["links"], json!({ "complete": true, "outside": [], "more": 0 }), "{name}");
    });
}

#[test]
fn each_way_to_end_has_its_outcome() {
    for_all(|_, run, name| {
        for (options, script, outcome, status) in [
            (&[][..], "exit 125", "exited", 125),
            (&[], "kill -KILL $$", "signalled", 137),
            (&["--timeout=200ms", "--grace=0s"], "sleep 1000", "timed-out", 124),
            (&["--max-output=1K", "--on-output-limit=kill"], "yes", "output-limit", 137),
            (&["--max-cpu=300ms"], "while :; do :; done", "cpu-limit", 137),
            (&["--max-memory=40M"], "head -c 200M /dev/zero | tail", "memory-limit", 137),
        ] {
            let ended = run().options(options).shell(script);
            let told = object(&ended);
            assert_eq!((&told["event"], &told["outcome"]), (&json!("ended"), &json!(outcome)), "{name}");
            assert_eq!(ended.code(), Some(status), "{name}: {script}");
            let signal = if outcome == "signalled" { json!(9) } else { Value::Null };
            assert_eq!(told["signal"], signal, "{name}: {script}");
        }
    });
}

#[test]
fn a_refusal_is_an_object_too_wherever_it_came_from() {
    for_all(|scratch, run, name| {
        fs::write(scratch.path("w/no-program"), "text").unwrap();
        scratch.give(&scratch.path("w/no-program"));
        for (options, command, status) in [
            (&[][..], "nonesuch", 127),
            (&[], "./no-program", 126),
            (&["--workspace=nonesuch"], "true", 125),
            (&["--hide=/usr", "--ro=/usr"], "true", 125),
            (&["--no-such-option"], "true", 125),
            (&["--timeout=soon"], "true", 125),
            (&["--user=nobody"], "true", 125),
        ] {
            let outcome = run().options(options).command([command]).run();
            let told = object(&outcome);
            assert_eq!(told["outcome"], json!("refused"), "{name}: {options:?}");
            assert_eq!(outcome.code(), Some(status), "{name}: {options:?} {}", outcome.tell());
            let message = told["message"].as_str().unwrap();
            assert!(outcome.err.contains(message) && !message.is_empty(), "{name}: {}", outcome.tell());
        }
    });
}

#[test]
fn without_a_place_for_the_result_nothing_starts() {
    for_all(|scratch, run, name| {
        // A closed one is /dev/null by the time that any program of Rust looks.
        let outcome = run().under(["bash", "-c", "\"$@\" 1</dev/null", "caller"]).shell("touch started");
        assert_eq!(outcome.code(), Some(125), "{name}: {}", outcome.tell());
        assert!(outcome.err.contains("standard output is not open for writing"), "{}", outcome.tell());
        assert!(!scratch.path("w/started").exists(), "{name}");
        // And it need not be, where the result goes elsewhere.
        let elsewhere = ["bash", "-c", "\"$@\" 1</dev/null 7>&2", "caller"];
        let twin = run().under(elsewhere).option("--status-fd=7").shell("exit 3");
        assert_eq!(twin.code(), Some(3), "{name}: {}", twin.tell());
    });
}

#[test]
fn the_command_cannot_tell_tales() {
    for_all(|_, run, name| {
        // No descriptor but its own three, and what it writes is data.
        let outcome = run().shell(r#"echo '{"outcome":"exited"}'; ls /proc/self/fd | tr '\n' ' '; exit 125"#);
        let told = object(&outcome);
        assert_eq!(told["stdout"]["data"], json!("{\"outcome\":\"exited\"}\n0 1 2 3 "), "{name}");
        assert_eq!(told["outcome"], json!("exited"), "{name}");
    });
}

#[test]
fn what_is_not_text_is_base64_and_what_is_long_is_cut_in_between() {
    for_all(|_, run, name| {
        let told = object(&run().shell(r"printf '\377\000\001'; printf 'a\0b\033' >&2"));
        assert_eq!(
            told["stdout"],
            json!({ "bytes": 3, "encoding": "base64", "data": "/wAB", "cut": 0 }),
            "{name}"
        );
        assert_eq!(told["stderr"]["data"], json!("a\0b\x1b"), "{name}");
        let flood = "echo first; head -c 10000000 /dev/zero | tr '\\0' x; echo last";
        for (options, kept) in [(&[][..], 256 << 10), (&["--max-output=1000"], 1000)] {
            let told = object(&run().options(options).shell(flood));
            let stream = &told["stdout"];
            let (data, tail) = (stream["data"].as_str().unwrap(), stream["tail"].as_str().unwrap());
            assert!(data.starts_with("first\nxx") && tail.ends_with("xxlast\n"), "{name}");
            assert_eq!(data.len() + tail.len(), kept, "{name}");
            assert_eq!(stream["bytes"], json!(10_000_011), "{name}");
            assert_eq!(stream["cut"], json!(10_000_011 - kept), "{name}");
        }
    });
}

#[test]
fn use_of_time_and_memory_is_told() {
    for_all(|_, run, name| {
        let busy =
            "import time\nb = bytearray(60 << 20)\nwhile time.process_time() < 0.4: pass\ntime.sleep(0.3)";
        let told = object(&run().command(["python3", "-c", busy]).run());
        let number = |value: &Value| value.as_u64().unwrap();
        let cpu = number(&told["cpu_ms"]["user"]) + number(&told["cpu_ms"]["system"]);
        assert!((400..5000).contains(&cpu), "{name}: {told}");
        assert!((700..20_000).contains(&number(&told["wall_ms"])), "{name}: {told}");
        assert!((60 << 20..200 << 20).contains(&number(&told["memory"]["peak"])), "{name}: {told}");
    });
}

/// Nobody waits for what is killed with its namespace.
#[test]
fn what_was_ended_by_force_is_counted_too() {
    for_all(|_, run, name| {
        let busy = "import os, signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nb = bytearray(60 << 20)\n\
            os.fork()\nwhile True: pass";
        let told = object(&run().option("--max-cpu=600ms").command(["python3", "-c", busy]).run());
        let number = |value: &Value| value.as_u64().unwrap();
        let cpu = number(&told["cpu_ms"]["user"]) + number(&told["cpu_ms"]["system"]);
        assert!((500..10_000).contains(&cpu), "{name}: {told}");
        assert!((60 << 20..200 << 20).contains(&number(&told["memory"]["peak"])), "{name}: {told}");
    });
}

#[test]
fn with_a_status_descriptor_it_is_the_last_line_there_and_the_streams_go_their_way() {
    let scratch = Scratch::new(Who::Root);
    for (command, event, out) in
        [("echo out; echo err >&2", "ended", "out\n"), ("exec ./nonesuch", "ended", "")]
    {
        let file = scratch.path("status");
        let outcome = run(&scratch)
            .under(["bash", "-c", "exec 7> \"$0\"; exec \"$@\"", file.to_str().unwrap()])
            .option("--status-fd=7")
            .shell(command);
        let lines = fs::read_to_string(&file).unwrap();
        let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert_eq!((&lines[0]["event"], &lines[1]["event"]), (&json!("started"), &json!(event)));
        assert_eq!((&lines[0]["policy"], &lines[0]["run"]), (&lines[1]["policy"], &lines[1]["run"]));
        schema::check(schema::STATUS, &lines[0]);
        schema::check(schema::RESULT, &lines[1]);
        assert_eq!(lines[1]["stdout"]["data"], json!(out));
        assert_eq!(outcome.out, out, "{}", outcome.tell());
        assert_eq!(lines[1]["stderr"]["data"], json!(outcome.err));
    }
}

/// `change kind path` of each, below the scratch directory.
fn changes(scratch: &Scratch, told: &Value) -> Vec<String> {
    let files = &told["changes"]["files"];
    assert_eq!((&files["complete"], &files["more"]), (&json!(true), &json!(0)), "{told}");
    let word = |change: &Value, name: &str| change[name].as_str().unwrap().to_owned();
    let root = format!("{}/", scratch.root().display());
    let tell = |change: &Value| {
        let path = word(change, "path").strip_prefix(&root).unwrap().to_owned();
        format!("{} {} {path} {}", word(change, "change"), word(change, "kind"), change["keys"])
    };
    files["files"].as_array().unwrap().iter().map(|change| tell(change).replace(" null", "")).collect()
}

#[test]
fn what_runs_by_itself_later_is_told_when_it_is_new_or_changed() {
    for_all(|scratch, run, name| {
        for dir in ["w/.git", "w/.git/hooks", "w/.git/objects", "w/.git/refs"] {
            scratch.dir(dir);
        }
        scratch.file("w/.git/HEAD", "ref: refs/heads/x\n");
        scratch.file("w/.git/config", "[core]\n\tbare = false\n");
        scratch.file("w/.git/hooks/old", "#!/bin/sh\n");
        // Guarded, it cannot be changed; what is made beside it can.
        let script = "echo x >> .git/config; echo x >> .git/hooks/old; mkdir -p new/.git deep/er; \
            printf '[alias]\\n a = !x\\n[core]\\n fsmonitor = x\\n' > new/.git/config; echo .. > .git/commondir; \
            echo x > deep/er/.envrc; echo work > file; mkdir -m 0 closed; mkdir -p shut/.git && chmod 0 shut; true";
        let told = object(&run().shell(script));
        // What the command closes to itself is looked into as well.
        let wanted = [
            "new repository w/new/.git",
            "new repository w/shut/.git",
            "new git w/.git/commondir",
            "new git w/new/.git/config [\"alias.a\",\"core.fsmonitor\"]",
            "new tool w/deep/er/.envrc",
        ];
        assert_eq!(changes(scratch, &told), wanted, "{name}");
        for closed in ["w/closed", "w/shut"] {
            let _ = std::process::Command::new("chmod").arg("700").arg(scratch.path(closed)).status();
        }
        let free = run()
            .option("--git=free")
            .shell("printf '[filter \"f\"]\\n\\tclean = x\\n' >> .git/config; echo x >> .git/hooks/old; echo x > .git/hooks/b");
        let wanted = [
            "changed git w/.git/config [\"filter.f.clean\"]",
            "new git w/.git/hooks/b",
            "changed git w/.git/hooks/old",
        ];
        assert_eq!(changes(scratch, &object(&free)), wanted, "{name}");
    });
}

#[test]
fn what_git_settings_name_is_told_wherever_it_lies() {
    for_all(|scratch, run, name| {
        for dir in ["w/.git", "w/.git/refs", "w/.git/objects", "w/hooks", "w/more"] {
            scratch.dir(dir);
        }
        scratch.file("w/.git/HEAD", "ref: refs/heads/main\n");
        let settings = "[core]\n\thooksPath = ./hooks\n[include]\n\tpath = ../more/settings\n";
        scratch.file("w/.git/config", settings);
        scratch.file("w/hooks/pre-commit", "#!/bin/sh\n");
        scratch.file("w/hooks/post-merge", "#!/bin/sh\n");
        scratch.file("w/more/settings", "[include]\n\tpath = deeper\n");
        let script = "echo evil >> hooks/pre-commit; printf '[core]\\n fsmonitor = x\\n' > more/deeper; echo x > more/other";
        let told = object(&run().shell(script));
        let wanted = ["changed git w/hooks/pre-commit", "new git w/more/deeper [\"core.fsmonitor\"]"];
        assert_eq!(changes(scratch, &told), wanted, "{name}");
    });
}

#[test]
fn a_link_that_leads_outside_now_is_told() {
    for_all(|scratch, run, name| {
        let (inside, outside) = (scratch.path("w/own/own"), scratch.path("outside/other"));
        let mut child =
            run().command(["bash", "-c", "touch up; while [ -e up ]; do sleep 0.02; done"]).spawn();
        while !scratch.path("w/up").exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
            assert!(child.try_wait().unwrap().is_none(), "{name}");
        }
        fs::hard_link(&inside, &outside).unwrap();
        fs::remove_file(scratch.path("w/up")).unwrap();
        let mut out = String::new();
        child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        assert!(child.wait().unwrap().success(), "{name}");
        let told: Value = serde_json::from_str(&out).unwrap();
        schema::check(schema::RESULT, &told);
        let links = json!({ "complete": true, "outside": [inside.to_str().unwrap()], "more": 0 });
        assert_eq!(told["changes"]["links"], links, "{name}");
    });
}

#[test]
fn names_that_are_hidden_or_read_only_inside_count_as_outside_at_the_end_too() {
    for_all(|scratch, run, name| {
        // The one has both its names in what can be written; of the other one name is hidden.
        scratch.dir("w/hidden");
        let hidden = scratch.path("w/hidden");
        let mut child = run()
            .option("--hide")
            .option(&hidden)
            .command(["bash", "-c", "ln own/own second; touch up; while [ -e up ]; do sleep 0.02; done"])
            .spawn();
        while !scratch.path("w/up").exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
            assert!(child.try_wait().unwrap().is_none(), "{name}");
        }
        scratch.file("w/third", "third\n");
        fs::hard_link(scratch.path("w/third"), scratch.path("w/hidden/third")).unwrap();
        fs::remove_file(scratch.path("w/up")).unwrap();
        let mut out = String::new();
        child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        assert!(child.wait().unwrap().success(), "{name}");
        let told: Value = serde_json::from_str(&out).unwrap();
        let third = scratch.path("w/third");
        assert_eq!(told["changes"]["links"]["outside"], json!([third.to_str().unwrap()]), "{name}");
        fs::remove_file(third).unwrap();
    });
}

#[test]
fn without_namespaces_it_is_the_same_and_nothing_is_left() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let state = scratch.dir("state");
        fs::set_permissions(&state, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        let script = "echo out; mkdir -p new/.git; (setsid sleep 1000 & echo $! > left); exit 3";
        let outcome = run(&scratch)
            .options(["--namespaces=off", "--waive=metadata-scope", "--waive=socket-scope", "--state"])
            .option(&state)
            .shell(script);
        let told = object(&outcome);
        assert_eq!(told["stdout"]["data"], json!("out\n"), "{who:?}: {told}");
        assert_eq!(changes(&scratch, &told), ["new repository w/new/.git"], "{who:?}");
        let left = fs::read_to_string(scratch.path("w/left")).unwrap();
        // Its entry stays until somebody has asked how it went.
        let line = fs::read(format!("/proc/{}/cmdline", left.trim())).unwrap_or_default();
        assert!(!line.starts_with(b"sleep"), "{who:?}: {left}");
    }
}

#[test]
fn who_ends_the_run_is_not_kept_waiting_for_a_look() {
    let scratch = Scratch::new(Who::User);
    let mut child = run(&scratch).command(["bash", "-c", "touch up; sleep 1000"]).spawn();
    while !scratch.path("w/up").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert!(child.try_wait().unwrap().is_none());
    }
    let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    let told: Value = serde_json::from_str(&out).unwrap();
    schema::check(schema::RESULT, &told);
    assert_eq!((&told["outcome"], &told["signal"]), (&json!("signalled"), &json!(15)));
    assert_eq!(told["changes"], Value::Null);
}

#[test]
fn verbose_says_how_the_promises_are_kept_and_why_there_is_a_supervisor() {
    for_all(|_, _, name| {
        let scratch = Scratch::new(if name == "Root" { Who::Root } else { Who::User });
        let quiet = Run::confined(&scratch).command(["true"]).run();
        assert_eq!(quiet.err, "", "{name}");
        let plain = Run::confined(&scratch).option("-v").command(["true"]).run();
        for line in ["confine: write-scope is kept by view, landlock", "confine: no supervisor is needed"] {
            assert!(plain.err.contains(line), "{name}: {}", plain.err);
        }
        assert!(
            !plain.err.contains("teardown") && !plain.err.contains("process-hiding"),
            "{name}: {}",
            plain.err
        );
        let strict =
            Run::confined(&scratch).options(["-v", "--strict", "--max-output=1M"]).command(["true"]).run();
        for line in [
            "confine: teardown is kept by pid-namespace",
            "confine: process-hiding is kept by pid-namespace",
            "confine: a supervisor stays for --require process-hiding, --require teardown, --max-output",
        ] {
            assert!(strict.err.contains(line), "{name}: {}", strict.err);
        }
    });
}

/// Of address space, which is more than what is used of it. Each of these inputs took a gigabyte and more.
const ROOM: &str = "ulimit -v 614400; exec \"$@\"";

#[test]
fn what_a_command_leaves_behind_costs_no_parent_its_memory_and_an_honest_change_is_told_exactly() {
    let repository = "mkdir -p k/.git/objects k/.git/refs k/.git/hooks && echo ref >k/.git/HEAD";
    let long = "head -c 100000 /dev/zero | tr '\\0' A";
    for (make, bounded) in [
        (format!("(printf '['; {long}; echo ']'; seq 20000) >k/.git/config"), true),
        ("(echo '[include]'; yes path=x | head -n 140000) >k/.git/config".to_owned(), true),
        ("for n in $(seq 60); do mkdir -p $n/.git; truncate -s 2M $n/.git/config; done".to_owned(), true),
        ("printf '[alias]\\nx = !y\\n' >k/.git/config".to_owned(), false),
    ] {
        let scratch = Scratch::new(Who::User);
        let script = format!("{repository} && {make}");
        let words = [
            "/bin/sh".into(),
            "-c".into(),
            ROOM.into(),
            "sh".into(),
            scratch.confine().into_os_string(),
            "--result=json".into(),
            "-w".into(),
            scratch.workspace().into(),
            "--".into(),
            "/bin/sh".into(),
            "-c".into(),
            script.clone().into(),
        ];
        let outcome = Run::plain(&scratch).command(words).run();
        let told = object(&outcome);
        assert_eq!(told["outcome"], "exited", "{}", outcome.tell());
        assert!(outcome.out.len() < 6 << 20, "{}", outcome.out.len());
        let files = &told["changes"]["files"];
        assert_eq!(files["complete"], json!(!bounded), "{script}: {}", outcome.tell());
        let listed = files["files"].as_array().unwrap();
        let path = scratch.workspace().join("k/.git/config");
        if bounded {
            let reasons = files["unseen"].as_array().unwrap();
            assert!(reasons.iter().all(|row| row["reason"].as_str().unwrap().contains("not looked at")));
        } else {
            assert_eq!((listed.len(), &listed[1]["keys"]), (2, &json!(["alias.x"])), "{}", outcome.tell());
            assert_eq!(listed[1]["path"], json!(path));
        }
        // And whoever comes later.
        let check = Run::plain(&scratch).command([
            "/bin/sh".into(),
            "-c".into(),
            ROOM.into(),
            "sh".into(),
            scratch.confine().into_os_string(),
            "check".into(),
            "--posture".into(),
            "--json".into(),
            "-w".into(),
            scratch.workspace().into(),
        ]);
        let check = check.run();
        let report: Value = serde_json::from_str(&check.out).unwrap_or_else(|_| panic!("{}", check.tell()));
        let ids =
            report["findings"].as_array().unwrap().iter().map(|finding| finding["id"].as_str().unwrap());
        assert_eq!(ids.into_iter().any(|id| id == "workspace-not-looked-at"), bounded, "{script}");
    }
}
