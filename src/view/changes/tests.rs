use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

struct Tree(PathBuf);

impl Tree {
    fn new(name: &str) -> Tree {
        let path = std::env::temp_dir().join(format!("confine-changes-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Tree(path)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn look(&self) -> Snapshot {
        let fd = fs::File::open(&self.0).unwrap().into();
        look(&[Root { path: self.0.clone(), fd }], &mut || true)
    }

    /// `change path kind keys` of each.
    fn told(&self, before: &Snapshot) -> Vec<String> {
        let changes = self.look().since(before);
        assert!(changes.complete && changes.more == 0, "{changes:?}");
        let name = |path: &Path| path.strip_prefix(&self.0).unwrap().display().to_string();
        let tell = |change: &Change| {
            format!("{} {} {:?} {}", change.change, name(&change.path), change.kind, change.keys.join(","))
        };
        changes.files.iter().map(|change| tell(change).trim_end().to_owned()).collect()
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn work_is_no_change() {
    let tree = Tree::new("work");
    tree.write(".git/HEAD", "ref");
    tree.write(".git/config", "[core]\n");
    tree.write(".git/hooks/pre-commit", "x");
    tree.write(".envrc", "x");
    let before = tree.look();
    for name in ["src/main.rs", ".git/index", ".git/objects/aa/bb", "Makefile", "node_modules/p/.envrc"] {
        tree.write(name, "x");
    }
    fs::write(tree.0.join(".envrc"), "x").unwrap();
    assert!(tree.told(&before).is_empty(), "{:?}", tree.told(&before));
}

#[test]
fn whatever_runs_by_itself_is_told() {
    let tree = Tree::new("runs");
    tree.write(".git/HEAD", "ref");
    tree.write(".git/config", "[core]\n\tbare = false\n[alias]\n\tco = checkout\n");
    tree.write(".git/hooks/pre-commit", "x");
    tree.write(".vscode/tasks.json", "{}");
    let before = tree.look();
    tree.write(
        ".git/config",
        "[core]\n\tbare = false\n\tfsmonitor = ./x\n\thooksPath = h\n[alias]\n\tco = !x\n",
    );
    tree.write(".git/hooks/pre-commit", "y");
    tree.write(".git/hooks/post-merge", "y");
    tree.write(".git/commondir", "..");
    tree.write(".vscode/tasks.json", "{ }");
    tree.write("deep/er/.envrc", "x");
    tree.write("node_modules/p/.git/config", "[filter \"f\"]\nclean = x\n");
    tree.write("bare/HEAD", "x");
    tree.write("bare/objects/x", "x");
    tree.write("bare/refs/x", "x");
    tree.write("bare/config", "[alias]\nx = !x\n");
    tree.write("sub/.git", "gitdir: ../bare\n");
    symlink("../elsewhere", tree.0.join(".claude")).unwrap();
    tree.write("su", "x");
    fs::set_permissions(tree.0.join("su"), fs::Permissions::from_mode(0o4755)).unwrap();
    let wanted = [
        "new bare Repository",
        "new node_modules/p/.git Repository",
        "new sub/.git Repository",
        "new .git/commondir Git",
        "changed .git/config Git alias.co,core.fsmonitor,core.hookspath",
        "new .git/hooks/post-merge Git",
        "changed .git/hooks/pre-commit Git",
        "new bare/config Git alias.x",
        "new node_modules/p/.git/config Git filter.f.clean",
        "new .claude Tool",
        "changed .vscode/tasks.json Tool",
        "new deep/er/.envrc Tool",
        "new su Setuid",
    ];
    assert_eq!(tree.told(&before), wanted);
}

#[test]
fn an_executable_bit_and_a_link_instead_of_a_directory_are_changes() {
    let tree = Tree::new("bits");
    tree.write(".git/hooks/pre-commit", "x");
    let before = tree.look();
    fs::set_permissions(tree.0.join(".git/hooks/pre-commit"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(tree.told(&before), ["changed .git/hooks/pre-commit Git"]);
    fs::rename(tree.0.join(".git/hooks"), tree.0.join("h")).unwrap();
    symlink("../h", tree.0.join(".git/hooks")).unwrap();
    assert_eq!(tree.told(&before), ["new .git/hooks Git"]);
}

#[test]
fn what_cannot_be_looked_into_is_named_and_an_unfinished_look_is_not_complete() {
    let tree = Tree::new("deep");
    tree.write("a/b", "x");
    let before = tree.look();
    // Longer than a path may be, which is how a repository could be hidden.
    let mut dir =
        rustix::fs::open(&tree.0, rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty()).unwrap();
    let name = "d".repeat(250);
    for _ in 0..20 {
        rustix::fs::mkdirat(&dir, &*name, rustix::fs::Mode::RWXU).unwrap();
        dir = rustix::fs::openat(&dir, &*name, rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty())
            .unwrap();
    }
    let changes = tree.look().since(&before);
    assert!(!changes.complete && changes.unseen.len() == 1, "{changes:?}");
    let fd = fs::File::open(&tree.0).unwrap().into();
    let stopped = look(&[Root { path: tree.0.clone(), fd }], &mut || false);
    assert!(!stopped.since(&before).complete);
    let _ = std::process::Command::new("rm").arg("-rf").arg(&tree.0).status();
}

/// Kibibytes that the process has had at most.
fn peak() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}

fn sparse(tree: &Tree, name: &str, size: u64) {
    tree.write(name, "");
    fs::File::options().write(true).open(tree.0.join(name)).unwrap().set_len(size).unwrap();
}

/// All of them in one tree, so that whatever else runs in this process adds to one figure only.
#[test]
fn a_hostile_tree_costs_a_bounded_room_and_is_told_in_a_bounded_line() {
    const MOST: usize = 160 << 10;
    let tree = Tree::new("hostile");
    tree.write(".git/HEAD", "ref");
    tree.write(".envrc", "x");
    let before = tree.look();
    let keys: String = (0..10_000).map(|number| format!("{number:x}\n")).collect();
    tree.write("section/.git/config", &format!("[{}]\n{keys}", "A".repeat(100_000)));
    tree.write("include/.git/config", &format!("[include]\n{}", "path = x\n".repeat(100_000)));
    for number in 0..60 {
        sparse(&tree, &format!("sparse{number}/.git/config"), 1 << 20);
    }
    for number in 0..200 {
        sparse(&tree, &format!("hooks/.git/hooks/{number}"), 2 << 20);
    }
    let deep = ["d".repeat(250).as_str(); 12].join("/");
    for number in 0..6000 {
        tree.write(&format!("{deep}/{number}/.git"), "x");
    }
    tree.write(".git/hooks/pre-commit", "x");
    tree.write(".envrc", "y");
    let after = tree.look();
    let changes = after.since(&before);
    let line = serde_json::to_string(&changes).unwrap();
    assert!(peak() < MOST, "{} KiB", peak());
    assert!(line.len() < 6 << 20, "{}", line.len());
    assert!(!changes.complete && changes.more > 0);
    let told = |name: &str| changes.files.iter().any(|change| change.path == tree.0.join(name));
    assert!(told(".git/hooks/pre-commit"), "its own repository comes first");
    assert!(changes.unseen.iter().any(|unseen| unseen.beyond), "{:?}", changes.unseen.len());
}

#[test]
fn what_is_over_a_bound_is_told_and_its_change_too() {
    let tree = Tree::new("over");
    tree.write(".git/HEAD", "ref");
    sparse(&tree, ".git/config", 2 << 20);
    sparse(&tree, ".envrc", 2 << 20);
    let before = tree.look();
    let again = tree.look().since(&before);
    assert!(again.files.is_empty(), "{:?}", again.files);
    assert!(again.unseen.iter().any(|unseen| unseen.path.ends_with(".git/config")) && !again.complete);
    for name in [".git/config", ".envrc"] {
        use std::os::unix::fs::FileExt;
        fs::File::options().write(true).open(tree.0.join(name)).unwrap().write_at(b"x", 3 << 19).unwrap();
    }
    let changes = tree.look().since(&before);
    assert_eq!(changes.files.len(), 2, "{:?}", changes.files);
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let tree = Tree::new("odd");
    tree.write(".git/HEAD", "ref");
    let before = tree.look();
    for name in [".git/config", ".envrc"] {
        rustix::fs::mknodat(
            rustix::fs::CWD,
            tree.0.join(name),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
    }
    symlink("hooks", tree.0.join(".git/hooks")).unwrap();
    assert_eq!(tree.told(&before), ["new .git/config Git", "new .git/hooks Git", "new .envrc Tool"]);
}

#[test]
fn many_of_a_kind_do_not_hide_another() {
    let tree = Tree::new("kinds");
    let before = tree.look();
    for number in 0..600 {
        tree.write(&format!("{number}/.git"), "x");
    }
    tree.write("z/.envrc", "x");
    let changes = tree.look().since(&before);
    assert_eq!((changes.files.len(), changes.more), (501, 100));
    assert!(changes.complete && changes.files.last().unwrap().path.ends_with("z/.envrc"));
}
