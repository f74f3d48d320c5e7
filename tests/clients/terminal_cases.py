"""pexpect and ptyprocess give confined commands a terminal. Each case runs outside."""
import os
import signal
import sys
import time

import pexpect
import pexpect.replwrap
import ptyprocess

from subprocess_cases import CONFINE, MARK, PARENT, await_marked, death, gone, marked

PROMPT = "ready> "
BASH = ["--norc", "--noprofile", "--noediting", "-i"]


def words(*command):
    return [*CONFINE[1:], "--env", f"PS1={PROMPT}", "--env", "PS2=", "--", *command]


def bash():
    child = pexpect.spawn(CONFINE[0], words("bash", *BASH), encoding="utf-8", timeout=20, dimensions=(24, 80))
    child.expect_exact(PROMPT)
    return child


def say(child, line, answer):
    child.sendline(line)
    child.expect(answer)
    child.expect_exact(PROMPT)


def ends(child, status):
    child.expect(pexpect.EOF)
    # A program closes its streams before it exits; to close the terminal in between is to hang up on it.
    child.wait()
    child.close()
    assert child.exitstatus == status, (child.exitstatus, child.signalstatus)


def start_and_interact():
    child = bash()
    say(child, "echo sum-$((20+22))", "sum-42")
    say(child, "test -t 0 && test -t 1 && tty && echo at-$((1+1))", "/dev/[a-z0-9/]+\r\nat-2")
    say(child, "read -s -p 'secret? ' x\rwords\recho; echo got-${#x}", "got-5")
    assert "no job control" not in child.before
    child.sendline("exit 7")
    ends(child, 7)


def interrupt_reaches_the_job_and_not_the_shell():
    child = bash()
    for key, status in (("\x03", 130), ("\x1c", 131)):
        child.sendline(f"sleep {MARK}")
        await_marked(1)
        foreground(child)
        child.send(key)
        child.expect_exact(PROMPT)
        assert gone(marked())
        say(child, "echo status-$?", f"status-{status}")
    child.sendline(f"sleep {MARK}")
    await_marked(1)
    foreground(child)
    child.send("\x1a")
    child.expect("Stopped")
    child.expect_exact(PROMPT)
    say(child, "kill %1; fg; echo status-$?", "status-143")
    assert gone(marked())
    child.sendeof()
    ends(child, 0)


def foreground(child):
    """Until the job has the terminal: the shell forks first, and hands it over then."""
    end = time.monotonic() + 20
    while os.tcgetpgrp(child.fileno()) not in marked():
        assert time.monotonic() < end
        time.sleep(0.01)


def resize():
    child = bash()
    say(child, "stty size", "24 80")
    say(child, "trap 'echo resized-$((10+1))' WINCH; echo set-$((1+1))", "set-2")
    child.setwinsize(41, 133)
    # The shell runs the trap once it has read a line.
    child.sendline("")
    child.expect("resized-11")
    say(child, "stty size", "41 133")
    child.sendline("exit 0")
    ends(child, 0)


def terminate():
    child = bash()
    child.sendline(f"sleep {MARK}")
    await_marked(1)
    assert child.isalive()
    # HUP, CONT, INT, then KILL, to the process alone, and the terminal is closed.
    assert child.terminate(force=True)
    assert not child.isalive()
    assert gone(marked())


def close_hangs_up():
    child = bash()
    child.sendline(f"sleep {MARK}")
    await_marked(1)
    child.close()
    assert not child.isalive() and gone(marked())


def end_of_file_and_signals():
    child = pexpect.spawn(CONFINE[0], words("cat"), encoding="utf-8", timeout=20, echo=False)
    child.sendline("line")
    child.expect_exact("line\r\n")
    child.sendeof()
    ends(child, 0)
    child = pexpect.spawn(CONFINE[0], words("sh", "-c", f"echo up; exec sleep {MARK}"), timeout=20)
    child.expect("up")
    await_marked(1)
    child.kill(signal.SIGTERM)
    child.expect(pexpect.EOF)
    child.close()
    seen = 128 + child.signalstatus if child.exitstatus is None else child.exitstatus
    assert seen == 143 and (child.exitstatus is not None) == PARENT, (child.exitstatus, child.signalstatus)


def interpreter_as_a_repl():
    line = [*CONFINE[1:], "--env", "PYTHON_BASIC_REPL=1", "--", "/usr/bin/python3", "-q"]
    child = pexpect.spawn(CONFINE[0], line, encoding="utf-8", timeout=20, echo=False)
    repl = pexpect.replwrap.REPLWrapper(child, ">>> ", "import sys; sys.ps1={!r}; sys.ps2={!r}")
    assert repl.run_command("6 * 7").strip() == "42"
    repl.run_command("x = [1, 2, 3]")
    assert repl.run_command("sum(x)").strip() == "6"
    child.sendline("import time; time.sleep(60)")
    time.sleep(0.3)
    child.sendintr()
    child.expect("KeyboardInterrupt")
    child.expect_exact(pexpect.replwrap.PEXPECT_PROMPT)
    assert repl.run_command("'still here'").strip() == "'still here'"
    child.sendeof()
    ends(child, 0)


def run_with_events():
    """pexpect.run, and its answers to questions, as command line agents use it."""
    line = " ".join([*CONFINE, "--", "sh", "-c", "'read -p name? x; echo hello $x; exit 3'"]).replace("sh -c", "bash -c")
    out, status = pexpect.run(line, events={"name\\?": "world\n"}, withexitstatus=True, timeout=20, encoding="utf-8")
    assert "hello world" in out and status == 3, (out, status)


def pty_start_and_interact():
    child = ptyprocess.PtyProcessUnicode.spawn([CONFINE[0], *words("bash", *BASH)], dimensions=(30, 90))
    seen = read_until(child, PROMPT)
    child.write("stty size; echo sum-$((20+22))\n")
    seen = read_until(child, "sum-42")
    assert "30 90" in seen, seen
    child.setwinsize(31, 91)
    child.write("stty size\n")
    read_until(child, "31 91")
    child.write(f"sleep {MARK}\n")
    await_marked(1)
    foreground(child)
    child.sendintr()
    read_until(child, PROMPT)
    assert gone(marked()) and child.isalive()
    child.write("exit 9\n")
    assert child.wait() == 9


def pty_terminate():
    child = ptyprocess.PtyProcessUnicode.spawn([CONFINE[0], *words("bash", "-c", f"echo up; sleep {MARK}")])
    read_until(child, "up")
    await_marked(1)
    assert child.terminate(force=True) and not child.isalive()
    child.close()
    assert gone(marked())


def pty_end_of_file():
    child = ptyprocess.PtyProcessUnicode.spawn([CONFINE[0], *words("cat")], echo=False)
    child.write("line\n")
    read_until(child, "line\r\n")
    child.sendeof()
    try:
        while True:
            child.read()
    except EOFError:
        pass
    assert child.wait() == 0 and not child.isalive()


def read_until(child, text):
    seen, end = "", time.monotonic() + 20
    while text not in seen:
        assert time.monotonic() < end, seen
        seen += child.read(4096)
    return seen


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print(f"{sys.argv[1]} ok")
