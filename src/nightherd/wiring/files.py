"""The readable files, and the raw copies of transcripts."""

from __future__ import annotations

import glob
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nightherd.wiring.stores import (
    load_persistence,
    open_feed,
    open_journals,
    open_reader,
    open_threads,
    system_clock,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from nightherd.mirror.fleet_state import FleetState, ScheduleState
    from nightherd.model.agents.agent import Fleet
    from nightherd.model.ids import JobId
    from nightherd.model.units import MicroUsd
    from nightherd.model.usage import Usage
    from nightherd.ports import FinishedJournals, Mirror, Transcripts
    from nightherd.runtimes.claude.transcripts.keeping import KeptTranscript


def kept_transcript(
    state_dir: Path, uuid: str, directory: str, environment: Mapping[str, str]
) -> KeptTranscript:
    """The transcript that Claude has of the session `uuid` in `directory`, and our copy of it.

    The copy has what was said in a container until its worker was killed.
    """
    from nightherd.runtimes.claude.transcripts.claude_files import SharedFiles
    from nightherd.runtimes.claude.transcripts.keeping import KeptTranscript

    kept = KeptTranscript(
        state_dir / "transcripts",
        uuid,
        environment=environment,
        directory=directory,
    )
    sessions = Path(os.path.realpath(state_dir)) / "containers" / "sessions"
    for found in sessions.glob(f"*/claude/projects/*/{glob.escape(kept.uuid)}.jsonl"):
        config = found.parents[2]
        kept.take_from({"CLAUDE_CONFIG_DIR": str(config)}, SharedFiles(config))
    return kept


def transcripts_of(state_dir: Path, environment: Mapping[str, str]) -> Transcripts:
    """What Claude keeps of its sessions, for agents with this environment, and our copies of it."""
    from nightherd.imports.claude_turns import ClaudeTranscripts
    from nightherd.wiring.runtimes import keeps_claude_transcripts, price_estimate

    def price(model: str, usage: Usage) -> MicroUsd | None:
        estimate = price_estimate()
        return None if estimate is None else estimate(model, usage)

    return ClaudeTranscripts(
        partial(kept_transcript, state_dir, environment=environment),
        keeps_claude_transcripts,
        price,
    )


def finished_journals(state_dir: Path) -> FinishedJournals:
    """Where records that are over, and came from elsewhere, are written."""
    from nightherd.journal.finished import FinishedJournalFiles

    return FinishedJournalFiles(state_dir / "jobs", state_dir / "blobs")


def read_fleet_state(path: Path) -> FleetState:
    """Return the state in the mirror's `state.yaml`; `StateFileError` when it is no such file."""
    from nightherd.mirror import fleet_state

    return fleet_state.read_fleet_state(path)


def empty_schedule_state() -> ScheduleState:
    """Return the state of a schedule that never ran."""
    from nightherd.mirror.fleet_state import ScheduleState

    return ScheduleState()


def open_mirror(state_dir: Path, fleet: Fleet | None = None, at: datetime | None = None) -> Mirror:
    """The readable files of `state_dir`; a fleet's agents are in them, and `at` when it was started."""
    from nightherd.host.process import is_at_work
    from nightherd.mirror.follower import MirrorFollower

    return MirrorFollower(
        state_dir,
        open_feed(state_dir),
        open_reader(state_dir),
        open_journals(state_dir),
        clock=system_clock(),
        agents=fleet.standing if fleet is not None else None,
        is_at_work=is_at_work,
        started_at=at,
    )


def write_output_log(state_dir: Path, job_id: JobId) -> Path:
    """Write the job's events as plain text to `jobs/<id>/output.log`; where that is."""
    from nightherd.mirror.job_file import write_output_log as write_output_log_

    return write_output_log_(state_dir, job_id, open_journals(state_dir))


def refresh_state_files(state_dir: Path, job_ids: Sequence[JobId]) -> None:
    """Bring the `state.json` of these jobs, which no worker runs, up to their journals; where files are kept.

    What cannot be written is left to `doctor`: the command that reads works all the same.
    """
    from nightherd.errors import NightherdError
    from nightherd.mirror.checkup import is_kept
    from nightherd.views.jobs import checkpoints

    if not is_kept(state_dir):
        return
    now = system_clock().now()
    journals, reader = open_journals(state_dir), open_reader(state_dir)
    try:
        files = open_threads(state_dir, load_persistence(state_dir))
        for job_id in job_ids:
            journal = state_dir / "jobs" / f"{job_id}.jsonl"
            written_at = files.written_at(job_id)
            is_behind = written_at is None or written_at < journal.stat().st_mtime_ns
            if is_behind and reader.list_checkpoints(job_id):
                files.write(job_id, checkpoints.thread_state(reader, journals, job_id, now=now))
    except (NightherdError, OSError):
        return
    finally:
        reader.close()


def refresh_mirror(state_dir: Path, *, is_new: bool) -> None:
    """Bring the readable files up to what is so now, from the beginning if `is_new`; where they are kept."""
    from nightherd.mirror.checkup import is_kept

    if not is_kept(state_dir):
        return
    mirror = open_mirror(state_dir)
    if is_new:
        mirror.rebuild()
    else:
        mirror.catch_up()


def is_mirror_behind(state_dir: Path) -> bool:
    """Return whether files are kept that show less than the ledger has, and no live process is there to write them."""
    from nightherd.mirror.behind import is_followed, mirrored_change
    from nightherd.state.layout import last_recorded

    change = mirrored_change(state_dir)
    if change is None or change >= last_recorded(state_dir / "ledger"):
        return False
    return not is_followed(state_dir)


def refresh_stale_mirror(state_dir: Path) -> None:
    """Bring the readable files up to date if they are behind: what every command does before it exits."""
    if is_mirror_behind(state_dir):
        refresh_mirror(state_dir, is_new=False)
