//! The last step before the command: what the kernel reports is compared with what was meant. A boundary that
//! reads well and does not hold is worse than none.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use super::credentials::Emptied;
use super::mounts::OWN;
use crate::error::{Error, Result};

/// What /proc/self/status says (proc_pid_status(5)).
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Status {
    no_new_privs: u64,
    seccomp: u64,
    effective: u64,
    permitted: u64,
    inheritable: u64,
    ambient: u64,
    bounding: u64,
    /// Bit N-1 is set when signal N is ignored.
    pub ignored: u64,
}

impl Status {
    pub fn read() -> Result<Status> {
        const PATH: &str = "/proc/self/status";
        let text = read_whole(PATH).map_err(|error| Error::path("read", PATH, error))?;
        parse(&String::from_utf8_lossy(&text))
            .ok_or_else(|| Error::refused("self-check: /proc/self/status cannot be understood"))
    }

    pub fn verify(&self, emptied: Emptied, view: bool) -> Result<()> {
        let failed =
            |what: &str| Err(Error::refused(format!("self-check: {what}; the command was not started")));
        if self.no_new_privs != 1 {
            return failed("no_new_privs is not set");
        }
        if self.seccomp != 2 {
            return failed("no seccomp filter is in force");
        }
        if self.effective | self.permitted | self.inheritable | self.ambient != 0 {
            return failed("a capability is left");
        }
        if emptied.bounding && self.bounding != 0 {
            return failed("the capability bounding set is not empty");
        }
        // Visible, permitted by its mode, and not granted: only Landlock can deny it. Without a view of our own that
        // is a file of this process which everybody may write; where /proc is read-only, the root directory.
        let opened = if view {
            fs::File::open(Path::new(OWN).join("self-check")).map(drop)
        } else {
            match fs::OpenOptions::new().write(true).open("/proc/self/comm") {
                Err(error) if error.raw_os_error() == Some(libc::EROFS) => fs::read_dir("/").map(drop),
                other => other.map(drop),
            }
        };
        match opened {
            Err(error) if error.raw_os_error() == Some(libc::EACCES) => Ok(()),
            _ => failed("Landlock does not deny what was not granted"),
        }
    }
}

/// A file of /proc that is made in one piece, so that a reading with room to spare has all of it (seq_file.rst).
fn read_whole(path: &str) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 16 << 10];
    let length = fs::File::open(path)?.read(&mut bytes)?;
    if length == bytes.len() {
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    }
    bytes.truncate(length);
    Ok(bytes)
}

fn parse(text: &str) -> Option<Status> {
    // In the order in which they stand there.
    let mut lines = text.lines();
    let mut field = |name: &str, radix: u32| {
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        u64::from_str_radix(value.trim(), radix).ok()
    };
    Some(Status {
        ignored: field("SigIgn", 16)?,
        inheritable: field("CapInh", 16)?,
        permitted: field("CapPrm", 16)?,
        effective: field("CapEff", 16)?,
        bounding: field("CapBnd", 16)?,
        ambient: field("CapAmb", 16)?,
        no_new_privs: field("NoNewPrivs", 10)?,
        seccomp: field("Seccomp", 10)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "Name:\tx\nSigIgn:\t0000000000001001\nCapInh:\t0\nCapPrm:\t0\nCapEff:\t0\nCapBnd:\t0\n\
        CapAmb:\t0\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t3\n";

    #[test]
    fn the_kernels_fields_are_read() {
        let status = parse(GOOD).unwrap();
        assert_eq!((status.no_new_privs, status.seccomp, status.ignored), (1, 2, 0x1001));
        assert_eq!(parse("Name:\tx\n"), None);
    }

    #[test]
    fn a_missing_layer_is_a_refusal() {
        for (good, bad) in [
            ("NoNewPrivs:\t1", "NoNewPrivs:\t0"),
            ("Seccomp:\t2", "Seccomp:\t0"),
            ("CapEff:\t0", "CapEff:\t200000"),
            ("CapPrm:\t0", "CapPrm:\t1"),
            ("CapBnd:\t0", "CapBnd:\t1"),
        ] {
            let status = parse(&GOOD.replace(good, bad)).unwrap();
            assert!(status.verify(Emptied { bounding: true }, true).is_err(), "{bad}");
        }
    }
}
