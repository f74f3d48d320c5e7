//! What is counted, and where.

use super::*;

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
    fs::set_permissions(temp.path("ws/locked"), fs::Permissions::from_mode(0o0)).unwrap();
    if !as_nobody("trees::an_unreadable_directory_is_refused_and_a_hidden_one_is_not", &temp.path("ws")) {
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
    settle();
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
    settle();
    assert_eq!(scan_all(&[&temp.path("ws")]).passes, 1);
}

/// Runs the named test again in a mount namespace of its own, in which it is root.
fn in_own_mounts(test: &str, dir: &Path) {
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "--"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env("CONFINE_SCAN_DIR", dir)
        .output()
        .unwrap();
    assert_ran(&output);
}

#[test]
fn mounts_inside_are_named_and_their_names_count_as_outside() {
    let Some(dir) = given_dir() else {
        let temp = Temp::new();
        temp.file("ws/a");
        temp.file("ws/below/a");
        temp.file("ws/cover");
        temp.file("other/a");
        temp.link("ws/a", "other/b");
        temp.dir("ws/bound");
        temp.dir("ws/memory");
        return in_own_mounts("trees::mounts_inside_are_named_and_their_names_count_as_outside", &temp.0);
    };
    let ws = dir.join("ws");
    let mount = |arguments: &[&str], on: &str| {
        let status = Command::new("mount").args(arguments).arg(ws.join(on)).status().unwrap();
        assert!(status.success());
    };
    let other = dir.join("other");
    mount(&["-t", "tmpfs", "none"], "memory");
    fs::write(ws.join("memory/a"), "").unwrap();
    fs::hard_link(ws.join("memory/a"), ws.join("memory/b")).unwrap();
    mount(&["--bind", other.to_str().unwrap()], "bound");
    mount(&["--bind", other.join("a").to_str().unwrap()], "cover");
    let report = scan_all(&[&ws]);
    let mounts: Vec<_> = report.submounts.iter().map(|(_, path)| path.to_str().unwrap()).collect();
    assert_eq!(mounts, ["bound", "cover", "memory"]);
    assert_eq!(suspects(&report), ["a"], "its other name is reached only through the mount");
    let named = scan_all(&[&ws, &ws.join("bound"), &ws.join("memory")]);
    assert!(named.suspects.is_empty(), "roots of their own: {:?}", named.suspects);
    assert_eq!(named.submounts, [(0, PathBuf::from("cover"))]);
}

#[test]
fn the_same_directory_reached_through_a_bind_mount_counts_once() {
    let Some(dir) = given_dir() else {
        let temp = Temp::new();
        temp.file("outside/secret");
        temp.link("outside/secret", "ws/sub/alias");
        temp.dir("again");
        return in_own_mounts("trees::the_same_directory_reached_through_a_bind_mount_counts_once", &temp.0);
    };
    let status =
        Command::new("mount").arg("--bind").args([dir.join("ws"), dir.join("again")]).status().unwrap();
    assert!(status.success());
    for roots in [["ws", "again"], ["again", "ws"], ["again/sub", "ws"], ["ws/sub", "again"]] {
        let report = scan_all(&[&dir.join(roots[0]), &dir.join(roots[1])]);
        assert_eq!((report.suspects.len(), report.suspects[0].seen), (1, 1), "{roots:?}");
    }
}

#[test]
fn device_nodes_are_refused_and_file_systems_that_make_numbers_up_as_well() {
    // Only looked at: the scan opens directories and nothing else.
    let mut devices = scan_all(&[Path::new("/dev")]);
    devices.unverifiable.clear();
    assert!(devices.devices.iter().any(|device| device.path == Path::new("null")));
    assert!(verdict(&devices, Hardlinks::Protect).unwrap_err().to_string().contains("device node"));
    let made_up = scan_all(&[Path::new("/proc/self/attr")]);
    let error = verdict(&made_up, Hardlinks::Reject).unwrap_err();
    assert!(error.to_string().contains("cannot be trusted"), "{error}");
}

/// A chain of directories with two more beside each: whoever walks it comes back up at every level.
fn comb(top: &Path, levels: usize) {
    use rustix::fs::{Mode, OFlags, mkdirat, open, openat};
    let mut dir = open(top, OFlags::DIRECTORY, Mode::empty()).unwrap();
    for _ in 0..levels {
        for name in ["a", "d", "z", "a/x", "z/x"] {
            mkdirat(&dir, name, Mode::RWXU).unwrap();
        }
        dir = openat(&dir, "d", OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
}

#[test]
fn a_deep_tree_costs_as_much_as_it_has_directories() {
    // The shortest of some, since others use the machine as well.
    let time = |levels: usize, max_threads: usize| {
        let temp = Temp::new();
        let ws = temp.path("ws");
        fs::create_dir_all(&ws).unwrap();
        comb(&ws, levels);
        settle();
        let opened = fs::File::open(&ws).unwrap();
        let look = |_| {
            let roots = [Root { dir: opened.as_fd(), path: &ws, writable: true }];
            let report = scan(&roots, &Options { max_threads, ..Options::default() }).unwrap();
            assert_eq!(report.directories as usize, 1 + 5 * levels);
            report.elapsed
        };
        (0..4).map(look).min().unwrap()
    };
    for threads in [1, 2] {
        let (short, long) = (time(400, threads), time(2400, threads));
        // Six times as much, and thirty-six times if each level were reached from the top.
        assert!(long < short * 15, "{threads} threads: {short:?} and {long:?}");
    }
}

#[test]
fn more_paths_than_can_be_kept_are_a_refusal_and_fewer_are_not() {
    let temp = Temp::new();
    let deep = format!("ws/{}", ["d".repeat(250).as_str(); 12].join("/"));
    fs::create_dir_all(temp.path(&deep)).unwrap();
    for number in 0..1000 {
        fs::create_dir(temp.path(&format!("{deep}/{number}"))).unwrap();
        fs::write(temp.path(&format!("{deep}/{number}/.git")), "x").unwrap();
    }
    let ws = temp.path("ws");
    assert_eq!(scan_all(&[&ws]).git_files.len(), 1000);
    for number in 1000..6000 {
        fs::create_dir(temp.path(&format!("{deep}/{number}"))).unwrap();
        fs::write(temp.path(&format!("{deep}/{number}/.git")), "x").unwrap();
    }
    let opened = fs::File::open(&ws).unwrap();
    let roots = [Root { dir: opened.as_fd(), path: &ws, writable: true }];
    let error = scan(&roots, &Options::default()).unwrap_err();
    assert!(error.to_string().contains("too many nested repositories") && error.hint().is_some(), "{error}");
}

#[test]
fn many_submodules_and_worktrees_are_found_with_few_descriptors() {
    let temp = Temp::new();
    for number in 0..200 {
        temp.file(&format!("ws/.git/modules/a/{number}/config"));
        temp.file(&format!("ws/.git/worktrees/{number}/config.worktree"));
    }
    let program = env!("CARGO_BIN_EXE_confine");
    let scan = std::process::Command::new("sh")
        .args(["-c", "ulimit -n 64; exec \"$@\"", "sh", program, "scan", "--json"])
        .arg(temp.path("ws"))
        .output()
        .unwrap();
    let report: serde_json::Value = serde_json::from_slice(&scan.stdout).unwrap();
    assert_eq!(report["control_files"].as_array().unwrap().len(), 400, "{report}");
}
