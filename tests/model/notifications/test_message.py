"""What messages say, whatever texts agents and people put into them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nightherd.cli.next_steps import command_for
from nightherd.errors import InvalidValueError
from nightherd.model.ids import JobId
from nightherd.model.inbox.item import InboxItem, InboxTexts, ItemKind, ItemStatus, item_id
from nightherd.model.jobs.job import Job, JobStatus, TriggerType
from nightherd.model.notifications.digest import DigestFacts, digest_fields, digest_texts, last_due
from nightherd.model.notifications.events import Happening
from nightherd.model.notifications.message import (
    TEXT_LIMIT,
    Message,
    check_template,
    fields_of,
    fill,
    render_message,
)
from nightherd.model.notifications.notification import SUBJECT_LIMIT
from nightherd.model.notifications.target import Digest, NotifyEvent, parse_time
from nightherd.model.units import MicroUsd

NOW = datetime(2026, 3, 1, 7, 30, tzinfo=UTC)
JOB = Job(
    id=JobId("job-2026-03-01-aaaaaa"),
    agent="grazer",
    trigger_type=TriggerType.MANUAL,
    status=JobStatus.FAILED,
    created_at=NOW,
    finished_at=NOW,
    error="boom",
    cost_microusd=MicroUsd(250_000),
)


def rendered(error: str, *, title: str | None = None, template: str | None = None) -> Message:
    happening = Happening(event=NotifyEvent.FAILED, key="k", job=replace(JOB, error=error))
    fields = fields_of(happening, None)
    return render_message(fields, target="phone", spell=command_for, title=title, template=template)


@given(st.text(max_size=300))
def test_no_text_ends_a_header_or_breaks_a_limit(text: str) -> None:
    message = rendered(text, title="${notice.title}", template="${notice.what}")

    assert message.title.isprintable() or "\u200b" in message.title or " " in message.title
    assert not any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 for char in message.title)
    assert len(message.title) <= SUBJECT_LIMIT * 2
    assert len(message.text) <= TEXT_LIMIT * 2
    message.title.encode()
    message.text.encode()


@pytest.mark.parametrize(
    "hostile",
    [
        "x\r\nBcc: everybody@example.com",
        "x\nSubject: other",
        "x\u2028X-Header: 1",
        "x\x00\x1b[2J",
    ],
)
def test_a_title_is_one_line(hostile: str) -> None:
    title = rendered(hostile).title

    assert "\n" not in title
    assert "\r" not in title
    assert title.isprintable()


@pytest.mark.parametrize(
    "hostile",
    [
        "${notice.agent}",
        "{agent}",
        "%(agent)s",
        "{{ 7 * 7 }}",
        "{0.__class__}",
        "$(id)",
        "`id`",
        "${HOME}",
    ],
)
def test_nothing_in_a_value_is_read_as_a_template(hostile: str) -> None:
    message = rendered(hostile, template="<${notice.what}>")

    assert message.text == f"<{hostile}>"


@pytest.mark.parametrize(
    "hostile", ["@everyone", "@here", "<!channel>", "<@U123>", "<!subteam^S1>"]
)
def test_agents_cannot_call_everybody(hostile: str) -> None:
    message = rendered(f"look {hostile}")

    assert hostile not in message.text
    assert hostile not in message.title


def test_an_approval_says_first_why_it_is_asked() -> None:
    item = InboxItem(
        id=item_id("k"),
        kind=ItemKind.APPROVAL,
        status=ItemStatus.PENDING,
        created_at=NOW,
        subject=JOB.id,
        title="run it again? Bash: make",
        dedupe_key="k",
    )
    body = {"tool": "Bash", "input": {"command": "make"}, "note": "run it again?"}
    happening = Happening(event=NotifyEvent.APPROVAL, key="k", item=item)

    fields = fields_of(happening, InboxTexts(item_id=item.id, body=body), job=JOB)

    assert fields["what"] == "run it again?\n\nBash: make"


def test_a_place_that_is_not_known_is_an_error_when_the_file_is_read() -> None:
    assert check_template("${notice.title} and ${OTHER}") == "${notice.title} and ${OTHER}"

    with pytest.raises(InvalidValueError, match=r"notice\.titel"):
        check_template("${notice.titel}")


def test_a_place_without_a_value_is_empty() -> None:
    assert fill("[${notice.link}]", {}) == "[]"


def test_calls_that_were_denied_are_told() -> None:
    happening = Happening(event=NotifyEvent.COMPLETED, key="k", job=JOB)
    denials = [f"Bash: push {number}" for number in range(7)]

    message = render_message(
        fields_of(happening, None, denials=denials), target="phone", spell=command_for
    )

    assert "Denied: Bash: push 0; Bash: push 1" in message.text
    assert "and 2 more" in message.text


def test_a_digest_says_what_ran_what_it_cost_what_failed_and_what_waits() -> None:
    item = InboxItem(
        id=item_id("x"),
        kind=ItemKind.APPROVAL,
        status=ItemStatus.PENDING,
        created_at=NOW,
        subject=JOB.id,
        title="Bash: <script>alert(1)</script>",
        dedupe_key="x",
        agent="grazer",
    )
    done = replace(JOB, status=JobStatus.COMPLETED, error=None)
    facts = DigestFacts(since=NOW, until=NOW, ended=[JOB, done], waiting=[item], waiting_count=30)

    kept = digest_fields(facts, command_for)
    fields = digest_texts(kept, lambda item: f"https://fleet.example/{item}?a=1&b=2")

    assert fields["title"] == "Digest: 2 jobs ended, 1 failed, 30 waiting, $0.50"
    assert "grazer: 1 completed, 1 failed, $0.50" in fields["text"]
    assert f"grazer {JOB.id}: boom" in fields["text"]
    assert f"nightherd inbox approve {item.id}" in fields["text"]
    assert "and 29 more" in fields["text"]
    assert f"https://fleet.example/{item.id}?a=1&b=2" in fields["text"]
    assert f'<a href="https://fleet.example/{item.id}?a=1&amp;b=2">' in fields["html"]
    assert "fleet.example" not in str(kept)
    assert "<script>" not in fields["html"]
    assert "&lt;script&gt;" in fields["html"]


def test_a_digest_is_due_at_its_time_on_the_wall_of_its_zone() -> None:
    digest = Digest(at=parse_time("07:30"), timezone="Europe/Berlin")
    winter, summer = datetime(2026, 1, 10, 12, tzinfo=UTC), datetime(2026, 7, 10, 12, tzinfo=UTC)

    assert last_due(digest, winter) == datetime(2026, 1, 10, 6, 30, tzinfo=UTC)
    assert last_due(digest, summer) == datetime(2026, 7, 10, 5, 30, tzinfo=UTC)
    assert last_due(digest, winter.replace(hour=6)) == datetime(2026, 1, 9, 6, 30, tzinfo=UTC)


@pytest.mark.parametrize("text", ["7:30", "24:00", "07:60", "0730", "", "07:30:00"])
def test_a_time_of_the_day_has_one_form(text: str) -> None:
    with pytest.raises(InvalidValueError, match="07:30"):
        parse_time(text)
