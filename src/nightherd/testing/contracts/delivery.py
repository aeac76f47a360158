"""What every state store must do for deliveries; see `state_contract` for how to run checks."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from nightherd.model.change import Applied, RecordDelivery, Refused, Why
from nightherd.model.jobs.job import JobQuery
from nightherd.model.schedules.schedule import PlanSchedule, ScheduleStatus
from nightherd.model.webhooks import Delivery, DeliveryOutcome, delivery_key
from nightherd.testing.contracts.state import OpenState, checks_in
from nightherd.testing.state_values import BEGINNING, job_id, settle, start, submit


def delivery(name: str, number: int | None, *, minute: int = 0) -> RecordDelivery:
    """A delivery that asks for job `number`, or is about nothing."""
    return RecordDelivery(
        delivery=Delivery(
            id=delivery_key("issues", name),
            endpoint="issues",
            delivery_id=name,
            received_at=BEGINNING + timedelta(minutes=minute),
            outcome=DeliveryOutcome.JOB if number is not None else DeliveryOutcome.IGNORED,
            size=12,
            reason=None if number is not None else "not an event of ours",
        ),
        job=submit(number) if number is not None else None,
    )


async def check_delivery_makes_one_job_however_often_it_is_sent(state: OpenState) -> None:
    (first,) = await state.writer.apply([delivery("a", 1)])
    (again,) = await state.writer.apply([delivery("a", 2, minute=1)])

    assert isinstance(first, Applied)
    assert isinstance(again, Refused)
    assert again.why is Why.DUPLICATE
    assert again.job is not None
    assert again.job.id == job_id(1)
    assert [job.id for job in state.reader.list_jobs(JobQuery())] == [job_id(1)]
    (kept,) = state.reader.list_deliveries("issues", 10)
    assert (kept.outcome, kept.job_id) == (DeliveryOutcome.JOB, job_id(1))


async def check_delivery_about_nothing_is_kept_with_its_reason(state: OpenState) -> None:
    asked = delivery("b", None)
    await state.writer.apply([asked])
    (again,) = await state.writer.apply([replace(asked, job=submit(1))])

    assert isinstance(again, Refused)
    assert (again.why, again.job) == (Why.DUPLICATE, None)
    assert list(state.reader.list_jobs(JobQuery())) == []
    assert list(state.reader.list_deliveries("issues", 10)) == [asked.delivery]


async def check_delivery_whose_job_id_is_taken_is_not_kept(state: OpenState) -> None:
    await state.writer.apply([submit(1)])
    (refused,) = await state.writer.apply([delivery("c", 1)])

    assert isinstance(refused, Refused)
    assert refused.why is Why.ID_TAKEN
    assert list(state.reader.list_deliveries("issues", 10)) == []


async def check_deliveries_are_listed_newest_first(state: OpenState) -> None:
    changes = [delivery(str(number), number, minute=number) for number in (1, 2, 3)]
    await state.writer.apply(changes)

    assert [row.delivery_id for row in state.reader.list_deliveries("issues", 2)] == ["3", "2"]
    assert list(state.reader.list_deliveries("other", 2)) == []


async def check_schedule_runs_while_a_job_that_a_delivery_asked_for_is_there(
    state: OpenState,
) -> None:
    asked = submit(1)
    agent, due = asked.job.agent, BEGINNING + timedelta(hours=1)
    planned = PlanSchedule(
        agent=agent,
        schedule="fired",
        rule="every 1h",
        enabled=True,
        pause_after=5,
        next_due_at=due,
        next_run_at=due,
    )
    of_schedule = replace(asked, job=replace(asked.job, schedule="fired"))
    await state.writer.apply([planned, replace(delivery("d", None), job=of_schedule)])
    (busy,) = state.reader.list_schedules()
    await state.writer.apply([start(1), settle(1)])
    (idle,) = state.reader.list_schedules()

    assert (busy.status, idle.status) == (ScheduleStatus.RUNNING, ScheduleStatus.IDLE)


DELIVERY_CHECKS = checks_in(globals())
"""Every check of this module."""
