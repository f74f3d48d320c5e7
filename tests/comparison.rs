//! The table of the comparison is what its script prints, as far as the tests' packages go: no boundary, confine,
//! bubblewrap and Landlock alone. The first column shows that each attempt works.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

const PAGE: &str = include_str!("../docs/explanation/comparison.md");

/// Each column by its title, and the first one, of which every other must be of the same length.
fn columns(text: &str) -> BTreeMap<String, Vec<String>> {
    let rows: Vec<Vec<String>> = text
        .lines()
        .filter(|line| line.starts_with("| "))
        .map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
        .collect();
    let (titles, rows) = rows.split_first().expect("a table");
    titles
        .iter()
        .enumerate()
        .map(|(index, title)| (title.clone(), rows.iter().map(|row| row[index].clone()).collect()))
        .collect()
}

#[test]
fn the_attempts_made_now_come_out_as_the_table_says() {
    let tools = ["nothing", "confine", "confine --strict", "bubblewrap", "Landlock alone"];
    let programs = tempdir();
    std::fs::copy(env!("CARGO_BIN_EXE_confine"), programs.join("confine")).unwrap();
    let mut compare = Command::new("python3");
    compare.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/comparison/compare")).args(tools);
    compare.env("COMPARISON_PATH", &programs);
    let output = compare.output().expect("python3, which tests/packages lists");
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    let made = columns(printed.split("\n\n").next().unwrap());
    let table = PAGE.split("<!-- table -->").nth(1).unwrap().split("<!-- end -->").next().unwrap();
    let written = columns(table);
    assert_eq!(made["attempt"], written["attempt"]);
    for tool in tools {
        assert_eq!(made.get(tool), written.get(tool), "{tool}\n{printed}");
    }
    assert!(made["nothing"].len() > 10 && made["nothing"].iter().all(|cell| cell == "✗"), "{printed}");
    std::fs::remove_dir_all(programs).unwrap();
}

#[test]
fn the_readme_shows_the_same_table_without_its_first_column() {
    let readme = include_str!("../README.md").split("\n## Comparison\n").nth(1).unwrap();
    let shown = columns(readme.split("\n## ").next().unwrap());
    let mut written =
        columns(PAGE.split("<!-- table -->").nth(1).unwrap().split("<!-- end -->").next().unwrap());
    assert!(written.remove("nothing").is_some() && written.len() > 5);
    assert_eq!(shown, written);
}

/// Where another user can read.
fn tempdir() -> std::path::PathBuf {
    let directory = std::path::PathBuf::from(format!("/tmp/confine-comparison-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    directory
}
