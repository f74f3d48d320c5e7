//! Passes: a tree that others change is read again until what was seen holds together.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::count::Group;
use super::read::{ctime, own_stat};
use super::tree::{Cursor, Node};
use super::{Scan, failed, filesystem, message, walk};
use crate::error::Error;
use crate::view::control::Id;

/// A pass that finds the workspace different from the pass before is repeated this often in all
/// once a name has been seen that leads elsewhere,
const PASSES: u32 = 5;
/// and this often, some three seconds, as long as none was.
const PATIENCE: u32 = 80;
/// Change times lag behind the clock by up to a tick, 10 ms at CONFIG_HZ=100.
const TICK: i64 = 11_000_000;

/// How long a busy neighbour is left alone before the next pass, where change times are fine enough not to ask
/// for a wait of their own.
const PAUSES: [Duration; 4] = [Duration::ZERO, Duration::from_millis(2), Duration::from_millis(10), LONGEST];
const LONGEST: Duration = Duration::from_millis(40);

/// Where change times are coarse, a change may bear the time of the look before it for so long.
const SETTLE: Duration = Duration::from_millis(15);

/// A directory that changed within this time is likely to change again.
const BUSY: i64 = 1_000_000_000;

type Nodes = HashMap<Id, Arc<Node>>;

impl Scan<'_> {
    /// Walks until what was seen holds together; returns how many passes that took, and what they found.
    ///
    /// Why this suffices: a name that a walk has missed was moved, so the directories it came from and went to
    /// have changed since the walk began. Each pass reads those again within a moment in which none of them
    /// changes, and then asks every directory once more. When no other has changed since they were chosen,
    /// no name was anywhere else in that moment.
    pub(super) fn passes(&mut self) -> Result<(u32, Vec<Group>), Error> {
        let began = now();
        let none = HashSet::new();
        self.gathered = self.walk(walk::Mode::Full, began - TICK, &none, self.starts()).map_err(failed)?;
        let groups = self.groups().map_err(failed)?;
        let fresh = |group: &Group| group.newest >= began - TICK && !group.is_inside();
        if !self.gathered.vanished && !groups.iter().any(fresh) {
            return Ok((1, groups));
        }
        // Somebody has seen an inode with a name elsewhere. Otherwise what goes on is most likely files of one name
        // being made and removed, as by another run in this workspace, and worth more patience. It proves nothing:
        // a name that is moved without pause may be elsewhere at every look.
        let mut doubt = !groups.iter().all(Group::is_inside);
        let coarse = self.gathered.coarse_times || !filesystem::kernel_has_fine_times();
        let mut chosen = now();
        let mut nodes: Nodes = self.hot(&groups, began - TICK).collect();
        // Last, because these paths were right a moment ago.
        nodes.extend(self.changed(began).map_err(failed)?.0);
        let mut pauses = PAUSES.into_iter();
        let mut pass = 1;
        while pass < if doubt { PASSES } else { PATIENCE } {
            pass += 1;
            let pause = pauses.next().unwrap_or(LONGEST);
            std::thread::sleep(if coarse { pause.max(SETTLE) } else { pause });
            let (settled, read, groups) = self.again(&mut nodes, began - TICK, coarse).map_err(failed)?;
            let hot: Nodes = self.hot(&groups, began - TICK).collect();
            let settled = settled && hot.keys().all(|id| read.contains(id));
            doubt |= !groups.iter().all(Group::is_inside);
            let asked = now();
            let (changed, vanished) = self.changed(chosen).map_err(failed)?;
            if settled && !vanished && changed.keys().all(|id| read.contains(id)) {
                return Ok((pass, groups));
            }
            chosen = asked;
            nodes.extend(hot);
            nodes.extend(changed);
        }
        Err(message::changing(&self.paths, pass))
    }

    /// Directories that have changed since, and whether some were gone when they were asked.
    fn changed(&self, since: i64) -> io::Result<(Nodes, bool)> {
        let found = self.walk(walk::Mode::Changed, since - TICK, &HashSet::new(), self.starts())?;
        Ok((found.changed.into_iter().collect(), found.vanished))
    }

    /// Reads these directories once more. Settled means: while they were read nothing in there changed. What has
    /// not changed for a while is not kept for the next pass. The groups are those of all that is known now.
    fn again(
        &mut self,
        nodes: &mut Nodes,
        since: i64,
        coarse: bool,
    ) -> io::Result<(bool, HashSet<Id>, Vec<Group>)> {
        let start = now();
        let ids: HashSet<Id> = nodes.keys().copied().collect();
        let visited = self.gathered.read.iter().copied().filter(|id| !ids.contains(id)).collect();
        self.gathered.names.forget(&ids);
        let mut found =
            self.walk(walk::Mode::Again, since, &visited, nodes.drain().map(|(_, node)| node).collect())?;
        let read: HashSet<Id> = found.read.iter().copied().collect();
        self.gathered.names.forget(&read);

        let unsettled = |time: i64| coarse && time >= start - TICK && time <= start + TICK;
        let mut settled = !found.vanished;
        let mut cursor = Cursor::default();
        for (node, id, time) in std::mem::take(&mut found.times) {
            let same = cursor
                .reach(&node, &self.opener)
                .and_then(|dir| self.opener.open(dir, c"."))
                .and_then(|fd| own_stat(&fd))
                .is_ok_and(|stat| Id::of(&stat) == id && ctime(&stat) == time);
            settled &= same && !unsettled(time);
            if time >= start - BUSY {
                nodes.insert(id, node);
            }
        }
        let (entries, directories) = (self.gathered.entries, self.gathered.directories);
        self.gathered.merge(found);
        (self.gathered.entries, self.gathered.directories) = (entries, directories);

        let groups = self.groups()?;
        for group in groups.iter().filter(|group| group.newest >= since) {
            settled &= group.steady && !unsettled(group.newest);
        }
        Ok((settled, read, groups))
    }

    /// Directories that hold names of inodes which have changed since.
    fn hot<'s>(&'s self, groups: &'s [Group], since: i64) -> impl Iterator<Item = (Id, Arc<Node>)> + 's {
        let hot = groups.iter().filter(move |group| group.newest >= since);
        let names = hot.flat_map(|group| &group.names).filter_map(|name| self.gathered.names.name(*name));
        let in_directory = names.filter(|(_, node, _)| self.is_directory(node));
        in_directory.map(|(id, node, _)| (id, Arc::clone(node)))
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
