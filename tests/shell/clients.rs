//! Programs that take a shell.

use super::*;

/// `$S` is confine-shell.
fn ask(account: &Account, script: &str) -> Outcome {
    account
        .run()
        .env("S", account.program())
        .env("SHELL", account.program())
        .command(["bash", "-c", script])
        .run()
}

#[test]
fn programs_that_take_a_shell_get_a_confined_one() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let account = Account::new(who);
        account.scratch.file("outside/secret", "secret\n");
        for (program, script) in [
            (
                "python subprocess",
                r#"python3 -c 'import os, subprocess as s
print(s.run("echo $CONFINE; cat ../outside/secret; exit 3", shell=True, executable=os.environ["S"], stderr=s.DEVNULL).returncode)'"#,
            ),
            (
                "python asyncio",
                r#"python3 -c 'import os, asyncio
async def main():
    p = await asyncio.create_subprocess_shell("echo $CONFINE; cat ../outside/secret; exit 3", executable=os.environ["S"], stderr=-3)
    print(await p.wait())
asyncio.run(main())'"#,
            ),
            (
                "node",
                r#"node -e 'const c = require("child_process");
c.exec("echo $CONFINE; cat ../outside/secret; exit 3", {shell: process.env.S}, (e, out) => console.log(out + e.code))'"#,
            ),
            (
                "node spawn",
                r#"node -e 'const c = require("child_process");
c.spawn("echo $CONFINE; cat ../outside/secret; exit 3", {shell: process.env.S, stdio: ["ignore", "inherit", "ignore"]}).on("close", s => console.log(s))'"#,
            ),
            (
                "make",
                r#"printf 'SHELL := %s\n.ONESHELL:\nall:\n\t@echo $$CONFINE; cat ../outside/secret; exit 3\n' "$S" > Makefile; make -s 2>/dev/null; echo $(($?+1))"#,
            ),
            (
                "script",
                r#"script -qec 'echo $CONFINE; cat ../outside/secret 2>/dev/null; exit 3' /dev/null | tr -d '\r'; echo ${PIPESTATUS[0]}"#,
            ),
            (
                "xargs",
                r#"echo 'echo $CONFINE; cat ../outside/secret; exit 3' | xargs -0 "$S" -lc 2>/dev/null; echo 3"#,
            ),
        ] {
            let outcome = ask(&account, script);
            findings.claim(outcome.out == "1\n3\n", || format!("{who:?}: {program}: {}", outcome.tell()));
        }
    }
    findings.settle();
}

/// The recipes as they are written. The programs' own part: how each calls the shell that it was told of.
#[test]
fn agents_that_are_told_of_it_by_their_recipe_run_confined_commands() {
    const INSIDE: &str = "echo $CONFINE; cat ../outside/secret; exit 3";
    let mut findings = Findings::default();
    for who in EVERYONE {
        let account = Account::new(who);
        account.scratch.file("outside/secret", "secret\n");
        let program = account.program().display().to_string();
        let recipe = |name| recipes::recipe(name).replace("/usr/bin/confine-shell", &program);
        let setting = |name, pointer| {
            let settings: serde_json::Value = serde_json::from_str(&recipe(name)).unwrap();
            settings.pointer(pointer).unwrap().as_str().unwrap().to_owned()
        };
        account.scratch.script("bin/aider", "#!/bin/sh\n\"$SHELL\" -i -c \"$INSIDE\"\necho $?\n");
        account.scratch.script("bin/goose", "#!/bin/sh\n\"$GOOSE_SHELL\" -c \"$INSIDE\"\necho $?\n");
        for (name, script) in [
            ("shell-aider", recipe("shell-aider")),
            ("shell-goose", recipe("shell-goose")),
            ("shell-opencode", format!("{} -c \"$INSIDE\"; echo $?", setting("shell-opencode", "/shell"))),
            (
                "shell-claude",
                format!("{} '{INSIDE}'; echo $?", setting("shell-claude", "/env/CLAUDE_CODE_SHELL_PREFIX")),
            ),
        ] {
            let path = format!("{}:/usr/bin:/bin", account.scratch.path("bin").display());
            let run = account.run().env("INSIDE", INSIDE).env("PATH", path);
            let outcome = run.command(["bash", "-c", &script]).run();
            findings.claim(outcome.out == "1\n3\n", || format!("{who:?}: {name}: {}", outcome.tell()));
        }
    }
    findings.settle();
}

#[test]
fn a_terminal_server_starts_it_in_its_panes() {
    for who in EVERYONE {
        let account = Account::new(who);
        let outcome = ask(
            &account,
            r#"export TERM=xterm; T="tmux -f /dev/null -S $TMPDIR/t"
               $T new-session -d -s s -x 80 -y 24 "sleep 600"; $T set -g default-shell "$S"
               $T new-window 'echo $CONFINE $0 $SHELL > pane; cat ../outside/* >> pane'
               for i in $(seq 1000); do test -s pane && break; sleep 0.05; done; cat pane
               $T new-window; $T send-keys 'echo $CONFINE $- $0 > typed; tty >> typed' Enter
               for i in $(seq 1000); do grep -q /dev/ typed 2>/dev/null && break; sleep 0.05; done; cat typed; $T kill-server"#,
        );
        let lines: Vec<&str> = outcome.out.lines().collect();
        assert_eq!(lines[0], "1 bash /bin/bash", "{}", outcome.tell());
        assert!(lines[1].starts_with("1 h") || lines[1].contains('i'), "{}", outcome.tell());
        assert!(lines[1].ends_with(" -bash") && lines[2].starts_with("/dev/"), "{}", outcome.tell());
    }
}

#[test]
fn a_login_shell_from_the_password_file_works() {
    let mut account = Account::bare(Who::User);
    let scratch = &account.scratch;
    let w = scratch.workspace();
    account.write(&format!("workspaces = ['{0}']\nstart = '{0}'\n", w.display()));
    // As root, the way login(1) and sshd(8) go: the account's shell is confine-shell.
    let entry = format!(
        "sed -i 's|^tester.*|tester:x:{USER}:{USER}:T:{}:{}|' /etc/passwd; echo 'tester:*:1::::::' >> /etc/shadow; echo {} >> /etc/shells",
        scratch.home().display(),
        account.program().display(),
        account.program().display(),
    );
    account.machine = entry;
    let as_root = Account { scratch: Scratch::new(Who::Root), ..Account::bare(Who::Root) };
    let su = |line: &[&str], input: &str| {
        let file = as_root.scratch.file("w/typed", input);
        let machine = Account {
            machine: account.machine.clone(),
            scratch: Scratch::new(Who::Root),
            login: "/bin/bash",
        };
        machine.run().stdio(0, std::fs::File::open(file).unwrap()).command(line.iter().copied()).run()
    };
    let outcome = su(&["su", "-", "tester", "-c", "pwd; echo $0 $CONFINE $SHELL $(id -u); exit 7"], "");
    assert_eq!(outcome.code(), Some(7), "{}", outcome.tell());
    assert_eq!(outcome.out, format!("{}\n-bash 1 /bin/bash {USER}\n", w.display()));
    let outcome = su(&["su", "-", "tester"], "pwd\nshopt -q login_shell && echo login\nexit 8\n");
    assert_eq!((outcome.code(), outcome.out), (Some(8), format!("{}\nlogin\n", w.display())));
}

#[test]
fn inside_a_boundary_it_works_or_says_why() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let mut account = Account::bare(who);
        let w = account.scratch.workspace();
        copy(&account.program(), &w.join("confine-shell"));
        let run = |account: &Account| {
            account.shell(["-c", "./confine-shell -c 'echo nested $CONFINE' || echo $?"]).run()
        };
        account.write(&format!("workspaces = ['{}']\n", w.display()));
        let outcome = run(&account);
        let told = outcome.out == "125\n"
            && outcome.err.contains("inside a boundary any other shell is confined as well");
        findings.claim(told, || format!("{who:?}: {}", outcome.tell()));
        account.machine =
            format!("echo \"workspaces = [\\\"{}\\\"]\" > /etc/confine/shell.toml", w.display());
        let outcome = run(&account);
        findings.claim(outcome.out == "nested 1\n", || {
            format!("{who:?}: the machine's file: {}", outcome.tell())
        });
    }
    findings.settle();
}
