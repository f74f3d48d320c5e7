//! A shell for programs that take one (`SHELL=/usr/bin/confine-shell`): the real shell, inside.
#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::process::ExitCode;

use confine::commands::{run, shell};
use confine::enforce::descriptors;
use confine::error::{Error, Result, Told};

fn main() -> ExitCode {
    let status = start().unwrap_or_else(|error| {
        let _ = io::stderr().write_all(Told::from(&error).text().as_bytes());
        error.status()
    });
    ExitCode::from(status)
}

fn start() -> Result<u8> {
    // First of all: no descriptor of confine's own may land on 0, 1 or 2.
    descriptors::fill_standard().map_err(|error| Error::step("open /dev/null", error))?;
    run::run(shell::invocation(std::env::args_os())?)
}
