"""Retention: what the plan says is done: archived first, then taken away. Rows and journals stay.

Workspaces that nothing keeps any more go with the same run, what was said in chat long ago, and what Claude wrote in
containers for sessions that are over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

import msgspec
from anyio import to_thread

from nightherd.engine.chat.retention import ChatFiles, forget_chat
from nightherd.engine.sessions.directories import (
    SessionDirectories,
    removable_directories,
    transcripts_of,
)
from nightherd.engine.workspaces.cleanup import Cleanup, CleanupContext, sweep
from nightherd.errors import NightherdError, RefusedError
from nightherd.model.change import Refused
from nightherd.model.chat.forgotten import NOTHING_FORGOTTEN, ForgottenChat
from nightherd.model.checkpoints.checkpoint import Checkpoint, RemoveCheckpoints
from nightherd.model.checkpoints.persistence import Persistence
from nightherd.model.checkpoints.retention import JobPlan, plan
from nightherd.model.ids import JobId, SessionId
from nightherd.model.jobs.job import Job
from nightherd.model.sessions.session import Session
from nightherd.ports import Clock, Journals, StateReader, StateWriter
from nightherd.views.jobs.checkpoints import checkpoint_row, list_bookmarks

NOTHING_CLEANED = Cleanup()


class Archive(Protocol):
    """Where the documents of jobs are."""

    def archive(self, job_id: str, rows: Sequence[Mapping[str, Any]], where: str, /) -> object:
        """Put the job's document and `rows` into the archive; `where` may name the job as {thread_id}."""

    def delete(self, job_id: str, /) -> object:
        """Take the job's document away; what was archived stays."""


class RetentionContext(msgspec.Struct, frozen=True, kw_only=True):
    """What retention needs from the world."""

    state: StateWriter
    reader: StateReader
    journals: Journals
    clock: Clock
    persistence: Persistence
    archive: Archive
    workspaces: CleanupContext | None = None
    """How workspaces are removed; None where there are none to be."""
    chat_files: ChatFiles | None = None
    """Files of chat; None where chat is left as it is."""
    session_directories: SessionDirectories | None = None
    """What Claude wrote in containers; None where there is nothing of it."""


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the plans."""

    done: Sequence[JobPlan]
    failures: Mapping[str, str]
    """Why it could not be done, by job."""
    is_whole: bool = True
    """False when it was stopped on the way."""
    workspaces: Cleanup = NOTHING_CLEANED
    """What became of the workspaces that nothing keeps any more."""
    chat: ForgottenChat = NOTHING_FORGOTTEN
    """What of chat was removed."""
    session_directories: int = 0
    """How many directories of sessions in containers were removed."""


def plans(
    reader: StateReader,
    journals: Journals,
    persistence: Persistence,
    now: datetime,
    job_id: JobId | None = None,
) -> Iterator[JobPlan]:
    """What there is to do now, job by job; only for `job_id` when one is named."""
    for one in reader.jobs_with_checkpoints() if job_id is None else (job_id,):
        job = reader.find_job(one)
        if job is None:
            continue
        found = plan(
            job,
            list_bookmarks(reader, journals, one),
            persistence.retention,
            now=now,
            forked_at=forked_at(reader, job),
        )
        if not found.is_empty:
            yield found


def forked_at(reader: StateReader, job: Job) -> list[int]:
    """The lines of the job's record that other sessions begin with."""
    if job.session_id is None:
        return []
    return [
        branch.base_seq
        for branch in _branches(reader, job.session_id)
        if branch.base_job_id == job.id and branch.base_seq is not None
    ]


def _branches(reader: StateReader, session_id: SessionId) -> Iterator[Session]:
    """The session's branches, and theirs: one of those may begin with what the first session said too."""
    left = [session_id]
    while left:
        found = reader.sessions_of_parent(left.pop())
        yield from found
        left.extend(one.id for one in found)


class ApplyRetention(msgspec.Struct, frozen=True, kw_only=True):
    """What retention deletes now: the checkpoints of one job; else those of all jobs, workspaces, texts of chat and
    directories of sessions.
    """

    job_id: JobId | None = None


async def apply_retention(
    request: ApplyRetention,
    room: RetentionContext,
    *,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Applied:
    """Delete what is planned job by job, until `is_stopped`. What is wrong with one job holds up no other."""
    now = room.clock.now()
    found = list(plans(room.reader, room.journals, room.persistence, now, request.job_id))
    done: list[JobPlan] = []
    failures: dict[str, str] = {}
    for one in found:
        if is_stopped():
            return Applied(done=done, failures=failures, is_whole=False)
        try:
            await apply_plan(one, room)
            done.append(one)
        except NightherdError as error:
            failures[one.job_id] = error.message
        except OSError as error:
            failures[one.job_id] = f"{error.strerror}: {error.filename}"
    if request.job_id is not None:
        return Applied(done=done, failures=failures)
    chat = NOTHING_FORGOTTEN
    if room.chat_files is not None:
        terms = room.persistence.retention.chat
        chat = await forget_chat(
            room.state, room.reader, terms, now, room.chat_files, is_stopped=is_stopped
        )
    directories = await _remove_directories(room, now, failures)
    if room.workspaces is None:
        return Applied(done=done, failures=failures, chat=chat, session_directories=directories)
    cleaned = await sweep(room.workspaces, is_stopped=is_stopped)
    return Applied(
        done=done,
        failures=failures,
        is_whole=cleaned.is_whole,
        workspaces=cleaned,
        chat=chat,
        session_directories=directories,
    )


async def _remove_directories(
    room: RetentionContext, now: datetime, failures: dict[str, str]
) -> int:
    """Remove the directories of sessions that are over; how many. One that cannot be removed is named in `failures`."""
    directories, removed = room.session_directories, 0
    if directories is None:
        return 0
    for name in list(removable_directories(room.reader, directories, now)):
        try:
            transcripts = transcripts_of(room.reader, name)
            if await to_thread.run_sync(directories.remove, name, transcripts):
                removed += 1
            else:
                failures[name] = "a transcript in its container directory cannot be copied"
        except OSError as error:
            failures[name] = f"{error.strerror}: {error.filename}"
    return removed


async def apply_plan(found: JobPlan, room: RetentionContext) -> Sequence[Checkpoint]:
    """Do it; the checkpoints that went. Killed in the middle it is done again, and nothing is lost."""
    known = list_bookmarks(room.reader, room.journals, found.job_id)
    numbers = frozenset(found.numbers)
    going = [one for one in known if one.number in numbers]
    if found.is_archived:
        rows = [{**checkpoint_row(one), "header": dict(one.header)} for one in going]
        room.archive.archive(found.job_id, rows, room.persistence.retention.archive_path)
    if found.is_archived or found.is_deleted:
        # Before the rows: as long as they are there, a job that was interrupted here is planned again.
        room.archive.delete(found.job_id)
    change = RemoveCheckpoints(
        job_id=found.job_id,
        numbers=found.numbers,
        at=room.clock.now(),
        kept=tuple(one.number for one in known if one.number not in numbers),
    )
    (answer,) = await room.state.apply([change])
    if isinstance(answer, Refused):
        raise RefusedError(answer.message)
    return going
