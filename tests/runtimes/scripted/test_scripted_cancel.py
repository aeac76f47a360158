"""Stopping a scripted run: however it is stopped, nothing it started goes on."""

from __future__ import annotations

from contextlib import aclosing
from datetime import timedelta

import anyio
import pytest
from msgspec.structs import replace

from nightherd.model.agents.script import Repeat, Say, Script, Sleep, UseTool, compile_script
from nightherd.model.ids import ExecutionId
from nightherd.model.journal.event import Event, SystemEvent, ToolResultEvent
from nightherd.runtimes.scripted.runtime import ScriptedRuntime
from runtimes.stage import QUICK, Stage, is_running, is_written, take, until

FAMILY = """
sleep 1000 & echo $! > child.pid
setsid sh -c 'echo $$ > daemon.pid; trap "" TERM; while :; do sleep 1; done' &
echo $$ > shell.pid
"""
"""A shell with a child, and with a daemon in a session of its own that will not hear SIGTERM."""
PIDS = ("child.pid", "daemon.pid", "shell.pid")


def script(*commands: str) -> Script:
    return compile_script([UseTool("Bash", {"command": command}) for command in commands])


def is_family_complete(stage: Stage) -> bool:
    return all(is_written(stage.directory / name) for name in PIDS)


def survivors(stage: Stage) -> list[str]:
    return [name for name in PIDS if is_running(stage.pid_in(name))]


def test_cancelling_ends_the_command_and_everything_it_started(stage: Stage) -> None:
    seen: list[Event] = []

    async def run() -> None:
        events = ScriptedRuntime(grace=QUICK).execute(stage.request(script(FAMILY + "wait")))
        async with aclosing(events):
            while True:
                seen.append(await anext(events))

    async def cancel_in_the_middle() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await until(lambda: is_family_complete(stage))
            assert survivors(stage) == list(PIDS)
            tasks.cancel_scope.cancel()

    anyio.run(cancel_in_the_middle)

    assert survivors(stage) == []
    assert not any(isinstance(event, ToolResultEvent) for event in seen)


def test_closing_ends_what_earlier_calls_left_running(stage: Stage) -> None:
    async def stop_early() -> None:
        events = ScriptedRuntime(grace=QUICK).execute(
            stage.request(script(FAMILY + "disown -a", "true"))
        )
        async with aclosing(events):
            await take(events, 3)
            await until(lambda: is_family_complete(stage))
            assert survivors(stage) == ["child.pid", "daemon.pid"]

    anyio.run(stop_early)

    assert survivors(stage) == []


def test_nothing_runs_any_more_when_the_run_says_it_is_complete(stage: Stage) -> None:
    async def read_to_the_end() -> None:
        events = ScriptedRuntime(grace=QUICK).execute(stage.request(script(FAMILY)))
        async with aclosing(events):
            await take(events, 3)
            await until(lambda: is_family_complete(stage))
            (last,) = await take(events, 1)
            assert isinstance(last, SystemEvent)
            assert survivors(stage) == []

    anyio.run(read_to_the_end)


def test_what_a_call_leaves_running_is_there_for_the_next_call(stage: Stage) -> None:
    background = "sleep 1000 > /dev/null 2>&1 & echo $! > child.pid"

    events = stage.play(
        UseTool("Bash", {"command": background}),
        UseTool("Bash", {"command": "kill -0 $(cat child.pid) && echo alive"}),
    )

    result = events[4]
    assert isinstance(result, ToolResultEvent)
    assert result.result == "alive\n"
    assert not is_running(stage.pid_in("child.pid"))


def test_two_runs_at_once_end_only_their_own_processes(stage: Stage) -> None:
    async def run_both() -> None:
        runtime = ScriptedRuntime(grace=QUICK)
        long = stage.request(script("sleep 1000 > /dev/null 2>&1 & echo $! > child.pid", "true"))
        async with aclosing(runtime.execute(long)) as events:
            await take(events, 3)
            other = replace(
                stage.request(script("sleep 1000 > /dev/null 2>&1 &")),
                execution=ExecutionId(f"{long.execution}0"),
            )
            other_run = ScriptedRuntime(grace=QUICK).execute(other)
            assert len([event async for event in other_run]) == 4
            assert is_running(stage.pid_in("child.pid"))

    anyio.run(run_both)

    assert not is_running(stage.pid_in("child.pid"))


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param((Sleep(timedelta(days=365)), Say("late")), id="sleeping"),
        pytest.param((Repeat(10**9, (Say("again"),)),), id="talking"),
    ],
)
def test_a_script_can_be_cancelled_while_it_sleeps_and_while_it_talks(
    stage: Stage, steps: tuple[Sleep | Say | Repeat, ...]
) -> None:
    seen: list[Event] = []

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()

    async def read() -> None:
        async for event in ScriptedRuntime().execute(stage.request(compile_script(steps))):
            seen.append(event)
            assert len(seen) < 1000

    anyio.run(run)

    assert 1 <= len(seen) < 1000
