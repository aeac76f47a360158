"""Much history, quickly: journals and rows as finished jobs leave them, written by the writers that imports use.

For a fleet whose daemon is not started yet. The rows are what the journals say, so the doctor finds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from msgspec.structs import replace

from nightherd.host.system import SystemClock
from nightherd.journal.bodies import plain_line
from nightherd.journal.finished import FinishedJournalFiles
from nightherd.model.change import AdoptRows, Row
from nightherd.model.ids import JobId, SessionId, generate_execution_id
from nightherd.model.journal.event import (
    VERSION,
    AssistantEvent,
    ErrorEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    describe,
)
from nightherd.model.journal.recollection import rebuilt_rows, recollect
from nightherd.model.journal.session_header import SessionHeader
from nightherd.model.journal.system import (
    Complete,
    End,
    ExecutionStarted,
    Header,
    Init,
    SystemSubtype,
)
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Usage
from nightherd.state.directory import init_state_directory
from nightherd.state.store import SqliteStore

LONG_JOB = 100_000
"""Events of the job that pages have to bear."""
MANY_JOBS = 10_000
MANY_SESSIONS = 500
EVERY = 50
"""Of so many jobs, and of so many calls of tools, one fails."""
BATCH = 4_000
"""Rows that are adopted at once."""
WORDS = ("quick", "brown", "fox", "lazy", "dog", "herd", "cow", "grazes", "green", "grass", "barn")
AFTER_FIRST_TURN = 7
"""The last line of a job's first turn."""
LARGE = 20_000
"""Characters of a result that is kept as a blob."""


@dataclass(frozen=True, kw_only=True)
class Story:
    """What a finished job was."""

    number: int
    at: datetime
    """When it was asked for."""
    turns: int = 1
    agent: str = "hello"
    prompt: str = "Tend the herd."
    fails: bool = False
    mode: str = "fresh_per_job"
    parent: Story | None = None
    """The job whose session this one's was forked from, after its first turn."""

    @property
    def job(self) -> JobId:
        return JobId(f"job-{self.at:%Y-%m-%d}-{self.number:06d}")

    @property
    def session(self) -> SessionId:
        return SessionId(f"sess-{self.number:08d}")


def text(number: int, count: int) -> str:
    """Some words, different ones for each number."""
    return " ".join(f"{WORDS[(number * 7 + n) % len(WORDS)]}{number % 997}" for n in range(count))


async def write_long_job(state: Path, ending: datetime, events: int = LONG_JOB) -> JobId:
    """A job with (almost) so many events: answers in markdown, calls of Bash, results, some failed and some large."""
    turns = events // 3
    story = Story(number=999_999, at=ending - timedelta(seconds=turns), turns=turns)
    await write_history(state, [story])
    return story.job


async def write_jobs(state: Path, ending: datetime, count: int = MANY_JOBS) -> list[JobId]:
    """So many short jobs of four agents, one a minute until `ending`; every fiftieth failed."""
    stories = [
        Story(
            number=number,
            at=ending - timedelta(minutes=count - number),
            agent=("hello", "talker", "writer", "held")[number % 4],
            prompt=text(number, 6),
            fails=number % EVERY == 0,
        )
        for number in range(count)
    ]
    await write_history(state, stories)
    return [story.job for story in stories]


async def write_sessions(
    state: Path, ending: datetime, count: int = MANY_SESSIONS, *, first: int = 0
) -> list[SessionId]:
    """So many sessions with a job each, in trees of ten: each is forked from one before it.

    With `first`, their numbers begin there: beside the jobs of `write_jobs`, whose sessions count from 0.
    """
    stories: list[Story] = []
    for index in range(count):
        place, number = index % 10, first + index
        parent = stories[index - place + (place - 1) // 2] if place else None
        at = ending - timedelta(minutes=count - index)
        prompt = text(number, 6)
        stories.append(
            Story(number=number, at=at, prompt=prompt, mode="persistent", parent=parent, turns=2)
        )
    await write_history(state, stories)
    return [story.session for story in stories]


async def write_history(state: Path, stories: Iterable[Story]) -> None:
    """Write the journals and rows of jobs whose events are made up: oldest first, as they were asked for."""
    await write_journals(state, ((one, list(stamped(one, events_of(one)))) for one in stories))


async def write_journals(state: Path, written: Iterable[tuple[Story, list[Event]]]) -> None:
    """Write the journals, then the rows: oldest first, as they were asked for."""
    directory = init_state_directory(state)
    journals = FinishedJournalFiles(directory.jobs, directory.blobs)
    rows: list[Row] = []
    store = SqliteStore(directory.root, SystemClock())
    try:
        for story, events in written:
            lines = [plain_line(event) for event in events]
            if None in lines:
                journals.write(story.job, events)
            else:
                # The same, but not synced: a disk takes a minute for ten thousand files.
                path = directory.jobs / f"{story.job}.jsonl"
                path.write_bytes(b"".join(line for line in lines if line is not None))
                path.chmod(0o600)
            rows += rows_of(events)
            if len(rows) >= BATCH:
                await store.apply([AdoptRows(rows=tuple(rows), source="test")])
                rows = []
        await store.apply([AdoptRows(rows=tuple(rows), source="test")])
    finally:
        await store.close()


def rows_of(events: list[Event]) -> list[Row]:
    """The rows of the job whose journal these are."""
    found = rebuilt_rows(recollect(events))
    assert found is not None
    assert found.session is not None
    return [found.session, found.job, found.texts, *found.executions]


def stamped(story: Story, events: Iterable[Event]) -> Iterator[Event]:
    """The lines of the job's journal."""
    execution = generate_execution_id(story.job, 1)
    for seq, event in enumerate(events, 1):
        at = story.at + timedelta(milliseconds=300 * seq)
        yield replace(event, v=VERSION, seq=seq, epoch=1, timestamp=at, execution=execution)


def events_of(story: Story) -> Iterator[Event]:
    """What happened in the job."""
    yield from beginning_of(story)
    for turn in range(1, story.turns + 1):
        yield from events_of_turn(turn)
    if story.fails:
        yield ErrorEvent(message="No luck today.", code="bad_luck")
        yield describe(End(status="failed", exit_reason="error"))
        return
    yield describe(Complete(stop_reason="end_turn"))
    yield describe(End(status="completed", exit_reason="success"))


def beginning_of(story: Story) -> Iterator[Event]:
    """What every journal begins with, the prompt included: the first message."""
    yield describe(header_of(story))
    yield describe(ExecutionStarted(worker="worker-before00"))
    yield describe(Init(runtime="scripted", working_directory="/pasture"))
    asked = SystemSubtype.USER_INPUT
    yield SystemEvent(subtype=asked, content=story.prompt, message=1, index=0, end=True)


def events_of_turn(turn: int) -> Iterator[Event]:
    """An answer, the call in it, and its result."""
    message, call, words = turn * 2, f"call-{turn}", text(turn, 12)
    said = f"**Turn {turn}.** {words}\n\n- `{WORDS[turn % 11]}`\n- {text(turn + 1, 3)}"
    is_large, is_wrong = turn % 1_000 == 999, turn % EVERY == 0
    result = text(turn, LARGE // 8) if is_large else text(turn, 30)
    usage = Usage(input_tokens=900, output_tokens=60, cost_microusd=MicroUsd(1_200))
    command = {"command": f"echo {words}"}
    yield AssistantEvent(content=said, message=message, index=0, turn=turn, usage=usage)
    yield ToolUseEvent(
        tool_name="Bash",
        tool_use_id=call,
        input=command,
        message=message,
        index=1,
        end=True,
        turn=turn,
    )
    yield ToolResultEvent(
        tool_use_id=call,
        result=None if is_wrong else result,
        error=f"exit code 3\n{result}" if is_wrong else None,
        success=not is_wrong,
        message=message + 1,
        index=0,
        end=True,
        turn=turn,
    )


def header_of(story: Story) -> Header:
    """The first line: whose job it is, and in which session."""
    session = SessionHeader(
        mode=story.mode,
        created_at=story.at,
        runtime_type="scripted",
        working_directory="/pasture",
    )
    if story.parent is not None:
        session = replace(
            session,
            parent_session_id=story.parent.session,
            base_job_id=story.parent.job,
            base_seq=AFTER_FIRST_TURN,
            base_messages=3,
            base_turns=1,
        )
    return Header(
        id=story.job,
        agent=story.agent,
        trigger_type="manual",
        created_at=story.at,
        session_id=story.session,
        session=session,
    )
