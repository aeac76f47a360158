"""How a run begins: with the prompt, or, when an earlier execution of the job was lost, by going on."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nightherd.model.ids import generate_execution_id
from nightherd.ports import RuntimeRequest

INTERRUPTED = (
    "The process you were running in was interrupted, and this is a new one in the same conversation. "
    "Go on from where you were. What you had finished is done: do not do it again. The outcome of anything "
    "that was running at that moment is unknown: look before you repeat it."
)
INTERRUPTED_EARLY = (
    "{note}\n\nYou may have been interrupted before you had read the request you are working on, so here it is:\n\n"
    "{prompt}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What Claude is told first, in which of its sessions."""

    text: str
    resume: str | None = None
    is_continuation: bool = False
    """Whether `text` is other than what the job was asked."""
    may_begin_anew: bool = False
    """Whether nothing of this job is lost by starting without the session, should it be gone."""


def opening_of(request: RuntimeRequest) -> Opening:
    """How to begin. A prompt whose work has begun is never given again as if it had not."""
    opening = Opening(
        text=request.prompt,
        resume=request.runtime_session_id,
        may_begin_anew=request.job_turns == 0,
    )
    if request.runtime_session_id is None:
        return opening
    if request.job_turns > 0:
        return replace(opening, text=INTERRUPTED, is_continuation=True)
    if request.execution != generate_execution_id(request.job_id, 1):
        early = INTERRUPTED_EARLY.format(note=INTERRUPTED, prompt=request.prompt)
        return replace(opening, text=early, is_continuation=True)
    return opening


def begin_anew(request: RuntimeRequest) -> Opening:
    """How to begin when Claude does not know the session any more."""
    return Opening(text=request.prompt)
