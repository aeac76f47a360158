"""A function as a model whose answers come all at once: a function does not hesitate in the middle of a word."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any

import anyio
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models import CompletedStreamedResponse, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from nightherd.model.agents.script import Script, Spend, ends_job
from nightherd.model.units import PER_DOLLAR
from nightherd.model.usage import NOTHING_USED, Usage
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.scripted.turn import PlannedTurn, plan_turn, stream_answer


class WholeAnswers(FunctionModel):
    """A `FunctionModel` that needs one function only: what it answers is also what it streams."""

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: Any = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """The answer as a stream of whole parts."""
        yield CompletedStreamedResponse(
            await self.request(messages, model_settings, model_request_parameters),
            model_request_parameters=model_request_parameters,
            replay_events=True,
        )


NAME = "scripted"


class ScriptedFailure(Exception):
    """The script says that its turn fails."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ScriptModel(WholeAnswers):
    """Answers with the turns of a script, from the one that the session has come to."""

    def __init__(self, script: Script, request: RuntimeRequest) -> None:
        super().__init__(self._answer, model_name=NAME)
        self._script = script
        self._request = request
        self._played = 0

    @property
    def has_more(self) -> bool:
        """Whether a turn of this job is left."""
        place = self._request.session_turns + self._played
        if self._request.job_turns + self._played and ends_job(self._script.turn(place - 1)):
            return False
        return self._script.turn(place) is not None

    @property
    def next_usage(self) -> Usage:
        """What the next turn will use."""
        steps = self._script.turn(self._request.session_turns + self._played) or ()
        return sum((step.usage for step in steps if isinstance(step, Spend)), NOTHING_USED)

    def pass_turn(self) -> None:
        """The turn is on record but for its call, which has been made again."""
        self._played += 1

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """The next turn of the script, whatever was said before."""
        return await self._play()

    async def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return await self._play()

    async def _play(self) -> ModelResponse:
        turn = self._plan()
        await anyio.sleep(turn.pause.total_seconds())
        if turn.failure is not None:
            raise ScriptedFailure(turn.failure.code or "", turn.failure.message)
        await stream_answer(turn, self._request.stream)
        self._played += 1
        return ModelResponse(
            list(_parts(turn)), usage=_usage(turn), model_name=NAME, provider_name=NAME
        )

    def _plan(self) -> PlannedTurn:
        request = self._request
        number = request.job_turns + self._played + 1
        place = request.session_turns + self._played
        steps = self._script.turn(place)
        if steps is None:
            raise ScriptedFailure("script_over", "the script has no turn left")
        values: Mapping[str, str] = {
            **request.values,
            "prompt": request.prompt,
            "turn": str(place + 1),
        }
        call_id = f"toolu_{request.job_id}_{number}"
        return plan_turn(steps, number=number, tool_use_id=call_id, values=values)


def _parts(turn: PlannedTurn) -> list[TextPart | ThinkingPart | ToolCallPart]:
    parts: list[TextPart | ThinkingPart | ToolCallPart] = []
    if turn.answer is not None and turn.answer.thinking is not None:
        parts.append(ThinkingPart(turn.answer.thinking))
    if turn.answer is not None and turn.answer.content is not None:
        parts.append(TextPart(turn.answer.content))
    if turn.call is not None:
        parts.append(
            ToolCallPart(turn.call.tool_name, turn.call.input, turn.call.tool_use_id or "")
        )
    return parts or [TextPart("")]


def _usage(turn: PlannedTurn) -> RequestUsage:
    used = (turn.answer.usage if turn.answer is not None else None) or NOTHING_USED
    cached = used.cache_creation_input_tokens + used.cache_read_input_tokens
    return RequestUsage(
        input_tokens=used.input_tokens + cached,
        cache_write_tokens=used.cache_creation_input_tokens,
        cache_read_tokens=used.cache_read_input_tokens,
        output_tokens=used.output_tokens,
        cost=Decimal(used.cost_microusd) / PER_DOLLAR,
    )
