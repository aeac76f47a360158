"""What comes in from Slack is recorded before Slack is told so, once, and in order."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from nightherd.model.chat.incoming import ButtonPress, ChatCommand
from nightherd.model.chat.platform import ChatPlace
from nightherd.ports.chat import Button, ChatPost
from nightherd.testing.recording_receiver import RecordingReceiver
from nightherd.testing.slack_api import SlackApi
from nightherd.testing.slack_workspace import APP_TOKEN, BOT_TOKEN, CHANNEL
from nightherd.triggers.chat import slack_intake
from triggers.chat.slack_bot import HERE, connected, wait_for

ASK = Button(id="no:7", label="No", asks_comment=True)
YES = Button(id="yes:7", label="Yes")


def acknowledged(slack: SlackApi) -> list[bool]:
    return [one.is_acknowledged for one in slack.deliveries]


async def test_a_message_is_acknowledged_once_it_is_recorded(tmp_path: Path) -> None:
    with SlackApi() as slack:
        async with connected(slack, tmp_path) as chat:
            sent = await chat.connection.post(chat.post("shall I?", "n-1", buttons=(YES,)))
            await wait_for(slack, lambda: acknowledged(slack) == [True])
            chat.receiver.gate = anyio.Event()
            slack.say("remember this")
            await chat.receiver.until(lambda: chat.receiver.begun == 1)
            # What the bot says later arrives later: the acknowledgement of the press is behind any other.
            slack.press(str(sent.message_id), "Yes")
            await wait_for(slack, lambda: slack.deliveries[-1].is_acknowledged)
            before = acknowledged(slack)
            chat.receiver.gate.set()
            await wait_for(slack, lambda: all(acknowledged(slack)))

    assert before == [True, False, True]
    assert acknowledged(slack) == [True, True, True]
    assert chat.receiver.texts == ["remember this"]


async def test_a_message_that_was_not_recorded_is_delivered_again(tmp_path: Path) -> None:
    with SlackApi() as slack:
        slack.redeliver_after(0.1)
        async with connected(slack, tmp_path) as chat:
            chat.receiver.fails = 1
            slack.say("remember this")
            is_acknowledged = await wait_for(slack, lambda: acknowledged(slack) == [True])

    assert is_acknowledged
    assert slack.deliveries[0].attempts == 2
    assert chat.receiver.texts == ["remember this"]


async def test_a_message_delivered_twice_while_it_is_recorded_is_taken_once(
    tmp_path: Path,
) -> None:
    with SlackApi() as slack:
        slack.redeliver_after(0.05)
        async with connected(slack, tmp_path) as chat:
            chat.receiver.gate = anyio.Event()
            slack.say("once")
            await wait_for(slack, lambda: slack.deliveries and slack.deliveries[0].attempts >= 2)
            chat.receiver.gate.set()
            await wait_for(slack, lambda: all(acknowledged(slack)))
            slack.say("after")
            await chat.receiver.until(lambda: "after" in chat.receiver.texts)

    assert chat.receiver.texts == ["once", "after"]


async def test_a_message_that_names_the_bot_is_taken_once_though_slack_tells_of_it_twice(
    tmp_path: Path,
) -> None:
    with SlackApi() as slack:
        async with connected(slack, tmp_path) as chat:
            slack.say("hello", names_bot=True)
            await wait_for(slack, lambda: acknowledged(slack) == [True, True])

    assert chat.receiver.texts == ["hello"]
    assert chat.receiver.messages[0].is_mention


async def test_a_conversation_that_waits_holds_no_other_up(tmp_path: Path) -> None:
    gate = anyio.Event()
    with SlackApi() as slack:
        async with connected(slack, tmp_path) as chat:
            chat.receiver.gate = gate
            slack.say("slow")
            await chat.receiver.until(lambda: chat.receiver.begun == 1)
            chat.receiver.gate = None
            slack.say("quick", channel="C0OTHER")
            await chat.receiver.until(lambda: "quick" in chat.receiver.texts)
            gate.set()
            await chat.receiver.until(lambda: "slow" in chat.receiver.texts)

    assert chat.receiver.texts == ["quick", "slow"]


async def test_what_bots_write_and_edits_and_notices_are_left_alone(tmp_path: Path) -> None:
    with SlackApi() as slack:
        async with connected(slack, tmp_path) as chat:
            first = slack.say("said")
            slack.edit(first, "said otherwise")
            slack.say("beep", user="U0OTHERBOT", bot_id="B0OTHER")
            slack.say("Ada has joined the channel", subtype="channel_join")
            removed = slack.say("oops")
            slack.remove(removed)
            await chat.connection.post(chat.post("an answer", "n-1"))
            slack.say("the end")
            await chat.receiver.until(lambda: "the end" in chat.receiver.texts)
            await wait_for(slack, lambda: all(acknowledged(slack)))

    assert chat.receiver.texts == ["said", "oops", "the end"]


async def test_files_of_bots_are_left_alone_though_their_events_name_no_bot(tmp_path: Path) -> None:
    with SlackApi() as slack:
        slack.workspace.bot_users.add("U0OTHERBOT")
        async with connected(slack, tmp_path) as chat:
            slack.say("a report of mine", user="U0OTHERBOT", file=b"beep\n")
            slack.say("look at that")
            await chat.receiver.until(lambda: "look at that" in chat.receiver.texts)
            await wait_for(slack, lambda: all(acknowledged(slack)))
            history = await chat.connection.history(HERE, None, 10)

    assert chat.receiver.texts == ["look at that"]
    assert [one.text for one in history] == ["look at that"]


async def test_threads_and_direct_messages_are_places_of_their_own(tmp_path: Path) -> None:
    with SlackApi() as slack:
        async with connected(slack, tmp_path) as chat:
            root = slack.say("a question")
            slack.say("more of it", thread=root)
            slack.say("all should see this", thread=root, subtype="thread_broadcast")
            slack.say("psst", channel="D0ADA")
            slack.say("/me waves", subtype="me_message")
            await chat.receiver.until(lambda: len(chat.receiver.messages) == 5)

    by_text = {message.text: message for message in chat.receiver.messages}
    thread = ChatPlace(channel_id=CHANNEL, thread_id=root)
    assert by_text["a question"].place == HERE
    assert by_text["more of it"].place == by_text["all should see this"].place == thread
    assert by_text["psst"].place == ChatPlace(channel_id="D0ADA")
    assert [message.is_direct for message in by_text.values()].count(True) == 1
    assert by_text["psst"].is_direct


async def test_people_and_channels_are_called_by_name(tmp_path: Path) -> None:
    with SlackApi() as slack:
        slack.workspace.names["U0BEN"] = "Ben"
        slack.workspace.channels["C0OPS"] = "ops"
        async with connected(slack, tmp_path) as chat:
            slack.say("ask <@U0BEN> in <#C0OPS> &amp; <@U0NOBODY>")
            await chat.receiver.until(lambda: len(chat.receiver.messages) == 1)
            slack.say("again <@U0BEN>")
            await chat.receiver.until(lambda: len(chat.receiver.messages) == 2)

    assert chat.receiver.texts == ["ask @Ben in #ops & @U0NOBODY", "again @Ben"]
    asked = [call.arguments["user"] for call in slack.called("users.info")]
    assert sorted(asked) == ["U0ADA", "U0BEN", "U0BOT", "U0NOBODY"]


async def test_a_message_that_shares_another_quotes_it(tmp_path: Path) -> None:
    shared = {"is_share": True, "author_name": "Ben", "text": "it is *down*\nask <@U0ADA>"}
    unfurled = {"title": "A page", "text": "of a link", "title_link": "https://example.invalid"}
    event = {"type": "message", "channel": CHANNEL, "user": "U0ADA", "text": "see &amp; fix"}
    with SlackApi() as slack:
        async with connected(slack, tmp_path) as chat:
            slack.tell({**event, "ts": "1767225600.000100", "attachments": [shared, unfurled]})
            slack.tell({**event, "ts": "1767225600.000200", "text": "", "attachments": [shared]})
            await chat.receiver.until(lambda: len(chat.receiver.messages) == 2)

    quoted = "> Ben:\n> it is **down**\n> ask @Ada"
    assert chat.receiver.texts == [f"see & fix\n\n{quoted}", quoted]


async def test_a_message_is_recorded_though_names_cannot_be_had(tmp_path: Path) -> None:
    with SlackApi() as slack:
        async with connected(slack, tmp_path) as chat:
            slack.fail("users.info", error="ratelimited", status=429, retry_after=30, times=9)
            slack.say("hello")
            await chat.receiver.until(lambda: len(chat.receiver.messages) == 1)

    assert chat.receiver.messages[0].user_name == slack.user_id


async def test_a_slash_command_is_answered_with_its_acknowledgement(tmp_path: Path) -> None:
    with SlackApi() as slack:
        async with connected(slack, tmp_path) as chat:
            chat.receiver.command_answer = "**ready**"
            command = slack.command("Skill review  the diff")
            await wait_for(slack, lambda: acknowledged(slack) == [True])

    assert chat.receiver.commands == [
        ChatCommand(
            bot=chat.receiver.commands[0].bot,
            place=HERE,
            user_id=slack.user_id,
            user_name="Ada",
            name="skill",
            argument="review  the diff",
            guild_id="T0LOOPBACK",
            command_id=command.payload["trigger_id"],
        )
    ]
    assert slack.deliveries[0].answer == {"response_type": "ephemeral", "text": "*ready*"}


async def test_a_slow_command_is_acknowledged_in_time_and_answered_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slack_intake, "ACKNOWLEDGED_WITHIN_S", 0.05)
    with SlackApi() as slack:
        async with connected(slack, tmp_path) as chat:
            chat.receiver.gate = anyio.Event()
            slack.command("status")
            await wait_for(slack, lambda: acknowledged(slack) == [True])
            answer = slack.deliveries[0].answer
            chat.receiver.gate.set()
            await wait_for(slack, lambda: slack.replies)

    assert answer is None
    assert slack.replies == [{"response_type": "ephemeral", "text": "done"}]


class FailingReceiver(RecordingReceiver):
    """Cannot carry out anything."""

    async def command(self, command: ChatCommand) -> str:
        raise OSError("the disk is full")

    async def press(self, press: ButtonPress) -> str | None:
        raise OSError("the disk is full")


async def test_a_command_or_press_that_fails_says_so_to_its_person_alone(tmp_path: Path) -> None:
    receiver = FailingReceiver()
    with SlackApi() as slack:
        async with connected(slack, tmp_path, receiver) as chat:
            sent = await chat.connection.post(chat.post("shall I?", "n-1", buttons=(YES,)))
            slack.press(str(sent.message_id), "Yes")
            await wait_for(slack, lambda: slack.workspace.whispers)
            slack.command("status")
            await wait_for(slack, lambda: slack.deliveries[-1].is_acknowledged)

    assert slack.workspace.whispers == [(slack.user_id, slack_intake.FAILED)]
    assert slack.deliveries[-1].answer["text"] == slack_intake.FAILED


async def test_a_press_is_answered_to_its_person_alone(tmp_path: Path) -> None:
    with SlackApi() as slack:
        async with connected(slack, tmp_path) as chat:
            chat.receiver.press_answer = "Only **Ben** may answer this."
            sent = await chat.connection.post(chat.post("shall I?", "n-1", buttons=(YES,)))
            slack.press(str(sent.message_id), "Yes", user="U0BEN")
            await wait_for(slack, lambda: slack.workspace.whispers)
            await wait_for(slack, lambda: acknowledged(slack) == [True, True])

    assert slack.workspace.whispers == [("U0BEN", "Only *Ben* may answer this.")]
    assert chat.receiver.presses[0].user_id == "U0BEN"


async def test_a_button_in_a_thread_is_pressed_in_that_thread(tmp_path: Path) -> None:
    with SlackApi() as slack:
        async with connected(slack, tmp_path) as chat:
            thread = ChatPlace(channel_id=CHANNEL, thread_id=slack.say("a question"))
            for button in (YES, ASK):
                post = ChatPost(place=thread, text="shall I?", nonce=button.id, buttons=(button,))
                sent = await chat.connection.post(post)
                slack.press(str(sent.message_id), button.label, "why" if button is ASK else None)
            await chat.receiver.until(lambda: len(chat.receiver.presses) == 2)

    assert {press.place for press in chat.receiver.presses} == {thread}
    assert {press.comment for press in chat.receiver.presses} == {None, "why"}


async def test_a_window_that_opens_too_late_asks_to_press_again(tmp_path: Path) -> None:
    with SlackApi() as slack:
        async with connected(slack, tmp_path) as chat:
            sent = await chat.connection.post(chat.post("shall I?", "n-1", buttons=(ASK,)))
            slack.fail("views.open", error="expired_trigger_id")
            slack.press(str(sent.message_id), "No", "never read")
            await wait_for(slack, lambda: slack.workspace.whispers)

    assert slack.workspace.whispers == [(slack.user_id, slack_intake.TOO_LATE)]
    assert chat.receiver.presses == []


async def test_bolt_reads_no_token_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-of-another-bot")
    monkeypatch.setenv("SLACK_SIGNING_SECRET", "another")
    with SlackApi() as slack:
        async with connected(slack, tmp_path) as chat:
            slack.say("hello")
            await chat.receiver.until(lambda: chat.receiver.texts == ["hello"])

    assert {call.token for call in slack.calls} == {BOT_TOKEN, APP_TOKEN}


async def test_many_people_in_many_channels_are_heard_in_order(tmp_path: Path) -> None:
    channels = [f"C0ROOM{n}" for n in range(20)]
    said: dict[str, list[str]] = {channel: [] for channel in channels}
    with SlackApi() as slack:
        async with connected(slack, tmp_path) as chat:
            for number in range(2_000):
                channel = channels[number % 20]
                user = f"U0PERSON{number % 50}"
                said[channel].append(slack.say(f"number {number}", channel=channel, user=user))
            await chat.receiver.until(lambda: len(chat.receiver.messages) == 2_000)
            assert await wait_for(slack, lambda: all(acknowledged(slack)))

    heard: dict[str, list[str]] = {channel: [] for channel in channels}
    for message in chat.receiver.messages:
        heard[message.place.channel_id].append(message.message_id)
    assert heard == said
    assert len(slack.called("users.info")) == 51, "each person once, and the bot"


async def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setattr(slack_intake, "ACKNOWLEDGED_WITHIN_S", 0.05)
    with SlackApi() as slack:
        async with connected(slack, tmp_path) as chat:
            slack.say("look", file=b"abc")
            await chat.receiver.until(lambda: chat.receiver.texts == ["look"])
            file = chat.receiver.messages[0].files[0]
            await chat.connection.download(file, str(tmp_path / "fetched"), 99)
            chat.receiver.gate = anyio.Event()
            command = slack.command("status")
            await wait_for(slack, lambda: command.is_acknowledged)
            chat.receiver.gate.set()
            assert await wait_for(slack, lambda: slack.replies)

    assert (tmp_path / "fetched").read_bytes() == b"abc"


async def test_what_cannot_be_read_is_not_acknowledged_and_ends_no_connection(
    tmp_path: Path,
) -> None:
    with SlackApi() as slack:
        async with connected(slack, tmp_path) as chat:
            slack.tell(
                {"type": "message", "channel": CHANNEL, "user": "U1", "ts": "1.2", "files": 7}
            )
            slack.tell({"type": "message", "channel": ["C1"], "user": {}, "ts": None})
            slack.say("readable")
            await chat.receiver.until(lambda: chat.receiver.texts == ["readable"])
            await wait_for(slack, lambda: acknowledged(slack)[1:] == [True, True])

    assert acknowledged(slack) == [False, True, True]
    assert slack.opened == 1
