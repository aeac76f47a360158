"""What every connection to a chat platform must do with what is sent through it."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from nightherd.ports.chat import Button, ChatUpload
from nightherd.testing.contracts.open_chat import OpenChat, chat_checks_in, running

LONG = timedelta(hours=1)


async def check_post_is_sent_once_and_found_by_its_nonce(chat: OpenChat) -> None:
    async with running(chat):
        result = await chat.connection.post(chat.post("hello", "nonce-1"))
        again = await chat.connection.post(chat.post("hello", "nonce-1"))
        found = await chat.connection.find_post(chat.place, "nonce-1")
        missing = await chat.connection.find_post(chat.place, "nonce-2")

    assert result.error is None
    assert result.message_id == again.message_id == found
    assert [post.text for post in chat.platform.posted()] == ["hello"]
    assert missing is None


async def check_lost_answer_is_uncertain_and_the_post_can_be_found(chat: OpenChat) -> None:
    async with running(chat):
        chat.platform.lose_answer()
        result = await chat.connection.post(chat.post("hello", "nonce-1"))
        found = await chat.connection.find_post(chat.place, "nonce-1")

    assert result.message_id is None
    assert result.error
    assert result.is_uncertain
    assert not result.is_permanent
    assert [post.id for post in chat.platform.posted()] == [found], "sent once"


async def check_server_error_is_not_permanent(chat: OpenChat) -> None:
    async with running(chat):
        chat.platform.break_down()
        result = await chat.connection.post(chat.post("hello", "nonce-1"))
        again = await chat.connection.post(chat.post("hello", "nonce-1"))

    assert result.error
    assert not result.is_permanent
    assert again.error is None
    assert len(chat.platform.posted()) == 1


async def check_rate_limit_says_how_long_to_wait(chat: OpenChat) -> None:
    async with running(chat):
        chat.platform.limit_rate(LONG)
        result = await chat.connection.post(chat.post("hello", "nonce-1"))

    assert result.retry_after is not None
    assert result.retry_after >= LONG
    assert not result.is_permanent
    assert not result.is_uncertain
    assert chat.platform.posted() == []


async def check_refusal_is_permanent(chat: OpenChat) -> None:
    async with running(chat):
        chat.platform.refuse()
        result = await chat.connection.post(chat.post("hello", "nonce-1"))

    assert result.error
    assert result.is_permanent
    assert not result.is_uncertain
    assert chat.platform.posted() == []


async def check_edit_changes_text_and_buttons_in_place(chat: OpenChat) -> None:
    buttons = (Button(id="yes", label="Yes"), Button(id="no", label="No", is_dangerous=True))
    async with running(chat):
        sent = await chat.connection.post(chat.post("shall I?", "nonce-1", buttons=buttons))
        assert sent.message_id is not None
        before = chat.platform.posted()
        edited = await chat.connection.edit(sent.message_id, chat.post("you said yes", "nonce-1"))

    assert [(post.text, post.buttons) for post in before] == [("shall I?", ("Yes", "No"))]
    assert edited.error is None
    assert [(post.id, post.text, post.buttons) for post in chat.platform.posted()] == [
        (sent.message_id, "you said yes", ())
    ]


async def check_deleted_message_cannot_be_edited(chat: OpenChat) -> None:
    async with running(chat):
        sent = await chat.connection.post(chat.post("hello", "nonce-1"))
        assert sent.message_id is not None
        deleted = await chat.connection.delete(chat.place, sent.message_id)
        edited = await chat.connection.edit(sent.message_id, chat.post("more", "nonce-1"))

    assert deleted.error is None
    assert edited.is_permanent
    assert chat.platform.posted() == []


async def check_upload_appears_with_its_name(chat: OpenChat) -> None:
    path = chat.directory / "report.txt"
    path.write_text("all is well")
    upload = ChatUpload(
        place=chat.place, path=str(path), name="report.txt", nonce="nonce-1", text="here it is"
    )
    async with running(chat):
        result = await chat.connection.upload(upload)
        missing = await chat.connection.upload(
            msgspec.structs.replace(upload, path=str(path) + ".not", nonce="nonce-2")
        )

    assert result.error is None
    assert result.message_id
    assert [(post.text, post.files) for post in chat.platform.posted()] == [
        ("here it is", ("report.txt",))
    ]
    assert missing.is_permanent


async def check_reactions_come_and_go(chat: OpenChat) -> None:
    message = chat.platform.say("hello")
    seen: list[int] = []
    async with running(chat):
        for is_on in (True, True, False, False):
            result = await chat.connection.react(chat.place, message, "\N{EYES}", is_on=is_on)
            assert result.error is None
            seen.append(len(chat.platform.reactions(message)))

    assert seen == [1, 1, 0, 0]


async def check_typing_never_fails(chat: OpenChat) -> None:
    async with running(chat):
        await chat.connection.typing(chat.place)


async def check_nothing_secret_is_shown(chat: OpenChat) -> None:
    async with running(chat):
        chat.platform.lose_answer()
        lost = await chat.connection.post(chat.post("a", "nonce-1"))
        chat.platform.break_down()
        broken = await chat.connection.post(chat.post("b", "nonce-2"))
        chat.platform.refuse()
        refused = await chat.connection.post(chat.post("c", "nonce-3"))

    shown = f"{lost} {broken} {refused} {chat.receiver.states} {chat.connection!r}"
    assert not any(secret in shown for secret in chat.secrets)


CHAT_SENDING_CHECKS = chat_checks_in(globals())
