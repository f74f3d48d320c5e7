//! Agents of the user, by the settings they have in known places: what they start without confine around it.

use std::path::Path;

use serde_json::Value;

use super::{Findings, Rule, Setup, Severity};
use crate::error::show;
use crate::view::caller::read_bounded;

const LIMIT: u64 = 4 << 20;

/// How a settings file is read.
enum Form {
    /// With comments and trailing commas taken out, if it has any.
    Json,
    /// TOML or YAML: lines of `key = value` or `key: value`.
    Lines,
}

struct Agent {
    name: &'static str,
    /// Below HOME.
    path: &'static str,
    form: Form,
    /// It runs commands of a model in a shell, which these settings would name.
    shell: bool,
    /// Where tool servers are named: a key whose members each have a command.
    servers: &'static [&'static str],
}

const fn agent(
    name: &'static str,
    path: &'static str,
    form: Form,
    shell: bool,
    servers: &'static [&'static str],
) -> Agent {
    Agent { name, path, form, shell, servers }
}

const AGENTS: &[Agent] = &[
    agent("Claude Code", ".claude/settings.json", Form::Json, true, &["mcpServers"]),
    agent("Claude Code", ".claude.json", Form::Json, false, &["mcpServers"]),
    agent("Claude Desktop", ".config/Claude/claude_desktop_config.json", Form::Json, false, &["mcpServers"]),
    agent("Codex", ".codex/config.toml", Form::Lines, true, &["mcp_servers"]),
    agent("Gemini CLI", ".gemini/settings.json", Form::Json, true, &["mcpServers"]),
    agent("Qwen Code", ".qwen/settings.json", Form::Json, true, &["mcpServers"]),
    agent("opencode", ".config/opencode/opencode.json", Form::Json, true, &["mcp"]),
    agent("opencode", ".config/opencode/opencode.jsonc", Form::Json, true, &["mcp"]),
    agent("Goose", ".config/goose/config.yaml", Form::Lines, true, &["extensions"]),
    agent("aider", ".aider.conf.yml", Form::Lines, true, &[]),
    agent("VS Code", ".config/Code/User/settings.json", Form::Json, true, &["mcp"]),
    agent("VS Code", ".config/Code/User/mcp.json", Form::Json, false, &["servers"]),
    agent("VSCodium", ".config/VSCodium/User/settings.json", Form::Json, true, &["mcp"]),
    agent("Cursor", ".cursor/mcp.json", Form::Json, false, &["mcpServers"]),
    agent("Windsurf", ".codeium/windsurf/mcp_config.json", Form::Json, false, &["mcpServers"]),
    agent("Zed", ".config/zed/settings.json", Form::Json, true, &["context_servers"]),
];

const SHELL: Rule = Rule {
    id: "agent-shell-unconfined",
    severity: Severity::High,
    why: "what a model tells it to run has all your rights",
    fix: "name `confine-shell` as its shell, or put `confine -w . --` before what it starts: {}",
};
const SERVER: Rule = Rule {
    id: "agent-server-unconfined",
    severity: Severity::Medium,
    why: "a tool server is somebody's program, runs for as long as the agent does, and has all your rights",
    fix: "make `confine` its command, and `-w DIR -- COMMAND` its first arguments: {}",
};
const UNREADABLE: Rule = Rule {
    id: "agent-settings-unreadable",
    severity: Severity::Low,
    why: "what the agent starts is not known",
    fix: "look at {} yourself",
};

pub fn look(setup: &Setup, findings: &mut Findings) {
    let Some(home) = &setup.home else { return };
    for agent in AGENTS {
        let path = home.join(agent.path);
        match read_bounded(&path, LIMIT) {
            Ok(bytes) => judge(findings, agent, &path, &String::from_utf8_lossy(&bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                let what =
                    format!("{} cannot be read: {}", show(path.as_os_str()), crate::error::describe(&error));
                findings.add(&UNREADABLE, Some(&path), what);
            }
        }
    }
}

fn judge(findings: &mut Findings, agent: &Agent, path: &Path, text: &str) {
    let found = match agent.form {
        Form::Lines => Some(lines(agent, text)),
        Form::Json => json(agent, text),
    };
    let Some(Found { shell, servers }) = found else {
        let what = format!("{} is not JSON", show(path.as_os_str()));
        return findings.add(&UNREADABLE, Some(path), what);
    };
    if agent.shell && !shell {
        let what = format!("{} runs commands without confine, by {}", agent.name, show(path.as_os_str()));
        findings.add(&SHELL, Some(path), what);
    }
    for name in servers {
        let what = format!("{} starts the tool server {} without confine", agent.name, show(name.as_ref()));
        findings.add(&SERVER, Some(path), what);
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    /// Some value outside of the servers names confine.
    shell: bool,
    /// Servers whose command does not.
    servers: Vec<String>,
}

/// A program of this name, by any path, as a word of the value.
fn names_confine(value: &str) -> bool {
    value
        .split(|c: char| c.is_whitespace() || "\"',[]".contains(c))
        .any(|word| matches!(word.rsplit('/').next(), Some("confine" | "confine-shell")))
}

fn json(agent: &Agent, text: &str) -> Option<Found> {
    let mut value: Value = serde_json::from_str(text).or_else(|_| serde_json::from_str(&plain(text))).ok()?;
    let mut found = Found::default();
    servers(agent, &mut value, &mut found, 0);
    found.shell = any_text(&value, &names_confine);
    Some(found)
}

/// Takes the servers out, wherever their key stands, so that theirs is not taken for the shell's.
fn servers(agent: &Agent, value: &mut Value, found: &mut Found, depth: u32) {
    let Value::Object(members) = value else { return };
    for key in agent.servers {
        if let Some(Value::Object(named)) = members.remove(*key) {
            for (name, server) in named {
                if name == "servers"
                    && let Value::Object(inner) = server
                {
                    inner.iter().for_each(|(name, server)| one_server(name, server, found));
                } else {
                    one_server(&name, &server, found);
                }
            }
        }
    }
    if depth < 3 {
        members.values_mut().for_each(|member| servers(agent, member, found, depth + 1));
    }
}

fn one_server(name: &str, server: &Value, found: &mut Found) {
    // Without a command it is reached over the network and nothing is started.
    let command = match &server["command"] {
        Value::String(command) => command,
        Value::Array(words) => words.first().and_then(Value::as_str).unwrap_or_default(),
        Value::Object(command) => command.get("path").and_then(Value::as_str).unwrap_or_default(),
        _ => return,
    };
    if !names_confine(command) {
        found.servers.push(name.to_owned());
    }
}

fn any_text(value: &Value, test: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => test(text),
        Value::Array(list) => list.iter().any(|value| any_text(value, test)),
        Value::Object(members) => members.values().any(|value| any_text(value, test)),
        _ => false,
    }
}

/// JSON as editors write it: without comments, and without commas before a closing bracket.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut quoted = false;
    while let Some(c) = rest.next() {
        if quoted {
            plain.push(c);
            match c {
                '\\' => plain.extend(rest.next()),
                '"' => quoted = false,
                _ => {}
            }
            continue;
        }
        match (c, rest.peek()) {
            ('/', Some('/')) => while rest.next_if(|c| *c != '\n').is_some() {},
            ('/', Some('*')) => {
                let mut last = ' ';
                rest.next();
                for c in rest.by_ref() {
                    if last == '*' && c == '/' {
                        break;
                    }
                    last = c;
                }
            }
            (']' | '}', _) => {
                let end = plain.trim_end().len();
                if plain[..end].ends_with(',') {
                    plain.truncate(end - 1);
                }
                plain.push(c);
            }
            _ => {
                quoted = c == '"';
                plain.push(c);
            }
        }
    }
    plain
}

/// Sections of TOML by their heading, blocks of YAML by their indent.
fn lines(agent: &Agent, text: &str) -> Found {
    let mut found = Found::default();
    let mut section: Option<String> = None;
    let mut block: Option<(usize, Option<String>)> = None;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(heading) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let server = agent.servers.iter().find_map(|key| heading.strip_prefix(key)?.strip_prefix('.'));
            section =
                server.map(|name| name.split('.').next().unwrap_or_default().trim_matches('"').to_owned());
            continue;
        }
        let (key, value) = line.split_once(['=', ':']).unwrap_or((line, ""));
        let (key, value) = (key.trim(), value.trim());
        if let Some((outer, _)) = &block
            && indent <= *outer
        {
            block = None;
        }
        if value.is_empty() && agent.servers.contains(&key) {
            block = Some((indent, None));
        } else if let Some((outer, name)) = &mut block
            && value.is_empty()
            && indent <= *outer + 4
        {
            *name = Some(key.to_owned());
        }
        let server = section.clone().or_else(|| block.as_ref().and_then(|(_, name)| name.clone()));
        match server {
            Some(name) if matches!(key, "command" | "cmd") => {
                if !names_confine(value) {
                    found.servers.push(name);
                }
            }
            Some(_) => {}
            None => found.shell |= names_confine(value),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, text: &str) -> Found {
        let agent = AGENTS.iter().find(|agent| agent.path == name).unwrap();
        match agent.form {
            Form::Json => json(agent, text).unwrap(),
            Form::Lines => lines(agent, text),
        }
    }

    #[test]
    fn each_form_tells_confined_servers_and_shells_from_others() {
        let loose = Found { shell: false, servers: vec!["a".into()] };
        let tight = Found { shell: true, servers: Vec::new() };
        for (path, open, closed) in [
            (
                ".claude/settings.json",
                r#"{"env":{"X":"confined"},"mcpServers":{"a":{"command":"npx"},"net":{"url":"https://x"}}}"#,
                r#"{"env":{"SHELL":"/usr/bin/confine-shell"},"mcpServers":{"a":{"command":"/usr/bin/confine"}}}"#,
            ),
            (
                ".config/Code/User/settings.json",
                "{ // a comment with \"confine\"\n \"mcp\": {\"servers\": {\"a\": {\"command\": \"node\"},}}, }",
                "{ \"terminal\": {\"path\": \"confine-shell\",}, /* x */ }",
            ),
            (
                ".codex/config.toml",
                "model = \"x\"\n[mcp_servers.a]\ncommand = \"npx\"\nargs = [\"confine\"]\n",
                "notify = [\"confine\", \"-w\"]\n[mcp_servers.a]\ncommand = \"confine\"\n",
            ),
            (
                ".config/goose/config.yaml",
                "extensions:\n  a:\n    cmd: uvx\n    type: stdio\nmodel: x\n",
                "extensions:\n  a:\n    cmd: confine\nshell: confine-shell\n",
            ),
            (
                ".config/opencode/opencode.json",
                r#"{"mcp":{"a":{"command":["bun","x"]}}}"#,
                r#"{"shell":"confine-shell"}"#,
            ),
        ] {
            assert_eq!(of(path, open), loose, "{path}");
            assert_eq!(of(path, closed), tight, "{path}");
        }
    }

    #[test]
    fn a_name_that_only_begins_so_is_another_program() {
        for (value, expected) in [
            ("confine", true),
            ("/usr/bin/confine -w . --", true),
            ("confined", false),
            ("/confine/x", false),
        ] {
            assert_eq!(names_confine(value), expected, "{value}");
        }
    }
}
