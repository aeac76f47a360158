"""Rows and journals that contradict each other: found, corrected, and what cannot be is told."""

from __future__ import annotations

import json
import shutil
from typing import Any, cast

import anyio
import pytest
from msgspec.structs import replace

from engine.doctor.ward import Ward, lines
from nightherd.engine.doctor.doctor import Examined, examine, no_step
from nightherd.journal.codec import encode_line
from nightherd.model.journal.event import describe
from nightherd.model.journal.system import ExecutionStarted
from nightherd.ports import Journals
from nightherd.state.reader import SqliteReader
from nightherd.wiring.repair import doctor_checks
from nightherd.wiring.stores import open_repair
from surfaces.drivers import execute_pending, submit_pending

TIMES = {
    "started_at",
    "finished_at",
    "duration_seconds",
    "duration_ms",
    "worked_seconds",
    "waited_seconds",
}


def without_times(shown: dict[str, Any]) -> dict[str, Any]:
    """The journal has its own instants, a few milliseconds from the row's."""
    assert shown["executions"]
    kept = {key: value for key, value in shown.items() if key not in TIMES}
    kept["executions"] = [
        {key: value for key, value in one.items() if key not in TIMES}
        for one in shown["executions"]
    ]
    return kept


@pytest.mark.parametrize("number", [0, 1])
def test_missing_output_is_replaced_by_what_is_left(number: int, used: Ward) -> None:
    job_id = used.jobs()[number]["id"]
    shown, whole = used.show(job_id), used.journal(job_id).read_bytes()
    used.journal(job_id).unlink()

    found = used.doctor()
    assert (found.result.code, found.only("record")["job_id"]) == (1, job_id)
    assert "its journal is missing" in found.only("record")["message"]

    assert used.doctor("--fix").result.code == 0
    used.clean("--verify")
    assert used.show(job_id) == shown
    told = lines(used.journal(job_id))
    assert told[0]["extra"]["id"] == job_id
    assert [one["extra"]["code"] for one in told if one.get("subtype") == "warning"] == [
        "journal_lost"
    ]
    used.journal(job_id).write_bytes(whole)
    used.clean("--verify")


def test_replaced_output_still_says_how_it_ended_when_all_rows_are_gone(used: Ward) -> None:
    job_id = used.jobs()[0]["id"]
    shown = used.show(job_id)
    used.journal(job_id).unlink()
    used.doctor("--fix")
    used.delete_database()
    shutil.rmtree(used.ledger.parent)

    used.doctor("--rebuild")

    again = used.show(job_id)
    for key in ("status", "exit_reason", "cost_usd", "usage", "error", "summary", "agent"):
        if key != "usage":
            assert again[key] == shown[key]
    assert again["usage"]["input_tokens"] == shown["usage"]["input_tokens"]


def test_job_that_never_wrote_anything_is_a_warning(used: Ward) -> None:
    job_id = used.jobs()[0]["id"]
    used.journal(job_id).unlink()
    used.alter("UPDATE jobs SET last_seq = 0 WHERE id = ?", job_id)

    found = used.doctor()

    assert (found.result.code, found.only("record")["level"]) == (0, "warning")


def test_all_output_deleted_with_its_directory_is_told_job_by_job(used: Ward) -> None:
    shutil.rmtree(used.root / "jobs")

    found = used.doctor("--fix")

    assert {one["job_id"] for one in found.of("record")} == {job["id"] for job in used.jobs()}
    assert (used.root / "jobs").is_dir()
    used.clean("--verify")


def test_row_that_is_ahead_of_its_journal_is_set_to_where_that_ends(used: Ward) -> None:
    job_id = used.jobs()[0]["id"]
    journal = used.journal(job_id)
    whole = journal.read_bytes()
    journal.write_bytes(b"".join(whole.splitlines(keepends=True)[:-2]))
    cut = journal.read_bytes()

    found = used.doctor()
    assert (found.result.code, found.only("record")["is_fixable"]) == (1, True)

    assert used.doctor("--fix").result.code == 0
    assert journal.read_bytes() == cut
    reader = SqliteReader(used.root)
    row = reader.find_job(job_id)
    reader.close()
    assert row is not None
    assert row.last_seq == lines(journal)[-1]["seq"]
    used.clean("--verify")


def test_bad_line_in_the_middle_is_told_with_its_place_and_stays(used: Ward) -> None:
    job_id = used.jobs()[0]["id"]
    journal = used.journal(job_id)
    raw = journal.read_bytes().splitlines(keepends=True)
    offset = sum(map(len, raw[:2]))
    raw[2] = b"\x00" * (len(raw[2]) - 1) + b"\n"
    journal.write_bytes(b"".join(raw))
    damaged = journal.read_bytes()
    used.clean()

    found = used.doctor("--verify", "--fix")

    assert found.result.code == 1
    assert f"the line at byte {offset}" in found.of("journals")[0]["message"]
    assert found.of("journals")[1]["message"].endswith("1 events are missing")
    assert journal.read_bytes() == damaged


@pytest.mark.parametrize("line", [2, 3])
def test_whoever_reads_a_journal_is_told_of_the_events_that_cannot_be_read(
    line: int, used: Ward
) -> None:
    job_id = used.jobs()[0]["id"]
    journal = used.journal(job_id)
    raw = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*raw[:line], b"garbage\n", b"garbage\n", *raw[line + 2 :]]))

    told = used.cli("jobs", "tail", job_id, "-n", "all", "--json")

    assert [one["data"]["seq"] for one in told.documents] == [
        *range(1, line + 1),
        *range(line + 3, len(raw) + 1),
    ]
    assert f"events {line + 1} to {line + 2} cannot be read" in told.err
    assert "nightherd doctor --verify" in told.err


def test_record_in_which_nothing_can_be_read_is_not_taken_for_none(used: Ward) -> None:
    job_id = used.jobs()[0]["id"]
    assert "cannot be read" not in used.cli("jobs", "tail", job_id, "-n", "all").err
    used.journal(job_id).write_bytes(b"garbage\n")

    told = used.cli("jobs", "tail", job_id)

    assert "its journal cannot be read" in told.err
    assert "nightherd doctor" in told.err


def test_journal_with_lines_missing_is_told(used: Ward) -> None:
    job_id = used.jobs()[0]["id"]
    journal = used.journal(job_id)
    raw = journal.read_bytes().splitlines(keepends=True)
    del raw[2:4]
    journal.write_bytes(b"".join(raw))

    found = used.doctor("--verify", "--fix")

    assert found.result.code == 1
    assert found.only("journals")["message"].endswith("2 events are missing")


def test_journal_that_cannot_be_read_does_not_hide_the_others(used: Ward) -> None:
    unreadable, ahead = (job["id"] for job in used.jobs())
    used.journal(unreadable).unlink()
    used.journal(unreadable).mkdir(mode=0o700)
    used.journal(ahead).unlink()

    found = used.doctor("--verify")

    assert {one["job_id"] for one in found.of("record")} == {unreadable, ahead}
    assert [one["job_id"] for one in found.of("journals")] == [unreadable]


def test_journal_without_a_row_gets_one(used: Ward) -> None:
    job_id = used.run("hello", "-p", "everyone")
    shown = used.show(job_id)
    for table, key in (("job_texts", "job_id"), ("executions", "job_id"), ("jobs", "id")):
        used.alter(f"DELETE FROM {table} WHERE {key} = ?", job_id)
    assert used.cli("jobs", "show", job_id).code == 3

    found = used.doctor()
    assert (found.result.code, found.only("orphans")["job_id"]) == (1, job_id)

    repaired = used.doctor("--fix")
    assert (repaired.result.code, repaired.only("orphans")["is_fixed"]) == (0, True)
    assert without_times(used.show(job_id)) == without_times(shown)
    used.clean()


def test_journal_that_does_not_say_whose_it_was_is_told_and_left(used: Ward) -> None:
    stray = used.root / "jobs/job-2026-01-02-abc123.jsonl"
    whole = used.journal(used.jobs()[0]["id"]).read_bytes()
    headless = whole[whole.index(b"\n") + 1 :]
    stray.write_bytes(headless)
    stray.chmod(0o600)

    found = used.doctor("--fix")

    assert found.result.code == 1
    assert "does not name its agent" in found.only("orphans")["message"]
    assert stray.read_bytes() == headless


def test_job_that_waits_is_no_disagreement(ward: Ward) -> None:
    job_id = submit_pending(ward.root.parent)

    ward.clean("--fix", "--verify")

    assert ward.show(job_id)["status"] == "pending"


@pytest.mark.parametrize("is_ended", [True, False], ids=["ended", "stopped"])
def test_row_that_never_heard_of_its_execution_catches_up_with_the_journal(
    is_ended: bool, ward: Ward
) -> None:
    """The database and the ledger lost their last changes; the journal has them."""
    directory = ward.root.parent
    job_id = submit_pending(directory)
    aside = directory / "aside"
    shutil.copytree(ward.root, aside)
    execute_pending(directory, job_id)
    usual = ward.show(job_id)
    journal = ward.journal(job_id).read_bytes().splitlines(keepends=True)
    shutil.copytree(ward.root / "blobs", aside / "blobs", dirs_exist_ok=True)
    shutil.rmtree(ward.root)
    shutil.copytree(aside, ward.root)
    ward.journal(job_id).write_bytes(b"".join(journal if is_ended else journal[:5]))
    ward.journal(job_id).chmod(0o600)
    ward.root.chmod(0o700)

    found = ward.doctor()
    assert (found.result.code, found.only("record")["job_id"]) == (1, job_id)

    assert ward.doctor("--fix").result.code == 0
    shown = ward.show(job_id)
    if is_ended:
        told = ("status", "exit_reason", "turns", "cost_usd", "summary")
        assert {key: shown[key] for key in told} == {key: usual[key] for key in told}
    else:
        assert shown["status"] == "pending"
        execute_pending(directory, job_id)
        assert ward.show(job_id)["status"] == "completed"
    ward.clean("--verify")


def test_running_row_with_a_later_owner_in_its_journal_ends_at_that_owners_epoch(
    ward: Ward,
) -> None:
    job_id = ward.run("hello")
    journal = ward.journal(job_id)
    last = lines(journal)[-1]
    ward.alter(
        "UPDATE jobs SET status = 'running', exit_reason = NULL, finished_at = NULL, last_seq = 0"
    )
    ward.alter("UPDATE executions SET status = 'started'")
    ward.alter("UPDATE sessions SET status = 'active'")
    taken_over = json.loads(encode_line(describe(ExecutionStarted(worker="worker-99999999"))))
    taken_over |= {"v": last["v"], "seq": last["seq"] + 1, "epoch": 3}
    taken_over["timestamp"] = last["timestamp"]
    with journal.open("a") as file:
        file.write(json.dumps(taken_over) + "\n")

    assert ward.doctor("--fix").result.code == 0

    shown = ward.show(job_id)
    assert (shown["status"], shown["exit_reason"]) == ("failed", "error")
    reader = SqliteReader(ward.root)
    executions = reader.list_executions(job_id)  # type: ignore[arg-type]  # an id as the command told it
    reader.close()
    assert [(one.epoch, one.status.value) for one in executions] == [(1, "lost"), (3, "lost")]
    ward.clean()


class EndsOnly:
    """Journals of which nobody may read more than the end."""

    def __init__(self, journals: Journals) -> None:
        self.last, self.job_ids = journals.last, journals.job_ids

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"a quick look needs no {name!r}")


def test_quick_look_reads_no_journal_but_its_end(used: Ward) -> None:
    async def look() -> list[Examined]:
        async with open_repair(used.root) as record:
            quick = replace(record, journals=cast("Journals", EndsOnly(record.journals)))
            checks = doctor_checks(used.root, quick, no_step)
            return await examine(checks, is_deep=False, is_fixing=False)

    examined = anyio.run(look)

    assert [one.findings for one in examined] == [[]] * len(examined)
    assert "record" in [one.check.name for one in examined]
