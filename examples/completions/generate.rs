//! What clap writes, and the small part by hand that it cannot know: the command after `--`, and the names of the
//! user's own profiles. The two stay apart until they are written into one file, since a shell loads one.

use clap::Command;
use clap_complete::{Generator, Shell, generate};
use confine::cli;

const BASH: &str = include_str!("by-hand.bash");
const ZSH: &str = include_str!("by-hand.zsh");
const FISH: &str = include_str!("by-hand.fish");
const ELVISH: &str = include_str!("by-hand.elv");

/// Each file of `completions/` by name.
pub fn files() -> Vec<(&'static str, String)> {
    let after = |generated: String, by_hand: &str| generated + "\n" + by_hand;
    vec![
        ("confine.bash", after(generated(Shell::Bash), BASH)),
        ("_confine", zsh(&generated(Shell::Zsh))),
        ("confine.fish", after(generated(Shell::Fish), &FISH.replace("@SUBCOMMANDS@", &subcommands()))),
        ("confine.elv", after(generated(Shell::Elvish), &ELVISH.replace("@VALUES@\n", &elvish_values()))),
        // What this shell is not told of it takes for a mistake.
        ("confine.nu", written(clap_complete_nushell::Nushell, cli::command())),
    ]
}

fn generated(shell: impl Generator) -> String {
    written(shell, without_positional(&cli::command(), "command"))
}

fn written(shell: impl Generator, mut command: Command) -> String {
    let mut written = Vec::new();
    generate(shell, &mut command, "confine", &mut written);
    let text = String::from_utf8_lossy(&written).into_owned();
    // Some generators leave blanks at the ends of lines.
    let mut lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    while lines.last() == Some(&"") {
        lines.pop();
    }
    lines.join("\n") + "\n"
}

/// COMMAND stands after `--`, where the part by hand takes over; a generator would offer it anywhere, and zsh's
/// takes the name of a subcommand for one.
fn without_positional(command: &Command, name: &str) -> Command {
    let mut left = Command::new(command.get_name().to_owned())
        .disable_help_subcommand(true)
        .args(command.get_arguments().filter(|arg| arg.get_id() != name))
        .subcommands(command.get_subcommands().map(|sub| without_positional(sub, name)));
    if let Some(version) = command.get_version() {
        left = left.version(version.to_owned());
    }
    if let Some(about) = command.get_about() {
        left = left.about(about.clone());
    }
    left
}

fn subcommands() -> String {
    cli::command().get_subcommands().map(Command::get_name).collect::<Vec<_>>().join(" ")
}

/// The last lines of zsh's file call the function that the part by hand wraps.
fn zsh(generated: &str) -> String {
    let call = "if [ \"$funcstack[1]\" = \"_confine\" ]";
    match generated.split_once(call) {
        Some((functions, rest)) => format!("{functions}{ZSH}\n{call}{rest}"),
        None => format!("{generated}\n{ZSH}"),
    }
}

/// clap gives elvish names only: which option takes a path or one of a few words is told here.
fn elvish_values() -> String {
    let mut command: Command = cli::command();
    command.build();
    let mut rows = String::new();
    let takes_values = |arg: &&clap::Arg| arg.get_action().takes_values() && !arg.is_positional();
    for arg in command.get_arguments().filter(takes_values) {
        let words: Vec<String> =
            arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
        let value = match arg.get_value_hint() {
            clap::ValueHint::DirPath | clap::ValueHint::AnyPath => "path".to_owned(),
            _ => format!("[{}]", words.join(" ")),
        };
        let long = arg.get_long().map(|name| format!("--{name}"));
        for name in arg.get_short().map(|letter| format!("-{letter}")).into_iter().chain(long) {
            rows.push_str(&format!("  &{name}={value}\n"));
        }
    }
    rows
}
