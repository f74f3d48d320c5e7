//! Policy files from outside: which are believed, what they mean, and what wins over what.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use common::*;
use serde_json::Value;

/// Any user but the caller and root.
const STRANGER: u32 = 54399;
const BUILT_IN: [&str; 7] =
    ["workspace-write", "read-only", "build", "dev-server", "kernel", "mcp", "strict"];

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_profile_is_the_users_own_before_a_built_in_one() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let strict = || Run::confined(&scratch).options(["--profile", "read-only"]).shell("touch made");
        assert!(!strict().ok(), "the built-in one shows the workspace read-only");
        scratch.profile("read-only", "max-procs = 99\n");
        let own = strict();
        assert!(own.ok() && scratch.path("w/made").exists(), "{}", own.tell());
        let elsewhere = scratch.dir("elsewhere");
        let moved =
            Run::confined(&scratch).env("XDG_CONFIG_HOME", &elsewhere).options(["--profile", "read-only"]);
        assert!(!moved.shell("touch again").ok());
        for dir in ["elsewhere/confine", "elsewhere/confine/profiles"] {
            scratch.dir(dir);
        }
        scratch.file("elsewhere/confine/profiles/mine.toml", "env = ['SAID=yes']\n");
        let run = Run::confined(&scratch).env("XDG_CONFIG_HOME", &elsewhere).options(["--profile", "mine"]);
        assert_eq!(run.shell("echo $SAID").out, "yes\n");
    }
}

/// One change each to a set-up that works.
type Change = (&'static str, fn(&Scratch, &Path), &'static [&'static str]);

const UNTRUSTED: &[Change] = &[
    ("a stranger's file", |_, file| chown(file, Some(STRANGER), None).unwrap(), &["belongs to uid 54399"]),
    ("a file of the group's", |_, file| mode(file, 0o664), &["can be written by others", "chmod go-w"]),
    ("a file of everybody's", |_, file| mode(file, 0o646), &["can be written by others"]),
    (
        "a stranger's directory",
        |scratch, _| chown(scratch.path("conf"), Some(STRANGER), None).unwrap(),
        &["reached through", "conf'", "belongs to uid 54399"],
    ),
    (
        "a directory of the group's",
        |scratch, _| mode(&scratch.path("conf"), 0o775),
        &["lies below", "conf'", "others can write"],
    ),
    (
        "a directory of everybody's further up",
        |scratch, _| mode(scratch.root(), 0o777),
        &["lies below", "others can write"],
    ),
    (
        "a directory in its place",
        |_, file| {
            fs::remove_file(file).unwrap();
            fs::create_dir(file).unwrap();
        },
        &["not a regular file"],
    ),
    (
        "a FIFO in its place",
        |scratch, file| {
            fs::remove_file(file).unwrap();
            rustix::fs::mkfifoat(rustix::fs::CWD, file, 0o644.into()).unwrap();
            scratch.give(file);
        },
        &["not a regular file"],
    ),
    (
        "a stranger's link",
        |scratch, file| {
            fs::rename(file, scratch.path("conf/real")).unwrap();
            std::os::unix::fs::symlink("real", file).unwrap();
            std::os::unix::fs::lchown(file, Some(STRANGER), None).unwrap();
        },
        &["p.toml' belongs to uid 54399"],
    ),
    ("a large file", |_, file| fs::write(file, vec![b'#'; 300 << 10]).unwrap(), &["larger than 256 KiB"]),
    ("bytes that are no text", |_, file| fs::write(file, b"# x\n\xff").unwrap(), &["line 2: not UTF-8"]),
];

#[test]
fn a_file_that_others_could_have_written_is_not_believed() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        for (what, change, words) in UNTRUSTED {
            let scratch = Scratch::new(who);
            scratch.dir("conf");
            let file = scratch.file("conf/p.toml", "env = ['SAID=yes']\n");
            let run = || Run::confined(&scratch).option("--policy").option(&file).shell("echo $SAID");
            let twin = run();
            findings.claim(twin.out == "yes\n", || format!("{who:?}: before {what}: {}", twin.tell()));
            change(&scratch, &file);
            let outcome = run();
            findings.claim(outcome.refused(words), || format!("{who:?}: {what}: {}", outcome.tell()));
        }
    }
    findings.settle();
}

#[test]
fn a_file_below_a_sticky_directory_or_behind_an_own_link_is_believed() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let shared = scratch.dir("shared");
        chown(&shared, Some(0), Some(0)).unwrap();
        mode(&shared, 0o1777);
        scratch.dir("shared/conf");
        let file = scratch.file("shared/conf/p.toml", "env = ['SAID=yes']\n");
        let link = scratch.link(&file, "home/p.toml");
        for named in [&file, &link] {
            let outcome = Run::confined(&scratch).option("--policy").option(named).shell("echo $SAID");
            assert_eq!(outcome.out, "yes\n", "{}", outcome.tell());
        }
        // Without the bit others could put a directory of theirs in its place.
        mode(&shared, 0o777);
        assert!(
            Run::confined(&scratch)
                .option("--policy")
                .option(&file)
                .shell("true")
                .refused(&["others can write"])
        );
    }
}

#[test]
fn a_file_where_commands_can_write_is_not_believed() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        scratch.dir("state");
        mode(&scratch.path("state"), 0o700);
        let inside = scratch.file("w/p.toml", "env = ['SAID=yes']\n");
        let kept = scratch.file("state/p.toml", "env = ['SAID=yes']\n");
        let outside = scratch.file("outside/p.toml", "env = ['SAID=yes']\n");
        let planted = scratch.link(&outside, "w/link.toml");
        let twice = scratch.file("outside/twice.toml", "env = ['SAID=yes']\n");
        fs::hard_link(&twice, scratch.path("outside/other-name")).unwrap();
        let run = |file: &Path, more: &[&Path]| {
            Run::confined(&scratch).option("--policy").option(file).options(more).shell("echo $SAID")
        };
        let (rw, read_only, state) = (Path::new("--rw"), Path::new("--read-only"), Path::new("--state"));
        let (out, kept_dir) = (scratch.outside(), scratch.path("state"));
        for (what, file, more, words) in [
            ("in the workspace", &inside, &[][..], "where commands can write"),
            ("in a workspace shown read-only", &inside, &[read_only], "where commands can write"),
            ("through a link in it", &planted, &[], "reached through a link"),
            ("with a hard link", &twice, &[], "a hard link"),
            ("in --rw", &outside, &[rw, &out], "where commands can write"),
            ("in --state", &kept, &[state, &kept_dir], "where commands can write"),
        ] {
            let outcome = run(file, more);
            findings.claim(outcome.refused(&[words]), || format!("{who:?}: {what}: {}", outcome.tell()));
        }
        let twin = run(&outside, &[]);
        findings.claim(twin.out == "yes\n", || format!("{who:?}: outside: {}", twin.tell()));
        // A configuration directory in the workspace is where an earlier command may have put a profile.
        for dir in ["w/confine", "w/confine/profiles"] {
            scratch.dir(dir);
        }
        scratch.file("w/confine/profiles/strict.toml", "git = 'free'\n");
        let configured = Run::confined(&scratch).env("XDG_CONFIG_HOME", scratch.workspace());
        let outcome = configured.options(["--profile", "strict"]).shell("true");
        findings.claim(outcome.refused(&["where policy is read from"]), || outcome.tell());
    }
    findings.settle();
}

#[test]
fn where_policy_is_read_from_is_no_writable_root() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for dir in ["home/.config/other", "home/dots", "home/dots/config", "home/dots/more"] {
            scratch.dir(dir);
        }
        let run = |options: &[&str], moved: Option<&Path>| {
            let run = Run::confined(&scratch).options(options);
            let run = match moved {
                Some(moved) => run.env("XDG_CONFIG_HOME", moved),
                None => run,
            };
            run.shell("echo ran")
        };
        let path = |name: &str| scratch.path(name).display().to_string();
        let (config, other, dots) =
            (path("home/.config"), path("home/.config/other"), path("home/dots/config"));
        let moved = scratch.path("home/dots/config");
        let mut claim = |what: &str, outcome: Outcome, allowed: bool| {
            let right = match allowed {
                true => outcome.out == "ran\n",
                false => outcome.refused(&["where policy is read from"]),
            };
            findings.claim(right, || format!("{who:?}: {what}: {}", outcome.tell()));
        };
        claim("missing yet", run(&["-w", &config], None), false);
        claim("--rw", run(&["--rw", &config], None), false);
        scratch.profile("mine", "");
        claim("above it", run(&["-w", &config], None), false);
        claim("itself", run(&["--rw", &path("home/.config/confine")], None), false);
        claim("in it", run(&["--rw", &path("home/.config/confine/profiles")], None), false);
        claim("beside it", run(&["--rw", &other], None), true);
        claim("read", run(&["--ro", &config], None), true);
        claim("read as a workspace", run(&["-w", &config, "--read-only"], None), true);
        claim("by XDG_CONFIG_HOME", run(&["--rw", &dots], Some(&moved)), false);
        claim("not by XDG_CONFIG_HOME", run(&["--rw", &path("home/dots/more")], Some(&moved)), true);
        fs::rename(scratch.path("home/.config"), scratch.path("home/dots/config/real")).unwrap();
        scratch.link("dots/config/real", "home/.config");
        claim("by a link", run(&["--rw", &dots], None), false);
        claim("not by a link", run(&["--rw", &path("home/dots/more")], None), true);
        let home = scratch.home().display().to_string();
        let broad = Run::confined(&scratch)
            .options(["--rw", &home, "--allow", "broad-workspace"])
            .shell("echo x > ~/.config/confine/profiles/mine.toml; mv ~/dots/config/real ~/x; touch ~/made; echo ran");
        let unchanged = fs::read(scratch.path("home/.config/confine/profiles/mine.toml")).unwrap().is_empty();
        findings.claim(broad.out == "ran\n" && unchanged && scratch.path("home/made").exists(), || {
            format!("{who:?}: broad: {}", broad.tell())
        });
        scratch.dir("home/.local");
        for dir in ["home/.local/state", "home/.local/state/confine", "home/.local/state/other"] {
            scratch.dir(dir);
        }
        for (dir, believed) in [("confine", false), ("other", true)] {
            let file = scratch.file(&format!("home/.local/state/{dir}/p.toml"), "env = ['SAID=yes']\n");
            let outcome = Run::confined(&scratch).option("--policy").option(&file).shell("echo $SAID");
            let right = match believed {
                true => outcome.out == "yes\n",
                false => outcome.refused(&["where commands can write"]),
            };
            findings.claim(right, || format!("{who:?}: state: {}", outcome.tell()));
        }
    }
    findings.settle();
}

#[test]
fn nothing_in_the_workspace_is_read_as_policy() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for name in
            ["confine.toml", ".confine.toml", "policy.toml", "read-only.toml", ".config/confine/policy.toml"]
        {
            scratch.dir("w/.config/confine");
            scratch.file(&format!("w/{name}"), "this is [no toml\n");
        }
        let outcome = Run::confined(&scratch).options(["--profile", "read-only"]).shell("echo ran");
        assert_eq!(outcome.out, "ran\n", "{}", outcome.tell());
    }
}

#[test]
fn a_bad_file_stops_the_run_with_file_line_key_and_what_is_near() {
    let scratch = Scratch::new(Who::User);
    let mut findings = Findings::default();
    for (text, words) in [
        (
            "# first\nread_only = true\n",
            &["/mine.toml'), line 2: unknown key 'read_only'", "did you mean 'read-only'?"][..],
        ),
        ("net = 'hosts'\n", &["line 1: net 'hosts'", "net takes none or host"]),
        ("a = 1\n\nb = = 2\n", &["/mine.toml'), line 3: "]),
        ("never-waive = ['alias-free']\n", &["administrator"]),
        ("fd = [3]\n", &["belongs on the command line"]),
        ("ro = ['../x']\n", &["neither absolute nor below"]),
        // What only the host can say.
        ("\nro = ['/usr',\n'/nonesuch']\n", &["/mine.toml'), line 3: ro '/nonesuch': no such file"]),
        ("rw = ['/usr']\n", &["line 1: rw: '/usr' is a directory of the system"]),
        ("\nhide = ['/proc']\n", &["line 2: hide '/proc': no command"]),
        ("seal = ['/etc/passwd']\n", &["line 1: seal '/etc/passwd': not a directory"]),
        ("workspace = ['/nonesuch']\n", &["line 1: workspace '/nonesuch': no such file"]),
        ("workspace = ['/']\n", &["line 1: workspace: '/' contains"]),
        ("chdir = '/nonesuch'\n", &["line 1: chdir: cannot enter '/nonesuch'"]),
        ("env-file = ['/nonesuch']\n", &["line 1: env-file: cannot read environment file '/nonesuch'"]),
        ("state = '/nonesuch/a'\n", &["line 1: state: cannot create the state directory '/nonesuch/a'"]),
        ("state = '/etc/confine'\n", &["line 1: state '/etc/confine' lies in '/etc'"]),
        ("audit = '/nonesuch/a'\n", &["line 1: audit: cannot open audit record '/nonesuch/a'"]),
        ("user = '1'\n", &["line 1: user is for root"]),
        ("profile = 'mine'\n", &["is based on itself"]),
    ] {
        scratch.profile("mine", text);
        let outcome = Run::confined(&scratch).options(["--profile", "mine"]).shell("echo ran");
        let lines = outcome.err.lines().count();
        findings.claim(outcome.refused(words) && lines <= 2, || format!("{text:?}: {}", outcome.tell()));
    }
    for (name, words) in [
        ("stirct", "did you mean 'strict'?"),
        ("../x", "not a plain name"),
        (".x", "not a plain name"),
        ("", "not a plain name"),
    ] {
        let outcome = Run::confined(&scratch).options(["--profile", name]).shell("echo ran");
        findings.claim(outcome.refused(&[words]), || format!("{name:?}: {}", outcome.tell()));
    }
    findings.settle();
}

#[test]
fn no_message_shows_the_value_of_a_variable() {
    const SENTINEL: &str = "s3ntinel-of-a-value";
    let scratch = Scratch::new(Who::User);
    let mut findings = Findings::default();
    for (text, out) in [
        ("env = 'TOKEN=%'\n", None),
        ("env = ['TOKEN=%', 1.5]\n", None),
        ("env = ['TOKEN=%', '=%']\n", None),
        ("never-allow = ['env=TOKEN=%']\n", None),
        ("env = ['TOKEN=%']\nnet = 'hosts'\n", None),
        ("env = { TOKEN = '%' }\n", None),
        ("env = ['TOKEN=%'\n", None),
        ("env = ['TOKEN=%']\n", Some(format!("{SENTINEL}\n"))),
    ] {
        scratch.profile("mine", &text.replace('%', SENTINEL));
        let outcome = Run::confined(&scratch).options(["--profile", "mine"]).shell("echo $TOKEN");
        match out {
            Some(out) => findings.claim(outcome.out == out, || outcome.tell()),
            None => findings.claim(outcome.refused(&[]) && !outcome.err.contains(SENTINEL), || {
                format!("{text:?}: {}", outcome.tell())
            }),
        }
    }
    findings.settle();
}

/// Bytes from a fixed congruence, from pure noise to mutilated policies.
#[test]
fn nonsense_of_every_size_is_refused_in_one_line_and_soon() {
    let scratch = Scratch::new(Who::User);
    let mut state = 3_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let good = "read-only = true\nconnect = [443, 53]\nmax-memory = \"2G\"\nro = [\"~/x\", '/usr']\n";
    let mut texts: Vec<Vec<u8>> = vec![
        (0..200_000).map(|_| next() as u8).collect(),
        (0..200_000).map(|_| b' ' + (next() % 95) as u8).collect(),
        b"[".repeat(200_000),
        b"a.".repeat(100_000),
        b"{a=".repeat(66_000),
        b"x=1\n".repeat(50_000),
        format!("connect = [{}]", "1,".repeat(99_000)).into_bytes(),
        [&b"net = '"[..], &b"x".repeat(200_000), b"'"].concat(),
    ];
    for _ in 0..24 {
        let mut text = good.as_bytes().to_vec();
        for _ in 0..1 + next() % 4 {
            let at = next() % text.len();
            text[at] = next() as u8;
        }
        texts.push(text);
    }
    let path = scratch.profile("mine", "");
    let mut findings = Findings::default();
    for (index, text) in texts.iter().enumerate() {
        fs::write(&path, text).unwrap();
        let outcome =
            Run::confined(&scratch).under(["timeout", "20"]).options(["--profile", "mine"]).shell("echo ran");
        let told = outcome.err.lines().count() <= 2 && !outcome.err.contains("panicked");
        let plain = !outcome.err.trim_end_matches('\n').replace('\n', " ").contains(char::is_control);
        // Some of the mutilated ones still mean something.
        let known = outcome.code() == Some(125) || (index >= 8 && outcome.out == "ran\n");
        findings.claim(told && plain && known, || format!("text {index}: {}", outcome.tell()));
    }
    findings.settle();
}

#[test]
fn the_line_wins_over_the_file_over_the_profile() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        scratch.profile("mine", "env = ['A=profile', 'B=profile', 'C=profile']\nprofile = 'read-only'\n");
        let file = scratch.file("outside/p.toml", "env = ['A=file', 'B=file']\n");
        let run = || Run::confined(&scratch).options(["--profile", "mine", "--policy"]).option(&file);
        let outcome = run().options(["--env", "A=line"]).shell("echo $A $B $C; touch made");
        assert_eq!(outcome.out, "line file profile\n", "{}", outcome.tell());
        assert!(!outcome.ok() && !scratch.path("w/made").exists(), "the base shows the workspace read-only");
        // A path that a profile hides, the line shows, by another spelling.
        let secret = scratch.file("w/secret", "hidden text\n");
        scratch.profile("mine", &format!("hide = ['{}']\n", secret.display()));
        let hidden = Run::confined(&scratch).options(["--profile", "mine"]).shell("cat secret; echo ran");
        assert_eq!(hidden.out, "ran\n", "{}", hidden.tell());
        let shown = Run::confined(&scratch)
            .options(["--profile", "mine", "--ro", "own/../secret"])
            .shell("cat secret");
        assert_eq!(shown.out, "hidden text\n", "{}", shown.tell());
        // What is hidden on every machine need not be on this one; what is shown must.
        scratch.profile("mine", "hide = ['~/nowhere']\n");
        assert!(Run::confined(&scratch).options(["--profile", "mine"]).shell("true").ok());
        scratch.profile("mine", "ro = ['~/nowhere']\n");
        let absent = Run::confined(&scratch).options(["--profile", "mine"]).shell("true");
        assert!(absent.refused(&["nowhere"]), "{}", absent.tell());
        scratch.profile("mine", "ro = ['~/key']\n");
        scratch.file("home/key", "the key\n");
        assert_eq!(
            Run::confined(&scratch).options(["--profile", "mine"]).shell("cat ~/key").out,
            "the key\n"
        );
    }
}

#[test]
fn explain_tells_where_each_setting_comes_from_and_the_id_does_not() {
    let scratch = Scratch::new(Who::User);
    let file = scratch.file("outside/p.toml", "# x\nmax-open-files = 99\nro = ['/srv']\n");
    let explain = |options: &[&str]| {
        let mut line = vec![scratch.confine().into_os_string(), "explain".into(), "-w".into()];
        line.push(scratch.workspace().into());
        line.extend(options.iter().map(Into::into));
        line.extend(["--".into(), "true".into()]);
        let outcome = Run::plain(&scratch).command(line).run();
        assert!(outcome.ok(), "{}", outcome.tell());
        outcome.out
    };
    let policy = file.display().to_string();
    let text = explain(&["--policy", &policy, "--env", "TOKEN=do-not-tell"]);
    assert!(text.contains(&format!("max-open-files 99              '{policy}', line 2")), "{text}");
    assert!(
        text.contains("ro /srv") && text.contains("env TOKEN") && !text.contains("do-not-tell"),
        "{text}"
    );
    let object = |options: &[&str]| {
        let all: Vec<&str> = ["--json"].iter().chain(options).copied().collect();
        serde_json::from_str::<Value>(&explain(&all)).unwrap()
    };
    let by_file = object(&["--policy", &policy]);
    let by_line = object(&["--max-open-files", "99", "--ro", "/srv"]);
    assert_eq!(by_file["policy"], by_line["policy"]);
    assert_ne!(by_file["policy"], object(&["--max-open-files", "98", "--ro", "/srv"])["policy"]);
    let setting = |object: &Value, name: &str| {
        let list = object["settings"].as_array().unwrap();
        list.iter().find(|setting| setting["option"] == name).unwrap().clone()
    };
    assert_eq!(setting(&by_file, "ro")["line"], 3);
    assert_eq!(
        (setting(&by_line, "ro")["value"].clone(), setting(&by_line, "ro")["file"].clone()),
        ("/srv".into(), Value::Null)
    );
}

#[test]
fn explain_shows_a_profile_itself() {
    let scratch = Scratch::new(Who::User);
    let explain = |words: &[&str]| {
        let mut line = vec![scratch.confine().into_os_string(), "explain".into()];
        line.extend(words.iter().map(Into::into));
        Run::plain(&scratch).command(line).run()
    };
    for name in BUILT_IN {
        let file =
            fs::read_to_string(format!("{}/profiles/{name}.toml", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let outcome = explain(&["--profile", name]);
        assert!(outcome.ok() && outcome.out.ends_with(&file), "{}", outcome.tell());
        let object: Value = serde_json::from_str(&explain(&["--json", "--profile", name]).out).unwrap();
        assert_eq!((object["version"].clone(), object["profile"].clone()), (1.into(), name.into()));
    }
    let path = scratch.profile("mine", "max-procs = 5\n");
    assert!(explain(&["--profile", "mine"]).out.contains(&path.display().to_string()));
    assert!(explain(&["--profile", "other"]).refused(&["no profile 'other'"]));
}

#[test]
fn a_file_that_stops_the_run_is_told_on_the_status_descriptor() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let file = scratch.file("outside/p.toml", "max-prox = 9\n");
        let status = || {
            let line = format!(
                "{} -w . --policy {} --status-fd 3 -- true 3>&1 >/dev/null 2>/dev/null",
                scratch.confine().display(),
                file.display()
            );
            let outcome = Run::plain(&scratch).shell(line);
            (outcome.code(), serde_json::from_str::<Value>(outcome.out.lines().next().unwrap()).unwrap())
        };
        let (code, told) = status();
        assert_eq!((code, told["event"].as_str()), (Some(125), Some("refused")));
        assert!(told["message"].as_str().unwrap().contains("line 1: unknown key 'max-prox'"), "{told}");
        assert_eq!(told["hint"], "did you mean 'max-procs'?");
        fs::write(&file, "max-procs = 9\n").unwrap();
        let (code, told) = status();
        assert_eq!((code, told["event"].as_str()), (Some(0), Some("started")));
    }
}
