//! What one command leaves in a workspace does not widen what the next one may do.

mod common;

use std::fs;
use std::path::Path;

use common::*;

/// Runs `first`, then `second`, with the same options and variables, for both identities, and judges what the second
/// said and what stands outside.
#[track_caller]
fn never_widens(
    name: &str,
    prepare: impl Fn(&Scratch),
    arguments: impl Fn(&Scratch) -> Vec<String>,
    variables: impl Fn(&Scratch) -> Vec<(String, String)>,
    first: impl Fn(&Scratch) -> String,
    second: impl Fn(&Scratch) -> String,
) {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        scratch.dir("outside/victim");
        scratch.file("outside/victim/file", "outside secret\n");
        scratch.file("home/key", "outside secret\n");
        prepare(&scratch);
        let before = Snapshot::of(&scratch.outside());
        let run = |script: String| {
            let mut run = Run::confined(&scratch).options(arguments(&scratch));
            for (name, value) in variables(&scratch) {
                run = run.env(name, value);
            }
            run.shell(script)
        };
        let planted = run(first(&scratch));
        let outcome = run(second(&scratch));
        let changed = before.difference(&Snapshot::of(&scratch.outside()));
        findings.claim(planted.ok(), || format!("{who:?}: {name}: nothing was planted: {}", planted.tell()));
        findings.claim(changed.is_none() && !outcome.out.contains("outside secret"), || {
            format!("{who:?}: {name}: {changed:?}; first {}; then {}", planted.tell(), outcome.tell())
        });
    }
    findings.settle();
}

fn outside(scratch: &Scratch) -> String {
    scratch.outside().join("victim").display().to_string()
}

#[test]
fn a_link_planted_where_an_option_points_is_not_followed() {
    for option in ["--rw", "--workspace", "--ro", "--seal"] {
        for parent in ["a", "."] {
            never_widens(
                &format!("{option} {parent}/out"),
                |scratch| {
                    scratch.dir("w/a/out");
                    scratch.dir("w/out");
                },
                |scratch| {
                    vec![
                        option.to_owned(),
                        scratch.workspace().join(parent).join("out").display().to_string(),
                    ]
                },
                |_| Vec::new(),
                |scratch| {
                    let victim = outside(scratch);
                    format!(
                        "(mv a a2 && mkdir a && ln -s {victim} a/out); rm -rf out; ln -sfn {victim} out; true"
                    )
                },
                |_| "cat a/out/file out/file; echo W >> a/out/file; echo W > out/new; true".to_owned(),
            );
        }
    }
}

#[test]
fn a_link_planted_where_a_variable_points_shows_nothing() {
    let names =
        ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "CARGO_HOME", "PIP_CACHE_DIR", "PYENV_ROOT", "GOMODCACHE"];
    for name in names {
        for target in ["victim", "victim/file"] {
            never_widens(
                &format!("{name} to {target}"),
                |scratch| {
                    scratch.dir("w/named");
                },
                |_| Vec::new(),
                |scratch| vec![(name.to_owned(), scratch.workspace().join("named/it").display().to_string())],
                |scratch| {
                    format!(
                        "rm -rf named; mkdir named; ln -s {}/{target} named/it",
                        scratch.outside().display()
                    )
                },
                |_| "cat named/it named/it/file; true".to_owned(),
            );
        }
    }
}

#[test]
fn a_link_planted_where_path_points_shows_nothing() {
    never_widens(
        "PATH",
        |scratch| {
            scratch.dir("w/tools");
        },
        |_| Vec::new(),
        |scratch| {
            let tools = scratch.workspace().join("tools");
            vec![("PATH".to_owned(), format!("{}:/usr/bin:/bin", tools.display()))]
        },
        |scratch| format!("rm -rf tools; ln -s {} tools", outside(scratch)),
        |scratch| format!("cat tools/file {}/file; true", outside(scratch)),
    );
}

/// The workspace of the earlier command is none of the later one's.
#[test]
fn a_link_planted_in_another_project_on_path_shows_nothing() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        for (bin, plant) in [
            ("home/a/node_modules/.bin", "ln -s @/home/secret/file node_modules/.bin/tool"),
            ("home/a/bin", "ln -s @/home/secret/file bin/tool"),
            ("home/a/bin", "rmdir bin; ln -s @/home/secret bin"),
            ("home/a/bin", "echo > bin/plain; rm real; ln -s @/home/secret/file real"),
            ("a/bin", "ln -s @/home/secret/file bin/tool"),
        ] {
            let scratch = Scratch::new(who);
            scratch.dir(bin);
            scratch.dir("home/.local");
            scratch.dir("home/.local/bin");
            let first = scratch.path(bin.split_once("a/").map_or("", |(above, _)| above)).join("a");
            scratch.give(&first);
            scratch.file(first.join("real").to_str().unwrap(), "a program\n");
            scratch.link(first.join("real"), "home/.local/bin/linked");
            scratch.dir("home/secret");
            scratch.file("home/secret/file", "outside secret\n");
            let at = scratch.root().display().to_string();
            let path = |run: Run| {
                let bin = scratch.path(bin);
                let own = scratch.path("home/.local/bin");
                run.env("PATH", format!("{}:{}:/usr/bin:/bin", bin.display(), own.display()))
            };
            let planted =
                Run::bare(&scratch).option("-w").option(&first).cwd(&first).shell(plant.replace('@', &at));
            let script = format!("cat {at}/home/secret/file; true");
            let outcome = path(Run::confined(&scratch)).shell(&script);
            findings.claim(planted.ok() && !outcome.out.contains("outside secret"), || {
                format!("{who:?}: {plant}: first {}; then {}", planted.tell(), outcome.tell())
            });
            let twin = Run::plain(&scratch).shell(&script);
            findings.claim(twin.out.contains("outside secret"), || twin.tell());
        }
    }
    findings.settle();
}

#[test]
fn links_of_installed_programs_are_followed() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for dir in [
            "home/.local",
            "home/.local/bin",
            "home/apps",
            "home/apps/tool",
            "home/apps/tool/bin",
            "home/node",
            "home/node/bin",
            "home/node/lib",
            "home/p",
            "home/p/node_modules",
            "home/p/node_modules/.bin",
            "home/p/node_modules/pkg",
        ] {
            scratch.dir(dir);
        }
        scratch.script("home/apps/tool/bin/tool", "#!/bin/sh\necho ran $0\n");
        scratch.link("../../apps/tool/bin/tool", "home/.local/bin/tool");
        scratch.script("home/node/lib/npm", "#!/bin/sh\necho ran $0\n");
        scratch.link("../lib/npm", "home/node/bin/npm");
        scratch.link("../../node/bin/npm", "home/.local/bin/npm2");
        scratch.script("home/p/node_modules/pkg/cli", "#!/bin/sh\necho ran $0\n");
        scratch.link("../pkg/cli", "home/p/node_modules/.bin/cli");
        let bins = [".local/bin", "node/bin", "p/node_modules/.bin"];
        let path: Vec<String> =
            bins.iter().map(|bin| scratch.path("home").join(bin).display().to_string()).collect();
        for tool in ["tool", "npm", "npm2", "cli"] {
            let run = Run::confined(&scratch).env("PATH", format!("{}:/usr/bin:/bin", path.join(":")));
            let outcome = run.command([tool]).run();
            findings.claim(outcome.ok() && outcome.out.starts_with("ran "), || {
                format!("{who:?}: {tool}: {}", outcome.tell())
            });
        }
    }
    findings.settle();
}

#[test]
fn settings_that_lead_into_the_workspace_bring_nothing_out_of_it() {
    never_widens(
        ".gitconfig",
        |scratch| {
            scratch.dir("w/dot");
            scratch.file("w/dot/gitconfig", "[user]\n");
            scratch.link("../w/dot/gitconfig", "home/.gitconfig");
        },
        |_| Vec::new(),
        |_| Vec::new(),
        |scratch| format!("ln -sf {}/file dot/gitconfig", outside(scratch)),
        |_| "cat ~/.gitconfig; true".to_owned(),
    );
}

#[test]
fn a_directory_dressed_as_a_repository_is_not_shown() {
    for dressed in [
        "mkdir -p worktrees/sub refs objects; echo ref: refs/heads/x > HEAD; \
         echo gitdir: $PWD/worktrees/sub > sub/.git; echo $PWD/sub/.git > worktrees/sub/gitdir; \
         echo ../.. > worktrees/sub/commondir",
        "mkdir -p refs objects; echo ref: refs/heads/x > HEAD; printf '[core]\\n worktree = %s/sub\\n' $PWD > config; \
         echo gitdir: $PWD > sub/.git",
    ] {
        let mut findings = Findings::default();
        for who in EVERYONE {
            let scratch = Scratch::new(who);
            scratch.dir("w/sub");
            let planted = Run::confined(&scratch).shell(dressed);
            scratch.file("w/later", "outside secret\n");
            let sub = scratch.workspace().join("sub");
            let outcome = Run::bare(&scratch).option("-w").option(&sub).cwd(&sub).shell("cat ../later; true");
            findings.claim(planted.ok() && !outcome.out.contains("outside secret"), || {
                format!("{who:?}: {dressed}: {}", outcome.tell())
            });
        }
        findings.settle();
    }
}

#[test]
fn what_is_narrowed_or_hidden_cannot_be_moved_away() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for dir in ["w/a", "w/a/b", "w/r", "w/r/q"] {
            scratch.dir(dir);
        }
        scratch.file("w/a/b/secret", "hidden text\n");
        scratch.file("w/r/q/file", "as it was\n");
        let run = |script: &str| {
            let run = Run::confined(&scratch).options(["--hide", "a/b/secret", "--ro", "r/q/file"]);
            run.cwd(scratch.workspace()).shell(script)
        };
        let moved =
            run("mv a a2; mv a/b a/c; mv r r2; mv r/q r/s; mkdir -p a/b r/q; echo x > r/q/file; true");
        let outcome =
            run("cat a/b/secret a2/b/secret a/c/secret; echo x >> r/q/file; echo x >> r2/q/file; true");
        let text = fs::read_to_string(scratch.path("w/r/q/file")).unwrap();
        findings.claim(!outcome.out.contains("hidden text") && text == "as it was\n", || {
            format!("{who:?}: {text:?}; first {}; then {}", moved.tell(), outcome.tell())
        });
        let twin =
            run("mkdir other && mv other moved && echo x > a/b/new && mv a/b/new a/new && cat r/q/file");
        findings.claim(twin.ok() && twin.out == "as it was\n", || format!("{who:?}: {}", twin.tell()));
    }
    findings.settle();
}

#[test]
fn a_fifo_where_git_looks_does_not_hold_the_start_up() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let git_dir = scratch.path("w/gd.git");
        scratch.dir("w/gd.git");
        scratch.dir("w/sub");
        for name in ["gitdir", "config", "HEAD"] {
            let fifo = git_dir.join(name);
            rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o644.into()).unwrap();
            scratch.give(&fifo);
        }
        scratch.file("w/sub/.git", &format!("gitdir: {}\n", git_dir.display()));
        let sub: &Path = &scratch.path("w/sub");
        let run = Run::bare(&scratch).option("-w").option(sub).cwd(sub);
        let outcome = run.under(["timeout", "10"]).shell("echo started");
        findings.claim(outcome.out == "started\n", || format!("{who:?}: {}", outcome.tell()));
    }
    findings.settle();
}

#[test]
fn an_environment_file_is_not_followed_out_of_the_workspace() {
    never_widens(
        "--env-file",
        |scratch| {
            for file in ["w/.env", "outside/prod.env"] {
                let text = if file == "w/.env" { "A=1\n" } else { "SECRET=outside secret\n" };
                let path = scratch.file(file, text);
                fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
            }
        },
        |scratch| vec!["--env-file".to_owned(), scratch.workspace().join(".env").display().to_string()],
        |_| Vec::new(),
        |scratch| format!("echo $A; ln -sfn {}/prod.env .env", scratch.outside().display()),
        |_| "env".to_owned(),
    );
}

#[test]
fn an_alias_of_what_is_hidden_is_not_read() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        scratch.dir("w/hid");
        scratch.file("w/hid/secret", "hidden text\n");
        let first =
            Run::confined(&scratch).option("--hardlinks").option("protect").shell("ln hid/secret alias");
        let run = Run::confined(&scratch).options(["--hardlinks", "protect", "--hide", "hid"]);
        let outcome = run.cwd(scratch.workspace()).shell("cat alias hid/secret; echo ran");
        findings.claim(first.ok() && outcome.out == "ran\n", || format!("{who:?}: {}", outcome.tell()));
        let twin = Run::confined(&scratch).option("--hardlinks").option("protect").shell("cat alias");
        findings.claim(twin.out == "hidden text\n", || format!("{who:?}: {}", twin.tell()));
    }
    findings.settle();
}

#[test]
fn the_hint_about_a_planted_link_says_what_it_leads_to() {
    for (to, careful) in [("home/.ssh/id", true), ("outside/file", false)] {
        let scratch = Scratch::new(Who::User);
        scratch.dir("home/.ssh");
        let target = scratch.file(to, "");
        std::os::unix::fs::symlink(&target, scratch.workspace().join("l")).unwrap();
        let outcome =
            Run::confined(&scratch).option("--rw").option(scratch.workspace().join("l")).shell("true");
        assert_eq!(outcome.code(), Some(125), "{}", outcome.tell());
        assert!(outcome.err.contains(&format!("--rw {}`", target.display())), "{}", outcome.tell());
        assert_eq!(outcome.err.contains("# careful"), careful, "{}", outcome.tell());
    }
}

#[test]
fn what_lies_deeper_than_a_path_can_say_is_refused_by_run_and_plan_alike() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let plant =
            "import os\nfor i in range(900): os.mkdir('deep'); os.chdir('deep')\nos.makedirs('.git/hooks')";
        assert!(Run::confined(&scratch).command(["python3", "-c", plant]).run().ok());
        let words: Vec<String> = ["-w", ".", "--", "true"].map(str::to_owned).into();
        let confine = scratch.confine().display().to_string();
        let run = Run::plain(&scratch).command([confine.clone()].iter().chain(&words)).run();
        let explain =
            Run::plain(&scratch).command([confine.clone(), "explain".to_owned()].iter().chain(&words)).run();
        for outcome in [&run, &explain] {
            assert_eq!(outcome.code(), Some(125), "{}", outcome.tell());
            assert!(
                outcome.err.contains("too deep to be guarded") && outcome.err.len() < 1000,
                "{}",
                outcome.tell()
            );
        }
        let free = Run::confined(&scratch).options(["--git", "free"]).shell("rm -r deep");
        assert!(free.ok(), "{}", free.tell());
        assert!(Run::confined(&scratch).shell("true").ok());
    }
}
