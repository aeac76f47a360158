"""How long chat takes besides the runtime: from a message to the first words of its answer; and what it costs idle.

The platform is in memory and takes no time. The runtime says its first words after a while that is known, so what
is left is ours: to record the message, start its turn, run the job, read what it says, and send it.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from msgspec.structs import replace

from nightherd.engine.workers.worker import WorkerReports
from nightherd.model.agents.agent import Fleet
from nightherd.model.chat.conversation import conversation_id
from nightherd.model.chat.platform import Platform, bot_id
from nightherd.model.chat.settings import BotSettings, ChannelMode, ChannelSettings
from nightherd.model.journal.event import AssistantEvent, Event, describe
from nightherd.model.journal.system import Complete
from nightherd.ports import RuntimeRequest
from nightherd.ports.chat import ChatPost, PostResult
from nightherd.testing.local_chat import HERE, LocalConnection, LocalPlatform
from nightherd.wiring.chat import bots_on
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.running import make_worker_loop, open_worker

BOT = bot_id(Platform.SLACK, "coder")
TURNS = 60
FIRST_S = 0.2
"""How long the runtime takes to its first words."""
REST_S = 0.3
IDLE_S = 10.0
SETTLING_S = 3.0
FLEET = "agents: [{name: coder, runtime: scripted, default_prompt: go, script: [{say: hi}]}]\n"


class SlowTalker:
    """A runtime that says its first words a while after it was asked, and notes both times."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.said: list[float] = []

    async def execute(self, request: RuntimeRequest) -> AsyncGenerator[Event, None]:
        self.asked.append(time.monotonic())
        await anyio.sleep(FIRST_S)
        self.said.append(time.monotonic())
        request.stream.begin()
        request.stream.add(0, "The first words")
        await anyio.sleep(REST_S)
        yield AssistantEvent(content="The first words and the rest.", turn=1, index=0, end=True)
        yield describe(Complete(stop_reason="end_turn"))


class TimedConnection(LocalConnection):
    """Notes when something is posted."""

    def __init__(self, platform: LocalPlatform) -> None:
        super().__init__(platform, BOT)
        self.posted: list[float] = []

    async def post(self, post: ChatPost) -> PostResult:
        self.posted.append(time.monotonic())
        return await super().post(post)


@asynccontextmanager
async def bot_at_work(folder: Path) -> Any:
    """A bot with its worker, in one process as in the daemon."""
    file = folder / "nightherd.yaml"
    file.write_text(FLEET)
    settings = BotSettings(
        bot=BOT,
        platform=Platform.SLACK,
        agent="coder",
        channels=(ChannelSettings(id=HERE.channel_id, mode=ChannelMode.ALL),),
    )
    loaded = load_fleet(file, environ={}, cwd=folder).fleet
    agent = replace(loaded.agents["coder"], bots=(settings,))
    fleet: Fleet = replace(loaded, agents={"coder": agent})
    platform, runtime = LocalPlatform(), SlowTalker()
    connection, state_dir = TimedConnection(platform), folder / ".nightherd"
    async with open_worker(state_dir, fleet, {}) as opened:
        context = replace(opened, runtimes=lambda name: runtime, is_loaded=lambda name: True)
        worker = make_worker_loop(fleet, context, _silent(), leaves_when_idle=False)
        bots = bots_on(connection, state_dir, fleet, context, print, wake_jobs=worker.wake)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.work)
            tasks.start_soon(bots.run)
            while not any(one.connected_at for one in context.reader.list_chat_bots()):  # noqa: ASYNC110
                await anyio.sleep(0.01)
            yield platform, connection, runtime, context
            tasks.cancel_scope.cancel()


async def overheads(folder: Path) -> list[tuple[float, float]]:
    """Our own milliseconds of each turn: until the runtime is asked, and from its first words to the platform."""
    found = []
    async with bot_at_work(folder) as (platform, connection, runtime, context):
        here = conversation_id(BOT, HERE)
        for number in range(TURNS):
            begun = time.monotonic()
            platform.say(f"message {number}")
            while len(connection.posted) <= number:  # noqa: ASYNC110
                await anyio.sleep(0.002)
            before = runtime.asked[number] - begun
            after = connection.posted[number] - runtime.said[number]
            found.append((before * 1e3, after * 1e3))
            while context.reader.find_conversation(here).turn_job_id is not None:  # noqa: ASYNC110
                await anyio.sleep(0.01)
    return found


async def idle_share(folder: Path) -> tuple[float, float]:
    """How much of a core a worker takes that has nothing to do, and how much with a bot that nobody talks to."""
    async with bot_at_work(folder):
        await anyio.sleep(SETTLING_S)
        before = time.process_time()
        await anyio.sleep(IDLE_S)
        with_bot = (time.process_time() - before) / IDLE_S
    file = folder / "nightherd.yaml"
    fleet = load_fleet(file, environ={}, cwd=folder).fleet
    async with open_worker(folder / ".nightherd", fleet, {}) as context:
        worker = make_worker_loop(fleet, context, _silent(), leaves_when_idle=False)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.work)
            await anyio.sleep(SETTLING_S)
            before = time.process_time()
            await anyio.sleep(IDLE_S)
            alone = (time.process_time() - before) / IDLE_S
            tasks.cancel_scope.cancel()
    return alone, with_bot


def _silent() -> WorkerReports:
    def nothing(*_: Any) -> None:
        """Nobody watches."""

    return WorkerReports(
        on_start=nothing, on_event=nothing, on_end=nothing, on_rescue=nothing, on_trouble=nothing
    )


def main() -> None:
    """Print the findings."""
    with tempfile.TemporaryDirectory() as folder:
        found = anyio.run(overheads, Path(folder))
    before, after = (statistics.median(part) for part in zip(*found, strict=True))
    print(
        f"median: {before:.1f} ms until the runtime is asked, {after:.1f} ms from its first words"
    )
    both = sorted(sum(parts) for parts in found)
    print(f"{TURNS} turns: median {statistics.median(both):.1f} ms, worst {both[-1]:.1f} ms")
    p95 = both[int(len(both) * 0.95)]
    print(f"from a message to the first words besides the runtime, p95: {p95:.1f} ms (limit 60 ms)")
    with tempfile.TemporaryDirectory() as folder:
        alone, with_bot = anyio.run(idle_share, Path(folder))
    print(f"an idle worker takes {alone:.2%} of a core, with a bot {with_bot:.2%}")
    spent = max(0.0, with_bot - alone) * 1e3
    print(f"CPU of an idle bot in a second: {spent:.2f} ms (limit 3 ms)")


if __name__ == "__main__":
    main()
