"""jupyter_client starts ipykernel through the kernelspecs of docs/agents/jupyter.md. Each case runs outside."""
import json
import os
import queue
import sys
import time
import uuid

SCRATCH = os.environ["SCRATCH"]
STRICT = os.environ["MODE"] == "strict"
MARK = os.environ["MARK"]
RUNTIME = os.path.join(SCRATCH, "outside", "runtime")
os.environ["JUPYTER_PATH"] = os.path.join(SCRATCH, "outside", "jupyter")
os.environ["JUPYTER_RUNTIME_DIR"] = RUNTIME
os.environ["JUPYTER_PLATFORM_DIRS"] = "1"
os.makedirs(RUNTIME, mode=0o700)

from jupyter_client.manager import KernelManager

from subprocess_cases import CONFINE, await_marked, gone, marked


def install(transport, **more):
    """The page's own text; what it assumes of a home is put in the place that this test has for it."""
    with open(os.path.join(SCRATCH, "recipes", f"kernelspec-{transport}")) as file:
        text = file.read()
    text = text.replace("/srv/venv", os.path.join(SCRATCH, "python"))
    spec = json.loads(text.replace("/home/you/.local/share/jupyter/confined", RUNTIME))
    assert spec["argv"][0] == "confine" and "teardown" in spec["argv"]
    spec["argv"][0] = CONFINE[0]
    if STRICT:
        at = spec["argv"].index("--require")
        spec["argv"][at:at + 2] = ["--strict"]
    spec.update(more)
    place = os.path.join(os.environ["JUPYTER_PATH"], "kernels", "confined")
    os.makedirs(place)
    with open(os.path.join(place, "kernel.json"), "w") as file:
        json.dump(spec, file)


class Session:
    def __init__(self, transport):
        # Named and placed as the kernels of a notebook server are.
        file = os.path.join(RUNTIME, f"kernel-{uuid.uuid4()}.json")
        self.manager = KernelManager(kernel_name="confined", transport=transport, connection_file=file)
        self.manager.start_kernel(cwd=os.getcwd())
        try:
            self.connect()
        except BaseException:
            self.manager.shutdown_kernel(now=True)
            raise

    def connect(self):
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=50)

    def run(self, code, timeout=40, stdin=None):
        """What the cell printed, and the name of what it raised."""
        out = []

        def seen(message):
            if message["msg_type"] == "stream":
                out.append(message["content"]["text"])
            elif message["msg_type"] == "execute_result":
                out.append(message["content"]["data"]["text/plain"])

        def asked(message):
            self.client.input(stdin)

        reply = self.client.execute_interactive(code, timeout=timeout, output_hook=seen, stdin_hook=asked,
                                                allow_stdin=stdin is not None)["content"]
        return "".join(out), reply.get("ename")

    def begin(self, code):
        # Otherwise a kernel drops what comes right after a cell that was interrupted.
        self.client.execute(code, stop_on_error=False)
        end = time.monotonic() + 30
        heard = []
        while True:
            assert time.monotonic() < end, f"never up: {code}; {heard}; alive {self.manager.is_alive()}"
            try:
                message = self.client.get_iopub_msg(timeout=1)
            except queue.Empty:
                continue
            heard.append((message["msg_type"], message["content"]))
            if message["msg_type"] == "stream" and "up" in message["content"]["text"]:
                return

    def reply(self):
        return self.client.get_shell_msg(timeout=30)["content"]

    def stop(self, now=False):
        self.client.stop_channels()
        pid = self.manager.provisioner.process.pid
        self.manager.shutdown_kernel(now=now)
        assert not self.manager.is_alive() and gone([pid])


def cells(transport):
    install(transport)
    outside = os.path.join(SCRATCH, "outside", "written")
    session = Session(transport)
    try:
        assert session.run("x = 6 * 7; print('said', x)") == ("said 42\n", None)
        assert session.run("x") == ("42", None)
        assert session.run("1 / 0")[1] == "ZeroDivisionError"
        assert session.run("open('made', 'w').write('by a cell')") == ("9", None)
        # In a private directory that leads to what was granted, or nowhere; judged from outside, below.
        session.run(f"open({outside!r}, 'w').write('by a cell')")
        assert session.run("import sys; open(sys.prefix + '/made', 'w')")[1] == "OSError"
        assert session.run("!echo $CONFINE-$((20+3))")[0].strip() == "1-23"
        assert session.run("import subprocess; subprocess.check_output(['echo', 'a']).decode()")[0] == "'a\\n'"
        assert session.run("print(input('name? ')[::-1])", stdin="abc")[0].endswith("cba\n")
        # Of the runtime directory there is nothing but what is the kernel's own.
        others = os.path.join(RUNTIME, "kernel-other.json")
        with open(others, "w") as file:
            file.write("{}")
        reads = session.run(f"open({others!r}).read()")
        assert (reads == ("'{}'", None)) == (transport == "ipc"), reads
        with open("made") as file:
            assert file.read() == "by a cell"
        assert not os.path.exists(outside)
    finally:
        session.stop()


def interrupts(transport):
    session = Session(transport)
    try:
        session.run("kept = 5")
        for code in ("while True: pass", "import time; time.sleep(60)", f"!sleep {MARK}"):
            session.begin(f"print('up')\n{code}")
            if MARK in code:
                await_marked(1)
            time.sleep(0.2)
            session.manager.interrupt_kernel()
            reply = session.reply()
            if MARK not in code:
                assert reply["ename"] == "KeyboardInterrupt", reply
            assert gone(marked())
        assert session.run("kept") == ("5", None)
        assert session.manager.is_alive()
    finally:
        session.stop()


def restart_and_shutdown(transport):
    install(transport)
    session = Session(transport)
    try:
        session.run("kept = 5")
        session.run(f"import subprocess; child = subprocess.Popen(['sleep', '{MARK}'], start_new_session=True)")
        before = await_marked(1)
        for now in (False, True):
            session.client.stop_channels()
            session.manager.restart_kernel(now=now)
            session.connect()
            assert session.run("'kept' in dir()") == ("False", None)
            # The spec requires teardown: what a cell has left goes with its kernel.
            assert gone(before), marked()
            session.run(f"import subprocess; child = subprocess.Popen(['sleep', '{MARK}'], start_new_session=True)")
            before = await_marked(1)
        assert session.run("1 + 1") == ("2", None)
    finally:
        session.stop()
    assert gone(marked()), marked()
    session = Session(transport)
    session.run(f"import subprocess; child = subprocess.Popen(['sleep', '{MARK}'], start_new_session=True)")
    await_marked(1)
    session.stop(now=True)
    assert gone(marked()), marked()


def cells_over_tcp():
    cells("tcp")


def cells_over_ipc():
    cells("ipc")


def interrupt_by_signal_over_tcp():
    install("tcp")
    interrupts("tcp")


def interrupt_by_signal_over_ipc():
    install("ipc")
    interrupts("ipc")


def interrupt_by_message_over_tcp():
    install("tcp", interrupt_mode="message")
    interrupts("tcp")


def interrupt_by_message_over_ipc():
    install("ipc", interrupt_mode="message")
    interrupts("ipc")


def restart_and_shutdown_over_tcp():
    restart_and_shutdown("tcp")


def restart_and_shutdown_over_ipc():
    restart_and_shutdown("ipc")


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print(f"{sys.argv[1]} ok")
