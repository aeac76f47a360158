"""How a run begins: with the prompt, with a branch of another session, or, when an execution was lost, by going on."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nightherd.ports import RuntimeRequest
from nightherd.runtimes.claude.recount import recounted, since
from nightherd.runtimes.claude.untold import untold

INTERRUPTED = (
    "The process you were running in was interrupted, and this is a new one in the same conversation. "
    "Go on from where you were. What you had finished is done: do not do it again. The outcome of anything "
    "that was running at that moment is unknown: look before you repeat it."
)
INTERRUPTED_EARLY = (
    "{note}\n\nYou may have been interrupted before you had read the request you are working on, so here it is:\n\n"
    "{prompt}"
)
BEGUN_ANEW = (
    "You have worked on this request before, in a process that was interrupted and in a conversation "
    "that is lost. What is on record of it follows. The outcome of anything else that you had begun is unknown: "
    "look before you repeat it."
)

LOST = (
    "You have had a conversation before this, and it is lost. What is on record of it follows. "
    "What you did in it is done: do not do it again."
)
ASKED_NOW = "So far what is on record. This is what you are asked:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What Claude is told first, in which of its sessions."""

    text: str
    resume: str | None = None
    is_fork: bool = False
    """Whether the session that is resumed stays as it is, and a new one begins as its copy."""
    at_uuid: str | None = None
    """The last message of the resumed session that counts; None for all of it."""
    is_continuation: bool = False
    """Whether `text` is other than what the job was asked."""
    recount: str | None = None
    """What is told before `text`: a conversation that is lost, and on record already."""

    @property
    def told(self) -> str:
        """All that Claude is told."""
        if self.recount is None:
            return self.text
        # What was asked stays at the end: so it is known again (engine/hand_turns.py).
        return f"{LOST}\n\n{self.recount}\n\n{ASKED_NOW}\n\n{self.text}"


def opening_of(request: RuntimeRequest) -> Opening:
    """How to begin. A prompt whose work has begun is never given again as if it had not."""
    if request.runtime_session_id is None:
        return _first_opening(request)
    opening = Opening(text=request.prompt, resume=request.runtime_session_id)
    if not request.is_continued:
        return opening
    text = INTERRUPTED
    if request.job_turns == 0:
        text = INTERRUPTED_EARLY.format(note=INTERRUPTED, prompt=request.prompt)
    if request.follow_up is not None:
        text = f"{text}\n\n{request.follow_up}"
    return replace(opening, text=text, is_continuation=True)


def _first_opening(request: RuntimeRequest) -> Opening:
    if request.fork is None:
        return _without_session(request)
    return Opening(
        text=request.prompt,
        resume=request.fork.runtime_session_id,
        is_fork=True,
        at_uuid=request.fork.at_uuid,
    )


def begin_anew(request: RuntimeRequest) -> Opening | None:
    """How to go on when Claude has lost the session: what is on record of it is told in words.

    None for a fork of which nothing is: it is not run without what it was to know.
    """
    earlier = recounted(request.history(), request.job_id)
    if earlier is None and request.runtime_session_id is None:
        return None
    return replace(_without_session(request), recount=earlier)


def _without_session(request: RuntimeRequest) -> Opening:
    """How to begin without any session of Claude's: what this job has done in a lost one is told in words."""
    parts = [request.prompt]
    if request.job_turns > 0:
        parts.append(BEGUN_ANEW)
        parts.append(untold(since(request.history(), request.job_id), ()) or "")
    parts.append(request.follow_up or "")
    return Opening(
        text="\n\n".join(part for part in parts if part), is_continuation=request.job_turns > 0
    )
