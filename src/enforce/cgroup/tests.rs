use super::*;

const MEMORY: Wanted = Wanted { memory: true, procs: true, cpu: true };

fn words(text: &str) -> Vec<String> {
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

#[test]
fn v1_paths_are_found_relative_to_what_is_mounted() {
    let cgroups = "9:name=systemd:/\n8:pids:/docker/abc/x\n4:cpu,cpuacct:/docker/abc\n3:memory:/else\n0::/\n";
    let mounts = b"30 20 0:26 /docker/abc /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
        31 20 0:27 /docker/abc /sys/fs/cg\\040roup rw shared:3 master:1 - cgroup cgroup rw,cpu,cpuacct\n\
        32 20 0:28 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
        33 20 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
        34 20 0:30 / /tmp rw - tmpfs tmpfs rw\n";
    let found = places(cgroups, mounts);
    assert_eq!(found.v1.get(&Controller::Pids), Some(&"/sys/fs/cgroup/pids/x".into()));
    assert_eq!(found.v1.get(&Controller::Cpuacct), Some(&"/sys/fs/cg roup".into()));
    // Not below what is mounted, so not to be reached.
    assert_eq!(found.v1.get(&Controller::Memory), None);
    assert_eq!(found.v2, Some("/sys/fs/cgroup/unified".into()));
}

#[test]
fn a_cgroup_outside_the_namespace_is_not_reached_by_dots() {
    let mounts = b"33 20 0:29 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    assert_eq!(places("0::/../../other\n", mounts), Places::default());
    assert_eq!(places("0::/user.slice\n", mounts).v2, Some("/sys/fs/cgroup/user.slice".into()));
}

fn terminal() -> Facts {
    let app = Candidate {
        path: "/c/user@1.service/app.slice".into(),
        writable: true,
        controllers: words("cpu memory pids"),
        enabled: words("cpu memory pids"),
        ..Candidate::default()
    };
    let scope = Candidate {
        path: "/c/user@1.service/app.slice/terminal.scope".into(),
        writable: true,
        controllers: words("cpu memory pids"),
        ..Candidate::default()
    };
    Facts { own: Some(scope), parent: Some(app), unified: Some("/c".into()), ..Facts::default() }
}

#[test]
fn below_the_user_manager_the_new_group_is_a_sibling() {
    let site = decide(&terminal(), MEMORY);
    assert_eq!(site, Site::V2 { parent: "/c/user@1.service/app.slice".into(), enable: String::new() });
}

#[test]
fn a_sibling_does_not_escape_the_callers_own_limit() {
    let mut facts = terminal();
    facts.own.as_mut().unwrap().limited = true;
    assert_eq!(decide(&facts, MEMORY), Site::Nowhere);
}

#[test]
fn a_login_session_asks_the_manager_and_without_a_bus_samples() {
    let mut facts = terminal();
    facts.own.as_mut().unwrap().writable = false;
    facts.parent.as_mut().unwrap().writable = false;
    assert_eq!(decide(&facts, MEMORY), Site::Nowhere);
    facts.bus = Some("/run/user/1/bus".into());
    assert_eq!(decide(&facts, MEMORY).mechanism(), Mechanism::UserManager);
}

#[test]
fn a_controller_that_is_not_delegated_is_not_relied_on() {
    let mut facts = terminal();
    facts.parent.as_mut().unwrap().enabled = words("cpu pids");
    assert_eq!(decide(&facts, MEMORY), Site::Nowhere);
    let procs = Wanted { procs: true, ..Wanted::default() };
    assert_eq!(decide(&facts, procs).mechanism(), Mechanism::CgroupV2);
}

#[test]
fn the_root_cgroup_enables_what_its_children_lack() {
    let root = Candidate {
        path: "/c".into(),
        writable: true,
        root: true,
        controllers: words("cpu memory pids"),
        enabled: words("memory"),
        limited: false,
    };
    let facts = Facts { own: Some(root), unified: Some("/c".into()), ..Facts::default() };
    assert_eq!(decide(&facts, MEMORY), Site::V2 { parent: "/c".into(), enable: "+pids".into() });
}

#[test]
fn v1_is_taken_only_where_it_has_all_that_is_wanted() {
    let mut facts = Facts::default();
    facts.v1.insert(Controller::Memory, "/m".into());
    facts.v1.insert(Controller::Pids, "/p".into());
    assert_eq!(decide(&facts, MEMORY), Site::Nowhere);
    let wanted = Wanted { cpu: false, ..MEMORY };
    assert_eq!(decide(&facts, wanted), Site::V1(facts.v1.clone()));
    // Only the hierarchies that are needed.
    let wanted = Wanted { procs: true, ..Wanted::default() };
    assert_eq!(decide(&facts, wanted), Site::V1([(Controller::Pids, "/p".into())].into()));
}
