//! confine-shell itself: what it is started with acts before it can refuse anything.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::{Findings, Rule, Severity};
use crate::error::show;

const DYNAMIC: Rule = Rule {
    id: "shell-dynamically-linked",
    severity: Severity::Medium,
    why: "its loader obeys LD_PRELOAD and LD_LIBRARY_PATH of whoever starts it: a model that may set variables runs code outside",
    fix: "install the packaged program, or one from `packaging/build`, in place of {}",
};

/// More than every header of a program.
const HEAD: u64 = 64 << 10;

/// The one that was installed with this program.
pub fn look(findings: &mut Findings) {
    let Ok(own) = std::env::current_exe() else { return };
    let shell = own.with_file_name("confine-shell");
    if asks_for_loader(&shell) == Some(true) {
        let what = format!("{} is linked dynamically", show(shell.as_os_str()));
        findings.add(&DYNAMIC, Some(&shell), what);
    }
}

fn asks_for_loader(path: &Path) -> Option<bool> {
    let mut bytes = Vec::new();
    let file = File::open(path).ok()?;
    file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    file.take(HEAD).read_to_end(&mut bytes).ok()?;
    has_interpreter(&bytes)
}

/// Of a 64-bit program of this machine's own byte order (elf(5)); None for anything else.
fn has_interpreter(file: &[u8]) -> Option<bool> {
    const PT_INTERP: u32 = 3;
    let bytes = |at: usize, length: usize| file.get(at..at.checked_add(length)?);
    let half = |at| Some(u16::from_ne_bytes(bytes(at, 2)?.try_into().ok()?));
    if bytes(0, 5)? != b"\x7fELF\x02" {
        return None;
    }
    let start = u64::from_ne_bytes(bytes(32, 8)?.try_into().ok()?);
    let (size, count) = (usize::from(half(54)?), usize::from(half(56)?));
    for number in 0..count {
        let at = usize::try_from(start).ok()?.checked_add(size.checked_mul(number)?)?;
        if u32::from_ne_bytes(bytes(at, 4)?.try_into().ok()?) == PT_INTERP {
            return Some(true);
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_asks_for_a_loader_is_told_from_one_that_does_not() {
        let mut file = vec![0; 64 + 2 * 56];
        file[..5].copy_from_slice(b"\x7fELF\x02");
        file[32..40].copy_from_slice(&64u64.to_ne_bytes());
        file[54..56].copy_from_slice(&56u16.to_ne_bytes());
        file[56..58].copy_from_slice(&2u16.to_ne_bytes());
        file[64..68].copy_from_slice(&1u32.to_ne_bytes());
        file[120..124].copy_from_slice(&1u32.to_ne_bytes());
        assert_eq!(has_interpreter(&file), Some(false));
        file[120..124].copy_from_slice(&3u32.to_ne_bytes());
        assert_eq!(has_interpreter(&file), Some(true));
        for broken in [&file[..100], b"#!/bin/sh\n", b""] {
            assert_eq!(has_interpreter(broken), None);
        }
        file[32..40].copy_from_slice(&u64::MAX.to_ne_bytes());
        assert_eq!(has_interpreter(&file), None);
    }
}
