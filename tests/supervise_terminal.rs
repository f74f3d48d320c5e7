//! On a terminal: confine as a job of an interactive shell, and as the program that a terminal was made for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod supervise;

use std::process::{Child, Command};
use std::time::Duration;

use common::{Scratch, Who};
use supervise::terminal::Terminal;
use supervise::*;

/// A program as leader of a session that the terminal controls.
fn lead(scratch: &Scratch, terminal: &Terminal, words: &[&str]) -> Child {
    let side = || terminal.slave.try_clone().unwrap();
    let mut command = Command::new("setsid");
    command.arg("--ctty").args(words).env_clear().current_dir(scratch.workspace());
    command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", scratch.home()).env("TERM", "dumb");
    command.env("LANG", "C").env("CONFINE_BIN", scratch.confine());
    command.stdin(side()).stdout(side()).stderr(side()).spawn().unwrap()
}

/// An interactive shell, with a function for confine that is short to type.
fn shell(scratch: &Scratch) -> (Terminal, Child) {
    let mut terminal = Terminal::new();
    let child = lead(scratch, &terminal, &["bash", "--norc", "--noprofile", "-i"]);
    let confine = scratch.confine();
    terminal.type_in("PS1='$ '; bind 'set enable-bracketed-paste off'\n");
    terminal.type_in(&format!(
        "c() {{ {} -w . --require process-hiding --env PS1='in> ' -- \"$@\"; }}; echo rea''dy\n",
        confine.display()
    ));
    terminal.expect("ready");
    (terminal, child)
}

fn finish(mut terminal: Terminal, mut shell: Child) {
    terminal.type_in("\nexit\nexit\n");
    std::thread::sleep(Duration::from_millis(100));
    let _ = shell.kill();
    shell.wait().unwrap();
}

#[test]
fn a_job_stops_and_goes_on_in_foreground_and_background() {
    let scratch = Scratch::new(Who::Root);
    let (mut terminal, shell) = shell(&scratch);
    let mark = mark();
    terminal.type_in(&format!("c sleep {mark}\n"));
    let command = program(&mark, "sleep");
    await_that("the foreground", || terminal.foreground() != shell.id() as i32);
    for _ in 0..3 {
        terminal.type_in("\x1a");
        terminal.expect("Stopped");
        await_that("stopped", || state(command) == Some('T'));
        terminal.type_in("echo st''ill\n");
        terminal.expect("still");
        terminal.type_in("bg\n");
        await_that("going on in the background", || state(command) == Some('S'));
        terminal.type_in("jobs\n");
        terminal.expect("Running");
        terminal.type_in("fg\n");
        terminal.expect("\"$@\"\r\n");
        await_that("the foreground", || terminal.foreground() != shell.id() as i32);
    }
    terminal.type_in("\x03");
    await_that("interrupted", || marked(&mark).is_empty());
    terminal.type_in("echo status $?\n");
    terminal.expect("status 130");
    finish(terminal, shell);
}

#[test]
fn reading_in_the_background_stops_as_a_plain_program_does() {
    let scratch = Scratch::new(Who::Root);
    let (mut terminal, shell) = shell(&scratch);
    terminal.type_in("c bash -c 'read x; echo go''t $x' & echo job $!\n");
    terminal.expect("\njob ");
    terminal.expect("\r\n");
    await_that("stopped", || children(shell.id() as i32).iter().any(|job| state(*job) == Some('T')));
    terminal.type_in("jobs\n");
    terminal.expect("Stopped");
    terminal.type_in("fg\n");
    terminal.expect("c bash");
    await_that("the foreground", || terminal.foreground() != shell.id() as i32);
    terminal.type_in("words\n");
    terminal.expect("got words");
    finish(terminal, shell);
}

#[test]
fn an_inner_shell_has_jobs_of_its_own() {
    let scratch = Scratch::new(Who::Root);
    let (mut terminal, shell) = shell(&scratch);
    let mark = mark();
    terminal.type_in("c bash --norc --noprofile -i\n");
    terminal.expect("in> ");
    let before = terminal.foreground();
    assert_ne!(before, shell.id() as i32);
    for (key, said) in [("\x03", "inner 130"), ("\x1c", "inner 131")] {
        terminal.type_in(&format!("sleep {mark}\n"));
        await_that("an inner job", || marked(&mark).len() == 1);
        await_that("its terminal", || marked(&mark) == [terminal.foreground()]);
        terminal.type_in(key);
        await_that("the end of the job alone", || marked(&mark).is_empty());
        terminal.type_in("echo inn''er $?\n");
        terminal.expect(said);
    }
    terminal.type_in(&format!("sleep {mark}\n"));
    await_that("an inner job", || marked(&mark).len() == 1);
    await_that("its terminal", || marked(&mark) == [terminal.foreground()]);
    terminal.type_in("\x1a");
    terminal.expect("Stopped");
    terminal.type_in("kill %1; fg; echo inn''er $?\n");
    terminal.expect("inner 143");
    let rest = terminal.rest();
    assert!(!rest.contains("no job control") && !rest.contains("cannot set terminal"), "{rest}");
    terminal.type_in("exit 5\n");
    terminal.expect("exit");
    terminal.type_in("echo out''er $?\n");
    terminal.expect("outer 5");
    await_that("the terminal is the shell's again", || terminal.foreground() == shell.id() as i32);
    finish(terminal, shell);
}

#[test]
fn a_whole_inner_shell_is_suspended_and_comes_back() {
    let scratch = Scratch::new(Who::Root);
    let (mut terminal, shell) = shell(&scratch);
    terminal.type_in("c bash --norc --noprofile -i\n");
    terminal.expect("in> ");
    for _ in 0..2 {
        terminal.type_in("suspend -f\n");
        terminal.expect("Stopped");
        await_that("the outer shell", || terminal.foreground() == shell.id() as i32);
        terminal.type_in("echo out''er\n");
        terminal.expect("outer");
        terminal.type_in("fg\n");
        terminal.expect("\"$@\"\r\n");
        terminal.type_in("echo inn''er\n");
        terminal.expect("inner");
    }
    finish(terminal, shell);
}

#[test]
fn a_program_that_dies_in_raw_mode_leaves_a_sane_terminal() {
    let scratch = Scratch::new(Who::Root);
    let raw = r"stty raw -echo; kill -9 \$\$";
    // The caller is no interactive shell, which would put things right by itself.
    for command in [format!("\"{raw}\""), format!("\"bash -c '{raw}'; exit \\$?\"")] {
        let mut terminal = Terminal::new();
        let script = format!(
            "\"$CONFINE_BIN\" -w . --require process-hiding -- bash -c {command}; echo ended $?; sleep 1"
        );
        let before = terminal.settings();
        let mut child = lead(&scratch, &terminal, &["bash", "-c", &script]);
        terminal.expect("ended 137");
        assert_eq!(terminal.settings(), before, "{command}");
        child.wait().unwrap();
    }
    // What a program sets on purpose stays.
    let mut terminal = Terminal::new();
    let before = terminal.settings();
    let script = "$CONFINE_BIN -w . --require process-hiding -- stty -echo; echo ended $?";
    let mut child = lead(&scratch, &terminal, &["bash", "-c", script]);
    terminal.expect("ended 0");
    assert_ne!(terminal.settings(), before);
    child.wait().unwrap();
}

#[test]
fn an_inner_job_that_held_the_terminal_gives_it_back_when_all_is_killed() {
    let scratch = Scratch::new(Who::Root);
    let (mut terminal, shell) = shell(&scratch);
    let mark = mark();
    let script = format!("c bash --norc -i -c 'set -m; sleep {mark}'; echo ended $?\n");
    terminal.type_in(&script);
    await_that("an inner job", || marked(&mark).iter().any(|pid| terminal.foreground() == *pid));
    let monitor = children(shell.id() as i32)[0];
    send(init_and_command(monitor).0, libc::SIGKILL);
    terminal.expect("ended 137");
    await_that("the terminal is the shell's again", || terminal.foreground() == shell.id() as i32);
    finish(terminal, shell);
}

#[test]
fn a_new_size_is_seen_inside() {
    let scratch = Scratch::new(Who::Root);
    let mut terminal = Terminal::new();
    let confine = scratch.confine();
    // No shell: bash passes over an interrupt that comes just as what it waits for has ended by itself.
    let script = "import os, signal, time\n\
        size = lambda *_: print('%d %d' % os.get_terminal_size()[::-1], flush=True)\n\
        signal.signal(signal.SIGWINCH, size)\n\
        print('ready', flush=True)\n\
        while True: time.sleep(60)";
    let words = [confine.to_str().unwrap(), "-w", ".", "--require=teardown", "--", "python3", "-c", script];
    let mut child = lead(&scratch, &terminal, &words);
    terminal.expect("ready");
    terminal.resize(31);
    terminal.expect("31 80");
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(terminal.rest().matches("31 80").count(), 0, "once is enough");
    // As leader of its session, as programs that drive a terminal start it: keys reach the command.
    terminal.type_in("\x03");
    assert_eq!(common::run::wait(&mut child).code(), Some(130));
}

#[test]
fn a_hangup_reaches_the_command_once_and_ends_the_run() {
    for (option, told) in [("--require=teardown", true), ("--require=process-hiding", true)] {
        let scratch = Scratch::new(Who::Root);
        let mark = mark();
        let terminal = Terminal::new();
        let confine = scratch.confine();
        let heard = scratch.path("w/heard");
        let script = format!("trap 'echo hup >>heard' HUP; sleep {mark} & wait; wait; sleep 0.3; exit 1");
        let words = [confine.to_str().unwrap(), "-w", ".", option, "--", "bash", "-c", &script];
        let mut child = lead(&scratch, &terminal, &words);
        await_that("the command", || marked(&mark).len() == 2);
        let (_, command) = init_and_command(child.id() as i32);
        await_that("a trap", || catches(command, libc::SIGHUP));
        terminal.hang_up();
        await_that("a word of it", || heard.exists());
        if option == "--require=teardown" {
            assert!(common::within_a_second(|| marked(&mark).is_empty()));
        } else {
            // Not ended for that: the command has handled it.
            std::thread::sleep(Duration::from_millis(900));
            assert_eq!(marked(&mark).len(), 2);
        }
        // Before the end: a session's leader that is killed leaves a hangup to its foreground group (setsid(2)).
        assert_eq!(std::fs::read_to_string(&heard).unwrap() == "hup\n", told);
        send(child.id() as i32, libc::SIGKILL);
        common::run::wait(&mut child);
    }
}
