//! What `--state` keeps: written by one command, there for the next, and in all that no way out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use common::*;

/// A workspace, a cache of the user's and a state directory that is not there yet.
fn scratch(who: Who) -> (Scratch, PathBuf) {
    let scratch = Scratch::new(who);
    scratch.dir("home/.cargo");
    scratch.dir("home/.cargo/registry");
    scratch.file("home/.cargo/registry/crate", "host\n");
    let state = scratch.path("home/state");
    (scratch, state)
}

fn kept(scratch: &Scratch, state: &PathBuf) -> Run {
    Run::confined(scratch).option("--state").option(state)
}

#[test]
fn an_alias_of_what_is_kept_is_not_written_by_its_name_inside() {
    for who in EVERYONE {
        let (scratch, state) = scratch(who);
        let first = kept(&scratch, &state).shell("echo mine > ~/kept; echo mine > ~/.cargo/registry/new");
        assert!(first.ok(), "{}", first.tell());
        let write =
            "echo other > ~/kept; echo other > ~/.cargo/registry/new; cat ~/kept ~/.cargo/registry/new";
        let twin = kept(&scratch, &state).options(["--hardlinks", "protect"]).shell(write);
        assert_eq!(twin.out, "other\nother\n", "{who:?}: {}", twin.tell());
        // Root's layers are not kept.
        let upper =
            fs::read_dir(state.join("layers")).ok().map(|mut found| found.next().unwrap().unwrap().path());
        assert_eq!(upper.is_some(), who == Who::User);
        let mut aliases = vec![(state.join("home/kept"), scratch.path("outside/home"))];
        aliases.extend(upper.map(|upper| (upper.join("upper/registry/new"), scratch.path("outside/layer"))));
        for (name, alias) in &aliases {
            fs::hard_link(name, alias).unwrap();
        }
        let hostile = "echo hostile > ~/kept; echo hostile > ~/.cargo/registry/new";
        let refused = kept(&scratch, &state).shell(hostile);
        assert!(refused.refused(&["outside the workspace"]), "{who:?}: {}", refused.tell());
        let protected = kept(&scratch, &state).options(["--hardlinks", "protect"]).shell(hostile);
        assert_ne!(protected.code(), Some(125), "{who:?}: {}", protected.tell());
        for (_, alias) in &aliases {
            assert_eq!(fs::read_to_string(alias).unwrap(), "other\n", "{who:?}: {alias:?}");
        }
    }
}

#[test]
fn a_socket_of_another_program_in_what_is_kept_is_not_reached() {
    for who in EVERYONE {
        let (scratch, state) = scratch(who);
        assert!(kept(&scratch, &state).shell("true").ok());
        let socket = state.join("home/socket");
        let server = UnixListener::bind(&socket).unwrap();
        server.set_nonblocking(true).unwrap();
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o777)).unwrap();
        let inside = scratch.path("home/socket").display().to_string();
        let outcome = kept(&scratch, &state).attack(&scratch, ["unix-stream", &inside]);
        assert!(outcome.denied(), "{who:?}: {}", outcome.tell());
        assert!(server.accept().is_err(), "{who:?}: it was reached");
        // The same without a boundary, and a socket of the command's own.
        let twin = Run::plain(&scratch).attack(&scratch, ["unix-stream", socket.to_str().unwrap()]);
        assert!(twin.ok() && server.accept().is_ok(), "{who:?}: {}", twin.tell());
        let own = scratch.path("home/own").display().to_string();
        let twin = kept(&scratch, &state).attack(&scratch, ["unix-self", &own]);
        assert!(twin.ok(), "{who:?}: {}", twin.tell());
    }
}

#[test]
fn what_is_hidden_of_what_is_kept_is_not_seen_by_its_name_inside() {
    for who in EVERYONE {
        let (scratch, state) = scratch(who);
        assert!(kept(&scratch, &state).shell("echo token > ~/token; echo other > ~/other").ok());
        let look = "cat ~/other; cat ~/token";
        let outcome = kept(&scratch, &state).option("--hide").option(state.join("home/token")).shell(look);
        assert_eq!(outcome.out, "other\n", "{who:?}: {}", outcome.tell());
        assert_eq!(kept(&scratch, &state).shell(look).out, "other\ntoken\n");
        for whole in [state.clone(), state.join("home")] {
            let outcome = kept(&scratch, &state).option("--hide").option(&whole).shell(look);
            assert!(outcome.refused(&["would hide what --state keeps"]), "{who:?}: {}", outcome.tell());
        }
    }
}

#[test]
fn a_link_of_the_commands_does_not_say_what_its_home_is() {
    for who in EVERYONE {
        let (scratch, state) = scratch(who);
        let victim = scratch.dir("outside/victim");
        fs::set_permissions(&victim, fs::Permissions::from_mode(0o700)).unwrap();
        scratch.dir("outside/victim/home");
        scratch.file("outside/victim/home/secret", "secret\n");
        let planted = Run::confined(&scratch).shell("ln -s ../outside/victim link; ln -s ../outside base");
        assert!(planted.ok(), "{}", planted.tell());
        let hostile = "cat ~/secret; echo hostile > ~/secret";
        for named in ["w/link", "w/base/victim", "w/base/fresh"] {
            let outcome = kept(&scratch, &scratch.path(named)).shell(hostile);
            assert!(outcome.refused(&["--state", "follows the link"]), "{who:?} {named}: {}", outcome.tell());
        }
        symlink(scratch.outside(), scratch.path("w/confine")).unwrap();
        let auto = Run::confined(&scratch)
            .env("XDG_STATE_HOME", scratch.workspace())
            .options(["--state", "auto"])
            .shell(hostile);
        assert!(auto.refused(&["--state"]), "{who:?}: {}", auto.tell());
        assert_eq!(fs::read_to_string(victim.join("home/secret")).unwrap(), "secret\n");
        assert_eq!(fs::read_dir(scratch.outside()).unwrap().count(), 1, "{who:?}: something was made");
        // A link that the user has made elsewhere is followed.
        scratch.dir("home/real");
        fs::set_permissions(scratch.path("home/real"), fs::Permissions::from_mode(0o700)).unwrap();
        scratch.link("real", "home/linked");
        let twin = kept(&scratch, &scratch.path("home/linked")).shell("echo x > ~/file");
        assert!(twin.ok(), "{who:?}: {}", twin.tell());
        assert!(scratch.path("home/real/home/file").exists() && !state.exists());
        let twin =
            kept(&scratch, &scratch.path("home/linked")).option("--ro").option(scratch.home()).shell("true");
        assert!(twin.ok(), "{who:?}: {}", twin.tell());
    }
}

#[test]
fn what_an_earlier_command_has_put_in_the_way_is_covered_or_told() {
    let (scratch, state) = scratch(Who::User);
    let first = kept(&scratch, &state)
        .shell("mkdir ~/.cargo/credentials.toml; rm -r ~/.cargo/registry; ln -s /etc ~/.cargo/registry");
    assert!(first.ok(), "{}", first.tell());
    scratch.file("home/.cargo/credentials.toml", "token\n");
    let second =
        kept(&scratch, &state).shell("ls ~/.cargo/credentials.toml; cat ~/.cargo/credentials.toml; echo ran");
    assert!(second.ok() && second.out == "ran\n", "{}", second.tell());
    let told =
        kept(&scratch, &state).option("--ro").option(scratch.path("home/.cargo/registry")).shell("true");
    assert!(told.refused(&["registry", "starts afresh"]), "{}", told.tell());
    // A state in what every command sees would be no secret between them.
    let inside = scratch.path("home/.cargo/state");
    let refused = kept(&scratch, &inside).shell("true");
    assert!(refused.refused(&["which every command sees"]) && !inside.exists(), "{}", refused.tell());
}
