"""Text for people: nothing in it can steer a terminal, and times read the way people say them."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightherd.cli.jobs.event_text import event_text
from nightherd.cli.screen.progress import Spinner
from nightherd.cli.screen.render import (
    ColorChoice,
    Screen,
    Style,
    length,
    local_text,
    neutralise,
    one_line,
    relative,
    status_cell,
    table,
    wants_color,
)
from nightherd.model.ids import ExecutionId, JobId
from nightherd.model.jobs.job import Job, JobStatus, TriggerType
from nightherd.model.journal.event import AssistantEvent, describe
from nightherd.model.journal.system import Recovered, Resumed
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Usage

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
HARMLESS = {"\n", "\t"}


@given(st.text())
def test_no_text_keeps_a_character_that_a_terminal_obeys(text: str) -> None:
    safe = neutralise(text)

    assert [c for c in safe if (ord(c) < 32 or 0x7F <= ord(c) < 0xA0) and c not in HARMLESS] == []
    assert not set(safe) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@given(st.text(st.characters(exclude_categories=("Cc", "Cf", "Zl", "Zp"))))
def test_ordinary_text_is_left_as_it_is(text: str) -> None:
    assert neutralise(text) == text


def test_what_was_neutralised_can_still_be_read() -> None:
    assert neutralise("a\x1b[31mb\rc\x9bd\u202ee\r\nf") == "a\\x1b[31mb\\rc\\x9bd\\u202ee\nf"


def test_one_line_is_one_line_and_says_that_it_was_cut() -> None:
    assert one_line(" a\n  b\tc ") == "a b c"
    assert one_line("abcdef", 4) == "abc…"
    assert one_line("abcd", 4) == "abcd"


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "now"),
        (59, "59s ago"),
        (60, "1m ago"),
        (3_599, "59m ago"),
        (7_200, "2h ago"),
        (200_000, "2d ago"),
        (-90, "in 1m"),
    ],
)
def test_past_and_future_are_told_in_one_unit(seconds: int, expected: str) -> None:
    assert relative(NOW - timedelta(seconds=seconds), NOW) == expected


def test_instant_that_never_came_is_a_dash() -> None:
    screens = [Screen(Terminal(), Terminal(), {}), Screen(io.StringIO(), io.StringIO(), {})]

    assert relative(None, NOW) == length(None) == "-"
    assert [screen.time(None) for screen in screens] == ["-", "-"]


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def in_tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("in_tokyo")
def test_time_in_a_pipe_is_in_utc_wherever_it_was_taken() -> None:
    screen = Screen(io.StringIO(), io.StringIO(), {})

    assert screen.time(NOW) == screen.time(NOW, "Europe/Berlin") == "2026-11-15T12:00:00Z"


@pytest.mark.usefixtures("in_tokyo")
def test_time_on_a_terminal_is_local_and_names_its_zone() -> None:
    screen = Screen(Terminal(), io.StringIO(), {})

    assert screen.time(NOW) == local_text(NOW) == "2026-11-15 21:00:00 JST"
    assert screen.time(NOW, "Europe/Berlin") == "2026-11-15 13:00:00 Europe/Berlin"


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0.04, "40ms"), (2.34, "2.3s"), (61, "1m1s"), (3_720, "1h2m")]
)
def test_length_is_as_precise_as_a_person_wants_it(seconds: float, expected: str) -> None:
    assert length(timedelta(seconds=seconds)) == expected


@pytest.mark.parametrize(
    ("choice", "environ", "is_tty", "expected"),
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"FORCE_COLOR": "1"}, False, True),
        ("auto", {"FORCE_COLOR": "0"}, False, False),
        ("auto", {"CLICOLOR_FORCE": "1"}, False, True),
        ("auto", {"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
        ("auto", {"CLICOLOR": "0"}, True, False),
        ("auto", {"TERM": "dumb"}, True, False),
        ("always", {"NO_COLOR": "1"}, False, True),
        ("never", {"FORCE_COLOR": "1"}, True, False),
    ],
)
def test_colour_follows_the_option_then_the_environment_then_the_terminal(
    choice: str, environ: dict[str, str], is_tty: bool, expected: bool
) -> None:
    assert wants_color(ColorChoice(choice), environ, is_tty) is expected


@pytest.mark.parametrize("status", JobStatus)
def test_status_is_a_sign_and_a_word_with_and_without_colour(status: JobStatus) -> None:
    plain, colored = Style(False).status(status.value), Style(True).status(status.value)

    assert plain == status_cell(status.value)
    assert plain.endswith(f" {status.value}")
    assert plain in colored
    assert colored.startswith("\x1b[")


def test_table_is_aligned_and_only_its_last_column_is_cut() -> None:
    rows = [("job-1", "✔ completed", "a long summary"), ("job-22", "✗ failed", "x")]

    plain = table(("ID", "STATUS", "SUMMARY"), rows, width=30, style=Style(False))

    assert plain.splitlines() == [
        "ID      STATUS       SUMMARY",
        "job-1   ✔ completed  a long s…",
        "job-22  ✗ failed     x",
    ]


def test_columns_that_can_be_spared_give_way_to_the_last_one() -> None:
    heading = ("ID", "TOOK", "TURNS", "SUMMARY")
    rows = [("job-1", "1.0s", "2", "a summary that says a lot"), ("job-2", "1.0s", "3", "")]

    def seen(width: int) -> list[str]:
        shown = table(heading, rows, width=width, style=Style(False), spare=("TURNS", "TOOK"))
        assert max(len(line) for line in shown.splitlines()) <= width
        return shown.splitlines()[0].split()

    assert seen(40) == ["ID", "TOOK", "TURNS", "SUMMARY"]
    assert seen(30) == ["ID", "TOOK", "SUMMARY"]
    assert seen(25) == ["ID", "SUMMARY"]


def test_colour_does_not_change_what_a_table_says() -> None:
    rows = [("job-1", "✔ completed", "done"), ("job-22", "✗ failed", "x")]

    colored = table(("ID", "STATUS", "SUMMARY"), rows, width=None, style=Style(True))
    plain = table(("ID", "STATUS", "SUMMARY"), rows, width=None, style=Style(False))

    assert colored != plain
    bare = colored
    for code in ("0", "1", "31", "32"):
        bare = bare.replace(f"\x1b[{code}m", "")
    assert bare == plain


@pytest.mark.parametrize(
    ("payload", "line"),
    [
        (Resumed(reason="suspended", after_seq=14), "- resumed: suspended"),
        (
            Recovered(lost_execution=ExecutionId("job-1.1"), reason="its worker is gone"),
            "- recovered: its worker is gone",
        ),
    ],
)
def test_a_job_that_goes_on_says_why(payload: Resumed | Recovered, line: str) -> None:
    assert event_text(describe(payload), Style(False)) == line


def test_progress_of_a_job_that_goes_on_counts_what_it_had_cost() -> None:
    written = io.StringIO()
    job = Job(
        id=JobId("job-2026-11-15-aaaaaa"),
        agent="spender",
        trigger_type=TriggerType.MANUAL,
        status=JobStatus.PENDING,
        created_at=NOW,
        turns=2,
        cost_microusd=MicroUsd(400_000),
    )
    answer = AssistantEvent(
        content="x", turn=3, end=True, usage=Usage(cost_microusd=MicroUsd(200_000))
    )

    with Spinner(written, "spender", is_colored=False) as spinner:
        spinner.begin(job)
        spinner.update(answer)
        with spinner.aside():
            pass

    assert "spender: turn 3, thinking, $0.60" in written.getvalue()
