//! What the tests of real programs share: what has to be installed, who has a name, and one way to run a script.
//!
//! A program that is missing is a failure which names its package: nothing is left out silently.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::common::{EVERYONE, Run, Scratch, USER, Who};

/// Programs and the packages of Debian and Ubuntu that bring them.
const PACKAGES: &[(&str, &str)] = &[
    ("cargo", "rustup, from https://rustup.rs"),
    ("curl", "curl"),
    ("expect", "expect"),
    ("gcc", "gcc libc6-dev"),
    ("gdb", "gdb"),
    ("git", "git"),
    ("go", "golang-go"),
    ("make", "make"),
    ("node", "nodejs"),
    ("npm", "npm"),
    ("openssl", "openssl"),
    ("pre-commit", "pre-commit"),
    ("psql", "postgresql"),
    ("redis-server", "redis-server"),
    ("rsync", "rsync"),
    ("script", "bsdutils (Debian), bsdextrautils"),
    ("setpriv", "util-linux"),
    ("ssh", "openssh-client"),
    ("strace", "strace"),
    ("tar", "tar"),
    ("tmux", "tmux"),
    ("zsh", "zsh"),
    ("/usr/bin/python3", "python3 python3-venv"),
    ("/usr/lib/python3/dist-packages/pytest", "python3-pytest"),
];

/// Fails with the package's name when one of the programs is not there.
pub fn need(programs: &[&str]) {
    for program in programs {
        let package = PACKAGES.iter().find(|(name, _)| name == program).map(|(_, package)| *package);
        let package = package.unwrap_or_else(|| panic!("{program} is not in the list of packages"));
        assert!(found(program), "{program} is missing: apt-get install {package}");
    }
}

fn found(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).exists())
}

/// Once for each identity.
pub fn for_everyone(test: impl Fn(&Scratch)) {
    for who in EVERYONE {
        test(&Scratch::new(who));
    }
}

/// The script works inside: status 0. Never run without a boundary, where it would meet the machine's own servers.
pub fn works(scratch: &Scratch, script: &str) -> String {
    works_as(scratch, |run| run, script)
}

/// The same with more options or variables.
pub fn works_as(scratch: &Scratch, with: impl Fn(Run) -> Run, script: &str) -> String {
    let script = format!("set -eu -o pipefail\n{script}");
    let outcome = with(Run::confined(scratch)).shell(&script);
    assert!(outcome.ok(), "{:?}: {}", scratch.who, outcome.tell());
    outcome.out
}

/// Gives the identity an entry in the password file that the command sees: initdb and ssh insist on one. In a mount
/// namespace of this run alone; the machine's own file is never touched.
pub fn named(scratch: &Scratch, run: Run) -> Run {
    let home = scratch.home();
    let entry = format!(
        "root:x:0:0:root:{0}:/bin/bash\ntester:x:{USER}:{USER}:Tester:{0}:/bin/bash\n",
        home.display()
    );
    let passwd = scratch.file("passwd", &entry);
    bound(scratch.who, run, &[(&passwd, Path::new("/etc/passwd"))])
}

/// The run sees one path at another, in a mount namespace of its own.
pub fn bound(who: Who, run: Run, mounts: &[(&Path, &Path)]) -> Run {
    let mut script = String::new();
    let mut words: Vec<PathBuf> = vec!["unshare".into(), "--mount".into(), "sh".into(), "-c".into()];
    for number in 0..mounts.len() {
        script +=
            &format!("mount --bind \"${{{}}}\" \"${{{}}}\" || exit 99; ", 2 * number + 1, 2 * number + 2);
    }
    script += &format!("shift {}; exec \"$@\"", 2 * mounts.len());
    words.extend([script.into(), "sh".into()]);
    words.extend(mounts.iter().flat_map(|(from, to)| [from.to_path_buf(), to.to_path_buf()]));
    if who != Who::Root {
        let id = who.id().to_string();
        words.extend(["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"].map(PathBuf::from));
    }
    run.by(Who::Root).under(words)
}

/// An expect script that drives a confined command from its terminal. `$confine` is the start of the line.
pub fn at_terminal(scratch: &Scratch, script: &str) {
    need(&["expect"]);
    let prelude = format!(
        "set timeout 10\nlog_user 1\n\
         proc fails {{what}} {{ puts \"FAILED: $what\"; exit 1 }}\n\
         proc see {{text}} {{ expect -re $text return timeout {{ fails $text }} eof {{ fails \"$text, end\" }} }}\n\
         proc ends {{code}} {{ expect eof; set got [lindex [wait] 3]; if {{$got != $code}} {{ fails \"status $got\" }} }}\n\
         set confine [list {{{}}} --workspace {{{}}} --]\n",
        scratch.confine().display(),
        scratch.workspace().display()
    );
    let outcome = Run::plain(scratch)
        .env("TERM", "xterm")
        .command([OsStr::new("expect"), OsStr::new("-c"), OsStr::new(&format!("{prelude}{script}"))])
        .run();
    assert!(outcome.ok(), "{:?}: {}", scratch.who, outcome.tell());
}
