"""One bot at work: its connection, and the parts that stand between people and the fleet."""

from __future__ import annotations

import anyio

from nightherd.engine.chat.context import ChatContext
from nightherd.engine.chat.follow_turns import TurnFollowers
from nightherd.engine.chat.items import Items
from nightherd.engine.chat.outbox import Outbox
from nightherd.engine.chat.presses import press
from nightherd.engine.chat.receiver import BotReceiver
from nightherd.engine.chat.runs import ChatRuns
from nightherd.engine.chat.start_turns import TurnStarter


async def run_bot(context: ChatContext) -> None:
    """Run the bot until it is cancelled, or its connection ends by itself.

    What one part raises ends all of them. Everything is in the state, so the bot may be cancelled, killed and
    started again at any moment: no message is lost, and none is answered twice.
    """
    receiver, outbox = BotReceiver(context, press), Outbox(context)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receiver.run)
        tasks.start_soon(outbox.run)
        tasks.start_soon(Items(context).run)
        tasks.start_soon(ChatRuns(context).run)
        tasks.start_soon(TurnFollowers(context, outbox).run)
        tasks.start_soon(TurnStarter(context).run)
        await context.connection.run(receiver)
        tasks.cancel_scope.cancel()
