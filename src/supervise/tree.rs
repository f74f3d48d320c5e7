//! Ending a tree without a PID namespace: every orphan comes to a subreaper, so that whatever is left is a
//! descendant of it.

use std::fs;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::process::{WaitOptions, wait};

/// Until there is nothing below this process. Stopped before killed, so that what forks is not chased.
pub fn end() {
    const ROUNDS: u32 = 10_000;
    for _ in 0..ROUNDS {
        let left = descendants();
        if left.is_empty() {
            return;
        }
        for pid in &left {
            let _ = kill(*pid, Signal::SIGSTOP);
        }
        for pid in &left {
            let _ = kill(*pid, Signal::SIGKILL);
        }
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Every process below this one, from the parents that /proc tells.
pub fn descendants() -> Vec<Pid> {
    let mut parents: Vec<(i32, i32)> = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(stat) = fs::read(entry.path().join("stat")) else { continue };
        if let Some(parent) = living_parent(&String::from_utf8_lossy(&stat)) {
            parents.push((pid, parent));
        }
    }
    let mut found = vec![std::process::id() as i32];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        next += 1;
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
    }
    found.split_off(1).into_iter().map(Pid::from_raw).collect()
}

/// The name in parentheses may hold anything: what follows the last one is state and parent (proc_pid_stat(5)). None
/// for a zombie.
fn living_parent(stat: &str) -> Option<i32> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let (state, parent) = (fields.next()?, fields.next()?.parse().ok()?);
    (state != "Z").then_some(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_read_past_any_name_and_the_dead_have_none() {
        assert_eq!(living_parent("7 (a) Z 1 (x) S 42 7 7"), Some(42));
        assert_eq!(living_parent("7 (a) Z 42 7 7"), None);
        assert_eq!(living_parent("7 (a"), None);
    }
}
