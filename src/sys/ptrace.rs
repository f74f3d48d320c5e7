//! ptrace(2), by the attachment of PTRACE_SEIZE (Linux 3.4), which neither stops the tracee nor hides its group stops.

use std::io;

/// linux/ptrace.h; the same on every architecture that confine has a table for.
const SYSCALL: libc::c_long = 24;
const GETEVENTMSG: libc::c_long = 0x4201;
const SEIZE: libc::c_long = 0x4206;
const INTERRUPT: libc::c_long = 0x4207;
const LISTEN: libc::c_long = 0x4208;
const GET_SYSCALL_INFO: libc::c_long = 0x420e;

/// TRACESYSGOOD, TRACEFORK, TRACEVFORK, TRACECLONE, TRACEEXEC, EXITKILL: whatever the tracee starts is traced as well,
/// and none of it outlives the tracer.
const OPTIONS: usize = 1 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 20;

/// Events of a stop (its third byte).
pub const EVENT_EXEC: i32 = 4;
pub const EVENT_STOP: i32 = 128;
/// A stop at a system call is told by SIGTRAP with this bit.
pub const SYSCALL_STOP: i32 = libc::SIGTRAP | 0x80;

/// Where in a system call a tracee has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    Entry {
        arch: u32,
        number: u64,
        arguments: [u64; 6],
    },
    /// With -errno in case of an error.
    Exit {
        value: i64,
        failed: bool,
    },
}

fn call(request: libc::c_long, thread: i32, address: usize, data: usize) -> io::Result<libc::c_long> {
    // SAFETY: the requests above read or write this process's memory at `data` alone, and only those whose callers
    // below pass a pointer to a structure of the size that `address` tells, or to a long.
    super::check(unsafe {
        libc::syscall(libc::SYS_ptrace, request, libc::c_long::from(thread), address, data)
    })
}

pub fn seize(thread: i32) -> io::Result<()> {
    call(SEIZE, thread, 0, OPTIONS).map(drop)
}

pub fn interrupt(thread: i32) -> io::Result<()> {
    call(INTERRUPT, thread, 0, 0).map(drop)
}

/// Lets it go on to the next system call, with this signal, if it is not 0.
pub fn resume(thread: i32, signal: i32) -> io::Result<()> {
    call(SYSCALL, thread, 0, signal as usize).map(drop)
}

/// Leaves it in its group stop until something happens to it.
pub fn listen(thread: i32) -> io::Result<()> {
    call(LISTEN, thread, 0, 0).map(drop)
}

/// For an exec: the number that the thread had before.
pub fn event_message(thread: i32) -> io::Result<u64> {
    let mut message: libc::c_ulong = 0;
    call(GETEVENTMSG, thread, 0, &raw mut message as usize)?;
    Ok(message)
}

/// Copies from the memory of another process, traced or not, process_vm_readv(2); less than asked for where no more is mapped.
pub fn read(thread: i32, address: u64, to: &mut [u8]) -> io::Result<usize> {
    let local = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: to.len() };
    // SAFETY: the kernel writes at most `to.len()` bytes to the borrowed slice; the other address is of the other
    // process, and is only read by the kernel.
    let count =
        super::check(unsafe { libc::process_vm_readv(thread, &local, 1, &remote, 1, 0) } as libc::c_long)?;
    Ok(count as usize)
}

/// `struct ptrace_syscall_info`, Linux 5.3.
#[repr(C)]
#[derive(Default)]
struct Info {
    op: u8,
    padding: [u8; 3],
    arch: u32,
    instruction: u64,
    stack: u64,
    /// Number and arguments at an entry; value and whether it is an error at an exit.
    words: [u64; 8],
}

/// None at a stop that is no system call's.
pub fn stop(thread: i32) -> io::Result<Option<Stop>> {
    let mut info = Info::default();
    call(GET_SYSCALL_INFO, thread, size_of::<Info>(), &raw mut info as usize)?;
    let [first, second, ..] = info.words;
    Ok(match info.op {
        1 => {
            let mut arguments = [0; 6];
            arguments.iter_mut().zip(&info.words[1..]).for_each(|(to, from)| *to = *from);
            Some(Stop::Entry { arch: info.arch, number: first, arguments })
        }
        2 => Some(Stop::Exit { value: first.cast_signed(), failed: second & 0xff != 0 }),
        _ => None,
    })
}
