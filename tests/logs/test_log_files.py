"""Log files: lines whole and in order from any number of writers, rotated, masked, and never in the way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from nightherd.logs.files import UNREADABLE, LogFiles, RotatingFile, files_of
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import ExitReason, Job, JobStatus, TriggerType
from nightherd.model.jobs.lost import with_observation
from nightherd.model.journal.event import AssistantEvent, ErrorEvent, Event, describe
from nightherd.model.journal.system import Denied, HookRan, Warned
from nightherd.model.log import LogLevel, LogLine, line_of_end, line_of_event, line_of_start
from nightherd.model.secrets import Secrets, find_secrets

AT = datetime(2026, 11, 15, 3, tzinfo=UTC)
NO_SECRETS = Secrets({}, None)
JOB = Job(
    id=JobId("job-2026-11-15-abcdef"),
    agent="hello",
    trigger_type=TriggerType.SCHEDULE,
    status=JobStatus.RUNNING,
    created_at=AT,
    started_at=AT,
    epoch=1,
)


def line(number: int, agent: str | None = "hello", **more: object) -> LogLine:
    at = AT + timedelta(seconds=number)
    return LogLine(at=at, event="test", agent=agent, data={"number": number, **more})


def numbers(files: LogFiles, *names: str) -> list[int]:
    return [one.data["number"] for one in files.read(list(names))]


def test_lines_of_several_logs_come_in_the_order_of_time(tmp_path: Path) -> None:
    files = LogFiles(tmp_path, NO_SECRETS)
    for number in range(6):
        files.write(line(number, ("one", "two", None)[number % 3]))

    assert files.names() == ["nightherd", "one", "two"]
    assert numbers(files, "one", "two", "nightherd") == [0, 1, 2, 3, 4, 5]
    assert numbers(files, "two") == [1, 4]
    assert numbers(files, "nobody") == []
    files.close()


def test_a_line_is_one_json_object_that_only_its_owner_can_read(tmp_path: Path) -> None:
    files = LogFiles(tmp_path, NO_SECRETS)
    files.write(line(1))
    files.close()

    path = tmp_path / "hello.log"
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(path.read_text()) == {
        "at": "2026-11-15T03:00:01Z",
        "event": "test",
        "agent": "hello",
        "data": {"number": 1},
    }


def test_secrets_are_masked_wherever_they_stand(tmp_path: Path) -> None:
    files = LogFiles(tmp_path, find_secrets({"API_KEY": "sk-12345678"}))
    files.write(LogLine(at=AT, event="x", message="used sk-12345678", data={"in": ["sk-12345678"]}))
    files.close()

    text = (tmp_path / "nightherd.log").read_text()
    assert "sk-12345678" not in text
    assert text.count("[secret:API_KEY]") == 2


def test_a_log_is_set_aside_when_it_is_large_and_the_oldest_goes(tmp_path: Path) -> None:
    files = LogFiles(tmp_path, NO_SECRETS, limit=2_000, kept=3)
    for number in range(300):
        files.write(line(number))
    files.close()

    there = list(files_of(tmp_path / "hello.log"))
    assert [path.name for path in there] == [
        "hello.log.3", "hello.log.2", "hello.log.1", "hello.log",
    ]  # fmt: skip
    assert all(path.stat().st_size <= 2_000 for path in there)
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in there)
    kept = numbers(files, "hello")
    assert kept == list(range(kept[0], 300))
    assert kept[0] > 0


WRITER = """
import sys
from msgspec.structs import replace
from datetime import UTC, datetime
from pathlib import Path
from nightherd.logs.files import LogFiles
from nightherd.model.log import LogLine
from nightherd.model.secrets import Secrets
files = LogFiles(Path(sys.argv[1]), Secrets({}, None), limit=20_000, kept=100)
for number in range(400):
    files.write(LogLine(at=datetime.now(UTC), event="x", data={"by": sys.argv[2], "number": number}))
"""


def test_processes_that_write_and_rotate_together_lose_nothing(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), str(name)])
        for name in range(4)
    ]

    assert [writer.wait() for writer in writers] == [0, 0, 0, 0]
    files = LogFiles(tmp_path, NO_SECRETS)
    found = [(one.data["by"], one.data["number"]) for one in files.read(["nightherd"])]
    assert sorted(found) == sorted((str(by), number) for by in range(4) for number in range(400))
    assert (tmp_path / "nightherd.log.1").exists()


def test_a_follower_misses_nothing_when_files_are_rotated(tmp_path: Path) -> None:
    files = LogFiles(tmp_path, NO_SECRETS, limit=1_500, kept=50)
    files.write(line(0))
    tail = files.tail("hello")
    seen = [one.data["number"] for one in tail.poll()]
    for number in range(1, 100):
        files.write(line(number))
        if number % 3 == 0:
            seen += [one.data["number"] for one in tail.poll()]
    seen += [one.data["number"] for one in tail.poll()]
    tail.close()
    files.close()

    assert seen == list(range(100))


def test_a_follower_waits_for_a_log_that_is_not_there_yet(tmp_path: Path) -> None:
    files = LogFiles(tmp_path, NO_SECRETS)
    tail = files.tail("hello")
    assert tail.poll() == []

    files.write(line(1))

    assert [one.data["number"] for one in tail.poll()] == [1]
    tail.close()
    files.close()


def test_what_cannot_be_read_is_shown_as_it_is(tmp_path: Path) -> None:
    files = LogFiles(tmp_path, NO_SECRETS)
    files.write(line(1))
    with (tmp_path / "hello.log").open("ab") as file:
        file.write(b"what is this?\xff\nhalf a li")

    good, bad = files.read(["hello"])

    assert (bad.event, bad.level, bad.message) == (
        UNREADABLE,
        LogLevel.WARNING,
        "what is this?\ufffd",
    )
    assert (good.event, good.at) == ("test", bad.at)
    files.close()


def test_a_log_that_cannot_be_written_is_nobodys_trouble(tmp_path: Path) -> None:
    (tmp_path / "hello.log").mkdir()
    files = LogFiles(tmp_path, NO_SECRETS)

    files.write(line(1))
    files.write(line(2, "other"))

    assert numbers(files, "other") == [2]
    files.close()


def test_a_log_is_never_written_through_a_link(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("mine\n")
    (tmp_path / "hello.log").symlink_to(target)
    files = LogFiles(tmp_path, NO_SECRETS)

    files.write(line(1))
    files.close()

    assert target.read_text() == "mine\n"


def test_many_agents_do_not_use_up_the_handles(tmp_path: Path) -> None:
    files = LogFiles(tmp_path, NO_SECRETS)
    for number in range(300):
        files.write(line(number, f"agent-{number}"))
    there = Path("/proc/self/fd")
    if there.exists():
        held = [one for one in there.iterdir() if str(tmp_path) in os.path.realpath(one)]
        assert len(held) <= 64
    files.close()

    assert len(files.names()) == 300


def test_a_file_that_was_deleted_is_made_again(tmp_path: Path) -> None:
    log = RotatingFile(tmp_path / "a.log")
    log.append(b"one\n")
    (tmp_path / "a.log").unlink()
    log.append(b"two\n")
    log.close()

    assert (tmp_path / "a.log").read_bytes() == b"two\n"


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (ErrorEvent(message="no luck", code="bad"), ("job.error", LogLevel.ERROR, "no luck")),
        (describe(Warned(code="w"), "careful"), ("job.warning", LogLevel.WARNING, "careful")),
        (
            describe(Denied(tool_name="Bash", reason="plan")),
            ("job.denied", LogLevel.WARNING, None),
        ),
        (
            describe(HookRan(name="h", id="x", event="completed", success=True)),
            ("job.hook", LogLevel.INFO, None),
        ),
        (
            describe(HookRan(name="h", id="x", event="completed", success=False)),
            ("job.hook", LogLevel.WARNING, None),
        ),
        (describe(HookRan(name="h", id="x", event="completed")), None),
        (AssistantEvent(content="talk"), None),
    ],
)
def test_operators_hear_of_what_went_wrong_and_not_of_what_was_said(
    event: Event, said: tuple[str, LogLevel, str | None] | None
) -> None:
    found = line_of_event(JOB, msgspec.structs.replace(event, timestamp=AT, seq=4))

    assert (found and (found.event, found.level, found.message)) == said


def test_begin_and_end_of_a_job_are_lines() -> None:
    ended = AT + timedelta(seconds=2)
    failed = replace(
        JOB, status=JobStatus.FAILED, exit_reason=ExitReason.ERROR, finished_at=ended, error="no"
    )

    seen = with_observation(failed, None, timedelta(seconds=2))
    start, end = line_of_start(JOB, AT), line_of_end(seen, ended)

    assert (start.event, start.data) == ("job.started", {"trigger": "schedule", "epoch": 1})
    assert (end.event, end.level, end.message) == ("job.ended", LogLevel.ERROR, "no")
    assert end.data["duration_seconds"] == 2.0
