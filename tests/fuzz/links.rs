//! Hard links: the scan against a plain walk that counts every name.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use confine::view::scan::{Options, Root, scan};

use super::chance::Chance;

/// A step is two bytes for a file, three for a link; see `grow`.
pub const CORPUS: &[&[u8]] = &[
    &[1, 0, 0, 0, 4, 1, 0, 1, 1, 4, 0],
    &[0, 0, 0, 0, 1, 0, 2, 0, 3, 1, 0, 1, 1, 1, 2, 1, 2, 3, 1, 3, 0],
    &[1, 2, 0, 4, 0, 0, 1, 0, 1, 1, 1, 2, 0, 5, 1, 3, 2, 1, 0, 3],
];

/// Two roots, a part of the first that is read-only inside, and the outside.
const PLACES: [&str; 6] = ["a", "a/deep/er", "b", "a/apart", "outside", "outside/sub"];

struct Tree(PathBuf);

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Tree {
    fn grow(chance: &mut Chance<'_>) -> Tree {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // In memory where there is such a place: many small trees.
        let shm = Path::new("/dev/shm");
        let base = if shm.is_dir() { shm.to_owned() } else { std::env::temp_dir().canonicalize().unwrap() };
        let tree = Tree(base.join(format!("confine-links-{}-{number}", std::process::id())));
        for place in PLACES {
            fs::create_dir_all(tree.0.join(place)).unwrap();
        }
        let mut files: Vec<PathBuf> = Vec::new();
        for step in 0..64 {
            if chance.is_over() {
                break;
            }
            let link = chance.byte() % 2 == 1 && !files.is_empty();
            let name = tree.0.join(chance.pick(&PLACES)).join(format!("f{step}"));
            if link {
                fs::hard_link(chance_of(chance, &files), &name).unwrap();
            } else {
                fs::write(&name, "").unwrap();
            }
            files.push(name);
        }
        tree
    }

    /// Every name of a file, by its inode.
    fn names(&self) -> BTreeMap<u64, Vec<PathBuf>> {
        let mut names: BTreeMap<u64, Vec<PathBuf>> = BTreeMap::new();
        let mut left = vec![self.0.clone()];
        while let Some(directory) = left.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                let metadata = path.symlink_metadata().unwrap();
                match metadata.is_dir() {
                    true => left.push(path),
                    false => names.entry(metadata.ino()).or_default().push(path),
                }
            }
        }
        names
    }
}

fn chance_of<'a>(chance: &mut Chance<'_>, files: &'a [PathBuf]) -> &'a Path {
    &files[chance.below(files.len())]
}

pub fn check(bytes: &[u8]) {
    let mut chance = Chance::new(bytes);
    let both = chance.byte() % 2 == 1;
    let tree = Tree::grow(&mut chance);
    let paths: Vec<PathBuf> =
        ["a", "b"][..1 + usize::from(both)].iter().map(|name| tree.0.join(name)).collect();
    let apart = [tree.0.join("a/apart")];

    let is_inside =
        |path: &PathBuf| paths.iter().any(|root| path.starts_with(root)) && !path.starts_with(&apart[0]);
    let mut expected = Vec::new();
    for mut names in tree.names().into_values() {
        let all = names.len();
        names.retain(is_inside);
        if names.len() < all {
            expected.extend(names);
        }
    }
    expected.sort();

    let opened: Vec<File> = paths.iter().map(|path| File::open(path).unwrap()).collect();
    let root = |(dir, path): (_, _)| Root { dir: AsFd::as_fd(dir), path, writable: true };
    let roots: Vec<Root<'_>> = opened.iter().zip(paths.iter().map(PathBuf::as_path)).map(root).collect();
    let report = scan(&roots, &Options { apart: &apart, ..Options::default() }).unwrap();
    let mut found: Vec<PathBuf> =
        report.suspects.iter().map(|suspect| report.full(suspect.root, &suspect.path)).collect();
    found.sort();
    assert_eq!(found, expected);
}
