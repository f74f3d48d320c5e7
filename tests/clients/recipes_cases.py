"""The recipes of docs/agents, run as the program that reads them does. Each case runs outside, and judges from there."""
import json
import os
import re
import select
import shlex
import socket
import subprocess
import sys
import time
import tomllib

import yaml

from subprocess_cases import CONFINE, MARK, await_marked, gone, marked

SCRATCH = os.environ["SCRATCH"]
WORK = os.path.join(SCRATCH, "w")
HOME = os.path.join(SCRATCH, "home")
MCP = os.path.join(SCRATCH, "mcp")
OUTSIDE = os.path.join(SCRATCH, "outside")
STUBS = os.path.join(SCRATCH, "stub", "bin")
# `confine` is what the pages say, and found as it would be.
PATH = os.pathsep.join([os.path.dirname(CONFINE[0]), STUBS, os.environ["PATH"]])
ENVIRONMENT = {**os.environ, "PATH": PATH, "SECRET_OF_THE_CALLER": "secret"}
os.environ["PATH"] = PATH


def recipe(name):
    with open(os.path.join(SCRATCH, "recipes", name)) as file:
        text = file.read()
    assert "confine" in text
    return text.replace("/home/you/project", WORK).replace("/srv/mcp", MCP).replace("/home/you", HOME)


def program(path, text):
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, 0o755)


def target(name):
    """What `make` is told to do: something that works, and something that does not."""
    with open("Makefile", "w") as file:
        file.write(f"{name}:\n\t@echo made >made; echo confined-$(CONFINE)\n"
                   f"\t@! (echo x >{HOME}/.ssh/made) 2>/dev/null; ! cat {HOME}/.ssh/id 2>/dev/null\n")


def made():
    assert open("made").read() == "made\n"
    assert not os.path.exists(f"{HOME}/.ssh/made")
    os.remove("made")


class Server:
    """A client of one MCP server: JSON objects by the line, over pipes."""

    def __init__(self, command, args, env, cwd=None):
        self.child = subprocess.Popen([command, *args], env={**ENVIRONMENT, **env}, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd)
        self.number = 0
        answer = self.ask("initialize", {"protocolVersion": "2024-11-05", "capabilities": {},
                                         "clientInfo": {"name": "tests", "version": "1"}})
        assert "serverInfo" in answer, answer
        self.send({"method": "notifications/initialized"})

    def send(self, message):
        self.child.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.child.stdin.flush()

    def ask(self, method, params):
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        while True:
            ready, _, _ = select.select([self.child.stdout], [], [], 40)
            line = self.child.stdout.readline() if ready else ""
            assert line, f"no answer to {method}: {self.errors()}"
            message = json.loads(line)
            if message.get("id") == self.number:
                return message["result"]

    def errors(self):
        self.child.kill()
        return self.child.stderr.read()

    def call(self, tool, **arguments):
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        return answer["content"][0]["text"], answer.get("isError", False)

    def stop(self):
        self.child.stdin.close()
        self.child.terminate()
        self.child.wait(30)
        self.child.stdout.close()


def files(command, args, env, cwd=None):
    """The published file server: what it may write, and what it gets to see."""
    at = args.index(WORK, args.index("--"))
    # The server's own list of directories would refuse the rest: confine has to.
    server = Server(command, [*args[:at], WORK, *args[at + 1:], "/"], env, cwd)
    try:
        assert "write_file" in [tool["name"] for tool in server.ask("tools/list", {})["tools"]]
        text, error = server.call("write_file", path=f"{WORK}/made", content="by a server\n")
        assert not error, text
        assert open("made").read() == "by a server\n"
        text, error = server.call("read_text_file", path=f"{WORK}/own/own")
        assert not error and "my own" in text, text
        for path in (f"{HOME}/.ssh/id", f"/proc/{os.getpid()}/environ"):
            text, error = server.call("read_text_file", path=path)
            assert error and "secret" not in text, text
        text, error = server.call("write_file", path=f"{MCP}/made", content="x")
        assert error and not os.path.exists(f"{MCP}/made"), text
    finally:
        server.stop()


def mcp_files():
    [server] = json.loads(recipe("mcp-files"))["mcpServers"].values()
    assert set(server) == {"command", "args"}
    files(server["command"], server["args"], {})


TRACKER = """
const net = require('net');
require('readline').createInterface({ input: process.stdin }).on('line', line => {
  const { id, method, params } = JSON.parse(line);
  const answer = result => console.log(JSON.stringify({ jsonrpc: '2.0', id, result }));
  if (method === 'initialize') answer({ protocolVersion: '2024-11-05', capabilities: {}, serverInfo: { name: 't', version: '1' } });
  if (method === 'tools/call' && params.name === 'environment') answer({ content: [{ text: JSON.stringify(process.env) }] });
  if (method === 'tools/call' && params.name === 'connect') {
    const socket = net.connect(params.arguments.port, '127.0.0.1');
    socket.on('connect', () => { answer({ content: [{ text: 'connected' }] }); socket.destroy(); });
    socket.on('error', error => answer({ content: [{ text: error.code }] }));
  }
});
"""


def mcp_token():
    with open(f"{MCP}/tracker.js", "w") as file:
        file.write(TRACKER)
    [server] = json.loads(recipe("mcp-token"))["mcpServers"].values()
    listener = socket.create_server(("127.0.0.1", 0))
    server = Server(server["command"], server["args"], server["env"])
    try:
        seen = json.loads(server.call("environment")[0])
        assert seen["TRACKER_TOKEN"] == "a secret" and seen["CONFINE"] == "1"
        assert "SECRET_OF_THE_CALLER" not in seen, seen
        line = open(f"/proc/{server.child.pid}/cmdline").read()
        assert "a secret" not in line
        assert server.call("connect", port=listener.getsockname()[1])[0] == "EACCES"
        # The twin: 443 is asked, and nobody answers.
        assert server.call("connect", port=443)[0] == "ECONNREFUSED"
    finally:
        server.stop()


def with_level(servers, key="env"):
    [server] = servers.values()
    env = server[key]
    assert list(env) == ["LOG_LEVEL"]
    return server, {"LOG_LEVEL": "info"}


def mcp_claude():
    server, env = with_level(json.loads(recipe("mcp-claude"))["mcpServers"])
    assert server["type"] == "stdio"
    files(server["command"], server["args"], env)


def mcp_gemini():
    server, env = with_level(json.loads(recipe("mcp-gemini"))["mcpServers"])
    files(server["command"], server["args"], env, server["cwd"])


def mcp_openhands():
    server, env = with_level(json.loads(recipe("mcp-openhands"))["mcpServers"])
    files(server["command"], server["args"], env)


def mcp_codex():
    server, env = with_level(tomllib.loads(recipe("mcp-codex"))["mcp_servers"])
    files(server["command"], server["args"], env)


def mcp_opencode():
    server, env = with_level(json.loads(recipe("mcp-opencode"))["mcp"], "environment")
    assert server["type"] == "local" and server["enabled"] is True
    files(server["command"][0], server["command"][1:], env)


def mcp_goose():
    server, env = with_level(yaml.safe_load(recipe("mcp-goose"))["extensions"], "envs")
    assert server["type"] == "stdio" and all(isinstance(word, str) for word in server["args"])
    files(server["cmd"], server["args"], env)


def mcp_hermes():
    server, env = with_level(yaml.safe_load(recipe("mcp-hermes"))["mcp_servers"])
    files(server["command"], server["args"], env)


AGENT = """#!/bin/bash
echo "arguments $*"
echo "inside $CONFINE"
for name in $NAMES; do echo "$name=${!name}"; done
echo made >made
for path in $WRITES; do
    if [ -d "$path" ]; then echo made >"$path/made"; else echo made >"$path"; fi || echo "cannot write $path"
done
for path in $READS; do
    ls -d "$path" >/dev/null || echo "cannot read $path"
    { echo made >"$path/made"; } 2>/dev/null && echo "could write $path"
done
cat "$HOME/.ssh/id" 2>/dev/null
(exec 3<>/dev/tcp/127.0.0.1/$CLOSED) 2>/dev/null && echo "reached $CLOSED"
echo "secret: $SECRET_OF_THE_CALLER"
"""


def agent(name, program_name, *arguments):
    """The line of the page, a stand-in in the agent's place: what it can do inside, seen from outside."""
    block = recipe(name).replace("\\\n", " ")
    words = shlex.split(block)
    words = [os.path.expanduser(word) for word in words]
    end = words.index("--")
    assert words[0] == "confine" and words[end + 1:] == [program_name, *arguments], words
    of = lambda option: [words[at + 1] for at in range(end) if words[at] == option]
    writes, reads, names = of("--rw"), of("--ro"), of("--env")
    for path in writes + reads:
        assert path.startswith(HOME), path
        if path.endswith(".json"):
            open(path, "w").close()
        else:
            os.makedirs(path)
    program(os.path.join(STUBS, program_name), AGENT)
    listener = socket.create_server(("127.0.0.1", 0))
    told = {"NAMES": " ".join(names), "WRITES": " ".join(writes), "READS": " ".join(reads),
            "CLOSED": str(listener.getsockname()[1])}
    given = [word for name, value in told.items() for word in ("--env", f"{name}={value}")]
    line = shlex.join([words[0], *given, *words[1:]])
    done = subprocess.run(["sh", "-c", line], env={**ENVIRONMENT, **{name: f"value of {name}" for name in names}},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    expected = [" ".join(["arguments", *arguments]), "inside 1", *(f"{name}=value of {name}" for name in names), "secret: "]
    assert done.returncode == 0 and [line.rstrip() for line in done.stdout.splitlines()] == \
        [line.rstrip() for line in expected], (done.stdout, done.stderr)
    assert open("made").read() == "made\n"
    for path in writes:
        assert open(os.path.join(path, "made") if os.path.isdir(path) else path).read() == "made\n", path


def agent_claude():
    agent("agent-claude", "claude")


def agent_codex():
    agent("agent-codex", "codex", "--sandbox", "danger-full-access")


def agent_gemini():
    agent("agent-gemini", "gemini")


def agent_opencode():
    agent("agent-opencode", "opencode")


def agent_goose():
    agent("agent-goose", "goose", "session")


def agent_aider():
    agent("agent-aider", "aider", "--no-check-update", "--analytics-disable")


def agent_hermes():
    agent("agent-hermes", "hermes")


def agent_openhands():
    agent("agent-openhands", "openhands")


def aider_commands():
    settings = yaml.safe_load(recipe("aider-commands"))
    assert settings["auto-test"] is True
    target("test")
    done = subprocess.run(settings["test-cmd"], shell=True, stdout=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "confined-1\n"), done
    made()


def vscode_tasks():
    text = recipe("vscode-tasks").replace("${workspaceFolder}", WORK)
    target("test")
    for task in json.loads(text)["tasks"]:
        options = task["options"]
        if task["type"] == "process":
            words = [task["command"], *task["args"]]
            expected = "confined-1\n"
        else:
            words = [options["shell"]["executable"], *options["shell"]["args"], task["command"]]
            expected = "1\nconfined-1\n"
        done = subprocess.run(words, cwd=options["cwd"], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (0, expected), (words, done)
        made()


def github_actions():
    workflow = yaml.safe_load(recipe("github-actions"))
    job = workflow["jobs"]["test"]
    [step] = [step for step in job["steps"] if "run" in step]
    # As the runner: the first word is the program, the file's name goes into the rest.
    name, template = job["defaults"]["run"]["shell"].split(" ", 1)
    temporary = os.path.join(OUTSIDE, "_temp")
    os.makedirs(temporary)
    environment = {**ENVIRONMENT, "GITHUB_ENV": f"{temporary}/env", "GITHUB_TOKEN": "secret", "CI": "true"}
    open(f"{temporary}/env", "w").close()
    target("test")

    def run(text):
        script = os.path.join(temporary, "script.sh")
        with open(script, "w") as file:
            file.write(text)
        return subprocess.run([name, *shlex.split(template.replace("{0}", script))], env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)

    done = run(step["run"])
    assert (done.returncode, done.stdout, done.stderr) == (0, "confined-1\n1\n", ""), done
    made()
    assert run("exit 7").returncode == 7
    assert run("false\necho not reached").stdout == ""
    done = run(f"echo \"$CI-$GITHUB_TOKEN\"; ls {temporary}; echo X=1 >{temporary}/env")
    assert done.stdout == "true-\nscript.sh\n", done
    assert open(f"{temporary}/env").read() == ""
    done = run(f"setsid sleep {MARK} & echo up; while ! pgrep -f '^sleep {MARK}' >/dev/null; do sleep 0.01; done")
    assert done.stdout == "up\n" and gone(marked())


def cron():
    line = recipe("cron").strip()
    fields = line.split(None, 5)
    assert all(re.fullmatch(r"[*0-9,/-]+", field) for field in fields[:5]) and "%" not in fields[5]
    program(os.path.join(STUBS, "logger"), f"#!/bin/sh\nexec cat >{OUTSIDE}/logged\n")
    target("nightly")
    bare = {"HOME": HOME, "LOGNAME": "you", "SHELL": "/bin/sh", "PATH": f"{os.path.dirname(CONFINE[0])}:{STUBS}:/usr/bin:/bin"}
    done = subprocess.run(["/bin/sh", "-c", fields[5]], cwd=HOME, env=bare, timeout=60)
    assert done.returncode == 0 and open(f"{OUTSIDE}/logged").read() == "confined-1\n"
    made()


def systemd():
    text = recipe("systemd").replace("/usr/bin/confine", CONFINE[0]).replace("/srv/worker", WORK)
    unit = os.path.join(OUTSIDE, "worker.service")
    os.makedirs("bin")
    program("bin/run", f"#!/bin/sh\necho made >made; sleep {MARK} & trap 'exit 0' TERM; echo up; wait\n")
    with open(unit, "w") as file:
        file.write(text)
    done = subprocess.run(["systemd-analyze", "verify", unit], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=60)
    complaints = [line for line in done.stdout.splitlines() if "worker.service" in line]
    assert complaints == [], complaints
    # The twin: a setting that does not exist is complained of.
    with open(unit, "a") as file:
        file.write("\n[Service]\nNoSuchSetting=yes\n")
    done = subprocess.run(["systemd-analyze", "verify", unit], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=60)
    assert "NoSuchSetting" in done.stdout, done
    [start] = re.findall("^ExecStart=(.*)$", text, re.M)
    words = shlex.split(start)
    assert words[0].startswith("/")
    # KillMode=mixed: TERM to the main process.
    child = subprocess.Popen(words, cwd=WORK, env={"PATH": "/usr/bin:/bin"}, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert child.stdout.readline() == "up\n"
    await_marked(1)
    child.terminate()
    assert child.wait(30) == 0
    assert gone(marked())
    made()


def slurm():
    text = recipe("slurm")
    script = os.path.join(OUTSIDE, "job")
    program(script, text)
    lines = text.splitlines()
    assert lines[0].startswith("#!") and all(re.match(r"#SBATCH --[a-z-]+=\S+$", line) for line in lines if "SBATCH" in line)
    target("simulate")
    done = subprocess.run([script], cwd=HOME, env={**ENVIRONMENT, "SLURM_SUBMIT_DIR": WORK, "SLURM_JOB_ID": "1",
                          "SLURM_CPUS_PER_TASK": "2"}, stdout=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "confined-1\n"), done
    made()
    done = subprocess.run([script], env={**ENVIRONMENT, "SLURM_SUBMIT_DIR": ""}, stderr=subprocess.DEVNULL, timeout=60)
    assert done.returncode != 0


def kubernetes():
    pod = yaml.safe_load(recipe("kubernetes"))
    assert (pod["apiVersion"], pod["kind"]) == ("v1", "Pod")
    [container] = pod["spec"]["containers"]
    [mount] = container["volumeMounts"]
    assert mount["name"] == pod["spec"]["volumes"][0]["name"] and mount["mountPath"] == container["workingDir"]
    words = [WORK if word == mount["mountPath"] else word for word in container["command"]]
    target("test")
    # As on a host that allows namespaces, and as in most containers.
    for more in ([], ["--namespaces", "off"]):
        done = subprocess.run([words[0], *more, *words[1:]], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (0, "confined-1\n"), done
        made()


def dev_server():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    with open("index.html", "w") as file:
        file.write("the page\n")
    server, client = (recipe(name).replace("3000", port) for name in ("dev-server", "dev-client"))
    child = subprocess.Popen(["sh", "-c", "exec " + server], stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        end = time.monotonic() + 20
        while True:
            # From outside, as a browser.
            outside = subprocess.run(["curl", "-s", f"http://127.0.0.1:{port}/"], stdout=subprocess.PIPE, text=True)
            if outside.returncode == 0:
                break
            assert time.monotonic() < end and child.poll() is None
            time.sleep(0.05)
        assert outside.stdout == "the page\n"
        done = subprocess.run(["sh", "-c", client], stdout=subprocess.PIPE, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (0, "the page\n"), done
        # Without the port, the same client meets nobody.
        shut = client.replace(f"--connect {port}", "")
        assert subprocess.run(["sh", "-c", shut], timeout=60).returncode == 7
    finally:
        child.terminate()
        child.wait(30)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print(f"{sys.argv[1]} ok")
