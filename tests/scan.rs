//! The hard-link scan, on trees of the test's own making.

#![allow(clippy::unwrap_used)] // helpers of tests are not tests to clippy

use std::ffi::OsStr;
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use confine::error::Error;
use confine::policy::{Git, Hardlinks};
use confine::view::scan::{Options, Report, Root, scan, verdict};

/// An identity without rights, for what root would be let through.
const NOBODY: u32 = 54321;

/// A directory that goes when the test does.
struct Temp(PathBuf);

impl Temp {
    fn new() -> Temp {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("confine-scan-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Temp(path.canonicalize().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn dir(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn file(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, name).unwrap();
        path
    }

    /// Links `name` to `original`, both below this directory.
    fn link(&self, original: &str, name: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::hard_link(self.path(original), path).unwrap();
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        // Deep trees are beyond what remove_dir_all's descriptors reach.
        let _ = Command::new("rm").arg("-rf").arg(&self.0).status();
    }
}

fn try_scan(paths: &[&Path], options: &Options<'_>) -> Result<Report, Error> {
    let opened: Vec<_> = paths.iter().map(|path| fs::File::open(path).unwrap()).collect();
    let roots: Vec<_> = paths
        .iter()
        .zip(&opened)
        .map(|(path, file)| Root { dir: file.as_fd(), path, writable: true })
        .collect();
    scan(&roots, options)
}

fn scan_all(paths: &[&Path]) -> Report {
    try_scan(paths, &Options::default()).unwrap()
}

fn suspects(report: &Report) -> Vec<String> {
    report.suspects.iter().map(|suspect| suspect.path.to_string_lossy().into_owned()).collect()
}

#[test]
fn a_link_that_leads_outside_is_a_suspect_and_one_that_stays_inside_is_not() {
    let temp = Temp::new();
    temp.file("outside/secret");
    temp.file("ws/a");
    temp.link("ws/a", "ws/sub/b");
    temp.link("ws/a", "ws/c");
    let clean = scan_all(&[&temp.path("ws")]);
    assert!(clean.suspects.is_empty());
    assert!(verdict(&clean, Hardlinks::Reject).unwrap().is_empty());
    assert_eq!((clean.entries, clean.directories), (4, 2));

    temp.link("outside/secret", "ws/sub/deep/alias");
    let report = scan_all(&[&temp.path("ws")]);
    assert_eq!(suspects(&report), ["sub/deep/alias"]);
    assert_eq!((report.suspects[0].nlink, report.suspects[0].seen), (2, 1));
    let error = verdict(&report, Hardlinks::Reject).unwrap_err();
    assert!(error.to_string().starts_with("1 name leads to files that also have names outside"), "{error}");
    assert_eq!(verdict(&report, Hardlinks::Protect).unwrap(), [(0, PathBuf::from("sub/deep/alias"))]);
}

#[test]
fn symlinks_and_pipes_with_a_name_outside_are_suspects_and_symlinks_are_not_followed() {
    let temp = Temp::new();
    temp.file("outside/secret");
    temp.link("outside/secret", "outside/other");
    temp.dir("ws");
    symlink(temp.path("outside"), temp.path("ws/way")).unwrap();
    assert!(scan_all(&[&temp.path("ws")]).suspects.is_empty());
    symlink("nowhere", temp.path("outside/link")).unwrap();
    let made = Command::new("mkfifo").arg(temp.path("outside/pipe")).status().unwrap();
    assert!(made.success());
    temp.link("outside/link", "ws/link");
    temp.link("outside/pipe", "ws/pipe");
    assert_eq!(suspects(&scan_all(&[&temp.path("ws")])), ["link", "pipe"]);
}

#[test]
fn links_among_several_roots_are_inside_only_when_all_roots_are_given() {
    let temp = Temp::new();
    temp.file("one/a");
    temp.link("one/a", "two/b");
    let (one, two) = (temp.path("one"), temp.path("two"));
    assert!(scan_all(&[&one, &two]).suspects.is_empty());
    assert_eq!(suspects(&scan_all(&[&one])), ["a"]);
    let opened = [fs::File::open(&one).unwrap(), fs::File::open(&two).unwrap()];
    let roots = [
        Root { dir: opened[0].as_fd(), path: &one, writable: true },
        Root { dir: opened[1].as_fd(), path: &two, writable: false },
    ];
    assert_eq!(suspects(&scan(&roots, &Options::default()).unwrap()), ["a"]);
}

#[test]
fn nested_and_repeated_roots_count_a_name_once() {
    let temp = Temp::new();
    temp.file("outside/secret");
    temp.link("outside/secret", "ws/sub/alias");
    temp.file("ws/sub/a");
    temp.link("ws/sub/a", "ws/b");
    let (ws, sub) = (temp.path("ws"), temp.path("ws/sub"));
    for roots in [vec![&*ws, &*sub], vec![&*sub, &*ws], vec![&*ws, &*ws, &*sub, &*sub]] {
        let report = scan_all(&roots);
        assert_eq!(report.suspects.len(), 1, "{:?}", report.suspects);
        assert_eq!(report.suspects[0].seen, 1);
        assert_eq!(report.directories, 2);
    }
}

#[test]
fn a_directory_reached_through_a_symlinked_root_counts_once() {
    let temp = Temp::new();
    temp.file("outside/secret");
    temp.link("outside/secret", "ws/alias");
    symlink(temp.path("ws"), temp.path("again")).unwrap();
    let report = scan_all(&[&temp.path("ws"), &temp.path("again")]);
    assert_eq!((report.suspects.len(), report.suspects[0].seen), (1, 1));
}

#[test]
fn a_single_writable_file_must_have_all_its_names_inside() {
    let temp = Temp::new();
    let file = temp.file("one");
    assert!(scan_all(&[&file]).suspects.is_empty());
    temp.link("one", "ws/two");
    let alone = scan_all(&[&file]);
    assert_eq!((alone.suspects.len(), alone.suspects[0].path.as_os_str()), (1, OsStr::new("")));
    assert!(scan_all(&[&file, &temp.path("ws")]).suspects.is_empty());
    assert_eq!(scan_all(&[&temp.path("ws"), &temp.path("ws/two")]).suspects[0].seen, 1);
}

#[test]
fn names_in_read_only_or_hidden_parts_count_as_outside() {
    let temp = Temp::new();
    temp.file("ws/part/deep/a");
    temp.link("ws/part/deep/a", "ws/b");
    temp.file("ws/file");
    temp.link("ws/file", "ws/c");
    let ws = temp.path("ws");
    assert!(scan_all(&[&ws]).suspects.is_empty());
    let apart = [temp.path("ws/part"), temp.path("ws/file"), temp.path("ws/absent")];
    let options = Options { apart: &apart, ..Options::default() };
    assert_eq!(suspects(&try_scan(&[&ws], &options).unwrap()), ["b", "c"]);
}

#[test]
fn names_in_guarded_control_files_count_as_outside_unless_git_is_free() {
    let temp = Temp::new();
    temp.file("ws/.git/HEAD");
    temp.file("ws/.git/hooks/sub/pre-commit");
    temp.link("ws/.git/hooks/sub/pre-commit", "ws/a");
    temp.file("ws/.git/config");
    temp.link("ws/.git/config", "ws/b");
    temp.file("ws/nested/.git/config");
    temp.link("ws/nested/.git/config", "ws/c");
    let ws = temp.path("ws");
    let report = scan_all(&[&ws]);
    assert_eq!(suspects(&report), ["a", "b", "c"]);
    let expected: Vec<_> = [".git/config", ".git/hooks", "nested/.git/config"]
        .iter()
        .map(|path| (0, PathBuf::from(path)))
        .collect();
    assert_eq!(report.control, expected);
    assert_eq!(report.git_dirs, [(0, PathBuf::from(".git")), (0, PathBuf::from("nested/.git"))]);
    let free = Options { git: Git::Free, ..Options::default() };
    let report = try_scan(&[&ws], &free).unwrap();
    assert!(report.suspects.is_empty() && report.control.is_empty());
}

#[test]
fn control_files_are_found_at_roots_and_repositories_but_not_below_unpacked_packages() {
    let temp = Temp::new();
    for name in [
        "ws/.envrc",
        "ws/.vscode/tasks.json",
        "ws/src/.envrc",
        "ws/repo/.git/config",
        "ws/repo/.mcp.json",
        "ws/module/.git",
        "ws/node_modules/p/.git/config",
        "ws/node_modules/p/.envrc",
        "ws/target/q/.git/config",
    ] {
        temp.file(name);
    }
    let report = scan_all(&[&temp.path("ws")]);
    let control: Vec<_> = report.control.iter().map(|(_, path)| path.to_str().unwrap()).collect();
    assert_eq!(control, [".envrc", ".vscode/tasks.json", "repo/.git/config", "repo/.mcp.json"]);
    assert_eq!(report.git_files, [(0, PathBuf::from("module/.git"))]);
}

/// Runs the named test of this file again as somebody without rights when this process has root's.
fn as_nobody(test: &str, dir: &Path) -> bool {
    if rustix::process::geteuid().as_raw() != 0 {
        return false;
    }
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env("CONFINE_SCAN_DIR", dir)
        .uid(NOBODY)
        .gid(NOBODY)
        .current_dir("/")
        .status()
        .unwrap();
    assert!(status.success(), "{test} fails as uid {NOBODY}");
    true
}

fn given_dir() -> Option<PathBuf> {
    std::env::var_os("CONFINE_SCAN_DIR").map(PathBuf::from)
}

#[test]
fn an_unreadable_directory_is_refused_and_a_hidden_one_is_not() {
    let check = |ws: &Path| {
        let report = scan_all(&[ws]);
        assert_eq!(report.unverifiable.len(), 1);
        assert_eq!(report.unverifiable[0].path, Path::new("locked"));
        for answer in [Hardlinks::Reject, Hardlinks::Protect] {
            let error = verdict(&report, answer).unwrap_err();
            assert!(error.to_string().starts_with("cannot verify that"), "{error}");
            assert!(error.to_string().ends_with("permission denied"), "{error}");
        }
        let apart = [ws.join("locked")];
        let report = try_scan(&[ws], &Options { apart: &apart, ..Options::default() }).unwrap();
        assert!(verdict(&report, Hardlinks::Reject).is_ok());
    };
    if let Some(ws) = given_dir() {
        return check(&ws);
    }
    let temp = Temp::new();
    temp.dir("ws/locked");
    temp.file("ws/fine");
    fs::set_permissions(temp.path("ws/locked"), fs::Permissions::from_mode(0)).unwrap();
    if !as_nobody("an_unreadable_directory_is_refused_and_a_hidden_one_is_not", &temp.path("ws")) {
        check(&temp.path("ws"));
    }
}

#[test]
fn a_tree_of_three_thousand_levels_is_walked_with_few_descriptors() {
    let temp = Temp::new();
    temp.file("outside/secret");
    let ws = temp.dir("ws");
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
    let mut dir = rustix::fs::open(&ws, flags, rustix::fs::Mode::empty()).unwrap();
    for _ in 0..3000 {
        // A sibling on each level keeps its parent waiting.
        rustix::fs::mkdirat(&dir, "side", rustix::fs::Mode::RWXU).unwrap();
        rustix::fs::mkdirat(&dir, "level", rustix::fs::Mode::RWXU).unwrap();
        dir = rustix::fs::openat(&dir, "level", flags, rustix::fs::Mode::empty()).unwrap();
    }
    let secret = temp.path("outside/secret");
    rustix::fs::linkat(rustix::fs::CWD, &secret, &dir, "alias", rustix::fs::AtFlags::empty()).unwrap();
    drop(dir);
    let report = scan_all(&[&ws]);
    assert_eq!(report.directories, 6001);
    assert_eq!(report.suspects.len(), 1);
    assert_eq!(report.suspects[0].path.components().count(), 3001);
    let message = verdict(&report, Hardlinks::Reject).unwrap_err().to_string();
    assert!(message.len() < 1000 && message.ends_with("alias'"), "{message}");
}

#[test]
fn names_that_are_not_utf8_are_counted_and_shown_escaped() {
    let temp = Temp::new();
    temp.file("outside/secret");
    let ws = temp.dir("ws");
    let name = OsStr::from_bytes(b"\xff\xfe\n\x1b[31m");
    fs::create_dir(ws.join(name)).unwrap();
    fs::hard_link(temp.path("outside/secret"), ws.join(name).join(name)).unwrap();
    let report = scan_all(&[&ws]);
    assert_eq!(report.suspects[0].path, Path::new(name).join(name));
    let message = verdict(&report, Hardlinks::Reject).unwrap_err().to_string();
    assert!(message.contains(r"\xff\xfe\n") && !message.contains(['\n', '\x1b']), "{message}");
}

#[test]
fn every_one_of_a_hundred_thousand_entries_is_looked_at() {
    let temp = Temp::new();
    temp.file("outside/secret");
    let ws = temp.dir("ws");
    for directory in 0..1000 {
        let dir = ws.join(format!("{}/{directory}", directory % 7));
        fs::create_dir_all(&dir).unwrap();
        for file in 0..100 {
            fs::write(dir.join(file.to_string()), "").unwrap();
        }
    }
    fs::hard_link(temp.path("outside/secret"), ws.join("3/913/alias")).unwrap_or_else(|_| {
        fs::hard_link(temp.path("outside/secret"), ws.join("3/3/alias")).unwrap();
    });
    for threads in [1, 2, 0] {
        let report = try_scan(&[&ws], &Options { max_threads: threads, ..Options::default() }).unwrap();
        assert_eq!((report.entries, report.directories), (100_000 + 1007 + 1, 1008));
        assert_eq!(report.suspects.len(), 1);
    }
}

#[test]
fn the_first_pass_is_the_last_when_nothing_has_changed() {
    let temp = Temp::new();
    temp.file("ws/a");
    temp.link("ws/a", "ws/b");
    std::thread::sleep(Duration::from_millis(60));
    assert_eq!(scan_all(&[&temp.path("ws")]).passes, 1);
}

/// Runs `work` over and over beside `check`.
fn beside(work: impl Fn(u64) + Sync, check: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let neighbour = scope.spawn(|| {
            for turn in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                work(turn);
            }
        });
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check));
        stop.store(true, Ordering::Relaxed);
        neighbour.join().unwrap();
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
}

fn busy_tree(temp: &Temp) -> PathBuf {
    for directory in 0..40 {
        for file in 0..20 {
            temp.file(&format!("ws/d{directory}/f{file}"));
        }
        temp.link(&format!("ws/d{directory}/f0"), &format!("ws/d{}/g", (directory + 1) % 40));
    }
    temp.path("ws")
}

/// What a build next door does: links, renames and removes in some directories, and pauses.
fn build(ws: &Path, turn: u64) {
    let dir = |number: u64| ws.join(format!("d{}", number % 8 * 5));
    let made = dir(turn * 7).join("made");
    fs::write(&made, "x").unwrap();
    fs::hard_link(&made, dir(turn * 11 + 1).join("linked")).unwrap();
    fs::rename(&made, dir(turn * 13 + 2).join("moved")).unwrap();
    fs::remove_file(dir(turn * 11 + 1).join("linked")).unwrap();
    fs::remove_file(dir(turn * 13 + 2).join("moved")).unwrap();
    std::thread::sleep(Duration::from_millis(15));
}

#[test]
fn a_neighbour_that_links_and_renames_inside_makes_no_false_alias() {
    let temp = Temp::new();
    let ws = busy_tree(&temp);
    let mut clean = 0;
    beside(
        |turn| build(&ws, turn),
        || {
            for _ in 0..200 {
                match try_scan(&[&ws], &Options::default()) {
                    Ok(report) => {
                        assert!(report.suspects.is_empty(), "{:?}", report.suspects);
                        clean += 1;
                    }
                    Err(error) => {
                        assert!(error.to_string().starts_with("the workspace is changing"), "{error}")
                    }
                }
            }
        },
    );
    assert!(clean >= 190, "only {clean} of 200 scans came to an end beside an ordinary build");
}

#[test]
fn an_alias_beside_a_busy_neighbour_is_never_missed() {
    let temp = Temp::new();
    let ws = busy_tree(&temp);
    temp.file("outside/secret");
    temp.link("outside/secret", "ws/d23/alias");
    beside(
        |turn| build(&ws, turn),
        || {
            for _ in 0..200 {
                match try_scan(&[&ws], &Options::default()) {
                    Ok(report) => assert_eq!(suspects(&report), ["d23/alias"]),
                    Err(error) => {
                        assert!(error.to_string().starts_with("the workspace is changing"), "{error}")
                    }
                }
            }
        },
    );
}

#[test]
fn an_alias_that_is_moved_about_without_pause_is_found_or_the_scan_refuses() {
    let temp = Temp::new();
    let ws = busy_tree(&temp);
    temp.file("outside/secret");
    temp.link("outside/secret", "ws/d0/alias");
    let (mut found, mut refused) = (0, 0);
    beside(
        |turn| {
            let dir = |number: u64| ws.join(format!("d{}", number % 40)).join("alias");
            fs::rename(dir(turn * 17), dir(turn * 17 + 17)).unwrap();
        },
        || {
            for _ in 0..200 {
                match try_scan(&[&ws], &Options::default()) {
                    Ok(report) => {
                        assert_eq!(report.suspects.len(), 1, "missed: {report:?}");
                        found += 1;
                    }
                    Err(error) => {
                        assert!(error.to_string().starts_with("the workspace is changing"), "{error}");
                        refused += 1;
                    }
                }
            }
        },
    );
    assert_eq!(found + refused, 200);
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The message, its one step, and a clean scan after it.
fn is_mended_in_one_step(ws: &Path, cause: &str) {
    let report = scan_all(&[ws]);
    assert!(!report.suspects.is_empty());
    let error = verdict(&report, Hardlinks::Reject).unwrap_err();
    assert!(error.to_string().contains(cause), "{error}");
    let step = format!("confine scan --separate '{}'", ws.display());
    assert!(error.hint().unwrap().starts_with(&step), "{:?}", error.hint());
    assert_eq!(confine::commands::scan::run(&[ws.to_path_buf()], true, false).unwrap(), 0);
    assert!(scan_all(&[ws]).suspects.is_empty());
}

#[test]
fn a_git_clone_of_a_local_path_is_led_through() {
    let temp = Temp::new();
    let source = temp.dir("source");
    temp.file("source/a");
    for arguments in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "one"]] {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
        run(Command::new("git").arg("-C").arg(&source).args(identity).args(arguments));
    }
    let ws = temp.path("ws");
    run(Command::new("git").arg("clone").arg("-q").arg(&source).arg(&ws));
    is_mended_in_one_step(&ws, "git clone of a local path");
    run(Command::new("git").arg("-C").arg(&ws).args(["fsck", "--strict"]));
}

#[test]
fn a_pnpm_store_and_a_uv_cache_are_led_through() {
    let temp = Temp::new();
    temp.file("store/files/00/abc");
    temp.link("store/files/00/abc", "node/node_modules/.pnpm/a@1.0.0/node_modules/a/index.js");
    is_mended_in_one_step(&temp.path("node"), "pnpm");
    temp.file("cache/archive-v0/x/mod.py");
    temp.link("cache/archive-v0/x/mod.py", "python/.venv/lib/python3.11/site-packages/mod.py");
    is_mended_in_one_step(&temp.path("python"), "uv");
}

#[test]
fn a_separated_file_keeps_everything_but_its_inode() {
    let temp = Temp::new();
    let original = temp.file("outside/original");
    fs::set_permissions(&original, fs::Permissions::from_mode(0o4751)).unwrap();
    run(Command::new("touch").args(["-d", "2001-02-03 04:05:06.123456789"]).arg(&original));
    let attribute = "user.confine-test";
    rustix::fs::setxattr(&original, attribute, b"kept", rustix::fs::XattrFlags::empty()).unwrap();
    temp.link("outside/original", "ws/a");
    temp.link("outside/original", "ws/sub/b");
    symlink("target", temp.path("outside/link")).unwrap();
    temp.link("outside/link", "ws/link");
    let ws = temp.path("ws");
    assert_eq!(confine::commands::scan::run(std::slice::from_ref(&ws), true, true).unwrap(), 0);

    let (before, after) = (fs::metadata(&original).unwrap(), fs::metadata(ws.join("a")).unwrap());
    assert_ne!(before.ino(), after.ino());
    assert_eq!(after.ino(), fs::metadata(ws.join("sub/b")).unwrap().ino(), "links inside stay links");
    assert_eq!((before.nlink(), after.nlink()), (1, 2));
    let kept = |data: &fs::Metadata| (data.mode(), data.uid(), data.gid(), data.mtime(), data.mtime_nsec());
    assert_eq!(kept(&before), kept(&after));
    assert_eq!(fs::read(ws.join("a")).unwrap(), b"outside/original");
    let mut value = [0_u8; 16];
    let length = rustix::fs::getxattr(ws.join("a"), attribute, value.as_mut_slice()).unwrap();
    assert_eq!(&value[..length], b"kept");
    assert_eq!(fs::read_link(ws.join("link")).unwrap(), Path::new("target"));
    assert_eq!(fs::symlink_metadata(temp.path("outside/link")).unwrap().nlink(), 1);
    assert_eq!(fs::read_dir(&ws).unwrap().count(), 3, "nothing is left over");
}

#[test]
fn separate_killed_at_any_moment_loses_nothing() {
    if let Some(ws) = given_dir() {
        let _ = confine::commands::scan::run(&[ws], true, false);
        return;
    }
    const FILES: usize = 60;
    let temp = Temp::new();
    let content = |number: usize| format!("{number}").repeat(5000);
    let mut clean = 0;
    for round in 0..24_u64 {
        let ws = temp.dir(&format!("ws{round}"));
        let store = temp.dir(&format!("store{round}"));
        for number in 0..FILES {
            fs::write(store.join(number.to_string()), content(number)).unwrap();
            fs::hard_link(store.join(number.to_string()), ws.join(number.to_string())).unwrap();
            fs::hard_link(store.join(number.to_string()), ws.join(format!("{number}-too"))).unwrap();
        }
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "separate_killed_at_any_moment_loses_nothing", "--test-threads=1"])
            .env("CONFINE_SCAN_DIR", &ws)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(3 + round * round % 97));
        let _ = child.kill();
        let done = child.wait().unwrap().success();
        let whole = |dir: &Path| {
            for number in 0..FILES {
                assert_eq!(fs::read_to_string(store.join(number.to_string())).unwrap(), content(number));
                assert_eq!(fs::read_to_string(dir.join(number.to_string())).unwrap(), content(number));
                assert_eq!(fs::read_to_string(dir.join(format!("{number}-too"))).unwrap(), content(number));
            }
        };
        whole(&ws);
        clean += usize::from(done);
        assert_eq!(confine::commands::scan::run(std::slice::from_ref(&ws), true, false).unwrap(), 0);
        whole(&ws);
        assert_eq!(fs::read_dir(&ws).unwrap().count(), 2 * FILES, "leftovers are cleaned by the next run");
        assert!(scan_all(&[&ws]).suspects.is_empty());
    }
    assert!(clean < 24, "no run was killed in its middle");
}

#[test]
fn a_neighbour_that_replaces_names_while_they_are_separated_keeps_its_files() {
    let temp = Temp::new();
    let ws = temp.dir("ws");
    let mut written = 0;
    for number in 0..100 {
        temp.file(&format!("store/{number}"));
        temp.link(&format!("store/{number}"), &format!("ws/{number}"));
    }
    let last = AtomicU32::new(0);
    beside(
        |turn| {
            let number = turn % 100;
            fs::write(temp.path("new"), format!("new {turn}")).unwrap();
            fs::rename(temp.path("new"), ws.join(number.to_string())).unwrap();
            last.store(turn as u32, Ordering::Relaxed);
        },
        || {
            let until = Instant::now() + Duration::from_secs(5);
            while last.load(Ordering::Relaxed) < 300 && Instant::now() < until {
                let _ = confine::commands::scan::run(std::slice::from_ref(&ws), true, false);
            }
        },
    );
    let turns = u64::from(last.load(Ordering::Relaxed));
    for number in 0..100_u64 {
        let text = fs::read_to_string(ws.join(number.to_string())).unwrap();
        let newest = (0..=turns).rev().find(|turn| turn % 100 == number);
        if let Some(turn) = newest {
            assert_eq!(text, format!("new {turn}"));
            written += 1;
        }
    }
    assert_eq!(written, 100);
    for number in 0..100 {
        assert_eq!(
            fs::read_to_string(temp.path(&format!("store/{number}"))).unwrap(),
            format!("store/{number}")
        );
    }
}
