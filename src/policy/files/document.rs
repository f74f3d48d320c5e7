//! The text of a policy file as keys with their values and lines. Which keys there are is not known here.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeArray, DeInteger, DeTable, DeValue};

/// One key at the top of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub key: String,
    pub line: usize,
    pub value: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Flag(bool),
    /// A string, or a whole number in decimal.
    Word(String),
    /// Each with its own line.
    List(Vec<(usize, Element)>),
    /// Each with its name and the line of that.
    Table(Vec<(usize, String, Element)>),
    Other(&'static str),
}

/// What a list holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Element {
    Word(String),
    Other(&'static str),
}

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub line: usize,
    pub what: String,
}

/// In the order of the file.
pub fn parse(text: &str) -> Result<Vec<Item>, Fault> {
    let lines = Lines::of(text);
    let table = DeTable::parse(text).map_err(|error| Fault {
        line: error.span().map_or(1, |span| lines.at(&span)),
        // The first line of it says everything; the others draw the place.
        what: error.message().lines().next().unwrap_or("not TOML").to_owned(),
    })?;
    let mut items: Vec<Item> = table
        .into_inner()
        .into_iter()
        .map(|(key, value)| Item {
            line: lines.at(&key.span()),
            key: key.into_inner().into_owned(),
            value: read(value.into_inner(), &lines),
        })
        .collect();
    items.sort_by_key(|item| item.line);
    Ok(items)
}

fn read(value: DeValue<'_>, lines: &Lines) -> Value {
    match value {
        DeValue::Boolean(flag) => Value::Flag(flag),
        DeValue::Array(array) => Value::List(elements(array, lines)),
        DeValue::Table(table) => {
            let mut named: Vec<(usize, String, Element)> = table
                .into_iter()
                .map(|(key, value)| {
                    (lines.at(&key.span()), key.into_inner().into_owned(), element(value.into_inner()))
                })
                .collect();
            named.sort_by_key(|(line, ..)| *line);
            Value::Table(named)
        }
        other => match element(other) {
            Element::Word(word) => Value::Word(word),
            Element::Other(kind) => Value::Other(kind),
        },
    }
}

fn elements(array: DeArray<'_>, lines: &Lines) -> Vec<(usize, Element)> {
    let one = |value: Spanned<DeValue<'_>>| (lines.at(&value.span()), element(value.into_inner()));
    array.into_iter().map(one).collect()
}

fn element(value: DeValue<'_>) -> Element {
    match value {
        DeValue::String(text) => Element::Word(text.into_owned()),
        DeValue::Integer(number) => Element::Word(decimal(&number)),
        DeValue::Float(_) => Element::Other("a number with a fraction"),
        DeValue::Boolean(_) => Element::Other("true or false"),
        DeValue::Datetime(_) => Element::Other("a date"),
        DeValue::Array(_) => Element::Other("a list"),
        DeValue::Table(_) => Element::Other("a table"),
    }
}

/// As the command line would say it; what no i128 holds stays as it is, and is too large for anything.
fn decimal(number: &DeInteger<'_>) -> String {
    match i128::from_str_radix(number.as_str(), number.radix()) {
        Ok(value) => value.to_string(),
        Err(_) => number.as_str().to_owned(),
    }
}

/// Where each line begins, so that a long file is counted through once.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Lines {
        Lines(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect())
    }

    fn at(&self, span: &Range<usize>) -> usize {
        self.0.partition_point(|&newline| newline < span.start) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_value_has_its_line() {
        let text = "# first\nread-only = true\nmax-memory = '2G'\nmax-procs = 0x10\nconnect = [\n 443,\n '53', 1.5]\n\
            x = 1.5\ny = 2026-01-01\n[net]\na = 1\n";
        let items = parse(text).unwrap();
        let word = |text: &str| Value::Word(text.to_owned());
        let list = |line, text: &str| (line, Element::Word(text.to_owned()));
        let expected = [
            ("read-only", 2, Value::Flag(true)),
            ("max-memory", 3, word("2G")),
            ("max-procs", 4, word("16")),
            (
                "connect",
                5,
                Value::List(vec![
                    list(6, "443"),
                    list(7, "53"),
                    (7, Element::Other("a number with a fraction")),
                ]),
            ),
            ("x", 8, Value::Other("a number with a fraction")),
            ("y", 9, Value::Other("a date")),
            ("net", 10, Value::Table(vec![(11, "a".to_owned(), Element::Word("1".to_owned()))])),
        ];
        assert_eq!(items.len(), expected.len());
        for (item, (key, line, value)) in items.iter().zip(expected) {
            assert_eq!((item.key.as_str(), item.line, &item.value), (key, line, &value));
        }
    }

    #[test]
    fn what_is_not_toml_is_told_with_its_line() {
        for (text, line) in
            [("a = 1\nb =\n", 2), ("a = 1\na = 2\n", 2), ("\n\n\u{1}", 3), ("x = [1,\n2\n", 1), ("=", 1)]
        {
            let fault = parse(text).unwrap_err();
            assert!(fault.line >= line && !fault.what.is_empty(), "{text:?}: {fault:?}");
            assert!(!fault.what.contains(char::is_control), "{text:?}: {fault:?}");
        }
    }

    /// Bytes from a fixed congruence, and mutilated files: none panics, and every line is one of the text.
    #[test]
    fn nonsense_is_an_error_and_never_a_panic() {
        let mut state = 11_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
        let pieces = [
            "read-only",
            "=",
            "true",
            "[",
            "]",
            "\"",
            "'",
            "\n",
            "#",
            "[[",
            "{",
            "}",
            ",",
            ".",
            "\\u00e9",
            "é",
            "0x",
            "1e9",
            "-",
            "\"\"\"",
            "'''",
            "\r",
            "443",
            " ",
            "connect",
            "1979-05-27",
            "\u{feff}",
            "\u{7f}",
        ];
        for round in 0..3000 {
            let text: String = (0..next() % 40).map(|_| pieces[next() % pieces.len()]).collect();
            if let Err(fault) = parse(&text) {
                let lines = text.matches('\n').count() + 1;
                assert!((1..=lines).contains(&fault.line), "round {round}: {text:?}: {fault:?}");
            }
        }
        for piece in ["[", "{a=", "x=[", "a.", "\"", "#", "[a]\n", "k=1\n"] {
            let _ = parse(&piece.repeat(200_000 / piece.len()));
        }
    }
}
