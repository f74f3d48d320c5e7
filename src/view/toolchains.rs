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
    /// Written to even by offline builds: shown through an overlay whose writes are private to the run.
    pub layered: bool,
}

const fn tools(path: &'static str, variable: Option<&'static str>) -> Toolchain {
    Toolchain { path, variable, hidden: &[], layered: false }
}

const fn cache(path: &'static str, variable: Option<&'static str>) -> Toolchain {
    Toolchain { path, variable, hidden: &[], layered: true }
}

/// Each row is whole, so that what a tool finds beside itself is there.
pub const TOOLCHAINS: &[Toolchain] = &[
    // cargo takes a lock in CARGO_HOME and unpacks crates below it, offline too.
    Toolchain {
        path: ".cargo",
        variable: Some("CARGO_HOME"),
        hidden: &["credentials", "credentials.toml", "credentials.bak", "credentials.toml.bak"],
        layered: true,
    },
    tools(".rustup", Some("RUSTUP_HOME")),
    tools(".pyenv", Some("PYENV_ROOT")),
    tools(".rbenv", Some("RBENV_ROOT")),
    tools(".nodenv", Some("NODENV_ROOT")),
    tools(".goenv", Some("GOENV_ROOT")),
    Toolchain { path: ".nvm", variable: Some("NVM_DIR"), hidden: &[".npmrc"], layered: false },
    tools(".volta", Some("VOLTA_HOME")),
    tools(".local/share/fnm", Some("FNM_DIR")),
    tools(".sdkman", Some("SDKMAN_DIR")),
    tools(".jdks", None),
    tools(".asdf", Some("ASDF_DATA_DIR")),
    tools(".local/share/mise", Some("MISE_DATA_DIR")),
    tools(".config/mise", None),
    tools(".local/share/uv", Some("UV_PYTHON_INSTALL_DIR")),
    tools(".local/share/pipx", Some("PIPX_HOME")),
    tools(".local/pipx", None),
    tools(".local/lib", None),
    Toolchain {
        path: ".bun",
        variable: Some("BUN_INSTALL"),
        hidden: &[".npmrc", "bunfig.toml"],
        layered: false,
    },
    tools(".deno/bin", None),
    tools(".opam", Some("OPAMROOT")),
    tools(".ghcup", None),
    tools(".juliaup", None),
    tools(".dotnet", Some("DOTNET_ROOT")),
    tools(".nix-profile", None),
    tools(".local/state/nix/profiles", None),
    tools(".linuxbrew", None),
    tools("miniconda3", None),
    tools("miniforge3", None),
    tools("anaconda3", None),
    tools(".conda", None),
    tools("sdk/go", None),
    tools(".terminfo", None),
    cache("go/pkg/mod", Some("GOMODCACHE")),
    cache(".cache/go-build", Some("GOCACHE")),
    cache(".npm/_cacache", None),
    cache(".cache/yarn", None),
    cache(".yarn/berry/cache", None),
    cache(".local/share/pnpm", Some("PNPM_HOME")),
    cache(".cache/pip", Some("PIP_CACHE_DIR")),
    cache(".cache/uv", Some("UV_CACHE_DIR")),
    cache(".cache/pypoetry", Some("POETRY_CACHE_DIR")),
    cache(".cache/pre-commit", Some("PRE_COMMIT_HOME")),
    cache(".gradle/caches", None),
    cache(".gradle/wrapper", None),
    cache(".m2/repository", None),
    cache(".m2/wrapper", None),
    cache(".bundle/cache", None),
    Toolchain { path: ".gem", variable: Some("GEM_HOME"), hidden: &["credentials"], layered: true },
    cache(".nuget/packages", Some("NUGET_PACKAGES")),
    cache(".cache/deno", Some("DENO_DIR")),
    cache(".cache/ccache", Some("CCACHE_DIR")),
    cache(".ccache", None),
    cache(".cache/sccache", Some("SCCACHE_DIR")),
    cache(".cache/ms-playwright", Some("PLAYWRIGHT_BROWSERS_PATH")),
    cache(".cache/electron", None),
    cache(".cache/node-gyp", None),
    cache(".cache/bazel", None),
    cache(".stack", Some("STACK_ROOT")),
    cache(".cabal/packages", None),
    cache(".mix", Some("MIX_HOME")),
    Toolchain { path: ".hex", variable: Some("HEX_HOME"), hidden: &["hex.config"], layered: true },
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
    const PROGRAMS: &[&str] = &["bin", "sbin", "shims", "scripts", "Scripts", "cmd"];
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
