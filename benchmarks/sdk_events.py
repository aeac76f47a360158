"""What the `sdk` runtime costs over iterating the SDK bare: the same run of 500 events, both ways.

The real `claude` talks to an API on this machine that has it read a file 250 times. Both ways start a
process of their own, interleaved, and run to its end. The least of the rounds counts, for a busy machine
only adds; there are more of them, up to a point, while that is not below the limit. CPU is that of all
processes. The runtime keeps its process, translates every message and copies the transcript. Both ways have a hook
before each call that lets it pass at once: what it costs to ask, and to wait until a call is on record, is
measured by `claude_gate`.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookContext,
    HookInput,
    HookJSONOutput,
    HookMatcher,
)

from nightherd.model.agents.agent import Agent
from nightherd.model.ids import ExecutionId, JobId
from nightherd.model.journal.event import ToolResultEvent, ToolUseEvent
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.claude.capabilities import SDK
from nightherd.runtimes.claude.gate import PASS, Gate, GatedCall, Message
from nightherd.runtimes.claude.sdk import ClaudeSdkRuntime
from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Call, Say

ROUNDS, MOST_ROUNDS = 4, 8
TURNS = 10
CALLS = 25
EVENTS = 2 * TURNS * CALLS
LIMIT = 1.1
PROMPT = "read it"


def script(place: Path) -> list[Say]:
    """Reads, turn after turn, and one answer."""
    read = Call("Read", {"file_path": str(place / "file.txt")})
    return [*(Say(text="on", calls=(read,) * CALLS) for _ in range(TURNS)), Say(text="done")]


def environment(root: Path, api: MessagesApi) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(root),
        "CLAUDE_CONFIG_DIR": str(root / "claude"),
        "TMPDIR": str(root),
        "ANTHROPIC_BASE_URL": api.url,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
        "NO_PROXY": "127.0.0.1,localhost",
    }


class OpenGate(Gate):
    """Lets every call pass at once."""

    def answer(self, asked: GatedCall, waited_s: float) -> Message | None:
        """No decision, and no waiting."""
        return PASS


async def let_pass(_input: HookInput, _call: str | None, _context: HookContext) -> HookJSONOutput:
    """No decision."""
    return {}


HOOKS = [HookMatcher(hooks=[let_pass], on_failure="block")]


async def bare(root: Path, api: MessagesApi, hooks: Sequence[HookMatcher] = HOOKS) -> int:
    """Iterate the SDK and do nothing; how many calls and results there were."""
    options = ClaudeAgentOptions(
        cwd=root,
        env=environment(root, api),
        permission_mode="bypassPermissions",
        setting_sources=[],
        system_prompt={"type": "preset", "preset": "claude_code"},
        # As the runtime has it: without these, a long answer cannot be told from a stalled one.
        include_partial_messages=True,
        max_buffer_size=64 * 1024 * 1024,
        hooks={"PreToolUse": list(hooks)} if hooks else None,
    )
    seen = 0
    async with ClaudeSDKClient(options) as client:
        await client.query(PROMPT)
        async for message in client.receive_response():
            content = getattr(message, "content", None)
            for block in content if isinstance(content, list) else ():
                seen += type(block).__name__ in ("ToolUseBlock", "ToolResultBlock")
    return seen


async def with_runtime(root: Path, api: MessagesApi) -> int:
    """The same through the runtime."""
    agent = Agent(
        name="bench",
        runtime=SDK,
        working_directory=str(root),
        permission_mode="bypassPermissions",
    )
    job = JobId("job-2025-03-04-bench1")
    request = RuntimeRequest(
        job_id=job,
        execution=ExecutionId(f"{job}.1"),
        agent=agent,
        prompt=PROMPT,
        environment=environment(root, api),
    )
    seen = 0
    runtime = ClaudeSdkRuntime(transcripts=root / "transcripts")
    runtime.make_gate = OpenGate
    async for event in runtime.execute(request):
        seen += isinstance(event, ToolUseEvent | ToolResultEvent)
    return seen


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of one run from start to end: on the clock, and of CPU."""

    wall: float = math.inf
    cpu: float = math.inf

    def least(self, other: Cost) -> Cost:
        return Cost(min(self.wall, other.wall), min(self.cpu, other.cpu))


def cpu() -> float:
    """User and system time of this process and of every child that has been waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def run(way: Callable[[Path, MessagesApi], Awaitable[int]]) -> Cost:
    """What one run takes."""
    with tempfile.TemporaryDirectory(prefix="nightherd-bench-") as folder:
        root = Path(folder)
        (root / "file.txt").write_text("a line\n")
        with MessagesApi(*script(root)) as api:
            used, before = cpu(), time.perf_counter()
            seen = anyio.run(way, root, api)
            cost = Cost(time.perf_counter() - before, cpu() - used)
    if seen != EVENTS:
        raise SystemExit(f"{way.__name__} saw {seen} calls and results, not {EVENTS}")
    return cost


def main() -> None:
    """Prints what both ways take, and the ratios."""
    least = {bare: Cost(), with_runtime: Cost()}
    for number in range(MOST_ROUNDS):
        if number >= ROUNDS and least[with_runtime].wall <= LIMIT * least[bare].wall:
            break
        for way in least:
            least[way] = least[way].least(run(way))
    for way, cost in least.items():
        print(
            f"{way.__name__} takes {cost.wall:.2f} s and {cost.cpu:.2f} s of CPU, {EVENTS} events"
        )
    wall = least[with_runtime].wall / least[bare].wall
    print(f"sdk runtime over the SDK bare: {wall:.2f}x (limit {LIMIT:g}x)")
    work = least[with_runtime].cpu / least[bare].cpu
    print(f"CPU of the sdk runtime over the SDK bare: {work:.2f}x (limit {LIMIT:g}x)")


if __name__ == "__main__":
    main()
