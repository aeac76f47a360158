"""The gate: no tool of Claude's runs before its call is on record, in our journal and in Claude's transcript.

Claude writes its transcript a moment after it starts a tool. Killed in between, it forgets the call and makes it
again when it is resumed. So Claude asks the gate before every call (a `PreToolUse` hook over the control
protocol) and waits for its answer. The gate answers once the call is on record, refuses a change of protected
files, and asks a person where the agent's declaration says so (review.py). It decides nothing else: Claude's own
permission rules apply as without it. A gate that does not answer means that the tool does not run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import anyio
import msgspec

from nightherd.model.journal.event import (
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    describe,
    payload_of,
)
from nightherd.model.journal.system import ToolProgress, Warned
from nightherd.runtimes.claude.deferred import answer_in, question_in
from nightherd.runtimes.claude.transcripts.claude_files import ClaudeFiles, OwnFiles

PATIENCE = timedelta(seconds=30)
"""How long a call that is in the journal may take to be in the transcript. Claude flushes it every 100 ms."""
POLL_S = 0.01
HOOK_TIMEOUT_S = 6 * 3600
"""How long Claude waits for the gate: longer than any lease, because old versions run the tool after it."""
UNANNOUNCED = "unannounced_call"
"""Subtype of the message that stands for a call which Claude's stream does not show."""
SHOWN = 2_000
"""Characters of the input of such a call."""

PASS: Mapping[str, Any] = {}
"""No decision. An explicit `allow` would bypass Claude's permission rules."""

Message = Mapping[str, Any]
Refuse = Callable[[str, Mapping[str, Any]], str | None]


def refuse_nothing(tool: str, input: Mapping[str, Any]) -> str | None:
    """Leave every call to Claude's own rules."""
    return None


class GatedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that waits at the gate."""

    call: str | None
    transcript: Path
    agent: str | None = None
    """The sub-agent that makes it."""
    tool: str = ""
    input: Mapping[str, Any] = msgspec.field(default_factory=dict)

    @classmethod
    def of(cls, hook: Message) -> GatedCall:
        """Return the call that a hook's input is about."""
        given = hook.get("tool_input")
        return cls(
            call=_text(hook.get("tool_use_id")),
            transcript=Path(_text(hook.get("transcript_path")) or ""),
            agent=_text(hook.get("agent_id")),
            tool=_text(hook.get("tool_name")) or "",
            input=given if isinstance(given, Mapping) else {},
        )


class Calls(Protocol):
    """Takes note of which calls a message has."""

    def read(self, message: Message) -> None:
        """Claude says this."""


class Reviewer(Protocol):
    """Asks people about calls (review.py)."""

    is_waiting: bool
    """Whether a call was put off: the run ends."""

    @property
    def calls(self) -> Calls:
        """What is to read along."""

    async def decide(self, asked: GatedCall, waited_s: float, patience_s: float) -> Message | None:
        """Return what is answered about a call that is on record; None when it has to wait on."""

    async def decide_deferred(self, asked: GatedCall, *, is_own: bool) -> Message:
        """Return what is answered about the call that Claude proposes again."""


class Gate:
    """The gate of one run."""

    def __init__(self, patience: timedelta = PATIENCE) -> None:
        self._patience = patience
        self.refuse: Refuse = refuse_nothing
        """Says why a call is not made that Claude's own rules may allow."""
        self.reviewer: Reviewer | None = None
        """Asks people; None when no call of the run can need one."""
        self.deferred: str | None = None
        """The call that Claude proposes before it knows the gate; the hook in its settings asks about it."""
        self.owns_deferred = False
        """Whether this job made it."""
        self._denials: list[Message] = []
        self._announced: set[str] = set()
        self._recorded: set[str] = set()
        self._passed: set[str] = set()
        self._recorded_after: dict[str, float] = {}
        """How long each call had waited when it was first found in the journal."""
        self.written = WrittenCalls()
        """Which calls Claude's transcript has."""
        self._is_closed = False
        self._has_warned = False

    def read(self, message: Message) -> Message | None:
        """Take note of what Claude says, in its order; a message to be recorded before it, if there is one.

        The stream does not show the calls of a sub-agent's sub-agents: what the gate is asked stands for them.
        """
        if self.reviewer is not None:
            self.reviewer.calls.read(message)
        match message:
            case {"type": "assistant", "message": {"content": list(blocks)}}:
                self._announced.update(
                    block["id"]
                    for block in blocks
                    if isinstance(block, Mapping) and isinstance(block.get("id"), str)
                )
            case {"type": "user", "message": {"content": list(blocks)}}:
                # Claude refuses some calls by itself before it asks, such as the edit of a file that has changed.
                if any(_answers(block, self.deferred) for block in blocks):
                    self._passed.add(self.deferred or "")
            case {
                "type": "control_request",
                "request": {"input": {"tool_use_id": str(call)} as hook},
            }:
                if call not in self._announced and call != self.deferred:
                    self._announced.add(call)
                    return {"type": "system", "subtype": UNANNOUNCED, **hook}
            case _:
                pass
        return None

    def record(self, event: Event) -> Iterator[Event]:
        """Take note that `event` is in the journal; a warning when it shows that the gate was not asked."""
        match event:
            case ToolUseEvent(tool_use_id=str(call)):
                self._recorded.add(call)
            case ToolResultEvent(tool_use_id=str(call), success=True, parent_tool_use_id=None):
                if call not in self._passed and not self._has_warned:
                    self._has_warned = True
                    yield describe(Warned(code="gate_bypassed"), BYPASSED)
            case SystemEvent():
                match payload_of(event):
                    case ToolProgress(tool_use_id=str(call)):
                        self._recorded.add(call)
                    case _:
                        pass
            case _:
                pass

    def answer(self, asked: GatedCall, waited_s: float) -> Message | None:
        """Return what a hook answers about a call that has waited for so long; None when it has to wait on.

        A call that is not in the journal waits until it is, or the gate is closed: the engine may take its time, and
        a worker that was frozen is behind.
        """
        call = asked.call
        if call is None:
            return denied("this version of Claude does not announce its tool calls")
        is_recorded = call in self._recorded
        if is_recorded and self.written.has(asked.transcript, call, asked.agent):
            self._passed.add(call)
            refusal = self.refuse(asked.tool, asked.input)
            return PASS if refusal is None else denied(refusal)
        if self._is_closed:
            return denied(STOPPING)
        patience_s = self._patience.total_seconds()
        if (
            not is_recorded
            or waited_s - self._recorded_after.setdefault(call, waited_s) < patience_s
        ):
            return None
        return denied(f"it was not in Claude's transcript after {patience_s:g} s")

    async def decide(self, asked: GatedCall, waited_s: float) -> Message | None:
        """Return what a hook answers, as `answer` does; a person has a say where the agent's declaration says so."""
        if asked.call is not None and asked.call == self.deferred:
            return PASS  # the hook in the settings answers
        answer = self.answer(asked, waited_s)
        if answer is PASS and self.reviewer is not None:
            patience_s = self._patience.total_seconds()
            answer = await self.reviewer.decide(asked, waited_s, patience_s)
            if answer is None and self._is_closed:
                answer = denied(STOPPING)
        if answer is not None:
            self._note(asked, answer)
        return answer

    async def ask(self, hook: Message) -> Message:
        """Wait for the answer about the call that a hook's input names."""
        asked, began = GatedCall.of(hook), anyio.current_time()
        while (answer := await self.decide(asked, anyio.current_time() - began)) is None:  # noqa: ASYNC110 a file grows in silence
            await anyio.sleep(POLL_S)
        return answer

    @property
    def is_waiting(self) -> bool:
        """Whether a call was put off until a person answers."""
        return self.reviewer is not None and self.reviewer.is_waiting

    @property
    def expects_deferred(self) -> bool:
        """Whether Claude has yet to ask about the call that it proposes again."""
        return self.deferred is not None and self.deferred not in self._passed

    async def answer_deferred(self, files: Path | None) -> None:
        """Answer the hook about the call that Claude proposes again, if it has asked by now."""
        hook = question_in(files) if files is not None and self.expects_deferred else None
        if hook is None or files is None or self.reviewer is None:
            return
        asked = GatedCall.of(hook)
        if asked.call != self.deferred:
            answer = denied("another call waits for a person")
        elif (refusal := self.refuse(asked.tool, asked.input)) is not None:
            answer = denied(refusal)
        else:
            answer = await self.reviewer.decide_deferred(asked, is_own=self.owns_deferred)
        self._passed.add(self.deferred or "")
        self._note(asked, answer)
        answer_in(files, answer)

    def take_denials(self) -> list[Message]:
        """Return what was refused since this was last asked, as Claude says such things."""
        taken, self._denials = self._denials, []
        return taken

    def _note(self, asked: GatedCall, answer: Message) -> None:
        facts = answer.get("hookSpecificOutput", {})
        if facts.get("permissionDecision") == "deny":
            self._denials.append(
                {
                    "type": "system",
                    "subtype": "permission_denied",
                    "tool_name": asked.tool,
                    "tool_use_id": asked.call,
                    "message": facts.get("permissionDecisionReason"),
                }
            )

    def close(self) -> None:
        """Nothing more is recorded: calls that are not on record yet are denied."""
        self._is_closed = True


STOPPING = "the run is being stopped"
BYPASSED = (
    "claude ran a tool without asking nightherd first; a call that is cut off may be made again. "
    "Check whether its settings turn hooks off"
)


def unannounced(message: Message) -> tuple[ToolProgress, str]:
    """Return the line for a call that only the gate knows of."""
    said = f"{message.get('tool_name')} {json.dumps(message.get('tool_input'))}"
    agent = message.get("agent_id")
    by = f"sub-agent {agent}" if agent else "claude"
    return ToolProgress(tool_use_id=_text(message.get("tool_use_id"))), f"{by}: {said[:SHOWN]}"


def denied(reason: str) -> Message:
    """Refuse a call that has not run."""
    text = f"nightherd did not let this call run: {reason}. It has not run, and nothing was changed by it."
    return decided("deny", text)


def decided(decision: str, reason: str, **more: Any) -> Message:
    """Return the answer of a hook before a call."""
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": decision,
            "permissionDecisionReason": reason,
            **more,
        }
    }


def _answers(block: object, call: str | None) -> bool:
    return call is not None and isinstance(block, Mapping) and block.get("tool_use_id") == call


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


IDS = re.compile(rb'"id":\s*"([^"]+)"')
AGENTS = "subagents"
AT_ONCE = 64 * 1024 * 1024
"""Bytes that are read at once; the next look reads on."""


class WrittenCalls:
    """Follows the transcripts of one run. Each file is read once; only whole lines count."""

    def __init__(self, files: ClaudeFiles | None = None) -> None:
        """`files` reads them; None for those of this machine's user."""
        self._claude = files if files is not None else OwnFiles()
        self._files: dict[Path, _File] = {}

    def has(self, transcript: Path, call: str, agent: str | None = None) -> bool:
        """Return whether the transcript has the call; with `agent`, that of this sub-agent may have it."""
        if agent is not None and self._file(self._of_agent(transcript, agent)).has(call):
            return True
        # Old versions write what sub-agents do into the one transcript there is.
        return self._file(transcript).has(call)

    def _file(self, path: Path) -> _File:
        return self._files.setdefault(path, _File(path, self._claude))

    def _of_agent(self, transcript: Path, agent: str) -> Path:
        """Where Claude writes what a sub-agent does; deeper down for those that a workflow started."""
        folder, name = transcript.with_suffix("") / AGENTS, f"agent-{agent}.jsonl"
        if self._claude.size(folder / name):
            return folder / name
        below = (path for path in self._claude.below(folder) if path.name == name)
        return folder / next(below, name)


class _File:
    def __init__(self, path: Path, claude: ClaudeFiles) -> None:
        self._path = path
        self._claude = claude
        self._read = 0
        self._ids: set[bytes] = set()

    def has(self, call: str) -> bool:
        wanted = call.encode()
        if wanted not in self._ids:
            self._read_on()
        return wanted in self._ids

    def _read_on(self) -> None:
        size = self._claude.size(self._path)
        if size < self._read:  # it was replaced
            self._read = 0
        if size == self._read:
            return
        try:
            with self._claude.open(self._path) as file:
                file.seek(self._read)
                grown = file.read(AT_ONCE)
        except OSError:
            return
        # A line that is longer than all that is read at once is of nobody's making but an agent's.
        end = grown.rfind(b"\n") + 1 or (AT_ONCE if len(grown) == AT_ONCE else 0)
        self._read += end
        self._ids.update(IDS.findall(grown[:end]))
