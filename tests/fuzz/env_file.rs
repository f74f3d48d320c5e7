//! `--env-file`: what is accepted means what it says, and a refusal repeats nothing of it.

use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use confine::policy::env_file::{is_reserved, read_open};
use rustix::fs::{MemfdFlags, memfd_create};

pub const CORPUS: &[&[u8]] = &[
    b"A=1\nB=two words\n# a comment\n\nC==\n",
    b"A=1\0B=line\nbreak\0",
    b"A=1\0B=2",
    b"export A=1\n",
    b"CONFINE=1\nCONFINE_POLICY=2\n",
    b"=1\r\n",
    b"npm_config_//registry/:_authToken=secret\n",
    b"A=\xff\xfe\n",
];

fn read(bytes: &[u8]) -> Result<Vec<(OsString, OsString)>, String> {
    let mut file = File::from(memfd_create("environment", MemfdFlags::CLOEXEC).unwrap());
    file.set_permissions(Permissions::from_mode(0o600)).unwrap();
    file.write_all(bytes).unwrap();
    read_open(Path::new("environment"), &OwnedFd::from(file)).map_err(|error| error.to_string())
}

pub fn check(bytes: &[u8]) {
    match read(bytes) {
        Ok(pairs) => accepted(bytes, &pairs),
        Err(message) => {
            // The same entries in other letters: were a word of them in the message, it would change.
            let others: Vec<u8> =
                bytes.iter().map(|byte| if byte.is_ascii_lowercase() { b'q' } else { *byte }).collect();
            assert_eq!(read(&others), Err(message));
        }
    }
}

fn accepted(bytes: &[u8], pairs: &[(OsString, OsString)]) {
    for (name, _) in pairs {
        let odd =
            |byte: &u8| *byte == b'=' || *byte == 0 || byte.is_ascii_whitespace() || byte.is_ascii_control();
        assert!(!name.is_empty() && !name.as_bytes().iter().any(odd), "{name:?}");
        assert!(!is_reserved(name), "{name:?}");
    }
    let mut written = Vec::new();
    for (name, value) in pairs {
        written.extend([name.as_bytes(), b"=", value.as_bytes(), b"\0"].concat());
    }
    assert_eq!(read(&written).as_deref(), Ok(pairs));
    if !bytes.contains(&0) {
        let lines =
            bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && !line.starts_with(b"#"));
        let joined = pairs.iter().map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat());
        assert!(lines.eq(joined), "{pairs:?}");
    }
}
