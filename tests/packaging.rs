//! What is packaged is what there is: one list of files, the licences and counts of the crates, and one version.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A directory that goes when the test does.
struct Temp(PathBuf);

impl Temp {
    fn new(name: &str) -> Temp {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Temp(path)
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn run(directory: &Path, words: &[&str]) -> Output {
    Command::new(directory.join(words[0])).args(&words[1..]).current_dir(directory).output().unwrap()
}

#[track_caller]
fn passes(words: &[&str]) {
    let output = run(Path::new(ROOT), words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_licences_of_all_crates_are_those_that_are_built_in() {
    passes(&["packaging/crates", "licences", "--check"]);
}

/// A package says every licence that is in it; Debian's record names the crates that have another than most.
#[test]
fn every_licence_of_a_crate_is_one_of_the_package() {
    let read = |name: &str| fs::read_to_string(Path::new(ROOT).join(name)).unwrap();
    let list = read("THIRD-PARTY-LICENSES");
    let crates: Vec<(&str, &str)> = list
        .lines()
        .filter_map(|line| line.strip_prefix("- ")?.split_once(": "))
        .map(|(name, licence)| (name.split(' ').next().unwrap(), licence.trim_end_matches(", at build time")))
        .collect();
    assert!(crates.len() > 20 && crates.iter().any(|(_, licence)| *licence != "MIT"));
    let debian = read("packaging/debian/copyright");
    for (recipe, field) in
        [("packaging/rpm/confine.spec", "License:"), ("packaging/alpine/APKBUILD", "license=")]
    {
        let text = read(recipe);
        let expression = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        let said: Vec<&str> = expression.trim().trim_matches('"').split(" AND ").collect();
        for (name, licence) in &crates {
            for licence in licence.split(" and ") {
                assert!(said.contains(&licence), "{recipe}: {name} is under {licence}");
            }
        }
    }
    for (name, licence) in &crates {
        let stanza = debian.split("\n\n").find(|part| part.starts_with(&format!("Files: vendor/{name}-*\n")));
        let wanted = format!("\nLicense: {}", licence.replace("MIT", "Expat"));
        let stanza = match *licence {
            "MIT" => debian.split("\n\n").find(|part| part.starts_with("Files: vendor/*\n")),
            _ => stanza,
        };
        let said = stanza.unwrap_or_else(|| panic!("debian/copyright has no word about {name}: {licence}"));
        assert!(said.contains(&wanted), "{name} is under {licence}: {said}");
    }
}

#[test]
fn every_crate_has_a_reason_and_its_count_of_unsafe() {
    passes(&["packaging/crates", "tables", "--check"]);
}

/// Beside its own directory the script reads these.
fn copy_of_what_names_the_version(to: &Path) {
    let list = ["Cargo.toml", "Cargo.lock", "CHANGELOG.md", "packaging", "man"];
    let copied = Command::new("cp").arg("-r").args(list).arg(to).current_dir(ROOT).status().unwrap();
    assert!(copied.success());
}

fn replace(file: &Path, old: &str, new: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains(old), "{} lacks {old}", file.display());
    fs::write(file, text.replace(old, new)).unwrap();
}

#[test]
fn every_recipe_names_the_version_of_the_program() {
    passes(&["packaging/release", "--check"]);
    let version = env!("CARGO_PKG_VERSION");
    for file in [
        "Cargo.lock",
        "packaging/debian/changelog",
        "packaging/rpm/confine.spec",
        "packaging/arch/PKGBUILD",
        "packaging/alpine/APKBUILD",
        "packaging/homebrew/confine.rb",
    ] {
        let temp = Temp::new("version");
        copy_of_what_names_the_version(&temp.0);
        // In the lock file another crate may have this number as well.
        let old = if file == "Cargo.lock" {
            format!("\"confine\"\nversion = \"{version}\"")
        } else {
            version.into()
        };
        replace(&temp.0.join(file), &old, &old.replace(version, "99.1.2"));
        let output = run(&temp.0, &["packaging/release", "--check"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{file}");
        assert!(said.contains(file), "{file}: {said}");
    }
}

/// One release that is in order, and each thing that may be forgotten.
#[test]
fn a_release_is_refused_until_changelog_and_manual_pages_agree() {
    let version = env!("CARGO_PKG_VERSION");
    let heading = format!("## [{version}] - 2026-12-24");
    // What is said, and what was put in the place of what.
    let cases: [(&str, &str, &str, &str); 4] = [
        ("nothing", "changes that are not committed", "", ""),
        ("date", "is not of December 23, 2026", "2026-12-24", "2026-12-23"),
        ("heading", "where a release has", &heading, "## [99.0.0] - 2026-12-24"),
        ("unreleased", "changes under Unreleased", "## [Unreleased]\n", "## [Unreleased]\n\n- More.\n"),
    ];
    for (case, expected, old, new) in cases {
        let temp = Temp::new(case);
        copy_of_what_names_the_version(&temp.0);
        let changelog = temp.0.join("CHANGELOG.md");
        fs::write(
            &changelog,
            format!("# Changelog\n\n## [Unreleased]\n\n{heading}\n\n### Added\n\n- All.\n"),
        )
        .unwrap();
        for page in fs::read_dir(temp.0.join("man")).unwrap() {
            let page = page.unwrap().path();
            let text = fs::read_to_string(&page).unwrap();
            let dated = text.lines().map(|line| match line.starts_with(".Dd ") {
                true => ".Dd December 24, 2026\n".to_owned(),
                false => format!("{line}\n"),
            });
            fs::write(&page, dated.collect::<String>()).unwrap();
        }
        if !old.is_empty() {
            replace(&changelog, old, new);
        }
        // The sign that all of that was found in order is the next complaint: what lies here is in no commit.
        let begun = Command::new("git").args(["init", "--quiet"]).current_dir(&temp.0).status().unwrap();
        assert!(begun.success());
        let added = Command::new("git").args(["add", "--all"]).current_dir(&temp.0).status().unwrap();
        assert!(added.success());
        let output = run(&temp.0, &["packaging/release"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{case}: {said}");
        assert!(said.contains(expected), "{case}: {said}");
    }
}

/// Sources of `packaging/files.tsv`.
fn rows() -> Vec<String> {
    let list = fs::read_to_string(Path::new(ROOT).join("packaging/files.tsv")).unwrap();
    let sources =
        list.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split('\t').next());
    sources.map(str::to_owned).collect()
}

#[test]
fn every_program_manual_page_completion_and_document_is_installed() {
    let rows = rows();
    // As a shell has it, whose star matches no slash.
    let covers = |row: &str, file: &str| match row.split_once('*') {
        Some((before, after)) => {
            let middle = file.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            middle.is_some_and(|middle| !middle.contains('/'))
        }
        None => row == file,
    };
    let mut find = Command::new("find");
    // What lies beside the documents are scripts that make them.
    find.args([
        "man",
        "completions",
        "docs",
        "profiles",
        "packaging/apparmor",
        "-type",
        "f",
        "-not",
        "-path",
        "docs/comparison/*",
    ]);
    let found = find.current_dir(ROOT).output();
    let mut files: Vec<String> =
        String::from_utf8(found.unwrap().stdout).unwrap().lines().map(str::to_owned).collect();
    let manifest = include_str!("../Cargo.toml");
    for part in manifest.split("[[bin]]\n").skip(1) {
        let name = part.lines().find_map(|line| line.strip_prefix("name = ")).unwrap().trim_matches('"');
        files.push(format!("target/release/{name}"));
    }
    assert!(files.len() > 4, "{files:?}");
    for file in files {
        assert!(rows.iter().any(|row| covers(row, &file)), "packaging/files.tsv has no row for {file}");
    }
}

#[test]
fn an_installation_is_what_the_list_says_and_gives_no_right() {
    let temp = Temp::new("install");
    let built = Path::new(env!("CARGO_BIN_EXE_confine")).parent().unwrap();
    let output = Command::new(Path::new(ROOT).join("packaging/install"))
        .env("DESTDIR", &temp.0)
        .env("PREFIX", "/usr")
        .env("TARGET_DIR", built)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for file in [
        "usr/bin/confine",
        "usr/share/man/man1/confine.1",
        "usr/share/bash-completion/completions/confine",
        "usr/share/zsh/site-functions/_confine",
        "usr/share/fish/vendor_completions.d/confine.fish",
        "usr/share/licenses/confine/THIRD-PARTY-LICENSES",
    ] {
        let mode =
            fs::metadata(temp.0.join(file)).unwrap_or_else(|error| panic!("{file}: {error}")).permissions();
        let expected = if file.contains("/bin/") { 0o100_755 } else { 0o100_644 };
        assert_eq!(mode.mode(), expected, "{file}");
    }
    let found = Command::new("find").arg(&temp.0).args(["-type", "f"]).output().unwrap();
    let files = String::from_utf8(found.stdout).unwrap().lines().count();
    assert!(files >= rows().len(), "{files} files");
    let special = Command::new("find").arg(&temp.0).args(["-perm", "/7000"]).output().unwrap();
    assert!(special.stdout.is_empty(), "{}", String::from_utf8_lossy(&special.stdout));
}

#[test]
fn every_package_of_the_packaging_test_has_a_reason() {
    for line in include_str!("../packaging/packages").lines().filter(|line| !line.starts_with('#')) {
        let (name, reason) = line.split_once('#').unwrap_or_else(|| panic!("no reason: {line}"));
        assert!(!name.trim().is_empty() && !reason.trim().is_empty(), "{line}");
    }
}

/// A dynamic loader obeys the variables of whoever starts confine-shell.
#[test]
fn packages_have_programs_that_ask_for_no_loader() {
    let temp = Temp::new("build");
    for directory in ["bin", "packaging"] {
        fs::create_dir_all(temp.0.join(directory)).unwrap();
    }
    fs::copy(Path::new(ROOT).join("packaging/build"), temp.0.join("packaging/build")).unwrap();
    let fake = temp.0.join("bin/cargo");
    let script = "#!/bin/sh\necho \"$CARGO_ENCODED_RUSTFLAGS $*\"\nmkdir -p target/x/release\n\
        for p in confine confine-shell; do echo > target/x/release/$p; done\n";
    fs::write(&fake, script).unwrap();
    fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
    let build = |words: &[&str]| {
        let path = format!("{}:{}", temp.0.join("bin").display(), std::env::var("PATH").unwrap());
        let output =
            Command::new(temp.0.join("packaging/build")).args(words).env("PATH", path).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(build(&["--target", "x"]).contains("-Ctarget-feature=+crt-static"));
    assert!(!build(&["--dynamic"]).contains("crt-static"));
    for recipe in [
        "debian/rules",
        "rpm/confine.spec",
        "arch/PKGBUILD",
        "alpine/APKBUILD",
        "homebrew/confine.rb",
        "release",
    ] {
        let text = fs::read_to_string(Path::new(ROOT).join("packaging").join(recipe)).unwrap();
        assert!(text.contains("packaging/build") && !text.contains("--dynamic"), "{recipe}");
    }
    let nix = fs::read_to_string(Path::new(ROOT).join("packaging/nix/package.nix")).unwrap();
    assert!(nix.contains("+crt-static"));
}
