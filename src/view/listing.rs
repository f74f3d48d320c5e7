//! The names in one directory, so that rows of a table that cannot exist cost no system call each. Only ever a
//! reason to pass a row over: whatever is shown or hidden is opened by its own name.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::fs::{CWD, Mode, OFlags, RawDir, openat};

/// One reading of the kernel. What does not fit would cost more than the rows do.
const BUFFER: usize = 16 << 10;

#[derive(Debug, Default)]
pub struct Listing {
    bytes: Vec<u8>,
    /// Sorted by what they name.
    names: Vec<Range<usize>>,
    complete: bool,
}

impl Listing {
    /// A directory that cannot be listed, or is large, may hold any name.
    pub fn of(directory: &Path) -> Listing {
        Listing::read(CWD, directory)
    }

    /// Of a directory that is open, also with `O_PATH`.
    pub fn below(directory: BorrowedFd<'_>) -> Listing {
        Listing::read(directory, Path::new("."))
    }

    fn read(base: BorrowedFd<'_>, directory: &Path) -> Listing {
        let mut listing = Listing::default();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(fd) = openat(base, directory, flags, Mode::empty()) else { return listing };
        let mut buffer = vec![MaybeUninit::uninit(); BUFFER];
        let mut reader = RawDir::new(&fd, &mut buffer);
        let mut readings = 0;
        loop {
            readings += u32::from(reader.is_buffer_empty());
            match reader.next() {
                Some(Ok(entry)) if readings == 1 => {
                    let start = listing.bytes.len();
                    listing.bytes.extend_from_slice(entry.file_name().to_bytes());
                    listing.names.push(start..listing.bytes.len());
                }
                Some(_) => return listing,
                None => break,
            }
        }
        let bytes = &listing.bytes;
        listing.names.sort_unstable_by_key(|name| bytes.get(name.clone()));
        listing.complete = true;
        listing
    }

    /// Whether a path relative to the directory may exist.
    pub fn may_hold(&self, path: &Path) -> bool {
        let Some(Component::Normal(first)) = path.components().next() else { return true };
        let wanted = Some(first.as_bytes());
        !self.complete
            || self.names.binary_search_by_key(&wanted, |name| self.bytes.get(name.clone())).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_names_that_are_missing_from_a_whole_reading_are_passed_over() {
        let dir = std::env::temp_dir().join(format!("confine-listing-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("there")).unwrap();
        let small = Listing::of(&dir);
        assert!(small.may_hold(Path::new("there/below")) && !small.may_hold(Path::new("missing/below")));
        for number in 0..2000 {
            fs::write(dir.join(format!("entry-{number}")), "").unwrap();
        }
        assert!(
            Listing::of(&dir).may_hold(Path::new("missing")),
            "a reading that is not whole proves nothing"
        );
        fs::remove_dir_all(&dir).unwrap();
        assert!(Listing::of(&dir).may_hold(Path::new("missing")), "nor does one that failed");
    }
}
