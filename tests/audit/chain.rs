//! That no line is lost, torn or changed unseen.

use super::*;

#[test]
fn on_a_full_disk_no_line_is_lost_or_torn_and_nothing_starts_without_one() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let file = record(&scratch);
        let log = scratch.path("log");
        // As many runs as fill three pages, and more; then room is made.
        let script = format!(
            "mount -t tmpfs -o size=12k,mode=0700,uid={id},gid={id} none {log} || exit 99
             as() {{ ({as_who}) }}
             for number in $(seq 30); do
                 as \"$@\" >/dev/null 2>err.$number </dev/null; echo $? >> statuses
             done
             cp {log}/audit full
             mount -o remount,size=64k {log} && as \"$@\" && cp {log}/audit more",
            id = who.id(),
            log = log.display(),
            as_who = as_who(who),
        );
        let outcome = in_mounts(&scratch, &script, &file, "echo >> started");
        assert!(outcome.ok(), "{}", outcome.tell());
        let count = |name: &str| fs::read_to_string(scratch.path(name)).unwrap().lines().count();
        let statuses = fs::read_to_string(scratch.path("w/statuses")).unwrap();
        let began = statuses.lines().filter(|status| *status == "0").count();
        let refused = statuses.lines().filter(|status| *status == "125").count();
        assert!(began > 3 && refused > 3 && began + refused == 30, "{statuses}");
        assert_eq!(count("w/started"), began + 1, "{who:?}");
        let error = fs::read_to_string(scratch.path("w/err.30")).unwrap();
        assert!(error.contains("no space left on device") && error.lines().count() == 2, "{error}");
        for (name, lines) in [("w/full", began), ("w/more", began + 1)] {
            fs::copy(scratch.path(name), &file).unwrap();
            scratch.give(&file);
            let all = self::lines(&scratch);
            let started = events(&all).iter().filter(|event| **event == "started").count();
            assert_eq!(started, lines, "{who:?} {name}");
            // A refusal is shorter, and found room perhaps where a start had not.
            assert!(!events(&all).contains(&"repaired"), "{all:?}");
            fs::remove_file(&file).unwrap();
        }
    }
}

#[test]
fn a_hundred_writers_at_once_lose_no_line_and_tear_none() {
    for (who, supervised) in [(Who::Root, ""), (Who::User, "--timeout=1m")] {
        let scratch = Scratch::new(who);
        let outcome = Run::plain(&scratch).shell(format!(
            "for number in $(seq 100); do {} -w . --audit {} {supervised} -- true $number & done; wait",
            scratch.confine().display(),
            record(&scratch).display(),
        ));
        assert_eq!((outcome.code(), outcome.err.as_str()), (Some(0), ""));
        let lines = lines(&scratch);
        let of = |event: &str| {
            let of_it = lines.iter().filter(|line| line["event"] == event);
            let mut runs: Vec<&str> = of_it.map(|line| line["run"].as_str().unwrap()).collect();
            runs.sort_unstable();
            runs.dedup();
            runs
        };
        assert_eq!(of("started").len(), 100);
        let mut numbers: Vec<i64> =
            lines.iter().filter_map(|line| line["argv"][1].as_str()?.parse().ok()).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (1..=100).collect::<Vec<_>>());
        if !supervised.is_empty() {
            assert_eq!(of("ended"), of("started"));
        }
    }
}

#[test]
fn who_holds_the_lock_for_long_stops_runs_and_hangs_none() {
    let scratch = Scratch::new(Who::User);
    assert!(run(&scratch).command(["true"]).run().ok());
    let file = fs::File::open(record(&scratch)).unwrap();
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
    assert_refused(&scratch, run(&scratch), "has held its lock for 10 s");
    drop(file);
    assert!(run(&scratch).command(["true"]).run().ok());
    assert_eq!(lines(&scratch).len(), 2);
}

#[test]
fn a_torn_line_is_repaired_by_the_next_run_which_says_so() {
    let scratch = Scratch::new(Who::User);
    assert!(run(&scratch).command(["true"]).run().ok());
    let mut file = fs::OpenOptions::new().append(true).open(record(&scratch)).unwrap();
    file.write_all(b"{\"sequence\":2,\"prev").unwrap();
    let torn = verify(&scratch, &[]);
    assert_eq!(torn.code(), Some(1));
    assert!(torn.out.contains("broken at line 2: it is torn"), "{}", torn.tell());
    assert!(run(&scratch).command(["true"]).run().ok());
    let lines = lines(&scratch);
    assert_eq!(events(&lines), ["started", "repaired", "started"]);
    assert_eq!(lines[1]["bytes"], json!(19));
}

#[test]
fn what_is_done_to_a_record_is_found() {
    let scratch = Scratch::new(Who::User);
    for word in ["a", "b", "c", "d"] {
        assert!(run(&scratch).command(["true", word]).run().ok());
    }
    let text = fs::read_to_string(record(&scratch)).unwrap();
    let all: Vec<&str> = text.lines().collect();
    let whole = verify(&scratch, &["--json"]);
    let report: Value = serde_json::from_str(&whole.out).unwrap();
    assert_eq!((&report["version"], &report["good"], &report["lines"]), (&json!(1), &json!(true), &json!(4)));
    let last = report["last"].as_str().unwrap();
    assert!(verify(&scratch, &[]).out.contains(&format!("\nlast {last}\n")));
    let edited = all[1].replace("\"b\"", "\"x\"");
    for (changed, line) in [
        (vec![all[0], edited.as_str(), all[2], all[3]], 3),
        (vec![all[0], all[2], all[3]], 2),
        (vec![all[1], all[2], all[3]], 1),
        (vec![all[0], all[2], all[1], all[3]], 2),
        (vec![all[0], all[1], all[1], all[2], all[3]], 3),
        (vec![all[0], "", all[1]], 2),
    ] {
        fs::write(record(&scratch), changed.join("\n") + "\n").unwrap();
        let found = verify(&scratch, &[]);
        assert_eq!(found.code(), Some(1), "{changed:?}");
        assert!(found.out.starts_with(&format!("broken at line {line}: ")), "{}", found.tell());
        let found: Value = serde_json::from_str(&verify(&scratch, &["--json"]).out).unwrap();
        assert_eq!((&found["good"], &found["broken"]["line"]), (&json!(false), &json!(line)));
    }
    // A shorter record is one too; whoever kept the hash knows better.
    fs::write(record(&scratch), all[..3].join("\n") + "\n").unwrap();
    assert!(verify(&scratch, &[]).ok());
    let short = verify(&scratch, &["--expect", last]);
    assert_eq!(short.code(), Some(1), "{}", short.tell());
    fs::write(record(&scratch), &text).unwrap();
    assert!(verify(&scratch, &["--expect", &last.to_uppercase()]).ok());
    assert_eq!(verify(&scratch, &["--expect", "12"]).code(), Some(125));
    fs::remove_file(record(&scratch)).unwrap();
    assert_eq!(verify(&scratch, &[]).code(), Some(125));
}

#[test]
fn a_limit_of_file_size_is_the_commands_and_not_the_records() {
    let scratch = Scratch::new(Who::User);
    for _ in 0..3 {
        let outcome =
            run(&scratch).option("--max-file-size=1K").shell("head -c 4K /dev/zero > big; stat -c %s big");
        assert_eq!(outcome.out, "1024\n", "{}", outcome.tell());
    }
    assert!(fs::metadata(record(&scratch)).unwrap().len() > 1024);
    // The caller's own holds for confine too, and is an error then.
    let limited =
        run(&scratch).under(["bash", "-c", "ulimit -f 1 && exec \"$@\"", "bash"]).option("--namespaces=off");
    assert_refused(&scratch, limited.option("--waive=path-hiding"), "file too large");
    assert_eq!(lines(&scratch).len(), 3);
}

#[test]
fn a_fifo_in_place_of_a_record_does_not_hold_verify() {
    let scratch = Scratch::new(Who::User);
    nix::unistd::mkfifo(&record(&scratch), nix::sys::stat::Mode::from_bits_truncate(0o666)).unwrap();
    let outcome = verify(&scratch, &[]);
    assert_eq!(outcome.code(), Some(125), "{}", outcome.tell());
    assert!(outcome.err.contains("not a regular file"), "{}", outcome.tell());
}
