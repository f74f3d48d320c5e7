//! The file of an audit record: found, judged and opened before the boundary, since what may be written by a command
//! is no record of what it did.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;
use serde::Serialize;

use super::chain;
use crate::error::{Error, Result, paste, show};
use crate::policy::{FileAccess, Policy};
use crate::sys;
use crate::view::View;
use crate::view::trace::{object, trace};
use crate::view::ways::Ways;

const OPTION: &str = "--audit";

/// Where the file is or will be: its directory is held open, and its name is no link.
#[derive(Debug)]
pub struct Place {
    named: PathBuf,
    /// Canonical.
    path: PathBuf,
    directory: OwnedFd,
    /// Those that led to the directory.
    links: Vec<(PathBuf, PathBuf)>,
}

impl Place {
    pub fn find(named: &Path) -> Result<Place> {
        let cannot = |error: io::Error| open_error(named, error);
        let path = std::path::absolute(named).map_err(cannot)?;
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(refuse(named, "is not the name of a file"));
        };
        let traced = trace(parent).map_err(|error| {
            let hint = (error.raw_os_error() == Some(libc::ENOENT))
                .then(|| format!("mkdir -p -m 700 {}", paste(parent.as_os_str())));
            let error = cannot(error);
            match hint {
                Some(hint) => error.with_hint(hint),
                None => error,
            }
        })?;
        let stat = traced.stat().map_err(cannot)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            return Err(cannot(io::Error::from_raw_os_error(libc::ENOTDIR)));
        }
        // Whoever may rename it away begins the chain anew, and nobody notices.
        if stat.st_mode & 0o1002 == 0o002 {
            return Err(refuse(named, "lies in a directory that every user may write to"));
        }
        Ok(Place {
            named: named.to_owned(),
            path: traced.path.join(name),
            directory: traced.fd,
            links: traced.links,
        })
    }

    /// No link leads to it.
    pub fn is_plain(&self) -> bool {
        self.links.is_empty()
    }

    /// By what was asked, before anything of it has been looked up: a run that is refused early has its line too.
    pub fn judge_by_names(&self, policy: &Policy) -> Result<()> {
        let writable = policy
            .workspaces
            .iter()
            .chain(policy.files.iter().filter(|rule| rule.access == FileAccess::Write).map(|rule| &rule.path))
            .chain(&policy.state);
        let absolute = writable.filter_map(|root| std::path::absolute(root).ok());
        let roots: Vec<PathBuf> =
            absolute.map(|root| trace(&root).map_or(root, |traced| traced.path)).collect();
        let roots: Vec<&Path> = roots.iter().map(PathBuf::as_path).collect();
        let mut ways = Ways::default();
        for at in self.links.iter().map(|(at, _)| at).chain([&self.path]) {
            if let Some(root) = ways.within(at, &roots)? {
                return Err(self.within(root));
            }
        }
        Ok(())
    }

    /// By the view itself.
    pub fn judge(&self, view: &View) -> Result<()> {
        view.refuse_planted(OPTION, &self.named, &self.links)?;
        let above = self.above().map_err(|error| open_error(&self.named, error))?;
        let ways = Ways::default().to(&self.path)?;
        let lies_in = |root: &Path| ways.iter().any(|way| way.starts_with(root));
        let root = view
            .roots
            .iter()
            .find(|root| root.writable && (lies_in(&root.path) || above.contains(&root.object)));
        let root = root
            .map(|root| &root.path)
            .or_else(|| view.state.as_ref().map(|state| &state.path).filter(|state| lies_in(state)));
        if let Some(root) = root {
            return Err(self.within(root));
        }
        // It could be locked by whoever can open it, and tells of other runs.
        if ways.iter().any(|way| view.is_visible(way)) {
            return Err(refuse(&self.named, "can be read by the command")
                .with_hint(format!("--hide {}", paste(self.path.as_os_str()))));
        }
        Ok(())
    }

    /// What opening it would meet; nothing is made.
    pub fn foresee(self) -> Result<()> {
        use rustix::fs::{Access, AtFlags, accessat};
        if self.find_open()?.is_some() {
            return Ok(());
        }
        accessat(&self.directory, c".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)
            .map_err(|errno| open_error(&self.named, errno.into()))
    }

    fn within(&self, root: &Path) -> Error {
        refuse(&self.named, &format!("lies in {}, where the command may write", show(root.as_os_str())))
            .with_hint("name a file outside what the command may change")
    }

    /// The directories above the file, as objects: a bind mount gives one another name.
    fn above(&self) -> io::Result<Vec<(u64, u64)>> {
        let mut above = vec![object(&fstat(&self.directory)?)];
        let mut here = self.directory.try_clone()?;
        loop {
            here = openat(&here, c"..", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
            let next = object(&fstat(&here)?);
            if above.last() == Some(&next) {
                return Ok(above);
            }
            above.push(next);
        }
    }

    /// The file, made if there is none.
    pub fn open(self) -> Result<Audit> {
        // Others may make it at the same moment, or rename it away.
        for _ in 0..100 {
            if let Some(file) = self.find_open()? {
                return Ok(Audit { file, place: self });
            }
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            match openat(&self.directory, self.name(), flags, Mode::RUSR | Mode::WUSR) {
                Ok(_) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(open_error(&self.named, errno.into())),
            }
        }
        Err(refuse(&self.named, "comes and goes"))
    }

    /// What is there now; None if there is nothing.
    pub fn stat(&self) -> Option<Stat> {
        statat(&self.directory, self.name(), AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    pub fn named(&self) -> &Path {
        &self.named
    }

    /// None if there is none.
    pub fn open_existing(self) -> Result<Option<Audit>> {
        Ok(self.find_open()?.map(|file| Audit { file, place: self }))
    }

    fn find_open(&self) -> Result<Option<File>> {
        let cannot = |error: io::Error| open_error(&self.named, error);
        // Neither waits for a FIFO nor wakes a device; what it found is then opened through itself.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = match openat(&self.directory, self.name(), flags, Mode::empty()) {
            Ok(found) => found,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(cannot(errno.into())),
        };
        self.admit(&fstat(&found).map_err(|errno| cannot(errno.into()))?)?;
        let file = std::fs::OpenOptions::new()
            .read(true)
            .append(true)
            .open(format!("/proc/self/fd/{}", found.as_raw_fd()))
            .map_err(cannot)?;
        // Where the caller has a limit of file size the write is to fail, and not to kill.
        sys::ignore_signal(libc::SIGXFSZ).map_err(cannot)?;
        Ok(Some(file))
    }

    fn name(&self) -> &Path {
        self.path.file_name().map_or(Path::new(""), Path::new)
    }

    fn admit(&self, stat: &Stat) -> Result<()> {
        let me = rustix::process::geteuid().as_raw();
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Symlink => {
                return Err(refuse(&self.named, "is a symbolic link").with_hint("name what it leads to"));
            }
            _ => return Err(refuse(&self.named, "is not a regular file")),
        }
        if stat.st_uid != me && stat.st_uid != 0 {
            return Err(refuse(&self.named, "belongs to another user"));
        }
        if stat.st_mode & 0o077 != 0 {
            return Err(refuse(&self.named, "is open to other users")
                .with_hint(format!("chmod 600 {}", paste(self.path.as_os_str()))));
        }
        if stat.st_nlink > 1 {
            return Err(refuse(&self.named, "has another name, a hard link"));
        }
        Ok(())
    }
}

/// An open record.
#[derive(Debug)]
pub struct Audit {
    file: File,
    place: Place,
}

impl Audit {
    pub fn judge(&self, view: &View) -> Result<()> {
        self.place.judge(view)
    }

    pub fn stat(&self) -> Option<Stat> {
        fstat(&self.file).ok()
    }

    pub fn named(&self) -> &Path {
        self.place.named()
    }

    pub fn append<T: Serialize>(&self, line: impl Fn() -> T) -> Result<()> {
        chain::append(&self.file, line).map_err(|error| {
            let hint = match error.raw_os_error() {
                Some(libc::ENOSPC | libc::EDQUOT) => {
                    "make room, or name another file: nothing starts without its line"
                }
                _ => "name another file: nothing starts without its line",
            };
            Error::path("write audit record", &self.place.path, error).with_hint(hint)
        })
    }
}

fn open_error(named: &Path, error: io::Error) -> Error {
    Error::path("open audit record", named, error)
}

pub fn refuse(named: &Path, reason: &str) -> Error {
    Error::usage(format!("audit record {} {reason}", show(named.as_os_str())))
}
