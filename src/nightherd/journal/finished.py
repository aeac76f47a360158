"""Journals that are over when they are written: another tool's record, put down as a whole.

Readers never see part of one: it is written beside its place, synced, and renamed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from nightherd.errors import JournalError
from nightherd.files.atomic import rename_with_retry, temp_path_for
from nightherd.journal.blobs import Blobs, os_code, sync_data, sync_path
from nightherd.journal.bodies import plain_line, seal
from nightherd.model.ids import JobId, parse_job_id
from nightherd.model.journal.event import Event
from nightherd.ports import BlobRef, Probe, no_probe

FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
BUFFER = 256 * 1024


class FinishedJournalFiles:
    """Writes whole journals into `jobs_dir`, large bodies into `blobs_dir`."""

    def __init__(self, jobs_dir: Path, blobs_dir: Path, *, probe: Probe = no_probe) -> None:
        self._jobs_dir = jobs_dir
        self._blobs = Blobs(blobs_dir)
        self._probe = probe
        self._is_synced = True

    def write(self, job_id: JobId, events: Iterable[Event]) -> None:
        """The job's journal is exactly `events` once this returns; before that, it is what it was."""
        target = self._jobs_dir / f"{parse_job_id(job_id)}.jsonl"
        temporary = temp_path_for(target)
        try:
            with os.fdopen(os.open(temporary, FLAGS, 0o600), "wb", BUFFER) as file:
                blobs: set[BlobRef] = set()
                for event in events:
                    line = plain_line(event)
                    if line is None:
                        sealed = seal(event, self._blobs)
                        blobs.update(sealed.blobs)
                        line = sealed.line
                    file.write(line)
                if blobs:
                    self._blobs.sync(blobs)
                file.flush()
                sync_data(file.fileno())
            self._probe("finished.before_rename")
            rename_with_retry(temporary, target)
            self._probe("finished.after_rename")
        except BaseException as error:
            temporary.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise _failed(target, error) from error
            raise
        self._is_synced = False

    def sync(self) -> None:
        """Every journal written so far survives a power cut from here on."""
        if self._is_synced:
            return
        try:
            sync_path(self._jobs_dir)
        except OSError as error:
            raise _failed(self._jobs_dir, error) from error
        self._is_synced = True


def _failed(path: Path, error: OSError) -> JournalError:
    return JournalError(
        f"cannot write the journal {path}: {error.strerror or error}",
        path=str(path),
        code=os_code(error),
    )
