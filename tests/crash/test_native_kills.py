"""A native job killed at any point of any write: no call is made twice, no turn is lost, and money adds up.

A first run counts the places that it passes, and that whoever goes on after a kill passes. Then there is one
trial for each: the run is killed there, who goes on is killed twice (in a long run four times), and the next
one finishes. Unlike a script that is played by itself, a native agent is told of a call that was cut off: it
is never made again.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from crash.ground import (
    Ground,
    Place,
    check_calls,
    check_doctor_leaves_nothing,
    check_rows_are_as_journals_say,
    is_killed,
    places,
    whole_answers,
)
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.journal.event import AssistantEvent, Event
from nightherd.model.secrets import find_secrets
from nightherd.runtimes.native.conversation import recall
from soak import often

SEED = 20_261_115
SHARES = 8
BATCHES = range(0, often(SHARES, soak=20 * SHARES), often(2, soak=1))
"""Each kills a run at every eighth place; in a long run, together at every one, and again by another seed."""
LATER = often(2, soak=4)
"""How many that go on are killed after each run."""
KILLS = often(26, soak=32)
"""At least, per batch: those that go on have fewer places the later the run before was killed."""
TURN_COST = 1_000
TOGETHER = ("a", "b", "c")
TRIALS = often(6, soak=300)
"""Of several jobs at once."""

FLEET = """\
lease: 5m
mirror: false
limits: {per_day: 1000}
agents:
  - name: herder
    runtime: native
    allowed_tools: [Edit]
    instances: {max_concurrent: 3}
    script:
      - say: mark one
      - tool: Edit
        input: {file_path: "counter-${inputs.tag}", old_string: ".", new_string: "one ."}
      - usage: {input_tokens: 10, output_tokens: 2, cost_usd: 0.001}
      - say: mark two
      - tool: Edit
        input: {file_path: "counter-${inputs.tag}", old_string: ".", new_string: "two ."}
      - usage: {input_tokens: 10, output_tokens: 2, cost_usd: 0.001}
      - say: mark three
      - usage: {input_tokens: 10, output_tokens: 2, cost_usd: 0.001}
"""

MakeGround = Callable[[str], Ground]


def check_record(ground: Ground, tag: str, job: Job, events: list[Event]) -> None:
    """The record of a job that has come to its end, however often it was killed on the way."""
    assert job.status is JobStatus.COMPLETED, job
    assert whole_answers(events) == [1, 2, 3], "every turn once, in order"
    check_calls(ground, tag, events)
    first_lines = [
        event for event in events if isinstance(event, AssistantEvent) and event.index == 0
    ]
    asked = sum(event.usage is not None for event in first_lines)
    assert job.cost_microusd == asked * TURN_COST, "what the model was asked for, and nothing else"
    assert job.turns == 3
    conversation = recall(events, find_secrets({})).messages
    assert [message.kind for message in conversation] == ["request", "response"] * 3


def kill_and_finish(ground: Ground, first: Place, later: list[Place]) -> int:
    """Kill a run, then who goes on with it, then let it finish; how many processes were killed."""
    ended = [ground.run("herder", "b", first), *(ground.go_on(place) for place in later)]
    assert all(one.status == 0 or is_killed(one) for one in ended), ended
    finished = ground.go_on()
    assert finished.status == 0, finished.error
    for tag, job in ground.jobs().items():
        check_record(ground, tag, job, ground.journal(job))
    check_rows_are_as_journals_say(ground)
    return sum(map(is_killed, ended))


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("batch", BATCHES)
def test_killed_at_any_point_a_native_job_loses_and_doubles_nothing(
    make_ground: MakeGround, batch: int
) -> None:
    ground = make_ground(FLEET)
    for tag in ("a", "b"):
        ground.lay_counter(tag)
    assert ground.run("herder", "a").status == 0, ground.shown()
    with ground.copied() as trial:
        ways = places(trial.run("herder", "b").said)
    with ground.copied() as trial:
        assert is_killed(trial.run("herder", "b", Place("journal.after_write", 4)))
        goings_on = places(trial.go_on().said)

    random, share = Random(SEED + batch), batch % SHARES
    kills = 0
    for number, first in list(enumerate(ways))[share::SHARES]:
        # The second kill is in all places too; the others are early, where something is left to be done.
        early = goings_on[: len(goings_on) // 3]
        later = [goings_on[number % len(goings_on)], *random.choices(early, k=LATER - 1)]
        print(f"seed {SEED + batch}, trial {number} of {len(ways)}: {first}, then {later}")
        with ground.copied() as trial:
            kills += kill_and_finish(trial, first, later)
            if number % 2 == 0:
                check_doctor_leaves_nothing(trial)

    print(f"seed {SEED + batch}: {kills} kills")
    assert kills >= KILLS


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_killed_while_several_native_jobs_run_each_loses_and_doubles_nothing(
    make_ground: MakeGround,
) -> None:
    ground = make_ground(FLEET)
    for tag in TOGETHER:
        ground.lay_counter(tag)
        arguments = ("run", "herder", "-p", "go", "--input", f"tag={tag}", "--detach")
        assert ground.command(*arguments).status == 0, ground.shown()
    with ground.copied() as trial:
        whole = trial.go_on(is_together=True)
        assert whole.status == 0, whole.error
        count = len(whole.said)

    # In which order they come to their places is another each time: they are only counted.
    random = Random(SEED)
    kills = 0
    for number in range(TRIALS):
        where = [random.randint(1, count), *random.choices(range(1, count // 4), k=LATER)]
        print(f"seed {SEED}, trial {number}: killed at points {where} of {count}")
        with ground.copied() as trial:
            ended = [trial.go_on(nth=nth, is_together=True) for nth in where]
            assert all(one.status == 0 or is_killed(one) for one in ended), ended
            kills += sum(map(is_killed, ended))
            assert trial.go_on(is_together=True).status == 0
            for tag, job in trial.jobs().items():
                check_record(trial, tag, job, trial.journal(job))
            check_rows_are_as_journals_say(trial)
            check_doctor_leaves_nothing(trial)

    print(f"seed {SEED}: {kills} kills")
    assert kills >= 2 * TRIALS
