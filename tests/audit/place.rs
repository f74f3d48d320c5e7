//! Where a record may lie and what it may be.

use super::*;

#[test]
fn a_record_within_reach_of_the_command_is_refused_and_not_even_made() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let inside = scratch.path("w/audit");
        let log = scratch.dir("log");
        let state = scratch.dir("state");
        fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap();
        symlink(&log, scratch.path("w/leads-out")).unwrap();
        symlink(scratch.workspace(), scratch.path("leads-in")).unwrap();
        let more = scratch.dir("more");
        let run = |file: &Path| to(&scratch, file);
        for run in [
            run(&inside),
            run(&inside).option("--ro=/nonexistent"),
            run(&scratch.path("leads-in/audit")),
            run(&more.join("audit")).option("--rw").option(&more),
            run(&more.join("audit"))
                .options(["--namespaces=off", "--waive=path-hiding", "--rw"])
                .option(&more),
            run(&state.join("audit")).option("--state").option(&state),
        ] {
            assert_refused(&scratch, run, "the command may write");
        }
        assert_refused(&scratch, run(&scratch.path("w/leads-out/audit")), "the command may write");
        for dir in ["w", "more", "state", "log"] {
            assert!(!scratch.path(dir).join("audit").exists(), "{who:?}: {dir}");
        }
        // Readable is too much: it could be locked, and tells of other runs.
        let readable = |run: Run| run.option("--ro").option(&log);
        assert_refused(&scratch, readable(run(&log.join("audit"))), "can be read by the command");
        let hidden = readable(run(&log.join("audit"))).option("--hide").option(log.join("audit"));
        let outcome = hidden.shell(format!("cat {}; touch started", log.join("audit").display()));
        assert!(!outcome.out.contains("started") && scratch.path("w/started").exists(), "{}", outcome.tell());
    }
}

#[test]
fn explain_refuses_what_a_run_would_and_makes_nothing() {
    let scratch = Scratch::new(Who::User);
    for (file, status) in [(scratch.path("w/audit"), 125), (record(&scratch), 0)] {
        let confine = scratch.confine();
        let words = [
            confine.as_os_str(),
            "explain".as_ref(),
            "-w".as_ref(),
            ".".as_ref(),
            "--audit".as_ref(),
            file.as_os_str(),
        ];
        let outcome =
            Run::plain(&scratch).command(words.into_iter().chain(["--".as_ref(), "true".as_ref()])).run();
        assert_eq!(outcome.code(), Some(status), "{}", outcome.tell());
        assert!(!file.exists());
    }
}

#[test]
fn only_an_owners_regular_file_is_written_to() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let log = scratch.dir("log");
        let file = |name: &str, mode| {
            let path = scratch.file(&format!("log/{name}"), "");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        symlink(file("target", 0o600), log.join("link")).unwrap();
        assert_refused(&scratch, to(&scratch, &log.join("link")), "is a symbolic link");
        assert_refused(&scratch, to(&scratch, &file("open", 0o640)), "is open to other users");
        fs::hard_link(file("names", 0o600), log.join("another")).unwrap();
        assert_refused(&scratch, to(&scratch, &log.join("another")), "has another name");
        let foreign = file("foreign", 0o600);
        std::os::unix::fs::chown(&foreign, Some(USER + 1), None).unwrap();
        assert_refused(&scratch, to(&scratch, &foreign), "belongs to another user");
        assert_refused(&scratch, to(&scratch, &log), "is not a regular file");
        assert_refused(&scratch, to(&scratch, Path::new("/dev/full")), "is not a regular file");
        rustix::fs::mknodat(rustix::fs::CWD, log.join("fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .unwrap();
        assert_refused(&scratch, to(&scratch, &log.join("fifo")), "is not a regular file");
        assert_refused(&scratch, to(&scratch, &log.join("none/audit")), "no such file or directory");
        let shared = scratch.dir("shared");
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
        assert_refused(&scratch, to(&scratch, &shared.join("audit")), "every user may write");
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
        assert!(to(&scratch, &shared.join("audit")).command(["true"]).run().ok());
        let other = file("other", 0o600);
        fs::write(&other, "something else\n").unwrap();
        assert_refused(&scratch, to(&scratch, &other), "not an audit record");
        assert_eq!(fs::read_to_string(&other).unwrap(), "something else\n");
        if who == Who::User {
            let path = file("read-only", 0o400);
            assert_refused(&scratch, to(&scratch, &path), "permission denied");
        }
        // The twin of all of them.
        assert!(to(&scratch, &log.join("fine")).command(["touch", "started"]).run().ok());
        assert!(scratch.path("w/started").exists());
    }
}

#[test]
fn a_record_on_a_read_only_file_system_lets_nothing_start() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let file = record(&scratch);
        let script = format!(
            "mount --bind {0} {0} && mount -o remount,bind,ro {0} && {1}",
            scratch.path("log").display(),
            as_who(who)
        );
        let outcome = in_mounts(&scratch, &script, &file, "touch started");
        assert_eq!(outcome.code(), Some(125), "{}", outcome.tell());
        assert!(outcome.err.contains("read-only file system"), "{}", outcome.tell());
        assert!(!scratch.path("w/started").exists());
    }
}

#[test]
fn the_command_has_no_way_to_the_record() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let file = record(&scratch);
        let outcome =
            run(&scratch).shell(format!("ls /proc/self/fd; cat {0}; echo forged >> {0}", file.display()));
        assert!(!outcome.out.contains("started") && outcome.out.lines().count() == 4, "{}", outcome.tell());
        assert_eq!(lines(&scratch).len(), 1);
    }
}

#[test]
fn a_record_that_another_mount_leads_to_the_command_is_refused() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for dir in ["w/dir", "log", "shown", "apart"] {
            scratch.dir(dir);
        }
        let root = scratch.root().display().to_string();
        let file = scratch.path("log/audit");
        let run = |from: &str| {
            let script = format!("mount --bind {root}/{from} {root}/log; {}", as_who(who));
            to(&scratch, &file)
                .by(Who::Root)
                .under(["unshare", "-m", "--propagation", "private", "bash", "-c", &script, "bash"])
                .option("--ro")
                .option(scratch.path("shown"))
                .shell("echo ran")
        };
        for (from, words) in [("w/dir", "the command may write"), ("shown", "can be read by the command")] {
            let outcome = run(from);
            assert!(outcome.code() == Some(125) && outcome.err.contains(words), "{from}: {}", outcome.tell());
        }
        assert!(!scratch.path("w/dir/audit").exists(), "{who:?}: not even made");
        let twin = run("apart");
        assert!(twin.out == "ran\n" && scratch.path("apart/audit").exists(), "{}", twin.tell());
    }
}

#[test]
fn a_record_that_the_command_would_hold_open_lets_nothing_start() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let file = record(&scratch);
        assert!(run(&scratch).command(["true"]).run().ok());
        let held = |number: &str, mode: &str, options: &[&str]| {
            let script = format!("exec \"$@\" {number}{mode} {}", file.display());
            run(&scratch)
                .under(["bash", "-c", &script, "bash"])
                .options(options)
                .command(["touch", "started"])
                .run()
        };
        let before = lines(&scratch);
        for (number, mode, options) in [
            ("1", ">>", &[][..]),
            ("0", "<", &[]),
            ("7", ">>", &["--fd=7"]),
            ("1", ">>", &["--timeout=1m", "--max-output=1M"]),
        ] {
            let outcome = held(number, mode, options);
            findings.claim(outcome.code() == Some(125) && !scratch.path("w/started").exists(), || {
                format!("{who:?}: {number}{mode} {options:?}: {}", outcome.tell())
            });
            findings.claim(outcome.err.contains("so that the command could change it"), || {
                format!("{who:?}: {number}{mode} {options:?}: {}", outcome.tell())
            });
        }
        assert_eq!(lines(&scratch), before, "{who:?}");
        // What is refused is told on standard error, whatever that is.
        let outcome = held("2", ">>", &[]);
        findings.claim(outcome.code() == Some(125) && !scratch.path("w/started").exists(), || {
            format!("{who:?}: 2>>: {}", outcome.tell())
        });
        let other = scratch.file("log/other", "");
        let script = format!("exec \"$@\" >> {}", other.display());
        fs::write(&file, "").unwrap();
        let twin = run(&scratch).under(["bash", "-c", &script, "bash"]).command(["touch", "started"]).run();
        findings
            .claim(twin.ok() && scratch.path("w/started").exists(), || format!("{who:?}: {}", twin.tell()));
    }
    findings.settle();
}

#[test]
fn a_file_of_status_lines_that_the_command_could_write_to_lets_nothing_start() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let (status, other) = (scratch.file("outside/status", ""), scratch.file("outside/other", ""));
        let told = |output: &std::path::Path| {
            let script = format!("exec \"$@\" 3>> {} >> {}", status.display(), output.display());
            Run::confined(&scratch)
                .under(["bash", "-c", &script, "bash"])
                .option("--status-fd=3")
                .command(["touch", "started"])
                .run()
        };
        let outcome = told(&status);
        assert!(
            outcome.refused(&["the file of --status-fd is standard output as well"]),
            "{}",
            outcome.tell()
        );
        assert!(!scratch.path("w/started").exists());
        let twin = told(&other);
        assert!(twin.ok() && scratch.path("w/started").exists(), "{who:?}: {}", twin.tell());
    }
}
