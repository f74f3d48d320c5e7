//! A line on a terminal when the scan takes more than a second.

use std::io::{IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const FIRST: u64 = 1000;
const EVERY: u64 = 200;

pub struct Progress {
    began: Instant,
    /// Asked when a line is due: most scans are over by then.
    terminal: OnceLock<bool>,
    /// Milliseconds after the start at which the next line is due.
    next: AtomicU64,
}

impl Progress {
    pub fn new() -> Progress {
        Progress { began: Instant::now(), terminal: OnceLock::new(), next: AtomicU64::new(FIRST) }
    }

    /// Called by every thread; the one that moves the mark writes.
    pub fn tick(&self, entries: u64) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let due = self.next.load(Ordering::Relaxed);
        if now < due || !self.terminal.get_or_init(|| std::io::stderr().is_terminal()) {
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
        if self.terminal.get() == Some(&true) && *self.next.get_mut() > FIRST {
            let _ = std::io::stderr().write_all(b"\r\x1b[K");
        }
    }
}
