"""What became of many jobs, as every surface shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TypedDict

from nightherd.errors import NightherdError, code_of
from nightherd.model.ids import JobId
from nightherd.model.jobs.bulk import BulkOutcome, BulkResult, BulkVerb
from nightherd.next_step import Advice, NextStep
from nightherd.ports import StateReader
from nightherd.views.jobs.jobs import IsAtWork, job_row, observe_jobs
from nightherd.views.jobs.rows import JobRow


class BulkProblem(TypedDict):
    """Why a job was refused, and what to do about it."""

    code: str
    message: str
    hint: str | None


class BulkRow(TypedDict):
    """What became of one job; `job` as it is now, null where there is no such job."""

    job_id: str
    outcome: BulkResult
    job: JobRow | None
    new_job_id: str | None
    problem: BulkProblem | None


class BulkDocument(TypedDict):
    """What became of the jobs of one request, or would, and how many of each there are."""

    verb: BulkVerb
    is_dry_run: bool
    done: int
    planned: int
    refused: int
    jobs: list[BulkRow]


def bulk_document(
    reader: StateReader,
    verb: BulkVerb,
    outcomes: Sequence[BulkOutcome],
    is_at_work: IsAtWork,
    now: datetime,
    *,
    is_dry_run: bool,
    spell: Callable[[NextStep], str],
) -> BulkDocument:
    """Return the outcomes with the jobs as they are now."""
    jobs = [job for one in outcomes if (job := reader.find_job(one.job_id)) is not None]
    rows = {job.id: job_row(job) for job in observe_jobs(reader, jobs, is_at_work, now)}
    counts = Counter(one.result for one in outcomes)
    return {
        "verb": verb,
        "is_dry_run": is_dry_run,
        "done": counts[BulkResult.DONE],
        "planned": counts[BulkResult.PLANNED],
        "refused": counts[BulkResult.REFUSED],
        "jobs": [_row(one, rows, spell) for one in outcomes],
    }


def _row(
    outcome: BulkOutcome, rows: Mapping[JobId, JobRow], spell: Callable[[NextStep], str]
) -> BulkRow:
    error = outcome.error
    return {
        "job_id": outcome.job_id,
        "outcome": outcome.result,
        "job": rows.get(outcome.job_id),
        "new_job_id": outcome.new_job_id,
        "problem": None if error is None else _problem(error, spell),
    }


def _problem(error: NightherdError, spell: Callable[[NextStep], str]) -> BulkProblem:
    return {
        "code": code_of(error),
        "message": error.message,
        "hint": Advice(error.hint, error.next_step).text(spell),
    }
