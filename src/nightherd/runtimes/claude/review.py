"""Calls of Claude's that a person decides about: asked at the gate, put off until there is an answer.

Claude keeps one call that is put off, and only of the agent itself. A call that shares its message with others, or
that a sub-agent makes, would be lost without a word: it is refused with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from anyio import to_thread

from nightherd.model.agents.agent import Agent
from nightherd.model.agents.mcp import (
    InjectedMcpServerDef,
    InjectedMcpToolDef,
    ToolAnswer,
    tool_name,
)
from nightherd.model.inbox.review import (
    ASK_PERSON,
    CLAUDE_QUESTION,
    Proceed,
    ProposedCall,
    Question,
    Refuse,
    Replied,
    Verdict,
    Wait,
)
from nightherd.model.permissions.approval import REVIEW
from nightherd.model.permissions.permission import (
    Denied,
    NeedsApproval,
    Permissions,
    approval_needed,
    protected_change,
)
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.claude.deferred import calls_of
from nightherd.runtimes.claude.gate import PASS, Gate, GatedCall, Message, decided, denied
from nightherd.runtimes.claude.opening import Opening
from nightherd.runtimes.keeper.place import HOST, FilesThere
from nightherd.runtimes.protection import permissions_for
from nightherd.runtimes.review import decision_on, preview_of, question_of

SERVER = "people"
ASK_TOOL = tool_name(SERVER, ASK_PERSON)
ANSWER = "answer"
"""The argument by which the answer of a person reaches the tool that asks."""
NO_STREAM_S = 1.0
"""How long the other calls of a message may take to be announced that did not come as a stream."""

ALONE = (
    "it needs a person's approval, and it is not the only call of its message. Make this call again, "
    "alone in a message of its own"
)
QUESTION_ALONE = "a person can be asked only by the only call of a message. Make this call again, alone in a message of its own"
OF_SUB_AGENT = (
    "it needs a person, and Claude Code cannot wait for one in a sub-agent. "
    "Report to the agent that started you what you wanted to do, so that it does it itself"
)
NOT_OURS = "it was proposed before, by another job of this session or before other messages, and nobody has approved it"
CUT_SHORT = "the message it belongs to did not end"


def waits_for_people(agent: Agent) -> bool:
    """Return whether a call of the agent may have to wait for a person."""
    return bool(agent.approvals) or agent.questions or agent.operation == REVIEW


def with_review(
    gate: Gate, request: RuntimeRequest, opening: Opening, place: FilesThere = HOST
) -> Gate:
    """Return the gate, which refuses what is protected and asks people about the calls of one run at `place`."""
    permissions = permissions_for(request, place)
    gate.refuse = partial(protected_change, permissions)
    if opening.deferred is not None or waits_for_people(request.agent):
        gate.reviewer = CallReview(request, permissions, place)
    if opening.deferred is not None:
        gate.deferred = opening.deferred.call
        gate.owns_deferred = opening.is_own_deferred
    return gate


class MessageCalls:
    """Which calls each message of the agent has, and whether more may come."""

    def __init__(self) -> None:
        self._message_of: dict[str, str] = {}
        self._streamed: set[str] = set()
        self._whole: set[str] = set()
        self._current: str | None = None

    def read(self, message: Message) -> None:
        """Take note of what Claude says."""
        if message.get("parent_tool_use_id") is not None:
            return
        match message:
            case {
                "type": "stream_event",
                "event": {"type": "message_start", "message": {"id": str(name)}},
            }:
                self._current = name
                self._streamed.add(name)
            case {"type": "stream_event", "event": {"type": "message_stop"}}:
                if self._current is not None:
                    self._whole.add(self._current)
            case {"type": "assistant", "message": {"id": str(name), "content": list(blocks)}}:
                self._message_of.update(dict.fromkeys(calls_of(blocks), name))
            case _:
                pass

    def count(self, call: str, waited_s: float) -> int | None:
        """Return how many calls the message of `call` has; None while more may come."""
        name = self._message_of.get(call)
        if name in self._streamed and name not in self._whole:
            return None
        if name not in self._whole and waited_s < NO_STREAM_S:
            return None
        return sum(one == name for one in self._message_of.values())


class CallReview:
    """Asks people about the calls of one run."""

    def __init__(
        self, request: RuntimeRequest, permissions: Permissions, place: FilesThere = HOST
    ) -> None:
        self._request = request
        self._place = place
        self._permissions = permissions
        self.calls = MessageCalls()
        self.is_waiting = False
        """Whether a call was put off: the run ends."""

    async def decide(self, asked: GatedCall, waited_s: float, patience_s: float) -> Message | None:
        """Return what the gate answers about a call that is on record; None when it has to wait on."""
        proposed = await self._proposed(asked)
        if proposed is None:
            return PASS
        if isinstance(proposed, Refuse):
            return denied(proposed.reason)
        if asked.agent is not None:
            return denied(OF_SUB_AGENT)
        count = self.calls.count(proposed.tool_use_id, waited_s)
        if count is None:
            return None if waited_s < patience_s else denied(CUT_SHORT)
        if count > 1:
            return denied(ALONE if proposed.question is None else QUESTION_ALONE)
        return await self._reviewed(proposed, asked)

    async def decide_deferred(self, asked: GatedCall, *, is_own: bool) -> Message:
        """Return what is answered about the call that Claude proposes again; `is_own` says whether this job made it."""
        if not is_own:
            return denied(NOT_OURS)
        proposed = await self._proposed(asked)
        if isinstance(proposed, Refuse):
            return denied(proposed.reason)
        if proposed is None:  # nobody has to allow it any more, but somebody was asked
            proposed = await self._call(asked)
        return await self._reviewed(proposed, asked)

    async def _proposed(self, asked: GatedCall) -> ProposedCall | Refuse | None:
        """The call as a person is asked about it, or why nobody is; None when it is none of their business."""
        call, tool, input = asked.call or "", asked.tool, asked.input
        if tool in (ASK_TOOL, CLAUDE_QUESTION):
            if not self._request.agent.questions:
                return None
            question = question_of(input) if tool == ASK_TOOL else claudes_question(input)
            if question is None:
                return Refuse(reason="'question' is missing: what to ask the person")
            name = ASK_PERSON if tool == ASK_TOOL else tool
            return ProposedCall(tool_use_id=call, tool=name, input=input, question=question)
        decision = await decision_on(self._permissions, tool, input)
        match decision:
            case Denied(reason) if self._would_be_asked(asked):
                return Refuse(reason=reason)
            case NeedsApproval():
                return await self._call(asked, decision)
            case _:
                return None

    def _would_be_asked(self, asked: GatedCall) -> bool:
        """Whether a person would have to allow the call if nothing denied it: an `allow` must not let it pass."""
        try:
            return approval_needed(self._permissions, asked.tool, asked.input) is not None
        except (OSError, ValueError):  # it names no path that can be looked up
            return True

    async def _call(self, asked: GatedCall, needed: NeedsApproval | None = None) -> ProposedCall:
        directory = self._request.agent.working_directory
        preview = await to_thread.run_sync(
            preview_of, asked.tool, asked.input, directory, self._place
        )
        needed = needed or NeedsApproval("")
        return ProposedCall(
            tool_use_id=asked.call or "",
            tool=asked.tool,
            input=asked.input,
            preview=preview,
            terms=needed.terms,
        )

    async def _reviewed(self, proposed: ProposedCall, asked: GatedCall) -> Message:
        verdict = await self._request.review(proposed)
        self.is_waiting = self.is_waiting or isinstance(verdict, Wait)
        return answer_of(verdict, asked)


def answer_of(verdict: Verdict, asked: GatedCall) -> Message:
    """Return what a hook answers when a person said so. `allow` bypasses the rules of Claude's that would ask."""
    match verdict:
        case Wait():
            return decided("defer", "a person is asked")
        case Refuse(reason=reason):
            return decided("deny", reason)
        case Replied(text=text):
            return decided("allow", "answered", updatedInput=answered(asked, text))
        case Proceed(input=None):
            return decided("allow", "a person approved it")
        case Proceed(input=input):
            changed = json.dumps(input, ensure_ascii=False)
            return decided(
                "allow",
                "a person approved it with other arguments",
                updatedInput=dict(input or {}),
                additionalContext=f"A person changed the arguments of this call to {changed}",
            )


def claudes_question(input: Mapping[str, Any]) -> Question | None:
    """Return what a call of Claude's own tool asks; None when it asks nothing."""
    questions = _questions(input)
    if not questions:
        return None
    if len(questions) == 1:
        return questions[0]
    return Question(
        text="\n".join(
            f"{number}. {one.text}" + (f" ({' / '.join(one.options)})" if one.options else "")
            for number, one in enumerate(questions, 1)
        )
    )


def _questions(input: Mapping[str, Any]) -> list[Question]:
    asked = input.get("questions")
    found = []
    for one in asked if isinstance(asked, list) else ():
        match one:
            case {"question": str(text)} if text.strip():
                options = one.get("options")
                labels = [
                    str(option.get("label"))
                    for option in (options if isinstance(options, list) else ())
                    if isinstance(option, Mapping)
                ]
                found.append(Question(text=text, options=tuple(labels)))
            case _:
                pass
    return found


def answered(asked: GatedCall, text: str) -> dict[str, Any]:
    """Return the input of a call that asks, with the person's answer.

    Several questions of one call are answered line by line; another number of lines is the answer to each.
    """
    if asked.tool != CLAUDE_QUESTION:
        return {**asked.input, ANSWER: text}
    questions = [one.text for one in _questions(asked.input)]
    lines = [line for line in text.splitlines() if line.strip()]
    each = lines if len(lines) == len(questions) > 1 else [text] * len(questions)
    return {**asked.input, "answers": dict(zip(questions, each, strict=True))}


async def _give_answer(input: Mapping[str, Any]) -> ToolAnswer:
    text = input.get(ANSWER)
    if not isinstance(text, str):
        return ToolAnswer(text="nobody was asked", is_error=True)
    return ToolAnswer(text=text)


PEOPLE = InjectedMcpServerDef(
    name=SERVER,
    tools=(
        InjectedMcpToolDef(
            name=ASK_PERSON,
            description=(
                "Ask a person a question and get their answer. Your work stops until they answer, which may take "
                "hours: ask only what you cannot find out or decide yourself. Make no other call in the same message."
            ),
            handler=_give_answer,
            input_schema={
                "type": "object",
                "properties": {
                    "question": {
                        "type": "string",
                        "description": "The question, with all that is needed to answer it.",
                    },
                    "options": {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "Answers to choose from, if there are any.",
                    },
                },
                "required": ["question"],
            },
        ),
    ),
)
"""The tool `ask_person`. It returns the answer that the gate has put into its input."""
