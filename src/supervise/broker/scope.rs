//! Which objects the command may change: what lies beneath a writable root, and what has no place in any tree.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{CWD, fstat, fstatfs, readlinkat};
use rustix::io::{Errno, Result};

/// linux/magic.h: pipes, sockets, anonymous inodes.
const PLACELESS: [u64; 3] = [0x5049_5045, 0x534f_434b, 0x0904_1934];
const TMPFS_MAGIC: u64 = 0x0102_1994;

#[derive(Debug, Default)]
pub struct Scope {
    /// Canonical.
    roots: Vec<PathBuf>,
    /// Device and inode number of sockets of other programs that were there before.
    foreign: HashSet<(u64, u64)>,
    internet: Internet,
    serving: Internet,
}

/// Where internet sockets may be connected to; which of them can be made at all is the filter's rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Internet {
    #[default]
    Nowhere,
    /// These TCP ports. Landlock's rule does not reach the broker, which is not under it.
    Ports(Vec<u16>),
    /// Every port of a loopback address, and these of all others.
    Loopback(Vec<u16>),
    Anywhere,
}

impl Internet {
    fn allows(&self, address: SocketAddr) -> Result<()> {
        let allowed = match self {
            Internet::Nowhere => false,
            Internet::Ports(ports) => ports.contains(&address.port()),
            // Port 0 is that of a socket which was not bound, whatever its address says: listen(2) would bind it.
            Internet::Loopback(ports) => {
                address.port() != 0 && is_loopback(address.ip()) || ports.contains(&address.port())
            }
            Internet::Anywhere => true,
        };
        if allowed { Ok(()) } else { Err(Errno::ACCESS) }
    }
}

/// 127.0.0.0/8, ::1, and the former as an IPv6 address.
fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

impl Scope {
    pub fn new(roots: Vec<PathBuf>, foreign: HashSet<(u64, u64)>, internet: Internet) -> Scope {
        Scope { roots, foreign, internet, serving: Internet::Nowhere }
    }

    /// And which ports may be listened on.
    pub fn serving(self, serving: Internet) -> Scope {
        Scope { serving, ..self }
    }

    /// `address` is what the socket is bound to.
    pub fn may_serve(&self, address: SocketAddr) -> Result<()> {
        self.serving.allows(address)
    }

    /// Whether nobody outside this host may reach what listens.
    pub fn serves_loopback_alone(&self) -> bool {
        matches!(&self.serving, Internet::Loopback(ports) if ports.is_empty())
    }

    pub fn may_reach(&self, address: SocketAddr) -> Result<()> {
        self.internet.allows(address)
    }

    /// EPERM unless the object is the command's to change. The place is asked of the kernel for the descriptor
    /// itself: whatever names are swapped meanwhile, it is this object that was judged and that is acted on.
    pub fn may_change(&self, object: BorrowedFd<'_>) -> Result<()> {
        if self.is_beneath(object)? || is_placeless(object)? { Ok(()) } else { Err(Errno::PERM) }
    }

    /// A socket that a process inside has made.
    pub fn may_connect(&self, socket: BorrowedFd<'_>) -> Result<()> {
        let stat = fstat(socket)?;
        if self.is_beneath(socket)? && !self.foreign.contains(&(stat.st_dev, stat.st_ino)) {
            Ok(())
        } else {
            Err(Errno::ACCESS)
        }
    }

    fn is_beneath(&self, object: BorrowedFd<'_>) -> Result<bool> {
        let path = path_of(object)?;
        Ok(self.roots.iter().any(|root| {
            let root = root.as_os_str().as_bytes();
            path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        }))
    }
}

/// The kernel's name for what is open; " (deleted)" follows where the name is gone.
pub fn path_of(object: BorrowedFd<'_>) -> Result<Vec<u8>> {
    Ok(readlinkat(CWD, format!("/proc/self/fd/{}", object.as_raw_fd()), Vec::new())?.into_bytes())
}

/// A pipe, a socket pair, a memfd: made by somebody and to be found nowhere.
fn is_placeless(object: BorrowedFd<'_>) -> Result<bool> {
    let kind = fstatfs(object)?.f_type as u64;
    if PLACELESS.contains(&kind) {
        return Ok(true);
    }
    // memfd_create(2): on an internal tmpfs, by a name that no path can have, since a path has no such root.
    Ok(kind == TMPFS_MAGIC && path_of(object)?.starts_with(b"/memfd:") && fstat(object)?.st_nlink == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn what_lies_beneath_a_root_may_be_changed_and_its_neighbour_may_not() {
        let dir = std::env::temp_dir().join(format!("confine-scope-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("root/deep")).unwrap();
        std::fs::create_dir_all(dir.join("rooted")).unwrap();
        let scope =
            Scope::new(vec![dir.canonicalize().unwrap().join("root")], HashSet::new(), Internet::Nowhere);
        let judge = |name: &str| scope.may_change(std::fs::File::open(dir.join(name)).unwrap().as_fd());
        assert_eq!((judge("root"), judge("root/deep")), (Ok(()), Ok(())));
        assert_eq!((judge("rooted"), judge(".")), (Err(Errno::PERM), Err(Errno::PERM)));
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn the_loopback_is_what_stays_on_this_host() {
        let scope = Internet::Loopback(vec![443]);
        let allows = |address: &str| scope.allows(address.parse().unwrap()).is_ok();
        for address in
            ["127.0.0.1:1", "127.255.255.254:80", "[::1]:80", "[::ffff:127.0.0.1]:80", "192.0.2.1:443"]
        {
            assert!(allows(address), "{address}");
        }
        for address in [
            "127.0.0.1:0",
            "128.0.0.1:80",
            "126.255.255.255:80",
            "0.0.0.0:80",
            "192.0.2.1:80",
            "[::]:80",
            "[::2]:80",
            "[::127.0.0.1]:80",
            "[::ffff:10.0.0.1]:80",
            "[fe80::1]:80",
        ] {
            assert!(!allows(address), "{address}");
        }
    }

    #[test]
    fn a_pipe_is_nobodys_file() {
        let (reader, _writer) = std::io::pipe().unwrap();
        assert_eq!(Scope::default().may_change(reader.as_fd()), Ok(()));
    }
}
