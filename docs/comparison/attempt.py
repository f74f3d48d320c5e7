"""One attempt, made inside a tool's boundary: attempt.py NAME WORKSPACE TARGET. What came of it is judged outside."""

import array
import fcntl
import os
import signal
import socket
import subprocess
import sys
import termios

name, workspace, target = sys.argv[1:4]


def report(text):
    with open(f"{workspace}/found", "w") as file:
        file.write(text)


def write_outside():
    with open(target, "a") as file:
        file.write("changed")


def change_mode():
    os.chmod(target, 0o777)


def read_key():
    report(open(target).read())


def write_through_alias():
    with open(f"{workspace}/alias", "a") as file:
        file.write("changed")


def change_hook():
    with open(f"{workspace}/.git/hooks/pre-commit", "w") as file:
        file.write("changed")


def use_descriptor():
    for number in target.split(","):
        try:
            os.write(int(number), b"changed")
        except OSError as error:
            print(number, error)


def abstract_socket():
    with socket.socket(socket.AF_UNIX) as s:
        s.connect("\0" + target)


def pathname_socket():
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(target)


def tcp():
    with socket.socket() as s:
        s.settimeout(2)
        s.connect(("127.0.0.1", int(target)))


def fast_open():
    with socket.socket() as s:
        s.settimeout(2)
        s.sendto(b"x", 0x20000000, ("127.0.0.1", int(target)))


def udp():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(b"x", ("127.0.0.1", int(target)))


def type_into_terminal():
    with open(f"{workspace}/terminal", "w") as file:
        file.write("yes" if os.isatty(0) else "no")
    for letter in b"x\n":
        fcntl.ioctl(0, termios.TIOCSTI, array.array("B", [letter]))
    report("typed")


def read_token():
    report(os.environ["COMPARISON_TOKEN"])


def signal_outside():
    os.kill(int(target), signal.SIGTERM)


def see_process():
    report(open(f"/proc/{target}/cmdline").read())


def stay_behind():
    script = f"for i in $(seq 40); do echo >>'{workspace}/heartbeat'; sleep 0.1; done"
    subprocess.Popen(["sh", "-c", script], start_new_session=True, stdin=subprocess.DEVNULL,
                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def work():
    with open(f"{workspace}/made", "w") as file:
        file.write("made")


with open(f"{workspace}/started", "w"):
    pass
globals()[name]()
