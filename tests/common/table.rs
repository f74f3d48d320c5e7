//! A table of attacks on a fixture, tried in one place by everyone: refused and without effect, or done and seen to be done.

use std::ffi::OsString;
use std::path::Path;

use super::{EVERYONE, Findings, Outcome, Run, Scratch, Snapshot};

/// One operation of the attack program that takes a fixture and a directory of the attacker's own.
#[derive(Clone, Copy)]
pub struct Attack {
    pub name: &'static str,
    /// Has a directory descriptor to start from, so it is tried that way too.
    pub relative: bool,
    /// What a kernel or file system without this call says where nothing is forbidden.
    pub lacks: &'static [&'static str],
    /// What may be said inside though it is allowed: callers know how to do without.
    pub absent: &'static [&'static str],
}

pub const fn at(name: &'static str) -> Attack {
    Attack { name, relative: true, lacks: &[], absent: &[] }
}

pub const fn by_path(name: &'static str) -> Attack {
    Attack { name, relative: false, lacks: &[], absent: &[] }
}

impl Attack {
    pub const fn lacking(self, lacks: &'static [&'static str]) -> Self {
        Attack { lacks, ..self }
    }

    pub const fn absent(self, absent: &'static [&'static str]) -> Self {
        Attack { absent, ..self }
    }

    fn ways(&self) -> &'static [bool] {
        if self.relative { &[false, true] } else { &[false] }
    }
}

/// What changes metadata, by every call that there is.
pub const METADATA: &[Attack] = &[
    at("chmod-dir"),
    at("fchmodat"),
    at("fchmod"),
    at("fchmod-dir"),
    at("chmod-proc-fd"),
    // Linux 6.6.
    at("fchmodat2").lacking(&["ENOSYS"]),
    at("fchmodat2-nofollow").lacking(&["ENOSYS"]),
    at("fchmodat2-empty-path").lacking(&["ENOSYS"]),
    at("fchownat"),
    at("fchownat-link"),
    at("fchown"),
    at("fchownat-empty-path"),
    at("utimensat"),
    at("utimensat-now"),
    at("utimensat-link"),
    at("utimensat-empty-path"),
    at("futimens"),
    by_path("setxattr"),
    by_path("lsetxattr"),
    at("fsetxattr"),
    at("setxattr-proc-fd"),
    // Linux 6.13.
    at("setxattrat").lacking(&["ENOSYS"]),
    at("setxattrat-empty-path").lacking(&["ENOSYS"]),
    by_path("removexattr"),
    by_path("lremovexattr"),
    at("fremovexattr"),
    at("removexattrat").lacking(&["ENOSYS"]),
    at("removexattrat-empty-path").lacking(&["ENOSYS"]),
    at("set-acl"),
    at("setflags"),
    at("fssetxattr"),
    // Linux 6.17; ENOSYS inside too for as long as its number is above the last one vetted.
    at("file-setattr").lacking(&["ENOSYS"]),
    at("file-setattr-empty-path").lacking(&["ENOSYS"]),
    #[cfg(target_arch = "x86_64")]
    by_path("chmod"),
    #[cfg(target_arch = "x86_64")]
    by_path("chown"),
    #[cfg(target_arch = "x86_64")]
    by_path("lchown"),
    #[cfg(target_arch = "x86_64")]
    by_path("utime"),
    #[cfg(target_arch = "x86_64")]
    by_path("utimes"),
    #[cfg(target_arch = "x86_64")]
    at("futimesat"),
    #[cfg(target_arch = "x86_64")]
    at("futimesat-fd"),
];

/// Where the fixture lies and what is said on confine's command line; paths in options start with `@` for the scratch directory.
#[derive(Clone, Copy)]
pub struct Place {
    pub label: &'static str,
    pub dir: &'static str,
    pub options: &'static [&'static str],
}

pub fn options(scratch: &Scratch, options: &[&str]) -> Vec<OsString> {
    options
        .iter()
        .map(|word| match word.strip_prefix('@') {
            Some(name) => scratch.path(name).into_os_string(),
            None => word.into(),
        })
        .collect()
}

fn renew(scratch: &Scratch) {
    for entry in std::fs::read_dir(scratch.path("w/own")).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    scratch.file("w/own/own", "my own\n");
}

fn strike(scratch: &Scratch, run: Run, attack: &Attack, relative: bool, dir: &Path) -> Outcome {
    let own = scratch.path("w/own");
    let mut words: Vec<&std::ffi::OsStr> = Vec::new();
    if relative {
        words.push("-d".as_ref());
    }
    words.extend([attack.name.as_ref(), dir.as_os_str(), own.as_os_str()]);
    run.attack(scratch, words)
}

fn tell(scratch: &Scratch, place: &str, attack: &Attack, relative: bool, what: &str) -> String {
    let way = if relative { " by directory descriptor" } else { "" };
    format!("{:?}: {}{way} {place}: {what}", scratch.who, attack.name)
}

/// Every attack on every place is refused and changes nothing that can be seen.
#[track_caller]
pub fn denied(attacks: &[Attack], places: &[Place]) {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for place in places {
            for attack in attacks {
                for &relative in attack.ways() {
                    // Of what is not there no descriptor can be had either.
                    if relative && place.options.is_empty() {
                        continue;
                    }
                    renew(&scratch);
                    let dir = scratch.fixture(place.dir);
                    let before = Snapshot::of(&dir);
                    let run = Run::confined(&scratch).options(options(&scratch, place.options));
                    let outcome = strike(&scratch, run, attack, relative, &dir);
                    let changed = before.difference(&Snapshot::of(&dir));
                    findings.claim(changed.is_none(), || {
                        tell(
                            &scratch,
                            place.label,
                            attack,
                            relative,
                            &format!("changed it: {}", changed.unwrap()),
                        )
                    });
                    findings.claim(outcome.denied(), || {
                        tell(
                            &scratch,
                            place.label,
                            attack,
                            relative,
                            &format!("not refused: {}", outcome.tell()),
                        )
                    });
                }
            }
        }
    }
    findings.settle();
}

/// The twin: the same attack works without confine, so that its refusal says something about confine.
#[track_caller]
pub fn works_unconfined(attacks: &[Attack]) {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for attack in attacks {
            for &relative in attack.ways() {
                renew(&scratch);
                let dir = scratch.fixture("outside/f");
                let before = Snapshot::of(&dir);
                let outcome = strike(&scratch, Run::plain(&scratch), attack, relative, &dir);
                let lacking = attack.lacks.contains(&outcome.verdict());
                let done = outcome.ok() && before != Snapshot::of(&dir);
                findings.claim(done || lacking, || {
                    tell(
                        &scratch,
                        "unconfined",
                        attack,
                        relative,
                        &format!("had no effect: {}", outcome.tell()),
                    )
                });
            }
        }
    }
    findings.settle();
}

/// The other twin: what is refused outside works where it may.
#[track_caller]
pub fn works(attacks: &[Attack], places: &[Place]) {
    let mut findings = Findings::default();
    for who in EVERYONE {
        let scratch = Scratch::new(who);
        for place in places {
            for attack in attacks {
                for &relative in attack.ways() {
                    renew(&scratch);
                    let dir = scratch.fixture(place.dir);
                    let before = Snapshot::of(&dir);
                    let run = Run::confined(&scratch).options(options(&scratch, place.options));
                    let outcome = strike(&scratch, run, attack, relative, &dir);
                    let done = outcome.ok() && before != Snapshot::of(&dir);
                    let excused = outcome.denied()
                        && (attack.lacks.contains(&outcome.verdict())
                            || attack.absent.contains(&outcome.verdict()));
                    findings.claim(done || excused, || {
                        tell(
                            &scratch,
                            place.label,
                            attack,
                            relative,
                            &format!("should work: {}", outcome.tell()),
                        )
                    });
                }
            }
        }
    }
    findings.settle();
}
