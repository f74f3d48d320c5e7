//! What speaks against granting a path. The one judgement behind every suggested option: `confine trace`, `confine
//! why` and the hints of refusals.

use std::path::{Component, Path, PathBuf};

use super::caller;
use super::control::{FILES, GIT};
use super::system::{BROAD, CREDENTIALS, HIDDEN};
use super::toolchains::TOOLCHAINS;

/// Run-time directories: sockets of services, and what they trust.
const RUN: &[&str] = &["/run", "/var/run"];

const SYSTEM: &[&str] =
    &["/usr", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/boot", "/var", "/nix", "/gnu"];

/// Where the homes of people are, whatever the password file says.
const HOMES: &[&str] = &["/root", "/home", "/var/home"];

/// Shells run these at their start, and people keep tokens in them.
const SHELLS: &[&str] = &[
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".config/fish",
    ".cshrc",
    ".kshrc",
    ".profile",
    ".tcshrc",
    ".zlogin",
    ".zprofile",
    ".zshenv",
    ".zshrc",
];

/// In a home, and writable: programs run what stands there, without being asked again.
const RUNS: &[(&str, &str)] = &[
    (".config/autostart", "run at the next login"),
    (".config/confine", "confine's own policy"),
    (".config/environment.d", "the environment of the next login"),
    (".config/git", "names programs and hooks that git runs"),
    (".config/nvim", "an editor runs it"),
    (".config/systemd", "run at the next login"),
    (".emacs", "an editor runs it"),
    (".emacs.d", "an editor runs it"),
    (".gitconfig", "names programs and hooks that git runs"),
    (".gradle", "every build runs it"),
    (".local/bin", "programs that PATH finds"),
    (".ssh/authorized_keys", "who may log in"),
    (".ssh/rc", "run at the next login"),
    (".vim", "an editor runs it"),
    (".vimrc", "an editor runs it"),
    ("bin", "programs that PATH finds"),
    ("go/bin", "programs that PATH finds"),
];

/// Names of files that hold secrets, wherever they lie.
const SECRET_NAMES: &[(Name, &str)] = &[
    (Name::Begins("id_"), "a private key of ssh"),
    (Name::Begins("ssh_host_"), "a host key of ssh"),
    (Name::Ends(".key"), "a private key"),
    (Name::Ends(".p12"), "a store of private keys"),
    (Name::Ends(".pfx"), "a store of private keys"),
    (Name::Ends(".jks"), "a store of private keys"),
    (Name::Ends(".kdbx"), "a store of passwords"),
    (Name::Ends(".keytab"), "Kerberos keys"),
    (Name::Ends(".ovpn"), "keys of a tunnel"),
    (Name::Is(".env"), "an environment file, which often holds credentials"),
    (Name::Begins(".env."), "an environment file, which often holds credentials"),
    (Name::Is(".Xauthority"), "whoever has it controls the display"),
    (Name::Is(".ICEauthority"), "whoever has it controls the session"),
    (Name::Is("rclone.conf"), "cloud credentials"),
    (Name::Is(".s3cfg"), "cloud credentials"),
    (Name::Is(".boto"), "cloud credentials"),
    (Name::Is(".dockercfg"), "registry credentials"),
    (Name::Is("gradle.properties"), "registry tokens and signing keys"),
    (Name::Is("kubeconfig"), "cluster credentials"),
    (Name::Ends(".kubeconfig"), "cluster credentials"),
    (Name::Ends(".tfstate"), "terraform's state, which holds the secrets it has made"),
    (Name::Ends(".tfvars"), "terraform's values with credentials"),
    (Name::Is("credentials.json"), "credentials"),
    (Name::Ends("_history"), "what was typed"),
];

/// A pattern for the last component of a path.
pub enum Name {
    Is(&'static str),
    Ends(&'static str),
    Begins(&'static str),
}

impl Name {
    pub fn matches(&self, name: &str) -> bool {
        match self {
            Name::Is(whole) => name == *whole,
            Name::Ends(end) => name.len() > end.len() && name.ends_with(end),
            Name::Begins(start) => name.len() > start.len() && name.starts_with(start),
        }
    }
}

/// Why granting this path is to be thought over twice. Judges names alone: whoever can look at the host asks for the
/// path and for what it leads to.
pub fn danger(path: &Path, home: &Path, writes: bool) -> Option<String> {
    let people = caller::homes();
    let people: Vec<&Path> = people.iter().map(PathBuf::as_path).filter(|at| *at != Path::new("/")).collect();
    let meets = |top: &Path| path.starts_with(top) || top.starts_with(path);
    if let Some((_, what)) = HIDDEN.iter().find(|(top, _)| meets(Path::new(top))) {
        return Some(format!("credentials: {what}"));
    }
    // In anybody's home, and in what looks like one.
    if let Some((_, what)) = CREDENTIALS.iter().find(|(row, _)| has(path, row)) {
        return Some(format!("credentials: {what}"));
    }
    let name = path.file_name().and_then(|name| name.to_str()).filter(|name| !name.ends_with(".pub"));
    if let Some((_, what)) = SECRET_NAMES.iter().find(|(row, _)| name.is_some_and(|name| row.matches(name))) {
        return Some(format!("credentials: {what}"));
    }
    if home == path {
        return Some("the whole of HOME".to_owned());
    }
    let above = |top: &Path| top.starts_with(path);
    if above(home) || people.iter().any(|at| above(at)) || HOMES.iter().any(|at| above(Path::new(at))) {
        return Some("the homes of people lie in it".to_owned());
    }
    if BROAD.iter().any(|broad| above(Path::new(broad))) {
        return Some("it holds much more than a project".to_owned());
    }
    if let Some(top) = RUN.iter().find(|top| path.starts_with(top)) {
        return Some(format!("{top}: sockets of services, and what services trust"));
    }
    let below = below_home(path, home, &people);
    if below.is_some_and(|below| below.as_os_str().is_empty()) {
        return Some("the whole of somebody's home".to_owned());
    }
    if let Some(below) = below
        && let Some(text) = in_home(below, writes)
    {
        return Some(text);
    }
    if writes { written(path) } else { None }
}

/// What of a path lies below somebody's home: below the deepest that holds it.
fn below_home<'a>(path: &'a Path, home: &Path, people: &[&Path]) -> Option<&'a Path> {
    let named = people.iter().copied().chain([home, Path::new("/root")]).filter(|at| *at != Path::new("/"));
    let deepest =
        named.filter_map(|at| path.strip_prefix(at).ok()).min_by_key(|rest| rest.components().count());
    // Of a user that the password file does not know.
    deepest.or_else(|| {
        let rest = ["/home", "/var/home"].iter().find_map(|top| path.strip_prefix(top).ok())?;
        let mut parts = rest.components();
        parts.next();
        Some(parts.as_path())
    })
}

fn in_home(below: &Path, writes: bool) -> Option<String> {
    let meets = |row: &str| below.starts_with(row) || Path::new(row).starts_with(below);
    if SHELLS.iter().any(|row| meets(row)) {
        return Some("a shell runs it outside, and it may hold secrets".to_owned());
    }
    if writes && let Some((row, what)) = RUNS.iter().find(|(row, _)| meets(row)) {
        return Some(format!("~/{row}: runs later outside: {what}"));
    }
    let tools = TOOLCHAINS.iter().find(|tools| below.starts_with(tools.path));
    match tools {
        Some(tools) if writes => {
            return Some(format!("~/{}: runs later outside: {}", tools.path, tools.reason));
        }
        Some(tools)
            if !tools.hidden.iter().any(|part| below.starts_with(Path::new(tools.path).join(part))) =>
        {
            return None;
        }
        _ => {}
    }
    let dotted = |part: Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
    below.components().any(dotted).then(|| {
        if writes {
            "hidden in a home: programs obey what stands there, outside".to_owned()
        } else {
            "hidden in a home: programs keep settings, tokens and histories there".to_owned()
        }
    })
}

/// What is dangerous to change wherever it lies.
fn written(path: &Path) -> Option<String> {
    if let Some(reason) = control(path) {
        return Some(format!("runs later outside: {reason}"));
    }
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if name.ends_with(".pth") || matches!(name, "sitecustomize.py" | "usercustomize.py") {
        return Some("runs later outside: python runs it at every start".to_owned());
    }
    let system = SYSTEM.iter().any(|top| path.starts_with(top));
    system.then(|| "a part of the system".to_owned())
}

/// The reason of the row that a path falls under, wherever its repository or workspace begins.
pub fn control(path: &Path) -> Option<&'static str> {
    let git = GIT.iter().find(|row| has(path, &format!(".git/{}", row.path)));
    git.or_else(|| FILES.iter().find(|row| has(path, row.path))).map(|row| row.reason)
}

/// Whether these components stand somewhere in the path, one after the other.
fn has(path: &Path, part: &str) -> bool {
    let all: Vec<_> = path.components().collect();
    let part: Vec<_> = Path::new(part).components().collect();
    all.windows(part.len()).any(|window| window == part.as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(path: &str, writes: bool) -> Option<String> {
        danger(Path::new(path), Path::new("/data/people/u"), writes)
    }

    #[test]
    fn what_programs_obey_in_any_home_is_dangerous_to_change() {
        for home in ["/data/people/u", "/root", "/home/other"] {
            for name in [
                ".config/confine/shell.toml",
                ".config/autostart",
                ".config/git/hooks",
                ".config/environment.d",
                ".config/nvim/init.lua",
                ".config/unheard-of",
                ".vim/plugin",
                ".emacs.d",
                ".gradle/init.d",
                ".nvm/versions",
                ".local/bin",
                ".local/lib/python3/site-packages/x.pth",
                ".unheard-of",
                "project/.hidden",
                "bin",
            ] {
                let path = format!("{home}/{name}");
                assert!(judged(&path, true).is_some(), "{path}");
            }
            for name in ["project", "src/a/build", "Documents/x.txt"] {
                let path = format!("{home}/{name}");
                assert_eq!(judged(&path, true), None, "{path}");
            }
        }
        for path in
            ["/srv/p/.git/hooks", "/srv/p/.envrc", "/srv/p/lib/x.pth", "/usr/local/bin", "/etc/cron.d"]
        {
            assert!(judged(path, true).is_some(), "{path}");
        }
        assert_eq!(judged("/srv/p/out", true), None);
    }

    #[test]
    fn secrets_in_any_home_are_dangerous_to_read_and_toolchains_are_not() {
        for home in ["/data/people/u", "/root", "/home/other"] {
            for name in [
                ".ssh/id_rsa",
                ".Xauthority",
                ".config/rclone/rclone.conf",
                ".s3cfg",
                ".boto",
                ".dockercfg",
                ".m2/settings.xml",
                ".gradle/gradle.properties",
                ".python_history",
                ".cargo/credentials.toml",
                ".gem/credentials",
                ".nvm/.npmrc",
                ".bashrc",
                ".unheard-of",
            ] {
                let path = format!("{home}/{name}");
                assert!(judged(&path, false).is_some(), "{path}");
            }
            for name in
                ["project", ".cargo/registry", ".rustup", ".nvm/versions/x", ".m2/repository", "go/pkg/mod"]
            {
                let path = format!("{home}/{name}");
                assert_eq!(judged(&path, false), None, "{path}");
            }
        }
        for path in ["/srv/p/server.key", "/srv/p/.env", "/srv/p/id_ed25519", "/srv/p/terraform.tfstate"] {
            assert!(judged(path, false).is_some(), "{path}");
        }
        assert_eq!(judged("/srv/p/id_ed25519.pub", false), None);
    }

    #[test]
    fn what_holds_homes_or_run_time_files_is_dangerous_either_way() {
        for path in [
            "/",
            "/root",
            "/home",
            "/home/other",
            "/data",
            "/data/people",
            "/data/people/u",
            "/run",
            "/run/dbus",
            "/run/user/7/bus",
            "/var/run/docker.sock",
            "/var",
            "/srv",
        ] {
            for writes in [false, true] {
                assert!(judged(path, writes).is_some(), "{path} {writes}");
            }
        }
        for path in ["/srv/p", "/data/x"] {
            assert_eq!((judged(path, false), judged(path, true)), (None, None), "{path}");
        }
    }
}
