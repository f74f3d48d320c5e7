//! The smallest option that allows what was denied, and what speaks against it.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use super::calls::Does;
use super::judge::{Judge, existing};
use crate::error::paste;
use crate::view::danger::danger;
use crate::view::system::{BROAD, KERNEL};
use crate::view::{Access, Origin};

pub const OUT_OF_REACH: &str =
    "no option: sockets of other programs are out of reach; --fd passes a connected stream";

/// One option and its value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grant {
    Ro(PathBuf),
    Rw(PathBuf),
    Connect(u16),
    Listen(u16),
    Net,
    Allow(&'static str),
}

impl Grant {
    pub fn words(&self) -> String {
        match self {
            Grant::Ro(path) => format!("--ro {}", paste(path.as_os_str())),
            Grant::Rw(path) => format!("--rw {}", paste(path.as_os_str())),
            Grant::Connect(port) => format!("--connect {port}"),
            Grant::Listen(port) => format!("--listen {port}"),
            Grant::Net => "--net host".to_owned(),
            Grant::Allow(what) => format!("--allow {what}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// None: no option allows it.
    pub grant: Option<Grant>,
    /// Why there is none.
    pub note: Option<String>,
    pub warning: Option<String>,
}

impl Advice {
    pub fn grant(grant: Grant) -> Advice {
        let warning = match &grant {
            Grant::Allow("userns") => Some("opens more of the kernel".to_owned()),
            Grant::Net => Some("all of the host's network, its local services included".to_owned()),
            Grant::Allow(_) => Some("where it sends to cannot be ruled".to_owned()),
            _ => None,
        };
        Advice { grant: Some(grant), note: None, warning }
    }

    pub fn nothing(note: &str) -> Advice {
        Advice { grant: None, note: Some(note.to_owned()), warning: None }
    }

    pub fn but(mut self, warning: impl Into<String>) -> Advice {
        self.warning = Some(warning.into());
        self
    }
}

pub fn for_address(address: SocketAddr, datagram: bool) -> Advice {
    /// What the clouds serve instances their credentials at.
    const METADATA: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254));
    let ip = address.ip().to_canonical();
    // Names resolve over TCP too.
    if datagram && address.port() != 53 {
        return Advice::grant(Grant::Net);
    }
    let advice = Advice::grant(Grant::Connect(address.port()));
    if ip.is_loopback() {
        advice.but("a service of this host, at this port of any address")
    } else if ip == METADATA {
        advice.but("a cloud's metadata service, which gives out credentials")
    } else {
        advice
    }
}

/// By what the path leads to on the host, which is what an option would show, and by its name. The command may have
/// made the links on the way.
pub fn for_path(judge: &Judge, does: Does, path: &Path) -> Advice {
    let (named, path) = (path, &*resolve(path));
    let found = fs::metadata(path).ok();
    let special =
        found.as_ref().map(fs::Metadata::file_type).filter(|kind| !kind.is_file() && !kind.is_dir());
    if special.is_some_and(|kind| kind.is_socket()) {
        return Advice::nothing(OUT_OF_REACH).but("a socket: who serves it acts for the command");
    }
    if KERNEL.iter().any(|kernel| path.starts_with(kernel) || named.starts_with(kernel)) {
        return Advice::nothing("no option: of devices and kernel interfaces no more is shown");
    }
    let grant = match does {
        Does::Write | Does::Metadata if special.is_some() => {
            return Advice::nothing("no option: neither a file nor a directory");
        }
        Does::Write | Does::Metadata if found.is_some() => Grant::Rw(path.to_owned()),
        // The directory is what is changed; also where a link leads to nothing yet.
        Does::Create | Does::Remove | Does::Write | Does::Metadata => {
            match path.parent().and_then(existing) {
                Some(directory) => Grant::Rw(directory.to_owned()),
                None => return Advice::nothing("no option"),
            }
        }
        _ => Grant::Ro(path.to_owned()),
    };
    let (Grant::Ro(target) | Grant::Rw(target)) = &grant else { return Advice::grant(grant) };
    let writes = matches!(grant, Grant::Rw(_));
    // The same path with two accesses is an error.
    if let Some(place) =
        judge.nearest(target).filter(|place| place.origin == Origin::Option && place.path == *target)
    {
        match place.access {
            Access::Hidden => return Advice::nothing("hidden as asked: leave --hide out"),
            Access::Read if writes => {
                return Advice::nothing("read-only as asked: leave --ro, --seal or --read-only out");
            }
            _ => {}
        }
    }
    if writes && (BROAD.iter().any(|broad| target == Path::new(broad)) || judge.home.starts_with(target)) {
        return Advice::nothing("too broad: name a directory below it, if there is one");
    }
    let judged = |path: &Path| danger(path, &judge.home, writes);
    let warning = judged(target).or_else(|| judged(path)).or_else(|| judged(named));
    Advice { warning, ..Advice::grant(grant) }
}

/// Without links, also where the end does not exist.
fn resolve(path: &Path) -> PathBuf {
    /// As many as the kernel follows (path_resolution(7)).
    const LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        if let Ok(found) = fs::canonicalize(&path) {
            return found;
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { break };
        let parent = match fs::canonicalize(parent) {
            Ok(parent) => parent,
            // What is missing has nothing below it; a link above leads on.
            Err(_) => match existing(parent).filter(|above| above.is_symlink()) {
                None => break,
                Some(link) => {
                    let (Ok(to), Ok(rest)) = (fs::read_link(link), path.strip_prefix(link)) else { break };
                    path = link.parent().unwrap_or(link).join(to).join(rest);
                    continue;
                }
            },
        };
        match fs::read_link(parent.join(name)) {
            Ok(to) => path = parent.join(to),
            Err(_) => return parent.join(name),
        }
    }
    path
}
