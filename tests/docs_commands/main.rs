//! Every command in the documents is run, as an ordinary user in a scratch project, and what they show is what comes.
//!
//! A fenced block is `console` (commands after `$ `, each with the output that is compared; `...` stands for what was
//! left out), `sh` (a script that succeeds), or `not-run`, whose first line says why. Setup that a reader has already
//! stands in a comment that begins with `<!-- setup`. The blocks of one page share a shell.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod page;
mod session;

use std::fs;
use std::path::{Path, PathBuf};

use page::{Block, Kind, Page};

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// Blocks that cannot run here, by page and first line: a new one is put here on purpose.
const NOT_RUN: &[(&str, &str)] = &[
    ("explanation/comparison.md", "takes a minute, and the tools to compare with"),
    ("how-to/containers-and-ci.md", "needs root"),
    ("how-to/containers-and-ci.md", "needs a container engine"),
    ("how-to/give-a-secret.md", "needs a registry"),
    ("how-to/give-a-secret.md", "needs a forge"),
    ("how-to/give-one-port.md", "needs the internet"),
    ("how-to/ubuntu-apparmor.md", "needs root, and Ubuntu"),
    ("tutorial.md", "the tests use the program that they have built"),
];

fn markdown(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            markdown(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

fn pages() -> Vec<Page> {
    let mut found = Vec::new();
    let docs = Path::new(HERE).join("docs");
    markdown(&docs, &mut found);
    found.sort();
    assert!(found.len() > 20, "{found:?}");
    // The recipes in there are run by their own tests, as the programs that read them would.
    found.iter().filter(|path| !path.starts_with(docs.join("agents"))).map(|path| Page::read(path)).collect()
}

fn runs(name: &str) {
    let page = pages().into_iter().find(|page| page.name == name).unwrap_or_else(|| panic!("no {name}"));
    let wrong = session::run(&page);
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// A test a page, so that they run side by side; the next one sees that none was forgotten.
macro_rules! pages_that_run {
    ($($test:ident: $page:literal),* $(,)?) => {
        $(#[test] fn $test() { runs($page); })*
        const RUN: &[&str] = &[$($page),*];
    };
}

pages_that_run! {
    containers_and_ci: "how-to/containers-and-ci.md",
    debug_a_denial: "how-to/debug-a-denial.md",
    exit_status: "reference/exit-status.md",
    git: "how-to/git.md",
    give_a_secret: "how-to/give-a-secret.md",
    give_one_port: "how-to/give-one-port.md",
    keep_an_audit_record: "how-to/keep-an-audit-record.md",
    keep_state: "how-to/keep-state.md",
    mend_hard_links: "how-to/mend-hard-links.md",
    policy_files_and_profiles: "how-to/policy-files-and-profiles.md",
    prove_the_boundary: "how-to/prove-the-boundary.md",
    run_a_dev_server: "how-to/run-a-dev-server.md",
    set_limits: "how-to/set-limits.md",
    share_a_toolchain: "how-to/share-a-toolchain.md",
    tutorial: "tutorial.md",
    ubuntu_apparmor: "how-to/ubuntu-apparmor.md",
}

#[test]
fn every_page_with_a_command_is_run() {
    let has_commands = |page: &Page| page.blocks.iter().any(|block| block.kind.runs());
    let found: Vec<String> = pages().into_iter().filter(has_commands).map(|page| page.name).collect();
    let mut listed = RUN.to_vec();
    listed.sort_unstable();
    assert_eq!(found, listed);
}

#[test]
fn every_block_is_of_a_kind_that_is_known_and_those_not_run_say_so() {
    let (mut ran, mut not_run) = (0, Vec::new());
    for page in pages() {
        for block in &page.blocks {
            let place = format!("{}:{}", page.name, block.line);
            match block.kind {
                Kind::Console => {
                    let commands = block.commands();
                    assert!(!commands.is_empty(), "{place}: no line begins with `$ `");
                    ran += commands.len();
                }
                Kind::Script => ran += 1,
                Kind::NotRun => {
                    let first = block.text.lines().next().unwrap_or_default();
                    let reason = first.strip_prefix("# not run: ");
                    not_run.push((
                        page.name.clone(),
                        reason.unwrap_or_else(|| panic!("{place}: no `# not run: REASON`")).to_owned(),
                    ));
                }
                Kind::Other => {
                    let command = |line: &str| line.starts_with("$ ") || line.starts_with("confine ");
                    assert!(
                        !block.text.lines().any(command),
                        "{place}: a command in a block that is not run"
                    );
                }
                Kind::Setup => {}
                Kind::Unknown => panic!("{place}: a block without a kind"),
            }
        }
    }
    println!("{ran} commands are run, {} blocks are not", not_run.len());
    assert!(ran > 100, "{ran}");
    let expected: Vec<(String, String)> =
        NOT_RUN.iter().map(|(page, reason)| ((*page).to_owned(), (*reason).to_owned())).collect();
    assert_eq!(not_run, expected);
}

/// The README's blocks are run by tests/docs.rs (the quick start) or run the tests themselves; the commands in its text
/// are run here.
#[test]
fn the_commands_of_the_readme_run() {
    let text = fs::read_to_string(Path::new(HERE).join("README.md")).unwrap();
    let fenced: Vec<String> =
        page::blocks(&text).into_iter().filter(|block| block.kind.runs()).map(|block| block.text).collect();
    assert_eq!(fenced.len(), 2, "{fenced:?}");
    assert!(fenced[0].starts_with("cargo run --release --locked -- --workspace . -- bash -c '"));
    assert_eq!(fenced[1], "tests/run\n");
    let make = "printf 'test:\\n\\t@echo tested\\n' >Makefile".to_owned();
    let mut blocks = vec![Block { kind: Kind::Setup, line: 0, text: make }];
    for (index, line) in text.lines().enumerate() {
        let Some(command) = line.strip_prefix("    ").filter(|line| !line.starts_with(' ')) else { continue };
        let inside = command.contains("CONFINE_NOTE");
        let text = if inside { format!("confine -w . -- sh -c '{command}'") } else { command.to_owned() };
        blocks.push(Block { kind: Kind::Script, line: index + 1, text });
    }
    assert!(blocks.len() > 2, "the README shows commands");
    let wrong = session::run(&Page { name: "../README.md".to_owned(), blocks });
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// GitHub's: lower case, blanks to hyphens, no punctuation.
fn anchor(heading: &str) -> String {
    heading
        .trim_start_matches('#')
        .trim()
        .to_lowercase()
        .chars()
        .filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'))
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

#[test]
fn every_link_leads_somewhere_and_every_page_is_linked() {
    let mut files = Vec::new();
    markdown(&Path::new(HERE).join("docs"), &mut files);
    files.extend(["README.md", "SECURITY.md", "CONTRIBUTING.md"].map(|name| Path::new(HERE).join(name)));
    let mut linked = std::collections::BTreeSet::new();
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        for link in page::links(&text) {
            if link.contains("://") {
                continue;
            }
            let (target, fragment) = link.split_once('#').unwrap_or((&link, ""));
            let path = match target {
                "" => file.clone(),
                target => file.parent().unwrap().join(target),
            };
            let path =
                path.canonicalize().unwrap_or_else(|error| panic!("{}: {link}: {error}", file.display()));
            linked.insert(path.clone());
            if !fragment.is_empty() {
                let headings = fs::read_to_string(&path).unwrap();
                let found = headings
                    .lines()
                    .filter(|line| line.starts_with('#'))
                    .any(|line| anchor(line) == fragment);
                assert!(found, "{}: {link}: no such heading", file.display());
            }
        }
    }
    for file in files.iter().filter(|file| file.starts_with(Path::new(HERE).join("docs"))) {
        assert!(linked.contains(&file.canonicalize().unwrap()), "nothing leads to {}", file.display());
    }
}

#[test]
fn what_is_shown_and_what_comes_are_compared() {
    let same = |shown: &str, came: &str| session::same(shown, came);
    assert!(same("a\nb\n", "a\nb\n") && !same("a\nb\n", "a\n") && !same("a\n", "a\nb\n"));
    assert!(same("a\n...\nd\n", "a\nb\nc\nd\n") && same("...\nd\n", "d\n") && !same("a\n...\n", "b\na\n"));
    assert!(same("in ... ms\n", "in 3.5 ms\n") && !same("in ... ms\n", "in 3.5 s\n"));
    assert!(same("", "") && !same("", "a\n"));
}
