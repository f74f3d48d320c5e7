//! Compilers and what drives them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod programs;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use common::{Run, Scratch, Who};
use programs::{bound, for_everyone, need, works, works_as};

const MANIFEST: &str =
    "[package]\nname = \"made\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\n";

/// A version of itoa that is in the registry cache: the one that building confine itself took.
fn itoa() -> String {
    let lock = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.lock")).unwrap();
    let (_, rest) = lock.split_once("name = \"itoa\"\nversion = \"").expect("itoa is in Cargo.lock");
    rest.split('"').next().unwrap().to_owned()
}

fn crate_sources(scratch: &Scratch) {
    scratch.dir("w/src");
    scratch.file("w/Cargo.toml", &format!("{MANIFEST}itoa = \"={}\"\n", itoa()));
    scratch.file(
        "w/src/main.rs",
        "fn main() { println!(\"{}\", itoa::Buffer::new().format(42)); }\n\
         #[test]\nfn it_counts() { assert_eq!(itoa::Buffer::new().format(7), \"7\"); }\n",
    );
}

fn of_rust(variable: &str, fallback: &str) -> PathBuf {
    let home = std::env::var_os("HOME").expect("HOME is set");
    std::env::var_os(variable).map_or_else(|| Path::new(&home).join(fallback), PathBuf::from)
}

/// What `rustc` that builds these tests is, as a tree that another user may read.
fn toolchain() -> PathBuf {
    need(&["cargo"]);
    let out = std::process::Command::new("rustc").args(["--print", "sysroot"]).output().unwrap();
    PathBuf::from(String::from_utf8(out.stdout).unwrap().trim())
}

/// Runs cargo with the caller's own installation as root, with a copy of its registry in HOME as the user.
fn cargo(scratch: &Scratch, run: Run) -> Run {
    let registry = of_rust("CARGO_HOME", ".cargo").join("registry");
    match scratch.who {
        Who::Root => run
            .env("CARGO_HOME", of_rust("CARGO_HOME", ".cargo"))
            .env("RUSTUP_HOME", of_rust("RUSTUP_HOME", ".rustup"))
            .env("RUSTUP_TOOLCHAIN", toolchain().file_name().unwrap()),
        Who::User => {
            let tools = scratch.dir("toolchain");
            let mine = scratch.dir("home/.cargo/registry");
            let script = format!(
                "set -e; cd '{}'; cp -r --parents index/*/.cache/it/oa index/*/config.json cache/*/itoa-*.crate '{}'; chown -R {1} '{0}'",
                registry.display(),
                scratch.who.id()
            );
            let script =
                script.replace(&format!("chown -R {} '{}'", scratch.who.id(), registry.display()), "true");
            let copied = std::process::Command::new("sh").args(["-c", &script]).status().unwrap();
            let _ = (copied, &mine);
            let path =
                std::env::join_paths([&tools.join("bin"), Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
            bound(scratch, run.env("PATH", path), &[(&toolchain(), &tools)])
        }
    }
}
