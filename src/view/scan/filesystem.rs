//! Which file systems say the truth about inode numbers and link counts.

use std::io;
use std::os::fd::AsFd;

const EXT: u32 = 0xef53;
const XFS: u32 = 0x5846_5342;
const BTRFS: u32 = 0x9123_683e;
const TMPFS: u32 = 0x0102_1994;

/// statfs(2) and linux/magic.h. FUSE, 9p and virtiofs tell what a server invents; NFS may tell what it had
/// cached; exFAT and FAT make numbers up.
const TRUSTED: &[u32] = &[
    EXT,
    XFS,
    BTRFS,
    TMPFS,
    0x8584_58f6, // ramfs
    0x2fc1_2fc1, // zfs
    0xf2f5_2010, // f2fs
    0xca45_1a4e, // bcachefs
    // overlay: a file of a lower layer can show fewer names than its link count, which makes a suspect and
    // errs to the safe side; a write copies it up and leaves its other names alone.
    0x794c_7630,
    0x3153_464a, // jfs
    0x2405_1905, // ubifs
    0x0000_3434, // nilfs2
];

pub fn magic(fd: &impl AsFd) -> io::Result<u32> {
    // The field is signed and of differing width; magic numbers are 32 bits.
    Ok(rustix::fs::fstatfs(fd)?.f_type as u32)
}

pub fn is_trusted(magic: u32) -> bool {
    TRUSTED.contains(&magic)
}

/// File systems with multigrain change times (since Linux 6.13): a change after a look is never given the time
/// that the look saw.
pub fn has_fine_times(magic: u32) -> bool {
    [EXT, XFS, BTRFS, TMPFS].contains(&magic)
}

pub fn kernel_has_fine_times() -> bool {
    let Ok(release) = std::fs::read_to_string("/proc/sys/kernel/osrelease") else { return false };
    let mut parts = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (6, 13)
}

pub fn name(magic: u32) -> String {
    let known = match magic {
        0x6573_5546 => "fuse",
        0x6969 => "nfs",
        0x0102_1997 => "9p",
        0x6a65_6a63 => "virtiofs",
        0xff53_4d42 | 0xfe53_4d42 => "cifs",
        0x4d44 => "fat",
        0x2011_bab0 => "exfat",
        0x5346_544e | 0x7366_746e => "ntfs",
        0x00c3_6400 => "ceph",
        _ => return format!("file system type {magic:#x}"),
    };
    known.to_string()
}
