"""What every state store must do with the inbox; see `state_contract` for how to run it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from nightherd.model.change import Change, Refused, Why
from nightherd.model.ids import JobId
from nightherd.model.inbox.changes import AnswerItem, AskPerson, ExpireItem, WithdrawItem
from nightherd.model.inbox.item import (
    Asked,
    InboxAnswer,
    InboxItem,
    InboxQuery,
    InboxTexts,
    ItemId,
    ItemKind,
    ItemStatus,
    OnExpiry,
    Verdict,
    item_id,
)
from nightherd.model.jobs.changes import CancelJob, SuspendExecution
from nightherd.model.jobs.job import Job, JobStatus, SuspendReason
from nightherd.model.journal.system import Suspension
from nightherd.testing.contracts.state import NOW, OpenState, checks_in, must_apply, must_refuse
from nightherd.testing.state_values import GRAZED, job_id, start, submit

HOUR = timedelta(hours=1)


def asked(
    name: str,
    *,
    kind: ItemKind = ItemKind.APPROVAL,
    job: JobId | None = None,
    approvers: Sequence[str] = (),
    quorum: int = 1,
    expires_at: datetime | None = None,
    on_expiry: OnExpiry = OnExpiry.REJECT,
) -> Asked:
    """An item called `name`."""
    item = InboxItem(
        id=item_id(name),
        kind=kind,
        status=ItemStatus.PENDING,
        created_at=NOW,
        subject=job or name,
        title=name,
        dedupe_key=name,
        hash=f"hash of {name}",
        epoch=1,
        job_id=job,
        agent="grazer" if job is not None else None,
        tool="Bash",
        tool_use_id=f"toolu_{name}",
        quorum=quorum,
        expires_at=expires_at,
        on_expiry=on_expiry,
    )
    texts = InboxTexts(
        item_id=item.id,
        body={"input": {"command": "a\x1f\u2028 🐄"}, "options": ["x"]},
        terms={"approvers": list(approvers), "remind_s": [60.0]},
    )
    return Asked(item=item, texts=texts)


def ask(*names: str, kind: ItemKind = ItemKind.RELOAD) -> AskPerson:
    """Put one item for each name into the inbox, about no job."""
    return AskPerson(asked=tuple(asked(name, kind=kind) for name in names))


def suspend(
    number: int,
    reason: SuspendReason = SuspendReason.APPROVAL,
    *,
    code: str = "approval",
    epoch: int = 1,
) -> SuspendExecution:
    """Job `number` waits."""
    return SuspendExecution(
        job_id=job_id(number),
        epoch=epoch,
        at=NOW,
        suspension=Suspension(reason=reason, code=code, message=f"waits: {code}"),
        last_seq=5,
        total=GRAZED,
        own=GRAZED,
    )


async def wait_for(state: OpenState, number: int, *items: Asked) -> None:
    """Let job `number` run, ask, and wait."""
    ask = AskPerson(asked=items, job_id=job_id(number), epoch=1)
    await must_apply(state, submit(number), start(number), ask, suspend(number))


def said(
    name: str, verdict: Verdict, *, by: str = "ada", at: datetime = NOW, text: str | None = None
) -> AnswerItem:
    """Answer the item called `name`."""
    return AnswerItem(item_id=item_id(name), verdict=verdict, by=by, via="test", at=at, text=text)


def item_of(state: OpenState, name: str) -> InboxItem:
    """The item called `name`."""
    found = state.reader.find_item(item_id(name))
    assert found is not None
    return found


def job_of(state: OpenState, number: int) -> Job:
    """Job `number`."""
    found = state.reader.find_job(job_id(number))
    assert found is not None
    return found


def titles(state: OpenState, query: InboxQuery | None = None) -> list[str]:
    """What a list shows."""
    return [one.title for one in state.reader.list_items(query or InboxQuery())]


def kinds_of(state: OpenState, number: int) -> list[tuple[ItemKind, ItemStatus]]:
    """The items about job `number`."""
    return [(one.kind, one.status) for one in state.reader.items_of_job(job_id(number))]


async def refused(state: OpenState, change: Change) -> Refused:
    """Apply the change, which must be refused and change nothing."""
    before = state.reader.list_items(InboxQuery(limit=1_000))
    answer = await must_refuse(state, change)
    assert state.reader.list_items(InboxQuery(limit=1_000)) == before
    return answer


async def check_item_reads_back_whole(state: OpenState) -> None:
    one = asked("a", job=job_id(1), approvers=("ada",), quorum=2, expires_at=NOW + HOUR)
    await wait_for(state, 1, one)

    assert state.reader.find_item(one.item.id) == replace(one.item, number=1)
    assert state.reader.find_item_texts(one.item.id) == one.texts
    assert tuple(state.reader.list_answers(one.item.id)) == ()
    assert [item.id for item in state.reader.items_of_job(job_id(1))] == [one.item.id]
    assert state.reader.find_item(ItemId("ask-000000000000")) is None
    assert state.reader.find_item_texts(ItemId("ask-000000000000")) is None


async def check_asking_twice_is_asking_once(state: OpenState) -> None:
    first = ask("a", "b")
    await must_apply(state, first, ask("b", "c"))
    await must_apply(state, said("b", Verdict.REJECT), first)

    assert [(one.title, one.number) for one in state.reader.list_items(InboxQuery())] == [
        ("c", 3),
        ("a", 1),
    ]
    assert item_of(state, "b").status is ItemStatus.REJECTED, "what is decided stays decided"


async def check_only_the_execution_that_owns_the_job_asks_and_withdraws(state: OpenState) -> None:
    await wait_for(state, 1, asked("a", job=job_id(1)))
    ask = AskPerson(asked=(asked("late", job=job_id(1)),), job_id=job_id(1), epoch=0)
    withdraw = WithdrawItem(item_id=item_id("a"), at=NOW, job_id=job_id(1), epoch=0)

    assert (await refused(state, ask)).why is Why.FENCED
    assert (await refused(state, withdraw)).why is Why.FENCED
    assert (await refused(state, replace(ask, epoch=1))).why is Why.STATUS, "it waits already"


async def check_deciding_answer_continues_the_job(state: OpenState) -> None:
    await wait_for(state, 1, asked("a", job=job_id(1)))
    answer = replace(said("a", Verdict.APPROVE, text="fine"), input={"command": "b"})

    applied = await must_apply(state, answer)

    assert applied.job == job_of(state, 1)
    assert job_of(state, 1).status is JobStatus.PENDING
    item = item_of(state, "a")
    assert (item.status, item.verdict) == (ItemStatus.APPROVED, Verdict.APPROVE)
    assert (item.decided_by, item.decided_via, item.decided_at) == ("ada", "test", NOW)
    texts = state.reader.find_item_texts(item.id)
    assert texts is not None
    assert (texts.reply, texts.input) == ("fine", {"command": "b"})
    assert list(state.reader.list_answers(item.id)) == [
        InboxAnswer(
            id=f"{item.id}.1",
            item_id=item.id,
            at=NOW,
            by="ada",
            via="test",
            verdict=Verdict.APPROVE,
            text="fine",
        )
    ]


async def check_job_waits_for_everything_it_asked(state: OpenState) -> None:
    question = asked("b", kind=ItemKind.QUESTION, job=job_id(1))
    await wait_for(state, 1, asked("a", job=job_id(1)), question)

    await must_apply(state, said("a", Verdict.REJECT))
    assert job_of(state, 1).status is JobStatus.SUSPENDED
    await must_apply(state, said("b", Verdict.REPLY, text="staging"))

    assert job_of(state, 1).status is JobStatus.PENDING
    assert item_of(state, "b").status is ItemStatus.ANSWERED


async def check_answer_before_the_job_is_suspended_is_not_lost(state: OpenState) -> None:
    ask_first = AskPerson(asked=(asked("a", job=job_id(1)),), job_id=job_id(1), epoch=1)
    await must_apply(state, submit(1), start(1), ask_first, said("a", Verdict.APPROVE))

    await must_apply(state, suspend(1))

    assert job_of(state, 1).status is JobStatus.PENDING, "nobody would wake it up"


async def check_answer_does_not_lift_another_wait(state: OpenState) -> None:
    ask = AskPerson(asked=(asked("a", job=job_id(1)),), job_id=job_id(1), epoch=1)
    limit = suspend(1, SuspendReason.LIMIT, code="spend_exceeded")
    await must_apply(state, submit(1), start(1), ask, limit)

    await must_apply(state, said("a", Verdict.APPROVE))

    assert job_of(state, 1).status is JobStatus.SUSPENDED, "its limit has not been raised"
    assert titles(state) == ["waits: spend_exceeded"]


async def check_second_decision_is_refused_with_who_decided(state: OpenState) -> None:
    await wait_for(state, 1, asked("a", job=job_id(1)))
    await must_apply(state, said("a", Verdict.APPROVE))

    for late in (Verdict.APPROVE, Verdict.REJECT, Verdict.COMMENT):
        answer = await refused(state, said("a", late, by="bo"))
        assert answer.why is Why.DECIDED
        assert "was approved by ada (test)" in answer.message
    assert (await refused(state, ExpireItem(item_id=item_id("a"), at=NOW))).why is Why.DECIDED
    assert (await refused(state, WithdrawItem(item_id=item_id("a"), at=NOW))).why is Why.DECIDED
    assert len(state.reader.list_answers(item_id("a"))) == 1


async def check_quorum_is_of_different_people(state: OpenState) -> None:
    await wait_for(state, 1, asked("a", job=job_id(1), quorum=2))
    await must_apply(state, said("a", Verdict.COMMENT), said("a", Verdict.APPROVE))

    assert (await refused(state, said("a", Verdict.APPROVE))).why is Why.DUPLICATE
    changed = replace(said("a", Verdict.APPROVE, by="bo"), input={"command": "b"})
    assert (await refused(state, changed)).why is Why.STATUS
    assert job_of(state, 1).status is JobStatus.SUSPENDED
    await must_apply(state, said("a", Verdict.APPROVE, by="bo"))

    assert item_of(state, "a").decided_by == "bo"
    assert [one.number for one in state.reader.list_answers(item_id("a"))] == [1, 2, 3]
    assert job_of(state, 1).status is JobStatus.PENDING


async def check_answers_that_do_not_count(state: OpenState) -> None:
    one = asked("a", job=job_id(1), approvers=("bo",), expires_at=NOW + HOUR)
    await wait_for(state, 1, one)
    right = said("a", Verdict.APPROVE, by="bo")

    assert (await refused(state, replace(right, by="ada"))).why is Why.NOT_ALLOWED
    assert (await refused(state, replace(right, verdict=Verdict.REPLY))).why is Why.STATUS
    assert (await refused(state, replace(right, seen_hash="other"))).why is Why.STALE
    assert (await refused(state, replace(right, at=NOW + HOUR))).why is Why.DECIDED
    missing = replace(right, item_id=ItemId("ask-000000000000"))
    assert (await refused(state, missing)).why is Why.MISSING
    await must_apply(state, replace(right, seen_hash=one.item.hash))


async def check_item_expires_once_and_not_early(state: OpenState) -> None:
    await wait_for(state, 1, asked("a", job=job_id(1), expires_at=NOW + HOUR))
    await wait_for(state, 2, asked("b", job=job_id(2)))
    late = ExpireItem(item_id=item_id("a"), at=NOW + HOUR)

    assert (await refused(state, replace(late, at=NOW))).why is Why.TOO_EARLY
    assert (await refused(state, replace(late, item_id=item_id("b")))).why is Why.TOO_EARLY
    assert list(state.reader.items_to_expire(NOW, 9)) == []
    assert [one.title for one in state.reader.items_to_expire(NOW + HOUR, 9)] == ["a"]
    await must_apply(state, late)

    assert item_of(state, "a").status is ItemStatus.EXPIRED
    assert job_of(state, 1).status is JobStatus.PENDING, "its call is refused, and it continues"
    assert (await refused(state, late)).why is Why.DECIDED
    assert list(state.reader.items_to_expire(NOW + HOUR, 9)) == []


async def check_expiry_fails_the_job_where_asked(state: OpenState) -> None:
    one = asked("a", job=job_id(1), expires_at=NOW + HOUR, on_expiry=OnExpiry.FAIL)
    await wait_for(state, 1, one, asked("b", job=job_id(1)))

    await must_apply(state, ExpireItem(item_id=item_id("a"), at=NOW + HOUR))

    assert job_of(state, 1).status is JobStatus.FAILED
    assert item_of(state, "b").status is ItemStatus.SUPERSEDED, "nobody needs to know any more"
    assert kinds_of(state, 1)[-1] == (ItemKind.FAILURE, ItemStatus.PENDING)


async def check_cancelled_job_closes_its_items(state: OpenState) -> None:
    await wait_for(state, 1, asked("a", job=job_id(1)))

    await must_apply(state, CancelJob(job_id=job_id(1), at=NOW))

    assert item_of(state, "a").status is ItemStatus.CANCELLED
    assert (await refused(state, said("a", Verdict.APPROVE))).why is Why.DECIDED
    assert job_of(state, 1).status is JobStatus.CANCELLED


async def check_cancel_before_the_suspension_leaves_nothing_open(state: OpenState) -> None:
    ask = AskPerson(asked=(asked("a", job=job_id(1)),), job_id=job_id(1), epoch=1)
    cancel = CancelJob(job_id=job_id(1), at=NOW)
    await must_apply(state, submit(1), start(1), cancel, ask, suspend(1))

    assert job_of(state, 1).status is JobStatus.CANCELLED
    assert item_of(state, "a").status is ItemStatus.CANCELLED


async def check_lists_of_items_are_pages(state: OpenState) -> None:
    for number in range(1, 7):
        kind = ItemKind.QUESTION if number % 2 else ItemKind.APPROVAL
        await wait_for(state, number, asked(f"i{number}", kind=kind, job=job_id(number)))
    await must_apply(state, said("i2", Verdict.APPROVE), said("i4", Verdict.REJECT))

    assert titles(state, InboxQuery(limit=2)) == ["i6", "i5"]
    assert titles(state, InboxQuery(limit=2, before=5)) == ["i3", "i1"]
    assert titles(state, InboxQuery(kind=ItemKind.APPROVAL)) == ["i6"]
    assert titles(state, InboxQuery(agent="nobody")) == []
    assert titles(state, InboxQuery(is_pending=False)) == ["i4", "i2"]
    assert state.reader.count_pending_items() == {ItemKind.QUESTION: 3, ItemKind.APPROVAL: 1}
    oldest = state.reader.oldest_pending_item()
    assert oldest is not None
    assert oldest.title == "i1"
    prefix = item_id("i3")[:8]
    assert item_id("i3") in state.reader.item_ids(prefix, 9)
    assert all(one.startswith(prefix) for one in state.reader.item_ids(prefix, 9))


INBOX_CHECKS = checks_in(globals())
