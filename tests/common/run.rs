//! One command, run by one identity, with or without confine around it.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{Scratch, Who};

/// Nothing here takes longer; a run that does is stuck, and says so.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Run {
    who: Who,
    before: Vec<OsString>,
    confine: Option<OsString>,
    options: Vec<OsString>,
    command: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    cwd: PathBuf,
    stdio: [Option<Stdio>; 3],
}

#[derive(Debug)]
pub struct Outcome {
    pub status: ExitStatus,
    pub out: String,
    pub err: String,
    pub pid: u32,
}

impl Run {
    fn new(scratch: &Scratch) -> Self {
        let mut environment: Vec<(OsString, OsString)> =
            vec![("HOME".into(), scratch.home().into()), ("TMPDIR".into(), scratch.path("tmp").into())];
        environment.extend(std::env::var_os("PATH").map(|path| ("PATH".into(), path)));
        Run {
            who: scratch.who,
            before: Vec::new(),
            confine: None,
            options: Vec::new(),
            command: Vec::new(),
            environment,
            cwd: scratch.workspace(),
            stdio: [None, None, None],
        }
    }

    /// As the identity of the scratch directory, its workspace as workspace.
    pub fn confined(scratch: &Scratch) -> Self {
        let mut run = Self::bare(scratch);
        run.options = vec!["--workspace".into(), scratch.workspace().into()];
        run
    }

    /// confine without any option.
    pub fn bare(scratch: &Scratch) -> Self {
        let mut run = Self::new(scratch);
        run.confine = Some(scratch.confine().into());
        run
    }

    /// The same identity, environment and directory, no boundary.
    pub fn plain(scratch: &Scratch) -> Self {
        Self::new(scratch)
    }

    pub fn by(mut self, who: Who) -> Self {
        self.who = who;
        self
    }

    pub fn option(mut self, option: impl AsRef<OsStr>) -> Self {
        self.options.push(option.as_ref().to_owned());
        self
    }

    pub fn options<S: AsRef<OsStr>>(mut self, options: impl IntoIterator<Item = S>) -> Self {
        self.options.extend(options.into_iter().map(|option| option.as_ref().to_owned()));
        self
    }

    /// A wrapper of the attack program (`with-fd`, `on-terminal`, ...) and its arguments, put before everything else.
    pub fn under<S: AsRef<OsStr>>(mut self, wrapper: impl IntoIterator<Item = S>) -> Self {
        self.before.extend(wrapper.into_iter().map(|word| word.as_ref().to_owned()));
        self
    }

    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.retain(|(known, _)| known != name.as_ref());
        self.environment.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    pub fn without_env(mut self, name: &str) -> Self {
        self.environment.retain(|(known, _)| known != name);
        self
    }

    pub fn cwd(mut self, cwd: impl AsRef<Path>) -> Self {
        self.cwd = cwd.as_ref().to_owned();
        self
    }

    /// Descriptor 0, 1 or 2.
    pub fn stdio(mut self, number: usize, what: impl Into<Stdio>) -> Self {
        self.stdio[number] = Some(what.into());
        self
    }

    pub fn command<S: AsRef<OsStr>>(mut self, command: impl IntoIterator<Item = S>) -> Self {
        self.command = command.into_iter().map(|word| word.as_ref().to_owned()).collect();
        self
    }

    /// One operation of the attack program; the copy in the workspace when confined.
    pub fn attack<S: AsRef<OsStr>>(self, scratch: &Scratch, words: impl IntoIterator<Item = S>) -> Outcome {
        let program = if self.confine.is_some() { scratch.inside_attack() } else { scratch.attack() };
        let mut command = vec![program.into_os_string()];
        command.extend(words.into_iter().map(|word| word.as_ref().to_owned()));
        self.command(command).run()
    }

    pub fn shell(self, script: impl AsRef<OsStr>) -> Outcome {
        self.command([OsStr::new("bash"), OsStr::new("-c"), script.as_ref()]).run()
    }

    pub fn spawn(self) -> Child {
        let mut words = self.before;
        if let Some(confine) = self.confine {
            words.push(confine);
            words.extend(self.options);
            words.push("--".into());
        }
        words.extend(self.command);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env_clear().envs(self.environment).current_dir(&self.cwd);
        if self.who != Who::Root {
            command.uid(self.who.id()).gid(self.who.id());
        }
        let [stdin, stdout, stderr] = self.stdio;
        command.stdin(stdin.unwrap_or_else(Stdio::null));
        command.stdout(stdout.unwrap_or_else(Stdio::piped)).stderr(stderr.unwrap_or_else(Stdio::piped));
        command.spawn().unwrap_or_else(|error| panic!("start {words:?}: {error}"))
    }

    pub fn run(self) -> Outcome {
        let mut child = self.spawn();
        let (out, err) = (collect(child.stdout.take()), collect(child.stderr.take()));
        let status = wait(&mut child);
        Outcome { status, out: out.join().unwrap(), err: err.join().unwrap(), pid: child.id() }
    }
}

fn collect(stream: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            stream.read_to_end(&mut bytes).unwrap();
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

pub fn wait(child: &mut Child) -> ExitStatus {
    let end = Instant::now() + PATIENCE;
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > end {
            child.kill().unwrap();
            panic!("a command was still running after {PATIENCE:?}");
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}

impl Outcome {
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    pub fn signal(&self) -> Option<i32> {
        self.status.signal()
    }

    pub fn ok(&self) -> bool {
        self.status.success()
    }

    /// The attack ran and the kernel said no: not a crash, not confine that would not start.
    pub fn denied(&self) -> bool {
        self.code() == Some(1)
    }

    /// By confine itself: nothing ran, and the message says these words.
    pub fn refused(&self, words: &[&str]) -> bool {
        self.code() == Some(125)
            && self.out.is_empty()
            && self.err.starts_with("confine: ")
            && words.iter().all(|word| self.err.contains(word))
    }

    /// The last line that the attack printed: "ok" or the name of an errno.
    pub fn verdict(&self) -> &str {
        self.out.lines().last().unwrap_or("")
    }

    /// On one line, for failure messages.
    pub fn tell(&self) -> String {
        format!("{:?}, out {:?}, err {:?}", self.status, self.out, self.err)
    }
}
