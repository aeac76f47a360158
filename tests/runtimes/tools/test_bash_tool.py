"""Bash: real commands, what they print, how they end, and that nothing of them is left."""

from __future__ import annotations

import os
import tracemalloc
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from nightherd.runtimes.tools.bash import Bash
from nightherd.runtimes.tools.output import OUTPUT_LIMIT_BYTES
from nightherd.runtimes.tools.tool import ToolOutcome
from runtimes.stage import EXECUTION, PATIENCE_S, Stage, is_running, is_written, until


@pytest.fixture
def stage(stage_anywhere: Stage) -> Stage:
    """Every test runs with the tools on this machine, and as programs that stand for tools in a container."""
    return stage_anywhere


def test_what_a_command_prints_comes_back_in_the_order_it_was_printed(stage: Stage) -> None:
    outcome = stage.bash("echo one; echo two >&2; echo three")

    assert (outcome.success, outcome.result, outcome.error) == (True, "one\ntwo\nthree\n", None)


def test_a_command_runs_in_the_working_directory(stage: Stage) -> None:
    outcome = stage.bash("pwd -P")

    assert outcome.result == f"{stage.directory.resolve()}\n"


def test_a_command_has_the_given_environment_and_no_other(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_WORKER", "secret")
    given = Stage(stage.directory, environment={**stage.environment, "GIVEN": "yes"})

    outcome = given.bash("echo $GIVEN-$OF_THE_WORKER-$NIGHTHERD_EXECUTION")

    assert outcome.result == f"yes--{EXECUTION}\n"


def test_a_command_that_reads_finds_nothing_to_read(stage: Stage) -> None:
    assert stage.bash("cat; echo done").result == "done\n"


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("exit 7", "exit code 7"),
        ("no-such-command-here", "exit code 127"),
        ("kill -KILL $$", "ended by SIGKILL"),
        ("kill -TERM $$", "ended by SIGTERM"),
        ("echo 'unclosed", "exit code 2"),
    ],
)
def test_a_command_that_does_not_end_well_is_a_failure_that_says_how(
    stage: Stage, command: str, error: str
) -> None:
    outcome = stage.bash(command)

    assert (outcome.success, outcome.error) == (False, error)


def test_a_failed_command_still_reports_what_it_printed(stage: Stage) -> None:
    assert stage.bash("echo as far as this; false").result == "as far as this\n"


def test_output_that_is_not_text_is_made_readable(stage: Stage) -> None:
    outcome = stage.bash(r"printf 'a\xff\xfeb\0c'")

    assert outcome.result == "a\ufffd\ufffdb\0c"


def test_endless_output_is_cut_in_the_middle_and_held_in_bounded_memory(stage: Stage) -> None:
    size = 100_000_000

    async def measure() -> tuple[str | None, int]:
        outcome = await Bash().run(
            {"command": f"echo begin; head -c {size} /dev/zero | tr '\\0' x; echo; echo end"},
            stage.context(),
        )
        return outcome.result, tracemalloc.get_traced_memory()[1]

    tracemalloc.start()
    try:
        text, peak = anyio.run(measure)
    finally:
        tracemalloc.stop()

    assert text is not None
    assert text.startswith("begin\nxxx")
    assert text.endswith("xxx\nend\n")
    left_out = size + len("begin\n\nend\n") - OUTPUT_LIMIT_BYTES
    assert f"\n[... {left_out:,} bytes left out ...]\n" in text
    assert len(text) < OUTPUT_LIMIT_BYTES + 100
    assert peak < 8_000_000


@pytest.mark.parametrize("limit", [100, 100.4, "100ms", "0.1s"])
def test_a_command_that_takes_too_long_is_stopped(stage: Stage, limit: Any) -> None:
    outcome = stage.bash("sleep 1000", timeout=limit)

    assert (outcome.success, outcome.error) == (False, "stopped: it ran longer than 100ms")


def test_a_command_stopped_for_its_time_takes_everything_it_started_along(stage: Stage) -> None:
    daemon = "setsid sh -c 'echo $$ > daemon.pid; exec sleep 1000' &"
    tidy = "trap 'echo tidy; exit' TERM"
    patient = replace(stage.context(), grace=timedelta(seconds=PATIENCE_S))

    def stopped_after(limit: str) -> ToolOutcome:
        command = f"echo started; {tidy}; {daemon} wait"
        return anyio.run(Bash().run, {"command": command, "timeout": limit}, patient)

    outcome = stopped_after("2s")
    if not is_written(stage.directory / "daemon.pid"):  # a slow machine had not yet begun
        outcome = stopped_after("50s")

    assert (outcome.success, outcome.result) == (False, "started\ntidy\n")
    assert not is_running(stage.pid_in("daemon.pid"))


@pytest.mark.parametrize(
    "daemon",
    [
        pytest.param("sh -c '{body}' &", id="a child"),
        pytest.param("setsid sh -c '{body}' &", id="in a session of its own"),
        pytest.param("env -i setsid sh -c '{body}' &", id="in a session without marks"),
        pytest.param("(setsid sh -c '{body}' &) &", id="an orphan"),
    ],
)
def test_cancelling_a_call_ends_everything_it_started(stage: Stage, daemon: str) -> None:
    # Deaf to SIGTERM, so that it ends only if it is found and killed.
    body = 'trap "" TERM; echo $$ > daemon.pid; while :; do sleep 1; done'

    async def cancel() -> None:
        async with anyio.create_task_group() as tasks:
            command = daemon.format(body=body) + " while :; do sleep 1; done"
            tasks.start_soon(Bash().run, {"command": command}, stage.context())
            await until(lambda: is_written(stage.directory / "daemon.pid"))
            tasks.cancel_scope.cancel()

    anyio.run(cancel)

    assert not is_running(stage.pid_in("daemon.pid"))


def test_stopping_one_call_leaves_alone_what_another_has_started(stage: Stage) -> None:
    async def run() -> bool:
        bash = Bash()
        background = "sleep 1000 > /dev/null 2>&1 & echo $! > earlier.pid"
        await bash.run({"command": background}, stage.context("call-1"))
        await bash.run({"command": "sleep 1000", "timeout": 100}, stage.context("call-2"))
        return is_running(stage.pid_in("earlier.pid"))

    try:
        assert anyio.run(run)
    finally:
        os.kill(stage.pid_in("earlier.pid"), 9)


def test_a_process_left_in_the_background_does_not_hold_up_the_answer(stage: Stage) -> None:
    outcome = stage.bash("sleep 1000 & echo $! > child.pid; echo started", timeout="1m")

    try:
        assert (outcome.success, outcome.result) == (True, "started\n")
        assert is_running(stage.pid_in("child.pid"))
    finally:
        os.kill(stage.pid_in("child.pid"), 9)


def open_files() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def test_calls_leave_no_open_file_behind(stage: Stage) -> None:
    async def count() -> tuple[int, int]:
        await Bash().run({"command": "true"}, stage.context())
        before = open_files()
        for command in ("true", "exit 1", "sleep 5 &", "\0", "x" * 3_000_000):
            await Bash().run({"command": command}, stage.context())
        await stage.keepers.stop()
        return before, open_files()

    before, after = anyio.run(count)

    assert after <= before


@pytest.mark.parametrize(
    ("input", "error"),
    [
        ({}, "Bash needs the input 'command': a text"),
        ({"command": 7}, "Bash: 'command' must be a text, not int"),
        ({"command": None}, "Bash: 'command' must be a text, not NoneType"),
        (
            {"command": "true", "timeout": 0},
            "Bash: 'timeout' must be greater than 0 and at most 10m",
        ),
        (
            {"command": "true", "timeout": -5},
            "Bash: 'timeout' must be greater than 0 and at most 10m",
        ),
        ({"command": "true", "timeout": "11m"}, "greater than 0 and at most 10m"),
        ({"command": "true", "timeout": 600_001}, "greater than 0 and at most 10m"),
        ({"command": "true", "timeout": "soon"}, "'soon' is not a duration"),
        ({"command": "true", "timeout": True}, "milliseconds or a duration like 90s"),
        ({"command": "true", "timeout": float("nan")}, "milliseconds or a duration like 90s"),
        ({"command": "true", "timeout": 10**30}, "milliseconds or a duration like 90s"),
        (
            {"command": "true", "cwd": "/"},
            "Bash has no input 'cwd'; its inputs are command, timeout, description",
        ),
        ({"command": "a\0b"}, "the command could not be started: embedded null byte"),
        ({"command": "\ud800"}, "the command could not be started: "),
        ({"command": "x" * 3_000_000}, "the command is too long: 3,000,000 bytes"),
    ],
)
def test_input_that_makes_no_sense_is_a_failure_that_says_why(
    stage: Stage, input: dict[str, Any], error: str
) -> None:
    outcome = stage.use(Bash(), **input)

    assert outcome.success is False
    assert outcome.result is None
    assert error in (outcome.error or "")


def test_a_command_cannot_start_where_there_is_no_directory(tmp_path: Path) -> None:
    outcome = Stage(tmp_path / "gone").bash("true")

    assert outcome.success is False
    assert outcome.error is not None
    assert outcome.error.startswith("the command could not be started: ")
