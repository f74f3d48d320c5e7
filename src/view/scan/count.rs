//! Which inodes have all their names inside.
//!
//! Names are counted, not paths: a name is its directory's identity and its bytes, so that reading a directory
//! twice, or renaming the way to it, counts nothing twice.

use std::collections::HashSet;
use std::sync::Arc;

use super::tree::Node;
use crate::view::control::Id;

/// What one look at a name showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    pub id: Id,
    pub nlink: u32,
    pub ctime: i64,
}

struct Record {
    look: Look,
    directory: u32,
    name: u32,
    length: u16,
    /// A root that is a single file: looked at anew for each count.
    file: bool,
}

/// Names of inodes with several links, packed: a package store has a million of them.
#[derive(Default)]
pub struct Names {
    records: Vec<Record>,
    bytes: Vec<u8>,
    directories: Vec<(Id, Arc<Node>)>,
}

/// All names inside of one inode that has links.
pub struct Group {
    pub id: Id,
    /// The highest count that any look showed.
    pub nlink: u32,
    /// Names that count as inside.
    pub seen: u32,
    /// Indices of the records inside.
    pub names: Vec<usize>,
    /// Every look showed the same count and change time.
    pub steady: bool,
    pub newest: i64,
}

impl Group {
    pub fn is_inside(&self) -> bool {
        self.steady && self.seen == self.nlink
    }
}

impl Names {
    pub fn directory(&mut self, id: Id, node: Arc<Node>) -> u32 {
        self.directories.push((id, node));
        (self.directories.len() - 1) as u32
    }

    pub fn add(&mut self, directory: u32, name: &[u8], look: Look) {
        self.push(directory, name, look, false);
    }

    pub fn add_file(&mut self, directory: Id, node: Arc<Node>, name: &[u8], look: Look) {
        let directory = self.directory(directory, node);
        self.push(directory, name, look, true);
    }

    fn push(&mut self, directory: u32, name: &[u8], look: Look, file: bool) {
        // NAME_MAX is 255.
        let length = name.len().min(usize::from(u16::MAX)) as u16;
        self.records.push(Record { look, directory, name: self.bytes.len() as u32, length, file });
        self.bytes.extend_from_slice(name);
    }

    pub fn forget_files(&mut self) {
        self.records.retain(|record| !record.file);
    }

    pub fn merge(&mut self, other: Names) {
        if self.records.is_empty() {
            *self = other;
            return;
        }
        let directories = self.directories.len() as u32;
        let bytes = self.bytes.len() as u32;
        self.records.extend(other.records.into_iter().map(|record| Record {
            directory: record.directory + directories,
            name: record.name + bytes,
            ..record
        }));
        self.bytes.extend(other.bytes);
        self.directories.extend(other.directories);
    }

    /// Forgets what was seen in directories that are read again.
    pub fn forget(&mut self, directories: &HashSet<Id>) {
        let known = &self.directories;
        self.records.retain(|record| {
            known.get(record.directory as usize).is_some_and(|(id, _)| !directories.contains(id))
        });
    }

    pub fn name(&self, record: usize) -> Option<(Id, &Arc<Node>, &[u8])> {
        let record = self.records.get(record)?;
        let (id, node) = self.directories.get(record.directory as usize)?;
        let start = record.name as usize;
        Some((*id, node, self.bytes.get(start..start + usize::from(record.length))?))
    }

    /// Groups the names by inode. `outside` says which names count as outside.
    pub fn groups(&self, outside: impl Fn(Id, &[u8]) -> bool) -> Vec<Group> {
        let mut order: Vec<u32> = (0..self.records.len() as u32).collect();
        let key = |index: &u32| self.records.get(*index as usize).map(|record| record.look.id);
        order.sort_unstable_by_key(key);
        let mut groups = Vec::new();
        for indices in order.chunk_by(|a, b| key(a) == key(b)) {
            let mut names: Vec<usize> = indices.iter().map(|index| *index as usize).collect();
            let place = |index: &usize| self.name(*index).map(|(id, _, name)| (id, name));
            names.sort_by(|a, b| place(a).cmp(&place(b)));
            let looks: Vec<Look> =
                names.iter().filter_map(|index| self.records.get(*index)).map(|record| record.look).collect();
            let Some(first) = looks.first().copied() else { continue };
            names.dedup_by(|a, b| place(a) == place(b));
            names.retain(|index| place(index).is_some_and(|(id, name)| !outside(id, name)));
            groups.push(Group {
                id: first.id,
                nlink: looks.iter().map(|look| look.nlink).max().unwrap_or(0),
                seen: names.len() as u32,
                names,
                steady: looks.iter().all(|look| look.nlink == first.nlink && look.ctime == first.ctime),
                newest: looks.iter().map(|look| look.ctime).max().unwrap_or(0),
            });
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::scan::tree::Budget;

    fn names(entries: &[(u64, &str, u64, u32, i64)]) -> Names {
        let budget = Budget::new(8);
        let fd = std::fs::File::open("/").unwrap().into();
        let node = Node::root(0, fd, &budget);
        let mut names = Names::default();
        for (directory, name, ino, nlink, ctime) in entries {
            let directory = names.directory(Id { dev: 1, ino: *directory }, Arc::clone(&node));
            let look = Look { id: Id { dev: 1, ino: *ino }, nlink: *nlink, ctime: *ctime };
            names.add(directory, name.as_bytes(), look);
        }
        names
    }

    #[test]
    fn a_name_seen_twice_counts_once() {
        let groups = names(&[(1, "a", 9, 2, 5), (1, "a", 9, 2, 5)]).groups(|_, _| false);
        assert_eq!((groups[0].seen, groups[0].is_inside()), (1, false));
        let groups = names(&[(1, "a", 9, 2, 5), (2, "a", 9, 2, 5)]).groups(|_, _| false);
        assert_eq!((groups[0].seen, groups[0].is_inside()), (2, true));
    }

    #[test]
    fn a_name_in_a_protected_part_counts_as_outside() {
        let names = names(&[(1, "a", 9, 2, 5), (2, "config", 9, 2, 5)]);
        let groups = names.groups(|directory, name| directory.ino == 2 && name == b"config");
        assert!(!groups[0].is_inside());
        assert_eq!(groups[0].names.len(), 1);
    }

    #[test]
    fn looks_that_disagree_are_not_inside() {
        let moved = names(&[(1, "a", 9, 2, 5), (1, "b", 9, 2, 6)]).groups(|_, _| false);
        assert!(!moved[0].is_inside());
        let linked = names(&[(1, "a", 9, 3, 5), (1, "b", 9, 2, 5)]).groups(|_, _| false);
        assert!(!linked[0].is_inside());
    }

    #[test]
    fn what_is_read_again_is_forgotten_first() {
        let mut names = names(&[(1, "a", 9, 2, 5), (2, "b", 9, 2, 5)]);
        names.forget(&HashSet::from([Id { dev: 1, ino: 2 }]));
        assert_eq!(names.groups(|_, _| false)[0].seen, 1);
    }
}
