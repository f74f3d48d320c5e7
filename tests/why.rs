//! `confine why` says what really happens: random policies over random trees, and each answer is compared with the
//! operation itself, done inside. CONFINE_PROPERTY_RUNS sets how many, CONFINE_PROPERTY_SEED repeats one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{EVERYONE, Findings, Outcome, Run, Scratch, Who};
use serde_json::Value;

/// For each subject one line of JSON: what the kernel says to who tries.
const PROBE: &str = r#"
import errno, json, os, socket, stat, sys

def attempt(operation):
    try: operation(); return True
    except OSError: return False

def opened(path, flags):
    os.close(os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY, 0o600))

def make(path):
    # Python's realpath takes `..` of a file, and of what may not be entered, for its directory; the kernel does not.
    for place in range(1, len(path.split("/"))):
        if path.split("/")[place] == ".." and not os.path.exists("/".join(path.split("/")[:place]) + "/."):
            return False
    path = os.path.realpath(path)
    made = []
    try:
        missing, here = [], os.path.dirname(path)
        while not os.path.lexists(here):
            missing.append(here); here = os.path.dirname(here)
        for directory in reversed(missing):
            os.mkdir(directory); made.append(directory)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        os.unlink(path)
        return True
    except OSError:
        return False
    finally:
        for directory in reversed(made): os.rmdir(directory)

def runs(path):
    child = os.fork()
    if child == 0:
        try:
            null = os.open("/dev/null", os.O_WRONLY)
            for number in 0, 1, 2: os.dup2(null, number)
            os.execv(path, [path])
        except OSError as error:
            # ENOEXEC: it may be run, and is no program.
            os._exit(0 if error.errno == errno.ENOEXEC else 1)
    return os.waitpid(child, 0)[1] == 0

def connects(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as peer: peer.settimeout(5); peer.connect(address)

for subject in sys.argv[1:]:
    seen = {"subject": subject}
    if subject.endswith("="):
        seen["passed"] = subject[:-1] in os.environ
    elif subject.startswith("127."):
        host, port = subject.split(":")
        seen["connectable"] = attempt(lambda: connects(socket.AF_INET, (host, int(port))))
    elif subject.startswith("@"):
        seen["connectable"] = attempt(lambda: connects(socket.AF_UNIX, "\0" + subject[1:]))
    else:
        seen["visible"] = attempt(lambda: os.lstat(subject))
        try: mode = os.stat(subject).st_mode
        except OSError: mode = None
        if mode is None:
            seen.update(readable=attempt(lambda: opened(subject, os.O_RDONLY)), writable=make(subject), executable=False)
        elif stat.S_ISSOCK(mode):
            seen["connectable"] = attempt(lambda: connects(socket.AF_UNIX, subject))
        elif stat.S_ISDIR(mode):
            seen["readable"] = attempt(lambda: os.listdir(subject))
            seen["writable"] = make(subject + "/probe-made-this")
            seen["executable"] = attempt(lambda: os.stat(subject + "/."))
        else:
            seen["readable"] = attempt(lambda: opened(subject, os.O_RDONLY))
            seen["writable"] = attempt(lambda: opened(subject, os.O_WRONLY))
            seen["executable"] = runs(subject)
    print(json.dumps(seen))
"#;

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end
    }

    fn pick<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        list[self.below(list.len())]
    }

    fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }
}

const DIRECTORIES: &[&str] = &[
    "w/a",
    "w/a/b",
    "w/a/b/c",
    "w/d",
    "w/d/e",
    "w/.git",
    "w/.git/hooks",
    "w/.git/objects",
    "w/.git/refs",
    "w/.vscode",
    "outside/r",
    "outside/r/s",
    "outside/r/s/t",
    "outside/u",
    "outside/v",
    "home/.cargo",
    "home/.cargo/bin",
    "home/own",
];

const FILES: &[&str] = &[
    "w/f",
    "w/a/f",
    "w/a/b/f",
    "w/a/b/c/f",
    "w/d/f",
    "w/d/e/f",
    "w/.git/HEAD",
    "w/.git/config",
    "w/.git/hooks/pre-commit",
    "w/.envrc",
    "w/.vscode/tasks.json",
    "outside/f",
    "outside/r/f",
    "outside/r/s/f",
    "outside/r/s/t/f",
    "outside/u/f",
    "outside/v/f",
    "home/f",
    "home/.gitconfig",
    "home/.cargo/config.toml",
    "home/.cargo/credentials.toml",
    "home/.cargo/bin/tool",
    "home/own/f",
    "secret",
];

const LINKS: &[(&str, &str)] = &[
    ("f", "w/to-file"),
    ("a/b", "w/to-directory"),
    ("../outside/r", "w/to-outside"),
    ("nowhere", "w/a/dangling"),
    ("circle", "w/circle"),
    ("/etc/passwd", "w/d/to-system"),
    ("../../w/a", "outside/r/to-workspace"),
    ("s/t", "outside/r/to-inner"),
];

/// Asked about in every run, besides what the tree has.
const SYSTEM: &[&str] = &[
    "/",
    "/usr",
    "/usr/bin/true",
    "/bin/true",
    "/etc",
    "/etc/passwd",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/sudoers",
    "/tmp",
    "/tmp/new/name",
    "/var",
    "/var/tmp",
    "/var/log",
    "/home",
    "/root",
    "/mnt",
    "/dev",
    "/dev/null",
    "/dev/fd",
    "/dev/shm",
    "/dev/full",
    "/dev/ptmx",
    "/proc/version",
    "/proc/kallsyms",
    "/proc/sys/kernel/hostname",
    "/sys/kernel",
    "/.confine",
    "/.confine/note",
    "/.confine/self-check",
    "/nowhere/at/all",
    "/etc/passwd/below",
    "/run",
    "/opt",
    "/etc/ssh/sshd_config",
    "/etc/ssh/ssh_config",
];

fn plant(scratch: &Scratch, random: &mut Random) {
    for directory in DIRECTORIES {
        let path = scratch.dir(directory);
        // An unreadable directory of a writable root cannot be scanned, so that no run would start.
        if directory.starts_with("outside") && random.one_in(4) {
            let mode = [0o700, 0o711, 0o500, 0o000][random.below(4)];
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
    }
    for file in FILES {
        let path = if random.one_in(3) {
            scratch.script(file, "#!/bin/sh\nexit 0\n")
        } else {
            scratch.file(file, "text\n")
        };
        if random.one_in(3) {
            let mode = [0o600, 0o400, 0o000, 0o640, 0o755, 0o666][random.below(6)];
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        if random.one_in(4) {
            let other = [0, 12345][random.below(2)];
            std::os::unix::fs::lchown(path, Some(other), Some(other)).unwrap();
        }
    }
    for (to, name) in LINKS {
        scratch.link(to, name);
    }
}

/// Options of a run; `@` stands for the scratch directory.
fn policy(random: &mut Random, port: u16) -> Vec<String> {
    let mut options: Vec<String> = Vec::new();
    if random.one_in(3) {
        options.extend(["--namespaces".into(), "off".into()]);
    }
    if random.one_in(6) {
        options.push("--read-only".into());
    }
    if random.one_in(2) {
        options.extend(["--git".into(), random.pick(&["guard", "read-only", "free"]).to_owned()]);
    }
    if random.one_in(6) {
        options.push("--no-toolchains".into());
    }
    for _ in 0..random.below(5) {
        let option = random.pick(&["--ro", "--rw", "--hide", "--seal", "--ro", "--rw"]);
        let path = match random.below(8) {
            0 => random.pick(FILES).to_owned(),
            1 => random.pick(&["/var/log", "/etc/passwd", "/etc/sudoers", "/etc/ssh", "/"]).to_owned(),
            2 => random.pick(&["home", "home/own", "outside"]).to_owned(),
            _ => random.pick(DIRECTORIES).to_owned(),
        };
        // The machine's own files are nobody's to open for writing.
        let option = if path.starts_with('/') && option == "--rw" { "--ro" } else { option };
        options.extend([option.to_owned(), if path.starts_with('/') { path } else { format!("@{path}") }]);
    }
    match random.below(7) {
        4 => options.extend(["--loopback".into(), "host".into()]),
        0 => options.extend(["--net".into(), "host".into()]),
        1 => options.extend(["--connect".into(), port.to_string()]),
        2 => options.extend(["--connect".into(), "9".into()]),
        3 => options.extend(["--loopback".into(), "off".into()]),
        _ => {}
    }
    for _ in 0..random.below(3) {
        let word = random.pick(&["GIVEN", "TOKEN", "ABSENT", "TOKEN=x", "NEW=x", "TZ=UTC", "PATH", "CI=1"]);
        options.extend(["--env".into(), word.to_owned()]);
    }
    options
}

fn subjects(random: &mut Random, scratch: &Scratch, port: u16) -> Vec<String> {
    let mut list: Vec<String> = Vec::new();
    let at = |name: &str| scratch.path(name).display().to_string();
    for _ in 0..16 {
        let name = match random.below(4) {
            0 => random.pick(DIRECTORIES).to_owned(),
            1 => random.pick(&LINKS.iter().map(|(_, name)| *name).collect::<Vec<_>>()).to_owned(),
            _ => random.pick(FILES).to_owned(),
        };
        let name = match random.below(9) {
            4 => format!("{name}/"),
            0 => format!("{name}/new"),
            1 => format!("{name}/no/such"),
            2 => format!("{name}/../f"),
            3 => format!("{name}/f"),
            _ => name,
        };
        list.push(at(&name));
    }
    list.extend((0..12).map(|_| random.pick(SYSTEM).to_owned()));
    list.extend(
        ["f", "a/../f", ".", "..", "../outside/f", ".git/config", ".git/new", "to-outside/f", "a/b"]
            .map(String::from),
    );
    list.extend([at("w/live"), at("outside/r/live"), at(""), at("home"), at("outside")]);
    list.extend([format!("127.0.0.1:{port}"), "@confine-why-test".into()]);
    list.extend(
        [
            "GIVEN=",
            "TOKEN=",
            "ABSENT=",
            "NEW=",
            "TZ=",
            "PATH=",
            "CI=",
            "HOME=",
            "CONFINE=",
            "CONFINE_POLICY=",
            "WITH_USER=",
            "NO_COLOR=",
        ]
        .map(String::from),
    );
    list
}

fn environment(run: Run) -> Run {
    run.env("GIVEN", "1")
        .env("TOKEN", "do-not-tell")
        .env("TZ", "UTC")
        .env("NO_COLOR", "https://user:pass@host/")
        .env("CI", "1")
}

fn why(scratch: &Scratch, options: &[OsString], subjects: &[String]) -> Outcome {
    let mut line: Vec<OsString> =
        vec![scratch.confine().into(), "why".into(), "-w".into(), scratch.workspace().into()];
    line.extend(options.iter().cloned());
    line.push("--json".into());
    line.extend(subjects.iter().map(OsString::from));
    environment(Run::plain(scratch)).command(line).run()
}

const RIGHTS: [&str; 6] = ["visible", "readable", "writable", "executable", "connectable", "passed"];

/// Where the two differ, in words.
fn differences(said: &Value, done: &Value) -> Vec<String> {
    let differs = |right: &&&str| {
        let done = &done[**right];
        !done.is_null() && said[**right].as_bool().unwrap_or(false) != done.as_bool().unwrap()
    };
    RIGHTS
        .iter()
        .filter(differs)
        .map(|right| format!("{right}: said {}, done {}", said[right], done[right]))
        .collect()
}

fn answers(outcome: &Outcome) -> Vec<Value> {
    answers_of(&outcome.out).unwrap_or_else(|| panic!("{}", outcome.tell()))
}

fn answers_of(line: &str) -> Option<Vec<Value>> {
    let report: Value = serde_json::from_str(line).ok()?;
    (report["version"] == 1).then(|| report["answers"].as_array().unwrap().clone())
}

/// One policy over one tree. True when the run started.
fn compare(who: Who, seed: u64, findings: &mut Findings) -> bool {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for _ in 0..8 {
        random.below(2);
    }
    let scratch = Scratch::new(who);
    plant(&scratch, &mut random);
    scratch.file("w/own/probe.py", PROBE);
    // Sockets of another program, in a place that may be written and in one that may not.
    let sockets: Vec<UnixListener> = ["w/live", "outside/r/live"]
        .iter()
        .filter_map(|name| {
            let listener = UnixListener::bind(scratch.path(name)).ok()?;
            fs::set_permissions(scratch.path(name), fs::Permissions::from_mode(0o777)).unwrap();
            Some(listener)
        })
        .collect();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let options: Vec<OsString> = policy(&mut random, port)
        .into_iter()
        // Or the program cannot be asked inside.
        .chain(["--ro".into(), "@bin".into()])
        .map(|word| match word.strip_prefix('@') {
            Some(name) => scratch.path(name).into(),
            None => word.into(),
        })
        .collect();
    let subjects = subjects(&mut random, &scratch, port);
    let outside = why(&scratch, &options, &subjects);
    let script = "/usr/bin/python3 own/probe.py \"$@\" && ../bin/confine why --json \"$@\"";
    let mut command: Vec<OsString> = ["bash", "-c", script, "probe"].map(OsString::from).into();
    command.extend(subjects.iter().map(OsString::from));
    let done = environment(Run::confined(&scratch)).options(&options).command(command).run();
    let context = || {
        let words: Vec<String> = options.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        format!("seed {seed} {who:?} {}", words.join(" "))
    };
    drop(sockets);
    if done.code() == Some(125) {
        // Only with the command's own identity it shows that it cannot write.
        let late = done.err.contains("by the identity that the command will have");
        let told =
            || serde_json::from_str::<Value>(&outside.out).is_ok_and(|report| report["refused"].is_string());
        findings.claim(late || outside.code() == Some(125) || told(), || {
            format!("{}: a run is refused ({}) and why answers", context(), done.err)
        });
        return false;
    }
    if !outside.ok() || !done.ok() {
        findings.claim(false, || format!("{}:\nwhy {}\nrun {}", context(), outside.tell(), done.tell()));
        return false;
    }
    let lines: Vec<&str> = done.out.lines().collect();
    let (inside, lines) = lines.split_last().unwrap();
    let inside = answers_of(inside).unwrap_or_else(|| panic!("{inside}"));
    let outside = answers(&outside);
    findings.claim(lines.len() == subjects.len(), || format!("{}: {}", context(), done.tell()));
    for (index, line) in lines.iter().enumerate() {
        let done: Value = serde_json::from_str(line).unwrap();
        for (place, said) in [("outside", &outside[index]), ("inside", &inside[index])] {
            assert_eq!(said["subject"], done["subject"]);
            // What another program made cannot be told apart from inside.
            if place == "inside" && said["what"] == "socket" {
                continue;
            }
            let differences = differences(said, &done);
            findings.claim(differences.is_empty(), || {
                format!("{}: {place}: {}: {differences:?}\n  {said}", context(), subjects[index])
            });
        }
    }
    true
}

/// The answer about one subject, of a run with these options.
fn one(scratch: &Scratch, options: &[&str], subject: &str) -> Value {
    let options: Vec<OsString> = options.iter().map(OsString::from).collect();
    answers(&why(scratch, &options, &[subject.to_owned()])).remove(0)
}

fn told(scratch: &Scratch, options: &[&str], subject: &str) -> String {
    let mut line: Vec<OsString> =
        vec![scratch.confine().into(), "why".into(), "-w".into(), scratch.workspace().into()];
    line.extend(options.iter().map(OsString::from));
    line.push(subject.into());
    let outcome = Run::plain(scratch).env("TOKEN", "do-not-tell").command(line).run();
    assert!(outcome.ok() && outcome.err.is_empty(), "{}", outcome.tell());
    outcome.out
}

#[test]
fn each_answer_names_its_rule_and_the_option_that_changes_it() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for name in ["w/.git/hooks", "w/.git/objects", "w/.git/refs", "w/part"] {
            scratch.dir(name);
        }
        scratch.file("w/.git/HEAD", "ref: x\n");
        scratch.file("w/.git/hooks/pre-commit", "");
        scratch.file("w/file", "");
        scratch.file("outside/file", "");
        let _socket = UnixListener::bind(scratch.path("w/live")).unwrap();
        let at = |name: &str| scratch.path(name).display().to_string();
        let (workspace, outside, part) = (at("w"), at("outside/file"), at("w/part"));
        let own = format!("--workspace {workspace}");
        let given = format!("--ro {part}");
        let instead = format!("--rw {part} in place of the option that shows it read-only");
        let bring = format!("--ro {outside}");
        let hooks = format!("--rw {workspace}/.git/hooks");
        let lift = format!("--rw {workspace}/file");
        let live = format!("--ro {workspace}/live");
        for (options, subject, from, rule, change, careful) in [
            (&[][..], "file", "option", Some(own.as_str()), None, false),
            (&["--read-only"], "file", "option", Some(&own), Some(lift.as_str()), false),
            (&["--ro", "part"], "part/x", "option", Some(&given), Some(&instead), false),
            (&[], &outside, "table", None, Some(&bring), false),
            (&[], "/srv/nowhere", "default", None, None, false),
            (&[], ".git/hooks/pre-commit", "found", None, Some(&hooks), true),
            (&["--git", "free"], ".git/hooks/pre-commit", "option", Some(&own), None, false),
            (&[], "live", "found", None, Some(&live), true),
            (&[], "/usr/bin/env", "table", None, Some("--rw /usr/bin/env"), true),
            (&[], "/usr", "table", None, Some("--rw /usr --allow broad-workspace"), true),
            (&[], "/tmp/x", "table", None, None, false),
            (&[], "/proc/version", "table", None, None, false),
            (&[], "TOKEN=", "default", None, Some("--env TOKEN"), true),
            (&["--env", "TOKEN"], "TOKEN=", "option", Some("--env TOKEN"), None, false),
            (&[], "OTHER_TOKEN=", "default", None, Some("--env-file FILE"), true),
            (&[], "OTHER=", "default", None, Some("--env OTHER=VALUE"), false),
            (&[], "PATH=", "table", None, None, false),
            (&[], "CONFINE_NOTE=", "table", None, None, false),
            (&[], "NO_COLOR=", "table", None, Some("--env NO_COLOR"), false),
            (&[], "example.org:443", "default", None, Some("--connect 443"), false),
            (&[], "localhost:5432", "default", None, Some("--connect 5432"), true),
            (&["--connect", "443"], "example.org:443", "option", Some("--connect 443"), None, false),
            (&["--listen", "3000"], ":3000", "option", Some("--listen 3000"), Some("--connect 3000"), true),
            (&["--net", "host"], "127.0.0.1:1", "option", Some("--net host"), None, false),
            (&["--net", "host"], "@any", "default", None, None, false),
            (&["--loopback", "host"], "localhost:5432", "option", Some("--loopback host"), None, false),
            (&["--loopback", "host"], "example.org:443", "default", None, Some("--connect 443"), false),
        ] {
            // What the user's identity may not write no option makes writable.
            let barred = who == Who::User && subject.starts_with("/usr");
            let (change, careful) = (change.filter(|_| !barred), careful && !barred);
            let answer = one(&scratch, options, subject);
            let tell = || format!("{who:?} {options:?} {subject}: {answer}");
            assert_eq!(
                answer["notes"].to_string().contains("no option makes it writable"),
                barred,
                "{}",
                tell()
            );
            assert_eq!(answer["rule"]["from"], from, "{}", tell());
            assert_eq!(answer["rule"]["option"].as_str(), rule, "{}", tell());
            assert_eq!(answer["change"]["option"].as_str(), change, "{}", tell());
            assert_eq!(answer["change"]["warning"].is_string(), careful, "{}", tell());
            assert!(!answer["rule"]["text"].as_str().unwrap().is_empty(), "{}", tell());
            if let Some(change) = change {
                assert!(told(&scratch, options, subject).contains(&format!("hint: {change}")), "{}", tell());
            }
        }
    }
}

#[test]
fn nothing_is_suggested_that_is_given_already_or_would_not_help() {
    let scratch = Scratch::new(Who::User);
    scratch.file("w/roots", "");
    std::os::unix::fs::chown(scratch.path("w/roots"), Some(0), Some(0)).unwrap();
    scratch.link("loop", "w/loop");
    let said = told(&scratch, &[], "roots");
    assert!(said.contains("does not let uid") && !said.contains("hint"), "{said}");
    let said = told(&scratch, &[], "loop");
    assert!(said.matches("leads to").count() == 1 && !said.contains("HOST:PORT"), "{said}");
    assert!(!told(&scratch, &["--listen", "3000"], ":3000").contains("to serve there"));
    assert!(told(&scratch, &["--listen", "3000"], ":3001").contains("to serve there"));
}

#[test]
fn what_holds_a_narrowed_part_is_writable_only_where_it_was() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for name in ["w/part", "w/part/deep", "w/part/deep/er"] {
            scratch.dir(name);
        }
        for (option, writable) in [("--seal", false), ("--ro", false), ("--rw", true)] {
            let answer = one(&scratch, &[option, "part", "--ro", "part/deep/er"], "part/deep");
            assert_eq!(answer["writable"], writable, "{who:?} {option}: {answer}");
        }
    }
}

#[test]
fn a_rule_of_a_policy_file_is_cited_by_file_and_line() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        scratch.file("outside/file", "");
        let text = format!(
            "# what may be read\nro = [\n  \"{}\",\n]\nconnect = [443]\nenv = [\"TOKEN\"]\n",
            scratch.outside().display()
        );
        let file = scratch.file("home/rules.toml", &text).display().to_string();
        let outside = scratch.path("outside/file").display().to_string();
        for (subject, line) in [(outside.as_str(), 3), ("x:443", 5), ("TOKEN=", 6)] {
            let answer = one(&scratch, &["--policy", &file], subject);
            assert_eq!(answer["rule"]["from"], "option", "{answer}");
            assert_eq!(answer["rule"]["line"], line, "{answer}");
            assert!(answer["rule"]["file"].as_str().unwrap().contains("rules.toml"), "{answer}");
            assert!(
                told(&scratch, &["--policy", &file], subject).contains(&format!("rules.toml', line {line}"))
            );
            // The twin: the same from the command line has no file.
            let options = ["--ro", outside.as_str(), "--connect", "443", "--env", "TOKEN"];
            assert!(one(&scratch, &options, subject)["rule"]["file"].is_null());
        }
    }
}

#[test]
fn the_option_that_is_named_does_change_it() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        scratch.file("outside/file", "text\n");
        scratch.file("w/.envrc", "text\n");
        for (subject, right) in [("outside/file", "readable"), ("w/.envrc", "writable")] {
            let subject = scratch.path(subject).display().to_string();
            let answer = one(&scratch, &[], &subject);
            assert_eq!(answer[right], false, "{answer}");
            let option = answer["change"]["option"].as_str().unwrap();
            let options: Vec<&str> = option.split(' ').collect();
            assert_eq!(one(&scratch, &options, &subject)[right], true, "{option}");
            let test = if right == "readable" { "cat" } else { "tee -a" };
            let run = |options: &[&str]| {
                Run::confined(&scratch).options(options).shell(format!("{test} {subject}")).ok()
            };
            assert_eq!((run(&[]), run(&options)), (false, true), "{who:?} {option}");
        }
    }
}

#[test]
fn an_alias_is_told_and_that_no_run_would_start() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        scratch.file("outside/file", "text\n");
        fs::hard_link(scratch.path("outside/file"), scratch.path("w/alias")).unwrap();
        let outcome = why(&scratch, &[], &["alias".to_owned(), "other".to_owned()]);
        let report: Value = serde_json::from_str(&outcome.out).unwrap();
        assert!(
            report["refused"].as_str().is_some_and(|text| text.contains("outside")),
            "{}",
            outcome.tell()
        );
        let notes = report["answers"][0]["notes"].to_string();
        assert!(
            notes.contains("name outside")
                && !report["answers"][1]["notes"].to_string().contains("name outside"),
            "{notes}"
        );
        assert_eq!(Run::confined(&scratch).command(["true"]).run().code(), Some(125));
        // The twin: names that all lie inside.
        fs::remove_file(scratch.path("outside/file")).unwrap();
        fs::hard_link(scratch.path("w/alias"), scratch.path("w/second")).unwrap();
        let outcome = why(&scratch, &[], &["alias".to_owned()]);
        let report: Value = serde_json::from_str(&outcome.out).unwrap();
        assert!(
            report["refused"].is_null()
                && report["answers"][0]["notes"].to_string().contains("all of them inside"),
            "{}",
            outcome.tell()
        );
        assert!(Run::confined(&scratch).command(["true"]).run().ok());
    }
}

#[test]
fn what_is_mounted_in_a_workspace_is_told_to_be_read_only() {
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        scratch.dir("w/mounted");
        let id = who.id().to_string();
        let setup = "mount -t tmpfs -o mode=777 own \"$1\"; echo x > \"$1/file\"; chmod 666 \"$1/file\"; shift; exec \"$@\"";
        let mounted = scratch.path("w/mounted").display().to_string();
        let attack = scratch.attack();
        let wrapper = [
            "unshare",
            "-m",
            "bash",
            "-c",
            setup,
            "setup",
            &mounted,
            attack.to_str().unwrap(),
            "as",
            &id,
            &id,
        ];
        for (options, expected) in [(&[][..], false), (&["--rw", "mounted"], true)] {
            let mut line: Vec<OsString> =
                vec![scratch.confine().into(), "why".into(), "-w".into(), scratch.workspace().into()];
            line.extend(options.iter().map(OsString::from));
            line.extend(["--json", "mounted/file"].map(OsString::from));
            let asked = Run::plain(&scratch).by(Who::Root).under(wrapper).command(line).run();
            assert_eq!(answers(&asked)[0]["writable"], expected, "{who:?} {options:?}: {}", asked.tell());
            let done = Run::confined(&scratch)
                .by(Who::Root)
                .options(options)
                .under(wrapper)
                .shell("echo y > mounted/file");
            assert_eq!(done.ok(), expected, "{}", done.tell());
        }
    }
}

#[test]
fn another_user_is_answered_for_as_that_user() {
    let scratch = Scratch::new(Who::Root);
    let workspace = scratch.workspace();
    std::os::unix::fs::lchown(&workspace, Some(common::USER), Some(common::USER)).unwrap();
    let theirs = scratch.file("w/theirs", "text\n");
    std::os::unix::fs::lchown(&theirs, Some(common::USER), None).unwrap();
    fs::set_permissions(&theirs, fs::Permissions::from_mode(0o600)).unwrap();
    let mine = scratch.file("w/mine", "text\n");
    fs::set_permissions(&mine, fs::Permissions::from_mode(0o600)).unwrap();
    let user = format!("{0}:{0}", common::USER);
    for (options, theirs, mine) in
        [(&["--user", user.as_str()][..], true, false), (&["--namespaces", "off"], false, true)]
    {
        for (subject, expected) in [("theirs", theirs), ("mine", mine)] {
            let answer = one(&scratch, options, subject);
            assert_eq!(answer["readable"], expected, "{options:?} {answer}");
            if options[0] == "--user" {
                let done = Run::confined(&scratch).options(options).command(["cat", subject]).run();
                assert_eq!(done.ok(), expected, "{}", done.tell());
            }
        }
    }
}

#[test]
fn inside_it_needs_no_options_and_a_false_note_misleads_nobody_else() {
    for who in EVERYONE {
        for options in [&[][..], &["--namespaces", "off"]] {
            let scratch = Scratch::new(who);
            let bin = scratch.path("bin").display().to_string();
            let run =
                |script: &str| Run::confined(&scratch).options(options).options(["--ro", &bin]).shell(script);
            let outcome = run("../bin/confine why --json . /usr TOKEN=");
            let report: Value =
                serde_json::from_str(&outcome.out).unwrap_or_else(|_| panic!("{}", outcome.tell()));
            assert_eq!(report["inside"], true);
            let policy = run("printf %s $CONFINE_POLICY").out;
            assert_eq!(report["policy"], policy.as_str());
            assert_eq!(
                (&report["answers"][0]["writable"], &report["answers"][1]["writable"]),
                (&Value::Bool(true), &Value::Bool(false))
            );
            // The plan cannot be written, and names no value.
            let outcome = run(
                "p=$(dirname $CONFINE_NOTE)/plan.json; cat $p; echo; echo x >> $p; rm -f $p; mv $p x; chmod 666 $p; cat $p | wc -c",
            );
            let lines: Vec<&str> = outcome.out.lines().collect();
            assert_eq!(lines[0].len().to_string(), lines[1].trim(), "{}", outcome.tell());
            let told = Run::confined(&scratch)
                .options(options)
                .options(["--env", "SECRET=do-not-tell"])
                .shell("cat $(dirname $CONFINE_NOTE)/plan.json");
            assert!(told.out.contains("SECRET") && !told.out.contains("do-not-tell"), "{}", told.tell());
            // Who sets the variable misleads what it starts, where the place is not confine's own; nothing opens.
            let fake = "sed 's/\"access\":\"read\"/\"access\":\"write\"/g' $(dirname $CONFINE_NOTE)/plan.json > plan.json; CONFINE_NOTE=$PWD/note ../bin/confine why --json /usr; touch /usr/x";
            let outcome = run(fake);
            assert!(!outcome.ok(), "{}", outcome.tell());
            if options.is_empty() {
                assert_eq!(
                    answers_of(outcome.out.trim()).unwrap()[0]["writable"],
                    false,
                    "{}",
                    outcome.tell()
                );
            }
        }
    }
}

#[test]
fn a_cache_that_another_run_keeps_is_told_as_it_is_seen() {
    let scratch = Scratch::new(Who::User);
    scratch.dir("home/.cargo");
    scratch.dir("home/.cargo/registry");
    let (state, bin) = (scratch.path("home/state"), scratch.path("bin"));
    let kept = || Run::confined(&scratch).option("--state").option(&state).option("--ro").option(&bin);
    let ask = "test -e ~/.cargo/registry/new && echo seen; ../bin/confine why --json ~/.cargo/registry/new";
    let inside = || {
        let outcome = kept().shell(ask);
        let (seen, json) = match outcome.out.strip_prefix("seen\n") {
            Some(json) => (true, json),
            None => (false, outcome.out.as_str()),
        };
        let answer = answers_of(json.trim()).unwrap_or_else(|| panic!("{}", outcome.tell()))[0].clone();
        assert_eq!(answer["visible"], seen, "{}", outcome.tell());
        (seen, answer["vanishes"].clone(), answer["rule"]["text"].as_str().unwrap().to_owned())
    };
    let first = kept().shell("echo x > ~/.cargo/registry/new");
    assert!(first.ok(), "{}", first.tell());
    let (seen, vanishes, text) = inside();
    assert!(seen && vanishes == false && !text.contains("another run"), "{text}");
    // While a run lives that has the layer, the next one has a private one.
    let mut holder = kept().stdio(0, Stdio::piped()).command(["sh", "-c", "echo up; read end"]).spawn();
    let mut line = String::new();
    BufReader::new(holder.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
    let (seen, vanishes, text) = inside();
    assert!(!seen && vanishes == true && text.contains("another run"), "{text}");
    let subject = scratch.path("home/.cargo/registry/new").display().to_string();
    let options = ["--state".into(), state.clone().into_os_string()];
    let asked = answers(&why(&scratch, &options, std::slice::from_ref(&subject)))[0].clone();
    assert!(
        asked["vanishes"].is_null() && asked["notes"].to_string().contains("one run at a time"),
        "{asked}"
    );
    drop(holder.stdin.take());
    common::run::wait(&mut holder);
    let (seen, vanishes, _) = inside();
    assert!(seen && vanishes == false);
}

#[test]
fn what_cannot_be_asked_is_125_and_every_answer_is_0() {
    let scratch = Scratch::new(Who::User);
    let ask = |words: &[&str]| {
        let line = [scratch.confine().into_os_string(), "why".into()]
            .into_iter()
            .chain(words.iter().map(OsString::from));
        Run::plain(&scratch).command(line).run()
    };
    for words in [
        &[][..],
        &["x"],
        &["-w", "."],
        &["-w", "nowhere", "x"],
        &["-w", ".", "a:0"],
        &["-w", ".", ""],
        &["--ro", "/x", "y"],
        &["-w", ".", "--nonsense", "x"],
    ] {
        let outcome = ask(words);
        assert!(
            outcome.code() == Some(125)
                && outcome.out.is_empty()
                && (outcome.err.contains("hint: ") || words.contains(&"nowhere")),
            "{words:?}: {}",
            outcome.tell()
        );
    }
    for word in ["nowhere", "/etc/shadow", "NONE=", "x:1", "@x", "./a:0", "a\n\x1b[31mb"] {
        let outcome = ask(&["-w", ".", word]);
        assert!(
            outcome.ok() && outcome.err.is_empty() && !outcome.out.contains('\x1b'),
            "{word}: {}",
            outcome.tell()
        );
    }
}

#[test]
fn the_answers_have_the_fields_of_their_schema_and_no_other() {
    let schema: Value = serde_json::from_str(include_str!("../docs/why.schema.json")).unwrap();
    let scratch = Scratch::new(Who::User);
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let subjects = ["file", "/etc/shadow", "TOKEN=", "x:1", "@x"].map(String::from);
    let outcome = why(&scratch, &[], &subjects);
    let report: Value = serde_json::from_str(&outcome.out).unwrap();
    assert_eq!(keys(&report), keys(&schema["properties"]));
    let of = |part: &str| &schema["$defs"][part]["properties"];
    let (item, rule, change) = (of("answer"), of("rule"), of("change"));
    for answer in report["answers"].as_array().unwrap() {
        assert_eq!(keys(answer), keys(item));
        assert_eq!(keys(&answer["rule"]), keys(rule));
        assert!(rule["from"]["enum"].as_array().unwrap().contains(&answer["rule"]["from"]));
        assert!(item["kind"]["enum"].as_array().unwrap().contains(&answer["kind"]));
        assert!(item["what"]["enum"].as_array().unwrap().contains(&answer["what"]));
        if !answer["change"].is_null() {
            assert_eq!(keys(&answer["change"]), keys(change));
        }
    }
}

#[test]
fn what_is_said_is_what_happens() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let runs = number("CONFINE_PROPERTY_RUNS").unwrap_or(60);
    let seed = number("CONFINE_PROPERTY_SEED");
    // The same policies every time, so that a change is judged by what it changes; others by CONFINE_PROPERTY_SEED
    // and CONFINE_PROPERTY_RUNS.
    let first = seed.unwrap_or(1000);
    println!("CONFINE_PROPERTY_SEED={first}");
    let end = Instant::now() + Duration::from_secs(number("CONFINE_PROPERTY_SECONDS").unwrap_or(30));
    let (mut findings, mut started, mut tried) = (Findings::default(), 0, 0);
    for seed in
        first..first + if seed.is_some() && number("CONFINE_PROPERTY_RUNS").is_none() { 1 } else { runs }
    {
        for who in EVERYONE {
            tried += 1;
            started += usize::from(compare(who, seed, &mut findings));
        }
        if Instant::now() > end {
            break;
        }
    }
    println!("{started} of {tried} runs started");
    findings
        .claim(seed.is_some() || started * 3 > tried, || format!("only {started} of {tried} runs started"));
    findings.settle();
}

#[test]
fn a_word_that_is_no_file_is_told_how_hosts_and_variables_are_written() {
    let scratch = Scratch::new(Who::User);
    scratch.file("w/there", "");
    for (subject, told_so) in
        [("github.com", true), ("443", true), ("API_TOKEN", true), ("there", false), ("./x", false)]
    {
        let said = told(&scratch, &[], subject);
        assert_eq!(said.contains("HOST:PORT, for a variable NAME="), told_so, "{said}");
    }
    assert!(told(&scratch, &[], "example.org:443").contains("`--connect 443 --connect 53`"));
    assert!(!told(&scratch, &[], "192.0.2.1:443").contains("--connect 53"));
}
