//! A file a subcommand, each a few lines of pipeline.
#![forbid(unsafe_code)]

pub mod check;
pub mod explain;
pub mod posture;
pub mod prove;
pub mod run;
pub mod scan;
pub mod shell;
pub mod verify;
pub mod why;

/// What a subcommand prints, and whether all was as it should be.
#[derive(Debug)]
pub struct Judgement {
    pub text: String,
    pub good: bool,
}
