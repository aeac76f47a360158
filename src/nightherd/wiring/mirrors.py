"""The readable files, and the raw copies of transcripts."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, cast

from nightherd.wiring.loading import load
from nightherd.wiring.memories import (
    load_persistence,
    open_feed,
    open_job_list,
    open_journals,
    open_reader,
    open_threads,
    system_clock,
)
from nightherd.wiring.runtimes import PRICES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from nightherd.mirror.memory import LostImage
    from nightherd.model.agent import Fleet
    from nightherd.model.event import Event
    from nightherd.model.ids import JobId
    from nightherd.model.money import MicroUsd
    from nightherd.model.session import Session
    from nightherd.model.usage import Usage
    from nightherd.ports import FinishedJournals, Mirror, Transcripts
    from nightherd.runtimes.claude.transcripts.keeping import KeptTranscript


def kept_transcript(
    state_dir: Path, session: Session, environment: Mapping[str, str]
) -> KeptTranscript:
    """The transcript that Claude has of the session, and our copy of it."""
    return cast(
        "KeptTranscript",
        load("nightherd.runtimes.claude.transcripts.keeping:KeptTranscript")(
            state_dir / "transcripts",
            session.runtime_session_id,
            environment=environment,
            directory=session.working_directory,
        ),
    )


def transcripts_of(state_dir: Path, environment: Mapping[str, str]) -> Transcripts:
    """What Claude keeps of its sessions, for agents with this environment, and our copies of it."""
    kept = load("nightherd.runtimes.claude.transcripts.keeping:KeptTranscript")

    def find(uuid: str, directory: str) -> KeptTranscript:
        found = kept(state_dir / "transcripts", uuid, environment=environment, directory=directory)
        return cast("KeptTranscript", found)

    def price(model: str, usage: Usage) -> MicroUsd | None:
        if load("importlib.util:find_spec")(PRICES) is None:
            return None
        cost = load("nightherd.runtimes.prices:estimate")(model, usage)
        return cast("MicroUsd | None", cost)

    made = load("nightherd.imports.claude_transcripts:ClaudeTranscripts")
    return cast("Transcripts", made(find, price))


def finished_journals(state_dir: Path) -> FinishedJournals:
    """Where records that are over, and came from elsewhere, are written."""
    made = load("nightherd.journal.finished:FinishedJournalFiles")
    return cast("FinishedJournals", made(state_dir / "jobs", state_dir / "blobs"))


def open_mirror(state_dir: Path, fleet: Fleet | None = None, at: datetime | None = None) -> Mirror:
    """The readable files of `state_dir`; a fleet's agents are in them, and `at` when it was started."""
    return cast(
        "Mirror",
        load("nightherd.mirror.follower:MirrorFollower")(
            state_dir,
            open_feed(state_dir),
            open_journals(state_dir),
            clock=system_clock(),
            agents=fleet.standing if fleet is not None else None,
            conversation=partial(_conversation, state_dir),
            find_lost=partial(_find_lost, state_dir),
            started_at=at,
        ),
    )


def _find_lost(state_dir: Path, job_ids: Sequence[str]) -> Mapping[str, LostImage]:
    """Those of the jobs that run by their rows and have no live worker."""
    observed, image = (
        import_module("nightherd.views.observed"),
        load("nightherd.mirror.memory:LostImage"),
    )
    timestamp, is_at_work = (
        load("nightherd.views.jobs:timestamp"),
        load("nightherd.host.liveness:is_at_work"),
    )
    reader = open_job_list(state_dir)
    try:
        known = [reader.find_job(cast("JobId", job_id)) for job_id in job_ids]
        jobs = [job for job in known if job is not None]
        seen = observed.observe_jobs(reader, jobs, is_at_work, system_clock().now())
    finally:
        reader.close()
    return {
        job.id: image(since=timestamp(job.lost.since), next=job.lost.next)
        for job in seen
        if job.lost is not None
    }


def _conversation(state_dir: Path, session_id: str) -> Sequence[Event]:
    """Everything said in a session; nothing when there is none by that id."""
    conversation = import_module("nightherd.views.conversation")
    journals, reader = open_journals(state_dir), open_reader(state_dir)
    try:
        session = reader.find_session(load("nightherd.model.ids:SessionId")(session_id))
        if session is None:
            return ()
        parts = conversation.segments_of(reader, journals, session)
        return list(conversation.events_of(journals, parts, load_blobs=False))
    finally:
        reader.close()


def write_output_log(state_dir: Path, job_id: JobId) -> Path:
    """Write the job's events as plain text to `jobs/<id>/output.log`; where that is."""
    write = load("nightherd.mirror.output_log:write_output_log")
    return cast("Path", write(state_dir, job_id, open_journals(state_dir)))


def refresh_state_files(state_dir: Path, job_ids: Sequence[JobId]) -> None:
    """Bring the `state.json` of these jobs, which no worker runs, up to their journals; where files are kept.

    What cannot be written is left to `doctor`: the command that reads works all the same.
    """
    if not load("nightherd.mirror.checkup:is_kept")(state_dir):
        return
    views, now = import_module("nightherd.views.checkpoints"), system_clock().now()
    journals, reader = open_journals(state_dir), open_reader(state_dir)
    try:
        files = open_threads(state_dir, load_persistence(state_dir))
        for job_id in job_ids:
            journal = state_dir / "jobs" / f"{job_id}.jsonl"
            written_at = files.written_at(job_id)
            is_behind = written_at is None or written_at < journal.stat().st_mtime_ns
            if is_behind and reader.list_checkpoints(job_id):
                files.write(job_id, views.thread_state(reader, journals, job_id, now=now))
    except (load("nightherd.errors:NightherdError"), OSError):
        return
    finally:
        reader.close()


def refresh_mirror(state_dir: Path, *, is_new: bool) -> None:
    """Bring the readable files up to what is so now, from the beginning if `is_new`; where they are kept."""
    if not load("nightherd.mirror.checkup:is_kept")(state_dir):
        return
    mirror = open_mirror(state_dir)
    if is_new:
        mirror.rebuild()
    else:
        mirror.catch_up()
