"""Inbox items: ids, hashes, verdicts and titles, without a store."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nightherd.errors import InvalidValueError
from nightherd.model.ids import JobId
from nightherd.model.inbox.item import (
    ITEM_ID,
    ITEM_LIFECYCLE,
    STATUS_OF_VERDICT,
    VERDICTS,
    InboxItem,
    ItemKind,
    ItemStatus,
    Verdict,
    call_hash,
    call_key,
    decided_text,
    item_id,
    parse_item_id,
)
from nightherd.model.inbox.review import ProposedCall, Question, title_of

JOB = JobId("job-2026-03-01-aaaaaa")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ITEM = InboxItem(
    id=item_id("a"),
    kind=ItemKind.APPROVAL,
    status=ItemStatus.PENDING,
    created_at=NOON,
    subject=JOB,
    title="Bash: git push",
    dedupe_key="a",
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_every_kind_is_decided_by_a_yes_and_a_no() -> None:
    assert set(VERDICTS) == set(ItemKind)
    assert all(len(verdicts) == 2 for verdicts in VERDICTS.values())
    assert set(STATUS_OF_VERDICT) == set(Verdict) - {Verdict.COMMENT}
    deciding = {verdict for verdicts in VERDICTS.values() for verdict in verdicts}
    assert deciding == set(STATUS_OF_VERDICT)
    for status in STATUS_OF_VERDICT.values():
        assert ITEM_LIFECYCLE.allows(ItemStatus.PENDING, status)


@given(key=st.text())
def test_an_id_is_made_from_the_key_and_can_be_read_back(key: str) -> None:
    assert item_id(key) == item_id(key)
    assert ITEM_ID.fullmatch(item_id(key))
    assert parse_item_id(item_id(key)) == item_id(key)


@pytest.mark.parametrize("text", ["", "ask-", "ask-12345678901g", "ASK-123456789012", "job-1"])
def test_other_texts_are_no_ids(text: str) -> None:
    with pytest.raises(InvalidValueError, match="is not the id of an inbox item"):
        parse_item_id(text)


def test_every_attempt_to_ask_about_a_call_has_a_key_of_its_own() -> None:
    keys = [call_key(JOB, "toolu_1", attempt) for attempt in (1, 2, 3)]

    assert len(set(keys)) == 3
    assert call_key(JOB, "toolu_1") == keys[0]


@given(input=st.dictionaries(st.text(), JSON, max_size=4))
def test_the_hash_depends_on_all_of_the_call_and_on_nothing_else(input: dict[str, object]) -> None:
    known = call_hash("Bash", input)

    assert known == call_hash("Bash", dict(reversed(input.items())))
    assert known != call_hash("Bash", {**input, "one more": 1})
    assert known != call_hash("Edit", input)
    assert known != call_hash("Bash", input, "a diff")


def test_half_a_character_has_a_hash() -> None:
    assert call_hash("Bash", {"command": "\ud800"}) != call_hash("Bash", {"command": "\ud801"})


@pytest.mark.parametrize(
    ("call", "title"),
    [
        (ProposedCall(tool_use_id="1", tool="Bash", input={"command": "a\n  b"}), "Bash: a b"),
        (ProposedCall(tool_use_id="1", tool="Edit", input={"file_path": "x"}), "Edit: x"),
        (
            ProposedCall(tool_use_id="1", tool="mcp__a__b", input={"n": 1, "m": 2}),
            "mcp__a__b: n=1, m=2",
        ),
        (ProposedCall(tool_use_id="1", tool="Bash", input={}), "Bash: "),
        (
            ProposedCall(
                tool_use_id="1",
                tool="ask_person",
                input={},
                question=Question(text=" Which\none? "),
            ),
            "Which one?",
        ),
    ],
)
def test_a_title_is_one_line(call: ProposedCall, title: str) -> None:
    assert title_of(call) == title


def test_a_decided_item_says_who_where_and_when() -> None:
    approved = replace(
        ITEM, status=ItemStatus.APPROVED, decided_by="ada", decided_via="cli", decided_at=NOON
    )

    assert decided_text(approved) == (
        f"{ITEM.id} was approved by ada (cli) at 2026-03-01 12:00:00 UTC"
    )
    assert decided_text(replace(ITEM, status=ItemStatus.CANCELLED)) == f"{ITEM.id} is cancelled"
