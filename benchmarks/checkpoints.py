"""What a checkpoint costs as a conversation grows, in time and bytes, beside what others save of one.

A whole job, everything on: rows, ledger, mirror, all trigger points. Only its model is left out: its messages of a
kilobyte are there at once. Measured are a step near the end (its message and its checkpoint), every byte that the job
leaves, and how long it takes to have the conversation back.

Beside it, in environments of their own: a graph that saves as many messages with LangGraph's SqliteSaver, whole lists and
deltas, and openai-agents' SQLiteSession, at the same level on both sides: neither synced, or each step. Whole lists at
3,000 steps take 5 GB and minutes: without `--full` they are measured at fewer, and the rest is said to be worked out.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import anyio
from benchmarks.peers.asked import ask, environment
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

from nightherd import wiring
from nightherd.engine.execution import execute
from nightherd.engine.submit import SubmitRequest, submit
from nightherd.model.agent import Agent, Durability, Fleet, RuntimeName
from nightherd.model.event import AssistantEvent, Event, describe
from nightherd.model.ids import JobId
from nightherd.model.job import JobStatus
from nightherd.model.limits import Limits
from nightherd.model.secret import find_secrets
from nightherd.model.system import Complete, Init, SystemSubtype
from nightherd.model.trigger_point import TriggerPoint
from nightherd.model.usage import Usage
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.native.conversation import recall
from nightherd.runtimes.native.encode import encode

FEW, MANY = 10, 3_000
ROUNDS = 3
SHORT = (300, 600)
"""Steps at which whole lists are measured without `--full`."""
LOADS = 15
LAST, BLOCK = 500, 100
TEXT = "x" * 1_000
USAGE = RequestUsage(input_tokens=1_000, output_tokens=250)
ASKED = AssistantEvent(partial=True, usage=Usage(input_tokens=100_000), uuid="x" * 48)
"""What a run says before it asks a model, in as many bytes."""
LANGGRAPH = ("langgraph==1.2.20", "langgraph-checkpoint-sqlite==3.1.2")
OPENAI = "openai-agents==0.24.0"
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
            lines = encode(message, turn=turn).lines
            self.times.append(moment())
            if is_answer:
                await request.at(TriggerPoint.PRE_TURN)
                await request.may_spend(0, 0)
                yield ASKED
            for line in lines:
                yield line
            await request.at(TriggerPoint.POST_LLM if is_answer else TriggerPoint.POST_TOOLS)
            self.said.append(message)
        self.times.append(moment())
        yield describe(Complete(stop_reason="end_turn"))

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
        runtime=RuntimeName.NATIVE,
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
        async with wiring.open_workshop(root / ".nightherd", fleet, dict(os.environ)) as workshop:
            told = replace(workshop, runtimes=lambda name: talk)
            job = (await submit(SubmitRequest(agent=agent, prompt="go"), told)).job.id
            done = await execute(job, agent, told, on_event=lambda event: None)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """What another system took and left."""

    step: float
    work: float
    size: int
    load: float
    """Processor seconds of having the conversation back."""

    @classmethod
    def ask(cls, python: Path, script: str, *arguments: object) -> Peer:
        """What its script found, which says milliseconds."""
        step, work, size, load = ask(python, script, *arguments)
        return cls(step=step / 1e3, work=work / 1e3, size=int(size), load=load / 1e3)


def load_seconds(ours: Left) -> float:
    """The least processor seconds of having the conversation back as the objects that go to a model."""
    journals, found = wiring.open_journals(ours.root), []
    gc.collect()
    gc.freeze()  # what earlier rounds left; the peers' processes have nothing else
    for _ in range(LOADS):
        begun = time.process_time()
        recall(journals.read(ours.job), find_secrets({}))
        found.append(time.process_time() - begun)
    return min(found)


def report_growth(root: Path) -> Left:
    """Several rounds, interleaved; the least counts. Gives the best of the long ones."""
    found: dict[int, list[Left]] = {FEW: [], MANY: []}
    for number in range(ROUNDS):
        for messages, runs in found.items():
            place = root / f"{messages}-{number}"
            runs.append(run(place, messages, has_tools=False, synced=False))
    few, many = (min(one.typical for one in runs) for runs in found.values())
    print(f"a step takes {few * 1e6:.0f} us after {FEW}, {many * 1e6:.0f} us after {MANY:,}")
    against = f"{MANY:,} against {FEW} messages"
    print(f"time of a step with its checkpoint, {against}: {many / few:.2f}x (limit 1.2x)")
    saves = found[MANY][0].save / found[FEW][0].save
    print(f"bytes of a checkpoint, {against}: {saves:.2f}x (limit 1.2x)")
    return min(found[MANY], key=lambda one: one.work)


def report_bytes(root: Path) -> None:
    """A conversation with tools, as a native agent's is."""
    ours = run(root / "bytes", MANY, has_tools=True, synced=False)
    for kind, size in sorted(ours.by_file.items(), key=lambda one: -one[1]):
        print(f"  {size:>10,} bytes  {kind}")
    print(f"  {ours.dump:>10,} bytes  pydantic-ai's own dump of the conversation")
    what = f"bytes to go on from, {MANY:,} messages of a kilobyte, against their dump"
    print(f"{what}: {ours.memory / ours.dump:.2f}x (limit 1.3x)")
    both = (ours.memory + ours.mirror) / ours.dump
    print(f"the same with the mirror, which can be deleted: {both:.2f}x")


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Ours beside a peer after as many steps; a bound of 0 is none."""

    name: str
    steps: int
    ours: Left
    peer: Peer

    def report_bytes(self, least: float) -> None:
        """How much more the peer leaves."""
        ours, peer = self.ours, self.peer
        print(
            f"{self.steps:,} steps: ours {ours.memory / 1e6:.2f} MB and {ours.mirror / 1e6:.2f} MB"
            f" of mirror, {self.name} {peer.size / 1e6:,.2f} MB"
        )
        what = f"bytes of {self.name} against ours, {self.steps:,} steps"
        print(f"{what}: {peer.size / ours.memory:.1f}x{at_least(least)}")

    def report_unsynced(self, least: float) -> None:
        """How much longer the peer takes for a step when neither side syncs, and of the processor alone."""
        self._report("neither synced", self.ours.step, self.peer.step, least)
        self._report("neither synced, of the processor", self.ours.work, self.peer.work, least)

    def report_synced(self, least: float) -> None:
        """How much longer the peer takes for a step when each syncs; mostly what the disk takes."""
        self._report("each synced", self.ours.step, self.peer.step, least)

    def _report(self, level: str, ours: float, peer: float, least: float) -> None:
        took = f"ours {ours * 1e3:.2f} ms, {self.name} {peer * 1e3:.2f} ms a step"
        print(f"{self.steps:,} steps, {level}: {took}")
        what = f"time of a step of {self.name} against ours, {self.steps:,} steps, {level}"
        print(f"{what}: {peer / ours:.1f}x{at_least(least)}")


def at_least(bound: float) -> str:
    return f" (at least {bound:g}x)" if bound else ""


def least_synced(root: Path, python: Path | None) -> tuple[Left, list[Peer]]:
    """Our long job with a sync for each step, and LangGraph's: by turns, each from a disk at rest; our best."""
    ours, peers = [], []
    for number in range(ROUNDS):
        os.sync()
        ours.append(run(root / f"synced-{number}", MANY, has_tools=False, synced=True))
        if python is not None:
            os.sync()
            peers.append(Peer.ask(python, "langgraph_checkpoints.py", MANY, "delta", "synced"))
    return min(ours, key=lambda one: one.step), peers


def report_langgraph(
    root: Path, python: Path, quick: Left, synced: Left, peers: list[Peer], *, is_full: bool
) -> None:
    """`quick` and `synced` are our own long jobs, without and with a sync for each step; `peers` were synced too."""
    script, delta = "langgraph_checkpoints.py", "LangGraph (delta)"
    runs = [Peer.ask(python, script, MANY, "delta", "unsynced") for _ in range(2)]
    peer = min(runs, key=lambda one: one.work)
    beside = Beside(name=delta, steps=MANY, ours=quick, peer=peer)
    beside.report_bytes(10)
    beside.report_unsynced(5)
    best = min(peers, key=lambda one: one.step)
    Beside(name=delta, steps=MANY, ours=synced, peer=best).report_synced(5)
    report_loads(python, quick, min(one.load for one in (*runs, *peers)))
    if is_full:
        report_full(python, quick)
    else:
        report_short(root, python, quick)


def report_loads(python: Path, quick: Left, delta: float) -> None:
    """How long the conversation takes to be back; by turns with the default saver's, which has it in one piece."""
    ours, whole = [], []
    for _ in range(ROUNDS):
        ours.append(load_seconds(quick))
        whole.append(*ask(python, "langgraph_load.py", MANY))
    for name, peer in (("delta", delta), ("full", min(whole) / 1e3)):
        took = f"ours {min(ours) * 1e3:.0f} ms, LangGraph ({name}) {peer * 1e3:.0f} ms"
        print(f"{MANY:,} messages back: {took}")
        what = f"loading in LangGraph ({name}) against ours, {MANY:,} messages"
        print(f"{what}: {peer / min(ours):.2f}x (at least 1x)")


def report_full(python: Path, quick: Left) -> None:
    """Whole lists to the end: 5 GB, and minutes."""
    name = "LangGraph (full)"
    peer = Peer.ask(python, "langgraph_checkpoints.py", MANY, "full", "unsynced")
    beside = Beside(name=name, steps=MANY, ours=quick, peer=peer)
    beside.report_bytes(500)
    beside.report_unsynced(5)
    ratio = peer.load / load_seconds(quick)
    print(f"loading in {name} after as many steps against ours: {ratio:.2f}x (at least 1x)")


def report_short(root: Path, python: Path, quick: Left) -> None:
    """Whole lists at fewer steps, and what they come to at all: each save writes all that was said before."""
    name, steps = "LangGraph (full)", SHORT[-1]
    found = [Peer.ask(python, "langgraph_checkpoints.py", n, "full", "unsynced") for n in SHORT]
    ours = run(root / "short", steps, has_tools=False, synced=False)
    beside = Beside(name=name, steps=steps, ours=ours, peer=found[-1])
    beside.report_bytes(100)
    beside.report_unsynced(5)
    print(
        f"bytes of {name}, {steps} against {SHORT[0]} steps: {found[-1].size / found[0].size:.1f}x"
    )
    size = found[-1].size * (MANY / steps) ** 2
    print(
        f"{MANY:,} steps of {name} would leave {size / 1e6:,.0f} MB, worked out from {steps} by the square"
    )
    what = f"bytes of {name} against ours, {MANY:,} steps, worked out"
    print(f"{what}: {size / quick.memory:.0f}x (at least 500x)")


def main() -> None:
    """Prints every time, size and ratio."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        quick = report_growth(root)
        report_bytes(root)
        python = environment(*LANGGRAPH, module="langgraph.graph")
        synced, peers = least_synced(root, python)
        if python is not None:
            is_full = "--full" in sys.argv[1:]
            report_langgraph(root, python, quick, synced, peers, is_full=is_full)
        python = environment(OPENAI, module="agents")
        if python is not None:
            peer = Peer.ask(python, "openai_session.py", MANY)
            beside = Beside(name="openai-agents", steps=MANY, ours=synced, peer=peer)
            beside.report_bytes(0)
            beside.report_synced(0)
            ratio = peer.load / load_seconds(quick)
            print(f"loading in openai-agents against ours, {MANY:,} messages: {ratio:.2f}x")


if __name__ == "__main__":
    main()
