//! The program inside the boundary: confine itself, by a subcommand that nobody is told of. It is told numbers of
//! rows, one a line, and answers each with a line.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io::{self, BufRead, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::aims::Aims;
use super::rows::{ROWS, Row};
use crate::error::{Error, Result};
use crate::sys;

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Answer {
    pub errno: Option<i32>,
    /// What ended the attempt instead.
    pub signal: Option<i32>,
    pub brought: Vec<u8>,
}

pub fn run(words: &[OsString]) -> Result<()> {
    let mut aims = Aims::read(words).ok_or_else(|| Error::usage("this is a part of `check --prove`"))?;
    // A workspace may be read-only; HOME and TMPDIR are always there.
    let make = |path: &std::path::Path| DirBuilder::new().mode(0o700).create(path);
    if make(&aims.place).is_err() {
        aims.place = std::env::temp_dir().join(aims.at.name());
        make(&aims.place).map_err(|error| Error::path("create", &aims.place, error))?;
    }
    let step = |error| Error::step("try the boundary", error);
    for line in io::stdin().lock().lines() {
        let number: Option<usize> = line.map_err(step)?.trim().parse().ok();
        if let Some(row) = number.and_then(|number| ROWS.get(number)) {
            apart(row, &aims).map_err(step)?;
        }
    }
    let _ = std::fs::remove_dir_all(&aims.place);
    Ok(())
}

/// In a process of its own: what succeeds changes nothing for the next, and a signal ends nothing else.
fn apart(row: &Row, aims: &Aims) -> io::Result<()> {
    let child = sys::fork(|| {
        let answer = match (row.attempt)(aims) {
            Ok(brought) => Answer { brought, ..Answer::default() },
            Err(error) => {
                Answer { errno: Some(error.raw_os_error().unwrap_or(libc::EIO)), ..Answer::default() }
            }
        };
        let said = say(&answer);
        // What was taken hold of is held until it has been looked at from outside, which then asks for the next.
        let stdin = io::stdin();
        let mut next = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut next, PollTimeout::NONE);
        said.is_err().into()
    })?;
    match waitpid(Pid::from_raw(child), None)? {
        WaitStatus::Signaled(_, signal, _) => {
            say(&Answer { signal: Some(signal as i32), ..Answer::default() })
        }
        _ => Ok(()),
    }
}

fn say(answer: &Answer) -> io::Result<()> {
    let line = serde_json::to_string(answer).map_err(io::Error::other)?;
    io::stdout().write_all(format!("{line}\n").as_bytes())?;
    io::stdout().flush()
}
