//! Writes the tables of `docs/reference/` from those of the program: `cargo run --locked --example reference -- docs`.
#![forbid(unsafe_code)]

mod generate;

use std::io::{Error, Result};
use std::path::PathBuf;

fn main() -> Result<()> {
    let Some(directory) = std::env::args_os().nth(1).map(PathBuf::from) else {
        return Err(Error::other("usage: reference DIRECTORY"));
    };
    for (name, text) in generate::files(&directory)? {
        std::fs::write(directory.join(name), text)?;
    }
    Ok(())
}
