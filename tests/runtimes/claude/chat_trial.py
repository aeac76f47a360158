"""A bot with a real `claude`, killed at a given place while it is told something; for `test_chat_claude_kills.py`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
import msgspec
from msgspec.structs import replace

from crash.chat_trials import LOOK_S, SETTINGS, FileConnection, FilePlatform, is_answered, silent
from nightherd.engine.chat.join_turn import TurnInput
from nightherd.model.agents.agent import Fleet
from nightherd.model.chat.message import ChatMessageId
from nightherd.ports.chat import ChatReceiver, ConnectionState
from nightherd.runtimes.claude.new_input import Message, NewInputs
from nightherd.wiring.chat import bots_on
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.running import make_worker_loop, open_worker
from runtimes.claude.approval_places import Order
from runtimes.claude.approval_trial import kill

MESSAGES = ("count the sheep", "the black ones too, please")
BEGAN = "began"
"""The file that is there once the agent is at work."""


class Telling(FileConnection):
    """People who say the second thing while the agent is at work on the first."""

    def __init__(self, platform: FilePlatform, work: Path) -> None:
        super().__init__(platform, MESSAGES)
        self._work = work

    async def run(self, receiver: ChatReceiver) -> None:
        """Connect, deliver the latest again, and say what was not said yet."""
        platform = self._platform
        await receiver.state(ConnectionState(is_connected=True, bot_name="bot", is_fresh=True))
        place = max(len(platform.said()) - 1, 0)
        while True:
            count = len(platform.said())
            if count == 0 or (count == 1 and (self._work / BEGAN).exists()):
                platform.say(MESSAGES[count])
            for message in platform.said()[place:]:
                place += 1
                await receiver.message(message)
            await anyio.sleep(LOOK_S)


def arm(order: Order) -> None:
    """Have this process reach its place."""
    join, after, is_read = TurnInput._join, NewInputs.after, NewInputs.is_read
    left = [order]

    def reach(place: str) -> None:
        if place == order.place and left:
            kill(left.pop())

    async def joined(self: TurnInput, ids: tuple[ChatMessageId, ...]) -> None:
        reach("recorded")
        await join(self, ids)
        reach("joined")

    async def told(self: NewInputs, message: bytes | Message) -> None:
        await after(self, message)
        if self.has_unread:
            reach("told")

    def read(self: NewInputs, said: bytes | Message) -> bool:
        found = is_read(self, said)
        if found:
            reach("read")
        return found

    setattr(TurnInput, "_join", joined)  # noqa: B010
    setattr(NewInputs, "after", told)  # noqa: B010
    setattr(NewInputs, "is_read", read)  # noqa: B010


def fleet_of(root: Path) -> Fleet:
    """The fleet of one agent with its bot."""
    fleet = load_fleet(root / "nightherd.yaml", environ=os.environ, cwd=root).fleet
    agent = replace(fleet.agents["coder"], bots=(SETTINGS,))
    return replace(fleet, agents={"coder": agent}, mirror=False)


async def answer(root: Path) -> None:
    """Run bot and worker until everything is answered."""
    fleet, state_dir = fleet_of(root), root / ".nightherd"
    connection = Telling(FilePlatform(root), root / "work")
    async with open_worker(state_dir, fleet, dict(os.environ)) as context:
        worker = make_worker_loop(fleet, context, silent(), leaves_when_idle=False)
        bots = bots_on(connection, state_dir, fleet, context, print, wake_jobs=worker.wake)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.work)
            tasks.start_soon(bots.run)
            while not is_answered(context, len(MESSAGES)):  # noqa: ASYNC110 (it looks at what is on record)
                await anyio.sleep(LOOK_S)
            tasks.cancel_scope.cancel()


if __name__ == "__main__":
    arm(msgspec.json.decode(sys.argv[1], type=Order))
    anyio.run(answer, Path.cwd())
