use std::collections::BTreeSet;

use super::*;
use crate::cli::tests::{ask, complaint};
use crate::cli::{Request, SUBCOMMANDS, command};

#[test]
fn the_command_is_sound_in_claps_own_view() {
    command().debug_assert();
    for build in [run, explain, check, scan, trace, verify] {
        build(Build::Options).debug_assert();
        build(Build::MeantBy(&[])).debug_assert();
    }
}

#[test]
fn every_row_says_what_it_does_in_one_line_and_in_full() {
    for row in
        options::RUN.iter().chain([&options::JSON, &options::SEPARATE, &options::EXPECT, &options::SUGGEST])
    {
        assert!(!row.summary.is_empty() && row.summary.len() <= 76, "--{}", row.name);
        assert!(!row.summary.ends_with('.') && row.detail.ends_with('.'), "--{}", row.name);
    }
    let names: BTreeSet<_> = options::RUN.iter().map(|row| row.name).collect();
    assert_eq!(names.len(), options::RUN.len());
}

#[test]
fn the_promises_of_the_table_are_all_promises_in_order() {
    assert_eq!(options::PROMISES, Promise::ALL.map(Promise::name));
}

#[test]
fn help_is_short_or_long_and_lists_every_option_but_the_hidden() {
    let text = |line| match ask(line).unwrap() {
        Request::Help(text) => text,
        other => panic!("{other:?}"),
    };
    let (short, long) = (text("confine -h"), text("confine --help"));
    assert!(short.len() < long.len());
    for row in options::RUN {
        let option = format!("--{}", row.name);
        assert_eq!(short.contains(&option), !row.hidden, "{option}");
        assert_eq!(long.contains(&option), !row.hidden, "{option}");
        assert_eq!(
            long.contains(&filled(row.summary, 70)[..30.min(row.summary.len())]),
            !row.hidden,
            "{option}"
        );
    }
    for text in [&short, &long] {
        assert!(text.contains("confine [OPTIONS] -- COMMAND [ARG]..."), "{text}");
        for name in SUBCOMMANDS {
            assert!(text.contains(&format!("\n  {name}")), "{name}");
        }
    }
    assert_eq!(text("confine help"), long);
    assert_eq!(text("confine -w . --help -- x"), long);
    assert_eq!(text("confine help scan"), text("confine scan --help"));
    assert!(text("confine explain --help").contains("--json"));
    assert!(text("confine check -h").contains("confine check [--json]"));
    assert_eq!(
        ask("confine --version").unwrap(),
        Request::Version(format!("confine {}\n", env!("CARGO_PKG_VERSION")))
    );
    assert!(complaint("confine help scna").starts_with("no help on 'scna'"));
}

#[test]
fn long_help_fits_a_terminal_of_eighty_columns() {
    let Request::Help(text) = ask("confine --help").unwrap() else { panic!() };
    for line in text.lines() {
        assert!(line.chars().count() <= 80 && !line.ends_with(' '), "{line:?}");
    }
}
