//! Compilers and what drives them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod programs;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

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
    let out = Command::new("rustc").args(["--print", "sysroot"]).output().unwrap();
    PathBuf::from(String::from_utf8(out.stdout).unwrap().trim())
}

/// cargo as root has the installation and the registry of whoever runs the tests, which nothing inside can change. As the
/// user it has the same toolchain at a place that the user can read, and a registry in HOME.
fn cargo(scratch: &Scratch) -> impl Fn(Run) -> Run {
    let (home, sysroot) = (of_rust("CARGO_HOME", ".cargo"), toolchain());
    let tools = scratch.dir("toolchain");
    if scratch.who == Who::User {
        let mine = scratch.dir("home/.cargo/registry");
        let script = "cd \"$1\" && cp -r --parents index/*/.cache/it/oa index/*/config.json cache/*/itoa-*.crate \"$2\" &&
            chown -R \"$3\" \"$2\"";
        let words = [OsStr::new("-c"), OsStr::new(script), OsStr::new("sh")];
        let copied = Command::new("sh")
            .args(words)
            .args([home.join("registry"), mine])
            .arg(scratch.who.id().to_string())
            .status();
        assert!(copied.unwrap().success(), "itoa is not in the registry cache");
    }
    let who = scratch.who;
    move |run| match who {
        Who::Root => run
            .env("CARGO_HOME", &home)
            .env("RUSTUP_HOME", of_rust("RUSTUP_HOME", ".rustup"))
            .env("RUSTUP_TOOLCHAIN", sysroot.file_name().unwrap()),
        Who::User => {
            let path = std::env::join_paths([&tools.join("bin"), Path::new("/usr/bin"), Path::new("/bin")]);
            bound(who, run.env("PATH", path.unwrap()), &[(&sysroot, &tools)])
        }
    }
}

#[test]
fn cargo_builds_and_tests_a_crate_with_a_dependency_from_the_cache() {
    for_everyone(|scratch| {
        crate_sources(scratch);
        let script = "cargo test --offline -q 2>&1; cargo run --offline -q; cargo clean -q; cargo new -q --vcs none other
            cd other; cargo build --offline -q; ./target/debug/other";
        let out = works_as(scratch, cargo(scratch), script);
        assert!(out.contains("1 passed") && out.ends_with("42\nHello, world!\n"), "{out}");
    });
}

#[test]
fn what_cargo_writes_into_its_cache_vanishes() {
    for_everyone(|scratch| {
        let marker = format!("confine-test-{}", std::process::id());
        let script = format!("touch \"${{CARGO_HOME:-$HOME/.cargo}}/{marker}\"");
        works_as(scratch, cargo(scratch), &script);
        for home in [of_rust("CARGO_HOME", ".cargo"), scratch.path("home/.cargo")] {
            assert!(!home.join(&marker).exists(), "{:?}: it was written outside", scratch.who);
        }
    });
}

#[test]
fn make_runs_jobs_at_once_and_passes_failures_on() {
    need(&["make", "gcc"]);
    for_everyone(|scratch| {
        let rule = "\t@gcc -c -o $@ $<\n";
        let makefile = format!(
            "OBJECTS = $(patsubst %.c,%.o,$(wildcard *.c))\nall: $(OBJECTS)\n\t@gcc -o all $^ && ./all\n%.o: %.c\n{rule}\
             fails:\n\t@exit 3\nrecursive:\n\t@$(MAKE) -s all\n"
        );
        scratch.file("w/Makefile", &makefile);
        for number in 0..8 {
            scratch.file(
                &format!("w/part{number}.c"),
                &format!("int part{number}(void) {{ return {number}; }}\n"),
            );
        }
        scratch.file("w/main.c", "#include <stdio.h>\nint part7(void);\nint main(void) { return printf(\"%d\\n\", part7()) != 2; }\n");
        let out = works(
            scratch,
            "make -s -j4; touch *.c; make -s -j4 recursive; make -s fails 2>&1 || echo \"failed $?\"",
        );
        assert!(out.starts_with("7\n7\n") && out.ends_with("failed 2\n"), "{out}");
    });
}

#[test]
fn gcc_makes_programs_and_libraries_that_run() {
    need(&["gcc"]);
    for_everyone(|scratch| {
        let script = r#"printf 'int f(void) { return 5; }\n' > f.c; printf 'int f(void); int main(void) { return f(); }\n' > m.c
            gcc -shared -fPIC -o libf.so f.c; gcc -O2 -pipe -o m m.c -L. -lf -Wl,-rpath,"$PWD"
            ./m || test $? = 5; gcc -static -o s m.c f.c; ./s || test $? = 5
            cp s /tmp/s; /tmp/s || test $? = 5; cp s /dev/shm/s; /dev/shm/s || test $? = 5; cp s ~/s; ~/s || test $? = 5
            ar rc libf.a f.o 2>/dev/null || true; echo 'int main(void) { syntax' | gcc -x c - 2>/dev/null || echo refused"#;
        assert_eq!(works(scratch, script), "refused\n");
    });
}

#[test]
fn go_builds_and_tests_offline() {
    need(&["go"]);
    for_everyone(|scratch| {
        scratch.file("w/go.mod", "module made\n\ngo 1.18\n");
        scratch.file("w/made.go", "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(twice(21)) }\n\nfunc twice(x int) int { return 2 * x }\n");
        scratch.file(
            "w/made_test.go",
            "package main\n\nimport \"testing\"\n\nfunc TestTwice(t *testing.T) {\n\tif twice(4) != 8 {\n\t\tt.Fatal(1)\n\t}\n}\n",
        );
        let out = works(scratch, "go build -o made . && ./made && go test ./... && go vet ./... && go run .");
        assert!(out.starts_with("42\nok") && out.ends_with("42\n"), "{out}");
    });
}
