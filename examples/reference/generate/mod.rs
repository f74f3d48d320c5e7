//! One page a table. What is said here and not there: what a reader must know to read it.

mod json;
mod options;
mod promises;
mod seccomp;
mod view;

use std::path::Path;

/// Each page by its name below `docs/`, from the tables of the program and the schemas in that directory.
pub fn files(docs: &Path) -> std::io::Result<Vec<(&'static str, String)>> {
    let pages = vec![
        ("reference/options.md", options::page()),
        ("reference/promises.md", promises::page()),
        ("reference/system-calls.md", seccomp::page()),
        ("reference/view.md", view::page()),
        ("reference/json.md", json::page(docs)?),
    ];
    Ok(pages.into_iter().map(|(name, text)| (name, format!("{MARK}{text}"))).collect())
}

const MARK: &str = "<!-- Generated: cargo run --locked --example reference -- docs -->\n";

/// A row of a table; bars within a cell are not its end.
fn row<S: AsRef<str>>(cells: impl IntoIterator<Item = S>) -> String {
    let cells: Vec<String> = cells.into_iter().map(|cell| cell.as_ref().replace('|', "\\|")).collect();
    format!("| {} |\n", cells.join(" | "))
}

fn head(cells: &[&str]) -> String {
    row(cells) + &row(cells.iter().map(|_| "---"))
}

fn code(text: &str) -> String {
    format!("`{text}`")
}
