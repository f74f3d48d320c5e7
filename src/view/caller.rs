//! What the process that was started brings along: identity, directories, environment.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::enforce::descriptors::Inherited;
use crate::error::{Error, Result};
use crate::policy::Policy;

#[derive(Debug)]
pub struct Caller {
    /// The identity that the command will have.
    pub uid: u32,
    pub gid: u32,
    /// From `--user`, or for a shell: the password file's entry, for HOME and names.
    pub entry: Option<PasswdEntry>,
    /// `--user` was given: groups are dropped and ids changed.
    pub switch: bool,
    /// As named by PWD where that is the same directory, so that links the user came through exist inside.
    pub cwd: PathBuf,
    /// None for a directory that is made for the run.
    pub cwd_object: Option<(u64, u64)>,
    /// Where relative paths of options start, whatever `--chdir` says.
    start: PathBuf,
    /// The first workspace as it was named, for a hint.
    workspace: Option<PathBuf>,
    pub environment: Vec<(OsString, OsString)>,
    /// Whether what variables name is shown.
    trusts_environment: bool,
    pub standard: Vec<Inherited>,
    /// What `--fd` names.
    pub passed: Vec<Inherited>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PasswdEntry {
    pub name: OsString,
    pub uid: u32,
    pub gid: u32,
    pub home: PathBuf,
    pub shell: PathBuf,
}

impl Caller {
    pub fn look(policy: &Policy, uid: u32, gid: u32, standard: Vec<Inherited>) -> Result<Caller> {
        let environment: Vec<_> = std::env::vars_os().collect();
        let here = fs::metadata(".").map_err(|error| Error::path("look at", ".", error))?;
        // Whoever wrote a shell's command may have made the links that its PWD leads through.
        let trusted = policy.shell.as_ref().is_none_or(|shell| shell.trusts_environment);
        let pwd = environment.iter().find(|(name, _)| trusted && name == "PWD");
        let named = pwd.map(|(_, value)| Path::new(value));
        let cwd = match named {
            Some(path) if path.is_absolute() && is_object(path, &here) => path.to_owned(),
            _ => std::env::current_dir().map_err(|error| Error::step("find the working directory", error))?,
        };
        let mut caller = Caller {
            uid,
            gid,
            entry: None,
            switch: false,
            start: cwd.clone(),
            workspace: policy.workspaces.first().cloned(),
            cwd,
            cwd_object: Some((here.dev(), here.ino())),
            environment,
            trusts_environment: true,
            standard,
            passed: Vec::new(),
        };
        if let Some(shell) = &policy.shell {
            caller.entry = shell.account.clone();
            caller.trusts_environment = shell.trusts_environment;
        }
        if let Some(user) = policy.user {
            caller.become_user(user.uid, user.gid)?;
        }
        Ok(caller)
    }

    /// All that the command inherits.
    pub fn inherited(&self) -> impl Iterator<Item = &Inherited> {
        self.standard.iter().chain(&self.passed)
    }

    /// `--chdir`: where the command starts.
    pub fn enter(&mut self, directory: &Path) -> Result<()> {
        let path = self.absolute(directory);
        let there = fs::metadata(&path).map_err(|error| Error::path("enter", directory, error))?;
        if !there.is_dir() {
            return Err(Error::path("enter", directory, io::Error::from_raw_os_error(libc::ENOTDIR)));
        }
        self.cwd = path;
        self.cwd_object = Some((there.dev(), there.ino()));
        Ok(())
    }

    /// Without a workspace the command starts in its private HOME, which only the run makes.
    pub fn start_at_home(&mut self, home: &Path) {
        self.cwd = home.to_owned();
        self.cwd_object = None;
    }

    fn become_user(&mut self, uid: u32, gid: Option<u32>) -> Result<()> {
        let entry = account(uid);
        let gid = gid.or(entry.as_ref().map(|entry| entry.gid));
        self.gid = gid.ok_or_else(|| {
            Error::usage(format!("--user {uid}: no entry in /etc/passwd to take the group from"))
                .with_hint(format!("name the group too: `--user {uid}:GID`"))
        })?;
        self.uid = uid;
        self.entry = entry;
        self.switch = true;
        Ok(())
    }

    /// For a working directory that the command would not see.
    pub fn outside_view(&self) -> Error {
        let path = crate::error::show(self.cwd.as_os_str());
        let error = Error::refused(format!("the working directory {path} is not visible inside"));
        match &self.workspace {
            Some(workspace) => error.with_hint(format!(
                "start in the workspace: `--chdir {}`",
                crate::error::paste(workspace.as_os_str())
            )),
            None => error,
        }
    }

    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        self.environment.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_os_str())
    }

    /// The same where the value decides what is shown or made on the host: none from an environment that whoever
    /// wrote the command may have set.
    pub fn trusted_variable(&self, name: &str) -> Option<&OsStr> {
        self.variable(name).filter(|_| self.trusts_environment)
    }

    pub fn trusts_environment(&self) -> bool {
        self.trusts_environment
    }

    /// The path as an absolute one, seen from where confine was started.
    pub fn absolute(&self, path: &Path) -> PathBuf {
        if path == Path::new(".") { self.start.clone() } else { self.start.join(path) }
    }
}

fn is_object(path: &Path, object: &fs::Metadata) -> bool {
    fs::metadata(path).is_ok_and(|found| (found.dev(), found.ino()) == (object.dev(), object.ino()))
}

/// More is no password file that anybody wrote.
const MOST_ACCOUNTS: u64 = 64 << 20;

/// The password file's entry of a user. Nothing here asks the name service (getpwuid(3) and the like): that loads
/// other code into this process before the boundary is there, from where LD_LIBRARY_PATH says, and a program that is
/// linked statically against glibc dies of it.
pub fn account(uid: u32) -> Option<PasswdEntry> {
    entries(&password_file()).find(|entry| entry.uid == uid)
}

/// The homes of people: root's, and of those that an administrator has added.
pub fn homes() -> Vec<PathBuf> {
    let is_person = |entry: &PasswdEntry| entry.uid == 0 || (1000..65534).contains(&entry.uid);
    entries(&password_file())
        .filter(is_person)
        .map(|entry| entry.home)
        .filter(|home| home.is_absolute())
        .collect()
}

fn password_file() -> Vec<u8> {
    read_bounded(Path::new("/etc/passwd"), MOST_ACCOUNTS).unwrap_or_default()
}

/// passwd(5). Lines of another form are passed over, such as `+` of old name services.
fn entries(file: &[u8]) -> impl Iterator<Item = PasswdEntry> + '_ {
    file.split(|&byte| byte == b'\n').filter_map(|line| {
        let mut fields = line.split(|&byte| byte == b':');
        let mut field = || fields.next();
        let [name, _, id, gid, _, home, shell] =
            [field()?, field()?, field()?, field()?, field()?, field()?, field()?];
        // Digits alone, so that `+0` is nobody's.
        let number = |bytes: &[u8]| {
            let digits = bytes.iter().all(u8::is_ascii_digit);
            std::str::from_utf8(bytes).ok().filter(|_| digits)?.parse::<u32>().ok()
        };
        let whole = fields.next().is_none() && !name.is_empty() && !line.contains(&0);
        let (uid, gid) = (number(id)?, number(gid)?);
        whole.then_some(PasswdEntry {
            name: OsStr::from_bytes(name).to_owned(),
            uid,
            gid,
            home: OsStr::from_bytes(home).into(),
            shell: OsStr::from_bytes(shell).into(),
        })
    })
}

/// At most `limit` bytes of a regular file; anything else, or more, is an error. Opened so that a FIFO or a device in
/// its place cannot make this wait.
pub fn read_bounded(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    use std::io::Read;
    use std::os::unix::fs::OpenOptionsExt;
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let mut file = fs::File::options().read(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    // One more than there is: a regular file reads short only at its end, so that one reading tells.
    let mut bytes = vec![0; found.len().min(limit) as usize + 1];
    let length = file.read(&mut bytes)?;
    if length < bytes.len() {
        bytes.truncate(length);
        return Ok(bytes);
    }
    // It has grown meanwhile, or tells no size.
    if file.take((limit + 1).saturating_sub(length as u64)).read_to_end(&mut bytes)? + length > limit as usize
    {
        return Err(io::Error::other("too large"));
    }
    Ok(bytes)
}

/// Blank, tab, newline and backslash are octal in mountinfo.
pub fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        match rest {
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..] => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = tail;
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// A file of /proc, which tells no size: read in steps of a page and not from 32 bytes upwards.
pub fn read_proc(path: &str) -> io::Result<Vec<u8>> {
    use std::io::Read;
    let mut file = fs::File::open(path)?;
    let mut bytes = vec![0; 4096];
    let mut length = 0;
    loop {
        match file.read(&mut bytes[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if bytes.len() - length < 2048 {
            bytes.resize(bytes.len() * 2, 0);
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_found_by_id_and_broken_lines_are_passed_over() {
        let file = b"root:x:0:0:root:/root:/bin/sh\nbroken:x:7\n+::::::\n:x:7:7::/:\na:x:+7:7::/:\n\
            a:x:7:7::/:/bin/sh:more\na:x:7:99999999999::/:\na:x:7:7::/\0:\n\xff:x:9:9::/n:\n\
            u:x:1000:100:,,,:/home/u:/bin/zsh\nv:x:1000:5::/home/v:";
        let find = |uid| entries(file).find(|entry| entry.uid == uid);
        let entry = find(1000).unwrap();
        assert_eq!((entry.name.as_os_str(), entry.gid), (OsStr::new("u"), 100));
        assert_eq!(
            (entry.home.as_path(), entry.shell.as_path()),
            (Path::new("/home/u"), Path::new("/bin/zsh"))
        );
        assert_eq!(find(7), None);
        assert_eq!(find(9).unwrap().home, Path::new("/n"));
        assert_eq!(entries(file).count(), 4);
    }
}
