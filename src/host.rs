//! What this kernel and this process may use, and why not. Found by doing: the namespaces are entered here,
//! since unshare(2) itself is the only reliable probe.
#![forbid(unsafe_code)]

use std::io;
use std::path::Path;

use caps::{CapSet, Capability};
use nix::errno::Errno;

use crate::enforce::seccomp::Brokered;
use crate::enforce::{cgroup, namespaces};
use crate::error::Result;
use crate::policy::Namespaces;
use crate::supervise::broker::probe::{Abilities, probe};
use crate::sys;
use crate::view::sockets::RESOLVE_UNIX_ABI;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landlock {
    Available { abi: u32 },
    NotBuilt,
    Disabled,
}

impl Landlock {
    pub fn abi(self) -> u32 {
        match self {
            Landlock::Available { abi } => abi,
            Landlock::NotBuilt | Landlock::Disabled => 0,
        }
    }

    fn query() -> Self {
        match sys::landlock_query(false) {
            Ok(abi) => Landlock::Available { abi },
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Landlock::Disabled,
            Err(_) => Landlock::NotBuilt,
        }
    }
}

/// Whether this process now has a mount namespace of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum World {
    /// Own user and mount namespaces: an ordinary user, or root without CAP_SYS_ADMIN.
    User,
    /// Own mount namespace only: root with CAP_SYS_ADMIN needs no user namespace.
    Privileged,
    /// None, and why.
    Missing(Lack),
}

/// Something this host does not have: what failed and what would help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    pub why: String,
    pub help: Option<String>,
}

#[derive(Debug, Clone)]
pub struct Host {
    pub uid: u32,
    pub gid: u32,
    pub landlock: Landlock,
    pub world: World,
    /// What a parent could be asked, where there are no namespaces.
    pub broker: Option<Abilities>,
    /// Where a control group can be made; looked for only when a limit needs one.
    pub cgroup: cgroup::Site,
    /// A PID namespace has a `kernel.pid_max` of its own (Linux 6.14). Before, writing it would change the host's. Looked
    /// for only when a limit needs one.
    pub own_pid_max: bool,
    /// HOME and TMPDIR are a directory of this run alone.
    pub private_home: bool,
}

impl Host {
    /// Looks at the kernel and enters a user namespace (unless root needs none) and a mount namespace.
    ///
    /// No thread may have been started: unshare(CLONE_NEWUSER) refuses a process with more than one
    /// (unshare(2)).
    pub fn enter(wanted: Namespaces, uid: u32, gid: u32) -> Result<Host> {
        let world = match wanted {
            Namespaces::Off => World::Missing(Lack { why: "--namespaces off was given".into(), help: None }),
            Namespaces::Auto => enter_world(uid, gid)?,
        };
        let broker = matches!(world, World::Missing(_)).then(probe);
        Ok(Host {
            uid,
            gid,
            landlock: Landlock::query(),
            world,
            broker,
            cgroup: cgroup::Site::Nowhere,
            own_pid_max: false,
            private_home: false,
        })
    }

    pub fn namespaces(&self) -> bool {
        !matches!(self.world, World::Missing(_))
    }

    /// For an option that needs the broker on a host with namespaces too. No thread may have been started.
    pub fn look_for_broker(&mut self) {
        if self.broker.is_none() {
            self.broker = Some(probe());
        }
    }

    /// No thread may have been started.
    pub fn look_for_pid_max(&mut self) {
        self.own_pid_max = self.namespaces() && namespaces::own_pid_max();
    }

    /// Which calls the broker is asked about: those that nothing else here rules.
    pub fn brokered(&self) -> Brokered {
        let Some(abilities) = self.broker.as_ref().filter(|_| !self.namespaces()) else {
            return Brokered::default();
        };
        Brokered {
            metadata: abilities.metadata.is_ok(),
            connect: abilities.connect.is_ok() && self.landlock.abi() < RESOLVE_UNIX_ABI,
            listen: false,
        }
    }

    /// uid 0 keeps the ownership of root's files even without a capability, so what it may see of the system
    /// is narrowed by other means.
    pub fn owns_system(&self) -> bool {
        self.uid == 0
    }
}

fn enter_world(uid: u32, gid: u32) -> Result<World> {
    if has_sys_admin() {
        return Ok(match namespaces::enter_mount() {
            Ok(()) => World::Privileged,
            Err((step, error)) => World::Missing(lack("a mount namespace is", step, error)),
        });
    }
    const WHAT: &str = "user namespaces are";
    // An LSM may let unshare through and break the steps after it (Ubuntu's AppArmor rule); a refused id map
    // cannot be undone, so a child goes ahead where that is possible at all.
    if Path::new("/sys/kernel/security/apparmor").exists()
        && let Err((step, error)) = namespaces::rehearse(uid, gid)
    {
        return Ok(World::Missing(lack(WHAT, step, error)));
    }
    match namespaces::enter_user_and_mount(uid, gid)? {
        Ok(()) => Ok(World::User),
        Err(error) => Ok(World::Missing(lack(WHAT, "unshare", error))),
    }
}

pub fn has_sys_admin() -> bool {
    caps::has_cap(None, CapSet::Effective, Capability::CAP_SYS_ADMIN).unwrap_or(false)
}

fn lack(what: &str, step: &str, error: io::Error) -> Lack {
    let errno = error.raw_os_error().map(Errno::from_raw);
    let is = |path: &str, value: &str| std::fs::read_to_string(path).is_ok_and(|text| text.trim() == value);
    let help = if errno == Some(Errno::EPERM) && std::env::var_os("CONFINE").is_some() {
        // A landlocked process cannot mount, so no option of the outer run would help.
        Some("this runs inside confine already, whose own boundary holds here too".to_owned())
    } else if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        Some(apparmor_profile())
    } else if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        Some("sudo sysctl kernel.unprivileged_userns_clone=1".to_owned())
    } else if is("/proc/sys/user/max_user_namespaces", "0") {
        Some("sudo sysctl user.max_user_namespaces=10000".to_owned())
    } else if errno == Some(Errno::ENOSPC) {
        Some("the limit user.max_user_namespaces or the nesting depth of 32 is reached".to_owned())
    } else if errno == Some(Errno::EPERM) {
        Some(
            "in a container, start it with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined` \
             or with profiles that allow unshare, mount and pivot_root"
                .to_owned(),
        )
    } else if errno == Some(Errno::EACCES) && step != "id map" {
        // Of the calls only a profile's refusal is EACCES; the id map is a file, which Landlock refuses likewise.
        Some(
            "a profile of AppArmor or SELinux refuses this to confine: allow userns and mount in it"
                .to_owned(),
        )
    } else {
        None
    };
    Lack { why: format!("{what} not to be had here ({step}: {})", crate::error::describe(&error)), help }
}

/// The packaged profile, for the path that this program has.
fn apparmor_profile() -> String {
    let program = std::env::current_exe().unwrap_or_else(|_| "/usr/bin/confine".into());
    let quoted = crate::error::paste(program.as_os_str());
    format!(
        "printf '{}' {quoted} | sudo tee /etc/apparmor.d/confine && sudo apparmor_parser -r /etc/apparmor.d/confine",
        profile_format()
    )
}

/// As a format of printf(1), the path being its argument: the comments and the variable for the packaged paths left
/// out.
fn profile_format() -> String {
    const PACKAGED: &str = include_str!("../packaging/apparmor/confine");
    const PATHS: &str = "@{confine}";
    let said = |line: &&str| !line.is_empty() && !line.starts_with('#') && !line.starts_with(PATHS);
    PACKAGED.lines().filter(said).map(|line| line.replace(PATHS, "\"%s\"") + "\\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_that_is_printed_is_the_packaged_one() {
        let printed = profile_format();
        let lines: Vec<&str> = printed.split("\\n").map(str::trim).collect();
        assert_eq!(
            lines,
            [
                "abi <abi/4.0>,",
                "include <tunables/global>",
                "profile confine \"%s\" flags=(unconfined) {",
                "userns,",
                "include if exists <local/confine>",
                "}",
                "",
            ]
        );
        // Nothing that printf or the shell would take for its own.
        assert!(printed.matches('%').count() == 1 && !printed.contains('\''), "{printed}");
    }
}
