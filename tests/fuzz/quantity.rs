//! Sizes, durations and counts: exact, or refused.

use confine::policy::quantity::{MAX_DURATION, MAX_SIZE, count, duration, size};

pub const CORPUS: &[&[u8]] = &[
    b"0",
    b"4096",
    b"512M",
    b"8388607T",
    b"8388608T",
    b"9223372036854775807",
    b"18446744073709551616K",
    b"90s",
    b"250ms",
    b"2562047h",
    b"153722867m",
    b"+1",
    b"1.5G",
    b" 7",
];

/// Of the whole text: digits, then one of the units. None where it is written wrongly.
fn exact(text: &str, units: &[(&str, u128)]) -> Option<u128> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let factor = units.iter().find(|(unit, _)| *unit == &text[end..])?.1;
    // Far above every limit all numbers are alike.
    let add = |sum: u128, digit: u8| (sum * 10 + u128::from(digit - b'0')).min(1 << 80);
    (end > 0).then(|| text.as_bytes()[..end].iter().fold(0, |sum, digit| add(sum, *digit)) * factor)
}

pub fn check(bytes: &[u8]) {
    let text = &*String::from_utf8_lossy(bytes);
    let sizes = [("", 1), ("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30), ("T", 1 << 40)];
    let most = u128::from(MAX_SIZE);
    assert_eq!(size(text).ok().map(u128::from), exact(text, &sizes).filter(|size| *size <= most));
    let times = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];
    let most = MAX_DURATION.as_millis();
    assert_eq!(
        duration(text).ok().map(|time| time.as_millis()),
        exact(text, &times).filter(|time| *time <= most)
    );
    let most = u128::from(MAX_SIZE);
    assert_eq!(count(text).ok().map(u128::from), exact(text, &[("", 1)]).filter(|count| *count <= most));
}
