"""TurnOutputs: what of a job's journal people are shown, in order. The same events give always the same."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from nightherd.engine.chat.turn_texts import (
    COMPACTED,
    CUT_OFF,
    GOES_ON,
    RECOVERED,
    progress_text,
    result_text,
)
from nightherd.model.chat.post import PostKind
from nightherd.model.chat.settings import OutputSettings, Texts
from nightherd.model.journal.event import (
    AssistantEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    is_by_hand,
)
from nightherd.model.journal.live_text import TextDelta, is_about_answer, is_cut_off
from nightherd.model.journal.system import SystemSubtype


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to show."""

    seq: int
    """The event that it is made of."""
    kind: PostKind
    text: str


class TurnOutputs:
    """Takes the events of a turn from the first one; those up to `shown` were shown before."""

    def __init__(self, settings: OutputSettings, shown: int) -> None:
        self._settings = settings
        self._shown = shown
        self._outputs: list[Output] = []
        self._undecided: list[tuple[Output, bool]] = []
        """Texts that may turn out not to be an answer, for a call of a tool may follow; and what comes after them,
        which is shown in any case (True): what is shown is shown in order."""
        self._calls: dict[str, ToolUseEvent] = {}
        self._running: list[str] = []
        self._parts: dict[tuple[int, int], str] = {}
        self._answered = 0
        self._cut_off: Output | None = None
        self.has_answer = False
        """Whether there was an answer, shown before or not."""
        self.wait_message: str | None = None
        """What the record says about why the job waits, or waited last."""
        self._waits = False

    @property
    def live_text(self) -> str:
        """What came of an answer that still comes in."""
        return "\n\n".join(part for part in self._parts.values() if part.strip())

    @property
    def progress(self) -> str:
        """Which tool runs; empty for none, and where that is not shown."""
        if not self._settings.progress_indicator or not self._running:
            return ""
        return progress_text(self._calls[self._running[-1]])

    def take(self, event: Event) -> None:
        """Take the next event."""
        self._take_off_live(event)
        if is_by_hand(event) or event.parent_tool_use_id is not None:
            return
        match event:
            case AssistantEvent() if is_cut_off(event):
                self._cut_off = Output(
                    seq=event.seq, kind=PostKind.ANSWER, text=f"{event.content}\n\n{CUT_OFF}"
                )
            case AssistantEvent(partial=partial) if not partial:
                self._say(event)
            case ToolUseEvent():
                self._call(event)
            case ToolResultEvent():
                self._result(event)
            case SystemEvent():
                self._system(event)
            case _:
                pass

    def stream(self, deltas: Sequence[TextDelta]) -> None:
        """Take text of an answer that comes in."""
        for delta in deltas:
            if delta.after < self._answered:
                continue
            place = (delta.epoch, delta.part)
            known = self._parts.get(place, "")
            if delta.at == len(known):
                self._parts[place] = known + delta.text

    def take_ready(self) -> list[Output]:
        """Return what can be shown by now, once."""
        ready, self._outputs = self._outputs, []
        return ready

    def take_rest(self, *, is_whole: bool) -> list[Output]:
        """Return what is left when the job has ended; what came of an answer that was cut off too, unless `is_whole`."""
        self._decide(are_answers=True)
        if self._cut_off is not None and not is_whole:
            self._show(self._cut_off)
        return self.take_ready()

    def _take_off_live(self, event: Event) -> None:
        """What an event records is not live any more."""
        if not is_about_answer(event):
            return
        self._answered = event.seq
        if not isinstance(event, AssistantEvent) or event.end or event.partial:
            self._parts.clear()
            return
        content = event.content or ""
        fitting = [key for key, text in self._parts.items() if content.startswith(text)]
        # Parts are recorded in order: those before it will not come, for the runtime has begun its answer anew.
        recorded = max(fitting, key=lambda key: (len(self._parts[key]), key), default=None)
        last = min(self._parts, default=None) if recorded is None else recorded
        self._parts = {key: text for key, text in self._parts.items() if last and key > last}

    def _say(self, event: AssistantEvent) -> None:
        text = (event.content or "").strip()
        if text:
            self._cut_off = None
            output = Output(seq=event.seq, kind=PostKind.ANSWER, text=text)
            if self._settings.assistant_messages is Texts.ALL:
                self._show(output)
            else:
                self._undecided.append((output, False))
        if event.end:
            self._running.clear()
            self._decide(are_answers=True)

    def _call(self, event: ToolUseEvent) -> None:
        self._decide(are_answers=False)
        self._cut_off = None
        id = event.tool_use_id or ""
        self._calls[id] = event
        if id not in self._running:
            self._running.append(id)

    def _result(self, event: ToolResultEvent) -> None:
        id = event.tool_use_id or ""
        if id in self._running:
            self._running.remove(id)
        call = self._calls.pop(id, None)
        if self._settings.tool_results:
            text = result_text(event, call, self._settings.tool_result_max_length)
            self._show(Output(seq=event.seq, kind=PostKind.TOOL, text=text))

    def _system(self, event: SystemEvent) -> None:
        match event.subtype:
            case SystemSubtype.EXECUTION_STARTED:
                self._running.clear()
            case SystemSubtype.SUSPENDED:
                self._decide(are_answers=True)
                self._running.clear()
                self.wait_message, self._waits = event.content, True
            case SystemSubtype.COMPACT_BOUNDARY:
                self._status(event, COMPACTED)
            case SystemSubtype.RECOVERED:
                self._status(event, RECOVERED)
            case SystemSubtype.RESUMED if self._waits:
                self._waits = False
                self._status(event, GOES_ON)
            case _:
                pass

    def _status(self, event: SystemEvent, text: str) -> None:
        if self._settings.system_status:
            self._show(Output(seq=event.seq, kind=PostKind.NOTICE, text=text))

    def _decide(self, *, are_answers: bool) -> None:
        """The texts of a message are answers unless a call of a tool follows in it."""
        undecided, self._undecided = self._undecided, []
        for output, is_sure in undecided:
            if is_sure or are_answers:
                self._show(output)

    def _show(self, output: Output) -> None:
        if self._undecided:
            self._undecided.append((output, True))
            return
        self.has_answer = self.has_answer or output.kind is PostKind.ANSWER
        if output.seq > self._shown:
            self._outputs.append(output)
