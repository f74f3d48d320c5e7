//! The profiles that come with confine: each runs, and keeps what it says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod supervise;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use common::*;

const BUILT_IN: [&str; 7] =
    ["workspace-write", "read-only", "build", "dev-server", "kernel", "mcp", "strict"];

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn each_profile_runs_and_keeps_what_it_says() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        for name in BUILT_IN {
            let scratch = Scratch::new(who);
            let run = || Run::confined(&scratch).options(["--profile", name]);
            let outcome = run().shell("true");
            findings.claim(outcome.ok() && outcome.err.is_empty(), || {
                format!("{who:?}: {name}: {}", outcome.tell())
            });
            let outcome = run().shell("echo x > written; echo x > ~/written && echo home");
            let written = scratch.path("w/written").exists();
            findings.claim(written == (name != "read-only") && outcome.out == "home\n", || {
                format!("{who:?}: {name}: {written} {}", outcome.tell())
            });
            findings
                .claim(!scratch.path("home/written").exists(), || format!("{who:?}: {name} wrote to HOME"));
            // A background process that holds a pipe open: gone with its parent, where that is promised.
            let mark = supervise::mark();
            let outcome = run().shell(format!("sleep {mark} >/dev/null 2>&1 &"));
            if ["dev-server", "kernel", "mcp", "strict"].contains(&name) {
                let left = supervise::marked(&mark);
                findings.claim(outcome.ok() && left.is_empty(), || format!("{who:?}: {name}: {left:?}"));
            } else {
                supervise::send(supervise::program(&mark, "sleep"), libc::SIGKILL);
            }
        }
    }
    findings.settle();
}

#[test]
fn build_keeps_home_for_its_workspace_and_for_no_other() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        scratch.dir("other");
        let run = |workspace: &str, script: &str| {
            let run =
                Run::bare(&scratch).option("-w").option(scratch.path(workspace)).cwd(scratch.path(workspace));
            run.options(["--profile", "build"]).shell(script)
        };
        let first = run("w", "mkdir -p ~/.cache/tool && echo kept > ~/.cache/tool/x; echo kept > /tmp/x");
        assert!(first.ok(), "{}", first.tell());
        let second = run("w", "cat ~/.cache/tool/x /tmp/x");
        assert_eq!(second.out, "kept\nkept\n", "{}", second.tell());
        let other = run("other", "cat ~/.cache/tool/x /tmp/x; echo ran");
        assert_eq!(other.out, "ran\n", "{}", other.tell());
        assert!(!scratch.path("home/.cache").exists(), "the user's own caches are not touched");
        let own = scratch.path("home/.local/state/confine");
        assert_eq!(fs::metadata(&own).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::read_dir(&own).unwrap().count(), 2);
        let forgetful = Run::confined(&scratch).shell("cat ~/.cache/tool/x; echo ran");
        assert_eq!(forgetful.out, "ran\n");
        mode(&own, 0o777);
        assert!(run("w", "true").refused(&["does not belong to uid"]));
        mode(&own, 0o700);
    }
}

#[test]
fn mcp_has_only_the_variables_and_the_places_that_are_named() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let run = |options: &[&str], script: &str| {
            let run = Run::bare(&scratch).options(["--profile", "mcp"]).options(options);
            let run = run.env("TOKEN", "secret").env("CARGO_HOME", "/c").env("LANG", "C").env("CI", "1");
            run.shell(script)
        };
        let plain = run(
            &[],
            "env | cut -d= -f1 | sort | tr '\\n' ' '; echo; pwd; ls -A | grep -v '^\\.'; cat own/own",
        );
        let lines: Vec<&str> = plain.out.lines().collect();
        let names = lines.first().copied().unwrap_or_default();
        let least =
            ["CONFINE", "HOME", "LANG", "PATH"].iter().all(|name| names.split(' ').any(|had| had == *name));
        let home = scratch.home().display().to_string();
        findings.claim(
            least
                && !names.contains("TOKEN")
                && !names.contains("CARGO_HOME")
                && lines.get(1) == Some(&home.as_str())
                && lines.len() == 2,
            || format!("{who:?}: {}", plain.tell()),
        );
        let named = run(&["--env", "TOKEN"], "echo $TOKEN");
        findings.claim(named.out == "secret\n", || format!("{who:?}: {}", named.tell()));
        let workspace = scratch.workspace().display().to_string();
        let given = run(&["-w", &workspace], "cat own/own; pwd");
        findings
            .claim(given.out == format!("my own\n{workspace}\n"), || format!("{who:?}: {}", given.tell()));
        let network = run(&[], "(echo > /dev/tcp/127.0.0.1/9) 2>&1 | grep -q 'not supported' && echo none");
        findings.claim(network.out == "none\n", || format!("{who:?}: {}", network.tell()));
        let bare = run(
            &["--namespaces", "off", "--waive", "teardown"],
            "pwd; echo x > made && cat made; echo ${TOKEN-none}",
        );
        findings.claim(bare.out.ends_with("x\nnone\n"), || format!("{who:?}: {}", bare.tell()));
    }
    findings.settle();
}

#[test]
fn without_a_workspace_nothing_on_the_disk_can_be_changed() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let before = Snapshot::of(scratch.root());
        let script =
            format!("echo x > {0}/made; echo x > ~/made && echo home", scratch.workspace().display());
        let outcome = Run::bare(&scratch).option("--no-workspace").shell(&script);
        assert_eq!(outcome.out, "home\n", "{}", outcome.tell());
        assert_eq!(before.difference(&Snapshot::of(scratch.root())), None);
        let both = Run::confined(&scratch).option("--no-workspace").shell("true");
        assert!(both.refused(&["contradict each other"]), "{}", both.tell());
    }
}

/// Counted on a run that reads no file: the policy files cost one look for the administrator's.
#[test]
fn a_run_without_files_pays_one_system_call_for_them() {
    let scratch = Scratch::new(Who::Root);
    let log = scratch.path("trace");
    let log_name = log.display().to_string();
    let run = Run::confined(&scratch).under(["strace", "-o", &log_name, "-e", "trace=%file"]);
    let outcome = run.command(["true"]).run();
    assert!(outcome.ok(), "{}", outcome.tell());
    let text = fs::read_to_string(&log).unwrap();
    let about: Vec<&str> =
        text.lines().filter(|line| line.contains("/confine/") || line.contains("profiles")).collect();
    let about: Vec<&&str> = about.iter().filter(|line| !line.contains("execve")).collect();
    assert_eq!(about.len(), 1, "{about:#?}");
    assert!(about[0].contains("/etc/confine/policy.toml") && about[0].contains("ENOENT"), "{about:?}");
}
