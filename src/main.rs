//! Exit statuses and the printing of an error.
#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use confine::cli::{self, Request};
use confine::commands::{self, Judgement};
use confine::enforce::descriptors;
use confine::error::{Error, REFUSED, Told};
use confine::{policy, record};

fn main() -> ExitCode {
    match run() {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            // An error of confine's own says its cause itself; any other is told with its chain.
            let told = match error.downcast_ref::<Error>() {
                Some(own) => Told::from(own),
                None => Told { status: REFUSED, message: format!("{error:#}"), hint: None },
            };
            // One write a line; when standard error is gone there is nobody left to tell.
            let _ = io::stderr().write_all(told.text().as_bytes());
            ExitCode::from(told.status)
        }
    }
}

/// What was looked at is not as it should be: a default promise does not hold, an attempt had effect, a name leads
/// outside, a record's chain is broken, something of high severity was found.
const NOT_GOOD: u8 = 1;

fn run() -> Result<u8> {
    // First of all: no descriptor of confine's own may land on 0, 1 or 2.
    descriptors::fill_standard().context("cannot open /dev/null")?;
    let parsed = cli::parse(std::env::args_os(), &policy::files::find);
    match parsed.inspect_err(|error| record::refuse_line(std::env::args_os(), error))? {
        Request::Help(text) | Request::Version(text) => print(&text).map(|()| 0),
        Request::Run(invocation) => Ok(commands::run::run(invocation)?),
        Request::Check { json, prove } => judged(&match prove {
            Some(proof) => commands::prove::run(&proof, json)?,
            None => commands::check::run(json)?,
        }),
        Request::ProveInside(words) => Ok(commands::prove::inside(&words).map(|()| 0)?),
        Request::Posture { workspaces, json } => judged(&commands::posture::run(&workspaces, json)?),
        Request::Explain { invocation, json } => {
            let explained = commands::explain::run(&invocation, json)?;
            print(&explained.text)?;
            explained.refusal.map_or(Ok(0), |refusal| Err(refusal.into()))
        }
        Request::Profile { name, text, json } => {
            print(&commands::explain::profile(&name, &text, json)).map(|()| 0)
        }
        Request::Why { policy, subjects, json } => {
            print(&commands::why::run(policy.as_ref(), &subjects, json)?).map(|()| 0)
        }
        Request::Scan { dirs, separate, json } => {
            let dirs: Vec<PathBuf> = dirs.into_iter().map(PathBuf::from).collect();
            judged(&commands::scan::run(&dirs, separate, json)?)
        }
        Request::Verify { file, expect, json } => {
            judged(&commands::verify::run(&file, expect.as_deref(), json)?)
        }
    }
}

fn judged(judgement: &Judgement) -> Result<u8> {
    print(&judgement.text)?;
    Ok(if judgement.good { 0 } else { NOT_GOOD })
}

fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        // The reader has seen enough (`confine --help | head`).
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(source) => Err(Error::step("write to standard output", source).into()),
    }
}
