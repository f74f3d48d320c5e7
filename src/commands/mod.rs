//! (room)

pub mod scan;
