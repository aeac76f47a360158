"""`jobs tail`: the last events, all of them, or as they come, whoever writes them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from nightherd.model.ids import JobId, generate_execution_id
from nightherd.model.journal.event import AssistantEvent, Event, describe
from nightherd.model.journal.system import End
from nightherd.wiring.stores import open_journals
from surfaces.drivers import Cli, Shell, execute_pending, submit_pending


def read_line(process: subprocess.Popen[bytes], *, from_talk: bool = False) -> str:
    stream = process.stderr if from_talk else process.stdout
    assert stream is not None
    return stream.readline().decode()


def append(directory: Path, job_id: JobId, epoch: int, *events: Event) -> None:
    """What the worker of one execution would write."""
    journals = open_journals(directory / ".nightherd")
    journal = journals.open(job_id, epoch=epoch, execution=generate_execution_id(job_id, epoch))
    for event in events:
        journal.append(event)
    journal.close()


def test_tail_shows_a_finished_job_as_it_was_lived(cli: Cli, fleet: Path) -> None:
    lived = cli("run", "hello", "-p", "the night")

    result = cli("jobs", "tail", "@last", "-n", "all")

    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0] == "» the night"
    assert lines[1:-1] == lived.out.splitlines()
    assert lines[-1] == "✔ completed (success)"


def test_tail_for_programs_is_one_document_per_event(cli: Cli, fleet: Path) -> None:
    assert cli("run", "hello").code == 0

    documents = cli("jobs", "tail", "@last", "-n", "all", "--json").documents

    assert {document["schema"] for document in documents} == {"nightherd/v1/event"}
    assert [document["data"]["seq"] for document in documents] == list(range(1, len(documents) + 1))
    assert documents[0]["data"]["subtype"] == "header"
    assert documents[-1]["data"]["subtype"] == "end"


def test_tail_begins_with_the_last_so_many(cli: Cli, fleet: Path) -> None:
    assert cli("run", "hello").code == 0
    everything = cli("jobs", "tail", "@last", "-n", "all", "--json").documents

    some = cli("jobs", "tail", "@last", "-n", "3", "--json").documents

    assert [one["data"] for one in some] == [one["data"] for one in everything[-3:]]


@pytest.mark.parametrize("count", ["0", "-1", "many", ""])
def test_count_that_is_none_is_a_usage_error(count: str, cli: Cli, fleet: Path) -> None:
    assert cli("jobs", "tail", "@last", "-n", count).code == 2


def test_following_a_finished_job_ends_at_once(cli: Cli, fleet: Path) -> None:
    assert cli("run", "hello").code == 0

    plain, followed = cli("jobs", "tail", "@last"), cli("jobs", "tail", "@last", "-f")

    assert followed.out == plain.out


def test_follower_waits_for_a_job_that_has_no_journal_yet(shell: Shell, fleet: Path) -> None:
    job_id = submit_pending(fleet)
    follower = shell.start(
        "jobs", "tail", job_id, "-f", "-n", "all", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert (
        read_line(follower, from_talk=True)
        == f"{job_id} has not started; waiting for its first event\n"
    )

    execute_pending(fleet, job_id)

    out, err = follower.communicate()
    assert (follower.returncode, err) == (0, b"")
    assert out.decode().splitlines()[0] == "» the reader"
    assert out.decode().splitlines()[-1] == "✔ completed (success)"


def test_follower_goes_on_with_the_next_writer_and_misses_nothing(
    shell: Shell, fleet: Path
) -> None:
    job_id = submit_pending(fleet)
    append(fleet, job_id, 1, AssistantEvent(content="one"))
    follower = shell.start("jobs", "tail", job_id, "-f", stdout=subprocess.PIPE)
    assert read_line(follower) == "one\n"

    append(fleet, job_id, 2, AssistantEvent(content="two"))
    assert read_line(follower) == "two\n"
    append(fleet, job_id, 3, AssistantEvent(content="three"))
    append(fleet, job_id, 3, describe(End(status="completed", exit_reason="success")))

    out, _ = follower.communicate()
    assert out.decode().splitlines() == ["three", "✔ completed (success)"]
    assert follower.returncode == 0


def test_follower_stops_on_ctrl_c_with_130(shell: Shell, fleet: Path) -> None:
    job_id = submit_pending(fleet)
    follower = shell.start(
        "jobs", "tail", job_id, "-f", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    read_line(follower, from_talk=True)

    follower.send_signal(2)

    _, err = follower.communicate()
    assert follower.returncode == 130
    assert err == b"nightherd: Interrupted.\n"


def test_a_job_without_events_says_how_it_stands(cli: Cli, fleet: Path) -> None:
    job_id = submit_pending(fleet)

    waiting = cli("jobs", "tail", job_id)
    cli("jobs", "cancel", job_id)
    cancelled = cli("jobs", "tail", job_id)

    assert (waiting.code, waiting.out, cancelled.out) == (0, "", "")
    assert waiting.err.splitlines() == [
        f"{job_id} is pending and has no events",
        f"  try: nightherd jobs tail {job_id} -f",
    ]
    assert cancelled.err == f"{job_id} is cancelled and has no events\n"
