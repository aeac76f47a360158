"""What our own turn loop costs over bare pydantic-ai: the same function model, the same tool, the same turns.

Three ways, interleaved, the least of all rounds: pydantic-ai's own agent; our loop with every line in a real
journal; a whole job with everything on, checkpoints at every trigger point, rows and ledger included.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from msgspec.structs import replace
from pydantic_ai import Agent as BareAgent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

from nightherd.engine.contexts import WorkerContext
from nightherd.engine.jobs.recorder import Recorder
from nightherd.engine.jobs.runner import run_job
from nightherd.engine.operations.new_job import JobDraft, record_job
from nightherd.model.agents.agent import Agent, Fleet
from nightherd.model.ids import ExecutionId, JobId
from nightherd.model.secrets import find_secrets
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.native.capabilities import NATIVE
from nightherd.runtimes.native.runtime import NativeRuntime
from nightherd.runtimes.native.script_model import WholeAnswers
from nightherd.runtimes.tools.tool import ToolContext, ToolOutcome
from nightherd.wiring import running as workshops
from nightherd.wiring import stores as memories

TURNS = 50
ROUNDS = 5
LIMIT_MS = 3.0
SHARE = 0.15
TEXT = "x" * 200


def answers() -> Callable[[list[ModelMessage], AgentInfo], Any]:
    """A model that wants the tool in every turn but the last."""
    asked = 0

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        nonlocal asked
        asked += 1
        usage = RequestUsage(input_tokens=100, output_tokens=20)
        if asked < TURNS:
            call = ToolCallPart("Read", {"file_path": "a.txt"}, f"call-{asked}")
            return ModelResponse([TextPart(TEXT), call], usage=usage)
        return ModelResponse([TextPart("done")], usage=usage)

    return answer


@dataclass(frozen=True)
class Reader:
    """The tool: it answers at once."""

    name: str = "Read"
    starts_processes: bool = False
    is_read_only: bool = True

    async def run(self, input: Mapping[str, Any], context: ToolContext) -> ToolOutcome:
        return ToolOutcome(result=TEXT)


async def bare() -> None:
    agent = BareAgent(FunctionModel(answers()))

    @agent.tool_plain(name="Read")
    async def read(file_path: str) -> str:
        return TEXT

    await agent.run("go")


def runtime() -> NativeRuntime:
    return NativeRuntime(model=WholeAnswers(answers()), tools=[Reader()])


async def loop(place: Path, number: int) -> None:
    """Our loop into a journal."""
    job = JobId(f"job-2025-01-01-{number:06d}")
    execution = ExecutionId(f"{job}.1")
    request = RuntimeRequest(
        job_id=job,
        execution=execution,
        agent=agent_at(place),
        prompt="go",
        environment={"PATH": os.environ["PATH"]},
    )
    recorder = Recorder(find_secrets({}), lambda event: None)
    journal = memories.open_journals(place).open(job, epoch=1, execution=execution)
    with recorder.into(journal):
        async for event in runtime().execute(request):
            recorder.record(event)


def agent_at(place: Path) -> Agent:
    return Agent(
        name="a",
        runtime=NATIVE,
        working_directory=str(place),
        permission_mode="bypassPermissions",
    )


@asynccontextmanager
async def workshop_at(place: Path) -> AsyncIterator[WorkerContext]:
    fleet = Fleet(file=str(place / "nightherd.yaml"), agents={"a": agent_at(place)})
    async with workshops.open_worker(place / ".nightherd", fleet, dict(os.environ)) as context:
        yield replace(context, runtimes=lambda name: runtime())


async def whole(context: WorkerContext, place: Path) -> None:
    """A whole job, with everything that keeps it."""
    agent = agent_at(place)
    submitted = await record_job(JobDraft(agent=agent, prompt="go"), context)
    done = await run_job(submitted.job.id, agent, context, on_event=lambda event: None)
    if done.turns != TURNS:
        raise SystemExit(f"the job took {done.turns} turns: {done.error}")


async def measure() -> dict[str, float]:
    """Milliseconds a turn, the least of all rounds."""
    least = dict.fromkeys(("bare", "loop", "whole"), float("inf"))
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        (place / "alone" / "jobs").mkdir(parents=True)
        async with workshop_at(place) as context:
            for number in range(ROUNDS + 1):
                ways: dict[str, Callable[[], Awaitable[None]]] = {
                    "bare": bare,
                    "loop": partial(loop, place / "alone", number),
                    "whole": partial(whole, context, place),
                }
                for name, run in ways.items():
                    before = time.perf_counter()
                    await run()
                    took = (time.perf_counter() - before) * 1000 / TURNS
                    if number > 0:  # the first builds pydantic's validators
                        least[name] = min(least[name], took)
    return least


def main() -> None:
    """Prints what each way takes a turn, and what ours adds."""
    found = anyio.run(measure)
    for name, took in found.items():
        print(f"{name} takes {took:.2f} ms a turn")
    limit = max(LIMIT_MS, SHARE * found["bare"])
    loop_ms, whole_ms = (max(found[name] - found["bare"], 0.0) for name in ("loop", "whole"))
    print(f"a turn of the loop over bare pydantic-ai: {loop_ms:.2f} ms (limit {limit:.2f} ms)")
    print(
        f"a turn with all triggers on over bare pydantic-ai: {whole_ms:.2f} ms (limit {limit:.2f} ms)"
    )


if __name__ == "__main__":
    main()
