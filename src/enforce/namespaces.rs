//! Namespaces, entered in place: no process is forked for them but the rehearsal and the carrier of an id map.

use std::fs;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::attendant::attended;
use crate::error::{Error, Result};
use crate::sys;

const HINT: &str = "the namespace cannot be left again in this process: retry with `--namespaces off`";

/// A mount namespace for a process that has CAP_SYS_ADMIN. The error names the step: an LSM may let unshare(2)
/// through and refuse every mount.
pub fn enter_mount() -> std::result::Result<(), (&'static str, io::Error)> {
    unshare(CloneFlags::CLONE_NEWNS).map_err(|errno| ("unshare", errno.into()))?;
    make_private().map_err(|error| ("mount", error))
}

/// A user namespace with an identity map and a mount namespace in it. The inner error is a clean refusal of
/// unshare(2), after which nothing has changed; any later failure leaves a process without ids and is final.
pub fn enter_user_and_mount(uid: u32, gid: u32) -> Result<io::Result<()>> {
    if let Err(errno) = unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS) {
        return Ok(Err(errno.into()));
    }
    map_ids(uid, gid).map_err(|error| Error::step("map the user and group id", error).with_hint(HINT))?;
    make_private()
        .map_err(|error| Error::step("make the mounts private to this process", error).with_hint(HINT))?;
    Ok(Ok(()))
}

/// user_namespaces(7): "deny" must be written before a process without CAP_SETGID in the parent may map a
/// group, so this order is fixed.
fn map_ids(uid: u32, gid: u32) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))
}

fn make_private() -> io::Result<()> {
    let none = None::<&str>;
    Ok(mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?)
}

/// Everything that an LSM is known to break after unshare(2), tried in a child that then ends. The error names
/// the step.
pub fn rehearse(uid: u32, gid: u32) -> std::result::Result<(), (&'static str, io::Error)> {
    const STEPS: [&str; 3] = ["unshare", "id map", "mount"];
    let attempt = || -> std::result::Result<(), (u8, io::Error)> {
        unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS).map_err(|e| (0, e.into()))?;
        map_ids(uid, gid).map_err(|e| (1, e))?;
        make_private().map_err(|e| (2, e))
    };
    let told = (|| {
        let (mut told, tell) = io::pipe()?;
        let child = sys::fork(move || {
            let (step, error) = match attempt() {
                Ok(()) => return 0,
                Err(failure) => failure,
            };
            let mut tell = tell;
            let errno = error.raw_os_error().unwrap_or(libc::EIO);
            i32::from(tell.write_all(&[step, errno as u8]).is_ok())
        })?;
        let mut bytes = Vec::new();
        told.read_to_end(&mut bytes)?;
        match waitpid(Pid::from_raw(child), None)? {
            WaitStatus::Exited(_, 0) => Ok(None),
            _ => Ok(Some(bytes)),
        }
    })();
    match told.map_err(|error| ("fork", error))?.as_deref() {
        None => Ok(()),
        Some([step, errno]) => {
            let step = STEPS.get(usize::from(*step)).copied().unwrap_or("set-up");
            Err((step, io::Error::from_raw_os_error((*errno).into())))
        }
        Some(_) => Err(("rehearsal", io::Error::from_raw_os_error(libc::ECHILD))),
    }
}

/// A copy of the mounts as they are, for a process that must not go where others of its namespace mount and pivot.
pub fn leave_mounts() -> io::Result<()> {
    Ok(unshare(CloneFlags::CLONE_NEWNS)?)
}

/// Whether a PID namespace has a `kernel.pid_max` of its own (Linux 6.14). Then a process in one finds another file
/// under that name, in the same /proc; without, writing it would change the host's. No thread may have been started.
pub fn own_pid_max() -> bool {
    const PATH: &str = "/proc/sys/kernel/pid_max";
    const ANOTHER: i32 = 1;
    let status = |child: io::Result<libc::pid_t>| match waitpid(Pid::from_raw(child.unwrap_or(0)), None) {
        Ok(WaitStatus::Exited(_, status)) => status,
        _ => 0,
    };
    // Held open: an inode that nobody holds may come back with another number.
    let Ok(file) = fs::File::open(PATH) else { return false };
    let Ok(here) = file.metadata() else { return false };
    let look = || fs::metadata(PATH).map_or(0, |there| if there.ino() == here.ino() { 0 } else { ANOTHER });
    // unshare(2) is about the children that come: one to call it, one to be inside.
    let ask = || match unshare(CloneFlags::CLONE_NEWPID) {
        Ok(()) => status(sys::fork(look)),
        Err(_) => 0,
    };
    status(sys::fork(ask)) == ANOTHER
}

/// The namespaces that come after the plan. `network` is left out when the host's network was asked for; `pid`
/// begins with the next child.
pub fn enter_rest(network: bool, pid: bool) -> io::Result<()> {
    let mut flags = CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWUTS;
    flags.set(CloneFlags::CLONE_NEWNET, network);
    flags.set(CloneFlags::CLONE_NEWPID, pid);
    Ok(unshare(flags)?)
}

/// Its root is where this process is now, so it comes after a control group was joined: then the limits that hold
/// stand on the root, out of reach (cgroup_namespaces(7); nsdelegate in cgroup-v2.rst).
pub fn enter_cgroup() -> io::Result<()> {
    Ok(unshare(CloneFlags::CLONE_NEWCGROUP)?)
}

/// Brings the loopback interface of a new network namespace up: it starts down, and 127.0.0.1 with it.
pub fn raise_loopback() -> io::Result<()> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    sys::set_interface_flags(socket.as_fd(), c"lo", (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short)
}

/// A user namespace whose id map turns root into nobody, for idmapped mounts (mount_setattr(2),
/// MOUNT_ATTR_IDMAP). It belongs to a child that ends at once; the descriptor keeps it.
pub fn nobody_map() -> io::Result<OwnedFd> {
    const NOBODY: &str = "0 65534 1\n1 1 65533\n65535 65535 4294901760\n";
    let there = |far: &mut UnixStream| {
        // By the name that it has in this /proc: in a new PID namespace fork(2) tells another number, which here is
        // some process of the host (pid_namespaces(7), "/proc and PID namespaces").
        let own = fs::read_link("/proc/self")?;
        unshare(CloneFlags::CLONE_NEWUSER)?;
        far.write_all(own.as_os_str().as_bytes())?;
        // The reader waits for the end.
        far.shutdown(Shutdown::Write)
    };
    attended(there, |_, near| {
        let mut own = String::new();
        near.read_to_string(&mut own)?;
        let own: i32 = own.parse().map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
        fs::write(format!("/proc/{own}/uid_map"), NOBODY)?;
        fs::write(format!("/proc/{own}/gid_map"), NOBODY)?;
        Ok(fs::File::open(format!("/proc/{own}/ns/user"))?.into())
    })?
}
