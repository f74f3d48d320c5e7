//! What is hidden by `--hide`, and of a home directory that is shown.

use std::path::{Path, PathBuf};

use super::mounted::Mounts;
use super::roots::{Asked, Root};
use super::trace::trace;
use super::{Access, Backing, Origin, Place, Source, View, system};
use crate::error::{Error, Result, paste, show};
use crate::policy::{FileAccess, Policy};

/// Only once all that is shown is known: what nothing shows needs no cover, and must not be given up too early.
pub fn hide(view: &mut View, hidden: Vec<Asked>, mounts: bool) -> Result<()> {
    let table = if hidden.is_empty() { None } else { Some(Mounts::read()?) };
    for Asked { root, option, links, by, .. } in hidden {
        view.links(links, Origin::Option);
        // By another mount it would be seen all the same. The root itself cannot be hidden.
        let others = table.iter().flat_map(|table| table.other_ways(&root.path, &root.fd));
        let others: Vec<_> = others.filter(|other| other.path != Path::new("/")).collect();
        if others.iter().map(|other| &other.path).chain([&root.path]).any(|path| holds_kept(view, path)) {
            let path = show(root.path.as_os_str());
            let error = Error::usage(format!("{option} {path} would hide what --state keeps"))
                .with_hint("leave out one of the two");
            return Err(match by {
                Some((origin, _)) => origin.told("hide", error),
                None => error,
            });
        }
        for other in others {
            refuse_shown(view, &root.path, &other.path)?;
            let reason = format!("the same as what {option} hides");
            cover(view, other.is_dir(), other.path, false, &reason);
        }
        view.asked_by.extend(by.map(|(origin, _)| (root.path.clone(), origin)));
        cover(view, root.directory, root.path, false, &format!("asked for by {option}"));
    }
    if mounts { refuse_below_hidden(view) } else { Ok(()) }
}

/// Takes out of the view what lies there, whichever table brought it, and covers what is seen of it all the same.
/// Private places stay: they have nothing of the host's; what options ask for goes only with `all`. Returns the names
/// that were covered.
pub fn cover(view: &mut View, directory: bool, path: PathBuf, all: bool, reason: &str) -> Vec<PathBuf> {
    view.entries.retain(|at, entry| {
        let own = matches!(entry.place.backing, Backing::Fresh { .. } | Backing::Kept | Backing::Device);
        own || !at.starts_with(&path) || entry.place.origin == Origin::Option && !all
    });
    let names = view.names_inside(&path);
    for path in &names {
        let (access, backing, origin) = (Access::Hidden, Backing::Cover { directory }, Origin::Option);
        let place = Place { path: path.clone(), access, backing, origin, reason: reason.to_owned() };
        view.insert(place, Source::None);
    }
    names
}

/// Whether all of what `--state` keeps of a place lies there.
pub fn holds_kept(view: &View, path: &Path) -> bool {
    view.roots.iter().any(|root| root.inside != root.path && root.path.starts_with(path))
}

/// One name shown and one hidden, and both mean the same directory. What is shown in a hidden one is more specific.
fn refuse_shown(view: &View, hidden: &Path, other: &Path) -> Result<()> {
    match view.entries.get(other) {
        Some(entry) if entry.place.origin == Origin::Option && entry.place.access > Access::Hidden => {
            let (hidden, shown) = (show(hidden.as_os_str()), show(other.as_os_str()));
            Err(Error::usage(format!(
                "{shown} cannot be shown: it is another mount of {hidden}, which is hidden"
            ))
            .with_hint("leave out one of the two"))
        }
        _ => Ok(()),
    }
}

/// What covers a directory has no names in it, so nothing can be shown there.
fn refuse_below_hidden(view: &View) -> Result<()> {
    for place in view.places().filter(|place| place.origin == Origin::Option && place.access > Access::Hidden)
    {
        let above = place.path.ancestors().skip(1).filter_map(|above| view.entries.get(above));
        let Some(cover) = above.map(|entry| &entry.place).find(|above| above.access == Access::Hidden) else {
            continue;
        };
        let (path, hidden) = (show(place.path.as_os_str()), show(cover.path.as_os_str()));
        let error =
            Error::usage(format!("{path} cannot be shown: {hidden} above it is hidden ({})", cover.reason));
        return Err(match cover.origin {
            Origin::Option => error.with_hint("hide what lies beside it instead"),
            _ => error.with_hint(format!("`--ro {}` shows all of that", paste(cover.path.as_os_str()))),
        });
    }
    Ok(())
}

/// A root that takes in the home directory does not take in the credentials there.
pub fn credentials(view: &mut View, policy: &Policy, homes: &[PathBuf], root: &Root) {
    // A later run goes by it.
    let written: &[(&str, &str)] =
        if root.writable { &[(".config/confine", "policy of later runs")] } else { &[] };
    for home in homes {
        for (name, reason) in system::CREDENTIALS.iter().chain(written) {
            let path = home.join(name);
            let named = |rule: &crate::policy::FileRule| rule.path == path && rule.access != FileAccess::Hide;
            if policy.files.iter().any(named) {
                continue;
            }
            if let Ok(traced) = trace(&path) {
                let directory = traced.is_dir();
                view.table(traced.path, Access::Hidden, Backing::Cover { directory }, reason, Source::None);
            }
        }
    }
}
