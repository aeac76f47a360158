"""A whole job whose model takes no time: its messages of a kilobyte are there at once, everything else is on.

For `checkpoints.py`: what a step near its end took, every byte it left, and how long its conversation takes to be back.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import anyio
import msgspec
from msgspec.structs import replace
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.usage import RequestUsage

from nightherd.engine.jobs.runner import run_job
from nightherd.engine.operations.new_job import JobDraft, record_job
from nightherd.model.agents.agent import Agent, Durability, Fleet
from nightherd.model.checkpoints.checkpoint import TriggerPoint
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import JobStatus
from nightherd.model.journal.event import AssistantEvent, Event, MessageEvent, describe
from nightherd.model.journal.system import Complete, Init, SystemSubtype
from nightherd.model.limits.limits import Limits
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Usage
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.native.capabilities import NATIVE
from nightherd.runtimes.native.encode import encode
from nightherd.runtimes.native.setup import HASH_DIGITS
from nightherd.wiring import running as workshops

LAST, BLOCK = 500, 100
TEXT = "x" * 1_000
USAGE = RequestUsage(input_tokens=1_000, output_tokens=250)
USED = Usage(input_tokens=1_000, output_tokens=250, cost_microusd=MicroUsd(5_250))
SENT = Usage(input_tokens=100_000, cost_microusd=MicroUsd(300_000))
MIRROR = ("projects", "sessions", "threads", "state.yaml", "mirror.json", "logs")
"""What is derived, for people and other tools, and can be deleted; and each job's `.yaml`."""
Moment = tuple[float, float]
"""By the clock, and of the processor."""


def moment() -> Moment:
    return time.perf_counter(), time.process_time()


class Talk:
    """A runtime that says so many messages of a kilobyte, and where it is; its model takes no time."""

    def __init__(self, messages: int, *, has_tools: bool) -> None:
        self._messages = messages
        self._has_tools = has_tools
        self.times: list[Moment] = []
        """When each step began, and when the last had ended."""
        self.said: list[ModelMessage] = []

    async def execute(self, request: RuntimeRequest) -> AsyncGenerator[Event, None]:
        """Every message with the checkpoints around it."""
        yield describe(Init(runtime="native", runtime_session_id="bench"))
        number = 0
        while number < self._messages:
            number += 1
            turn = (number + 1) // 2 if self._has_tools else number
            is_answer = not self._has_tools or number % 2 == 1
            message = self._answer(turn) if is_answer else self._result(turn)
            lines = self._lines(message, turn) if is_answer else encode(message, turn=turn).lines
            self.times.append(moment())
            if is_answer:
                await request.at(TriggerPoint.PRE_TURN)
                await request.may_spend(0, 0)
                yield self._asked(turn)
            for line in lines:
                yield line
            await request.at(TriggerPoint.POST_LLM if is_answer else TriggerPoint.POST_TOOLS)
            self.said.append(message)
        self.times.append(moment())
        yield describe(Complete(stop_reason="end_turn"))

    def _asked(self, turn: int) -> AssistantEvent:
        """What a native run says before it asks a model."""
        estimated = {"cost_source": "estimate"}
        return AssistantEvent(partial=True, usage=SENT, turn=turn, extra=estimated)

    def _lines(self, message: ModelMessage, turn: int) -> Sequence[MessageEvent]:
        """An answer as it writes it: with what it used, what it was asked with and whose price that is."""
        first, *rest = encode(message, turn=turn, usage=USED).lines
        extra = {**(first.extra or {}), "setup": "0" * HASH_DIGITS, "cost_source": "list"}
        return [msgspec.structs.replace(first, extra=extra), *rest]

    def _answer(self, turn: int) -> ModelResponse:
        call = ToolCallPart("Read", {"file_path": "a.txt"}, f"call-{turn}")
        parts = (TextPart(TEXT), call) if self._has_tools else (TextPart(TEXT),)
        return ModelResponse(parts, usage=USAGE, model_name="some-model")

    def _result(self, turn: int) -> ModelRequest:
        return ModelRequest([ToolReturnPart("Read", TEXT, f"call-{turn}")])


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What one job took and left."""

    step: float
    """Seconds of a step near the end: the least mean of a hundred in a row."""
    work: float
    """The same of the processor, in all threads."""
    typical: float
    """By the clock, the median of the last twentieth."""
    save: int
    """Bytes of the last checkpoint's line."""
    memory: int
    """Bytes of journal, database and ledger: what the job can go on from."""
    mirror: int
    """Bytes of what is derived from them."""
    dump: int
    """Bytes of the conversation as pydantic-ai dumps it."""
    by_file: dict[str, int]
    root: Path
    job: JobId


def run(root: Path, messages: int, *, has_tools: bool, synced: bool) -> Left:
    """A whole job of so many messages in a new state directory, everything on."""
    root.mkdir(parents=True)
    talk = Talk(messages, has_tools=has_tools)
    agent = Agent(
        name="grazer",
        runtime=NATIVE,
        working_directory=str(root),
        system_prompt="You graze.",
        limits=Limits(turns=10**9),
    )
    fleet = Fleet(
        file=str(root / "nightherd.yaml"),
        agents={"grazer": agent},
        durability=Durability.FSYNC if synced else Durability.CHECKPOINT,
    )

    async def work() -> JobId:
        async with workshops.open_worker(root / ".nightherd", fleet, dict(os.environ)) as context:
            told = replace(context, runtimes=lambda name: talk)
            job = (await record_job(JobDraft(agent=agent, prompt="go"), told)).job.id
            done = await run_job(job, agent, told, on_event=lambda event: None)
            if done.status is not JobStatus.COMPLETED:
                raise SystemExit(f"the job is {done.status}: {done.error}")
            return job

    job = anyio.run(work)
    return left(root / ".nightherd", job, talk)


def left(state: Path, job: JobId, talk: Talk) -> Left:
    files = [one for one in state.rglob("*") if one.is_file()]
    derived = [
        one for one in files if one.relative_to(state).parts[0] in MIRROR or one.suffix == ".yaml"
    ]
    last = talk.times[-max(len(talk.times) // 20, 6) :]
    by_file: dict[str, int] = {}
    for one in files:
        place = one.relative_to(state)
        kind = "jobs/*.yaml" if place.match("jobs/*.yaml") else place.parts[0]
        by_file[kind] = by_file.get(kind, 0) + one.stat().st_size
    mirror = sum(one.stat().st_size for one in derived)
    return Left(
        step=step_near_end(talk.times, 0),
        work=step_near_end(talk.times, 1),
        typical=statistics.median(after[0] - before[0] for before, after in pairwise(last)),
        save=last_save(state / "jobs" / f"{job}.jsonl"),
        memory=sum(by_file.values()) - mirror,
        mirror=mirror,
        dump=len(ModelMessagesTypeAdapter.dump_json(talk.said)),
        by_file=by_file,
        root=state,
        job=job,
    )


def step_near_end(moments: list[Moment], clock: int) -> float:
    """The least mean of a hundred steps in a row among the last: what is done only now and then is in it."""
    times = [one[clock] for one in moments]
    ends = range(len(times) - 1, max(len(times) - 1 - LAST, 0), -BLOCK)
    spans = [(max(end - BLOCK, 0), end) for end in ends]
    return min((times[end] - times[start]) / (end - start) for start, end in spans)


def last_save(journal: Path) -> int:
    lines, kind = journal.read_bytes().splitlines(keepends=True), SystemSubtype.CHECKPOINT.value
    return len(next(line for line in reversed(lines) if json.loads(line).get("subtype") == kind))


def load_seconds(ours: Left) -> float:
    """The least processor seconds of having the conversation back, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.ours.load", str(ours.root), ours.job]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return float(done.stdout) / 1e3
