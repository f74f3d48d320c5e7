//! tests/hosts/host.c, and how a command is run on such a host.

#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::common::{self, Run, Scratch, Who};

/// tests/hosts/host.c, compiled once for this test program.
fn host_program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("host-{}", std::process::id()));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts/host.c");
        let status = Command::new("gcc")
            .args(["-O1", "-static", "-Wall", "-Wextra", "-o"])
            .arg(&built)
            .arg(source)
            .status()
            .expect("gcc is needed: apt-get install gcc libc6-dev");
        assert!(status.success(), "tests/hosts/host.c does not compile");
        built
    })
}

pub fn scratch(who: Who) -> Scratch {
    let scratch = Scratch::new(who);
    common::scratch::copy(host_program(), &scratch.path("bin/host"));
    scratch.dir("states");
    scratch
}

/// A user without user namespaces; root as in a container.
pub fn kind(who: Who) -> &'static str {
    match who {
        Who::Root => "container-root",
        Who::User => "no-userns",
    }
}

pub fn on(scratch: &Scratch, kind: &str, run: Run) -> Run {
    run.under([scratch.path("bin/host").as_os_str(), kind.as_ref()])
}
