"""A bot killed at any moment: no message is lost, and none is answered twice."""

from __future__ import annotations

import json
import random
import shutil
import signal
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

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
RANDOM_KILLS = often(200, soak=2_000)
SIDE_BY_SIDE = 6


@pytest.fixture(scope="module")
def bot_server() -> Iterator[ForkServer]:
    """Has everything imported that a bot and its worker import on their way."""
    with ForkServer(patience_s=120) as server, TemporaryDirectory() as folder:
        ended = server.run(ANSWER, order_of(Path(folder), MESSAGES, is_first=True))
        assert (ended.status, ended.error) == (0, "")
        server.load(*json.loads(ended.said[-1]), "built_models")
        yield server


def order_of(folder: Path, messages: tuple[str, ...], **ending: object) -> dict[str, object]:
    return {"folder": str(folder), "messages": messages, **ending}


def run(
    server: ForkServer, folder: Path, messages: tuple[str, ...], **ending: float | str
) -> Ended:
    return server.run(ANSWER, order_of(folder, messages, **ending))


def check_answers(folder: Path, messages: tuple[str, ...], how: object) -> None:
    """Every message stands in exactly one answer, in order."""
    texts = [post["text"] for post in FilePlatform(folder).posts()]
    answers = [text for text in texts if text.startswith("turn ")]
    found = [word for text in answers for word in text.split() if word in messages]
    assert Counter(found) == Counter(messages), (how, texts)
    assert found == list(messages), (how, texts)


def test_a_bot_that_nobody_kills_answers_everything_once(
    bot_server: ForkServer, quick_path: Path
) -> None:
    ended = run(bot_server, quick_path, MESSAGES)
    assert (ended.status, ended.error) == (0, "")
    check_answers(quick_path, MESSAGES, "undisturbed")


@pytest.mark.parametrize("nth", range(1, TIMES + 1))
@pytest.mark.parametrize("point", [*POINTS, *SOMETIMES])
def test_a_bot_killed_at_a_point_answers_everything_once(
    point: str, nth: int, bot_server: ForkServer, quick_path: Path
) -> None:
    killed = run(bot_server, quick_path, MESSAGES, nth=nth, point=point)
    expected = -signal.SIGKILL
    assert killed.status == expected or (point in SOMETIMES and not killed.status), killed.error
    ended = run(bot_server, quick_path, MESSAGES)
    assert (ended.status, ended.error) == (0, "")
    check_answers(quick_path, MESSAGES, (point, nth))


def test_bots_killed_at_random_moments_answer_everything_once(
    bot_server: ForkServer, quick_path: Path
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    kills, longest_s = 0, undisturbed(bot_server, quick_path)
    while kills < RANDOM_KILLS:
        lives = [Life(quick_path / f"fleet-{n}", chance, longest_s) for n in range(SIDE_BY_SIDE)]
        for _ in range(chance.randint(1, 6)):
            for life, ended in run_all(bot_server, lives, are_killed=True):
                assert ended.status in (0, -signal.SIGKILL), (seed, ended.error)
                kills += ended.status != 0
                life.go_on()
        for life, ended in run_all(bot_server, lives, are_killed=False):
            assert (ended.status, ended.error) == (0, ""), (seed, life)
            check_answers(life.folder, life.messages, (seed, life))
            shutil.rmtree(life.folder)


@dataclass
class Life:
    """A fleet that is killed a few times."""

    folder: Path
    chance: random.Random
    longest_s: Mapping[bool, float]

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.messages: tuple[str, ...] = MESSAGES
        self.streams = self.chance.random() < 0.5

    def order(self, *, is_killed: bool) -> dict[str, object]:
        """Run it on, until it is killed or has answered everything."""
        after_s = self.chance.uniform(0.0, self.longest_s[self.streams]) if is_killed else None
        return order_of(self.folder, self.messages, after_s=after_s, streams=self.streams)

    def go_on(self) -> None:
        """Now and then somebody writes while the bot is down."""
        platform = FilePlatform(self.folder)
        if len(platform.said()) == len(self.messages) and self.chance.random() < 0.5:
            self.messages = (*self.messages, f"down{len(self.messages)}")
            platform.say(self.messages[-1])


def run_all(
    server: ForkServer, lives: Sequence[Life], *, are_killed: bool
) -> Iterator[tuple[Life, Ended]]:
    """Run them side by side: each of them mostly waits."""
    orders = [life.order(is_killed=are_killed) for life in lives]
    yield from zip(lives, server.run_all(ANSWER, orders), strict=True)


def undisturbed(server: ForkServer, folder: Path) -> Mapping[bool, float]:
    """How long runs take here that nobody kills, without and with an answer that is streamed."""
    lives = [Life(folder / f"first-{n}", random.Random(n), {}) for n in range(SIDE_BY_SIDE)]
    longest_s = {False: 0.0, True: 0.0}
    for number, life in enumerate(lives):
        life.streams = number % 2 == 1
    for life, ended in run_all(server, lives, are_killed=False):
        assert (ended.status, ended.error) == (0, "")
        check_answers(life.folder, life.messages, "undisturbed")
        longest_s[life.streams] = max(longest_s[life.streams], float(ended.said[0]))
        shutil.rmtree(life.folder)
    return longest_s
