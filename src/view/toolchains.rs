//! Toolchains and caches that live in a home directory: tables, and what PATH leads to.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A language's tools, relative to HOME or where a variable says. Shown read-only.
pub struct Toolchain {
    pub path: &'static str,
    pub variable: Option<&'static str>,
    /// Parts that hold credentials.
    pub hidden: &'static [&'static str],
    /// Written to even by offline builds: shown through an overlay whose writes are private, and kept with `--state` alone.
    pub layered: bool,
    pub reason: &'static str,
}

const fn tools(path: &'static str, variable: Option<&'static str>, reason: &'static str) -> Toolchain {
    Toolchain { path, variable, hidden: &[], layered: false, reason }
}

const fn cache(path: &'static str, variable: Option<&'static str>, reason: &'static str) -> Toolchain {
    Toolchain { path, variable, hidden: &[], layered: true, reason }
}

/// Each row is whole, so that what a tool finds beside itself is there.
pub const TOOLCHAINS: &[Toolchain] = &[
    // cargo takes a lock in CARGO_HOME and unpacks crates below it, offline too.
    Toolchain {
        path: ".cargo",
        variable: Some("CARGO_HOME"),
        hidden: &["credentials", "credentials.toml", "credentials.bak", "credentials.toml.bak"],
        layered: true,
        reason: "Rust: cargo takes a lock here and unpacks crates, offline too",
    },
    tools(".rustup", Some("RUSTUP_HOME"), "Rust toolchains"),
    tools(".pyenv", Some("PYENV_ROOT"), "Python versions"),
    tools(".rbenv", Some("RBENV_ROOT"), "Ruby versions"),
    tools(".nodenv", Some("NODENV_ROOT"), "Node versions"),
    tools(".goenv", Some("GOENV_ROOT"), "Go versions"),
    Toolchain {
        path: ".nvm",
        variable: Some("NVM_DIR"),
        hidden: &[".npmrc"],
        layered: false,
        reason: "Node versions",
    },
    tools(".volta", Some("VOLTA_HOME"), "Node tools"),
    tools(".local/share/fnm", Some("FNM_DIR"), "Node versions"),
    tools(".sdkman", Some("SDKMAN_DIR"), "JVM tools"),
    tools(".jdks", None, "JDKs of an editor"),
    tools(".asdf", Some("ASDF_DATA_DIR"), "versions of many tools"),
    tools(".local/share/mise", Some("MISE_DATA_DIR"), "versions of many tools"),
    tools(".config/mise", None, "which versions mise picks"),
    tools(".local/share/uv", Some("UV_PYTHON_INSTALL_DIR"), "Python versions of uv"),
    tools(".local/share/pipx", Some("PIPX_HOME"), "Python programs"),
    tools(".local/pipx", None, "Python programs, older place"),
    tools(".local/lib", None, "Python packages of the user"),
    Toolchain {
        path: ".bun",
        variable: Some("BUN_INSTALL"),
        hidden: &[".npmrc", "bunfig.toml"],
        layered: false,
        reason: "bun and its global packages",
    },
    tools(".deno/bin", None, "deno and its programs"),
    tools(".opam", Some("OPAMROOT"), "OCaml switches"),
    tools(".ghcup", None, "Haskell toolchains"),
    tools(".juliaup", None, "Julia versions"),
    tools(".dotnet", Some("DOTNET_ROOT"), ".NET SDKs"),
    tools(".nix-profile", None, "programs of the Nix profile"),
    tools(".local/state/nix/profiles", None, "generations of the Nix profile"),
    tools(".linuxbrew", None, "Homebrew"),
    tools("miniconda3", None, "conda environments"),
    tools("miniforge3", None, "conda environments"),
    tools("anaconda3", None, "conda environments"),
    tools(".conda", None, "conda environments and packages"),
    tools("sdk/go", None, "Go versions"),
    tools(".terminfo", None, "terminal descriptions"),
    cache("go/pkg/mod", Some("GOMODCACHE"), "Go modules: locked while read"),
    cache(".cache/go-build", Some("GOCACHE"), "Go build cache"),
    cache(".npm/_cacache", None, "npm cache"),
    cache(".cache/yarn", None, "yarn cache"),
    cache(".yarn/berry/cache", None, "yarn cache, newer"),
    cache(".local/share/pnpm", Some("PNPM_HOME"), "pnpm store and programs"),
    cache(".cache/pip", Some("PIP_CACHE_DIR"), "pip cache"),
    cache(".cache/uv", Some("UV_CACHE_DIR"), "uv cache: locked while read"),
    cache(".cache/pypoetry", Some("POETRY_CACHE_DIR"), "poetry cache"),
    cache(".cache/pre-commit", Some("PRE_COMMIT_HOME"), "hook environments of pre-commit"),
    cache(".gradle/caches", None, "Gradle caches: locked while read"),
    cache(".gradle/wrapper", None, "Gradle versions"),
    cache(".m2/repository", None, "Maven artifacts"),
    cache(".m2/wrapper", None, "Maven versions"),
    cache(".bundle/cache", None, "bundler cache"),
    Toolchain {
        path: ".gem",
        variable: Some("GEM_HOME"),
        hidden: &["credentials"],
        layered: true,
        reason: "Ruby gems of the user",
    },
    cache(".nuget/packages", Some("NUGET_PACKAGES"), "NuGet packages"),
    cache(".cache/deno", Some("DENO_DIR"), "deno cache"),
    cache(".cache/ccache", Some("CCACHE_DIR"), "compiler cache"),
    cache(".ccache", None, "compiler cache, older place"),
    cache(".cache/sccache", Some("SCCACHE_DIR"), "compiler cache"),
    cache(".cache/ms-playwright", Some("PLAYWRIGHT_BROWSERS_PATH"), "browsers of playwright"),
    cache(".cache/electron", None, "electron builds"),
    cache(".cache/node-gyp", None, "headers for native Node modules"),
    cache(".cache/bazel", None, "bazel repositories and builds"),
    cache(".stack", Some("STACK_ROOT"), "Haskell packages"),
    cache(".cabal/packages", None, "Haskell packages"),
    cache(".mix", Some("MIX_HOME"), "Elixir archives"),
    Toolchain {
        path: ".hex",
        variable: Some("HEX_HOME"),
        hidden: &["hex.config"],
        layered: true,
        reason: "Elixir packages",
    },
];

/// Directories on PATH that lead nowhere a Linux command needs: other systems' disks, setuid wrappers.
const LEFT_OUT: &[&str] = &["/mnt/c", "/mnt/d", "/run/wrappers", "/proc", "/dev", "/sys"];

/// The absolute directories of PATH in order.
pub fn path_directories(path: &OsStr) -> impl Iterator<Item = PathBuf> + '_ {
    path.as_bytes()
        .split(|&byte| byte == b':')
        .map(|bytes| PathBuf::from(OsStr::from_bytes(bytes)))
        .filter(|dir| dir.is_absolute() && !LEFT_OUT.iter().any(|left_out| dir.starts_with(left_out)))
}

/// The tree that a directory of programs belongs to: `PREFIX/bin` needs `PREFIX/lib` beside it. Where the parent
/// holds more than one program's files, only the directory itself.
pub fn prefix<'a>(directory: &'a Path, home: &Path) -> &'a Path {
    const PROGRAMS: &[&str] = &["bin", ".bin", "sbin", "shims", "scripts", "Scripts", "cmd"];
    let is_programs = directory.file_name().is_some_and(|name| PROGRAMS.iter().any(|bin| name == *bin));
    match directory.parent() {
        Some(parent) if is_programs && !is_shared(parent, home) => parent,
        _ => directory,
    }
}

/// Directories that hold the files of many programs or of the user.
fn is_shared(directory: &Path, home: &Path) -> bool {
    const IN_HOME: &[&str] =
        &["", ".local", ".config", ".cache", ".local/share", ".local/state", ".local/opt", "opt"];
    home.starts_with(directory)
        || IN_HOME.iter().any(|part| directory == home.join(part))
        || directory.components().count() <= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_directory_brings_its_whole_prefix() {
        let home = Path::new("/home/u");
        for (directory, wanted) in [
            ("/home/u/.local/opt/go/bin", "/home/u/.local/opt/go"),
            ("/home/u/.nvm/versions/node/v20/bin", "/home/u/.nvm/versions/node/v20"),
            ("/srv/tools/conda/bin", "/srv/tools/conda"),
            ("/home/u/p/node_modules/.bin", "/home/u/p/node_modules"),
        ] {
            assert_eq!(prefix(Path::new(directory), home), Path::new(wanted));
        }
    }

    #[test]
    fn a_shared_parent_is_not_brought_along() {
        let home = Path::new("/home/u");
        for directory in ["/home/u/bin", "/home/u/.local/bin", "/data/bin", "/home/u/scripts", "/srv/plain"] {
            assert_eq!(prefix(Path::new(directory), home), Path::new(directory));
        }
    }
}
