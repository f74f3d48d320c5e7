//! Git's links out of a workspace: linked worktrees and submodules. A `.git` file is written by whoever owns the
//! workspace, so it grants nothing by itself: the directory it names must name the workspace back.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::caller::{Caller, read_bounded};
use super::git_settings::{for_each, plain};
use super::trace::{PATH_MAX, Traced, file_type, trace};
use super::{Backing, View};
use crate::error::Result;

const LIMIT: u64 = 1 << 20;

pub fn add(view: &mut View, caller: &Caller) -> Result<()> {
    let workspaces: Vec<PathBuf> =
        view.roots.iter().filter(|root| root.workspace).map(|root| root.path.clone()).collect();
    for workspace in workspaces {
        // The workspace may lie below the top of its worktree; git looks upwards, and so does this.
        let Some((top, named)) = find(&workspace) else { continue };
        let Some(common) = common_directory(&top, &named, caller) else { continue };
        if view.nearest(&common.path).is_none_or(|entry| entry.place.path != common.path) {
            view.show_known(common, true, Backing::Bind, "the repository that this worktree belongs to");
        }
    }
    Ok(())
}

/// The nearest `.git` file at or above a workspace, and the directory it names.
fn find(workspace: &Path) -> Option<(PathBuf, PathBuf)> {
    for top in workspace.ancestors() {
        let path = top.join(".git");
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_file() => {
                let bytes = read_bounded(&path, LIMIT).ok()?;
                return Some((top.to_owned(), top.join(one_line(bytes.strip_prefix(b"gitdir:")?)?)));
            }
            Ok(_) => return None,
            Err(_) => {}
        }
    }
    None
}

fn one_line(bytes: &[u8]) -> Option<PathBuf> {
    let line = bytes.trim_ascii();
    // Whatever is longer names nothing.
    (line.len() <= PATH_MAX).then(|| std::ffi::OsStr::from_bytes(line).into())
}

/// The directory to show, if the reference holds in both directions and its owner is the caller.
fn common_directory(top: &Path, named: &Path, caller: &Caller) -> Option<Traced> {
    let git_dir = trace(named).ok()?;
    let own = |traced: &Traced| {
        traced.stat().is_ok_and(|stat| file_type(&stat) == FileType::Directory && stat.st_uid == caller.uid)
    };
    if !own(&git_dir) || git_dir.path.starts_with(top) {
        return None;
    }
    let read = |name: &str| read_bounded(&git_dir.path.join(name), LIMIT).ok();
    if let Some(back) = read("gitdir") {
        // COMMON/worktrees/NAME, by its place and not by its own `commondir` file.
        let worktrees = git_dir.path.parent()?;
        let back = trace(&git_dir.path.join(one_line(&back)?)).ok()?;
        if worktrees.file_name()? != "worktrees" || back.path != top.join(".git") {
            return None;
        }
        let common = trace(worktrees.parent()?).ok()?;
        return (own(&common) && is_git_dir(&common.path)).then_some(common);
    }
    // A submodule: its settings name the work tree.
    let mut tree = None;
    for_each(&read("config")?, |_, key, value| {
        if key.eq_ignore_ascii_case("worktree") {
            tree = Some(plain(value).to_owned()).filter(|tree| tree.len() <= PATH_MAX);
        }
        tree.is_none()
    });
    let tree = tree?;
    let back = trace(&git_dir.path.join(tree)).ok()?;
    (back.path == top && is_git_dir(&git_dir.path)).then_some(git_dir)
}

/// By its contents, and by its name: an earlier command in a wider workspace could have dressed any directory of it
/// as a repository, and all of that would be shown.
fn is_git_dir(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    let named = bytes.ends_with(b".git") || path.components().any(|part| part.as_os_str() == ".git");
    named && ["HEAD", "objects", "refs"].iter().all(|name| path.join(name).exists())
}
