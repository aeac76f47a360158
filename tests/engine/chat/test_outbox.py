"""The outbox: posts go out once, in the order of their conversation, and say what was recorded last."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import anyio
import pytest
from anyio import to_thread
from msgspec.structs import replace

from engine.chat.chat_bench import BOT, THERE, ChatBench, chat_bench, settings_of, until
from nightherd.engine.chat.intake import conversation_at
from nightherd.engine.chat.outbox import Outbox
from nightherd.model.chat.changes import ClaimPost, EditPost, QueuePosts, SeeMessage, SettlePost
from nightherd.model.chat.conversation import conversation_id
from nightherd.model.chat.platform import ChatPlace, Platform
from nightherd.model.chat.post import OutboxPost, PostId, PostKind, PostStatus, QueuedPost, new_post
from nightherd.model.chat.post_decisions import LONGEST_WISH
from nightherd.ports.chat import Button, ChatPost, PostResult
from nightherd.testing.determinism import FakeClock
from nightherd.testing.local_chat import BEGINNING, HERE, LocalConnection, LocalPlatform


class Ended(BaseException):
    """The process is gone."""


def post(
    id: str, text: str, bench: ChatBench, *, place: ChatPlace = HERE, kind: PostKind | None = None
) -> QueuedPost:
    """Something to send."""
    at = bench.clock.now()
    conversation = conversation_at(place, bench.context.settings, at)
    return new_post(PostId(id), conversation, kind or PostKind.ANSWER, text, at)


async def queue(bench: ChatBench, *posts: QueuedPost) -> None:
    """Have it sent."""
    for place in (HERE, THERE):
        seen = conversation_at(place, bench.context.settings, bench.clock.now())
        await bench.store.apply([SeeMessage(conversation=seen, message_id=None)])
    await bench.apply(QueuePosts(posts=posts))
    bench.context.signals.posts.set()


async def edit(bench: ChatBench, id: str, text: str) -> None:
    """Have it say something else."""
    await bench.apply(EditPost(post_id=PostId(id), text=text, at=bench.clock.now()))
    bench.context.signals.posts.set()


@asynccontextmanager
async def sending(bench: ChatBench) -> AsyncIterator[Outbox]:
    """The bot sends, until the end."""
    outbox = Outbox(bench.context)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(outbox.run)
        yield outbox
        tasks.cancel_scope.cancel()


def said(bench: ChatBench, place: ChatPlace = HERE) -> list[str]:
    """What stands on the platform."""
    return [one.text for one in bench.platform.posted(place)]


def row(bench: ChatBench, id: str) -> OutboxPost:
    """A post's row."""
    found = bench.reader.find_post(PostId(id))
    assert found is not None
    return found


def is_sent(bench: ChatBench, id: str) -> bool:
    """Whether the platform has its latest version."""
    return row(bench, id).status is PostStatus.SENT


async def test_posts_of_a_place_go_out_in_their_order(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench, sending(bench):
        numbers = [f"{number}" for number in range(20)]
        await queue(bench, *(post(f"p:{one}", one, bench) for one in numbers))
        await until(lambda: is_sent(bench, "p:19"))
        assert said(bench) == numbers


async def test_a_place_that_is_stuck_holds_up_no_other(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench:
        gate = anyio.Event()
        send = bench.connection.post

        async def slow(post: ChatPost) -> PostResult:
            if post.place == HERE:
                await gate.wait()
            return await send(post)

        bench.connection.post = slow  # type: ignore[method-assign]
        async with sending(bench):
            await queue(bench, post("p:1", "one", bench), post("p:2", "two", bench, place=THERE))
            await until(lambda: is_sent(bench, "p:2"))
            assert said(bench) == []
            await queue(bench, post("p:3", "three", bench, place=THERE))
            await until(lambda: is_sent(bench, "p:3"))
            gate.set()
            await until(lambda: is_sent(bench, "p:1"))


@pytest.mark.parametrize(
    ("platform", "expected"),
    [(Platform.SLACK, "*now* & then".replace("&", "&amp;")), (Platform.TERMINAL, "**now** & then")],
)
async def test_text_is_written_as_the_platform_does(
    tmp_path: Path, platform: Platform, expected: str
) -> None:
    async with chat_bench(tmp_path, settings_of(platform=platform)) as bench, sending(bench):
        await queue(bench, post("p:1", "**now** & then", bench))
        await until(lambda: is_sent(bench, "p:1"))
        assert said(bench) == [expected]


async def test_secrets_do_not_leave_with_a_post(tmp_path: Path) -> None:
    async with chat_bench(tmp_path, secret="sk-very-secret-value") as bench, sending(bench):
        await queue(bench, post("p:1", "it is sk-very-secret-value", bench))
        await until(lambda: is_sent(bench, "p:1"))
        assert "sk-very-secret-value" not in said(bench)[0]


async def test_a_new_version_is_edited_in_place(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench, sending(bench):
        await queue(bench, post("p:1", "draft", bench), post("p:2", "below", bench))
        await until(lambda: is_sent(bench, "p:2"))
        await edit(bench, "p:1", "done")
        await until(lambda: row(bench, "p:1").sent_version == 2)
        assert said(bench) == ["done", "below"]


async def test_buttons_are_sent_and_removed(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench, sending(bench):
        one = post("p:1", "May it?", bench, kind=PostKind.ITEM)
        buttons = [{"id": "a", "label": "Approve", "is_primary": True}]
        texts = replace(one.texts, details={"buttons": buttons})
        await queue(bench, replace(one, texts=texts))
        await until(lambda: is_sent(bench, "p:1"))
        (message,) = bench.platform.messages.values()
        assert message.buttons == (Button(id="a", label="Approve", is_primary=True),)
        await edit(bench, "p:1", "It may.")
        await until(lambda: said(bench) == ["It may."])
        assert not bench.platform.posted()[0].buttons


async def test_a_file_is_uploaded_once(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    await to_thread.run_sync(path.write_text, "notes")
    async with chat_bench(tmp_path) as bench, sending(bench):
        one = post("p:1", "Here.", bench, kind=PostKind.FILE)
        texts = replace(one.texts, details={"path": str(path), "name": "notes.txt"})
        await queue(bench, replace(one, texts=texts))
        await until(lambda: is_sent(bench, "p:1"))
        (posted,) = bench.platform.posted()
        assert (posted.text, posted.files) == ("Here.", ("notes.txt",))


async def test_the_platform_is_left_alone_for_as_long_as_it_says(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench, sending(bench):
        bench.platform.limit_rate(timedelta(minutes=5))
        await queue(bench, post("p:1", "one", bench), post("p:2", "two", bench))
        await until(lambda: row(bench, "p:1").last_error)
        limited = row(bench, "p:1")
        assert (limited.status, limited.attempts) == (PostStatus.PENDING, 0)
        assert limited.due_at - bench.clock.now() > timedelta(minutes=4)
        assert said(bench) == []
        bench.clock.advance(timedelta(minutes=5))  # type: ignore[attr-defined]
        bench.context.signals.posts.set()
        await until(lambda: is_sent(bench, "p:2"))
        assert said(bench) == ["one", "two"]


async def test_a_failure_that_may_pass_is_tried_again_by_itself(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench, sending(bench):
        bench.platform.limit_rate(timedelta(milliseconds=20))
        await queue(bench, post("p:1", "one", bench))
        await until(lambda: is_sent(bench, "p:1"))
        assert said(bench) == ["one"]


async def test_what_is_refused_for_good_is_given_up_and_the_next_goes_out(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench, sending(bench):
        bench.platform.refuse()
        await queue(bench, post("p:1", "one", bench), post("p:2", "two", bench))
        await until(lambda: is_sent(bench, "p:2"))
        assert [one.id for one in bench.reader.failed_posts(BOT, 10)] == ["p:1"]
        assert said(bench) == ["two"]


async def test_an_answer_that_somebody_deleted_is_sent_anew(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench, sending(bench):
        await queue(bench, post("p:1", "draft", bench))
        await until(lambda: is_sent(bench, "p:1"))
        bench.platform.remove(row(bench, "p:1").message_id or "")
        await edit(bench, "p:1", "done")
        await until(lambda: said(bench) == ["done"])


class Forgetful(LocalConnection):
    """A connection to a platform that sends the same nonce again, as Slack does. It counts."""

    sent: list[str]
    looked_for: int

    async def post(self, post: ChatPost) -> PostResult:
        """Send a message, whatever was sent before."""
        self.sent.append(post.text)
        unique = replace(post, nonce=f"{post.nonce}.{len(self.sent)}")
        return await super().post(unique)

    async def find_post(self, place: ChatPlace, nonce: str) -> str | None:
        """Return the message by the first attempt with that nonce."""
        self.looked_for += 1
        for number in range(len(self.sent) + 1):
            found = await super().find_post(place, f"{nonce}.{number}")
            if found is not None:
                return found
        return None


def forgetful(bench: ChatBench, before: Forgetful | None = None) -> Forgetful:
    """Put such a connection in the place of the bench's; it counts on from the one `before`."""
    connection = Forgetful(bench.platform, BOT)
    connection.sent, connection.looked_for = [] if before is None else before.sent, 0
    bench.context.connection = connection
    return connection


async def test_a_post_whose_answer_was_lost_is_looked_for_before_it_is_sent_again(
    tmp_path: Path,
) -> None:
    async with chat_bench(tmp_path) as bench:
        connection = forgetful(bench)
        bench.platform.lose_answer()
        async with sending(bench):
            await queue(bench, post("p:1", "one", bench))
            await until(lambda: row(bench, "p:1").is_uncertain)
            bench.clock.advance(timedelta(minutes=1))  # type: ignore[attr-defined]
            bench.context.signals.posts.set()
            await until(lambda: is_sent(bench, "p:1"))
        assert connection.sent == ["one"]
        assert connection.looked_for == 1
        assert said(bench) == ["one"]


@pytest.mark.parametrize("point", ["chat.before_send", "chat.after_send", "chat.after_settle"])
async def test_a_post_goes_out_once_when_the_process_ends_on_the_way(
    tmp_path: Path, point: str
) -> None:
    def end(name: str) -> None:
        if name == point:
            raise Ended

    platform = LocalPlatform()
    async with chat_bench(tmp_path, platform=platform, probe=end) as bench:
        before = forgetful(bench)
        await queue(bench, post("p:1", "one", bench), post("p:2", "two", bench))
        with pytest.raises(BaseExceptionGroup) as caught:
            await Outbox(bench.context).run()
        assert caught.group_contains(Ended)
    async with chat_bench(tmp_path, platform=platform, sender="sender-2") as after:
        forgetful(after, before)
        async with sending(after):
            await until(lambda: is_sent(after, "p:2"))
        assert said(after) == ["one", "two"]
        assert before.sent == ["one", "two"]


async def test_what_was_sent_in_an_older_version_is_found_and_edited(tmp_path: Path) -> None:
    def end(name: str) -> None:
        if name == "chat.after_send":
            raise Ended

    platform = LocalPlatform()
    async with chat_bench(tmp_path, platform=platform, probe=end) as bench:
        before = forgetful(bench)
        await queue(bench, post("p:1", "draft", bench))
        with pytest.raises(BaseExceptionGroup):
            await Outbox(bench.context).run()
        await edit(bench, "p:1", "done")
    async with chat_bench(tmp_path, platform=platform, sender="sender-2") as after:
        forgetful(after, before)
        async with sending(after):
            await until(lambda: is_sent(after, "p:1"))
        assert said(after) == ["done"]
        assert before.sent == ["draft"]


async def test_a_bot_that_is_stopped_records_what_it_has_sent(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench:
        async with sending(bench):
            await queue(bench, post("p:1", "one", bench))
            await until(lambda: said(bench) == ["one"])
        assert is_sent(bench, "p:1")


async def test_many_places_each_in_order(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench, sending(bench):
        places = [ChatPlace(channel_id=f"C{number}") for number in range(20)]
        for place in places:
            known = conversation_at(place, bench.context.settings, bench.clock.now())
            await bench.apply(SeeMessage(conversation=known, message_id=None))
        posts = [
            post(f"p:{number}", f"{number}", bench, place=places[number % 20])
            for number in range(200)
        ]
        await queue(bench, *posts)
        await until(lambda: not bench.reader.unsent_conversations(BOT))
        for number, place in enumerate(places):
            assert said(bench, place) == [f"{one}" for one in range(number, 200, 20)]
            assert bench.reader.first_open_post(conversation_id(BOT, place)) is None


async def test_a_post_waits_for_no_clock_that_was_set_back(tmp_path: Path) -> None:
    clock = FakeClock(BEGINNING)
    async with chat_bench(tmp_path, clock=clock) as bench:
        fresh = post("p:1", "one", bench)
        clock.advance(-timedelta(minutes=30))
        async with sending(bench):
            await queue(bench, fresh)
            await until(lambda: is_sent(bench, "p:1"))
            bench.platform.break_down()
            await queue(bench, post("p:2", "two", bench))
            await until(lambda: row(bench, "p:2").last_error is not None)
            assert not is_sent(bench, "p:2")
            clock.advance(-2 * LONGEST_WISH)
            bench.context.signals.posts.set()
            await until(lambda: is_sent(bench, "p:2"))
        assert said(bench) == ["one", "two"]


async def test_a_post_is_given_up_after_many_attempts_whatever_the_clock_says(
    tmp_path: Path,
) -> None:
    async with chat_bench(tmp_path) as bench:
        await queue(bench, post("p:1", "one", bench))
        while row(bench, "p:1").status is PostStatus.PENDING:
            at = bench.clock.now()
            claim = ClaimPost(conversation_id=bench.here, by="s", at=at)
            settled = SettlePost(post_id=PostId("p:1"), by="s", version=1, at=at, error="no")
            await bench.apply(claim, settled)
            bench.clock.advance(-timedelta(days=1))  # type: ignore[attr-defined]
        assert row(bench, "p:1").status is PostStatus.FAILED
