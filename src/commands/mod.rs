//! A file a subcommand, each a few lines of pipeline.
#![forbid(unsafe_code)]

pub mod check;
pub mod explain;
pub mod prove;
pub mod run;
pub mod scan;
