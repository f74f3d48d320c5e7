//! Programs at a terminal: job control, keys, size, and terminals of their own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod programs;

use programs::{at_terminal, for_everyone, need, works};

/// A shell with a prompt that no output has.
fn at_shell(script: &str) {
    for_everyone(|scratch| {
        scratch.file("w/rc", "PS1='READY> '\n");
        let start = "proc ready {} { see \"READY> \" }\n\
            eval spawn -noecho $confine bash --rcfile rc --noediting -i\nready\n";
        at_terminal(scratch, &format!("{start}{script}"));
    });
}

#[test]
fn an_interactive_shell_has_job_control() {
    at_shell(
        r#"
        send "case \$- in *im*) echo jobs-\$((20+1));; esac\r"; see "jobs-21"; ready
        send "sleep 50\r"; sleep 0.3; send "\x1a"; see "Stopped.*sleep 50"; ready
        send "bg\r"; see "sleep 50 &"; ready
        send "jobs\r"; see "Running.*sleep 50"; ready
        send "fg\r"; see "sleep 50"; sleep 0.2; send "\x03"; ready
        send "jobs; echo none-\$((1+1))\r"; see "none-2"; ready
        send "exit 7\r"; ends 7
        "#,
    );
}

#[test]
fn an_interactive_shell_says_nothing_about_the_terminal() {
    for_everyone(|scratch| {
        at_terminal(
            scratch,
            r#"
            eval spawn -noecho $confine bash --norc --noprofile -i
            expect "no job control" { fails "no job control" } "cannot set" { fails "process group" } -re {[$#] $} {}
            send "exit\r"; ends 0
            "#,
        );
    });
}

#[test]
fn interrupt_reaches_only_the_foreground_job() {
    at_shell(
        r#"
        send "(trap '' INT; sleep 0.6; echo late-\$((40+2))) & sleep 50\r"; sleep 0.3; send "\x03"; ready
        send "wait; echo over-\$((2+3))\r"; see "late-42"; see "over-5"; ready
        send "exit 0\r"; ends 0
        "#,
    );
}

#[test]
fn interrupt_and_quit_end_the_command_itself() {
    for_everyone(|scratch| {
        at_terminal(
            scratch,
            r#"
            foreach {key name} {"\x03" SIGINT "\x1c" SIGQUIT} {
                eval spawn -noecho $confine sh -c {{echo up; exec sleep 50}}
                see "up"; sleep 0.1; send $key; expect eof
                set result [wait]
                if {[lsearch $result $name] < 0} { fails "$name: $result" }
            }
            "#,
        );
    });
}

#[test]
fn a_new_size_arrives_with_its_signal() {
    at_shell(
        r#"
        send "stty size\r"; see "\[0-9\]+ \[0-9\]+"; ready
        send "trap 'echo resized-\$((10+1))' WINCH\r"; ready
        exec stty rows 33 columns 101 < $spawn_out(slave,name)
        send "\r"; see "resized-11"
        send "stty size\r"; see "33 101"; ready
        send "exit 0\r"; ends 0
        "#,
    );
}

#[test]
fn raw_mode_and_hidden_input_work_and_the_terminal_has_a_name() {
    at_shell(
        r#"
        send "read -s -p 'secret? ' x; echo; echo got-\${#x}\r"; see "secret\\? "; send "abcde\r"; see "got-5"; ready
        send "stty raw -echo; dd bs=1 count=1 status=none | od -An -c; stty sane\r"; sleep 0.3; send "\x04"; see "004"; ready
        send "tty; echo named-\$((1+1)) > /dev/tty\r"; see "/dev/\[a-z0-9/\]+"; see "named-2"; ready
        send "exit 0\r"; ends 0
        "#,
    );
}

#[test]
fn a_full_screen_multiplexer_runs_at_the_terminal() {
    need(&["tmux"]);
    for_everyone(|scratch| {
        at_terminal(
            scratch,
            r#"
            eval spawn -noecho $confine tmux -f /dev/null new-session {{sh -c 'echo pane-$((20+2)); read x; exit 0'}}
            see "pane-22"; send "\r"; see "exited"; ends 0
            "#,
        );
    });
}

#[test]
fn programs_open_terminals_of_their_own() {
    need(&["tmux", "script", "expect"]);
    for_everyone(|scratch| {
        let out = works(
            scratch,
            r#"tmux -f /dev/null new-session -d -s s 'tty > pane; sleep 30'
               for i in $(seq 100); do test -s pane && break; sleep 0.05; done; cat pane
               tmux send-keys -t s x; tmux ls -F '#{session_name}'; tmux kill-server
               script -qec 'tty; exit 3' /dev/null || echo "script $?"
               expect -c 'spawn -noecho sh -c {read x; echo got-$x}; send "hi\r"; expect got-hi; exit [lindex [wait] 3]' > /dev/null
               python3 -c 'import pty,sys; sys.exit(pty.spawn(["sh","-c","test -t 0 && test -t 1"]))'"#,
        );
        let lines: Vec<&str> = out.lines().map(str::trim).collect();
        assert!(lines[0].starts_with("/dev/pts/") && lines[1] == "s", "{out}");
        assert!(lines[2].starts_with("/dev/pts/") && lines[3] == "script 3", "{out}");
    });
}
