//! A terminal of the test's own: what a person, or a program that drives one, does with it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::pty::{Winsize, openpty};
use nix::sys::termios::{Termios, tcgetattr};
use nix::unistd::tcgetpgrp;

pub struct Terminal {
    master: File,
    pub slave: OwnedFd,
    seen: Arc<Mutex<String>>,
    /// How much of it was waited for already.
    read: usize,
}

impl Terminal {
    pub fn new() -> Terminal {
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        let pair = openpty(Some(&size), None).unwrap();
        let master = File::from(pair.master);
        let seen = Arc::new(Mutex::new(String::new()));
        let (mut from, into) = (master.try_clone().unwrap(), seen.clone());
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // EIO: nobody has the other side open any more.
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                into.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Terminal { master, slave: pair.slave, seen, read: 0 }
    }

    pub fn type_in(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).unwrap();
    }

    /// Waits for a text after what was waited for before.
    #[track_caller]
    pub fn expect(&mut self, text: &str) {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let seen = self.seen.lock().unwrap();
            if let Some(at) = seen[self.read..].find(text) {
                self.read += at + text.len();
                return;
            }
            assert!(Instant::now() < end, "{text:?} never came; the terminal shows {:?}", &seen[self.read..]);
            drop(seen);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// All that was shown since the last wait.
    pub fn rest(&self) -> String {
        self.seen.lock().unwrap()[self.read..].to_owned()
    }

    pub fn settings(&self) -> Termios {
        tcgetattr(self.slave.as_fd()).unwrap()
    }

    pub fn foreground(&self) -> i32 {
        tcgetpgrp(self.master.as_fd()).unwrap().as_raw()
    }

    pub fn resize(&self, rows: u16) {
        let slave = self.slave.try_clone().unwrap();
        let status = Command::new("stty").args(["rows", &rows.to_string()]).stdin(slave).status().unwrap();
        assert!(status.success());
    }
}
