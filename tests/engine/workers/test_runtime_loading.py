"""A runtime that takes long to import: the worker's other work goes on meanwhile."""

from __future__ import annotations

import threading

import anyio
from anyio import to_thread
from msgspec.structs import replace

from engine.bench import Bench, no_one
from engine.limits.turns import END
from nightherd.engine.jobs.runner import run_job
from nightherd.model.agents.runtime import RuntimeName
from nightherd.model.jobs.job import JobStatus
from nightherd.ports import Runtime
from nightherd.testing.runtime import PlayedRuntime

PATIENCE_S = 60


def test_while_a_runtime_is_imported_the_worker_goes_on() -> None:
    bench = Bench(PlayedRuntime(END))
    begun, beaten = threading.Event(), threading.Event()

    def imported(name: RuntimeName) -> Runtime:
        begun.set()
        assert beaten.wait(PATIENCE_S), "nothing else could be done meanwhile"
        return bench.runtime

    bench.context = replace(bench.context, runtimes=imported, is_loaded=lambda name: False)
    job_id = bench.submit().job.id

    async def beat() -> None:
        await to_thread.run_sync(begun.wait, PATIENCE_S)
        beaten.set()

    async def work() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(beat)
            await run_job(job_id, bench.agent, bench.context, on_event=no_one)

    anyio.run(work)

    assert bench.job(job_id).status is JobStatus.COMPLETED


def test_runtime_that_cannot_be_imported_fails_its_job_and_not_the_worker() -> None:
    bench = Bench(PlayedRuntime(END))

    def half_installed(name: RuntimeName) -> Runtime:
        raise ImportError("cannot import name 'Model' from 'pydantic_ai.models'")

    bench.context = replace(bench.context, runtimes=half_installed, is_loaded=lambda name: False)

    job = bench.run()

    assert (job.status, job.error_code) == (JobStatus.FAILED, "runtime_error")
    assert "cannot import name 'Model'" in (job.error or "")
