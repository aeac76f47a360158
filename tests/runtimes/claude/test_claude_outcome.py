"""The table of failures: every kind that was seen has its name, the first row that fits counts."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest

from nightherd.model.jobs.retry import PASSING_ERRNOS
from nightherd.runtimes.claude.outcome import (
    FAILURES,
    Report,
    failure_of,
    not_started,
    reported,
    vanished,
)
from nightherd.runtimes.keeper.attendant import Ending, KilledBy

SEEN = [
    (Report(text="x", subtype="error_max_turns"), "max_turns"),
    (Report(text="x", subtype="error_max_budget_usd"), "limit"),
    (Report(text="No conversation found with session ID: 1"), "session_not_found"),
    (Report(text="Session 1b is currently running as a background agent (bg)."), "session_held"),
    (Report(text="That session is running in the background. Run `claude agents`"), "session_held"),
    (Report(text="The session has expired.", status=404), "session_expired"),
    (Report(text="No message found with message.uuid of: 1"), "message_not_found"),
    (
        Report(text="Not logged in · Please run /login", kind="authentication_failed"),
        "missing_api_key",
    ),
    (Report(text="flagged", kind="invalid_request", stop_reason="refusal"), "refused"),
    (Report(text="Prompt is too long · the request", status=400), "prompt_too_long"),
    (Report(text="too large", status=413), "prompt_too_long"),
    (Report(text="Credit balance is too low", status=400, kind="billing_error"), "billing"),
    (Report(text="exceeded", kind="max_output_tokens"), "output_limit"),
    (Report(text="x", status=401, kind="authentication_failed"), "auth_failed"),
    (Report(text="x", status=403), "auth_failed"),
    (Report(text="OAuth token has expired. Please log in.", status=401), "token_expired"),
    (Report(text="x", status=404, kind="model_not_found"), "model_not_found"),
    (Report(text="x", status=429, kind="rate_limit"), "rate_limited"),
    (Report(text="x", status=529, kind="server_error"), "overloaded"),
    (Report(text="x", status=500, kind="server_error"), "server_error"),
    (Report(text="x", status=408), "network"),
    (Report(text="x", status=425), "network"),
    (Report(text="x", status=402), "billing"),
    (Report(text="x", status=400), "invalid_request"),
    (Report(text="x", kind="rate_limit"), "rate_limited"),
    (Report(text="x", kind="authentication_failed"), "auth_failed"),
    (Report(text="x", kind="connection_failed"), "network"),
    (Report(text="Connection dropped (ECONNRESET)", kind="server_error"), "network"),
    (Report(text="Request timed out"), "network"),
    (Report(text="API returned an empty or malformed response"), "malformed_answer"),
    (Report(text="x", kind="server_error"), "server_error"),
    (Report(text="x", kind="invalid_request"), "invalid_request"),
    (Report(text="Request interrupted by user"), "interrupted"),
    (Report(text="x"), "claude_failed"),
]


@pytest.mark.parametrize(("report", "code"), SEEN)
def test_failure_has_its_name(report: Report, code: str) -> None:
    assert failure_of(report).code == code


def test_every_row_of_the_table_is_met() -> None:
    met = {failure_of(report) for report, _ in SEEN}

    assert [row for row in FAILURES if row not in met] == []


def test_every_name_is_in_the_guide(repository: Path) -> None:
    page = (repository / "docs/guide/claude.md").read_text()
    source = (repository / "src/nightherd/runtimes/claude/outcome.py").read_text()
    codes = set(re.findall(r'code="(\w+)"', source))

    assert {row.code for row in FAILURES} < codes
    assert [code for code in sorted(codes) if f"`{code}`" not in page] == []


def test_what_passes_by_itself_says_so() -> None:
    error = reported(Report(text="x", status=429), usage={"input_tokens": 1}, uuid="u")

    assert error.extra == {"recoverable": True, "status": 429, "usage": {"input_tokens": 1}}
    assert error.uuid == "u"
    assert reported(Report(text="x", status=401), usage=None, uuid=None).extra == {"status": 401}


@pytest.mark.parametrize(
    ("ending", "stderr", "code", "words"),
    [
        (Ending(returncode=-9), "", "killed", "SIGKILL"),
        (Ending(returncode=-99), "", "killed", "signal 99"),
        (Ending(returncode=None), "", "killed", "guards it"),
        (Ending(returncode=0, killed_by=KilledBy.KEEPER_GONE), "", "killed", "guards it"),
        (Ending(returncode=0), "", "no_result", "without a result"),
        (Ending(returncode=1), "", "claude_failed", "exit code 1"),
        (Ending(returncode=1), "error: unknown option", "claude_failed", "unknown option"),
        (Ending(returncode=1), "No conversation found", "session_not_found", "No conversation"),
    ],
)
def test_claude_that_just_ends_is_an_error(
    ending: Ending, stderr: str, code: str, words: str
) -> None:
    error = vanished(ending, stderr)

    assert error.code == code
    assert words in error.message


def test_long_standard_error_is_cut_to_its_end() -> None:
    error = vanished(Ending(returncode=1), "x" * 100_000 + "the end")

    assert error.message.endswith("the end")
    assert len(error.message) < 2100


def test_program_that_cannot_be_started_is_told_from_a_missing_directory() -> None:
    directory = not_started(FileNotFoundError(2, "No such file", "/gone"), "/bin/claude", "/gone")
    program = not_started(
        PermissionError(13, "Permission denied", "/bin/claude"), "/bin/claude", "/"
    )

    assert (directory.code, program.code) == ("working_directory", "missing_cli")
    assert "/gone" in directory.message
    assert "Permission denied" in program.message


@pytest.mark.parametrize("number", sorted(PASSING_ERRNOS))
@pytest.mark.parametrize("place", ["/bin/claude", "/work", "/tmp/nightherd-1", None])
def test_a_start_that_failed_and_can_pass_is_tried_again(number: int, place: str | None) -> None:
    error = not_started(OSError(number, os.strerror(number), place), "/bin/claude", "/work")

    assert (error.code, error.extra) == ("start_failed", {"recoverable": True})
    assert os.strerror(number) in error.message


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(errno.ENOENT, "gone", "/bin/claude"), "missing_cli"),
        (OSError(errno.EACCES, "no", "/bin/claude"), "missing_cli"),
        (OSError(errno.ENOEXEC, "none", "/bin/claude"), "missing_cli"),
        (OSError(errno.ENOENT, "gone", "/tmp/nightherd-1"), "claude_failed"),
        (OSError(errno.E2BIG, "too long", "/bin/claude"), "claude_failed"),
        (ValueError("embedded null byte"), "claude_failed"),
    ],
    ids=repr,
)
def test_only_a_program_that_is_not_there_or_is_none_is_missing(
    error: OSError | ValueError, code: str
) -> None:
    failure = not_started(error, "/bin/claude", "/work")

    assert (failure.code, failure.extra) == (code, None)
