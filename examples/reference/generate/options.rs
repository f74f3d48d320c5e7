//! The options, from the rows that make the help.

use std::fmt::Write;

use clap::{Arg, Command};
use confine::cli;

use super::{code, head, row};

fn shown(arg: &&Arg) -> bool {
    arg.get_long().is_some() && !arg.is_hide_set()
}

fn signature(arg: &Arg) -> String {
    let mut text = arg.get_short().map(|letter| format!("-{letter}, ")).unwrap_or_default();
    text.push_str(&format!("--{}", arg.get_long().unwrap_or_default()));
    if let (true, Some([name, ..])) = (arg.get_action().takes_values(), arg.get_value_names()) {
        text.push_str(&format!(" {name}"));
    }
    code(&text)
}

fn meaning(arg: &Arg) -> String {
    let text = arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn table<'a>(args: impl Iterator<Item = &'a Arg>) -> String {
    let mut text = head(&["option", "meaning"]);
    for arg in args {
        text.push_str(&row([signature(arg), meaning(arg)]));
    }
    text
}

pub fn page() -> String {
    let whole = cli::command();
    let mut text = String::from(
        "# Options\n\nAs `confine --help` has them. The manual pages say more, and how options work together.\n\n    \
         confine [OPTIONS] -- COMMAND [ARG]...\n",
    );
    let mut groups: Vec<&str> = Vec::new();
    for group in whole.get_arguments().filter(shown).filter_map(Arg::get_help_heading) {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    for group in groups {
        let of_group = |arg: &&Arg| arg.get_help_heading() == Some(group);
        let _ = write!(text, "\n## {group}\n\n");
        text.push_str(&table(whole.get_arguments().filter(shown).filter(of_group)));
    }
    for sub in whole.get_subcommands() {
        subcommand(&mut text, &whole, sub);
    }
    text
}

fn subcommand(text: &mut String, whole: &Command, sub: &Command) {
    let of_a_run = |arg: &&Arg| whole.get_arguments().any(|other| other.get_id() == arg.get_id());
    let runs = sub.get_arguments().filter(shown).filter(of_a_run).count();
    let about = sub.get_long_about().or_else(|| sub.get_about()).map(ToString::to_string).unwrap_or_default();
    let _ = write!(text, "\n## confine {}\n\n{}", sub.get_name(), about.trim_end_matches('.'));
    text.push_str(".\n\n");
    // Where a few names are those of a run, they may mean something else here.
    if runs == whole.get_arguments().filter(shown).count() {
        text.push_str("It takes the options of a run, and besides:\n\n");
        text.push_str(&table(sub.get_arguments().filter(shown).filter(|arg| !of_a_run(arg))));
    } else {
        text.push_str(&table(sub.get_arguments().filter(shown)));
    }
}
