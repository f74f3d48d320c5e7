//! How the list is told.

use super::*;

#[test]
fn the_list_is_an_object_or_a_profile_when_asked_for() {
    let scratch = Scratch::new(Who::User);
    fill(&scratch);
    let out = scratch.outside().display().to_string();
    let script =
        format!("cat {out}/f {out}/f {out}/g 2>&-; echo > {out}/new; cat ~/.ssh/id; unshare -U; true");
    let outcome = trace(&scratch).option("--json").shell(&script);
    let line = outcome.err.lines().last().unwrap();
    let object: Value = serde_json::from_str(line).unwrap();
    assert_eq!(
        (&object["version"], &object["event"], &object["more"]),
        (&1.into(), &"traced".into(), &0.into())
    );
    let first = &object["denied"][0];
    assert_eq!((&first["operation"], &first["path"]), (&"read".into(), &format!("{out}/f").into()));
    assert_eq!(object["denied"].as_array().unwrap().len(), 5, "{object}");
    let outcome = trace(&scratch).option("--suggest").shell(&script);
    let from = outcome.err.find("# What").unwrap();
    let secret = scratch.home().join(".ssh/id").display().to_string();
    let profile = outcome.err[from..].lines().skip(1).collect::<Vec<_>>().join("\n");
    assert_eq!(
        profile,
        format!(
            "rw = [\n    \"{out}\",\n]\n# allow = [\"userns\"]  # opens more of the kernel\n# ro = [\"{secret}\"]  # \
             credentials: keys"
        )
    );
    assert_eq!(fs::read_dir(scratch.workspace()).unwrap().count(), 2);
    // As a policy file it allows what is not doubtful, and nothing else of it.
    let file = scratch.file("home/profile.toml", &outcome.err[from..]);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let twin = plain(&scratch).option("--policy").option(&file).shell(&script);
    assert!(scratch.path("outside/new").exists(), "{}", twin.tell());
    assert!(twin.err.contains(".ssh/id") && twin.err.contains("unshare"), "{}", twin.tell());
}

#[test]
fn names_cannot_drive_a_terminal_and_the_list_is_bounded() {
    let scratch = Scratch::new(Who::User);
    scratch.dir("outside/many");
    for number in 0..1010 {
        fs::write(scratch.path(&format!("outside/many/{number}")), "").unwrap();
    }
    fs::write(scratch.path("outside/many/\u{1b}[31m\n"), "").unwrap();
    let many = scratch.path("outside/many").display().to_string();
    let script = format!(
        "import os\nfor name in ['\\x1b[31m\\n'] + [str(n) for n in range(1010)]:\n for _ in range(2):\n  try: open('{many}/' + name)\n  \
         except OSError: pass"
    );
    for option in [&[][..], &["--suggest"], &["--json"]] {
        let outcome = trace(&scratch).options(option).command(["python3", "-c", &script]).run();
        assert!(
            outcome.ok() && !outcome.err.contains('\u{1b}') && !outcome.err.contains("31m\n"),
            "{}",
            outcome.tell()
        );
        assert!(outcome.err.contains("more"), "{}", outcome.tell());
        if option.is_empty() {
            assert!(
                outcome.err.contains(r"\u{1b}[31m\n") && outcome.err.contains("and 22 more"),
                "{}",
                outcome.tell()
            );
            assert_eq!(outcome.err.matches("view: not visible").count(), 1000);
        }
    }
}

#[test]
fn what_programs_obey_and_what_holds_secrets_is_only_a_comment() {
    let mut findings = common::Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        let home = scratch.home().display().to_string();
        let obeyed = [
            ".config/confine/shell.toml",
            ".config/autostart/x.desktop",
            ".config/git/hooks/pre-commit",
            ".vim/plugin/x.vim",
            ".gradle/init.gradle",
            ".unheard-of",
        ];
        let secret =
            [".Xauthority", ".config/rclone/rclone.conf", ".m2/settings.xml", ".ssh/id_rsa", ".other"];
        let twins = ["plain/read", "plain2/written"];
        for file in obeyed.iter().chain(&secret).chain(&twins).map(|file| scratch.home().join(file)) {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "text").unwrap();
        }
        let owner = fs::metadata(scratch.home()).unwrap();
        let owner = format!(
            "{}:{}",
            std::os::unix::fs::MetadataExt::uid(&owner),
            std::os::unix::fs::MetadataExt::gid(&owner)
        );
        assert!(Command::new("chown").args(["-R", &owner, &home]).status().unwrap().success());
        let ws = scratch.workspace().display().to_string();
        let mut script =
            format!("ln -s {home}/.ssh/id_rsa l; cat l; ln -s {home}/.config/autostart/new m; echo > m;");
        for file in obeyed {
            script.push_str(&format!("echo >> {home}/{file};"));
        }
        for file in secret {
            script.push_str(&format!("cat {home}/{file};"));
        }
        script.push_str(&format!("ls /run; cat {home}/plain/read; echo >> {home}/plain2/written; true"));
        let outcome = trace(&scratch).option("--suggest").shell(format!("exec 2>&-; {script}"));
        let Some(from) = outcome.err.find("# What") else { panic!("{}", outcome.tell()) };
        let in_force: String = outcome.err[from..]
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| format!("{line}\n"))
            .collect();
        findings.claim(
            in_force
                == format!(
                    "ro = [\n    \"{home}/plain/read\",\n]\nrw = [\n    \"{home}/plain2/written\",\n]\n"
                ),
            || format!("{who:?}: {}", outcome.tell()),
        );
        for line in [
            format!("# ro = [\"{home}/.ssh/id_rsa\"]  # credentials"),
            format!("# rw = [\"{home}/.config/autostart\"]  # ~/.config/autostart: runs later"),
        ] {
            findings.claim(outcome.err.contains(&line), || format!("{who:?} {line}: {}", outcome.tell()));
        }
        findings.claim(!outcome.err.contains(&format!("{ws}/l")), || format!("{who:?}: {}", outcome.tell()));
    }
    findings.settle();
}
