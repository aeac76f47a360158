"""A whole bot whose agent waits for people: they answer where they talk to it."""

from __future__ import annotations

from pathlib import Path

import anyio
from msgspec.structs import replace

from engine.chat.bot_bench import LiveBot, live_bot, opened, until
from engine.chat.chat_bench import settings_of
from nightherd.engine.chat.presses import UNKNOWN
from nightherd.model.chat.message import MessageStatus
from nightherd.model.jobs.job import JobStatus
from nightherd.ports.chat import ChatPost
from nightherd.testing.contracts.open_chat import Posted
from nightherd.testing.local_chat import HERE

SETTINGS = settings_of(approvers={"U1": "ada"})
ASKING = """\
    approvals: [{tool: "Bash(touch:*)"}]
    script: [{tool: Bash, input: {command: touch pushed}}, {say: pushed}, {end: true}, {say: next}]
"""
QUESTION = """\
    questions: true
    script:
      - {tool: ask_person, input: {question: "Which branch?", options: [main, next]}}
      - {say: "It is decided."}
"""
LIMITED = """\
    limits: {turns: 2}
    script: [{say: one}, {say: two}, {say: three}]
"""


async def asked(live: LiveBot) -> Posted:
    """The message with buttons."""
    await until(lambda: any(one.buttons for one in live.posted()))
    return next(one for one in live.posted() if one.buttons)


async def said(live: LiveBot, words: str) -> None:
    """Wait until exactly one message of the bot says so."""
    await until(lambda: sum(words in text for text in live.texts()) == 1)


def test_a_press_lets_the_turn_go_on(tmp_path: Path) -> None:
    async def main() -> None:
        async with live_bot(tmp_path, ASKING, SETTINGS) as live:
            live.platform.say("push it")
            message = await asked(live)
            live.platform.press(message.id, "Approve", user="U2")
            live.platform.press(message.id, "Approve")
            texts = await live.answered()

            assert (tmp_path / "pushed").exists()
            assert "pushed" in texts
            await said(live, "Approved by ada (slack)")
            assert not any(one.buttons for one in live.posted())
            (item,) = live.context.reader.items_of_job(live.job().id)
            assert (item.decided_by, item.decided_via) == ("ada", "slack")
            told = live.connections[0].answers  # type: ignore[attr-defined]
            assert "only people who are named" in told[0]
            assert told[1] is None

    anyio.run(main)


def test_an_approval_survives_a_restart_of_the_bot(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path, ASKING, SETTINGS) as live, live.at_work():
            async with live.bot():
                live.platform.say("push it")
                await asked(live)
            async with live.bot():
                message = await asked(live)
                live.platform.press(message.id, "Reject", "not today")
                await live.answered()
                await said(live, "Rejected by ada")
            assert not (tmp_path / "pushed").exists()

    anyio.run(main)


def test_a_question_is_answered_by_a_button(tmp_path: Path) -> None:
    async def main() -> None:
        async with live_bot(tmp_path, QUESTION, SETTINGS) as live:
            live.platform.say("release it")
            message = await asked(live)
            assert message.buttons == ("main", "next", "Answer...", "Reject")
            live.platform.press(message.id, "next")
            texts = await live.answered()

            assert "It is decided." in texts
            await said(live, "Answered by ada")

    anyio.run(main)


def test_a_question_is_answered_by_a_message_to_the_bot_alone(tmp_path: Path) -> None:
    async def main() -> None:
        async with live_bot(tmp_path, QUESTION, SETTINGS) as live:
            live.platform.say("release it", is_direct=True)
            await asked(live)
            live.platform.say("the next one", is_direct=True)
            texts = await live.answered()

            assert "It is decided." in texts
            assert len(live.turns()) == 1
            statuses = [one.status for one in live.context.reader.list_chat_messages(live.here, 10)]
            assert statuses == [MessageStatus.DROPPED, MessageStatus.TAKEN]

    anyio.run(main)


def test_a_limit_is_raised_where_it_was_met(tmp_path: Path) -> None:
    async def main() -> None:
        async with live_bot(tmp_path, LIMITED, SETTINGS) as live:
            live.platform.say("count")
            message = await asked(live)
            assert live.job().status is JobStatus.SUSPENDED
            live.platform.press(message.id, "Raise to 4")
            texts = await live.answered()

            assert [text for text in texts if text in ("one", "two", "three")] == [
                "one",
                "two",
                "three",
            ]

    anyio.run(main)


def test_a_button_that_stands_below_another_message_answers_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with live_bot(tmp_path, ASKING, SETTINGS) as live:
            live.platform.say("push it")
            message = await asked(live)
            (approve, *_) = live.platform.messages[message.id].buttons
            # What an agent could post that got hold of the bot's token.
            lure = replace(approve, label="Show the picture")
            post = ChatPost(place=HERE, text="A picture!", nonce="n-1", buttons=(lure,))
            posted = await live.connections[0].post(post)
            live.platform.press(str(posted.message_id), "Show the picture")
            connection = live.connections[0]
            await until(lambda: connection.answers)  # type: ignore[attr-defined]

            (item,) = live.context.reader.items_of_job(live.job().id)
            assert item.is_pending
            assert connection.answers == [UNKNOWN]  # type: ignore[attr-defined]
            live.platform.press(message.id, "Approve")
            await live.answered()
            assert (tmp_path / "pushed").exists()

    anyio.run(main)
