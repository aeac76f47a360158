"""`jobs export`: a job's journal as a file, and as a page."""

from __future__ import annotations

import json
from pathlib import Path

from cli.exported_events import as_on_record
from surfaces.drivers import Cli


def test_a_journal_is_exported_as_it_stands_on_record(cli: Cli, fleet: Path) -> None:
    job_id = cli("run", "hello", "-p", "the first", "--json").data["job_id"]

    exported = cli("jobs", "export", job_id).out

    journal = fleet / ".nightherd" / "jobs" / f"{job_id}.jsonl"
    on_record = [json.loads(line) for line in journal.read_text().splitlines()]
    events = [json.loads(line) for line in exported.splitlines()]
    assert "text" in events[1]["extra"]["settings"]
    assert as_on_record(events) == on_record


def test_a_page_is_written_to_a_file_that_only_its_owner_reads(cli: Cli, fleet: Path) -> None:
    job_id = cli("run", "hello", "--json").data["job_id"]

    said = cli("jobs", "export", "@last", "--html", "-o", "job.html", "--json")

    file = Path(said.data["file"])
    assert (said.data["job_id"], said.data["format"]) == (job_id, "html")
    assert file.stat().st_mode & 0o777 == 0o600
    assert job_id in file.read_text()


def test_a_job_that_is_not_there_is_not_exported(cli: Cli, fleet: Path) -> None:
    refused = cli("jobs", "export", "job-2020-01-01-aaaaaa", "-o", "job.html")

    assert refused.code == 3
    assert not Path("job.html").exists()
