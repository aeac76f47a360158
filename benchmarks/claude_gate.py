"""What the gate costs a call of Claude's: the same run with the gate, and with one that lets every call pass at once.

The real `claude` talks to an API on this machine that answers at once and has it read a file, one call in each turn.
That is the worst case: Claude flushes its transcript every 100 ms, a real model thinks for seconds, and the
calls of one message wait together. Runs of both kinds are interleaved, for both runtimes; the least of the
rounds counts, for a busy machine only adds.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from pathlib import Path

import anyio
import claude_agent_sdk
from benchmarks.sdk_events import EVENTS, Cost, OpenGate, bare, cpu, environment
from benchmarks.sdk_events import run as run_many

from nightherd.model.agents.agent import Agent
from nightherd.model.ids import ExecutionId, JobId
from nightherd.model.journal.event import ToolResultEvent
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.claude.cli import ClaudeCliRuntime
from nightherd.runtimes.claude.gate import Gate
from nightherd.runtimes.claude.runtime import ClaudeRuntime
from nightherd.runtimes.claude.sdk import ClaudeSdkRuntime
from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Call, Say
from nightherd.wiring.runtimes import KNOWN_RUNTIMES

ROUNDS = 3
TURNS = 20
WAIT_LIMIT_MS = 110
"""Claude's own interval, and a tenth."""
CPU_LIMIT = 1.25
ASK_LIMIT_MS = 15
BUNDLED = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"


def run(runtime: ClaudeRuntime) -> tuple[float, float]:
    """Seconds of one run from start to end: on the clock, and of CPU."""
    with tempfile.TemporaryDirectory(prefix="nightherd-bench-") as folder:
        root = Path(folder)
        (root / "file.txt").write_text("a line\n")
        (root / "bin").mkdir()
        (root / "bin" / "claude").symlink_to(BUNDLED)
        read = Call("Read", {"file_path": str(root / "file.txt")})
        turns = [Say(text="on", calls=(read,)) for _ in range(TURNS)]
        with MessagesApi(*turns, Say(text="done")) as api:
            used, before = cpu(), time.perf_counter()
            variables = environment(root, api)
            variables["PATH"] = f"{root / 'bin'}{os.pathsep}{variables['PATH']}"
            seen = anyio.run(follow, runtime, root, variables)
            took = time.perf_counter() - before, cpu() - used
    if seen != TURNS:
        raise SystemExit(f"{runtime.name} had {seen} results, not {TURNS}")
    return took


async def follow(runtime: ClaudeRuntime, root: Path, variables: dict[str, str]) -> int:
    """Carry the run out; how many of its calls succeeded."""
    agent = Agent(
        name="bench",
        runtime=KNOWN_RUNTIMES.get(runtime.name),
        working_directory=str(root),
        permission_mode="bypassPermissions",
    )
    job = JobId("job-2025-03-04-bench1")
    request = RuntimeRequest(
        job_id=job,
        execution=ExecutionId(f"{job}.1"),
        agent=agent,
        prompt="read it",
        environment=variables,
    )
    seen = 0
    async for event in runtime.execute(request):
        seen += isinstance(event, ToolResultEvent) and bool(event.success)
    return seen


def measure(runtime: ClaudeRuntime) -> None:
    """Prints what a gate costs this runtime."""
    least: dict[type[Gate], tuple[float, float]] = {}
    for _ in range(ROUNDS):
        for gate in (OpenGate, Gate):
            runtime.make_gate = gate
            wall, used = run(runtime)
            before = least.get(gate, (math.inf, math.inf))
            least[gate] = (min(before[0], wall), min(before[1], used))
    (open_wall, open_cpu), (wall, used) = least[OpenGate], least[Gate]
    print(
        f"{runtime.name}: {wall:.2f} s and {used:.2f} s of CPU, {open_wall:.2f} s and {open_cpu:.2f} s without"
    )
    print(f"{runtime.name}, {TURNS} turns of one call, gate over none: {wall / open_wall:.2f}x")
    print(
        f"CPU of the same, gate over none, {runtime.name}: {used / open_cpu:.2f}x (limit {CPU_LIMIT:g}x)"
    )
    wait = max(wall - open_wall, 0.0) / TURNS * 1000
    print(f"a turn waits at the gate, {runtime.name}: {wait:.1f} ms (limit {WAIT_LIMIT_MS} ms)")


async def without_hook(root: Path, api: MessagesApi) -> int:
    """The SDK alone, and nobody is asked before a call."""
    return await bare(root, api, hooks=())


def measure_asking() -> None:
    """Prints what it costs Claude and the SDK to ask before each call, whatever the answer is."""
    asked = least = Cost()
    for _ in range(ROUNDS):
        least, asked = least.least(run_many(without_hook)), asked.least(run_many(bare))
    more = max(asked.cpu - least.cpu, 0.0) / (EVENTS / 2) * 1000
    print(f"CPU of asking before a call: {more:.1f} ms (limit {ASK_LIMIT_MS} ms)")


def main() -> None:
    """Prints the findings for both runtimes."""
    measure_asking()
    measure(ClaudeSdkRuntime())
    measure(ClaudeCliRuntime())


if __name__ == "__main__":
    main()
