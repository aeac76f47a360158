"""A run of Claude, whichever way it is talked to: how it begins, what it says as our events, how it ends, with its transcript kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol

import anyio
from anyio import to_thread
from msgspec.structs import replace

from nightherd.errors import NightherdError
from nightherd.host.system import SystemClock
from nightherd.model.journal.event import ErrorEvent, Event, SystemEvent, describe, is_terminal
from nightherd.model.journal.system import Warned
from nightherd.ports import Clock, RuntimeRequest
from nightherd.runtimes.claude.answer import Price, no_price
from nightherd.runtimes.claude.deferred import deferred_in
from nightherd.runtimes.claude.gate import Gate, WrittenCalls
from nightherd.runtimes.claude.harvest import Harvest
from nightherd.runtimes.claude.installation import (
    InstalledClaude,
    can_defer,
    keeps_open_calls,
    version_text,
)
from nightherd.runtimes.claude.mcp import longest_call
from nightherd.runtimes.claude.new_input import NewInputs
from nightherd.runtimes.claude.opening import (
    Opening,
    begin_anew,
    completed,
    opening_of,
    records_of,
)
from nightherd.runtimes.claude.outcome import cannot_wait, not_proposed, stalled
from nightherd.runtimes.claude.process import begins_turn
from nightherd.runtimes.claude.review import PEOPLE, waits_for_people, with_review
from nightherd.runtimes.claude.transcripts.claude_files import ClaudeFiles, OwnFiles, SharedFiles
from nightherd.runtimes.claude.transcripts.places import config_directory, transcript_path
from nightherd.runtimes.claude.translate import Translator
from nightherd.runtimes.claude.usage_limit import UsageLimits, zone_of
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.runtimes.keeper.place import FilesThere

GRACE = timedelta(seconds=5)
IDLE_LIMIT = timedelta(minutes=15)
"""How long Claude may say nothing: longer than the longest command it runs in the foreground."""
UNASKED = timedelta(minutes=5)
"""How long it may say nothing before it proposes a call again that waited for a person; servers are connected first."""
KEPT = timedelta(seconds=2)
"""How long it may take to end when it has put off a call; what runs in the background would keep it for ever."""
LINGER = timedelta(seconds=30)
"""How long it may take to end after its result, when nothing runs in the background."""


class Conversation(Protocol):
    """One `claude` being talked to."""

    @property
    def inputs(self) -> NewInputs:
        """What it is told while it is at work."""

    @property
    def failure(self) -> ErrorEvent:
        """Why there was no result, once it has ended without one."""

    @property
    def late_result(self) -> Mapping[str, Any] | None:
        """The result of one that was stopped before it had given it, if it still did."""

    def heard(self) -> AsyncGenerator[bytes | Mapping[str, Any], None]:
        """Starts it; everything it says, as lines or messages. It has ended, with all it started, when this has."""


class ClaudeRuntime(ABC):
    """Implements the `Runtime` port, but for the conversation itself.

    A run whose worker has lost its lease ends with `FencedError`: it is another worker's by now.
    Before the last event is given out, and when the iteration is closed or cancelled, `claude` and
    everything it started have ended.
    """

    name: ClassVar[str]

    def __init__(
        self,
        *,
        keepers: Keepers | None = None,
        grace: timedelta = GRACE,
        idle_limit: timedelta = IDLE_LIMIT,
        linger: timedelta = LINGER,
        transcripts: Path | None = None,
        price: Price = no_price,
        clock: Clock | None = None,
        installed: InstalledClaude | None = None,
    ) -> None:
        """`transcripts` is where copies of Claude's transcripts are kept; None for nowhere.

        `price` says what an answer is taken to cost until Claude says what the run did. `installed` is the program to
        start, where `keepers` start it at another place; None to look for it here.
        """
        self._installed = installed
        self._price = price
        self._clock: Clock = clock if clock is not None else SystemClock()
        self._keepers = keepers if keepers is not None else Keepers()
        self._grace = grace
        self._idle_limit = idle_limit
        self._linger = linger
        self._transcripts = transcripts
        self.make_gate: Callable[[], Gate] = Gate
        """Makes the gate of each run."""
        self._versions: dict[tuple[str, float], str | None] = {}
        """What each program says its version is."""

    def _too_old(self, request: RuntimeRequest) -> ErrorEvent | None:
        """Why this `claude` cannot run an agent that waits for people."""
        program = self._program(request.environment)
        if program is None or not waits_for_people(request.agent):
            return None
        if self._installed is not None:
            version = self._installed.version
            return None if can_defer(version) else cannot_wait(version)
        try:
            key = (program, Path(program).stat().st_mtime)
        except OSError:
            return None  # it says itself why it cannot be started
        if key not in self._versions:
            self._versions[key] = version_text(program, request.environment)
        version = self._versions[key]
        return None if can_defer(version) else cannot_wait(version)

    def _program(self, environment: Mapping[str, str]) -> str | None:
        """The `claude` that is started with this environment; None when there is none."""
        if self._installed is not None:
            return self._installed.program
        return self._find_program(environment)

    def _version(self, environment: Mapping[str, str]) -> str | None:
        if self._installed is not None:
            return self._installed.version
        return version_text(self._program(environment), environment)

    @abstractmethod
    def _converse(
        self, request: RuntimeRequest, opening: Opening, keepers: Keepers, gate: Gate
    ) -> Conversation:
        """A conversation that has not begun; its process is to be among `keepers`, its calls wait at `gate`."""

    @abstractmethod
    def _find_program(self, environment: Mapping[str, str]) -> str | None:
        """The `claude` of this machine; None when there is none."""

    async def execute(self, request: RuntimeRequest) -> AsyncGenerator[Event, None]:
        """The events of the run; the last is `system/complete` or an error."""
        refusal = _refusal(request) or await to_thread.run_sync(self._too_old, request)
        if refusal is not None:
            yield refusal
            return
        if request.agent.questions:
            request = replace(request, injected_servers=(*request.injected_servers, PEOPLE))
        keepers = self._keepers.branch()
        try:
            run: Run | None = Run(opening_of(request))
            while run is not None:
                current, run = run, None
                async with aclosing(self._run(request, current, keepers)) as events:
                    async for event in events:
                        if isinstance(event, ErrorEvent):
                            run = await to_thread.run_sync(run_instead, request, current, event)
                        if run is not None:
                            break
                        yield event
                if run is not None and run.notice is not None:
                    yield run.notice
        finally:
            await keepers.stop(self._grace)
            self._keepers.discard(keepers)

    async def _run(
        self, request: RuntimeRequest, run: Run, keepers: Keepers
    ) -> AsyncGenerator[Event, None]:
        """One conversation from its start to its end, with its transcript kept."""
        files, harvest = _files(request, keepers.place), None
        if self._transcripts is not None:
            harvest = Harvest(self._transcripts, request, files)
        opening, notices = await to_thread.run_sync(self._completed, request, run, harvest, files)
        for event in notices:
            yield event
        translator = Translator(
            runtime=self.name,
            first_turn=request.job_turns + 1,
            is_resumed=opening.resume is not None,
            stream=request.stream,
            price=self._price,
            usage_limits=UsageLimits(self._clock.now, zone_of(request.environment)),
            secrets=request.known_secrets(),
            answered=opening.deferred.call if opening.deferred and opening.has_result else None,
        )
        gate = with_review(self.make_gate(), request, opening, keepers.place)
        gate.written = WrittenCalls(files)
        conversation = self._converse(request, opening, keepers, gate)
        last: Event | None = None
        warnings: tuple[Event, ...] = ()
        try:
            idle_limit = max(self._idle_limit, longest_call(request))
            said = self._events(conversation, translator, gate, idle_limit)
            async with aclosing(said) as events:
                async for last in events:
                    if is_terminal(last):
                        break
                    yield last
                    # It was asked for the next event, so this one is on record.
                    for event in _recorded(last, gate, harvest, translator.session):
                        yield event
        finally:
            cost = translator.cost_of_the_rest(conversation.late_result)
            if cost is not None:
                with suppress(NightherdError):  # the job is another worker's by now
                    request.late(cost)
            if harvest is not None:
                is_complete = isinstance(last, SystemEvent) and is_terminal(last)
                finish = partial(harvest.finish, is_complete=is_complete)
                with anyio.CancelScope(shield=True):
                    warnings = await to_thread.run_sync(finish)
        for event in warnings:
            yield event
        if last is not None and is_terminal(last):
            yield last

    def _completed(
        self, request: RuntimeRequest, run: Run, harvest: Harvest | None, files: ClaudeFiles
    ) -> tuple[Opening, tuple[Event, ...]]:
        """Return the opening with all that the model has to know, and what is recorded before it is sent."""
        opening, memory = run.opening, None
        notices: tuple[Event, ...] = ()
        if harvest is not None and opening.resume is not None:
            notices = harvest.put_in_place(opening)
            memory = harvest.memory(opening.resume)
        if opening.resume is not None:
            deferred = deferred_in(_transcript(request, opening.resume), files)
            opening = replace(opening, deferred=deferred)
        environment = request.environment

        def keeps() -> bool:
            return keeps_open_calls(self._version(environment))

        opening = completed(opening, request, memory, keeps)
        if not run.may_leave_out:
            opening = replace(opening, at_uuid=None)
        return opening, (*notices, *records_of(opening, request))

    async def _events(
        self,
        conversation: Conversation,
        translator: Translator,
        gate: Gate,
        idle_limit: timedelta,
    ) -> AsyncGenerator[Event, None]:
        """What is said, until it has ended or has been silent for too long; then how it came out.

        A run that waits for a person does not come out at all: the job is suspended, whatever became of the process.
        """
        failure: ErrorEvent | None = None
        async with aclosing(conversation.heard()) as heard:
            while True:
                is_over = translator.has_result and not translator.has_open_tasks
                limit = (self._linger if is_over or gate.is_waiting else idle_limit).total_seconds()
                if gate.is_waiting and translator.has_result:
                    limit = min(limit, KEPT.total_seconds())
                if gate.expects_deferred:
                    limit = min(limit, UNASKED.total_seconds())
                said: bytes | Mapping[str, Any] | None = None
                with anyio.move_on_after(limit) as waiting:
                    said = await anext(heard, None)
                if waiting.cancelled_caught:
                    failure = not_proposed(limit) if gate.expects_deferred else stalled(limit)
                    if translator.has_open_tasks:
                        yield _background_stopped(limit)
                if said is None or (
                    gate.is_waiting and translator.has_result and begins_turn(said)
                ):
                    break
                if conversation.inputs.is_read(said):
                    translator.go_on()
                for event in _translated((*gate.take_denials(), said), translator):
                    yield event
        if conversation.inputs.has_unread:
            translator.go_on()
        for event in translator.finish(gate.take_denials(), is_waiting=gate.is_waiting):
            yield event
        if not translator.has_result and not gate.is_waiting:
            yield failure or conversation.failure


def _translated(
    messages: Iterable[bytes | Mapping[str, Any]], translator: Translator
) -> Iterator[Event]:
    for message in messages:
        yield from translator.hear(message)


def _recorded(
    event: Event, gate: Gate, harvest: Harvest | None, session: str | None
) -> Iterator[Event]:
    """Go on after `event` is in the journal: its call may be made, the transcript has grown."""
    yield from gate.record(event)
    if harvest is not None:
        yield from harvest.follow(session)


def _files(request: RuntimeRequest, place: FilesThere) -> ClaudeFiles:
    """Claude's own files at the place of the run."""
    return SharedFiles(config_directory(request.environment)) if place.is_container else OwnFiles()


def _transcript(request: RuntimeRequest, session: str) -> Path:
    return transcript_path(request.environment, request.agent.working_directory, session)


def _background_stopped(limit: float) -> Event:
    text = f"what ran in the background was stopped after {limit:g} s of silence"
    return describe(Warned(code="background_stopped"), text)


def _refusal(request: RuntimeRequest) -> ErrorEvent | None:
    """Why the run cannot even begin."""
    agent = request.agent
    if not Path(agent.working_directory).is_dir():
        message = f"there is no directory {agent.working_directory} to run in"
        return ErrorEvent(message=message, code="working_directory")
    if agent.max_turns is not None and request.job_turns >= agent.max_turns:
        message = f"the job has taken its {agent.max_turns} turns"
        return ErrorEvent(message=message, code="max_turns")
    return None


@dataclass(frozen=True, slots=True)
class Run:
    """One run of `claude`, and what is said about it first."""

    opening: Opening
    notice: Event | None = None
    may_leave_out: bool = True
    """Whether notes that were never answered may be left out of the conversation that is resumed."""


def run_instead(request: RuntimeRequest, run: Run, error: ErrorEvent) -> Run | None:
    """The run to make instead, when `error` says that Claude cannot resume as it was to; else None."""
    opening = run.opening
    if opening.resume is None:
        return None
    if error.code == "message_not_found" and not opening.is_fork and run.may_leave_out:
        return Run(opening, may_leave_out=False)
    if error.code in ("session_not_found", "session_expired"):
        anew = begin_anew(request)
        return None if anew is None else Run(anew, _lost(opening.resume, anew))
    return None


def _lost(session: str, anew: Opening) -> Event:
    how = "" if anew.recount is None else ", with a summary of the recorded one"
    text = f"claude has no session {session} any more; a new one starts{how}"
    return describe(Warned(code="session_not_found"), text)
