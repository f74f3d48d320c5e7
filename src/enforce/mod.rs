//! (room)

pub mod descriptors;
pub mod environment;
