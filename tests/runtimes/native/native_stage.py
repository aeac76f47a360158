"""A place to run native agents in: models that answer as they are told, and a record of what was said."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import msgspec
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models import CompletedStreamedResponse, Model, StreamedResponse
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RequestUsage

from nightherd.model.agents.agent import Agent
from nightherd.model.ids import ExecutionId, JobId
from nightherd.model.journal.event import AssistantEvent, ErrorEvent, Event, SystemEvent, describe
from nightherd.model.journal.event import ToolResultEvent as Result
from nightherd.model.journal.system import ExecutionStarted, Header, SystemSubtype
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.native.capabilities import NATIVE
from nightherd.runtimes.native.runtime import NativeRuntime
from nightherd.testing.messages_api import MessagesApi

JOB = JobId("job-2025-03-04-nat123")
EXECUTION = ExecutionId(f"{JOB}.1")
QUICK = timedelta(milliseconds=200)
NOON = datetime(2025, 3, 4, 12, tzinfo=UTC)
SECRET = "not-for-anybodys-eyes"

Reply = ModelResponse | BaseException


def says(text: str, **more: Any) -> ModelResponse:
    """An answer that needs nothing more."""
    usage = RequestUsage(input_tokens=10, output_tokens=5)
    return ModelResponse([TextPart(text)], usage=usage, finish_reason="stop", **more)


def calls(*wanted: tuple[str, Any], text: str | None = None) -> ModelResponse:
    """An answer that wants tools run: names and inputs."""
    parts = [ToolCallPart(name, args, f"call-{place}") for place, (name, args) in enumerate(wanted)]
    said = [] if text is None else [TextPart(text)]
    usage = RequestUsage(input_tokens=10, output_tokens=5)
    return ModelResponse([*said, *parts], usage=usage, finish_reason="tool_call")


def bash(command: str, **more: Any) -> ModelResponse:
    """An answer that wants a command run."""
    return calls(("Bash", {"command": command, **more}))


class Replies(FunctionModel):
    """Answers with what it was given, in order, and remembers what it was asked."""

    def __init__(self, *replies: Reply, before: Callable[[], Any] | None = None) -> None:
        super().__init__(self._never, model_name="replies")
        self._replies = list(replies)
        self._before = before
        self.asked: list[bytes] = []
        """Each conversation as it was sent, dumped."""

    @property
    def conversations(self) -> list[list[ModelMessage]]:
        return [ModelMessagesTypeAdapter.validate_json(dump) for dump in self.asked]

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: Any,
        model_request_parameters: Any,
        run_context: Any = None,
    ) -> AsyncGenerator[StreamedResponse]:
        self.asked.append(ModelMessagesTypeAdapter.dump_json(messages))
        if self._before is not None:
            await self._before()
        reply = self._replies.pop(0)
        if isinstance(reply, BaseException):
            raise reply
        yield CompletedStreamedResponse(
            reply, model_request_parameters=model_request_parameters, replay_events=True
        )

    async def _never(self, *_: Any) -> ModelResponse:
        raise AssertionError("the loop always streams")


class Record:
    """The events of a job as its journal holds them, for a run to look back at."""

    def __init__(self, prompt: str = "go") -> None:
        self.events: list[Event] = []
        self._messages = 0
        self.add(
            describe(Header(id=JOB, agent="n", trigger_type="manual", created_at=NOON)),
            describe(ExecutionStarted(worker="w")),
            SystemEvent(subtype=SystemSubtype.USER_INPUT, content=prompt, end=True),
        )

    def add(self, *events: Event) -> None:
        """Take more, stamped, numbered, and as they come back from JSON."""
        for event in events:
            stamp: dict[str, Any] = {
                "v": 1,
                "seq": len(self.events) + 1,
                "epoch": 1,
                "timestamp": NOON + timedelta(seconds=len(self.events)),
            }
            if not isinstance(event, ErrorEvent):
                stamp["message"] = self._messages + 1
                is_partial = isinstance(event, AssistantEvent) and event.partial
                self._messages += bool(event.end and not is_partial)
            written = msgspec.json.encode(msgspec.structs.replace(event, **stamp))
            self.events.append(msgspec.json.decode(written, type=Event))


@dataclass(frozen=True)
class NativeStage:
    """Runs agents in `directory`."""

    directory: Path
    agent: Mapping[str, Any] = field(default_factory=dict)

    def environment(self, api: MessagesApi | None = None) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "ANTHROPIC_BASE_URL": api.url if api is not None else "http://127.0.0.1:9",
            "ANTHROPIC_API_KEY": SECRET,
        }

    def request(
        self,
        record: Record | None = None,
        *,
        api: MessagesApi | None = None,
        agent: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> RuntimeRequest:
        told = {"permission_mode": "bypassPermissions", **(agent or {})}
        past = record if record is not None else Record()
        return RuntimeRequest(
            **{
                "job_id": JOB,
                "execution": EXECUTION,
                "agent": Agent(
                    name="n",
                    runtime=NATIVE,
                    **{"working_directory": str(self.directory), **told},
                ),
                "prompt": "go",
                "environment": self.environment(api),
                "history": lambda: iter(tuple(past.events)),
                **more,
            }
        )

    def chat_request(self, url: str, record: Record | None = None) -> RuntimeRequest:
        """What is asked of a server at `url` that speaks OpenAI's protocol."""
        there = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "any-key-at-all"}
        environment = {**self.environment(), **there}
        return self.request(record, agent={"model": "openai-chat:gpt-5"}, environment=environment)

    def run(
        self, model: Model | None, request: RuntimeRequest | None = None, **more: Any
    ) -> list[Event]:
        """Every event of a run."""
        asked = request if request is not None else self.request()

        async def collect() -> list[Event]:
            runtime = NativeRuntime(model=model, **{"grace": QUICK, **more})
            return [event async for event in runtime.execute(asked)]

        return anyio.run(collect)


def of_type(events: Iterable[Event], *kinds: type[Any]) -> list[Any]:
    """Those of some types; what was streamed is not among them."""
    return [event for event in events if isinstance(event, kinds) and not _is_piece(event)]


def results(events: Iterable[Event]) -> list[Result]:
    return of_type(events, Result)


def subtypes(events: Iterable[Event]) -> list[str]:
    """What happened, in a word each; what was streamed is not among it."""
    return [
        event.subtype.value if isinstance(event, SystemEvent) else type(event).__name__
        for event in events
        if not _is_piece(event)
    ]


def _is_piece(event: Event) -> bool:
    return isinstance(event, AssistantEvent) and bool(event.partial)
