//! A directory of the test's own, that every user can walk through, with a workspace, a place outside and a home.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::Who;

static NEXT: AtomicU32 = AtomicU32::new(0);

pub struct Scratch {
    pub who: Who,
    root: PathBuf,
}

impl Scratch {
    /// Names are short: a socket's path may have 108 bytes.
    pub fn new(who: Who) -> Self {
        assert!(rustix::process::geteuid().is_root(), "the containment tests have to be run as root");
        // Process ids come round: what a killed run has left is passed over.
        let root = loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let root = PathBuf::from(format!("/tmp/confine-{}-{number}", std::process::id()));
            match fs::create_dir(&root) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                made => break made.map(|()| root).unwrap(),
            }
        };
        let scratch = Scratch { who, root };
        fs::set_permissions(&scratch.root, fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(scratch.root.join("bin")).unwrap();
        copy(attack_program(), &scratch.attack());
        copy(&confine_program(), &scratch.confine());
        for dir in ["w", "w/own", "outside", "home", "home/.ssh", "tmp"] {
            scratch.dir(dir);
        }
        // The hostile program lies in the workspace, as whatever a command builds or fetches does.
        copy(attack_program(), &scratch.inside_attack());
        scratch.give(&scratch.inside_attack());
        scratch.file("w/own/own", "my own\n");
        scratch.file("home/.ssh/id", "secret key\n");
        scratch
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn workspace(&self) -> PathBuf {
        self.path("w")
    }

    pub fn outside(&self) -> PathBuf {
        self.path("outside")
    }

    pub fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// Where the caller runs the attack from, outside.
    pub fn attack(&self) -> PathBuf {
        self.path("bin/attack")
    }

    pub fn inside_attack(&self) -> PathBuf {
        self.path("w/attack")
    }

    pub fn confine(&self) -> PathBuf {
        self.path("bin/confine")
    }

    /// Owned by the identity, so that whatever refuses a change it is not the owner's bits.
    pub fn give(&self, path: &Path) {
        std::os::unix::fs::lchown(path, Some(self.who.id()), Some(self.who.id())).unwrap();
    }

    pub fn dir(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        self.give(&path);
        path
    }

    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(&path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        self.give(&path);
        path
    }

    /// A profile of the user's own.
    pub fn profile(&self, name: &str, text: &str) -> PathBuf {
        for dir in ["home/.config", "home/.config/confine", "home/.config/confine/profiles"] {
            self.dir(dir);
        }
        self.file(&format!("home/.config/confine/profiles/{name}.toml"), text)
    }

    /// A file that can be run.
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        let draft = self.file("draft", text);
        let path = self.path(name);
        copy(&draft, &path);
        self.give(&path);
        path
    }

    pub fn link(&self, target: impl AsRef<Path>, name: &str) -> PathBuf {
        let path = self.path(name);
        std::os::unix::fs::symlink(target, &path).unwrap();
        self.give(&path);
        path
    }

    /// The tree that attacks on files act on, made anew.
    pub fn fixture(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        if path.symlink_metadata().is_ok() {
            fs::remove_dir_all(&path).unwrap();
        }
        for dir in ["", "/empty", "/full"] {
            self.dir(&format!("{name}{dir}"));
        }
        let file = self.file(&format!("{name}/file"), "the original text\n");
        rustix::fs::setxattr(&file, "user.kept", b"kept", rustix::fs::XattrFlags::empty()).unwrap();
        self.file(&format!("{name}/second"), "the second text\n");
        self.file(&format!("{name}/full/inner"), "inner text\n");
        self.link("file", &format!("{name}/link"));
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// By another process: a descriptor open for writing here would be in every child that another test forks meanwhile, and the kernel
/// runs no file that anyone has open for writing. Not by a link either: the copy must have one name and an inode of its own.
pub fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("--").arg(from).arg(to).status().unwrap();
    assert!(status.success(), "copy {} to {}", from.display(), to.display());
    fs::set_permissions(to, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The program under test; CONFINE_BIN names another build of it. Without the tables of a debugger, which are nine tenths
/// of a debug build and would be copied into every scratch directory; made once for every test program of one build.
pub fn confine_program() -> PathBuf {
    static STRIPPED: OnceLock<PathBuf> = OnceLock::new();
    let built = || std::env::var_os("CONFINE_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_confine").into());
    STRIPPED.get_or_init(|| stripped("confine", built().as_ref())).clone()
}

/// The same for confine-shell; CONFINE_SHELL_BIN.
pub fn confine_shell_program() -> PathBuf {
    static STRIPPED: OnceLock<PathBuf> = OnceLock::new();
    let built = || {
        std::env::var_os("CONFINE_SHELL_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_confine-shell").into())
    };
    STRIPPED.get_or_init(|| stripped("confine-shell", built().as_ref())).clone()
}

fn stripped(name: &str, built: &Path) -> PathBuf {
    let found = fs::metadata(built).unwrap();
    let name = format!("{name}-{}-{}-{}", found.ino(), found.mtime(), found.mtime_nsec());
    let stripped = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if !stripped.exists() {
        let fresh = stripped.with_extension(std::process::id().to_string());
        let status = Command::new("strip").arg("-o").arg(&fresh).arg(built).status();
        assert!(status.expect("strip is needed: apt-get install binutils").success());
        fs::rename(&fresh, &stripped).unwrap();
    }
    stripped
}

const SOURCES: [(&str, &str); 10] = [
    ("attack.h", include_str!("../attack/attack.h")),
    ("main.c", include_str!("../attack/main.c")),
    ("writes.c", include_str!("../attack/writes.c")),
    ("metadata.c", include_str!("../attack/metadata.c")),
    ("reads.c", include_str!("../attack/reads.c")),
    ("ipc.c", include_str!("../attack/ipc.c")),
    ("process.c", include_str!("../attack/process.c")),
    ("network.c", include_str!("../attack/network.c")),
    ("privilege.c", include_str!("../attack/privilege.c")),
    ("wrappers.c", include_str!("../attack/wrappers.c")),
];

/// Compiled once for every test program of one state of the sources: the name carries their hash. Static, so that it runs in any
/// root; not position-independent, so that its data lies where 32-bit calls reach.
pub fn attack_program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let mut hash = hmac_sha256::Hash::new();
        SOURCES.iter().for_each(|(_, text)| hash.update(text.as_bytes()));
        let name: String = hash.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("attack-{name}"));
        if !built.exists() {
            let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attack");
            let fresh = built.with_extension(std::process::id().to_string());
            let status = Command::new("gcc")
                .args([
                    "-O1",
                    "-static",
                    "-no-pie",
                    "-Wall",
                    "-Wextra",
                    "-Wno-missing-field-initializers",
                    "-o",
                ])
                .arg(&fresh)
                .args(
                    SOURCES
                        .iter()
                        .filter(|(name, _)| name.ends_with(".c"))
                        .map(|(name, _)| sources.join(name)),
                )
                .status()
                .expect("gcc is needed: apt-get install gcc libc6-dev");
            assert!(status.success(), "the attack program does not compile");
            fs::rename(&fresh, &built).unwrap();
        }
        built
    })
}
