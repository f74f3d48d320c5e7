//! Promises against mechanisms and kernels, decided by the same code that decides a run.

use confine::enforce::cgroup;
use confine::host::{Host, Lack, Landlock, World};
use confine::plan::{Outcome, namespaces, outcomes, supervision};
use confine::policy::{Policy, Promise};
use confine::supervise::broker::probe::Abilities;

use super::{code, head, row};

/// The series that changes something, and the Landlock ABI it has.
const KERNELS: &[(&str, u32)] =
    &[("before 5.19", 0), ("5.19", 2), ("6.2", 3), ("6.7", 4), ("6.12", 6), ("7.1", 9)];

fn host(abi: u32, world: World) -> Host {
    let landlock = if abi == 0 { Landlock::NotBuilt } else { Landlock::Available { abi } };
    let broker =
        matches!(world, World::Missing(_)).then_some(Abilities { metadata: Ok(()), connect: Ok(()) });
    Host {
        uid: 1000,
        gid: 1000,
        landlock,
        world,
        broker,
        cgroup: cgroup::Site::Nowhere,
        own_pid_max: false,
        private_home: false,
    }
}

fn missing() -> World {
    World::Missing(Lack { why: "this host has no namespaces".into(), help: None })
}

fn cell(promise: Promise, host: &Host, connect: bool) -> String {
    let mut policy = Policy::default();
    policy.require.insert(promise);
    if connect {
        policy.network.connect.insert(443);
    }
    let namespaces = namespaces(&policy, host, supervision(&policy, host).is_some());
    let found = outcomes(&policy, host, &namespaces).into_iter().find(|(one, _)| *one == promise);
    match found {
        Some((_, Outcome::Kept(layers))) => layers.join(", "),
        _ => "—".to_owned(),
    }
}

fn table(world: &World) -> String {
    let mut titles = vec!["promise".to_owned()];
    titles.extend(KERNELS.iter().map(|(series, abi)| match abi {
        0 => format!("{series} (no Landlock, or ABI 1)"),
        abi => format!("{series} (ABI {abi})"),
    }));
    let mut text = head(&titles.iter().map(String::as_str).collect::<Vec<_>>());
    for promise in Promise::ALL {
        let mut cells = vec![code(promise.name())];
        cells.extend(KERNELS.iter().map(|(_, abi)| cell(promise, &host(*abi, world.clone()), false)));
        text.push_str(&row(cells));
    }
    let mut cells = vec![format!("`{}` with `--connect`", Promise::NetworkScope)];
    cells
        .extend(KERNELS.iter().map(|(_, abi)| cell(Promise::NetworkScope, &host(*abi, world.clone()), true)));
    text + &row(cells)
}

pub fn page() -> String {
    let mut text = String::from("# Promises, mechanisms, kernels\n\nWhat each promise means:\n\n");
    text.push_str(&head(&["promise", "what holds inside"]));
    for promise in Promise::ALL {
        text.push_str(&row([code(promise.name()), promise.meaning().to_owned()]));
    }
    text.push_str(
        "\nThe tables below are made by the code that decides a run. A cell names the layers that keep the promise \
         there.\n*—* means that it cannot be kept. If the run asks for it, the run is refused with status 125.\n\n\
         All promises are asked for by default but `process-hiding` and `teardown`. `path-hiding` is asked for where \
         there\nare namespaces.\n\n## With namespaces\n\nAn ordinary user, user namespaces allowed. Root with \
         CAP_SYS_ADMIN differs in the ceilings only.\n\n",
    );
    text.push_str(&table(&World::User));
    text.push_str(
        "\nOn kernels before 6.12 a parent stays, since only a PID namespace keeps signals in there.\n\n## Without \
         namespaces\n\nUbuntu's AppArmor rule, most containers, `--namespaces off`. A parent stays and answers what \
         Landlock does not rule\n(the *broker*).\n\n",
    );
    text.push_str(&table(&missing()));
    text.push_str("\n## The layers\n\n");
    text.push_str(&head(&["layer", "what it is"]));
    for (layer, meaning) in LAYERS {
        text.push_str(&row([code(layer), (*meaning).to_owned()]));
    }
    text.push_str(
        "\nWhat was tried on real kernels, attack by attack, is in [kernels.md](../kernels.md). What *this* host can \
         keep, `confine\ncheck` tells.\n",
    );
    text
}

const LAYERS: &[(&str, &str)] = &[
    (
        "view",
        "a mount namespace with a new root, in which nothing else exists and all but writable roots is read-only",
    ),
    ("landlock", "Landlock rules on the descriptors of what was mounted"),
    (
        "broker",
        "a parent that answers chmod, chown, utime, xattr, connect and listen, by seccomp user notification",
    ),
    ("scan", "a walk through every writable root before the start"),
    ("network-namespace", "a network of its own, with a loopback and nothing else"),
    ("ipc-namespace", "System V and POSIX message queues of its own"),
    ("pid-namespace", "processes of its own, which end with it; a parent stays"),
    ("seccomp", "the system call filter, see [system-calls.md](system-calls.md)"),
    ("no-new-privs", "no program gains rights by being executed"),
    ("capabilities", "all sets are empty, the bounding set too"),
    ("securebits", "root's identity gives no capability, locked"),
    ("descriptors", "0, 1, 2 and --fd are inspected, all others are closed"),
    ("environment", "an allowlist of variables, see [view.md](view.md)"),
    ("keyring", "a session keyring of its own"),
    ("signals", "default dispositions and an empty mask"),
    ("rlimits", "limits of the kernel for a process or a user namespace"),
    ("tmpfs-size", "the size of the private file system"),
];
