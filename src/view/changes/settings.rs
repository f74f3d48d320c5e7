//! The keys of a git settings file (git-config(1), "Syntax"): which filters, aliases, hooks paths and the like it has.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Each key as `git config --list` names it, with a digest of its value. Never the value: it may be a secret.
pub fn keys(file: &[u8]) -> BTreeSet<(String, u64)> {
    let text = String::from_utf8_lossy(file);
    let mut section = String::new();
    let mut keys = BTreeSet::new();
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
        if let Some(open) = rest.strip_prefix('[') {
            let Some((name, after)) = open.split_once(']') else { continue };
            section = heading(name);
            rest = after.trim();
        }
        if rest.is_empty() || rest.starts_with(['#', ';']) {
            continue;
        }
        let (key, value) = rest.split_once('=').unwrap_or((rest, ""));
        let mut hasher = DefaultHasher::new();
        value.trim().hash(&mut hasher);
        keys.insert((format!("{section}.{}", key.trim().to_ascii_lowercase()), hasher.finish()));
    }
    keys
}

/// `filter "LFS"` is `filter.LFS`.
fn heading(name: &str) -> String {
    match name.split_once(char::is_whitespace) {
        Some((section, sub)) => {
            format!("{}.{}", section.to_ascii_lowercase(), sub.trim().trim_matches('"').replace('\\', ""))
        }
        None => name.trim().to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_names_that_git_lists() {
        let file = b"[core]\n\tfsmonitor = /x\n\tHooksPath=/y\n# c\n[filter \"A b\"] clean = sh \\\n  -c x\n[alias]\n st\n";
        let names: Vec<String> = keys(file).into_iter().map(|(key, _)| key).collect();
        assert_eq!(names, ["alias.st", "core.fsmonitor", "core.hookspath", "filter.A b.clean"]);
        assert_ne!(keys(b"[a]\nb=1"), keys(b"[a]\nb=2"));
    }
}
