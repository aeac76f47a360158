"""Run: one execution of the turn loop, from what is on record to an answer that needs nothing more."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import timedelta

import msgspec
from anyio import to_thread
from pydantic_ai.messages import InstructionPart, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import Model, ModelRequestParameters

from nightherd.errors import InvalidValueError
from nightherd.model.checkpoints.checkpoint import TriggerPoint
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    MessageEvent,
    SystemEvent,
    describe,
)
from nightherd.model.journal.live_text import CUT_OFF
from nightherd.model.journal.system import Complete, Denied, Init, Warned
from nightherd.model.usage import NOTHING_USED, Usage
from nightherd.ports import Clock, NoTextStream, RuntimeRequest, TextStream
from nightherd.runtimes.native.answer import Asking, Question, check, is_cut_off, repair_answer
from nightherd.runtimes.native.conversation import Conversation, ask, quote_cut_off, recall
from nightherd.runtimes.native.decode import read_back
from nightherd.runtimes.native.encode import encode, result_line
from nightherd.runtimes.native.failure import MODEL_ERRORS, RunFailure, error_event
from nightherd.runtimes.native.price import Cost, CostSource
from nightherd.runtimes.native.reserve import Reserve
from nightherd.runtimes.native.script_model import ScriptModel
from nightherd.runtimes.native.setup import Setup, setup_of
from nightherd.runtimes.native.together import Processes, as_they_come, batches
from nightherd.runtimes.native.toolset import Answered, Toolset, context_of, marked
from nightherd.runtimes.scripted.turn import SCRIPT_FINISHED
from nightherd.runtimes.tools.tool import failed

NAME = "native"

STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_call": "tool_use"}
"""What an end is called in the words of the record."""
CUT_OFF_CALL = "not made: your answer was cut off at its maximum length inside this call. Make it again with less input"
ESTIMATED = {"cost_source": CostSource.ESTIMATE.value}


@dataclass(slots=True, kw_only=True)
class Run:
    """One execution. Its events are given out in order, each before what it announces is done."""

    request: RuntimeRequest
    model: Model
    toolset: Toolset
    processes: Processes
    take_warnings: Callable[[], Sequence[SystemEvent]]
    """What has to be said about servers since the last time."""
    clock: Clock
    patience: timedelta
    used: Usage = NOTHING_USED
    _turns: int = 0
    _asked_ms: int = 0
    _conversation: Conversation = field(init=False)
    _setup: Setup = field(init=False)
    _reserve: Reserve = field(init=False)
    _warned: bool = False
    _waiting: list[ToolCallPart] = field(default_factory=list)
    """Calls that wait for a person: the run ends there, and the calls after them are made later."""

    async def events(self) -> AsyncGenerator[Event, None]:
        """Everything; the last is `system/complete` or an error."""
        try:
            self._reserve = Reserve(self.request, self.model)
            self._setup = setup_of(self.request.agent, self.model, self.toolset, self._reserve.full)
            yield _init(self.request, self.model, self.toolset.names)
            for warning in self.take_warnings():
                yield warning
            self._conversation = await _recall(self.request)
            for event in self._opening():
                yield event
            async with aclosing(self._turns_to_the_end()) as turns:
                async for event in turns:
                    yield event
        except MODEL_ERRORS as error:
            secrets, at = self.request.known_secrets(), self.clock.now()
            yield error_event(error, turn=self._turn, at=at, used=self.used, secrets=secrets)

    @property
    def _turn(self) -> int:
        """The number of the turn that is next, or under way."""
        return self.request.job_turns + self._turns + 1

    def _opening(self) -> Iterator[Event]:
        """What is said before the first turn: constants that the job has not on record yet, and a loose end."""
        conversation, request = self._conversation, self.request
        for constant in self._setup.constants:
            if constant.hash not in conversation.written:
                yield describe(constant)
        if not conversation.messages:
            conversation.messages.append(ask(conversation.secrets.mask(request.prompt)))
        if conversation.unreadable:
            yield describe(Warned(code="unreadable_message"), _retold(conversation.unreadable))
        yield from self._quote_cut_off()

    def _quote_cut_off(self) -> Iterator[Event]:
        """Tell the model what had arrived of its last answer, unless it has been told."""
        conversation = self._conversation
        if conversation.cut_off is not None:
            note = quote_cut_off(conversation.cut_off, turn=self._turn, at=self.clock.now())
            conversation.cut_off = None
            yield note
            conversation.take([note])

    async def _turns_to_the_end(self) -> AsyncGenerator[Event, None]:
        async with aclosing(self._repeat_calls()) as results:
            async for event in results:
                yield event
        if self._waiting:
            return
        while not self._is_over():
            stop = await self._may_go_on()
            if stop:
                for event in stop:
                    yield event
                return
            for event in self._quote_cut_off():
                yield event
            async with aclosing(self._ask()) as pieces:
                async for event in pieces:
                    yield event
            if self._reserve.was_cut:
                continue
            await self.request.at(TriggerPoint.POST_LLM)
            calls = self._calls()
            if calls:
                async with aclosing(self._make(calls)) as results:
                    async for event in results:
                        yield event
                if self._waiting:
                    return
                await self.request.at(TriggerPoint.POST_TOOLS)
            self._turns += 1
        yield self._complete()

    async def _repeat_calls(self) -> AsyncGenerator[Event, None]:
        """Calls that were cut off with the run that made them, and may be made again."""
        calls = [call for call in self._calls() if call.tool_call_id in self.request.repeat]
        if not calls:
            return
        async with aclosing(self._make(calls)) as results:
            async for event in results:
                yield event
        if self._waiting:
            return
        await self.request.at(TriggerPoint.POST_TOOLS)
        self._turns += 1
        if isinstance(self.model, ScriptModel):
            self.model.pass_turn()

    def _is_over(self) -> bool:
        """Whether there is nothing left to ask: also when an earlier run was killed right before saying so."""
        if isinstance(self.model, ScriptModel):
            return not self.model.has_more
        if self._conversation.awaits_answer:
            return False
        answer = self._conversation.last_answer
        problem = check(answer) if answer is not None else None
        if problem is not None:
            raise problem
        return True

    async def _may_go_on(self) -> Sequence[Event]:
        """Nothing when the next turn may begin; else what is said instead of it."""
        request, turn = self.request, self._turn
        limit = request.agent.max_turns
        if limit is not None and turn > limit:
            message = f"the job has taken its {limit} turns"
            return [ErrorEvent(message=message, code="max_turns", turn=turn)]
        await request.at(TriggerPoint.PRE_TURN)
        shortfall = await self._reserve.take(
            self._conversation.messages, constants_bytes=self._setup.size_bytes
        )
        if shortfall is None:
            return []
        await request.at(TriggerPoint.ON_SUSPEND)
        message = shortfall.stop.message
        # A caller that refuses stops the run at the first of these; the second is for one that does not.
        return [
            describe(Warned(code="limit"), message, turn=turn),
            ErrorEvent(message=message, code="limit", turn=turn),
        ]

    async def _ask(self) -> AsyncGenerator[Event, None]:
        """Ask the model; its answer is part of the conversation when this has ended."""
        turn = self._turn
        asking = Asking(
            model=self.model,
            messages=self._conversation.messages,
            settings=self._reserve.settings,
            parameters=ModelRequestParameters(
                function_tools=self.toolset.definitions,
                instruction_parts=[InstructionPart(self._setup.instructions)],
            ),
            patience=self.patience,
        )
        question, begun = Question(asking, _stream(self)), self.clock.monotonic()
        try:
            if not isinstance(self.model, ScriptModel):  # scripted answers cost nothing
                yield self._so_far(question, turn)
            async with aclosing(question.progress()) as progress:
                async for _ in progress:
                    yield self._so_far(question, turn)
        except MODEL_ERRORS:
            if question.text:
                yield self._so_far(question, turn, question.text)
            if question.has_begun:
                self.used += self._reserve.so_far(question)
            raise
        except BaseException:  # it was stopped: the answer is lost, and is paid for
            if not isinstance(self.model, ScriptModel):
                if question.text:
                    self.request.late(self._so_far(question, turn, question.text))
                used = self._reserve.so_far(question) if question.is_sent else NOTHING_USED
                self.request.late(AssistantEvent(usage=used, turn=turn, extra=ESTIMATED))
            raise
        finally:
            self._asked_ms += round((self.clock.monotonic() - begun) * 1_000)
        if question.answer is None:
            return
        answer, is_cut = question.answer, self._reserve.cuts(question.answer)
        cut = self._take_cut_off(question, answer, turn) if is_cut else None
        for event in cut or self._take_answer(answer, turn):
            yield event

    def _take_cut_off(
        self, question: Question, answer: ModelResponse, turn: int
    ) -> Iterator[Event]:
        """An answer that ended where what was left did is paid for; none of its calls is made."""
        cost, usage = self._reserve.paid(answer)
        self.used += usage
        if question.text:
            yield self._so_far(question, turn, question.text)
        yield AssistantEvent(usage=usage, turn=turn, extra={"cost_source": cost.source.value})
        yield describe(Warned(code="answer_cut_off"), self._reserve.cut_off_text, turn=turn)
        self._reserve.was_cut = True
        said = [part.content for part in answer.parts if isinstance(part, TextPart)]
        self._conversation.cut_off = "".join(said) or None

    def _take_answer(self, given: ModelResponse, turn: int) -> Iterator[Event]:
        """The answer's lines; one that is of no use is paid for all the same, and then raised about."""
        answer = repair_answer(given)
        cost, usage = self._reserve.paid(answer)
        self.used += usage
        if cost.source is CostSource.UNKNOWN and not self._warned:
            self._warned = True
            text = f"the prices of {answer.model_name} are unknown: its cost is counted as 0"
            yield describe(Warned(code="price_unknown"), text, turn=turn)
        problem = check(answer) if not isinstance(self.model, ScriptModel) else None
        if problem is not None and problem.code != "output_limit":
            yield AssistantEvent(usage=usage, turn=turn, index=0)
            raise problem
        try:
            lines = self._lines(answer, turn, usage, cost)
            said = read_back(lines)
        except (ValueError, RecursionError, InvalidValueError) as error:
            yield AssistantEvent(usage=usage, turn=turn, index=0)
            raise RunFailure("malformed_answer", str(error), recoverable=True) from error
        yield from lines
        self._conversation.add(said)
        if problem is not None:
            raise problem

    def _lines(
        self, answer: ModelResponse, turn: int, usage: Usage, cost: Cost
    ) -> Sequence[MessageEvent]:
        conversation = self._conversation
        own = conversation.with_own_ids(answer, turn)
        whole = encode(own, turn=turn, usage=usage).lines
        first, *rest = (conversation.mask(marked(line, self.toolset)) for line in whole)
        extra = {**(first.extra or {}), "setup": self._setup.hash, "cost_source": cost.source.value}
        return [msgspec.structs.replace(first, extra=extra), *rest]

    def _so_far(self, question: Question, turn: int, text: str | None = None) -> AssistantEvent:
        """Return what an answer used so far (recorded before it is asked for), and its text once it is cut off."""
        used = self._reserve.so_far(question)
        extra = ESTIMATED if text is None else {**ESTIMATED, CUT_OFF: True}
        return AssistantEvent(content=text, partial=True, usage=used, turn=turn, extra=extra)

    def _calls(self) -> list[ToolCallPart]:
        answer = self._conversation.last_answer
        return [] if answer is None else answer.tool_calls

    async def _make(self, calls: Sequence[ToolCallPart]) -> AsyncGenerator[Event, None]:
        """The calls, each result on record as soon as it is there; what may depend on it comes after."""
        for batch in batches(calls, self.toolset.is_read_only):
            async with aclosing(as_they_come(batch, self._answer)) as answers:
                async for call, answered in answers:
                    if answered.is_waiting:
                        self._waiting.append(call)
                        continue
                    for event in self._call_events(call, answered):
                        yield event
            if self._waiting:
                return
        self._conversation.end_results()

    async def _answer(self, call: ToolCallPart) -> Answered:
        if is_cut_off(call, self._conversation.last_answer):
            return Answered(outcome=failed(CUT_OFF_CALL))
        processes = self.processes
        processes.may_exist = processes.may_exist or self.toolset.starts_processes(call)
        more = {"grace": processes.grace, "keepers": processes.keepers}
        context = context_of(self.request, call, processes.marks, **more)
        return await self.toolset.answer(call, context)

    def _call_events(self, call: ToolCallPart, answered: Answered) -> Iterator[Event]:
        """Yield the events of a call that was made or denied; its result is part of the conversation after it."""
        turn = self._turn
        yield from self.take_warnings()
        if answered.denied is not None:
            denied = Denied(
                tool_name=call.tool_name, reason=answered.denied, tool_use_id=call.tool_call_id
            )
            yield describe(denied, answered.denied, turn=turn)
        line = self._conversation.mask(
            result_line(
                call,
                answered,
                turn=turn,
                at=self.clock.now(),
                begins_request=not self._conversation.awaits_answer,
            )
        )
        yield line
        self._conversation.take([line])

    def _complete(self) -> SystemEvent:
        return describe(
            Complete(
                usage=self.used,
                stop_reason=_stop_reason(self, self._conversation.last_answer, self._turns),
                api_duration_ms=self._asked_ms or None,
            )
        )


def _stop_reason(run: Run, answer: ModelResponse | None, turns: int) -> str:
    if isinstance(run.model, ScriptModel):
        return "end_turn" if turns or run.request.job_turns else SCRIPT_FINISHED
    return STOP_REASONS.get((answer and answer.finish_reason) or "stop", "end_turn")


async def _recall(request: RuntimeRequest) -> Conversation:
    """What the record comes to. In a thread: a long one takes a while to read."""
    try:
        return await to_thread.run_sync(
            recall, request.history(), request.known_secrets(), request.repeat
        )
    except InvalidValueError as error:
        raise RunFailure("unreadable_record", error.message) from error


def _stream(run: Run) -> TextStream:
    """Return what takes the text of answers. A script streams by itself: its model gives whole answers."""
    return NoTextStream() if isinstance(run.model, ScriptModel) else run.request.stream


def _init(request: RuntimeRequest, model: Model, tools: list[str]) -> SystemEvent:
    """Who this is. A session that begins here is named after its job, also when the job is resumed."""
    return describe(
        Init(
            runtime=NAME,
            runtime_session_id=request.runtime_session_id or f"{NAME}-{request.job_id}",
            model=model.model_name,
            working_directory=request.agent.working_directory,
            tools=tools,
        )
    )


def _retold(count: int) -> str:
    what = "a message" if count == 1 else f"{count} messages"
    return (
        f"the record holds {what} that cannot be read whole: the model gets the text of its lines"
    )
