//! The keys of a git settings file (git-config(1), "Syntax"): which filters, aliases, hooks paths and the like it has.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Of a longer section or key only the beginning is kept, with a digest of all of it: each key is told with its section,
/// and who wrote the file chose both.
const NAME: usize = 200;
/// More are somebody's trick. A repository with thousands of branches has some thousands.
const MOST: usize = 10_000;

/// Each key as `git config --list` names it, with a digest of its value. Never the value: it may be a secret.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Keys {
    pub set: BTreeSet<(String, u64)>,
    /// There are more.
    pub cut: bool,
}

impl Keys {
    /// What they take in memory, roughly.
    pub fn weight(&self) -> usize {
        self.set.iter().map(|(key, _)| key.len() + 64).sum()
    }
}

pub fn keys(file: &[u8]) -> Keys {
    let mut keys = Keys::default();
    for_each(file, |section, key, value| {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        keys.set.insert((format!("{section}.{}", short(key.to_ascii_lowercase())), hasher.finish()));
        keys.cut = keys.set.len() >= MOST;
        !keys.cut
    });
    keys
}

/// Calls back with the section, key and value of each setting, for as long as it says.
pub fn for_each(file: &[u8], mut call: impl FnMut(&str, &str, &str) -> bool) {
    let text = String::from_utf8_lossy(file);
    let mut section = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let mut line = line.trim().to_owned();
        // A value goes on behind a backslash at the end of its line.
        while line.ends_with('\\') {
            line.pop();
            let Some(next) = lines.next() else { break };
            line.push_str(next.trim_end());
        }
        let mut rest = line.as_str();
        // Several headings may stand in one line, and the last counts.
        while let Some(open) = rest.strip_prefix('[') {
            let Some((name, after)) = open.split_once(']') else { break };
            section = heading(name);
            rest = after.trim();
        }
        if rest.is_empty() || rest.starts_with(['#', ';', '[']) {
            continue;
        }
        let (key, value) = rest.split_once('=').unwrap_or((rest, ""));
        if !call(&section, key.trim(), value.trim()) {
            return;
        }
    }
}

/// `filter "LFS"` is `filter.LFS`.
fn heading(name: &str) -> String {
    short(match name.split_once(char::is_whitespace) {
        Some((section, sub)) => {
            format!("{}.{}", section.to_ascii_lowercase(), sub.trim().trim_matches('"').replace('\\', ""))
        }
        None => name.trim().to_ascii_lowercase(),
    })
}

fn short(mut name: String) -> String {
    if name.len() > NAME {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        let end = (0..=NAME).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
        name.truncate(end);
        name.push_str(&format!("…{:016x}", hasher.finish()));
    }
    name
}

/// A value as far as plain values go.
pub fn plain(value: &str) -> &str {
    value.trim_matches('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_names_that_git_lists() {
        let file = b"[core]\n\tfsmonitor = /x\n\tHooksPath=/y\n# c\n[filter \"A b\"] clean = sh \\\n  -c x\n[alias]\n st\n";
        let names: Vec<String> = keys(file).set.into_iter().map(|(key, _)| key).collect();
        assert_eq!(names, ["alias.st", "core.fsmonitor", "core.hookspath", "filter.A b.clean"]);
        assert_ne!(keys(b"[a]\nb=1"), keys(b"[a]\nb=2"));
    }

    #[test]
    fn several_headings_may_stand_in_one_line() {
        let names: Vec<String> = keys(b"[a][b]x=1\n[core] [filter \"f\"] clean = x\n")
            .set
            .into_iter()
            .map(|(key, _)| key)
            .collect();
        assert_eq!(names, ["b.x", "filter.f.clean"]);
    }

    #[test]
    fn a_long_section_does_not_stand_in_full_with_each_of_its_keys() {
        let mut file = format!("[{}]\n", "A".repeat(100_000));
        for number in 0..9000 {
            file.push_str(&format!("{number}\n"));
        }
        let whole = keys(file.as_bytes());
        assert!(!whole.cut && whole.set.len() == 9000 && whole.weight() < 4 << 20, "{}", whole.weight());
        // What differs behind the end of what is kept is another name.
        let other = keys(file.replacen("A]", "B]", 1).as_bytes());
        assert!(whole.set.is_disjoint(&other.set));
        let key = keys(&vec![0; 1 << 20]).set.into_iter().next().unwrap().0;
        assert!(key.len() < 300, "{}", key.len());
        for number in 9000..12_000 {
            file.push_str(&format!("{number}\n"));
        }
        let cut = keys(file.as_bytes());
        assert!(cut.cut && cut.set.len() == 10_000);
    }
}
