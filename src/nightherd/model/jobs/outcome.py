"""Outcome and Tally: how an execution ended, and its result, read off its events."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from nightherd.decoding import convert
from nightherd.model.jobs.job import STATUS_OF_EXIT, ExitReason, Job, JobStatus
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    MessageEvent,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    is_appended,
    is_by_hand,
    is_message,
    payload_of,
    size_of,
)
from nightherd.model.journal.system import (
    Complete,
    ExecutionStarted,
    Init,
    Recovered,
    Resumed,
    Summary,
    Suspension,
    SystemSubtype,
    UserInput,
    Warned,
)
from nightherd.model.usage import NOTHING_USED, Totals, Usage, tokens_in

EXIT_OF_CODE = {
    "timeout": ExitReason.TIMEOUT,
    "cancelled": ExitReason.CANCELLED,
    "max_turns": ExitReason.MAX_TURNS,
    "limit": ExitReason.LIMIT,
    "spend_exceeded": ExitReason.LIMIT,
    "turns_exceeded": ExitReason.MAX_TURNS,
    "tokens_exceeded": ExitReason.LIMIT,
    "spawns_exceeded": ExitReason.LIMIT,
    "depth_exceeded": ExitReason.LIMIT,
    "duration_exceeded": ExitReason.LIMIT,
}
"""Error codes that mean another exit reason than `error`."""


JOURNAL_LOST = "journal_lost"
"""Code of the warning that a job's record is gone; `raw` is what it had used, where that is still to be counted."""

NOT_RESUMED = frozenset({"session_not_resumed", "session_not_found"})
"""Codes of warnings that say why a session started again: we had none that fits, or the runtime had none by its name."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How it ended and why."""

    exit_reason: ExitReason
    error: str | None = None
    error_code: str | None = None
    stop_reason: str | None = None
    api_duration_ms: int | None = None

    @property
    def status(self) -> JobStatus:
        """The terminal status that goes with the exit reason."""
        return STATUS_OF_EXIT[self.exit_reason]


SILENT_END = Outcome(
    exit_reason=ExitReason.ERROR,
    error="the runtime stopped without a result",
    error_code="no_result",
)
"""What a stream that just ends means: never success."""

CANCELLED = Outcome(exit_reason=ExitReason.CANCELLED)
"""How a cancelled job ends."""


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """The totals of a job's events so far; `add` gives the tally after one more.

    A turn counts once its answer is whole and every tool it called has answered: what is cut off in the
    middle of a turn is not done, and the next execution does not skip it.
    """

    turns: int = 0
    messages: int = 0
    usage: Usage = NOTHING_USED
    answer: str | None = None
    runtime_session_id: str | None = None
    outcome: Outcome | None = None
    open_calls: frozenset[str] = frozenset()
    usage_before: Usage = NOTHING_USED
    """What earlier executions used: a runtime's own total counts from where its execution began."""
    context_tokens: int = 0
    """How large the conversation was when that was last reported; 0 when it never was."""
    unreported_bytes: int = 0
    """What was said since then."""
    session_note: str | None = None
    """Why the conversation did not continue in the session that it was to continue in."""
    under_way: Usage = NOTHING_USED
    """What the answer that is on its way is taken to have used so far; counted only if it never comes."""
    failures: int = 0
    """Runs that failed in a row: since the last finished turn, or since a wait for a person or a named time."""
    failing_since: datetime | None = None
    """When the first of them failed, plus the time in which no worker could retry."""
    paused_until: datetime | None = None
    """When the next try is due."""

    @property
    def cut_off(self) -> Tally:
        """Return the tally when the reader of an answer is gone: the request has been paid for anyway."""
        if self.under_way == NOTHING_USED:
            return self
        return replace(self, usage=self.usage + self.under_way, under_way=NOTHING_USED)

    @property
    def totals(self) -> Totals:
        """The countable part."""
        return Totals(
            turns=self.turns,
            messages=self.messages,
            usage=self.usage,
            context_tokens=self.context_tokens,
            unreported_bytes=self.unreported_bytes,
        )

    def add(self, event: Event) -> Tally:
        """The tally after `event`."""
        after = self._after(event)
        if after.failures and after.turns > self.turns:
            return replace(after, failures=0, failing_since=None)
        return after

    def _after(self, event: Event) -> Tally:
        if is_appended(event):
            return self
        if is_by_hand(event) and not isinstance(event, ErrorEvent):
            return self._add_by_hand(event)
        match event:
            case SystemEvent():
                return self._add_system(event)
            case AssistantEvent(partial=True, usage=usage):
                return self if usage is None else replace(self, under_way=usage)
            case AssistantEvent(content=content, usage=usage):
                spent = self.usage + usage if usage is not None else self.usage
                if is_afterthought(event):
                    return replace(self, usage=spent, under_way=NOTHING_USED)
                reported = tokens_in(usage) if usage is not None else 0
                context, unreported = self._size_with(event, reported)
                messages, turns = self._counts_with(event, self.open_calls)
                return replace(
                    self,
                    turns=turns,
                    messages=messages,
                    usage=spent,
                    answer=content or self.answer,
                    context_tokens=context,
                    unreported_bytes=unreported,
                    under_way=NOTHING_USED,
                )
            case ToolUseEvent(tool_use_id=call):
                return self._with_calls(event, self.open_calls | {call or ""})
            case ToolResultEvent(tool_use_id=call):
                return self._with_calls(event, self.open_calls - {call or ""})
            case ErrorEvent(message=message, code=code, extra=extra):
                exit_reason = EXIT_OF_CODE.get(code or "", ExitReason.ERROR)
                ended = Outcome(
                    exit_reason=exit_reason,
                    error=message,
                    error_code=code,
                    stop_reason=_stop_reason_in(extra),
                )
                used = usage_in(extra)
                spent = self.usage_before + used if used is not None else self.usage
                return replace(
                    self,
                    outcome=ended,
                    usage=spent,
                    under_way=NOTHING_USED,
                    failures=self.failures + 1,
                    failing_since=self.failing_since or event.timestamp,
                )

    def _with_calls(self, event: MessageEvent, calls: frozenset[str]) -> Tally:
        context, unreported = self._size_with(event)
        messages, turns = self._counts_with(event, calls)
        return replace(
            self,
            turns=turns,
            messages=messages,
            open_calls=calls,
            context_tokens=context,
            unreported_bytes=unreported,
        )

    def _add_system(self, event: SystemEvent) -> Tally:
        if event.subtype is SystemSubtype.CHECKPOINT:
            return self  # nothing but a repetition of the tally, after nearly every message
        match payload_of(event):
            case ExecutionStarted() | Recovered() | Resumed():
                # From here on another run speaks, and counts what it uses from its own beginning.
                after = self._begun_again(event.timestamp)
                return replace(after, usage_before=after.usage, outcome=None)
            case Init(runtime_session_id=found) if found is not None:
                return replace(self, runtime_session_id=found)
            case Complete(summary=summary, usage=usage) as complete:
                return replace(
                    self,
                    answer=summary or self.answer,
                    usage=self.usage_before + usage if usage is not None else self.usage,
                    under_way=NOTHING_USED,
                    outcome=Outcome(
                        exit_reason=ExitReason.SUCCESS,
                        stop_reason=complete.stop_reason,
                        api_duration_ms=complete.api_duration_ms,
                    ),
                )
            case Suspension(until=None) | Suspension(is_named=True):
                return replace(self, failures=0, failing_since=None)
            case Suspension(until=until):
                return replace(self, paused_until=until)
            case Summary(tokens_after=tokens) if tokens is not None:
                return replace(self, context_tokens=tokens, unreported_bytes=0)
            case Warned(code=code, raw=raw) if code == JOURNAL_LOST:
                return replace(self, usage=self.usage + (usage_in({"usage": raw}) or NOTHING_USED))
            case Warned(code=code) if code in NOT_RESUMED:
                return replace(self, session_note=event.content)
            case UserInput():
                # Told in a turn, as that its answer was cut off, it is not what ends the turn.
                return self._longer_by(event)
            case _:
                return self

    def _begun_again(self, at: datetime | None) -> Tally:
        """The tally when another run begins: a machine that was off used up no patience."""
        after = self.cut_off
        due, since = after.paused_until, after.failing_since
        if due is None or since is None or at is None:
            return after
        return replace(after, failing_since=since + max(at - due, timedelta()), paused_until=None)

    def _add_by_hand(self, event: MessageEvent) -> Tally:
        """It is part of the conversation, and neither a turn of the job, nor its answer, nor its cost."""
        usage = event.usage if isinstance(event, AssistantEvent) else None
        return self._longer_by(event, tokens_in(usage) if usage is not None else 0)

    def _longer_by(self, event: MessageEvent, reported: int = 0) -> Tally:
        context, unreported = self._size_with(event, reported)
        messages = self.messages + 1 if event.end else self.messages
        return replace(self, messages=messages, context_tokens=context, unreported_bytes=unreported)

    def _size_with(self, event: MessageEvent, reported: int = 0) -> tuple[int, int]:
        """The tokens of the conversation as they were reported, and the bytes since, once it holds `event` too."""
        if event.parent_tool_use_id is not None:
            return self.context_tokens, self.unreported_bytes  # a helper's own conversation
        if reported:
            return reported, 0
        return self.context_tokens, self.unreported_bytes + size_of(event)

    def _counts_with(self, event: MessageEvent, open_calls: frozenset[str]) -> tuple[int, int]:
        """Messages and turns: the message that `event` ends counts, and its turn when nothing of it is open."""
        if not event.end or not is_message(event):
            return self.messages, self.turns
        is_whole = not open_calls and event.turn is not None
        turns = max(self.turns, event.turn or 0) if is_whole else self.turns
        return self.messages + 1, turns


def is_afterthought(event: AssistantEvent) -> bool:
    """Whether a line only says what an answer used that has its end already, or never had one."""
    is_silent = event.content is None and event.thinking is None
    return is_silent and event.index is None and not event.end


def usage_of(job: Job) -> Usage:
    """What the job's row says it has used."""
    return Usage(
        input_tokens=job.input_tokens,
        output_tokens=job.output_tokens,
        cache_creation_input_tokens=job.cache_creation_input_tokens,
        cache_read_input_tokens=job.cache_read_input_tokens,
        cost_microusd=job.cost_microusd,
    )


def _stop_reason_in(extra: dict[str, Any] | None) -> str | None:
    """Why a run that failed had stopped, where its error says so: the exit code of a command."""
    reason = (extra or {}).get("stop_reason")
    return reason if isinstance(reason, str) else None


def usage_in(extra: dict[str, Any] | None) -> Usage | None:
    """What a run that failed had used, where its error says so: it has cost money all the same."""
    try:
        return convert((extra or {}).get("usage"), Usage | None)
    except (
        msgspec.ValidationError
    ):  # an error from elsewhere, which means something else by the word
        return None
