"""tmux runs confined commands in its windows. Each case runs outside."""
import os
import subprocess
import sys
import time

from subprocess_cases import CONFINE, MARK, PARENT, await_marked, gone, marked

SOCKET = os.path.join(os.environ["SCRATCH"], "tmp", "tmux")
BASH = ["bash", "--norc", "--noprofile", "--noediting", "-i"]


def tmux(*words):
    return subprocess.run(["tmux", "-S", SOCKET, "-f", "/dev/null", *words], check=True, stdout=subprocess.PIPE,
                          text=True, timeout=30).stdout


def start(*command):
    line = [*CONFINE, "--env", "PS1=ready> ", "--", *command]
    tmux("new-session", "-d", "-s", "s", "-x", "100", "-y", "30", *line)
    # What has ended stays to be looked at.
    tmux("set-option", "-t", "s", "remain-on-exit", "on")


def keys(*words):
    tmux("send-keys", "-t", "s", *words)


def see(text):
    end = time.monotonic() + 20
    while text not in (screen := tmux("capture-pane", "-p", "-t", "s")):
        assert time.monotonic() < end, f"{text} is not on the screen:\n{screen}"
        time.sleep(0.02)
    return screen


def foreground(name):
    end = time.monotonic() + 20
    while tmux("display-message", "-p", "-t", "s", "#{pane_current_command}").strip() != name:
        assert time.monotonic() < end
        time.sleep(0.02)


def interact_interrupt_and_end():
    start(*BASH)
    see("ready>")
    keys("echo sum-$((20+22)) on $(tty)", "Enter")
    see("sum-42 on /dev/")
    keys(f"sleep {MARK}", "Enter")
    await_marked(1)
    foreground("sleep")
    keys("C-c")
    assert gone(marked())
    keys("echo status-$?", "Enter")
    see("status-130")
    keys("exit 7", "Enter")
    end = time.monotonic() + 20
    while (dead := tmux("display-message", "-p", "-t", "s", "#{pane_dead} #{pane_dead_status}").strip()) != "1 7":
        assert time.monotonic() < end, f"{dead!r}:\n" + tmux("capture-pane", "-p", "-t", "s")
        # While libutempter takes the terminal off its list, SIGCHLD has its default action in tmux, and is lost; the
        # next child has it ask for all. Not waited for, since the end of that one may be lost as well.
        tmux("run-shell", "-b", "true")
        time.sleep(0.02)


def suspend_and_foreground():
    start(*BASH)
    see("ready>")
    keys(f"sleep {MARK}", "Enter")
    await_marked(1)
    foreground("sleep")
    keys("C-z")
    see("Stopped")
    keys("clear; fg", "Enter")
    foreground("sleep")
    keys("C-c")
    assert gone(marked())
    keys("echo status-$?", "Enter")
    see("status-130")


def resize():
    start(*BASH)
    see("ready>")
    keys("stty size", "Enter")
    see("30 100")
    keys("trap 'echo resized-$((10+1))' WINCH; echo set-$((1+1))", "Enter")
    see("set-2")
    tmux("resize-window", "-t", "s", "-x", "131", "-y", "41")
    keys("", "Enter")
    see("resized-11")
    keys("stty size", "Enter")
    see("41 131")


def kill_session():
    """A hangup. What ignores it is left, where no parent stays."""
    start(*BASH)
    see("ready>")
    keys(f"nohup sleep {MARK} >/dev/null 2>&1 & disown; setsid sleep {MARK} & echo sum-$((20+22))", "Enter")
    see("sum-42")
    sleepers = await_marked(2)
    tmux("kill-session", "-t", "s")
    if PARENT:
        assert gone(sleepers), marked()
    else:
        assert not gone(sleepers, 0.5)
        for pid in marked():
            os.kill(pid, 9)
        assert gone(sleepers)


def kill_session_ends_the_foreground():
    start(*BASH)
    see("ready>")
    keys(f"sleep {MARK}", "Enter")
    await_marked(1)
    tmux("kill-session", "-t", "s")
    assert gone(marked()), marked()


if __name__ == "__main__":
    try:
        globals()[sys.argv[1]]()
    finally:
        subprocess.run(["tmux", "-S", SOCKET, "kill-server"], stderr=subprocess.DEVNULL)
    print(f"{sys.argv[1]} ok")
