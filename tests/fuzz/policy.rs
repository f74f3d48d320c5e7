//! Policy files: whatever was written reads back with its lines, and any other text is a fault in one of them.

use confine::policy::files::document::{Element, Item, Value, parse};

use super::chance::Chance;

pub const CORPUS: &[&[u8]] = &[
    b"workspace = ['.']\nmax-memory = \"2G\"\nconnect = [443, '53']\nread-only = true\n",
    b"a = \"\\u00e9\\n\"\r\nb = '''\nx'''\nc = 0x10\n[d]\ne = 1979-05-27\n",
    b"a.b = 1\na = 2\n",
    b"x = [1,\n# no\n2.5, [true]]\n\"quoted key\" = +1_000\n",
];

pub fn check(bytes: &[u8]) {
    let text = &*String::from_utf8_lossy(bytes);
    let last = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
    match parse(text) {
        Err(fault) => assert!((1..=last).contains(&fault.line) && !fault.what.is_empty(), "{fault:?}"),
        Ok(items) => {
            assert!(items.iter().all(|item| (1..=last).contains(&item.line)), "{items:?}");
            assert!(items.is_sorted_by_key(|item| item.line), "{items:?}");
        }
    }
    let (text, items) = written(&mut Chance::new(bytes));
    assert_eq!(parse(&text).as_ref(), Ok(&items), "{text}");
}

fn word(chance: &mut Chance<'_>) -> String {
    let length = chance.below(6);
    (0..length)
        .map(|_| chance.pick(&['a', '/', '"', '\'', '\\', '\n', '\t', '#', '=', ' ', '[', 'é', '\u{1}']))
        .collect()
}

/// As a literal where that can be, or with escapes.
fn quoted(chance: &mut Chance<'_>, word: &str) -> String {
    let plain = !word.chars().any(|letter| letter == '\'' || letter != '\t' && letter.is_control());
    if plain && chance.byte().is_multiple_of(2) {
        return format!("'{word}'");
    }
    let escaped: String = word
        .chars()
        .map(|letter| match letter {
            '"' | '\\' => format!("\\{letter}"),
            _ if letter.is_control() => format!("\\u{:04X}", u32::from(letter)),
            _ => letter.to_string(),
        })
        .collect();
    format!("\"{escaped}\"")
}

/// A document and what it means.
fn written(chance: &mut Chance<'_>) -> (String, Vec<Item>) {
    let (mut text, mut items) = (String::new(), Vec::new());
    let line = |text: &String| text.bytes().filter(|byte| *byte == b'\n').count() + 1;
    while !chance.is_over() && items.len() < 20 {
        text.push_str(chance.pick(&["", "\n", "# a comment\n", "  "]));
        let (key, at) = (format!("key-{}", items.len()), line(&text));
        text.push_str(&format!("{key}{}", chance.pick(&["=", " = ", "\t=\t"])));
        let value = match chance.byte() % 4 {
            0 => {
                let flag = chance.byte().is_multiple_of(2);
                text.push_str(&flag.to_string());
                Value::Flag(flag)
            }
            1 => {
                let number = chance.word();
                text.push_str(&number.to_string());
                Value::Word(number.to_string())
            }
            2 => {
                let word = word(chance);
                text.push_str(&quoted(chance, &word));
                Value::Word(word)
            }
            _ => {
                text.push('[');
                let list = (0..chance.below(4)).map(|_| {
                    text.push_str(chance.pick(&["", " ", "\n", " # more\n"]));
                    let (word, at) = (word(chance), line(&text));
                    text.push_str(&quoted(chance, &word));
                    text.push(',');
                    (at, Element::Word(word))
                });
                let list = list.collect();
                text.push(']');
                Value::List(list)
            }
        };
        text.push_str(chance.pick(&["\n", " # why\n", "\r\n"]));
        items.push(Item { key, line: at, value });
    }
    (text, items)
}
