//! One run of confine on a terminal of its own, and the conversation with the program inside.

use std::ffi::{CStr, CString, OsString};
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, execve, setsid};
use serde_json::Value;

use super::aims::Numbers;
use super::inside::Answer;
use super::victims::Victims;
use super::{Promises, kernel};
use crate::error::{Error, Result};
use crate::sys;

/// For one answer, the start included. The scan of a large workspace may take its time.
const PATIENCE: Duration = Duration::from_secs(60);
/// Numbers that no descriptor of a small program has.
const HIGH: i32 = 200;

pub struct Session {
    run: Pid,
    ask: Option<PipeWriter>,
    answers: PipeReader,
    status: PipeReader,
    told: Vec<u8>,
    heard: Vec<u8>,
}

/// Why there is nothing to tell.
pub struct Ending {
    pub message: String,
    pub hint: Option<String>,
}

impl Session {
    /// The words of the line are made from where the victims are, and the number for the status lines.
    pub fn start(
        victims: &mut Victims,
        program: &CStr,
        words: impl FnOnce(&Numbers, &Path, RawFd) -> io::Result<Vec<OsString>>,
    ) -> Result<Session> {
        Session::begin(victims, program, words).map_err(|error| Error::step("start a run to prove", error))
    }

    fn begin(
        victims: &mut Victims,
        program: &CStr,
        words: impl FnOnce(&Numbers, &Path, RawFd) -> io::Result<Vec<OsString>>,
    ) -> io::Result<Session> {
        let (orders, ask) = io::pipe()?;
        let (answers, answer) = io::pipe()?;
        let (status, tell) = io::pipe()?;
        let null = File::options().read(true).write(true).open("/dev/null")?;
        // Both are handed over by exec: one for confine to close, one for it to write to.
        let leaked = inheritable(&victims.leaked)?;
        let tell = inheritable(&tell)?;
        victims.at.leaked = leaked.as_raw_fd();
        let mut argv = vec![OsString::from("confine")];
        argv.extend(words(&victims.at, &victims.arena, tell.as_raw_fd())?);
        let mut environment: Vec<OsString> =
            std::env::vars_os().map(|(name, value)| [name, value].join("=".as_ref())).collect();
        environment.push(format!("{}={}", kernel::TOKEN, victims.secret).into());
        let text = |words: Vec<OsString>| -> io::Result<Vec<CString>> {
            words.into_iter().map(|word| Ok(CString::new(word.into_vec())?)).collect()
        };
        let (argv, environment) = (text(argv)?, text(environment)?);
        let terminal = victims.terminal.as_ref().map(|pair| pair.slave.as_fd());
        let run = sys::fork(|| {
            let placed = || -> io::Result<()> {
                setsid()?;
                if let Some(terminal) = terminal {
                    rustix::process::ioctl_tiocsctty(terminal)?;
                }
                sys::place_descriptor(orders.as_fd(), 0)?;
                sys::place_descriptor(answer.as_fd(), 1)?;
                sys::place_descriptor(terminal.unwrap_or(null.as_fd()), 2)
            };
            if placed().is_ok() {
                let _ = execve(program, &argv, &environment);
            }
            i32::from(crate::error::REFUSED)
        })?;
        Ok(Session {
            run: Pid::from_raw(run),
            ask: Some(ask),
            answers,
            status,
            told: Vec::new(),
            heard: Vec::new(),
        })
    }

    /// None when nobody answers any more.
    pub fn ask(&mut self, number: usize) -> Result<Option<Answer>> {
        let step = |error| Error::step("hear from inside", error);
        let Some(ask) = &mut self.ask else { return Ok(None) };
        match ask.write_all(format!("{number}\n").as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(None),
            written => written.map_err(step)?,
        }
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(length) = self.heard.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.heard.drain(..=length).collect();
                return serde_json::from_slice(&line)
                    .map(Some)
                    .map_err(|error| step(io::Error::other(error)));
            }
            if !readable(&self.answers, end).map_err(step)? {
                self.ask = None;
                return Ok(None);
            }
            let mut bytes = [0; 4096];
            match self.answers.read(&mut bytes).map_err(step)? {
                0 => return Ok(None),
                length => self.heard.extend(&bytes[..length]),
            }
        }
    }

    /// From the status line that comes before the command starts.
    pub fn promises(&mut self) -> Result<Promises> {
        self.hear_status();
        // None: there is no boundary, and no promise.
        let Some(line) = self.event("started") else { return Ok(Promises::default()) };
        let read = |name: &str| line.get(name).cloned().unwrap_or_default();
        let step = |error| Error::step("read the status line", io::Error::other(error));
        Ok(Promises {
            kept: serde_json::from_value(read("promises")).map_err(step)?,
            waived: serde_json::from_value(read("waived")).map_err(step)?,
        })
    }

    fn hear_status(&mut self) {
        let mut bytes = [0; 65536];
        while readable(&self.status, Instant::now()).unwrap_or(false) {
            match self.status.read(&mut bytes) {
                Ok(0) | Err(_) => break,
                Ok(length) => self.told.extend(&bytes[..length]),
            }
        }
    }

    fn event(&self, name: &str) -> Option<Value> {
        let lines = self.told.split(|&byte| byte == b'\n');
        let mut objects = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
        objects.find(|object| object.get("event").is_some_and(|event| event == name))
    }

    /// Ends it, and says why it never began, if so.
    pub fn end(mut self) -> Ending {
        self.ask = None;
        let begin = Instant::now();
        let ended = loop {
            match waitpid(self.run, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) if begin.elapsed() < Duration::from_secs(5) => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Ok(WaitStatus::StillAlive) => {
                    let _ = kill(self.run, Signal::SIGKILL);
                    break waitpid(self.run, None);
                }
                other => break other,
            }
        };
        self.hear_status();
        let refused = self.event("refused").unwrap_or_default();
        let text = |key: &str| Some(refused.get(key)?.as_str()?.to_owned());
        Ending {
            message: text("message").unwrap_or_else(|| format!("the run ended early ({ended:?})")),
            hint: text("hint"),
        }
    }
}

fn readable(pipe: &PipeReader, until: Instant) -> io::Result<bool> {
    let left = until.saturating_duration_since(Instant::now());
    let mut waited = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
    let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
    Ok(poll(&mut waited, timeout)? > 0)
}

/// A copy that exec leaves open.
fn inheritable(descriptor: &impl AsFd) -> io::Result<OwnedFd> {
    sys::attempt::inheritable(descriptor.as_fd(), HIGH)
}
