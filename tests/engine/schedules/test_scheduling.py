"""Scheduling: every due instant has exactly one outcome, whoever looks, however often, whatever the clock does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import anyio
import pytest
from msgspec.structs import replace

from engine.schedules.stall import HOURLY, NOON, Stall, fleet
from nightherd.errors import StateError
from nightherd.model.change import Answer, Change
from nightherd.model.jobs.job import JobStatus, TriggerType
from nightherd.model.schedules.rule import CatchUp, Cron, Interval
from nightherd.model.schedules.schedule import ScheduleStatus, SlotOutcome
from nightherd.model.sessions.session import SessionMode, SessionTerms

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def test_a_schedule_is_planned_before_it_is_due_and_fires_when_it_is() -> None:
    stall = Stall()

    stall.look()
    planned = stall.state()
    stall.look(after=timedelta(minutes=59))
    assert stall.jobs() == []
    stall.look(after=MINUTE)

    (job,), (slot,), state = stall.jobs(), stall.slots(), stall.state()
    assert (planned.status, planned.next_run_at) == (ScheduleStatus.IDLE, NOON)
    assert (slot.due_at, slot.outcome, slot.job_id) == (NOON, SlotOutcome.JOB, job.id)
    assert (job.trigger_type, job.trigger_id) == (TriggerType.SCHEDULE, slot.id)
    assert (job.schedule, job.status) == ("hourly", JobStatus.PENDING)
    assert (state.status, state.next_run_at) == (ScheduleStatus.RUNNING, NOON + HOUR)
    texts = stall.bench.reader.find_texts(job.id)
    assert texts is not None
    assert texts.prompt == "Graze."
    assert stall.told == ["fired coder/hourly"]


def test_many_schedulers_make_one_job_of_a_slot() -> None:
    stall = Stall()
    crowd = [stall.make() for _ in range(5)]
    for one in crowd:
        stall.look(scheduler=one)
    stall.clock.advance(HOUR)

    async def all_at_once() -> None:
        async with anyio.create_task_group() as tasks:
            for one in crowd:
                tasks.start_soon(one.look)

    anyio.run(all_at_once)
    for one in crowd:
        stall.look(scheduler=one)

    assert len(stall.jobs()) == len(stall.slots()) == 1


def test_a_restart_neither_shifts_nor_doubles() -> None:
    stall = Stall()
    for _ in range(10):
        stall.restart()
        stall.look(after=timedelta(minutes=12))

    due = [slot.due_at for slot in stall.slots()]
    assert due == [NOON + HOUR * n for n in range(len(due))]
    assert len(due) == 2


def test_a_slot_that_would_overlap_is_skipped_and_says_with_what() -> None:
    stall = Stall()
    stall.look()
    stall.look(after=HOUR)
    stall.look(after=HOUR)

    (job,) = stall.jobs()
    fired, skipped = stall.slots()
    assert fired.outcome is SlotOutcome.JOB
    assert skipped.outcome is SlotOutcome.SKIPPED
    assert skipped.reason == f"overlap: a job has not ended yet: {job.id}"
    assert stall.told[-1] == f"skipped coder/hourly: {skipped.reason}"


def test_more_may_overlap_where_that_is_allowed() -> None:
    stall = Stall(fleet(replace(HOURLY, max_overlap=2)))
    stall.look()
    for _ in range(3):
        stall.look(after=HOUR)

    assert [slot.outcome.value for slot in stall.slots()] == ["job", "job", "skipped"]


@pytest.mark.parametrize(
    ("catch_up", "outcomes"),
    [
        (CatchUp.NONE, ["skipped", "skipped", "skipped"]),
        (CatchUp.ONE, ["skipped", "skipped", "job"]),
    ],
)
def test_slots_missed_while_nothing_ran_have_an_outcome_too(
    catch_up: CatchUp, outcomes: list[str]
) -> None:
    stall = Stall(fleet(replace(HOURLY, catch_up=catch_up)))
    stall.look()
    stall.restart()
    stall.look(after=timedelta(hours=3, minutes=30))

    assert [slot.outcome.value for slot in stall.slots()] == outcomes
    assert all("missed" in (slot.reason or "missed") for slot in stall.slots())
    assert stall.state().next_run_at == NOON + HOUR * 3


def test_catching_up_with_all_makes_every_job_one_after_the_other() -> None:
    stall = Stall(fleet(replace(HOURLY, catch_up=CatchUp.ALL)))
    stall.look()
    stall.restart()
    stall.look(after=timedelta(hours=3, minutes=30))
    done = []
    for _ in range(3):
        waiting = [job for job in stall.jobs() if not job.is_terminal]
        assert len(waiting) == 1
        done.append(stall.finish(waiting[0]))
        stall.look(after=timedelta(seconds=2))

    assert [slot.due_at for slot in stall.slots()] == [NOON + HOUR * n for n in range(3)]
    assert {slot.outcome for slot in stall.slots()} == {SlotOutcome.JOB}
    assert [job.status for job in stall.jobs()] == [JobStatus.COMPLETED] * 3


def test_a_clock_set_back_fires_nothing_again() -> None:
    stall = Stall(fleet(replace(HOURLY, max_overlap=99)))
    stall.look()
    for _ in range(3):
        stall.look(after=HOUR)
    assert len(stall.jobs()) == 3

    stall.look(after=-2 * HOUR)
    planned = stall.state().next_run_at
    for _ in range(8):
        stall.look(after=timedelta(minutes=15))
    assert len(stall.jobs()) == 3
    stall.look(after=HOUR)

    assert planned == NOON + 3 * HOUR
    due = [slot.due_at for slot in stall.slots()]
    assert due == sorted(set(due)) == [NOON + n * HOUR for n in range(4)]


def test_a_clock_that_was_a_year_ahead_by_mistake_does_not_silence_a_schedule() -> None:
    stall = Stall(fleet(replace(HOURLY, max_overlap=99)))
    stall.look()
    stall.look(after=timedelta(days=365))
    stall.look(after=-timedelta(days=365))

    stall.look(after=HOUR)

    assert stall.slots()[0].due_at == NOON
    assert stall.slots()[0].outcome is SlotOutcome.JOB


def test_a_disabled_schedule_fires_nothing_and_says_so() -> None:
    stall = Stall(fleet(replace(HOURLY, enabled=False)))
    stall.look()
    stall.look(after=HOUR * 3)

    assert stall.slots() == []
    assert (stall.state().status, stall.state().next_run_at) == (ScheduleStatus.DISABLED, None)


def test_disabling_while_its_job_runs_sticks() -> None:
    stall = Stall()
    stall.look()
    stall.look(after=HOUR)
    stall.override(enabled=False)
    stall.finish(stall.jobs()[0])
    for _ in range(3):
        stall.look(after=HOUR)

    assert len(stall.slots()) == 1
    assert stall.state().status is ScheduleStatus.DISABLED


def test_enabling_again_does_not_make_up_for_what_was_off() -> None:
    stall = Stall(fleet(replace(HOURLY, catch_up=CatchUp.ALL)))
    stall.look()
    stall.override(enabled=False)
    stall.look(after=5 * HOUR)
    stall.override(enabled=True)
    stall.look()

    assert stall.slots() == []
    assert stall.state().next_run_at == NOON + 5 * HOUR


def test_an_override_of_the_rule_counts_at_once_and_survives_a_restart() -> None:
    stall = Stall()
    stall.look()
    stall.override(rule="10m")
    stall.look()
    assert stall.state().next_run_at == NOON - timedelta(minutes=50)
    stall.restart()
    stall.look(after=timedelta(minutes=10))
    assert [slot.due_at for slot in stall.slots()] == [NOON - timedelta(minutes=50)]

    stall.override(reset=True)
    stall.look()

    assert stall.state().next_run_at == NOON
    assert stall.bench.reader.list_overrides() == []


def test_a_scheduler_that_did_not_hear_of_an_override_fires_nothing_of_the_old_rule() -> None:
    stall = Stall()
    stall.look()
    stale = stall.scheduler
    stall.clock.advance(HOUR)
    stall.override(rule="0 0 * * *")

    anyio.run(stale._fire, stall.clock.now())
    stall.look()

    assert stall.slots() == []
    assert stall.state().next_run_at == NOON + 12 * HOUR


def test_a_schedule_that_fails_again_and_again_pauses_itself_visibly() -> None:
    stall = Stall(fleet(replace(HOURLY, pause_after=2)))
    stall.look()
    for _ in range(5):
        stall.look(after=HOUR)
        for job in stall.jobs():
            if not job.is_terminal:
                stall.finish(job, error="lame")

    state = stall.state()
    assert len(stall.jobs()) == 2
    assert (state.status, state.consecutive_failures) == (ScheduleStatus.DISABLED, 2)
    assert "lame" in (state.last_error or "")
    assert state.next_run_at is None
    stall.override(enabled=True)
    stall.look()
    assert stall.state().next_run_at is not None


def test_one_broken_schedule_does_not_hold_up_the_others() -> None:
    broken = replace(HOURLY, name="broken", prompt="${inputs.nothing}")
    stall = Stall(fleet(broken, HOURLY, agents=("coder", "writer")))
    stall.look()
    stall.look(after=HOUR)

    assert [slot.outcome.value for slot in stall.slots("coder/hourly")] == ["job"]
    assert [slot.outcome.value for slot in stall.slots("writer/hourly")] == ["job"]
    (slot,) = stall.slots("coder/broken")
    assert slot.outcome is SlotOutcome.SKIPPED
    assert "inputs.nothing" in (slot.reason or "")
    assert stall.state("broken").last_error == slot.reason


def test_a_schedule_that_cannot_even_be_planned_is_left_out_and_told() -> None:
    lost = replace(HOURLY, name="lost", rule=Cron(expression="0 * * * *", timezone="No/Where"))
    stall = Stall(fleet(lost, HOURLY))
    stall.look()
    stall.look(after=HOUR)

    assert len(stall.slots("coder/hourly")) == 1
    assert any(line.startswith("coder/lost is left out: ") for line in stall.told)


def test_scheduling_goes_on_after_what_nobody_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    stall = Stall()
    apply, troubles = stall.bench.store.apply, iter([OSError("odd"), StateError("full")])

    async def odd(changes: Sequence[Change]) -> Sequence[Answer]:
        for error in troubles:
            raise error
        stall.scheduler.wake()
        return await apply(changes)

    monkeypatch.setattr(stall.bench.store, "apply", odd)

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stall.scheduler.run)
            while not stall.bench.reader.list_schedules("coder"):
                stall.scheduler.wake()
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()

    anyio.run(run)

    assert stall.told == ["scheduling: OSError: odd", "full"]
    assert stall.state().next_run_at == NOON


def test_a_new_fleet_is_taken_in_while_it_runs() -> None:
    stall = Stall()
    stall.look()
    stall.scheduler.adopt(fleet(replace(HOURLY, name="daily", rule=Cron(expression="@daily"))))
    stall.declared = fleet(
        replace(HOURLY, name="daily", rule=Cron(expression="0 0 * * *", timezone="Europe/Zurich"))
    )
    stall.scheduler.adopt(stall.declared)
    stall.look()
    stall.look(after=HOUR)

    assert stall.jobs() == []
    assert (stall.state().status, stall.state().next_run_at) == (ScheduleStatus.DISABLED, None)
    assert stall.state("daily").next_run_at == NOON + 11 * HOUR


def test_a_fleet_that_comes_while_another_is_planned_is_not_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stall = Stall()
    later = fleet(replace(HOURLY, name="later"))
    apply = stall.bench.store.apply

    async def interrupted(changes: Sequence[Change]) -> Sequence[Answer]:
        monkeypatch.setattr(stall.bench.store, "apply", apply)
        stall.scheduler.adopt(later)
        return await apply(changes)

    monkeypatch.setattr(stall.bench.store, "apply", interrupted)
    stall.look()
    stall.look()

    assert stall.state("later").next_run_at == NOON
    assert stall.state("hourly").status is ScheduleStatus.DISABLED


def test_a_schedule_may_have_a_session_of_its_own() -> None:
    own = replace(
        HOURLY, name="own", max_overlap=9, session=SessionTerms(mode=SessionMode.PERSISTENT)
    )
    stall = Stall(fleet(replace(HOURLY, max_overlap=9), own))
    stall.look()
    stall.look(after=HOUR)
    stall.look(after=HOUR)

    sessions = {(job.schedule, job.session_id) for job in stall.jobs()}
    assert len({session for name, session in sessions if name == "own"}) == 1
    assert len({session for name, session in sessions if name == "hourly"}) == 2


def test_jitter_delays_the_firing_and_not_the_slot() -> None:
    stall = Stall(fleet(replace(HOURLY, jitter=timedelta(minutes=20))))
    stall.look()
    runs_at = stall.state().next_run_at
    assert runs_at is not None
    assert NOON < runs_at < NOON + timedelta(minutes=20)
    stall.look(after=HOUR)
    assert stall.slots() == []

    stall.look(after=runs_at - stall.clock.now())

    assert [slot.due_at for slot in stall.slots()] == [NOON]


def test_what_cannot_be_written_now_is_still_due_later(monkeypatch: pytest.MonkeyPatch) -> None:
    stall = Stall(fleet(HOURLY, agents=("coder", "writer")))
    stall.look()

    async def full(changes: list[Change]) -> None:
        raise StateError("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(stall.bench.store, "apply", full)
        with pytest.raises(StateError):
            stall.look(after=HOUR)
    stall.look()

    assert len(stall.slots("coder/hourly")) == len(stall.slots("writer/hourly")) == 1
    assert len(stall.jobs()) == 2


def test_thousands_of_schedules_fire_in_a_few_transactions() -> None:
    names = [f"agent{number}" for number in range(500)]
    stall = Stall(fleet(replace(HOURLY, rule=Interval(every=HOUR)), agents=names))
    stall.look()
    stall.look(after=HOUR)

    assert len(stall.jobs()) == 500
    assert len(stall.told) == 500


def test_clock_set_forward_makes_no_jobs_for_the_time_it_jumped_over_and_is_told() -> None:
    stall = Stall(fleet(replace(HOURLY, catch_up=CatchUp.ALL)))
    stopped = stall.make(since_boot=lambda: 100.0)
    stall.look(scheduler=stopped)

    stall.look(after=timedelta(days=30, minutes=30), scheduler=stopped)
    stall.look(after=timedelta(seconds=30), scheduler=stopped)

    assert stall.jobs() == []
    (slot,) = stall.slots()
    assert (slot.due_at, slot.outcome) == (NOON, SlotOutcome.SKIPPED)
    assert "the clock was set forward by 4w2d" in (slot.reason or "")
    assert any("the clock was set forward by 4w2d" in one for one in stall.told)
    assert stall.state().next_run_at == NOON + timedelta(days=30)


def test_clock_set_back_is_told() -> None:
    stall = Stall()
    stall.look()

    stall.look(after=-timedelta(hours=2))

    assert stall.told == ["the clock was set back by 2h"]


def test_slots_before_the_state_directory_was_made_are_not_made_up_for() -> None:
    stall = Stall(fleet(replace(HOURLY, catch_up=CatchUp.ALL)))
    stall.look()
    made = NOON + timedelta(days=30, minutes=-150)

    stall.look(after=timedelta(days=30, minutes=-30), scheduler=stall.make(known_since=made))
    stall.look(after=timedelta(seconds=2), scheduler=stall.make(known_since=made))

    outcomes = [(slot.due_at, slot.outcome.value) for slot in stall.slots()]
    assert outcomes == [(NOON, "skipped"), (NOON + timedelta(days=30, hours=-2), "job")]
    assert "first seen" in (stall.slots()[0].reason or "")
