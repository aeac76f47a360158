"""A fleet with a bot on a loopback Slack or Discord: its processes are killed while people talk to it.

The platform outlives every process. What it shows in the end, and what is on record, has to agree.
"""

from __future__ import annotations

import random
import signal
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from nightherd.model.chat.conversation import conversation_id
from nightherd.model.chat.platform import ChatPlace, Platform, bot_id
from nightherd.model.inbox.item import InboxQuery
from nightherd.state.agreement import differences
from nightherd.testing.contracts.open_chat import Posted
from nightherd.testing.discord_api import DiscordApi
from nightherd.testing.fork_server import ForkServer, Trial
from nightherd.testing.slack_api import SlackApi
from nightherd.testing.slack_workspace import CHANNEL
from nightherd.wiring.stores import open_reader, system_clock

DAEMON = "daemon.daemon_trials:run"
PATIENCE_S = 90.0
LOOK_S = 0.02
LATE_S = 1.2
"""How much later a request may be taken than it was sent: by then the next process has looked for what it was about."""
FLEET = """\
lease: 5s
heartbeat: 500ms
max_restarts: 100
agents:
  - name: coder
    runtime: scripted
    permission_mode: bypassPermissions
"""
TALKING = """\
    script: [{repeat: 1000, steps: [{say: "You said: ${prompt}", over: 150ms}, {end: true}]}]
"""
ASKING = """\
    approvals: [{tool: Bash}]
    script:
      - repeat: 1000
        steps:
          - {tool: Bash, input: {command: "cat >> called <<'END'\\n${prompt}\\nEND"}}
          - {say: "You said: ${prompt}"}
          - {end: true}
"""


class Door(ABC):
    """A platform with two channels, and what people and trouble do there."""

    platform: Platform
    environment: Mapping[str, str]
    chat: str
    """The part of the fleet file that puts the agent there."""
    channels: Sequence[str]

    @property
    @abstractmethod
    def connects(self) -> int:
        """How often the bot has connected."""

    @abstractmethod
    def say(self, text: str, channel: str) -> str:
        """A person writes."""

    @abstractmethod
    def deliver_again(self, message_id: str) -> None:
        """The platform delivers a message a second time."""

    @abstractmethod
    def press(self, message_id: str, label: str) -> None:
        """A person presses a button."""

    @abstractmethod
    def posted(self, channel: str) -> Sequence[Posted]:
        """What the bot has posted."""

    @abstractmethod
    def troubles(self) -> Sequence[Callable[[], object]]:
        """Ways in which the platform breaks the connection, or loses what it would answer."""

    def take_late(self) -> bool:
        """Take the next message of the bot later, even if the bot is gone; whether the platform can show it twice then."""
        return False


class SlackDoor(Door):
    """Slack, by Socket Mode."""

    platform = Platform.SLACK

    def __init__(self, slack: SlackApi) -> None:
        self._slack = slack
        slack.redeliver_after(0.3)
        self.environment = slack.environment
        self.channels = (CHANNEL, "C0RELEASE")
        listed = ", ".join(
            f"{{id: {one}, mode: all, context_messages: 0}}" for one in self.channels
        )
        self.chat = (
            f"    chat: {{slack: {{channels: [{listed}], approvers: {{{slack.user_id}: ada}}}}}}\n"
        )

    @property
    def connects(self) -> int:
        return self._slack.opened

    def say(self, text: str, channel: str) -> str:
        return self._slack.say(text, channel=channel)

    def deliver_again(self, message_id: str) -> None:
        self._slack.deliver_again(message_id)

    def press(self, message_id: str, label: str) -> None:
        self._slack.press(message_id, label)

    def posted(self, channel: str) -> Sequence[Posted]:
        return self._slack.posted(channel)

    def troubles(self) -> Sequence[Callable[[], object]]:
        slack = self._slack
        return (
            slack.drop,
            slack.disconnect,
            lambda: slack.disconnect("warning"),
            slack.lose_answer,
        )

    def take_late(self) -> bool:
        self._slack.take_late(LATE_S)
        return True


class DiscordDoor(Door):
    """Discord, by its gateway."""

    platform = Platform.DISCORD

    def __init__(self, discord: DiscordApi) -> None:
        self._discord = discord
        self.environment = discord.environment
        self.channels = (discord.channel_id, discord.add_channel("release"))
        listed = ", ".join(
            f'{{id: "{one}", mode: all, context_messages: 0}}' for one in self.channels
        )
        guild = f'{{id: "{discord.guild_id}", channels: [{listed}]}}'
        people = f'{{"{discord.user_id}": ada}}'
        self.chat = f"    chat: {{discord: {{guilds: [{guild}], approvers: {people}}}}}\n"

    @property
    def connects(self) -> int:
        return self._discord.bot.identified

    def say(self, text: str, channel: str) -> str:
        return self._discord.say(text, channel=channel)

    def deliver_again(self, message_id: str) -> None:
        self._discord.deliver_again(message_id)

    def press(self, message_id: str, label: str) -> None:
        self._discord.press(message_id, label)

    def posted(self, channel: str) -> Sequence[Posted]:
        return self._discord.posted(channel)

    def troubles(self) -> Sequence[Callable[[], object]]:
        discord = self._discord
        return (
            discord.drop,
            discord.reconnect,
            lambda: discord.invalidate(is_resumable=True),
            discord.invalidate,
            discord.forget_sessions,
            discord.lose_answer,
        )


@contextmanager
def open_door(platform: Platform, folder: Path) -> Iterator[Door]:
    """A platform that is there while the context lasts."""
    if platform is Platform.SLACK:
        with SlackApi() as slack:
            yield SlackDoor(slack)
    else:
        with DiscordApi(folder / "discord") as discord:
            yield DiscordDoor(discord)


class KilledBot:
    """A fleet with one bot, what people have said to it, and how often it was killed."""

    def __init__(self, folder: Path, door: Door, server: ForkServer, chance: random.Random) -> None:
        folder.mkdir()
        self.folder, self.door = folder, door
        self.asks = chance.random() < 0.4
        self.said: dict[str, list[str]] = {channel: [] for channel in door.channels}
        self.late = 0
        """Messages of the bot that the platform may show twice."""
        self.history: list[str] = []
        """What happened, for whoever reads why a check failed."""
        self._server, self._chance = server, chance
        self._last = ""
        self._quiet_at = time.monotonic()
        script = ASKING if self.asks else TALKING
        (folder / "nightherd.yaml").write_text(FLEET + script + door.chat)

    def begin(self, *, with_worker: bool = False, **more: Any) -> list[Trial]:
        """Start the daemon, and perhaps a worker beside it. What was left of earlier ones is killed first."""
        order = {"folder": str(self.folder), "environ": dict(self.door.environment), **more}
        orders = [order, {"folder": str(self.folder), "is_worker": True}]
        return self._server.begin(DAEMON, *orders[: 1 + with_worker])

    def live_and_die(self) -> None:
        """Start it, talk to it, and kill it at a random moment."""
        chance, connects = self._chance, self.door.connects
        trials = self.begin(with_worker=chance.random() < 0.4)
        self._note("started", len(trials))
        if not self._last:
            # What is said before the first connection is on record is nobody's business.
            self._wait(self._has_connected, "the first connection")
        elif chance.random() < 0.75:
            self._wait(lambda: self.door.connects > connects, "the connection")
        else:
            time.sleep(chance.uniform(0.0, 0.5))
        for _ in range(chance.randint(1, 3)):
            chance.choice(self._events())()
            time.sleep(chance.choice((0.0, chance.uniform(0.0, 0.2))))
        time.sleep(chance.uniform(0.0, 0.5))
        if chance.random() < 0.3:
            self._press_all()  # at the very moment
        victims = chance.choice((trials, trials[:1], trials[-1:]))
        for one in chance.sample(victims, len(victims)):
            one.send(signal.SIGKILL)
        self._note("killed", [trials.index(one) for one in victims])
        if len(victims) < len(trials):
            time.sleep(chance.uniform(0.0, 0.3))  # the other one goes on for a while
        for one in trials:
            if one not in victims:
                one.send(signal.SIGKILL)
            assert one.wait().status == -signal.SIGKILL, one.wait().error
        if chance.random() < 0.3:
            self._say()  # while it is down

    def _has_connected(self) -> bool:
        with closing(open_reader(self.folder / ".nightherd")) as reader:
            return any(one.first_connected_at for one in reader.list_chat_bots())

    def _events(self) -> Sequence[Callable[[], None]]:
        events = [self._say, self._say, self._say, self._repeat, self._trouble]
        return [*events, self._press_all, self._press_all] if self.asks else events

    def _say(self) -> None:
        channel = self._chance.choice(self.door.channels)
        word = f"word{sum(map(len, self.said.values()))}."
        self._last = self.door.say(word, channel)
        self.said[channel].append(word)
        self._note("said", word)

    def _repeat(self) -> None:
        if self._last:
            self.door.deliver_again(self._last)
            self._note("delivered again")

    def _trouble(self) -> None:
        if self._chance.random() < 0.3 and self.door.take_late():
            self.late += 1
            self._quiet_at = time.monotonic() + 2 * LATE_S
            self._note("late")
            return
        troubles = self.door.troubles()
        number = self._chance.randrange(len(troubles))
        troubles[number]()
        self._note("trouble", number)

    def _press_all(self) -> None:
        for channel in self.door.channels:
            for post in self.door.posted(channel):
                if "Approve" in post.buttons:
                    self.door.press(post.id, "Approve")
                    self._note("pressed", post.id)

    def finish(self, **more: Any) -> int:
        """Have everything answered, and check what came of it; returns how many posts the platform has twice."""
        connects = self.door.connects
        (daemon,) = self.begin(**more)
        self._wait(lambda: self.door.connects > connects, "the last connection")
        for _ in self.door.channels:
            self._say()
        deadline = time.monotonic() + PATIENCE_S
        pressed_at = 0.0
        while not (time.monotonic() > self._quiet_at and self._is_quiet()):
            assert time.monotonic() < deadline, self.told()
            if time.monotonic() - pressed_at > 0.4:
                self._press_all()
                pressed_at = time.monotonic()
            time.sleep(LOOK_S)
        daemon.send(signal.SIGTERM)
        ended = daemon.wait()
        assert (ended.status, ended.said[-1]) == (0, "done"), (ended, self.told())
        return self._check()

    def _is_quiet(self) -> bool:
        if not all(self._answers(channel, word) for channel, word in self._words()):
            return False
        if any(post.buttons for channel in self.said for post in self.door.posted(channel)):
            return False
        bot = bot_id(self.door.platform, "coder")
        with closing(open_reader(self.folder / ".nightherd")) as reader:
            return not (
                reader.waiting_conversations(bot)
                or reader.answering_conversations(bot)
                or reader.unsent_conversations(bot)
            )

    def _check(self) -> int:
        told = self.told()
        twice = sum(self._check_channel(channel) for channel in self.door.channels)
        assert twice <= self.late, told
        called = self.folder / "called"
        text = called.read_text() if called.exists() else ""
        calls = Counter(words_of(text, [word for _, word in self._words()]))
        assert set(calls.values()) <= {1}, (calls, told)
        assert bool(calls) is self.asks, told
        assert differences(self.folder / ".nightherd", at=system_clock().now()) == [], told
        return twice

    def _check_channel(self, channel: str) -> int:
        """Each message is in one turn and in one answer, in order; returns how many posts stand there twice."""
        told, said = self.told(), self.said[channel]
        bot = bot_id(self.door.platform, "coder")
        id = conversation_id(bot, ChatPlace(channel_id=channel))
        with closing(open_reader(self.folder / ".nightherd")) as reader:
            turns = reader.list_chat_turns(id, 10_000)[::-1]
            texts = [reader.find_texts(turn.job_id) for turn in turns]
            ids = [post.message_id for post in reader.list_posts(id, 10_000)]
            pending = reader.list_items(InboxQuery())
        asked = [word for text in texts if text is not None for word in words_of(text.prompt, said)]
        assert asked == said, ("turns", asked, told)
        assert not pending, told
        posted = self.door.posted(channel)
        known = Counter(one for one in ids if one is not None)
        assert set(known.values()) <= {1}, ("one row each", known, told)
        extra = [post for post in posted if post.id not in known]
        assert [post for post in posted if post.buttons and post not in extra] == [], told
        shown = [post for post in posted if post not in extra and is_answer(post)]
        answered = [word for post in shown for word in words_of(post.text, said)]
        assert answered == said, ("answers", answered, told)
        return len(extra)

    def _answers(self, channel: str, word: str) -> bool:
        return any(is_answer(post) and word in post.text for post in self.door.posted(channel))

    def _words(self) -> Iterator[tuple[str, str]]:
        for channel, words in self.said.items():
            yield from ((channel, word) for word in words)

    def _wait(self, is_so: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < deadline, (f"waited in vain: {what}", self.told())
            time.sleep(LOOK_S / 4)

    def _note(self, *what: object) -> None:
        self.history.append(f"{time.monotonic():.3f} {' '.join(map(str, what))}")

    def told(self) -> str:
        """What happened, and what the platform shows."""
        shown = [
            f"{channel}: {post}" for channel in self.said for post in self.door.posted(channel)
        ]
        return "\n".join(("", *self.history, *shown))


def is_answer(post: Posted) -> bool:
    return post.text.startswith("You said:")


def words_of(text: str, words: Sequence[str]) -> list[str]:
    """Those of the words that are in the text, as often as they are, in its order."""
    return [one for one in text.split() if one in words]
