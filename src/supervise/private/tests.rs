use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};

use super::*;

fn base(name: &str) -> (PathBuf, u32) {
    let base = std::env::temp_dir().join(format!("private-{name}-{}", std::process::id()));
    DirBuilder::new().mode(0o700).create(&base).unwrap();
    let uid = fs::metadata(&base).unwrap().uid();
    (base, uid)
}

fn shut(path: &Path) {
    fs::set_permissions(path, Permissions::from_mode(0o0)).unwrap();
}

#[test]
fn a_directory_is_removed_whatever_the_command_left_in_it() {
    let (base, uid) = base("left");
    let victim = base.join("victim");
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("file"), "x").unwrap();
    shut(&victim.join("file"));
    let private = Private::make(uid, &[&base]).unwrap();
    let deep = private.path().join("home/shut/deep");
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("file"), "x").unwrap();
    symlink(&victim, deep.join("link")).unwrap();
    symlink(victim.join("file"), private.path().join("home/link")).unwrap();
    // Names that the removal itself would use.
    fs::create_dir(private.path().join("1.moved")).unwrap();
    symlink(&victim, private.path().join("2.moved")).unwrap();
    shut(&deep);
    shut(deep.parent().unwrap());
    private.remove();
    assert_eq!(fs::read_dir(&base).unwrap().count(), 1);
    assert_eq!(fs::metadata(victim.join("file")).unwrap().mode() & 0o777, 0);
    assert_eq!(fs::metadata(&victim).unwrap().mode() & 0o777, 0o755);
    fs::remove_dir_all(base).unwrap();
}

/// Deeper than any path is long, and than descriptors there are.
#[test]
fn a_tree_deeper_than_paths_are_long_is_removed() {
    let (base, uid) = base("deep");
    let private = Private::make(uid, &[&base]).unwrap();
    let mut here: OwnedFd = File::open(private.path()).unwrap().into();
    for _ in 0..3000 {
        mkdirat(&here, "deeper", Mode::RWXU).unwrap();
        here = openat(&here, "deeper", OWN | OFlags::RDONLY, Mode::empty()).unwrap();
    }
    private.remove();
    assert_eq!(fs::read_dir(&base).unwrap().count(), 0);
    fs::remove_dir(base).unwrap();
}

#[test]
fn the_next_run_removes_a_dead_one_and_leaves_a_living_one() {
    let (base, uid) = base("dead");
    let living = Private::make(uid, &[&base]).unwrap();
    let dead = base.join(format!("confine-{uid}-1-0"));
    DirBuilder::new().mode(0o700).create(&dead).unwrap();
    fs::write(dead.join("left"), "").unwrap();
    let next = Private::make(uid, &[&base]).unwrap();
    assert!(!dead.exists() && living.path().exists() && next.path() != living.path());
    fs::remove_dir_all(base).unwrap();
}

#[test]
fn what_only_looks_like_ours_is_left_alone() {
    let (base, uid) = base("alike");
    let target = base.join("target");
    DirBuilder::new().mode(0o700).create(&target).unwrap();
    fs::write(target.join("kept"), "").unwrap();
    // A link, a directory that others may enter, another user's name, a file.
    symlink(&target, base.join(format!("confine-{uid}-1-1"))).unwrap();
    let open = base.join(format!("confine-{uid}-1-2"));
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, Permissions::from_mode(0o750)).unwrap();
    let other = base.join(format!("confine-{}-1-1", uid + 1));
    DirBuilder::new().mode(0o700).create(&other).unwrap();
    fs::write(base.join(format!("confine-{uid}-file")), "").unwrap();
    let private = Private::make(uid, &[&base]).unwrap();
    assert!(target.join("kept").exists() && open.exists() && other.exists());
    assert_eq!(fs::read_dir(&base).unwrap().count(), 6);
    assert_eq!(fs::metadata(private.path()).unwrap().mode() & 0o777, 0o700);
    fs::remove_dir_all(base).unwrap();
}

#[test]
fn the_next_place_is_taken_where_the_first_takes_nothing() {
    let (base, uid) = base("next");
    let missing = base.join("missing");
    let private = Private::make(uid, &[&missing, &base]).unwrap();
    assert!(private.path().starts_with(&base));
    let error = Private::make(uid, &[&missing]).unwrap_err();
    assert!(error.hint().unwrap().contains("--state"), "{error}");
    fs::remove_dir_all(base).unwrap();
}
