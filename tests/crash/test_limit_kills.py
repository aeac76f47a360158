"""Killed anywhere between two writes, a limited job keeps to its limit, and no cent is lost or counted twice.

Each trial kills a run at one place of its way, then kills whoever goes on with it, lets the job go on to its
limit, kills the command that raises it, and lets the job go on to its end.
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
from soak import often

SEED = 20_261_115
AGENTS = ("native", "scripted")
TRIALS = often(9, soak=800)
"""For each agent, at places that a seed chooses; a long run comes to every one several times."""
KILLS = 5 * TRIALS // 2
"""At least, for each agent; most trials have four."""
SUSPENDED = 6
"""The exit code of a run that waits at a limit."""
LIMIT = 50_000
TURN = 20_000

FLEET = """\
fleet: {name: limited}
lease: 5m
mirror: false
limits: {per_day: 1000}
agents:
"""
AGENT = """\
  - name: RUNTIME
    runtime: RUNTIME
    allowed_tools: [Edit]
    limits: {spend: 0.05}
    script:
      - repeat: 4
        steps:
          - say: on it
          - tool: Edit
            input: {file_path: "counter-${inputs.tag}", old_string: ".", new_string: "${turn} ."}
          - usage: {input_tokens: 10, output_tokens: 2, cost_usd: 0.02}
"""

MakeGround = Callable[[str], Ground]


def raise_limit(ground: Ground, job: Job, place: Place | None = None) -> bool:
    """Let the job have more; whether the command was killed."""
    arguments = ("jobs", "resume", job.id, "--raise", "spend=1", "--quiet")
    ended = ground.command(*arguments, place=place)
    assert ended.status == 0 or is_killed(ended), ground.shown()
    return is_killed(ended)


def check_waits_at_its_limit(job: Job) -> None:
    """It waits only because nothing was left for one more turn."""
    assert (job.status, job.error_code) == (JobStatus.SUSPENDED, "spend_exceeded")
    assert job.cost_microusd <= LIMIT < job.cost_microusd + TURN


def kill_and_finish(ground: Ground, agent: str, random: Random, ways: list[list[Place]]) -> int:
    """Kill a run, who goes on with it, and who raises its limit; how many processes were killed."""
    running, goings_on, raisings = ways
    early = goings_on[: len(goings_on) // 2]
    where = [random.choice(running), random.choice(early), random.choice(goings_on)]
    last = random.choice(raisings)
    print(f"{agent} killed at {where}, then {last}")
    ended = [ground.run(agent, "b", where[0]), *(ground.go_on(place) for place in where[1:])]
    assert ground.go_on().status == 0
    kills = sum(map(is_killed, ended))
    job = ground.jobs().get("b")
    if job is None:
        return kills
    check_waits_at_its_limit(job)
    check_rows_are_as_journals_say(ground)
    kills += raise_limit(ground, job, last)
    if ground.jobs()["b"].status is JobStatus.SUSPENDED:
        raise_limit(ground, job)
    assert ground.go_on().status == 0
    done = ground.jobs()["b"]
    events = ground.journal(done)
    assert (done.status, done.turns) == (JobStatus.COMPLETED, 4)
    assert whole_answers(events) == [1, 2, 3, 4], "every turn once, in order"
    check_calls(ground, "b", events)
    check_rows_are_as_journals_say(ground)
    return kills


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("agent", AGENTS)
def test_killed_at_any_point_a_limit_holds_and_money_is_counted_once(
    make_ground: MakeGround, agent: str
) -> None:
    ground = make_ground(FLEET + AGENT.replace("RUNTIME", agent))
    for tag in ("a", "b"):
        ground.lay_counter(tag)
    assert ground.run(agent, "a").status == SUSPENDED, ground.shown()
    with ground.copied() as trial:
        running = places(trial.run(agent, "b").said)
        job = trial.jobs()["b"]
        check_waits_at_its_limit(job)
        raisings = places(
            trial.command("jobs", "resume", job.id, "--raise", "spend=1", "--quiet").said
        )
    with ground.copied() as trial:
        assert is_killed(trial.run(agent, "b", Place("journal.after_write", 4)))
        goings_on = places(trial.go_on().said)

    random = Random(SEED)
    kills = 0
    for number in range(TRIALS):
        with ground.copied() as trial:
            kills += kill_and_finish(trial, agent, random, [running, goings_on, raisings])
            if number % 4 == 0:
                check_doctor_leaves_nothing(trial)

    print(f"seed {SEED}: {kills} kills")
    assert kills >= KILLS
