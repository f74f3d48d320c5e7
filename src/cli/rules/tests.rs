use std::collections::BTreeSet;
use std::ffi::OsString;

use crate::cli::tests::{ask, assert_says, complaint, parse, policy};
use crate::policy::{Listen, User};

#[test]
fn ports_are_exact() {
    assert_eq!(
        policy("confine -w . --connect 1 --connect 65535 -- x").network.connect,
        BTreeSet::from([1, 65535])
    );
    for port in ["0", "65536", "-1", "+80", "80.", "http", "", " 80", "99999999999999999999"] {
        let argv = ["confine", "-w", ".", &format!("--connect={port}"), "--", "x"].map(OsString::from);
        assert!(parse(argv).unwrap_err().to_string().ends_with("not a port from 1 to 65535"), "{port}");
    }
    assert_says("confine -w . --connect -5 -- x", "--connect '-5': not a port from 1 to 65535 | ");
    assert_eq!(policy("confine -w . --listen any -- x").network.listen, Listen::Any);
    assert_says(
        "confine -w . --listen all -- x",
        "--listen 'all': not a port from 1 to 65535 | --listen takes a port or the word any",
    );
    assert_says(
        "confine -w . --listen any --listen 80 -- x",
        "--listen any and --listen '80' contradict each other | ",
    );
}

#[test]
fn sizes_times_and_counts_say_what_is_wrong() {
    let size = "not a whole number of bytes, or of K, M, G or T (as in 512M)";
    let time = "not a whole number with one of the units ms, s, m or h (as in 90s)";
    let zero = "zero is no limit that a command can run under";
    assert_says("confine -w . --max-tmp 1.5G -- x", &format!("--max-tmp '1.5G': {size} | "));
    assert_says("confine -w . --max-tmp 0 -- x", &format!("--max-tmp '0': {zero} | "));
    assert_says("confine -w . --max-memory 99999999T -- x", "--max-memory '99999999T': too large | ");
    assert_says("confine -w . --timeout 10 -- x", &format!("--timeout '10': {time} | "));
    assert_says("confine -w . --timeout 0s -- x", &format!("--timeout '0s': {zero} | "));
    assert_says("confine -w . --max-procs 0 -- x", &format!("--max-procs '0': {zero} | "));
    assert_says("confine -w . --max-procs 4K -- x", "--max-procs '4K': not a whole number | ");
    assert_says("confine -w . --max-procs -4 -- x", "--max-procs '-4': not a whole number | ");
    assert_says("confine -w . --max-open-files 7 -- x", "--max-open-files '7': a start takes 8 | ");
}

#[test]
fn descriptors_and_users_are_numbers_in_range() {
    for word in ["0", "2", "-3", "x", "2147483648"] {
        assert!(complaint(&format!("confine -w . --fd={word} -- x")).contains("above 2"), "{word}");
        assert!(complaint(&format!("confine -w . --status-fd={word} -- x")).contains("above 2"), "{word}");
    }
    assert!(complaint("confine -w . --fd 3 --status-fd 3 -- x").starts_with("descriptor 3 is given to both"));
    assert_eq!(policy("confine -w . --user 0 -- x").user, Some(User { uid: 0, gid: None }));
    for word in ["4294967295", "1:4294967295", "root", "1:", ":1", "1:2:3", "-1", "1:-1"] {
        assert!(complaint(&format!("confine -w . --user={word} -- x")).contains("UID or UID:GID"), "{word}");
    }
}

#[test]
fn near_names_are_suggested_and_far_ones_listed() {
    assert_says(
        "confine -w . --require write_scope -- x",
        "--require 'write_scope': not one of its values | --require write-scope",
    );
    assert_says(
        "confine -w . --waive tear-down -- x",
        "--waive 'tear-down': not one of its values | --waive teardown",
    );
    assert_says(
        "confine -w . --net all -- x",
        "--net 'all': not one of its values | --net takes none or host",
    );
    assert_says("confine -w . --net on -- x", "--net 'on': not one of its values | --net takes none or host");
    assert!(
        complaint("confine -w . --require everything -- x").contains("takes write-scope, metadata-scope,")
    );
    assert!(complaint("confine -w . --strict --require bogus -- x").starts_with("--require 'bogus'"));
}

#[test]
fn a_promise_is_not_both_required_and_waived() {
    assert_says(
        "confine -w . --require ceilings --waive ceilings -- x",
        "ceilings is both required and waived | ",
    );
    assert!(complaint("confine -w . --strict --waive no-gain -- x").starts_with("--strict requires no-gain"));
    ask("confine -w . --require ceilings --waive teardown -- x").unwrap();
}

#[test]
fn one_path_has_one_access() {
    assert_says(
        "confine -w . --ro a/b --rw ./a//b/ -- x",
        "--ro and --rw give './a//b/' different access | ",
    );
    assert_says("confine -w . --seal a --ro a -- x", "--ro and --seal give 'a' different access | ");
    assert_says(
        "confine -w a --ro a/ -- x",
        "--workspace and --ro give 'a/' different access | --read-only shows a workspace read-only",
    );
    assert!(complaint("confine -w . --hide ./ -- x").starts_with("--workspace and --hide"));
    assert!(complaint("confine --read-only -w a --rw a -- x").starts_with("--workspace and --rw"));
    assert_eq!(policy("confine -w a --rw a --ro b --ro b -- x").files.len(), 2);
    ask("confine -w a --ro a/b --ro a/../a -- x").unwrap();
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    for line in [
        "--net host --connect 80",
        "--net none --connect 80",
        "--net host --listen any",
        "--net host --loopback private",
        "--connect 80 --loopback off",
    ] {
        assert!(complaint(&format!("confine -w . {line} -- x")).contains("contradict each other"), "{line}");
    }
    for line in
        ["--net host", "--net none --loopback off", "--connect 80 --listen 80", "--net host --loopback host"]
    {
        ask(&format!("confine -w . {line} -- x")).unwrap();
    }
    assert!(complaint("confine -w . --grace 1s -- x").starts_with("--grace has no meaning"));
    for line in ["--timeout 9s --grace 1s", "--require teardown --grace 1s", "--strict --grace 0ms"] {
        ask(&format!("confine -w . {line} -- x")).unwrap();
    }
    assert!(complaint("confine -w . --on-output-limit kill -- x").starts_with("--on-output-limit has no"));
}

#[test]
fn variables_have_names_and_confines_own_are_not_for_others() {
    assert_says("confine -w . --env =s3cret -- x", "--env has no variable name | --env NAME=VALUE");
    assert_says("confine -w . --env CONFINE_NOTE=x -- x", "--env 'CONFINE_NOTE': set by confine itself | ");
    assert_says("confine -w . --env CONFINE -- x", "--env 'CONFINE': set by confine itself | ");
    assert_eq!(policy("confine -w . --env CONFINED -- x").environment.pass, ["CONFINED"]);
}

#[test]
fn empty_paths_are_refused() {
    for name in ["workspace", "chdir", "state", "ro", "rw", "hide", "seal", "env-file"] {
        assert_eq!(
            complaint(&format!("confine -w . --{name}= -- x")),
            format!("--{name} has an empty path | ")
        );
    }
}
