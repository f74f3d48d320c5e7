//! What is told of a run, whoever reads it: the status lines, the audit record and the result are made of these.
//! docs/status.schema.json, docs/audit.schema.json and docs/result.schema.json describe them. No line is longer than
//! [`LINE`], so that one always fits into an empty pipe; what is too long for it is cut, and its hash stands there.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde::{Serialize, Serializer};

use crate::digest::sha256;
use crate::error::Told;
use crate::plan::JSON_VERSION;
use crate::policy::Promise;
use crate::supervise::monitor::{End, Outcome};
use crate::view::{self, View, path_text};

/// Bytes of the longest line: what an empty pipe takes (pipe(7)).
pub const LINE: usize = 64 << 10;
/// Bytes of the arguments and of the roots, as they stand in the line.
const PART: usize = 12 << 10;
/// Characters of a message and of a hint.
const MESSAGE: usize = 2000;

#[derive(Debug, Serialize)]
pub struct Line<'a> {
    version: u32,
    pub time: String,
    run: &'a str,
    #[serde(flatten)]
    event: &'a Event<'a>,
}

impl<'a> Line<'a> {
    pub fn new(run: &'a str, event: &'a Event<'a>) -> Line<'a> {
        Line { version: JSON_VERSION, time: rfc3339(SystemTime::now()), run, event }
    }
}

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event<'a> {
    Started(Started<'a>),
    Refused(Refused<'a>),
    Ended(Ended<'a>),
}

/// What is known of a run as soon as it has been asked for.
#[derive(Debug, Default, Serialize)]
pub struct Asked {
    /// Whose process confine was.
    pub uid: u32,
    pub argv: Vec<Text>,
    /// None: `argv` is whole.
    pub argv_cut: Option<Cut>,
}

/// Everything is decided, and the next thing that this process does is to become the command.
#[derive(Debug, Serialize)]
pub struct Started<'a> {
    pub pid: u32,
    pub policy: &'a str,
    #[serde(flatten)]
    pub asked: &'a Asked,
    /// What `argv[0]` leads to inside; None when the exec is about to fail.
    pub executable: Option<Text>,
    #[serde(flatten)]
    pub roots: &'a Roots,
    pub promises: &'a BTreeMap<Promise, Vec<String>>,
    pub waived: &'a BTreeMap<Promise, String>,
    /// A parent stays and tells of the end. Without one this is the last line of the run, unless the exec fails.
    pub supervised: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scan: Option<Scan>,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub struct Scan {
    pub entries: u64,
    pub microseconds: u64,
}

#[derive(Debug, Serialize)]
pub struct Refused<'a> {
    outcome: &'static str,
    #[serde(flatten)]
    told: Told,
    /// None: it was refused before there was a plan.
    policy: Option<&'a str>,
    #[serde(flatten)]
    asked: &'a Asked,
}

impl<'a> Refused<'a> {
    pub fn new(told: Told, policy: Option<&'a str>, asked: &'a Asked) -> Refused<'a> {
        Refused { outcome: "refused", told: told.cut(MESSAGE), policy, asked }
    }
}

#[derive(Debug, Serialize)]
pub struct Ended<'a> {
    policy: &'a str,
    outcome: &'static str,
    status: u8,
    /// What ended the command, if a signal did.
    signal: Option<i32>,
    wall_ms: u64,
    /// Of all that was waited for, by whomever inside, which is all that ended by itself (getrusage(2)); and of the
    /// rest what it had used when it was ended.
    cpu_ms: Option<Processor>,
    memory: Option<Memory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mechanism: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct Processor {
    user: u64,
    system: u64,
}

#[derive(Debug, Serialize)]
struct Memory {
    peak: u64,
    of: &'static str,
}

impl<'a> Ended<'a> {
    pub fn new(policy: &'a str, end: &End) -> Ended<'a> {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN).ok();
        let spent = end.spent.as_ref();
        let reached = match end.outcome {
            Outcome::Limit(reached) => Some(reached),
            _ => None,
        };
        Ended {
            policy,
            outcome: name(end.outcome),
            status: end.outcome.status(),
            signal: match end.outcome {
                Outcome::Signalled(signal) => Some(signal),
                _ => None,
            },
            wall_ms: milliseconds(end.wall),
            cpu_ms: usage.as_ref().map(|usage| Processor {
                user: time(usage.user_time()).max(spent.map_or(0, |spent| milliseconds(spent.user))),
                system: time(usage.system_time()).max(spent.map_or(0, |spent| milliseconds(spent.system))),
            }),
            memory: usage.as_ref().map(|usage| {
                let waited = u64::try_from(usage.max_rss()).unwrap_or(0).saturating_mul(1024);
                Memory { peak: waited.max(spent.map_or(0, |spent| spent.peak)), of: "largest-process" }
            }),
            limit: reached.map(|reached| reached.limit),
            mechanism: reached.map(|reached| reached.mechanism),
        }
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn time(value: TimeVal) -> u64 {
    u64::try_from(value.tv_sec() * 1000 + value.tv_usec() / 1000).unwrap_or(0)
}

fn name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Exited(_) => "exited",
        Outcome::Signalled(_) => "signalled",
        Outcome::TimedOut => "timed-out",
        Outcome::OutputLimit => "output-limit",
        Outcome::Limit(reached) => reached.outcome(),
        Outcome::Ended => "ended",
    }
}

/// A path or word: text where it is text, else its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text(pub OsString);

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        path_text::serialize(Path::new(&self.0), to)
    }
}

impl From<PathBuf> for Text {
    fn from(path: PathBuf) -> Text {
        Text(path.into_os_string())
    }
}

/// What the whole argv is, where the line has only its beginning.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Cut {
    pub arguments: usize,
    pub bytes: u64,
    /// Of all arguments, each with a NUL after it.
    pub sha256: String,
}

impl Asked {
    pub fn new(uid: u32, command: &[OsString]) -> Asked {
        let mut room = PART;
        let mut argv = Vec::new();
        for word in command {
            let text = Text(word.clone());
            match room.checked_sub(length(&text)) {
                Some(left) => room = left,
                None => {
                    argv.push(Text(beginning(word, room)));
                    return Asked { uid, argv, argv_cut: Some(cut(command)) };
                }
            }
            argv.push(text);
        }
        Asked { uid, argv, argv_cut: None }
    }
}

/// In the line, with a comma.
fn length(value: &impl Serialize) -> usize {
    serde_json::to_string(value).map_or(LINE, |text| text.len() + 1)
}

/// As much of it as surely fits: a byte takes six at most, and a character is left whole.
fn beginning(word: &OsStr, room: usize) -> OsString {
    let bytes = word.as_bytes();
    let mut end = bytes.len().min(room / 6);
    while end > 0 && bytes.get(end).is_some_and(|byte| byte & 0xc0 == 0x80) {
        end -= 1;
    }
    OsStr::from_bytes(bytes.get(..end).unwrap_or_default()).to_owned()
}

fn cut(command: &[OsString]) -> Cut {
    let mut all = Vec::new();
    for word in command {
        all.extend_from_slice(word.as_bytes());
        all.push(0);
    }
    Cut { arguments: command.len(), bytes: all.len() as u64, sha256: sha256(&all) }
}

/// The roots that were asked for, as they were opened.
#[derive(Debug, Default, Serialize)]
pub struct Roots {
    roots: Vec<Root>,
    /// Roots that the line has no room for; they are in the policy id.
    roots_more: usize,
}

#[derive(Debug, Serialize)]
struct Root {
    path: Text,
    access: view::Access,
    workspace: bool,
    device: u64,
    inode: u64,
}

impl Roots {
    pub fn of(view: &View) -> Roots {
        let mut room = PART;
        let mut roots = Vec::new();
        for root in &view.roots {
            let (device, inode) = root.object;
            let access = if root.writable { view::Access::Write } else { view::Access::Read };
            let root =
                Root { path: root.path.clone().into(), access, workspace: root.workspace, device, inode };
            match room.checked_sub(length(&root)) {
                Some(left) => room = left,
                None => break,
            }
            roots.push(root);
        }
        Roots { roots_more: view.roots.len() - roots.len(), roots }
    }
}

/// RFC 3339 in UTC, with milliseconds.
pub fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, milliseconds) = (since.as_secs(), since.subsec_millis());
    let (year, month, day) = date(seconds / 86400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z")
}

/// The date of a day, counted from 1970. Whole cycles of the calendar first: 400, 100, 4 years and one year.
fn date(day: u64) -> (u64, u64, u64) {
    // From the first of March of the year 0 on, so that the leap day is the last of its year.
    let day = day + 719_468;
    let (era, day) = (day / 146_097, day % 146_097);
    let century = (day / 36_524).min(3);
    let day = day - century * 36_524;
    let (fours, day) = (day / 1461, day % 1461);
    let one = (day / 365).min(3);
    let day = day - one * 365;
    // Five months from March have 153 days, and so have the next five.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let year = era * 400 + century * 100 + fours * 4 + one;
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
}

#[cfg(test)]
mod tests;
