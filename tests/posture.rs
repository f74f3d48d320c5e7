//! `confine check --posture`: each finding and its clean twin, in homes, workspaces and mount namespaces of the test's own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;

use common::{EVERYONE, Findings, Outcome, Run, Scratch, Snapshot, Who};
use serde_json::Value;

fn line(scratch: &Scratch) -> Vec<OsString> {
    let words = [scratch.confine().into(), "check".into(), "--posture".into(), "--json".into(), "-w".into()];
    words.into_iter().chain([scratch.workspace().into()]).collect()
}

fn posture(scratch: &Scratch) -> (Outcome, Value) {
    let outcome = Run::plain(scratch).command(line(scratch)).run();
    let report = serde_json::from_str(&outcome.out).unwrap_or_else(|_| panic!("{}", outcome.tell()));
    (outcome, report)
}

/// What was found below the test's own directory, or anywhere without a path.
fn ids(scratch: &Scratch, report: &Value) -> BTreeSet<String> {
    let own = |finding: &&Value| {
        finding["path"].as_str().is_none_or(|path| Path::new(path).starts_with(scratch.root()))
    };
    let findings = report["findings"].as_array().unwrap().iter().filter(own);
    findings.map(|finding| finding["id"].as_str().unwrap().to_owned()).collect()
}

fn put(scratch: &Scratch, name: &str, text: &str, mode: u32) {
    scratch.dir(Path::new(name).parent().unwrap().to_str().unwrap());
    let path = scratch.file(name, text);
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

const PEM: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n";

type File = (&'static str, &'static str, u32);

/// A finding, the file that makes it, and one like it that does not.
const CASES: &[(&str, File, File)] = &[
    (
        "policy-writable",
        ("home/.config/confine/a.toml", "", 0o666),
        ("home/.config/confine/a.toml", "", 0o644),
    ),
    (
        "profile-waives",
        ("home/.config/confine/a.toml", "waive = [\n \"alias-free\",\n]\n", 0o600),
        ("home/.config/confine/a.toml", "# waive = [\"x\"]\nwaive = []\n", 0o600),
    ),
    (
        "profile-net-host",
        ("home/.config/confine/p/b.toml", "net = \"host\"\n", 0o600),
        ("home/.config/confine/p/b.toml", "net = \"none\"\n", 0o600),
    ),
    (
        "profile-listen-any",
        ("home/.config/confine/a.toml", "listen = [\"any\"]\n", 0o600),
        ("home/.config/confine/a.toml", "listen = [3000]\n", 0o600),
    ),
    (
        "profile-broad-workspace",
        ("home/.config/confine/a.toml", "allow = [\"broad-workspace\"]\n", 0o600),
        ("home/.config/confine/a.toml", "allow = []\n", 0o600),
    ),
    (
        "profile-allows-userns",
        ("home/.config/confine/a.toml", "allow = [\"userns\"]\n", 0o600),
        ("home/.config/confine/a.toml", "disallow = [\"userns\"]\n", 0o600),
    ),
    (
        "profile-grants-broadly",
        ("home/.config/confine/a.toml", "rw = [\"/etc\"]\n", 0o600),
        ("home/.config/confine/a.toml", "rw = [\"out\"]\n", 0o600),
    ),
    (
        "profile-reads-broadly",
        ("home/.config/confine/a.toml", "ro = [\"~\"]\n", 0o600),
        ("home/.config/confine/a.toml", "ro = [\"~/lib\"]\n", 0o600),
    ),
    (
        "profile-lifts-guard",
        ("home/.config/confine/a.toml", "git = \"free\"\n", 0o600),
        ("home/.config/confine/a.toml", "git = \"guard\"\n", 0o600),
    ),
    (
        "git-hook",
        ("w/.git/hooks/pre-commit", "#!/bin/sh\n", 0o755),
        ("w/.git/hooks/pre-commit.sample", "#!/bin/sh\n", 0o755),
    ),
    ("git-hook", ("w/sub/.git/hooks/post-merge", "", 0o755), ("w/sub/.git/hooks/post-merge", "", 0o644)),
    (
        "git-setting",
        ("w/.git/config", "[core]\n\tfsmonitor = /x\n", 0o644),
        ("w/.git/config", "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = x\n", 0o644),
    ),
    (
        "git-setting",
        ("w/.git/config", "[filter \"x\"]\n\tclean = evil\n", 0o644),
        ("w/.git/config", "[branch \"main\"]\n\tremote = origin\n", 0o644),
    ),
    (
        "git-hooks-path",
        ("w/.git/config", "[core]\n\thooksPath = .husky\n", 0o644),
        ("w/.git/config", "[core]\n\tfilemode = true\n", 0o644),
    ),
    (
        "git-alias",
        ("w/.git/config", "[alias]\n\tst = !sh x\n", 0o644),
        ("w/.git/config", "[user]\n\tname = st\n", 0o644),
    ),
    ("git-leads-elsewhere", ("w/.git/commondir", "/x\n", 0o644), ("w/.git/packed-refs", "x\n", 0o644)),
    (
        "git-leads-elsewhere",
        ("w/.git/objects/info/alternates", "/x\n", 0o644),
        ("w/.git/objects/info/packs", "/x\n", 0o644),
    ),
    ("nested-repository", ("w/deep/er/.git/HEAD", "ref: x\n", 0o644), ("w/.git/HEAD", "ref: x\n", 0o644)),
    ("runs-by-itself", ("w/.envrc", "true\n", 0o644), ("w/envrc", "true\n", 0o644)),
    ("runs-by-itself", ("w/.vscode/tasks.json", "{}\n", 0o644), ("w/.vscode/extensions.json", "{}\n", 0o644)),
    ("setuid-file", ("w/tool", "x", 0o4755), ("w/tool", "x", 0o755)),
    (
        "git-relative-hooks-path",
        ("home/.gitconfig", "[core]\n\thooksPath = .hooks\n", 0o644),
        ("home/.gitconfig", "[core]\n\thooksPath = ~/hooks\n", 0o644),
    ),
    (
        "secret-in-workspace",
        ("w/deploy/id_ed25519", PEM, 0o600),
        ("w/deploy/id_ed25519.pub", "ssh-ed25519 AAAA\n", 0o600),
    ),
    (
        "secret-in-workspace",
        ("w/.env", "API_TOKEN=abc\n", 0o600),
        ("w/.env.example", "API_TOKEN=abc\n", 0o600),
    ),
    (
        "secret-in-workspace",
        ("w/server.pem", "-----BEGIN PRIVATE KEY-----\n", 0o600),
        ("w/server.pem", "-----BEGIN CERTIFICATE-----\n", 0o600),
    ),
    (
        "agent-shell-unconfined",
        ("home/.claude/settings.json", "{\"permissions\": {}}", 0o600),
        ("home/.claude/settings.json", "{\"env\": {\"SHELL\": \"/usr/bin/confine-shell\"}}", 0o600),
    ),
    (
        "agent-shell-unconfined",
        ("home/.codex/config.toml", "model = \"x\"\n", 0o600),
        ("home/.codex/config.toml", "shell = \"confine-shell\"\n", 0o600),
    ),
    (
        "agent-shell-unconfined",
        ("home/.gemini/settings.json", "{}", 0o600),
        ("home/.gemini/settings.json", "{\"shell\": \"confine -w . --\"}", 0o600),
    ),
    (
        "agent-shell-unconfined",
        ("home/.config/opencode/opencode.json", "{}", 0o600),
        ("home/.config/opencode/opencode.json", "{\"shell\": \"confine-shell\"}", 0o600),
    ),
    (
        "agent-shell-unconfined",
        ("home/.config/goose/config.yaml", "a: b\n", 0o600),
        ("home/.config/goose/config.yaml", "shell: confine-shell\n", 0o600),
    ),
    (
        "agent-shell-unconfined",
        ("home/.aider.conf.yml", "test-cmd: make\n", 0o600),
        ("home/.aider.conf.yml", "test-cmd: confine -w . -- make\n", 0o600),
    ),
    (
        "agent-shell-unconfined",
        ("home/.config/Code/User/settings.json", "{ // confine\n}", 0o600),
        ("home/.config/Code/User/settings.json", "{\"path\": \"/usr/bin/confine-shell\",}", 0o600),
    ),
    (
        "agent-server-unconfined",
        ("home/.claude.json", "{\"mcpServers\": {\"x\": {\"command\": \"npx\"}}}", 0o600),
        ("home/.claude.json", "{\"mcpServers\": {\"x\": {\"command\": \"confine\"}}}", 0o600),
    ),
    (
        "agent-server-unconfined",
        ("home/.cursor/mcp.json", "{\"mcpServers\": {\"x\": {\"command\": \"npx\"}}}", 0o600),
        ("home/.cursor/mcp.json", "{\"mcpServers\": {\"x\": {\"url\": \"https://x\"}}}", 0o600),
    ),
    (
        "agent-settings-unreadable",
        ("home/.claude/settings.json", "{", 0o600),
        ("home/.claude/settings.json", "{}", 0o600),
    ),
];

#[test]
fn each_finding_is_found_and_its_clean_twin_is_not() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for (id, bad, good) in CASES {
            for ((name, text, mode), expected) in [(bad, true), (good, false)] {
                for directory in ["w", "home"] {
                    fs::remove_dir_all(scratch.path(directory)).unwrap();
                    scratch.dir(directory);
                }
                put(&scratch, name, text, *mode);
                let look = || [scratch.workspace(), scratch.home()].map(|path| Snapshot::of(&path));
                let before = look();
                let (outcome, report) = posture(&scratch);
                let found = ids(&scratch, &report).contains(*id);
                findings.claim(found == expected && outcome.err.is_empty(), || {
                    format!("{who:?}: {id}, {name} {text:?}: {}", outcome.tell())
                });
                let high = report["findings"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .any(|finding| finding["severity"] == "high");
                findings
                    .claim(outcome.code() == Some(i32::from(high)), || format!("{id}: {}", outcome.tell()));
                findings.claim(
                    before.iter().zip(look()).all(|(before, after)| before.difference(&after).is_none()),
                    || format!("{id}: it has changed something"),
                );
            }
        }
    }
    findings.settle();
}

#[test]
fn policy_files_of_others_in_workspaces_and_behind_links_are_found() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let claim = |scratch: &Scratch, id: &str, expected: bool, findings: &mut Findings| {
            let (outcome, report) = posture(scratch);
            let found = ids(scratch, &report).contains(id);
            findings.claim(found == expected, || format!("{who:?}: {id}: {}", outcome.tell()));
        };
        let scratch = Scratch::new(who);
        put(&scratch, "home/.config/confine/a.toml", "", 0o644);
        claim(&scratch, "policy-owner", false, &mut findings);
        let file = scratch.path("home/.config/confine/a.toml");
        std::os::unix::fs::lchown(&file, Some(12345), None).unwrap();
        claim(&scratch, "policy-owner", true, &mut findings);

        let scratch = Scratch::new(who);
        put(&scratch, "w/evil.toml", "", 0o644);
        scratch.dir("home/.config/confine");
        claim(&scratch, "policy-in-workspace", false, &mut findings);
        scratch.link("../../../w/evil.toml", "home/.config/confine/a.toml");
        claim(&scratch, "policy-in-workspace", true, &mut findings);

        let scratch = Scratch::new(who);
        put(&scratch, "home/.config/confine/a.toml", "", 0o644);
        let parent = scratch.path("home/.config");
        claim(&scratch, "policy-writable", false, &mut findings);
        fs::set_permissions(&parent, fs::Permissions::from_mode(0o777)).unwrap();
        claim(&scratch, "policy-writable", true, &mut findings);

        // What is no file is not to be mended: a chmod of /dev/zero would break the machine.
        let scratch = Scratch::new(who);
        scratch.dir("home/.config/confine");
        scratch.link("/dev/zero", "home/.config/confine/a.toml");
        let (outcome, report) = posture(&scratch);
        let told = ids(&scratch, &report).contains("policy-unreadable");
        findings.claim(told && !outcome.out.contains("chmod go-w /dev"), || outcome.tell());

        let scratch = Scratch::new(who);
        claim(&scratch, "workspace-writable-by-others", false, &mut findings);
        fs::set_permissions(scratch.workspace(), fs::Permissions::from_mode(0o777)).unwrap();
        claim(&scratch, "workspace-writable-by-others", true, &mut findings);
    }
    findings.settle();
}

#[test]
fn a_socket_that_a_run_would_not_cover_is_found_and_a_listed_one_is_not() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        // Bound by a relative name in a thread of its own directory, as other programs do: the list has no path of it.
        let script = "import os, socket, sys, time; os.chdir(sys.argv[1]); s = socket.socket(socket.AF_UNIX); s.bind('relative'); s.listen(); print('ready', flush=True); time.sleep(600)";
        let mut child = std::process::Command::new("python3")
            .args(["-c", script])
            .arg(scratch.workspace())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0; 5]).unwrap();
        let _listed = UnixListener::bind(scratch.path("w/listed")).unwrap();
        let (outcome, report) = posture(&scratch);
        child.kill().unwrap();
        child.wait().unwrap();
        let found: Vec<&str> = report["findings"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|finding| finding["id"] == "reachable-socket")
            .filter_map(|finding| finding["path"].as_str())
            .filter(|path| Path::new(path).starts_with(scratch.root()))
            .collect();
        findings.claim(found == [scratch.path("w/relative").to_str().unwrap()], || {
            format!("{who:?}: {found:?} {}", outcome.tell())
        });
    }
    findings.settle();
}

/// Lays files over settings of the kernel and over /etc, in a mount namespace of the test's own, and becomes the identity.
const OVERLAID: &str = r#"set -e
dir=$1; shift
mount -t tmpfs layers "$dir"; mkdir "$dir/upper" "$dir/work"
mount -t overlay etc -o "lowerdir=/etc,upperdir=$dir/upper,workdir=$dir/work" /etc
while [ "$1" != -- ]; do
    case $1 in
    /proc/*) echo "$2" > "$dir/value.$#"; mount --bind "$dir/value.$#" "$1" ;;
    *) mkdir -p "$(dirname "$1")"; printf "%s\n" "$2" > "$1"; chmod "${3}" "$1" ;;
    esac
    shift 3
done
shift; exec "$@""#;

fn overlaid(who: Who, files: &[(&str, &str, &str)]) -> (Outcome, Vec<Value>) {
    let scratch = Scratch::new(who);
    let layers = scratch.dir("layers").display().to_string();
    let id = who.id().to_string();
    let mut wrapper: Vec<String> =
        ["unshare", "-m", "bash", "-c", OVERLAID, "overlaid", &layers].map(String::from).into();
    wrapper.extend(files.iter().flat_map(|(path, text, mode)| [*path, *text, *mode]).map(String::from));
    wrapper.extend(["--", scratch.attack().to_str().unwrap(), "as", &id, &id].map(String::from));
    let outcome = Run::plain(&scratch).by(Who::Root).under(wrapper).command(line(&scratch)).run();
    let report: Value = serde_json::from_str(&outcome.out).unwrap_or_else(|_| panic!("{}", outcome.tell()));
    let list = report["findings"].as_array().unwrap().clone();
    (outcome, list)
}

#[test]
fn settings_of_the_kernel_are_told_when_they_weaken() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        for (setting, id, bad, good) in [
            ("fs/protected_hardlinks", "kernel-protected-hardlinks", "0", "1"),
            ("fs/protected_symlinks", "kernel-protected-symlinks", "0", "1"),
            ("fs/protected_fifos", "kernel-protected-fifos", "0", "1"),
            ("fs/protected_regular", "kernel-protected-regular", "0", "2"),
            ("dev/tty/legacy_tiocsti", "kernel-legacy-tiocsti", "1", "0"),
            ("kernel/unprivileged_bpf_disabled", "kernel-unprivileged-bpf", "0", "2"),
            ("kernel/core_pattern", "kernel-core-pattern", "|/usr/bin/x %p", "core"),
            ("kernel/kptr_restrict", "kernel-kptr-restrict", "0", "1"),
            ("kernel/dmesg_restrict", "kernel-dmesg-restrict", "0", "1"),
            ("kernel/perf_event_paranoid", "kernel-perf-event-paranoid", "-1", "2"),
            ("kernel/yama/ptrace_scope", "kernel-ptrace-scope", "0", "1"),
        ] {
            let path = format!("/proc/sys/{setting}");
            // A kernel without the setting has nothing to tell.
            let exists = Path::new(&path).exists();
            for (value, expected) in [(bad, exists), (good, false)] {
                let files: &[(&str, &str, &str)] =
                    if exists { &[(path.as_str(), value, "444")] } else { &[] };
                let (outcome, list) = overlaid(who, files);
                let found = list.iter().any(|finding| finding["id"] == id);
                findings
                    .claim(found == expected, || format!("{who:?}: {setting} {value}: {}", outcome.tell()));
            }
        }
    }
    findings.settle();
}

#[test]
fn files_of_the_system_are_judged_as_a_command_would_meet_them() {
    let mut findings = Findings::default();
    for who in EVERYONE {
        for (path, text, bad, good, id) in [
            ("/etc/confine/policy.toml", "", "666", "644", "policy-writable"),
            ("/etc/app/tls.key", PEM, "644", "600", "readable-private-key"),
            ("/etc/app/.env", "DB_PASSWORD=hush", "644", "600", "readable-credential"),
        ] {
            for (mode, expected) in [(bad, true), (good, false)] {
                let (outcome, list) = overlaid(who, &[(path, text, mode)]);
                let found = list.iter().any(|finding| finding["id"] == id && finding["path"] == path);
                findings.claim(found == expected, || format!("{who:?}: {path} {mode}: {}", outcome.tell()));
            }
        }
        // What confine's own table covers is nobody's to read inside.
        let (outcome, list) = overlaid(who, &[("/etc/ssl/private/own.key", PEM, "644")]);
        findings.claim(!list.iter().any(|finding| finding["path"] == "/etc/ssl/private/own.key"), || {
            outcome.tell()
        });
    }
    findings.settle();
}

#[test]
fn hostile_names_and_contents_are_escaped_and_bounded() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for number in 0..60 {
            put(&scratch, &format!("w/a\n\x1b[31m{number}/.git/hooks/pre-push"), "", 0o755);
        }
        put(
            &scratch,
            "home/.claude.json",
            "{\"mcpServers\": {\"\\u001b[2J\\n\": {\"command\": \"x\"}}}",
            0o600,
        );
        put(&scratch, "home/.codex/config.toml", &"[".repeat(1 << 20), 0o600);
        // Waits for nobody.
        scratch.dir("home/.gemini");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            scratch.path("home/.gemini/settings.json"),
            rustix::fs::FileType::Fifo,
            0o600.into(),
            0,
        )
        .unwrap();
        scratch.give(&scratch.path("home/.gemini/settings.json"));
        let (outcome, report) = posture(&scratch);
        let hooks = report["findings"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|finding| finding["id"] == "git-hook")
            .count();
        assert_eq!(hooks, 20, "{}", outcome.tell());
        assert!(
            report["more"]
                .as_array()
                .unwrap()
                .iter()
                .any(|more| more["id"] == "git-hook" && more["count"] == 40)
        );
        let text: Vec<OsString> = line(&scratch).into_iter().filter(|word| word != "--json").collect();
        let text = Run::plain(&scratch).command(text).run();
        assert!(!text.out.contains('\x1b') && text.out.contains("high, "), "{}", text.tell());
    }
}

#[test]
fn the_report_has_the_fields_of_its_schema_and_no_other() {
    let schema: Value = serde_json::from_str(include_str!("../docs/posture.schema.json")).unwrap();
    let scratch = Scratch::new(Who::User);
    put(&scratch, "w/.git/hooks/pre-commit", "", 0o755);
    let (_, report) = posture(&scratch);
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(keys(&report), keys(&schema["properties"]));
    assert_eq!(report["version"], schema["properties"]["version"]["const"]);
    let of_finding = &schema["$defs"]["finding"]["properties"];
    for finding in report["findings"].as_array().unwrap() {
        assert_eq!(keys(finding), keys(of_finding));
        assert!(
            of_finding["severity"]["enum"].as_array().unwrap().contains(&finding["severity"]),
            "{finding}"
        );
    }
}

#[test]
fn a_workspace_is_named_with_posture_only() {
    let scratch = Scratch::new(Who::User);
    let outcome = Run::plain(&scratch)
        .command([scratch.confine().as_os_str(), "check".as_ref(), "-w".as_ref(), ".".as_ref()])
        .run();
    assert!(outcome.code() == Some(125) && outcome.err.contains("--posture"), "{}", outcome.tell());
}
