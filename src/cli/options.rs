//! The options as data: one row each. Parsing, help, manual page and completions are all made from these rows, and so are
//! the keys of policy files.

use super::row::row;
pub use super::row::{Row, Value};
use crate::policy::files::builtin::NAMES;

/// The promises by name, in the order of `Promise::ALL` (a test compares them).
pub const PROMISES: &[&str] = &[
    "write-scope",
    "metadata-scope",
    "read-scope",
    "path-hiding",
    "alias-free",
    "network-scope",
    "socket-scope",
    "process-scope",
    "process-hiding",
    "no-gain",
    "clean-start",
    "ceilings",
    "teardown",
];

const WORKSPACE: &str = "Workspace";
const FILES: &str = "Files";
const NETWORK: &str = "Network";
const ENVIRONMENT: &str = "Environment";
const LIMITS: &str = "Limits";
const PROMISE: &str = "Promises";
const POLICY: &str = "Policy";
const OUTPUT: &str = "Output";

/// Of the run and of `explain`.
pub const RUN: &[Row] = &[
    row(
        WORKSPACE,
        "workspace",
        Value::Directory,
        "A directory that COMMAND may change; never guessed",
        "May be given several times; the first is the primary one. Every hard link in it is checked before \
         the start. A directory as broad as / or HOME is refused (see --allow broad-workspace).",
    )
    .short('w')
    .repeat(),
    row(
        WORKSPACE,
        "no-workspace",
        Value::None,
        "Give COMMAND no workspace: it starts in its private HOME",
        "For what serves by pipes and keeps nothing, such as a tool server. --chdir starts it elsewhere.",
    ),
    row(
        WORKSPACE,
        "chdir",
        Value::Directory,
        "Start COMMAND in this directory",
        "It must be visible inside. Without this option COMMAND starts where confine was started.",
    )
    .short('C'),
    row(
        WORKSPACE,
        "read-only",
        Value::None,
        "Show the workspaces read-only",
        "COMMAND can still write to its private /tmp and HOME, which vanish, and to what --rw names.",
    ),
    row(
        WORKSPACE,
        "hardlinks",
        Value::OneOf("reject|protect", &["reject", "protect"]),
        "What to do about files that have a name outside the workspace too",
        "reject (the default): do not start. protect: show those files read-only, at most 1000 of them; needs \
         namespaces. 'confine scan --separate DIR' gives them inodes of their own.",
    ),
    row(
        WORKSPACE,
        "git",
        Value::OneOf("guard|read-only|free", &["guard", "read-only", "free"]),
        "How to treat .git and other files that run later by themselves",
        "guard (the default): hooks, git configuration, editor tasks and the like are read-only where they \
         exist. read-only: the whole of .git is read-only, so no commits. free: no guard. The guard is a help \
         against accidents and not a promise.",
    ),
    row(
        WORKSPACE,
        "state",
        Value::Directory,
        "Keep HOME, /tmp and changes of caches here from one run to the next",
        "The directory must belong to you and be closed to others. auto: one for each workspace, below \
         $XDG_STATE_HOME/confine or ~/.local/state/confine. Without this option \
         HOME and /tmp are empty at the start, and all of it vanishes at the end.",
    ),
    row(
        FILES,
        "ro",
        Value::Path,
        "Let COMMAND read (and execute) this file or directory",
        "The most specific path wins, whatever the order of options; on a part of the workspace it takes the \
         right to write away. Different access for one path is an error.",
    )
    .repeat(),
    row(
        FILES,
        "rw",
        Value::Path,
        "Let COMMAND change this file or directory",
        "Its hard links are checked like those of a workspace. On exactly a path that confine protects by \
         itself it lifts that protection.",
    )
    .repeat(),
    row(
        FILES,
        "hide",
        Value::Path,
        "Hide this file or directory from COMMAND",
        "Inside, the name and every other mount of the same tree lead to nothing readable, also within a workspace.",
    )
    .repeat(),
    row(
        FILES,
        "seal",
        Value::Path,
        "Let COMMAND read this directory, apart from its sockets, FIFOs and locks",
        "Like --ro, but as a picture through inodes of its own: sockets in it cannot be connected to, and files \
         replaced outside during the run keep their old contents inside. Needs namespaces.",
    )
    .repeat(),
    row(
        FILES,
        "no-toolchains",
        Value::None,
        "Do not show the toolchains and caches that PATH leads to",
        "By default whole prefixes found from PATH (rustup, pyenv, nvm and so on) are readable, and caches are \
         readable with private writes.",
    ),
    row(
        NETWORK,
        "net",
        Value::OneOf("none|host", &["none", "host"]),
        "Which network COMMAND has",
        "none (the default): a private loopback only. host: all of the host's network, its local services \
         included. To allow single TCP ports use --connect instead.",
    ),
    row(
        NETWORK,
        "loopback",
        Value::OneOf("private|off|host", &["private", "off", "host"]),
        "Which loopback COMMAND has while --net is none",
        "private (the default): its own 127.0.0.1, ::1 and localhost. off: no network device that is up. host: \
         the host's, over TCP: every local service is reachable, and COMMAND can serve there. Dangerous where a \
         service trusts whoever comes by 127.0.0.1; needs a parent, which connects and rules listen.",
    ),
    row(
        NETWORK,
        "listen",
        Value::Word("PORT|any"),
        "Let COMMAND accept TCP connections from outside at this port",
        "A port is 1 to 65535; any is every port. May be given several times. On the host's network; nothing can be \
         connected to but what --connect names. Needs a parent, which rules listen.",
    )
    .repeat(),
    row(
        NETWORK,
        "connect",
        Value::Number("PORT"),
        "Let COMMAND connect to this TCP port of any host",
        "A port is 1 to 65535. May be given several times. Uses the host's network, TCP only: for names to \
         resolve, over TCP as well, add --connect 53.",
    )
    .repeat(),
    row(
        ENVIRONMENT,
        "env",
        Value::Word("NAME[=VALUE]"),
        "Pass one variable on, or set it",
        "Without a value it is passed on from the caller. Other users can read a VALUE in the list of processes \
         while confine starts: for secrets use --env-file.",
    )
    .repeat(),
    row(
        ENVIRONMENT,
        "env-file",
        Value::Path,
        "Set variables from a file that only you can read, or a pipe",
        "NAME=VALUE lines without quoting, or pairs separated by NUL; at most 1 MiB. /dev/fd/N reads a \
         pipe. --env wins over the file.",
    )
    .repeat(),
    row(
        ENVIRONMENT,
        "clear-env",
        Value::None,
        "Pass no variable on but the least that programs need",
        "That is PATH, HOME, USER, LOGNAME, SHELL, TERM, TZ and the locale, and what --env and --env-file name.",
    ),
    row(
        ENVIRONMENT,
        "fd",
        Value::Number("N"),
        "Pass this descriptor on besides 0, 1 and 2",
        "A file, FIFO, terminal or connected UNIX stream above 2. What could lead outside is refused: a \
         directory, a listening, datagram or INET socket, a namespace, a process.",
    )
    .repeat(),
    row(
        ENVIRONMENT,
        "user",
        Value::Word("UID[:GID]"),
        "Run COMMAND as this user, without further groups (for root)",
        "Numbers. The group is by default that of the user in the password file.",
    ),
    row(
        LIMITS,
        "max-procs",
        Value::Number("N"),
        "Most processes and threads at one time, of the whole tree",
        "Above it fork(2) fails (EAGAIN). Without this option 4096 where namespaces make the count its own. For root a \
         control group counts, or the supervisor does and ends the tree.",
    ),
    row(
        LIMITS,
        "max-memory",
        Value::Number("SIZE"),
        "Most memory of the whole tree, page cache and private /tmp included",
        "Bytes, or K, M, G, T (powers of 1024). Above it the tree is ended. Counted by a control group where one can be \
         made (version 2, the systemd user manager, version 1), else sampled, without the page cache, every 50 ms; then \
         no process can reserve more than twice SIZE and 1G, the stacks of its threads included.",
    ),
    row(
        LIMITS,
        "max-tmp",
        Value::Number("SIZE"),
        "Most that private /tmp and HOME hold together, for the whole tree",
        "Bytes, or K, M, G, T (powers of 1024). Without this option a quarter of memory.",
    ),
    row(
        LIMITS,
        "max-disk",
        Value::Number("SIZE"),
        "Most that the file systems of writable roots may lose meanwhile",
        "Bytes, or K, M, G, T (powers of 1024). Above it the tree is ended. What is free is looked at every 50 ms, so \
         what others write there counts too.",
    ),
    row(
        LIMITS,
        "max-output",
        Value::Number("SIZE"),
        "Most that the whole tree may write to each of stdout and stderr",
        "Bytes, or K, M, G, T (powers of 1024), for each of the two, which are pipes then. See --on-output-limit.",
    ),
    row(
        LIMITS,
        "on-output-limit",
        Value::OneOf("HOW", &["truncate", "kill"]),
        "What happens at --max-output",
        "truncate (the default): the first and the last are kept, what is over is dropped, and a marker says how many \
         bytes are missing. kill: the run ends with status 137.",
    ),
    row(
        LIMITS,
        "max-cpu",
        Value::Number("TIME"),
        "Most processor time of the whole tree",
        "A number with ms, s, m or h. Above it the tree is ended. Of all processes together, those that have ended \
         included; told by a control group where one can be made, else by sampling every 50 ms.",
    ),
    row(
        LIMITS,
        "max-file-size",
        Value::Number("SIZE"),
        "Largest file that each process may write",
        "Bytes, or K, M, G, T (powers of 1024). A limit of each process: a tree can write many such files.",
    ),
    row(
        LIMITS,
        "max-open-files",
        Value::Number("N"),
        "Most descriptors that each process may hold",
        "A limit of each process: the tree as a whole can hold more. At least 8, for the start itself.",
    ),
    row(
        LIMITS,
        "timeout",
        Value::Number("TIME"),
        "End the whole tree after this time; the exit status is then 124",
        "A number with ms, s, m or h, by the clock on the wall. TERM first, KILL after --grace.",
    ),
    row(
        LIMITS,
        "grace",
        Value::Number("TIME"),
        "How long the tree may take to end after TERM",
        "A number with ms, s, m or h; 0s kills at once; 600ms unasked. With --timeout or --require teardown.",
    ),
    row(
        PROMISE,
        "require",
        Value::OneOf("PROMISE", PROMISES),
        "Refuse to start unless this promise can be kept",
        "Adds to the default: every promise but path-hiding (kept with namespaces), process-hiding and teardown.",
    )
    .repeat(),
    row(
        PROMISE,
        "waive",
        Value::OneOf("PROMISE", PROMISES),
        "Start even where this host cannot keep this promise",
        "What can be kept of it is kept all the same; a waiver opens nothing.",
    )
    .repeat(),
    row(PROMISE, "strict", Value::None, "Require every promise", "Changes the meaning of none of them."),
    row(
        PROMISE,
        "allow",
        Value::OneOf("WHAT", &["broad-workspace", "userns", "unix-datagram"]),
        "Allow something that is refused by default",
        "broad-workspace: a workspace such as HOME. userns: COMMAND may make user namespaces, which opens more \
         of the kernel. unix-datagram: datagram sockets between programs where they cannot be ruled.",
    )
    .repeat(),
    row(
        PROMISE,
        "namespaces",
        Value::OneOf("auto|off", &["auto", "off"]),
        "Whether to build the boundary with namespaces",
        "auto (the default): where this host has them. off: as on a host that has none.",
    ),
    row(
        POLICY,
        "profile",
        Value::OneOf("NAME", NAMES),
        "Take what is not said here from this profile",
        "NAME.toml of ~/.config/confine/profiles, of /etc/confine/profiles, or built in: workspace-write, read-only, \
         build, dev-server, kernel, mcp, strict. 'confine explain --profile NAME' shows it. The command line wins.",
    ),
    row(
        POLICY,
        "policy",
        Value::Path,
        "Take what is not said here from this file",
        "TOML; its keys are the long options. It must belong to you or root, as must every directory above it, be \
         closed to others' writing, and lie in no writable root. Wins over --profile.",
    ),
    row(
        OUTPUT,
        "status-fd",
        Value::Number("N"),
        "Write JSON lines about start and end to this descriptor",
        "An open descriptor above 2; COMMAND does not get it. One line says started, with the layer that keeps \
         each promise, or refused, with the reason; under a supervisor another one says how it ended.",
    ),
    row(
        OUTPUT,
        "result",
        Value::OneOf("json", &["json"]),
        "Write one JSON object with outcome, output and resource use at the end",
        "To standard output, where nothing else is written then; with --status-fd as its last line instead, and \
         COMMAND's output goes where it always does. Holds the first and the last of both streams, at most 256K of \
         each or --max-output, and which files that run by themselves are new or changed. COMMAND's stdout and \
         stderr are pipes. A refusal is an object too.",
    ),
    row(
        OUTPUT,
        "audit",
        Value::Path,
        "Append one JSON line for every decision to this file",
        "Time, policy id, COMMAND, roots, the layer that keeps each promise, waivers; a refusal with its reason; \
         under a supervisor the outcome. Each line has the hash of the one before: see 'confine verify'. Made with \
         mode 600 in a directory that exists, out of COMMAND's reach. Nothing starts without its line.",
    ),
    row(
        OUTPUT,
        "kernel-log",
        Value::None,
        "Let Landlock write what it denies to the kernel's audit log",
        "Records of type LANDLOCK_ACCESS, which root reads with 'journalctl -k' or 'ausearch'. Needs Linux 6.15 with \
         audit. See also 'confine trace'.",
    ),
    row(
        OUTPUT,
        "verbose",
        Value::None,
        "Say on standard error how the promises are kept",
        "By default confine is silent when it succeeds.",
    )
    .short('v'),
    row(OUTPUT, "timings", Value::None, "Say on standard error how long each step took", "For measurements.")
        .hidden(),
];

pub const JSON: Row = row(
    OUTPUT,
    "json",
    Value::None,
    "Print one JSON object instead of text",
    "It has a field \"version\", which is 1.",
);

pub const PROVE: Row = row(
    PROMISE,
    "prove",
    Value::None,
    "Try to get out of the boundary that the given options make here",
    "Some seventy attempts, each against a victim that is made for it and watched from outside. Without --workspace \
     an empty one is made and removed.",
);

pub const SUGGEST: Row = row(
    OUTPUT,
    "suggest",
    Value::None,
    "Print a profile that would allow what was denied",
    "TOML, on standard error. What is dangerous is a comment in it. Nothing is written to a file.",
);

pub const EXPECT: Row = row(
    OUTPUT,
    "expect",
    Value::Word("HASH"),
    "A line with this hash must be in the record",
    "The hash that an earlier run of 'confine verify' printed and that was kept elsewhere.",
);

pub const SEPARATE: Row = row(
    WORKSPACE,
    "separate",
    Value::None,
    "Give every file that has a name elsewhere too an inode of its own",
    "Contents, mode, times and extended attributes are kept. Run it while nothing else writes there.",
);

pub const POSTURE: Row = row(
    OUTPUT,
    "posture",
    Value::None,
    "Look for weak spots of the set-up instead",
    "Policy files, agents' shells, secrets and sockets that commands could read or reach, files that run by themselves, \
     kernel settings. Nothing is run or changed. Exits 1 when something found is of high severity.",
);
