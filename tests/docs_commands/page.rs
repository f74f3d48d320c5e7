//! The blocks of a page.

use std::fs;
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Console,
    Script,
    /// In a comment: what a reader has already.
    Setup,
    NotRun,
    /// Output, JSON and the like.
    Other,
    Unknown,
}

impl Kind {
    fn of(info: &str) -> Kind {
        match info {
            "console" => Kind::Console,
            "sh" => Kind::Script,
            "not-run" => Kind::NotRun,
            "text" | "json" | "toml" | "yaml" | "ini" => Kind::Other,
            _ => Kind::Unknown,
        }
    }

    pub fn runs(self) -> bool {
        matches!(self, Kind::Console | Kind::Script)
    }
}

pub struct Block {
    pub kind: Kind,
    /// Of the file, from 1.
    pub line: usize,
    pub text: String,
}

pub struct Page {
    /// Below `docs/`.
    pub name: String,
    pub blocks: Vec<Block>,
}

pub struct Shown {
    pub line: usize,
    pub command: String,
    pub output: String,
}

impl Page {
    pub fn read(path: &Path) -> Page {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
        let name = path.strip_prefix(docs).unwrap().display().to_string();
        Page { name, blocks: blocks(&fs::read_to_string(path).unwrap()) }
    }
}

pub fn blocks(text: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut end = None;
    for (index, line) in text.lines().enumerate() {
        match end {
            Some(mark) if line == mark => end = None,
            Some(_) => found.last_mut().unwrap().text.push_str(&format!("{line}\n")),
            None => {
                let kind = match (line.strip_prefix("```"), line) {
                    (Some(info), _) => Kind::of(info),
                    (None, "<!-- setup") => Kind::Setup,
                    _ => continue,
                };
                end = Some(if kind == Kind::Setup { "-->" } else { "```" });
                found.push(Block { kind, line: index + 1, text: String::new() });
            }
        }
    }
    assert!(end.is_none(), "a block without an end");
    found
}

impl Block {
    /// The commands of a console, each with what is shown below it. A line that begins with `> ` goes on with the
    /// command before.
    pub fn commands(&self) -> Vec<Shown> {
        let mut found: Vec<Shown> = Vec::new();
        for (index, line) in self.text.lines().enumerate() {
            if let Some(command) = line.strip_prefix("$ ") {
                let line = self.line + index + 1;
                found.push(Shown { line, command: command.to_owned(), output: String::new() });
                continue;
            }
            let last = found.last_mut().unwrap_or_else(|| panic!("output before any command: {line}"));
            match line.strip_prefix("> ") {
                Some(more) if last.output.is_empty() => last.command.push_str(&format!("\n{more}")),
                _ => last.output.push_str(&format!("{line}\n")),
            }
        }
        found
    }
}

/// The targets of `[text](target)`, outside of blocks.
pub fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        fenced ^= line.starts_with("```");
        let mut rest = if fenced { "" } else { line };
        while let Some((_, after)) = rest.split_once("](") {
            let (target, more) = after.split_once(')').unwrap_or((after, ""));
            found.push(target.to_owned());
            rest = more;
        }
    }
    found
}
