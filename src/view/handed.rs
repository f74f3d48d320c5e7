//! A regular file that is handed in, and what its descriptor leads to besides.
//!
//! `/proc/self/fd/N` opens the file anew, and not through the view: the mount is the one that the descriptor was opened
//! through, writable as a rule, and Landlock goes up from there by the directories that the file lies in (landlock(7)).
//! Where one of them is granted, so is the file, whatever the view has narrowed, covered or put in its place below.
//! Such a descriptor is refused. To open the file through the view instead would take the offset from those who share
//! it: what a shell writes next would land on what the command wrote.

use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, statat};

use super::trace::object;
use super::{Access, Backing, View};
use crate::enforce::descriptors::{Inherited, Kind};
use crate::error::{Error, Result, paste, show};

/// What may be done with a file by its name inside, and by a descriptor that leads to its place on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reach {
    named: Access,
    opened: Access,
}

impl View {
    /// Unless nothing more can be done with it than what it was opened for, or than the view lets everybody do there.
    pub fn refuse_reopening(&self, handed: &Inherited) -> Result<()> {
        let Some(path) = handed.path.as_ref().filter(|_| handed.kind == Kind::Regular) else { return Ok(()) };
        if handed.read && handed.write {
            return Ok(());
        }
        let gone = path.as_os_str().as_encoded_bytes().ends_with(b" (deleted)")
            && !statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|stat| object(&stat) == handed.object());
        // Here-documents among them: nobody else will open it.
        if gone && handed.unlinked {
            return Ok(());
        }
        let mut reach = self.reach(path, None, handed.mode);
        if gone {
            // What other names it has, and where, nobody knows.
            reach.named = Access::Hidden;
        }
        // Only a name by another mount can make it worse.
        if reach.named < Access::Write {
            for (inside, root) in self.other_names(path) {
                let other = self.reach(&inside, Some(&root), handed.mode);
                reach.opened = reach.opened.max(other.opened);
                reach.named = if gone { Access::Hidden } else { reach.named.max(other.named) };
            }
        }
        let (more, narrowed) = match reach {
            Reach { named, opened: Access::Write } if !handed.write && named < Access::Write => {
                ("writing", if named == Access::Read { "read-only" } else { "not shown" })
            }
            Reach { named: Access::Hidden, opened } if !handed.read && opened > Access::Hidden => {
                ("reading", "not shown")
            }
            _ => return Ok(()),
        };
        let name = show(path.as_os_str());
        Err(Error::refused(format!(
            "{} is {name}, which is {narrowed} inside but could be opened for {more} through /proc/self/fd",
            handed.what()
        ))
        .with_hint(pipe(handed, path)))
    }

    /// `root`: the name is one inside, by what lies beneath that root alone. As the mounts are granted: what a grant
    /// above reaches gets none of its own.
    fn reach(&self, path: &Path, root: Option<&Path>, mode: u32) -> Reach {
        let mut above: Vec<&Path> = path.ancestors().collect();
        above.reverse();
        let mut reach = Reach { named: Access::Hidden, opened: Access::Hidden };
        let mut granted = Access::Hidden;
        for place in above.into_iter().filter_map(|above| Some(&self.entries.get(above)?.place)) {
            let of_host = root.is_none_or(|root| place.path.starts_with(root));
            reach.named = match &place.backing {
                Backing::Bind | Backing::Itself | Backing::Lifted => place.access,
                Backing::Kept if root.is_some() => place.access,
                // What root alone could read is read by nobody.
                Backing::Veiled if mode & 0o004 != 0 => place.access,
                Backing::Sealed | Backing::Layer | Backing::KeptLayer => Access::Read,
                _ => Access::Hidden,
            };
            let has_grant = !matches!(
                place.backing,
                Backing::Itself
                    | Backing::Lifted
                    | Backing::Cover { .. }
                    | Backing::Link { .. }
                    | Backing::Device
                    | Backing::Terminal
                    | Backing::Terminals
            );
            if !has_grant || place.access <= granted {
                continue;
            }
            granted = place.access;
            let host = match place.backing {
                Backing::Bind | Backing::Veiled => of_host,
                // Where no layer can be had the tree itself is in its place.
                Backing::Layer | Backing::KeptLayer => root.is_none(),
                Backing::Kept => root.is_some() && of_host,
                _ => false,
            };
            if host {
                reach.opened = reach.opened.max(place.access);
            }
        }
        reach
    }

    /// By which a directory above it is a root: through another mount, or since it is kept and shown elsewhere. With the
    /// name of that root inside.
    fn other_names(&self, path: &Path) -> Vec<(PathBuf, PathBuf)> {
        let mut names = Vec::new();
        for above in path.ancestors().skip(1).filter(|above| *above != Path::new("/")) {
            let Ok(stat) = statat(CWD, above, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let Ok(below) = path.strip_prefix(above) else { continue };
            let same = self.roots.iter().filter(|root| root.object == object(&stat) && root.inside != above);
            names.extend(same.map(|root| (root.inside.join(below), root.inside.clone())));
        }
        names
    }
}

fn pipe(handed: &Inherited, path: &Path) -> String {
    let file = paste(path.as_os_str());
    match (handed.fd, handed.write) {
        (0, false) => format!("give it through a pipe: `cat {file} | confine …`"),
        (fd, false) => format!("give it through a pipe: `confine … {fd}< <(cat {file})`"),
        (1, true) => format!("give it through a pipe: `confine … | cat >> {file}`"),
        (fd, true) => format!("give it through a pipe: `confine … {fd}> >(cat >> {file})`"),
    }
}
