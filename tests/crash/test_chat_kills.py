"""A bot killed at any moment: no message is lost, and none is answered twice."""

from __future__ import annotations

import random
import shutil
import signal
from collections import Counter
from pathlib import Path

import pytest

from crash.chat_trials import ANSWER, FilePlatform
from nightherd.testing.fork_server import Ended, ForkServer
from soak import often

MESSAGES = ("alpha", "beta", "gamma")
POINTS = (
    "chat.before_record",
    "chat.after_record",
    "chat.before_turn",
    "chat.after_turn",
    "chat.before_finish",
    "chat.after_finish",
    "chat.before_send",
    "chat.after_send",
    "chat.after_settle",
)
"""Every run comes there, at least twice."""
SOMETIMES = ("chat.before_note", "chat.after_note")
"""Where a run comes that sees an answer before its job has ended."""
TIMES = 2
POINT_KILLS = len(POINTS) * TIMES
RANDOM_KILLS = often(60, soak=2_000)
LONGEST_RUN_S = 1.5


def run(
    server: ForkServer, folder: Path, messages: tuple[str, ...], **ending: float | str
) -> Ended:
    return server.run(ANSWER, {"folder": str(folder), "messages": messages, **ending})


def check_answers(folder: Path, messages: tuple[str, ...], how: object) -> None:
    """Every message stands in exactly one answer, in order."""
    texts = [post["text"] for post in FilePlatform(folder).posts()]
    answers = [text for text in texts if text.startswith("turn ")]
    found = [word for text in answers for word in text.split() if word in messages]
    assert Counter(found) == Counter(messages), (how, texts)
    assert found == list(messages), (how, texts)


def test_a_bot_that_nobody_kills_answers_everything_once(
    fork_server: ForkServer, quick_path: Path
) -> None:
    ended = run(fork_server, quick_path, MESSAGES)
    assert (ended.status, ended.error) == (0, "")
    check_answers(quick_path, MESSAGES, "undisturbed")


@pytest.mark.parametrize("nth", range(1, TIMES + 1))
@pytest.mark.parametrize("point", [*POINTS, *SOMETIMES])
def test_a_bot_killed_at_a_point_answers_everything_once(
    point: str, nth: int, fork_server: ForkServer, quick_path: Path
) -> None:
    killed = run(fork_server, quick_path, MESSAGES, nth=nth, point=point)
    expected = -signal.SIGKILL
    assert killed.status == expected or (point in SOMETIMES and not killed.status), killed.error
    ended = run(fork_server, quick_path, MESSAGES)
    assert (ended.status, ended.error) == (0, "")
    check_answers(quick_path, MESSAGES, (point, nth))


def test_a_bot_killed_at_random_moments_answers_everything_once(
    fork_server: ForkServer, quick_path: Path
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    kills = 0
    while kills < RANDOM_KILLS:
        folder = quick_path / "fleet"
        folder.mkdir()
        messages: tuple[str, ...] = MESSAGES
        moments, streams = list[float](), chance.random() < 0.5
        for number in range(chance.randint(1, 4)):
            moments.append(chance.uniform(0.0, LONGEST_RUN_S))
            killed = run(fork_server, folder, messages, after_s=moments[-1], streams=streams)
            assert killed.status in (0, -signal.SIGKILL), (seed, killed.error)
            kills += killed.status != 0
            if len(FilePlatform(folder).said()) == len(messages) and chance.random() < 0.5:
                # Somebody writes while the bot is down.
                messages = (*messages, f"down{number}")
                FilePlatform(folder).say(messages[-1])
        ended = run(fork_server, folder, messages, streams=streams)
        assert (ended.status, ended.error) == (0, ""), (seed, moments)
        check_answers(folder, messages, (seed, streams, moments))
        shutil.rmtree(folder)
