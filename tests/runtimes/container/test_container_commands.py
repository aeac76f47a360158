"""Commands in a container, under the keeper: as on the host, and one container for all of these tests."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from nightherd.runtimes.keeper.attendant import Ending, KilledBy
from runtimes.container.container_stage import ENVIRONMENT, QUICK, Box, Boxes
from runtimes.stage import PATIENCE_S

Inside = Callable[[Callable[[Box], Awaitable[Any]]], Any]


@pytest.fixture
def inside(shared_boxes: Boxes) -> Inside:
    """Runs a function with the container that these tests share."""

    async def work(use: Callable[[Box], Awaitable[Any]]) -> Any:
        async with shared_boxes.opened(is_ephemeral=False) as box:
            return await use(box)

    return lambda use: anyio.run(work, use)


async def count(box: Box, states: str = "[^ZX]", name: str = "sleep") -> int:
    """How many processes with this name and in one of these states are inside."""
    output, _ = await box.run(f"cat /proc/[0-9]*/stat 2>/dev/null | grep -c '({name}) {states}'")
    return int(output)


@pytest.mark.parametrize(
    ("command", "returncode"),
    [
        ("exit 0", 0),
        ("exit 7", 7),
        ("kill -KILL $$", -signal.SIGKILL),
        ("kill -SEGV $$", -signal.SIGSEGV),
    ],
)
def test_end_of_a_command_is_reported_as_it_was(
    inside: Inside, command: str, returncode: int
) -> None:
    _, ending = inside(lambda box: box.run(command))

    assert ending == Ending(returncode=returncode)


def test_command_runs_as_its_user_in_its_directory_with_its_variables_only(inside: Inside) -> None:
    async def look(box: Box) -> tuple[str, Box]:
        environment = {**ENVIRONMENT, "GIVEN": "two\nlines"}
        output, _ = await box.run(
            "id -u; id -g; pwd; env -0 | sort -z | tr '\\0' '|'", env=environment
        )
        return output, box

    output, box = inside(look)
    uid, gid, directory, variables = output.split("\n", 3)

    assert (uid, gid, directory) == ("1000", "1000", str(box.directory))
    names = {entry.partition("=")[0] for entry in variables.split("|") if entry.strip()}
    own = {"PWD", "SHLVL", "_"}
    assert names - own == {"PATH", "HOME", "GIVEN", "NIGHTHERD_EXECUTION", "NIGHTHERD_KEEPER"}
    assert "GIVEN=two\nlines|" in variables


def test_megabytes_pass_both_ways_and_the_end_of_the_input_arrives(inside: Inside) -> None:
    body = os.urandom(3_000_000)

    async def echo(box: Box) -> bytes:
        received = bytearray()
        async with box.kept("sh", "-c", "cat; echo end", stdin=subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(process.stdout.drain, received.extend)
                await process.stdin.send(body)
                process.end_input()
            await process.wait()
        return bytes(received)

    assert inside(echo) == body + b"end\n"


def test_stdout_and_stderr_are_two_streams(inside: Inside) -> None:
    async def both(box: Box) -> tuple[bytes, bytes]:
        out, err = bytearray(), bytearray()
        async with box.kept("sh", "-c", "echo out; echo err >&2") as process:
            assert process.stdout is not None
            assert process.stderr is not None
            await process.stdout.drain(out.extend)
            await process.stderr.drain(err.extend)
        return bytes(out), bytes(err)

    assert inside(both) == (b"out\n", b"err\n")


@pytest.mark.parametrize(
    ("argv", "number"),
    [
        (["no-such-command-here"], errno.ENOENT),
        (["/no/such/file"], errno.ENOENT),
        (["/etc/passwd"], errno.EACCES),
        (["sh", "x" * 3_000_000], errno.E2BIG),
    ],
)
def test_command_that_cannot_be_started_is_refused_with_its_name(
    inside: Inside, argv: list[str], number: int
) -> None:
    async def start(box: Box) -> None:
        async with box.kept(*argv):
            raise AssertionError("it started")

    with pytest.raises(OSError, match=argv[0]) as refused:
        inside(start)

    assert refused.value.errno == number


def test_directory_that_is_only_outside_is_refused(inside: Inside, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=str(tmp_path)):
        inside(lambda box: box.run("true", cwd=tmp_path))


def test_keepers_keep_nothing_of_the_worker_open_inside(inside: Inside) -> None:
    output, _ = inside(lambda box: box.run("ls /proc/self/fd"))

    # `ls` itself has the directory open as 3.
    assert output.split() == ["0", "1", "2", "3"]


def test_background_processes_end_with_the_command(inside: Inside) -> None:
    async def leave(box: Box) -> int:
        await box.run("(setsid sleep 600 &) ; sleep 600 >/dev/null 2>&1 & echo started")
        return await count(box)

    assert inside(leave) == 0


def test_background_processes_outlive_a_command_that_may_leave_them_until_the_run_ends(
    shared_boxes: Boxes,
) -> None:
    async def leave() -> None:
        async with shared_boxes.opened(is_ephemeral=False) as box:
            await box.run("sleep 600 >/dev/null 2>&1 & echo started", may_outlive=True)
            assert await count(box) == 1
        async with shared_boxes.opened(is_ephemeral=False) as again:
            assert again.id == box.id
            assert await count(again) == 0

    anyio.run(leave)


def test_stop_ends_a_command_within_its_grace_by_sigterm(inside: Inside) -> None:
    async def stop(box: Box) -> tuple[bytes, Ending]:
        command = "trap 'echo asked; exit 3' TERM; echo ready; while :; do sleep 0.01; done"
        async with box.kept("bash", "-c", command) as process:
            assert process.stdout is not None
            assert await process.stdout.receive() == b"ready\n"
            ending = await process.stop(grace=QUICK * 100)
            return await process.stdout.receive(), ending

    said, ending = inside(stop)

    assert said == b"asked\n"
    assert (ending.returncode, ending.killed_by, ending.left) == (3, KilledBy.STOP, 0)


def test_stop_kills_a_command_that_ignores_sigterm(inside: Inside) -> None:
    async def stop(box: Box) -> Ending:
        command = "trap '' TERM; echo ready; while :; do sleep 0.01; done"
        async with box.kept("bash", "-c", command) as process:
            assert process.stdout is not None
            assert await process.stdout.receive() == b"ready\n"
            return await process.stop()

    ending = inside(stop)

    assert (ending.returncode, ending.killed_by, ending.left) == (
        -signal.SIGKILL,
        KilledBy.STOP,
        0,
    )


def test_cancel_ends_400_processes_that_ignore_sigterm(inside: Inside) -> None:
    """A container has 512 of them at most."""

    async def cancel(box: Box) -> int:
        many = "trap '' TERM; for i in $(seq 400); do sleep 600 & done; echo ready; wait"
        with anyio.CancelScope() as scope:
            async with box.kept("bash", "-c", many) as process:
                assert process.stdout is not None
                assert await process.stdout.receive() == b"ready\n"
                scope.cancel()
                await anyio.sleep_forever()
        return await count(box)

    assert inside(cancel) == 0


def test_orphans_of_a_killed_keeper_are_reaped(inside: Inside) -> None:
    async def orphan(box: Box) -> None:
        async with box.kept("sh", "-c", "sleep 600 & sleep 600 & echo ready; wait") as process:
            assert process.stdout is not None
            assert await process.stdout.receive() == b"ready\n"
            await box.run(f"kill -KILL {process.keeper_pid}")
            await process.wait()
        with anyio.fail_after(PATIENCE_S):
            while await count(box, "Z", ".*"):  # noqa: ASYNC110 process 1 sets no event here
                await anyio.sleep(0.01)

    inside(orphan)


def test_killed_keeper_takes_its_command_with_it(inside: Inside) -> None:
    async def kill(box: Box) -> tuple[Ending, int]:
        async with box.kept("sh", "-c", "trap '' TERM; echo ready; sleep 600 & wait") as process:
            assert process.stdout is not None
            assert await process.stdout.receive() == b"ready\n"
            await box.run(f"kill -KILL {process.keeper_pid}")
            ending = await process.wait()
        return ending, await count(box)

    ending, left = inside(kill)

    assert (ending.returncode, ending.killed_by, ending.left) == (None, KilledBy.KEEPER_GONE, 0)
    assert left == 0


def test_stopped_keeper_is_ended_from_outside(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nightherd.runtimes.keeper.process.ANSWER_S", 0.0)
    monkeypatch.setattr("nightherd.runtimes.keeper.process.KILL_WAIT_S", 0.0)

    async def freeze(box: Box) -> int:
        async with box.kept("sleep", "600") as process:
            await box.run(f"kill -STOP {process.keeper_pid}")
        return await count(box)

    assert inside(freeze) == 0


def test_hundred_commands_at_once(inside: Inside) -> None:
    async def crowd(box: Box) -> list[str]:
        outputs: list[str] = []

        async def one(number: int) -> None:
            output, _ = await box.run(f"echo {number}")
            outputs.append(output)

        async with anyio.create_task_group() as tasks:
            for number in range(100):
                tasks.start_soon(one, number)
        return outputs

    assert sorted(map(int, inside(crowd))) == list(range(100))


def test_server_out_here_answers_on_the_loopback_inside(inside: Inside) -> None:
    async def serve(box: Box) -> str:
        with box.running.place.listen() as listener:
            port = listener.getsockname()[1]
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(anyio.to_thread.run_sync, answer, listener)
                output, _ = await box.run(f"exec 3<>/dev/tcp/127.0.0.1/{port}; cat <&3")
        return output

    def answer(listener: Any) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"from outside")

    assert inside(serve) == "from outside"
