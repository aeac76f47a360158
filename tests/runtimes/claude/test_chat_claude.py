"""Conversations with the real `claude`: what is said during a turn reaches the agent at work, once, also after a kill."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio import to_thread
from msgspec.structs import replace

from engine.chat.bot_bench import LiveBot, until
from engine.chat.chat_bench import settings_of
from nightherd.model.chat.message import MessageStatus
from nightherd.model.chat.settings import SessionScope
from nightherd.model.jobs.job import JobStatus
from nightherd.model.journal.event import Event, messages_joined
from nightherd.testing.local_chat import LocalPlatform
from nightherd.testing.messages_api import Asked, MessagesApi
from nightherd.testing.messages_script import Call, Say
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.running import open_worker
from runtimes.claude.claude_stage import PATIENCE_S, ClaudeStage

FLEET = """\
agents:
  - name: coder
    runtime: {runtime}
    working_directory: {work}
    permission_mode: bypassPermissions
"""
SAID = "the black ones too, please"
QUICK = Call("Bash", {"command": "echo once >> times"})
SLOW = Call("Bash", {"command": "until [ -e go ]; do sleep 0.02; done"})


@asynccontextmanager
async def bot_of(
    stage: ClaudeStage, api: MessagesApi, scope: SessionScope = SessionScope.CHANNEL
) -> AsyncIterator[LiveBot]:
    """A bot whose agent is a real `claude`; its worker is not at work yet."""
    file = stage.root / "nightherd.yaml"
    file.write_text(FLEET.format(runtime=stage.runtime, work=stage.work))
    environment = stage.environment(api)
    fleet = load_fleet(file, environ=environment, cwd=stage.root).fleet
    agent = replace(fleet.agents["coder"], bots=(settings_of(session_scope=scope),))
    fleet = replace(fleet, agents={"coder": agent}, mirror=False)
    live = LiveBot(stage.root, fleet, LocalPlatform())
    async with open_worker(live.state_dir, live.fleet, environment) as context:
        live.context = context
        yield live


def copies(asked: Asked, text: str = SAID) -> int:
    return sum(one.count(text) for one in asked.texts)


def joined(live: LiveBot) -> list[Event]:
    """What is on record as said during the first turn."""
    journal = live.context.journals.read(live.turns()[0].job_id)
    return [event for event in journal if messages_joined(event)]


async def asked(api: MessagesApi, count: int) -> None:
    assert await to_thread.run_sync(api.wait_until_asked, count, PATIENCE_S)


@pytest.mark.either_runtime
def test_a_message_during_a_turn_reaches_the_agent_at_work(stage: ClaudeStage) -> None:
    script = (Say(calls=(SLOW,)), Say(calls=(QUICK,)), Say(text="all"), Say(text="all of them"))

    async def main(api: MessagesApi) -> None:
        async with bot_of(stage, api) as live, live.at_work(), live.bot():
            live.platform.say("count the sheep")
            await asked(api, 1)
            live.platform.say(SAID, user="U2")
            await until(lambda: any("1 message waiting" in text for text in live.texts()))
            (stage.work / "go").touch()
            texts = await live.answered()

            assert len(live.turns()) == 1
            (said,) = joined(live)
            messages = live.context.reader.chat_messages_of_job(live.turns()[0].job_id)
            assert [one.status for one in messages] == [MessageStatus.TAKEN] * 2
            assert messages_joined(said) == [messages[1].id]
            assert live.turns()[0].message_count == 2
            assert copies(api.asked[-1]) == 1
            assert '<said by="' in "".join(api.asked[-1].texts)
            assert not any("waiting" in text for text in texts)
            assert texts[-1].startswith("all")

    with MessagesApi(*script) as api:
        anyio.run(main, api)


@pytest.mark.either_runtime
def test_a_message_of_another_person_waits_where_each_has_a_session(stage: ClaudeStage) -> None:
    script = (Say(calls=(SLOW,)), Say(text="all"), Say(text="yours"))

    async def main(api: MessagesApi) -> None:
        async with bot_of(stage, api, SessionScope.USER) as live, live.at_work(), live.bot():
            live.platform.say("count the sheep")
            await asked(api, 1)
            live.platform.say(SAID, user="U2")
            await until(lambda: any("1 message waiting" in text for text in live.texts()))
            (stage.work / "go").touch()
            await live.answered(2)

            assert not joined(live)
            assert [copies(one) for one in api.asked] == [0, 0, 1]

    with MessagesApi(*script) as api:
        anyio.run(main, api)


@pytest.mark.either_runtime
def test_a_message_that_the_agent_had_not_read_is_given_to_it_by_the_next_worker(
    stage: ClaudeStage,
) -> None:
    forever = Call("Bash", {"command": "tail -f /dev/null"})
    script = (Say(calls=(SLOW,)), Say(calls=(forever,)), Say(text="all of them"))

    async def main(api: MessagesApi) -> None:
        async with bot_of(stage, api) as live:
            async with live.at_work(), live.bot():
                live.platform.say("count the sheep")
                await asked(api, 1)
                live.platform.say(SAID)
                await until(lambda: any("1 message waiting" in text for text in live.texts()))
                (stage.work / "go").touch()
                await until(lambda: joined(live))
                await asked(api, 2)
            assert live.job().status is not JobStatus.COMPLETED
            async with live.at_work(), live.bot():
                texts = await live.answered()

            assert len(live.turns()) == len(joined(live)) == 1
            assert copies(api.asked[-1]) == 1
            assert texts[-1] == "all of them"

    with MessagesApi(*script) as api:
        anyio.run(main, api)
