//! Messages that lead through in one step, and the mending itself.

use super::*;

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
    assert!(confine::commands::scan::run(&[ws.to_path_buf()], true, false).unwrap().good);
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
    assert!(confine::commands::scan::run(std::slice::from_ref(&ws), true, true).unwrap().good);

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
            .args(["--exact", "separate::separate_killed_at_any_moment_loses_nothing", "--test-threads=1"])
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
        assert!(confine::commands::scan::run(std::slice::from_ref(&ws), true, false).unwrap().good);
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
