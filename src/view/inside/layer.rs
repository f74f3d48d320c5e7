//! What an upper layer says of a name, before anything is mounted (overlayfs.rst, "whiteouts and opaque directories").

use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, lgetxattr};

use super::real::{at, stat};
use super::{Node, What};

/// None where it says nothing, and the layer below is seen.
pub fn written(upper: BorrowedFd<'_>, name: &Path) -> Option<Node> {
    let mut whole = false;
    let mut here = PathBuf::new();
    for part in name {
        here.push(part);
        let node = at(upper, &here);
        match node.what {
            What::Missing => return whole.then(Node::missing),
            What::Device { .. } if is_whiteout(upper, &here) => return Some(Node::missing()),
            _ if here == name => return Some(node),
            What::Directory => whole |= is_opaque(upper, &here),
            _ => return Some(Node::missing()),
        }
    }
    None
}

fn is_whiteout(upper: BorrowedFd<'_>, name: &Path) -> bool {
    stat(upper, name).is_ok_and(|found| {
        let device = FileType::from_raw_mode(u32::from(found.stx_mode)) == FileType::CharacterDevice;
        device && (found.stx_rdev_major, found.stx_rdev_minor) == (0, 0)
    })
}

/// Nothing below it is seen through it.
fn is_opaque(upper: BorrowedFd<'_>, name: &Path) -> bool {
    let path = Path::new("/proc/self/fd").join(upper.as_raw_fd().to_string()).join(name);
    let mut value = [0u8; 8];
    lgetxattr(path, "user.overlay.opaque", &mut value[..]).is_ok_and(|length| &value[..length] == b"y")
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn an_upper_layer_adds_replaces_and_hides_whole_directories() {
        let base = std::env::temp_dir().join(format!("confine-layer-{}", std::process::id()));
        for dir in ["fresh", "merged"] {
            std::fs::create_dir_all(base.join(dir)).unwrap();
        }
        std::fs::write(base.join("merged/new"), "").unwrap();
        std::fs::write(base.join("file"), "").unwrap();
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::setxattr(base.join("fresh"), "user.overlay.opaque", b"y", flags).unwrap();
        let upper = std::fs::File::open(&base).unwrap();
        let says = |name: &str| written(upper.as_fd(), Path::new(name)).map(|node| node.what);
        assert_eq!(says("merged/new"), Some(What::File));
        assert_eq!((says("merged/old"), says("elsewhere"), says("")), (None, None, None));
        assert_eq!(says("merged"), Some(What::Directory));
        assert_eq!(says("fresh/old"), Some(What::Missing));
        assert_eq!(says("file/below"), Some(What::Missing));
        std::fs::remove_dir_all(&base).unwrap();
    }
}
