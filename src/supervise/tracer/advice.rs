//! The smallest option that allows what was denied, and what speaks against it.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use super::calls::Does;
use super::judge::{Judge, existing};
use crate::error::paste;
use crate::view::control::{FILES, GIT};
use crate::view::system::{BROAD, CREDENTIALS, HIDDEN, KERNEL};
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

pub fn for_path(judge: &Judge, does: Does, path: &Path) -> Advice {
    let found = fs::metadata(path).ok();
    let special =
        found.as_ref().map(fs::Metadata::file_type).filter(|kind| !kind.is_file() && !kind.is_dir());
    if special.is_some_and(|kind| kind.is_socket()) {
        return Advice::nothing(OUT_OF_REACH).but("a socket: who serves it acts for the command");
    }
    if KERNEL.iter().any(|kernel| path.starts_with(kernel)) {
        return Advice::nothing("no option: of devices and kernel interfaces no more is shown");
    }
    let grant = match does {
        Does::Write | Does::Metadata if special.is_some() => {
            return Advice::nothing("no option: neither a file nor a directory");
        }
        Does::Write | Does::Metadata => Grant::Rw(path.to_owned()),
        // The directory is what is changed.
        Does::Create | Does::Remove => match path.parent().and_then(existing) {
            Some(directory) => Grant::Rw(directory.to_owned()),
            None => return Advice::nothing("no option"),
        },
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
    let warning = danger(judge, target, writes).or_else(|| danger(judge, path, writes));
    Advice { warning, ..Advice::grant(grant) }
}

/// What speaks against showing a path, or letting it be changed.
fn danger(judge: &Judge, path: &Path, writes: bool) -> Option<String> {
    /// Shells run these at their start, and people keep tokens in them.
    const SHELLS: &[&str] = &[
        ".bashrc",
        ".bash_profile",
        ".bash_login",
        ".bash_logout",
        ".profile",
        ".zshrc",
        ".zshenv",
        ".zprofile",
        ".zlogin",
        ".config/fish",
        ".kshrc",
        ".cshrc",
        ".tcshrc",
    ];
    const SYSTEM: &[&str] =
        &["/usr", "/etc", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/boot", "/var", "/nix", "/gnu"];
    let within = |top: &Path| path.starts_with(top) || top.starts_with(path);
    let hidden = HIDDEN.iter().find(|(top, _)| within(Path::new(top)));
    let secret = CREDENTIALS.iter().find(|(top, _)| within(&judge.home.join(top)) || has(path, top));
    if let Some((_, what)) = hidden.or(secret) {
        return Some(format!("credentials: {what}"));
    }
    if judge.home.starts_with(path) {
        return Some("the whole of HOME".to_owned());
    }
    if SHELLS.iter().any(|name| within(&judge.home.join(name)) || has(path, name)) {
        return Some("a shell runs it outside, and it may hold secrets".to_owned());
    }
    if !writes {
        return None;
    }
    let git = GIT.iter().find(|row| has(path, &format!(".git/{}", row.path)));
    if let Some(row) = FILES.iter().find(|row| has(path, row.path)).or(git) {
        return Some(format!("runs later outside: {}", row.reason));
    }
    let system = SYSTEM.iter().any(|top| path.starts_with(top));
    system.then(|| "a part of the system".to_owned())
}

/// Whether these components stand somewhere in the path, one after the other.
fn has(path: &Path, part: &str) -> bool {
    let all: Vec<_> = path.components().collect();
    let part: Vec<_> = Path::new(part).components().collect();
    all.windows(part.len()).any(|window| window == part.as_slice())
}
