//! Which variables the command gets: an allowlist, what was asked for by name, and what confine sets. Pure.
//! Everything else is dropped and named, for a caller's environment is where its tokens live.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use crate::policy::Environment;
use crate::policy::env_file::is_reserved;
use crate::view::system::CA_VARIABLES;

/// Names that are passed on, and why. A name that ends with `*` stands for all that begin so. Names are exact
/// wherever secrets share the prefix: CI_JOB_TOKEN, CARGO_REGISTRY_TOKEN, npm_config_//host/:_authToken.
pub const ALLOWED: &[(&[&str], &str)] = &[
    (&["LANG", "LANGUAGE", "LC_*", "LOCPATH", "LOCALE_ARCHIVE"], "locale: messages, sorting, character set"),
    (
        &[
            "TERM",
            "COLORTERM",
            "TERMINFO",
            "TERMINFO_DIRS",
            "TERM_PROGRAM",
            "TERM_PROGRAM_VERSION",
            "COLUMNS",
            "LINES",
        ],
        "terminal: what it can show and how large it is",
    ),
    (
        &["NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CARGO_TERM_COLOR", "LS_COLORS"],
        "terminal: whether and how to colour",
    ),
    (&["PATH"], "programs, in the caller's order"),
    (&["HOME", "USER", "LOGNAME", "SHELL"], "who runs it; without SHELL tmux and script fail"),
    (&["PWD"], "the name by which the directory was reached, links kept; shells check it"),
    (&["TZ", "TZDIR"], "time zone"),
    (CA_VARIABLES, "certificate authorities: public, and each runtime has a name of its own"),
    (&["CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "RUST_BACKTRACE", "RUST_LOG"], "toolchain: Rust"),
    (&["GOPATH", "GOROOT", "GOTOOLCHAIN", "GOMODCACHE", "GOBIN"], "toolchain: Go"),
    (
        &[
            "JAVA_HOME",
            "JDK_HOME",
            "M2_HOME",
            "MAVEN_HOME",
            "GRADLE_HOME",
            "SDKMAN_DIR",
            "SDKMAN_CANDIDATES_DIR",
        ],
        "toolchain: Java",
    ),
    (
        &[
            "PYENV_ROOT",
            "PYENV_VERSION",
            "VIRTUAL_ENV",
            "CONDA_PREFIX",
            "CONDA_DEFAULT_ENV",
            "CONDA_EXE",
            "PYTHONIOENCODING",
            "PYTHONUTF8",
            "PYTHONUNBUFFERED",
        ],
        "toolchain: Python",
    ),
    (
        &[
            "NVM_DIR",
            "NVM_BIN",
            "FNM_DIR",
            "FNM_MULTISHELL_PATH",
            "VOLTA_HOME",
            "PNPM_HOME",
            "BUN_INSTALL",
            "DENO_INSTALL",
            "DENO_DIR",
            "COREPACK_HOME",
        ],
        "toolchain: JavaScript",
    ),
    (&["RBENV_ROOT", "RBENV_VERSION", "GEM_HOME", "GEM_PATH", "RUBY_VERSION"], "toolchain: Ruby"),
    (&["ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR"], "toolchain: version managers"),
    (
        &[
            "NIX_PROFILES",
            "NIX_PATH",
            "GUIX_PROFILE",
            "GUIX_LOCPATH",
            "HOMEBREW_PREFIX",
            "HOMEBREW_CELLAR",
            "HOMEBREW_REPOSITORY",
        ],
        "toolchain: package managers",
    ),
    (
        &["DOTNET_ROOT", "ANDROID_HOME", "ANDROID_SDK_ROOT", "FLUTTER_ROOT", "GHCUP_INSTALL_BASE_PREFIX"],
        "toolchain: others",
    ),
    (
        &[
            "CI",
            "CONTINUOUS_INTEGRATION",
            "GITHUB_ACTIONS",
            "GITLAB_CI",
            "BUILDKITE",
            "CIRCLECI",
            "TRAVIS",
            "JENKINS_URL",
            "TEAMCITY_VERSION",
            "TF_BUILD",
        ],
        "whether this is an automatic build: tools ask no questions then",
    ),
    (&["DEBIAN_FRONTEND", "GIT_TERMINAL_PROMPT"], "whether to ask questions"),
    (&["GIT_AUTHOR_*", "GIT_COMMITTER_*"], "in whose name commits are made"),
    (
        &["EDITOR", "VISUAL", "PAGER", "LESS"],
        "what opens a text; runs inside, with no more rights than the rest",
    ),
    (&["SOURCE_DATE_EPOCH"], "reproducible builds"),
];

/// Of those, what `--clear-env` leaves: without them hardly a program starts, and none of them is a secret.
const LEAST: &[&str] =
    &["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TZ", "LANG", "LANGUAGE", "LC_*"];

/// What the command gets, and what it does not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Composed {
    /// Sorted by name, each name once.
    pub pairs: Vec<(OsString, OsString)>,
    /// Why each of them is passed, in the same order.
    pub given: Vec<Given>,
    /// Names that the caller has and that are not passed on, sorted.
    pub dropped: Vec<OsString>,
    /// Names asked for by `--env NAME` that the caller does not have, sorted.
    pub absent: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Given {
    /// A row of the allowlist, and its reason.
    Allowed(&'static str),
    /// Set by confine itself.
    Fixed,
    /// `--env NAME`
    Asked,
    /// `--env-file`
    File,
    /// `--env NAME=VALUE`
    Set,
}

/// From weakest to strongest: the caller's allowed variables; `fixed`; what was asked for by name, which is
/// `--env NAME`, then `--env-file`, then `--env NAME=VALUE` (of a layer that is further away than a file: before
/// that); and CONFINE and CONFINE_* of `fixed`, always. Of
/// two equal names in the caller's block the first counts, as for getenv(3); elsewhere the last.
pub fn compose(
    caller: impl IntoIterator<Item = (OsString, OsString)>,
    policy: &Environment,
    file_pairs: &[(OsString, OsString)],
    fixed: &[(OsString, OsString)],
) -> Composed {
    let mut pairs: BTreeMap<OsString, (OsString, Given)> = BTreeMap::new();
    let mut passed: BTreeMap<&OsStr, OsString> = BTreeMap::new();
    let mut seen: BTreeSet<OsString> = BTreeSet::new();
    let mut dropped: BTreeSet<OsString> = BTreeSet::new();

    for (name, value) in caller {
        // What no setenv(3) makes: it could not be passed on as what it is.
        if !is_name(&name) || !seen.insert(name.clone()) {
            continue;
        }
        if let Some(asked) = policy.pass.iter().find(|asked| **asked == name) {
            passed.insert(asked, value);
            continue;
        }
        match allowed(&name, policy.clear) {
            Some(reason) if !carries_password(&value) => {
                pairs.insert(name, (value, Given::Allowed(reason)));
            }
            _ => {
                dropped.insert(name);
            }
        }
    }
    let absent: BTreeSet<&OsString> = policy.pass.iter().filter(|name| !seen.contains(*name)).collect();
    let absent = absent.into_iter().cloned().collect();

    let all = |list: &[(OsString, OsString)], given: Given| {
        list.iter().cloned().map(move |(name, value)| (name, (value, given))).collect::<Vec<_>>()
    };
    pairs.extend(all(fixed, Given::Fixed));
    pairs.extend(passed.into_iter().map(|(name, value)| (name.to_owned(), (value, Given::Asked))));
    pairs.extend(all(&policy.set_below_files, Given::Set));
    pairs.extend(all(file_pairs, Given::File));
    pairs.extend(all(&policy.set, Given::Set));
    pairs.retain(|name, _| is_name(name) && !is_reserved(name));
    pairs.extend(all(fixed, Given::Fixed).into_iter().filter(|(name, _)| is_reserved(name)));

    dropped.retain(|name| !pairs.contains_key(name));
    let (pairs, given) = pairs.into_iter().map(|(name, (value, given))| ((name, value), given)).unzip();
    Composed { pairs, given, dropped: dropped.into_iter().collect(), absent }
}

fn is_name(name: &OsStr) -> bool {
    !name.is_empty() && !name.as_bytes().iter().any(|&byte| byte == b'=' || byte == 0)
}

/// The reason of the row that lets a variable of this name pass; under `--clear-env` few do.
pub fn allowed(name: &OsStr, clear: bool) -> Option<&'static str> {
    let name = name.as_bytes();
    let matches = |allowed: &&str| match allowed.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix.as_bytes()),
        None => name == allowed.as_bytes(),
    };
    if clear && !LEAST.iter().any(matches) {
        return None;
    }
    ALLOWED.iter().find(|(names, _)| names.iter().any(matches)).map(|(_, reason)| *reason)
}

/// Whether some URL in the value names a user: `scheme://user:password@host` or `scheme://token@host`.
/// Whoever wants that passed on says so by name.
fn carries_password(value: &OsStr) -> bool {
    let mut rest = value.as_bytes();
    while let Some(start) = rest.windows(3).position(|bytes| bytes == b"://") {
        rest = &rest[start + 3..];
        let end = |byte: &u8| matches!(byte, b'/' | b'?' | b'#' | b' ' | b',' | b'"' | b'\'');
        let authority = &rest[..rest.iter().position(end).unwrap_or(rest.len())];
        if authority.contains(&b'@') {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests;
