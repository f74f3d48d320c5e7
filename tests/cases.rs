//! What broke for users of other wrappers, each as a claim about this one. What a test of its own already claims (links, descriptors,
//! statuses, sockets, loopback, HOME as a workspace) is not said again here.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::thread;

use common::{EVERYONE, Findings, Run, Scratch, Who};
use confine::view::system::CA_VARIABLES;

/// Runs a script in the workspace and wants status 0.
#[track_caller]
fn works(script: &str) {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let outcome =
            Run::confined(&scratch).env("OUT", scratch.outside()).shell(format!("set -e; {script}"));
        findings.claim(outcome.ok(), || format!("{who:?}: {}", outcome.tell()));
    }
    findings.settle();
}

const IDENTITY: &str = "git -c user.name=n -c user.email=n@example.org";
const COMMIT: &str = "git -c user.name=n -c user.email=n@example.org commit -q";

#[test]
fn home_and_temporary_places_are_there_private_and_writable() {
    works(
        "for d in \"$HOME\" \"${TMPDIR:-/tmp}\" /tmp /var/tmp /dev/shm; do test -d $d; echo 1 > $d/x; \
         printf '#!/bin/sh\\necho ran\\n' > $d/s; chmod +x $d/s; done; test \"$(/tmp/s)\" = ran; t=$(mktemp); test -f $t; \
         cat <<E\nheredoc\nE",
    );
}

#[test]
fn what_was_left_in_tmp_is_gone_in_the_next_run_and_was_never_on_the_host() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let name = format!("left-{}", scratch.root().file_name().unwrap().to_str().unwrap());
        // Several of these may be one place: all are looked at before any is written.
        let places = "/tmp /var/tmp /dev/shm \"$HOME\" \"${TMPDIR:-/tmp}\"";
        let script = format!(
            "set -e; for d in {places}; do test ! -e $d/{name}; done; \
             for d in {places}; do echo 1 > $d/{name}; test -s $d/{name}; done"
        );
        for round in 0..2 {
            let outcome = Run::confined(&scratch).shell(script.clone());
            findings.claim(outcome.ok(), || format!("{who:?}: round {round}: {}", outcome.tell()));
        }
        for dir in ["/tmp", "/var/tmp", "/dev/shm"] {
            let path = std::path::Path::new(dir).join(&name);
            findings.claim(!path.exists(), || format!("{who:?}: {} is on the host", path.display()));
        }
    }
    findings.settle();
}

#[test]
fn a_denied_write_outside_is_refused_quickly_and_has_no_effect_even_in_the_background() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let key = scratch.home().join(".ssh/id");
        let script = "(setsid sh -c 'cat \"$1\" > got; echo x > \"$2/escaped\"' _ \"$1\" \"$2\") & wait; \
                      cat \"$1\" >> got; echo x > \"$2/escaped\"; confine --help; true";
        let words: Vec<&OsStr> = vec![
            "bash".as_ref(),
            "-c".as_ref(),
            script.as_ref(),
            "_".as_ref(),
            key.as_os_str(),
            // Given as a word, as the directory is not visible.
            OsStr::new("OUTSIDE"),
        ];
        let mut words: Vec<OsString> = words.into_iter().map(OsStr::to_owned).collect();
        words[5] = scratch.outside().into();
        let outcome = Run::confined(&scratch).command(words).run();
        findings.claim(!scratch.path("outside/escaped").exists(), || format!("{who:?}: written outside"));
        let got = fs::read_to_string(scratch.path("w/got")).unwrap_or_default();
        findings
            .claim(got.is_empty() && outcome.ok(), || format!("{who:?}: got {got:?}: {}", outcome.tell()));
    }
    findings.settle();
}

#[test]
fn every_ordinary_change_works_in_the_workspace() {
    works(
        "mkdir a b; echo 1 > a/f; mv a/f b/f; mv b/f a/g; ln a/g b/h; echo old > c; echo new > c.tmp; mv c.tmp c; truncate -s 1 c; \
         mkfifo p; ln -s c l; mkdir d; rmdir d; rm p l; test \"$(cat c)\" = n; chmod 2770 a; chmod 1777 b; touch -d @1000 c; \
         cp -a a e; dd if=/dev/zero of=sparse bs=1 count=1 seek=1M status=none; rm -r a b e",
    );
}

#[test]
fn tools_below_home_that_path_leads_to_run_through_their_links() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let deep = "home/.local/share/mise/installs/tool/1/bin";
        let mut made = String::from("home");
        for part in deep.split('/').skip(1) {
            made = format!("{made}/{part}");
            scratch.dir(&made);
        }
        for dir in ["home/.local/opt", "home/.local/opt/kit", "home/.local/opt/kit/bin", "home/.local/bin"] {
            scratch.dir(dir);
        }
        for tool in [format!("{deep}/tool"), "home/.local/opt/kit/bin/linked".to_owned()] {
            scratch.script(&tool, "#!/usr/bin/env sh\necho found\n");
        }
        scratch.link("../opt/kit/bin/linked", "home/.local/bin/linked");
        for (dir, tool) in [(deep, "tool"), ("home/.local/bin", "linked")] {
            let path = format!("{}:/usr/local/bin:/usr/bin:/bin", scratch.path(dir).display());
            let outcome = Run::confined(&scratch).env("PATH", path).command([tool]).run();
            findings.claim(outcome.out == "found\n", || format!("{who:?}: {tool}: {}", outcome.tell()));
        }
    }
    findings.settle();
}

#[test]
fn a_directory_of_the_workspace_on_path_and_scripts_without_a_fixed_interpreter_work() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        scratch.dir("w/bin");
        for name in ["w/bin/mine", "w/script"] {
            scratch.script(name, "#!/usr/bin/env bash\necho hit\n");
        }
        let path = format!("{}:/usr/bin:/bin", scratch.path("w/bin").display());
        for command in ["mine", "./script"] {
            let outcome = Run::confined(&scratch).env("PATH", &path).command([command]).run();
            findings.claim(outcome.out == "hit\n", || format!("{who:?}: {command}: {}", outcome.tell()));
        }
    }
    findings.settle();
}

#[test]
fn a_terminal_can_be_made_inside() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let attack = scratch.inside_attack();
        let outcome = Run::confined(&scratch)
            .attack(&scratch, ["on-terminal".as_ref(), attack.as_os_str(), "window-size".as_ref()]);
        findings.claim(outcome.ok() && outcome.out.contains("ok"), || format!("{who:?}: {}", outcome.tell()));
    }
    findings.settle();
}

#[test]
fn the_directory_is_kept_whatever_it_is_called_and_one_that_is_not_visible_is_refused() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let odd = scratch.workspace().join(OsStr::from_bytes(b"a b\nc\xff\xc3\xa9"));
        let below = odd.join("sub");
        fs::create_dir_all(&below).unwrap();
        scratch.give(&odd);
        scratch.give(&below);
        let outcome = Run::confined(&scratch).cwd(&below).shell("pwd -P > seen; echo ok > made");
        let seen = fs::read(below.join("seen")).unwrap_or_default();
        let right = seen.strip_suffix(b"\n") == Some(below.as_os_str().as_bytes());
        findings.claim(outcome.ok() && right, || format!("{who:?}: {seen:?}: {}", outcome.tell()));
        let itself = Run::bare(&scratch).option("-w").option(&odd).cwd(&odd).shell("echo ok > whole");
        findings.claim(itself.ok() && odd.join("whole").exists(), || format!("{who:?}: {}", itself.tell()));
        let hidden = Run::confined(&scratch).cwd(scratch.outside()).command(["touch", "started"]).run();
        findings.claim(hidden.code() == Some(125) && hidden.err.contains("--chdir"), || {
            format!("{who:?}: {}", hidden.tell())
        });
        findings.claim(!scratch.path("outside/started").exists(), || format!("{who:?}: started elsewhere"));
    }
    findings.settle();
}

#[test]
fn a_run_ends_with_its_command_though_standard_input_stays_open() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let (read, _write) = std::io::pipe().unwrap();
        let outcome = Run::confined(&scratch).stdio(0, read).command(["echo", "hi"]).run();
        findings.claim(outcome.out == "hi\n", || format!("{who:?}: {}", outcome.tell()));
    }
    findings.settle();
}

#[test]
fn words_and_bytes_pass_unchanged() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let long = "x".repeat(100 * 1024);
        let words: Vec<&OsStr> = vec![
            "printf".as_ref(),
            "%s|".as_ref(),
            "".as_ref(),
            "a b".as_ref(),
            "--".as_ref(),
            "--workspace".as_ref(),
            "line\nbreak".as_ref(),
            "$HOME `id`".as_ref(),
            long.as_ref(),
        ];
        let outcome = Run::confined(&scratch).command(&words).run();
        let expected = format!("|a b|--|--workspace|line\nbreak|$HOME `id`|{long}|");
        findings.claim(outcome.out == expected, || {
            format!("{who:?}: {:?}", &outcome.out[..outcome.out.len().min(90)])
        });
    }
    findings.settle();
}

#[test]
fn limits_of_the_caller_are_not_lowered() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let script = "ulimit -v; ulimit -n; ulimit -f; ulimit -s; ulimit -d";
        let (inside, outside) = (Run::confined(&scratch).shell(script), Run::plain(&scratch).shell(script));
        findings.claim(inside.out == outside.out, || {
            format!("{who:?}: {:?} became {:?}", outside.out, inside.out)
        });
    }
    findings.settle();
}

#[test]
fn many_runs_in_one_workspace_start_at_once() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let wrong: Vec<String> = thread::scope(|scope| {
            let row = |start: u32| {
                let scratch = &scratch;
                scope.spawn(move || {
                    let run =
                        |number: u32| Run::confined(scratch).command(["echo", &number.to_string()]).run();
                    let outcomes = (start..start + 8).map(|number| (number, run(number)));
                    let wrong = outcomes.filter(|(number, outcome)| outcome.out != format!("{number}\n"));
                    wrong.map(|(_, outcome)| outcome.tell()).collect::<Vec<_>>()
                })
            };
            let rows: Vec<_> = (0..8).map(|number| row(number * 8)).collect();
            rows.into_iter().flat_map(|row| row.join().unwrap()).collect()
        });
        findings.claim(wrong.is_empty(), || format!("{who:?}: {wrong:?}"));
    }
    findings.settle();
}

#[test]
fn files_made_inside_belong_to_the_caller() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let outcome = Run::confined(&scratch).shell(
            "touch f && chown $(id -u):$(id -g) f && chmod 640 f && test -O f && test -G f && id -u && stat -c %u . /etc/passwd",
        );
        let id = who.id();
        // Root's system files may be shown as nobody's, to keep root from what only their owner may do.
        let right = outcome.out.starts_with(&format!("{id}\n{id}\n"));
        findings.claim(outcome.ok() && right, || format!("{who:?}: {}", outcome.tell()));
        let owner =
            fs::metadata(scratch.path("w/f")).map(|meta| (meta.uid(), meta.gid(), meta.mode() & 0o777)).ok();
        findings.claim(owner == Some((id, id, 0o640)), || format!("{who:?}: {owner:?}"));
    }
    findings.settle();
}

#[test]
fn git_works_in_an_ordinary_repository_and_leaves_no_lock() {
    works(&format!(
        "git init -q; git rev-parse --is-inside-work-tree; echo 1 > f; git add f; {COMMIT} -m one; echo 2 > f; git checkout -q -- f; \
         test $(cat f) = 1; git mv f g; {IDENTITY} stash -q; {IDENTITY} stash pop -q; {COMMIT} -m two; git status --short; git log --oneline; \
         git branch b; git worktree add -q inner b; cd inner; echo 3 > h; git add h; {COMMIT} -m three; cd ..; git fsck; \
         test -z \"$(find . -name '*.lock')\""
    ));
}

/// Makes a repository outside with a worktree that is the workspace.
fn worktree(scratch: &Scratch) -> std::path::PathBuf {
    let script = format!(
        "git init -q main && cd main && {COMMIT} --allow-empty -m base && git worktree add -q ../../w/tree -b side"
    );
    let made = Run::plain(scratch).cwd(scratch.outside()).shell(script);
    assert!(made.ok(), "{}", made.tell());
    scratch.path("w/tree")
}

#[test]
fn a_linked_worktree_is_read_and_committed_to_only_with_its_repository() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let tree = worktree(&scratch);
        let confined = || Run::bare(&scratch).option("-w").option(&tree).cwd(&tree);
        let read = confined().shell("echo x > f && git status --short && git log --oneline");
        findings.claim(read.out.contains("?? f") && read.out.contains("base"), || {
            format!("{who:?}: {}", read.tell())
        });
        let commit = format!("git add f && {COMMIT} -m more");
        let refused = confined().shell(&commit);
        findings.claim(!refused.ok(), || format!("{who:?}: committed without a grant: {}", refused.tell()));
        let repository = scratch.path("outside/main/.git");
        let granted = confined().option("--rw").option(&repository).shell(&commit);
        findings.claim(granted.ok(), || format!("{who:?}: with --rw: {}", granted.tell()));
        let hook = repository.join("hooks/planted");
        let planted =
            confined().option("--rw").option(&repository).command(["touch".as_ref(), hook.as_os_str()]).run();
        findings.claim(!planted.ok() && !hook.exists(), || format!("{who:?}: a hook: {}", planted.tell()));
        let fsck = Run::plain(&scratch)
            .cwd(scratch.path("outside/main"))
            .shell("git fsck --full && git log side --oneline");
        findings.claim(fsck.ok() && fsck.out.contains("more"), || format!("{who:?}: {}", fsck.tell()));
    }
    findings.settle();
}

#[test]
fn processes_see_themselves_in_proc() {
    works("test -r /proc/self/status; test -d /proc/$$; grep -q . /proc/self/maps; test -e /proc/self/fd/1");
}

#[test]
fn a_nested_sandbox_fails_with_a_word_about_permission() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let outcome = Run::confined(&scratch).command(["unshare", "-Urm", "true"]).run();
        findings.claim(!outcome.ok() && outcome.err.to_lowercase().contains("not permitted"), || {
            format!("{who:?}: {}", outcome.tell())
        });
    }
    findings.settle();
}

#[test]
fn links_in_home_that_lead_nowhere_do_not_matter() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for name in ["home/.aws", "home/.gitconfig", "home/.cargo", "home/.cache", "home/.config"] {
            scratch.link("/nonexistent/place", name);
        }
        let outcome = Run::confined(&scratch).command(["true"]).run();
        findings.claim(outcome.ok() && outcome.err.is_empty(), || format!("{who:?}: {}", outcome.tell()));
    }
    findings.settle();
}

#[test]
fn certificate_variables_are_kept_and_system_certificates_readable() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let bundle = scratch.file("outside/ca.pem", "");
        // Each alone: what one shows must not hide that another does not.
        for name in CA_VARIABLES {
            let outcome = Run::confined(&scratch)
                .env(name, &bundle)
                .shell(format!("test -r \"${name}\" && ls /etc >/dev/null"));
            findings.claim(outcome.ok(), || format!("{who:?}: {name}: {}", outcome.tell()));
        }
        let unnamed = Run::confined(&scratch).shell(format!("test -e {}", bundle.display()));
        findings.claim(unnamed.denied(), || format!("{who:?}: {}", unnamed.tell()));
    }
    findings.settle();
}

#[test]
fn broad_workspaces_are_refused() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let home = scratch.home();
        let above = scratch.root().to_owned();
        for broad in [
            home.as_os_str(),
            above.as_os_str(),
            "/".as_ref(),
            "/usr".as_ref(),
            "/etc".as_ref(),
            "/tmp".as_ref(),
        ] {
            let outcome = Run::bare(&scratch).option("-w").option(broad).cwd("/usr").command(["true"]).run();
            findings.claim(outcome.code() == Some(125) && !outcome.err.is_empty(), || {
                format!("{who:?}: {broad:?}: {}", outcome.tell())
            });
        }
        let twin = Run::bare(&scratch).option("-w").option(scratch.workspace()).command(["true"]).run();
        findings.claim(twin.ok(), || format!("{who:?}: {}", twin.tell()));
    }
    findings.settle();
}

#[test]
fn home_is_also_where_the_password_file_says() {
    // Only root has an entry there among the two.
    let scratch = Scratch::new(Who::Root);
    let home = Run::plain(&scratch).shell("getent passwd 0 | cut -d: -f6").out.trim().to_owned();
    let outcome = Run::confined(&scratch)
        .env("HOME", &home)
        .shell("h=$(getent passwd 0 | cut -d: -f6); test -w $h && test $h = $HOME");
    assert!(outcome.ok(), "{}", outcome.tell());
}

#[test]
fn no_namespace_no_boundary_no_run() {
    // What cannot be kept is refused, and what was waived on purpose is still kept where it can be.
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let missing = Run::bare(&scratch).command(["true"]).run();
        findings.claim(missing.code() == Some(125), || {
            format!("{who:?}: without a workspace: {}", missing.tell())
        });
        let unknown = Run::confined(&scratch).option("--no-such-option").command(["touch", "started"]).run();
        findings
            .claim(unknown.code() == Some(125), || format!("{who:?}: unknown option: {}", unknown.tell()));
        let absent = Run::bare(&scratch).options(["-w", "/nonexistent"]).cwd("/usr").command(["true"]).run();
        findings
            .claim(absent.code() == Some(125), || format!("{who:?}: missing workspace: {}", absent.tell()));
        findings.claim(!scratch.path("w/started").exists(), || format!("{who:?}: was started"));
    }
    findings.settle();
}
