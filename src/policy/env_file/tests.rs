use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;

use super::*;

/// A directory of this test's own that goes when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("confine-env-file-{}-{name}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Scratch(path)
    }

    fn file(&self, bytes: &[u8], mode: u32) -> PathBuf {
        let path = self.0.join("vars");
        // The one before may be read-only, which stops everyone but root.
        let _ = std::fs::remove_file(&path);
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)
            .unwrap();
        file.write_all(bytes).unwrap();
        file.set_permissions(std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn pairs(bytes: &[u8]) -> Vec<(String, String)> {
    let text = |name: OsString| name.into_string().unwrap();
    parse(bytes).unwrap().into_iter().map(|(name, value)| (text(name), text(value))).collect()
}

fn owned(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[test]
fn lines_are_taken_as_they_stand() {
    let text = b"A=1\n# a remark\n\nB=\"two\" = 2 \nC=\nD=last";
    assert_eq!(pairs(text), owned(&[("A", "1"), ("B", "\"two\" = 2 "), ("C", ""), ("D", "last")]));
    assert_eq!(pairs(b""), owned(&[]));
    assert_eq!(pairs(b"npm_config_//host/:_auth=x\n"), owned(&[("npm_config_//host/:_auth", "x")]));
}

#[test]
fn pairs_separated_or_ended_by_nul_may_hold_newlines() {
    assert_eq!(pairs(b"A=1\0B=2"), owned(&[("A", "1"), ("B", "2")]));
    assert_eq!(pairs(b"KEY=line\nline=2\n\0B=\0"), owned(&[("KEY", "line\nline=2\n"), ("B", "")]));
}

#[test]
fn bytes_that_are_not_utf8_survive() {
    let read = parse(b"A=\xff\xfe\nB\xe9=1\n").unwrap();
    assert_eq!(read[0].1.as_bytes(), b"\xff\xfe");
    assert_eq!(read[1].0.as_bytes(), b"B\xe9");
}

#[test]
fn what_is_no_pair_is_refused_by_its_number() {
    for (bytes, kind, number, part) in [
        (&b"A=1\nB\n"[..], "line", 2, "no '='"),
        (b"A=1\n=x\n", "line", 2, "no name"),
        (b"\n\nexport A=1\n", "line", 3, "blank"),
        (b"\tA=1\n", "line", 1, "blank"),
        (b"A=1\r\n", "line", 1, "carriage return"),
        (b"CONFINE=1\n", "line", 1, "confine itself"),
        (b"CONFINE_POLICY=x\n", "line", 1, "confine itself"),
        (b"A=1\0B\0", "pair", 2, "no '='"),
        (b"A=1\0=\0", "pair", 2, "no name"),
        (b"A=1\0\0B=1\0", "pair", 2, "no '='"),
        (b"\0", "pair", 1, "no '='"),
        // A NUL inside the value of a line file.
        (b"A=1\0rest\nB=2\n", "pair", 2, "ends with a newline"),
        (b"A=1\nB=2\0rest\n", "pair", 2, "ends with a newline"),
        (b"A=1\0rest\nB=2\n\0", "pair", 2, "blank or a control"),
    ] {
        let fault = parse(bytes).unwrap_err();
        assert_eq!((fault.kind, fault.number), (kind, number), "{bytes:?}: {fault:?}");
        assert!(fault.what.contains(part), "{bytes:?}: {fault:?}");
    }
    assert!(parse(b"CONFINED=1\n").is_ok());
}

#[test]
fn an_owner_only_file_is_read_and_one_open_to_others_is_not() {
    let scratch = Scratch::new("modes");
    for mode in [0o600, 0o400] {
        let read = read(&scratch.file(b"TOKEN=s3cret\n", mode)).unwrap();
        assert_eq!(read, [("TOKEN".into(), "s3cret".into())]);
    }
    for mode in [0o640, 0o604, 0o620, 0o602, 0o610, 0o644] {
        let error = read(&scratch.file(b"TOKEN=s3cret\n", mode)).unwrap_err();
        assert!(error.to_string().ends_with("is open to other users"), "{mode:o}: {error}");
        assert!(error.hint().unwrap().starts_with("chmod 600 /"));
    }
}

#[test]
fn the_caller_and_root_may_own_the_file_and_nobody_else() {
    assert_eq!(exposed(1000, 0o100600, 1000), None);
    assert_eq!(exposed(0, 0o100400, 1000), None);
    assert_eq!(exposed(1001, 0o100600, 1000), Some(Exposed::Owner));
    assert_eq!(exposed(1000, 0o100600, 0), Some(Exposed::Owner));
    assert_eq!(exposed(0, 0o100640, 0), Some(Exposed::Mode));
}

#[test]
fn no_message_shows_what_the_file_holds() {
    let scratch = Scratch::new("silence");
    for bytes in [
        &b"A=1\ns3cret\n"[..],
        b"s3cret x=1\n",
        b"=s3cret\n",
        b"A=s3cret\r\n",
        b"A=1\0s3cret\0",
        b"A=s3cret\0B",
    ] {
        let error = read(&scratch.file(bytes, 0o600)).unwrap_err();
        let said = format!("{error} {:?} {error:?}", error.hint());
        assert!(!said.contains("s3cret"), "{said}");
    }
}

#[test]
fn a_file_over_one_mebibyte_is_refused_and_one_of_exactly_that_is_read() {
    let scratch = Scratch::new("size");
    let mut bytes = b"A=".to_vec();
    bytes.resize(MAX_BYTES as usize, b'x');
    assert_eq!(read(&scratch.file(&bytes, 0o600)).unwrap()[0].1.len(), MAX_BYTES as usize - 2);
    bytes.push(b'x');
    let error = read(&scratch.file(&bytes, 0o600)).unwrap_err();
    assert!(error.to_string().ends_with("is larger than 1 MiB"), "{error}");
}

#[test]
fn a_pipe_is_read_through_its_descriptor() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(b"TOKEN=1\n").unwrap();
    drop(writer);
    let path = PathBuf::from(format!("/dev/fd/{}", reader.as_raw_fd()));
    assert_eq!(read(&path).unwrap(), [("TOKEN".into(), "1".into())]);
}

#[test]
fn directories_devices_and_missing_files_are_refused() {
    let scratch = Scratch::new("kinds");
    for path in [scratch.0.as_path(), Path::new("/dev/null")] {
        let error = read(path).unwrap_err();
        assert!(error.to_string().ends_with("is neither a file nor a pipe"), "{error}");
    }
    let error = read(&scratch.0.join("absent")).unwrap_err();
    assert!(error.to_string().ends_with("no such file or directory"), "{error}");
}

#[test]
fn a_named_fifo_open_to_others_is_refused_without_waiting_for_a_writer() {
    let scratch = Scratch::new("fifo");
    let path = scratch.0.join("fifo");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let error = read(&path).unwrap_err();
    assert!(error.to_string().ends_with("is open to other users"), "{error}");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let writer = std::thread::spawn({
        let path = path.clone();
        move || std::fs::write(path, b"TOKEN=1\n")
    });
    assert_eq!(read(&path).unwrap(), [("TOKEN".into(), "1".into())]);
    writer.join().unwrap().unwrap();
}
