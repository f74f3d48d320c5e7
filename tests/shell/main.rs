//! confine-shell: a shell to whoever starts one, and by whose word it opens what.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;

#[allow(dead_code)]
#[path = "../clients/recipes.rs"]
mod recipes;

mod argv;
mod clients;
mod trust;

use std::ffi::OsStr;
use std::path::PathBuf;

use common::scratch::{confine_shell_program, copy};
use common::*;

/// Below the test's directory, for both identities: a home, its shell.toml, and confine-shell beside confine.
struct Account {
    scratch: Scratch,
    /// More of root's commands in the mount namespace of a run.
    machine: String,
    login: &'static str,
}

impl Account {
    /// With the usual workspace.
    fn new(who: Who) -> Self {
        let account = Self::bare(who);
        account.write(&format!("workspaces = ['{}']\n", account.scratch.workspace().display()));
        account
    }

    /// Without a file.
    fn bare(who: Who) -> Self {
        let scratch = Scratch::new(who);
        copy(&confine_shell_program(), &scratch.path("bin/confine-shell"));
        Account { scratch, machine: String::new(), login: "/bin/bash" }
    }

    fn write(&self, text: &str) -> PathBuf {
        for dir in ["home/.config", "home/.config/confine"] {
            self.scratch.dir(dir);
        }
        self.scratch.file("home/.config/confine/shell.toml", text)
    }

    fn program(&self) -> PathBuf {
        self.scratch.path("bin/confine-shell")
    }

    /// In a mount namespace in which the identity is in the password file, and /etc/confine is the test's.
    fn run(&self) -> Run {
        let home = self.scratch.home();
        let entry = format!(
            "root:x:0:0:root:{0}:{1}\ntester:x:{USER}:{USER}:Tester:{0}:{1}\n",
            home.display(),
            self.login
        );
        let script = format!(
            "mount -t tmpfs -o mode=755 tmpfs /mnt && cp -a /etc/. /mnt/ && mkdir -p /mnt/confine && \
             chmod 755 /mnt/confine && mount --move /mnt /etc || exit 99; umask 022; \
             printf '%s' '{entry}' > /etc/passwd; {}\nexec \"$@\"",
            self.machine
        );
        let run = Run::plain(&self.scratch).by(Who::Root).under([
            "unshare",
            "-m",
            "--propagation",
            "private",
            "bash",
            "-c",
            &script,
            "machine",
        ]);
        match self.scratch.who {
            Who::Root => run,
            Who::User => {
                let id = USER.to_string();
                run.under(["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"])
            }
        }
    }

    fn shell<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Run {
        let mut command = vec![self.program().into_os_string()];
        command.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self.run().command(command)
    }

    /// A script under the shell's own name for itself.
    fn script(&self, script: &str) -> Outcome {
        self.shell(["-c", script]).run()
    }
}
