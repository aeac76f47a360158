"""Agents that are asked about a limit: their answer raises it, lifts it, or lets the job fail, once."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.bench import AGENT, Bench
from engine.limits.turns import CENT, used
from nightherd.model.agents.agent import Agent
from nightherd.model.agents.script import Say, Spend, compile_script
from nightherd.model.jobs.job import ExitReason, Job, JobStatus, TriggerType
from nightherd.model.limits.limits import DayLimits, LimitName, Limits, OnLimit
from nightherd.model.units import MicroUsd
from nightherd.runtimes.scripted.runtime import ScriptedRuntime


def spender(tmp_path: Path, outcome: OnLimit) -> Agent:
    steps = [step for n in range(4) for step in (Say(f"turn {n + 1}"), Spend(used(10)))]
    limits = Limits(spend=MicroUsd(25 * CENT), outcomes={LimitName.SPEND: outcome})
    return replace(
        AGENT, script=compile_script(steps), limits=limits, working_directory=str(tmp_path)
    )


def judge(tmp_path: Path, answer: str) -> Agent:
    said = compile_script([Say(answer)])
    return replace(AGENT, name="judge", script=said, working_directory=str(tmp_path))


def asked(
    tmp_path: Path, answer: str, outcome: OnLimit = OnLimit.HOOK, agent: Agent | None = None
) -> tuple[Bench, Job]:
    """A job that met its limit, after the agent that was asked about it has answered."""
    agent = agent or spender(tmp_path, outcome)
    bench = Bench(ScriptedRuntime(), agent=agent)  # type: ignore[arg-type]  # any runtime does
    job = bench.run()
    assert job.status is JobStatus.SUSPENDED
    bench.agent = judge(tmp_path, answer)
    bench.run(
        trigger_type=TriggerType.SPAWNED,
        trigger_id=job.id,
        dedupe_key=f"hook:{job.id}:limits.hooks[0]:suspended-1",
    )
    bench.agent = agent
    return bench, bench.job(job.id)


def test_a_raised_limit_lets_the_job_go_on(tmp_path: Path) -> None:
    bench, job = asked(tmp_path, "It looks useful.\n\nraise spend=0.35, turns=9")

    assert job.status is JobStatus.PENDING
    again = bench.execute(job.id)

    assert (again.status, again.turns) == (JobStatus.SUSPENDED, 3)
    assert "the job's limit of $0.35" in (again.error or "")


def test_a_job_may_go_on_without_the_limit(tmp_path: Path) -> None:
    bench, job = asked(tmp_path, "continue")
    done = bench.execute(job.id)

    assert done.status is JobStatus.COMPLETED
    last = bench.reader.list_checkpoints(done.id)[-1]
    assert last.header["limits"] == {}, "what does not limit is not told as a limit"


def test_a_job_may_be_let_fail(tmp_path: Path) -> None:
    _, job = asked(tmp_path, "Enough of this.\nfail")

    assert (job.status, job.exit_reason) == (JobStatus.FAILED, ExitReason.LIMIT)
    assert (job.error or "").endswith("judge decided to fail the job")


@pytest.mark.parametrize(
    "answer", ["", "I do not know.", "raise hopes=2", "raise spend=", "raise", "raise spend=0.20"]
)
def test_any_other_answer_leaves_the_job_waiting(tmp_path: Path, answer: str) -> None:
    _, job = asked(tmp_path, answer or " ")

    assert job.status is JobStatus.SUSPENDED
    assert "the job's limit of $0.25" in (job.error or "")


def test_only_a_job_that_leaves_it_to_others_obeys(tmp_path: Path) -> None:
    _, job = asked(tmp_path, "raise spend=9", OnLimit.SUSPEND)

    assert job.status is JobStatus.SUSPENDED


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ("raise turns=99", JobStatus.SUSPENDED),
        ("continue", JobStatus.SUSPENDED),
        ("fail", JobStatus.FAILED),
    ],
)
def test_what_is_shared_is_not_raised_for_one_job(
    tmp_path: Path, answer: str, status: JobStatus
) -> None:
    left_to_others = {LimitName.TURNS: OnLimit.HOOK}
    limits = Limits(per_day=DayLimits(turns=2), outcomes=left_to_others)
    agent = replace(spender(tmp_path, OnLimit.SUSPEND), limits=limits)

    _, job = asked(tmp_path, answer, agent=agent)

    assert job.status is status
    assert "a day" in (job.error or "")
