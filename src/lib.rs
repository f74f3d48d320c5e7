//! `confine` builds a boundary around itself and becomes the command it was given.
//!
//! The way through the rooms: [`cli`] turns an argv into a [`policy::Policy`]; [`view`] resolves it into the
//! paths that exist inside, as open descriptors; [`host`] says what this kernel and process may use; [`plan`]
//! decides, or refuses; [`enforce`] applies the plan in one fixed order and executes the command. The library
//! has no stable interface of its own: it exists so that tests and benchmarks can reach the rooms.

/// musl's own asks the kernel for a page or two at a time.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

mod attendant;
pub mod cli;
pub mod commands;
pub mod digest;
pub mod enforce;
pub mod error;
pub mod host;
pub mod plan;
pub mod policy;
pub mod record;
pub mod supervise;
pub mod sys;
pub mod view;
