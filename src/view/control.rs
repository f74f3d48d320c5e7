//! Control files: what lies in a workspace and later runs outside by itself. They are shown read-only where
//! they exist. This is a guard, not a promise: a host tool that replaces such a file, or a repository made
//! later, gets round it.
#![forbid(unsafe_code)]

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Statx, StatxFlags};
use rustix::io::Errno;

use super::listing::Listing;
use crate::policy::Git;

/// A file or directory by where it is stored, whatever path led to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    pub dev: u64,
    pub ino: u64,
}

impl Id {
    pub fn of(stat: &Statx) -> Id {
        Id { dev: u64::from(stat.stx_dev_major) << 32 | u64::from(stat.stx_dev_minor), ino: stat.stx_ino }
    }
}

/// One path of the table, below a workspace root or a repository, and who runs it outside.
pub struct Row {
    pub path: &'static str,
    pub reason: &'static str,
}

const fn row(path: &'static str, reason: &'static str) -> Row {
    Row { path, reason }
}

/// Below a git directory, and below each of its modules.
pub const GIT: &[Row] = &[
    row("hooks", "git runs these programs on commit, checkout, merge and push"),
    row("config", "names programs: fsmonitor, pager, editor, filters, ssh command, hooksPath"),
    row("config.worktree", "read like config when extensions.worktreeConfig is set"),
    row("info/attributes", "switches on the filters and merge drivers that any config names"),
];

/// Below a workspace root or repository. Only files whose contents are commands; instructions to a model, build
/// files and sources are work, and stay writable.
pub const FILES: &[Row] = &[
    row(".amp/settings.json", "agent settings: tool servers and permissions"),
    row(".claude/hooks", "scripts that agent hooks run"),
    row(".claude/settings.json", "agent settings: hooks and permissions"),
    row(".claude/settings.local.json", "agent settings: hooks and permissions"),
    row(".codex/config.toml", "agent settings: tool servers, notify program, sandbox"),
    row(".codex/hooks.json", "agent hooks"),
    row(".codex/rules", "commands that the agent may run without asking"),
    row(".confine", "confine's own files are never written from inside"),
    row(".cursor/cli.json", "agent permissions"),
    row(".cursor/environment.json", "commands run when an agent's machine starts"),
    row(".cursor/hooks.json", "agent hooks"),
    row(".cursor/mcp.json", "tool servers started by the editor"),
    row(".devcontainer", "initializeCommand runs on the host; mounts and capabilities of the container"),
    row(".devcontainer.json", "initializeCommand runs on the host"),
    row(".dir-locals.el", "emacs evaluates it when a file is visited"),
    row(".envrc", "direnv runs it when a shell enters the directory"),
    row(".exrc", "vi and vim run it when exrc is set"),
    row(".fleet/run.json", "editor run configurations"),
    row(".gemini/settings.json", "agent settings: tool servers, hooks and permissions"),
    row(".idea/runConfigurations", "editor run configurations"),
    row(".idea/watcherTasks.xml", "programs the editor runs when a file changes"),
    row(".idea/workspace.xml", "editor run configurations and start-up tasks"),
    row(".junie/mcp", "tool servers started by the editor"),
    row(".kiro/hooks", "agent hooks"),
    row(".kiro/settings/mcp.json", "tool servers started by the editor"),
    row(".mcp.json", "tool servers started by agents"),
    row(".nvim.lua", "neovim runs it when exrc is set"),
    row(".nvimrc", "neovim runs it when exrc is set"),
    row(".opencode/plugin", "programs loaded into the agent"),
    row(".opencode/plugins", "programs loaded into the agent"),
    row(".qwen/settings.json", "agent settings: tool servers and permissions"),
    row(".roo/mcp.json", "tool servers started by the editor"),
    row(".vimrc", "vim runs it when exrc is set"),
    row(".vscode/launch.json", "programs started by the debugger"),
    row(".vscode/mcp.json", "tool servers started by the editor"),
    row(".vscode/settings.json", "names interpreters, linters and terminals that the editor starts"),
    row(".vscode/tasks.json", "tasks, some of which run when the folder is opened"),
    row(".windsurf/hooks.json", "agent hooks"),
    row(".zed/debug.json", "programs started by the debugger"),
    row(".zed/settings.json", "names language servers and terminals that the editor starts"),
    row(".zed/tasks.json", "editor tasks"),
    row("opencode.json", "agent settings: tool servers and permissions"),
    row("opencode.jsonc", "agent settings: tool servers and permissions"),
];

/// Nothing below a directory of this name is looked up: it holds what package managers and builds unpacked.
pub fn is_unpacked(name: &[u8]) -> bool {
    name == b"node_modules" || name == b"target"
}

/// Submodules nest; deeper than this a tree is not one that git made.
const MODULE_DEPTH: u32 = 64;

/// What of the table exists at one place. Paths are relative to it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Found {
    /// To be shown read-only.
    pub control: Vec<PathBuf>,
    /// `.git` directories: bound onto themselves, so that they cannot be renamed away.
    pub git_dirs: Vec<PathBuf>,
    /// `.git` that is a file: a linked worktree or a submodule.
    pub git_files: Vec<PathBuf>,
    /// The same control files by identity, so that the scan counts their names as outside.
    pub(super) guarded: Vec<Guarded>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Guarded {
    pub parent: Id,
    pub name: OsString,
    /// Set for a directory: everything below it is guarded too.
    pub directory: Option<Id>,
}

/// Whether a name in a directory is a reason to look the table up there.
pub fn may_concern(name: &[u8]) -> bool {
    name == b"HEAD"
        || FILES.iter().any(|row| row.path.bytes().take_while(|byte| *byte != b'/').eq(name.iter().copied()))
}

/// The table looked up at one directory: a workspace root, or a repository that the scan has met.
pub fn at_root(dir: BorrowedFd<'_>, git: Git) -> io::Result<Found> {
    let mut found = Found::default();
    at_git(dir, git, &mut found)?;
    if git == Git::Free {
        return Ok(found);
    }
    let listing = Listing::below(dir);
    let rows = FILES.iter().map(|row| row.path).filter(|path| listing.may_hold(Path::new(path)));
    add(dir, rows, Path::new(""), &mut found)?;
    Ok(found)
}

fn at_git(dir: BorrowedFd<'_>, git: Git, found: &mut Found) -> io::Result<()> {
    let Some(stat) = stat(dir, ".git")? else {
        // A bare repository, or the git directory of a linked worktree that was made writable.
        if git != Git::Free && is_git_dir(dir)? {
            guard_git(dir.try_clone_to_owned()?, Path::new(""), found)?;
        }
        return Ok(());
    };
    match file_type(&stat) {
        FileType::RegularFile => {
            if git == Git::ReadOnly {
                add(dir, [".git"], Path::new(""), found)?;
            }
            found.git_files.push(PathBuf::from(".git"));
            return Ok(());
        }
        FileType::Directory => {}
        // A symlink is followed by git, but a mount cannot be put on it, and what it names is covered there.
        _ => return Ok(()),
    }
    match git {
        Git::Free => {}
        Git::ReadOnly => add(dir, [".git"], Path::new(""), found)?,
        Git::Guard => {
            found.git_dirs.push(PathBuf::from(".git"));
            let Some(git_dir) = open(dir, OsStr::new(".git"))? else { return Ok(()) };
            guard_git(git_dir, Path::new(".git"), found)?;
        }
    }
    Ok(())
}

/// What every git directory has (gitrepository-layout(5)).
fn is_git_dir(dir: BorrowedFd<'_>) -> io::Result<bool> {
    for name in ["HEAD", "objects", "refs"] {
        if stat(dir, name)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Directories are held by their names and opened when it is their turn: there may be more than descriptors.
fn guard_git(git_dir: OwnedFd, base: &Path, found: &mut Found) -> io::Result<()> {
    let mut queue = vec![(PathBuf::new(), 0)];
    while let Some((path, depth)) = queue.pop() {
        let Some(dir) = walk_to(&git_dir, &path)? else { continue };
        add(dir.as_fd(), GIT.iter().map(|row| row.path), &base.join(&path), found)?;
        if let Some(worktrees) = open(dir.as_fd(), OsStr::new("worktrees"))? {
            for name in subdirectories(&worktrees)? {
                let Some(worktree) = open(worktrees.as_fd(), &name)? else { continue };
                let base = base.join(&path).join("worktrees").join(name);
                add(worktree.as_fd(), ["config.worktree"], &base, found)?;
            }
        }
        if depth < MODULE_DEPTH
            && let Some(modules) = open(dir.as_fd(), OsStr::new("modules"))?
        {
            modules_below(&modules, &path.join("modules"), depth + 1, &mut queue)?;
        }
    }
    Ok(())
}

/// A submodule's name may hold slashes, so directories that are no git directory are looked into as well.
fn modules_below(
    modules: &OwnedFd,
    path: &Path,
    depth: u32,
    queue: &mut Vec<(PathBuf, u32)>,
) -> io::Result<()> {
    let mut plain = vec![(PathBuf::new(), depth)];
    while let Some((below, depth)) = plain.pop() {
        let Some(dir) = walk_to(modules, &below)? else { continue };
        for name in subdirectories(&dir)? {
            let Some(child) = open(dir.as_fd(), &name)? else { continue };
            if stat(child.as_fd(), "HEAD")?.is_some() || stat(child.as_fd(), "config")?.is_some() {
                queue.push((path.join(&below).join(name), depth));
            } else if depth < MODULE_DEPTH {
                plain.push((below.join(name), depth + 1));
            }
        }
    }
    Ok(())
}

/// Name by name, so that none can be swapped for a link unseen.
fn walk_to(dir: &OwnedFd, path: &Path) -> io::Result<Option<OwnedFd>> {
    let mut here = dir.try_clone()?;
    for part in path {
        match open(here.as_fd(), part)? {
            Some(next) => here = next,
            None => return Ok(None),
        }
    }
    Ok(Some(here))
}

/// The directory that a row lies in.
struct Holder {
    /// None: the one that the row is relative to.
    fd: Option<OwnedFd>,
    id: Option<Id>,
}

/// Adds each `base/path` that exists as a file or directory without a symlink on the way. Rows of one directory stand
/// together in the tables, and open it once.
fn add(
    dir: BorrowedFd<'_>,
    paths: impl IntoIterator<Item = &'static str>,
    base: &Path,
    found: &mut Found,
) -> io::Result<()> {
    let mut opened = None;
    for path in paths {
        let (parents, name) = path.rsplit_once('/').unwrap_or(("", path));
        if opened.as_ref().is_none_or(|(of, _)| *of != parents) {
            opened = Some((parents, hold(dir, parents)?));
        }
        let Some((_, Some(holder))) = &mut opened else { continue };
        let here = holder.fd.as_ref().map_or(dir, OwnedFd::as_fd);
        let Some(stat) = stat(here, name)? else { continue };
        let directory = match file_type(&stat) {
            FileType::Directory => Some(Id::of(&stat)),
            FileType::RegularFile => None,
            _ => continue,
        };
        let parent = match holder.id {
            Some(id) => id,
            None => Id::of(&rustix::fs::statx(here, c"", AtFlags::EMPTY_PATH, StatxFlags::INO)?),
        };
        holder.id = Some(parent);
        found.control.push(base.join(path));
        found.guarded.push(Guarded { parent, name: OsString::from(name), directory });
    }
    Ok(())
}

fn hold(dir: BorrowedFd<'_>, parents: &str) -> io::Result<Option<Holder>> {
    let mut fd: Option<OwnedFd> = None;
    for part in parents.split('/').filter(|part| !part.is_empty()) {
        let here = fd.as_ref().map_or(dir, OwnedFd::as_fd);
        fd = match open(here, OsStr::new(part))? {
            None => return Ok(None),
            found => found,
        };
    }
    Ok(Some(Holder { fd, id: None }))
}

fn stat(dir: BorrowedFd<'_>, name: &str) -> io::Result<Option<Statx>> {
    match rustix::fs::statx(dir, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::INO | StatxFlags::TYPE) {
        Ok(stat) => Ok(Some(stat)),
        // Not searchable: the command, which has no more rights, cannot reach it either.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn file_type(stat: &Statx) -> FileType {
    FileType::from_raw_mode(u32::from(stat.stx_mode))
}

fn open(dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(dir, name, flags, Mode::empty()) {
        Ok(fd) => Ok(Some(fd)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn subdirectories(dir: &OwnedFd) -> io::Result<Vec<OsString>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let reader = match rustix::fs::openat(dir, c".", flags, Mode::empty()) {
        Ok(fd) => rustix::fs::Dir::new(fd)?,
        Err(Errno::ACCESS) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut found = Vec::new();
    for entry in reader {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        let may_be_directory = matches!(entry.file_type(), FileType::Directory | FileType::Unknown);
        if name == "." || name == ".." || !may_be_directory {
            continue;
        }
        found.push(name.to_os_string());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn look(dir: &Path, git: Git) -> Found {
        let fd = fs::File::open(dir).unwrap();
        at_root(fd.as_fd(), git).unwrap()
    }

    fn tree(name: &str, files: &[&str]) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("confine-control-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        for file in files {
            let path = dir.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        dir
    }

    #[test]
    fn rows_stand_in_order_and_once() {
        for table in [GIT, FILES] {
            for row in table {
                assert!(!row.reason.is_empty() && !row.path.starts_with('/') && !row.path.ends_with('/'));
            }
        }
        assert!(FILES.windows(2).all(|pair| pair[0].path < pair[1].path), "FILES is not sorted");
    }

    #[test]
    fn hooks_config_and_modules_are_guarded_and_free_lifts_all_of_it() {
        let dir = tree(
            "guard",
            &[
                ".git/HEAD",
                ".git/config",
                ".git/hooks/pre-commit",
                ".git/info/attributes",
                ".git/worktrees/w/config.worktree",
                ".git/modules/a/b/HEAD",
                ".git/modules/a/b/config",
                ".git/modules/a/b/modules/c/config",
                ".vscode/tasks.json",
                ".vscode/extensions.json",
                ".envrc",
                "src/.envrc",
            ],
        );
        let found = look(&dir, Git::Guard);
        let mut control: Vec<_> = found.control.iter().map(|path| path.to_str().unwrap()).collect();
        control.sort_unstable();
        assert_eq!(
            control,
            [
                ".envrc",
                ".git/config",
                ".git/hooks",
                ".git/info/attributes",
                ".git/modules/a/b/config",
                ".git/modules/a/b/modules/c/config",
                ".git/worktrees/w/config.worktree",
                ".vscode/tasks.json",
            ]
        );
        assert_eq!(found.git_dirs, [Path::new(".git")]);
        let free = look(&dir, Git::Free);
        assert!(free.control.is_empty());
        assert!(free.git_dirs.is_empty());
        let read_only = look(&dir, Git::ReadOnly);
        assert_eq!(read_only.control[0], Path::new(".git"));
        let below = |path: &PathBuf| path.starts_with(".git") && path != Path::new(".git");
        assert!(!read_only.control.iter().any(below), "the one row covers what lies below it");
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn symlinked_control_directories_are_not_followed() {
        let outside = tree("outside", &["tasks.json"]);
        let dir = tree("symlink", &[".git"]);
        std::os::unix::fs::symlink(&outside, dir.join(".vscode")).unwrap();
        let found = look(&dir, Git::Guard);
        assert!(found.control.is_empty());
        assert_eq!(found.git_files, [Path::new(".git")]);
        fs::remove_dir_all(dir).unwrap();
        fs::remove_dir_all(outside).unwrap();
    }
}
