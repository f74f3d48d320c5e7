//! Where things are inside: HOME in its odd cases, workspaces that are links, several of them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod programs;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use common::Run;
use programs::{for_everyone, need};

#[test]
fn an_odd_home_becomes_a_private_one() {
    for_everyone(|scratch| {
        let script = "echo x > ~/made && cat ~/made && echo $HOME";
        for (home, wanted) in [
            (None, "/tmp/home"),
            (Some(""), "/tmp/home"),
            (Some("relative"), "/tmp/home"),
            (Some("/"), "/tmp/home"),
            (Some("/usr"), "/tmp/home"),
            (Some("/nonexistent"), "/nonexistent"),
        ] {
            let run = Run::confined(scratch).without_env("HOME");
            let run = home.into_iter().fold(run, |run, home| run.env("HOME", home));
            let outcome = run.shell(script);
            assert_eq!(outcome.out, format!("x\n{wanted}\n"), "{home:?}: {}", outcome.tell());
            assert!(home.is_none_or(|home| !std::path::Path::new(home).join("made").exists()), "{home:?}");
        }
    });
}

#[test]
fn a_home_that_is_a_link_is_there_by_both_names() {
    for_everyone(|scratch| {
        let link = scratch.link("home", "link");
        let script = "echo x > ~/made; cat ~/made; cd ~ && pwd -P";
        let outcome = Run::confined(scratch).env("HOME", &link).shell(script);
        assert_eq!(outcome.out, format!("x\n{}\n", scratch.home().display()), "{}", outcome.tell());
        assert!(!scratch.path("home/made").exists(), "HOME was not private");
    });
}

#[test]
fn a_home_that_is_the_workspace_is_asked_for_and_then_the_workspace() {
    for_everyone(|scratch| {
        let at = || Run::confined(scratch).env("HOME", scratch.workspace());
        let refused = at().command(["true"]).run();
        assert!(refused.code() == Some(125) && refused.err.contains("broad-workspace"), "{}", refused.tell());
        let outcome = at().options(["--allow", "broad-workspace"]).shell("echo x > ~/made");
        assert!(outcome.ok() && scratch.path("w/made").exists(), "{}", outcome.tell());
    });
}

#[test]
fn a_workspace_that_was_named_by_a_link_is_there_by_both_names() {
    need(&["git"]);
    for_everyone(|scratch| {
        scratch.dir("links");
        let link = scratch.link("../w", "links/here");
        let run = || Run::bare(scratch).option("--workspace").option(&link).cwd(&link).env("PWD", &link);
        let outcome =
            run().shell("pwd; pwd -P; git init -q r; cd r; git rev-parse --show-toplevel; cd ..; rm -rf r");
        let (link, real) = (link.display(), scratch.workspace());
        let wanted = format!("{link}\n{0}\n{0}/r\n", real.display());
        assert_eq!(outcome.out, wanted, "{}", outcome.tell());
        let dot = Run::bare(scratch)
            .options(["--workspace", "."])
            .cwd(scratch.path("links/here"))
            .shell("pwd; touch made");
        assert!(dot.ok() && real.join("made").exists(), "{}", dot.tell());
    });
}

#[test]
fn several_workspaces_and_parts_with_other_access_stand_side_by_side() {
    need(&["git"]);
    for_everyone(|scratch| {
        let second = scratch.dir("second");
        scratch.dir("w/vendor");
        scratch.file("w/vendor/file", "kept\n");
        scratch.dir("w/secret");
        scratch.file("w/secret/file", "secret\n");
        scratch.dir("outside/read");
        scratch.file("outside/read/file", "readable\n");
        let script = "set -e; cat ../outside/read/file; cat vendor/file; ! cat secret/file; ! echo x > vendor/file
            ! echo x > ../outside/read/file; ls ../outside; echo moved > ../second/a; mv ../second/a b; cat b
            mkdir -p d/e; mv d ../second/; ln b ../second/link 2>/dev/null || echo 'no link'; cp -r vendor copy; rm -r copy";
        let outcome = Run::confined(scratch)
            .option("--workspace")
            .option(&second)
            .options(["--ro", "vendor", "--hide", "secret", "--ro", "../outside/read"])
            .shell(script);
        assert!(outcome.ok(), "{}", outcome.tell());
        assert_eq!(outcome.out, "readable\nkept\nread\nmoved\nno link\n", "{}", outcome.tell());
        assert!(second.join("d/e").is_dir() && !scratch.path("w/d").exists());
        assert_eq!(fs::read_to_string(scratch.path("w/vendor/file")).unwrap(), "kept\n");
    });
}

#[test]
fn paths_of_options_are_read_where_confine_was_started_and_chdir_is_where_the_command_starts() {
    for_everyone(|scratch| {
        scratch.dir("w/sub");
        let at = |options: [&str; 4]| {
            Run::bare(scratch).options(options).cwd(scratch.root()).shell("pwd; touch made")
        };
        let outcome = at(["--workspace", "w", "--chdir", "w/sub"]);
        assert_eq!(outcome.out, format!("{}\n", scratch.path("w/sub").display()), "{}", outcome.tell());
        assert!(scratch.path("w/sub/made").exists());
        let hidden = at(["--workspace", "w/sub", "--chdir", "outside"]);
        assert!(hidden.code() == Some(125) && hidden.err.contains("not visible"), "{}", hidden.tell());
        assert!(hidden.err.contains("`--chdir w/sub`"), "{}", hidden.tell());
    });
}

#[test]
fn the_hint_of_a_refused_path_can_be_followed() {
    for_everyone(|scratch| {
        scratch.file("outside/shown", "shown\n");
        fs::set_permissions(scratch.path("outside/shown"), fs::Permissions::from_mode(0o444)).unwrap();
        let at = |option: &str, path: &str| {
            Run::bare(scratch)
                .options(["--workspace", "w", option, path])
                .cwd(scratch.root())
                .options(["--chdir", "w"])
                .shell("cat ../outside/shown; echo kept > /tmp/file")
        };
        let shown = scratch.path("outside/shown").display().to_string();
        let refused = at("--rw", "outside/shown");
        let hint = format!("`--ro {shown}`");
        assert!(refused.code() == Some(125) && refused.err.contains(&hint), "{}", refused.tell());
        let twin = at("--ro", &shown);
        assert!(twin.ok() && twin.out == "shown\n", "{}", twin.tell());

        let refused = at("--state", "outside/deep/state");
        let hint = format!("hint: mkdir -p {}\n", scratch.path("outside/deep").display());
        assert!(refused.code() == Some(125) && refused.err.ends_with(&hint), "{}", refused.tell());
        scratch.dir("outside/deep");
        let twin = at("--state", "outside/deep/state");
        assert!(twin.code().is_some_and(|code| code != 125), "{}", twin.tell());
        assert!(scratch.path("outside/deep/state/tmp/file").exists());
    });
}
