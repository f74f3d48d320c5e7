//! The set-up, whole, in a child: an empty workspace, everything that an ordinary run does, and confine itself as
//! the command. The child tells through a pipe what it met; the status lines of the run are the rest.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Pid, getppid};
use serde::{Deserialize, Serialize};

use super::{Lack, Landlock, Namespaces, Row};
use crate::cli::Invocation;
use crate::commands::run::{self, Prepared};
use crate::error::{Error, Result};
use crate::host::{self, Host, World};
use crate::plan::{self, Outcome};
use crate::policy::{FileAccess, FileRule, Policy, Promise};
use crate::record::{Record, Timings};
use crate::sys;
use crate::view::Purpose;

pub struct Found {
    pub landlock: Landlock,
    pub namespaces: Namespaces,
    pub promises: BTreeMap<Promise, Row>,
    pub failure: Option<Lack>,
}

/// The child's first line.
#[derive(Serialize, Deserialize)]
struct Met {
    landlock: Landlock,
    namespaces: Namespaces,
    promises: BTreeMap<Promise, Row>,
    /// A directory that the child made and the parent takes away.
    scratch: Option<PathBuf>,
}

/// `require`: promises beyond the default ones that the run is to keep.
pub fn attempt(require: &[Promise]) -> Result<Found> {
    let step = |error| Error::step("try the set-up in a child", error);
    let (mut told, tell) = io::pipe().map_err(step)?;
    // The process has one thread still: nothing has been started since main.
    let child = sys::fork(move || in_child(tell, require)).map_err(step)?;
    let mut lines = String::new();
    let read = told.read_to_string(&mut lines);
    let ended = waitpid(Pid::from_raw(child), None).map_err(|errno| step(errno.into()))?;
    read.map_err(step)?;

    let mut lines = lines.lines();
    let met: Option<Met> = lines.next().and_then(|line| serde_json::from_str(line).ok());
    if let Some(scratch) = met.as_ref().and_then(|met| met.scratch.as_ref()) {
        fs::remove_dir_all(scratch).map_err(|error| Error::path("remove", scratch, error))?;
    }
    let events: Vec<serde_json::Value> = lines.filter_map(|line| serde_json::from_str(line).ok()).collect();
    let event = |name: &str| events.iter().find(|line| line.get("event").is_some_and(|event| event == name));
    let text = |line: &serde_json::Value, key: &str| Some(line.get(key)?.as_str()?.to_owned());
    let failure = match (event("refused"), event("started"), ended) {
        (Some(line), ..) => {
            Some(Lack { why: text(line, "message").unwrap_or_default(), help: text(line, "hint") })
        }
        (None, Some(_), WaitStatus::Exited(_, 0)) if met.is_some() => None,
        (None, _, ended) => Some(Lack { why: format!("the child ended early ({ended:?})"), help: None }),
    };
    Ok(match met {
        Some(Met { landlock, namespaces, promises, .. }) => Found { landlock, namespaces, promises, failure },
        None => Found {
            landlock: Landlock::default(),
            namespaces: Namespaces::default(),
            promises: Promise::ALL.map(|promise| (promise, unknown(promise))).into(),
            failure,
        },
    })
}

/// Where the child did not come as far as finding out. `run` fills in why.
fn unknown(promise: Promise) -> Row {
    let default = !matches!(promise, Promise::ProcessHiding | Promise::Teardown);
    Row { default, kept: true, layers: Vec::new(), why: None, help: None }
}

fn in_child(mut tell: io::PipeWriter, require: &[Promise]) -> i32 {
    let record = match Record::open(Some(tell.as_raw_fd())) {
        Ok(record) => record,
        Err(error) => return error.status().into(),
    };
    match set_up(&mut tell, require) {
        Ok((prepared, command)) => {
            drop(tell);
            let invocation = Invocation { policy: Policy::default(), command };
            prepared
                .start(&invocation, record, Timings::new(false), getppid())
                .unwrap_or_else(|error| error.status())
                .into()
        }
        Err((missing, error)) => {
            let _ = missing.then(|| tell.write_all(b"\n"));
            record.refused(&error);
            error.status().into()
        }
    }
}

/// The flag says that the first line is missing.
fn set_up(
    tell: &mut io::PipeWriter,
    require: &[Promise],
) -> std::result::Result<(Prepared, Vec<OsString>), (bool, Error)> {
    let before = |error| (true, error);
    let program =
        env::current_exe().map_err(|error| before(Error::step("find confine's own program file", error)))?;
    silence().map_err(|error| before(Error::step("open /dev/null", error)))?;
    let mut policy = Policy {
        files: vec![FileRule { access: FileAccess::Read, path: program.clone() }],
        toolchains: true,
        ..Policy::default()
    };
    let mut timings = Timings::new(false);
    let mut entered = run::enter(&policy, &mut timings).map_err(before)?;
    let mut met = look(&policy, &entered.host);
    policy.require.extend(require);
    // What is lacking is told; the rest is tried.
    policy.waive = met.promises.iter().filter(|(_, row)| !row.kept).map(|(promise, _)| *promise).collect();
    let scratch = if entered.host.namespaces() {
        in_memory(&program)
    } else {
        on_disk().inspect(|scratch| met.scratch = Some(scratch.clone()))
    };
    let line = serde_json::to_string(&met).unwrap_or_default();
    writeln!(tell, "{line}").map_err(|error| (false, Error::step("tell what was met", error)))?;

    let after = |error| (false, error);
    let scratch = scratch.map_err(|error| after(Error::step("make an empty workspace", error)))?;
    let workspace = scratch.join("workspace");
    DirBuilder::new()
        .mode(0o700)
        .create(&workspace)
        .map_err(|error| after(Error::path("create", &workspace, error)))?;
    if !entered.host.namespaces() {
        policy.state = Some(scratch.join("state"));
    }
    entered.caller.enter(&workspace).map_err(after)?;
    policy.workspaces = vec![workspace];
    let prepared = entered.prepare(&policy, Purpose::Run, &mut timings).map_err(after)?;
    Ok((prepared, vec![program.into(), "--version".into()]))
}

/// The trial's own streams: what `check` was started with is not its subject.
fn silence() -> io::Result<()> {
    let null = fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    (0..3).try_for_each(|number| sys::place_descriptor(null.as_fd(), number))
}

/// In this child's own mount namespace, so that nothing of it is ever on a disk or seen by anybody.
fn in_memory(program: &Path) -> io::Result<PathBuf> {
    const PLACES: &[&str] = &["/mnt", "/srv", "/media", "/tmp", "/var/tmp"];
    let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let search = env::var_os("PATH").unwrap_or_default();
    let in_use = |place: &Path| {
        program.starts_with(place)
            || home.starts_with(place)
            || env::split_paths(&search).any(|directory| directory.starts_with(place))
    };
    let place = PLACES.iter().map(Path::new).find(|place| place.is_dir() && !in_use(place));
    let place = place.ok_or_else(|| io::Error::other("no directory to mount a tmpfs on"))?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), place, Some("tmpfs"), flags, Some("size=64k,mode=0755"))?;
    Ok(place.to_owned())
}

/// An existing name is refused and left alone.
fn on_disk() -> io::Result<PathBuf> {
    let path = env::temp_dir().join(format!("confine-check-{}", std::process::id()));
    DirBuilder::new().mode(0o700).create(&path)?;
    Ok(path)
}

fn look(policy: &Policy, host: &Host) -> Met {
    let supervised = plan::supervision(policy, host).is_some();
    let namespaces = plan::namespaces(policy, host, supervised);
    let rows = plan::outcomes(policy, host, &namespaces).into_iter().map(|(promise, outcome)| {
        let default = plan::is_wanted(policy, promise, &namespaces);
        let row = match outcome {
            Outcome::Kept(layers) => Row {
                default,
                kept: true,
                layers: layers.into_iter().map(str::to_owned).collect(),
                why: None,
                help: None,
            },
            Outcome::Lacking(lack) => {
                Row { default, kept: false, layers: Vec::new(), why: Some(lack.why), help: lack.help }
            }
        };
        (promise, row)
    });
    Met {
        promises: rows.collect(),
        landlock: Landlock { abi: host.landlock.abi(), errata: fixed(host.landlock) },
        namespaces: match &host.world {
            World::User => Namespaces { kind: Some("user".into()), ..Namespaces::default() },
            World::Privileged => Namespaces { kind: Some("privileged".into()), ..Namespaces::default() },
            World::Missing(lack) => {
                Namespaces { kind: None, why: Some(lack.why.clone()), help: lack.help.clone() }
            }
        },
        scratch: None,
    }
}

/// Independent of the version: a stable kernel may have fewer fixes than an older series
/// (Documentation/userspace-api/landlock.rst, "Errata"). Bit N-1 of the mask is erratum N.
fn fixed(landlock: host::Landlock) -> Vec<u32> {
    match landlock {
        host::Landlock::Available { .. } => {
            let errata = sys::landlock_query(true).unwrap_or(0);
            (1..=32).filter(|n| errata >> (n - 1) & 1 == 1).collect()
        }
        host::Landlock::NotBuilt | host::Landlock::Disabled => Vec::new(),
    }
}
