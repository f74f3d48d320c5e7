//! The hard-link scan, on trees of the test's own making.

#![allow(clippy::unwrap_used)] // helpers of tests are not tests to clippy

use std::ffi::OsStr;
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use confine::error::Error;
use confine::policy::{Git, Hardlinks};
use confine::view::scan::{Options, Report, Root, scan, verdict};

mod neighbour;
mod separate;
mod trees;

/// An identity without rights, for what root would be let through.
const NOBODY: u32 = 54321;

/// A directory that goes when the test does.
struct Temp(PathBuf);

impl Temp {
    fn new() -> Temp {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("confine-scan-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Temp(path.canonicalize().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn dir(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn file(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, name).unwrap();
        path
    }

    /// Links `name` to `original`, both below this directory.
    fn link(&self, original: &str, name: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::hard_link(self.path(original), path).unwrap();
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        // Deep trees are beyond what remove_dir_all's descriptors reach.
        let _ = Command::new("rm").arg("-rf").arg(&self.0).status();
    }
}

fn try_scan(paths: &[&Path], options: &Options<'_>) -> Result<Report, Error> {
    let opened: Vec<_> = paths.iter().map(|path| fs::File::open(path).unwrap()).collect();
    let roots: Vec<_> = paths
        .iter()
        .zip(&opened)
        .map(|(path, file)| Root { dir: file.as_fd(), path, writable: true })
        .collect();
    scan(&roots, options)
}

fn scan_all(paths: &[&Path]) -> Report {
    try_scan(paths, &Options::default()).unwrap()
}

/// What was made this long ago is not new to a scan, which then needs no second pass.
fn settle() {
    std::thread::sleep(Duration::from_millis(60));
}

fn suspects(report: &Report) -> Vec<String> {
    report.suspects.iter().map(|suspect| suspect.path.to_string_lossy().into_owned()).collect()
}

/// Runs the named test of this file again as somebody without rights when this process has root's.
fn as_nobody(test: &str, dir: &Path) -> bool {
    if rustix::process::geteuid().as_raw() != 0 {
        return false;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env("CONFINE_SCAN_DIR", dir)
        .uid(NOBODY)
        .gid(NOBODY)
        .current_dir("/")
        .output()
        .unwrap();
    assert_ran(&output);
    true
}

/// A name that fits no test would otherwise pass.
fn assert_ran(output: &std::process::Output) {
    let text = String::from_utf8_lossy(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}{said}");
}

fn given_dir() -> Option<PathBuf> {
    std::env::var_os("CONFINE_SCAN_DIR").map(PathBuf::from)
}

/// Runs `work` over and over beside `check`.
fn beside(work: impl Fn(u64) + Sync, check: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let neighbour = scope.spawn(|| {
            for turn in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                work(turn);
            }
        });
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check));
        stop.store(true, Ordering::Relaxed);
        neighbour.join().unwrap();
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
}

#[test]
fn a_reader_that_has_seen_enough_ends_the_report_quietly() {
    let dir = Temp::new();
    dir.file("a");
    let scan = |out: std::process::Stdio| {
        Command::new(env!("CARGO_BIN_EXE_confine"))
            .args(["scan", "--json"])
            .arg(&dir.0)
            .stdout(out)
            .output()
            .unwrap()
    };
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let outcome = scan(writer.into());
    assert_eq!((outcome.status.code(), outcome.stderr.as_slice()), (Some(0), &b""[..]));
    let report: serde_json::Value =
        serde_json::from_slice(&scan(std::process::Stdio::piped()).stdout).unwrap();
    assert_eq!(report["version"], confine::plan::JSON_VERSION);
}
