"""The follower: keeps the index up in a thread, rests, reports once, and continues after trouble."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

from index.test_indexed_outlines import from_journal, kept, new_job, say_more
from mirror.mirror_world import World
from nightherd.errors import StateFileError
from nightherd.index.follower import INTERVAL_S, RETRY_S, IndexFollower
from nightherd.index.indexer import EVENTS, Indexer
from nightherd.testing.state_values import job_id

PATIENCE_S = 60.0


class Rounds:
    """A `wait` that lets the test decide when the next round begins, and knows how long each wait was to be."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self._may_go = threading.Semaphore(1)
        self._done = threading.Semaphore(0)
        self._is_over = False

    def __call__(self, timeout: float) -> bool:
        self.waits.append(timeout)
        if 0 < timeout < INTERVAL_S:
            return self._is_over  # a rest inside of a round
        if len(self.waits) > 1:
            self._done.release()
        assert self._may_go.acquire(timeout=PATIENCE_S)
        return self._is_over

    def await_round(self) -> None:
        assert self._done.acquire(timeout=PATIENCE_S)

    def next(self) -> None:
        self._may_go.release()
        self.await_round()

    def finish(self) -> None:
        self._is_over = True
        self._may_go.release()


def following(world: World, body: Callable[[Rounds], None]) -> tuple[Rounds, list[str]]:
    rounds, said = Rounds(), list[str]()
    indexer = Indexer(world.root, world.feed, world.journals)
    follower = IndexFollower(indexer, world.clock, said.append, wait=rounds)
    follower.start()
    try:
        rounds.await_round()
        body(rounds)
    finally:
        rounds.finish()
        follower.stop()
    return rounds, said


def test_what_happens_is_in_the_index_after_the_next_round(world: World) -> None:
    new_job(world, 1)

    def body(rounds: Rounds) -> None:
        assert kept(world, 1) == from_journal(world, 1)
        say_more(world, 1, 10)
        new_job(world, 2, events=EVENTS + 10)
        rounds.next()
        assert kept(world, 1) == from_journal(world, 1)
        assert kept(world, 2) == from_journal(world, 2)

    rounds, said = following(world, body)
    assert rounds.waits.count(INTERVAL_S) == 2
    assert said == []


def test_trouble_is_reported_once_and_tried_again(world: World) -> None:
    new_job(world, 1)
    world.feed.damage = StateFileError("the ledger is damaged")

    def body(rounds: Rounds) -> None:
        rounds.next()
        world.feed.damage = None
        rounds.next()
        assert kept(world, 1) == from_journal(world, 1)

    rounds, said = following(world, body)
    assert said == ["index: the ledger is damaged; trying again until it works"]
    assert rounds.waits.count(RETRY_S) == 2


def test_a_deleted_journal_is_forgotten_by_the_hourly_sweep(world: World) -> None:
    new_job(world, 1)
    new_job(world, 2)

    def body(rounds: Rounds) -> None:
        world.journals.path(job_id(1)).unlink()
        rounds.next()
        assert kept(world, 1).last_seq > 0
        world.clock.advance(timedelta(hours=1, seconds=1))
        rounds.next()
        assert kept(world, 1).last_seq == 0
        assert kept(world, 2).last_seq > 0

    following(world, body)
