//! Interpreters and their package managers, without a network.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod programs;

use common::Scratch;
use programs::{for_everyone, need, works, works_as};

/// A wheel made by hand: the format is a ZIP archive with metadata.
const WHEEL: &str = r#"
import zipfile
name = "made_up-1.0.dist-info"
files = {
    "made_up.py": "def hello():\n    print('from the wheel')\n",
    f"{name}/METADATA": "Metadata-Version: 2.1\nName: made-up\nVersion: 1.0\n",
    f"{name}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    f"{name}/entry_points.txt": "[console_scripts]\nmade-up = made_up:hello\n",
}
files[f"{name}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{name}/RECORD"])
with zipfile.ZipFile("made_up-1.0-py3-none-any.whl", "w") as wheel:
    for path, text in files.items():
        wheel.writestr(path, text)
"#;

#[test]
fn a_virtual_environment_installs_a_local_wheel() {
    need(&["/usr/bin/python3"]);
    for_everyone(|scratch| {
        scratch.file("w/wheel.py", WHEEL);
        let script = "/usr/bin/python3 wheel.py; /usr/bin/python3 -m venv v
            v/bin/pip install -q --no-index --disable-pip-version-check ./made_up-1.0-py3-none-any.whl
            v/bin/made-up; . v/bin/activate; python -c 'import made_up, sys; print(sys.prefix)'; v/bin/pip uninstall -qy made-up
            ! v/bin/python -c 'import made_up' 2>/dev/null; ! timeout 20 v/bin/pip install -q --retries 0 requests 2>/dev/null";
        let out = works(scratch, script);
        assert_eq!(out, format!("from the wheel\n{}\n", scratch.path("w/v").display()));
    });
}

#[test]
fn the_python_that_path_leads_to_starts() {
    for_everyone(|scratch| {
        let script = "python3 -c 'import ssl, sqlite3, ctypes, json, subprocess as s
s.run([\"true\"], check=True); db = sqlite3.connect(\"db\"); db.execute(\"create table t(x)\"); db.commit()
import tempfile; print(tempfile.gettempdir())'; python3 -m compileall -q .";
        assert_eq!(works_as(scratch, |run| run.env("TMPDIR", "/tmp"), script), "/tmp\n");
    });
}

#[test]
fn pytest_runs_and_its_failures_are_failures() {
    need(&["/usr/bin/python3", "/usr/lib/python3/dist-packages/pytest"]);
    for_everyone(|scratch| {
        scratch.file(
            "w/test_made.py",
            "import os, socket\n\ndef test_files(tmp_path):\n    (tmp_path / 'x').write_text('x')\n    os.chmod(tmp_path / 'x', 0o600)\n\
             \ndef test_loopback():\n    with socket.create_server(('127.0.0.1', 0)) as server:\n        \
             socket.create_connection(server.getsockname()).close()\n\ndef test_wrong():\n    assert os.environ.get('WRONG') is None\n",
        );
        let script =
            "/usr/bin/python3 -m pytest -q; WRONG=1 /usr/bin/python3 -m pytest -q || echo \"failed $?\"";
        let out = works(scratch, script);
        assert!(out.contains("3 passed") && out.ends_with("failed 1\n"), "{out}");
    });
}

const PARALLEL: &str = r#"
import asyncio, multiprocessing, os, signal, threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import shared_memory

def square(x):
    return x * x

def child(lock, value, queue, name):
    memory = shared_memory.SharedMemory(name=name)
    with lock:
        value.value += 1
    memory.buf[0] += 1
    memory.close()
    queue.put(os.getpid())

def processes(method):
    context = multiprocessing.get_context(method)
    with context.Pool(3) as pool:
        assert pool.map(square, range(5)) == [0, 1, 4, 9, 16]
    lock, value, queue = context.Lock(), context.Value("i", 0), context.Queue()
    memory = shared_memory.SharedMemory(create=True, size=16)
    one = context.Process(target=child, args=(lock, value, queue, memory.name))
    one.start()
    assert queue.get(timeout=20) == one.pid
    one.join()
    assert value.value == 1 and memory.buf[0] == 1
    memory.close()
    memory.unlink()
    print(method)

async def network():
    async def serve(reader, writer):
        writer.write((await reader.readline()).upper())
        await writer.drain()
        writer.close()
    async def ask(*where, **more):
        reader, writer = await asyncio.open_connection(*where, **more)
        writer.write(b"hello\n")
        assert await reader.read() == b"HELLO\n"
        writer.close()
    for host in ("127.0.0.1", "::1", "localhost"):
        server = await asyncio.start_server(serve, host, 0)
        await ask(host, server.sockets[0].getsockname()[1])
        server.close()
    for path in ("socket", "/tmp/socket"):
        server = await asyncio.start_unix_server(serve, path)
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"hello\n")
        assert await reader.read() == b"HELLO\n"
        writer.close()
        server.close()
    run = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    assert await run.communicate(b"piped") == (b"piped", None)
    got = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, got.set)
    os.kill(os.getpid(), signal.SIGUSR1)
    await asyncio.wait_for(got.wait(), 5)
    print("asyncio")

if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        processes(method)
    with ProcessPoolExecutor(2) as pool:
        assert list(pool.map(square, [3])) == [9]
    asyncio.run(network())
"#;

#[test]
fn python_runs_processes_and_an_event_loop() {
    need(&["/usr/bin/python3"]);
    for_everyone(|scratch| {
        scratch.file("w/parallel.py", PARALLEL);
        assert_eq!(works(scratch, "/usr/bin/python3 parallel.py"), "fork\nspawn\nforkserver\nasyncio\n");
    });
}

/// Sizes are the system's defaults (mq_overview(7)).
const QUEUES: &str = r#"
import ctypes, os
lib = ctypes.CDLL("librt.so.1", use_errno=True)
queue = lib.mq_open(b"/made", os.O_CREAT | os.O_RDWR, 0o600, None)
assert queue >= 0, os.strerror(ctypes.get_errno())
assert lib.mq_send(queue, b"hello", 5, 0) == 0
text = ctypes.create_string_buffer(8192)
assert lib.mq_receive(queue, text, 8192, None) == 5
assert lib.mq_unlink(b"/made") == 0
print(text.value.decode())
"#;

#[test]
fn message_queues_semaphores_and_segments_of_its_own_work() {
    need(&["/usr/bin/python3"]);
    for_everyone(|scratch| {
        scratch.file("w/queues.py", QUEUES);
        let script =
            "/usr/bin/python3 queues.py; ipcmk -Q -S 1 -M 100 >/dev/null; ipcs -q -s -m | grep -c ^0x";
        assert_eq!(works(scratch, script), "hello\n3\n");
    });
}

fn package(scratch: &Scratch) {
    scratch.dir("w/lib");
    scratch.file(
        "w/lib/package.json",
        r#"{"name": "lib", "version": "1.2.3", "main": "index.js", "bin": {"lib-bin": "index.js"}}"#,
    );
    scratch.file("w/lib/index.js", "#!/usr/bin/env node\nmodule.exports = () => 'from the package';\nif (require.main === module) console.log(module.exports());\n");
}

#[test]
fn npm_makes_installs_and_runs_packages_offline() {
    need(&["npm", "node"]);
    for_everyone(|scratch| {
        package(scratch);
        scratch.dir("w/app");
        let script = "cd lib; tarball=$(npm pack --silent); cd ../app; npm init -y >/dev/null
            npm install --silent --offline --no-audit --no-fund ../lib/$tarball
            echo 'console.log(require(\"lib\")())' > ask.js; npm pkg set scripts.hello='lib-bin && node ask.js'; npm run --silent hello
            npm ci --silent --offline --no-audit --no-fund; npm ls --silent | tail -2 | head -1; npx --offline lib-bin";
        let out = works(scratch, script);
        let wanted = "from the package\nfrom the package\n";
        assert!(out.starts_with(wanted) && out.ends_with("lib@1.2.3\nfrom the package\n"), "{out}");
    });
}

#[test]
fn the_test_runner_of_node_runs_workers_and_children() {
    need(&["node"]);
    for_everyone(|scratch| {
        scratch.file(
            "w/made.test.mjs",
            r#"
import test from "node:test";
import assert from "node:assert";
import { spawnSync, fork } from "node:child_process";
import { createServer } from "node:http";
import { mkdtempSync, writeFileSync, watch } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";

test("a child", () => assert.equal(spawnSync("sh", ["-c", "exit 5"]).status, 5));
test("a worker", async () => {
  const worker = new Worker("require('worker_threads').parentPort.postMessage(6)", { eval: true });
  assert.equal(await new Promise((done) => worker.once("message", done)), 6);
});
test("a server", async () => {
  const server = createServer((_, answer) => answer.end("hello"));
  await new Promise((done) => server.listen(0, "localhost", done));
  const answer = await fetch(`http://localhost:${server.address().port}/`);
  assert.equal(await answer.text(), "hello");
  server.close();
});
test("a watch", async () => {
  const directory = mkdtempSync(join(tmpdir(), "x"));
  const seen = new Promise((done) => { const w = watch(directory, (_, name) => { w.close(); done(name); }); });
  writeFileSync(join(directory, "made"), "");
  assert.equal(await seen, "made");
});
test("wrong", () => assert.equal(process.env.WRONG, undefined));
"#,
        );
        let script = "node --test; WRONG=1 node --test >/dev/null || echo \"failed $?\"";
        let out = works(scratch, script);
        assert!(out.contains("# pass 5") && out.ends_with("failed 1\n"), "{out}");
    });
}
