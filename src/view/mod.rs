//! Which paths exist inside, with which access and backing, as open descriptors. Resolves what was asked against
//! what the host has; knows nothing of how it is enforced.
#![forbid(unsafe_code)]

mod aliases;
mod builtin;
pub mod caller;
pub mod changes;
pub mod control;
pub mod danger;
mod direct;
pub mod fifos;
pub mod git;
pub mod git_settings;
mod handed;
mod hidden;
mod home;
pub mod inside;
mod layers;
mod listing;
mod mounted;
pub mod never;
mod own;
pub mod path_text;
mod place;
mod planted;
mod roots;
pub mod scan;
pub mod sockets;
pub mod state;
pub mod system;
pub mod toolchains;
pub mod trace;
pub mod ways;

use std::collections::{BTreeMap, HashSet};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use crate::error::{Error, Result, show};
use crate::host::Host;
use crate::policy::{self, Policy};
use caller::Caller;
use never::Never;
use planted::Trust;
use trace::Traced;

pub use place::{Access, Backing, Entry, Origin, Place, Source};
pub use roots::Root;

#[derive(Debug)]
pub struct View {
    /// Parents come before what lies beneath them.
    pub entries: BTreeMap<PathBuf, Entry>,
    /// Writable and readable roots that were asked for.
    pub roots: Vec<Root>,
    /// HOME and TMPDIR of the command.
    pub home: PathBuf,
    pub tmp: PathBuf,
    /// Sockets of other programs, by device and inode number, where they cannot be covered.
    pub foreign_sockets: HashSet<(u64, u64)>,
    /// The directory that `--state` names.
    pub state: Option<State>,
    /// Variables by which tools are found when HOME is elsewhere, and where each points.
    pub tools: Vec<(&'static str, PathBuf)>,
    /// Control files that only a view could guard, on a host where there is none.
    pub unguarded: Vec<PathBuf>,
    /// What is mounted in a writable root and only a view could show read-only.
    pub mounted: Vec<PathBuf>,
    pub scan: Option<scan::Report>,
    /// Where earlier commands may have written: what lies there grants nothing.
    hostile: Vec<PathBuf>,
    trust: Trust,
    /// What the administrator shows to nobody; no copy of it either.
    never: Vec<PathBuf>,
    /// What `Purpose::Ask` has passed over.
    pub refusal: Option<Error>,
    /// Names of aliases that `--hardlinks protect` shows read-only.
    pub protected: usize,
    /// Links that HOME was reached through.
    home_links: Vec<(PathBuf, PathBuf)>,
    /// Whether what is shown is mounted, or the host's own.
    mounts: bool,
    /// Who asked for a root or rule, by its canonical path.
    pub asked_by: BTreeMap<PathBuf, policy::Origin>,
}

/// Whether directories of confine's own may be made on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Run,
    Explain,
    /// To answer about it, also where it would be refused for an alias.
    Ask,
}

#[derive(Debug)]
pub struct State {
    pub path: PathBuf,
    pub fd: OwnedFd,
}

impl View {
    pub(crate) fn empty(home: PathBuf) -> View {
        View {
            entries: BTreeMap::new(),
            roots: Vec::new(),
            home,
            tmp: "/tmp".into(),
            foreign_sockets: HashSet::new(),
            state: None,
            tools: Vec::new(),
            unguarded: Vec::new(),
            mounted: Vec::new(),
            scan: None,
            hostile: Vec::new(),
            trust: Trust::default(),
            never: Vec::new(),
            refusal: None,
            protected: 0,
            home_links: Vec::new(),
            mounts: true,
            asked_by: BTreeMap::new(),
        }
    }

    /// Opens every root once, applies the tables, looks for aliases.
    pub fn resolve(policy: &Policy, caller: &Caller, host: &Host, purpose: Purpose) -> Result<View> {
        let (home, home_links) = home::location(caller);
        let mut view = View { home_links, mounts: host.namespaces(), ..View::empty(home) };
        view.trust = Trust { home: view.home.clone(), root: host.owns_system() };
        let never = Never::all(policy)?;
        let asked = roots::resolve(policy, caller, &view.home, host, &never)?;
        view.hostile = asked.iter().map(|asked| asked.path().to_owned()).collect();
        view.never = never.iter().filter(|never| never.present).map(|never| never.path.clone()).collect();
        builtin::add(&mut view, policy, caller, host)?;
        let real_home = view.home.clone();
        home::add(&mut view, policy, caller, host, purpose, &asked)?;
        let hidden = roots::add(&mut view, policy, asked)?;
        git::add(&mut view, caller)?;
        hidden::hide(&mut view, hidden, host.namespaces())?;
        never::hide(&mut view, never)?;
        view.look_for_aliases(policy, purpose)?;
        if host.namespaces() {
            sockets::cover(&mut view, host)?;
            fifos::cover(&mut view)?;
            view.pin_parents();
        } else {
            direct::reduce(&mut view, &real_home)?;
            if host.brokered().connect {
                sockets::note(&mut view)?;
            }
        }
        Ok(view)
    }

    /// What a table, a variable or a setting leads to. Nothing in a workspace is policy: a link there, which an
    /// earlier command may have made, leads nowhere, and what lies there itself is shown as it is. Other projects may
    /// have been workspaces too.
    fn trusted(&self, path: &Path) -> Option<Traced> {
        let traced = trace::trace(path).ok()?;
        let lies_in = |trees: &[PathBuf]| trees.iter().any(|tree| traced.path.starts_with(tree));
        let hostile = traced.passes(&self.hostile) || lies_in(&self.hostile);
        (!hostile && !lies_in(&self.never) && self.trust.believes(&traced)).then_some(traced)
    }

    /// For a file that an option names and whose contents count: a link in a workspace is not followed to it.
    pub fn refuse_planted(&self, option: &str, named: &Path, links: &[(PathBuf, PathBuf)]) -> Result<()> {
        let hostile: Vec<&Path> = self.hostile.iter().map(PathBuf::as_path).collect();
        let hint = "name the file itself, best one outside every workspace";
        roots::refuse_links(option, named, links, &hostile, hint)
    }

    pub fn places(&self) -> impl Iterator<Item = &Place> {
        self.entries.values().map(|entry| &entry.place)
    }

    /// The entry that decides about a path: its own or the nearest above.
    pub fn nearest(&self, path: &Path) -> Option<&Entry> {
        path.ancestors().find_map(|ancestor| self.entries.get(ancestor))
    }

    /// Whether a table's path needs no entry: an entry above shows the same thing already.
    fn is_shown(&self, path: &Path) -> bool {
        self.nearest(path).is_some_and(|entry| {
            entry.place.access >= Access::Read
                && matches!(
                    entry.place.backing,
                    Backing::Bind | Backing::Veiled | Backing::Layer | Backing::KeptLayer | Backing::Sealed
                )
        })
    }

    /// The same for a path that may be a link of the view itself (`/bin`).
    fn leads_to_shown(&self, path: &Path) -> bool {
        match self.entries.get(path).map(|entry| &entry.place.backing) {
            Some(Backing::Link { to }) => path.parent().is_some_and(|parent| {
                let plain = to.components().all(|part| !matches!(part, Component::ParentDir));
                plain && self.is_shown(&parent.join(to))
            }),
            _ => self.is_shown(path),
        }
    }

    /// Whether something of the host would be seen at this path. Where nothing can be mounted, nothing of the view's own
    /// stands in front of it.
    pub fn is_visible(&self, path: &Path) -> bool {
        let own = |entry: &Entry| {
            matches!(
                entry.place.backing,
                Backing::Fresh { .. } | Backing::Kept | Backing::Copy | Backing::Link { .. }
            )
        };
        let mut above = path.ancestors().filter_map(|ancestor| self.entries.get(ancestor));
        let nearest = if self.mounts { above.next() } else { above.find(|entry| !own(entry)) };
        nearest.is_some_and(|entry| entry.place.access >= Access::Read && !own(entry))
    }

    /// Every name by which something of the host's would be seen: its own, and that of what is kept and shown elsewhere.
    fn names_inside(&self, path: &Path) -> Vec<PathBuf> {
        let elsewhere = self.roots.iter().filter(|root| root.inside != root.path);
        let mut names: Vec<PathBuf> = elsewhere
            .filter_map(|root| {
                let below = path.strip_prefix(&root.path).ok()?;
                (!below.as_os_str().is_empty()).then(|| root.inside.join(below))
            })
            .collect();
        names.extend(self.is_visible(path).then(|| path.to_owned()));
        names
    }

    /// Whether what is at this name on the host would be seen, and with its device and inode number: an overlay has its
    /// own.
    pub fn keeps_identity(&self, path: &Path) -> bool {
        trace::trace(path).is_ok_and(|found| {
            let nearest = self.nearest(&found.path).map(|entry| &entry.place.backing);
            let overlaid = nearest.is_some_and(|backing| backing.is_layer() || *backing == Backing::Sealed);
            self.is_visible(&found.path) && !(self.mounts && overlaid)
        })
    }

    fn insert(&mut self, place: Place, source: Source) {
        match self.entries.get(&place.path) {
            Some(present) if present.place.origin > place.origin => {}
            _ => {
                self.entries.insert(place.path.clone(), Entry { place, source });
            }
        }
    }

    fn table(
        &mut self,
        path: impl Into<PathBuf>,
        access: Access,
        backing: Backing,
        reason: &str,
        source: Source,
    ) {
        let place =
            Place { path: path.into(), access, backing, origin: Origin::Table, reason: reason.to_owned() };
        self.insert(place, source);
    }

    fn found(&mut self, path: PathBuf, access: Access, reason: &str) {
        // An option on exactly this path lifts the guard (`--rw WORKSPACE/.git/config`).
        if self.entries.contains_key(&path) {
            return;
        }
        let reason = reason.to_owned();
        let place = Place { path, access, backing: Backing::Itself, origin: Origin::Found, reason };
        self.insert(place, Source::None);
    }

    fn cover_found(&mut self, path: PathBuf, directory: bool, reason: &str) {
        let (access, backing) = (Access::Hidden, Backing::Cover { directory });
        let reason = reason.to_owned();
        self.insert(Place { path, access, backing, origin: Origin::Found, reason }, Source::None);
    }

    /// The links that were passed on the way to something shown.
    fn links(&mut self, links: Vec<(PathBuf, PathBuf)>, origin: Origin) {
        for (path, to) in links {
            if self.entries.contains_key(&path) || self.is_shown(&path) {
                continue;
            }
            let reason = "a link on the way to something shown".to_owned();
            let place = Place { path, access: Access::Read, backing: Backing::Link { to }, origin, reason };
            self.insert(place, Source::None);
        }
    }

    /// Shows a traced object read-only by a table's row, with the links that lead to it.
    fn show_object(&mut self, traced: Traced, backing: Backing, reason: &str) {
        let directory = self.is_needed(&traced.path, &backing) && traced.is_dir();
        self.show_known(traced, directory, backing, reason);
    }

    /// The same where it is known whether it is a directory.
    fn show_known(&mut self, traced: Traced, directory: bool, backing: Backing, reason: &str) {
        let access = if backing.is_layer() { Access::Write } else { Access::Read };
        let needed = self.is_needed(&traced.path, &backing);
        self.links(traced.links, Origin::Table);
        if needed {
            self.table(traced.path, access, backing, reason, Source::Object { fd: traced.fd, directory });
        }
    }

    fn is_needed(&self, path: &Path, backing: &Backing) -> bool {
        backing.is_layer() || !self.is_shown(path)
    }

    /// What is narrowed, covered or mounted inside a writable root stays at its place only if no directory above it
    /// can be renamed: each is bound onto itself.
    fn pin_parents(&mut self) {
        let roots: Vec<PathBuf> =
            self.roots.iter().filter(|root| root.writable).map(|root| root.inside.clone()).collect();
        let inside = |place: &&Place| match place.origin {
            Origin::Option => true,
            Origin::Found => place.access == Access::Hidden || place.reason == aliases::ALIAS,
            Origin::Table => place.access == Access::Hidden,
        };
        let mut pins: Vec<PathBuf> = Vec::new();
        for place in self.places().filter(inside).filter(|place| place.backing != Backing::Lifted) {
            let below = |root: &&PathBuf| place.path.starts_with(root) && place.path != **root;
            let Some(root) = roots.iter().filter(below).max() else { continue };
            let between = place.path.ancestors().skip(1).take_while(|above| above != root);
            // In what cannot be written nothing is renamed.
            let writable =
                |path: &&Path| self.nearest(path).is_none_or(|entry| entry.place.access == Access::Write);
            pins.extend(between.filter(writable).map(Path::to_owned));
        }
        for path in pins {
            self.found(path, Access::Write, "holds what is narrowed or hidden: cannot be renamed away");
        }
    }

    /// What the command cannot write, below a writable root or not: names in there are outside.
    pub fn apart(&self) -> Vec<PathBuf> {
        self.places()
            .filter(|place| place.access < Access::Write && !matches!(place.backing, Backing::Link { .. }))
            .map(|place| place.path.clone())
            .collect()
    }
}

/// An error for a path that an option names.
fn cannot_show(option: &str, path: &Path, error: std::io::Error) -> Error {
    let what = match error.raw_os_error() {
        Some(libc::ELOOP) => "a loop of symbolic links".to_owned(),
        _ => crate::error::describe(&error),
    };
    Error::usage(format!("{option} {}: {what}", show(path.as_os_str())))
}
