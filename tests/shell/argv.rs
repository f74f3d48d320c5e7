//! Each form of a call, against the shell that it stands for: the same output, the same status.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;

use super::*;

/// argv[0] of confine-shell and of the shell itself.
const NAMES: &[(&str, &str)] = &[
    ("/usr/bin/confine-shell", "SHELL"),
    ("confine-shell", "short"),
    ("-confine-shell", "-short"),
    ("sh", "sh"),
    ("-bash", "-bash"),
    ("bash", "bash"),
];

/// What agents and programs pass on, in their order.
const FORMS: &[&[&str]] = &[
    &["-c", "echo $0 $# \"$@\"; exit 7"],
    &["-c", "echo $0 $# \"$@\"; exit 7", "name", "a", "b c", "", "-c", "--", "\n"],
    &["-lc", "echo $0 $-; exit 7", "name"],
    &["-l", "-c", "echo \"$0: $1\"", "name", "x"],
    &["-c", "-l", "echo $0", "name"],
    &["-ec", "false; echo not reached"],
    &["-e", "-u", "-c", "echo $unset_variable"],
    &["-euc", "set -f; echo *"],
    &["-c", "--", "echo two dashes"],
    &["-c", "pwd; cd ..; test -w own && echo wrong; cd - > /dev/null; cat own/own"],
    &["-c", "cat"],
    &["-s", "a", "b"],
    &["-c"],
    &["-c", "exit 200"],
    &["-c", "kill -TERM $$"],
    &["-c", "kill -KILL $$"],
    &["-c", "echo to stderr >&2; nosuchcommand"],
    &["-c", "if"],
    &["-Z"],
    &["script", "x", "y z"],
    &["./script"],
    &["nosuchscript"],
    &["--", "script", "w"],
    &["-"],
    &[],
];

const OF_BASH: &[&[&str]] = &[
    &["-c", "shopt -q login_shell; echo $? $BASH_EXECUTION_STRING; set -o | grep posix"],
    &["-l", "-c", "shopt -q login_shell; echo $?"],
    &["--login", "-c", "shopt -q login_shell; echo $?"],
    &["--noprofile", "--norc", "-o", "pipefail", "-c", "false | true"],
    &["--norc", "-c", "echo $0", "name"],
    &["-O", "extglob", "-c", "shopt extglob"],
    &["+O", "sourcepath", "-c", "shopt sourcepath"],
    &["--nonsense"],
    &["--version"],
    &["-i", "-c", "echo $-"],
    &["-ic", "echo $-"],
    &["-lic", "echo $-"],
    &["--rcfile", "script", "-i", "-c", "true"],
];

fn compare(shell: &str, short: &str, names: &[(&str, &str)], forms: &[&[OsString]]) {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let account = Account::new(who);
        let workspace = account.scratch.workspace();
        account.write(&format!("shell = '{shell}'\nworkspaces = ['{}']\n", workspace.display()));
        account.scratch.file("w/script", "echo script $0 $# \"$@\"\n");
        let input = account.scratch.file("w/input", "echo from stdin $0 $# \"$@\"; exit 9\n");
        for (called, real) in names {
            let real = real.replace("SHELL", shell).replace("short", short);
            for form in forms {
                let run = |name: &str, program: &OsStr| {
                    let mut command = vec![program.to_owned()];
                    command.extend(form.iter().cloned());
                    let run = account.run().under(["bash", "-c", "exec -a \"$0\" \"$@\"", name]);
                    run.stdio(0, File::open(&input).unwrap()).command(command).run()
                };
                let (inside, plain) =
                    (run(called, account.program().as_ref()), run(&real, OsStr::new(shell)));
                let same = inside.status == plain.status
                    && inside.out == plain.out
                    && inside.err.is_empty() == plain.err.is_empty();
                findings.claim(same, || {
                    format!("{who:?}: {called} {form:?}: {}\n  {real}: {}", inside.tell(), plain.tell())
                });
            }
        }
    }
    findings.settle();
}

fn owned(forms: &[&[&str]]) -> Vec<Vec<OsString>> {
    forms.iter().map(|form| form.iter().map(OsString::from).collect()).collect()
}

fn compare_all(shell: &str, short: &str, names: &[(&str, &str)], forms: Vec<Vec<OsString>>) {
    let forms: Vec<&[OsString]> = forms.iter().map(Vec::as_slice).collect();
    compare(shell, short, names, &forms);
}

#[test]
fn every_form_of_a_call_does_what_bash_does() {
    let mut forms = owned(FORMS);
    forms.extend(owned(OF_BASH));
    forms.push(vec![
        "-c".into(),
        "printf %s \"$1\" | od -An -tx1".into(),
        "x".into(),
        OsStr::from_bytes(b"\xff\xfe").into(),
    ]);
    compare_all("/bin/bash", "bash", &NAMES[..1], forms);
}

#[test]
fn the_name_that_it_is_called_by_reaches_the_shell() {
    compare_all(
        "/bin/bash",
        "bash",
        NAMES,
        owned(&[FORMS[0], FORMS[2], FORMS[11], FORMS[19], FORMS[24], OF_BASH[0], OF_BASH[1]]),
    );
}

#[test]
fn every_form_of_a_call_does_what_sh_and_zsh_do() {
    compare_all("/bin/sh", "sh", &NAMES[..1], owned(FORMS));
    compare_all("/usr/bin/zsh", "zsh", &NAMES[1..2], owned(FORMS));
}

#[test]
fn a_hundred_kilobytes_of_command_arrive_whole() {
    for who in EVERYONE {
        let account = Account::new(who);
        let script = format!(": {}; echo done", "x".repeat(100 << 10));
        assert_eq!(account.script(&script).out, "done\n");
    }
}

#[test]
fn it_is_one_process_and_the_shell_knows_itself() {
    for who in EVERYONE {
        let account = Account::new(who);
        let outcome = account.shell(["-c", "echo $$ $SHELL $CONFINE"]).env("SHELL", account.program()).run();
        // The wrappers of the test exec in a row, so that the process is still the one that was started.
        assert_eq!(outcome.out, format!("{} /bin/bash 1\n", outcome.pid), "{}", outcome.tell());
    }
}

#[test]
fn the_shell_is_the_login_shell_unless_that_is_confine_shell_itself() {
    for (login, shell) in [
        ("/usr/bin/zsh", "/usr/bin/zsh"),
        ("/opt/confine-shell", "/bin/bash"),
        ("/usr/sbin/nologin", "/bin/bash"),
        ("zsh", "/bin/bash"),
        ("", "/bin/bash"),
    ] {
        for who in EVERYONE {
            let account = Account { login, ..Account::new(who) };
            assert_eq!(account.script("echo $SHELL $0").out, format!("{shell} {shell}\n"), "{login}");
        }
    }
    let account = Account::new(Who::User);
    let text = format!("shell = '{}'\nworkspaces = ['/tmp/*']\n", account.program().display());
    account.write(&text);
    assert!(account.script("true").refused(&["line 1", "confine-shell itself", "shell = \"/bin/bash\""]));
    // By another name, too.
    let other = account.scratch.path("bin/other");
    std::fs::hard_link(account.program(), &other).unwrap();
    account.write(&text.replace("confine-shell", "other"));
    assert!(account.script("true").refused(&["confine-shell itself"]));
}
