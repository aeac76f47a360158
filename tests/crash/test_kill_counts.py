"""How many processes a run of the tests kills, and where: the sum is a promise."""

from __future__ import annotations

import re
from pathlib import Path

from crash import (
    test_chat_kills,
    test_end_kills,
    test_family_kills,
    test_index_kills,
    test_limit_kills,
    test_mirror_kills,
    test_native_kills,
    test_notify_kills,
    test_platform_kills,
    test_run_kills,
    test_whole_path,
)
from journal import test_journal_crashes
from soak import often
from state import test_state_kills

POINT = re.compile(r"""(?:probe|_reach)\(f?"([a-z]+\.[a-z_]+)""")
PROMISED = often(770, soak=10_000)

KILLS = {
    "journal, at every named point, lines of several lengths": (
        len(test_journal_crashes.PLACES) * len(test_journal_crashes.PADDINGS)
    ),
    "journal, in the middle of large writes": 2 * test_journal_crashes.MANY,
    "journal, under a follower": test_journal_crashes.LIVES,
    "state and ledger, at every named point": (
        len(test_state_kills.POINTS) * test_state_kills.TRIALS
    ),
    "state, stopped with the lock and killed by the next": len(test_state_kills.POINTS),
    "mirror, before and after every system call": test_mirror_kills.KILLS,
    "index, at every point of its transactions, and from outside": (
        test_index_kills.KILLS + test_index_kills.FROM_OUTSIDE
    ),
    "notifier, at every named point and those of the store": test_notify_kills.KILLS,
    "chat bots, at every named point": test_chat_kills.POINT_KILLS,
    "chat bots, at random moments": test_chat_kills.RANDOM_KILLS,
    "daemons with a bot on Slack or Discord, at random moments": 2 * test_platform_kills.KILLS,
    "whole path, at every named point": test_whole_path.BATCHES * test_whole_path.KILLS,
    "whole path, at system calls": test_whole_path.CALLS,
    "native jobs, at every named point": len(test_native_kills.BATCHES) * test_native_kills.KILLS,
    "native jobs, several at once": 2 * test_native_kills.TRIALS,
    "limited jobs, at named points": len(test_limit_kills.AGENTS) * test_limit_kills.KILLS,
    "jobs with a child, at named points": test_family_kills.KILLS,
    "jobs with a child, one worker of two": test_family_kills.PAIRS,
    "jobs whose provider fails, at named points": (len(test_end_kills.ENDS) * test_end_kills.KILLS),
    "workflow runs, at named points of every step": test_run_kills.KILLS,
    "workers told to cancel, and who tells them": test_end_kills.CANCELLED + test_end_kills.TOLD,
}
"""Each suite asserts of every trial that it was killed; these are the numbers of trials."""


def test_suites_together_kill_as_many_processes_as_promised() -> None:
    print(*(f"{count:5} {what}" for what, count in KILLS.items()), sep="\n")

    assert sum(KILLS.values()) >= PROMISED


def test_no_point_of_the_source_is_without_a_suite(repository: Path) -> None:
    source = [path.read_text() for path in (repository / "src").rglob("*.py")]
    points = {point for text in source for point in POINT.findall(text)}
    suites = [path.read_text() for path in (repository / "tests").rglob("*.py")]

    assert len(points) > 15
    assert [point for point in points if not any(f'"{point}' in text for text in suites)] == []


def test_suites_kill_at_every_point_of_every_write_path() -> None:
    points = {*test_journal_crashes.POINTS, *test_state_kills.POINTS}

    assert points >= test_whole_path.POINTS
