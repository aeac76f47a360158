"""The comment that says on an issue what came of its job."""

from __future__ import annotations

from collections.abc import Callable

from nightherd.model.jobs.job import Job, JobTexts
from nightherd.model.text import counted, shorten, whole_text
from nightherd.model.work.item import WorkItem, WorkOutcome
from nightherd.model.work.source import WorkSource

TEXT_LIMIT = 60_000
"""Characters of an answer: GitHub takes 65,536 in a comment."""
ERROR_LIMIT = 1_000


def marker_of(item: WorkItem) -> str:
    """What the comment about the item's job begins with. People do not see it, and nobody can know it before.

    The claim would not do: everybody can read it in the lock.
    """
    return f"<!-- nightherd:{item.job_id} -->"


def comment_text(
    item: WorkItem,
    source: WorkSource,
    job: Job | None,
    texts: JobTexts | None,
    mask: Callable[[str], str],
) -> str | None:
    """The comment, masked; None where there is nothing to say."""
    said = _result(item, source, job, texts, mask)
    if said is None:
        return None
    name = "" if job is None else f"\n\n<sub>nightherd, agent {job.agent}, {job.id}</sub>"
    # No tracker takes NUL.
    return whole_text(f"{marker_of(item)}\n{said}{name}").replace("\0", "")


def _result(
    item: WorkItem,
    source: WorkSource,
    job: Job | None,
    texts: JobTexts | None,
    mask: Callable[[str], str],
) -> str | None:
    match item.outcome:
        case WorkOutcome.SUCCESS:
            # Masked before it is cut: half a secret is not recognised, and what stands for one is longer.
            answer = mask(_answer(job, texts))
            return (
                shorten(answer, TEXT_LIMIT)
                if answer
                else "The job has succeeded, without an answer."
            )
        case WorkOutcome.FAILURE:
            return f"The job has failed{_why(job, mask)}.\n\n{_what_now(item, source)}"
        case WorkOutcome.CANCELLED:
            return f"The job was cancelled.\n\n{_by_hand(source)}"
        case _:
            return None


def _answer(job: Job | None, texts: JobTexts | None) -> str:
    if texts is not None and (texts.output_text or texts.summary):
        return (texts.output_text or texts.summary or "").strip()
    return (job.summary or "").strip() if job is not None else ""


def _why(job: Job | None, mask: Callable[[str], str]) -> str:
    if job is None:
        return ""
    reason = "" if job.exit_reason is None else f" ({job.exit_reason})"
    error = mask(job.error or "")
    return f"{reason}: {shorten(error, ERROR_LIMIT).rstrip('.')}" if error else reason


def _what_now(item: WorkItem, source: WorkSource) -> str:
    tried = f"Attempt {item.attempts} of {source.max_attempts}."
    if will_be_retried(item, source):
        return f"{tried} The issue is ready again."
    if not source.cleanup_on_failure:
        return (
            f"{tried} The issue keeps the label `{source.in_progress}` until a person takes it off."
        )
    return f"{tried} It is not tried again. {_by_hand(source)}"


def _by_hand(source: WorkSource) -> str:
    return f"To have it tried again, give it the label `{source.ready}`."


def will_be_retried(item: WorkItem, source: WorkSource) -> bool:
    """Whether the issue is ready again after this."""
    if item.outcome in (WorkOutcome.UNUSED, WorkOutcome.RELEASED):
        return True
    is_failure = item.outcome is WorkOutcome.FAILURE
    return is_failure and source.cleanup_on_failure and item.attempts < source.max_attempts


def left_text(source: WorkSource, count: int) -> str:
    """Say that issues were found in progress that nobody works on."""
    return f"{counted(count, 'issue')} of {source.repo} had the label {source.in_progress!r} and nobody's claim: ready again"
