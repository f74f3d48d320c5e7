//! All that can be seen of a tree from outside, to be compared before and after. The change time tells of every write to an inode,
//! even one that puts back what was there; the access time is left out, as reading moves it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

#[derive(Debug, PartialEq, Eq)]
pub struct Snapshot(BTreeMap<PathBuf, Entry>);

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    inode: u64,
    mode: u32,
    owner: (u32, u32),
    links: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    content: Vec<u8>,
    attributes: Vec<(String, Vec<u8>)>,
    flags: Option<u32>,
}

impl Snapshot {
    pub fn of(root: &Path) -> Self {
        let mut entries = BTreeMap::new();
        walk(root, &mut entries);
        Snapshot(entries)
    }

    /// Names only, for what may be written but must not gain or lose an entry.
    pub fn names(root: &Path) -> Vec<PathBuf> {
        Self::of(root).0.into_keys().collect()
    }

    /// Mode of everything below, for what must not be there in any of them.
    pub fn modes(root: &Path) -> Vec<(PathBuf, u32)> {
        Self::of(root).0.into_iter().map(|(path, entry)| (path, entry.mode)).collect()
    }

    /// The first difference, in words.
    pub fn difference(&self, later: &Snapshot) -> Option<String> {
        let gone = self.0.keys().find(|path| !later.0.contains_key(*path));
        let come = later.0.keys().find(|path| !self.0.contains_key(*path));
        let changed = self.0.iter().find(|(path, entry)| later.0.get(*path).is_some_and(|now| now != *entry));
        gone.map(|path| format!("{} is gone", path.display()))
            .or_else(|| come.map(|path| format!("{} has come", path.display())))
            .or_else(|| {
                changed.map(|(path, entry)| format!("{}: {}", path.display(), entry.changes(&later.0[path])))
            })
    }
}

impl Entry {
    fn changes(&self, now: &Entry) -> String {
        let fields = [
            ("inode", self.inode != now.inode),
            ("mode", self.mode != now.mode),
            ("owner", self.owner != now.owner),
            ("links", self.links != now.links),
            ("size", self.size != now.size),
            ("modification time", self.modified != now.modified),
            ("change time", self.changed != now.changed),
            ("content", self.content != now.content),
            ("attributes", self.attributes != now.attributes),
            ("flags", self.flags != now.flags),
        ];
        let changed: Vec<_> =
            fields.into_iter().filter(|(_, changed)| *changed).map(|(name, _)| name).collect();
        format!("other {}", changed.join(", "))
    }
}

fn walk(path: &Path, entries: &mut BTreeMap<PathBuf, Entry>) {
    let meta = path.symlink_metadata().unwrap_or_else(|error| panic!("stat {}: {error}", path.display()));
    let kind = meta.file_type();
    let content = if kind.is_file() {
        fs::read(path).unwrap()
    } else if kind.is_symlink() {
        fs::read_link(path).unwrap().into_os_string().into_encoded_bytes()
    } else {
        Vec::new()
    };
    let special = kind.is_fifo() || kind.is_socket() || kind.is_char_device() || kind.is_block_device();
    let entry = Entry {
        inode: meta.ino(),
        mode: meta.mode(),
        owner: (meta.uid(), meta.gid()),
        links: meta.nlink(),
        size: meta.size(),
        modified: (meta.mtime(), meta.mtime_nsec()),
        changed: (meta.ctime(), meta.ctime_nsec()),
        content,
        attributes: attributes(path),
        flags: if special || kind.is_symlink() { None } else { flags(path) },
    };
    entries.insert(path.to_owned(), entry);
    if kind.is_dir() {
        for child in fs::read_dir(path).unwrap() {
            walk(&child.unwrap().path(), entries);
        }
    }
}

fn attributes(path: &Path) -> Vec<(String, Vec<u8>)> {
    let mut names = vec![0; 4096];
    let Ok(length) = rustix::fs::llistxattr(path, &mut names) else { return Vec::new() };
    let names = names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names
        .map(|name| {
            let name = String::from_utf8_lossy(name).into_owned();
            let mut value = vec![0; 4096];
            let length = rustix::fs::lgetxattr(path, name.as_str(), &mut value).unwrap_or(0);
            value.truncate(length);
            (name, value)
        })
        .collect()
}

fn flags(path: &Path) -> Option<u32> {
    let file = fs::File::open(path).ok()?;
    rustix::fs::ioctl_getflags(&file).ok().map(|flags| flags.bits())
}
