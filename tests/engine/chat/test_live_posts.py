"""Live posts: what comes in is shown in place, and never instead of what was recorded."""

from __future__ import annotations

from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from engine.chat.chat_bench import ChatBench, chat_bench, settings_of, until
from engine.chat.test_outbox import edit, is_sent, post, queue, row, said, sending
from nightherd.engine.chat import outbox_live
from nightherd.model.chat.platform import Platform
from nightherd.model.chat.post import PostId
from nightherd.ports.chat import ChatPost, PostResult

LIVE = PostId("p:live")
TERMINAL = settings_of(platform=Platform.TERMINAL)


def edits_of(bench: ChatBench) -> list[str]:
    """Every edit of a message from now on."""
    edits: list[str] = []
    change = bench.connection.edit

    async def edit(message_id: str, post: ChatPost) -> PostResult:
        edits.append(post.text)
        return await change(message_id, post)

    bench.connection.edit = edit  # type: ignore[method-assign]
    return edits


async def test_text_that_comes_in_is_shown_in_the_post_and_not_recorded(tmp_path: Path) -> None:
    async with chat_bench(tmp_path, TERMINAL) as bench, sending(bench) as outbox:
        await queue(bench, post(LIVE, "O", bench))
        outbox.show(LIVE, "On")
        outbox.show(LIVE, "Once")
        await until(lambda: said(bench) == ["Once"])
        texts = bench.reader.find_post_texts(LIVE)
        assert texts is not None
        assert (texts.text, row(bench, LIVE).version) == ("O", 1)


async def test_only_the_newest_text_is_shown_where_edits_are_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(outbox_live.INTERVALS_S, Platform.SLACK, 0.5)
    async with chat_bench(tmp_path) as bench:
        edits = edits_of(bench)
        async with sending(bench) as outbox:
            await queue(bench, post(LIVE, "0", bench))
            await until(lambda: is_sent(bench, LIVE))
            for number in range(1, 100):
                outbox.show(LIVE, f"{number}")
                await anyio.lowlevel.checkpoint()
            await until(lambda: said(bench) == ["99"])
        assert len(edits) <= 3


async def test_a_recorded_version_is_never_overwritten_by_what_was_shown_before(
    tmp_path: Path,
) -> None:
    async with chat_bench(tmp_path, TERMINAL) as bench:
        gate, is_editing = anyio.Event(), anyio.Event()
        change = bench.connection.edit
        order: list[str] = []

        async def slow(message_id: str, post: ChatPost) -> PostResult:
            is_editing.set()
            if post.text == "half":
                await gate.wait()
            order.append(post.text)
            return await change(message_id, post)

        bench.connection.edit = slow  # type: ignore[method-assign]
        async with sending(bench) as outbox:
            await queue(bench, post(LIVE, "h", bench))
            await until(lambda: is_sent(bench, LIVE))
            outbox.show(LIVE, "half")
            await is_editing.wait()
            await edit(bench, LIVE, "whole")
            outbox.show(LIVE, "half and more")
            gate.set()
            await until(lambda: row(bench, LIVE).sent_version == 2)
            await until(lambda: not outbox._live._posts)
        assert order == ["half", "whole"]
        assert said(bench) == ["whole"]


async def test_a_post_that_is_not_sent_yet_is_shown_in_once_it_is(tmp_path: Path) -> None:
    async with chat_bench(tmp_path, TERMINAL) as bench:
        gate = anyio.Event()
        send = bench.connection.post

        async def slow(post: ChatPost) -> PostResult:
            await gate.wait()
            return await send(post)

        bench.connection.post = slow  # type: ignore[method-assign]
        async with sending(bench) as outbox:
            await queue(bench, post(LIVE, "O", bench))
            await until(lambda: row(bench, LIVE).claimed_by)
            outbox.show(LIVE, "Once")
            gate.set()
            await until(lambda: said(bench) == ["Once"])


async def test_a_live_post_that_somebody_deleted_is_sent_anew_when_it_is_over(
    tmp_path: Path,
) -> None:
    async with chat_bench(tmp_path, TERMINAL) as bench, sending(bench) as outbox:
        await queue(bench, post(LIVE, "O", bench))
        await until(lambda: is_sent(bench, LIVE))
        bench.platform.remove(row(bench, LIVE).message_id or "")
        outbox.show(LIVE, "Once")
        await until(lambda: not outbox._live._posts)
        await edit(bench, LIVE, "Once upon a time.")
        await until(lambda: said(bench) == ["Once upon a time."])


async def test_nothing_is_shown_in_a_post_that_is_not_there(tmp_path: Path) -> None:
    async with chat_bench(tmp_path, TERMINAL) as bench, sending(bench) as outbox:
        outbox.show(PostId("p:none"), "Once")
        assert not outbox._live._posts
