//! What the tests of real clients share: where tests/clients/install has put them, and one way to run a client's script.
//!
//! A client runs outside, as what starts commands on behalf of a model does; confine is what it starts. One script holds
//! the cases of one client, and each case is a test.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod recipes;

use std::path::{Path, PathBuf};

use crate::common::{EVERYONE, Run, Scratch, Who};
use crate::programs::bound;
use crate::supervise::{mark, marked, send, within};

#[allow(unused_macros)]
/// A test for each case, named as the function in the script.
macro_rules! cases {
    ($script:literal: $($name:ident)*) => {
        crate::clients::cases! { $script in crate::clients::MODES => $($name)* }
    };
    ($script:literal in $modes:expr => $($name:ident)*) => { $(
        #[test]
        fn $name() {
            crate::clients::case($script, stringify!($name), &$modes);
        }
    )* };
}
#[allow(unused_imports)]
pub(crate) use cases;

/// In each, the same must hold for whoever starts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Ordinary,
    Strict,
    /// As in most containers: a parent stays, and the tree goes with it.
    NoNamespaces,
}

pub const MODES: [Mode; 3] = [Mode::Ordinary, Mode::Strict, Mode::NoNamespaces];

impl Mode {
    pub fn name(self) -> &'static str {
        match self {
            Mode::Ordinary => "ordinary",
            Mode::Strict => "strict",
            Mode::NoNamespaces => "no-namespaces",
        }
    }

    fn options(self) -> &'static [&'static str] {
        match self {
            Mode::Ordinary => &[],
            Mode::Strict => &["--strict"],
            Mode::NoNamespaces => &["--namespaces", "off"],
        }
    }
}

/// target/clients; CARGO_TARGET_TMPDIR is target/tmp.
fn installed() -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("clients");
    assert!(place.join("installed").exists(), "{} is missing: tests/clients/install", place.display());
    place
}

/// The clients' packages lie in the directory of the build, which not every identity can reach: they are seen in the
/// scratch directory, at `python`, `node`, and `mcp` for tool servers, in a mount namespace of this run.
pub fn with_packages(scratch: &Scratch, run: Run) -> Run {
    let place = installed();
    scratch.dir("mcp");
    let mounts = [("python", "python"), ("node", "node"), ("node/node_modules", "mcp/node_modules")];
    let mounts = mounts.map(|(from, to)| (place.join(from), scratch.dir(to)));
    let mounts: Vec<(&Path, &Path)> =
        mounts.iter().map(|(from, to)| (from.as_path(), to.as_path())).collect();
    bound(scratch.who, run, &mounts)
}

/// Runs one case of a script outside, with `CONFINE` as the beginning of every command that it starts, a JSON array.
/// Nothing with the mark may be left, unless the case says that it leaves something behind.
#[track_caller]
pub fn case(script: &str, name: &str, modes: &[Mode]) {
    for who in EVERYONE {
        for mode in modes {
            case_of(script, name, who, *mode);
        }
    }
}

#[track_caller]
fn case_of(script: &str, name: &str, who: Who, mode: Mode) {
    let scratch = Scratch::new(who);
    // A script uses what another one has.
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.contains("_cases.") {
            scratch.file(&format!("outside/{name}"), &std::fs::read_to_string(&path).unwrap());
        }
    }
    let file = scratch.path(&format!("outside/{script}"));
    scratch.dir("stub/bin");
    scratch.dir("recipes");
    for (name, text) in recipes::named() {
        scratch.file(&format!("recipes/{name}"), &text);
    }
    let interpreter =
        if script.ends_with(".py") { scratch.path("python/bin/python") } else { PathBuf::from("node") };
    let confine = scratch.confine().display().to_string();
    let mut words = vec![confine.as_str(), "-w", "."];
    words.extend(mode.options());
    let mark = mark();
    let run = Run::plain(&scratch)
        .env("CONFINE_WORDS", serde_json::to_string(&words).unwrap())
        .env("MODE", mode.name())
        .env("MARK", &mark)
        .env("SCRATCH", scratch.root())
        .env("NODE_PATH", scratch.path("node/node_modules"))
        .env("TERM", "xterm")
        .env("LANG", "C.UTF-8")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .command([interpreter.as_os_str(), file.as_os_str(), name.as_ref()]);
    // Into files: what a failed case leaves behind holds a pipe open, and its reader would wait for ever.
    let [out, err] = ["out", "err"].map(|name| scratch.path(name));
    let files = [&out, &err].map(|path| std::fs::File::create(path).unwrap());
    let [out_file, err_file] = files;
    let status = with_packages(&scratch, run.stdio(1, out_file).stdio(2, err_file)).run().status;
    let gone = within(std::time::Duration::from_secs(20), || marked(&mark).is_empty());
    let left = marked(&mark);
    left.iter().for_each(|pid| send(*pid, libc::SIGKILL));
    let [out, err] = [out, err].map(|path| std::fs::read_to_string(path).unwrap());
    let context = format!("{who:?} {} {script} {name}", mode.name());
    // That a case says so itself keeps one that was not found, or was left early, from passing.
    assert!(status.success() && out.ends_with(&format!("{name} ok\n")), "{context}: {status}\n{out}{err}");
    assert!(gone, "{context}: left behind: {left:?}");
}
