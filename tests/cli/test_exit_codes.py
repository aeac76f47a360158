"""Exit codes: every code that can be reached today, for people and with `--json`, which agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from nightherd.cli.jobs.command import exit_code_of
from nightherd.model.ids import generate_job_id
from nightherd.model.jobs.job import ExitReason, Job, JobStatus, SuspendReason, TriggerType
from nightherd.wiring.stores import system_clock
from surfaces.drivers import Cli

CASES = [
    (0, ("run", "hello")),
    (0, ("jobs",)),
    (1, ("run", "failing")),
    (2, ("jobs", "--limit", "none")),
    (2, ("run", "mute")),
    (2, ("run", "echo", "-p", "")),
    (3, ("run", "nobody")),
    (3, ("jobs", "show", "job-1999-01-01-aaaaaa")),
    (3, ("jobs", "show", "@last-failed")),
    (5, ("run", "claude")),
    (5, ("init",)),
    (75, ("run", "limited")),
    (78, ("--config", "missing.yaml", "run", "hello")),
    (124, ("run", "late")),
]


@pytest.mark.parametrize(("code", "words"), CASES, ids=[" ".join(words) for _, words in CASES])
def test_command_ends_with_its_code(
    code: int, words: tuple[str, ...], cli: Cli, fleet: Path
) -> None:
    people, programs = cli(*words), cli(*words, "--json")

    assert people.code == programs.code == code
    if programs.document["schema"] == "nightherd/v1/error":
        assert programs.data["exit_code"] == code
        assert programs.data["message"] in people.err


@pytest.mark.parametrize(
    ("status", "exit_reason", "suspend_reason", "code"),
    [
        (JobStatus.COMPLETED, ExitReason.SUCCESS, None, 0),
        (JobStatus.FAILED, ExitReason.ERROR, None, 1),
        (JobStatus.FAILED, ExitReason.LIMIT, None, 6),
        (JobStatus.FAILED, ExitReason.TIMEOUT, None, 124),
        (JobStatus.FAILED, ExitReason.MAX_TURNS, None, 1),
        (JobStatus.CANCELLED, ExitReason.CANCELLED, None, 130),
        (JobStatus.SUSPENDED, None, SuspendReason.LIMIT, 6),
        (JobStatus.SUSPENDED, None, SuspendReason.BUDGET, 6),
        (JobStatus.SUSPENDED, None, SuspendReason.APPROVAL, 8),
        (JobStatus.SUSPENDED, None, SuspendReason.RATE_LIMIT, 8),
        (JobStatus.PENDING, None, None, 8),
    ],
)
def test_run_ends_as_its_job_stands(
    status: JobStatus,
    exit_reason: ExitReason | None,
    suspend_reason: SuspendReason | None,
    code: int,
) -> None:
    now = system_clock().now()
    job = Job(
        id=generate_job_id(now, lambda length: "a" * length),
        agent="a",
        trigger_type=TriggerType.MANUAL,
        status=status,
        created_at=now,
        exit_reason=exit_reason,
        suspend_reason=suspend_reason,
    )

    assert exit_code_of(job) == code


def test_directory_that_cannot_be_used_sends_to_the_doctor_but_not_from_there(
    cli: Cli, fleet: Path
) -> None:
    cli("run", "hello")
    (fleet / ".nightherd/nightherd.db").write_bytes(b"no database " * 100)

    jobs, doctor = cli("jobs", "--json"), cli("doctor")

    assert jobs.code == 1
    assert jobs.data["hint"].startswith("nightherd doctor")
    assert "try: nightherd doctor\n" not in doctor.err


@pytest.mark.parametrize(
    ("words", "step"),
    [
        (("jobs", "show", "job-1999-01-01-aaaaaa"), "nightherd jobs"),
        (("config", "show", "nobody"), "nightherd agent"),
        (("session", "show", "sess-aaaaaaaa"), "nightherd session"),
        (("run", "echo", "-p", "x", "--detach", "--wait"), "nightherd run --help"),
        (("--config", "missing.yaml", "run", "hello"), "nightherd init"),
    ],
)
def test_what_is_not_there_names_the_command_that_lists_it(
    words: tuple[str, ...], step: str, cli: Cli, fleet: Path
) -> None:
    assert cli(*words, "--json").data["hint"].startswith(step)
