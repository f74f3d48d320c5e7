//! tmux runs confined commands: windows that are typed into, resized and closed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod clients;
mod common;
mod programs;
mod supervise;

clients::cases! { "tmux_cases.py":
    interact_interrupt_and_end
    suspend_and_foreground
    resize
    kill_session
    kill_session_ends_the_foreground
}
