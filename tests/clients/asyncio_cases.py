"""asyncio starts confined commands. Each case runs outside."""
import asyncio
import os
import signal
import sys

from subprocess_cases import CONFINE, MARK, PARENT, await_marked, command, death, gone, marked

PIPE = asyncio.subprocess.PIPE


async def start(*words, **options):
    return await asyncio.create_subprocess_exec(*command(*words), **options)


async def communicate():
    data = os.urandom(1 << 20)
    child = await start("bash", "-c", "cat; echo aside >&2; exit 7", stdin=PIPE, stdout=PIPE, stderr=PIPE)
    out, err = await asyncio.wait_for(child.communicate(data), 30)
    assert (out, err, child.returncode) == (data, b"aside\n", 7), (len(out), err, child.returncode)


async def lines_as_they_come():
    child = await start("bash", "-c", "for i in 1 2 3; do echo $i; read line; done; echo over", stdin=PIPE, stdout=PIPE)
    for number in (b"1\n", b"2\n", b"3\n"):
        assert await asyncio.wait_for(child.stdout.readline(), 30) == number
        child.stdin.write(b"go on\n")
        await child.stdin.drain()
    assert await child.stdout.read() == b"over\n" and await child.wait() == 0


async def terminate_and_kill():
    child = await start("bash", "-c", f"trap 'echo term; exit 5' TERM; echo up; sleep {MARK} >/dev/null & wait", stdout=PIPE)
    assert await child.stdout.readline() == b"up\n"
    await_marked(1)
    child.terminate()
    assert await child.stdout.readline() == b"term\n" and await asyncio.wait_for(child.wait(), 30) == 5
    if not PARENT:
        [left] = marked()
        os.kill(left, signal.SIGKILL)
    assert gone(marked())
    child = await start("sleep", MARK)
    await_marked(1)
    child.kill()
    assert await asyncio.wait_for(child.wait(), 30) == -signal.SIGKILL
    assert gone(marked())


async def timeout_then_the_group():
    """What agents' shell tools do: wait some time, then TERM to the group, then KILL."""
    child = await start("bash", "-c", f"trap '' TERM; sleep {MARK} & sleep {MARK}", start_new_session=True)
    await asyncio.to_thread(await_marked, 2)
    try:
        await asyncio.wait_for(child.wait(), 0.2)
        raise AssertionError("no timeout")
    except asyncio.TimeoutError:
        os.killpg(child.pid, signal.SIGTERM)
    try:
        # Where teardown is promised the tree is ended some time after TERM; else nothing but KILL ends it.
        await asyncio.wait_for(child.wait(), 30 if os.environ["MODE"] == "strict" else 2)
        assert os.environ["MODE"] == "strict"
    except asyncio.TimeoutError:
        assert os.environ["MODE"] != "strict"
        os.killpg(child.pid, signal.SIGKILL)
    assert await asyncio.wait_for(child.wait(), 30) in (-signal.SIGKILL, death(signal.SIGKILL))
    assert gone(marked())


async def cancelled_task():
    async def run():
        child = await start("sleep", MARK)
        try:
            await child.wait()
        except asyncio.CancelledError:
            child.terminate()
            assert await child.wait() == death(signal.SIGTERM)
            raise
    task = asyncio.create_task(run())
    await asyncio.to_thread(await_marked, 1)
    task.cancel()
    try:
        await task
        raise AssertionError("not cancelled")
    except asyncio.CancelledError:
        pass
    assert gone(marked())


async def through_a_shell():
    child = await asyncio.create_subprocess_shell(" ".join(CONFINE) + " -- sh -c 'echo $CONFINE; exit 4'", stdout=PIPE)
    assert (await child.communicate())[0] == b"1\n" and child.returncode == 4


async def many_at_once():
    async def one(number):
        child = await start("sh", "-c", f"read line; echo {number} $line", stdin=PIPE, stdout=PIPE)
        return (await child.communicate(b"in\n"))[0]
    said = await asyncio.wait_for(asyncio.gather(*map(one, range(20))), 60)
    assert said == [f"{number} in\n".encode() for number in range(20)]


if __name__ == "__main__":
    asyncio.run(globals()[sys.argv[1]]())
    print(f"{sys.argv[1]} ok")
