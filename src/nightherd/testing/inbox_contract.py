"""What every state store must do with inbox items; see `state_contract` for how to run it."""

from __future__ import annotations

from nightherd.model.inbox.changes import AnswerItem, AskPerson
from nightherd.model.inbox.item import (
    Asked,
    InboxItem,
    InboxQuery,
    InboxTexts,
    ItemKind,
    ItemStatus,
    Verdict,
    item_id,
)
from nightherd.testing.state_contract import NOW, OpenState, checks_in, must_apply, must_refuse


def ask(*keys: str, kind: ItemKind = ItemKind.RELOAD) -> AskPerson:
    """Return the change that puts one item for each key into the inbox."""
    items = [
        InboxItem(
            id=item_id(key),
            kind=kind,
            status=ItemStatus.PENDING,
            created_at=NOW,
            subject="nightherd.yaml",
            title=key,
            dedupe_key=key,
        )
        for key in keys
    ]
    return AskPerson(
        asked=tuple(Asked(item=item, texts=InboxTexts(item_id=item.id)) for item in items)
    )


def reject(key: str) -> AnswerItem:
    """Return the answer that rejects the item of that key."""
    return AnswerItem(item_id=item_id(key), verdict=Verdict.REJECT, by="ada", via="test", at=NOW)


def titles(state: OpenState, query: InboxQuery) -> list[str]:
    """Return the titles of the items that the query lists."""
    return [item.title for item in state.reader.list_items(query)]


async def check_asking_twice_is_asking_once(state: OpenState) -> None:
    await must_apply(state, ask("a"), ask("a"))

    assert titles(state, InboxQuery()) == ["a"]


async def check_pending_and_decided_items_are_listed_apart_in_pages(state: OpenState) -> None:
    await must_apply(state, ask("a", "b", "c", "d"))
    await must_apply(state, reject("c"))

    assert titles(state, InboxQuery(limit=2)) == ["d", "b"]
    assert titles(state, InboxQuery(limit=2, before=2)) == ["a"]
    assert titles(state, InboxQuery(is_pending=False)) == ["c"]


async def check_only_the_first_answer_decides(state: OpenState) -> None:
    await must_apply(state, ask("a"), reject("a"))

    await must_refuse(state, reject("a"))

    assert [one.by for one in state.reader.list_answers(item_id("a"))] == ["ada"]


async def check_waiting_items_are_counted_and_the_oldest_is_known(state: OpenState) -> None:
    assert (state.reader.count_pending_items(), state.reader.oldest_pending_item()) == ({}, None)

    await must_apply(state, ask("a", "b"), ask("c", kind=ItemKind.FAILURE), reject("a"))

    assert state.reader.count_pending_items() == {ItemKind.RELOAD: 1, ItemKind.FAILURE: 1}
    oldest = state.reader.oldest_pending_item()
    assert oldest is not None
    assert oldest.title == "b"


INBOX_CHECKS = checks_in(globals())
