"""What every state store must do for runs that wait: for people, times, events and other runs."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from nightherd.model.change import Why
from nightherd.model.inbox.changes import ExpireItem
from nightherd.model.inbox.item import ItemKind, ItemStatus, Verdict
from nightherd.model.jobs.job import JobStatus
from nightherd.model.workflows.conductor.changes import (
    AdvanceRun,
    SendEvent,
)
from nightherd.model.workflows.definition import (
    Artifact,
    ArtifactKind,
    BlockAction,
    GateAction,
    GateKind,
    Loop,
    WaitAction,
)
from nightherd.model.workflows.run import RunStatus
from nightherd.testing.contracts.run import do, statuses
from nightherd.testing.contracts.state import OpenState, checks_in, must_apply, must_refuse
from nightherd.testing.run_values import (
    CANCELLED,
    answer,
    begin,
    end,
    event,
    found_run,
    gate,
    gate_of,
    in_turn,
    instant,
    job,
    job_of,
    nodes,
    phase,
    run_id,
    start_run,
    workflow,
)

HOUR = timedelta(hours=1)


def prompt_of(state: OpenState, number: int, name: str) -> str:
    """The prompt of a phase's job."""
    texts = state.reader.find_texts(job_of(state.reader, number, name).id)
    assert texts is not None
    return texts.prompt


# -- gates -----------------------------------------------------------------------------------------------


async def check_gate_opens_with_the_end_of_the_phase_before_it(state: OpenState) -> None:
    artifact = Artifact(kind=ArtifactKind.OUTPUT, phase="dig")
    ask = GateAction(summary="Sow ${phases.dig.output}?", artifact=artifact)
    later = job("sow", prompt="${phases.ask.output.artifact}|${phases.ask.output.comment}")
    definition = workflow(*in_turn(job("dig"), gate("ask", action=ask), later))
    await must_apply(state, start_run(1, definition))

    await do(state, 1, "dig")

    run, item = found_run(state.reader, 1), gate_of(state.reader, 1, "ask")
    assert (run.status, run.current_phase) == (RunStatus.PAUSED, "ask")
    assert nodes(state.reader, 1) == {"dig": "succeeded", "ask": "paused"}
    assert (item.kind, item.status, item.title) == (
        ItemKind.APPROVAL,
        ItemStatus.PENDING,
        "Sow Grazed.?",
    )
    texts = state.reader.find_item_texts(item.id)
    assert texts is not None
    assert (texts.body["artifact"], texts.body["gate"]) == ("Grazed.", "ask")
    await must_apply(state, answer(item, text="go", input={"artifact": "Edited."}))
    assert found_run(state.reader, 1).status is RunStatus.RUNNING
    assert prompt_of(state, 1, "sow") == "Edited.|go"
    assert (await must_refuse(state, answer(item, Verdict.REJECT))).why is Why.DECIDED
    assert nodes(state.reader, 1)["ask"] == "succeeded"


async def check_rejected_gate_fails_its_run_and_asks_nobody_more(state: OpenState) -> None:
    await must_apply(state, start_run(1, workflow(*in_turn(gate("ask"), job("sow")))))

    await must_apply(state, answer(gate_of(state.reader, 1, "ask"), Verdict.REJECT, text="wet"))

    assert nodes(state.reader, 1) == {"ask": "failed", "sow": "skipped"}
    assert statuses(state, 1) == ["failed"]
    assert "rejected by ada: wet" in (found_run(state.reader, 1).error or "")
    assert [one.kind for one in state.reader.items_of_run(run_id(1))] == [ItemKind.APPROVAL]


async def check_reply_is_what_the_next_phase_gets(state: OpenState) -> None:
    ask = gate("ask", action=GateAction(gate=GateKind.REPLY, summary="Where?"))
    later = job("sow", prompt="at ${phases.ask.output.reply}")
    await must_apply(state, start_run(1, workflow(*in_turn(ask, later))))
    item = gate_of(state.reader, 1, "ask")
    assert item.kind is ItemKind.QUESTION

    await must_apply(state, answer(item, text="by the lake"))

    assert prompt_of(state, 1, "sow") == "at by the lake"


async def check_questions_of_a_loop_are_asked_until_they_are_clear(state: OpenState) -> None:
    inner = in_turn(
        job("think", prompt="${loop.iteration}"),
        gate("ask", action=GateAction(gate=GateKind.REPLY)),
    )
    loop = Loop(max_iterations=5, until="phases.ask.output.reply == 'clear'")
    talk = phase("talk", BlockAction(phases=inner), loop=loop)
    await must_apply(state, start_run(1, workflow(talk, job("sow", "talk"))))

    await do(state, 1, "talk[1]/think")
    await must_apply(state, answer(gate_of(state.reader, 1, "talk[1]/ask"), text="why?"))
    assert statuses(state, 1) == ["running"]
    await do(state, 1, "talk[2]/think")
    await must_apply(state, answer(gate_of(state.reader, 1, "talk[2]/ask"), text="clear"))

    assert "talk[3]" not in nodes(state.reader, 1)
    assert nodes(state.reader, 1)["talk"] == "succeeded"
    assert nodes(state.reader, 1)["sow"] == "waiting"


async def check_several_people_have_to_approve(state: OpenState) -> None:
    ask = GateAction(summary="?", quorum=2, approvers=("ada", "bob", "cy"))
    await must_apply(state, start_run(1, workflow(*in_turn(gate("ask", action=ask), job("sow")))))
    item = gate_of(state.reader, 1, "ask")

    await must_apply(state, answer(item))
    assert (await must_refuse(state, answer(item))).why is Why.DUPLICATE
    assert (await must_refuse(state, answer(item, by="eve"))).why is Why.NOT_ALLOWED
    assert nodes(state.reader, 1) == {"ask": "paused"}
    await must_apply(state, answer(item, by="bob"))

    assert nodes(state.reader, 1) == {"ask": "succeeded", "sow": "waiting"}


async def check_gate_that_nobody_answers_expires(state: OpenState) -> None:
    ask = GateAction(summary="?", expires=HOUR)
    await must_apply(state, start_run(1, workflow(*in_turn(gate("ask", action=ask), job("sow")))))
    item = gate_of(state.reader, 1, "ask")
    over = ExpireItem(item_id=item.id, at=instant(61))

    assert (await must_refuse(state, replace(over, at=instant(59)))).why is Why.TOO_EARLY
    assert not state.reader.items_to_expire(instant(59), 5)
    assert [one.id for one in state.reader.items_to_expire(instant(61), 5)] == [item.id]
    await must_apply(state, over)

    assert nodes(state.reader, 1) == {"ask": "failed", "sow": "skipped"}
    assert "nobody answered in time" in (found_run(state.reader, 1).error or "")
    assert (await must_refuse(state, answer(item, minute=62))).why is Why.DECIDED


# -- waits -----------------------------------------------------------------------------------------------


async def check_timer_ends_when_it_is_due_and_not_before(state: OpenState) -> None:
    rest = phase("rest", WaitAction(duration="1h"))
    await must_apply(state, start_run(1, workflow(*in_turn(rest, job("sow")))))
    await must_apply(state, AdvanceRun(run_id=run_id(1), at=instant(59)))
    assert nodes(state.reader, 1) == {"rest": "paused"}
    assert statuses(state, 1) == ["paused"]
    assert not state.reader.runs_to_advance(instant(59), 5)
    assert list(state.reader.runs_to_advance(instant(61), 5)) == [run_id(1)]

    advance = AdvanceRun(run_id=run_id(1), at=instant(61))
    await must_apply(state, advance, advance)

    assert nodes(state.reader, 1) == {"rest": "succeeded", "sow": "waiting"}
    assert not state.reader.runs_to_advance(instant(99), 5)


def rain(key: str, minute: float = 1, payload: object = None) -> SendEvent:
    """It rains."""
    at = instant(minute)
    return SendEvent(run_id=run_id(1), name="rain", key=key, at=at, by="sky", payload=payload)


async def check_event_that_came_early_is_taken_and_each_only_once(state: OpenState) -> None:
    later = job("sow", prompt="${phases.second.output}")
    phases = in_turn(job("dig"), event("first"), event("second"), later)
    await must_apply(state, start_run(1, workflow(*phases)))
    await must_apply(state, rain("a"))
    again = await must_refuse(state, rain("a"))
    assert again.why is Why.DUPLICATE

    await do(state, 1, "dig")

    assert nodes(state.reader, 1) == {"dig": "succeeded", "first": "succeeded", "second": "paused"}
    await must_apply(state, rain("b", payload="much"))
    assert prompt_of(state, 1, "sow") == "much"
    taken = [one.node_id for one in state.reader.events_of_run(run_id(1))]
    assert taken == [f"{run_id(1)}/first", f"{run_id(1)}/second"]
    await do(state, 1, "sow")
    assert (await must_refuse(state, rain("c"))).why is Why.STATUS


async def check_one_event_ends_one_of_two_waits(state: OpenState) -> None:
    await must_apply(state, start_run(1, workflow(event("first"), event("second"))))

    await must_apply(state, rain("a"))
    assert nodes(state.reader, 1) == {"first": "succeeded", "second": "paused"}
    await must_apply(state, rain("b"))

    assert statuses(state, 1) == ["succeeded"]
    taken = [one.node_id for one in state.reader.events_of_run(run_id(1))]
    assert taken == [f"{run_id(1)}/first", f"{run_id(1)}/second"]


async def check_event_that_does_not_come_fails_its_wait(state: OpenState) -> None:
    await must_apply(state, start_run(1, workflow(event("wait", timeout=HOUR))))

    await must_apply(state, AdvanceRun(run_id=run_id(1), at=instant(61)))

    assert nodes(state.reader, 1) == {"wait": "failed"}
    assert "did not come in time" in (found_run(state.reader, 1).error or "")


async def check_block_that_takes_too_long_fails_with_all_that_is_in_it(state: OpenState) -> None:
    inner = (job("dig"), job("mow"), gate("ask"), job("sow", "dig mow ask"))
    block = phase("work", BlockAction(phases=inner), timeout=HOUR)
    await must_apply(state, start_run(1, workflow(block, job("eat", "work"))))
    dig = job_of(state.reader, 1, "work/dig")
    await must_apply(state, begin(dig))
    assert list(state.reader.runs_to_advance(instant(61), 5)) == [run_id(1)]

    await must_apply(state, AdvanceRun(run_id=run_id(1), at=instant(61)))

    assert nodes(state.reader, 1) == {
        "work": "failed",
        "work/dig": "cancelled",
        "work/mow": "cancelled",
        "work/ask": "cancelled",
        "eat": "skipped",
    }
    assert statuses(state, 1) == ["failed"]
    assert gate_of(state.reader, 1, "work/ask").status is ItemStatus.CANCELLED
    asked = state.reader.find_job(dig.id)
    assert asked is not None
    assert asked.cancel_requested_at is not None
    assert job_of(state.reader, 1, "work/mow").status is JobStatus.CANCELLED
    await must_apply(state, end(dig, 62, outcome=CANCELLED))
    assert nodes(state.reader, 1)["work/dig"] == "cancelled"
    assert not state.reader.runs_to_advance(instant(99), 5)


RUN_WAITS_CHECKS = checks_in(globals())
"""Every check of this module."""
