//! Processes of the test's own that stand for "another program of the user".

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::FileExt as _;
use std::process::Child;

use super::{Run, Scratch};

/// Holds a secret in its environment, in its memory, in a file that it has open; ends with the test.
pub struct Victim {
    child: Child,
    pub pid: String,
    pub address: String,
}

impl Victim {
    pub fn start(scratch: &Scratch) -> Self {
        let held = scratch.file("outside/held", "held secret\n");
        let mut child = Run::plain(scratch)
            .env("TOKEN", "environment secret")
            .cwd(scratch.outside())
            .command([scratch.attack().as_os_str(), "hold".as_ref(), held.as_os_str()])
            .spawn();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (pid, address) = line.trim().split_once(' ').expect("the victim tells its pid and an address");
        Victim { pid: pid.to_owned(), address: address.to_owned(), child }
    }

    pub fn alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// The word that a tracer would have written over, read by root.
    pub fn memory(&self) -> String {
        let mut text = [0; 20];
        let at = u64::from_str_radix(self.address.trim_start_matches("0x"), 16).unwrap();
        fs::File::open(format!("/proc/{}/mem", self.pid)).unwrap().read_exact_at(&mut text, at).unwrap();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Nice value and core limit.
    pub fn standing(&self) -> (String, String) {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap();
        let nice = stat.rsplit(')').next().unwrap().split_whitespace().nth(16).unwrap().to_owned();
        let limits = fs::read_to_string(format!("/proc/{}/limits", self.pid)).unwrap();
        (nice, limits.lines().find(|line| line.starts_with("Max core")).unwrap().to_owned())
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
