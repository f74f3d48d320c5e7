//! A line on a terminal when the scan takes more than a second.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const FIRST: u64 = 1000;
const EVERY: u64 = 200;

pub struct Progress {
    began: Instant,
    terminal: bool,
    /// Milliseconds after the start at which the next line is due.
    next: AtomicU64,
}

impl Progress {
    pub fn new() -> Progress {
        let terminal = std::io::stderr().is_terminal();
        Progress { began: Instant::now(), terminal, next: AtomicU64::new(FIRST) }
    }

    /// Called by every thread; the one that moves the mark writes.
    pub fn tick(&self, entries: u64) {
        if !self.terminal {
            return;
        }
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let due = self.next.load(Ordering::Relaxed);
        if now < due {
            return;
        }
        if self.next.compare_exchange(due, now + EVERY, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            let line = format!("\r\x1b[Kconfine: looking for hard links: {entries} names so far");
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.terminal && *self.next.get_mut() > FIRST {
            let _ = std::io::stderr().write_all(b"\r\x1b[K");
        }
    }
}
