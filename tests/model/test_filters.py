"""Filters as people write them: what they mean, and where an error in one is."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightherd.errors import InvalidValueError
from nightherd.model.jobs.filter import KEYS, filter_of, parse_job_filter
from nightherd.model.jobs.job import JobFilter, JobQuery, JobStatus, TriggerType
from nightherd.model.units import LARGEST, MicroUsd
from nightherd.model.workflows.filter import parse_run_filter, run_filter_of
from nightherd.model.workflows.rows import RunFilter, RunQuery
from nightherd.model.workflows.run import RunStatus

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)


def parsed(text: str) -> JobFilter:
    return parse_job_filter(text, NOW)


def test_every_key_and_words_together() -> None:
    text = (
        "agent:coder status:failed cost:>1 since:2d schedule:nightly session:sess-1 trigger:webhook"
        " run:run-2 until:2026-11-18 no luck"
    )

    assert parsed(text) == JobFilter(
        agents=("coder",),
        statuses=(JobStatus.FAILED,),
        triggers=(TriggerType.WEBHOOK,),
        schedules=("nightly",),
        sessions=("sess-1",),
        runs=("run-2",),
        least_cost=MicroUsd(1_000_001),
        most_cost=LARGEST,
        since=NOW - timedelta(days=2),
        until=datetime(2026, 11, 18, tzinfo=UTC),
        words=("no", "luck"),
    )


@pytest.mark.parametrize("text", ["", "   ", "\t\n", '""'])
def test_empty_filter_lets_everything_through(text: str) -> None:
    assert parsed(text) == JobFilter()


@pytest.mark.parametrize(
    "text", ["agent:a,b", "agent:a agent:b", "AGENT:a agent:b,a", 'agent:"a","b"']
)
def test_several_values_are_alternatives(text: str) -> None:
    assert parsed(text).agents == ("a", "b")


def test_quotes_hold_anything_together() -> None:
    found = parsed(r'agent:"a, b:c" "two words" "say \"hi\" \\ there" "cost:>1" 12:30')

    assert found.agents == ("a, b:c",)
    assert found.words == ("two words", r'say "hi" \ there', "cost:>1", "12:30")


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("cost:>1", 1_000_001, LARGEST),
        ("cost:>=1", 1_000_000, LARGEST),
        ("cost:<1", 0, 999_999),
        ("cost:<=$1", 0, 1_000_000),
        ("cost:0.25", 250_000, 250_000),
        ("cost:=0", 0, 0),
        ("cost:0.5..2", 500_000, 2_000_000),
        ("cost:>1 cost:<5", 1_000_001, 4_999_999),
    ],
)
def test_costs_are_exact(text: str, least: int, most: int) -> None:
    assert (parsed(text).least_cost, parsed(text).most_cost) == (least, most)


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ("since:90m", NOW - timedelta(minutes=90)),
        ("since:2026-11-01", datetime(2026, 11, 1, tzinfo=UTC)),
        ("since:2026-11-01T06:00:00+01:00", datetime(2026, 11, 1, 5, tzinfo=UTC)),
        ("since:7d since:1d", NOW - timedelta(days=1)),
    ],
)
def test_since_is_a_duration_a_day_or_a_time(text: str, since: datetime) -> None:
    assert parsed(text).since == since


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("agnt:coder", "column 1 of the filter: 'agnt' is no filter; use agent, cost, run,"),
        (
            "  status:broken",
            "column 10 of the filter: 'broken' is no status; use pending, running,",
        ),
        ("status:failed,brokn", "column 15 of the filter: 'brokn' is no status"),
        ("agent:", "column 7 of the filter: 'agent' needs a value after the ':'"),
        ("agent: coder", "column 7 of the filter: 'agent' needs a value after the ':'"),
        ("agent:a, b", "column 9 of the filter: 'agent' needs a value after the ','"),
        ("agent:,a", "column 7 of the filter: 'agent' needs a value"),
        ('word "open', "column 6 of the filter: the quote is not closed"),
        ('agent:"a"b', "column 10 of the filter: expected a space, not 'b'"),
        ('"a"b', "column 4 of the filter: expected a space, not 'b'"),
        ("cost:cheap", "column 6 of the filter: 'cheap' is not an amount in dollars"),
        ("cost:>-1", "column 6 of the filter: '-1' is negative"),
        (
            "a since:soon",
            "column 9 of the filter: 'soon' is neither a duration such as 2d nor a day",
        ),
        ("since:2026-02-30", "column 7 of the filter: '2026-02-30' is not a day"),
        ("since:2026-02-03T10:00", "column 7 of the filter: '2026-02-03T10:00' has no time zone"),
        ("trigger:cron", "column 9 of the filter: 'cron' is no trigger; use manual, schedule,"),
        ("http://example.org", "or put the word in quotes"),
    ],
)
def test_error_says_where_it_is_and_what_would_do(text: str, message: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        parsed(text)

    assert message in caught.value.message


def test_filter_of_too_many_values_is_refused() -> None:
    assert len(parsed("agent:" + ",".join(map(str, range(50)))).agents) == 50
    with pytest.raises(InvalidValueError, match="at most 50"):
        parsed("agent:" + ",".join(map(str, range(51))))


@given(st.text(max_size=60) | st.from_regex(r"(agent|cost|since|x):[\"a,>1 \\]*", fullmatch=True))
def test_any_text_is_a_filter_or_an_error_of_ours(text: str) -> None:
    with suppress(InvalidValueError):
        assert isinstance(parsed(text), JobFilter)


@given(st.lists(st.text(min_size=1, max_size=10), min_size=1, max_size=5))
def test_quoted_values_come_back_as_they_were(values: list[str]) -> None:
    quoted = ['"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' for value in values]

    assert parsed("agent:" + ",".join(quoted)).agents == tuple(dict.fromkeys(values))


def test_options_and_filter_must_both_hold() -> None:
    filter = JobFilter(agents=("a", "b"))

    assert filter_of(JobQuery(agent="b", filter=filter)) == JobFilter(agents=("b",))
    assert filter_of(JobQuery(agent="c", filter=filter)) is None
    runs = RunFilter(workflows=("w",), statuses=(RunStatus.FAILED,))
    assert run_filter_of(RunQuery(workflow="w", filter=runs)) == runs
    assert run_filter_of(RunQuery(status=RunStatus.PAUSED, filter=runs)) is None


def test_runs_have_keys_of_their_own() -> None:
    found = parse_run_filter("workflow:build status:paused schedule:build/nightly word", NOW)

    assert found == RunFilter(
        workflows=("build",),
        statuses=(RunStatus.PAUSED,),
        schedules=("build/nightly",),
        words=("word",),
    )
    assert "workflow" not in KEYS
    with pytest.raises(InvalidValueError, match="'agent' is no filter; use cost, schedule"):
        parse_run_filter("agent:a", NOW)
