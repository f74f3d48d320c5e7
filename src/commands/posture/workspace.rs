//! What lies in a workspace and runs outside by itself: most of it is guarded inside once it is there, and whoever put
//! it there before has had their way.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};

use super::{Findings, Rule, Setup, Severity};
use crate::error::{Error, Result, show};
use crate::view::changes::{self, Kind, Present, Root};
use crate::view::git_settings;

const HOOK: Rule = Rule {
    id: "git-hook",
    severity: Severity::Medium,
    why: "git runs it outside, with all your rights, on commit, checkout, merge or push",
    fix: "read {}, and remove it unless you put it there",
};
const SETTING: Rule = Rule {
    id: "git-setting",
    severity: Severity::High,
    why: "git runs what it names outside, with all your rights, on commands as plain as status and diff",
    fix: "read {}, and take the setting out unless you made it",
};
const HOOKS_PATH: Rule = Rule {
    id: "git-hooks-path",
    severity: Severity::High,
    why: "hooks are then run from that directory, which no guard covers when it lies in the workspace",
    fix: "git config --file {} --unset core.hooksPath, or show the directory with `--ro`",
};
const ALIAS: Rule = Rule {
    id: "git-alias",
    severity: Severity::Low,
    why: "an alias of one repository can run any program when it is used",
    fix: "read {}, and take the alias out unless you made it",
};
const LEADS: Rule = Rule {
    id: "git-leads-elsewhere",
    severity: Severity::Medium,
    why: "it leads git to another directory, whose settings it then reads, outside of any guard",
    fix: "read {}, and remove it unless git made it (worktrees and clones with --reference have one)",
};
const NESTED: Rule = Rule {
    id: "nested-repository",
    severity: Severity::Low,
    why: "its hooks and settings run when git is used in it; one that is made later is not guarded in that run",
    fix: "use git in {} inside confine only, or remove it",
};
const TOOL: Rule = Rule {
    id: "runs-by-itself",
    severity: Severity::Low,
    why: "a tool outside runs what it says; inside it is read-only once it exists",
    fix: "read {} before the tool does",
};
const SETUID: Rule = Rule {
    id: "setuid-file",
    severity: Severity::High,
    why: "whoever runs it outside has the rights of its owner or group",
    fix: "chmod ug-s {}",
};
const GLOBAL_HOOKS: Rule = Rule {
    id: "git-relative-hooks-path",
    severity: Severity::High,
    why: "every repository's own directory of that name then holds hooks, which a command may write and no guard covers",
    fix: "git config --global --unset core.hooksPath, or give it an absolute path",
};
const TOO_LARGE: Rule = Rule {
    id: "workspace-not-looked-at",
    severity: Severity::High,
    why: "it is more than any honest workspace has, and what it holds may run outside by itself",
    fix: "look at {} yourself, and remove it unless you made it",
};
const WRITABLE_BY_OTHERS: Rule = Rule {
    id: "workspace-writable-by-others",
    severity: Severity::Medium,
    why: "other users can put files, links and hooks into the workspace while commands run there",
    fix: "chmod go-w {}",
};

/// Keys of git's settings that name a program, as git-config(1) lists them; a `*` stands for a name.
const PROGRAMS: &[&str] = &[
    "core.fsmonitor",
    "core.pager",
    "core.editor",
    "core.sshcommand",
    "core.askpass",
    "core.gitproxy",
    "core.alternaterefscommand",
    "credential.helper",
    "credential.*.helper",
    "diff.external",
    "diff.*.command",
    "diff.*.textconv",
    "difftool.*.cmd",
    "filter.*.clean",
    "filter.*.process",
    "filter.*.smudge",
    "gpg.program",
    "gpg.*.program",
    "include.path",
    "includeif.*.path",
    "interactive.difffilter",
    "merge.*.driver",
    "mergetool.*.cmd",
    "pager.*",
    "protocol.ext.allow",
    "remote.*.receivepack",
    "remote.*.uploadpack",
    "remote.*.vcs",
    "sendemail.smtpserver",
    "sequence.editor",
    "submodule.*.update",
    "uploadpack.packobjectshook",
    "web.browser",
];

pub fn look(setup: &Setup, findings: &mut Findings) -> Result<()> {
    global(setup, findings);
    let mut roots = Vec::new();
    for path in &setup.workspaces {
        let fd = openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| Error::path("look into", path, errno))?;
        if fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o022 != 0) {
            let what = format!("{} may be written by others", show(path.as_os_str()));
            findings.add(&WRITABLE_BY_OTHERS, Some(path), what);
        }
        roots.push(Root { path: path.clone(), fd });
    }
    let snapshot = changes::look(&roots, &mut || !setup.time_is_up());
    for present in snapshot.present() {
        judge(setup, findings, &present);
    }
    for unseen in snapshot.unseen() {
        if unseen.beyond {
            let what = format!("{}: {}", show(unseen.path.as_os_str()), unseen.reason);
            findings.add(&TOO_LARGE, Some(&unseen.path), what);
        } else {
            findings.unseen(&unseen.path, &unseen.reason);
        }
    }
    if !snapshot.is_complete()
        && let Some(root) = setup.workspaces.first()
    {
        findings.unseen(root, "not all of it could be looked through");
    }
    Ok(())
}

fn judge(setup: &Setup, findings: &mut Findings, present: &Present<'_>) {
    let path = present.path;
    let name = show(path.as_os_str());
    let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match present.kind {
        Kind::Setuid => findings.add(&SETUID, Some(path), format!("{name} has a setuid or setgid bit")),
        Kind::Repository => {
            let own = setup.workspaces.iter().any(|root| path == root.join(".git") || path == root);
            if !own {
                findings.add(&NESTED, Some(path), format!("{name} is a repository inside the workspace"));
            }
        }
        Kind::Git if matches!(file, "config" | "config.worktree") && !present.keys.is_empty() => {
            settings(findings, path, &present.keys);
        }
        Kind::Git if matches!(file, "config" | "config.worktree") => {}
        Kind::Git if ["commondir", "gitdir", "alternates"].contains(&file) => {
            findings.add(&LEADS, Some(path), format!("{name} {}", present.reason));
        }
        Kind::Git if path.parent().is_some_and(|parent| parent.ends_with("hooks")) => {
            // git runs only what may be executed.
            let runs = fs::symlink_metadata(path).is_ok_and(|found| {
                found.is_symlink() || found.is_file() && found.permissions().mode() & 0o111 != 0
            });
            if runs && !file.ends_with(".sample") {
                findings.add(&HOOK, Some(path), format!("{name} is a hook"));
            }
        }
        Kind::Git => {}
        Kind::Tool => findings.add(&TOOL, Some(path), format!("{name}: {}", present.reason)),
    }
}

fn settings(findings: &mut Findings, path: &Path, keys: &[&str]) {
    for key in keys {
        let rule = if *key == "core.hookspath" {
            &HOOKS_PATH
        } else if key.starts_with("alias.") {
            &ALIAS
        } else if PROGRAMS.iter().any(|row| matches(row, key)) {
            &SETTING
        } else {
            continue;
        };
        findings.add(rule, Some(path), format!("{} sets {}", show(path.as_os_str()), show(key.as_ref())));
    }
}

fn matches(row: &str, key: &str) -> bool {
    match row.split_once('*') {
        None => row == key,
        Some((before, after)) => {
            key.len() > before.len() + after.len() && key.starts_with(before) && key.ends_with(after)
        }
    }
}

/// The user's own settings hold for every workspace.
fn global(setup: &Setup, findings: &mut Findings) {
    let files = setup.home.iter().map(|home| home.join(".gitconfig"));
    for path in files.chain(setup.config.iter().map(|config| config.join("git/config"))) {
        let Ok(bytes) = crate::view::caller::read_bounded(&path, 1 << 20) else { continue };
        git_settings::for_each(&bytes, |_, key, value| {
            let value = git_settings::plain(value);
            if key.eq_ignore_ascii_case("hookspath") && !value.starts_with(['/', '~']) {
                let what =
                    format!("{} sets core.hooksPath to {}", show(path.as_os_str()), show(value.as_ref()));
                findings.add(&GLOBAL_HOOKS, Some(&path), what);
            }
            true
        });
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stands_for_one_name_or_more_and_never_for_none() {
        for (row, key, expected) in [
            ("core.fsmonitor", "core.fsmonitor", true),
            ("core.fsmonitor", "core.fsmonitors", false),
            ("filter.*.clean", "filter.lfs.clean", true),
            ("filter.*.clean", "filter.clean", false),
            ("pager.*", "pager.log", true),
            ("pager.*", "pager.", false),
        ] {
            assert_eq!(matches(row, key), expected, "{row} {key}");
        }
    }
}
