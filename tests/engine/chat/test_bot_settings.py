"""A whole bot: every setting of a bot's output, session and files does what it says."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from engine.chat.bot_bench import ECHO, LiveBot, live_bot, opened, until
from engine.chat.chat_bench import settings_of
from nightherd.engine.operations.requests import SetSchedule
from nightherd.engine.operations.schedules import set_schedule
from nightherd.errors import NightherdError
from nightherd.model.chat.settings import (
    AttachmentSettings,
    ChannelMode,
    ChannelSettings,
    OutputSettings,
    Texts,
    VoiceSettings,
)
from nightherd.model.jobs.job import JobStatus
from nightherd.model.limits.limits import Limits
from nightherd.model.schedules.rule import Schedule
from nightherd.model.sessions.session import SessionMode, SessionTerms
from nightherd.testing.local_chat import HERE, LocalPlatform

TOOLS = """\
    script:
      - {say: let me look}
      - {tool: Bash, input: {command: "echo found; until [ -e go ]; do sleep 0.02; done"}}
      - {say: that is all}
      - {usage: {input_tokens: 20, output_tokens: 10}}
"""
WORDS = """\
    script: [{say: "one two three four five", over: 1s}]
"""
QUIET = OutputSettings(
    tool_results=False,
    system_status=False,
    errors=False,
    typing_indicator=False,
    progress_indicator=False,
    acknowledge_emoji=None,
)


async def said_with(folder: Path, output: OutputSettings, script: str = TOOLS) -> list[str]:
    """What a bot with that output posts."""
    (folder / "go").touch()
    async with live_bot(folder, script, settings_of(output=output)) as live:
        live.platform.say("hello")
        return await live.answered()


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (QUIET, ["that is all"]),
        (replace(QUIET, assistant_messages=Texts.ALL), ["let me look", "that is all"]),
        (
            replace(QUIET, tool_results=True, tool_result_max_length=4),
            [
                "*Bash* `echo found; until [ -e go ]; do sleep 0.02; done`\n```\nfou…\n```",
                "that is all",
            ],
        ),
    ],
)
def test_output_is_what_the_settings_say(
    tmp_path: Path, output: OutputSettings, said: list[str]
) -> None:
    assert anyio.run(said_with, tmp_path, output) == said


def test_the_summary_says_what_the_turn_cost(tmp_path: Path) -> None:
    texts = anyio.run(said_with, tmp_path, replace(QUIET, result_summary=True))
    assert texts[0] == "that is all"
    assert "30 tokens" in texts[1]


@pytest.mark.parametrize(
    ("errors", "said"), [(True, "*That failed:* no luck"), (False, "I could not finish this.")]
)
def test_errors_are_shown_where_they_are_wanted(tmp_path: Path, errors: bool, said: str) -> None:
    script = "    script: [{fail: {message: no luck}}]\n"
    texts = anyio.run(said_with, tmp_path, replace(QUIET, errors=errors), script)
    assert texts == [said]


def test_work_is_acknowledged_and_shown_until_it_is_done(tmp_path: Path) -> None:
    async def main() -> None:
        async with live_bot(tmp_path, TOOLS) as live:
            message = live.platform.say("hello")
            await until(lambda: live.platform.reactions(message) == ["\N{EYES}"])
            await until(lambda: live.platform.typed == [HERE])
            await until(lambda: any("*Bash*" in text and "\n" not in text for text in live.texts()))
            (tmp_path / "go").touch()
            texts = await live.answered()
            await until(lambda: live.platform.reactions(message) == [])

            # What showed the tool at work has become its result.
            assert len(texts) == 2
            assert "found" in texts[0]
            assert texts[1] == "that is all"

    anyio.run(main)


def test_nothing_is_shown_of_the_work_where_that_is_not_wanted(tmp_path: Path) -> None:
    async def main() -> None:
        async with live_bot(tmp_path, TOOLS, settings_of(output=QUIET)) as live:
            message = live.platform.say("hello")
            await until(lambda: live.turns() and live.job().status is JobStatus.RUNNING)
            (tmp_path / "go").touch()
            await live.answered()

            assert live.platform.reactions(message) == []
            assert live.platform.typed == []
            assert live.texts() == ["that is all"]

    anyio.run(main)


def test_an_answer_that_streams_in_is_one_post_edited_in_place(tmp_path: Path) -> None:
    async def main() -> None:
        async with live_bot(tmp_path, WORDS) as live:
            live.platform.say("hello")
            await until(live.texts)
            (post,) = live.posted()
            assert post.text.startswith("one")
            assert "five" not in post.text
            await live.answered()
            (last,) = live.posted()

            assert (last.id, last.text) == (post.id, "one two three four five")

    anyio.run(main)


def test_a_bot_that_begins_again_while_an_answer_streams_edits_the_same_post(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with opened(tmp_path, WORDS) as live, live.at_work():
            async with live.bot():
                live.platform.say("hello")
                await until(live.texts)
            (post,) = live.posted()
            async with live.bot():
                await live.answered()
            (last,) = live.posted()

            assert (last.id, last.text) == (post.id, "one two three four five")

    anyio.run(main)


def test_long_answers_come_in_parts_and_long_code_as_a_file(tmp_path: Path) -> None:
    code = "\\n".join(f"line {number}" for number in range(600))
    script = f'    script: [{{say: "{"word " * 1_000}\\n\\n```python\\n{code}\\n```"}}]\n'

    async def main() -> None:
        async with live_bot(tmp_path, script) as live:
            live.platform.say("hello")
            await live.answered()

            posts = live.posted()
            assert [len(one.files) for one in posts] == [0, 0, 1]
            assert posts[-1].files == ("answer-1.py",)
            assert all(len(one.text) <= 3_900 for one in posts)
            assert "".join(one.text for one in posts).count("word") == 1_000

    anyio.run(main)


def test_earlier_messages_of_the_channel_are_context_of_the_first_turn_only(tmp_path: Path) -> None:
    channel = ChannelSettings(id=HERE.channel_id, mode=ChannelMode.MENTION, context_messages=2)

    async def main() -> None:
        platform = LocalPlatform()
        for text in ("the oldest", "the disk is full", "which one?"):
            platform.say(text, user="U2")
        async with live_bot(tmp_path, ECHO, settings_of(channels=(channel,)), platform) as live:
            platform.say("please help", names_bot=True)
            await live.answered()
            platform.say("and now?", names_bot=True)
            await live.answered(2)

            assert "the oldest" not in live.prompt(0)
            assert live.prompt(0).index("the disk is full") < live.prompt(0).index("please help")
            assert "untrusted" in live.prompt(0)
            assert "the disk is full" not in live.prompt(1)

    anyio.run(main)


def test_a_chat_schedule_gives_prompt_inputs_and_limits(tmp_path: Path) -> None:
    schedule = Schedule(
        name="talk",
        rule=None,
        prompt="Look after ${inputs.what}.",
        inputs={"what": "the garden"},
        limits=Limits(turns=1),
    )

    async def main() -> None:
        settings = settings_of(schedule="talk")
        async with opened(tmp_path, ECHO, settings) as live:
            agent = replace(live.fleet.agents["coder"], schedules={"talk": schedule})
            live.use(agent)
            async with live.at_work(), live.bot():
                live.platform.say("hello")
                await live.answered()

                assert live.prompt().startswith("Look after the garden.\n\n")
                assert live.job().schedule == "talk"

    anyio.run(main)


@pytest.mark.parametrize("where", ["the file", "a person"])
def test_a_chat_schedule_that_is_disabled_makes_no_turn_until_it_is_enabled(
    tmp_path: Path, where: str
) -> None:
    enabled = where != "the file"
    schedule = Schedule(name="talk", rule=None, prompt="Look after the garden.", enabled=enabled)

    async def switch(live: LiveBot, *, is_on: bool) -> None:
        request = SetSchedule(agent="coder", schedule="talk", enabled=is_on, by="ada")
        await set_schedule(request, live.context)

    async def main() -> None:
        async with opened(tmp_path, ECHO, settings_of(schedule="talk")) as live:
            live.use(replace(live.fleet.agents["coder"], schedules={"talk": schedule}))
            if enabled:
                await switch(live, is_on=False)
            async with live.at_work():
                async with live.bot():
                    live.platform.say("hello")
                    await until(
                        lambda: any("coder/talk is disabled" in one for one in live.texts())
                    )
                    assert live.turns() == []
                await switch(live, is_on=True)
                async with live.bot():
                    await live.answered()
                    assert "hello" in live.prompt()

    anyio.run(main)


@pytest.mark.parametrize(
    ("mode", "sessions"), [(SessionMode.FRESH_PER_JOB, 2), (SessionMode.PERSISTENT, 1)]
)
def test_other_session_modes_are_obeyed(tmp_path: Path, mode: SessionMode, sessions: int) -> None:
    settings = settings_of(session=SessionTerms(mode=mode))

    async def main() -> None:
        async with live_bot(tmp_path, settings=settings) as live:
            for number in (1, 2):
                live.platform.say(f"message {number}")
                await live.answered(number)
            assert len({turn.agent_session_id for turn in live.turns()}) == sessions

    anyio.run(main)


def test_files_are_fetched_for_the_agent_and_removed_when_it_is_done(tmp_path: Path) -> None:
    attachments = AttachmentSettings(directory=".chat-files")

    async def main() -> None:
        async with live_bot(tmp_path, TOOLS, settings_of(attachments=attachments)) as live:
            live.platform.say("read this", file=b"the answer is 42")
            await until(lambda: live.turns() and live.job().status is JobStatus.RUNNING)
            (file,) = (tmp_path / ".chat-files").iterdir()
            assert file.read_bytes() == b"the answer is 42"
            assert f".chat-files/{file.name}" in live.prompt()
            assert "the answer is 42" in live.prompt()
            (tmp_path / "go").touch()
            await live.answered()

            assert not (tmp_path / ".chat-files").exists()

    anyio.run(main)


def test_a_file_that_cannot_be_had_is_named_in_the_prompt_and_the_message_is_answered(
    tmp_path: Path,
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    folder = tmp_path / "fleet"
    folder.mkdir()
    (folder / ".chat-files").symlink_to(outside)
    attachments = AttachmentSettings(directory=".chat-files")

    async def main() -> None:
        async with live_bot(folder, ECHO, settings_of(attachments=attachments)) as live:
            live.platform.say("read this", file=b"the answer is 42")
            await live.answered()

            assert "`notes.txt`: it could not be fetched" in live.prompt()
            assert list(outside.iterdir()) == []

    anyio.run(main)


class Listener:
    """Hears the same in every voice note."""

    def __init__(self, error: str | None = None) -> None:
        self.error = error

    async def transcribe(self, path: str, media_type: str) -> str:
        if self.error is not None:
            raise NightherdError(self.error)
        return f"I said {await anyio.Path(path).read_text()}"


@pytest.mark.parametrize(
    ("listener", "said"),
    [
        (Listener(), "(Voice note:) I said water the plants"),
        (Listener("no such model"), "it could not be fetched: no such model"),
    ],
)
def test_voice_notes_are_transcribed(tmp_path: Path, listener: Listener, said: str) -> None:
    async def main() -> None:
        settings = settings_of(voice=VoiceSettings())
        async with opened(tmp_path, ECHO, settings) as live:
            live.transcriber = listener
            async with live.at_work(), live.bot():
                live.platform.say("", file=b"water the plants", is_voice=True)
                await live.answered()

            assert said in live.prompt()
            assert list((live.state_dir / "chat" / "incoming").iterdir()) == []

    anyio.run(main)


def test_batching_waits_only_as_long_as_the_window(tmp_path: Path) -> None:
    settings = settings_of(batch_window=timedelta(seconds=0.2))

    async def main() -> None:
        async with live_bot(tmp_path, settings=settings) as live:
            live.platform.say("one")
            await live.answered()
            live.platform.say("two")
            await live.answered(2)
            for number in (0, 1):
                (message,) = live.context.reader.chat_messages_of_job(live.job(number).id)
                waited = live.turns()[number].started_at - message.received_at
                assert waited >= timedelta(seconds=0.2)

    anyio.run(main)
