//! The supervisor's own command line and environment, overwritten: whoever can see the process sees
//! `/proc/PID/cmdline`, and values of `--env` stand in it.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;

use crate::sys;

/// Leaves the program's name. Everything that is needed of both must have been read before.
pub fn scrub() -> io::Result<()> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let [arguments, arguments_end, environment, environment_end] =
        addresses(&stat).ok_or_else(|| io::Error::other("/proc/self/stat cannot be understood"))?;
    let name = std::env::args_os().next().map_or(0, |name| name.as_bytes().len() as u64);
    // In place, not through /proc/self/mem: containers show /proc read-only.
    sys::fill(arguments.saturating_add(name), arguments_end, 0);
    sys::fill(environment, environment_end, 0);
    // Where the last byte is not zero the kernel shows what stands before the first zero (proc_pid_cmdline(5)), so
    // not even the length of what was there.
    sys::fill((arguments_end - 1).max(arguments.saturating_add(name + 1)), arguments_end, b'.');
    Ok(())
}

/// arg_start, arg_end, env_start and env_end: fields 48 to 51 (proc_pid_stat(5)), of which the third is the first
/// after the name in parentheses.
fn addresses(stat: &str) -> Option<[u64; 4]> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(48 - 3).map(str::parse);
    let mut next = || fields.next()?.ok();
    Some([next()?, next()?, next()?, next()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_counted_from_behind_the_name() {
        let stat = "1 (a) b) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 \
            35 36 37 38 39 40 41 42 43 44 45 46 47 4800 4900 5000 5100 0\n";
        assert_eq!(addresses(stat), Some([4800, 4900, 5000, 5100]));
        assert_eq!(addresses("1 (a) S 4 5"), None);
    }
}
