//! Attempts to gain: privilege, kernel surface, and what the caller had.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};

use nix::mount::MsFlags;
use nix::sched::{CloneFlags, setns, unshare};
use rustix::mount::{FsOpenFlags, OpenTreeFlags, fsopen, open_tree};

use super::aims::Aims;
use super::files::nothing;
use super::rows::Tried;
use crate::sys::{self, attempt};

/// The variable in which the caller has a secret.
pub const TOKEN: &str = "CONFINE_PROVE_TOKEN";

fn type_with(high: u64) -> Tried {
    // The terminal is standard error; a line, so that it counts as input.
    nothing(attempt::type_into(io::stderr().as_fd(), b'\n', high))
}

pub fn type_plain(_: &Aims) -> Tried {
    type_with(0)
}

pub fn type_high(_: &Aims) -> Tried {
    type_with(0xab)
}

pub fn io_uring(_: &Aims) -> Tried {
    nothing(attempt::io_uring_setup())
}

pub fn unshare_user(_: &Aims) -> Tried {
    nothing(unshare(CloneFlags::CLONE_NEWUSER))
}

pub fn unshare_mount(_: &Aims) -> Tried {
    nothing(unshare(CloneFlags::CLONE_NEWNS))
}

pub fn clone_user(_: &Aims) -> Tried {
    nothing(attempt::clone_with(libc::CLONE_NEWUSER))
}

pub fn clone_sibling(_: &Aims) -> Tried {
    nothing(attempt::clone_with(libc::CLONE_PARENT))
}

pub fn clone3_user(_: &Aims) -> Tried {
    nothing(attempt::clone3_with(libc::CLONE_NEWUSER as u64))
}

pub fn enter(_: &Aims) -> Tried {
    nothing(setns(File::open("/proc/self/ns/uts")?, CloneFlags::empty()))
}

pub fn mount(aims: &Aims) -> Tried {
    let none = None::<&str>;
    nix::mount::mount(Some("tmpfs"), &aims.place, Some("tmpfs"), MsFlags::empty(), none)?;
    // Or what lies there could not be removed.
    nothing(nix::mount::umount2(&aims.place, nix::mount::MntFlags::MNT_DETACH))
}

pub fn open_file_system(_: &Aims) -> Tried {
    nothing(fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC))
}

pub fn clone_mount(_: &Aims) -> Tried {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    nothing(open_tree(rustix::fs::CWD, "/", flags))
}

#[cfg(target_arch = "x86_64")]
pub fn other_numbers(_: &Aims) -> Tried {
    nothing(attempt::getpid_of_32_bits())
}

/// These processors have no gate for them in a 64-bit program.
#[cfg(not(target_arch = "x86_64"))]
pub fn other_numbers(_: &Aims) -> Tried {
    Err(io::Error::from_raw_os_error(libc::ENOSYS))
}

fn is_set_user_id(path: &std::path::Path) -> Tried {
    match fs::metadata(path)?.permissions().mode() & 0o4000 {
        0 => Err(io::Error::from_raw_os_error(libc::EPERM)),
        _ => Ok(Vec::new()),
    }
}

pub fn set_user_id(aims: &Aims) -> Tried {
    let path = aims.own("set-user-id");
    fs::write(&path, "")?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4755))?;
    is_set_user_id(&path)
}

pub fn create_set_user_id(aims: &Aims) -> Tried {
    let path = aims.own("created-set-user-id");
    // Not OpenOptions alone: it would be the C library that adds or leaves out the mode.
    OpenOptions::new().write(true).create_new(true).mode(0o4755).open(&path)?;
    is_set_user_id(&path)
}

pub fn personality(_: &Aims) -> Tried {
    nothing(attempt::make_memory_executable())
}

pub fn start_program(_: &Aims) -> Tried {
    let child = sys::fork(|| {
        let words = [c"confine", c"--version"];
        let Ok(null) = OpenOptions::new().write(true).open("/dev/null") else { return 1 };
        if sys::place_descriptor(null.as_fd(), 1).is_err() {
            return 1;
        }
        let Err(errno) = nix::unistd::execv(c"/proc/self/exe", &words);
        errno as i32
    })?;
    match nix::sys::wait::waitpid(nix::unistd::Pid::from_raw(child), None)? {
        nix::sys::wait::WaitStatus::Exited(_, 0) => Ok(Vec::new()),
        nix::sys::wait::WaitStatus::Exited(_, errno) => Err(io::Error::from_raw_os_error(errno)),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

pub fn inherited(aims: &Aims) -> Tried {
    nothing(rustix::io::write(sys::borrow(aims.at.leaked)?, b"changed"))
}

pub fn variable(_: &Aims) -> Tried {
    match std::env::var_os(TOKEN) {
        Some(value) => Ok(value.into_vec()),
        None => Err(io::Error::from_raw_os_error(libc::ENOENT)),
    }
}

pub fn key(aims: &Aims) -> Tried {
    let mut bytes = vec![0; 64];
    let read = attempt::read_key(aims.at.key, &mut bytes)?;
    bytes.truncate(read);
    Ok(bytes)
}
