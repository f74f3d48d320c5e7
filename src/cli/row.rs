//! What there is to say about an option.

/// What kind of word an option takes. Every word reaches the policy as bytes; this only names and completes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// A switch.
    None,
    Directory,
    Path,
    /// Anything else, by its placeholder.
    Word(&'static str),
    /// A number, so that `-5` is a wrong value and not an unknown option.
    Number(&'static str),
    OneOf(&'static str, &'static [&'static str]),
}

#[derive(Debug)]
pub struct Row {
    pub name: &'static str,
    pub short: Option<char>,
    pub value: Value,
    pub repeat: bool,
    pub group: &'static str,
    /// For `-h`: one line, no full stop.
    pub summary: &'static str,
    /// For `--help`: unit, what it bounds, what it does not do. Follows the summary.
    pub detail: &'static str,
    pub hidden: bool,
}

pub const fn row(
    group: &'static str,
    name: &'static str,
    value: Value,
    summary: &'static str,
    detail: &'static str,
) -> Row {
    Row { name, short: None, value, repeat: false, group, summary, detail, hidden: false }
}

impl Row {
    /// What stands for its word in help.
    pub const fn placeholder(&self) -> &'static str {
        match self.value {
            Value::None => "",
            Value::Directory => "DIR",
            Value::Path => "PATH",
            Value::Word(name) | Value::Number(name) | Value::OneOf(name, _) => name,
        }
    }

    pub const fn short(mut self, letter: char) -> Row {
        self.short = Some(letter);
        self
    }

    pub const fn repeat(mut self) -> Row {
        self.repeat = true;
        self
    }

    pub const fn hidden(mut self) -> Row {
        self.hidden = true;
        self
    }
}
