//! What is written about confine is what confine is: option tables, manual page, completions, promises, the order
//! of application, the dependencies, and the command that the README begins with.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../examples/completions/generate.rs"]
mod generate;
mod readme_command;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use clap::Arg;
use confine::cli;
use confine::cli::keys;
use confine::policy::Promise;
use confine::policy::files::builtin::NAMES;

const README: &str = include_str!("../README.md");
const MANUAL: &str = include_str!("../man/confine.1");
const POLICY_MANUAL: &str = include_str!("../man/confine-policy.5");

/// The options of a run that are shown to people, in the order of the help.
fn options() -> Vec<Arg> {
    let command = cli::command();
    let shown = |arg: &&Arg| arg.get_long().is_some() && !arg.is_hide_set();
    command.get_arguments().filter(shown).cloned().collect()
}

/// `-w, --workspace DIR`.
fn signature(arg: &Arg) -> String {
    let mut text = arg.get_short().map(|letter| format!("-{letter}, ")).unwrap_or_default();
    text.push_str(&format!("--{}", arg.get_long().unwrap()));
    if arg.get_action().takes_values() {
        text.push_str(&format!(" {}", arg.get_value_names().unwrap()[0]));
    }
    text
}

/// Each word that the option takes, unless its signature or the table of promises lists them.
fn values_to_explain(arg: &Arg) -> Vec<String> {
    let names: Vec<String> =
        arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    if !arg.get_action().takes_values() || names == promises() || signature(arg).contains(&names.join("|")) {
        return Vec::new();
    }
    names
}

fn promises() -> Vec<String> {
    Promise::ALL.iter().map(|promise| promise.name().to_owned()).collect()
}

/// The part of a text from one heading to the next of the same mark.
fn section<'a>(text: &'a str, heading: &str, mark: &str) -> &'a str {
    let begin = text.find(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no {heading}")) + 1;
    let rest = &text[begin + heading.len()..];
    rest.find(&format!("\n{mark} ")).map_or(rest, |end| &rest[..end])
}

/// The cells of each table row whose first cell is a single piece of code.
fn rows(text: &str) -> Vec<(String, String)> {
    let row = |line: &str| {
        let cells = line.strip_prefix("| `")?.replace("\\|", "\u{0}");
        let (first, rest) = cells.split_once("` |")?;
        (!first.contains('`')).then(|| (first.replace('\u{0}', "|"), rest.replace('\u{0}', "|")))
    };
    text.lines().filter_map(row).collect()
}

/// `.It Fl w , Fl -workspace Ar DIR` as `-w, --workspace DIR`, with the text below it.
fn items(text: &str) -> Vec<(String, String)> {
    let item = |part: &str| {
        let (line, body) = part.split_once('\n').unwrap();
        let line = line.strip_prefix("Fl ")?;
        let line = line.replace(" , Fl ", ", -").replace(" Ar ", " ");
        Some((format!("-{line}"), body.to_owned()))
    };
    text.split("\n.It ").skip(1).filter_map(item).collect()
}

fn first(pairs: &[(String, String)]) -> Vec<String> {
    pairs.iter().map(|(first, _)| first.clone()).collect()
}

fn assert_values_are_explained(rows: &[(String, String)], place: &str) {
    for (arg, (name, text)) in options().iter().zip(rows) {
        for value in values_to_explain(arg) {
            assert!(text.contains(&value), "{place}: {name} does not explain {value}");
        }
    }
}

#[test]
fn the_readme_has_every_option_in_the_order_of_the_help() {
    let rows: Vec<_> = rows(section(README, "## Options", "##"));
    let rows: Vec<_> = rows.into_iter().filter(|(first, _)| first.starts_with('-')).collect();
    assert_eq!(first(&rows), options().iter().map(signature).collect::<Vec<_>>());
    assert_values_are_explained(&rows, "README.md");
}

#[test]
fn the_readme_groups_options_as_the_help_does() {
    let text = section(README, "## Options", "##");
    for arg in options() {
        let heading = format!("### {}", arg.get_help_heading().unwrap());
        let row = format!("| `{}` |", signature(&arg).replace('|', "\\|"));
        assert!(section(text, &heading, "###").contains(&row), "{row} is not below {heading}");
    }
}

#[test]
fn the_readme_has_every_subcommand() {
    let text = section(README, "### Other commands", "##");
    let named: Vec<String> = first(&rows(text))
        .iter()
        .map(|row| row.strip_prefix("confine ").unwrap().split(' ').next().unwrap().to_owned())
        .collect();
    let command = cli::command();
    assert_eq!(named, command.get_subcommands().map(|sub| sub.get_name()).collect::<Vec<_>>());
    for ((row, _), sub) in rows(text).iter().zip(command.get_subcommands()) {
        let of_a_run: Vec<Arg> = options();
        let own: BTreeSet<&str> = sub
            .get_arguments()
            .filter(|arg| !arg.is_hide_set())
            .filter_map(Arg::get_long)
            .filter(|name| of_a_run.iter().all(|arg| arg.get_long() != Some(name)))
            .collect();
        let end = |c: char| !c.is_ascii_lowercase() && c != '-';
        let shown: BTreeSet<&str> = row
            .split("--")
            .skip(1)
            .filter_map(|rest| rest.split(end).next())
            .filter(|name| !name.is_empty())
            .collect();
        assert_eq!(shown, own, "{row}");
    }
}

#[test]
fn the_statuses_of_every_subcommand_are_told() {
    let page = include_str!("../docs/reference/exit-status.md");
    for sub in cli::command().get_subcommands() {
        let told = page
            .lines()
            .any(|line| line.trim_start_matches("| ").starts_with(&format!("`confine {}", sub.get_name())));
        assert!(told, "docs/reference/exit-status.md does not tell of {}", sub.get_name());
    }
}

#[test]
fn the_manual_page_has_every_option_in_the_order_of_the_help() {
    let text = section(MANUAL, ".Sh OPTIONS", ".Sh");
    let own = ["-h, --help", "-V, --version"];
    let items: Vec<_> = items(text).into_iter().filter(|(name, _)| !own.contains(&&name[..])).collect();
    assert_eq!(first(&items), options().iter().map(signature).collect::<Vec<_>>());
    assert_values_are_explained(&items, "man/confine.1");
    for item in [".It Fl h , Fl -help\n", ".It Fl V , Fl -version\n"] {
        assert!(text.contains(item), "{item}");
    }
}

#[test]
fn the_help_has_every_option_and_no_other() {
    let output = Command::new(env!("CARGO_BIN_EXE_confine")).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let shown: Vec<&str> = help
        .lines()
        // Options stand further left than their texts.
        .filter(|line| line.len() - line.trim_start().len() <= 6)
        .map(str::trim)
        .filter(|line| line.starts_with('-'))
        .filter(|line| !line.contains("--help") && !line.contains("--version"))
        .collect();
    let expected: Vec<String> = options()
        .iter()
        .map(|arg| match arg.get_value_names() {
            Some(names) if arg.get_action().takes_values() => {
                signature(arg).replace(&format!(" {}", names[0]), &format!(" <{}>", names[0]))
            }
            _ => signature(arg),
        })
        .collect();
    assert_eq!(shown, expected);
}

#[test]
fn promises_have_their_names_and_their_order_everywhere() {
    assert_eq!(first(&rows(section(README, "## What it promises", "##"))), promises());
    let manual = section(MANUAL, ".Sh PROMISES", ".Sh");
    let named: Vec<&str> = manual.lines().filter_map(|line| line.strip_prefix(".It Cm ")).collect();
    assert_eq!(named, promises());
}

/// The steps of `enforce::apply` in the words of the manual page; a new call there needs its item here and there.
const STEPS: &[(&str, &str)] = &[
    ("raise_oom_score(", "when memory runs out"),
    ("namespaces::enter_rest(", "Enter the network, IPC and UTS namespaces"),
    ("namespaces::raise_loopback(", "Bring the private loopback up"),
    ("Ceilings::prepare(", "make its control group"),
    ("supervise::split(", "If something asked for needs a parent"),
    ("ceilings.await_admission(", "Wait until the parent"),
    ("tracee.await_leaving(", "wait until the parent has a copy of the mounts"),
    ("namespaces::enter_cgroup(", "Enter the cgroup namespace"),
    ("standard::reopen_unnamed(", "Reopen inherited terminals"),
    ("mounts::build(", "Build the new root"),
    ("standard::reopen(", "Reopen plain devices"),
    ("mounts::enter(", "Make it the root"),
    ("enter_directory(", "Enter the working directory"),
    ("supervise::init::become_init(", "With a parent: fork once more"),
    ("limits::apply(", "Set the resource limits"),
    ("credentials::apply(", "Set no_new_privs"),
    ("writable::check(", "Check that the writable roots can be written"),
    ("landlock::apply(", "Apply the Landlock rules"),
    ("drop_keyring(", "Start a new session keyring"),
    ("descriptors::close_above_on_exec(", "Mark every descriptor"),
    ("seccomp::install(", "Install the seccomp filters"),
    ("self_check::Status::read(", "Check what the kernel reports"),
    ("tracee.await_tracer(", "wait until the parent has attached"),
    ("record.started(", "Write the audit and status lines"),
    ("sys::reset_signals(", "Reset signal dispositions"),
    ("limits::apply_file_size(", "Limit the size of files"),
    ("target.become_it(", "Become the command"),
];

#[test]
fn the_manual_page_lists_the_steps_in_the_order_of_the_code() {
    let code = include_str!("../src/enforce/mod.rs");
    let body = &code[code.find("\nfn steps(").unwrap()..];
    let body = &body[..body.find("\n}\n").unwrap()];
    let list = section(MANUAL, ".Sh ORDER OF APPLICATION", ".Sh");
    let items: Vec<String> = list.split("\n.It\n").skip(1).map(|item| item.replace('\n', " ")).collect();
    assert_eq!(items.len(), STEPS.len(), "{items:#?}");
    let mut last = 0;
    for ((call, words), item) in STEPS.iter().zip(&items) {
        let place = body.find(call).unwrap_or_else(|| panic!("the code no longer calls {call}"));
        assert!(place > last, "{call} has moved");
        assert!(item.contains(words), "{item} does not speak of {call}");
        last = place;
    }
    // Whatever else is called there may fail, and is no step that a reader would miss.
    let plain = [
        "direct::grants(",
        "seccomp::program(",
        "status.verify(",
        // What the parent will watch, and the child's ends of it.
        "Surroundings::look(",
        "open_roots(",
        "Output::prepare(",
        "Sampler::of_the_end",
        "Before::look(",
        "Report::new(",
        "ends.attach(",
        // Of the parent, which does not go on.
        "Monitor::new(",
        "credentials::drop_capabilities(",
        "monitor.watch_ceilings(",
        // The tracer's: a socket, and what it does in the parent.
        "tracer::pair(",
        "outside.has_left(",
        "namespaces::leave_mounts(",
        "Judge::new(",
        // The broker's: a socket, and the parent's end of it.
        "Seat::new",
        "seat.map_err(",
        "serving.serve(",
        "native(",
    ];
    for line in body.lines().filter(|line| line.contains(")?") && !line.trim_start().starts_with('.')) {
        let known = STEPS.iter().map(|(call, _)| call).chain(&plain).any(|call| line.contains(call));
        assert!(known, "a step that the manual page lacks: {line}");
    }
}

#[test]
fn the_completions_are_what_the_generator_writes() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("completions");
    let mut names = Vec::new();
    for (name, text) in generate::files() {
        assert!(
            fs::read_to_string(directory.join(name)).unwrap() == text,
            "{name} is old: cargo run --locked --example completions -- completions"
        );
        names.push(name.to_owned());
    }
    let mut found: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    found.sort();
    assert_eq!(found, names);
}

#[test]
fn the_policy_page_has_every_key_with_its_kind_and_every_option_without_one() {
    let text = section(POLICY_MANUAL, ".Sh KEYS", ".Sh");
    let listed: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix(".It Ic ")).collect();
    let keys: Vec<String> = keys::table().map(|(key, kind)| format!("{key} Ta {kind}")).collect();
    assert_eq!(listed, keys);
    for (option, _) in keys::ON_LINE_ONLY {
        assert!(text.contains(&format!(".Fl -{option}")), "no word about --{option}");
    }
    let text = section(POLICY_MANUAL, ".Sh THE ADMINISTRATOR'S LINE", ".Sh");
    let listed: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix(".It Ic ")).collect();
    assert_eq!(listed, keys::LINE);
    let example = section(README, "## Policy files", "##");
    for key in keys::LINE {
        assert!(example.contains(&format!("\n{key} = ")), "README.md does not show {key}");
    }
}

#[test]
fn every_built_in_profile_is_described_and_is_a_file() {
    let text = section(POLICY_MANUAL, ".Sh PROFILES", ".Sh");
    let listed: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix(".It Cm ")).collect();
    assert_eq!(listed, NAMES);
    assert_eq!(first(&rows(section(README, "## Policy files", "##"))), NAMES);
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("profiles");
    let mut files: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap().replace(".toml", ""))
        .collect();
    files.sort();
    let mut names = NAMES.to_vec();
    names.sort();
    assert_eq!(files, names);
}

#[test]
fn every_dependency_has_a_reason() {
    let manifest = include_str!("../Cargo.toml");
    // Those of one platform too.
    let names: Vec<&str> = manifest
        .split("\n[")
        .filter_map(|part| part.split_once("]\n").filter(|(heading, _)| heading.ends_with("dependencies")))
        .flat_map(|(_, rest)| rest.lines())
        .filter_map(|line| line.split_once(" = ").map(|(name, _)| name))
        .filter(|name| !name.starts_with('#'))
        .collect();
    let table = section(include_str!("../CONTRIBUTING.md"), "## Dependencies", "##");
    let reasons: Vec<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" |").map(|(names, _)| names))
        .skip(1)
        .flat_map(|names| names.split(", "))
        .collect();
    for name in &names {
        assert!(reasons.contains(name), "CONTRIBUTING.md gives no reason for {name}");
    }
    for name in &reasons {
        assert!(names.contains(name), "CONTRIBUTING.md gives a reason for {name}, which is not used");
    }
}

#[test]
fn every_package_of_the_tests_has_a_reason() {
    for line in include_str!("packages").lines().filter(|line| !line.starts_with('#')) {
        let (name, reason) = line.split_once('#').unwrap_or_else(|| panic!("no reason: {line}"));
        assert!(!name.trim().is_empty() && !reason.trim().is_empty(), "{line}");
    }
}

#[test]
fn the_manual_of_the_shell_has_every_key_in_order() {
    let manual = include_str!("../man/confine-shell.1");
    let keys = section(manual, ".Sh FILES", ".Sh");
    let named: Vec<&str> = keys.lines().filter_map(|line| line.strip_prefix(".It Ic ")).collect();
    assert_eq!(named, cli::shell::KEYS);
}

#[test]
fn the_file_of_the_shell_in_the_readme_is_one() {
    let text = section(README, "## As a shell", "##");
    let text = text.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(MANUAL.contains(".Xr confine-shell 1"));
    let items = confine::policy::files::document::parse(text).unwrap();
    let keys: Vec<&str> = items.iter().map(|item| item.key.as_str()).collect();
    assert_eq!(keys, ["workspaces", "profile", "profiles"]);
}
