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
