"""A whole bot: what people say becomes one turn at a time, and each message is answered once."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import anyio
from msgspec.structs import replace

from engine.chat.bot_bench import LiveBot, live_bot, opened, until
from engine.chat.chat_bench import THERE, settings_of
from nightherd.engine.chat.context import nothing_to_rescue
from nightherd.engine.operations.new_job import JobDraft, record_job
from nightherd.engine.operations.perform import perform
from nightherd.engine.operations.requests import Answer, Cancel
from nightherd.model.change import Applied, RegisterWorker
from nightherd.model.chat.settings import ChannelMode, ChannelSettings, SessionScope
from nightherd.model.inbox.item import Verdict
from nightherd.model.jobs.changes import StartExecution
from nightherd.model.jobs.job import JobStatus
from nightherd.model.sessions.session import SessionMode, SessionTerms
from nightherd.testing.local_chat import HERE
from nightherd.testing.state_values import worker

SLOW = """\
    script:
      - {repeat: 1000, steps: [{tool: Bash, input: {command: "until [ -e go ]; do sleep 0.02; done"}}, {say: "turn ${turn}: ${prompt}"}, {end: true}]}
"""
"""Answers only once there is a file `go`."""
ASKING = """\
    approvals: [{tool: "Bash(touch:*)"}]
    script: [{tool: Bash, input: {command: touch pushed}}, {say: pushed}, {end: true}, {say: next}]
"""


def test_a_message_becomes_a_job_and_its_answer_is_posted_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with live_bot(tmp_path) as live:
            live.platform.say("hello")
            texts = await live.answered()

            job = live.job()
            assert len(texts) == 1
            assert texts[0].startswith("turn 1: ")
            assert "hello" in texts[0]
            assert (job.trigger_type.value, job.status) == ("slack", JobStatus.COMPLETED)
            assert [turn.status.value for turn in live.turns()] == ["answered"]

    anyio.run(main)


def test_messages_written_in_a_row_are_answered_in_one_turn(tmp_path: Path) -> None:
    settings = settings_of(batch_window=timedelta(seconds=0.5))

    async def main() -> None:
        async with live_bot(tmp_path, settings=settings) as live:
            live.platform.say("one")
            live.platform.say("two", user="U2")
            texts = await live.answered()

            assert len(live.turns()) == len(texts) == 1
            assert live.turns()[0].message_count == 2
            assert live.prompt().index("one") < live.prompt().index("two")
            assert 'by="U2"' in live.prompt()

    anyio.run(main)


def test_a_message_during_a_turn_waits_visibly_and_is_the_next_turn(tmp_path: Path) -> None:
    async def main() -> None:
        async with live_bot(tmp_path, SLOW) as live:
            live.platform.say("one")
            await until(lambda: live.turns() and live.job().status is JobStatus.RUNNING)
            live.platform.say("two")
            await until(lambda: any("1 message waiting" in text for text in live.texts()))
            live.platform.say("three")
            await until(lambda: any("2 messages waiting" in text for text in live.texts()))
            assert len(live.turns()) == 1
            (tmp_path / "go").touch()
            texts = await live.answered(2)

            answers = [text for text in texts if text.startswith("turn ")]
            assert len(live.turns()) == len(answers) == 2
            assert "two" in live.prompt(1)
            assert "three" in live.prompt(1)
            assert not any("waiting" in text for text in texts)
            assert live.job(0).finished_at <= live.job(1).started_at  # type: ignore[operator]

    anyio.run(main)


def test_a_notice_whose_arrival_was_not_heard_of_does_not_stay(tmp_path: Path) -> None:
    async def main() -> None:
        async with live_bot(tmp_path, SLOW) as live:
            live.platform.say("one")
            await until(lambda: live.turns() and live.job().status is JobStatus.RUNNING)
            live.platform.lose_answer()
            live.platform.say("two")
            await until(lambda: any("1 message waiting" in text for text in live.texts()))
            (tmp_path / "go").touch()
            texts = await live.answered(2)

            assert not any("waiting" in text for text in texts)

    anyio.run(main)


def test_turns_of_a_channel_continue_one_session_and_other_channels_have_their_own(
    tmp_path: Path,
) -> None:
    channels = tuple(
        ChannelSettings(id=one.channel_id, mode=ChannelMode.ALL) for one in (HERE, THERE)
    )

    async def main() -> None:
        async with live_bot(tmp_path, settings=settings_of(channels=channels)) as live:
            live.platform.say("one")
            await live.answered()
            live.platform.say("two", user="U2")
            live.platform.say("elsewhere", place=THERE)
            await live.answered(2)
            await live.answered(1, THERE)

            first, second = live.turns()
            (other,) = live.turns(THERE)
            assert first.agent_session_id == second.agent_session_id != other.agent_session_id
            assert [text.split(":")[0] for text in live.texts()] == ["turn 1", "turn 2"]
            assert [text.split(":")[0] for text in live.texts(THERE)] == ["turn 1"]

    anyio.run(main)


def test_each_person_has_a_session_of_their_own_where_the_settings_say_so(tmp_path: Path) -> None:
    settings = settings_of(session_scope=SessionScope.USER, batch_window=timedelta(seconds=0.3))

    async def main() -> None:
        async with live_bot(tmp_path, settings=settings) as live:
            live.platform.say("one")
            live.platform.say("two", user="U2")
            live.platform.say("three")
            await live.answered(3)

            first, second, third = live.turns()
            assert first.agent_session_id == third.agent_session_id != second.agent_session_id
            assert "two" not in live.prompt(0)
            assert "<said" not in live.prompt(0)

    anyio.run(main)


def test_reset_ends_the_session_of_the_person_who_asks_and_of_nobody_else(tmp_path: Path) -> None:
    settings = settings_of(session_scope=SessionScope.USER)

    async def main() -> None:
        async with live_bot(tmp_path, settings=settings) as live:
            live.platform.say("one")
            await live.answered(1)
            live.platform.say("two", user="U2")
            await live.answered(2)
            live.platform.say("!session")
            await until(lambda: any(session_of(live, 0) in text for text in live.texts()))
            live.platform.say("!reset")
            await until(lambda: any("begins a new session" in text for text in live.texts()))
            live.platform.say("three")
            live.platform.say("four", user="U2")
            await until(lambda: len(live.turns()) == 4)

            first, other, third, again = live.turns()
            assert (
                len({first.agent_session_id, other.agent_session_id, third.agent_session_id}) == 3
            )
            assert other.agent_session_id == again.agent_session_id

    anyio.run(main)


def session_of(live: LiveBot, turn: int) -> str:
    """The session of a turn's job."""
    session = live.turns()[turn].agent_session_id
    assert session is not None
    return session


def test_a_bot_that_begins_again_in_the_middle_of_a_turn_answers_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path, SLOW) as live, live.at_work():
            async with live.bot():
                live.platform.say("one")
                await until(lambda: live.turns() and live.job().status is JobStatus.RUNNING)
            (tmp_path / "go").touch()
            await until(lambda: live.job().status is JobStatus.COMPLETED)
            assert [turn.status.value for turn in live.turns()] == ["running"]
            live.platform.say("written meanwhile")
            async with live.bot():
                texts = await live.answered(2)

            answers = [text for text in texts if text.startswith("turn ")]
            assert [text.split(":")[0] for text in answers] == ["turn 2", "turn 4"]
            assert "written meanwhile" in answers[1]

    anyio.run(main)


def test_a_turn_that_needs_approval_says_so_and_later_messages_wait_for_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with live_bot(tmp_path, ASKING) as live:
            live.platform.say("push it")
            await until(lambda: any("I wait for a person" in text for text in live.texts()))
            assert live.job().status is JobStatus.SUSPENDED
            live.platform.say("and then?")
            await until(lambda: any("1 message waiting" in text for text in live.texts()))
            (item,) = live.context.reader.items_of_job(live.job().id)
            answer = Answer(item_id=item.id, verdict=Verdict.APPROVE, by="Ada", via="library")
            await perform(answer, live.context, rescue=nothing_to_rescue)
            texts = await live.answered(2)

            assert (tmp_path / "pushed").exists()
            assert sum("I wait for a person" in text for text in texts) == 1
            assert [text for text in texts if text in ("pushed", "next")] == ["pushed", "next"]

    anyio.run(main)


def test_a_cancelled_turn_says_so_and_frees_its_conversation(tmp_path: Path) -> None:
    async def main() -> None:
        async with live_bot(tmp_path, SLOW) as live:
            live.platform.say("one")
            await until(lambda: live.turns() and live.job().status is JobStatus.RUNNING)

            await perform(Cancel(job_id=live.job().id), live.context, rescue=nothing_to_rescue)
            texts = await live.answered()
            assert texts == ["Cancelled."]
            assert live.turns()[0].status.value == "cancelled"

            (tmp_path / "go").touch()
            live.platform.say("two")
            assert (await live.answered(2))[-1].startswith("turn ")

    anyio.run(main)


def test_messages_wait_while_the_agent_is_not_accepted_and_people_hear_why(tmp_path: Path) -> None:
    async def main() -> None:
        async with live_bot(tmp_path) as live:
            live.bots.adopt(live.fleet, replace(live.context, agents={}), {})
            live.platform.say("one")
            await until(lambda: any("I cannot begin now" in text for text in live.texts()))
            assert live.turns() == []
            live.bots.adopt(live.fleet, live.context, {})
            texts = await live.answered()

            assert len(texts) == 2
            assert "a person has to accept the agent" in texts[0]
            assert "one" in texts[1]

    anyio.run(main)


def test_a_turn_whose_worker_is_gone_says_so_and_is_answered_when_there_is_one(
    tmp_path: Path,
) -> None:
    gone = replace(worker("worker-gone0001"), pid=1, deadline=0.0)

    async def main() -> None:
        async with opened(tmp_path) as live:
            live.worker = live.make_worker()
            async with live.bot():
                live.platform.say("hello")
                await until(live.turns)
                at = live.context.clock.now()
                start = StartExecution(job_id=live.job().id, worker=gone.id, at=at)
                for change in (RegisterWorker(worker=gone), start):
                    (answer,) = await live.context.state.apply([change])
                    assert isinstance(answer, Applied), answer
                await until(lambda: any("My worker is gone" in text for text in live.texts()))
                async with live.at_work():
                    texts = await live.answered()

            assert sum("My worker is gone" in text for text in texts) == 1
            assert texts[-1].startswith("turn 1: ")

    anyio.run(main)


def test_what_was_asked_last_is_asked_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with live_bot(tmp_path) as live:
            live.platform.say("water the plants")
            await live.answered()
            live.platform.say("!retry")
            texts = await live.answered(2)

            assert [text.split(":")[0] for text in texts] == ["turn 1", "turn 2"]
            assert "water the plants" in texts[1]

    anyio.run(main)


def test_a_bot_that_was_given_a_session_continues_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as live, live.at_work():
            agent = live.fleet.agents["coder"]
            draft = JobDraft(agent=agent, prompt="before", channel_id="elsewhere")
            terms = SessionTerms(mode=SessionMode.PER_CHANNEL)
            job = (await record_job(replace(draft, session_terms=terms), live.context)).job
            live.session_id = job.session_id
            async with live.bot():
                live.platform.say("one")
                await live.answered()
                live.platform.say("two")
                texts = await live.answered(2)

            assert [text.split(":")[0] for text in texts] == ["turn 2", "turn 3"]
            assert {turn.agent_session_id for turn in live.turns()} == {job.session_id}

    anyio.run(main)
