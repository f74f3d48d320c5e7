//! One file a target: where to begin, and what must hold of any bytes.

pub mod chance;
pub mod drive;
pub mod env_file;
pub mod filter;
pub mod links;
pub mod policy;
pub mod quantity;
