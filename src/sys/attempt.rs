//! Calls that only `confine check --prove` makes: inside, to see them refused, and outside, for what they are aimed at.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::{check, leave};

/// linux/keyctl.h and linux/personality.h; the terminal's request as it is on every processor that confine knows.
const KEYCTL_READ: u32 = 11;
const SESSION_KEYRING: i32 = -3;
const READ_IMPLIES_EXEC: libc::c_ulong = 0x40_0000;
const TIOCSTI: u64 = 0x5412;

/// A copy of a descriptor, with a number of at least `from`, that execve(2) leaves open: fcntl(2) F_DUPFD.
pub fn inheritable(descriptor: BorrowedFd<'_>, from: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the descriptor is open while borrowed, and the command takes a number.
    let fd = check(unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_DUPFD, from) }.into())?;
    // SAFETY: the result is a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Puts a key into this process's session keyring, add_key(2).
pub fn add_key(name: &CStr, payload: &[u8]) -> io::Result<i32> {
    // SAFETY: two strings that end with NUL, and a slice with its length.
    check(unsafe {
        libc::syscall(
            libc::SYS_add_key,
            c"user".as_ptr(),
            name.as_ptr(),
            payload.as_ptr(),
            payload.len(),
            SESSION_KEYRING,
        )
    })
    .map(|serial| serial as i32)
}

/// What a key holds, keyctl(2) KEYCTL_READ.
pub fn read_key(serial: i32, into: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes at most as many bytes as the slice has.
    let read = check(unsafe {
        libc::syscall(libc::SYS_keyctl, KEYCTL_READ, serial, into.as_mut_ptr(), into.len())
    })?;
    Ok((read as usize).min(into.len()))
}

/// io_uring_setup(2).
pub fn io_uring_setup() -> io::Result<OwnedFd> {
    // struct io_uring_params has 120 bytes, all of which may be zero.
    let mut parameters = [0u64; 15];
    // SAFETY: the kernel reads and writes the structure, which is as large as it wants and aligned for it.
    let fd = check(unsafe { libc::syscall(libc::SYS_io_uring_setup, 1u32, parameters.as_mut_ptr()) })?;
    // SAFETY: the result is a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// ptrace(2) PTRACE_SEIZE, which does not stop its victim.
pub fn seize(pid: libc::pid_t) -> io::Result<()> {
    let nothing = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: the request takes a number and no addresses.
    check(unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, nothing, nothing) }).map(drop)
}

/// Types one byte into a terminal, ioctl_tty(2) TIOCSTI. The request is an int: the kernel cuts off what a register
/// holds above it, so `high` must make no difference.
pub fn type_into(terminal: BorrowedFd<'_>, byte: u8, high: u64) -> io::Result<()> {
    let request = TIOCSTI | high << 32;
    // SAFETY: the descriptor is open while borrowed, and the request reads one byte.
    check(unsafe { libc::syscall(libc::SYS_ioctl, terminal.as_raw_fd(), request, &byte as *const u8) })
        .map(drop)
}

/// A new System V segment of 4096 bytes under a key that is free, shmget(2).
pub fn make_segment(key: i32) -> io::Result<i32> {
    // SAFETY: three integers.
    check(unsafe { libc::shmget(key, 4096, libc::IPC_CREAT | libc::IPC_EXCL | 0o666) }.into())
        .map(|id| id as i32)
}

/// Writes or reads the first byte of a segment, found by its key.
pub fn segment_by_key(key: i32, write: Option<u8>) -> io::Result<u8> {
    // SAFETY: three integers.
    let id = check(unsafe { libc::shmget(key, 0, 0) }.into())?;
    // SAFETY: the kernel chooses where the segment comes to lie, away from everything mapped.
    let at = unsafe { libc::shmat(id as i32, std::ptr::null(), 0) };
    if at as isize == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a segment is at least a page, mapped for reading and writing; others may change it meanwhile, hence
    // volatile; it is detached once and not used after.
    unsafe {
        if let Some(byte) = write {
            at.cast::<u8>().write_volatile(byte);
        }
        let byte = at.cast::<u8>().read_volatile();
        check(libc::shmdt(at).into())?;
        Ok(byte)
    }
}

/// shmctl(2) IPC_RMID.
pub fn remove_segment(id: i32) -> io::Result<()> {
    // SAFETY: the command takes no buffer.
    check(unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) }.into()).map(drop)
}

/// A POSIX message queue, mq_open(3); a descriptor on Linux.
pub fn open_queue(name: &CStr, create: bool) -> io::Result<OwnedFd> {
    let flags = libc::O_RDWR | libc::O_NONBLOCK | if create { libc::O_CREAT | libc::O_EXCL } else { 0 };
    // SAFETY: the name ends with NUL; the mode is an int as the call demands, and null means the default sizes.
    let fd = unsafe { libc::mq_open(name.as_ptr(), flags, 0o666, std::ptr::null_mut::<libc::mq_attr>()) };
    check(fd.into())?;
    // SAFETY: the result is a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// mq_send(3) of one byte.
pub fn send_to_queue(queue: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the descriptor is open while borrowed, and one byte of the literal is read.
    check(unsafe { libc::mq_send(queue.as_raw_fd(), c"x".as_ptr(), 1, 0) }.into()).map(drop)
}

/// How many messages wait, mq_getattr(3).
pub fn queue_length(queue: BorrowedFd<'_>) -> io::Result<i64> {
    // SAFETY: plain data for which all zeroes is a value.
    let mut attributes: libc::mq_attr = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open while borrowed, and the structure is the one that the call fills.
    check(unsafe { libc::mq_getattr(queue.as_raw_fd(), &mut attributes) }.into())?;
    Ok(attributes.mq_curmsgs)
}

/// mq_unlink(3).
pub fn unlink_queue(name: &CStr) -> io::Result<()> {
    // SAFETY: the name ends with NUL.
    check(unsafe { libc::mq_unlink(name.as_ptr()) }.into()).map(drop)
}

/// clone(2) as a fork with further flags; the child ends at once. The caller has one thread.
pub fn clone_with(flags: libc::c_int) -> io::Result<()> {
    // SAFETY: without CLONE_VM and a stack of its own the child has a copy of this process, as after fork(2).
    match check(unsafe {
        libc::syscall(libc::SYS_clone, flags | libc::SIGCHLD, 0usize, 0usize, 0usize, 0usize)
    })? {
        0 => leave(0),
        _ => Ok(()),
    }
}

/// clone3(2), likewise.
pub fn clone3_with(flags: u64) -> io::Result<()> {
    // CLONE_ARGS_SIZE_VER0: flags first, the signal at the end fifth.
    let arguments = [flags, 0, 0, 0, libc::SIGCHLD as u64, 0, 0, 0];
    // SAFETY: the kernel reads the array of the size that is passed; without CLONE_VM the child has a copy of this
    // process.
    match check(unsafe { libc::syscall(libc::SYS_clone3, arguments.as_ptr(), size_of_val(&arguments)) })? {
        0 => leave(0),
        _ => Ok(()),
    }
}

/// sched_setscheduler(2) with SCHED_BATCH, which nobody needs a right for.
pub fn make_batch(pid: libc::pid_t) -> io::Result<()> {
    // The one field of the kernel's struct sched_param; musl has others, and a function that only fails.
    let priority: libc::c_int = 0;
    // SAFETY: the kernel reads the borrowed number.
    check(unsafe { libc::syscall(libc::SYS_sched_setscheduler, pid, libc::SCHED_BATCH, &priority) }).map(drop)
}

/// personality(2) READ_IMPLIES_EXEC.
pub fn make_memory_executable() -> io::Result<()> {
    // SAFETY: an integer; it changes how later mappings are made, and this process ends soon.
    check(unsafe { libc::personality(READ_IMPLIES_EXEC) }.into()).map(drop)
}

/// getpid(2) by the gate of 32-bit programs, whose numbers no 64-bit filter rules. Whoever survives it got through.
#[cfg(target_arch = "x86_64")]
pub fn getpid_of_32_bits() -> io::Result<()> {
    let mut result: i64 = 20;
    // SAFETY: the call takes no argument and touches no memory; before Linux 4.17 the gate clobbered r8 to r11.
    unsafe {
        std::arch::asm!("int 0x80", inout("rax") result, out("r8") _, out("r9") _, out("r10") _, out("r11") _);
    }
    match i32::try_from(result) {
        Ok(result) if result < 0 => Err(io::Error::from_raw_os_error(-result)),
        _ => Ok(()),
    }
}
