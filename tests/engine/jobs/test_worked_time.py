"""Only worked time counts: an outage uses up neither a `duration` limit nor a timeout."""

from __future__ import annotations

from datetime import timedelta

import anyio
from msgspec.structs import replace

from engine.bench import AGENT, Bench, hurried
from engine.yard import Yard
from nightherd.engine.workers.rescue import rescue
from nightherd.model.agents.agent import Agent
from nightherd.model.change import ExtendLease
from nightherd.model.ids import WorkerId, generate_execution_id
from nightherd.model.jobs.failure import advice_on
from nightherd.model.jobs.job import Execution, ExecutionStatus, ExitReason, Job, JobStatus
from nightherd.model.journal.event import describe
from nightherd.model.journal.recollection import rebuilt_rows, recollect
from nightherd.model.journal.system import ExecutionStarted, Header
from nightherd.model.limits.limits import Limits
from nightherd.model.sessions.session import SessionTerms
from nightherd.testing.runtime import ANSWER, PlayedRuntime

HOUR = timedelta(hours=1)


def lost_overnight(agent: Agent, *, worked: timedelta) -> tuple[Yard, Job]:
    """A job whose worker sent its last heartbeat `worked` after it began, and was missed in the morning."""
    yard = Yard(bench=Bench(agent=agent))
    worker = yard.register("worker-goneaaaa", pid=7)
    job = yard.taken(worker)
    yard.bench.clock.advance(worked)
    at = yard.bench.clock.now()
    anyio.run(yard.bench.store.apply, [ExtendLease(worker_id=worker, deadline=1e9, at=at)])
    yard.dead.add(7)
    yard.advance(hours=8)
    anyio.run(lambda: rescue(yard.record, yard.terms))
    return yard, job


def recorded(yard: Yard, job: Job) -> None:
    """The first lines of its record."""
    execution = generate_execution_id(job.id, 1)
    journal = yard.bench.context.journals.open(job.id, epoch=1, execution=execution)
    journal.append(
        describe(
            Header(
                id=job.id,
                agent=job.agent,
                trigger_type=job.trigger_type.value,
                created_at=job.created_at,
            )
        )
    )
    journal.append(describe(ExecutionStarted(worker="worker-goneaaaa")))
    journal.close()


def seconds(execution: Execution) -> int:
    """How long it took, without the ticks of the clock."""
    return (execution.duration_ms or 0) // 1_000


def test_a_lost_execution_ended_with_the_last_heartbeat_of_its_worker() -> None:
    yard, job = lost_overnight(AGENT, worked=timedelta(minutes=3))

    (execution,) = yard.bench.reader.list_executions(job.id)

    assert (execution.status, seconds(execution)) == (ExecutionStatus.LOST, 180)


def test_a_lost_execution_ended_with_its_last_event_where_that_is_later() -> None:
    yard = Yard()
    job = yard.taken(yard.register("worker-goneaaaa", pid=7))
    yard.advance(minutes=2)
    recorded(yard, job)
    yard.dead.add(7)
    yard.advance(hours=8)

    anyio.run(lambda: rescue(yard.record, yard.terms))

    (execution,) = yard.bench.reader.list_executions(job.id)
    assert seconds(execution) == 120


def test_a_worker_of_which_nothing_is_known_has_worked_no_time() -> None:
    yard = Yard()
    job = yard.taken(WorkerId("worker-unknown0"))
    yard.advance(hours=8)

    anyio.run(lambda: rescue(yard.record, yard.terms))

    (execution,) = yard.bench.reader.list_executions(job.id)
    assert seconds(execution) == 0


def test_an_outage_does_not_use_up_a_limit_of_time() -> None:
    limited = replace(AGENT, limits=Limits(duration=HOUR))
    yard, job = lost_overnight(limited, worked=timedelta(minutes=3))

    ended = yard.bench.execute(job.id)

    assert ended.status is JobStatus.COMPLETED


def test_a_timeout_counts_what_earlier_executions_worked_and_no_outage() -> None:
    yard, job = lost_overnight(hurried(HOUR), worked=timedelta(minutes=59))
    late, other = lost_overnight(hurried(HOUR), worked=timedelta(minutes=61))
    late.bench.runtime = PlayedRuntime(is_endless=True, events=ANSWER[:-1])

    assert yard.bench.execute(job.id).exit_reason is ExitReason.SUCCESS
    assert late.bench.execute(other.id).exit_reason is ExitReason.TIMEOUT


def test_a_timeout_of_the_session_is_named_as_that() -> None:
    limit = timedelta(milliseconds=30)
    agent = replace(hurried(limit), session=SessionTerms(timeout=limit))
    job = Bench(agent=agent, runtime=PlayedRuntime(ANSWER[:-1], is_endless=True)).run()

    assert job.exit_reason is ExitReason.TIMEOUT
    assert job.error == "the job ran longer than its session.timeout of 30ms"
    assert advice_on(job).words == "raise session.timeout, then resume the job"


def test_rows_made_from_a_journal_leave_out_the_time_between_executions() -> None:
    yard = Yard()
    job = yard.taken(yard.register("worker-goneaaaa", pid=7))
    recorded(yard, job)
    yard.dead.add(7)
    yard.advance(hours=8)
    anyio.run(lambda: rescue(yard.record, yard.terms))
    yard.bench.execute(job.id)

    rebuilt = rebuilt_rows(recollect(yard.bench.journal(job.id)))

    assert rebuilt is not None
    assert sum(one.duration_ms or 0 for one in rebuilt.executions) < HOUR.total_seconds() * 1_000
