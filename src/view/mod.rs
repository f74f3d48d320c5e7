//! (room)

pub mod control;
pub mod scan;
