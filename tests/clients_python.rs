//! Python starts confined commands: subprocess, asyncio, pexpect, ptyprocess.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod clients;
mod common;
mod programs;
mod supervise;

mod subprocess {
    use crate::clients;
    clients::cases! { "subprocess_cases.py":
        communicate
        text_and_merged_streams
        through_a_shell
        lines_to_and_fro
        session_of_its_own_and_its_group_killed
        group_killed_at_once
        group_of_its_own_in_the_background
        timeout_kills_what_was_started
        timeout_with_grandchildren
        interrupt_is_an_exception_inside
        stopped_and_continued
        detached_output_to_a_file
        descriptor_handed_on
        empty_environment
        many_at_once
        missing_command
    }
}

mod asyncio {
    use crate::clients;
    clients::cases! { "asyncio_cases.py":
        communicate
        lines_as_they_come
        terminate_and_kill
        timeout_then_the_group
        cancelled_task
        through_a_shell
        many_at_once
    }
}

mod terminal {
    use crate::clients;
    clients::cases! { "terminal_cases.py":
        start_and_interact
        interrupt_reaches_the_job_and_not_the_shell
        resize
        terminate
        close_hangs_up
        end_of_file_and_signals
        interpreter_as_a_repl
        run_with_events
        pty_start_and_interact
        pty_terminate
        pty_end_of_file
    }
}
