//! Writes the shell completions that are committed: `cargo run --locked --example completions -- completions`.
//! An example, so that the binary does not carry the generator.
#![forbid(unsafe_code)]

use std::io::{Error, Result};

use clap_complete::{Shell, generate_to};

fn main() -> Result<()> {
    let Some(directory) = std::env::args_os().nth(1) else {
        return Err(Error::other("usage: completions DIRECTORY"));
    };
    for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
        generate_to(shell, &mut confine::cli::command(), "confine", &directory)?;
    }
    Ok(())
}
