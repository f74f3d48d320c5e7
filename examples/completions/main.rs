//! Writes the shell completions that are committed: `cargo run --locked --example completions -- completions`.
//! An example, so that the binary does not carry the generator.
#![forbid(unsafe_code)]

mod generate;

use std::io::{Error, Result};
use std::path::PathBuf;

fn main() -> Result<()> {
    let Some(directory) = std::env::args_os().nth(1).map(PathBuf::from) else {
        return Err(Error::other("usage: completions DIRECTORY"));
    };
    for (name, text) in generate::files() {
        std::fs::write(directory.join(name), text)?;
    }
    Ok(())
}
