//! `confine-shell ARGS`: the same as `confine --profile PROFILE -w WORKSPACE -- SHELL ARGS`, where a file that only
//! the user or the administrator can have written says which. Neither the environment nor anything in a workspace
//! does: whoever wrote the command may have set the one and made the other.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use crate::cli::shell::{Area, ShellFile};
use crate::cli::{self, Invocation};
use crate::error::{Error, Result, paste, show};
use crate::policy::files::{self, Own, SYSTEM_SHELL, Which};
use crate::policy::{Shell, origin};
use crate::view::caller::{PasswdEntry, account};
use crate::view::trace::{Traced, trace};
use crate::view::ways::Ways;

/// What it is installed as; whoever calls it by another name means a shell of that name.
const NAME: &str = "confine-shell";

pub fn invocation(argv: impl IntoIterator<Item = OsString>) -> Result<Invocation> {
    let mut argv = argv.into_iter();
    let called = argv.next();
    let account = account(rustix::process::geteuid().as_raw());
    let own = Own::of_account(account.as_ref().map(|account| account.home.as_path()));
    let find = |which: Which<'_>| files::find_of(&own, which);
    let cwd = working_directory()?;
    let Some(found) = find(Which::Shell)? else { return Err(not_set_up(&own, &cwd, account.as_ref())) };
    let file = ShellFile::read(&found)?;
    let areas = Areas::look(&file)?;
    let start = match &file.start {
        Some(start) if at_home(&cwd, account.as_ref()) => Some(areas.trusted(start)?),
        _ => None,
    };
    let Some((area, workspace)) = areas.holding(start.as_deref().unwrap_or(&cwd))? else {
        return Err(in_none(&file, &cwd, start.as_deref(), account.as_ref()));
    };
    let path = match &file.shell {
        Some((shell, line)) if is_own(shell) => {
            return Err(file
                .wrong(*line, format_args!("shell {}: confine-shell itself", show(shell.as_ref())))
                .with_hint("shell = \"/bin/bash\""));
        }
        Some((shell, _)) => shell.clone(),
        None => usual_shell(account.as_ref())?,
    };
    let name = name(called.as_deref(), &path);
    let command = std::iter::once(path.clone().into()).chain(argv).collect();
    let mut invocation = cli::shell::invocation(&file, area, workspace, start, command, &find)?;
    let policy = &mut invocation.policy;
    policy.shell = Some(Shell { path, name, account, trusts_environment: file.trusts_environment });
    policy.files_read.push(found.file);
    for file in &policy.files_read {
        areas.refuse_inside(file)?;
    }
    Ok(invocation)
}

/// Canonical, whatever PWD says.
fn working_directory() -> Result<PathBuf> {
    let cannot = |error| Error::step("find the working directory", error);
    let cwd = std::env::current_dir().map_err(cannot)?;
    // "(unreachable)/..." (getcwd(3)).
    if cwd.is_absolute() { Ok(cwd) } else { Err(cannot(io::Error::from_raw_os_error(libc::ENOENT))) }
}

/// Where login(1), su(1) and sshd(8) start a shell.
fn at_home(cwd: &Path, account: Option<&PasswdEntry>) -> bool {
    account.is_some_and(|account| trace(&account.home).is_ok_and(|home| home.path == cwd))
}

/// HOME, or what holds it, which no run takes for a workspace.
fn holds_home(cwd: &Path, account: Option<&PasswdEntry>) -> bool {
    account.is_some_and(|account| trace(&account.home).is_ok_and(|home| home.path.starts_with(cwd)))
}

/// The areas of the file that are there, each open to what it is.
struct Areas<'a> {
    found: Vec<(&'a Area, Traced)>,
}

impl<'a> Areas<'a> {
    fn look(file: &'a ShellFile) -> Result<Areas<'a>> {
        let mut found = Vec::with_capacity(file.areas.len());
        for area in &file.areas {
            match trace(&area.base) {
                Ok(traced) => found.push((area, traced)),
                // What is not there, or closed to this user, holds no working directory.
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EACCES)) => {}
                Err(error) => return Err(Error::path("find workspace", &area.base, error)),
            }
        }
        Ok(Areas { found })
    }

    /// The workspace that a path lies in, were this area the only one.
    fn workspace(area: &Area, base: &Traced, path: &Path) -> Option<PathBuf> {
        let below = path.strip_prefix(&base.path).ok()?;
        match (area.each, below.components().next()) {
            (false, _) => Some(base.path.clone()),
            // As in a shell, no name that begins with a dot.
            (true, Some(Component::Normal(name))) if !name.as_bytes().starts_with(b".") => {
                Some(base.path.join(name))
            }
            (true, _) => None,
        }
    }

    /// The deepest workspace that holds the path; of two ways to say it, the one that names it.
    fn holding(&self, path: &Path) -> Result<Option<(&'a Area, PathBuf)>> {
        let workspaces = self
            .found
            .iter()
            .filter_map(|(area, base)| Some((area, base, Self::workspace(area, base, path)?)));
        let rank = |area: &Area| (!area.each, area.profile.is_some());
        let deepest =
            workspaces.max_by_key(|(area, _, workspace)| (workspace.components().count(), rank(area)));
        let Some((area, base, workspace)) = deepest else { return Ok(None) };
        self.refuse_planted(&area.base, base)?;
        Ok(Some((*area, workspace)))
    }

    /// The workspace that a path lies in, below its own name: there a command can have made it.
    fn around(&self, path: &Path) -> Option<PathBuf> {
        let around = |(area, base): &(&Area, Traced)| Self::workspace(area, base, path);
        self.found.iter().filter_map(around).find(|workspace| workspace != path)
    }

    fn trusted(&self, path: &Path) -> Result<PathBuf> {
        let traced = trace(path).map_err(|error| Error::path("find", path, error))?;
        self.refuse_planted(path, &traced)?;
        Ok(traced.path)
    }

    fn refuse_planted(&self, named: &Path, traced: &Traced) -> Result<()> {
        let mut ways = Ways::default();
        for (at, _) in &traced.links {
            if self.around_any(&ways.to(at)?).is_none() {
                continue;
            }
            return Err(Error::usage(format!(
                "workspace {} follows the link {}, which a command may have made",
                show(named.as_os_str()),
                show(at.as_os_str())
            ))
            .with_hint("name the directory itself"));
        }
        Ok(())
    }

    fn around_any(&self, ways: &[PathBuf]) -> Option<PathBuf> {
        ways.iter().find_map(|way| self.around(way))
    }

    /// Also those of workspaces other than this run's: what a command changes there would hold for the next one.
    fn refuse_inside(&self, file: &origin::File) -> Result<()> {
        let Some(place) = &file.place else { return Ok(()) };
        let mut ways = Ways::default();
        for at in place.links.iter().chain([&place.path]) {
            let Some(workspace) = self.around_any(&ways.to(at)?) else { continue };
            return Err(Error::usage(format!(
                "policy file {} lies, or is reached by a link, in {}, where commands can write",
                show(place.named.as_os_str()),
                show(workspace.as_os_str())
            ))
            .with_hint("keep policy files outside every workspace, best in ~/.config/confine"));
        }
        Ok(())
    }
}

/// The login shell; where that is this program or no shell at all, one that is everywhere.
fn usual_shell(account: Option<&PasswdEntry>) -> Result<PathBuf> {
    const NO_SHELL: &[&str] = &["nologin", "false", "true", "sync"];
    let usable = |path: &&Path| {
        let no_shell = NO_SHELL.iter().any(|name| path.file_name() == Some(OsStr::new(name)));
        path.is_absolute() && !no_shell && path.exists() && !is_own(path)
    };
    let login = account.map(|account| account.shell.as_path());
    let shells = login.into_iter().chain([Path::new("/bin/bash"), Path::new("/bin/sh")]);
    shells.filter(|path| usable(path)).map(Path::to_owned).next().ok_or_else(|| {
        Error::refused("neither the login shell nor /bin/bash nor /bin/sh can be used")
            .with_hint("name one in shell.toml: shell = \"/usr/bin/...\"")
    })
}

fn is_own(path: &Path) -> bool {
    let object = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    path.file_name() == Some(OsStr::new(NAME))
        || object(path).is_some_and(|shell| object(Path::new("/proc/self/exe")) == Some(shell))
}

/// The name that the shell sees: what it was called, with its own in place of confine-shell.
fn name(called: Option<&OsStr>, shell: &Path) -> OsString {
    let called = called.unwrap_or_default().as_bytes();
    let (login, word) = match called.strip_prefix(b"-") {
        Some(word) => (true, word),
        None => (false, called),
    };
    if !word.is_empty() && Path::new(OsStr::from_bytes(word)).file_name() != Some(OsStr::new(NAME)) {
        return OsStr::from_bytes(called).to_owned();
    }
    let short = shell.file_name().unwrap_or(shell.as_os_str());
    match (login, word.contains(&b'/')) {
        (true, _) => [OsStr::new("-"), short].into_iter().collect(),
        (false, true) => shell.into(),
        (false, false) if word.is_empty() => shell.into(),
        (false, false) => short.to_owned(),
    }
}

fn not_set_up(own: &Own, cwd: &Path, account: Option<&PasswdEntry>) -> Error {
    let user = own.shell();
    let places: Vec<PathBuf> = user.clone().into_iter().chain([SYSTEM_SHELL.into()]).collect();
    let names: Vec<String> = places.iter().map(|path| show(path.as_os_str()).to_string()).collect();
    let error = Error::refused(format!(
        "confine-shell is not set up: there is no {} to say which directories a command may change",
        names.join(" and no ")
    ));
    // No decision hangs on it, and a command that lies to itself gets the wrong advice.
    if std::env::var_os("CONFINE").is_some() {
        return error.with_hint("inside a boundary any other shell is confined as well: `bash`");
    }
    let path = user.unwrap_or_else(|| SYSTEM_SHELL.into());
    let directory = path.parent().unwrap_or(Path::new("/"));
    let (workspace, more) = match holds_home(cwd, account) {
        true => (
            "'~/src/*'".to_owned(),
            "  # each directory there; HOME is too broad. For a shell that begins in HOME add: start = '~/src/PROJECT'",
        ),
        false => (quoted(cwd), ""),
    };
    error.with_hint(format!(
        "mkdir -p {} && printf '%s\\n' {} > {}{more}",
        paste(directory.as_os_str()),
        paste(format!("workspaces = [{workspace}]").as_ref()),
        paste(path.as_os_str())
    ))
}

fn in_none(file: &ShellFile, cwd: &Path, start: Option<&Path>, account: Option<&PasswdEntry>) -> Error {
    if let Some(start) = start {
        return file.wrong(
            file.start_line,
            format_args!("start {}: in none of the workspaces", show(start.as_os_str())),
        );
    }
    let error = Error::refused(format!(
        "the working directory {} is in none of the workspaces of {}",
        show(cwd.as_os_str()),
        file.file
    ));
    if holds_home(cwd, account) {
        return error.with_hint(
            "go to a workspace, or add a first line that says where a shell begins that is started in HOME: \
             start = '~/src/PROJECT'",
        );
    }
    error.with_hint(match file.workspaces_line {
        Some(line) => format!("to let commands change it, add to line {line}: {}", quoted(cwd)),
        None => format!("to let commands change it, add a first line: workspaces = [{}]", quoted(cwd)),
    })
}

/// A string of TOML.
fn quoted(path: &Path) -> String {
    match path.to_str() {
        Some(text) if !text.contains(|c: char| c.is_control() || c == '\'') => format!("'{text}'"),
        _ => "'...'".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_is_called_as_confine_shell_was() {
        for (called, seen) in [
            (Some("/usr/bin/confine-shell"), "/bin/bash"),
            (Some("confine-shell"), "bash"),
            (Some("-confine-shell"), "-bash"),
            (Some("-/usr/bin/confine-shell"), "-bash"),
            (Some("-"), "-bash"),
            (Some("bash"), "bash"),
            (Some("-bash"), "-bash"),
            (Some("sh"), "sh"),
            (Some("/x/sh"), "/x/sh"),
            (Some(""), "/bin/bash"),
            (None, "/bin/bash"),
        ] {
            assert_eq!(name(called.map(OsStr::new), Path::new("/bin/bash")), seen, "{called:?}");
        }
    }
}
