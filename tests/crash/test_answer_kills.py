"""Killed anywhere between asking, answering, resuming and running, an approved call runs once or its outcome is unknown.

Each trial kills the run that asks, who goes on with it, the command that answers, and who runs what was approved. At
the end every call has one result: a rejected one has never run, an approved one never twice, and one that has not run
says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from random import Random

import pytest

from crash.ground import (
    Ground,
    Place,
    check_doctor_leaves_nothing,
    check_rows_are_as_journals_say,
    is_killed,
    places,
)
from nightherd.model.inbox.item import InboxItem, ItemKind, Verdict
from nightherd.model.jobs.job import Job, JobStatus, SuspendReason
from nightherd.model.jobs.repeat import is_interrupted_call
from nightherd.model.journal.event import ToolResultEvent, ToolUseEvent
from nightherd.wiring.stores import open_reader
from soak import often

SEED = 20_261_116
AGENTS = ("native", "scripted")
TRIALS = often(7, soak=800)
"""For each agent, at places that a seed chooses; a long run comes to every one several times."""
KILLS = 3 * TRIALS
"""At least, for each agent; most trials have five or more."""
SUSPENDED = 8
"""The exit code of a run that waits for a person."""
MOST_ROUNDS = 6
"""More than anybody can be asked in one job."""
REPLY = "the blue one"

FLEET = """\
fleet: {name: careful}
lease: 5m
mirror: false
agents:
"""
AGENT = """\
  - name: RUNTIME
    runtime: RUNTIME
    allowed_tools: [Edit]
    approvals: [{tool: Edit}]
    questions: true
    script:
      - say: first
      - tool: Edit
        input: {file_path: "counter-${inputs.tag}", old_string: ".", new_string: "one ."}
      - say: which
      - tool: ask_person
        input: {question: "Which one?"}
      - say: second
      - tool: Edit
        input: {file_path: "counter-${inputs.tag}", old_string: ".", new_string: "two ."}
      - say: done
"""

MakeGround = Callable[[str], Ground]


def items_of(ground: Ground, job: Job) -> Sequence[InboxItem]:
    with closing(open_reader(ground.state)) as reader:
        return reader.items_of_job(job.id)


def waiting_item(ground: Ground, job: Job) -> InboxItem:
    """The one thing that a suspended job waits for: it never waits for nobody, and asks once."""
    assert (job.status, job.suspend_reason) == (JobStatus.SUSPENDED, SuspendReason.APPROVAL), job
    (item,) = (one for one in items_of(ground, job) if one.is_pending)
    return item


def answer(ground: Ground, item: InboxItem, verdict: str, place: Place | None = None) -> bool:
    """Answer the item; whether the command was killed."""
    arguments = ["inbox", verdict, item.id, *(["-m", REPLY] if verdict == "reply" else [])]
    ended = ground.command(*arguments, place=place)
    assert ended.status == 0 or is_killed(ended), ground.shown()
    return is_killed(ended)


def decided_item(ground: Ground, job: Job, item: InboxItem) -> InboxItem:
    (found,) = (one for one in items_of(ground, job) if one.id == item.id)
    return found


def answer_and_kill(ground: Ground, job: Job, random: Random, answering: list[Place]) -> int:
    """Answer what the job waits for, killed on the way and then not; how many processes were killed."""
    item = waiting_item(ground, job)
    verdict = "reply" if item.kind is ItemKind.QUESTION else random.choice(["approve", "reject"])
    kills = answer(ground, item, verdict, random.choice(answering))
    if decided_item(ground, job, item).is_pending:
        assert ground.jobs()["b"].status is JobStatus.SUSPENDED, "nothing continues unanswered"
        answer(ground, item, verdict)
    else:
        assert ground.jobs()["b"].status is JobStatus.PENDING, "the answer and the job are one"
    return int(kills)


def check_end(ground: Ground, job: Job) -> None:
    """Every call has one result, and it is what the people and the files say."""
    assert job.status is JobStatus.COMPLETED, job
    events = ground.journal(job)
    uses = {
        event.tool_use_id: event
        for event in events
        if isinstance(event, ToolUseEvent) and event.end
    }
    results = [event for event in events if isinstance(event, ToolResultEvent)]
    assert Counter(one.tool_use_id for one in results) == Counter([*uses]), "one result each"
    assert len(uses) == 3
    counted, items = ground.counted("b"), items_of(ground, job)
    for result in results:
        use = uses[result.tool_use_id]
        item = next((one for one in items if one.tool_use_id == use.tool_use_id), None)
        if item is None:  # killed after the call was on record and before it was proposed
            assert is_interrupted_call(result.error)
            assert use.tool_name == "ask_person" or not counted[use.input["new_string"].split()[0]]
            continue
        if item.kind is ItemKind.QUESTION:
            assert (result.success, result.result) == (True, REPLY)
            continue
        made = counted[use.input["new_string"].split()[0]]
        if item.verdict is Verdict.REJECT:
            assert (made, result.success) == (0, False)
            assert "rejected by" in (result.error or "")
        elif result.success:
            assert made == 1
        else:
            assert made <= 1, "never twice"
            assert is_interrupted_call(result.error), "never silently not"
    assert all(not one.is_pending for one in items)


def kill_and_finish(ground: Ground, agent: str, random: Random, ways: list[list[Place]]) -> int:
    """Kill everybody on the way once, and see the job to its end; how many processes were killed."""
    running, goings_on, answering = ways
    first = random.choice(running)
    print(f"{agent}: run killed at {first}")
    kills = int(is_killed(ground.run(agent, "b", first)))
    for _ in range(MOST_ROUNDS):
        where = random.choice(goings_on)
        print(f"then at {where}")
        kills += is_killed(ground.go_on(where))
        assert ground.go_on().status == 0
        job = ground.jobs().get("b")
        if job is None:
            return kills  # killed before there was a job
        if job.is_terminal:
            break
        kills += answer_and_kill(ground, job, random, answering)
    check_end(ground, ground.jobs()["b"])
    check_rows_are_as_journals_say(ground)
    return kills


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("agent", AGENTS)
def test_killed_at_any_point_an_approved_call_runs_once_or_is_reported_as_unknown(
    make_ground: MakeGround, agent: str
) -> None:
    ground = make_ground(FLEET + AGENT.replace("RUNTIME", agent))
    ground.lay_counter("b")
    with ground.copied() as trial:
        running = trial.run(agent, "b")
        assert running.status == SUSPENDED, trial.shown()
        item = waiting_item(trial, trial.jobs()["b"])
        answering = places(trial.command("inbox", "approve", item.id).said)
        goings_on = places(trial.go_on().said)

    random = Random(SEED)
    kills = 0
    for number in range(TRIALS):
        with ground.copied() as trial:
            ways = [places(running.said), goings_on, answering]
            kills += kill_and_finish(trial, agent, random, ways)
            if number % 4 == 0:
                check_doctor_leaves_nothing(trial)

    print(f"seed {SEED}: {kills} kills")
    assert kills >= KILLS
