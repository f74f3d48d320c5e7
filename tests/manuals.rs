//! A manual page for the program and for each subcommand, with every option it takes, that two readers of manual
//! pages find nothing wrong with.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Arg;
use confine::cli;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("man")
}

fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> =
        fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.sort();
    assert!(pages.len() > 1);
    pages
}

fn text(page: &str) -> String {
    fs::read_to_string(directory().join(page)).unwrap_or_else(|error| panic!("man/{page}: {error}"))
}

/// The heads of the option list: `Fl w , Fl -workspace Ar DIR`.
fn items(text: &str) -> Vec<&str> {
    let options = text.split_once("\n.Sh OPTIONS\n").expect("a section OPTIONS").1;
    let options = options.split("\n.Sh ").next().unwrap();
    options
        .lines()
        .filter_map(|line| line.strip_prefix(".It "))
        .filter(|item| item.starts_with("Fl "))
        .collect()
}

fn head(arg: &Arg) -> String {
    let mut head = arg.get_short().map(|letter| format!("Fl {letter} , ")).unwrap_or_default();
    head.push_str(&format!("Fl -{}", arg.get_long().unwrap()));
    if arg.get_action().takes_values() {
        head.push_str(&format!(" Ar {}", arg.get_value_names().unwrap()[0]));
    }
    head
}

#[test]
fn every_subcommand_has_a_page_with_its_options_and_no_other() {
    let whole = cli::command();
    let shown = |arg: &&Arg| arg.get_long().is_some() && !arg.is_hide_set();
    let of_a_run: BTreeSet<&str> =
        whole.get_arguments().filter(shown).map(|arg| arg.get_id().as_str()).collect();
    let main = text("confine.1");
    for sub in whole.get_subcommands() {
        let name = sub.get_name();
        let page = text(&format!("confine-{name}.1"));
        assert!(page.contains(&format!("\n.Dt CONFINE-{} 1\n", name.to_uppercase())), "{name}");
        assert!(page.contains(&format!("\n.Nm confine Cm {name}\n")), "{name}: no synopsis");
        let (shared, own): (Vec<&Arg>, Vec<&Arg>) =
            sub.get_arguments().filter(shown).partition(|arg| of_a_run.contains(arg.get_id().as_str()));
        let heads: Vec<String> = own.iter().map(|arg| head(arg)).collect();
        if shared.len() == of_a_run.len() {
            assert!(page.contains("\nAll options of a run are taken, "), "{name} takes the options of a run");
            assert_eq!(items(&page), heads, "{name}");
        } else {
            let all: Vec<String> = sub.get_arguments().filter(shown).map(head).collect();
            assert_eq!(items(&page), all, "{name}");
        }
        for arg in sub.get_positionals().filter(|arg| !arg.is_hide_set()) {
            for value in arg.get_value_names().unwrap() {
                let word = format!("Ar {}", value.to_lowercase());
                assert!(page.contains(&word), "{name}: {word}");
            }
        }
        assert!(main.contains(&format!("\n.Cm {name}\n")), "confine.1 has no synopsis of {name}");
        assert!(main.contains(&format!("\n.It Cm {name}\n")), "confine.1 does not say what {name} does");
        assert!(
            main.contains(&format!(".Xr confine-{name} 1")),
            "confine.1 does not lead to confine-{name}(1)"
        );
    }
}

#[test]
fn every_page_has_the_sections_that_a_reader_looks_for_in_their_order() {
    const ORDER: &[&str] = &[
        "NAME",
        "SYNOPSIS",
        "DESCRIPTION",
        "OPTIONS",
        "OUTPUT",
        "PROMISES",
        "THE VIEW",
        "ORDER OF APPLICATION",
        "ENVIRONMENT",
        "FILES",
        "EXIT STATUS",
        "EXAMPLES",
        "SECURITY",
        "LIMITATIONS",
        "SEE ALSO",
    ];
    for page in pages().iter().filter(|page| page.extension().is_some_and(|section| section == "1")) {
        let text = fs::read_to_string(page).unwrap();
        let found: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix(".Sh ")).collect();
        let known: Vec<&str> = ORDER.iter().copied().filter(|name| found.contains(name)).collect();
        assert_eq!(found, known, "{}", page.display());
        let needed: &[&str] = match page.file_stem().unwrap().to_str().unwrap() {
            "confine" => ORDER,
            _ => &["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "EXAMPLES", "SEE ALSO"],
        };
        for name in needed.iter().filter(|name| **name != "OUTPUT") {
            assert!(found.contains(name), "{}: no {name}", page.display());
        }
    }
}

#[test]
fn every_page_named_by_another_exists() {
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let own = |line: &str| {
            let mut words = line.strip_prefix(".Xr ")?.split(' ');
            let (name, section) = (words.next()?, words.next()?);
            (name == "confine" || name.starts_with("confine-")).then(|| format!("{name}.{section}"))
        };
        for name in text.lines().filter_map(own) {
            assert!(directory().join(&name).exists(), "{}: {name}", page.display());
        }
    }
}

#[test]
fn the_index_of_the_documents_names_every_page() {
    let index = include_str!("../docs/index.md");
    for page in pages() {
        let (name, section) = (page.file_stem().unwrap(), page.extension().unwrap());
        let name = format!("`{}({})`", name.to_str().unwrap(), section.to_str().unwrap());
        assert!(index.contains(&name), "docs/index.md does not name {name}");
    }
}

#[test]
fn mandoc_finds_nothing_wrong() {
    for page in pages() {
        let output = Command::new("mandoc").args(["-T", "lint"]).arg(&page).output();
        let output = output.expect("mandoc, which tests/packages lists");
        let said = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        // What is about the pages that this machine has, and not about this one.
        let elsewhere = ["outdated mandoc.db lacks ", "referenced manual not found: "];
        let found: Vec<&str> =
            said.lines().filter(|line| !elsewhere.iter().any(|words| line.contains(words))).collect();
        assert!(found.is_empty(), "{}: {found:#?}", page.display());
    }
}

#[test]
fn groff_finds_nothing_wrong() {
    for page in pages() {
        let mut man = Command::new("man");
        man.args(["--warnings", "-E", "UTF-8", "-Tutf8", "-Z", "-l"]).arg(&page).env("LC_ALL", "C.UTF-8");
        let output = man.output().expect("man, which tests/packages lists as man-db");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{}", page.display());
        assert!(output.status.success() && output.stdout.len() > 2000, "{}", page.display());
    }
}

/// A lone full stop ends a sentence to mdoc(7): `-w .` would be shown as `-w.`.
#[test]
fn what_is_to_be_typed_is_shown_as_it_is_typed() {
    let mut seen = 0;
    for page in pages() {
        let mut mandoc = Command::new("mandoc");
        let output = mandoc.args(["-T", "ascii", "-O", "width=200"]).arg(&page).output().unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        for line in shown.lines().map(str::trim).filter(|line| line.starts_with("$ confine ")) {
            assert!(!line.contains("-w."), "{}: {line}", page.display());
            seen += usize::from(line.contains(" -w . "));
        }
    }
    assert!(seen > 5, "{seen}");
}
