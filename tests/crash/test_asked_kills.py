"""Killed anywhere on the way to an answer about its limit, a job gets its answer: the one who is asked is asked once."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from crash.ground import Ground, Place, check_rows_are_as_journals_say, is_killed, places
from nightherd.model.jobs.job import JobStatus
from nightherd.testing.fork_server import Ended
from soak import often

SEED = 20_261_116
TRIALS = often(8, soak=400)
"""The first among the places where the asking is done, the others anywhere."""
ASKING = 31
"""So many places before the end of a run the asking begins."""

FLEET = """\
fleet: {name: asking}
lease: 5m
mirror: false
agents:
  - name: spender
    runtime: scripted
    limits:
      spend: 0.05
      on_reached: hook
      hooks: [{event: limit, directive: judge, inputs: {tag: judge}}]
    script:
      - repeat: 3
        steps:
          - say: on it
          - usage: {input_tokens: 10, output_tokens: 2, cost_usd: 0.02}
  - name: judge
    runtime: scripted
    default_prompt: About ${inputs.job}?
    script:
      - say: raise spend=1
"""

MakeGround = Callable[[str], Ground]


def work(ground: Ground, place: Place | None = None) -> Ended:
    """A worker, until there is nothing left to do."""
    return ground.command("worker", "--until-idle", place=place)


def check_is_answered(ground: Ground) -> None:
    """Whoever was killed, the job was asked about once, and has gone on."""
    assert work(ground).status == 0, ground.shown()
    jobs = ground.jobs()
    assert jobs["judge"].status is JobStatus.COMPLETED
    assert (jobs["b"].status, jobs["b"].turns) == (JobStatus.COMPLETED, 3), "its answer counts"
    check_rows_are_as_journals_say(ground)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_killed_at_any_point_a_job_that_asks_about_its_limit_gets_its_answer(
    make_ground: MakeGround,
) -> None:
    ground = make_ground(FLEET)
    with ground.copied() as trial:
        running = places(trial.run("spender", "b").said)
        answering = places(work(trial).said)
        check_is_answered(trial)

    random = Random(SEED)
    kills = 0
    asking = running[-ASKING :: often(4, soak=1)]
    for number in range(TRIALS):
        first = asking[number] if number < len(asking) else random.choice(running)
        second = random.choice(answering)
        print(f"killed at {first}, then at {second}")
        with ground.copied() as trial:
            ended = [trial.run("spender", "b", first), work(trial, second)]
            if "b" in trial.jobs():
                check_is_answered(trial)
            kills += sum(map(is_killed, ended))
    print(f"seed {SEED}: {kills} kills")
    assert kills >= TRIALS
