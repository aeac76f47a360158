"""What happens becomes notifications, once each, for the targets that want it; and they are delivered in order."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from engine.notifications.outbox import (
    ALL_EVENTS,
    MAIL,
    PHONE,
    URL,
    Outbox,
    approval,
    fleet_of,
    outbox,
    with_links,
)
from nightherd.engine.notifications.notifier import Notifier
from nightherd.model.agents.agent import Fleet
from nightherd.model.hooks import ChatMessage, Hook, HookPoint
from nightherd.model.ids import ExecutionId
from nightherd.model.inbox.changes import AnswerItem
from nightherd.model.inbox.item import Verdict, call_key, item_id
from nightherd.model.inbox.token import secret_hash
from nightherd.model.jobs.changes import SuspendExecution
from nightherd.model.jobs.job import ExitReason, SuspendReason
from nightherd.model.jobs.outcome import Outcome
from nightherd.model.journal.event import ToolUseEvent, describe
from nightherd.model.journal.system import Reviewed, Suspension
from nightherd.model.notifications.notification import NotificationStatus
from nightherd.model.notifications.routing import with_bots
from nightherd.model.notifications.target import NotifyEvent
from nightherd.model.secrets import find_secrets, secrets_of
from nightherd.model.usage import Totals
from nightherd.ports import Outgoing, SendResult
from nightherd.testing.determinism import FakeClock
from nightherd.testing.recording_sender import RecordingSender
from nightherd.testing.state_values import BEGINNING, job_id, lose, settle, start, submit

FAILED = Outcome(exit_reason=ExitReason.ERROR, error="the model is gone", error_code="broken")

Play = Callable[[Outbox], Awaitable[None]]


def played(
    folder: Path, play: Play, *targets: object, sender: RecordingSender | None = None
) -> RecordingSender:
    """Play on a new outbox with a fleet of these targets; what was sent."""
    sender = sender or RecordingSender()

    async def main() -> None:
        async with outbox(folder, fleet_of(*(targets or (PHONE,))), sender) as box:  # type: ignore[arg-type]
            await play(box)

    anyio.run(main)
    return sender


def test_what_happened_before_the_first_start_is_not_told(tmp_path: Path) -> None:
    async def play(box: Outbox) -> None:
        await box.apply(submit(1), start(1), settle(1))
        await box.round()
        assert box.rows() == []
        await box.apply(submit(2), start(2), settle(2, outcome=FAILED))
        await box.round()

    sent = played(tmp_path, play)

    assert sent.titles == ["grazer failed: the model is gone"]


def test_the_message_of_a_jobs_end_names_what_it_was_kept_from(tmp_path: Path) -> None:
    async def play(box: Outbox) -> None:
        await box.round()
        await box.apply(submit(1), start(1))
        journal = box.context.journals.open(job_id(1), epoch=1, execution=ExecutionId("exec-1"))
        journal.append(ToolUseEvent(tool_name="Bash", tool_use_id="t1", input={"command": "push"}))
        rejected = Reviewed(tool_use_id="t1", item="ask-1", status="rejected")
        journal.append(describe(rejected, "rejected by ada: not tonight"))
        journal.close()
        await box.apply(settle(1))
        await box.round()

    (message,) = (one.message for one in played(tmp_path, play).outgoing)

    assert message.title.startswith("grazer completed")
    assert "Bash: rejected by ada: not tonight" in message.text


def test_each_event_is_told_once_however_often_it_is_read(tmp_path: Path) -> None:
    async def play(box: Outbox) -> None:
        await box.round()
        await box.apply(submit(1), start(1), settle(1))
        await box.round()
        await box.round()
        again = Notifier(box.fleet, box.context)
        await again.look()
        assert [(one.event, one.status) for one in box.rows()] == [
            (NotifyEvent.COMPLETED, NotificationStatus.SENT)
        ]

    sent = played(tmp_path, play)

    assert sent.titles == ["grazer completed: Grazed."]


def test_a_target_is_told_only_what_it_wants(tmp_path: Path) -> None:
    async def play(box: Outbox) -> None:
        await box.round()
        await box.apply(submit(1), start(1), settle(1))
        await box.apply(submit(2), start(2), lose(2, epoch=1))
        await box.apply(submit(3), start(3), settle(3, outcome=FAILED))
        await box.round()
        told = {(one.target, one.event.value) for one in box.rows()}
        assert told == {("phone", "lost"), ("mail", "failed")}

    played(tmp_path, play, replace(PHONE, events=frozenset({NotifyEvent.LOST})), MAIL)


def test_an_approval_says_what_why_and_how_to_answer(tmp_path: Path) -> None:
    async def play(box: Outbox) -> None:
        await box.round()
        await box.apply(submit(1), start(1), approval(1))
        await box.round()

    (message,) = (one.message for one in played(tmp_path, play).outgoing)

    item = item_id(call_key(job_id(1), "t1"))
    assert message.title == "grazer needs approval: Bash: git push"
    assert "Bash: git push" in message.text
    assert f"nightherd inbox approve {item}" in message.text
    assert f"nightherd inbox reject {item}" in message.text
    for fact in ("Why:", "Cost so far: $0.00", "On yes:", "On no:", "Without an answer:"):
        assert fact in message.text


def test_a_link_is_recorded_before_it_is_sent_and_only_its_hash_is_kept(tmp_path: Path) -> None:
    sender, secrets = RecordingSender(), list[bytes]()

    async def main() -> None:
        async with outbox(tmp_path, with_links(fleet_of(PHONE)), sender) as box:
            await box.round()
            await box.apply(submit(1), start(1), approval(1))
            await box.round()
            (message,) = (one.message for one in sender.outgoing)
            found = re.search(
                r"Answer: https://fleet.example/answer/([a-z0-9]{52})\n", message.text
            )
            assert found is not None, message.text
            link = box.reader.find_link(secret_hash(found[1]))
            texts = box.reader.find_notification_texts(box.rows()[0].id)

        assert link is not None
        assert (link.approver, link.item_id) == ("phone", item_id(call_key(job_id(1), "t1")))
        assert link.expires_at - link.created_at == timedelta(days=7)
        assert texts is not None
        assert found[1] not in str(texts.fields)
        secrets.append(found[1].encode())

    anyio.run(main)

    (secret,) = secrets
    files = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert files
    assert not any(secret in file for file in files)


@pytest.mark.parametrize(
    ("fleet", "approvers", "has_link"),
    [
        (fleet_of(PHONE), [], False),
        (with_links(fleet_of(PHONE)), ["alice"], False),
        (with_links(fleet_of(replace(PHONE, approver="alice"))), ["alice"], True),
    ],
    ids=["no public_url", "not an approver", "an approver"],
)
def test_a_message_without_a_link_shows_the_command(
    tmp_path: Path, fleet: Fleet, approvers: list[str], has_link: bool
) -> None:
    sender = RecordingSender()

    async def main() -> None:
        async with outbox(tmp_path, fleet, sender) as box:
            await box.round()
            await box.apply(submit(1), start(1), approval(1, approvers=approvers))
            await box.round()

    anyio.run(main)

    (message,) = (one.message for one in sender.outgoing)
    assert ("/answer/" in message.text) is has_link
    assert "nightherd inbox approve ask-" in message.text


def test_reminders_come_in_time_until_somebody_answers(tmp_path: Path) -> None:
    async def play(box: Outbox) -> None:
        await box.round()
        await box.apply(submit(1), start(1), approval(1, remind_s=(3_600, 7_200)))
        await box.round()
        await box.round()
        box.clock.advance(timedelta(hours=1, minutes=1))
        await box.round()
        item = item_id(call_key(job_id(1), "t1"))
        answer = AnswerItem(
            item_id=item, verdict=Verdict.APPROVE, by="ada", via="test", at=box.clock.now()
        )
        await box.apply(answer)
        box.clock.advance(timedelta(hours=1))
        await box.round()
        assert box.rows()[-1].status is NotificationStatus.DROPPED

    sent = played(tmp_path, play)

    assert sent.titles == [
        "grazer needs approval: Bash: git push",
        "Reminder: grazer needs approval: Bash: git push",
    ]


@pytest.mark.parametrize("events", [{NotifyEvent.LIMIT}, {NotifyEvent.SUSPENDED}, ALL_EVENTS])
def test_a_limit_is_told_once_to_who_wants_limits_or_suspended_jobs(
    tmp_path: Path, events: set[NotifyEvent]
) -> None:
    stopped = Suspension(reason=SuspendReason.LIMIT, code="spend", message="spend 2 of 2")

    async def play(box: Outbox) -> None:
        await box.round()
        suspend = SuspendExecution(
            job_id=job_id(1),
            epoch=1,
            at=BEGINNING,
            suspension=stopped,
            last_seq=3,
            total=Totals(),
            own=Totals(),
        )
        await box.apply(submit(1), start(1), suspend)
        await box.round()

    sent = played(tmp_path, play, replace(PHONE, events=frozenset(events)))

    assert sent.titles == ["grazer met a limit: spend 2 of 2"]
    assert "nightherd inbox raise" in sent.outgoing[0].message.text


def test_a_target_that_fails_holds_its_own_messages_only(tmp_path: Path) -> None:
    def answer(outgoing: Outgoing) -> SendResult:
        return SendResult(error="the server answered 500" if outgoing.url == URL else None)

    async def play(box: Outbox) -> None:
        await box.round()
        for number in (1, 2):
            await box.apply(submit(number), start(number), settle(number, outcome=FAILED))
        await box.round()
        states = {one.target: one.status for one in box.rows()}
        assert states == {"phone": NotificationStatus.PENDING, "mail": NotificationStatus.SENT}
        assert [one.attempts for one in box.rows() if one.target == "phone"] == [1, 0]
        (failing,) = (one for one in box.reader.list_notify_targets() if one.id == "phone")
        assert failing.last_error == "the server answered 500"

    sent = played(tmp_path, play, PHONE, MAIL, sender=RecordingSender(answer))

    assert len(sent.outgoing) == 3


def test_an_hour_of_500_delays_messages_and_loses_none(tmp_path: Path) -> None:
    is_down = True

    def answer(outgoing: Outgoing) -> SendResult:
        return SendResult(error="the server answered 500" if is_down else None)

    async def play(box: Outbox) -> None:
        nonlocal is_down
        await box.round()
        for number in range(1, 6):
            await box.apply(submit(number), start(number), settle(number, outcome=FAILED))
        for _ in range(60):
            await box.round()
            box.clock.advance(timedelta(minutes=1))
        attempts = box.rows()[0].attempts
        assert 5 < attempts < 20, "often enough, and not all the time"
        is_down = False
        box.clock.advance(timedelta(minutes=15))
        await box.round()
        assert {one.status for one in box.rows()} == {NotificationStatus.SENT}
        assert [one.job_id for one in box.rows()] == [job_id(number) for number in range(1, 6)]
        sent_at = [one.sent_at for one in box.rows()]
        assert sent_at == sorted(one for one in sent_at if one is not None)

    played(tmp_path, play, sender=RecordingSender(answer))


def test_a_message_is_given_up_after_its_time_and_that_is_on_record(tmp_path: Path) -> None:
    patient = replace(PHONE, give_up_after=timedelta(hours=1))

    async def play(box: Outbox) -> None:
        await box.round()
        await box.apply(submit(1), start(1), settle(1))
        for _ in range(10):
            await box.round()
            box.clock.advance(timedelta(minutes=20))
        (one,) = box.rows()
        assert (one.status, one.last_error) == (NotificationStatus.FAILED, "it is down")

    played(
        tmp_path, play, patient, sender=RecordingSender(lambda _: SendResult(error="it is down"))
    )


def test_a_sender_that_raises_is_a_failed_attempt(tmp_path: Path) -> None:
    def answer(outgoing: Outgoing) -> SendResult:
        raise RuntimeError(f"cannot reach {outgoing.url}")

    async def play(box: Outbox) -> None:
        await box.round()
        await box.apply(submit(1), start(1), settle(1))
        await box.round()
        assert box.rows()[0].last_error == "sending failed: RuntimeError"

    played(tmp_path, play, sender=RecordingSender(answer))


def test_a_variable_that_is_not_set_is_named_and_tried_again(tmp_path: Path) -> None:
    async def play(box: Outbox) -> None:
        await box.round()
        await box.apply(submit(1), start(1), settle(1, outcome=FAILED))
        await box.round()
        assert box.rows()[0].last_error == "the variable ELSEWHERE is not set"
        assert box.rows()[0].status is NotificationStatus.PENDING

    played(tmp_path, play, replace(MAIL, url_env="ELSEWHERE"))


def test_secrets_are_in_no_row_and_no_message(tmp_path: Path) -> None:
    environment = {
        "API_TOKEN": "sk-very-secret-value",
        "MAIL_URL": "json://u:pass-word-1@m.example",
    }
    leaking = Outcome(exit_reason=ExitReason.ERROR, error="401 for sk-very-secret-value")

    async def play(box: Outbox) -> None:
        secrets = secrets_of(box.fleet, environment).joined(find_secrets(environment))
        box.notifier.adopt(box.fleet, environment, secrets)
        box.context = replace(box.context, secrets=secrets, environment=environment)
        await box.round()
        await box.apply(submit(1), start(1), settle(1, outcome=leaking))
        await box.round()
        await box.close()

    sent = played(
        tmp_path,
        play,
        PHONE,
        MAIL,
        sender=RecordingSender(lambda one: SendResult(error=f"refused by {one.url}")),
    )

    assert "[secret:API_TOKEN]" in sent.outgoing[0].message.text
    assert "sk-very-secret-value" not in sent.outgoing[0].message.title
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    kept = kept.replace(
        b"401 for sk-very-secret-value", b""
    )  # the job's own row is not our subject
    assert b"a-secret-path" not in kept
    assert b"pass-word-1" not in kept


def test_two_processes_queue_and_send_each_message_once(tmp_path: Path) -> None:
    sender, clock = RecordingSender(), FakeClock(BEGINNING + timedelta(hours=1))

    async def main() -> None:
        async with (
            outbox(tmp_path, fleet_of(PHONE), sender, clock=clock) as one,
            outbox(tmp_path, fleet_of(PHONE), sender, clock=clock) as two,
        ):
            two.context = replace(two.context, by="worker-2")
            two.notifier = Notifier(two.fleet, two.context)
            await one.round()
            await two.round()
            for number in range(1, 21):
                await one.apply(submit(number), start(number), settle(number))
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(one.round)
                    tasks.start_soon(two.round)
            await one.round()
            assert [row.status for row in one.rows()] == [NotificationStatus.SENT] * 20

    anyio.run(main)

    assert len(sender.outgoing) == 20


def test_a_target_that_is_added_later_hears_no_old_news(tmp_path: Path) -> None:
    async def play(box: Outbox) -> None:
        await box.round()
        await box.apply(submit(1), start(1), settle(1, outcome=FAILED))
        box.adopt(fleet_of(PHONE, MAIL))
        await box.apply(submit(2), start(2), settle(2, outcome=FAILED))
        await box.round()
        told = [(one.target, one.job_id) for one in box.rows()]
        assert told == [("phone", job_id(1)), ("phone", job_id(2))]
        await box.apply(submit(3), start(3), settle(3, outcome=FAILED))
        await box.round()
        assert {one.target for one in box.rows() if one.job_id == job_id(3)} == {"phone", "mail"}

    played(tmp_path, play)


def test_a_process_that_runs_some_agents_leaves_the_others_to_those_who_know_them(
    tmp_path: Path,
) -> None:
    clock, sender = FakeClock(BEGINNING + timedelta(hours=1)), RecordingSender()
    whole = fleet_of(PHONE)
    own = replace(whole.agents["grazer"], name="other", notify=(replace(MAIL, id="other/mail"),))
    whole = replace(whole, agents={**whole.agents, "other": own})

    async def main() -> None:
        async with (
            outbox(tmp_path, fleet_of(PHONE), sender, clock=clock, by="part") as part,
            outbox(tmp_path, whole, sender, clock=clock, by="whole") as box,
        ):
            part.context = replace(part.context, is_whole=False)
            part.notifier = Notifier(part.fleet, part.context)
            await box.round()
            await part.round()
            await box.apply(submit(1), start(1), settle(1, outcome=FAILED))
            await box.apply(submit(2, agent="other"), start(2), settle(2, outcome=FAILED))
            await part.round()
            assert [(one.target, one.agent) for one in box.rows()] == [("phone", "grazer")]
            await box.round()
            told = sorted((one.target, str(one.agent)) for one in box.rows())
            assert told == [("other/mail", "other"), ("phone", "grazer"), ("phone", "other")]

    anyio.run(main)

    assert len(sender.outgoing) == 3


def test_a_process_that_has_not_reloaded_yet_keeps_nothing_from_a_new_target(
    tmp_path: Path,
) -> None:
    clock = FakeClock(BEGINNING + timedelta(hours=1))

    async def main() -> None:
        async with (
            outbox(tmp_path, fleet_of(PHONE), clock=clock, by="old") as old,
            outbox(tmp_path, fleet_of(PHONE, MAIL), clock=clock, by="new") as new,
        ):
            await old.round()
            await new.round()
            await new.apply(submit(1), start(1), settle(1, outcome=FAILED))
            await old.round()
            assert new.rows() == [], "it waits until it has reloaded"
            await new.round()
            assert {one.target for one in new.rows()} == {"phone", "mail"}

    anyio.run(main)


def test_old_news_is_not_told_but_what_still_waits_is(tmp_path: Path) -> None:
    async def play(box: Outbox) -> None:
        await box.round()
        await box.apply(submit(1), start(1), settle(1))
        await box.apply(submit(2), start(2), approval(2))
        box.clock.advance(timedelta(days=3))
        await box.apply(submit(3), start(3), settle(3, outcome=FAILED))
        await box.round()
        assert all(one.give_up_at > box.clock.now() for one in box.rows())

    sent = played(tmp_path, play)

    assert sent.titles == [
        "grazer needs approval: Bash: git push",
        "grazer failed: the model is gone",
    ]


def test_an_agent_says_other_things_of_a_target_than_the_fleet(tmp_path: Path) -> None:
    own = replace(PHONE, events=frozenset({NotifyEvent.COMPLETED}), title="${notice.agent}!")

    async def main() -> None:
        sender = RecordingSender()
        async with outbox(tmp_path, fleet_of(MAIL, PHONE, notify=(own,)), sender) as box:
            await box.round()
            await box.apply(submit(1), start(1), settle(1))
            await box.apply(submit(2), start(2), settle(2, outcome=FAILED))
            await box.round()
        told = {(one.url, one.message.title) for one in sender.outgoing}
        failed = ("json://mail.example/another-secret", "grazer failed: the model is gone")
        assert told == {(URL, "grazer!"), failed}

    anyio.run(main)


def test_a_fleet_without_targets_writes_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with outbox(tmp_path, fleet_of()) as box:
            await box.apply(submit(1), start(1), settle(1))
            await box.round()
            assert box.reader.notified_change() is None
            assert box.rows() == []

    anyio.run(main)


def test_following_writes_nothing_when_nobody_is_told(tmp_path: Path) -> None:
    async def play(box: Outbox) -> None:
        await box.round()
        for number in range(1, 4):
            await box.apply(submit(number), start(number), settle(number))
            await box.round()
        before = box.context.ledger_end()
        await box.round()
        await box.round()
        assert box.context.ledger_end() == before

    played(tmp_path, play, replace(PHONE, events=frozenset({NotifyEvent.LOST})))


def test_a_running_notifier_finishes_what_is_due_before_it_leaves(tmp_path: Path) -> None:
    sent = anyio.Event()

    def answer(outgoing: Outgoing) -> SendResult:
        sent.set()
        return SendResult()

    sender = RecordingSender(answer)

    async def main() -> None:
        async with outbox(tmp_path, fleet_of(PHONE), sender) as box:
            await box.round()
            notifier = Notifier(box.fleet, box.context, interval_s=0.01)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(notifier.run)
                await box.apply(submit(1), start(1), settle(1))
                await sent.wait()
                await box.apply(submit(2), start(2), settle(2))
                notifier.leave()
            assert [one.status for one in box.rows()] == [NotificationStatus.SENT] * 2

    anyio.run(main)

    assert sender.titles == ["grazer completed: Grazed."] * 2


def test_a_hook_s_channel_is_a_target_of_its_own(tmp_path: Path) -> None:
    message = ChatMessage(service="discord", channel="42", token_env="BOT_TOKEN")
    hook = Hook(id="after_run[0]", point=HookPoint.AFTER_RUN, action=message)

    targets = with_bots(fleet_of(hooks=(hook,)))

    (target,) = targets.values()
    assert target.id == "grazer/hooks.after_run[0]"
    assert target.events == frozenset()
    assert target.address({"BOT_TOKEN": "abc/def"}) == "discord-bot://abc%2Fdef@42"
