//! What a word asks about.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::error::{Error, Result, show};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    Path(PathBuf),
    Network { host: String, port: u16 },
    Abstract(OsString),
    Variable(OsString),
}

impl Subject {
    /// A word with a slash is a path, so that `./NAME` asks about any file.
    pub fn read(word: &OsStr) -> Result<Subject> {
        let bytes = word.as_bytes();
        if bytes.is_empty() {
            return Err(Error::usage("a subject is empty").with_hint("confine why -w . PATH"));
        }
        if bytes.contains(&0) {
            return Err(Error::usage("a subject has a NUL byte in it"));
        }
        if let Some(name) = bytes.strip_prefix(b"@") {
            return Ok(Subject::Abstract(OsStr::from_bytes(name).to_owned()));
        }
        if let Some(equals) = bytes.iter().position(|&byte| byte == b'=')
            && is_name(&bytes[..equals])
        {
            return Ok(Subject::Variable(OsStr::from_bytes(&bytes[..equals]).to_owned()));
        }
        if !bytes.contains(&b'/')
            && let Some((host, port)) = word.to_str().and_then(|text| text.rsplit_once(':'))
            && !port.is_empty()
            && port.bytes().all(|byte| byte.is_ascii_digit())
        {
            let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
            return match port.parse() {
                Ok(port) if port > 0 => Ok(Subject::Network { host: host.to_owned(), port }),
                _ => Err(Error::usage(format!("{}: a port is 1 to 65535", show(word)))
                    .with_hint("a file of that name is asked about as ./NAME")),
            };
        }
        Ok(Subject::Path(word.into()))
    }
}

fn is_name(bytes: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    !bytes.is_empty() && !bytes[0].is_ascii_digit() && bytes.iter().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_what_it_looks_like_and_a_slash_makes_it_a_path() {
        let read = |word: &str| Subject::read(OsStr::new(word)).unwrap();
        let path = |word: &str| Subject::Path(word.into());
        for word in ["/etc/passwd", "src", "./a:1", "./@x", "./A=", "a:b", "a=b/c=", "1A="] {
            let expected = if word == "a=b/c=" { Subject::Variable("a".into()) } else { path(word) };
            assert_eq!(read(word), expected, "{word}");
        }
        assert_eq!(read("@"), Subject::Abstract("".into()));
        assert_eq!(read("@/tmp/.X11-unix/X0"), Subject::Abstract("/tmp/.X11-unix/X0".into()));
        assert_eq!(read("TOKEN="), Subject::Variable("TOKEN".into()));
        assert_eq!(read("TOKEN=value"), Subject::Variable("TOKEN".into()));
        assert_eq!(read("[::1]:80"), Subject::Network { host: "::1".into(), port: 80 });
        assert_eq!(read(":80"), Subject::Network { host: String::new(), port: 80 });
        for wrong in ["", "host:0", "host:65536"] {
            assert!(Subject::read(OsStr::new(wrong)).is_err(), "{wrong}");
        }
    }
}
