//! What exists inside, and which variables are passed on.

use confine::enforce::environment;
use confine::view::{control, system, toolchains};

use super::{code, head, row};

fn table(title: &str, text: &str, heads: [&str; 2], rows: &[(&str, &str)]) -> String {
    let mut out = format!("\n## {title}\n\n{text}\n\n{}", head(&heads));
    for (path, reason) in rows {
        out.push_str(&row([code(path), (*reason).to_owned()]));
    }
    out
}

pub fn page() -> String {
    let mut text = String::from(
        "# The view\n\nThe rows are those of the program, each with its reason. Only what exists on the host exists \
         inside. `confine explain`\nshows what a run would have.\n",
    );
    let paths = ["path", "why"];
    text.push_str(&table(
        "Shown read-only",
        "Every symbolic link on the way is the same link inside.",
        paths,
        system::READABLE,
    ));
    text.push_str(&table("Links", "Made where the host has them.", paths, system::LINKS));
    text.push_str(&table(
        "Shown wherever they lead to",
        "What these files resolve to is shown as well.",
        paths,
        system::RESOLVED,
    ));
    text.push_str(&format!(
        "\nWhat these variables name is shown too: {}.\n",
        system::CA_VARIABLES.iter().map(|name| code(name)).collect::<Vec<_>>().join(", ")
    ));
    text.push_str(&table(
        "Hidden, even from root",
        "Covered where the caller could read them; elsewhere their own mode keeps refusing.",
        paths,
        system::HIDDEN,
    ));
    text.push_str(&table(
        "Hidden below /proc, from root",
        "Root would need no capability for them.",
        paths,
        system::PROC_HIDDEN,
    ));
    text.push_str(&table(
        "Hidden below /proc, from root with --net host",
        "With `stable_secret` of every interface. In a network namespace these are the command's own, or missing.",
        paths,
        system::NET_HIDDEN,
    ));
    text.push_str(&table(
        "What root reads of /sys",
        "Root would need no capability for what only root may read there, so that it lists all and reads these. Others\nread what their modes let them.",
        paths,
        system::SYS_READABLE,
    ));
    text.push_str(&table("Hidden below /sys", "Where a new sysfs cannot be had.", paths, system::SYS_HIDDEN));
    text.push_str(&format!(
        "\n## Devices\n\n`/dev` is new and holds {}, the links of the standard streams, new pseudo-terminals, and the \
         caller's\nterminal if it is one of descriptors 0, 1 and 2.\n",
        system::DEVICES.iter().map(|name| code(name)).collect::<Vec<_>>().join(", ")
    ));
    text.push_str(&table(
        "Hidden in a home directory",
        "HOME is private inside, so that nothing of it is shown but toolchains and git settings. When it is shown on \
         purpose\n(`--ro`, `--rw`, `--allow broad-workspace`), these stay hidden:",
        ["below HOME", "what"],
        system::CREDENTIALS,
    ));
    text.push_str(&toolchains());
    text.push_str(&control_files());
    text.push_str(&format!(
        "\n## Too broad for a workspace\n\n{}; a home directory as well. `--allow broad-workspace` lifts this but for \
         `/`, `/run`, `/tmp` and\n`/var/tmp`. Nothing at or below {} can be one.\n",
        system::BROAD.iter().map(|path| code(path)).collect::<Vec<_>>().join(", "),
        system::KERNEL.iter().map(|path| code(path)).collect::<Vec<_>>().join(", ")
    ));
    text.push_str("\n## Variables that are passed on\n\nAll others are dropped. A value that is a URL with a user in it is dropped too.\n\n");
    text.push_str(&head(&["variables", "why"]));
    for (names, reason) in environment::ALLOWED {
        let names: Vec<String> = names.iter().map(|name| code(name)).collect();
        text.push_str(&row([names.join(", "), (*reason).to_owned()]));
    }
    text
}

fn toolchains() -> String {
    let mut text = String::from(
        "\n## Toolchains and caches in HOME\n\nShown where they exist, or where the variable says. *layered*: the \
         command can write there, and what it writes is private\nto the run, and kept with `--state`. Besides these, whole prefixes of the \
         directories on PATH. `--no-toolchains` leaves all of it out.\n\n",
    );
    text.push_str(&head(&["below HOME", "or by", "access", "hidden in it", "why"]));
    for tool in toolchains::TOOLCHAINS {
        text.push_str(&row([
            code(tool.path),
            tool.variable.map(code).unwrap_or_default(),
            if tool.layered { "layered" } else { "read" }.to_owned(),
            tool.hidden.iter().map(|path| code(path)).collect::<Vec<_>>().join(", "),
            tool.reason.to_owned(),
        ]));
    }
    text
}

fn control_files() -> String {
    let mut text = String::from(
        "\n## Control files\n\nThey run later, outside, by themselves. Where they exist at the start they are read-only \
         inside: at the top of each\nworkspace and in the repositories met, but not below `node_modules` or `target`. \
         This is a guard and not a promise.\n\n",
    );
    text.push_str(&head(&["path", "what runs it"]));
    for one in control::GIT {
        text.push_str(&row([format!("`.git/{}`", one.path), one.reason.to_owned()]));
    }
    for one in control::FILES {
        text.push_str(&row([code(one.path), one.reason.to_owned()]));
    }
    text
}
