"""A native job and its child killed at any point: one child for one call, done once, paid once, waited for.

The parent waits for its child durably: whoever goes on, one worker or two, finds the same child and takes
its answer.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from crash import native_trials
from crash.families import FLEET, check_family_is_done, families, lay_counters
from crash.ground import (
    Ground,
    check_doctor_leaves_nothing,
    check_rows_are_as_journals_say,
    is_killed,
    places,
)
from nightherd.testing.fork_server import Ended
from soak import often

SEED = 20_261_115
WORK = ("worker", "--until-idle")
TRIALS = often(5, soak=10_000)
"""Of one worker, at places that a seed chooses; in a long run at every one."""
KILLS = often(5, soak=150)
"""At least: each trial kills a run, and most kill who goes on too."""
PAIRS = often(2, soak=60)
"""Trials of two workers with two families."""
LOOKED_FOR = FLEET.replace("lease: 5m", "lease: 12s\nheartbeat: 1s")
"""Who waits for the child of a worker that is gone looks for it every four seconds, not every hundred."""

MakeGround = Callable[[str], Ground]


def check_all_done(ground: Ground) -> None:
    finished = ground.command(*WORK)
    assert finished.status == 0, ground.shown()
    for tag, (parent, child) in families(ground).items():
        check_family_is_done(ground, tag, parent, child)
    check_rows_are_as_journals_say(ground)


def work_beside(ground: Ground, *orders: dict[str, Any]) -> list[Ended]:
    """Workers that begin at the same time, each with its order, and how they ended."""
    every = [
        {
            "folder": str(ground.folder),
            "arguments": WORK,
            "shown": str(ground.folder / f"shown-{number}"),
            **order,
        }
        for number, order in enumerate(orders)
    ]
    return ground.server.run_all(native_trials.COMMAND, every)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_killed_at_any_point_a_job_has_one_child_that_is_done_once(make_ground: MakeGround) -> None:
    ground = make_ground(FLEET)
    lay_counters(ground, "a")
    with ground.copied() as trial:
        ended = trial.run("boss", "a")
        assert ended.status == 0, trial.shown()
        ways = places(ended.said)
        ((parent, child),) = families(trial).values()
        check_family_is_done(trial, "a", parent, child)
        assert child is not None
    with ground.copied() as trial:
        assert is_killed(trial.run("boss", "a", ways[len(ways) // 3]))
        goings_on = places(trial.command(*WORK).said)

    random = Random(SEED)
    chosen = random.sample(ways, min(TRIALS, len(ways)))
    kills = 0
    for number, first in enumerate(chosen):
        second = random.choice(goings_on)
        print(f"seed {SEED}, trial {number} of {len(chosen)}: {first}, then {second}")
        with ground.copied() as trial:
            ended_ones = [trial.run("boss", "a", first), trial.command(*WORK, place=second)]
            assert all(one.status == 0 or is_killed(one) for one in ended_ones), trial.shown()
            kills += sum(map(is_killed, ended_ones))
            check_all_done(trial)
            if number % 4 == 0:
                check_doctor_leaves_nothing(trial)

    print(f"seed {SEED}: {kills} kills at {len(chosen)} of {len(ways)} places")
    assert kills >= KILLS


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_one_of_two_workers_killed_families_are_done_once_by_the_other(
    make_ground: MakeGround,
) -> None:
    ground = make_ground(LOOKED_FOR)
    lay_counters(ground, "a", "b")
    for tag in ("a", "b"):
        arguments = ("run", "boss", "-p", "go", "--input", f"tag={tag}", "--detach")
        assert ground.command(*arguments).status == 0, ground.shown()
    with ground.copied() as trial:
        count = len(trial.command(*WORK).said)
        check_all_done(trial)

    # Who takes which job is another each time: places are only counted.
    # One that the other leaves too little to do comes to no such place, and the trial is made once more.
    random = Random(SEED)
    kills = 0
    for number in itertools.count():
        if number >= PAIRS and kills >= PAIRS:
            break
        assert number < 10 * PAIRS, f"{kills} kills"
        where = [random.randint(1, count // 2) for _ in range(2)]
        print(f"seed {SEED}, trial {number}: killed at points {where} of {count}")
        with ground.copied() as trial:
            ended = [one for nth in where for one in work_beside(trial, {"nth": nth}, {})]
            assert all(one.status == 0 or is_killed(one) for one in ended), ended
            kills += sum(map(is_killed, ended))
            check_all_done(trial)
            check_doctor_leaves_nothing(trial)

    print(f"seed {SEED}: {kills} kills")
