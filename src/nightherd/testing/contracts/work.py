"""What every state store must do for issues that are work; see `state_contract` for how to run checks."""

from __future__ import annotations

from msgspec.structs import replace

from nightherd.model.change import FireSlot, RegisterWorker, Why
from nightherd.model.schedules.schedule import SlotOutcome
from nightherd.model.work.changes import (
    EndWork,
    LoseWork,
    NoteWork,
    ReleaseWork,
    SetSourceState,
    SettleWork,
)
from nightherd.model.work.item import WorkItem, WorkOutcome, WorkStatus, work_id
from nightherd.model.work.source import SourceState, SourceStatus
from nightherd.testing.contracts.state import OpenState, checks_in, must_apply, must_refuse
from nightherd.testing.state_values import fire, job_id, settle, start, worker
from nightherd.testing.work_values import CLAIM, SOURCE, at, hold, reserve, start_work, step

SEVEN = work_id(SOURCE.id, 7)
END = EndWork(id=SEVEN, claim=CLAIM, at=at(300), outcome=WorkOutcome.SUCCESS)
DONE = SettleWork(id=SEVEN, claim=CLAIM, at=at(310), status=WorkStatus.DONE, not_before=at(370))


def found(state: OpenState) -> WorkItem:
    """The issue as it is now."""
    item = state.reader.find_work_item(SEVEN)
    assert item is not None
    return item


def fired(number: int, *, minute: int = 1) -> FireSlot:
    """A slot whose job works on the issue."""
    return replace(fire(number, minute=minute), work=start_work())


async def ended(state: OpenState) -> None:
    """The issue was taken, and its job has ended."""
    register = RegisterWorker(worker=worker("worker-00000001"))
    await must_apply(state, register, reserve(), hold(), fired(1), start(1), settle(1))


async def check_reserved_issue_reads_back_whole(state: OpenState) -> None:
    await must_apply(state, reserve())

    assert found(state) == reserve().item
    assert list(state.reader.open_work_items()) == [reserve().item]
    assert list(state.reader.list_work_items(5)) == [reserve().item]


async def check_issue_is_taken_once(state: OpenState) -> None:
    refused = await must_refuse(state, reserve(), reserve(claim="claim-2"))

    assert refused.why is Why.DUPLICATE
    assert found(state).claim == CLAIM


async def check_long_title_is_cut(state: OpenState) -> None:
    await must_apply(state, reserve(), replace(hold(), title="x" * 9_000))

    assert len(found(state).title) == 200


async def check_slot_and_issue_and_job_are_recorded_together(state: OpenState) -> None:
    await must_apply(state, reserve(), hold(), fired(1))

    item = found(state)
    assert (item.status, item.job_id, item.attempts) == (WorkStatus.WORKING, job_id(1), 1)
    assert state.reader.work_item_of_job(job_id(1)) == item


async def check_slot_without_held_issue_makes_no_job(state: OpenState) -> None:
    refused = await must_refuse(state, reserve(), fired(1))

    assert refused.why is Why.NO_WORK
    assert state.reader.find_job(job_id(1)) is None
    assert not state.reader.list_slots("grazer/nightly", 5)


async def check_issue_of_another_claim_makes_no_job(state: OpenState) -> None:
    other = replace(fired(1), work=start_work(claim="claim-0"))
    refused = await must_refuse(state, reserve(), hold(), other)

    assert refused.why is Why.NO_WORK
    assert found(state).status is WorkStatus.HELD


async def check_slot_that_needs_work_is_left_open(state: OpenState) -> None:
    refused = await must_refuse(state, replace(fire(1, minute=1), needs_work=True))

    assert refused.why is Why.NO_WORK
    assert not state.reader.list_slots("grazer/nightly", 5)


async def check_slot_that_would_overlap_needs_no_work(state: OpenState) -> None:
    await must_apply(state, fire(1, minute=1))
    second = replace(fire(2, minute=2), needs_work=True, max_overlap=1)
    applied = await must_apply(state, second)

    assert applied.job is None
    (slot, _) = state.reader.list_slots("grazer/nightly", 5)
    assert slot.outcome is SlotOutcome.SKIPPED
    assert slot.reason is not None
    assert "overlap" in slot.reason


async def check_claim_does_not_end_before_its_job(state: OpenState) -> None:
    refused = await must_refuse(state, reserve(), hold(), fired(1), END)

    assert refused.why is Why.SESSION_BUSY
    assert found(state).status is WorkStatus.WORKING


async def check_issue_that_has_a_job_was_not_unused(state: OpenState) -> None:
    await ended(state)
    refused = await must_refuse(state, replace(END, outcome=WorkOutcome.UNUSED))

    assert refused.why is Why.STATUS
    assert found(state).status is WorkStatus.WORKING


async def check_done_issue_may_be_taken_again_later(state: OpenState) -> None:
    await ended(state)
    await must_apply(state, END, DONE)

    early = await must_refuse(state, reserve(claim="claim-2", seconds=350))
    assert early.why is Why.TOO_EARLY
    await must_apply(state, reserve(claim="claim-2", seconds=400))
    item = found(state)
    assert (item.status, item.attempts, item.job_id) == (WorkStatus.RESERVED, 0, None)


async def check_released_issue_keeps_its_attempts(state: OpenState) -> None:
    await ended(state)
    failed = replace(END, outcome=WorkOutcome.FAILURE)
    await must_apply(state, failed, replace(DONE, status=WorkStatus.RELEASED))
    await must_apply(state, reserve(claim="claim-2", seconds=400))

    assert found(state).attempts == 1


async def check_lost_issue_waits(state: OpenState) -> None:
    lost = LoseWork(
        id=SEVEN, claim=CLAIM, at=at(2), not_before=at(90), reason="another fleet has it"
    )
    await must_apply(state, reserve(), lost)

    assert found(state).last_error == "another fleet has it"
    assert not state.reader.open_work_items()
    assert (await must_refuse(state, reserve(seconds=60))).why is Why.TOO_EARLY


async def check_one_process_writes_about_an_issue(state: OpenState) -> None:
    refused = await must_refuse(state, reserve(), step("one", 1), step("two", 30))

    assert refused.why is Why.SESSION_BUSY
    note = NoteWork(id=SEVEN, claim=CLAIM, by="two", at=at(40), is_labelled=True)
    assert (await must_refuse(state, note)).why is Why.STALE
    await must_apply(state, step("two", 61), replace(note, at=at(62)))
    assert found(state).is_labelled
    assert found(state).step_by == "two"


async def check_failed_step_is_counted_until_one_succeeds(state: OpenState) -> None:
    note = NoteWork(id=SEVEN, claim=CLAIM, by="one", at=at(2), error="503", due_at=at(9))
    await must_apply(state, reserve(), note, note)
    assert (found(state).tries, found(state).last_error, found(state).due_at) == (2, "503", at(9))

    await must_apply(state, replace(note, error=None, due_at=None, comment_id="9"))
    assert (found(state).tries, found(state).last_error, found(state).due_at) == (0, None, None)
    assert found(state).comment_id == "9"


async def check_next_status_begins_without_the_last_ones_steps(state: OpenState) -> None:
    note = NoteWork(id=SEVEN, claim=CLAIM, by="one", at=at(2), error="503", due_at=at(9))
    await must_apply(state, reserve(), step("one", 1), note, hold())

    item = found(state)
    assert (item.tries, item.last_error, item.due_at, item.step_by) == (0, None, None, None)


async def check_person_releases_a_claim_without_open_job(state: OpenState) -> None:
    release = ReleaseWork(id=SEVEN, at=at(500))
    assert (await must_refuse(state, release)).why is Why.MISSING
    busy = await must_refuse(state, reserve(), hold(), fired(1), release)
    assert busy.why is Why.SESSION_BUSY
    assert busy.job is not None
    assert busy.job.id == job_id(1)


async def check_person_gives_a_failed_issue_its_attempts_back(state: OpenState) -> None:
    await ended(state)
    failed = replace(END, outcome=WorkOutcome.FAILURE)
    await must_apply(state, failed, replace(DONE, status=WorkStatus.FAILED))
    await must_apply(state, ReleaseWork(id=SEVEN, at=at(320)))

    item = found(state)
    assert (item.status, item.attempts, item.not_before) == (WorkStatus.FAILED, 0, None)


async def check_held_issue_that_a_person_releases_is_settled(state: OpenState) -> None:
    await must_apply(state, reserve(), hold(), ReleaseWork(id=SEVEN, at=at(500)))

    item = found(state)
    assert (item.status, item.outcome) == (WorkStatus.SETTLING, WorkOutcome.RELEASED)


async def check_old_claim_writes_nothing(state: OpenState) -> None:
    await ended(state)
    await must_apply(state, END, DONE, reserve(claim="claim-2", seconds=400))

    for change in (hold(), END, DONE, step("one", 500)):
        assert (await must_refuse(state, change)).why is Why.STALE
    assert found(state).status is WorkStatus.RESERVED


async def check_source_is_kept_as_it_was_seen_last(state: OpenState) -> None:
    seen = SourceState(
        id=SOURCE.id,
        status=SourceStatus.LIMITED,
        checked_at=at(1),
        blocked_until=at(60),
        error="rate limited",
        failures=2,
    )
    await must_apply(state, SetSourceState(state=seen))
    assert list(state.reader.list_work_sources()) == [seen]

    fine = SourceState(id=SOURCE.id, status=SourceStatus.OK, checked_at=at(61), open_issues=3)
    await must_apply(state, SetSourceState(state=fine))
    assert list(state.reader.list_work_sources()) == [fine]


WORK_CHECKS = checks_in(globals())
"""Every check of this module."""
