"""What a checkpoint costs as a conversation grows, in time and bytes, beside what others save of one.

A whole job, everything on: rows, ledger, mirror, all trigger points. Only its model is left out: its messages of
a kilobyte are there at once. Measured are a step near the end (its message and its checkpoint, by the median of
the last twentieth of the steps), every byte that the job leaves, and how long it takes to have the
conversation back.

Beside it, in environments of their own: a graph that saves as many messages with LangGraph's SqliteSaver, whole
lists and deltas, and openai-agents' SQLiteSession. All of them sync each commit, and so does the job that is
set beside them. What LangGraph saves of whole lists at 3,000 steps takes 5 GB and minutes: without `--full` it is
measured at a few hundred steps, and what it would come to is said to be worked out.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import anyio
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
from nightherd.model.event import Event, describe
from nightherd.model.ids import JobId
from nightherd.model.job import JobStatus
from nightherd.model.limits import Limits
from nightherd.model.secret import find_secrets
from nightherd.model.system import Complete, Init, SystemSubtype
from nightherd.model.trigger_point import TriggerPoint
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.native.conversation import recall
from nightherd.runtimes.native.decode import Reader
from nightherd.runtimes.native.encode import encode

FEW, MANY = 10, 3_000
ROUNDS = 3
SHORT = (300, 600)
"""Steps at which whole lists are measured without `--full`."""
LOADS = 5
TEXT = "x" * 1_000
LANGGRAPH = ("langgraph==1.2.20", "langgraph-checkpoint-sqlite==3.1.2")
OPENAI = ("openai-agents==0.24.0",)
HERE = Path(__file__).resolve().parent
TOOLS = HERE.parent / ".tools"
MIRROR = ("projects", "sessions", "threads", "state.yaml", "mirror.json", "logs")
"""What is derived, for people and other tools, and can be deleted; and each job's `.yaml`."""


class Talk:
    """A runtime that says so many messages of a kilobyte, and where it is; its model takes no time."""

    def __init__(self, messages: int, *, has_tools: bool) -> None:
        self._messages = messages
        self._has_tools = has_tools
        self.times: list[float] = []
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
            message = self._answer(turn) if is_answer else result(turn)
            lines = encode(message, turn=turn).lines
            self.times.append(time.perf_counter())
            if is_answer:
                await request.at(TriggerPoint.PRE_TURN)
                await request.may_spend(0, 0)
            for line in lines:
                yield line
            await request.at(TriggerPoint.POST_LLM if is_answer else TriggerPoint.POST_TOOLS)
            self.said.append(message)
        self.times.append(time.perf_counter())
        yield describe(Complete(stop_reason="end_turn"))

    def _answer(self, turn: int) -> ModelResponse:
        call = ToolCallPart("Read", {"file_path": "a.txt"}, f"call-{turn}")
        parts = (TextPart(TEXT), call) if self._has_tools else (TextPart(TEXT),)
        usage = RequestUsage(input_tokens=1_000, output_tokens=250)
        return ModelResponse(parts, usage=usage, model_name="some-model")


def result(turn: int) -> ModelRequest:
    return ModelRequest([ToolReturnPart("Read", TEXT, f"call-{turn}")])


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What one job took and left."""

    step: float
    """Seconds of a step near the end."""
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
    derived = [one for one in files if is_mirror(one.relative_to(state))]
    last = talk.times[-max(len(talk.times) // 20, 6) :]
    by_file: dict[str, int] = {}
    for one in files:
        kind = one.relative_to(state).parts[0] + (".yaml" if one.suffix == ".yaml" else "")
        by_file[kind] = by_file.get(kind, 0) + one.stat().st_size
    mirror = sum(one.stat().st_size for one in derived)
    return Left(
        step=statistics.median(after - before for before, after in pairwise(last)),
        save=last_save(state / "jobs" / f"{job}.jsonl"),
        memory=sum(by_file.values()) - mirror,
        mirror=mirror,
        dump=len(ModelMessagesTypeAdapter.dump_json(talk.said)),
        by_file=by_file,
        root=state,
        job=job,
    )


def is_mirror(path: Path) -> bool:
    return path.parts[0] in MIRROR or path.suffix == ".yaml"


def last_save(journal: Path) -> int:
    lines = journal.read_bytes().splitlines(keepends=True)
    kind = SystemSubtype.CHECKPOINT.value
    return len(next(line for line in reversed(lines) if json.loads(line).get("subtype") == kind))


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """What another system took and left."""

    step: float
    size: int
    load: float
    """Processor seconds of having the conversation back."""


def environment(requirements: tuple[str, ...], module: str) -> Path | None:
    """An interpreter that has the peer, in an environment of its own; None, said, when it cannot be had."""
    python = TOOLS / f"bench-{requirements[0].replace('==', '-')}" / "bin" / "python"
    uv = shutil.which("uv") or str(TOOLS / "venv" / "bin" / "uv")
    try:
        if not python.exists():
            subprocess.run([uv, "venv", "-q", python.parent.parent], check=True)
            command = [uv, "pip", "install", "-q", "--python", str(python), *requirements]
            subprocess.run(command, check=True, timeout=300)
        subprocess.run([python, "-c", f"import {module}"], check=True, capture_output=True)
    except (OSError, subprocess.SubprocessError) as error:
        shutil.rmtree(python.parent.parent, ignore_errors=True)
        print(f"!! {requirements[0]} could not be installed: nothing is compared with it ({error})")
        return None
    return python


def ask(python: Path, script: str, *arguments: object) -> Peer:
    command = [str(python), str(HERE / "peers" / script), *map(str, arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    step, size, _, load = done.stdout.split()
    return Peer(step=float(step) / 1e3, size=int(size), load=float(load) / 1e3)


def least_cpu(action: Callable[[], object]) -> float:
    found = []
    for _ in range(LOADS):
        begun = time.process_time()
        action()
        found.append(time.process_time() - begun)
    return min(found)


def loads(ours: Left) -> tuple[float, float]:
    """Processor seconds of the conversation as mappings, and as the objects that go to a model."""
    journals = wiring.open_journals(ours.root)

    def plain() -> None:
        reader = Reader()
        for event in journals.read(ours.job):
            reader.add(event)

    def typed() -> None:
        recall(journals.read(ours.job), find_secrets({}))

    return least_cpu(plain), least_cpu(typed)


def report_growth(root: Path) -> None:
    """The first of several rounds warms up; the least of the others counts."""
    steps: dict[int, list[Left]] = {FEW: [], MANY: []}
    for number in range(ROUNDS):
        for messages, found in steps.items():
            found.append(
                run(root / f"{messages}-{number}", messages, has_tools=False, synced=False)
            )
    few, many = (min(found[1:], key=lambda one: one.step) for found in steps.values())
    print(f"a step takes {few.step * 1e6:.0f} us after {FEW}, {many.step * 1e6:.0f} after {MANY:,}")
    against = f"{MANY:,} against {FEW} messages"
    print(
        f"time of a step with its checkpoint, {against}: {many.step / few.step:.2f}x (limit 1.2x)"
    )
    print(f"bytes of a checkpoint, {against}: {many.save / few.save:.2f}x (limit 1.2x)")


def report_bytes(root: Path) -> None:
    """A conversation with tools, as a native agent's is."""
    ours = run(root / "bytes", MANY, has_tools=True, synced=False)
    for kind, size in sorted(ours.by_file.items(), key=lambda one: -one[1]):
        print(f"  {size:>10,} bytes  {kind}")
    print(f"  {ours.dump:>10,} bytes  pydantic-ai's own dump of the conversation")
    what = f"{MANY:,} messages of a kilobyte"
    print(
        f"bytes to go on from, {what}, against their dump: {ours.memory / ours.dump:.2f}x (limit 1.3x)"
    )
    both = (ours.memory + ours.mirror) / ours.dump
    print(f"the same with the mirror, which can be deleted: {both:.2f}x")


def report_beside(
    ours: Left, name: str, peer: Peer, steps: int, *, least: tuple[float, float]
) -> None:
    print(
        f"{steps:,} steps, each synced: ours {ours.step * 1e3:.2f} ms a step and {ours.memory / 1e6:.2f} MB"
        f" (and {ours.mirror / 1e6:.2f} MB of mirror), {name} {peer.step * 1e3:.2f} ms and {peer.size / 1e6:.2f} MB"
    )
    bound = f" (at least {least[0]:g}x)" if least[0] else ""
    print(f"bytes of {name} against ours, {steps:,} steps: {peer.size / ours.memory:.1f}x{bound}")
    bound = f" (at least {least[1]:g}x)" if least[1] else ""
    print(
        f"time of a step of {name} against ours, {steps:,} steps: {peer.step / ours.step:.1f}x{bound}"
    )


def report_langgraph(root: Path, python: Path, ours: Left, *, is_full: bool) -> None:
    script = "langgraph_checkpoints.py"
    delta = ask(python, script, MANY, "delta", "synced", "plain")
    report_beside(ours, "LangGraph (delta)", delta, MANY, least=(10, 5))
    if is_full:
        full = ask(python, script, MANY, "full", "synced", "plain")
        report_beside(ours, "LangGraph (full)", full, MANY, least=(500, 5))
    else:
        full = report_short(root, python)
        print(f"{MANY:,} steps of LangGraph (full), worked out: {full.size / 1e6:,.0f} MB")
        ratio = full.size / ours.memory
        print(
            f"bytes of LangGraph (full) against ours, {MANY:,} steps worked out: {ratio:.0f}x (at least 500x)"
        )
    plain, typed = loads(ours)
    objects = ask(python, script, MANY, "delta", "synced", "typed")
    print(
        f"{MANY:,} messages back: {plain * 1e3:.0f} ms as mappings, {typed * 1e3:.0f} ms as objects"
    )
    print(
        f"loading in LangGraph (delta) against ours, as mappings: {delta.load / plain:.2f}x (at least 1x)"
    )
    if is_full:
        print(
            f"loading in LangGraph (full) against ours, as mappings: {full.load / plain:.2f}x (at least 1x)"
        )
    print(f"loading in LangGraph (delta) against ours, as objects: {objects.load / typed:.2f}x")


def report_short(root: Path, python: Path) -> Peer:
    """Whole lists at fewer steps, and what they come to at all: each save writes all that was said before."""
    found = [ask(python, "langgraph_checkpoints.py", n, "full", "synced", "plain") for n in SHORT]
    beside = run(root / "short", SHORT[-1], has_tools=False, synced=True)
    report_beside(beside, "LangGraph (full)", found[-1], SHORT[-1], least=(100, 5))
    grown = found[-1].size / found[0].size
    print(f"{SHORT[-1]} against {SHORT[0]} steps, LangGraph (full): {grown:.1f}x")
    return replace(found[-1], size=round(found[-1].size * (MANY / SHORT[-1]) ** 2))


def main() -> None:
    """Prints every time, size and ratio."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        report_growth(root)
        report_bytes(root)
        ours = run(root / "synced", MANY, has_tools=False, synced=True)
        python = environment(LANGGRAPH, "langgraph.graph")
        if python is not None:
            report_langgraph(root, python, ours, is_full="--full" in sys.argv[1:])
        python = environment(OPENAI, "agents")
        if python is not None:
            session = ask(python, "openai_session.py", MANY)
            report_beside(ours, "openai-agents", session, MANY, least=(0, 0))
            print(
                f"loading in openai-agents against ours, as mappings: {session.load / loads(ours)[0]:.2f}x"
            )


if __name__ == "__main__":
    main()
