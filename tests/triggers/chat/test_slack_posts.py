"""What the bot sends on Slack: once, found again, in threads, with files; and how much of a history is read."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from nightherd.errors import NightherdError
from nightherd.model.chat.incoming import IncomingFile
from nightherd.model.chat.platform import ChatPlace
from nightherd.ports.chat import Button, ChatPost, ChatUpload
from nightherd.testing.slack_api import SlackApi
from nightherd.testing.slack_workspace import BOT_TOKEN, CHANNEL, SlackMessage
from nightherd.triggers.chat.slack_client import SlackClient
from triggers.chat.slack_bot import HERE, connect, connected, wait_for

FILE = IncomingFile(id="F1", name="a.txt", media_type="text/plain", size=3, url="")


async def test_a_message_whose_answer_was_lost_is_found_by_another_process(
    tmp_path: Path,
) -> None:
    with SlackApi() as slack:
        thread = replace(HERE, thread_id=slack.say("a question"))
        for place in (HERE, thread):
            async with connected(slack, tmp_path) as chat:
                slack.lose_answer()
                lost = await chat.connection.post(ChatPost(place=place, text="42", nonce="n-1"))
            async with connected(slack, tmp_path) as later:
                found = await later.connection.find_post(place, "n-1")

            assert lost.is_uncertain
            assert found in [post.id for post in slack.posted(CHANNEL, place.thread_id)]


async def test_a_message_that_slack_takes_after_it_was_looked_for_is_there_twice(
    tmp_path: Path,
) -> None:
    """The one gap: its process was killed while the request was on its way, and no history shows it yet."""
    with SlackApi() as slack:
        slack.take_late(0.5)
        async with connected(slack, tmp_path) as chat:
            with anyio.move_on_after(0.1) as killed:
                await chat.connection.post(chat.post("42", "n-1"))
        async with connected(slack, tmp_path) as later:
            found = await later.connection.find_post(HERE, "n-1")
            again = await later.connection.post(later.post("42", "n-1"))
        assert await wait_for(slack, lambda: len(slack.posted()) == 2)

    assert (killed.cancelled_caught, found) == (True, None)
    assert [post.id for post in slack.posted()].index(str(again.message_id)) == 0


async def test_a_message_whose_answer_was_lost_is_not_sent_again(tmp_path: Path) -> None:
    with SlackApi() as slack:
        async with connected(slack, tmp_path) as chat:
            slack.lose_answer()
            await chat.connection.post(chat.post("42", "n-1"))
            again = await chat.connection.post(chat.post("42", "n-1"))

    assert [post.id for post in slack.posted()] == [again.message_id]


async def test_a_message_is_not_sent_again_while_the_history_cannot_be_read(
    tmp_path: Path,
) -> None:
    with SlackApi() as slack:
        async with connected(slack, tmp_path) as chat:
            slack.lose_answer()
            await chat.connection.post(chat.post("42", "n-1"))
            slack.fail("conversations.history", error="internal_error", times=1)
            unknown = await chat.connection.post(chat.post("42", "n-1"))
            sent = len(slack.posted())
            known = await chat.connection.post(chat.post("42", "n-1"))

    assert unknown.is_uncertain
    assert sent == 1
    assert [post.id for post in slack.posted()] == [known.message_id]


async def test_a_message_far_up_is_found_and_one_of_another_app_is_not(tmp_path: Path) -> None:
    with SlackApi() as slack:
        slack.methods.page_limit = 3
        async with connected(slack, tmp_path) as chat:
            sent = await chat.connection.post(chat.post("42", "n-1"))
            metadata = {"event_type": "nightherd_post", "event_payload": {"nonce": "n-2"}}
            forged = SlackMessage(
                channel=CHANNEL,
                ts=slack.workspace.next_ts(),
                text="42",
                user="U0OTHERBOT",
                bot_id="B0OTHER",
                metadata=metadata,
            )
            slack.workspace.add(forged)
            for n in range(8):
                slack.say(f"number {n}")
            found = await chat.connection.find_post(HERE, "n-1")
            other = await chat.connection.find_post(HERE, "n-2")

    assert found == sent.message_id
    assert other is None


async def test_an_edit_keeps_the_message_findable(tmp_path: Path) -> None:
    with SlackApi() as slack:
        async with connected(slack, tmp_path) as chat:
            sent = await chat.connection.post(chat.post("working", "n-1"))
            await chat.connection.edit(str(sent.message_id), chat.post("done", "n-1"))
            found = await chat.connection.find_post(HERE, "n-1")

    assert found == sent.message_id


async def test_long_texts_with_buttons_are_cut_into_sections_that_slack_takes(
    tmp_path: Path,
) -> None:
    text = "\n".join(f"line {n} of a long question" for n in range(200))
    buttons = tuple(Button(id=f"b:{n}", label=f"Option {n}") for n in range(5))
    with SlackApi() as slack:
        async with connected(slack, tmp_path) as chat:
            sent = await chat.connection.post(chat.post(text, "n-1", buttons=buttons))
        blocks = slack.workspace.message(str(sent.message_id)).blocks

    sections = [one["text"] for one in blocks if one["type"] == "section"]
    shown = "\n".join(one["text"] for one in sections)
    assert all(one["verbatim"] for one in sections), "nothing in it becomes a mention"
    assert sent.error is None
    assert shown.split() == text.split()


async def test_uploads_go_into_threads_and_are_found_by_their_nonce(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(bytes(range(256)) * 4_000)
    (tmp_path / "empty").touch()
    with SlackApi() as slack:
        thread = ChatPlace(channel_id=CHANNEL, thread_id=slack.say("a question"))
        upload = ChatUpload(
            place=thread, path=str(tmp_path / "a.bin"), name="\u00fc & a.bin", nonce="n-1"
        )
        async with connected(slack, tmp_path) as chat:
            slack.lose_answer()
            lost = await chat.connection.upload(upload)
            again = await chat.connection.upload(upload)
            found = await chat.connection.find_post(thread, "n-1")
            empty = await chat.connection.upload(
                replace(upload, path=str(tmp_path / "empty"), nonce="n-2")
            )

    posted = slack.posted(CHANNEL, thread.thread_id)
    assert lost.is_uncertain
    assert [post.id for post in posted] == [found] == [again.message_id]
    assert posted[0].files == ("\u00fc & a.bin",)
    assert empty.is_permanent


async def test_an_upload_that_failed_before_it_was_shared_can_be_tried_again(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_text("abc")
    with SlackApi() as slack:
        upload = ChatUpload(place=HERE, path=str(tmp_path / "a.txt"), name="a.txt", nonce="n-1")
        async with connected(slack, tmp_path) as chat:
            slack.fail("files.getUploadURLExternal", is_cut=True)
            lost = await chat.connection.upload(upload)
            again = await chat.connection.upload(upload)

    assert lost.error
    assert not lost.is_uncertain
    assert not lost.is_permanent
    assert again.error is None
    assert len(slack.posted()) == 1


async def test_a_page_to_log_in_at_is_not_taken_for_a_file(tmp_path: Path) -> None:
    target = tmp_path / "fetched"
    with SlackApi(scopes=["users:read"]) as slack:
        async with connected(slack, tmp_path) as chat:
            slack.say("look", file=b"abc")
            await chat.receiver.until(lambda: len(chat.receiver.messages) == 1)
            with pytest.raises(NightherdError, match="files:read"):
                await chat.connection.download(chat.receiver.messages[0].files[0], str(target), 99)

    assert not target.exists()


async def test_an_existing_file_is_neither_overwritten_nor_removed(tmp_path: Path) -> None:
    target = tmp_path / "mine"
    target.write_text("mine")
    with SlackApi() as slack:
        async with connected(slack, tmp_path) as chat:
            slack.say("look", file=b"abc")
            await chat.receiver.until(lambda: len(chat.receiver.messages) == 1)
            with pytest.raises(NightherdError, match="not kept"):
                await chat.connection.download(chat.receiver.messages[0].files[0], str(target), 99)

    assert target.read_text() == "mine"


async def test_the_token_is_shown_to_no_other_host_than_slacks(tmp_path: Path) -> None:
    with SlackApi() as slack, SlackApi() as other:
        async with connected(slack, tmp_path) as chat:
            for url in (f"{other.url}x", "https://127.0.0.1/x", "http://localhost.example/x"):
                with pytest.raises(NightherdError, match="not on Slack"):
                    await chat.connection.download(
                        replace(FILE, url=url), str(tmp_path / "fetched"), 99
                    )

    assert other.calls == []


GATEWAY = "https://slack.example:8443/api/"


@pytest.mark.parametrize(
    ("api", "url", "is_ours"),
    [
        (None, "https://files.slack.com/files-pri/T1-F1/a.txt", True),
        (None, "https://hooks.slack.com/commands/1", True),
        (None, "https://slack.com/x", True),
        (None, "http://files.slack.com/x", False),
        (None, "https://files.slack.com.example/x", False),
        (None, "https://notslack.com/x", False),
        (None, "https://user@files.slack.com/x", False),
        (None, "https://files.slack.com:8443/x", False),
        (GATEWAY, "https://slack.example:8443/x", True),
        (GATEWAY, "https://files.slack.com/x", True),
        (GATEWAY, "https://slack.example:9443/x", False),
        (GATEWAY, "https://other.example/x", False),
        ("http://127.0.0.1:8080/api/", "http://127.0.0.1:8080/x", True),
        ("http://127.0.0.1:8080/api/", "http://127.0.0.1:8081/x", False),
        ("http://127.0.0.1:8080/api/", "http://files.slack.com/x", False),
    ],
)
def test_only_the_apis_own_host_and_slacks_are_shown_the_token(
    api: str | None, url: str, is_ours: bool
) -> None:
    assert SlackClient(BOT_TOKEN, api).is_ours(url) is is_ours


async def test_a_file_of_another_workspace_is_looked_up_first(tmp_path: Path) -> None:
    with SlackApi() as slack:
        file = slack.workspace.new_file("a.txt", b"abc")
        async with connected(slack, tmp_path) as chat:
            await chat.connection.download(replace(FILE, id=file.id), str(tmp_path / "fetched"), 99)

    assert (tmp_path / "fetched").read_bytes() == b"abc"


async def test_an_emoji_without_a_name_on_slack_is_refused(tmp_path: Path) -> None:
    with SlackApi() as slack:
        message = slack.say("hello")
        async with connected(slack, tmp_path) as chat:
            named = await chat.connection.react(HERE, message, "party_parrot", is_on=True)
            unnamed = await chat.connection.react(HERE, message, "no emoji", is_on=True)

    assert named.error is None
    assert slack.reactions(message) == ["party_parrot"]
    assert unnamed.is_permanent


async def test_writing_is_shown_in_threads_and_given_up_where_slack_refuses(
    tmp_path: Path,
) -> None:
    with SlackApi() as slack:
        thread = replace(HERE, thread_id=slack.say("a question"))
        async with connected(slack, tmp_path) as chat:
            await chat.connection.typing(HERE)
            await chat.connection.typing(thread)
            slack.fail("assistant.threads.setStatus", error="access_denied")
            for _ in range(3):
                await chat.connection.typing(thread)

    assert slack.workspace.typed == [(CHANNEL, thread.thread_id)]
    assert len(slack.called("assistant.threads.setStatus")) == 2


async def test_a_long_absence_is_read_from_its_beginning_without_reading_it_twice(
    tmp_path: Path,
) -> None:
    with SlackApi() as slack:
        slack.methods.page_limit = 4
        said = [slack.say(f"number {n}") for n in range(25)]
        after, got = said[0], []
        async with connected(slack, tmp_path) as chat:
            while page := await chat.connection.history(HERE, after, 5):
                got += [message.message_id for message in page]
                after = page[-1].message_id

    assert got == said[1:]
    # Six pages of the channel, and one look whether there is more.
    assert len(slack.called("conversations.history")) == 7


async def test_the_history_of_a_thread_is_its_replies(tmp_path: Path) -> None:
    with SlackApi() as slack:
        slack.methods.page_limit = 2
        root = slack.say("a question")
        said = [slack.say(f"reply {n}", thread=root) for n in range(5)]
        slack.say("elsewhere")
        thread = replace(HERE, thread_id=root)
        async with connected(slack, tmp_path) as chat:
            after = await chat.connection.history(thread, said[1], 10)
            latest = await chat.connection.history(thread, None, 3)
            channel = await chat.connection.history(HERE, None, 10)

    assert [message.message_id for message in after] == said[2:]
    assert {message.place for message in after} == {thread}
    assert [message.message_id for message in latest] == said[2:]
    assert [message.text for message in channel] == ["a question", "elsewhere"]


async def test_a_history_that_cannot_be_read_says_what_to_do(tmp_path: Path) -> None:
    with SlackApi() as slack:
        slack.workspace.closed_channels.add(CHANNEL)
        async with connected(slack, tmp_path) as chat:
            with pytest.raises(NightherdError, match="invite the bot to the channel"):
                await chat.connection.history(HERE, None, 10)


async def test_a_thread_that_was_deleted_has_no_history(tmp_path: Path) -> None:
    with SlackApi() as slack:
        async with connected(slack, tmp_path) as chat:
            thread = replace(HERE, thread_id="1767225600.000100")
            history = await chat.connection.history(thread, "1767225600.000200", 10)
            found = await chat.connection.find_post(thread, "n-1")

    assert list(history) == []
    assert found is None


async def test_a_read_waits_as_long_as_slack_asks_but_not_for_hours(tmp_path: Path) -> None:
    with SlackApi() as slack:
        slack.say("hello")
        async with connected(slack, tmp_path) as chat:
            slack.fail("conversations.history", error="ratelimited", status=429, retry_after=1)
            started_at = anyio.current_time()
            read = await chat.connection.history(HERE, None, 10)
            took = anyio.current_time() - started_at
            slack.fail("conversations.history", error="ratelimited", status=429, retry_after=7_200)
            with pytest.raises(NightherdError, match="ratelimited"):
                await chat.connection.history(HERE, None, 10)

    assert [message.text for message in read] == ["hello"]
    assert took >= 1
    assert len(slack.called("conversations.history")) == 3


async def test_a_rate_limit_without_a_time_still_asks_for_a_pause(tmp_path: Path) -> None:
    with SlackApi() as slack:
        async with connected(slack, tmp_path) as chat:
            slack.fail("chat.postMessage", error="ratelimited", status=429)
            result = await chat.connection.post(chat.post("hello", "n-1"))

    assert result.retry_after is not None
    assert result.retry_after >= timedelta(seconds=10)


async def test_nothing_is_read_before_the_bot_knows_who_it_is() -> None:
    with SlackApi() as slack, pytest.raises(NightherdError, match="not connected yet"):
        await connect(slack).history(HERE, None, 10)
