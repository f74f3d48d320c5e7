//! By whose word: a file of the user's or of the administrator's, and nothing that whoever wrote the command could
//! have set or made.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::Path;

use super::*;

/// Any user but the caller and root.
const STRANGER: u32 = 54399;

const PROBE: &str = "touch here; ls ../outside; cat ../home/.ssh/id; echo end";

#[test]
fn the_workspace_is_written_and_the_rest_is_neither_written_nor_read() {
    for who in EVERYONE {
        let account = Account::new(who);
        account.scratch.file("outside/file", "");
        let outcome = account.script(PROBE);
        assert_eq!(outcome.out, "end\n", "{}", outcome.tell());
        assert!(account.scratch.path("w/here").exists());
    }
}

#[test]
fn the_deepest_workspace_that_holds_the_directory_is_taken() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let account = Account::bare(who);
        let scratch = &account.scratch;
        for dir in
            ["home/src", "home/src/a", "home/src/a/sub", "home/src/b", "home/p", "home/p/in", "home/p/in/x"]
        {
            scratch.dir(dir);
        }
        account.write(
            "workspaces = ['~/src/*', '~/p', '~/p/in', '~/missing', '~/missing/*']\n[profiles]\n'~/src/b' = 'read-only'\n",
        );
        for (cwd, root) in [
            ("home/src/a", Some("home/src/a")),
            ("home/src/a/sub", Some("home/src/a")),
            ("home/p", Some("home/p")),
            ("home/p/in", Some("home/p/in")),
            ("home/p/in/x", Some("home/p/in")),
            ("home/src", None),
            ("home", None),
            ("outside", None),
        ] {
            let outcome = account
                .shell([
                    "-c",
                    "pwd; touch \"$0\"/made && echo \"$0\"; touch \"$0\"/../above",
                    &scratch.path(root.unwrap_or("home")).display().to_string(),
                ])
                .cwd(scratch.path(cwd))
                .run();
            let right = match root {
                Some(root) => {
                    outcome.out
                        == format!("{}\n{}\n", scratch.path(cwd).display(), scratch.path(root).display())
                }
                None => {
                    let hint = if cwd == "home" { "start = '~/src/PROJECT'" } else { "add to line 1: '" };
                    outcome.refused(&["is in none of the workspaces of", "shell.toml'", "hint: ", hint])
                }
            };
            findings.claim(right, || format!("{who:?}: {cwd}: {}", outcome.tell()));
        }
        let outcome = account.shell(["-c", "pwd; touch no"]).cwd(scratch.path("home/src/b")).run();
        let read_only = outcome.code() == Some(1) && outcome.err.contains("Read-only");
        findings.claim(read_only, || format!("{who:?}: the other profile: {}", outcome.tell()));
    }
    findings.settle();
}

#[test]
fn a_session_that_begins_at_home_goes_where_the_file_says() {
    for who in EVERYONE {
        let account = Account::new(who);
        let workspace = account.scratch.workspace();
        let at_home = || account.shell(["-c", "pwd; touch made"]).cwd(account.scratch.home()).run();
        assert!(at_home().refused(&["in none of the workspaces"]));
        account.write(&format!("workspaces = ['{0}']\nstart = '{0}/own'\n", workspace.display()));
        let outcome = at_home();
        assert_eq!(outcome.out, format!("{}/own\n", workspace.display()), "{}", outcome.tell());
        assert!(account.scratch.path("w/own/made").exists());
        // Only there: any other directory is meant.
        let elsewhere = account.shell(["-c", "pwd"]).cwd(account.scratch.outside()).run();
        assert!(elsewhere.refused(&["in none of the workspaces"]));
        account.write(&format!("workspaces = ['{}']\nstart = '~/x'\n", workspace.display()));
        account.scratch.dir("home/x");
        assert!(at_home().refused(&["line 2", "start", "in none of the workspaces"]));
    }
}

/// One change each to a set-up that works, of the file itself or of a directory above.
type Change = (&'static str, fn(&Scratch, &Path), &'static [&'static str]);

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

const UNTRUSTED: &[Change] = &[
    ("a stranger's", |_, file| chown(file, Some(STRANGER), None).unwrap(), &["belongs to uid 54399"]),
    ("the group's", |_, file| mode(file, 0o664), &["can be written by others", "chmod go-w"]),
    ("everybody's", |_, file| mode(file, 0o646), &["can be written by others"]),
    (
        "in everybody's directory",
        |scratch, _| mode(&scratch.path("home/.config"), 0o777),
        &["lies below", "others can write"],
    ),
    (
        "in a stranger's directory",
        |scratch, _| chown(scratch.path("home/.config/confine"), Some(STRANGER), None).unwrap(),
        &["belongs to uid 54399"],
    ),
    (
        "behind a stranger's link",
        |scratch, file| {
            fs::rename(file, scratch.path("home/real")).unwrap();
            symlink("../../real", file).unwrap();
            lchown(file, Some(STRANGER), None).unwrap();
        },
        &["belongs to uid 54399"],
    ),
    (
        "a link to nothing",
        |_, file| {
            fs::remove_file(file).unwrap();
            symlink("nothing", file).unwrap();
        },
        &["no such file"],
    ),
    (
        "behind a link into the workspace",
        |scratch, file| {
            fs::rename(file, scratch.path("w/shell.toml")).unwrap();
            fs::remove_file(file).ok();
            symlink(scratch.path("w/shell.toml"), file).unwrap();
            scratch.give(file);
        },
        &["in '", "/w', where commands can write"],
    ),
    (
        "behind a link that lies in the workspace",
        |scratch, file| {
            fs::rename(file, scratch.path("home/real")).unwrap();
            scratch.link(scratch.path("home/real"), "w/link");
            symlink(scratch.path("w/link"), file).unwrap();
            scratch.give(file);
        },
        &["reached by a link, in '", "where commands can write"],
    ),
    (
        "a key that is misspelt",
        |_, file| fs::write(file, "workspace = []\n").unwrap(),
        &["line 1", "did you mean 'workspaces'?"],
    ),
    ("not TOML", |_, file| fs::write(file, "workspaces = [\n").unwrap(), &["line 1"]),
    (
        "no profile",
        |_, file| fs::write(file, "workspaces = ['/tmp/*']\nprofile = 'biuld'\n").unwrap(),
        &["line 2: no profile 'biuld'", "'build'"],
    ),
];

#[test]
fn a_file_that_others_could_have_written_is_not_gone_by() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        for (what, change, words) in UNTRUSTED {
            let account = Account::new(who);
            let file = account.scratch.path("home/.config/confine/shell.toml");
            let twin = account.script("echo ran");
            findings.claim(twin.out == "ran\n", || format!("{who:?}: before {what}: {}", twin.tell()));
            change(&account.scratch, &file);
            let outcome = account.script("echo ran");
            findings.claim(outcome.refused(words), || format!("{who:?}: {what}: {}", outcome.tell()));
        }
        // The user's own link to the user's own file is the user's word.
        let account = Account::new(who);
        let file = account.scratch.path("home/.config/confine/shell.toml");
        fs::rename(&file, account.scratch.path("home/real")).unwrap();
        account.scratch.link("../../real", "home/.config/confine/shell.toml");
        let twin = account.script("echo ran");
        findings.claim(twin.out == "ran\n", || format!("{who:?}: own link: {}", twin.tell()));
    }
    findings.settle();
}

#[test]
fn neither_the_environment_nor_the_workspace_chooses() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let account = Account::new(who);
        let scratch = &account.scratch;
        scratch.file("outside/bin", "");
        fs::remove_file(scratch.path("outside/bin")).unwrap();
        scratch.dir("outside/bin");
        scratch.file("outside/bin/secret", "secret\n");
        scratch.file("outside/secret", "secret\n");
        scratch.dir("outside/.cargo");
        scratch.file("outside/.cargo/secret", "secret\n");
        // All that a hostile command could leave behind.
        for dir in [
            "w/.config",
            "w/.config/confine",
            "w/.config/confine/profiles",
            "w/confine",
            "w/confine/profiles",
        ] {
            scratch.dir(dir);
        }
        let planted = format!(
            "workspaces = ['{}', '{}']\nprofile = 'open'\n",
            scratch.workspace().display(),
            scratch.root().display()
        );
        let open = format!("ro = ['{}']\nenv = ['SAID=yes']\n", scratch.outside().display());
        for base in ["w/.config/confine", "w/confine", "w"] {
            scratch.file(&format!("{base}/shell.toml"), &planted);
            scratch.file(&format!("{base}/profiles.toml"), &open);
        }
        for base in ["w/.config/confine", "w/confine"] {
            scratch.file(&format!("{base}/profiles/open.toml"), &open);
        }
        let w = scratch.workspace();
        let outside = scratch.outside();
        let probe = "cat ../outside/secret ../outside/bin/secret ../outside/.cargo/secret; touch ../outside/made; echo $SAID end";
        let run = |with: &dyn Fn(Run) -> Run| with(account.shell(["-c", probe])).run();
        let variables: &[(&str, &Path)] = &[
            ("HOME", &w),
            ("HOME", &outside),
            ("XDG_CONFIG_HOME", &w),
            ("XDG_STATE_HOME", &w),
            ("PATH", &outside.join("bin")),
            ("SSL_CERT_FILE", &outside.join("secret")),
            ("CARGO_HOME", &outside.join("bin")),
            ("RUSTUP_HOME", &outside),
            ("PWD", &outside),
            ("SHELL", &outside),
            ("BASH_ENV", &outside.join("secret")),
            ("CONFINE", Path::new("0")),
            ("CONFINE_PROFILE", Path::new("open")),
            ("CONFINE_WORKSPACE", &outside),
            ("CONFINE_POLICY", &w.join("shell.toml")),
            ("CONFINE_SHELL", Path::new("/bin/sh")),
            ("CONFINE_NOTE", &outside.join("secret")),
        ];
        for (name, value) in variables {
            let value = match *name {
                "PATH" => format!("{}:/usr/bin:/bin", value.display()),
                _ => value.display().to_string(),
            };
            let outcome = run(&|run| run.env(name, &value));
            findings.claim(outcome.out == "end\n" && outcome.ok(), || {
                format!("{who:?}: {name}={value}: {}", outcome.tell())
            });
        }
        findings.claim(!outside.join("made").exists(), || format!("{who:?}: written outside"));
        // The twin: who says that the environment is trusted is shown what it names.
        account.write(&format!("workspaces = ['{}']\ntrust-environment = true\n", w.display()));
        let path = format!("{}:/usr/bin:/bin", outside.join("bin").display());
        let outcome = run(&|run| run.env("PATH", &path));
        findings.claim(outcome.out.starts_with("secret\n"), || {
            format!("{who:?}: trusted PATH: {}", outcome.tell())
        });
        let outcome = run(&|run| run.env("SSL_CERT_FILE", outside.join("secret")));
        findings.claim(outcome.out == "secret\nend\n", || format!("{who:?}: trusted CA: {}", outcome.tell()));
        // And what the profile of the user's own says holds, whatever HOME is.
        scratch.dir("home/.config/confine/profiles");
        scratch.file(
            "home/.config/confine/profiles/mine.toml",
            "ro = ['~/../outside/secret']\nenv = ['SAID=mine']\n",
        );
        account.write(&format!("workspaces = ['{}']\nprofile = 'mine'\n", w.display()));
        let outcome = run(&|run| run.env("HOME", &w).env("XDG_CONFIG_HOME", &w));
        findings.claim(outcome.out == "secret\nmine end\n", || {
            format!("{who:?}: own profile: {}", outcome.tell())
        });
    }
    findings.settle();
}

#[test]
fn a_directory_that_a_command_has_led_elsewhere_is_not_opened() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let account = Account::new(who);
        let scratch = &account.scratch;
        scratch.file("outside/secret", "secret\n");
        scratch.link(scratch.outside(), "w/led");
        // The link is followed by whoever changes the directory, and leads to no workspace.
        let outcome =
            account.shell(["-c", "ls"]).cwd(scratch.path("w/led")).env("PWD", scratch.path("w/led")).run();
        findings.claim(outcome.refused(&["outside' is in none of the workspaces"]), || {
            format!("{who:?}: {}", outcome.tell())
        });
        // A listed workspace in another one is the other one's to move.
        account.write(&format!("workspaces = ['{0}', '{0}/led']\n", scratch.workspace().display()));
        let outcome = account.shell(["-c", "ls"]).cwd(scratch.outside()).run();
        findings.claim(outcome.refused(&["follows the link", "which a command may have made"]), || {
            format!("{who:?}: {}", outcome.tell())
        });
        let twin = account.shell(["-c", "echo ran"]).run();
        findings.claim(twin.out == "ran\n", || format!("{who:?}: {}", twin.tell()));
        // The user's own link is the user's word.
        scratch.link(scratch.outside(), "own");
        account.write(&format!("workspaces = ['{}']\n", scratch.path("own").display()));
        let twin = account.shell(["-c", "ls"]).cwd(scratch.path("own")).run();
        findings.claim(twin.out == "secret\n", || format!("{who:?}: {}", twin.tell()));
        // The home directory is too broad, as ever.
        account.write("workspaces = ['~']\n");
        let home = account.shell(["-c", "ls"]).cwd(scratch.home()).run();
        findings.claim(home.refused(&["home"]), || format!("{who:?}: {}", home.tell()));
        // The workspace that holds the file itself.
        account.write("workspaces = ['~/.config', '~/.config/*']\n");
        for cwd in ["home/.config", "home/.config/confine"] {
            let own = account.shell(["-c", "ls"]).cwd(scratch.path(cwd)).run();
            findings.claim(own.refused(&["where commands can write"]), || {
                format!("{who:?}: {cwd}: {}", own.tell())
            });
        }
        let name = scratch.dir("w/a\nb\u{1b}[31m");
        account.write(&format!("workspaces = ['{}']\n", scratch.workspace().display()));
        let odd = account.shell(["-c", "pwd"]).cwd(&name).run();
        findings.claim(odd.out == format!("{}\n", name.display()), || format!("{who:?}: {}", odd.tell()));
        account.write("workspaces = ['/nowhere']\n");
        let odd = account.shell(["-c", "pwd"]).cwd(&name).run();
        let escaped = odd.refused(&["a\\nb\\u{1b}[31m"]) && !odd.err.contains('\u{1b}');
        findings.claim(escaped, || format!("{who:?}: {}", odd.tell()));
    }
    findings.settle();
}

#[test]
fn without_a_file_nothing_starts_and_the_hint_makes_one() {
    for who in EVERYONE {
        let account = Account::bare(who);
        let outcome = account.script("echo ran");
        assert!(outcome.refused(&["is not set up", "/etc/confine/shell.toml"]), "{}", outcome.tell());
        let hint = outcome.err.split_once("hint: ").unwrap().1;
        let made = account.run().command(["bash", "-c", &format!("umask 022; {hint}")]).run();
        assert!(made.ok(), "{}", made.tell());
        let outcome = account.script("echo ran");
        assert_eq!(outcome.out, "ran\n", "{}", outcome.tell());
    }
}

#[test]
fn the_machines_file_is_for_whoever_has_none_and_is_roots() {
    for who in EVERYONE {
        let mut account = Account::bare(who);
        let workspace = account.scratch.workspace().display().to_string();
        let write = format!("echo \"workspaces = [\\\"{workspace}\\\"]\" > /etc/confine/shell.toml; ");
        account.machine = write.clone();
        assert_eq!(account.script("echo ran").out, "ran\n");
        account.machine = format!("{write} chown 54321 /etc/confine/shell.toml");
        assert!(account.script("echo ran").refused(&["belongs to uid 54321, not to root"]));
        // What is never allowed on this machine stays so.
        account.machine =
            format!("{write} echo \"never-allow = [\\\"net=host\\\"]\" > /etc/confine/policy.toml");
        assert_eq!(account.script("echo ran").out, "ran\n");
        account.write(&format!("workspaces = ['{workspace}']\nprofile = 'open'\n"));
        account.scratch.dir("home/.config/confine/profiles");
        account.scratch.file("home/.config/confine/profiles/open.toml", "net = 'host'\n");
        assert!(account.script("echo ran").refused(&["not allowed on this machine"]));
        account.machine = write;
        assert_eq!(account.script("echo ran").out, "ran\n");
    }
}

#[test]
fn a_user_without_a_name_has_only_the_machines_file() {
    let mut account = Account::new(Who::User);
    account.machine = "grep -v tester /etc/passwd > /etc/p; mv /etc/p /etc/passwd; ".to_owned();
    let outcome = account.script("echo ran");
    assert!(outcome.refused(&["there is no '/etc/confine/shell.toml'"]), "{}", outcome.tell());
    let workspace = account.scratch.workspace().display().to_string();
    account.machine += &format!("echo \"workspaces = [\\\"{workspace}\\\"]\" > /etc/confine/shell.toml");
    assert_eq!(account.script("echo $HOME").out, "/tmp/home\n");
}

#[test]
fn no_workspace_of_a_star_is_where_policy_is_read_from() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let mut account = Account::bare(who);
        for dir in ["home/project", "home/.config"] {
            account.scratch.dir(dir);
        }
        let home = account.scratch.home();
        let mut script = |workspaces: &str, cwd: &str, command: &str| {
            account.machine = format!("echo 'workspaces = [{workspaces}]' > /etc/confine/shell.toml; ");
            account.shell(["-c", command]).cwd(home.join(cwd)).run()
        };
        let plant = "mkdir -p confine && echo > confine/shell.toml; echo ran";
        for (workspaces, cwd, words) in [
            ("\"~/*\"", ".ssh", "is in none of the workspaces"),
            ("\"~/*\"", ".config", "is in none of the workspaces"),
            ("\"~/.config\"", ".config", "where policy is read from"),
            ("\"~/.config/*\"", ".config/confine", "where policy is read from"),
        ] {
            fs::create_dir_all(home.join(cwd)).unwrap();
            let outcome = script(workspaces, cwd, plant);
            findings.claim(outcome.refused(&[words]), || format!("{who:?}: {cwd}: {}", outcome.tell()));
        }
        let twin = script("\"~/*\"", "project", "touch made; echo ran");
        findings.claim(twin.out == "ran\n" && home.join("project/made").exists(), || twin.tell());
    }
    findings.settle();
}

#[test]
fn the_directory_is_the_one_that_it_is_and_not_the_one_that_pwd_names() {
    for who in EVERYONE {
        let account = Account::new(who);
        let (workspace, link) = (account.scratch.workspace(), account.scratch.path("outside/link"));
        symlink(&workspace, &link).unwrap();
        let outcome = account.shell(["-c", "pwd -P; touch here"]).cwd(&link).env("PWD", &link).run();
        assert_eq!(outcome.out, format!("{}\n", workspace.display()), "{who:?}: {}", outcome.tell());
        assert!(workspace.join("here").exists());
    }
}

#[test]
fn the_private_home_is_not_made_where_a_variable_says() {
    let account = Account::bare(Who::User);
    let workspace = account.scratch.workspace().display().to_string();
    account.scratch.dir("home/.config");
    account.scratch.dir("home/.config/confine");
    account.scratch.dir("home/.config/confine/profiles");
    account.scratch.file("home/.config/confine/profiles/off.toml", "namespaces = 'off'\n");
    account.scratch.dir("outside/mine");
    let mine = account.scratch.path("outside/mine");
    fs::set_permissions(&mine, fs::Permissions::from_mode(0o700)).unwrap();
    for (trust, there) in [("", false), ("trust-environment = true\n", true)] {
        account.write(&format!("workspaces = ['{workspace}']\nprofile = 'off'\n{trust}"));
        let outcome =
            account.shell(["-c", "echo $HOME"]).env("TMPDIR", &mine).env("XDG_RUNTIME_DIR", &mine).run();
        assert!(outcome.ok(), "{}", outcome.tell());
        assert_eq!(Path::new(outcome.out.trim()).starts_with(&mine), there, "{trust}: {}", outcome.tell());
    }
}

#[test]
fn the_hint_in_the_home_directory_is_one_that_can_be_followed() {
    let account = Account::bare(Who::User);
    let home = account.scratch.home();
    let outcome = account.shell(["-c", "true"]).cwd(&home).run();
    assert!(
        outcome.refused(&["is not set up", "workspaces = ['\\''~/src/*'\\'']", "start = "]),
        "{}",
        outcome.tell()
    );
    for dir in ["home/src", "home/src/p"] {
        account.scratch.dir(dir);
    }
    account.write("start = '~/src/p'\nworkspaces = ['~/src/*']\n");
    let outcome = account.shell(["-c", "pwd"]).cwd(&home).run();
    assert_eq!(outcome.out, format!("{}\n", home.join("src/p").display()), "{}", outcome.tell());
}
