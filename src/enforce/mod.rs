//! (room)
pub mod seccomp;
