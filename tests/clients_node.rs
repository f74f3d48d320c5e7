//! node starts confined commands: child_process and node-pty.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod clients;
mod common;
mod programs;
mod supervise;

clients::cases! { "child_process_cases.js":
    streams
    lines_to_and_fro
    synchronous_and_shell
    detached_and_its_group_killed
    detached_in_the_background
    kill_timeout_and_abort
    interrupt_is_handled_inside
    a_channel_that_is_named
    many_at_once
    pty_interact
    pty_interrupt
    pty_resize
    pty_terminate
}
