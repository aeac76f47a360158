"""What every connection to a chat platform must do with what arrives, and when the connection fails."""

from __future__ import annotations

from pathlib import Path

import anyio
import anyio.lowlevel
import msgspec

from nightherd.errors import ChatRefusedError, NightherdError
from nightherd.model.chat.incoming import IncomingFile
from nightherd.ports.chat import Button, ChatConnection
from nightherd.testing.contracts.open_chat import OpenChat, chat_checks_in, running


async def check_message_arrives_as_it_was_written(chat: OpenChat) -> None:
    async with running(chat):
        first = chat.platform.say("good morning")
        second = chat.platform.say("what is up?", names_bot=True)
        await chat.receiver.until(lambda: len(chat.receiver.messages) >= 2)

    one, two = chat.receiver.messages
    assert (one.message_id, two.message_id) == (first, second)
    assert (one.text, two.text) == ("good morning", "what is up?")
    assert (one.is_mention, two.is_mention) == (False, True)
    assert one.place == chat.place
    assert (one.user_id, one.user_name) == (chat.user_id, chat.user_name)
    assert one.sent_at <= two.sent_at


async def check_first_connect_is_fresh_and_names_the_bot(chat: OpenChat) -> None:
    async with running(chat):
        state = chat.receiver.states[-1]

    assert state.is_connected
    assert state.is_fresh
    assert state.bot_name
    assert state.error is None


async def check_messages_keep_their_order(chat: OpenChat) -> None:
    async with running(chat):
        said = [chat.platform.say(f"number {n}") for n in range(20)]
        await chat.receiver.until(lambda: len(chat.receiver.messages) >= 20)

    assert [message.message_id for message in chat.receiver.messages] == said


async def check_message_that_was_not_recorded_is_in_the_history(chat: OpenChat) -> None:
    chat.receiver.fails = 1
    async with running(chat):
        said = chat.platform.say("remember this")
        await chat.receiver.until(lambda: chat.receiver.begun >= 1)
        history = await chat.connection.history(chat.place, None, 10)

    assert [message.message_id for message in history] == [said]


async def check_reconnect_after_a_cut_is_fresh_and_hears_again(chat: OpenChat) -> None:
    async with running(chat):
        chat.platform.drop()
        await chat.receiver.until(
            lambda: (
                len([state for state in chat.receiver.states if state.is_fresh]) >= 2
                or any(state.is_connected for state in chat.receiver.states[1:])
            )
        )
        chat.platform.say("still there?")
        await chat.receiver.until(lambda: "still there?" in chat.receiver.texts)


async def check_history_is_what_people_said_oldest_first(chat: OpenChat) -> None:
    said = [chat.platform.say(f"number {n}") for n in range(5)]
    async with running(chat):
        await chat.connection.post(chat.post("an answer", "n-history"))

        latest = await chat.connection.history(chat.place, None, 3)
        after = await chat.connection.history(chat.place, said[1], 10)
        first_after = await chat.connection.history(chat.place, said[0], 2)
        nothing = await chat.connection.history(chat.place, said[4], 10)

    assert [message.message_id for message in latest][-2:] == said[3:]
    assert len(latest) <= 3
    assert [message.message_id for message in after] == said[2:]
    assert [message.message_id for message in first_after] == said[1:3]
    assert nothing == [] or list(nothing) == []
    assert after[0].text == "number 2"
    assert after[0].user_name == chat.user_name


async def check_press_names_the_button_and_the_person(chat: OpenChat) -> None:
    async with running(chat):
        sent = await chat.connection.post(
            chat.post("shall I?", "nonce-1", buttons=(Button(id="yes:7", label="Yes"),))
        )
        assert sent.message_id is not None
        chat.platform.press(sent.message_id, "Yes")
        await chat.receiver.until(lambda: len(chat.receiver.presses) >= 1)

    press = chat.receiver.presses[0]
    assert (press.button, press.message_id, press.place) == ("yes:7", sent.message_id, chat.place)
    assert (press.user_id, press.user_name) == (chat.user_id, chat.user_name)
    assert press.comment is None


async def check_button_that_asks_gives_a_comment(chat: OpenChat) -> None:
    button = Button(id="no:7", label="No", asks_comment=True)
    async with running(chat):
        sent = await chat.connection.post(chat.post("shall I?", "nonce-1", buttons=(button,)))
        assert sent.message_id is not None
        chat.platform.press(sent.message_id, "No", "not on a Friday")
        await chat.receiver.until(lambda: len(chat.receiver.presses) >= 1)

    press = chat.receiver.presses[0]
    assert (press.button, press.comment) == ("no:7", "not on a Friday")
    assert (press.message_id, press.place) == (sent.message_id, chat.place)


async def check_file_that_was_sent_along_is_fetched(chat: OpenChat) -> None:
    content = b"line\n" * 1_000
    target = chat.directory / "fetched.txt"
    async with running(chat):
        chat.platform.say("look at this", file=content)
        await chat.receiver.until(lambda: len(chat.receiver.messages) >= 1)
        file = chat.receiver.messages[0].files[0]
        await chat.connection.download(file, str(target), len(content))

    assert target.read_bytes() == content
    assert file.size == len(content)
    assert file.media_type.startswith("text/")


async def check_file_above_the_limit_is_refused_and_leaves_nothing(chat: OpenChat) -> None:
    target = chat.directory / "fetched.txt"
    async with running(chat):
        chat.platform.say("look at this", file=b"x" * 5_000)
        await chat.receiver.until(lambda: len(chat.receiver.messages) >= 1)
        file = chat.receiver.messages[0].files[0]
        # What the platform said about its size is not believed.
        smaller = msgspec.structs.replace(file, size=1)
        for claimed in (file, smaller):
            error = await _download_error(chat.connection, claimed, target)
            assert not target.exists()
            assert not any(secret in str(error) for secret in chat.secrets)


async def _download_error(
    connection: ChatConnection, file: IncomingFile, target: Path
) -> NightherdError:
    try:
        await connection.download(file, str(target), 4_999)
    except NightherdError as error:
        return error
    raise AssertionError("a file above the limit was fetched")


async def check_people_are_named(chat: OpenChat) -> None:
    async with running(chat):
        people = await chat.connection.people([chat.user_id, "999999999999999999"])

    assert people == {chat.user_id: chat.user_name}


async def check_revoked_token_ends_the_connection(chat: OpenChat) -> None:
    error: ChatRefusedError | None = None
    chat.platform.revoke()
    try:
        with anyio.fail_after(60):
            await chat.connection.run(chat.receiver)
    except ChatRefusedError as refused:
        error = refused

    assert error is not None
    assert not any(secret in f"{error} {error.hint}" for secret in chat.secrets)
    assert not chat.receiver.is_connected


async def check_token_revoked_while_running_ends_the_connection(chat: OpenChat) -> None:
    refused = False
    try:
        async with running(chat):
            chat.platform.revoke()
            chat.platform.drop()
            with anyio.fail_after(60):
                await anyio.sleep_forever()
    except* ChatRefusedError:
        refused = True
    result = await chat.connection.post(chat.post("hello", "nonce-1"))

    assert refused
    assert result.error
    assert not any(secret in result.error for secret in chat.secrets)


async def check_cancelled_connection_hands_on_nothing_more(chat: OpenChat) -> None:
    async with running(chat):
        chat.platform.say("one")
        await chat.receiver.until(lambda: chat.receiver.begun >= 1)
        chat.receiver.gate = anyio.Event()
        chat.platform.say("two")
        await chat.receiver.until(lambda: chat.receiver.begun >= 2)
    chat.receiver.gate.set()
    chat.platform.say("three")
    await anyio.lowlevel.checkpoint()

    assert chat.receiver.texts == ["one"]


async def check_connection_can_run_again(chat: OpenChat) -> None:
    for text in ("first", "second"):
        chat.receiver.states.clear()
        async with running(chat):
            chat.platform.say(text)
            await chat.receiver.until(lambda: text in chat.receiver.texts)  # noqa: B023  # at once


CHAT_EVENT_CHECKS = chat_checks_in(globals())
