use super::*;
use crate::cli::{Request, parse};
use crate::policy::files::document;
use crate::policy::{FileAccess, Listen, Loopback, Net, Policy, Promise};

fn document(kind: Kind, text: &str) -> Result<Document> {
    let place = crate::policy::origin::Location {
        named: format!("/p/{}", if kind == Kind::System { "system" } else { "file" }).into(),
        path: "/p/file".into(),
        links: Vec::new(),
    };
    let items = document::parse(text)
        .map_err(|fault| Error::usage(format!("line {}: {}", fault.line, fault.what)))?;
    Ok(Document {
        file: Arc::new(File { kind, place: Some(place), text: text.to_owned() }),
        items,
        home: None,
    })
}

/// A line with these files: the administrator's, `--policy`'s and one profile `p`.
fn with(line: &str, system: &str, named: &str, profile: &str) -> Result<Policy> {
    let find = |which: Which<'_>| match which {
        Which::System if system.is_empty() => Ok(None),
        Which::Shell => Ok(None),
        Which::System => document(Kind::System, system).map(Some),
        Which::Named(_) => document(Kind::Named, named).map(Some),
        Which::Profile("p") => document(Kind::Profile("p".into()), profile).map(Some),
        Which::Profile("q") => {
            document(Kind::Profile("q".into()), "profile = 'p'\nmax-procs = 7\n").map(Some)
        }
        Which::Profile(name) => files::builtin::find(name),
    };
    let argv = format!("confine {line} -- true");
    match parse(argv.split(' ').filter(|word| !word.is_empty()).map(OsString::from), &find)? {
        Request::Run(invocation) => Ok(invocation.policy),
        other => panic!("{other:?}"),
    }
}

fn profile(line: &str, text: &str) -> Policy {
    with(&format!("{line} --profile p"), "", "", text).unwrap()
}

#[track_caller]
fn refused(text: &str, said: &str) {
    let error = with("-w . --profile p", "", "", text).unwrap_err();
    let told = format!("{error} | {}", error.hint().unwrap_or_default());
    let told = told.replace("profile 'p' ('/p/file'), ", "");
    assert!(told.contains(said), "{text:?}: {told}");
    assert_eq!(error.status(), 125);
}

#[test]
fn every_option_of_a_run_has_a_key_or_a_reason() {
    for row in options::RUN {
        if keys::ON_LINE_ONLY.iter().any(|(name, why)| *name == row.name && !why.is_empty()) {
            refused(&format!("{} = '9'", row.name), "belongs on the command line");
            continue;
        }
        let word = match row.value {
            options::Value::None => "true".to_owned(),
            options::Value::Directory | options::Value::Path => "'/x'".to_owned(),
            options::Value::OneOf(_, words) if row.name != "profile" => format!("'{}'", words[0]),
            options::Value::OneOf(..) => "'strict'".to_owned(),
            options::Value::Word(_) => "'80'".to_owned(),
            options::Value::Number("TIME") => "'90s'".to_owned(),
            options::Value::Number(_) => "80".to_owned(),
        };
        let word = if row.repeat { format!("[{word}]") } else { word };
        let policy = profile("-w .", &format!("# first\n{} = {word}\n", row.name));
        let setting = policy.settings.iter().rfind(|setting| setting.option == row.name);
        if row.name == "profile" {
            assert_eq!(policy.require, Promise::ALL.into(), "what it is based on");
            continue;
        }
        if row.name == "no-workspace" {
            // The workspace of the line is nearer.
            assert_eq!(setting, None);
            continue;
        }
        let setting = setting.unwrap_or_else(|| panic!("{} has no effect", row.name));
        assert!(matches!(&setting.origin, Origin::File { line: 2, .. }), "{setting:?}");
        // What it means is what it means on a line.
        let bare = word.trim_matches(['[', ']', '\'']);
        let line = match row.value {
            options::Value::None => format!("-w . --{}", row.name),
            _ => format!("-w . --{} {bare}", row.name),
        };
        if !["grace", "on-output-limit"].contains(&row.name) {
            let same = with(&line, "", "", "").unwrap();
            let bare = |policy: Policy| Policy { settings: Vec::new(), files_read: Vec::new(), ..policy };
            assert_eq!(bare(policy), bare(same), "{line}");
        }
    }
}

#[test]
fn the_line_wins_over_the_file_over_the_profile_over_the_administrators_defaults() {
    let text = |n: u32| format!("max-procs = {n}\n");
    let procs = |line: &str| {
        let policy = with(line, &text(1), &text(2), &text(3)).unwrap();
        (policy.limits.procs.unwrap(), policy.asked("max-procs").unwrap().layer)
    };
    assert_eq!(procs("-w . --max-procs 4 --policy f --profile p"), (4, 0));
    assert_eq!(procs("-w . --policy f --profile p"), (2, 1));
    assert_eq!(procs("-w . --profile p"), (3, 1));
    assert_eq!(procs("-w ."), (1, 1));
    assert_eq!(procs("-w . --profile q"), (7, 1));
    assert_eq!(procs("-w . --profile strict"), (1, 2));
}

#[test]
fn lists_are_united_and_on_one_path_the_nearer_wins() {
    let policy = profile(
        "-w . --ro /a --rw /b/ --connect 53 --env A=1 --env B",
        "ro = ['/b', '/c']\nhide = ['/a', '/d']\nconnect = [443]\nenv = ['A=2', 'B=2', 'C=2']\n",
    );
    let files: Vec<_> =
        policy.files.iter().map(|rule| (rule.access, rule.path.to_str().unwrap().to_owned())).collect();
    let rule = |access, path: &str| (access, path.to_owned());
    assert_eq!(
        files,
        [
            rule(FileAccess::Read, "/a"),
            rule(FileAccess::Write, "/b/"),
            rule(FileAccess::Read, "/c"),
            rule(FileAccess::Hide, "/d")
        ]
    );
    assert_eq!(policy.network.connect, [53, 443].into());
    assert_eq!(policy.environment.set, [("A".into(), "1".into()), ("C".into(), "2".into())]);
    assert_eq!(policy.environment.pass, ["B"]);
}

#[test]
fn between_layers_the_nearer_says_which_network() {
    let network = |line: &str, text: &str| profile(&format!("-w . {line}"), text).network;
    assert_eq!(network("--net none", "connect = [443]").connect, [].into());
    assert_eq!(network("--net host", "listen = [443]"), network("--net host", ""));
    assert_eq!(network("--connect 443", "net = 'host'").net, Net::None);
    assert_eq!(network("--connect 443", "net = 'none'\nloopback = 'off'").loopback, Loopback::Private);
    assert_eq!(network("--loopback off", "listen = [80]").listen, Listen::None);
    assert_eq!(network("--loopback off", "net = 'host'").net, Net::None);
    assert_eq!(network("--loopback off", "net = 'none'").loopback, Loopback::Off);
    assert_eq!(network("--listen any", "listen = [80]\nconnect = [1]").listen, Listen::Any);
    assert_eq!(network("--listen 80", "listen = ['any']").listen, Listen::Ports([80].into()));
    assert_eq!(network("--listen 80", "listen = [81]").listen, Listen::Ports([80, 81].into()));
}

#[test]
fn between_layers_the_nearer_says_what_is_promised() {
    let promises = |line: &str, text: &str| {
        let policy = profile(&format!("-w . {line}"), text);
        (policy.require, policy.waive)
    };
    let (teardown, none) = ([Promise::Teardown], []);
    assert_eq!(promises("--waive teardown", "require = ['teardown']"), (none.into(), teardown.into()));
    assert_eq!(promises("--require teardown", "waive = ['teardown']"), (teardown.into(), none.into()));
    assert_eq!(promises("--strict", "waive = ['teardown']"), (Promise::ALL.into(), none.into()));
    let (require, waive) = promises("--waive teardown", "strict = true");
    assert_eq!((require.len(), require.contains(&Promise::Teardown), waive), (12, false, teardown.into()));
    assert!(profile("-w .", "no-workspace = true").workspaces == [PathBuf::from(".")]);
    assert!(profile("--no-workspace", "workspace = ['/a']").workspaces.is_empty());
}

#[test]
fn within_one_file_a_contradiction_is_an_error_whatever_the_line_says() {
    refused("require = ['teardown']\nwaive = ['teardown']", "line 2: teardown is both required and waived");
    refused("strict = true\nwaive = ['teardown']", "requires teardown");
    refused("net = 'host'\n\nconnect = [80]", "line 1: net host and connect contradict each other");
    refused("ro = ['/a']\nrw = ['/a']", "give '/a' different access");
    refused("no-workspace = true\nworkspace = ['.']", "contradict each other");
    let error = with("-w . --net none --profile p", "", "", "net = 'host'\nconnect = [80]").unwrap_err();
    assert!(error.to_string().contains("contradict"), "{error}");
    assert!(profile("-w .", "grace = '2s'\non-output-limit = 'kill'").limits.grace.is_none());
}

#[test]
fn what_is_wrong_is_told_with_file_line_key_and_what_is_near() {
    refused("# x\nread_only = true", "line 2: unknown key 'read_only' | did you mean 'read-only'?");
    refused("conect = [80]", "line 1: unknown key 'conect' | did you mean 'connect'?");
    refused("zzzzzzzzz = 1", "the keys are the long options");
    refused("read-only = 'yes'", "line 1: read-only is true or false | read-only = true");
    refused("connect = 443", "line 1: connect is a list | connect = [443]");
    refused("connect = [\n 443,\n 0]", "line 3: connect '0': not a port from 1 to 65535");
    refused("git = 'gaurd'", "line 1: git 'gaurd': not one of its values | git = \"guard\"");
    refused("require = ['tear-down']", "| require = [\"teardown\"]");
    refused("max-memory = 1.5", "line 1: max-memory is a word, not a number with a fraction");
    refused("max-memory = ['1G']", "line 1: max-memory is one word");
    refused("ro = ['src']", "line 1: ro 'src': neither absolute nor below '~/'");
    refused("[net]\nhost = 1", "line 1: net is a word, not a table");
    refused("never-waive = ['alias-free']", "never-waive is the administrator's");
    refused("profile = 'p'", "based on itself");
    refused("profile = 'nowhere'", "line 1: no profile 'nowhere'");
    refused(&format!("connect = [{}]", "80,".repeat(5000)), "more than 4096 values");
}

#[test]
fn nobody_gets_past_the_administrators_line() {
    let system = "never-waive = ['alias-free']\nalways-require = ['teardown']\n\
        never-allow = ['net=host', 'allow=userns', 'git=free', 'user', 'no-toolchains', 'listen=any']\n\
        never-visible = ['/srv/secret']\n";
    let said = |line: &str, text: &str| match with(line, system, text, text) {
        Ok(policy) => panic!("{line}: {policy:?}"),
        Err(error) => {
            assert_eq!(error.status(), 125);
            error.to_string()
        }
    };
    for line in [
        "--waive alias-free",
        "--waive teardown",
        "--net host",
        "--allow userns",
        "--git free",
        "--user 1:1",
        "--no-toolchains",
        "--listen any",
    ] {
        assert!(said(&format!("-w . {line}"), "").contains("'/p/system', line "), "{line}");
    }
    assert!(said("-w . --profile p", "net = 'host'").contains("of profile 'p' ('/p/file'), line 1"));
    assert!(said("-w . --policy f", "waive = ['alias-free']").contains("always hold"));
    // The twins: what is not past the line, and what the line says otherwise than a file.
    let taken = with(
        "-w . --net none --git guard --waive ceilings --listen 80 --policy f",
        system,
        "git = 'free'",
        "",
    );
    assert!(taken.is_err(), "--net none and --listen");
    let taken = with("-w . --git guard --waive ceilings --policy f", system, "git = 'free'", "").unwrap();
    assert!(taken.require.contains(&Promise::Teardown) && taken.never_visible.len() == 1);
    let demanded = taken.setting("require", "teardown").unwrap();
    assert!(matches!(&demanded.origin, Origin::File { line: 2, .. }));
}

#[test]
fn the_administrators_own_mistakes_are_told() {
    for (text, said) in [
        ("never-allow = ['net=hots']", "not a word of net"),
        ("never-allow = ['user=0']", "not a word of user"),
        ("never-allow = ['nets=host']", "no such option"),
        ("never-waive = ['aliasfree']", "line 1: never-waive 'aliasfree'"),
        ("never-visible = ['~/x']", "not absolute"),
        ("never-wave = []", "unknown key 'never-wave'"),
    ] {
        let error = with("-w .", text, "", "").unwrap_err();
        assert!(error.to_string().contains(said), "{text}: {error}");
    }
}

#[test]
fn every_built_in_profile_reads_and_says_what_its_name_does() {
    let built_in = |name: &str| with(&format!("-w . --profile {name}"), "", "", "").unwrap();
    let bare = |policy: &Policy| Policy { settings: Vec::new(), files_read: Vec::new(), ..policy.clone() };
    let ordinary = with("-w .", "", "", "").unwrap();
    assert_eq!(bare(&built_in("workspace-write")), bare(&ordinary));
    assert!(built_in("read-only").read_only && built_in("build").state_auto);
    assert!(matches!(built_in("dev-server").network.listen, Listen::Ports(ports) if ports.contains(&3000)));
    assert!(built_in("kernel").require.contains(&Promise::Teardown));
    assert_eq!(built_in("strict").require, Promise::ALL.into());
    let mcp = with("--profile mcp", "", "", "").unwrap();
    assert!(mcp.environment.clear && mcp.no_workspace && mcp.require.contains(&Promise::Teardown));
    assert_eq!((mcp.network.net, mcp.network.loopback), (Net::None, Loopback::Off));
    for name in files::builtin::NAMES {
        let found = files::builtin::find(name).unwrap().unwrap();
        assert!(found.file.text.starts_with("# "), "{name} begins with what it is for");
    }
}
