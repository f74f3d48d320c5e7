//! Inputs for a bounded time: those to begin with, changed at random, from a seed that is printed.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

const SECONDS: u64 = 5;
const LONGEST: usize = 4096;

fn number(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} is not a number: {value}")))
}

pub fn seconds() -> Duration {
    Duration::from_secs(number("CONFINE_FUZZ_SECONDS").unwrap_or(SECONDS))
}

/// The same unless told, so that a change is judged by what it changes.
pub fn seed() -> u64 {
    number("CONFINE_FUZZ_SEED").unwrap_or(1)
}

/// SplitMix64: any seed will do, the next number is one step away.
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// One change of an input: a byte, a stretch of it or of another one.
fn change(random: &mut Random, bytes: &mut Vec<u8>, corpus: &[&[u8]]) {
    let at = random.below(bytes.len() + 1);
    let end = at + random.below(bytes.len() - at + 1);
    match random.below(7) {
        0 => bytes.insert(at, random.next() as u8),
        1 => bytes.extend((0..random.below(64)).map(|_| random.next() as u8).collect::<Vec<_>>()),
        2 => drop(bytes.drain(at..end)),
        3 => {
            let stretch = bytes[at..end].to_vec();
            bytes.splice(at..at, stretch);
        }
        4 => {
            let other = corpus[random.below(corpus.len())];
            let from = random.below(other.len() + 1);
            bytes.splice(at..end, other[from..].iter().copied());
        }
        5 if at < bytes.len() => bytes[at] = bytes[at].wrapping_add([1, 255][random.below(2)]),
        _ if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        _ => {}
    }
    bytes.truncate(LONGEST);
}

pub fn drive(name: &str, corpus: &[&[u8]], check: fn(&[u8])) {
    let (seed, end) = (seed(), Instant::now() + seconds());
    let mut random = Random(seed);
    let mut bytes = Vec::new();
    let mut runs = 0_u64;
    for input in corpus {
        check(input);
    }
    while runs == 0 || Instant::now() < end {
        // Changes pile up for a while, then it begins again.
        if runs.is_multiple_of(32) {
            bytes = corpus[random.below(corpus.len())].to_vec();
        }
        for _ in 0..=random.below(4) {
            change(&mut random, &mut bytes, corpus);
        }
        if let Err(cause) = catch_unwind(AssertUnwindSafe(|| check(&bytes))) {
            eprintln!("{name}: run {runs} with CONFINE_FUZZ_SEED={seed}: b\"{}\"", bytes.escape_ascii());
            resume_unwind(cause);
        }
        runs += 1;
    }
    println!("{name}: {runs} inputs from seed {seed}");
}
