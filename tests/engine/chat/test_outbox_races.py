"""The outbox while others change posts: what it has claimed is what it sends."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from engine.chat.chat_bench import chat_bench, until
from engine.chat.test_outbox import is_sent, post, queue, row, said, sending
from nightherd.model.change import Answer, Change
from nightherd.model.chat.changes import ClaimPost, EditPost
from nightherd.model.chat.post import PostId
from nightherd.ports import StateWriter


class EditsAfterClaims:
    """A `StateWriter`: right after a post was claimed, an earlier one is to say something else."""

    def __init__(self, state: StateWriter, edit: EditPost) -> None:
        self._state = state
        self._edit: EditPost | None = edit

    async def apply(self, changes: Sequence[Change]) -> Sequence[Answer]:
        answers = await self._state.apply(changes)
        if self._edit is not None and any(isinstance(one, ClaimPost) for one in changes):
            edit, self._edit = self._edit, None
            await self._state.apply([edit])
        return answers

    def take_notices(self) -> Sequence[str]:
        return self._state.take_notices()

    async def close(self) -> None:
        await self._state.close()


async def test_an_earlier_post_that_changes_while_one_is_claimed_leaves_none_behind(
    tmp_path: Path,
) -> None:
    async with chat_bench(tmp_path) as bench:
        async with sending(bench):
            await queue(bench, post("p:1", "one", bench))
            await until(lambda: is_sent(bench, "p:1"))
        edit = EditPost(post_id=PostId("p:1"), text="one, edited", at=bench.clock.now())
        state = EditsAfterClaims(bench.store, edit)
        bench.context.fleet = replace(bench.context.fleet, state=state)
        async with sending(bench):
            await queue(bench, post("p:2", "two", bench), post("p:3", "three", bench))
            await until(lambda: is_sent(bench, "p:3"))
            await until(lambda: is_sent(bench, "p:1"))

        assert said(bench) == ["one, edited", "two", "three"]
        assert row(bench, "p:2").claimed_by is None
