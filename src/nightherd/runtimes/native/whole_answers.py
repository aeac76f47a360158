"""A function as a model whose answers come all at once: a function does not hesitate in the middle of a word."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import CompletedStreamedResponse, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.settings import ModelSettings


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
