//! A path: what the kernel inside will say to those who look at it, read it, change it, run it or connect to it.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use super::answer::{Answer, From, Rule};
use super::rule;
use crate::error::show;
use crate::plan::Namespace;
use crate::plan::facts::Facts;
use crate::view::inside::{Node, Seen, Stop, What, World, walk};
use crate::view::sockets::RESOLVE_UNIX_ABI;
use crate::view::{Access, Backing, Origin, Place, system};

/// What the answers are taken from: the plan, and the names as they will be.
pub struct Ask<'a> {
    pub facts: &'a Facts<'a>,
    pub world: &'a dyn World,
    /// Where nothing is mounted: what is granted around.
    pub hidden: &'a [PathBuf],
    pub cwd: &'a Path,
    /// Sockets of other programs in writable roots.
    pub foreign: &'a HashSet<(u64, u64)>,
    /// Names of files that have a name elsewhere too.
    pub aliases: &'a [PathBuf],
    /// Of the command, when this is asked from outside.
    pub uid: u32,
    /// Asked by the command itself: the host cannot be looked at, and the kernel says what it lets be read.
    pub inside: bool,
    pub read_only: bool,
}

pub fn judge(ask: &Ask<'_>, subject: &OsStr, named: &Path) -> Answer {
    let seen = walk(ask.world, &ask.cwd.join(named));
    let mut answer = Answer::about(subject, "path");
    answer.path = Some(seen.path.to_string_lossy().into_owned());
    let place = ask.facts.place(&seen.path);
    answer.rule = match place {
        Some(place) => rule::of(place),
        None => Rule { text: unnamed(ask, &seen).into(), ..Rule::default() },
    };
    let judged = Judged { ask, place, seen: &seen };
    judged.rights(&mut answer);
    judged.notes(&mut answer);
    judged.change(&mut answer);
    answer
}

fn unnamed(ask: &Ask<'_>, seen: &Seen) -> &'static str {
    match (ask.facts.viewed(), &seen.node.what) {
        (true, What::Directory) => "the view's own, made to hold what is shown below it; read only",
        (true, What::File) => "confine's own",
        (true, _) => "nothing shows it: what is not granted is not there",
        (false, _) => "nothing grants it",
    }
}

pub struct Judged<'a> {
    pub ask: &'a Ask<'a>,
    pub place: Option<&'a Place>,
    pub seen: &'a Seen,
}

impl Judged<'_> {
    fn viewed(&self) -> bool {
        self.ask.facts.viewed()
    }

    fn rights(&self, answer: &mut Answer) {
        let Seen { node, .. } = self.seen;
        let no = Some(false);
        (answer.visible, answer.readable, answer.writable, answer.executable) =
            (Some(self.seen.named), no, no, no);
        answer.what = Some(match &node.what {
            What::Missing => "missing",
            What::Directory => "directory",
            What::File => "file",
            What::Socket => "socket",
            What::Fifo => "fifo",
            What::Device { .. } => "device",
            What::Link(_) => "link",
            What::Covered => "covered",
        });
        match node.what {
            What::Missing if self.seen.stopped.is_none() => {
                let (directory, node) = &self.seen.directory;
                // `..` of what is not there leads nowhere.
                let plain = !self.seen.path.components().any(|part| part == Component::ParentDir);
                answer.writable = Some(plain && self.may_write(directory, node) && node.may.execute);
            }
            What::Directory => {
                let listed = self.viewed() || self.grants_read() && !self.holds_hidden(&self.seen.path);
                answer.readable = Some(node.may.read && (listed || self.ask.inside));
                answer.writable = Some(self.may_write(&self.seen.path, node));
                answer.executable = Some(node.may.execute);
            }
            What::File | What::Fifo => {
                answer.readable = Some(node.may.read && (self.grants_read() || self.ask.inside));
                answer.writable = Some(self.may_write(&self.seen.path, node));
                let noexec =
                    self.place.is_some_and(|place| matches!(place.backing, Backing::Proc | Backing::Sys));
                let runs = node.what == What::File && node.may.execute && self.grants_read() && !noexec;
                answer.executable = Some(runs);
            }
            What::Device { shared } => {
                let granted = self.grants_read() && (shared || !self.viewed());
                answer.readable = Some(granted && node.may.read);
                answer.writable = Some(granted && node.may.write && self.grants_write(&self.seen.path));
            }
            What::Socket => {
                (answer.readable, answer.writable, answer.executable) = (None, None, None);
                answer.connectable = Some(self.connects());
            }
            What::Covered => answer.connectable = no,
            What::Missing | What::Link(_) => {}
        }
        if answer.writable == Some(true) {
            answer.vanishes = Some(self.place.is_some_and(|place| {
                // HOME and TMPDIR of a run without mounts are the host's own, made for it.
                let made = place.origin == Origin::Found && place.backing == Backing::Bind;
                made || matches!(place.backing, Backing::Fresh { .. } | Backing::Layer | Backing::Copy)
            }));
            if self.may_be_held() {
                answer.vanishes = None;
            }
        }
    }

    /// Of what is kept for one run at a time another may have it, which is not known before the run.
    fn may_be_held(&self) -> bool {
        !self.ask.inside && self.place.is_some_and(|place| place.backing == Backing::KeptLayer)
    }

    fn grants_read(&self) -> bool {
        let hidden =
            !self.viewed() && self.ask.hidden.iter().any(|hidden| self.seen.path.starts_with(hidden));
        match self.place {
            Some(place) if place.backing == Backing::Sys && self.ask.facts.plan.world.veil => {
                let shown = |(tree, _): &(&str, &str)| self.seen.path.starts_with(tree);
                !hidden && system::SYS_READABLE.iter().any(shown)
            }
            Some(place) => place.access >= Access::Read && !hidden,
            // In the root directory of the view lies the note, whose mode says what it is.
            None => self.viewed(),
        }
    }

    /// Then what the host refuses is told already.
    pub fn is_granted_write(&self) -> bool {
        self.grants_write(&self.seen.path)
    }

    fn grants_write(&self, path: &Path) -> bool {
        self.ask.facts.place(path).is_some_and(|place| place.access == Access::Write)
    }

    /// Landlock alone cannot grant a directory as a whole and not what is hidden in it.
    pub fn holds_hidden(&self, path: &Path) -> bool {
        let below = |hidden: &PathBuf| hidden != path && hidden.starts_with(path);
        !self.viewed() && self.ask.hidden.iter().any(below)
    }

    fn may_write(&self, path: &Path, node: &Node) -> bool {
        let refused = self.other_mount(node) || self.holds_hidden(path) || self.cannot_be_copied(path, node);
        self.grants_write(path) && node.may.write && !refused
    }

    /// What is first written in a layer is copied there with its owner and group, and in a user namespace those of
    /// others do not exist.
    fn cannot_be_copied(&self, path: &Path, node: &Node) -> bool {
        let process = &self.ask.facts.plan.process;
        self.ask.facts.place(path).is_some_and(|place| place.backing.is_layer())
            && self.ask.facts.plan.has(Namespace::User)
            && node.owner.is_some_and(|owner| owner != (process.uid, process.gid))
    }

    /// A submount of a root; without a view such a root is refused.
    pub fn other_mount(&self, node: &Node) -> bool {
        self.viewed() && node.other_mount
    }

    /// Whoever listens is another program; those that are made inside are the command's own.
    fn connects(&self) -> bool {
        let Seen { node, path, .. } = self.seen;
        let rules = &self.ask.facts.plan.process.seccomp;
        if self.ask.facts.plan.world.ruleset.abi >= RESOLVE_UNIX_ABI {
            return false;
        }
        let sealed = self.place.is_some_and(|place| place.backing == Backing::Sealed);
        let ruled = if rules.broker.connect {
            self.grants_write(path) && !node.object.is_some_and(|object| self.ask.foreign.contains(&object))
        } else {
            self.grants_read() && !sealed
        };
        ruled && node.may.write
    }

    fn notes(&self, answer: &mut Answer) {
        let Seen { node, path, links, stopped, .. } = self.seen;
        let mut links = links.clone();
        links.dedup();
        for (at, to) in links.iter().take(3) {
            answer.note(format!("the link {} leads to {}", show(at.as_os_str()), show(to.as_os_str())));
        }
        // A word without a slash that is no file here is most likely something else.
        if node.what == What::Missing && !self.seen.named && !answer.subject.contains('/') {
            answer.note("asked about as a file; for a host write HOST:PORT, for a variable NAME=");
        }
        match stopped {
            Some(Stop::Search(at)) => answer.note(format!("{} cannot be entered", show(at.as_os_str()))),
            Some(Stop::NoDirectory(at)) => {
                answer.note(format!("{} is not a directory", show(at.as_os_str())))
            }
            Some(Stop::Loop(at)) => answer.note(format!("{} is a loop of links", show(at.as_os_str()))),
            None => {}
        }
        if node.what == What::Missing && stopped.is_none() && self.place.is_some() {
            let why = match self.place.map(|place| &place.backing) {
                Some(Backing::Fresh { .. }) => "nothing that the host has there is shown",
                _ => "it does not exist on the host either",
            };
            answer.note(why);
        }
        if self.may_be_held() {
            answer.note(
                "kept for one run at a time: while another has it, what is kept is not seen, and what is written vanishes",
            );
        }
        if self.other_mount(node) {
            answer.note("something is mounted there, and what is mounted inside a root is shown read-only");
        }
        if answer.readable == Some(true) && self.cannot_be_copied(path, node) {
            answer.note("it belongs to another user or group, so that no private copy of it can be made");
        }
        let roots_own = self.place.is_some_and(|place| place.backing == Backing::Sys) && !self.grants_read();
        if roots_own && node.what == What::File {
            answer.note("uid 0 reads of /sys only what programs ask about the machine");
        }
        if self.holds_hidden(path) {
            answer.note(
                "something in it is hidden, and without a view that takes the right to list it and to make names in it",
            );
        }
        if matches!(node.what, What::Device { shared: false }) && self.viewed() {
            answer.note("device nodes outside of the view's own /dev cannot be opened");
        }
        if node.what == What::Socket && self.ask.inside {
            answer.note("whether another program made it cannot be seen from inside");
        }
        if self.ask.aliases.contains(path) {
            answer.note("it has a name outside of the writable roots too, and a run refuses that");
            answer.note("`confine scan --separate WORKSPACE` gives it an inode of its own");
        } else if node.what == What::File && node.links > 1 && answer.writable == Some(true) {
            answer.note(format!("{} names lead to it, all of them inside", node.links));
        }
        let guard =
            self.place.filter(|place| place.origin == Origin::Found && place.backing == Backing::Itself);
        match guard {
            Some(place) if place.access == Access::Write && place.path == *path => {
                answer.note("it can be neither renamed nor removed (EBUSY)");
            }
            Some(place) if place.access == Access::Read => {
                answer.note("a guard and no promise: EROFS on changing it, EBUSY on moving it");
            }
            _ => {}
        }
        if answer.writable == Some(true)
            && guard.is_none()
            && let Some(reason) = rule::control(path)
        {
            let kept = if self.ask.facts.unguarded.iter().any(|known| Path::new(known) == path) {
                "and this host cannot guard it"
            } else {
                "and is not guarded"
            };
            answer.note(format!("it runs by itself outside ({reason}), {kept}"));
        }
        self.refused_by_mode(answer);
    }

    /// Granted, and refused all the same.
    fn refused_by_mode(&self, answer: &mut Answer) {
        let Seen { node, path, .. } = self.seen;
        if !matches!(node.what, What::File | What::Directory | What::Fifo | What::Socket) {
            return;
        }
        let mut denied = Vec::new();
        if self.grants_read() && !node.may.read && node.what != What::Socket && !self.ask.inside {
            denied.push("read");
        }
        if self.grants_write(path) && !node.may.write && !self.other_mount(node) {
            denied.push("change");
        }
        if !denied.is_empty() {
            let text = format!(
                "its mode, owner or file system does not let uid {} {} it",
                self.ask.uid,
                denied.join(" or ")
            );
            if denied.first() == Some(&"read") {
                answer.rule = Rule { from: From::Host, text, ..Rule::default() };
            } else {
                answer.note(text);
            }
        }
    }
}
