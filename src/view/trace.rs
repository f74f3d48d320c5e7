//! From a name to the one object it means: an open descriptor, its canonical path, and the symbolic links that
//! were passed on the way, which must exist inside as well.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat, openat2, readlinkat};
use rustix::io::Errno;

/// path_resolution(7) stops after 40 links; so does this walk.
const MAX_LINKS: usize = 40;

/// The longest path that a system call takes, its NUL included.
pub const PATH_MAX: usize = libc::PATH_MAX as usize;

#[derive(Debug)]
pub struct Traced {
    /// Opened with `O_PATH`; everything later acts on it and never on the name again.
    pub fd: OwnedFd,
    pub path: PathBuf,
    /// Each link's own canonical path and what it says.
    pub links: Vec<(PathBuf, PathBuf)>,
}

impl Traced {
    /// Asked for only where it matters: most rows of a table are what they are.
    pub fn stat(&self) -> io::Result<Stat> {
        Ok(fstat(&self.fd)?)
    }

    /// Whether a link on the way lies in one of these trees, so that whoever writes there chose where it leads.
    pub fn passes(&self, roots: &[PathBuf]) -> bool {
        self.links.iter().any(|(at, _)| roots.iter().any(|root| at.starts_with(root)))
    }

    pub fn is_dir(&self) -> bool {
        self.stat().is_ok_and(|stat| file_type(&stat) == FileType::Directory)
    }
}

pub fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Device and inode number: what makes two names the same object.
pub fn object(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

/// Resolves an absolute path that has no link in it; any other is an error.
pub fn plain(path: &Path) -> io::Result<Traced> {
    Ok(Traced { fd: open_plain(path)?, path: normalise(path), links: Vec::new() })
}

/// The links on the way to a path, wherever it ends: whoever made one of them may have led it nowhere.
pub fn links_passed(path: &Path) -> Vec<(PathBuf, PathBuf)> {
    let mut links = Vec::new();
    let _ = walk(path, &mut links);
    links
}

/// Resolves an absolute path. Most paths have no link in them and cost one system call.
pub fn trace(path: &Path) -> io::Result<Traced> {
    // The name itself is opened, not the shortened one: only the kernel knows what `..` after a link means.
    match open_plain(path) {
        Ok(fd) => Ok(Traced { fd, path: normalise(path), links: Vec::new() }),
        Err(Errno::LOOP) => trace_links(path),
        Err(error) => Err(error.into()),
    }
}

/// The same, or None where there is no such name. A link to nothing is an error: somebody meant something by it.
pub fn trace_present(path: &Path) -> io::Result<Option<Traced>> {
    Ok(trace_or_missing(path)?.ok())
}

/// There is no such name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    /// A link on the way led to that.
    pub by_link: bool,
}

pub fn trace_or_missing(path: &Path) -> io::Result<Result<Traced, Missing>> {
    match open_plain(path) {
        Ok(fd) => Ok(Ok(Traced { fd, path: normalise(path), links: Vec::new() })),
        Err(Errno::NOENT) => Ok(Err(Missing { by_link: false })),
        Err(Errno::LOOP) => match trace_links(path) {
            // The last name may be missing behind a link of the system (`/etc` of some distributions).
            Err(error) if error.kind() == io::ErrorKind::NotFound && !is_link(path) => {
                Ok(Err(Missing { by_link: true }))
            }
            traced => traced.map(Ok),
        },
        Err(error) => Err(error.into()),
    }
}

fn is_link(path: &Path) -> bool {
    readlinkat(CWD, path, Vec::new()).is_ok()
}

/// A directory whose name has no link in it; anything else is an error, and `trace` says more.
pub fn directory(path: &Path) -> io::Result<Traced> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = openat2(CWD, path, flags, Mode::empty(), resolve)?;
    Ok(Traced { fd, path: normalise(path), links: Vec::new() })
}

/// Those of the paths that are links in `/` to a directory below `/usr`, where that name has no further link in it:
/// one opening of all of them in a row (`/usr/bin/../sbin`) proves it. None at all where it does not.
pub fn merged_links<'a>(paths: impl Iterator<Item = &'a Path>) -> Vec<(PathBuf, PathBuf)> {
    let mut links = Vec::new();
    let mut chain = PathBuf::from("/usr");
    for path in paths {
        let Some(name) = path.strip_prefix("/").ok().filter(|name| name.components().count() == 1) else {
            continue;
        };
        // As on every merged system, so that no other row costs a call here.
        if !MERGED.iter().any(|merged| name == Path::new(merged)) {
            continue;
        }
        let Ok(target) = readlinkat(CWD, path, Vec::new()) else { continue };
        let to = PathBuf::from(OsString::from_vec(target.into_bytes()));
        let Some(below) = to.strip_prefix("usr").ok().filter(|below| below.components().count() == 1) else {
            continue;
        };
        if !matches!(below.components().next(), Some(Component::Normal(_))) {
            continue;
        }
        chain.push(below);
        chain.push("..");
        links.push((path.to_owned(), to));
    }
    match open_plain(&chain) {
        Ok(_) => links,
        Err(_) => Vec::new(),
    }
}

const MERGED: &[&str] = &["bin", "sbin", "lib", "lib64"];

fn open_plain(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), flags) {
        Err(Errno::NOSYS) => open_by_steps(path),
        result => result,
    }
}

/// What openat2 does, where a filter above us answers ENOSYS: containers of older engines, confine itself. Each
/// step starts from the descriptor before it, so that no component can be swapped for a link unseen.
fn open_by_steps(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let start = if path.is_absolute() { c"/" } else { c"." };
    let mut here = openat(CWD, start, flags, Mode::empty())?;
    for name in path.as_os_str().as_bytes().split(|&byte| byte == b'/').skip(usize::from(path.is_absolute()))
    {
        // An empty name is a doubled or a last slash: it asks for a directory.
        let name = if name.is_empty() { b"." } else { name };
        here = openat(&here, name, flags, Mode::empty())?;
        if FileType::from_raw_mode(fstat(&here)?.st_mode) == FileType::Symlink {
            return Err(Errno::LOOP);
        }
    }
    Ok(here)
}

/// An absolute path without `.`, `..` and doubled slashes. Right only where no component is a link: whoever opens it
/// learns that, and to others it is the name that was given.
pub fn normalise(path: &Path) -> PathBuf {
    let mut plain = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => {
                plain.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    plain
}

/// Component by component, since each link has to be known by its own canonical path. Once a link is passed the
/// rest is tried whole: the kernel says at once whether there is another one.
fn trace_links(path: &Path) -> io::Result<Traced> {
    let mut links = Vec::new();
    let (fd, path) = walk(path, &mut links)?;
    Ok(Traced { fd, path, links })
}

fn walk(path: &Path, links: &mut Vec<(PathBuf, PathBuf)>) -> io::Result<(OwnedFd, PathBuf)> {
    let mut left: VecDeque<OsString> = names(path.as_os_str());
    let mut here = PathBuf::from("/");
    while let Some(name) = left.pop_front() {
        match name.as_bytes() {
            b"" | b"." => continue,
            b".." => {
                here.pop();
                continue;
            }
            _ => here.push(&name),
        }
        let target = match readlinkat(CWD, &here, Vec::new()) {
            Ok(target) => OsString::from_vec(target.into_bytes()),
            // Not a link (readlink(2), EINVAL).
            Err(Errno::INVAL) => continue,
            Err(error) => return Err(error.into()),
        };
        if links.len() == MAX_LINKS {
            return Err(Errno::LOOP.into());
        }
        links.push((here.clone(), PathBuf::from(&target)));
        here.pop();
        if target.as_bytes().starts_with(b"/") {
            here = PathBuf::from("/");
        }
        let mut ahead = names(&target);
        ahead.append(&mut left);
        left = ahead;
        let whole = left.iter().fold(here.clone(), |path, name| path.join(name));
        match open_plain(&whole) {
            Ok(fd) => return Ok((fd, normalise(&whole))),
            Err(Errno::LOOP) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // The name led here without a link, or one was put in the way meanwhile: that is an error again.
    let fd = open_plain(&here)?;
    Ok((fd, here))
}

fn names(path: &OsStr) -> VecDeque<OsString> {
    path.as_bytes().split(|&byte| byte == b'/').map(|name| OsStr::from_bytes(name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A directory that goes with the test.
    struct Scratch(PathBuf);

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    impl std::ops::Deref for Scratch {
        type Target = Path;

        fn deref(&self) -> &Path {
            &self.0
        }
    }

    fn scratch(name: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("confine-trace-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Scratch(dir.canonicalize().unwrap())
    }

    #[test]
    fn a_path_without_links_is_its_own_canonical_path() {
        let dir = scratch("plain");
        std::fs::create_dir_all(dir.join("a/b")).unwrap();
        let traced = trace(&dir.join("a/./b/../b")).unwrap();
        assert_eq!((traced.path, traced.links.len()), (dir.join("a/b"), 0));
    }

    #[test]
    fn every_link_on_the_way_is_reported_and_followed() {
        let dir = scratch("links");
        std::fs::create_dir_all(dir.join("real/deep")).unwrap();
        symlink("real", dir.join("one")).unwrap();
        symlink(dir.join("one/deep"), dir.join("two")).unwrap();
        let traced = trace(&dir.join("two/../deep")).unwrap();
        assert_eq!(traced.path, dir.join("real/deep"));
        assert_eq!(traced.links, [(dir.join("two"), dir.join("one/deep")), (dir.join("one"), "real".into())]);
    }

    #[test]
    fn opening_by_steps_finds_the_same_and_refuses_the_same() {
        let dir = scratch("steps");
        std::fs::create_dir_all(dir.join("a/b")).unwrap();
        std::fs::write(dir.join("file"), "").unwrap();
        symlink("a", dir.join("link")).unwrap();
        for name in [
            "",
            "a/b",
            "a/./b/../b",
            "a//b",
            "file",
            "file/",
            "file/.",
            "missing",
            "link",
            "link/b",
            "a/../link",
        ] {
            let path = dir.join(name);
            let object = |fd: OwnedFd| fstat(&fd).map(|stat| stat.st_ino);
            assert_eq!(open_by_steps(&path).and_then(object), open_plain(&path).and_then(object), "{name}");
        }
    }

    #[test]
    fn a_loop_of_links_is_an_error() {
        let dir = scratch("loop");
        symlink("b", dir.join("a")).unwrap();
        symlink("a", dir.join("b")).unwrap();
        assert_eq!(trace(&dir.join("a")).unwrap_err().raw_os_error(), Some(libc::ELOOP));
    }
}
