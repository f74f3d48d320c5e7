//! The only room with `unsafe`: calls that nix, rustix and landlock do not have. Each wrapper is a few
//! lines, holds no policy, returns `io::Result` and owns the descriptors it makes.
#![allow(unsafe_code)]

pub mod attempt;
pub mod ptrace;
pub mod socket;

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::sys::signal::SigSet;

/// What libc reports as -1 and errno.
fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// `struct mount_attr` of mount_setattr(2), Linux 5.12.
#[repr(C)]
#[derive(Default)]
pub struct MountAttr {
    pub attr_set: u64,
    pub attr_clr: u64,
    pub propagation: u64,
    pub userns_fd: u64,
}

/// mount_setattr(2) on the mount that `mount` is open on; `flags` may hold `AT_RECURSIVE`.
pub fn mount_setattr(mount: BorrowedFd<'_>, flags: libc::c_int, attr: &MountAttr) -> io::Result<()> {
    // SAFETY: the descriptor is open while borrowed, the path is a NUL-terminated literal, and `attr` points
    // to a structure of exactly the size that is passed.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | flags,
            attr as *const MountAttr,
            size_of::<MountAttr>(),
        )
    })
    .map(drop)
}

/// open_tree_attr(2), Linux 6.15: open_tree(2) and mount_setattr(2) in one.
pub fn open_tree_attr(dir: BorrowedFd<'_>, path: &CStr, flags: u32, attr: &MountAttr) -> io::Result<OwnedFd> {
    // The same number on every architecture that this program has a table for.
    const OPEN_TREE_ATTR: libc::c_long = 467;
    // SAFETY: the descriptor is open while borrowed, the path is NUL-terminated, and `attr` points to a structure
    // of exactly the size that is passed.
    let fd = check(unsafe {
        libc::syscall(
            OPEN_TREE_ATTR,
            dir.as_raw_fd(),
            path.as_ptr(),
            flags,
            attr as *const MountAttr,
            size_of::<MountAttr>(),
        )
    })?;
    // SAFETY: the kernel returned a new descriptor, which nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Grants `access` beneath an object, landlock_add_rule(2) LANDLOCK_RULE_PATH_BENEATH.
pub fn landlock_add_path(ruleset: BorrowedFd<'_>, object: BorrowedFd<'_>, access: u64) -> io::Result<()> {
    const PATH_BENEATH: libc::c_int = 1;
    /// `struct landlock_path_beneath_attr`.
    #[repr(C, packed)]
    struct PathBeneath {
        access: u64,
        object: i32,
    }
    let rule = PathBeneath { access, object: object.as_raw_fd() };
    // SAFETY: both descriptors are open while borrowed, `rule` is the structure that this kind takes, and the
    // kernel only reads it.
    check(unsafe {
        libc::syscall(libc::SYS_landlock_add_rule, ruleset.as_raw_fd(), PATH_BENEATH, &raw const rule, 0u32)
    })
    .map(drop)
}

/// landlock_restrict_self(2). no_new_privs is set already.
pub fn landlock_restrict_self(ruleset: BorrowedFd<'_>, flags: u32) -> io::Result<()> {
    // SAFETY: the descriptor is open while borrowed; flags are a number, which the kernel checks.
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), flags) }).map(drop)
}

/// Landlock's ABI version (`errata` false) or errata mask (`errata` true), landlock_create_ruleset(2).
pub fn landlock_query(errata: bool) -> io::Result<u32> {
    let flag: u32 = if errata { 2 } else { 1 };
    // SAFETY: with a query flag the kernel takes no attribute: a null pointer and a size of zero.
    check(unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0usize, flag)
    })
    .map(|value| value as u32)
}

/// Replaces the session keyring by a new, empty, anonymous one, keyctl(2) KEYCTL_JOIN_SESSION_KEYRING.
pub fn join_new_session_keyring() -> io::Result<()> {
    // SAFETY: the operation takes a name or null, and null is passed.
    check(unsafe { libc::syscall(libc::SYS_keyctl, 1u32, std::ptr::null::<libc::c_char>()) }).map(drop)
}

/// Sets the flags of a network interface, netdevice(7) SIOCSIFFLAGS.
pub fn set_interface_flags(socket: BorrowedFd<'_>, name: &CStr, flags: libc::c_short) -> io::Result<()> {
    // SAFETY: `ifreq` is plain data for which all zeroes is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.to_bytes()).take(libc::IFNAMSIZ - 1) {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = flags;
    // The C libraries do not agree on the type of a request.
    const SIOCSIFFLAGS: libc::Ioctl = 0x8914;
    // SAFETY: the descriptor is open while borrowed and the argument is the structure this request takes.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCSIFFLAGS, &request) }.into()).map(drop)
}

/// Gives up the controlling terminal, ioctl_tty(2) TIOCNOTTY.
pub fn give_up_terminal(terminal: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the descriptor is open while borrowed and the request takes no argument.
    check(unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCNOTTY) }.into()).map(drop)
}

/// Duplicates `from` onto the number `to`, without close-on-exec.
pub fn place_descriptor(from: BorrowedFd<'_>, to: RawFd) -> io::Result<()> {
    // SAFETY: `from` is open while borrowed; what `to` named before is closed, which is what is asked for, and
    // the callers pass only numbers that were inherited, which no owned descriptor holds.
    check(unsafe { libc::dup2(from.as_raw_fd(), to) }.into()).map(drop)
}

/// Whether two processes have one memory, kcmp(2) KCMP_VM, Linux 3.5. Both are named in the PID namespace of this one.
pub fn share_memory(one: libc::pid_t, other: libc::pid_t) -> io::Result<bool> {
    const KCMP_VM: libc::c_int = 1;
    // SAFETY: only integers are passed.
    let order = check(unsafe { libc::syscall(libc::SYS_kcmp, one, other, KCMP_VM, 0, 0) })?;
    Ok(order == 0)
}

/// fork(2): the child's pid in the parent, None in the child. The caller has one thread: in a process with more,
/// only async-signal-safe calls may follow.
pub fn fork_into_two() -> io::Result<Option<libc::pid_t>> {
    // SAFETY: the process has one thread (the contract above), so the child's copy of memory is consistent.
    match check(unsafe { libc::fork() }.into())? {
        0 => Ok(None),
        pid => Ok(Some(pid as libc::pid_t)),
    }
}

/// Runs `child` in a fork and returns the child's pid; the child ends with the status that `child` returns. The
/// caller has one thread.
pub fn fork(child: impl FnOnce() -> i32) -> io::Result<libc::pid_t> {
    match fork_into_two()? {
        Some(pid) => Ok(pid),
        None => leave(child()),
    }
}

/// Ends this process at once, without the exit handlers and buffers that it shares with its parent.
pub fn leave(status: i32) -> ! {
    // SAFETY: _exit takes any status and does not return.
    unsafe { libc::_exit(status) }
}

/// kill(2) with any number, real-time signals too, which nix has no names for.
pub fn kill(pid: libc::pid_t, signal: i32) -> io::Result<()> {
    // SAFETY: two integers; the kernel checks both.
    check(unsafe { libc::kill(pid, signal) }.into()).map(drop)
}

/// sigqueue(3): kill(2) with a value.
pub fn queue(pid: libc::pid_t, signal: i32, value: u64) -> io::Result<()> {
    let value = libc::sigval { sival_ptr: value as *mut libc::c_void };
    // SAFETY: two integers and a value that the kernel only hands on; nothing here follows it as a pointer.
    check(unsafe { libc::sigqueue(pid, signal, value) }.into()).map(drop)
}

/// Writes over the bytes from `start` to `end` of this process's argument or environment area.
pub fn fill(start: u64, end: u64, byte: u8) {
    // SAFETY: the callers pass only what the kernel names as those areas, which lie on the stack's own pages,
    // private and writable; Rust holds no reference into them, since `std::env` copies what it returns.
    unsafe { std::ptr::write_bytes(start as *mut u8, byte, end.saturating_sub(start) as usize) };
}

/// close_range(2), Linux 5.9.
pub fn close_range(first: u32, last: u32) -> io::Result<()> {
    // SAFETY: three integers. The caller has opened nothing yet, or is a process that ends by `leave`: no owned
    // descriptor that is dropped later is among them.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0u32) }).map(drop)
}

/// Closes an inherited descriptor for good.
pub fn close(fd: RawFd) {
    // SAFETY: only numbers that confine was started with are passed: nothing here owns them.
    unsafe { libc::close(fd) };
}

/// The default action for one signal.
pub fn default_action(signal: i32) -> io::Result<()> {
    // SAFETY: SIG_DFL is a valid disposition for every signal that can be caught.
    if unsafe { libc::signal(signal, libc::SIG_DFL) } == libc::SIG_ERR {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Ignores one signal.
pub fn ignore_signal(signal: i32) -> io::Result<()> {
    // SAFETY: SIG_IGN is a valid disposition for every signal that can be caught.
    if unsafe { libc::signal(signal, libc::SIG_IGN) } == libc::SIG_ERR {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Whether this process gets `signal` when there is something to be read from `socket`, or its other end goes
/// (fcntl(2), F_SETSIG and O_ASYNC). A stopped process is woken by SIGCONT and by nothing else.
pub fn signal_on_input(socket: BorrowedFd<'_>, signal: i32, wanted: bool) -> io::Result<()> {
    let fd = socket.as_raw_fd();
    // SAFETY: the descriptor is open while borrowed, and each command takes an integer.
    unsafe {
        check(libc::fcntl(fd, libc::F_SETOWN, libc::getpid()).into())?;
        check(libc::fcntl(fd, F_SETSIG, signal).into())?;
        let flags = check(libc::fcntl(fd, libc::F_GETFL).into())? as i32;
        let flags = if wanted { flags | libc::O_ASYNC } else { flags & !libc::O_ASYNC };
        check(libc::fcntl(fd, libc::F_SETFL, flags).into()).map(drop)
    }
}

/// linux/fcntl.h; the same number on every architecture that confine has a table for.
const F_SETSIG: i32 = 10;

/// The default action for each signal whose bit is set in `ignored` (bit N-1 is signal N), and an empty signal
/// mask. Handlers need no such care: execve(2) resets them.
pub fn reset_signals(ignored: u64) -> io::Result<()> {
    // Between the standard and the real-time signals lie the C library's own two: it lets nobody set them, and its
    // posix_spawn(3) leaves them ignored.
    let own = 32..libc::SIGRTMIN();
    for signal in (1..=64).filter(|signal| ignored >> (signal - 1) & 1 == 1 && !own.contains(signal)) {
        // SAFETY: SIG_DFL is a valid disposition for every signal that can be ignored.
        if unsafe { libc::signal(signal, libc::SIG_DFL) } == libc::SIG_ERR {
            return Err(io::Error::last_os_error());
        }
    }
    // SAFETY: `set` is initialised by sigemptyset before it is used, and the old mask is not asked for.
    check(
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigprocmask(libc::SIG_SETMASK, &set, std::ptr::null_mut())
        }
        .into(),
    )
    .map(drop)
}

/// Every signal there is. sigfillset(3) leaves out those that the C library has for itself, which with musl are one
/// more than with glibc: for the command they are like any other.
pub fn all_signals() -> SigSet {
    // SAFETY: a set is an array of integers, of which any value is one.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        std::ptr::write_bytes(&mut set, 0xff, 1);
        SigSet::from_sigset_t_unchecked(set)
    }
}

/// Which of these numbers are open descriptors, by one poll(2): POLLNVAL says that one is not.
pub fn are_open<const N: usize>(numbers: [RawFd; N]) -> io::Result<[bool; N]> {
    let mut polled = numbers.map(|fd| libc::pollfd { fd, events: 0, revents: 0 });
    // SAFETY: the array is valid for reading and writing `N` entries; a timeout of zero does not wait.
    check(unsafe { libc::poll(polled.as_mut_ptr(), N as libc::nfds_t, 0) }.into())?;
    Ok(polled.map(|polled| polled.revents & libc::POLLNVAL == 0))
}

/// A descriptor that the caller of confine handed in, by number; EBADF when it is not open.
pub fn borrow(fd: RawFd) -> io::Result<BorrowedFd<'static>> {
    borrow_with_flags(fd).map(|(fd, _)| fd)
}

/// The same with its status flags, which tell as well that it is open.
pub fn borrow_with_flags(fd: RawFd) -> io::Result<(BorrowedFd<'static>, libc::c_int)> {
    // SAFETY: fcntl takes any number; F_GETFL changes nothing and has no third argument.
    let flags = check(unsafe { libc::fcntl(fd, libc::F_GETFL) }.into())?;
    // SAFETY: `fd` is open, hence not -1, and it was inherited: nothing in confine owns it, so nothing closes it
    // while the process lives.
    Ok((unsafe { BorrowedFd::borrow_raw(fd) }, flags as libc::c_int))
}

/// close_range(2) with CLOSE_RANGE_CLOEXEC, which is Linux 5.11.
pub fn close_range_on_exec(first: libc::c_uint) -> io::Result<()> {
    // SAFETY: three integers; the flag closes nothing now, so no owned descriptor is pulled from its owner.
    match unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) }
    {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Installs a filter whose "user notification" results arrive on the descriptor that is returned
/// (seccomp_unotify(2)). A signal does not abort a call that waits for its answer, unless it kills
/// (SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, Linux 5.19): Go's runtime preempts with signals.
pub fn install_listening_filter(program: &[seccompiler::sock_filter]) -> io::Result<OwnedFd> {
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let fd = set_filter(program, flags)?;
    // SAFETY: with NEW_LISTENER the result is a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Installs a filter for the calling thread, seccomp(2); no_new_privs is set already.
pub fn install_filter(program: &[seccompiler::sock_filter]) -> io::Result<()> {
    set_filter(program, 0).map(drop)
}

fn set_filter(program: &[seccompiler::sock_filter], flags: libc::c_ulong) -> io::Result<libc::c_long> {
    let program = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| io::Error::from_raw_os_error(libc::E2BIG))?,
        filter: program.as_ptr().cast_mut().cast(),
    };
    // SAFETY: the kernel reads `len` instructions of the borrowed slice, whose type has the layout of the C
    // structure (repr(C), the same four fields), and writes none.
    check(unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &program as *const libc::sock_fprog,
        )
    })
}

/// One call that waits for an answer.
#[derive(Debug, Clone, Copy)]
pub struct Notification {
    pub id: u64,
    pub thread: i32,
    pub number: u32,
    pub arguments: [u64; 6],
}

/// Waits for the next call. ENOENT means that its caller died meanwhile.
pub fn receive_notification(listener: BorrowedFd<'_>) -> io::Result<Notification> {
    // SAFETY: plain data, and the kernel demands that it be zero.
    let mut notification: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open while borrowed and the argument is the structure this request fills.
    let received =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &mut notification) };
    check(received.into())?;
    let libc::seccomp_notif { id, pid, data, .. } = notification;
    Ok(Notification { id, thread: pid as i32, number: data.nr as u32, arguments: data.args })
}

/// Lets caller and broker take turns on one processor, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP of Linux 6.6.
pub fn wake_synchronously(listener: BorrowedFd<'_>) -> io::Result<()> {
    // SECCOMP_IOW(4, __u64), linux/seccomp.h; the flags are the argument itself.
    const SET_FLAGS: libc::Ioctl = 0x4008_2104;
    // SAFETY: the descriptor is open while borrowed and the argument is a number.
    check(unsafe { libc::ioctl(listener.as_raw_fd(), SET_FLAGS, 1u64) }.into()).map(drop)
}

/// Whether the caller is still in that call, and so still who it was.
pub fn notification_is_valid(listener: BorrowedFd<'_>, id: u64) -> bool {
    // SAFETY: the descriptor is open while borrowed and the argument is the number this request reads.
    check(unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &id) }.into())
        .is_ok()
}

/// Lets the call return 0 (`errno` 0) or fail. ENOENT means that its caller died meanwhile.
pub fn answer_notification(listener: BorrowedFd<'_>, id: u64, errno: i32) -> io::Result<()> {
    let answer = libc::seccomp_notif_resp { id, val: 0, error: -errno, flags: 0 };
    // SAFETY: the descriptor is open while borrowed and the argument is the structure this request reads.
    check(unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &answer) }.into())
        .map(drop)
}

/// A handler that does nothing, without SA_RESTART: the signal's only effect is to end a call that waits.
pub fn make_interrupting(signal: libc::c_int) -> io::Result<()> {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: plain data, for which all zeroes is a value: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: `action` is a valid structure whose handler calls nothing, and the old one is not asked for.
    check(unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) }.into()).map(drop)
}

/// Sends a signal to one thread of this process, tgkill(2).
pub fn signal_thread(thread: libc::pid_t, signal: libc::c_int) -> io::Result<()> {
    // SAFETY: three integers; the kernel checks them.
    check(unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, signal) }).map(drop)
}

/// Sets inode attributes by an ioctl that reads `value` (FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR).
pub fn set_inode_attribute(file: BorrowedFd<'_>, request: u32, value: &[u8]) -> io::Result<()> {
    // An ioctl number tells how much it reads (bits 16 to 29); FS_IOC_SETFLAGS reads an int whatever it says.
    if value.len() < ((request >> 16) & 0x3fff) as usize {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: the descriptor is open while borrowed and `value` is at least as long as the request reads.
    check(unsafe { libc::ioctl(file.as_raw_fd(), request as libc::Ioctl, value.as_ptr()) }.into()).map(drop)
}

/// file_setattr(2), Linux 6.17, following links.
pub fn file_setattr(path: &CStr, value: &[u8]) -> io::Result<()> {
    const FILE_SETATTR: libc::c_long = 469;
    // SAFETY: the path ends with NUL, and the kernel reads `len` bytes of the slice.
    check(unsafe {
        libc::syscall(FILE_SETATTR, libc::AT_FDCWD, path.as_ptr(), value.as_ptr(), value.len(), 0u32)
    })
    .map(drop)
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_ignored_signal_of_the_c_library_is_no_error() {
        let (usr2, own) = (1 << (libc::SIGUSR2 - 1), 1 << 31);
        super::reset_signals(usr2 | own).unwrap();
    }
}
