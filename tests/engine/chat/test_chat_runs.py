"""Workflows that people start in a conversation: once for each message, with what they said, and the end is said there."""

from __future__ import annotations

from pathlib import Path

import anyio
from msgspec.structs import replace

from engine.chat.bot_bench import ECHO, LiveBot, live_bot, opened, until
from engine.chat.chat_bench import BOT, settings_of
from nightherd.engine.chat.intake import Intake
from nightherd.engine.chat.runs import start_run
from nightherd.model.chat.incoming import ChatCommand, IncomingMessage
from nightherd.model.chat.settings import UserRules
from nightherd.model.jobs.job import TriggerType
from nightherd.model.workflows.rows import RunQuery, WorkflowRun
from nightherd.model.workflows.run import RunStatus
from nightherd.testing.local_chat import BEGINNING, HERE

SETTINGS = settings_of(approvers={"U1": "ada"})
WORKFLOWS = (
    ECHO
    + """\
workflows:
  release:
    description: Brings a version out.
    inputs:
      version: {type: text, required: true}
    on:
      chat: {inputs: {version: "${trigger.payload.text}"}}
    phases:
      - name: approve
        gate: {summary: "Release ${inputs.version}?"}
      - name: push
        bash: echo "$VERSION by $WHO" > released
        env: {VERSION: "${inputs.version}", WHO: "${trigger.actor}"}
  failing:
    on: {chat: true}
    phases:
      - {name: fail, bash: "exit 3"}
  private:
    phases:
      - {name: hide, bash: touch hidden}
"""
)


def runs(live: LiveBot) -> list[WorkflowRun]:
    return list(live.context.reader.list_runs(RunQuery()))


async def said(live: LiveBot, words: str) -> str:
    """The only message of the bot that says so, once there is one."""
    await until(lambda: sum(words in text for text in live.texts()) == 1)
    return next(text for text in live.texts() if words in text)


def test_a_run_is_started_approved_and_ended_where_it_was_asked_for(tmp_path: Path) -> None:
    async def main() -> None:
        async with live_bot(tmp_path, WORKFLOWS, SETTINGS) as live:
            live.platform.say("!run release 2.1 beta")
            await said(live, "Started `run-")
            (run,) = runs(live)
            assert (run.trigger_type, run.started_by) == (TriggerType.SLACK, "Ada")
            await until(lambda: any(one.buttons for one in live.posted()))
            message = next(one for one in live.posted() if one.buttons)
            assert "Release 2.1 beta?" in message.text
            live.platform.press(message.id, "Approve")
            end = await said(live, f"Run `{run.id}` of *release* succeeded")

            assert "$0.00" in end
            assert (tmp_path / "released").read_text() == "2.1 beta by Ada\n"
            await said(live, "Approved by ada (slack)")
            assert live.turns() == []

    anyio.run(main)


def test_the_same_message_starts_one_run(tmp_path: Path) -> None:
    def message(id: str) -> IncomingMessage:
        return IncomingMessage(
            bot=BOT,
            place=HERE,
            message_id=id,
            sent_at=BEGINNING,
            user_id="U1",
            user_name="Ada",
            text="!run release 2.1",
        )

    async def main() -> None:
        async with live_bot(tmp_path, WORKFLOWS, SETTINGS) as live:
            context = live.bots.running(BOT)
            assert context is not None
            one, again, other = [
                await start_run("release", "2.1", message(id), context)
                for id in ("1.0", "1.0", "2.0")
            ]
            assert one.id == again.id != other.id
            assert len(runs(live)) == 2

    anyio.run(main)


def test_the_end_of_a_run_is_said_once_also_after_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path, WORKFLOWS, SETTINGS) as live, live.at_work():
            async with live.bot():
                live.platform.say("!run release 2.1")
                await until(lambda: any(one.buttons for one in live.posted()))
            async with live.bot():
                message = next(one for one in live.posted() if one.buttons)
                live.platform.press(message.id, "Reject", "not today")
                await said(live, "of *release* failed")
            async with live.bot():
                live.platform.say("!ping")
                await said(live, "pong")
                await said(live, "of *release* failed")
            assert runs(live)[0].status is RunStatus.FAILED
            assert not (tmp_path / "released").exists()

    anyio.run(main)


def test_what_cannot_be_started_is_said(tmp_path: Path) -> None:
    async def main() -> None:
        async with live_bot(tmp_path, WORKFLOWS, SETTINGS) as live:
            live.platform.say("!run private")
            await said(live, "'private' is not started in chats")
            live.platform.say("!run nothing")
            await said(live, "the fleet has no workflow 'nothing'")
            live.platform.say("!run failing")
            await said(live, "of *failing* failed")
            live.platform.say("!run")
            listed = await said(live, "`release`: Brings a version out.")
            assert "`failing`" in listed
            assert "private" not in listed
            assert len(runs(live)) == 1
            assert not (tmp_path / "hidden").exists()

    anyio.run(main)


def test_runs_count_against_the_messages_of_an_hour(tmp_path: Path) -> None:
    async def main() -> None:
        limited = settings_of(approvers={"U1": "ada"}, users=UserRules(max_messages_per_hour=2))
        async with live_bot(tmp_path, WORKFLOWS, limited) as live:
            context = live.bots.running(BOT)
            assert context is not None
            intake = Intake(context)
            slash = ChatCommand(
                bot=BOT,
                place=HERE,
                user_id="U1",
                user_name="Ada",
                name="run",
                argument="release 1",
                command_id="K1",
            )
            first = await intake.command(slash)
            assert first.startswith("Started `run-")
            live.platform.say("!run release 2")
            await until(lambda: len(runs(live)) == 2)
            live.platform.say("!run release 3")
            await said(live, "You have sent 2 messages in the last hour")
            refused = await intake.command(replace(slash, command_id="K2"))
            assert refused.startswith("You have sent 2 messages in the last hour")
            assert len(runs(live)) == 2

    anyio.run(main)
