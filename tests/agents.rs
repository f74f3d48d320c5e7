//! docs/agents: what is written there is run, as the program that reads it would, and what is not run says so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod clients;
mod common;
mod programs;
mod supervise;

use clients::recipes::pages;

// Run as the pages have it, and in no other mode.
clients::cases! { "recipes_cases.py" in [clients::Mode::Ordinary] =>
    mcp_files
    mcp_token
    mcp_claude
    mcp_codex
    mcp_gemini
    mcp_goose
    mcp_hermes
    mcp_opencode
    mcp_openhands
    agent_aider
    agent_claude
    agent_codex
    agent_gemini
    agent_goose
    agent_hermes
    agent_opencode
    agent_openhands
    aider_commands
    cron
    dev_server
    github_actions
    kubernetes
    slurm
    systemd
    vscode_tasks
}

/// Where the scripts read the blocks from.
const READERS: [&str; 3] = [
    include_str!("clients/recipes_cases.py"),
    include_str!("clients/jupyter_cases.py"),
    include_str!("shell/clients.rs"),
];

#[test]
fn every_named_block_is_read_by_a_case() {
    for name in clients::recipes::named().into_keys() {
        // jupyter_cases.py puts the transport behind this.
        let (shown, suffix) = (format!("\"{name}\""), name.strip_prefix("kernelspec-"));
        let read = READERS.iter().any(|text| text.contains(&shown))
            || suffix.is_some_and(|transport| READERS[1].contains(&format!("cells(\"{transport}\")")));
        assert!(read, "no case reads {name}");
    }
}

#[test]
fn what_is_not_run_says_so() {
    for page in pages().iter().filter(|page| page.name != "README.md") {
        let shown_only = page.blocks.iter().filter(|block| block.name.is_none()).count();
        let said = page.text.replace('\n', " ").matches("not run by the tests").count();
        let run = page.blocks.len() - shown_only;
        assert!(
            said >= shown_only && (run > 0 || said > 0),
            "{}: {shown_only} shown only, {said} said",
            page.name
        );
    }
}

#[test]
fn every_page_is_listed_and_says_what_holds_and_what_to_look_for() {
    let pages = pages();
    let index = &pages.iter().find(|page| page.name == "README.md").unwrap().text;
    for page in pages.iter().filter(|page| page.name != "README.md") {
        assert!(index.contains(&format!("({})", page.name)), "README.md does not list {}", page.name);
        let text = page.text.replace('\n', " ");
        for heading in ["**What holds.**", "**What to look for.**"] {
            assert!(text.contains(heading), "{} does not say: {heading}", page.name);
        }
        assert!(page.text.lines().all(|line| line.len() <= 120 || page.name == "cron.md"), "{}", page.name);
    }
}
