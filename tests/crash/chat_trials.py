"""A bot with its worker in a process that is killed, on a platform that outlives every process: files."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio

from engine.chat.bot_bench import ECHO, fleet_in
from engine.chat.chat_bench import BOT, settings_of
from nightherd.engine.contexts import WorkerContext
from nightherd.engine.workers.worker import WorkerReports
from nightherd.model.chat.conversation import conversation_id
from nightherd.model.chat.incoming import IncomingFile, IncomingMessage
from nightherd.model.chat.platform import ChatPlace
from nightherd.model.chat.settings import ChannelMode, ChannelSettings
from nightherd.ports import Probe, no_probe
from nightherd.ports.chat import ChatPost, ChatReceiver, ChatUpload, ConnectionState, PostResult
from nightherd.testing.ending import Ending
from nightherd.testing.fork_process import Say
from nightherd.testing.local_chat import HERE
from nightherd.wiring.chat import bots_on
from nightherd.wiring.running import make_worker_loop, open_worker

ANSWER = f"{__name__}:answer"
SAID, POSTED = "said.jsonl", "posted.jsonl"
LOOK_S = 0.01
STREAMED = """\
    script:
      - {repeat: 1000, steps: [{say: "turn ${turn}: ${prompt}", over: 120ms}, {end: true}]}
"""
"""Answers word by word."""
SETTINGS = settings_of(
    channels=(ChannelSettings(id=HERE.channel_id, mode=ChannelMode.ALL, context_messages=0),)
)


class FilePlatform:
    """What people and the bot have said, a line each. It takes every post that it gets: nothing is sorted out here."""

    def __init__(self, folder: Path) -> None:
        self._said = folder / SAID
        self._posted = folder / POSTED

    def say(self, text: str) -> None:
        """A person writes."""
        _append(self._said, {"text": text, "at": time.time()})

    def said(self) -> list[IncomingMessage]:
        """Everything that people wrote, in order."""
        return [
            IncomingMessage(
                bot=BOT,
                place=HERE,
                message_id=f"{number}.000001",
                sent_at=datetime.fromtimestamp(line["at"], UTC),
                user_id="U1",
                user_name="Ada",
                text=line["text"],
            )
            for number, line in enumerate(_lines(self._said), start=1)
        ]

    def posts(self) -> list[dict[str, str]]:
        """What the bot has posted, in order, as it reads after every edit."""
        posts: dict[str, dict[str, str]] = {}
        for line in _lines(self._posted):
            posts[line["id"]] = {**posts.get(line["id"], {}), **line}
        return list(posts.values())

    def take(self, post: ChatPost) -> str:
        """Take a post of the bot."""
        id = f"p{len(self.posts()) + 1}"
        _append(self._posted, {"id": id, "text": post.text, "nonce": post.nonce})
        return id

    def change(self, id: str, text: str) -> None:
        """Take an edit."""
        _append(self._posted, {"id": id, "text": text})


class FileConnection:
    """A connection to it, on which people say what they have not said yet."""

    def __init__(self, platform: FilePlatform, messages: Sequence[str]) -> None:
        self._platform = platform
        self._messages = messages

    async def run(self, receiver: ChatReceiver) -> None:
        """Connect; say the rest, the last of it when there was an answer; deliver the latest twice."""
        platform = self._platform
        place = len(platform.said())
        await receiver.state(ConnectionState(is_connected=True, bot_name="bot", is_fresh=True))
        for message in platform.said()[-1:]:
            await receiver.message(message)
        while True:
            count = len(platform.said())
            if count < len(self._messages) and (
                count + 1 < len(self._messages) or platform.posts()
            ):
                platform.say(self._messages[count])
            for message in platform.said()[place:]:
                place += 1
                await receiver.message(message)
            await anyio.sleep(LOOK_S)

    async def history(
        self, place: ChatPlace, after: str | None, limit: int
    ) -> Sequence[IncomingMessage]:
        said = self._platform.said()
        if after is None:
            return said[-limit:]
        begin = next(n for n, one in enumerate(said, start=1) if one.message_id == after)
        return said[begin : begin + limit]

    async def post(self, post: ChatPost) -> PostResult:
        return PostResult(message_id=self._platform.take(post))

    async def edit(self, message_id: str, post: ChatPost) -> PostResult:
        self._platform.change(message_id, post.text)
        return PostResult(message_id=message_id)

    async def delete(self, place: ChatPlace, message_id: str) -> PostResult:
        return PostResult(error="nothing is deleted here", is_permanent=True)

    async def find_post(self, place: ChatPlace, nonce: str) -> str | None:
        return next((one["id"] for one in self._platform.posts() if one["nonce"] == nonce), None)

    async def upload(self, upload: ChatUpload) -> PostResult:
        return PostResult(error="no files are taken here", is_permanent=True)

    async def download(self, file: IncomingFile, target: str, limit: int) -> None:
        raise AssertionError("no files are sent here")

    async def react(
        self, place: ChatPlace, message_id: str, emoji: str, *, is_on: bool
    ) -> PostResult:
        return PostResult(message_id=message_id)

    async def typing(self, place: ChatPlace) -> None:
        """Nobody looks."""

    async def people(self, user_ids: Sequence[str]) -> Mapping[str, str]:
        return {}


def answer(order: dict[str, Any], say: Say) -> None:
    """Run bot and worker until everything is answered; killed at `point` for the `nth` time, or after `after_s`.

    Says how many seconds that took, and with `is_first` the names of all modules that it needed.
    """
    begun = time.monotonic()
    point = order.get("point")
    probe: Probe = no_probe if point is None else Ending(point, nth=order["nth"])
    if order.get("after_s") is not None:
        threading.Timer(order["after_s"], os.kill, (os.getpid(), signal.SIGKILL)).start()
    script = STREAMED if order.get("streams") else ECHO
    anyio.run(_answer, Path(order["folder"]), order["messages"], probe, script)
    say(str(time.monotonic() - begun))
    if order.get("is_first"):
        say(json.dumps([name for name in sys.modules if name != "__main__"]))
    os._exit(0)  # a timer that was not needed is not waited for


async def _answer(folder: Path, messages: Sequence[str], probe: Probe, script: str) -> None:
    fleet = fleet_in(folder, script, SETTINGS)
    platform, state_dir = FilePlatform(folder), folder / ".nightherd"
    async with open_worker(state_dir, fleet, {}) as context:
        worker = make_worker_loop(fleet, context, silent(), leaves_when_idle=False)
        connection = FileConnection(platform, messages)
        parts = {"wake_jobs": worker.wake, "probe": probe}
        bots = bots_on(connection, state_dir, fleet, context, _fail, **parts)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.work)
            tasks.start_soon(bots.run)
            while not is_answered(context, len(messages)):  # noqa: ASYNC110 (it looks at what is on record)
                await anyio.sleep(LOOK_S)
            tasks.cancel_scope.cancel()


def is_answered(context: WorkerContext, count: int) -> bool:
    """Whether so many messages were said, and everything is answered and sent."""
    reader = context.reader
    taken = reader.list_chat_messages(conversation_id(BOT, HERE), count + 1)
    return len(taken) == count and not (
        reader.waiting_conversations(BOT)
        or reader.answering_conversations(BOT)
        or reader.unsent_conversations(BOT)
    )


def _fail(text: str) -> None:
    raise AssertionError(text)


def silent() -> WorkerReports:
    """Reports that nobody reads."""

    def nothing(*_: Any) -> None:
        """Nobody watches."""

    return WorkerReports(
        on_start=nothing, on_event=nothing, on_end=nothing, on_rescue=nothing, on_trouble=nothing
    )


def _append(path: Path, line: Mapping[str, Any]) -> None:
    """Add a line at once: a kill leaves the whole of it, or nothing."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, json.dumps(line).encode() + b"\n")
    finally:
        os.close(descriptor)


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]
