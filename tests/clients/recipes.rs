//! The recipes of docs/agents as they are written: a comment `<!-- test: NAME -->` before a fenced block names it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub struct Page {
    pub name: String,
    pub text: String,
    pub blocks: Vec<Block>,
}

pub struct Block {
    /// What the comment before it calls it; none is shown only, and run by no test.
    pub name: Option<String>,
    pub language: String,
    pub text: String,
}

pub fn pages() -> Vec<Page> {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/agents");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
        .iter()
        .map(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            Page { blocks: blocks(&text), name, text }
        })
        .collect()
}

fn blocks(text: &str) -> Vec<Block> {
    let (mut found, mut name) = (Vec::new(), None);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(mark) = line.strip_prefix("<!-- test: ") {
            name = Some(mark.strip_suffix(" -->").expect("the comment ends on its line").to_owned());
        } else if let Some(language) = line.strip_prefix("```") {
            let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            found.push(Block {
                name: name.take(),
                language: language.to_owned(),
                text: body.join("\n") + "\n",
            });
        } else if !line.is_empty() {
            assert!(name.is_none(), "a marked block is no block: {name:?}");
        }
    }
    found
}

/// Every named block of every page.
pub fn named() -> BTreeMap<String, String> {
    let blocks = pages().into_iter().flat_map(|page| page.blocks);
    let mut found = BTreeMap::new();
    for block in blocks {
        if let Some(name) = block.name {
            assert!(found.insert(name.clone(), block.text).is_none(), "two blocks are called {name}");
        }
    }
    found
}

pub fn recipe(name: &str) -> String {
    named().remove(name).unwrap_or_else(|| panic!("docs/agents has no block that is called {name}"))
}
