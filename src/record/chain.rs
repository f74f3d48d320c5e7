//! The lines of an audit record: each one carries its number and the hash of the one before. Whoever may write the
//! file can write the whole chain anew; against a hash that was kept elsewhere that shows (`verify --expect`).

use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::event::{LINE, rfc3339};
use crate::digest::sha256;
use crate::plan::JSON_VERSION;

/// How long others may hold the lock. Each holds it for a write.
const PATIENCE: Duration = Duration::from_secs(10);

/// What every line begins with.
#[derive(Debug, Serialize, Deserialize)]
struct Place {
    sequence: u64,
    /// The hash of the line before, without its newline; None for the first.
    previous: Option<String>,
}

#[derive(Serialize)]
struct Chained<'a, T: Serialize> {
    #[serde(flatten)]
    place: &'a Place,
    #[serde(flatten)]
    line: T,
}

/// Written where the line of an earlier writer was torn, by a crash or a full disk, and has been cut off.
#[derive(Serialize)]
struct Repaired {
    version: u32,
    time: String,
    event: &'static str,
    bytes: usize,
    sha256: String,
}

/// Adds one line, which is made under the lock, or leaves the file as it was.
pub fn append<T: Serialize>(file: &File, line: impl Fn() -> T) -> io::Result<()> {
    let _lock = Lock::take(file)?;
    let found = file.metadata()?;
    if found.nlink() == 0 {
        return Err(io::Error::other("it was removed meanwhile"));
    }
    let mut end = found.len();
    let mut tail = read_tail(file, end)?;
    if let Some(torn) = tail.torn.take() {
        end -= torn.len() as u64;
        file.set_len(end)?;
        let repaired = Repaired {
            version: JSON_VERSION,
            time: rfc3339(SystemTime::now()),
            event: "repaired",
            bytes: torn.len(),
            sha256: sha256(&torn),
        };
        end += write(file, end, &mut tail.place, &repaired)?;
    }
    write(file, end, &mut tail.place, &line()).map(drop)
}

fn write<T: Serialize>(file: &File, end: u64, place: &mut Place, line: &T) -> io::Result<u64> {
    let mut text = serde_json::to_string(&Chained { place, line })?;
    *place = Place { sequence: place.sequence + 1, previous: Some(sha256(text.as_bytes())) };
    text.push('\n');
    if text.len() > LINE {
        return Err(io::Error::other("the line would be too long"));
    }
    let written = loop {
        match (&*file).write(text.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            written => break written,
        }
    };
    match written {
        Ok(count) if count == text.len() => Ok(count as u64),
        // A part of a line: the disk is full.
        Ok(_) => {
            file.set_len(end)?;
            Err(io::Error::from_raw_os_error(libc::ENOSPC))
        }
        Err(error) => Err(error),
    }
}

struct Tail {
    /// Of the line to come.
    place: Place,
    /// What stands after the last newline.
    torn: Option<Vec<u8>>,
}

fn read_tail(file: &File, end: u64) -> io::Result<Tail> {
    let no_record = || io::Error::other("it is not an audit record of confine's");
    // The last line, a torn one after it, and the newline before both.
    let start = end.saturating_sub(2 * LINE as u64 + 1);
    let mut bytes = vec![0; (end - start) as usize];
    file.read_exact_at(&mut bytes, start)?;
    let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let torn = bytes.split_off(whole);
    // So long a piece is no line of ours.
    if torn.len() > LINE || (whole == 0 && start > 0) {
        return Err(no_record());
    }
    let torn = (!torn.is_empty()).then_some(torn);
    if bytes.pop().is_none() {
        // Anything could stand in a file without a line; what was torn from the very first begins like one.
        if torn.as_ref().is_some_and(|torn| {
            !torn.starts_with(b"{\"sequence\":1,") && !b"{\"sequence\":1,".starts_with(torn)
        }) {
            return Err(no_record());
        }
        return Ok(Tail { place: Place { sequence: 1, previous: None }, torn });
    }
    let line = bytes.rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
    let last: Place = serde_json::from_slice(line).map_err(|_| no_record())?;
    Ok(Tail { place: Place { sequence: last.sequence + 1, previous: Some(sha256(line)) }, torn })
}

/// Held by this open file until it is dropped: the children that share it do not write at the same time.
struct Lock<'a>(&'a File);

impl Lock<'_> {
    fn take(file: &File) -> io::Result<Lock<'_>> {
        let began = Instant::now();
        let mut pause = Duration::from_micros(50);
        loop {
            match flock(file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Lock(file)),
                Err(Errno::AGAIN) if began.elapsed() > PATIENCE => {
                    let seconds = PATIENCE.as_secs();
                    return Err(io::Error::other(format!(
                        "another process has held its lock for {seconds} s"
                    )));
                }
                Err(Errno::AGAIN) => std::thread::sleep(pause),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            pause = (pause * 2).min(Duration::from_millis(5));
        }
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        let _ = flock(self.0, FlockOperation::Unlock);
    }
}

/// What a whole chain says.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Chain {
    pub lines: u64,
    /// Hash of the last line.
    pub last: Option<String>,
    pub first_time: Option<String>,
    pub last_time: Option<String>,
    /// Torn lines that a later writer cut off and told of.
    pub repaired: u64,
    /// The line that was expected is there.
    pub expected: Option<bool>,
}

/// Where a chain breaks, and why.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Broken {
    pub line: u64,
    pub reason: &'static str,
}

pub fn verify(mut from: impl BufRead, expect: Option<&str>) -> io::Result<(Chain, Option<Broken>)> {
    #[derive(Deserialize)]
    struct Read {
        sequence: u64,
        previous: Option<String>,
        time: String,
        event: String,
    }
    let mut chain = Chain { expected: expect.map(|_| false), ..Chain::default() };
    let mut line = Vec::new();
    loop {
        line.clear();
        let count = io::Read::take(&mut from, LINE as u64 + 1).read_until(b'\n', &mut line)?;
        let number = chain.lines + 1;
        let broken = |reason| Ok((Chain::default(), Some(Broken { line: number, reason })));
        if count == 0 {
            return Ok((chain, None));
        }
        if line.pop() != Some(b'\n') {
            return broken(if count > LINE {
                "it is longer than any line of a record"
            } else {
                "it is torn: its writer was stopped, or the end was cut off; the next run cuts it off and says so"
            });
        }
        let Ok(read) = serde_json::from_slice::<Read>(&line) else {
            return broken("it is not a line of an audit record");
        };
        if read.previous != chain.last {
            return broken(match (&chain.last, &read.previous) {
                (None, _) => "it is not the first of its record: lines before it are missing",
                (_, None) => "a record begins here, after another one",
                _ => {
                    "it does not follow from the line before: that one was changed, or between the two a line was \
                     removed, put in or moved"
                }
            });
        }
        if read.sequence != number {
            return broken("its number is wrong");
        }
        let hash = sha256(&line);
        if expect == Some(&hash) {
            chain.expected = Some(true);
        }
        chain.lines = number;
        chain.last = Some(hash);
        chain.repaired += u64::from(read.event == "repaired");
        chain.first_time.get_or_insert_with(|| read.time.clone());
        chain.last_time = Some(read.time);
    }
}

#[cfg(test)]
mod tests;
