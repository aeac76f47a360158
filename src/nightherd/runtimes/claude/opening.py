"""How a run begins: with the prompt, with a branch of another session, or by continuing an earlier run.

The prompt of a job that is continued is composed from three things: why it is continued, what its transcript
lacks, and whether the prompt is in it. Everything is said once. A note that was never answered is left out of the
resumed conversation and composed again, so that notes do not pile up however often a run fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from itertools import dropwhile

import msgspec
from msgspec.structs import replace

from nightherd.model.ids import JobId
from nightherd.model.jobs.outcome import EXIT_OF_CODE
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    is_by_hand,
    is_message,
    messages_joined,
    payload_of,
)
from nightherd.model.journal.system import Init, SystemSubtype
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.claude.deferred import DeferredCall, not_run, waiting_calls
from nightherd.runtimes.claude.memory import Memory, is_of, missing_from_transcript, since
from nightherd.runtimes.claude.recount import recounted


class Why(StrEnum):
    """What has happened since the model last answered; the first of these that did."""

    INTERRUPTED = "interrupted"
    """The process ended while it was at work."""
    FAILED = "failed"
    """Requests to the model failed; Claude ended the run itself, and nothing was cut off."""
    PAUSED = "paused"
    """Neither: the job waited, for a limit to be raised or for a person."""


INTERRUPTED = (
    "The process you were running in was interrupted, and this is a new one in the same conversation. "
    "Go on from where you were. What you had finished is done: do not do it again. The outcome of anything "
    "that was running at that moment is unknown: look before you repeat it."
)
FAILED = (
    "The last request to the model failed, and this is another attempt. Continue where you left off. "
    "What you had finished is done: do not do it again."
)
PAUSED = (
    "Your work was paused and continues now. Continue where you left off. "
    "What you had finished is done: do not do it again."
)
NOTES = {Why.INTERRUPTED: INTERRUPTED, Why.FAILED: FAILED, Why.PAUSED: PAUSED}
NOT_READ = "You may have been interrupted before you had read the request you are working on, so here it is:"
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


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """The first prompt for Claude, and the session it goes to."""

    text: str
    resume: str | None = None
    is_fork: bool = False
    """Whether the session that is resumed stays as it is, and a new one begins as its copy."""
    at_uuid: str | None = None
    """The last message of the resumed session that counts; None for all of it."""
    note: str | None = None
    """What of `text` the job was not asked, and is not on record yet."""
    deferred: DeferredCall | None = None
    """The call that Claude proposes again by itself, before it reads `text`."""
    is_own_deferred: bool = False
    """Whether this job made it."""
    has_result: bool = False
    """Whether its result is on record already: it may have run, and nobody knows."""
    not_run: tuple[str, ...] = ()
    """Calls of this job that waited for a person, and that Claude does not propose again."""
    recount: str | None = None
    """What precedes `text`: a conversation that Claude lost and the journal has."""

    @property
    def prompt_text(self) -> str:
        """All that Claude is told."""
        if self.recount is None:
            return self.text
        # What was asked stays at the end: so it is known again (engine/sessions/external_turns.py).
        return f"{LOST}\n\n{self.recount}\n\n{ASKED_NOW}\n\n{self.text}"


def is_note(text: str) -> bool:
    """Whether a text in a transcript is a note of ours about a job that is continued."""
    return text.startswith(tuple(NOTES.values()))


def opening_of(request: RuntimeRequest) -> Opening:
    """Return the session the run begins in, with the prompt; `completed` says what else the model is told."""
    if request.runtime_session_id is not None:
        return Opening(text=request.prompt, resume=request.runtime_session_id)
    if request.fork is not None:
        return Opening(
            text=request.prompt,
            resume=request.fork.runtime_session_id,
            is_fork=True,
            at_uuid=request.fork.at_uuid,
        )
    return _without_session(request)


def completed(
    opening: Opening,
    request: RuntimeRequest,
    memory: Memory | None,
    keeps_open_calls: Callable[[], bool] = lambda: False,
) -> Opening:
    """Return `opening` with all that the model has to know in the session that is resumed.

    `memory` is what it will know by its transcript; None when that cannot be read. A prompt whose work has begun is
    never given again as if it had not.
    """
    if opening.resume is None:
        return opening
    history = list(_of_session(request.history(), opening.resume))
    opening = _with_waiting(opening, request, history)
    history += _results_of(opening, request)
    missing = None
    if memory is not None:
        kept = opening.deferred if opening.is_own_deferred else None
        told = [
            event
            for event in history
            if not (_is_about(event, kept) or _is_for_another(event, request.job_id))
        ]
        missing = missing_from_transcript(told, memory, keeps_open_calls)
    if opening.is_fork:
        opening = replace(opening, at_uuid=_fork_point(opening.at_uuid, history, memory))
    if opening.is_fork or not request.is_continued:
        return _asking(opening, opening.text, missing)
    if opening.is_own_deferred:
        text = _joined(missing, request.follow_up)
        return replace(opening, text=text, note=missing)
    own = list(since(history, request.job_id))
    why = why_continued(own) if own else Why.INTERRUPTED
    note = NOTES[why]
    if not _knows_prompt(request, memory, own):
        if why is not Why.INTERRUPTED:
            return _asking(opening, request.prompt, missing, follow_up=request.follow_up)
        note = f"{note}\n\n{NOT_READ}\n\n{request.prompt}"
    note = _joined(note, missing)
    return replace(
        opening,
        text=_joined(note, request.follow_up),
        at_uuid=memory.resume_at if memory is not None else None,
        note=None if note == _last_asked(own) else note,
    )


def _with_waiting(opening: Opening, request: RuntimeRequest, history: Iterable[Event]) -> Opening:
    """Return `opening` with what becomes of calls of this job that waited for a person."""
    own = list(since(history, request.job_id))
    deferred = opening.deferred
    about = [event for event in own if _is_about(event, deferred)]
    kept = deferred.call if deferred is not None and deferred.is_last else None
    is_made = any(isinstance(event, ToolUseEvent) for event in about)
    is_own = kept is not None and is_made and request.is_continued and not opening.is_fork
    return replace(
        opening,
        is_own_deferred=is_own,
        has_result=any(isinstance(event, ToolResultEvent) for event in about),
        not_run=tuple(call for call in waiting_calls(own) if not is_own or call != kept),
    )


def _is_about(event: Event, deferred: DeferredCall | None) -> bool:
    """Whether the event is the call that Claude proposes again, or a result of it."""
    if deferred is None or not isinstance(event, ToolUseEvent | ToolResultEvent):
        return False
    return event.tool_use_id == deferred.call


def _is_for_another(event: Event, job_id: JobId) -> bool:
    """Whether it was said to the agent during another job, and ended with that one."""
    return bool(messages_joined(event)) and not is_of(event, job_id)


def _results_of(opening: Opening, request: RuntimeRequest) -> list[Event]:
    """Return the results of calls that did not run; they are recorded before the run begins."""
    return [not_run(call, request.job_turns + 1) for call in opening.not_run]


def records_of(opening: Opening, request: RuntimeRequest) -> list[Event]:
    """Return what belongs on record before the model is told of it."""
    records = _results_of(opening, request)
    if opening.note is not None:
        records.append(
            SystemEvent(subtype=SystemSubtype.USER_INPUT, content=opening.note, index=0, end=True)
        )
    return records


def begin_anew(request: RuntimeRequest) -> Opening | None:
    """Return how to continue when Claude has lost the session: what is recorded of it is repeated in words.

    None for a fork of which nothing is: it is not run without what it was to know.
    """
    earlier = recounted(request.history(), request.job_id)
    if earlier is None and request.runtime_session_id is None:
        return None
    return replace(_without_session(request), recount=earlier)


def _without_session(request: RuntimeRequest) -> Opening:
    """Begin without any session of Claude's: what this job did in a lost one is repeated in words."""
    if not request.is_continued:
        return Opening(text=request.prompt)
    own = list(since(request.history(), request.job_id))
    opening = Opening(text="", not_run=tuple(waiting_calls(own)))
    told = [*own, *_results_of(opening, request)]
    done = missing_from_transcript(told, Memory(), lambda: False)
    begun = BEGUN_ANEW if done is not None or request.job_turns > 0 else None
    note = _joined(begun, done) or None
    return _asking(opening, request.prompt, note, follow_up=request.follow_up)


def _asking(
    opening: Opening, asked: str, note: str | None, *, follow_up: str | None = None
) -> Opening:
    """Ask this, and add `note` after it: a slash command has to come first."""
    return replace(opening, text=_joined(asked, note, follow_up), note=note)


def _joined(*parts: str | None) -> str:
    return "\n\n".join(part for part in parts if part)


def _fork_point(at_uuid: str | None, history: Iterable[Event], memory: Memory | None) -> str | None:
    """Where to fork: the last message before `at_uuid` that the transcript has, if it lacks that one."""
    if at_uuid is None or memory is None or at_uuid in memory.uuids:
        return at_uuid
    known = [event.uuid for event in history if is_message(event) and event.uuid in memory.uuids]
    return known[-1] if known else at_uuid


def _of_session(history: Iterable[Event], session: str) -> Iterator[Event]:
    """The events since the runtime's session began; it was given the earlier events when it began."""
    events = list(history)
    begun = dropwhile(lambda event: not _begins(event, session), events)
    found = list(begun)
    return iter(found or events)


def _begins(event: Event, session: str) -> bool:
    if not isinstance(event, SystemEvent) or event.subtype is not SystemSubtype.INIT:
        return False
    payload = payload_of(event)
    return isinstance(payload, Init) and payload.runtime_session_id == session


def _knows_prompt(request: RuntimeRequest, memory: Memory | None, own: Iterable[Event]) -> bool:
    """Whether the prompt of the job is in the conversation that is resumed."""
    if memory is None:
        return request.job_turns > 0
    if any(_is_in(event, memory) for event in own):
        return True
    return any(_contains(text, request.prompt) for text in memory.unanswered)


def _is_in(event: Event, memory: Memory) -> bool:
    """Whether the transcript has this part of the conversation."""
    if isinstance(event, ToolUseEvent) and event.tool_use_id in memory.calls:
        return True
    return is_message(event) and event.uuid in memory.uuids


def _contains(text: str, prompt: str) -> bool:
    """Whether the prompt is `text`, or a part of it between notes (fork_notice.py)."""
    return f"\n\n{prompt}\n\n" in f"\n\n{text}\n\n"


def _last_asked(own: Iterable[Event]) -> str | None:
    """Return the last prompt, as long as the model has not answered it."""
    last = None
    for event in own:
        if not is_message(event) or is_by_hand(event):
            continue
        last = event.content if isinstance(event, SystemEvent) else None
    return last


PROCESS_ENDED = frozenset({"killed", "stalled", "no_result", "interrupted", "runtime_error"})
"""Errors of a run whose process ended before it had said how the run came out."""
NEXT_RUN = frozenset(
    {
        SystemSubtype.RESUMED,
        SystemSubtype.SUSPENDED,
        SystemSubtype.END,
    }
)
"""Lines that follow the end of a run, whether that said so or not."""


def why_continued(events: Iterable[Event]) -> Why:
    """Return why the job whose events these are is continued."""
    known = _SinceAnswer()
    for event in events:
        known.add(event)
    if known.is_interrupted or known.is_running:
        return Why.INTERRUPTED
    return Why.FAILED if known.has_failed else Why.PAUSED


class _SinceAnswer:
    """What happened since the model last answered: it knows everything before that."""

    def __init__(self) -> None:
        self.is_running = False
        self.is_interrupted = False
        self.has_failed = False
        self._was_interrupted = False
        """When the current execution began."""

    def add(self, event: Event) -> None:
        match event:
            case ErrorEvent(code=code):
                self._end(code or "")
            case SystemEvent(subtype=SystemSubtype.INIT):
                self.is_running = True
            case SystemEvent(subtype=SystemSubtype.COMPLETE):
                self.is_running = False
            case SystemEvent(subtype=SystemSubtype.EXECUTION_STARTED):
                self._end_unheard()
                self._was_interrupted = self.is_interrupted
            case SystemEvent(subtype=SystemSubtype.RECOVERED):
                # Answers of the lost execution that were recovered stand before this line.
                self.is_interrupted |= self._was_interrupted
            case SystemEvent(subtype=subtype) if subtype in NEXT_RUN:
                self._end_unheard()
            case (
                AssistantEvent(uuid=str(), parent_tool_use_id=None)
                | ToolUseEvent(parent_tool_use_id=None)
            ) if not is_by_hand(event):
                self.is_interrupted = self.has_failed = False
            case _:
                pass

    def _end_unheard(self) -> None:
        self.is_interrupted |= self.is_running
        self.is_running = False

    def _end(self, code: str) -> None:
        self.is_interrupted |= code in PROCESS_ENDED and self.is_running
        # The limits that a job runs into are no failure of a request, and neither is a claude that did not start.
        is_request = code not in PROCESS_ENDED and code not in EXIT_OF_CODE
        self.has_failed |= is_request and self.is_running
        self.is_running = False
