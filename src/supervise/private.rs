//! HOME and TMPDIR on hosts where nothing can be mounted: a fresh owner-only directory, removed when the run ends.
//! What a killed run left behind is removed by the next one, as soon as it is provably dead.

use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Held open, and locked, by every process of the run but the command's own: the lock ends with the last of them.
#[derive(Debug)]
pub struct Private {
    path: PathBuf,
    _lock: File,
}

const LOCK: &str = "lock";

impl Private {
    /// In the user's run-time directory, which is memory, or else in /tmp.
    pub fn make(uid: u32, runtime: Option<&Path>) -> Result<Private> {
        let owned = |path: &&Path| {
            fs::symlink_metadata(path)
                .is_ok_and(|found| found.is_dir() && found.uid() == uid && found.mode() & 0o77 == 0)
        };
        let base = runtime.filter(owned).unwrap_or(Path::new("/tmp"));
        clean(base, uid);
        let mut count = 0;
        let path = loop {
            let path = base.join(format!("confine-{uid}-{}-{count}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => break path,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && count < 1000 => count += 1,
                Err(error) => return Err(Error::path("make", path, error)),
            }
        };
        let lock = File::create_new(path.join(LOCK)).and_then(|lock| {
            lock.try_lock().map_err(|error| match error {
                TryLockError::Error(error) => error,
                TryLockError::WouldBlock => io::Error::from_raw_os_error(libc::EBUSY),
            })?;
            Ok(lock)
        });
        match lock {
            Ok(lock) => Ok(Private { path, _lock: lock }),
            Err(error) => {
                let _ = remove(&path);
                Err(Error::path("lock", path, error))
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// When nobody is left who could write there.
    pub fn remove(self) {
        let _ = remove(&self.path);
    }
}

/// Removes what belongs to this user, is named like ours, and whose lock nobody holds.
fn clean(base: &Path, uid: u32) {
    let prefix = format!("confine-{uid}-");
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        if !entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix)) {
            continue;
        }
        let path = entry.path();
        let own = |path: &Path| {
            fs::symlink_metadata(path).is_ok_and(|found| found.uid() == uid && !found.is_symlink())
        };
        if !own(&path) || !own(&path.join(LOCK)) {
            continue;
        }
        if let Ok(lock) = File::open(path.join(LOCK))
            && lock.try_lock().is_ok()
        {
            let _ = remove(&path);
        }
    }
}

/// The command may have left directories that even their owner cannot enter.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(path);
            fs::remove_dir_all(path)
        }
        other => other,
    }
}

fn open_up(top: &Path) {
    let mut left = vec![top.to_owned()];
    while let Some(path) = left.pop() {
        let _ = fs::set_permissions(&path, Permissions::from_mode(0o700));
        for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                left.push(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(name: &str) -> PathBuf {
        let base = std::env::temp_dir().join(format!("private-{name}-{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&base).unwrap();
        base
    }

    #[test]
    fn a_directory_is_removed_whatever_the_command_left_in_it() {
        let base = base("left");
        let uid = fs::metadata(&base).unwrap().uid();
        let private = Private::make(uid, Some(&base)).unwrap();
        let deep = private.path().join("home/shut/deep");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("file"), "x").unwrap();
        fs::set_permissions(deep.parent().unwrap(), Permissions::from_mode(0)).unwrap();
        private.remove();
        assert_eq!(fs::read_dir(&base).unwrap().count(), 0);
        fs::remove_dir(base).unwrap();
    }

    #[test]
    fn the_next_run_removes_a_dead_one_and_leaves_a_living_one() {
        let base = base("dead");
        let uid = fs::metadata(&base).unwrap().uid();
        let living = Private::make(uid, Some(&base)).unwrap();
        let dead = base.join(format!("confine-{uid}-1-0"));
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join(LOCK), "").unwrap();
        let next = Private::make(uid, Some(&base)).unwrap();
        assert!(!dead.exists() && living.path().exists() && next.path() != living.path());
        fs::remove_dir_all(base).unwrap();
    }
}
