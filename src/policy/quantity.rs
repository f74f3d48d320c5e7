//! Sizes, durations and counts as they are written on the command line: a whole number and at most one unit,
//! exact. What cannot be meant exactly (a sign, a fraction, a blank, an overflow) is refused, never rounded.

use std::fmt;
use std::time::Duration;

/// The largest size: what a signed file offset holds. u64::MAX would mean "unlimited" as an rlimit
/// (getrlimit(2)), so a number that large must not come through as a limit.
pub const MAX_SIZE: u64 = i64::MAX as u64;

/// The largest duration: what a signed 64-bit count of nanoseconds holds (292 years), so that no timer
/// arithmetic further on can overflow.
pub const MAX_DURATION: Duration = Duration::from_nanos(i64::MAX as u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invalid {
    NotASize,
    NotADuration,
    NotACount,
    TooLarge,
    Zero,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Invalid::NotASize => "not a whole number of bytes, or of K, M, G or T (as in 512M)",
            Invalid::NotADuration => "not a whole number with one of the units ms, s, m or h (as in 90s)",
            Invalid::NotACount => "not a whole number",
            Invalid::TooLarge => "too large",
            Invalid::Zero => "zero is no limit that a command can run under",
        })
    }
}

/// Bytes, or K, M, G, T in powers of 1024.
pub fn size(text: &str) -> Result<u64, Invalid> {
    let (digits, unit) = split(text);
    let factor: u64 = match unit {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        "T" => 1 << 40,
        _ => return Err(Invalid::NotASize),
    };
    number(digits, Invalid::NotASize)?
        .checked_mul(factor)
        .filter(|&bytes| bytes <= MAX_SIZE)
        .ok_or(Invalid::TooLarge)
}

/// A number with ms, s, m or h. Without a unit it is refused: half of all tools take it for seconds, the
/// other half for milliseconds.
pub fn duration(text: &str) -> Result<Duration, Invalid> {
    let (digits, unit) = split(text);
    let milliseconds: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(Invalid::NotADuration),
    };
    number(digits, Invalid::NotADuration)?
        .checked_mul(milliseconds)
        .map(Duration::from_millis)
        .filter(|&time| time <= MAX_DURATION)
        .ok_or(Invalid::TooLarge)
}

/// A plain number of things, such as processes.
pub fn count(text: &str) -> Result<u64, Invalid> {
    match split(text) {
        (digits, "") => number(digits, Invalid::NotACount).and_then(|count| match count <= MAX_SIZE {
            true => Ok(count),
            false => Err(Invalid::TooLarge),
        }),
        _ => Err(Invalid::NotACount),
    }
}

/// The leading ASCII digits and the rest; str::parse alone would take a `+`.
fn split(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

fn number(digits: &str, malformed: Invalid) -> Result<u64, Invalid> {
    if digits.is_empty() {
        return Err(malformed);
    }
    digits.parse().map_err(|_| Invalid::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bytes_or_powers_of_1024() {
        assert_eq!(size("0"), Ok(0));
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size("007"), Ok(7));
        assert_eq!(size("1K"), Ok(1024));
        assert_eq!(size("3M"), Ok(3 * 1024 * 1024));
        assert_eq!(size("2G"), Ok(2 * 1024 * 1024 * 1024));
        assert_eq!(size("5T"), Ok(5 * 1024 * 1024 * 1024 * 1024));
    }

    #[test]
    fn durations_need_one_of_four_units() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("3h"), Ok(Duration::from_secs(3 * 3600)));
        assert_eq!(duration("0s"), Ok(Duration::ZERO));
    }

    #[test]
    fn what_is_not_exact_is_refused_in_every_kind() {
        for text in [
            "", " ", "-1", "+1", "1.5", "1e3", "0x10", "1_000", "1,000", " 1", "1 ", "1 K", "١", "K", "s",
            "1\n", "1\0",
        ] {
            assert_eq!(size(text), Err(Invalid::NotASize), "{text:?}");
            assert_eq!(duration(text), Err(Invalid::NotADuration), "{text:?}");
            assert_eq!(count(text), Err(Invalid::NotACount), "{text:?}");
        }
    }

    #[test]
    fn near_units_are_refused() {
        for text in ["1k", "1KB", "1KiB", "1B", "1P", "1MM", "1m"] {
            assert_eq!(size(text), Err(Invalid::NotASize), "{text:?}");
        }
        for text in ["1", "1S", "1M", "1sec", "1us", "1ns", "1d", "1h30m", "1hh"] {
            assert_eq!(duration(text), Err(Invalid::NotADuration), "{text:?}");
        }
        assert_eq!(count("1K"), Err(Invalid::NotACount));
    }

    #[test]
    fn the_edge_of_each_size_unit_is_exact() {
        for (unit, shift) in [("", 0u32), ("K", 10), ("M", 20), ("G", 30), ("T", 40)] {
            let most = MAX_SIZE >> shift;
            assert_eq!(size(&format!("{most}{unit}")), Ok(most << shift));
            assert_eq!(size(&format!("{}{unit}", most + 1)), Err(Invalid::TooLarge));
            assert_eq!(size(&format!("{}{unit}", u64::MAX)), Err(Invalid::TooLarge));
        }
        assert_eq!(size("18446744073709551616"), Err(Invalid::TooLarge));
        assert_eq!(size(&"9".repeat(10_000)), Err(Invalid::TooLarge));
        // Shifted left by 40 bits this wraps round to zero.
        assert_eq!(size("16777216T"), Err(Invalid::TooLarge));
    }

    #[test]
    fn the_edge_of_each_duration_unit_is_exact() {
        let most_ms = i64::MAX as u64 / 1_000_000;
        for (unit, factor) in [("ms", 1u64), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)] {
            let most = most_ms / factor;
            assert_eq!(duration(&format!("{most}{unit}")), Ok(Duration::from_millis(most * factor)));
            assert_eq!(duration(&format!("{}{unit}", most + 1)), Err(Invalid::TooLarge));
            assert_eq!(duration(&format!("{}{unit}", u64::MAX)), Err(Invalid::TooLarge));
        }
    }

    #[test]
    fn counts_stop_short_of_what_an_rlimit_takes_for_unlimited() {
        assert_eq!(count("64"), Ok(64));
        assert_eq!(count(&MAX_SIZE.to_string()), Ok(MAX_SIZE));
        assert_eq!(count(&(MAX_SIZE + 1).to_string()), Err(Invalid::TooLarge));
        assert_eq!(count(&u64::MAX.to_string()), Err(Invalid::TooLarge));
    }

    /// Every number written back with any unit reads as itself times that unit: a walk over a few thousand
    /// values from a fixed linear congruence, so that a failure is the same each time.
    #[test]
    fn any_number_times_any_unit_reads_back() {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        for _ in 0..4096 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let value = state >> (state % 61);
            for (unit, factor) in
                [("", 1u128), ("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30), ("T", 1 << 40)]
            {
                let exact = u128::from(value) * factor;
                let expected = u64::try_from(exact).ok().filter(|&bytes| bytes <= MAX_SIZE);
                assert_eq!(size(&format!("{value}{unit}")).ok(), expected, "{value}{unit}");
            }
        }
    }
}
