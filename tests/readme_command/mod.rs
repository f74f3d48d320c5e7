//! The command of the README's quick start, run as it is written, against victims of the test's own making.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{fs, io};

use super::README;

/// A directory with a workspace and its outside.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("docs-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        // Canonical, or names would differ inside and outside.
        let root = fs::canonicalize(env!("CARGO_TARGET_TMPDIR")).unwrap().join(name);
        fs::create_dir(&root).unwrap();
        for directory in ["workspace", "outside"] {
            fs::create_dir(root.join(directory)).unwrap();
        }
        fs::write(root.join("outside/secret"), "secret").unwrap();
        Scratch(root)
    }

    pub fn workspace(&self) -> PathBuf {
        self.0.join("workspace")
    }

    fn outside(&self) -> PathBuf {
        self.0.join("outside")
    }

    pub fn confine(&self, options: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_confine"));
        command.args(["--workspace", "."]).args(options).current_dir(self.workspace()).env("LC_ALL", "C");
        command
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The shell text of the quick start, between its single quotes.
fn body() -> &'static str {
    const START: &str = "cargo run --release --locked -- --workspace . -- bash -c '";
    let begin = README.find(START).expect("the main command of the README") + START.len();
    let rest = &README[begin..];
    &rest[..rest.find('\'').unwrap()]
}

/// What the README aims at places of the machine is aimed at the test's own.
fn aimed(scratch: &Scratch, port: u16) -> String {
    let mut text = body().to_owned();
    for (written, own) in [
        ("/etc/hello.txt", scratch.outside().join("hello.txt").display().to_string()),
        ("ls /var/log", format!("ls {}", scratch.outside().display())),
        ("/dev/tcp/1.1.1.1/443", format!("/dev/tcp/127.0.0.1/{port}")),
    ] {
        assert!(text.contains(written), "the README no longer tries {written}");
        text = text.replace(written, &own);
    }
    text
}

fn outcomes(output: &std::process::Output) -> Vec<(String, bool)> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{text}");
    assert_eq!(output.status.code(), Some(0), "{text}");
    let outcome = |line: &str| {
        let works = line.ends_with(" works");
        assert!(works || line.contains(" fails: "), "{line}");
        (line[..22].trim().to_owned(), works)
    };
    text.lines().map(outcome).collect()
}

fn count_connections(listener: &TcpListener) -> usize {
    listener.set_nonblocking(true).unwrap();
    let mut count = 0;
    loop {
        match listener.accept() {
            Ok(_) => count += 1,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return count,
            Err(error) => panic!("{error}"),
        }
    }
}

fn has_hello(directory: &Path) -> bool {
    directory.join("hello.txt").exists()
}

const TRIED: [&str; 4] = ["write in the workspace", "write outside", "read outside", "connect outside"];

#[test]
fn the_command_of_the_readme_does_what_it_says() {
    let scratch = Scratch::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let text = aimed(&scratch, listener.local_addr().unwrap().port());
    let output = scratch.confine(&["--", "bash", "-c", &text]).output().unwrap();
    let expected: Vec<_> = TRIED.iter().map(|tried| ((*tried).to_owned(), *tried == TRIED[0])).collect();
    assert_eq!(outcomes(&output), expected);
    assert!(!has_hello(&scratch.outside()) && !has_hello(&scratch.workspace()));
    assert_eq!(count_connections(&listener), 0);
}

#[test]
fn without_confine_the_same_command_reaches_all_of_it() {
    let scratch = Scratch::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let text = aimed(&scratch, listener.local_addr().unwrap().port());
    let mut bash = Command::new("bash");
    let output = bash.args(["-c", &text]).current_dir(scratch.workspace()).output().unwrap();
    let expected: Vec<_> = TRIED.iter().map(|tried| ((*tried).to_owned(), true)).collect();
    assert_eq!(outcomes(&output), expected);
    assert!(has_hello(&scratch.outside()));
    assert_eq!(count_connections(&listener), 1);
}

#[test]
fn what_the_readme_shows_is_what_it_tries() {
    let shown = &README[README.find("```text\n").unwrap() + 8..];
    let shown: Vec<&str> = shown[..shown.find("```").unwrap()].lines().collect();
    assert_eq!(shown.len(), TRIED.len());
    for (line, tried) in shown.iter().zip(TRIED) {
        assert!(line.starts_with(tried) && body().contains(tried), "{line}");
        assert_eq!(line.ends_with(" works"), tried == TRIED[0], "{line}");
    }
}
