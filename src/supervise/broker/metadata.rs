//! Mode, owner, times, extended attributes and inode flags: every entry point, by path and by descriptor.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, Uid, XattrFlags, chmod,
    chownat, fstat, openat, removexattr, setxattr, utimensat,
};
use rustix::io::{Errno, Result};

use super::target::Target;
use super::{Answer, Scope, errno, resolve};
use crate::sys::{self, Notification};

/// XATTR_SIZE_MAX, linux/limits.h.
const ATTRIBUTE_MAX: usize = 65536;

const NOFOLLOW: u64 = libc::AT_SYMLINK_NOFOLLOW as u64;

const EMPTY: u64 = libc::AT_EMPTY_PATH as u64;

pub fn perform(name: &str, target: &Target<'_>, scope: &Scope, call: &Notification) -> Answer {
    let [a, b, c, d, e, f] = call.arguments;
    let judge = Judge { target, scope };
    match name {
        "chmod" => judge.at(libc::AT_FDCWD, a)?.chmod(b),
        "fchmod" => judge.descriptor(a)?.chmod(b),
        "fchmodat" => judge.at(a as i32, b)?.chmod(c),
        "fchmodat2" => judge.flagged(a as i32, b, d)?.chmod(c),
        "chown" => judge.at(libc::AT_FDCWD, a)?.chown(b, c),
        "lchown" => judge.flagged(libc::AT_FDCWD, a, NOFOLLOW)?.chown(b, c),
        "fchown" => judge.descriptor(a)?.chown(b, c),
        "fchownat" => judge.flagged(a as i32, b, e)?.chown(c, d),
        "utime" => judge.utime(a, b),
        "utimes" => judge.utimes(libc::AT_FDCWD, a, b),
        "futimesat" => judge.utimes(a as i32, b, c),
        "utimensat" => judge.utimensat(a as i32, b, c, d),
        "setxattr" => judge.set_attribute(judge.at(libc::AT_FDCWD, a)?, [b, c, d, e]),
        "lsetxattr" => judge.set_attribute(judge.flagged(libc::AT_FDCWD, a, NOFOLLOW)?, [b, c, d, e]),
        "fsetxattr" => judge.set_attribute(judge.descriptor(a)?, [b, c, d, e]),
        "setxattrat" => judge.set_attribute_at([a, b, c, d, e, f]),
        "removexattr" => judge.remove_attribute(judge.at(libc::AT_FDCWD, a)?, b),
        "lremovexattr" => judge.remove_attribute(judge.flagged(libc::AT_FDCWD, a, NOFOLLOW)?, b),
        "fremovexattr" => judge.remove_attribute(judge.descriptor(a)?, b),
        "removexattrat" => judge.remove_attribute(judge.opened(a as i32, b, c)?, d),
        "ioctl" => judge.ioctl(a, b as u32, c),
        "file_setattr" => judge.file_setattr([a, b, c, d, e]),
        _ => Err(Errno::NOSYS),
    }
}

struct Judge<'a> {
    target: &'a Target<'a>,
    scope: &'a Scope,
}

/// An object that the command may change.
struct Object(OwnedFd);

impl Judge<'_> {
    fn allow(&self, object: OwnedFd) -> Result<Object> {
        self.scope.may_change(object.as_fd())?;
        self.target.still_there()?;
        Ok(Object(object))
    }

    fn descriptor(&self, number: u64) -> Result<Object> {
        let number = number as i32;
        // Calls on a descriptor refuse one that was opened with O_PATH (open(2)).
        let info = std::fs::read_to_string(format!("/proc/{}/fdinfo/{number}", self.target.thread));
        let flags = info.ok().and_then(|info| {
            let flags = info
                .lines()
                .find_map(|line| line.strip_prefix("flags:").map(str::trim).map(str::to_owned))?;
            u32::from_str_radix(&flags, 8).ok()
        });
        match flags {
            Some(flags) if flags & libc::O_PATH as u32 == 0 => self.allow(self.target.descriptor(number)?),
            _ => Err(Errno::BADF),
        }
    }

    fn at(&self, directory: i32, path: u64) -> Result<Object> {
        self.flagged(directory, path, 0)
    }

    /// By path, or by what a descriptor is open on, be it with O_PATH.
    fn flagged(&self, directory: i32, path: u64, flags: u64) -> Result<Object> {
        match self.name(path, flags)? {
            Some((path, follow)) => self.named(directory, &path, follow),
            None => self.allow(self.target.directory(directory)?),
        }
    }

    /// Younger calls, whose empty path means a descriptor that was opened for more than its name.
    fn opened(&self, directory: i32, path: u64, flags: u64) -> Result<Object> {
        match self.name(path, flags)? {
            Some((path, follow)) => self.named(directory, &path, follow),
            None if directory >= 0 => self.descriptor(directory as u64),
            None => self.allow(self.target.directory(directory)?),
        }
    }

    /// The path that a call of the *at family names, and whether a link in its last place is followed; None for the
    /// descriptor itself. The only place where either is read, and each once: between two readings another thread
    /// could turn one kind of name into the other. A null path with AT_EMPTY_PATH is an empty one, since Linux 6.11.
    fn name(&self, path: u64, flags: u64) -> Result<Option<(CString, bool)>> {
        let flags = flags & 0xffff_ffff;
        if flags & !(NOFOLLOW | EMPTY) != 0 {
            return Err(Errno::INVAL);
        }
        let empty = flags & EMPTY != 0;
        if path == 0 && empty {
            return Ok(None);
        }
        let path = self.target.path(path)?;
        Ok((!empty || !path.is_empty()).then_some((path, flags & NOFOLLOW == 0)))
    }

    fn named(&self, directory: i32, path: &CString, follow: bool) -> Result<Object> {
        self.allow(resolve::resolve(self.target, directory, path, follow)?)
    }

    fn numbers<const N: usize>(&self, address: u64) -> Result<[i64; N]> {
        let bytes = self.target.read(address, N * 8)?;
        let mut numbers = [0; N];
        for (number, bytes) in numbers.iter_mut().zip(bytes.chunks_exact(8)) {
            *number = i64::from_ne_bytes(bytes.try_into().map_err(|_| Errno::FAULT)?);
        }
        Ok(numbers)
    }

    fn utime(&self, path: u64, times: u64) -> Answer {
        let times = if times == 0 {
            NOW
        } else {
            let [access, modification] = self.numbers(times)?;
            stamps([access, 0, modification, 0])
        };
        self.at(libc::AT_FDCWD, path)?.touch(&times)
    }

    fn utimes(&self, directory: i32, path: u64, times: u64) -> Answer {
        let times = if times == 0 {
            NOW
        } else {
            let [access, access_us, modification, modification_us] = self.numbers(times)?;
            if [access_us, modification_us].iter().any(|us| !(0..1_000_000).contains(us)) {
                return Err(Errno::INVAL);
            }
            stamps([access, access_us * 1000, modification, modification_us * 1000])
        };
        // futimesat(2): a null path means the descriptor itself.
        let object = if path == 0 && directory != libc::AT_FDCWD {
            self.descriptor(directory as u64)?
        } else {
            self.at(directory, path)?
        };
        object.touch(&times)
    }

    fn utimensat(&self, directory: i32, path: u64, times: u64, flags: u64) -> Answer {
        let times = if times == 0 { NOW } else { stamps(self.numbers(times)?) };
        let object = if path == 0 && directory != libc::AT_FDCWD {
            // futimens(3); no flag has a meaning for it.
            if flags & 0xffff_ffff != 0 {
                return Err(Errno::INVAL);
            }
            self.descriptor(directory as u64)?
        } else {
            self.flagged(directory, path, flags)?
        };
        object.touch(&times)
    }

    fn set_attribute(&self, object: Object, [name, value, size, flags]: [u64; 4]) -> Answer {
        let name = self.target.attribute_name(name)?;
        let size = usize::try_from(size).map_err(|_| Errno::TOOBIG)?;
        if size > ATTRIBUTE_MAX {
            return Err(Errno::TOOBIG);
        }
        let value = self.target.read(value, size)?;
        let flags = XattrFlags::from_bits(flags as u32).ok_or(Errno::INVAL)?;
        self.target.still_there()?;
        setxattr(object.attributed()?, &name, &value, flags)
    }

    fn set_attribute_at(&self, [directory, path, flags, name, arguments, size]: [u64; 6]) -> Answer {
        // struct xattr_args: the value's address, its length, the flags (linux/xattr.h).
        const ARGUMENTS: u64 = 16;
        if size != ARGUMENTS {
            return Err(if size < ARGUMENTS { Errno::INVAL } else { Errno::TOOBIG });
        }
        let [value, rest] = self.numbers(arguments)?;
        let rest = rest as u64;
        let object = self.opened(directory as i32, path, flags)?;
        self.set_attribute(object, [name, value as u64, rest & 0xffff_ffff, rest >> 32])
    }

    fn remove_attribute(&self, object: Object, name: u64) -> Answer {
        let name = self.target.attribute_name(name)?;
        removexattr(object.attributed()?, &name)
    }

    fn ioctl(&self, descriptor: u64, request: u32, value: u64) -> Answer {
        let length = ((request >> 16) & 0x3fff) as usize;
        // FS_IOC_SETFLAGS says long and reads an int (ioctl_iflags(2)).
        let read = if length > 8 { length } else { 4 };
        let mut bytes = self.target.read(value, read)?;
        bytes.resize(length.max(8), 0);
        let object = self.descriptor(descriptor)?;
        sys::set_inode_attribute(object.reopen()?.as_fd(), request, &bytes).map_err(|error| errno(&error))
    }

    fn file_setattr(&self, [directory, path, value, size, flags]: [u64; 5]) -> Answer {
        // From FILE_ATTR_SIZE_VER0 to a page (linux/fs.h; fs/file_attr.c).
        let size = usize::try_from(size).map_err(|_| Errno::TOOBIG)?;
        if !(24..=4096).contains(&size) {
            return Err(if size < 24 { Errno::INVAL } else { Errno::TOOBIG });
        }
        let bytes = self.target.read(value, size)?;
        let object = self.opened(directory as i32, path, flags)?;
        let path = CString::new(object.path()?).map_err(|_| Errno::INVAL)?;
        sys::file_setattr(&path, &bytes).map_err(|error| errno(&error))
    }
}

impl Object {
    /// The name by which a call that follows links reaches exactly this object. A link itself has none: what these
    /// calls would do to it, they do not do to links.
    fn path(&self) -> Result<String> {
        if self.is_link()? {
            Err(Errno::OPNOTSUPP)
        } else {
            Ok(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
        }
    }

    /// Links have none of the attributes that a user may set (xattr(7)).
    fn attributed(&self) -> Result<String> {
        if self.is_link()? { Err(Errno::PERM) } else { self.path() }
    }

    fn is_link(&self) -> Result<bool> {
        Ok(FileType::from_raw_mode(fstat(&self.0)?.st_mode) == FileType::Symlink)
    }

    fn chmod(&self, mode: u64) -> Answer {
        chmod(self.path()?, Mode::from_raw_mode(mode as u32 & 0o3777))
    }

    fn chown(&self, uid: u64, gid: u64) -> Answer {
        let some = |id: u64| (id as u32 != u32::MAX).then_some(id as u32);
        let (uid, gid) = (some(uid).map(Uid::from_raw), some(gid).map(Gid::from_raw));
        chownat(&self.0, "", uid, gid, AtFlags::EMPTY_PATH)
    }

    fn touch(&self, times: &Timestamps) -> Answer {
        if self.is_link()? {
            return utimensat(&self.0, "", times, AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW);
        }
        utimensat(CWD, self.path()?, times, AtFlags::empty())
    }

    /// For calls that want a real descriptor. Opening a FIFO or a device could wait, or do something.
    fn reopen(&self) -> Result<OwnedFd> {
        match FileType::from_raw_mode(fstat(&self.0)?.st_mode) {
            FileType::RegularFile | FileType::Directory => {
                openat(CWD, self.path()?, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
            }
            _ => Err(Errno::NOTTY),
        }
    }
}

const NOW: Timestamps = Timestamps {
    last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
    last_modification: Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
};

fn stamps([access, access_ns, modification, modification_ns]: [i64; 4]) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: access, tv_nsec: access_ns },
        last_modification: Timespec { tv_sec: modification, tv_nsec: modification_ns },
    }
}
