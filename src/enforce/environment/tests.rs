use std::os::unix::ffi::OsStringExt;

use super::*;

fn owned(list: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    list.iter().map(|&(name, value)| (name.into(), value.into())).collect()
}

fn names(list: &[&str]) -> Vec<OsString> {
    list.iter().map(OsString::from).collect()
}

fn from(caller: &[(&str, &str)]) -> Composed {
    compose(owned(caller), &Environment::default(), &[], &[])
}

#[test]
fn allowed_names_pass_with_their_values_and_all_others_are_dropped_by_name() {
    let composed = from(&[
        ("PATH", "/b:/a::/c"),
        ("LC_TIME", "de_DE.UTF-8"),
        ("GIT_AUTHOR_NAME", "A U Thor"),
        ("AWS_SECRET_ACCESS_KEY", "s3cret"),
        ("LD_PRELOAD", "/x.so"),
        ("GIT_SSH_COMMAND", "x"),
        ("SSH_AUTH_SOCK", "/run/x"),
        ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/x"),
        ("BASH_ENV", "/x"),
        ("BASH_FUNC_ls%%", "() { x; }"),
        ("TMPDIR", "/elsewhere"),
    ]);
    assert_eq!(
        composed.pairs,
        owned(&[("GIT_AUTHOR_NAME", "A U Thor"), ("LC_TIME", "de_DE.UTF-8"), ("PATH", "/b:/a::/c")])
    );
    let dropped = [
        "AWS_SECRET_ACCESS_KEY",
        "BASH_ENV",
        "BASH_FUNC_ls%%",
        "DBUS_SESSION_BUS_ADDRESS",
        "GIT_SSH_COMMAND",
        "LD_PRELOAD",
        "SSH_AUTH_SOCK",
        "TMPDIR",
    ];
    assert_eq!(composed.dropped, names(&dropped));
}

#[test]
fn names_beside_an_allowed_one_are_dropped() {
    for name in [
        "PATHS",
        "path",
        "XPATH",
        "LC",
        "LANGX",
        "CI_JOB_TOKEN",
        "CARGO_REGISTRY_TOKEN",
        "GIT_AUTHOR",
        "HOMEBREW_GITHUB_API_TOKEN",
    ] {
        assert_eq!(from(&[(name, "x")]).dropped, names(&[name]));
    }
}

#[test]
fn no_row_lets_a_loader_variable_or_a_program_of_git_or_an_agent_socket_pass() {
    for name in [
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "LD_AUDIT",
        "GLIBC_TUNABLES",
        "BASH_ENV",
        "ENV",
        "PROMPT_COMMAND",
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_ASKPASS",
        "GIT_EDITOR",
        "GIT_PAGER",
        "GIT_EXEC_PATH",
        "GIT_PROXY_COMMAND",
        "GIT_CONFIG_COUNT",
        "SSH_ASKPASS",
        "SSH_AUTH_SOCK",
        "GPG_AGENT_INFO",
        "DBUS_SESSION_BUS_ADDRESS",
        "WAYLAND_DISPLAY",
        "DISPLAY",
        "XAUTHORITY",
        "DOCKER_HOST",
        "NOTIFY_SOCKET",
        "http_proxy",
        "HTTPS_PROXY",
        "GITHUB_TOKEN",
        "NPM_TOKEN",
        "KUBECONFIG",
    ] {
        assert!(allowed(OsStr::new(name), false).is_none(), "{name}");
    }
}

#[test]
fn each_name_stands_in_one_row_and_each_row_has_a_reason() {
    let mut seen = BTreeSet::new();
    for (row, reason) in ALLOWED {
        assert!(!reason.is_empty());
        for name in *row {
            assert!(seen.insert(name), "{name}");
            assert!(!name.trim_end_matches('*').contains('*'), "{name}");
        }
    }
}

#[test]
fn an_exact_name_passes_what_the_allowlist_does_not_and_only_that() {
    let policy = Environment { pass: names(&["LD_PRELOAD", "NOT_SET"]), ..Environment::default() };
    let composed = compose(owned(&[("LD_PRELOAD", "/x.so"), ("LD_AUDIT", "/y.so")]), &policy, &[], &[]);
    assert_eq!(composed.pairs, owned(&[("LD_PRELOAD", "/x.so")]));
    assert_eq!(composed.dropped, names(&["LD_AUDIT"]));
    assert_eq!(composed.absent, names(&["NOT_SET"]));
}

#[test]
fn the_stronger_source_wins() {
    let caller = owned(&[("HOME", "caller"), ("TMPDIR", "caller"), ("PATH", "caller"), ("TZ", "caller")]);
    let fixed = owned(&[("HOME", "fixed"), ("TMPDIR", "fixed"), ("TMP", "fixed")]);
    let composed = compose(caller.clone(), &Environment::default(), &[], &fixed);
    assert_eq!(
        composed.pairs,
        owned(&[
            ("HOME", "fixed"),
            ("PATH", "caller"),
            ("TMP", "fixed"),
            ("TMPDIR", "fixed"),
            ("TZ", "caller")
        ])
    );
    assert_eq!(composed.dropped, names(&[]));

    let policy = Environment {
        pass: names(&["TMPDIR", "TZ"]),
        set: owned(&[("PATH", "first"), ("PATH", "set"), ("TZ", "set")]),
        ..Environment::default()
    };
    let composed = compose(caller, &policy, &owned(&[("HOME", "file"), ("PATH", "file")]), &fixed);
    assert_eq!(
        composed.pairs,
        owned(&[("HOME", "file"), ("PATH", "set"), ("TMP", "fixed"), ("TMPDIR", "caller"), ("TZ", "set")])
    );
}

#[test]
fn what_confine_says_of_itself_cannot_be_set_by_anyone_else() {
    let policy = Environment {
        pass: names(&["CONFINE_NOTE"]),
        set: owned(&[("CONFINE_POLICY", "set"), ("CONFINE_X", "set"), ("CONFINED", "set")]),
        ..Environment::default()
    };
    let caller = owned(&[("CONFINE", "outer"), ("CONFINE_NOTE", "outer")]);
    let fixed = owned(&[("CONFINE", "1"), ("CONFINE_POLICY", "id")]);
    let composed = compose(caller, &policy, &owned(&[("CONFINE_NOTE", "file")]), &fixed);
    assert_eq!(composed.pairs, owned(&[("CONFINE", "1"), ("CONFINED", "set"), ("CONFINE_POLICY", "id")]));
}

#[test]
fn a_cleared_environment_has_what_programs_need_and_what_is_named() {
    let caller =
        owned(&[("CARGO_HOME", "/c"), ("LC_ALL", "C"), ("PATH", "/bin"), ("TOKEN", "t"), ("CI", "1")]);
    let policy = Environment { clear: true, pass: names(&["TOKEN"]), ..Environment::default() };
    let composed = compose(caller.clone(), &policy, &[], &[]);
    assert_eq!(composed.pairs, owned(&[("LC_ALL", "C"), ("PATH", "/bin"), ("TOKEN", "t")]));
    assert_eq!(composed.dropped, names(&["CARGO_HOME", "CI"]));
    let twin = compose(caller, &Environment::default(), &[], &[]);
    assert_eq!(twin.dropped, names(&["TOKEN"]));
}

#[test]
fn a_file_wins_over_what_a_layer_further_away_sets() {
    let policy = Environment {
        set_below_files: owned(&[("A", "profile"), ("B", "profile")]),
        set: owned(&[("C", "line")]),
        ..Environment::default()
    };
    let composed = compose([], &policy, &owned(&[("A", "file"), ("C", "file")]), &[]);
    assert_eq!(composed.pairs, owned(&[("A", "file"), ("B", "profile"), ("C", "line")]));
}

#[test]
fn a_password_in_an_allowed_name_is_dropped_unless_asked_for() {
    for value in ["https://u:p@host/x", "http://token@host", "a,ftp://u:p@h", "x http://h/ socks5://u:p@h:1"]
    {
        assert_eq!(from(&[("JENKINS_URL", value)]).dropped, names(&["JENKINS_URL"]), "{value}");
    }
    for value in ["https://host/a@b", "https://host?q=a@b", "a@b.example", "u:p@host", "://", "http://h u@x"]
    {
        assert_eq!(from(&[("JENKINS_URL", value)]).pairs, owned(&[("JENKINS_URL", value)]), "{value}");
    }
    let policy = Environment { pass: names(&["JENKINS_URL"]), ..Environment::default() };
    let asked = compose(owned(&[("JENKINS_URL", "https://u:p@host")]), &policy, &[], &[]);
    assert_eq!(asked.pairs.len(), 1);
}

#[test]
fn malformed_entries_vanish_and_of_two_equal_names_the_first_counts() {
    let composed = from(&[("", "x"), ("A=B", "x"), ("TZ", "first"), ("TZ", "second"), ("", "y")]);
    assert_eq!(composed.pairs, owned(&[("TZ", "first")]));
    assert_eq!(composed.dropped, names(&[]));
}

#[test]
fn values_that_are_not_utf8_pass_unchanged() {
    let bytes = OsString::from_vec(b"/a\xff\n:/b".to_vec());
    let composed = compose([("PATH".into(), bytes.clone())], &Environment::default(), &[], &[]);
    assert_eq!(composed.pairs, [("PATH".into(), bytes)]);
}

#[test]
fn the_order_does_not_depend_on_the_callers() {
    let mut caller = owned(&[("TZ", "1"), ("PATH", "2"), ("HOME", "3"), ("X", "4"), ("A", "5")]);
    let one = compose(caller.clone(), &Environment::default(), &[], &[]);
    caller.reverse();
    assert_eq!(compose(caller, &Environment::default(), &[], &[]), one);
}
