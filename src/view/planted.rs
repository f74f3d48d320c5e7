//! Which links nobody but the user has made. Any project may have been the workspace of an earlier command, of which
//! nothing is known here, and a link that it left there would show to this one whatever it leads to.

use std::path::{Path, PathBuf};

use rustix::fs::{CWD, StatxFlags, statx};

use super::system;
use super::toolchains::prefix;
use super::trace::Traced;

/// Whose links are believed.
#[derive(Debug, Default)]
pub struct Trust {
    /// The user's real one.
    pub home: PathBuf,
    /// What commands of root's leave belongs to root as well.
    pub root: bool,
}

impl Trust {
    /// Whether every link on the way was made by the user or the system, or leads no further than the tree of programs
    /// that it lies in.
    pub fn believes(&self, traced: &Traced) -> bool {
        traced.links.iter().all(|(at, _)| self.is_own(at) || self.stays(at, &traced.path))
    }

    fn stays(&self, at: &Path, to: &Path) -> bool {
        at.parent().is_some_and(|directory| to.starts_with(prefix(directory, &self.home)))
    }

    fn is_own(&self, at: &Path) -> bool {
        let Some(directory) = at.parent() else { return true };
        match directory.strip_prefix(&self.home) {
            // HOME itself is no workspace, and where programs and settings are installed is none either.
            Ok(below) => {
                let first = below.components().next().map(|name| name.as_os_str());
                below.as_os_str().is_empty()
                    || below == Path::new("bin")
                    || first.is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
            }
            Err(_) => self.is_system(directory),
        }
    }

    fn is_system(&self, directory: &Path) -> bool {
        const ANYBODYS: &[&str] = &["/tmp", "/var/tmp"];
        let readable = system::READABLE.iter().any(|(tree, _)| directory.starts_with(tree));
        let broad = system::BROAD.iter().chain(system::KERNEL).any(|broad| directory == Path::new(broad));
        if readable || broad && !ANYBODYS.iter().any(|anybody| directory == Path::new(anybody)) {
            return true;
        }
        let others = 0o022;
        let wanted = StatxFlags::UID | StatxFlags::MODE;
        !self.root
            && statx(CWD, directory, rustix::fs::AtFlags::empty(), wanted)
                .is_ok_and(|stat| stat.stx_uid == 0 && stat.stx_mode & others == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn believes(root: bool, links: &[&str], to: &str) -> bool {
        let trust = Trust { home: "/home/u".into(), root };
        let links = links.iter().map(|at| (PathBuf::from(at), PathBuf::new())).collect();
        let fd = rustix::fs::open("/", rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()).unwrap();
        trust.believes(&Traced { fd, path: to.into(), links })
    }

    #[test]
    fn links_of_install_places_lead_anywhere() {
        for at in [
            "/home/u/.local/bin/tool",
            "/home/u/bin/tool",
            "/home/u/.cargo",
            "/home/u/go",
            "/home/u/.config/git/config",
            "/usr/bin/tool",
            "/etc/localtime",
            "/bin",
            "/home",
            "/home/u",
        ] {
            for root in [false, true] {
                assert!(believes(root, &[at], "/home/u/elsewhere/tool"), "{at}");
            }
        }
    }

    #[test]
    fn links_of_a_project_lead_no_further_than_its_own_programs() {
        for (at, to, wanted) in [
            ("/home/u/p/node_modules/.bin/tool", "/home/u/secret/file", false),
            ("/home/u/p/node_modules/.bin/tool", "/home/u/p/secret/file", false),
            ("/home/u/p/node_modules/.bin/tool", "/home/u/p/node_modules/tool/cli.js", true),
            ("/home/u/p/node_modules/.bin", "/home/u/secret", false),
            ("/home/u/node/bin/npm", "/home/u/node/lib/node_modules/npm/bin/npm-cli.js", true),
            ("/home/u/node/current", "/home/u/node/v20/bin", true),
            ("/home/u/p/bin/tool", "/home/u/secret/file", false),
            ("/tmp/x/bin/tool", "/home/u/secret/file", false),
            ("/tmp/tool", "/home/u/secret/file", false),
        ] {
            for root in [false, true] {
                assert_eq!(believes(root, &[at], to), wanted, "{at}");
            }
        }
        let chain = ["/home/u/.local/bin/tool", "/home/u/p/tool"];
        assert!(!believes(false, &chain, "/home/u/secret/file"), "the last of them was planted");
        assert!(believes(false, &chain[..1], "/home/u/p/tool"));
    }
}
