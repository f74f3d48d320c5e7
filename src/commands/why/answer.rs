//! What is said about one subject, for programs and for people.

use std::ffi::OsStr;
use std::fmt::Write;

use serde::Serialize;

use crate::error::show;

/// One item of `answers`. What does not apply to a subject is null.
#[derive(Debug, Default, Serialize)]
pub struct Answer {
    pub subject: String,
    pub kind: &'static str,
    /// What the subject means inside: links followed, relative to the working directory of the command.
    pub path: Option<String>,
    /// What is there: "file", "directory", "socket", "fifo", "device", "link" (that leads nowhere), "covered", "missing".
    pub what: Option<&'static str>,
    pub visible: Option<bool>,
    pub readable: Option<bool>,
    /// Of what is missing: whether it can be made.
    pub writable: Option<bool>,
    /// Of a directory: whether names in it can be reached.
    pub executable: Option<bool>,
    pub connectable: Option<bool>,
    /// Whether a server can take connections there from outside.
    pub listenable: Option<bool>,
    pub passed: Option<bool>,
    /// What is written there is gone when the run ends.
    pub vanishes: Option<bool>,
    pub rule: Rule,
    /// Whatever else bears on it, a line each.
    pub notes: Vec<String>,
    pub change: Option<Change>,
}

/// What decides.
#[derive(Debug, Default, Serialize)]
pub struct Rule {
    pub from: From,
    /// In words; of a table's row its reason.
    pub text: String,
    /// Of a rule about paths: the path that it stands for.
    pub path: Option<String>,
    /// The option that made it, as it can be given.
    pub option: Option<String>,
    /// Where a policy file says so.
    pub file: Option<String>,
    pub line: Option<u32>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum From {
    /// Nothing names it: what is not granted is not there.
    #[default]
    Default,
    /// A row of confine's own tables.
    Table,
    /// An option of the run.
    Option,
    /// Met in the workspace or among the caller's descriptors.
    Found,
    /// Mode, owner or kind of the file itself.
    Host,
}

/// The smallest option that would change the answer.
#[derive(Debug, Serialize)]
pub struct Change {
    pub option: String,
    /// Why to think twice.
    pub warning: Option<String>,
}

impl Answer {
    pub fn about(subject: &OsStr, kind: &'static str) -> Answer {
        Answer { subject: subject.to_string_lossy().into_owned(), kind, ..Answer::default() }
    }

    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    pub fn suggest(&mut self, option: impl Into<String>, warning: Option<String>) {
        self.change = Some(Change { option: option.into(), warning });
    }

    /// Every yes and no, in words.
    pub fn verdict(&self) -> String {
        let words: Vec<String> = [
            (self.visible, "visible"),
            (self.readable, "readable"),
            (self.writable, "writable"),
            (self.executable, "executable"),
            (self.connectable, "connectable"),
            (self.listenable, "listenable"),
            (self.passed, "passed"),
        ]
        .into_iter()
        .filter_map(|(answer, word)| {
            let word = match word {
                "executable" if self.what == Some("directory") => "searchable",
                "writable" if self.what == Some("missing") => "can be made",
                word => word,
            };
            let no = |word: &str| match word {
                "can be made" => "cannot be made".to_owned(),
                word => format!("not {word}"),
            };
            answer.map(|yes| if yes { word.to_owned() } else { no(word) })
        })
        .collect();
        let what = self.what.map(|what| format!("{what}, ")).unwrap_or_default();
        format!("{what}{}", words.join(", "))
    }

    pub fn text(&self, subject: &OsStr) -> String {
        let mut text = format!("{}: {}\n", show(subject), self.verdict());
        if let Some(path) = self.path.as_ref().filter(|path| **path != self.subject) {
            let _ = writeln!(text, "  it is {} inside", show(path.as_ref()));
        }
        let at =
            self.rule.path.as_ref().map(|path| format!(", at {}", show(path.as_ref()))).unwrap_or_default();
        let by = match (&self.rule.option, self.rule.from) {
            (Some(option), _) => format!(" [{option}]"),
            (None, From::Table) => " [built in]".to_owned(),
            (None, _) => String::new(),
        };
        let file = match (&self.rule.file, self.rule.line) {
            (Some(file), Some(line)) => format!(" ({file}, line {line})"),
            _ => String::new(),
        };
        let _ = writeln!(text, "  {}{at}{by}{file}", self.rule.text);
        for note in &self.notes {
            let _ = writeln!(text, "  {note}");
        }
        if let Some(change) = &self.change {
            let warning =
                change.warning.as_ref().map(|warning| format!("  # careful: {warning}")).unwrap_or_default();
            let _ = writeln!(text, "  hint: {}{warning}", change.option);
        }
        text
    }
}
