//! `confine verify [--expect HASH] [--json] FILE`: the chain of an audit record.
#![forbid(unsafe_code)]

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader};
use std::os::unix::fs::OpenOptionsExt;

use serde::Serialize;

use super::Judgement;
use crate::error::{Error, Result};
use crate::plan::JSON_VERSION;
use crate::record::chain::{self, Broken, Chain};

#[derive(Serialize)]
struct Report<'a> {
    version: u32,
    good: bool,
    #[serde(flatten)]
    chain: &'a Chain,
    broken: Option<&'a Broken>,
}

pub fn run(file: &OsStr, expect: Option<&str>, json: bool) -> Result<Judgement> {
    let cannot = |error: io::Error| Error::path("read audit record", file, error);
    // A FIFO would hold this up until somebody writes to it, and some devices do things when they are opened.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let opened = File::options().read(true).custom_flags(flags).open(file).map_err(cannot)?;
    let found = opened.metadata().map_err(cannot)?;
    if found.is_dir() {
        return Err(cannot(io::Error::from_raw_os_error(libc::EISDIR)));
    }
    if !found.is_file() {
        return Err(cannot(io::Error::other("not a regular file")));
    }
    let (chain, broken) = chain::verify(BufReader::new(opened), expect).map_err(cannot)?;
    let good = broken.is_none() && chain.expected != Some(false);
    let report = Report { version: JSON_VERSION, good, chain: &chain, broken: broken.as_ref() };
    let text = if json {
        let text = serde_json::to_string(&report)
            .map_err(|error| Error::step("write JSON", io::Error::from(error)))?;
        text + "\n"
    } else {
        prose(&report)
    };
    Ok(Judgement { text, good })
}

fn prose(report: &Report<'_>) -> String {
    let chain = report.chain;
    if let Some(Broken { line, reason }) = report.broken {
        return format!("broken at line {line}: {reason}\n");
    }
    let mut text = match (&chain.first_time, &chain.last_time) {
        (Some(first), Some(last)) => {
            let lines = if chain.lines == 1 { "line" } else { "lines" };
            format!("{} {lines} from {first} to {last}", chain.lines)
        }
        _ => "0 lines".to_owned(),
    };
    if chain.repaired > 0 {
        text.push_str(&format!(", {} of them about a torn line that was cut off", chain.repaired));
    }
    text.push('\n');
    if chain.expected == Some(false) {
        return text
            + "broken: no line has the hash that was expected: it was cut off or changed, or all was written anew\n";
    }
    text.push_str("ok: every line follows from the one before\n");
    if let Some(last) = &chain.last {
        text.push_str(&format!("last {last}\n"));
    }
    text + "What is cut off at the end, or all written anew, shows only against a hash kept elsewhere: --expect HASH\n"
}
