//! `confine [OPTIONS] -- COMMAND`: the pipeline of an ordinary run.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::unistd::{Pid, getegid, geteuid, getppid};

use crate::cli::Invocation;
use crate::enforce::environment::{self, Composed};
use crate::enforce::{self, cgroup, descriptors, exec, mounts, standard};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::plan::{self, Plan};
use crate::policy::{Listen, Policy, env_file};
use crate::record::{self, Record, Timings};
use crate::supervise::private::Private;
use crate::view::caller::Caller;
use crate::view::never::Never;
use crate::view::state;
use crate::view::trace::{Traced, trace};
use crate::view::{Purpose, View};

/// Becomes the command; or returns the reason why not; or, supervised, the command's status.
pub fn run(invocation: Invocation) -> Result<u8> {
    // As early as can be: a caller that goes meanwhile is missed otherwise.
    let parent = getppid();
    close_inherited(&invocation.policy)?;
    let mut record = Record::of_run(&invocation.policy, &invocation.command)?;
    let mut timings = Timings::new(invocation.policy.timings);
    let mut private = None;
    let prepared = enter(&invocation.policy, &mut timings).and_then(|mut entered| {
        private = entered.private_directory(&invocation.policy)?;
        entered.host.private_home = private.is_some();
        let policy = with_state(&invocation.policy, private.as_ref());
        let prepared = entered.prepare(&policy, Purpose::Run, &mut timings)?;
        record.refuse_handed(&policy, &prepared.caller)?;
        record.judge(&prepared.view, &policy)?;
        Ok(prepared)
    });
    let status = match prepared {
        Ok(prepared) => prepared.start(&invocation, record, timings, parent),
        Err(error) => {
            record.refused(&error);
            Err(error)
        }
    };
    if let Some(private) = private {
        private.remove();
    }
    status
}

/// A private directory takes the place of `--state`.
fn with_state<'a>(policy: &'a Policy, private: Option<&Private>) -> Cow<'a, Policy> {
    match private {
        Some(private) => Cow::Owned(Policy { state: Some(private.path().to_owned()), ..policy.clone() }),
        None => Cow::Borrowed(policy),
    }
}

/// What was read and entered before the view: of the host, only this process has changed.
pub struct Entered {
    pub caller: Caller,
    pub host: Host,
    files: EnvFiles,
}

pub fn enter(policy: &Policy, timings: &mut Timings) -> Result<Entered> {
    // Before ids are mapped: owners are checked.
    let files = read_env_files(policy)?;
    let mut standard = descriptors::check_standard()?;
    if plan::Relay::decide(policy).is_some() {
        descriptors::replace_by_pipes(&mut standard);
    }
    let passed = descriptors::check_passed(&policy.descriptors)?;
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    let mut caller = Caller::look(policy, uid, gid, standard)?;
    caller.passed = passed;
    if let Some(directory) = &policy.chdir {
        caller.enter(directory).map_err(|error| policy.told_of("chdir", error))?;
    }
    standard::let_terminal_go(&caller.standard);
    timings.mark("caller");
    let mut host = Host::enter(policy.namespaces, uid, gid)?;
    if policy.user.is_some() && host.uid != 0 {
        return Err(policy.told_of("user", Error::refused("--user is for root")));
    }
    if policy.network.listen != Listen::None || policy.network.grants_loopback() {
        host.look_for_broker();
    }
    let wanted = plan::wanted_of_tree(&policy.limits, &host);
    if wanted.any() {
        host.cgroup = cgroup::decide(&cgroup::look(wanted), wanted);
        host.look_for_pid_max();
    }
    timings.mark("host");
    Ok(Entered { caller, host, files })
}

impl Entered {
    /// HOME and TMPDIR where nothing can be mounted and no directory was named for them.
    fn private_directory(&self, policy: &Policy) -> Result<Option<Private>> {
        if self.host.namespaces() || policy.state.is_some() || policy.state_auto {
            return Ok(None);
        }
        // A run that will be refused makes nothing.
        plan::promises(policy, &self.host)?;
        // The caller's own TMPDIR where it is private (inside another confine there is no other place), /tmp, and
        // last the run-time directory, which is memory and small.
        let variable =
            |name: &str| self.caller.trusted_variable(name).map(Path::new).filter(|path| path.is_absolute());
        let private = |path: &&Path| {
            fs::symlink_metadata(path).is_ok_and(|found| {
                found.is_dir() && found.uid() == self.caller.uid && found.mode() & 0o77 == 0
            })
        };
        let places: Vec<&Path> = variable("TMPDIR")
            .filter(private)
            .into_iter()
            .chain([Path::new("/tmp")])
            .chain(variable("XDG_RUNTIME_DIR").filter(private))
            .collect();
        Private::make(self.caller.uid, &places).map(Some)
    }

    /// Everything else that can be refused.
    pub fn prepare(self, policy: &Policy, purpose: Purpose, timings: &mut Timings) -> Result<Prepared> {
        let Entered { mut caller, host, files } = self;
        let own_state = match policy.state_auto {
            true => {
                let state = state::of_workspace(policy, &caller);
                let state = state.map_err(|error| policy.told_of("state", error))?;
                Some(Policy { state: Some(state), ..policy.clone() })
            }
            false => None,
        };
        let policy = own_state.as_ref().unwrap_or(policy);
        // Before anything is looked through or made.
        let promises = plan::promises(policy, &host)?;
        let mut view = View::resolve(policy, &caller, &host, purpose)?;
        if policy.no_workspace && policy.chdir.is_none() {
            caller.start_at_home(&view.home);
        }
        // `why` is asked beside a command, with descriptors of its own.
        if host.namespaces() && purpose != Purpose::Ask {
            caller.inherited().try_for_each(|inherited| view.refuse_reopening(inherited))?;
        }
        timings.mark("view");
        let never = if files.found.is_empty() { Vec::new() } else { Never::all(policy)? };
        for (file, traced) in &files.found {
            let told = |error| policy.told("env-file", file, error);
            view.refuse_planted("--env-file", file, &traced.links).map_err(told)?;
            for never in &never {
                never.refuse_file("--env-file", file, &traced.path).map_err(told)?;
            }
        }
        let environment = compose(policy, &caller, &view, &host, &files.pairs);
        let names = environment.pairs.iter().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
        let plan = Plan::decide(policy, &view, &host, (caller.uid, caller.gid), names, promises)?;
        // Of a view of its own a run asks the kernel, once it is in there.
        let asks_kernel = purpose == Purpose::Run && host.namespaces();
        if !asks_kernel && caller.cwd_object.is_some() && !view.keeps_identity(&caller.cwd) {
            match purpose {
                Purpose::Ask => _ = view.refusal.get_or_insert(caller.outside_view()),
                Purpose::Run | Purpose::Explain => return Err(caller.outside_view()),
            }
        }
        timings.mark("plan");
        Ok(Prepared { plan, view, caller, environment, cgroup: host.cgroup })
    }
}

/// A run that nothing but the kernel can refuse any more.
pub struct Prepared {
    pub plan: Plan,
    pub view: View,
    pub caller: Caller,
    pub environment: Composed,
    pub cgroup: cgroup::Site,
}

impl Prepared {
    pub fn start(
        self,
        invocation: &Invocation,
        mut record: Record,
        timings: Timings,
        parent: Pid,
    ) -> Result<u8> {
        let Prepared { plan, view, caller, mut environment, cgroup } = self;
        record.planned(&plan, &view);
        if invocation.policy.verbose {
            record::explain_start(&plan);
        }
        let note = plan::note::Note::of(&plan, &view);
        let id = plan.id();
        environment.pairs.push(("CONFINE_POLICY".into(), id.into()));
        let shell = invocation.policy.shell.as_ref();
        let called = shell.map(|shell| shell.name.as_os_str());
        match exec::Target::prepare(&invocation.command, called, &environment.pairs, &caller.cwd) {
            Ok(target) => enforce::apply(enforce::Run {
                plan: &plan,
                view,
                caller: &caller,
                cgroup: &cgroup,
                target,
                note,
                record,
                timings,
                parent,
                git: invocation.policy.git,
            }),
            Err(error) => {
                record.refused(&error);
                Err(error)
            }
        }
    }
}

/// The descriptor that a path of the form `/dev/fd/N` names, or `/dev/stdin`.
fn by_number(path: &Path) -> Option<i32> {
    let text = path.to_str()?;
    if text == "/dev/stdin" {
        return Some(0);
    }
    text.strip_prefix("/dev/fd/").or(text.strip_prefix("/proc/self/fd/"))?.parse().ok()
}

/// Keeps what the policy names by number, env files too.
fn close_inherited(policy: &Policy) -> Result<()> {
    let mut keep = policy.descriptors.clone();
    keep.extend(policy.status_fd);
    keep.extend(policy.environment.files.iter().filter_map(|file| by_number(file)));
    descriptors::close_inherited(&keep).map_err(|error| Error::step("close the inherited descriptors", error))
}

/// Variables from files, and where those lie: judged once it is known where earlier commands could have planted a
/// link.
#[derive(Default)]
struct EnvFiles {
    pairs: Vec<(OsString, OsString)>,
    found: Vec<(PathBuf, Traced)>,
}

fn read_env_files(policy: &Policy) -> Result<EnvFiles> {
    let mut read = EnvFiles::default();
    for file in &policy.environment.files {
        let told = |error| policy.told("env-file", file, error);
        if by_number(file).is_some() {
            read.pairs.extend(env_file::read(file).map_err(told)?);
            continue;
        }
        let cannot = |error| told(Error::path("read environment file", file, error));
        let traced = std::path::absolute(file).and_then(|path| trace(&path)).map_err(cannot)?;
        read.pairs.extend(env_file::read_open(file, &traced.fd).map_err(told)?);
        read.found.push((file.clone(), traced));
    }
    Ok(read)
}

/// What is set whatever the caller has.
fn compose(
    policy: &Policy,
    caller: &Caller,
    view: &View,
    host: &Host,
    pairs: &[(OsString, OsString)],
) -> Composed {
    let viewed = host.namespaces();
    let tmp = if viewed { PathBuf::from("/tmp") } else { view.tmp.clone() };
    let home = view.home.clone();
    let mut fixed: Vec<(OsString, OsString)> =
        vec![("CONFINE".into(), "1".into()), ("HOME".into(), home.into())];
    match &view.state {
        _ if viewed => fixed.push(("CONFINE_NOTE".into(), Path::new(mounts::OWN).join("note").into())),
        Some(state) => fixed.push(("CONFINE_NOTE".into(), state.path.join("note").into())),
        None => {}
    }
    if !viewed {
        // Looked for under HOME by default, which is elsewhere now.
        for (name, path) in view.tools.iter().filter(|(name, _)| caller.variable(name).is_none()) {
            fixed.push((name.into(), path.into()));
        }
        // resolver(5): stands for the private resolv.conf where only TCP ports are granted.
        if !policy.network.connect.is_empty() {
            fixed.push(("RES_OPTIONS".into(), "use-vc".into()));
        }
    }
    for name in ["TMPDIR", "TMP", "TEMP"] {
        let points_elsewhere = caller.variable(name).is_some_and(|value| value != tmp.as_os_str());
        if points_elsewhere || (!viewed && name == "TMPDIR") {
            fixed.push((name.into(), tmp.clone().into()));
        }
    }
    if caller.variable("XDG_RUNTIME_DIR").is_some_and(|path| view.entries.contains_key(Path::new(path))) {
        fixed.extend(
            caller.variable("XDG_RUNTIME_DIR").map(|path| ("XDG_RUNTIME_DIR".into(), path.to_owned())),
        );
    }
    if let Some(entry) = &caller.entry {
        fixed.push(("USER".into(), entry.name.clone()));
        fixed.push(("LOGNAME".into(), entry.name.clone()));
        fixed.push(("SHELL".into(), entry.shell.clone().into()));
    }
    if let Some(shell) = &policy.shell {
        // What it starts in turn is inside already.
        fixed.push(("SHELL".into(), shell.path.clone().into()));
    }
    environment::compose(caller.environment.iter().cloned(), &policy.environment, pairs, &fixed)
}
