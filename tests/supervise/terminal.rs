//! A terminal of the test's own: what a person, or a program that drives one, does with it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::pty::{Winsize, openpty};
use nix::sys::termios::tcgetattr;
use nix::unistd::tcgetpgrp;

pub struct Terminal {
    master: File,
    pub slave: OwnedFd,
    seen: Arc<Mutex<String>>,
    over: Arc<AtomicBool>,
    /// How much of it was waited for already.
    read: usize,
}

impl Terminal {
    pub fn new() -> Terminal {
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        let pair = openpty(Some(&size), None).unwrap();
        let master = File::from(pair.master);
        let seen = Arc::new(Mutex::new(String::new()));
        let over = Arc::new(AtomicBool::new(false));
        let (mut from, into) = (master.try_clone().unwrap(), seen.clone());
        let end = over.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while !end.load(Ordering::Relaxed) {
                let mut ready = [PollFd::new(from.as_fd(), PollFlags::POLLIN)];
                if poll(&mut ready, PollTimeout::from(20u16)) == Ok(0) {
                    continue;
                }
                // EIO: nobody has the other side open any more.
                let Ok(count @ 1..) = from.read(&mut bytes) else { return };
                into.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Terminal { master, slave: pair.slave, seen, over, read: 0 }
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

    /// What the kernel knows: beyond that, musl leaves in the structure what was there.
    pub fn settings(&self) -> ([u32; 4], u8, Vec<u8>) {
        let found = tcgetattr(self.slave.as_fd()).unwrap();
        let (input, output) = (found.input_flags.bits(), found.output_flags.bits());
        let (control, local) = (found.control_flags.bits(), found.local_flags.bits());
        // NCCS of the kernel's struct termios; the speeds are among the control flags.
        ([input, output, control, local], found.line_discipline, found.control_chars[..19].to_vec())
    }

    pub fn foreground(&self) -> i32 {
        tcgetpgrp(self.master.as_fd()).unwrap().as_raw()
    }

    /// The window is closed: nobody has the master any more, once the reader has let go of it.
    pub fn hang_up(self) {
        self.over.store(true, Ordering::Relaxed);
    }

    pub fn resize(&self, rows: u16) {
        let slave = self.slave.try_clone().unwrap();
        let status = Command::new("stty").args(["rows", &rows.to_string()]).stdin(slave).status().unwrap();
        assert!(status.success());
    }
}
