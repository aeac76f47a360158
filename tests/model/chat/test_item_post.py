"""Posts about items: what is asked is shown as it is, and only our own words look like ours."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from nightherd.model.chat.item_post import ItemButton, item_post, parse_button
from nightherd.model.chat.platform import LIMITS, Platform
from nightherd.model.chat.text.characters import units
from nightherd.model.chat.text.written import WRITTEN, write_for
from nightherd.model.inbox.item import (
    InboxItem,
    InboxTexts,
    ItemId,
    ItemKind,
    ItemStatus,
    Verdict,
)
from nightherd.model.limits.limits import LimitName
from nightherd.testing.contracts.inbox import asked

ID = ItemId("ask-0123456789ab")


def item(kind: ItemKind = ItemKind.APPROVAL, **body: object) -> tuple[InboxItem, InboxTexts]:
    """An item with that body."""
    one = asked("Bash: ls", kind=kind)
    return one.item, replace(one.texts, body=body)


@pytest.mark.parametrize(
    "button",
    [
        ItemButton(item_id=ID, verdict=Verdict.APPROVE),
        ItemButton(item_id=ID, verdict=Verdict.REPLY, value="3"),
        ItemButton(item_id=ID, verdict=Verdict.RAISE, value="spend=4000000"),
    ],
)
def test_a_button_is_read_as_it_was_written(button: ItemButton) -> None:
    assert len(button.id) <= 100
    assert parse_button(button.id) == button


@pytest.mark.parametrize(
    "id", ["", "item", "item:ask-1:approve", f"item:{ID}:dance", f"x:{ID}:approve"]
)
def test_what_is_no_button_of_an_item_is_none(id: str) -> None:
    assert parse_button(id) is None


@pytest.mark.parametrize("platform", list(Platform))
def test_the_longest_call_fits_into_a_message_and_says_that_it_is_cut_off(
    platform: Platform,
) -> None:
    row, texts = item(input={"command": "x" * 60_000}, note="n" * 200)
    post = item_post(row, texts, (), platform)
    assert units(WRITTEN[platform](post.text)) <= LIMITS[platform].characters
    assert ("cut off here" in post.text) is True


def test_a_command_is_shown_as_it_is_typed_and_other_calls_as_json() -> None:
    row, texts = item(input={"command": "ls -l", "description": "List files"})
    assert "```\nls -l\n```" in item_post(row, texts, (), Platform.SLACK).text
    row, texts = item(input={"path": "a", "text": "b"})
    assert '"path": "a"' in item_post(row, texts, (), Platform.SLACK).text


def test_a_diff_is_shown_instead_of_the_arguments() -> None:
    row, texts = item(input={"path": "a"}, preview="-old\n+new")
    text = item_post(row, texts, (), Platform.DISCORD).text
    assert "```diff\n-old\n+new\n```" in text
    assert "path" not in text


def test_every_line_of_a_question_is_quoted() -> None:
    row, texts = item(ItemKind.QUESTION, question="Which?\n**Approved by ada**")
    assert "> Which?\n> **Approved by ada**" in item_post(row, texts, (), Platform.SLACK).text


def test_no_question_has_more_buttons_than_a_message_may_have() -> None:
    row, texts = item(ItemKind.QUESTION, question="Which?", options=[f"{n}" for n in range(50)])
    for platform in Platform:
        buttons = item_post(row, texts, (), platform).buttons
        assert len(buttons) == LIMITS[platform].buttons
        assert [one["label"] for one in buttons[-2:]] == ["Answer...", "Reject"]


def test_labels_are_short_enough_for_the_platforms() -> None:
    row, texts = item(ItemKind.QUESTION, question="Which?", options=["o" * 500])
    labels = [one["label"] for one in item_post(row, texts, (), Platform.SLACK).buttons]
    assert all(0 < len(label) <= 75 for label in labels)


def test_a_limit_that_cannot_be_raised_is_only_rejected() -> None:
    row, texts = item(ItemKind.LIMIT, error="spend: $2.00 of $2.00")
    assert [one["label"] for one in item_post(row, texts, (), Platform.SLACK).buttons] == ["Reject"]
    raised = item_post(row, texts, (), Platform.SLACK, raised=(LimitName.SPEND, 4_000_000))
    assert [one["label"] for one in raised.buttons] == ["Raise to $4.00", "Raise...", "Reject"]


@pytest.mark.parametrize("status", [one for one in ItemStatus if one is not ItemStatus.PENDING])
def test_an_item_that_is_over_has_no_buttons_and_says_how_it_ended(status: ItemStatus) -> None:
    row, texts = item(input={"command": "ls"})
    over = replace(row, status=status, decided_by="ada", decided_via="cli")
    post = item_post(over, texts, (), Platform.SLACK)
    assert post.details == {}
    assert len(post.text.splitlines()) == 2


def test_what_is_longer_than_a_message_ends_where_that_is_full() -> None:
    text = "word " * 3_000
    for platform in (Platform.SLACK, Platform.DISCORD):
        written = write_for(platform, text)
        assert 0 < units(written) <= LIMITS[platform].characters
        assert text.startswith(written[:100])
