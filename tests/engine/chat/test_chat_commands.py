"""Commands: what people can tell the bot itself, on real rows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.bench import AGENT
from engine.chat.chat_bench import WORKER, ChatBench, chat_bench, settings_of
from nightherd.engine.chat.chat_commands import CommandResult, carry_out
from nightherd.engine.chat.intake import Intake
from nightherd.model.chat.changes import FinishTurn, ForgetChat
from nightherd.model.chat.commands import COMMANDS, resolve_command
from nightherd.model.chat.incoming import ChatCommand, IncomingMessage
from nightherd.model.chat.message import MessageStatus, TurnStatus
from nightherd.model.chat.platform import Platform
from nightherd.model.chat.settings import Skill
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import JobStatus
from nightherd.testing.local_chat import HERE
from nightherd.testing.state_values import settle


async def given(bench: ChatBench, name: str, argument: str = "") -> CommandResult:
    """What comes of Ada's command in C1."""
    spoken = ChatCommand(
        bot=bench.context.settings.bot,
        place=HERE,
        user_id="U1",
        user_name="Ada",
        name=name,
        command_id="K1",
    )
    return await carry_out(resolve_command(name, argument), spoken, bench.context)


async def said(bench: ChatBench, *texts: str) -> None:
    """People write in C1."""
    intake = Intake(bench.context)
    for text in texts:
        bench.platform.say(text)
        event = bench.platform.events[-1]
        assert isinstance(event, IncomingMessage)
        await intake.take(event)


@asynccontextmanager
async def answered(folder: Path) -> AsyncIterator[tuple[ChatBench, JobId]]:
    """One turn about two messages is over."""
    async with chat_bench(folder) as bench:
        await said(bench, "fix it", "and test it")
        job = await bench.start_turn(runs=True)
        await bench.apply(settle(1))
        at = bench.clock.now()
        await bench.apply(FinishTurn(job_id=job, status=TurnStatus.ANSWERED, at=at))
        yield bench, job


@pytest.mark.parametrize("name", sorted({one.name for one in COMMANDS}))
async def test_every_command_answers_before_anything_was_said(tmp_path: Path, name: str) -> None:
    async with chat_bench(tmp_path) as bench:
        result = await given(bench, name, "review" if name == "skill" else "")
        assert result.text
        assert (result.ask is not None) is (name == "skill")
        assert "There is no command" not in result.text


async def test_help_names_every_command_as_the_platform_writes_it(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench:
        text = (await given(bench, "help")).text
        assert "`!status`" in text
        assert "`/nightherd status`" in text
    terminal = settings_of(platform=Platform.TERMINAL)
    async with chat_bench(tmp_path / "terminal", terminal) as bench:
        text = (await given(bench, "help")).text
        assert "`/status`" in text
        assert "/nightherd" not in text
        assert "There is no command `dance`" in (await given(bench, "dance")).text


async def test_status_shows_the_turn_and_the_queue(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench:
        await said(bench, "fix it")
        assert "1 message waiting" in (await given(bench, "status")).text
        job = await bench.start_turn()
        assert f"`{job}` waits for a free worker" in (await given(bench, "status")).text
        await said(bench, "also", "this")
        text = (await given(bench, "status")).text
        assert "2 messages waiting" in text
        assert "1. from Ada" in text


async def test_status_says_that_the_agent_is_withheld(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench:
        bench.context.fleet = replace(bench.context.fleet, agents={})
        assert "has to accept the agent" in (await given(bench, "status")).text
        assert "has to accept the agent" in (await given(bench, "tools")).text


async def test_stop_cancels_the_turn_and_nothing_else(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench:
        assert (await given(bench, "stop")).text == "Nothing is running here."
        await said(bench, "fix it")
        job = await bench.start_turn()
        await said(bench, "next")
        result = await given(bench, "cancel")
        assert result.text.startswith(f"Stopping `{job}`. What waits is answered next")
        found = bench.reader.find_job(job)
        assert found is not None
        assert found.status is JobStatus.CANCELLED
        assert bench.messages()[-1].status is MessageStatus.WAITING
        assert (await given(bench, "stop")).text == "It has ended already."


async def test_stop_asks_the_worker_of_a_running_turn(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench:
        await said(bench, "fix it")
        job = await bench.start_turn(runs=True)
        await given(bench, "stop")
        found = bench.reader.find_job(job)
        assert found is not None
        assert (found.status, found.worker) == (JobStatus.RUNNING, WORKER)
        assert found.cancel_requested_at is not None
        assert f"`{job}` is being stopped" in (await given(bench, "status")).text


async def test_reset_drops_what_waits_and_begins_anew(tmp_path: Path) -> None:
    async with answered(tmp_path) as (bench, _):
        await said(bench, "never mind")
        text = (await given(bench, "new")).text
        assert text == "The next message begins a new session. 1 message dropped."
        last = bench.messages()[-1]
        assert (last.status, last.reason) == (MessageStatus.DROPPED, "Ada began a new session")
        conversation = bench.reader.find_conversation(bench.here)
        assert conversation is not None
        assert conversation.session_id is None
        assert not bench.reader.active_messaging_sessions(bench.here)


async def test_reset_leaves_a_running_turn_alone(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench:
        await said(bench, "fix it")
        await bench.start_turn()
        await said(bench, "and that")
        assert "Stop it first with `!stop`" in (await given(bench, "reset")).text
        assert bench.messages()[-1].status is MessageStatus.WAITING


async def test_retry_asks_the_messages_of_the_last_turn_again(tmp_path: Path) -> None:
    async with answered(tmp_path) as (bench, _):
        ids = [one.id for one in bench.messages()]
        result = await given(bench, "retry")
        assert (result.ask, result.details) == ("", {"repeats": ids})
        await said(bench, "!retry")
        await bench.start_turn(2)
        await bench.apply(
            FinishTurn(
                job_id=bench.messages()[-1].job_id or JobId(""),
                status=TurnStatus.FAILED,
                at=bench.clock.now(),
            )
        )
        again = await given(bench, "retry")
        assert again.details == {"repeats": ids}


async def test_retry_is_refused_while_a_turn_runs_and_once_the_texts_are_gone(
    tmp_path: Path,
) -> None:
    async with answered(tmp_path) as (bench, _):
        await said(bench, "more")
        last = await bench.start_turn(2)
        assert (await given(bench, "retry")).ask is None
        at = bench.clock.now()
        await bench.apply(FinishTurn(job_id=last, status=TurnStatus.CANCELLED, at=at))
        gone = tuple(one.id for one in bench.messages())
        await bench.apply(ForgetChat(messages=gone, at=at + timedelta(days=90)))
        assert "not kept any more" in (await given(bench, "retry")).text


async def test_session_and_usage_show_what_the_conversation_used(tmp_path: Path) -> None:
    async with answered(tmp_path) as (bench, _):
        conversation = bench.reader.find_conversation(bench.here)
        assert conversation is not None
        text = (await given(bench, "session")).text
        assert f"`{conversation.session_id}`" in text
        assert "With Ada" in text
        usage = (await given(bench, "usage")).text
        assert usage.startswith("Last turn: 0 tokens, $0.00")
        assert "All 1 turn:" in usage


async def test_only_listed_skills_are_run_where_some_are_listed(tmp_path: Path) -> None:
    listed = settings_of(skills=(Skill(name="review", description="Reviews a change"),))
    async with chat_bench(tmp_path, listed) as bench:
        assert "- `review`: Reviews a change" in (await given(bench, "skills")).text
        assert (await given(bench, "skill", "dance now")).ask is None
        run = await given(bench, "skill", "review the last commit")
        assert run.ask == "Use your skill `review`.\n\nthe last commit"


async def test_what_a_command_shows_has_no_secret_in_it(tmp_path: Path) -> None:
    agent = replace(AGENT, description="Pays with sk-very-secret-value")
    opened = chat_bench(tmp_path, agent=agent, secret="sk-very-secret-value")
    async with opened as bench:
        text = (await given(bench, "config")).text
        assert "Pays with" in text
        assert "sk-very-secret-value" not in text
