"""An agent that was asked about a limit answers while the worker that asked is gone: its answer counts all the same."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from engine.bench import Bench
from engine.hooks.played_hooks import PlayedCarrier, hook, with_hooks
from engine.limits.resuming import resume
from engine.limits.test_limit_answers import judge, spender
from engine.limits.turns import CENT
from nightherd.model.agents.agent import Agent
from nightherd.model.hooks import AgentSubmission, HookPoint
from nightherd.model.ids import JobId
from nightherd.model.jobs.changes import LoseExecution
from nightherd.model.jobs.job import Job, JobQuery, JobStatus
from nightherd.model.journal.event import Event, SystemEvent, payload_of
from nightherd.model.journal.system import HookRan
from nightherd.model.limits.limits import OnLimit
from nightherd.model.usage import Totals
from nightherd.runtimes.scripted.runtime import ScriptedRuntime


class Killed(BaseException):
    """The process was killed here."""


def die_when_asked(event: Event) -> None:
    ran = payload_of(event) if isinstance(event, SystemEvent) else None
    if isinstance(ran, HookRan) and ran.success:
        raise Killed


def lose(bench: Bench, job_id: JobId) -> None:
    """Somebody has seen that the worker is gone."""
    job, last = bench.job(job_id), bench.journal(job_id)[-1].seq
    change = LoseExecution(
        job_id=job_id, epoch=job.epoch, at=bench.clock.now(), reason="killed",
        max_restarts=5, last_seq=last, total=Totals(), own=Totals(),
    )  # fmt: skip
    anyio.run(bench.store.apply, [change])


def asking_bench(tmp_path: Path, answer: str) -> tuple[Bench, Agent]:
    """A bench whose jobs ask the judge about their limit, and the judge."""
    asking = hook(HookPoint.LIMITS, action=AgentSubmission(agent="judge", inputs={"issue": "1"}))
    asking = replace(asking, id="limits.hooks[0]")
    other = judge(tmp_path, answer)
    bench = Bench(ScriptedRuntime(), agent=spender(tmp_path, OnLimit.HOOK))  # type: ignore[arg-type]  # any runtime does
    return with_hooks(bench, PlayedCarrier(), asking, others=(other,)), other


def answered_meanwhile(tmp_path: Path, answer: str) -> tuple[Bench, Job]:
    """A job whose worker died once the judge was asked, who has answered before another took the job."""
    bench, other = asking_bench(tmp_path, answer)
    job_id = bench.submit().job.id
    with pytest.raises(Killed):
        bench.execute(job_id, on_event=die_when_asked)
    lose(bench, job_id)
    (asked,) = [
        one
        for one in bench.reader.list_jobs(JobQuery(status=JobStatus.PENDING))
        if one.agent == "judge"
    ]
    agent, bench.agent = bench.agent, other
    assert bench.execute(asked.id).status is JobStatus.COMPLETED
    bench.agent = agent
    assert bench.job(job_id).status is JobStatus.PENDING, "not yet waiting for the answer again"
    return bench, bench.execute(job_id)


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ("raise spend=9", JobStatus.PENDING),
        ("continue", JobStatus.PENDING),
        ("fail", JobStatus.FAILED),
        ("I do not know.", JobStatus.SUSPENDED),
    ],
)
def test_an_answer_that_came_before_the_job_waited_counts_once_it_does(
    tmp_path: Path, answer: str, status: JobStatus
) -> None:
    bench, job = answered_meanwhile(tmp_path, answer)

    assert bench.job(job.id).status is status
    asked = [one for one in bench.reader.list_jobs(JobQuery(limit=99)) if one.agent == "judge"]
    assert len(asked) == 1, "nobody is asked twice about one wait"
    if status is JobStatus.PENDING:
        assert bench.execute(job.id).status is JobStatus.COMPLETED


def test_an_answer_that_is_too_little_is_obeyed_once(tmp_path: Path) -> None:
    """The next turn needs $0.30."""
    bench, job = answered_meanwhile(tmp_path, "raise spend=0.29")
    assert bench.job(job.id).status is JobStatus.PENDING

    bench.execute(job.id)

    assert bench.job(job.id).status is JobStatus.SUSPENDED


def test_an_answer_about_a_wait_that_is_over_does_not_count_for_the_next(tmp_path: Path) -> None:
    bench, other = asking_bench(tmp_path, "fail")
    job = bench.run()
    assert job.status is JobStatus.SUSPENDED
    again = resume(bench, job, spend=35 * CENT)
    assert (again.status, again.turns) == (JobStatus.SUSPENDED, 3)
    second, first = bench.reader.list_jobs(JobQuery(status=JobStatus.PENDING))

    bench.agent = other
    bench.execute(first.id)
    assert bench.job(job.id).status is JobStatus.SUSPENDED, "somebody has raised it since"

    bench.execute(second.id)
    assert bench.job(job.id).status is JobStatus.FAILED
