"""Filtered lists of sessions: exactly what fits, in order and in pages, through an index."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from nightherd.errors import InvalidValueError
from nightherd.model.ids import SessionId
from nightherd.model.sessions.filter import parse_session_filter, session_fits
from nightherd.model.sessions.session import Session, SessionMode, SessionQuery, SessionStatus
from nightherd.model.units import MicroUsd
from nightherd.state.filtered_sessions import session_statements
from nightherd.state.reader import SqliteReader
from state.test_filtered_lists import plan, reader_of

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
FILTERS = [
    "agent:coder",
    "agent:coder,writer,nobody",
    "status:paused",
    "status:paused,expired mode:persistent",
    "mode:per_channel",
    "agent:coder status:completed",
    "cost:>0.5",
    "cost:0 agent:writer",
    "since:3d",
    "since:5d until:2d",
    "schedule:nightly",
    "schedule:coder/nightly",
    "channel:red",
    'channel:red,"a b"',
    "parser",
    "PARSER 100%",
    "agent:coder parser since:4d",
    "agent:a,b,c,d,e,f,g,h,i,j,k,l,coder",
]


def make_session(number: int, random: Random) -> Session:
    created = NOW - timedelta(hours=random.randrange(0, 7 * 24, 4))
    return Session(
        id=SessionId(f"sess-{number:08d}"),
        agent=random.choice(["coder", "writer", "reader"]),
        mode=random.choice(list(SessionMode)),
        status=random.choice(list(SessionStatus)),
        runtime_type="scripted",
        working_directory="/srv",
        created_at=created,
        last_active_at=created,
        channel_id=random.choice([None, "red", "a b"]),
        schedule=random.choice([None, None, "nightly"]),
        name=random.choice([None, "the parser", "parser 100%", "parser 100"]),
        cost_microusd=MicroUsd(random.choice([0, 500_000, 2_000_000])),
        removed_at=random.choice([None, None, None, NOW]),
        number=number,
    )


@pytest.fixture(scope="module")
def sessions(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[SqliteReader, list[Session]]]:
    directory = tmp_path_factory.mktemp("sessions")
    with reader_of(directory, Session, "sessions", make_session) as found:
        yield found


@pytest.mark.parametrize("text", ["", *FILTERS])
def test_list_of_sessions_has_exactly_what_fits_in_pages(
    text: str, sessions: tuple[SqliteReader, list[Session]]
) -> None:
    reader, rows = sessions
    filter = parse_session_filter(text, NOW)
    kept = [row for row in rows if row.removed_at is None]
    newest = sorted(kept, key=lambda one: (one.created_at, one.number), reverse=True)
    expected = [one.id for one in newest if session_fits(one, filter)]

    found: list[str] = []
    before = None
    while page := reader.list_sessions(SessionQuery(filter=filter, before=before, limit=17)):
        found += [one.id for one in page]
        before = page[-1].number

    assert found == expected
    assert 0 < len(expected) < len(kept) or text == ""


def test_a_query_and_its_filter_must_both_hold(
    sessions: tuple[SqliteReader, list[Session]],
) -> None:
    reader, _ = sessions
    filter = parse_session_filter("agent:coder,writer status:paused,expired", NOW)

    both = reader.list_sessions(
        SessionQuery(agent="coder", status=SessionStatus.PAUSED, filter=filter, limit=1_000)
    )
    none = [
        reader.list_sessions(SessionQuery(agent="reader", filter=filter)),
        reader.list_sessions(SessionQuery(status=SessionStatus.ACTIVE, filter=filter)),
        reader.list_sessions(
            SessionQuery(
                mode=SessionMode.PERSISTENT, filter=parse_session_filter("mode:per_channel", NOW)
            )
        ),
    ]

    assert both
    assert {(one.agent, one.status) for one in both} == {("coder", SessionStatus.PAUSED)}
    assert none == [(), (), ()]


@pytest.mark.parametrize("text", ["", *FILTERS])
def test_filter_of_sessions_finds_its_rows_through_an_index(text: str, tmp_path: Path) -> None:
    steps = plan(tmp_path, session_statements(parse_session_filter(text, NOW), 1_000, 20))

    assert any(step.startswith("SEARCH sessions USING INDEX") for step in steps)
    assert not any(step.startswith("SCAN ") or "TEMP B-TREE" in step for step in steps), steps


def test_an_error_in_a_filter_names_its_column() -> None:
    with pytest.raises(InvalidValueError, match="column 13 of the filter: 'trigger' is no filter"):
        parse_session_filter("agent:coder trigger:manual", NOW)
    with pytest.raises(InvalidValueError, match="'asleep' is no status"):
        parse_session_filter("status:asleep", NOW)
