"""Python's subprocess starts confined commands. A case is a function; each runs outside."""
import concurrent.futures
import json
import os
import signal
import subprocess
import sys
import time

CONFINE = json.loads(os.environ["CONFINE_WORDS"])
# Without namespaces a parent stays, and for --strict.
PARENT = os.environ["MODE"] != "ordinary"
MARK = os.environ["MARK"]
PIPE = subprocess.PIPE


def command(*words):
    return [*CONFINE, "--", *words]


def shell(script, **options):
    return subprocess.Popen(command("bash", "-c", script), **options)


def death(number):
    """How the end by a signal looks: the command is the process itself, unless a parent had to stay."""
    return 128 + number if PARENT else -number


def gone(pids, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not any(os.path.exists(f"/proc/{pid}") and state(pid) != "Z" for pid in pids):
            return True
        time.sleep(0.01)
    return False


def state(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"


def marked():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        # sleep itself, not the wrapper or shell that has the mark in a longer word.
        if words[:2] == [b"sleep", MARK.encode()] and state(pid) != "Z":
            found.append(int(pid))
    return found


def await_marked(count):
    end = time.monotonic() + 20
    while len(marked()) != count:
        assert time.monotonic() < end, f"{marked()} instead of {count}"
        time.sleep(0.01)
    return marked()


def communicate():
    data = os.urandom(1 << 20)
    child = shell("cat; echo aside >&2; exit 7", stdin=PIPE, stdout=PIPE, stderr=PIPE)
    out, err = child.communicate(data, timeout=30)
    assert (out, err, child.returncode) == (data, b"aside\n", 7), (len(out), err, child.returncode)


def text_and_merged_streams():
    done = subprocess.run(command("sh", "-c", "echo one; echo zwei-\u00fc >&2"), stdout=PIPE, stderr=subprocess.STDOUT,
                          text=True, check=True, timeout=30)
    assert done.stdout == "one\nzwei-\u00fc\n", done.stdout
    try:
        subprocess.check_output(command("false"), timeout=30)
        raise AssertionError("a failure went unseen")
    except subprocess.CalledProcessError as error:
        assert error.returncode == 1


def through_a_shell():
    line = " ".join(command("sh", "-c", "'echo $0 $CONFINE | tr a-z A-Z'", "argument"))
    assert subprocess.check_output(line, shell=True, text=True, timeout=30) == "ARGUMENT 1\n"


def lines_to_and_fro():
    """Standard input stays open between questions, as with a tool server or an interpreter."""
    program = "import sys\nfor line in sys.stdin:\n    print(eval(line), flush=True)"
    child = subprocess.Popen(command("/usr/bin/python3", "-c", program), stdin=PIPE, stdout=PIPE, text=True, bufsize=1)
    for number in range(200):
        child.stdin.write(f"{number} * 2\n")
        assert child.stdout.readline() == f"{number * 2}\n"
    child.stdin.close()
    assert child.wait(30) == 0


def session_of_its_own_and_its_group_killed():
    child = shell(f"sleep {MARK} & sleep {MARK} & echo up; wait", stdout=PIPE, text=True, start_new_session=True)
    assert child.stdout.readline() == "up\n"
    sleepers = await_marked(2)
    assert os.getpgid(child.pid) == child.pid and os.getsid(child.pid) == child.pid
    os.killpg(child.pid, signal.SIGTERM)
    assert child.wait(30) == death(signal.SIGTERM), child.returncode
    assert gone(sleepers), marked()


def group_killed_at_once():
    child = shell(f"sleep {MARK} & sleep {MARK} & echo up; wait", stdout=PIPE, text=True, start_new_session=True)
    assert child.stdout.readline() == "up\n"
    sleepers = await_marked(2)
    os.killpg(child.pid, signal.SIGKILL)
    # Nothing is there to turn it into a number: it is the parent, too, that dies.
    assert child.wait(30) == -signal.SIGKILL, child.returncode
    assert gone(sleepers), marked()


def group_of_its_own_in_the_background():
    child = shell(f"sleep {MARK} & echo up; wait", stdout=PIPE, text=True, process_group=0)
    assert child.stdout.readline() == "up\n"
    assert os.getpgid(child.pid) == child.pid and os.getsid(child.pid) == os.getsid(0)
    sleepers = await_marked(1)
    assert child.poll() is None
    os.killpg(child.pid, signal.SIGTERM)
    assert child.wait(30) == death(signal.SIGTERM), child.returncode
    assert gone(sleepers), marked()


def timeout_kills_what_was_started():
    # On a busy machine the first of these may be over before the command has begun.
    for seconds in (1, 5, 25):
        try:
            subprocess.run(command("bash", "-c", f"echo partly; exec sleep {MARK}"), stdout=PIPE, timeout=seconds)
            raise AssertionError("no timeout")
        except subprocess.TimeoutExpired as expired:
            said = expired.stdout
        assert gone(marked()), marked()
        if said:
            break
    assert said == b"partly\n", said


def timeout_with_grandchildren():
    """subprocess kills its child alone. What that has started lives on, where no parent stays."""
    child = shell(f"sleep {MARK} & echo up; wait", stdout=PIPE, text=True)
    assert child.stdout.readline() == "up\n"
    sleepers = await_marked(1)
    try:
        child.wait(0.2)
        raise AssertionError("no timeout")
    except subprocess.TimeoutExpired:
        child.kill()
    assert child.wait(30) == -signal.SIGKILL
    if PARENT:
        assert gone(sleepers), marked()
    else:
        assert not gone(sleepers, 0.3)
        os.kill(sleepers[0], signal.SIGKILL)


def interrupt_is_an_exception_inside():
    program = ("import time\ntry:\n    print('up', flush=True)\n    time.sleep(60)\n"
               "except KeyboardInterrupt:\n    print('interrupted', flush=True)\n    raise SystemExit(3)")
    child = subprocess.Popen(command("/usr/bin/python3", "-c", program), stdout=PIPE, text=True, start_new_session=True)
    assert child.stdout.readline() == "up\n"
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=30)[0] == "interrupted\n" and child.returncode == 3
    # To the group: with a parent, both it and the command may be reached; once is enough.
    program = program.replace("    raise SystemExit(3)", "    time.sleep(0.3)\n    raise SystemExit(4)")
    child = subprocess.Popen(command("/usr/bin/python3", "-c", program), stdout=PIPE, text=True, start_new_session=True)
    assert child.stdout.readline() == "up\n"
    os.killpg(child.pid, signal.SIGINT)
    assert child.communicate(timeout=30)[0] == "interrupted\n" and child.returncode == 4, child.returncode


def stopped_and_continued():
    child = shell("echo up; read line; echo got-$line", stdin=PIPE, stdout=PIPE, text=True, start_new_session=True)
    assert child.stdout.readline() == "up\n"
    os.killpg(child.pid, signal.SIGSTOP)
    end = time.monotonic() + 20
    while state(child.pid) != "T":
        assert time.monotonic() < end
        time.sleep(0.01)
    os.killpg(child.pid, signal.SIGCONT)
    assert child.communicate("words\n", timeout=30)[0] == "got-words\n"


def detached_output_to_a_file():
    """A background job as agents start one: a session of its own, output to a file, the starter does not wait."""
    log = os.path.join(os.environ["SCRATCH"], "outside", "log")
    with open(log, "wb") as out:
        child = shell("for i in 1 2 3; do echo line $i; sleep 0.05; done", stdin=subprocess.DEVNULL, stdout=out,
                      stderr=subprocess.STDOUT, start_new_session=True, close_fds=True)
    assert child.wait(30) == 0
    with open(log) as file:
        assert file.read() == "line 1\nline 2\nline 3\n"


def descriptor_handed_on():
    reader, writer = os.pipe()
    words = [*CONFINE, "--fd", str(writer), "--", "sh", "-c", f"echo through >&{writer}"]
    child = subprocess.Popen(words, pass_fds=[writer])
    os.close(writer)
    with os.fdopen(reader) as stream:
        assert stream.read() == "through\n"
    assert child.wait(30) == 0
    # Its twin: what is not named is not there.
    reader, writer = os.pipe()
    child = subprocess.Popen(command("sh", "-c", f"echo through >&{writer}"), pass_fds=[writer], stderr=subprocess.DEVNULL)
    os.close(writer)
    with os.fdopen(reader) as stream:
        assert stream.read() == ""
    assert child.wait(30) != 0


def empty_environment():
    done = subprocess.run(command("/bin/sh", "-c", "echo $CONFINE; echo $HOME"), env={}, stdout=PIPE, stderr=PIPE,
                          text=True, timeout=30)
    assert (done.stdout.split("\n")[0], done.stderr, done.returncode) == ("1", "", 0), done


def many_at_once():
    def one(number):
        return subprocess.check_output(command("sh", "-c", f"echo {number}; echo {number} > file-{number}"), timeout=60)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(40))) == [f"{number}\n".encode() for number in range(40)]
    assert all(os.path.exists(f"file-{number}") for number in range(40))


def missing_command():
    child = subprocess.run(command("no-such-command"), stderr=PIPE, text=True, timeout=30)
    # Without a view, a directory of PATH that cannot be searched may have it: execvp(3) says EACCES then.
    assert child.returncode in ((126, 127) if os.environ["MODE"] == "no-namespaces" else (127,)), child
    assert child.stderr.startswith("confine: "), child


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print(f"{sys.argv[1]} ok")
