//! tests/broker/*.c, and how it is run on a host without namespaces.

#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::common::{Outcome, Run, Scratch, Who, scratch::copy};

fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("broker-{}", std::process::id()));
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broker");
        let status = Command::new("gcc")
            .args(["-O1", "-static", "-pthread", "-Wall", "-Wextra", "-Wno-missing-field-initializers"])
            .args(["-Wno-unused-result", "-o"])
            .arg(&built)
            .args(["main.c", "metadata.c", "callers.c", "sockets.c"].map(|name| sources.join(name)))
            .status()
            .expect("gcc is needed: apt-get install gcc libc6-dev");
        assert!(status.success(), "tests/broker does not compile");
        built
    })
}

/// With the program in the workspace, as whatever a command builds.
pub fn scratch(who: Who) -> Scratch {
    let scratch = Scratch::new(who);
    let inside = scratch.path("w/broker");
    copy(program(), &inside);
    scratch.give(&inside);
    scratch
}

/// How a host comes to have no namespaces: it gives none, or none are wanted.
pub fn without_namespaces(scratch: &Scratch, run: Run, forced: bool) -> Run {
    if forced {
        run.under([scratch.attack().as_os_str(), "no-namespaces".as_ref()])
    } else {
        run.options(["--namespaces", "off"])
    }
}

pub fn confined(scratch: &Scratch) -> Run {
    without_namespaces(scratch, Run::confined(scratch), false)
}

pub fn operation(scratch: &Scratch, run: Run, words: &[&str]) -> Outcome {
    let program = scratch.path("w/broker");
    run.command(std::iter::once(program.to_str().unwrap()).chain(words.iter().copied())).run()
}
