//! Finding the command inside and becoming it. What the kernel says about a failure is not always what a user
//! needs to hear, so the reasons are told apart here.

use std::ffi::{CString, OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::unistd::execve;

use crate::error::{Error, Result, describe, show};

/// Everything that execve(2) takes, made before the boundary is closed.
#[derive(Debug)]
pub struct Target {
    name: OsString,
    candidates: Vec<CString>,
    argv: Vec<CString>,
    environment: Vec<CString>,
    /// Where the command is on the host, if it is there at all.
    on_host: Option<PathBuf>,
}

impl Target {
    /// `called` is argv[0] where that is not the name that is looked for.
    pub fn prepare(
        command: &[OsString],
        called: Option<&OsStr>,
        environment: &[(OsString, OsString)],
        cwd: &Path,
    ) -> Result<Target> {
        let name = command.first().cloned().unwrap_or_default();
        if name.is_empty() {
            return Err(Error::NotFound { command: name, hint: None });
        }
        let path = environment.iter().find(|(key, _)| key == "PATH").map(|(_, value)| value.as_os_str());
        let on_host = which::which_in(&name, path, cwd).ok();
        let text = |word: &OsStr| {
            CString::new(word.as_bytes()).map_err(|_| Error::usage("a NUL byte in an argument or variable"))
        };
        let first = called.unwrap_or(&name);
        let words = std::iter::once(first).chain(command.iter().skip(1).map(OsString::as_os_str));
        let argv = words.map(text).collect::<Result<_>>()?;
        let environment = environment
            .iter()
            .map(|(key, value)| {
                let mut pair = key.clone();
                pair.push("=");
                pair.push(value);
                text(&pair)
            })
            .collect::<Result<_>>()?;
        let candidates =
            candidates(&name, path).into_iter().map(|path| text(path.as_os_str())).collect::<Result<_>>()?;
        Ok(Target { name, candidates, argv, environment, on_host })
    }

    /// What will be run, by the names inside; None if that is about to fail.
    pub fn executable(&self) -> Option<PathBuf> {
        use rustix::fs::{Access, AtFlags, CWD, accessat};
        let runs = |candidate: &&CString| {
            accessat(CWD, candidate.as_c_str(), Access::EXEC_OK, AtFlags::EACCESS).is_ok()
        };
        let found = self.candidates.iter().find(runs)?;
        fs::canonicalize(OsStr::from_bytes(found.to_bytes())).ok().filter(|path| path.is_file())
    }

    /// Does not return but with the reason why the command cannot be run. The search is execvp(3)'s, without its
    /// fall-back to a shell.
    pub fn become_it(self) -> Error {
        let mut denied: Option<(&CString, Errno)> = None;
        for candidate in &self.candidates {
            let Err(errno) = execve(candidate, &self.argv, &self.environment);
            match errno {
                Errno::ENOENT | Errno::ENOTDIR if !exists(candidate) => {}
                Errno::EACCES => denied = denied.or(Some((candidate, errno))),
                _ => return self.not_runnable(candidate, errno),
            }
        }
        match denied {
            Some((candidate, errno)) => self.not_runnable(candidate, errno),
            None => self.missing(),
        }
    }

    fn not_runnable(&self, candidate: &CString, errno: Errno) -> Error {
        let path = Path::new(OsStr::from_bytes(candidate.to_bytes()));
        let (reason, hint) = match errno {
            Errno::ENOENT => match interpreter(path) {
                Some(interpreter) => (
                    format!("its interpreter {} does not exist inside", show(&interpreter)),
                    Some(format!(
                        "show it with `--ro {}` if the host has it",
                        crate::error::paste(&interpreter)
                    )),
                ),
                None => ("its dynamic loader does not exist inside".to_owned(), None),
            },
            Errno::ENOEXEC => (
                "neither a program nor a script with an interpreter line".to_owned(),
                Some("name the interpreter: `-- sh SCRIPT`".to_owned()),
            ),
            Errno::E2BIG => ("the argument list and environment are too long".to_owned(), None),
            Errno::EACCES if path.is_dir() => ("it is a directory".to_owned(), None),
            errno => (describe(&io::Error::from(errno)), None),
        };
        Error::NotRunnable { command: self.name.clone(), reason, hint }
    }

    fn missing(&self) -> Error {
        match &self.on_host {
            Some(path) => Error::NotRunnable {
                command: self.name.clone(),
                reason: format!("{} is not visible inside", show(path.as_os_str())),
                hint: path
                    .parent()
                    .map(|parent| format!("show it with `--ro {}`", crate::error::paste(parent.as_os_str()))),
            },
            None => Error::NotFound { command: self.name.clone(), hint: self.shell_hint() },
        }
    }

    /// For what only a shell understands: there is none between confine and the command.
    fn shell_hint(&self) -> Option<String> {
        let words = || self.argv.iter().map(|word| OsStr::from_bytes(word.to_bytes()));
        let text = self.name.to_str()?;
        if let Some((variable, _)) = text.split_once('=').filter(|(name, _)| is_variable(name)) {
            return Some(format!("a variable is set with `--env {variable}=VALUE`, before the `--`"));
        }
        let line = if text.contains(|c: char| c.is_whitespace() || "|&;<>$`".contains(c)) {
            words().next()?.to_owned()
        } else if SHELL_WORDS.contains(&text) {
            words().collect::<Vec<_>>().join(OsStr::new(" "))
        } else {
            return None;
        };
        Some(format!("a line for a shell needs one: `-- sh -c {}`", crate::error::paste(&line)))
    }
}

/// Shells do these themselves; most systems have no program of the name.
const SHELL_WORDS: &[&str] = &[
    ".", "alias", "bg", "bind", "builtin", "cd", "declare", "dirs", "eval", "exec", "exit", "export", "fg",
    "for", "hash", "if", "jobs", "let", "local", "popd", "pushd", "readonly", "set", "shift", "shopt",
    "source", "trap", "type", "ulimit", "umask", "unset", "wait", "while",
];

fn is_variable(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(is_part) && !name.starts_with(|c: char| c.is_ascii_digit())
}

fn candidates(name: &OsStr, path: Option<&OsStr>) -> Vec<PathBuf> {
    // environ(7): what execvp(3) searches when PATH is not set.
    const DEFAULT: &str = "/bin:/usr/bin";
    if name.as_bytes().contains(&b'/') {
        return vec![name.into()];
    }
    let path = path.unwrap_or(OsStr::new(DEFAULT)).as_bytes();
    path.split(|&byte| byte == b':')
        .map(|directory| {
            if directory.is_empty() {
                Path::new(".").join(name)
            } else {
                Path::new(OsStr::from_bytes(directory)).join(name)
            }
        })
        .collect()
}

fn exists(path: &CString) -> bool {
    fs::symlink_metadata(OsStr::from_bytes(path.to_bytes())).is_ok()
}

/// The interpreter that a script names on its first line.
fn interpreter(script: &Path) -> Option<OsString> {
    let mut start = Vec::new();
    fs::File::open(script).ok()?.take(256).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?.trim_ascii();
    let word = line.split(|&byte| byte == b' ' || byte == b'\t').next()?;
    Some(OsStr::from_bytes(word).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_a_shell_understands_leads_to_one() {
        let hint = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            Target::prepare(&words, None, &[], Path::new("/")).unwrap().shell_hint()
        };
        assert_eq!(hint(&["cd", "sub"]).unwrap(), "a line for a shell needs one: `-- sh -c 'cd sub'`");
        assert_eq!(hint(&["make test"]).unwrap(), "a line for a shell needs one: `-- sh -c 'make test'`");
        assert_eq!(hint(&["ls|head"]).unwrap(), "a line for a shell needs one: `-- sh -c 'ls|head'`");
        // The value may be a secret.
        let variable = "a variable is set with `--env FOO=VALUE`, before the `--`";
        assert_eq!(hint(&["FOO=1", "make"]).unwrap(), variable);
        for word in ["mkae", "./a.out", "a=b/c=d-x"] {
            assert_eq!(hint(&[word]).is_some(), word.starts_with("a="), "{word}");
        }
        assert_eq!(hint(&["1=2"]), None);
    }

    #[test]
    fn a_plain_name_is_searched_in_the_order_of_path() {
        let found = candidates(OsStr::new("x"), Some(OsStr::new("/b::/a")));
        assert_eq!(found, ["/b/x", "./x", "/a/x"].map(PathBuf::from));
        assert_eq!(candidates(OsStr::new("./x"), Some(OsStr::new("/b"))), [PathBuf::from("./x")]);
    }
}
