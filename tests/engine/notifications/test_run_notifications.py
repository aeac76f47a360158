"""People are told of workflow runs: how they end, what their gates ask, and what their phases say."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import time, timedelta
from pathlib import Path

import anyio
from msgspec.structs import replace

from engine.notifications.outbox import MAIL, PHONE, Outbox, fleet_of, outbox, with_links
from nightherd.engine.notifications.notifier import Notifier
from nightherd.model.inbox.item import Verdict
from nightherd.model.jobs.changes import SuspendExecution
from nightherd.model.jobs.job import SuspendReason
from nightherd.model.journal.system import Suspension
from nightherd.model.notifications.notification import NotificationStatus
from nightherd.model.notifications.target import Digest, NotifyEvent
from nightherd.model.usage import Totals
from nightherd.model.workflows.conductor.changes import CancelRun
from nightherd.model.workflows.conductor.keeping import kept_nodes
from nightherd.model.workflows.definition import (
    CommandAction,
    GateAction,
    GateKind,
    Language,
    Messages,
    Phase,
    WorkflowAction,
)
from nightherd.testing.determinism import FakeClock
from nightherd.testing.recording_sender import RecordingSender
from nightherd.testing.run_values import (
    FAILURE,
    answer,
    begin,
    end,
    gate,
    gate_of,
    in_turn,
    instant,
    job,
    job_of,
    lose,
    phase,
    run_id,
    start_run,
    workflow,
)
from nightherd.testing.state_values import BEGINNING

Play = Callable[[Outbox], Awaitable[None]]


def played(
    folder: Path, play: Play, *targets: object, sender: RecordingSender | None = None
) -> RecordingSender:
    """Play on a new outbox with a fleet that is reached from outside; what was sent."""
    sender = sender or RecordingSender()

    async def main() -> None:
        fleet = with_links(fleet_of(*(targets or (PHONE,))))  # type: ignore[arg-type]
        async with outbox(folder, fleet, sender) as box:
            await box.round()
            await play(box)
            await box.round()

    anyio.run(main)
    return sender


async def do(box: Outbox, number: int, name: str, *, fails: bool = False) -> None:
    """A worker does the job of a phase."""
    one = job_of(box.reader, number, name)
    ended = end(one, outcome=FAILURE, answer=None) if fails else end(one)
    await box.apply(begin(one), ended)


def suspend(box: Outbox, number: int, name: str) -> SuspendExecution:
    """The job of a phase meets an error that a person has to look at."""
    return SuspendExecution(
        job_id=job_of(box.reader, number, name).id,
        epoch=1,
        at=instant(2),
        suspension=Suspension(reason=SuspendReason.ERROR, message="no network", code="network"),
        last_seq=3,
        total=Totals(),
        own=Totals(),
    )


def test_a_run_that_succeeds_is_one_message_and_its_jobs_are_none(tmp_path: Path) -> None:
    async def play(box: Outbox) -> None:
        await box.apply(start_run(1, workflow(*in_turn(job("dig"), job("sow")))))
        await do(box, 1, "dig")
        await do(box, 1, "sow")

    sent = played(tmp_path, play)

    assert sent.titles == ["workflow graze completed"]
    text = sent.outgoing[0].message.text
    assert f"Run: {run_id(1)} (workflow graze)" in text
    assert f"nightherd runs show {run_id(1)}" in text
    assert "Cost so far: $0.00" in text


def test_a_run_that_fails_is_told_with_what_can_be_answered(tmp_path: Path) -> None:
    async def play(box: Outbox) -> None:
        await box.apply(start_run(1, workflow(job("dig"))))
        await do(box, 1, "dig", fails=True)
        await box.round()
        (row,) = box.rows()
        (item,) = box.reader.items_of_run(run_id(1))
        assert (row.event, row.item_id, row.run_id) == (NotifyEvent.FAILED, item.id, run_id(1))
        assert (row.agent, row.job_id) == (None, None)

    sent = played(tmp_path, play, MAIL)

    (title,) = sent.titles
    assert title.startswith("workflow graze failed: ")
    assert "no grass" in title
    text = sent.outgoing[0].message.text
    assert "nightherd inbox retry ask-" in text
    assert "Answer: https://fleet.example/answer/" in text


def test_a_cancelled_run_and_a_run_inside_another_are_not_told_of(tmp_path: Path) -> None:
    inner = workflow(job("dig"), name="inner")
    outer = workflow(phase("part", WorkflowAction(workflow="inner", definition=inner)))

    async def play(box: Outbox) -> None:
        await box.apply(start_run(1, workflow(job("dig"))))
        await box.apply(CancelRun(run_id=run_id(1), at=instant(1)))
        await box.apply(start_run(2, outer))
        (child,) = box.reader.runs_of_parent(run_id(2))
        one = job_of(box.reader, child.id, "dig")
        await box.apply(begin(one), end(one))

    assert played(tmp_path, play).titles == ["workflow graze completed"]


def test_a_phase_that_waits_is_told_of_and_one_that_is_lost_or_tried_again_is_not(
    tmp_path: Path,
) -> None:
    command = CommandAction(language=Language.BASH, command="make")

    async def play(box: Outbox) -> None:
        tried = workflow(job("dig", retries=1), phase("build", command))
        await box.apply(start_run(1, tried))
        build, dig = job_of(box.reader, 1, "build"), job_of(box.reader, 1, "dig")
        await box.apply(begin(dig), lose(dig))
        again = job_of(box.reader, 1, "dig")
        await box.apply(begin(again), end(again, outcome=FAILURE, answer=None))
        await box.apply(begin(build), suspend(box, 1, "build"))

    sent = played(tmp_path, play)

    assert sent.titles == ["workflow graze waits: no network"]
    assert f"Run: {run_id(1)} (workflow graze, phase build)" in sent.outgoing[0].message.text


def test_gates_ask_with_workflow_phase_summary_and_artifact(tmp_path: Path) -> None:
    reply = GateAction(gate=GateKind.REPLY, summary="Which field?")

    async def play(box: Outbox) -> None:
        await box.apply(
            start_run(1, workflow(gate("plan"), gate("ask", action=reply))),
        )

    sent = played(tmp_path, play, MAIL)

    assert sent.titles == [
        "workflow graze needs approval: plan?",
        "workflow graze has a question: Which field?",
    ]
    approval, question = (one.message.text for one in sent.outgoing)
    assert f"Run: {run_id(1)} (workflow graze, phase plan)" in approval
    assert "Why: the workflow waits for a person's approval" in approval
    assert "nightherd inbox approve ask-" in approval
    assert "Answer: https://fleet.example/answer/" in approval
    assert "On yes: the run continues after the gate" in approval
    assert "On no: the gate fails, with your reason" in approval
    assert "On yes: the run continues with your answer" in question
    assert "nightherd inbox reply ask-" in question


def test_an_answered_gate_reminds_nobody(tmp_path: Path) -> None:
    asking = GateAction(summary="Push?", remind=(timedelta(hours=2), timedelta(hours=9)))

    async def play(box: Outbox) -> None:
        await box.apply(start_run(1, workflow(gate("push", action=asking))))
        await box.round()
        box.clock.advance(timedelta(hours=3))
        await box.round()
        await box.apply(answer(gate_of(box.reader, 1, "push"), minute=200))
        box.clock.advance(timedelta(hours=9))
        await box.round()
        statuses = [one.status for one in box.rows() if one.event is NotifyEvent.APPROVAL]
        sent, dropped = NotificationStatus.SENT, NotificationStatus.DROPPED
        assert statuses == [sent, sent, dropped]

    assert played(tmp_path, play).titles == [
        "workflow graze needs approval: Push?",
        "Reminder: workflow graze needs approval: Push?",
        "workflow graze completed",
    ]


def test_a_rejected_run_is_told_of_without_a_question(tmp_path: Path) -> None:
    async def play(box: Outbox) -> None:
        await box.apply(start_run(1, workflow(gate("push"))))
        await box.apply(answer(gate_of(box.reader, 1, "push"), Verdict.REJECT, text="not now"))

    sent = played(tmp_path, play, replace(PHONE, events=frozenset({NotifyEvent.FAILED})))

    (title,) = sent.titles
    assert "rejected by ada: not now" in title
    assert "inbox" not in sent.outgoing[0].message.text


def spoken(name: str, **more: str) -> Phase:
    """A phase that says something."""
    return job(name, messages=Messages(**more))


def test_what_phases_say_is_told_once_for_each_moment(tmp_path: Path) -> None:
    async def play(box: Outbox) -> None:
        phases = in_turn(
            spoken("dig", on_start="digging", on_success="dug: ${phases.dig.output}"),
            spoken("sow", on_start="sowing", on_failure="nothing grows"),
        )
        await box.apply(start_run(1, workflow(*phases)))
        dig = job_of(box.reader, 1, "dig")
        await box.apply(begin(dig), lose(dig))  # written again, and again
        await box.round()
        again = job_of(box.reader, 1, "dig")
        await box.apply(begin(again), end(again, answer="a hole"))
        await do(box, 1, "sow", fails=True)
        await box.round()
        box.notifier = Notifier(box.fleet, box.context)

    said = replace(PHONE, events=frozenset({NotifyEvent.MESSAGE}))

    sent = played(tmp_path, play, said)

    assert sent.titles == [
        "workflow graze: digging",
        "workflow graze: dug: a hole",
        "workflow graze: sowing",
        "workflow graze: nothing grows",
    ]
    assert f"Run: {run_id(1)} (workflow graze, phase dig)" in sent.outgoing[0].message.text


def test_targets_get_messages_unless_they_name_other_events(tmp_path: Path) -> None:
    async def play(box: Outbox) -> None:
        await box.apply(start_run(1, workflow(spoken("dig", on_start="digging"))))
        await box.round()
        assert [one.target for one in box.rows()] == ["mail"]

    failures = replace(PHONE, events=frozenset({NotifyEvent.FAILED}))

    assert played(tmp_path, play, MAIL, failures).titles == ["workflow graze: digging"]


def test_phases_that_a_later_run_keeps_say_nothing_again(tmp_path: Path) -> None:
    phases = in_turn(spoken("dig", on_start="digging", on_success="dug"), job("sow"))
    definition = workflow(*phases)

    async def play(box: Outbox) -> None:
        await box.apply(start_run(1, definition))
        await do(box, 1, "dig")
        await do(box, 1, "sow", fails=True)
        before = box.reader.nodes_of_run(run_id(1))
        kept, texts = kept_nodes(run_id(2), definition, before, {}, instant(5))
        await box.apply(replace(start_run(2, definition), kept=kept, kept_texts=texts))
        await do(box, 2, "sow")

    said = replace(PHONE, events=frozenset({NotifyEvent.MESSAGE, NotifyEvent.COMPLETED}))

    assert played(tmp_path, play, said).titles == [
        "workflow graze: digging",
        "workflow graze: dug",
        "workflow graze completed",
    ]


def test_targets_of_an_agent_are_not_told_of_runs(tmp_path: Path) -> None:
    own = replace(PHONE, id="grazer/own")

    async def main() -> list[str]:
        sender = RecordingSender()
        async with outbox(tmp_path, fleet_of(notify=(own,)), sender) as box:
            await box.round()
            await box.apply(start_run(1, workflow(spoken("dig", on_start="digging"))))
            await do(box, 1, "dig", fails=True)
            await box.round()
        return sender.titles

    assert anyio.run(main) == []


def test_a_digest_has_the_runs_that_ended_and_the_gates_that_wait(tmp_path: Path) -> None:
    morning = replace(
        PHONE, events=frozenset({NotifyEvent.DIGEST}), digest=Digest(at=time(7, 30), timezone="UTC")
    )
    sender, clock = RecordingSender(), FakeClock(BEGINNING)

    async def main() -> None:
        async with outbox(tmp_path, fleet_of(morning), sender, clock=clock) as box:
            await box.round()
            await box.apply(start_run(1, workflow(job("dig"))))
            await do(box, 1, "dig")
            await box.apply(start_run(2, workflow(job("dig"))))
            await do(box, 2, "dig", fails=True)
            await box.apply(start_run(3, workflow(gate("push"), name="deploy")))
            clock.advance(timedelta(days=1))
            await box.round()

    anyio.run(main)

    (title,), text = sender.titles, sender.outgoing[0].message.text
    assert title == "Digest: 2 jobs and 2 runs ended, 1 failed, 2 waiting, $0.002"
    assert "graze: 1 succeeded, 1 failed, $0.002" in text
    assert f"workflow graze {run_id(2)}: " in text
    assert "workflow graze, failed run since" in text
    assert "workflow deploy, approval since" in text
