//! Attempts on files and their metadata.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Gid, IFlags, Mode, Timespec, Timestamps, Uid, XattrFlags, chownat, fchmod as change_mode,
    fsetxattr as set_attribute, futimens as change_times, ioctl_setflags, linkat, renameat,
    setxattr as set_attribute_at, utimensat as change_times_at,
};

use super::aims::Aims;
use super::rows::Tried;

const ATTRIBUTE: &str = "user.confine-prove";
/// A moment that no file of today has.
const LONG_AGO: Timestamps = Timestamps {
    last_access: Timespec { tv_sec: 1_000_000, tv_nsec: 0 },
    last_modification: Timespec { tv_sec: 1_000_000, tv_nsec: 0 },
};

pub fn nothing<T, E: Into<io::Error>>(result: Result<T, E>) -> Tried {
    result.map(|_| Vec::new()).map_err(Into::into)
}

fn write_to(path: &Path) -> Tried {
    nothing(OpenOptions::new().write(true).open(path)?.write_all(b"changed"))
}

pub fn write(aims: &Aims) -> Tried {
    write_to(&aims.shown("file"))
}

pub fn truncate(aims: &Aims) -> Tried {
    nothing(nix::unistd::truncate(&aims.shown("file"), 0))
}

pub fn create(aims: &Aims) -> Tried {
    nothing(File::create_new(aims.shown("created")))
}

pub fn make_directory(aims: &Aims) -> Tried {
    nothing(fs::create_dir(aims.shown("made")))
}

pub fn symlink(aims: &Aims) -> Tried {
    nothing(std::os::unix::fs::symlink("file", aims.shown("link")))
}

pub fn remove(aims: &Aims) -> Tried {
    nothing(fs::remove_file(aims.shown("file")))
}

pub fn rename(aims: &Aims) -> Tried {
    nothing(renameat(CWD, aims.shown("file"), CWD, aims.shown("renamed")))
}

pub fn move_in(aims: &Aims) -> Tried {
    nothing(renameat(CWD, aims.shown("file"), CWD, aims.own("moved")))
}

pub fn link_in(aims: &Aims) -> Tried {
    nothing(linkat(CWD, aims.shown("file"), CWD, aims.own("linked"), AtFlags::empty()))
}

pub fn write_hidden(aims: &Aims) -> Tried {
    write_to(&aims.hidden("file"))
}

pub fn create_hidden(aims: &Aims) -> Tried {
    nothing(File::create_new(aims.hidden("created")))
}

pub fn write_shared(aims: &Aims) -> Tried {
    write_to(&Path::new("/dev/shm").join(aims.at.name()))
}

pub fn write_own(aims: &Aims) -> Tried {
    nothing(fs::write(aims.own("written"), "mine"))
}

pub fn chmod(aims: &Aims) -> Tried {
    nothing(fs::set_permissions(aims.shown("file"), fs::Permissions::from_mode(0o646)))
}

pub fn fchmod(aims: &Aims) -> Tried {
    nothing(change_mode(File::open(aims.shown("file"))?, Mode::from_raw_mode(0o646)))
}

pub fn chown(aims: &Aims) -> Tried {
    let (uid, gid) = (Uid::from_raw(aims.at.uid), Gid::from_raw(aims.at.gid));
    nothing(chownat(CWD, aims.shown("file"), Some(uid), Some(gid), AtFlags::empty()))
}

pub fn utimensat(aims: &Aims) -> Tried {
    nothing(change_times_at(CWD, aims.shown("file"), &LONG_AGO, AtFlags::empty()))
}

pub fn futimens(aims: &Aims) -> Tried {
    nothing(change_times(File::open(aims.shown("file"))?, &LONG_AGO))
}

pub fn setxattr(aims: &Aims) -> Tried {
    nothing(set_attribute_at(aims.shown("file"), ATTRIBUTE, b"set", XattrFlags::empty()))
}

pub fn fsetxattr(aims: &Aims) -> Tried {
    nothing(set_attribute(File::open(aims.shown("file"))?, ATTRIBUTE, b"set", XattrFlags::empty()))
}

pub fn set_flag(aims: &Aims) -> Tried {
    nothing(ioctl_setflags(File::open(aims.shown("file"))?, IFlags::NODUMP))
}

pub fn chmod_own(aims: &Aims) -> Tried {
    let path = aims.own("mode");
    fs::write(&path, "")?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640))?;
    match fs::metadata(&path)?.permissions().mode() & 0o777 {
        0o640 => Ok(Vec::new()),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn contents(path: &Path) -> Tried {
    let mut text = Vec::new();
    File::open(path)?.take(4096).read_to_end(&mut text)?;
    Ok(text)
}

pub fn read_hidden(aims: &Aims) -> Tried {
    contents(&aims.hidden("file"))
}

pub fn list_hidden(aims: &Aims) -> Tried {
    let mut names = Vec::new();
    for entry in fs::read_dir(aims.hidden("list"))? {
        names.extend(entry?.file_name().as_bytes());
    }
    Ok(names)
}

pub fn read_shown(aims: &Aims) -> Tried {
    contents(&aims.shown("file"))
}

pub fn probe(aims: &Aims) -> Tried {
    nothing(fs::symlink_metadata(aims.hidden("file")))
}
