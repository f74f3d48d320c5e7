//! The administrator's policy: who gets past it. Files in /etc are the test's own, in a mount namespace of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::fs;

use common::scratch::copy;
use common::*;

const LINE: &str =
    "never-waive = [\"alias-free\"]\nnever-allow = [\"net=host\", \"git=free\", \"profile=build\"]\n";

/// Before the run: files of these names and texts in /etc/confine, and one command of root's, in a mount namespace.
fn with_etc(run: Run, files: &[(&str, &str)], and: &str) -> Run {
    let mut script = String::from(
        "mount -t tmpfs -o mode=755 tmpfs /mnt && cp -a /etc/. /mnt/ && mkdir -p /mnt/confine/profiles && \
         chmod 755 /mnt/confine /mnt/confine/profiles && mount --move /mnt /etc || exit 99; umask 022; ",
    );
    for (name, text) in files {
        assert!(!text.contains('\''), "no quoting here");
        script.push_str(&format!("printf '%s' '{text}' > /etc/confine/{name}; "));
    }
    script.push_str(&format!("{and}\nexec \"$@\""));
    run.by(Who::Root).under(["unshare", "-m", "--propagation", "private", "bash", "-c", &script, "etc"])
}

/// As the identity of the scratch directory, from root's namespace.
fn as_who(scratch: &Scratch, run: Run) -> Run {
    match scratch.who {
        Who::Root => run,
        Who::User => {
            let id = USER.to_string();
            run.under(["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"])
        }
    }
}

#[test]
fn the_administrators_line_holds_for_everybody() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let run = |options: &[&str], system: &str| {
            let run = with_etc(Run::confined(&scratch), &[("policy.toml", system)], "");
            as_who(&scratch, run).options(options).shell("echo $A")
        };
        scratch.profile("mine", "waive = ['alias-free']\n");
        scratch.profile("based", "profile = 'build'\n");
        scratch.profile("further", "profile = 'based'\n");
        let named = scratch.file("outside/named.toml", "profile = 'build'\n").display().to_string();
        for (options, words) in [
            (
                &["--waive", "alias-free"][..],
                "must always hold on this machine ('/etc/confine/policy.toml', line 1)",
            ),
            (
                &["--net", "host"],
                "--net 'host' is not allowed on this machine ('/etc/confine/policy.toml', line 2)",
            ),
            (&["--git", "free"], "not allowed"),
            (&["--profile", "mine"], "of profile 'mine'"),
            (&["--profile", "build"], "--profile 'build' is not allowed"),
            (&["--profile", "based"], "--profile 'build' of profile 'based'"),
            (&["--profile", "further"], "--profile 'build' of profile 'based'"),
            (&["--policy", &named], "--profile 'build' of '"),
        ] {
            let outcome = run(options, LINE);
            findings.claim(outcome.refused(&[words]), || format!("{who:?}: {options:?}: {}", outcome.tell()));
            let twin = run(options, "# nothing\n");
            findings.claim(twin.ok(), || format!("{who:?}: twin of {options:?}: {}", twin.tell()));
        }
        let ordinary = run(&[], &format!("{LINE}env = [\"A=default\"]\n"));
        findings.claim(ordinary.out == "default\n", || format!("{who:?}: {}", ordinary.tell()));
        let nearer = run(&["--env", "A=line"], "env = [\"A=default\"]\n");
        findings.claim(nearer.out == "line\n", || format!("{who:?}: {}", nearer.tell()));
        let broken = run(&[], "never-wave = []\n");
        findings.claim(broken.refused(&["unknown key 'never-wave'", "never-waive"]), || broken.tell());
    }
    findings.settle();
}

#[test]
fn no_hint_goes_past_the_administrators_line() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let run = |run: Run, system: &str| {
            as_who(&scratch, with_etc(run, &[("policy.toml", system)], "")).command(["true"]).run()
        };
        let off = || Run::confined(&scratch).options(["--namespaces", "off"]);
        scratch.profile("ends", "\nrequire = ['teardown']\n");
        for (options, system, told, hint) in [
            (
                &[][..],
                "always-require = [\"teardown\"]\n",
                "required by '/etc/confine/policy.toml', line 1",
                None,
            ),
            (&["--profile", "ends"], "never-waive = [\"teardown\"]\n", "required by profile 'ends'", None),
            (
                &["--profile", "ends"],
                "",
                "mine.toml'), line 2)",
                Some("`--waive teardown` where a profile asks for it"),
            ),
            (&["--require", "teardown"], "", "was given", Some("leave out `--require teardown`")),
            (&["--strict"], "", "was given", Some("leave out `--strict`")),
        ] {
            let told = told.replace("mine", "ends");
            let outcome = run(off().options(options), system);
            findings.claim(outcome.refused(&["teardown cannot be kept", &told]), || outcome.tell());
            let hinted = hint.is_none_or(|hint| outcome.err.contains(hint));
            findings.claim(hinted && (hint.is_some() || !outcome.err.contains("--waive")), || outcome.tell());
        }
        for (system, words) in [
            ("never-waive = [\"alias-fre\"]\n", "never-waive = [\"alias-free\"]"),
            ("\nalways-require = [\"x\"]\n", "always-require takes write-scope"),
        ] {
            let outcome = run(Run::confined(&scratch), system);
            findings.claim(outcome.refused(&[words]), || outcome.tell());
        }
        // What is shown to nobody is hidden by no option that could be left out.
        let vault = scratch.dir("w/vault").display().to_string();
        let confine = scratch.confine().display().to_string();
        let ask = |system: &str| {
            let line = [confine.as_str(), "why", "-w", ".", "--hide", "vault", &vault];
            let run = with_etc(Run::plain(&scratch), &[("policy.toml", system)], "");
            as_who(&scratch, run).command(line).run()
        };
        let outcome = ask(&format!("never-visible = [\"{vault}\"]\n"));
        let told = outcome.out.contains("policy.toml', line 1") && !outcome.out.contains("hint");
        findings.claim(told && outcome.out.contains("only the administrator"), || outcome.tell());
        let twin = ask("# nothing\n");
        findings.claim(twin.out.contains(&format!("without `--hide {vault}`")), || twin.tell());
    }
    findings.settle();
}

#[test]
fn the_administrators_file_is_roots_or_nothing_starts() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let run = |and: &str| {
            let run = with_etc(Run::confined(&scratch), &[("policy.toml", "env = [\"A=default\"]\n")], and);
            as_who(&scratch, run).shell("echo $A")
        };
        for (and, words) in [
            ("chown 54321 /etc/confine/policy.toml", "belongs to uid 54321, not to root"),
            ("chmod 666 /etc/confine/policy.toml", "can be written by others"),
            ("chown 54321 /etc/confine", "reached through '/etc/confine'"),
            ("chmod 777 /etc/confine", "lies below '/etc/confine'"),
            ("ln -sf /etc/nowhere /etc/confine/policy.toml", "no such file"),
            ("mv /etc/confine /etc/c; ln -s nowhere /etc/confine", "no such file"),
            (
                "mv /etc/confine /etc/c; mkdir /etc/u; chown 54321 /etc/u; ln -s u /etc/confine",
                "reached through '/etc/u'",
            ),
            (
                "rm /etc/confine/policy.toml; mv /etc/confine /etc/c; ln -s c /etc/confine; chown -h 54321 /etc/confine",
                "reached through '/etc/confine'",
            ),
            ("rm /etc/confine/policy.toml; mkdir /etc/confine/policy.toml", "not a regular file"),
        ] {
            let outcome = run(and);
            findings.claim(outcome.refused(&[words]), || format!("{who:?}: {and}: {}", outcome.tell()));
        }
        for (and, out) in [
            ("true", "default\n"),
            ("rm /etc/confine/policy.toml", "\n"),
            ("mv /etc/confine /etc/c; ln -s c /etc/confine", "default\n"),
            ("rm /etc/confine/policy.toml; mv /etc/confine /etc/c; ln -s c /etc/confine", "\n"),
            (
                "mv /etc/confine/policy.toml /etc/confine/real; ln -s real /etc/confine/policy.toml",
                "default\n",
            ),
        ] {
            let outcome = run(and);
            findings.claim(outcome.out == out, || format!("{who:?}: {and}: {}", outcome.tell()));
        }
    }
    findings.settle();
}

#[test]
fn a_profile_of_the_machines_is_found_after_the_users_own() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let run = || {
            let run =
                with_etc(Run::confined(&scratch), &[("profiles/shared.toml", "env = [\"A=machine\"]\n")], "");
            as_who(&scratch, run).options(["--profile", "shared"]).shell("echo $A")
        };
        let outcome = run();
        assert_eq!(outcome.out, "machine\n", "{}", outcome.tell());
        scratch.profile("shared", "env = ['A=own']\n");
        assert_eq!(run().out, "own\n");
    }
}

#[test]
fn what_the_administrator_shows_to_nobody_is_seen_by_nobody() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        scratch.dir("w/vault");
        scratch.file("w/vault/key", "the key\n");
        scratch.dir("outside/deep");
        scratch.file("outside/deep/key", "the key\n");
        scratch.dir("home/bin");
        scratch.file("home/bin/key", "the key\n");
        let (vault, deep) = (scratch.path("w/vault"), scratch.path("outside/deep"));
        let system = format!(
            "never-visible = [\"{}\", \"{}\", \"{}\", \"/nowhere\"]\n",
            vault.display(),
            deep.display(),
            scratch.path("home/bin").display()
        );
        let out = scratch.outside().display().to_string();
        let path = format!("{}:/usr/bin:/bin", scratch.path("home/bin").display());
        let run = |options: &[&str], system: &str| {
            let run = with_etc(Run::confined(&scratch), &[("policy.toml", system)], "");
            as_who(&scratch, run).env("PATH", &path).options(options).shell(
                "cat vault/key ../outside/deep/key ../home/bin/key; mv vault gone; mkdir vault; ls gone; echo ran",
            )
        };
        let outcome = run(&["--ro", &out], &system);
        findings.claim(outcome.out == "ran\n", || format!("{who:?}: {}", outcome.tell()));
        let twin = run(&["--ro", &out], "# nothing\n");
        findings.claim(twin.out == "the key\nthe key\nthe key\nkey\nran\n", || {
            format!("{who:?}: {}", twin.tell())
        });
        // The twin has moved it.
        fs::remove_dir(scratch.path("w/vault")).unwrap();
        fs::rename(scratch.path("w/gone"), &vault).unwrap();
        for named in [&vault, &deep, &deep.join("key")] {
            for option in ["--ro", "--rw", "-w", "--seal"] {
                let outcome = run(&[option, &named.display().to_string()], &system);
                let told = outcome
                    .refused(&["shown to nobody on this machine ('/etc/confine/policy.toml', line 1)"]);
                let no_file = ["-w", "--seal"].contains(&option) && outcome.refused(&["not a directory"]);
                findings
                    .claim(told || no_file, || format!("{who:?}: {option} {named:?}: {}", outcome.tell()));
            }
        }
        let whole = run(&["--ro", "/"], &system);
        findings.claim(whole.out == "ran\n", || format!("{who:?}: --ro /: {}", whole.tell()));
        // Without mounts only what is not writable can be taken from.
        let system = system.replace(&format!("\"{}\", ", vault.display()), "");
        for shown in [out.as_str(), "/"] {
            let options = ["--namespaces", "off", "--ro", shown];
            let outcome = run(&options, &system);
            let hidden = !outcome.out.starts_with("the key\nthe key\n") && outcome.out.ends_with("ran\n");
            findings.claim(hidden, || format!("{who:?}: {options:?}: {}", outcome.tell()));
            fs::remove_dir(&vault).unwrap();
            fs::rename(scratch.path("w/gone"), &vault).unwrap();
            let twin = run(&options, "# nothing\n");
            findings
                .claim(twin.out.starts_with("the key\nthe key\n"), || format!("{who:?}: {}", twin.tell()));
            fs::remove_dir(&vault).unwrap();
            fs::rename(scratch.path("w/gone"), &vault).unwrap();
        }
    }
    findings.settle();
}

#[test]
fn what_is_shown_to_nobody_is_hidden_at_every_mount_of_it() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for dir in ["vault", "vault/deep", "more", "more/whole", "more/part", "more/other", "home/x"] {
            scratch.dir(dir);
        }
        for file in ["vault/key", "vault/deep/key", "other", "more/plain"] {
            scratch.file(file, &format!("{file}\n"));
        }
        scratch.file("more/one", "");
        let root = scratch.root().display().to_string();
        // The whole of it above, a part of it, one file of it, and a mount that another one hides.
        let mounts = format!(
            "(cd {root}; mount --bind . more/whole; mount --bind vault/deep more/part; mount --bind vault/key more/one; \
             mount --bind vault more/other; mount --bind home/x more/other)"
        );
        scratch.file("home/x/file", "on top\n");
        for off in [false, true] {
            let run = |options: &[&str], system: &str| {
                let run = with_etc(Run::confined(&scratch), &[("policy.toml", system)], &mounts);
                let run = as_who(&scratch, run).options(options);
                let run = if off { run.options(["--namespaces", "off"]) } else { run };
                run.shell(
                    "cd ../more; cat whole/vault/key whole/vault/deep/key part/key one; cat other/file whole/other plain; echo ran",
                )
            };
            let line = format!("never-visible = [\"{root}/vault\"]\n");
            let more = format!("{root}/more");
            let outcome = run(&["--ro", &more], &line);
            let rest = "on top\nother\nmore/plain\nran\n";
            findings.claim(outcome.out == rest, || format!("{who:?} {off}: {}", outcome.tell()));
            let twin = run(&["--ro", &more], "# nothing\n");
            let all = format!("vault/key\nvault/deep/key\nvault/deep/key\nvault/key\n{rest}");
            findings.claim(twin.out == all, || format!("{who:?} {off}: {}", twin.tell()));
            // What a user hides from the command, likewise.
            let vault = format!("{root}/vault");
            let outcome = run(&["--ro", &more, "--hide", &vault], "# nothing\n");
            findings.claim(outcome.out == rest, || format!("{who:?} {off}: {}", outcome.tell()));
            for named in ["whole/vault", "part"] {
                let both = ["--hide", &vault, "--ro", &format!("{more}/{named}")];
                let told =
                    run(&both, "# nothing\n").refused(&["another mount of", "leave out one of the two"]);
                findings.claim(told, || format!("{who:?} {off}: {both:?}"));
            }
            for named in ["whole/vault", "whole/vault/key", "part", "one"] {
                let outcome = run(&["--ro", &format!("{more}/{named}")], &line);
                let told = outcome.refused(&["shown to nobody on this machine"]);
                findings.claim(told, || format!("{who:?} {off}: {named}: {}", outcome.tell()));
            }
        }
    }
    findings.settle();
}

/// Each is believed where the same mount comes from outside the workspace.
#[test]
fn what_another_mount_leads_into_the_workspace_is_not_believed() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for dir in ["w/dot", "outside/dot"] {
            scratch.dir(dir);
            scratch.dir(&format!("{dir}/profiles"));
            scratch.file(&format!("{dir}/profiles/mine.toml"), "env = ['A=believed']\n");
        }
        scratch.profile("other", "");
        let config = scratch.path("home/.config/confine").display().to_string();
        scratch.dir("kept");
        scratch.file("kept/p.toml", "");
        let file = scratch.path("kept/p.toml").display().to_string();
        let root = scratch.root().display().to_string();
        scratch.dir("again");
        for off in [false, true] {
            let run = |mounts: &str, options: &[&str]| {
                let run = with_etc(Run::confined(&scratch), &[], mounts);
                let run = as_who(&scratch, run).options(options);
                let run = if off { run.options(["--namespaces", "off"]) } else { run };
                run.shell("echo $A")
            };
            for (what, mounts, options) in [
                ("a directory", format!("mount --bind {root}/@/dot {config}"), ["--profile", "mine"]),
                (
                    "a file",
                    format!("mount --bind {root}/@/dot/profiles/mine.toml {file}"),
                    ["--policy", file.as_str()],
                ),
                (
                    "the directory of a link",
                    format!("mount --bind {root}/@ {root}/again"),
                    ["--policy", &format!("{root}/again/link")],
                ),
            ] {
                for dir in ["w", "outside"] {
                    if !scratch.path(&format!("{dir}/link")).exists() {
                        let target = scratch.path("outside/dot/profiles/mine.toml");
                        scratch.link(&target, &format!("{dir}/link"));
                    }
                }
                let outcome = run(&mounts.replace('@', "w"), &options);
                let told = outcome.refused(&["where commands can write"]);
                findings.claim(told, || format!("{who:?} {off}: {what}: {}", outcome.tell()));
                let twin = run(&mounts.replace('@', "outside"), &options);
                let believed = twin.out == "believed\n";
                findings.claim(believed, || format!("{who:?} {off}: {what}, twin: {}", twin.tell()));
            }
        }
    }
    findings.settle();
}

#[test]
fn home_under_another_mount_is_home() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for dir in ["again", "home/project", "home/.config", "home/.config/confine", "home/.ssh"] {
            scratch.dir(dir);
        }
        scratch.file("home/.ssh/id", "the key\n");
        let root = scratch.root().display().to_string();
        let run = |from: &str, options: &[&str]| {
            let mounts = format!("mount --bind {root}/{from} {root}/again");
            let run = with_etc(Run::confined(&scratch), &[], &mounts);
            as_who(&scratch, run).options(options).shell(format!("cat {root}/again/.ssh/id; echo ran"))
        };
        let again = format!("{root}/again");
        for (from, options, words) in [
            ("home", ["--rw", &again], "too broad"),
            ("home", ["-w", &again], "too broad"),
            ("home/.config", ["--rw", &again], "where policy is read from"),
            ("home/.config/confine", ["--rw", &again], "where policy is read from"),
            ("home", ["--rw", &format!("{again}/.config")], "where policy is read from"),
        ] {
            let outcome = run(from, &options);
            findings.claim(outcome.refused(&[words]), || format!("{who:?}: {options:?}: {}", outcome.tell()));
        }
        for (from, options) in [
            ("home", ["--ro", &again]),
            ("home/project", ["--rw", &again]),
            ("home", ["--rw", &format!("{again}/project")]),
        ] {
            let twin = run(from, &options);
            findings.claim(twin.out == "ran\n", || format!("{who:?}: {options:?}: {}", twin.tell()));
        }
    }
    findings.settle();
}

#[test]
fn what_is_shown_to_nobody_is_not_found_by_a_link_of_the_commands() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for dir in ["w/real", "vault"] {
            scratch.dir(dir);
            scratch.file(&format!("{dir}/key"), "the key\n");
        }
        scratch.link("real", "w/current");
        scratch.link("w/real", "beside");
        scratch.link("nowhere", "dangling");
        let root = scratch.root().display().to_string();
        let run = |named: &str| {
            let system = format!("never-visible = [\"{root}/{named}\"]\n");
            let run = with_etc(Run::confined(&scratch), &[("policy.toml", &system)], "");
            as_who(&scratch, run).shell("cat real/key; echo ran")
        };
        for target in ["real", "nowhere", "current"] {
            fs::remove_file(scratch.path("w/current")).unwrap();
            scratch.link(target, "w/current");
            let outcome = run("w/current/key");
            let told = outcome.refused(&["is named through the link", "w/current"]);
            findings.claim(told, || format!("{who:?}: to {target}: {}", outcome.tell()));
        }
        for (named, out) in [
            ("w/real", "ran\n"),
            ("beside", "ran\n"),
            ("nothing", "the key\nran\n"),
            ("dangling/key", "the key\nran\n"),
            ("vault", "the key\nran\n"),
        ] {
            let twin = run(named);
            findings.claim(twin.out == out, || format!("{who:?}: {named}: {}", twin.tell()));
        }
    }
    findings.settle();
}

#[test]
fn what_is_shown_to_nobody_is_no_environment_file() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        scratch.dir("vault");
        let file = scratch.file("vault/env", "A=secret\n");
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let run = |system: &str| {
            let run = with_etc(Run::confined(&scratch), &[("policy.toml", system)], "");
            as_who(&scratch, run).option("--env-file").option(&file).shell("echo $A")
        };
        let outcome = run(&format!("never-visible = [\"{}/vault\"]\n", scratch.root().display()));
        assert!(outcome.refused(&["--env-file", "shown to nobody"]), "{who:?}: {}", outcome.tell());
        let twin = run("# nothing\n");
        assert_eq!(twin.out, "secret\n", "{who:?}: {}", twin.tell());
    }
}

#[test]
fn a_private_home_below_what_is_shown_to_nobody_stays() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let elsewhere = Scratch::new(who);
        scratch.dir("home/.cargo");
        scratch.file("home/.cargo/key", "secret\n");
        scratch.file("home/.gitconfig", "[user]\n\tname = secret\n");
        scratch.file("secret", "secret\n");
        let root = scratch.root().display().to_string();
        for option in
            [&[][..], &["--ro", "/"], &["--namespaces", "off"], &["--namespaces", "off", "--ro", "/"]]
        {
            let run = |system: &str| {
                let run = with_etc(Run::bare(&scratch), &[("policy.toml", system)], "");
                let run =
                    as_who(&scratch, run).cwd(elsewhere.workspace()).options(["-w", "."]).options(option);
                run.shell(format!("echo kept > ~/f; cat ~/f; cat {root}/secret {root}/home/.ssh/id {root}/home/.cargo/key {root}/home/.gitconfig; ls {root}; echo ran"))
            };
            let outcome = run(&format!("never-visible = [\"{root}\"]\n"));
            let right = outcome.out.starts_with("kept\n")
                && outcome.out.ends_with("ran\n")
                && !outcome.out.contains("secret")
                && outcome.ok();
            findings.claim(right, || format!("{who:?}: {option:?}: {}", outcome.tell()));
            let twin = run("# nothing\n");
            findings.claim(twin.out.contains("secret\n"), || format!("{who:?}: {option:?}: {}", twin.tell()));
        }
        assert!(!scratch.path("home/f").exists());
    }
    findings.settle();
}

#[test]
fn inside_a_boundary_the_administrators_line_still_holds() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let confine = scratch.workspace().join("confine");
        copy(&scratch.confine(), &confine);
        scratch.give(&confine);
        let run = |options: &str| {
            let run = with_etc(Run::confined(&scratch), &[("policy.toml", LINE)], "");
            as_who(&scratch, run).shell(format!("./confine -w . {options} -- echo inner"))
        };
        let outcome = run("--waive alias-free");
        findings.claim(outcome.refused(&["must always hold"]), || format!("{who:?}: {}", outcome.tell()));
        let twin = run("");
        findings.claim(twin.out == "inner\n", || format!("{who:?}: {}", twin.tell()));
    }
    findings.settle();
}

#[test]
fn what_is_shown_to_nobody_is_not_seen_where_state_keeps_it() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let state = scratch.path("home/state").display().to_string();
        let run = |system: &str, script: &str| {
            let run = with_etc(Run::confined(&scratch), &[("policy.toml", system)], "");
            as_who(&scratch, run).options(["--state", &state]).shell(script)
        };
        let look = "cat ~/other; cat ~/token";
        assert!(run("# nothing\n", "echo token > ~/token; echo other > ~/other").ok());
        let outcome = run(&format!("never-visible = [\"{state}/home/token\"]\n"), look);
        findings.claim(outcome.out == "other\n", || format!("{who:?}: {}", outcome.tell()));
        let outcome = run(&format!("never-visible = [\"{state}/home\"]\n"), look);
        findings.claim(outcome.refused(&["shown to nobody"]), || format!("{who:?}: {}", outcome.tell()));
        let twin = run("# nothing\n", look);
        findings.claim(twin.out == "other\ntoken\n", || format!("{who:?}: {}", twin.tell()));
    }
    findings.settle();
}

#[test]
fn what_is_shown_to_nobody_is_not_copied_either() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        scratch.dir("home/dotfiles");
        scratch.file("home/dotfiles/gitconfig", "[user]\n\tname = Somebody\n");
        scratch.link("dotfiles/gitconfig", "home/.gitconfig");
        let run = |system: &str| {
            let run = with_etc(Run::confined(&scratch), &[("policy.toml", system)], "");
            as_who(&scratch, run).shell("git config user.name; echo ran")
        };
        let outcome = run(&format!("never-visible = [\"{}\"]\n", scratch.path("home/dotfiles").display()));
        findings.claim(outcome.out == "ran\n", || format!("{who:?}: {}", outcome.tell()));
        let twin = run("# nothing\n");
        findings.claim(twin.out == "Somebody\nran\n", || format!("{who:?}: {}", twin.tell()));
    }
    findings.settle();
}

#[test]
fn what_is_hidden_takes_along_what_tables_show_below_it_at_another_mount() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for dir in ["data", "data/.cargo", "data/.cargo/registry"] {
            scratch.dir(dir);
        }
        scratch.file("data/.cargo/registry/crate", "seen\n");
        let root = scratch.root().display().to_string();
        let run = |options: &[&str]| {
            let mounts = format!("mount --bind {root}/data {root}/home");
            let run = with_etc(Run::confined(&scratch), &[], &mounts);
            as_who(&scratch, run).options(options).shell("cat ~/.cargo/registry/crate; echo ran")
        };
        for hidden in ["data", "data/.cargo", "home/.cargo"] {
            let outcome = run(&["--hide", &format!("{root}/{hidden}")]);
            findings.claim(outcome.out == "ran\n", || format!("{who:?} {hidden}: {}", outcome.tell()));
        }
        let twin = run(&[]);
        findings.claim(twin.out == "seen\nran\n", || format!("{who:?}: {}", twin.tell()));
    }
    findings.settle();
}
