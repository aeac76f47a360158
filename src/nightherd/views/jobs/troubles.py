"""What went wrong in a job beside its outcome: denied calls, failed hooks, an answer that was cut off."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from nightherd.errors import JournalError
from nightherd.model.inbox.item import ItemStatus
from nightherd.model.jobs.job import Job
from nightherd.model.journal.event import (
    AssistantEvent,
    Event,
    SystemEvent,
    ToolUseEvent,
    payload_of,
)
from nightherd.model.journal.live_text import is_about_answer, is_cut_off
from nightherd.model.journal.system import Denied, HookRan, Payload, Reviewed, SystemSubtype
from nightherd.ports import Journals
from nightherd.views.jobs.rows import TroublesDocument

TROUBLES = (SystemSubtype.DENIED, SystemSubtype.REVIEW, SystemSubtype.HOOK)
"""The events that troubles are read from."""
REFUSED_REVIEWS = frozenset({ItemStatus.REJECTED.value, ItemStatus.EXPIRED.value})
"""Outcomes of a review after which the call does not run."""


class Troubles(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong in a job beside its outcome, in order."""

    denials: tuple[Denied, ...] = ()
    """The calls that rules or a person did not allow, or that nobody allowed in time; each call once."""
    failed_hooks: tuple[HookRan, ...] = ()
    cut_off: str | None = None
    """What had come of the last answer, when it was cut off."""
    journal_error: str | None = None
    """Why the journal cannot be read; then neither is known."""


NO_TROUBLES = Troubles()


def troubles_of(job: Job, journals: Journals) -> Troubles:
    """Return the denied calls and failed hooks of the job. Reads its whole journal, once."""
    try:
        return troubles_in(journals.read(job.id, load_blobs=False))
    except JournalError as error:
        return Troubles(journal_error=error.message)


def troubles_in(events: Iterable[Event]) -> Troubles:
    """Return the denied calls, the failed hooks and the cut-off answer among `events`."""
    denials = _Denials()
    failed_hooks: list[HookRan] = []
    cut_off: str | None = None
    for event in events:
        if isinstance(event, SystemEvent):
            if event.subtype in TROUBLES:
                payload = payload_of(event)
                denials.take(payload, event.content or "")
                if isinstance(payload, HookRan) and payload.success is False:
                    failed_hooks.append(payload)
        elif isinstance(event, ToolUseEvent):
            denials.name(event)
        elif isinstance(event, AssistantEvent) and is_about_answer(event):
            cut_off = event.content if is_cut_off(event) else None
    return Troubles(cut_off=cut_off, denials=denials.in_order(), failed_hooks=tuple(failed_hooks))


class _Denials:
    """The calls of one journal that did not run because rules or people did not allow them.

    A rejected call has a line of its review and, unless its worker was killed between the two, one of its denial.
    """

    def __init__(self) -> None:
        self._tools: dict[str, str] = {}
        self._calls: dict[str, Denied] = {}

    def name(self, call: ToolUseEvent) -> None:
        """Remember which tool a call is of."""
        if call.tool_use_id is not None:
            self._tools[call.tool_use_id] = call.tool_name

    def take(self, payload: Payload, text: str) -> None:
        """Note the call if it was denied; `text` is what the line says."""
        match payload:
            case Denied(tool_use_id=call):
                self._calls.setdefault(call or f"#{len(self._calls)}", payload)
            case Reviewed(tool_use_id=call, status=status) if status in REFUSED_REVIEWS:
                tool = self._tools.get(call, "")
                denied = Denied(tool_name=tool, reason=text, tool_use_id=call)
                self._calls.setdefault(call, denied)
            case _:
                pass

    def in_order(self) -> tuple[Denied, ...]:
        """Return the denials, first to last."""
        return tuple(self._calls.values())


def troubles_document(troubles: Troubles) -> TroublesDocument:
    """Return what went wrong beside the outcome, each as the event says it; or why that is not known."""
    return {
        "cut_off": troubles.cut_off,
        "denials": [msgspec.to_builtins(denial) for denial in troubles.denials],
        "failed_hooks": [msgspec.to_builtins(hook) for hook in troubles.failed_hooks],
        "journal_error": troubles.journal_error,
    }
