//! The completions in the shells they are for, typed at a terminal and read off its screen.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const HERE: &str = env!("CARGO_MANIFEST_DIR");
const PROMPT: &str = "ready> ";

/// A shell with the completions at a terminal of its own, in a directory with a few files.
struct Terminal {
    home: PathBuf,
}

impl Terminal {
    fn of(shell: &str) -> Terminal {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("completions-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(home.join("work/only-directory")).unwrap();
        fs::write(home.join("work/only-file"), "").unwrap();
        fs::create_dir_all(home.join(".config/confine/profiles")).unwrap();
        fs::write(home.join(".config/confine/profiles/reading-mine.toml"), "read-only = true\n").unwrap();
        let line = start(shell, &home);
        let terminal = Terminal { home };
        let mut words = vec!["-f", "/dev/null", "new-session", "-d", "-x", "150", "-y", "50", "-c"];
        let work = terminal.home.join("work");
        words.extend([work.to_str().unwrap(), &line]);
        terminal.tmux(&words);
        terminal.wait_for(|screen| screen.trim_end().ends_with(PROMPT.trim_end()), "its prompt");
        terminal
    }

    fn tmux(&self, words: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command
            .arg("-S")
            .arg(self.home.join("s"))
            .args(words)
            .env("HOME", &self.home)
            .env("LC_ALL", "C.UTF-8");
        let output = command.output().expect("tmux, which tests/packages lists");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"]).trim_end().to_owned()
    }

    fn wait_for(&self, found: impl Fn(&str) -> bool, what: &str) -> String {
        let begin = Instant::now();
        loop {
            let screen = self.screen();
            if found(&screen) {
                return screen;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "no {what} on the screen:\n{screen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn type_and_press_tab(&self, line: &str) {
        self.tmux(&["send-keys", "-l", line]);
        self.wait_for(|screen| screen.ends_with(line.trim_end()), line);
        self.tmux(&["send-keys", "Tab"]);
    }

    /// What is on the screen when nothing has changed there for a while.
    fn settled(&self) -> String {
        let mut last = self.screen();
        let mut since = Instant::now();
        while since.elapsed() < Duration::from_millis(400) {
            std::thread::sleep(Duration::from_millis(50));
            let screen = self.screen();
            if screen != last {
                (last, since) = (screen, Instant::now());
            }
        }
        last
    }

    /// A line is typed and TAB pressed: all that is wanted appears, at the second press at the latest, for the first
    /// one may do no more than write what all candidates begin with.
    fn completes(&self, line: &str, wanted: &[&str]) {
        self.type_and_press_tab(line);
        let all = |screen: &str| wanted.iter().all(|word| screen.contains(word));
        if !all(&self.settled()) {
            self.tmux(&["send-keys", "Tab"]);
            self.wait_for(all, &format!("{wanted:?}"));
        }
        self.clear();
    }

    fn does_not_complete(&self, line: &str, unwanted: &str) {
        self.type_and_press_tab(line);
        let screen = self.settled();
        assert!(!screen.contains(unwanted), "{unwanted} on the screen:\n{screen}");
        self.clear();
    }

    fn clear(&self) {
        let ready = |screen: &str| screen.lines().last().is_some_and(|line| line.trim() == PROMPT.trim_end());
        // The first one may leave a menu and no more.
        for _ in 0..2 {
            self.tmux(&["send-keys", "C-c"]);
            self.settled();
        }
        self.wait_for(ready, "prompt");
        self.tmux(&["send-keys", "clear", "Enter"]);
        self.wait_for(|screen| screen.trim() == PROMPT.trim_end(), "empty screen");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = Command::new("tmux").arg("-S").arg(self.home.join("s")).arg("kill-server").output();
        let _ = fs::remove_dir_all(&self.home);
    }
}

/// Writes the settings of a shell below `home`, installs the completions as a package would, and says how it starts.
fn start(shell: &str, home: &Path) -> String {
    let file = |name: &str| format!("{HERE}/completions/{name}");
    let write = |name: &str, text: &str| {
        let path = home.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    // fish asks nobody about a command that is not there.
    let programs = Path::new(env!("CARGO_BIN_EXE_confine")).parent().unwrap().display();
    let clean = format!(
        "exec env -i HOME='{0}' PATH=\"{programs}:$PATH\" TERM=screen LC_ALL=C.UTF-8 XDG_CONFIG_HOME='{0}/.config'",
        home.display()
    );
    match shell {
        "bash" => {
            let rc = write(
                ".bashrc",
                &format!(
                    "PS1='{PROMPT}'; bind 'set show-all-if-ambiguous on'; bind 'set page-completions off'\n\
                     . /usr/share/bash-completion/bash_completion; . '{}'\n",
                    file("confine.bash")
                ),
            );
            format!("{clean} bash --noprofile --rcfile '{rc}' -i")
        }
        "zsh" => {
            write(
                ".zshrc",
                &format!(
                    "PS1='{PROMPT}'; fpath=('{HERE}/completions' $fpath); LISTMAX=1000\n\
                     autoload -U compinit; compinit -u -d \"$HOME/dump\"\n"
                ),
            );
            format!("{clean} ZDOTDIR=\"{}\" zsh -i", home.display())
        }
        "fish" => {
            write(
                ".config/fish/completions/confine.fish",
                &fs::read_to_string(file("confine.fish")).unwrap(),
            );
            write(
                ".config/fish/config.fish",
                &format!(
                    "set -g fish_greeting; set -g fish_autosuggestion_enabled 0\n\
                     function fish_prompt; printf '{PROMPT}'; end\n"
                ),
            );
            format!("{clean} fish -i")
        }
        "elvish" => {
            let rc = write(
                "rc.elv",
                &format!(
                    "set edit:prompt = {{ put '{PROMPT}' }}; set edit:rprompt = {{ }}\n\
                     set edit:completion:arg-completer[probe] = {{|@words| put alpha alphabet }}\n{}",
                    fs::read_to_string(file("confine.elv")).unwrap()
                ),
            );
            format!("{clean} elvish -rc '{rc}'")
        }
        _ => unreachable!(),
    }
}

/// What holds in every shell. A profile is built in, or the user's own.
fn options_values_and_files_are_completed(shell: &str) -> Terminal {
    let terminal = Terminal::of(shell);
    terminal.completes("confine --w", &["--workspace", "--waive"]);
    terminal.completes("confine --workspa", &["confine --workspace"]);
    terminal.completes("confine -w . --require path-", &["--require path-hiding"]);
    terminal.completes("confine -w . --waive proc", &["process-scope", "process-hiding"]);
    terminal.completes("confine -w . --net ho", &["--net host"]);
    terminal.completes("confine -w . --ro only-", &["only-file", "only-directory"]);
    terminal.completes("confine -w . --profile read", &["read-only", "reading-mine"]);
    terminal.completes("confine -w . --profile dev-s", &["--profile dev-server"]);
    terminal.completes("confine expl", &["confine explain"]);
    terminal.completes("confine scan --sep", &["confine scan --separate"]);
    terminal.completes("confine -w . -- setpri", &["-- setpriv"]);
    terminal.completes("confine -w . -- cat only-f", &["cat only-file"]);
    // Options after the separator are the command's.
    terminal.does_not_complete("confine -w . -- cat --works", "--workspace");
    terminal
}

fn git_is_completed_as_it_is_alone(terminal: &Terminal) {
    let wanted = ["checkout", "cherry-pick"];
    terminal.completes("git che", &wanted);
    terminal.completes("confine -w . -- git che", &wanted);
    terminal.completes("confine explain -w . -- git che", &wanted);
}

#[test]
fn bash_completes_options_files_and_the_command_after_the_separator() {
    let terminal = options_values_and_files_are_completed("bash");
    git_is_completed_as_it_is_alone(&terminal);
}

#[test]
fn zsh_completes_options_files_and_the_command_after_the_separator() {
    let terminal = options_values_and_files_are_completed("zsh");
    git_is_completed_as_it_is_alone(&terminal);
}

#[test]
fn fish_completes_options_files_and_the_command_after_the_separator() {
    let terminal = options_values_and_files_are_completed("fish");
    git_is_completed_as_it_is_alone(&terminal);
}

#[test]
fn elvish_completes_options_files_and_the_command_after_the_separator() {
    let terminal = options_values_and_files_are_completed("elvish");
    // It has no completion of git's: a command of the test's own stands for one.
    terminal.completes("probe al", &["alpha", "alphabet"]);
    terminal.completes("confine -w . -- probe al", &["alpha", "alphabet"]);
}

/// nushell is told of a command's words, and refuses a line with others: so it must run one as well.
#[test]
fn nushell_knows_the_command_completes_promises_and_runs_it() {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("completions-nu-{}", std::process::id()));
    fs::create_dir_all(home.join("work")).unwrap();
    let use_it = format!("use '{HERE}/completions/confine.nu' *\n");
    let typed = format!("{use_it}confine -w . --require path-");
    fs::write(home.join("work/typed.nu"), &typed).unwrap();
    let own = Path::new(HERE).join("target/nushell/node_modules/@nushell/linux-x64/bin/nu");
    let program = which::which("nu").unwrap_or(own);
    let programs = Path::new(env!("CARGO_BIN_EXE_confine")).parent().unwrap().to_owned();
    let path = std::env::join_paths(
        std::iter::once(programs).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let nu = |words: &[&str]| {
        let mut command = Command::new(&program);
        command.arg("--no-config-file").args(words).current_dir(home.join("work"));
        command.env("PATH", path.as_ref().unwrap()).env("HOME", home.join("none"));
        let output = command.output().unwrap_or_else(|error| panic!("nu, which tests/run installs: {error}"));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && said.is_empty(), "{words:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    };
    let completed = nu(&["--ide-complete", &typed.len().to_string(), "typed.nu"]);
    assert!(completed.contains("\"path-hiding\"") && !completed.contains("teardown"), "{completed}");
    let ran = nu(&["-c", &format!("{use_it}confine -w . --ro /usr --ro /etc -- sh -c 'echo ran $0' --json")]);
    assert_eq!(ran, "ran --json\n");
    fs::remove_dir_all(home).unwrap();
}
