//! Exit statuses and the printing of an error.
#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use confine::cli::{self, Request};
use confine::commands;
use confine::enforce::descriptors;
use confine::error::{Error, REFUSED};
use confine::{policy, record};

fn main() -> ExitCode {
    match run() {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            let own = error.downcast_ref::<Error>();
            // One write a line; when standard error is gone there is nobody left to tell.
            // An error of confine's own says its cause itself; any other is told with its chain.
            let what = own.map_or_else(|| format!("{error:#}"), Error::to_string);
            let mut text = format!("confine: {what}\n");
            if let Some(hint) = own.and_then(Error::hint) {
                text.push_str(&format!("hint: {hint}\n"));
            }
            let _ = io::stderr().write_all(text.as_bytes());
            ExitCode::from(own.map_or(REFUSED, Error::status))
        }
    }
}

/// `confine check` found a default promise that does not hold, or `--prove` an attempt that had effect.
const NOT_ALL_HOLD: u8 = 1;

fn run() -> Result<u8> {
    // First of all: no descriptor of confine's own may land on 0, 1 or 2.
    descriptors::fill_standard().context("cannot open /dev/null")?;
    let parsed = cli::parse(std::env::args_os(), &policy::files::find);
    match parsed.inspect_err(|error| record::refuse_line(std::env::args_os(), error))? {
        Request::Help(text) | Request::Version(text) => print(&text).map(|()| 0),
        Request::Run(invocation) => Ok(commands::run::run(invocation)?),
        Request::Check { json, prove } => {
            let checked = match prove {
                Some(proof) => commands::prove::run(&proof, json)?,
                None => commands::check::run(json)?,
            };
            print(&checked.text)?;
            Ok(if checked.holds { 0 } else { NOT_ALL_HOLD })
        }
        Request::ProveInside(words) => Ok(commands::prove::inside(&words).map(|()| 0)?),
        Request::Explain { invocation, json } => {
            let explained = commands::explain::run(&invocation, json)?;
            print(&explained.text)?;
            explained.refusal.map_or(Ok(0), |refusal| Err(refusal.into()))
        }
        Request::Profile { name, text, json } => {
            print(&commands::explain::profile(&name, &text, json)).map(|()| 0)
        }
        Request::Scan { dirs, separate, json } => {
            let dirs: Vec<PathBuf> = dirs.into_iter().map(PathBuf::from).collect();
            Ok(commands::scan::run(&dirs, separate, json)?)
        }
    }
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
