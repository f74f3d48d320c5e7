//! A shell that runs what a page shows.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use super::page::{Kind, Page};

/// The documents speak to an ordinary user.
const USER: u32 = 4271;

struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let root = PathBuf::from(format!("/tmp/confine-docs-{}-{number}", std::process::id()));
        for directory in ["bin", "home/project", "steps"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        fs::copy(env!("CARGO_BIN_EXE_confine"), root.join("bin/confine")).unwrap();
        let settings =
            "[user]\n\tname = A Reader\n\temail = reader@example.org\n[init]\n\tdefaultBranch = main\n";
        fs::write(root.join("home/.gitconfig"), settings).unwrap();
        if rustix::process::geteuid().is_root() {
            for path in ["home", "home/project", "home/.gitconfig", "steps"] {
                chown(root.join(path), Some(USER), Some(USER)).unwrap();
            }
        }
        fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
        Scratch(root)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

enum Step {
    Setup,
    Script,
    Command { shown: String },
}

/// What is not as the page says, command by command.
pub fn run(page: &Page) -> Vec<String> {
    let scratch = Scratch::new();
    let mut steps = Vec::new();
    for block in &page.blocks {
        match block.kind {
            Kind::Setup => steps.push((block.line, block.text.clone(), Step::Setup)),
            Kind::Script => steps.push((block.line, block.text.clone(), Step::Script)),
            Kind::Console => steps.extend(
                block
                    .commands()
                    .into_iter()
                    .map(|shown| (shown.line, shown.command, Step::Command { shown: shown.output })),
            ),
            _ => {}
        }
    }
    let directory = scratch.0.join("steps");
    let mut script = String::new();
    for (index, (_, text, _)) in steps.iter().enumerate() {
        let step = directory.join(index.to_string());
        fs::write(&step, text).unwrap();
        let step = step.display();
        // In the one shell, so that a directory entered or a variable set is still so later.
        script
            .push_str(&format!("eval \"$(<{step})\" >{step}.out 2>&1 </dev/null; echo $? >{step}.status\n"));
    }
    shell(&scratch.0, &script);
    let mut wrong = Vec::new();
    for (index, (line, text, step)) in steps.iter().enumerate() {
        let read =
            |what: &str| fs::read_to_string(directory.join(format!("{index}.{what}"))).unwrap_or_default();
        let (came, status) = (read("out"), read("status"));
        let succeeded = status == "0\n";
        let as_shown = match step {
            Step::Setup | Step::Script => succeeded,
            // A command that fails shows how.
            Step::Command { shown } => same(shown, &came) && (succeeded || !came.is_empty()),
        };
        if !as_shown {
            wrong.push(format!("{}:{line}: {text}\ncame (status {}):\n{came}", page.name, status.trim()));
        }
    }
    wrong
}

fn shell(root: &Path, script: &str) {
    let mut bash = Command::new("timeout");
    bash.args(["--kill-after=5", "120", "bash", "--noprofile", "--norc", "-c", script]);
    bash.env_clear().current_dir(root.join("home/project")).stdin(Stdio::null());
    bash.env("HOME", root.join("home"));
    bash.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", root.join("bin").display()));
    bash.envs([("LC_ALL", "C.UTF-8"), ("TERM", "dumb"), ("USER", "reader"), ("SHELL", "/bin/bash")]);
    if rustix::process::geteuid().is_root() {
        bash.uid(USER).gid(USER);
    }
    let status = bash.status().unwrap();
    assert!(status.success() || status.code() != Some(124), "the page is not through after two minutes");
}

/// Line by line. `...` alone on a line stands for any lines, within a line for any text.
pub fn same(shown: &str, came: &str) -> bool {
    let (shown, came): (Vec<&str>, Vec<&str>) = (shown.lines().collect(), came.lines().collect());
    lines(&shown, &came)
}

fn lines(shown: &[&str], came: &[&str]) -> bool {
    match shown.split_first() {
        None => came.is_empty(),
        Some((&"...", rest)) => (0..=came.len()).any(|skipped| lines(rest, &came[skipped..])),
        Some((first, rest)) => {
            came.first().is_some_and(|line| text(first, line.trim_end())) && lines(rest, &came[1..])
        }
    }
}

fn text(shown: &str, came: &str) -> bool {
    match shown.split_once("...") {
        None => shown == came,
        Some((before, after)) => came.strip_prefix(before).is_some_and(|rest| {
            let ends = rest.char_indices().map(|(index, _)| index).chain([rest.len()]);
            ends.into_iter().any(|index| text(after, &rest[index..]))
        }),
    }
}
