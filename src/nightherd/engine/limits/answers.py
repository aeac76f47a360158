"""Answers of agents that were asked about a limit: raise it, do without it, or let the job fail.

The answer takes effect in one transaction with the end of the job that gave it, so it does once. Where the
job that asked did not wait yet, the one that comes second applies the answer: the job that begins to wait, the one that
has answered, or, when their workers are killed just then, any worker that looks (`Answers`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import anyio
from anyio import to_thread

from nightherd.engine.contexts import Stores
from nightherd.engine.doctor.record import list_jobs
from nightherd.engine.limits.guard import Stop
from nightherd.engine.operations.raise_limits import given_before, used_in_all, used_up
from nightherd.errors import InvalidValueError
from nightherd.model.change import Change
from nightherd.model.hooks import HookEvent, asked_about
from nightherd.model.ids import JobId
from nightherd.model.jobs.changes import FailSuspended, ResumeJob
from nightherd.model.jobs.job import Job, JobStatus, SuspendReason
from nightherd.model.jobs.options import JobOptions
from nightherd.model.jobs.outcome import Outcome
from nightherd.model.journal.recollection import remembered
from nightherd.model.limits.limits import BOUNDLESS, LimitName, parse_limit

PATIENCE_S = 30.0
LOOK_EVERY_S = 0.05


async def answer_changes(
    job: Job, end: Stop, answer: str | None, context: Stores
) -> Sequence[Change]:
    """What the end of `job` does to the job it was asked about; nothing when it was not, or says nothing."""
    waiting_id = asked_about(job)
    if waiting_id is None:
        return ()
    if not isinstance(end, Outcome) or end.status is not JobStatus.COMPLETED:
        return ()
    waiting = await _waiting(waiting_id, context)
    if waiting is None or not await _is_about(job, waiting, context):
        return ()
    return _obeyed(job, waiting, answer, context)


async def obey_earlier(job: Job, context: Stores) -> None:
    """Do what was answered about the wait of `job` when its worker was gone and it did not wait yet.

    An answer that came too early could not be delivered, and the question is not asked again.
    """
    if job.status is JobStatus.SUSPENDED and _is_left(job.id, context):
        asked = await to_thread.run_sync(_asked_before, job, context)
        await _obey(job, asked, context)


async def notify_asker(job: Job, context: Stores) -> None:
    """Do what `job` has answered when the job it was asked about began to wait only just now."""
    waiting_id = asked_about(job)
    waiting = context.reader.find_job(waiting_id) if waiting_id is not None else None
    if waiting is not None:
        await obey_earlier(waiting, context)


class Answers:
    """Looks for jobs that wait although they have been answered, their workers killed before anybody saw to it."""

    def __init__(self) -> None:
        self._asked: dict[tuple[JobId, int], list[JobId]] = {}
        """Who was asked, about every wait that there is: journals are read once for each."""

    async def obey(self, context: Stores) -> None:
        """Do what was answered about any of them."""
        waiting = [
            job
            for job in list_jobs(context.reader, JobStatus.SUSPENDED)
            if job.suspend_reason in (SuspendReason.LIMIT, SuspendReason.BUDGET)
        ]
        known = self._asked
        self._asked = {}
        for job in waiting:
            asked = known.get((job.id, job.epoch))
            if asked is None:
                is_left = _is_left(job.id, context)
                asked = await to_thread.run_sync(_asked_before, job, context) if is_left else []
            self._asked[job.id, job.epoch] = asked
            await _obey(job, asked, context)


async def _obey(job: Job, asked: Sequence[JobId], context: Stores) -> None:
    """Do what any of those who were asked has answered."""
    for one in asked:
        found = context.reader.find_job(one)
        if found is None or found.status is not JobStatus.COMPLETED:
            continue
        texts = context.reader.find_texts(one)
        answer = (texts.summary if texts is not None else None) or found.summary
        # Refused, if another has answered meanwhile.
        await context.state.apply(list(_obeyed(found, job, answer, context)))


async def _is_about(job: Job, waiting: Job, context: Stores) -> bool:
    """Whether `job` was asked about this wait, and not about one that has ended since."""
    if (job.dedupe_key or "").endswith(f"-{waiting.epoch}"):
        return True
    return job.id in await to_thread.run_sync(_asked_before, waiting, context)


def _asked_before(job: Job, context: Stores) -> list[JobId]:
    """The jobs that were made to be asked about this wait."""
    events = context.journals.read(job.id, load_blobs=False)
    known = remembered(events, HookEvent.SUSPENDED)
    return [JobId(one.ran.job_id) for one in known.values() if one.ran.job_id is not None]


def _obeyed(job: Job, waiting: Job, answer: str | None, context: Stores) -> Sequence[Change]:
    """What the answer of `job` does to the job it was asked about; nothing when that is as it is already."""
    lines = [line.strip() for line in (answer or "").splitlines() if line.strip()]
    if asked_about(job) is None or not lines:
        return ()
    at = context.clock.now()
    word, _, rest = lines[-1].partition(" ")
    match word.lower():
        case "fail":
            message = f"{waiting.error or 'a limit was met'}; {job.agent} decided to fail the job"
            return (FailSuspended(job_id=waiting.id, at=at, message=message),)
        case _ if waiting.suspend_reason is SuspendReason.BUDGET:
            return ()  # it belongs to others too: no answer for one job raises it
        case "continue":
            name = (waiting.error_code or "").removesuffix("_exceeded")
            raised = {name: BOUNDLESS} if name in set(LimitName) else {}
        case "raise":
            raised = _raised(rest.split())
        case _:
            return ()
    reader = context.reader
    before = given_before(waiting, reader)
    is_same = all(before.get(name) == maximum for name, maximum in raised.items())
    used = used_in_all(waiting, reader)
    if is_same or used_up(raised, used, waiting.error_code) is not None:
        return ()
    return (ResumeJob(job_id=waiting.id, at=at, overrides=JobOptions(limits={**before, **raised})),)


async def _waiting(job_id: JobId, context: Stores) -> Job | None:
    """The job that asked, once it waits; None when it does not, or did not leave it to others."""
    # It is asked about before it is on record as waiting.
    with anyio.move_on_after(PATIENCE_S):
        while True:
            found = context.reader.find_job(job_id)
            if found is None or found.status is not JobStatus.RUNNING:
                break
            await anyio.sleep(LOOK_EVERY_S)
    job = context.reader.find_job(job_id)
    if job is None or job.status is not JobStatus.SUSPENDED:
        return None
    return job if _is_left(job_id, context) else None


def _is_left(job_id: JobId, context: Stores) -> bool:
    """Whether the job leaves it to those who are asked what becomes of its wait."""
    known = context.reader.list_checkpoints(job_id)
    suspension = known[-1].header.get("suspension") if known else None
    return isinstance(suspension, Mapping) and suspension.get("on_reached") == "hook"


def _raised(words: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for text in words:
        try:
            name, maximum = parse_limit(text.rstrip(",.;"))
        except InvalidValueError:
            return {}
        found[name.value] = maximum
    return found
