"""A directory to run scripted agents in, and eyes on the processes they start."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio

from nightherd.model.agents.agent import Agent
from nightherd.model.agents.script import Script, Step, compile_script
from nightherd.model.ids import ExecutionId, JobId
from nightherd.model.journal.event import Event
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.runtimes.keeper.place import HOST, HostPlace
from nightherd.runtimes.scripted.capabilities import SCRIPTED
from nightherd.runtimes.scripted.runtime import ScriptedRuntime
from nightherd.runtimes.tools.bash import Bash
from nightherd.runtimes.tools.tool import Tool, ToolContext, ToolOutcome

JOB = JobId("job-2025-03-04-abc123")
EXECUTION = ExecutionId("job-2025-03-04-abc123.1")
QUICK = timedelta(milliseconds=200)
PATIENCE_S = 100
INSIDE = HostPlace(is_container=True)
"""Stands for a container: every tool runs as a program under a keeper, none touches a file itself."""
PLACES = {"here": HOST, "inside": INSIDE}


@dataclass(frozen=True)
class Stage:
    """Runs scripts and tools in `directory`."""

    directory: Path
    environment: Mapping[str, str] = field(default_factory=lambda: {"PATH": os.environ["PATH"]})
    keepers: Keepers = field(default_factory=Keepers)
    rules: Mapping[str, Any] = field(default_factory=dict)
    """What the agent may do, where it is not everything."""

    def request(self, script: Script | None, prompt: str = "go", **more: Any) -> RuntimeRequest:
        agent = Agent(
            name="player",
            runtime=SCRIPTED,
            working_directory=str(self.directory),
            script=script,
            **{"permission_mode": "bypassPermissions", **self.rules},
        )
        return RuntimeRequest(
            job_id=JOB,
            execution=EXECUTION,
            agent=agent,
            prompt=prompt,
            environment=self.environment,
            **more,
        )

    def play(self, *steps: Step, tools: tuple[Tool, ...] | None = None, **more: Any) -> list[Event]:
        """Every event of playing `steps`."""

        async def collect() -> list[Event]:
            runtime = ScriptedRuntime(tools=tools, grace=QUICK, keepers=self.keepers)
            return [event async for event in runtime.execute(self.request(script, **more))]

        script = compile_script(steps)
        return anyio.run(collect)

    def context(self, call: str = "call-1", **more: Any) -> ToolContext:
        return ToolContext(
            working_directory=self.directory,
            tool_use_id=call,
            marks={"NIGHTHERD_EXECUTION": EXECUTION, "NIGHTHERD_WORKER_PID": str(os.getpid())},
            environment=self.environment,
            grace=QUICK,
            keepers=self.keepers,
            **more,
        )

    def use(self, tool: Tool, **input: Any) -> ToolOutcome:
        """What `tool` makes of `input`."""
        return anyio.run(tool.run, input, self.context())

    def bash(self, command: str, **input: Any) -> ToolOutcome:
        """What running `command` comes to."""
        return self.use(Bash(), command=command, **input)

    def pid_in(self, name: str) -> int:
        return int((self.directory / name).read_text())


async def until(condition: Callable[[], bool], pause_s: float = 0.01) -> None:
    """Waits for what another process does; the end of patience is a failure."""
    with anyio.fail_after(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 another process cannot set an event here
            await anyio.sleep(pause_s)


async def take(events: AsyncIterator[Event], count: int) -> list[Event]:
    """The next `count` events."""
    return [await anext(events) for _ in range(count)]


def is_running(pid: int) -> bool:
    """Whether the process does anything still; one that is only not yet reaped does not."""
    if Path("/proc/self/stat").exists():
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return False
        return stat.rpartition(")")[2].split()[0] not in {"Z", "X"}
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def is_written(path: Path) -> bool:
    """Whether a whole line stands in the file."""
    return path.exists() and path.read_text().endswith("\n")
