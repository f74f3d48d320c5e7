//! The process whose call is being judged: its memory, its descriptors, its directories.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat, readlinkat};
use rustix::io::{Errno, Result};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::sys::{self, Notification};

/// PATH_MAX of linux/limits.h.
const PATH_MAX: usize = 4096;

pub struct Target<'a> {
    memory: File,
    listener: BorrowedFd<'a>,
    id: u64,
    pub thread: i32,
}

impl<'a> Target<'a> {
    /// Opens the caller's memory and makes sure that it was still the caller afterwards. A target that is not
    /// dumpable has none to be read: its calls are denied.
    pub fn open(call: &Notification, listener: &'a OwnedFd) -> Result<Target<'a>> {
        let thread = call.thread;
        let denied = |_| Errno::PERM;
        let memory = File::open(format!("/proc/{thread}/mem")).map_err(denied)?;
        let target = Target { memory, listener: listener.as_fd(), id: call.id, thread };
        target.still_there()?;
        Ok(target)
    }

    /// The thread group: `/proc/self` of the caller. Few calls need it, and it is slow to read.
    pub fn group(&self) -> Result<i32> {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.thread)).map_err(|_| Errno::PERM)?;
        self.still_there()?;
        let group = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
        group.ok_or(Errno::PERM)
    }

    /// To be asked after anything was looked up by the thread's number, and before anything is done.
    pub fn still_there(&self) -> Result<()> {
        if sys::notification_is_valid(self.listener, self.id) { Ok(()) } else { Err(Errno::SRCH) }
    }

    /// Exactly `length` bytes at `address`.
    pub fn read(&self, address: u64, length: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        if address.checked_add(length as u64).is_none()
            || self.memory.read_exact_at(&mut bytes, address).is_err()
        {
            return Err(Errno::FAULT);
        }
        Ok(bytes)
    }

    /// A string that ends with NUL, of at most `limit` bytes with it.
    fn text(&self, address: u64, limit: usize, too_long: Errno) -> Result<CString> {
        const PAGE: u64 = 4096;
        let mut bytes = Vec::new();
        let mut at = address;
        while bytes.len() < limit {
            // To the end of the page: what follows may not be mapped.
            let length = (PAGE - at % PAGE).min((limit - bytes.len()) as u64) as usize;
            bytes.extend(self.read(at, length)?);
            if let Some(end) = bytes.iter().position(|&byte| byte == 0) {
                bytes.truncate(end);
                return CString::new(bytes).map_err(|_| Errno::INVAL);
            }
            at = at.checked_add(length as u64).ok_or(Errno::FAULT)?;
        }
        Err(too_long)
    }

    pub fn path(&self, address: u64) -> Result<CString> {
        self.text(address, PATH_MAX, Errno::NAMETOOLONG)
    }

    /// The name of an extended attribute (XATTR_NAME_MAX, linux/limits.h).
    pub fn attribute_name(&self, address: u64) -> Result<CString> {
        let name = self.text(address, 256, Errno::RANGE)?;
        if name.is_empty() { Err(Errno::RANGE) } else { Ok(name) }
    }

    /// What one of the caller's descriptors is open on.
    pub fn descriptor(&self, number: i32) -> Result<OwnedFd> {
        self.open_link(&format!("fd/{number}")).map_err(|errno| match errno {
            Errno::NOENT => Errno::BADF,
            other => other,
        })
    }

    /// The socket itself, out of the caller's own table of descriptors: threads need not share one.
    pub fn socket(&self, number: i32) -> Result<OwnedFd> {
        if number < 0 {
            return Err(Errno::BADF);
        }
        // PIDFD_THREAD is Linux 6.9; before, only the leader of a thread group can be named.
        let thread = PidfdFlags::from_bits_retain(libc::O_EXCL as u32);
        let open = |id, flags| pidfd_open(Pid::from_raw(id).ok_or(Errno::SRCH)?, flags);
        let process = match open(self.thread, thread) {
            Err(Errno::INVAL) => open(self.group()?, PidfdFlags::empty()),
            other => other,
        }?;
        self.still_there()?;
        let socket = pidfd_getfd(&process, number, PidfdGetfdFlags::empty())?;
        let stat = fstat(&socket)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
            return Err(Errno::NOTSOCK);
        }
        // What stands under this number in the thread's table (proc_pid_fd(5)).
        let link = readlinkat(CWD, format!("/proc/{}/fd/{number}", self.thread), Vec::new())?;
        self.still_there()?;
        if link.as_bytes() == format!("socket:[{}]", stat.st_ino).as_bytes() {
            Ok(socket)
        } else {
            Err(Errno::BADF)
        }
    }

    pub fn directory(&self, number: i32) -> Result<OwnedFd> {
        if number == libc::AT_FDCWD { self.open_link("cwd") } else { self.descriptor(number) }
    }

    pub fn root(&self) -> Result<OwnedFd> {
        self.open_link("root")
    }

    fn open_link(&self, name: &str) -> Result<OwnedFd> {
        let path = format!("/proc/{}/{name}", self.thread);
        let fd = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        self.still_there()?;
        Ok(fd)
    }
}
