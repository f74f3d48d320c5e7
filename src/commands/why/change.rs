//! The smallest option that would change the answer about a path, and whether it is a dangerous one.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use super::answer::{Answer, From};
use super::file::Judged;
use super::rule;
use crate::enforce::mounts::OWN;
use crate::error::paste;
use crate::view::fifos::FIFO;
use crate::view::inside::{Seen, Stop, What};
use crate::view::never::NOBODY;
use crate::view::{Access, Backing, Origin, Place, system};

impl Judged<'_> {
    pub fn change(&self, answer: &mut Answer) {
        let Seen { node, path, .. } = self.seen;
        let home = &self.ask.facts.home;
        // The kernel's own trees are what they are.
        let kernel = system::KERNEL.iter().any(|kernel| path.starts_with(kernel));
        let none = answer.rule.from == From::Host || kernel || path.starts_with(OWN);
        if none || matches!(self.seen.stopped, Some(Stop::NoDirectory(_) | Stop::Loop(_))) {
            return;
        }
        if self.other_mount(node) && answer.writable == Some(false) {
            return answer
                .suggest(format!("--rw {}", paste(path.as_os_str())), rule::danger(path, home, true, false));
        }
        if node.what == What::Socket {
            // Where it is visible, nothing but Landlock or the broker refuses; no option makes them do otherwise.
            return;
        }
        let hidden = self.place.filter(|place| place.access == Access::Hidden);
        if let Some(place) = hidden {
            return self.uncover(answer, place);
        }
        let denied = answer.readable == Some(false) && answer.what != Some("missing");
        if answer.what == Some("missing") {
            return self.bring(answer);
        }
        if denied && self.holds_hidden(path) {
            return;
        }
        if denied {
            return answer.suggest(
                format!("--ro {}", paste(path.as_os_str())),
                rule::danger(path, home, false, false),
            );
        }
        if answer.writable == Some(false) {
            self.make_writable(answer);
        }
    }

    fn uncover(&self, answer: &mut Answer, place: &Place) {
        let path = paste(place.path.as_os_str());
        let home = &self.ask.facts.home;
        if place.origin == Origin::Option && place.reason == NOBODY {
            return answer.note("only the administrator of this machine can change that");
        }
        if place.origin == Origin::Option {
            return answer
                .suggest(format!("without `--hide {path}`"), rule::danger(&place.path, home, false, false));
        }
        if place.reason == FIFO {
            return answer.note(format!("it can be handed in for reading: `< {path}`"));
        }
        if self.ask.aliases.contains(&place.path) || place.reason.contains("alias") {
            return answer.suggest(
                format!("confine scan --separate {path}"),
                Some("it has a name outside, perhaps that of something hidden".to_owned()),
            );
        }
        let socket = place.reason.contains("socket");
        answer.suggest(format!("--ro {path}"), rule::danger(&place.path, home, false, socket));
    }

    /// For what is not there: because nothing shows it, or because it is nowhere.
    fn bring(&self, answer: &mut Answer) {
        let path = &self.seen.path;
        let home = &self.ask.facts.home;
        let word = paste(path.as_os_str());
        let found = if self.ask.inside { None } else { fs::symlink_metadata(path).ok() };
        let shown = self.place.is_some_and(|place| !matches!(place.backing, Backing::Fresh { .. }));
        match found {
            Some(found) => {
                let socket = found.file_type().is_socket();
                answer.note("it exists on the host");
                if !shown {
                    answer.suggest(format!("--ro {word}"), rule::danger(path, home, false, socket));
                }
            }
            None if self.ask.inside && self.place.is_none() => {
                answer.suggest(format!("--ro {word}"), rule::danger(path, home, false, false));
            }
            None if answer.writable == Some(false) => {
                // The nearest directory of the host is what could be made writable.
                let directory = path.ancestors().skip(1).find(|above| self.ask.inside || above.is_dir());
                let broad = |path: &Path| system::BROAD.iter().any(|broad| path == Path::new(broad));
                if let Some(directory) = directory.filter(|directory| !broad(directory)) {
                    let named = self
                        .place
                        .is_some_and(|place| place.origin == Origin::Option && place.path == *directory);
                    let word = paste(directory.as_os_str());
                    let option = if named { instead(&word) } else { format!("--rw {word}") };
                    answer.suggest(option, rule::danger(directory, home, true, false));
                }
            }
            None => {}
        }
    }

    fn make_writable(&self, answer: &mut Answer) {
        let path = &self.seen.path;
        let home = &self.ask.facts.home;
        let word = paste(path.as_os_str());
        let broad =
            system::BROAD.iter().any(|broad| Path::new(broad).starts_with(path)) || home.starts_with(path);
        if path == Path::new("/") {
            return;
        }
        // Inside, a read-only mount answers in its place, and where root's files are nobody's, that does.
        let veiled = self.place.is_some_and(|place| place.backing == Backing::Veiled);
        if !self.ask.inside && !veiled && !self.seen.node.may.write {
            if !self.is_granted_write() {
                answer.note(format!(
                    "no option makes it writable: its mode, owner or file system does not let uid {} change it",
                    self.ask.uid
                ));
            }
            return;
        }
        let danger = rule::danger(path, home, true, false);
        match self.place {
            Some(place) if place.origin == Origin::Option && place.path == *path => {
                let option = if place.reason == "a workspace" {
                    "without `--read-only`".to_owned()
                } else {
                    instead(&word)
                };
                answer.suggest(option, danger);
            }
            Some(place) if place.origin == Origin::Found && place.reason.contains("alias") => {
                answer.suggest(format!("confine scan --separate {word}"), None);
            }
            Some(place) if place.origin == Origin::Found && place.backing == Backing::Itself => {
                let path = paste(place.path.as_os_str());
                let reason = rule::control(&place.path).unwrap_or("it is guarded");
                answer.suggest(format!("--rw {path}"), Some(format!("it runs by itself outside: {reason}")));
            }
            _ if self.ask.read_only && self.place.is_some_and(|place| place.reason == "a workspace") => {
                answer.suggest(format!("--rw {word}"), danger);
            }
            _ if broad => {
                let warning = danger.unwrap_or_else(|| "it holds much more than a project".to_owned());
                answer.suggest(format!("--rw {word} --allow broad-workspace"), Some(warning));
            }
            _ => answer.suggest(format!("--rw {word}"), danger),
        }
    }
}

/// Two options for one path contradict each other.
fn instead(word: &str) -> String {
    format!("--rw {word} in place of the option that shows it read-only")
}
