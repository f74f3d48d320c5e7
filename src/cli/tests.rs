use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;

use super::build::Build;
use super::layers::Given;
use super::options::Value;
use super::{Invocation, Request, options, rules, run, values};
use crate::error::{Error, Result};
use crate::policy::files::{self, Which};
use crate::policy::*;

/// Without policy files, but for the profiles that are built in.
pub fn parse(argv: impl IntoIterator<Item = OsString>) -> Result<Request> {
    super::parse(argv, &|which| match which {
        Which::Profile(name) => files::builtin::find(name),
        Which::System | Which::Named(_) | Which::Shell => Ok(None),
    })
}

pub fn ask(line: &str) -> Result<Request> {
    parse(line.split(' ').map(OsString::from))
}

pub fn policy(line: &str) -> Policy {
    match ask(line) {
        Ok(Request::Run(invocation)) => invocation.policy,
        other => panic!("{line}: {other:?}"),
    }
}

/// The message, and the hint after a bar.
pub fn complaint(line: &str) -> String {
    let error = ask(line).unwrap_err();
    assert!(matches!(error, Error::Usage { .. }) && error.status() == 125, "{line}: {error:?}");
    format!("{error} | {}", error.hint().unwrap_or_default())
}

pub fn assert_says(line: &str, said: &str) {
    assert_eq!(complaint(line), said, "{line}");
}

#[test]
fn every_word_that_help_offers_is_taken() {
    for row in options::RUN {
        if let Value::OneOf(_, words) = row.value {
            for word in words {
                let more = if row.name == "on-output-limit" { " --max-output 1M" } else { "" };
                ask(&format!("confine -w .{more} --{} {word} -- true", row.name)).unwrap();
            }
        }
    }
}

/// The shortcut of `Build::MeantBy` must not show: each option alone reads the same with all of them built.
#[test]
fn an_option_reads_the_same_whether_the_others_are_built_or_not() {
    for row in options::RUN {
        let mut lines = match row.value {
            Value::None => vec![format!("--{}", row.name)],
            _ => vec![format!("--{} 1", row.name), format!("--{}=1", row.name)],
        };
        lines.extend(row.short.map(|letter| format!("-{letter} 1")).filter(|_| row.value != Value::None));
        lines.extend(row.short.map(|letter| format!("-v{letter}1")).filter(|_| row.value != Value::None));
        for line in lines {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let argv = || std::iter::once(OsString::from("confine")).chain(words.clone());
            let parsed = |build| {
                let options = run(build).try_get_matches_from(argv()).unwrap();
                (
                    rules::policy(&Given::of_line(&options)).map_err(|error| error.to_string()),
                    values::all(&options, "command"),
                )
            };
            assert_eq!(parsed(Build::MeantBy(&words)), parsed(Build::Options), "{line}");
        }
    }
}

/// Lines put together from options, values and nonsense by a fixed congruence: none panics, what is refused is
/// refused with 125 on one line, and what is taken has the command that stood after `--`.
#[test]
fn no_line_panics_and_what_stands_after_the_separator_is_the_command() {
    let mut pool: Vec<OsString> = [
        "-w",
        ".",
        "--",
        "-",
        "",
        "x",
        "80",
        "1G",
        "=",
        "check",
        "explain",
        "help",
        "-vw.",
        "--net=host",
        "\u{1b}\n",
    ]
    .map(OsString::from)
    .to_vec();
    pool.extend(options::RUN.iter().map(|row| OsString::from(format!("--{}", row.name))));
    pool.push(OsString::from_vec(b"--env=\xff".to_vec()));
    pool.push(OsString::from_vec(b"--\xff".to_vec()));
    let mut state = 7_u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut taken = 0;
    for round in 0..600 {
        // Every other line starts well, so that some lines are taken.
        let mut argv: Vec<OsString> = vec!["confine".into()];
        if round % 2 == 0 {
            argv.extend(["-w".into(), ".".into()]);
        }
        argv.extend((0..next(5)).map(|_| pool[next(pool.len())].clone()));
        argv.extend(["--".into(), "true".into()]);
        match parse(argv.clone()) {
            Ok(Request::Run(invocation)) => {
                let end = argv.iter().position(|word| word == "--").unwrap();
                assert_eq!(invocation.command, argv[end + 1..], "{argv:?}");
                taken += 1;
            }
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error.status(), 125, "{argv:?}");
                assert!(!error.to_string().contains(['\n', '\u{1b}']), "{argv:?}: {error}");
                assert!(!error.hint().unwrap_or_default().contains(['\n', '\u{1b}']), "{argv:?}: {error:?}");
            }
        }
    }
    assert!(taken > 60, "{taken}");
}

fn setting(option: &'static str, value: &str) -> Setting {
    Setting { option, value: value.into(), origin: Origin::CommandLine, layer: 0 }
}

#[test]
fn one_workspace_and_a_command_are_enough() {
    let request = ask("confine -w . -- make -j4 test -- --help").unwrap();
    let settings = vec![setting("workspace", ".")];
    let expected = Policy { workspaces: vec![".".into()], toolchains: true, settings, ..Policy::default() };
    let command = ["make", "-j4", "test", "--", "--help"].map(OsString::from).to_vec();
    assert_eq!(request, Request::Run(Invocation { policy: expected, command }));
}

#[test]
fn every_option_reaches_the_policy() {
    let asked = policy(
        "confine -w a --workspace=b -C c --read-only --hardlinks protect --git read-only --state s --ro 1 --rw 2 \
         --hide 3 --seal 4 --no-toolchains --env A --env B=1=2 --env C= --env-file f --fd 7 --fd 5 --fd 7 \
         --user 1000:100 --max-procs 64 --max-memory 1G --max-tmp 2M --max-disk 3T --max-output 4K \
         --on-output-limit kill --max-cpu 2m --max-file-size 0 --max-open-files 9 --timeout 90s --grace 250ms \
         --require teardown --waive alias-free --allow userns --allow unix-datagram --allow broad-workspace \
         --namespaces off --clear-env --status-fd 3 --audit log --result json --kernel-log -v --timings --connect 443 --connect 53 --listen 8080 -- true",
    );
    let rule = |access, path: &str| FileRule { access, path: path.into() };
    assert_eq!(asked.setting("env", "B"), Some(&setting("env", "B")), "never its value");
    assert_eq!(asked.settings.len(), 47, "each word that was given");
    let expected = Policy {
        workspaces: vec!["a".into(), "b".into()],
        no_workspace: false,
        state_auto: false,
        never_visible: Vec::new(),
        never_waive: BTreeSet::new(),
        shell: None,
        settings: asked.settings.clone(),
        files_read: Vec::new(),
        chdir: Some("c".into()),
        read_only: true,
        hardlinks: Hardlinks::Protect,
        git: Git::ReadOnly,
        state: Some("s".into()),
        files: vec![
            rule(FileAccess::Read, "1"),
            rule(FileAccess::Write, "2"),
            rule(FileAccess::Hide, "3"),
            rule(FileAccess::Seal, "4"),
        ],
        toolchains: false,
        network: Network {
            net: Net::None,
            loopback: Loopback::Private,
            connect: BTreeSet::from([53, 443]),
            listen: Listen::Ports(BTreeSet::from([8080])),
        },
        environment: Environment {
            clear: true,
            set_below_files: Vec::new(),
            pass: vec!["A".into()],
            set: vec![("B".into(), "1=2".into()), ("C".into(), "".into())],
            files: vec!["f".into()],
        },
        descriptors: vec![5, 7],
        user: Some(User { uid: 1000, gid: Some(100) }),
        limits: Limits {
            procs: Some(64),
            memory: Some(1 << 30),
            tmp: Some(2 << 20),
            disk: Some(3 << 40),
            output: Some(4 << 10),
            on_output_limit_kill: true,
            cpu: Some(Duration::from_secs(120)),
            file_size: Some(0),
            open_files: Some(9),
            timeout: Some(Duration::from_secs(90)),
            grace: Some(Duration::from_millis(250)),
        },
        require: BTreeSet::from([Promise::Teardown]),
        waive: BTreeSet::from([Promise::AliasFree]),
        allow: BTreeSet::from([Allowance::BroadWorkspace, Allowance::Userns, Allowance::UnixDatagram]),
        namespaces: Namespaces::Off,
        status_fd: Some(3),
        audit: Some("log".into()),
        result: true,
        kernel_log: true,
        trace: None,
        verbose: true,
        timings: true,
    };
    assert_eq!(asked, expected);
}

#[test]
fn strict_requires_every_promise() {
    assert_eq!(policy("confine -w . --strict -- true").require, Promise::ALL.into());
    assert_eq!(policy("confine -w . -- true").require, BTreeSet::new());
}

#[test]
fn bytes_pass_unchanged() {
    let odd = |text: &[u8]| OsString::from_vec(text.to_vec());
    let long = odd(&[b'x'; 128 << 10]);
    let words = [
        odd(b"confine"),
        odd(b"-w"),
        odd(b"d\xff\n"),
        odd(b"--ro=r\xfe"),
        odd(b"--env"),
        odd(b"N\xe9=v\xff\n"),
    ];
    let command = vec![odd(b"\xff"), odd(b""), odd(b"a\nb"), odd(b"--"), long];
    let request = parse(words.into_iter().chain([odd(b"--")]).chain(command.clone())).unwrap();
    let Request::Run(invocation) = request else { panic!("{request:?}") };
    assert_eq!(invocation.command, command);
    assert_eq!(invocation.policy.workspaces, [PathBuf::from(odd(b"d\xff\n"))]);
    assert_eq!(invocation.policy.files[0].path, PathBuf::from(odd(b"r\xfe")));
    assert_eq!(invocation.policy.environment.set, [(odd(b"N\xe9"), odd(b"v\xff\n"))]);
}

#[test]
fn the_other_requests_are_told_apart_by_the_first_word() {
    assert_eq!(ask("confine check").unwrap(), Request::Check { json: false, prove: None });
    assert_eq!(ask("confine check --json").unwrap(), Request::Check { json: true, prove: None });
    let Request::Check { json: true, prove: Some(proof) } =
        ask("confine check --net host --prove --json -C d").unwrap()
    else {
        panic!("not a proof");
    };
    assert_eq!(
        (proof.policy.network.net, proof.words),
        (Net::Host, ["--net", "host", "-C", "d"].map(OsString::from).to_vec())
    );
    let posture = Request::Posture { workspaces: vec!["a".into(), "b".into()], json: false };
    assert_eq!(ask("confine check --posture -w a -w b").unwrap(), posture);
    let dirs = vec!["a".into(), "-b".into()];
    assert_eq!(
        ask("confine scan --separate --json a -- -b").unwrap(),
        Request::Scan { dirs, separate: true, json: true }
    );
    let Request::Explain { invocation, json: true } = ask("confine explain --json -w . -- check").unwrap()
    else {
        panic!()
    };
    assert_eq!(invocation.command, ["check"]);
    assert!(matches!(ask("confine -w check -- scan").unwrap(), Request::Run(_)));
}

#[test]
fn without_a_separator_the_corrected_line_is_shown() {
    assert_says(
        "confine -w . make test -j4",
        "no '--' before the command 'make' | confine -w . -- make test -j4",
    );
    assert_says("confine make", "no '--' before the command 'make' | confine -w . -- make");
    assert_says("confine --policy p make", "no '--' before the command 'make' | confine --policy p -- make");
}

#[test]
fn subcommands_out_of_place_are_put_first() {
    assert_says(
        "confine -w . explain -- make",
        "'explain' is not the first word | confine explain -w . -- make",
    );
    assert_says("confine -v check --json", "'check' is not the first word | confine check -v --json");
}

#[test]
fn what_is_missing_is_shown_in_its_place() {
    assert_says("confine", "no command to run | confine -w . -- COMMAND (or 'confine --help')");
    assert_says("confine -w .", "no command to run | confine -w . -- COMMAND");
    assert_says("confine -w . --", "no command to run | confine -w . -- COMMAND");
    assert_says("confine explain -w .", "no command to run | confine explain -w . -- COMMAND");
    assert_says(
        "confine -v -- make test",
        "no workspace: say which directory the command may change | confine -w . -v -- make test",
    );
    assert_says("confine -w . x -- make", "unexpected word 'x' before '--' | confine -w . -- make");
    assert_says("confine scan", "no directory to scan | confine scan .");
}

#[test]
fn corrected_lines_can_be_pasted_and_hold_no_value_of_env() {
    let words = [
        "confine",
        "-w",
        "a b",
        "--env",
        "TOKEN=s3cret",
        "--env=KEY=s3cret",
        "--env",
        "PLAIN",
        "it's",
        "a\nb",
    ];
    let error = parse(words.map(OsString::from)).unwrap_err();
    assert_eq!(
        error.hint(),
        Some(r"confine -w 'a b' --env TOKEN=... --env=KEY=... --env PLAIN -- 'it'\''s' $'a\x0ab'")
    );
    for line in ["confine -w . --env A=1 B=s3cret make", "confine -w . --env A=1 B=s3cret -- make"] {
        let error = parse(line.split(' ').map(OsString::from)).unwrap_err();
        let told = format!("{error} {:?}", error.hint());
        assert!(told.contains("B=") && !told.contains("s3cret"), "{told}");
    }
    let many =
        ["confine", "-w", "."]
            .into_iter()
            .map(OsString::from)
            .chain(vec![OsString::from("é".repeat(99)); 99]);
    let error = parse(many).unwrap_err();
    assert!(error.hint().unwrap().len() < 420 && error.hint().unwrap().ends_with(" ..."));
}

#[test]
fn claps_findings_are_told_in_one_line() {
    let help = "'confine --help' lists the options";
    assert_says(
        "confine --worksapce . -- true",
        "unknown option '--worksapce' | did you mean '--workspace'?",
    );
    assert_says("confine -w . -x -- true", &format!("unknown option '-x' | {help}"));
    assert_says("confine -w -- true", &format!("--workspace needs a value | {help}"));
    assert_says("confine -w . --ro --rw x -- true", &format!("--ro needs a value | {help}"));
    assert_says("confine -w . -C a -C b -- true", "--chdir is given more than once | ");
    assert_says("confine -w . -v -v -- true", "--verbose is given more than once | ");
    assert_says("confine -w . --strict=yes -- true", "--strict takes no value | ");
    assert_says("confine check extra", "unexpected word 'extra' | 'confine check --help' lists the options");
    assert_says("confine check -w . -- x", "unexpected word 'x' | 'confine check --help' lists the options");
    assert_says(
        "confine check -w .",
        "check takes '-w' only with --prove, which tries a run with it, or --posture | confine check --prove -w .",
    );
    assert_says(
        "confine check --posture --net host",
        "--net has no meaning with --posture | confine check --posture -w .",
    );
    assert_says(
        "confine check --posture --prove",
        "--prove and --posture are two questions | confine check --posture, then confine check --prove",
    );
    assert_says(
        "confine explain --bogus -w . -- x",
        "unknown option '--bogus' | 'confine explain --help' lists the options",
    );
}

#[test]
fn what_a_message_shows_is_escaped() {
    let error =
        parse(["confine", "-w", ".", "--git", "\u{1b}[31m\n", "--", "x"].map(OsString::from)).unwrap_err();
    assert_eq!(error.to_string(), r"--git '\u{1b}[31m\n': not one of its values");
    let error = parse(["confine", "--\u{1b}[31m\n", "--", "x"].map(OsString::from)).unwrap_err();
    assert_eq!(error.to_string(), r"unknown option '--\u{1b}[31m\n'");
}

/// What `parse` costs a run. Not a claim about time, which a busy machine breaks, but a number to read:
/// cargo test --release parsing_an_ordinary_line -- --nocapture
#[test]
fn parsing_an_ordinary_line_gives_the_same_each_time() {
    let line = ["confine", "-w", ".", "--", "true"].map(OsString::from);
    let start = std::time::Instant::now();
    let first = parse(line.clone()).unwrap();
    let cold = start.elapsed();
    let mut spent = Vec::new();
    for _ in 0..200 {
        let start = std::time::Instant::now();
        let again = parse(line.clone()).unwrap();
        spent.push(start.elapsed());
        assert_eq!(again, first);
    }
    spent.sort();
    println!("parse: cold {cold:?}, median {:?}, least {:?}", spent[100], spent[0]);
}
