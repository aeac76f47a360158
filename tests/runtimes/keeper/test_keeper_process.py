"""A command under a keeper: how it is started, what passes through its pipes, how it ends, and what it leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from nightherd.runtimes.keeper.attendant import Ending, KilledBy
from nightherd.runtimes.keeper.keepers import Keepers, Kept
from nightherd.runtimes.keeper.launch import LineReader
from nightherd.runtimes.keeper.process import KeptProcess, kept_process
from nightherd.runtimes.tools.output import BoundedOutput
from runtimes.stage import PATIENCE_S, is_running, is_written, until

ENVIRONMENT = {"PATH": os.environ["PATH"]}
QUICK = timedelta(milliseconds=200)


@asynccontextmanager
async def kept(directory: Path, *argv: str, **more: Any) -> AsyncIterator[KeptProcess]:
    options = {"env": ENVIRONMENT, "execution": str(directory), "grace": QUICK, **more}
    async with kept_process(argv, cwd=directory, **options) as process:
        yield process


async def run(directory: Path, command: str, **more: Any) -> tuple[str, Ending]:
    """What the shell printed, and how it ended."""
    async with kept(directory, "sh", "-c", command, **more) as process:
        assert process.stdout is not None
        output = bytearray()
        await process.stdout.drain(output.extend)
        return output.decode(), await process.wait()


@pytest.mark.parametrize(
    ("command", "returncode"),
    [
        ("exit 0", 0),
        ("exit 7", 7),
        ("exit 255", 255),
        ("kill -KILL $$", -signal.SIGKILL),
        ("kill -SEGV $$", -signal.SIGSEGV),
        ("kill -TERM $$", -signal.SIGTERM),
    ],
)
def test_the_end_of_a_command_is_told_as_it_was(
    tmp_path: Path, command: str, returncode: int
) -> None:
    _, ending = anyio.run(run, tmp_path, command)

    assert ending == Ending(returncode=returncode)


@pytest.mark.parametrize(
    ("argv", "error"),
    [
        (["no-such-command-here"], FileNotFoundError),
        (["/no/such/file"], FileNotFoundError),
        (["./not-executable"], PermissionError),
        (["."], PermissionError),
        (["sh", "x" * 3_000_000], OSError),
        (["sh", "a\0b"], ValueError),
        ([], ValueError),
    ],
)
def test_a_command_that_cannot_be_started_is_an_error_that_leaves_nothing(
    tmp_path: Path, argv: list[str], error: type[Exception]
) -> None:
    (tmp_path / "not-executable").write_text("")
    keepers = Keepers()

    async def start() -> None:
        async with kept(tmp_path, *argv, keepers=keepers):
            raise AssertionError("it started")

    before = open_files()
    with pytest.raises(error):
        anyio.run(start)

    assert len(keepers) == 0
    assert open_files() <= before


def test_a_directory_that_is_not_there_is_named_by_the_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="gone"):
        anyio.run(run, tmp_path / "gone", "true")


def test_a_command_is_looked_for_where_its_own_environment_says(tmp_path: Path) -> None:
    tool = tmp_path / "bin" / "tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho found\n")
    tool.chmod(0o755)

    async def look() -> bytes:
        path = f"/no/such/folder:{tool.parent}"
        async with kept(tmp_path, "tool", env={"PATH": path}) as process:
            assert process.stdout is not None
            return await process.stdout.receive()

    assert anyio.run(look) == b"found\n"


def test_a_command_has_its_environment_and_the_marks_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_WORKER", "x")
    environment = {**ENVIRONMENT, "GIVEN": "two\nlines = ü", "ODD": "\udcff"}

    async def names() -> bytes:
        options: dict[str, Any] = {"env": environment, "marks": {"MARK": "m"}}
        async with kept(tmp_path, "/usr/bin/env", "-0", **options) as process:
            assert process.stdout is not None
            output = bytearray()
            await process.stdout.drain(output.extend)
            return bytes(output)

    entries = dict(entry.split(b"=", 1) for entry in anyio.run(names).split(b"\0")[:-1])

    assert entries.pop(b"NIGHTHERD_KEEPER").startswith(b"%d-" % os.getpid())
    assert entries == {
        b"PATH": ENVIRONMENT["PATH"].encode(),
        b"GIVEN": "two\nlines = ü".encode(),
        b"ODD": b"\xff",
        b"MARK": b"m",
        b"NIGHTHERD_EXECUTION": os.fsencode(tmp_path),
    }


def test_a_command_starts_with_no_signal_ignored_or_blocked_and_no_other_file_open(
    tmp_path: Path,
) -> None:
    stray = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(stray, True)
    # As a shell leaves it for what it puts into the background.
    before = signal.signal(signal.SIGQUIT, signal.SIG_IGN)
    try:
        script = "grep -E 'Sig(Ign|Blk)' /proc/self/status; ls /proc/self/fd"
        output, _ = anyio.run(run, tmp_path, script)
    finally:
        os.close(stray)
        signal.signal(signal.SIGQUIT, before)

    masks, descriptors = output.split()[:4], output.split()[4:]
    # Above 31 are real-time signals, some of which the C library keeps for itself.
    assert [int(mask, 16) & 0x7FFFFFFF for mask in masks[1::2]] == [0, 0]
    assert descriptors == ["0", "1", "2", "3"]  # the last is what `ls` reads


def test_what_is_sent_comes_back_whole_also_when_it_is_more_than_a_pipe_holds(
    tmp_path: Path,
) -> None:
    data = os.urandom(1_000_000)

    async def echo() -> bytes:
        async with kept(tmp_path, "cat", stdin=subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            received = bytearray()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(process.stdout.drain, received.extend)
                await process.stdin.send(data)
                process.stdin.close()
            assert (await process.wait()).returncode == 0
            return bytes(received)

    assert anyio.run(echo) == data


@pytest.mark.parametrize("holds_input", [False, True])
def test_the_end_of_the_input_is_told_twice_and_the_keeper_stays(
    tmp_path: Path, holds_input: bool
) -> None:
    """One that does not hold the input, or not any more, has something else under that number."""

    async def work() -> Ending:
        command = ("sh", "-c", "cat; sleep 0.5; exit 3")
        async with kept(
            tmp_path, *command, stdin=subprocess.PIPE, holds_input=holds_input
        ) as process:
            process.end_input()
            process.end_input()
            return await process.wait()

    assert anyio.run(work) == Ending(returncode=3)


def test_a_command_finds_the_end_of_an_input_that_its_keeper_held(tmp_path: Path) -> None:
    async def say_and_end() -> tuple[bytes, Ending]:
        async with kept(tmp_path, "cat", stdin=subprocess.PIPE, holds_input=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            await process.stdin.send(b"hello")
            process.end_input()
            heard = bytearray()
            await process.stdout.drain(heard.extend)
            return bytes(heard), await process.wait()

    heard, ending = anyio.run(say_and_end)
    assert (heard, ending.returncode, ending.killed) == (b"hello", 0, 0)


def test_sending_to_a_command_that_does_not_read_is_told(tmp_path: Path) -> None:
    async def send() -> None:
        async with kept(tmp_path, "true", stdin=subprocess.PIPE) as process:
            await process.wait()
            assert process.stdin is not None
            await process.stdin.send(b"x")

    with pytest.raises(BrokenPipeError):
        anyio.run(send)


def test_fifty_megabytes_pass_and_errors_are_kept_apart_in_bounded_memory(tmp_path: Path) -> None:
    size = 50_000_000

    async def count() -> tuple[int, str]:
        counted = 0

        def take(chunk: bytes) -> None:
            nonlocal counted
            counted += len(chunk)

        errors = BoundedOutput(100)
        script = f"head -c {size} /dev/zero; head -c 1000000 /dev/zero >&2; echo end >&2"
        async with kept(tmp_path, "sh", "-c", script) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(process.stdout.drain, take)
                tasks.start_soon(process.stderr.drain, errors.add)
            return counted, errors.text()

    counted, errors = anyio.run(count)

    assert counted == size
    assert errors.endswith("end\n")
    assert len(errors) < 200


def test_lines_may_be_of_any_length_and_the_last_need_not_be_ended(tmp_path: Path) -> None:
    script = "echo one; echo; head -c 3000000 /dev/zero | tr '\\0' x; echo; printf last"

    async def read() -> list[bytes]:
        async with kept(tmp_path, "sh", "-c", script) as process:
            assert process.stdout is not None
            return [line async for line in process.stdout.lines()]

    lines = anyio.run(read)

    assert [len(line) for line in lines] == [3, 0, 3_000_000, 4]
    assert (lines[0], lines[-1]) == (b"one", b"last")


def test_a_reading_of_a_line_that_is_cancelled_loses_nothing(tmp_path: Path) -> None:
    async def read() -> list[bytes | None]:
        command = "printf 'one\\ntw'; read go; printf 'o\\nthree'"
        async with kept(tmp_path, "sh", "-c", command, stdin=subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            lines = LineReader(process.stdout)
            found = [await lines.next()]
            with anyio.move_on_after(0.05) as cut:
                found.append(await lines.next())
            assert cut.cancelled_caught
            await process.stdin.send(b"go\n")
            return [*found, await lines.next(), await lines.next(), await lines.next()]

    assert anyio.run(read) == [b"one", b"two", b"three", None]


def test_lines_end_where_one_is_longer_than_allowed(tmp_path: Path) -> None:
    async def read() -> list[bytes | None]:
        command = "printf 'one\\n'; printf 'two\\n'; head -c 300000 /dev/zero; printf '\\nlast\\n'"
        async with kept(tmp_path, "sh", "-c", command) as process:
            assert process.stdout is not None
            lines = LineReader(process.stdout, 1_000)
            return [await lines.next(), await lines.next(), await lines.next()]

    assert anyio.run(read) == [b"one", b"two", None]


def test_nothing_outlives_a_command_that_may_leave_nothing(tmp_path: Path) -> None:
    daemon = (
        "setsid sh -c 'trap \"\" TERM; echo $$ > it.pid; while :; do sleep 0.1; done' > /dev/null"
    )
    command = f"({daemon} &) ; until test -s it.pid; do sleep 0.01; done; exit 3"

    _, ending = anyio.run(run, tmp_path, command)

    assert (ending.returncode, ending.killed_by, ending.left) == (3, KilledBy.NONE, 0)
    assert ending.killed >= 1
    assert not is_running(int((tmp_path / "it.pid").read_text()))


def test_what_may_outlive_its_command_goes_on_until_the_keepers_are_stopped(
    tmp_path: Path,
) -> None:
    async def leave() -> tuple[Ending, bool, int]:
        keepers = Keepers()
        command = "sleep 1000 > /dev/null 2>&1 & echo $! > it.pid; exit 4"
        _, ending = await run(tmp_path, command, may_outlive=True, keepers=keepers)
        goes_on = is_running(int((tmp_path / "it.pid").read_text()))
        await keepers.stop()
        return ending, goes_on, len(keepers)

    ending, goes_on, count = anyio.run(leave)

    assert (ending, goes_on, count) == (Ending(returncode=4, left=1), True, 0)
    assert not is_running(int((tmp_path / "it.pid").read_text()))


def test_a_keeper_goes_when_the_last_thing_left_in_the_background_has(tmp_path: Path) -> None:
    async def leave() -> None:
        keepers = Keepers()
        command = "cat fifo > /dev/null 2>&1 & true"
        _, ending = await run(tmp_path, command, may_outlive=True, keepers=keepers)
        assert ending.left == 1
        async with await anyio.open_file(tmp_path / "fifo", "w"):
            assert len(keepers) == 1
        await until(lambda: len(keepers) == 0)

    os.mkfifo(tmp_path / "fifo")
    anyio.run(leave)

    assert anyio.run(run, tmp_path, "true")[1].returncode == 0


def open_files() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def children() -> set[str]:
    """Every child of this process, zombies included."""
    parent = str(os.getpid())
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if fields[1] == parent:
            found.add(path.parent.name)
    return found


def test_two_hundred_commands_leave_no_zombie_and_no_open_file(tmp_path: Path) -> None:
    async def work() -> tuple[int, int, set[str]]:
        await run(tmp_path, "true")
        before, known = open_files(), children()
        for number in range(200):
            _, ending = await run(tmp_path, f"exit {number % 3}")
            assert ending.returncode == number % 3
        return before, open_files(), children() - known

    before, after, left = anyio.run(work)

    assert after <= before
    assert left == set()


def with_argument(text: str) -> list[str]:
    """The command lines on this machine that contain the text."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        found += [str(path)] if text.encode() in line else []
    return found


def test_secrets_stand_in_no_command_line(tmp_path: Path) -> None:
    secret = f"secret-{os.getpid()}-value"

    async def look() -> list[str]:
        options = {"env": {**ENVIRONMENT, "TOKEN": secret}}
        async with kept(tmp_path, "sleep", "1000", **options) as process:
            # The kernel shows the arguments of a new program a moment after it has begun.
            await until(lambda: f"/proc/{process.pid}/cmdline" in with_argument("1000"))
            keeper = anyio.Path(f"/proc/{process.keeper_pid}")
            assert secret.encode() not in await (keeper / "environ").read_bytes()
            return with_argument(secret)

    assert anyio.run(look) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_keeper_reaches_the_group_of_the_command(
    tmp_path: Path, number: signal.Signals
) -> None:
    script = (
        f"trap 'echo heard; exit 5' {number.name[3:]}; echo ready; while :; do sleep 0.01; done"
    )

    async def send() -> tuple[bytes, Ending]:
        async with kept(tmp_path, "sh", "-c", script) as process:
            assert process.stdout is not None
            assert await process.stdout.receive() == b"ready\n"
            os.kill(process.keeper_pid, number)
            return await process.stdout.receive(), await process.wait()

    assert anyio.run(send) == (b"heard\n", Ending(returncode=5))


def test_a_keeper_does_not_go_when_its_terminal_or_its_pipes_do(tmp_path: Path) -> None:
    async def send() -> Ending:
        async with kept(tmp_path, "cat", stdin=subprocess.PIPE) as process:
            for number in (signal.SIGHUP, signal.SIGPIPE):
                os.kill(process.keeper_pid, number)
            assert process.stdin is not None
            process.stdin.close()
            return await process.wait()

    assert anyio.run(send) == Ending(returncode=0)


def test_stopping_gives_a_grace_and_then_kills(tmp_path: Path) -> None:
    async def stop(command: str, grace: timedelta) -> Ending:
        async with kept(tmp_path, "sh", "-c", command, grace=grace) as process:
            assert process.stdout is not None
            assert await process.stdout.receive() == b"ready\n"
            first = await process.stop()
            assert await process.stop() == first == await process.wait()
            return first

    listening = "trap 'exit 6' TERM; echo ready; while :; do sleep 0.01; done"
    tidy = anyio.run(stop, listening, timedelta(seconds=PATIENCE_S))
    deaf = anyio.run(stop, "trap '' TERM; echo ready; while :; do sleep 1; done", QUICK)

    assert (tidy.returncode, tidy.killed_by) == (6, KilledBy.STOP)
    assert (deaf.returncode, deaf.killed_by) == (-signal.SIGKILL, KilledBy.STOP)
    assert deaf.killed >= 1


def test_a_process_that_forks_away_all_the_time_is_caught(tmp_path: Path) -> None:
    runner = (
        "import os, signal\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "os.write(1, b'ready')\n"
        "while not os.fork(): pass\n"
    )

    async def stop() -> Ending:
        async with kept(tmp_path, sys.executable, "-S", "-c", runner) as process:
            assert process.stdout is not None
            assert await process.stdout.receive() == b"ready"
            ending = await process.stop()
            assert await process.stdout.receive() == b""  # nobody is left who could print
            return ending

    assert anyio.run(stop).left == 0


@pytest.mark.parametrize("way", ["cancelled", "raised", "left"])
def test_leaving_the_block_in_whatever_way_ends_everything(tmp_path: Path, way: str) -> None:
    daemon = "setsid sh -c 'trap \"\" TERM; echo $$ > it.pid; while :; do sleep 1; done' &"

    async def leave() -> None:
        with anyio.CancelScope() as scope:
            async with kept(tmp_path, "sh", "-c", f"{daemon} wait", may_outlive=True):
                await until(lambda: is_written(tmp_path / "it.pid"))
                if way == "raised":
                    raise LookupError
                if way == "cancelled":
                    scope.cancel()
                    await anyio.sleep_forever()

    if way == "raised":
        with pytest.raises(LookupError):
            anyio.run(leave)
    else:
        anyio.run(leave)

    assert not is_running(int((tmp_path / "it.pid").read_text()))


def test_a_keeper_that_is_frozen_is_taken_out_together_with_its_tree(tmp_path: Path) -> None:
    daemon = "env -i setsid sh -c 'echo $$ > it.pid; sleep 1000' &"

    async def freeze() -> Ending:
        async with kept(tmp_path, "sh", "-c", f"{daemon} wait") as process:
            await until(lambda: is_written(tmp_path / "it.pid"))
            os.kill(process.keeper_pid, signal.SIGSTOP)
            await anyio.to_thread.run_sync(process._attendant.force)
            return await process.wait()

    ending = anyio.run(freeze)

    assert ending.killed_by is KilledBy.KEEPER_GONE
    assert not is_running(int((tmp_path / "it.pid").read_text()))


def test_a_keeper_killed_after_its_command_ended_leaves_nothing_in_the_background(
    tmp_path: Path,
) -> None:
    async def leave() -> None:
        keepers = Keepers()
        command = "setsid sleep 1000 > /dev/null 2>&1 & echo $! > it.pid"
        options: dict[str, Any] = {"may_outlive": True, "keepers": keepers}
        async with kept(tmp_path, "sh", "-c", command, **options) as process:
            await process.wait()
        os.kill(process.keeper_pid, signal.SIGKILL)
        await until(lambda: len(keepers) == 0)

    anyio.run(leave)

    assert not is_running(int((tmp_path / "it.pid").read_text()))


def test_a_keeper_that_dies_at_once_is_an_ending_for_the_command_may_have_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")

    _, ending = anyio.run(run, tmp_path, "true")

    assert ending == Ending(returncode=None, killed_by=KilledBy.KEEPER_GONE)


def test_no_more_start_at_once_than_the_limiter_allows(tmp_path: Path) -> None:
    async def work() -> int:
        limiter = anyio.CapacityLimiter(1)
        keepers = Keepers(starts=limiter)
        running = 0

        async def one() -> None:
            nonlocal running
            async with kept(tmp_path, "cat", stdin=subprocess.PIPE, keepers=keepers):
                running += 1
                await until(lambda: running == 3)

        async with anyio.create_task_group() as tasks, limiter:
            for _ in range(3):
                tasks.start_soon(one)
            await until(lambda: limiter.statistics().tasks_waiting == 3)
            assert len(keepers) == 0
        return running

    assert anyio.run(work) == 3


def test_a_branch_hears_the_heartbeats_and_is_stopped_alone(tmp_path: Path) -> None:
    async def work() -> tuple[Ending | None, Ending | None, float]:
        worker = Keepers()
        worker.send_heartbeat(anyio.current_time() + 1000)
        one, other = worker.branch(), worker.branch()
        async with (
            kept(tmp_path, "sleep", "1000", keepers=one) as stopped,
            kept(tmp_path, "sleep", "1000", keepers=other) as late,
        ):
            await one.stop()
            assert late.ending is None
            worker.send_heartbeat(anyio.current_time())
            await late.wait()
            return stopped.ending, late.ending, one.deadline - other.deadline

    stopped, late, difference = anyio.run(work)

    assert stopped is not None
    assert late is not None
    assert (stopped.killed_by, late.killed_by) == (KilledBy.STOP, KilledBy.LEASE)
    assert difference == 0


def test_a_sign_of_life_that_comes_before_the_instructions_does_no_harm(tmp_path: Path) -> None:
    class Eager(Keepers):
        def add(self, kept: Kept) -> None:
            super().add(kept)
            kept.send_heartbeat(anyio.current_time() + 1000)

    async def work() -> Ending:
        async with kept(tmp_path, "sh", "-c", "exit 7", keepers=Eager()) as process:
            return await process.wait()

    assert anyio.run(work).returncode == 7
