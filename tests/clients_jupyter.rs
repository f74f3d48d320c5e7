//! jupyter_client starts confined kernels through the kernelspecs of docs/agents/jupyter.md: cells, interrupt, restart, shutdown.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod clients;
mod common;
mod programs;
mod supervise;

// The recipes require teardown, which takes namespaces.
clients::cases! { "jupyter_cases.py" in [clients::Mode::Ordinary, clients::Mode::Strict] =>
    cells_over_tcp
    cells_over_ipc
    interrupt_by_signal_over_tcp
    interrupt_by_signal_over_ipc
    interrupt_by_message_over_tcp
    interrupt_by_message_over_ipc
    restart_and_shutdown_over_tcp
    restart_and_shutdown_over_ipc
}
