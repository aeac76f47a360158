"""Daemons killed at random while schedules fire and jobs run: every slot has one outcome, every job ends."""

from __future__ import annotations

import random
import re
import signal
from collections.abc import Callable
from functools import partial

import pytest

from daemon.pasture import Pasture, wait_for
from nightherd.testing.fork_server import Trial
from soak import often

KILLS = often(8, soak=50)
"""In each of two runs."""

MakePasture = Callable[..., Pasture]


@pytest.mark.slow
@pytest.mark.timeout(often(600, soak=3_600))
@pytest.mark.parametrize("seed", [1, 2])
def test_every_slot_has_one_outcome_however_often_the_daemon_is_killed(
    make_pasture: MakePasture, seed: int
) -> None:
    pasture, dice = make_pasture(), random.Random(seed)
    for _ in range(KILLS):
        (trial,) = pasture.begin()
        word = dice.choice(["fired", "started", "ended"])
        count = dice.randint(1, 3)
        # Now and then another lease, which another worker of the same daemon begins with.
        lease = f"lease: {dice.choice([5, 5, 6, 7])}s"
        pasture.rewrite(re.sub(r"lease: \d+s", lease, pasture.file.read_text()))
        pasture.wait_until_said(trial, word, count)
        trial.send(signal.SIGKILL)
        assert trial.wait().status == -signal.SIGKILL

    last = pasture.daemon()
    pasture.wait_until_said(last, "fired", 1)
    last.send(signal.SIGTERM)
    assert last.wait().said[-1] == "done"
    finish(pasture)

    pasture.check()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_two_daemons_that_start_together_are_one(make_pasture: MakePasture) -> None:
    pasture = make_pasture()
    for _ in range(3):
        trials = pasture.begin(3)
        wait_for(partial(is_refused, trials), "two refusals")
        (owner,) = set(trials) - set(refused(trials))
        losers = [one.wait() for one in trials if one is not owner]
        pasture.wait_until_said(owner, "ended", 2)
        owner.send(signal.SIGTERM)
        assert owner.wait().said[-1] == "done"
        for loser in losers:
            assert loser.said[0].startswith("refused 5 ")
            assert f"process {owner.pid}" in loser.said[0]
    finish(pasture)

    pasture.check()


def is_refused(trials: list[Trial]) -> bool:
    return len(refused(trials)) == len(trials) - 1


def refused(trials: list[Trial]) -> list[Trial]:
    return [one for one in trials if any(line.startswith("refused") for line in one.said())]


def finish(pasture: Pasture) -> None:
    """What still waits is run by one more daemon that fires nothing: its schedules are all disabled."""
    text = pasture.file.read_text()
    pasture.rewrite(text.replace("jitter: 900ms", "enabled: false, jitter: 900ms"))
    daemon = pasture.daemon()
    wait_for(lambda: all(job.is_terminal for job in pasture.jobs()), "the end of every job")
    daemon.send(signal.SIGTERM)
    assert daemon.wait().said[-1] == "done"
    pasture.rewrite(text)
