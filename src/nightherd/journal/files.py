"""Journals as files: `jobs/<job-id>.jsonl`, large bodies in `blobs/<sha256>`."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Mapping
from pathlib import Path

from nightherd.errors import RefusedError
from nightherd.files.permission import keep_aside
from nightherd.journal.blobs import Blobs
from nightherd.journal.bodies import load_output, stored_bodies
from nightherd.journal.follow import Follower, follow
from nightherd.journal.live_text import LiveTextFile, TextFollower, read_text
from nightherd.journal.reader import examine, find_message, last, read
from nightherd.journal.writer import JournalFile
from nightherd.model.agents.agent import Durability
from nightherd.model.ids import JOB_ID, ExecutionId, JobId, parse_job_id
from nightherd.model.journal.event import Event, FullOutput
from nightherd.model.journal.live_text import TextDelta
from nightherd.ports import BlobRef, CallLater, Clock, Findings, Probe, Wait


class JournalFiles:
    """All journals of a state directory. Reading needs no lock and never disturbs a writer."""

    def __init__(
        self,
        jobs_dir: Path,
        blobs_dir: Path,
        *,
        clock: Clock,
        durability: Durability = Durability.CHECKPOINT,
        probe: Probe | None = None,
    ) -> None:
        self._jobs_dir = jobs_dir
        self._blobs = Blobs(blobs_dir, probe=probe)
        self._clock = clock
        self._durability = durability
        self._probe = probe

    def path(self, job_id: JobId) -> Path:
        """Where the job's journal is, or would be; a name that is no job id never becomes a path."""
        return self._jobs_dir / f"{parse_job_id(job_id)}.jsonl"

    def open(self, job_id: JobId, *, epoch: int, execution: ExecutionId) -> JournalFile:
        """The job's journal, made if need be, repaired and ready to append."""
        return JournalFile(
            self.path(job_id),
            epoch=epoch,
            execution=execution,
            blobs=self._blobs,
            clock=self._clock,
            durability=self._durability,
            probe=self._probe,
        )

    def read(self, job_id: JobId, *, after: int = 0, load_blobs: bool = True) -> Iterator[Event]:
        """Every event after `after`, in order; nothing when the job has no journal yet."""
        return read(self.path(job_id), after=after, blobs=self._blobs if load_blobs else None)

    def last(self, job_id: JobId, count: int, *, load_blobs: bool = False) -> list[Event]:
        """The last `count` events, without reading the rest."""
        return last(self.path(job_id), count, blobs=self._blobs if load_blobs else None)

    def follow(
        self, job_id: JobId, *, after: int = 0, wait: Wait, load_blobs: bool = False
    ) -> Iterator[Event]:
        """Every event after `after`, then each new one, until `wait` says stop."""
        return follow(self.follower(job_id, after=after, load_blobs=load_blobs), wait)

    def follower(self, job_id: JobId, *, after: int = 0, load_blobs: bool = False) -> Follower:
        """The same without the waiting, for callers with a loop of their own."""
        return Follower(self.path(job_id), after=after, blobs=self._blobs if load_blobs else None)

    def seq_of_message(self, job_id: JobId, message: int) -> int | None:
        """The number of the event that ends the message, found by halving."""
        return find_message(self.path(job_id), message)

    def keep_output(self, pieces: Iterable[str], *, left_out: int = 0) -> FullOutput:
        """Store the text as a blob; it survives what the journal's lines survive."""
        ref = self._blobs.put((piece.encode(errors="replace") for piece in pieces), kind="text")
        if self._durability is not Durability.PROCESS:
            self._blobs.sync([ref])
        return FullOutput(sha256=ref.sha256, size=ref.size, left_out=left_out)

    def read_output(self, output: FullOutput) -> str:
        """Return the whole text."""
        return load_output(output, self._blobs)

    def stored_bodies(self, event: Event) -> Mapping[str, BlobRef]:
        """Return the blobs that the event names, by field."""
        return stored_bodies(event)

    def read_blob(self, sha256: str) -> Generator[bytes, None, None] | None:
        """Return the bytes of a blob in pieces; None when there is none of that name."""
        return self._blobs.read(sha256)

    def text_path(self, job_id: JobId) -> Path:
        """Where the job's live text is while there is any."""
        return self._jobs_dir / f"{parse_job_id(job_id)}.text"

    def live_text(self, job_id: JobId, call_later: CallLater) -> LiveTextFile:
        """Return the writer of the job's live text; there is no file before its first piece is due."""
        return LiveTextFile(self.text_path(job_id), call_later)

    def text_follower(self, job_id: JobId) -> TextFollower:
        """Return a place at the beginning of the job's live text."""
        return TextFollower(self.text_path(job_id))

    def leftover_text(self, job_id: JobId) -> list[TextDelta]:
        """Return what is in the file."""
        return read_text(self.text_path(job_id))

    def remove_text(self, job_id: JobId) -> None:
        """Remove the file."""
        self.text_path(job_id).unlink(missing_ok=True)

    def job_ids(self) -> Iterator[JobId]:
        """Every job that has a journal, in no particular order; files of other names are not looked at."""
        try:
            found = os.scandir(self._jobs_dir)
        except FileNotFoundError:
            return
        with found:
            for entry in found:
                name, suffix = os.path.splitext(entry.name)  # noqa: PTH122 - a path object per entry costs more than the scan
                if suffix == ".jsonl" and JOB_ID.fullmatch(name):
                    yield JobId(name)

    def examine(self, job_id: JobId) -> Findings:
        """What a reading of the whole journal comes across."""
        return examine(self.path(job_id))

    def put_aside(self, job_id: JobId) -> None:
        """Rename a journal in which there is no event to `<name>.corrupt-<time>`."""
        path = self.path(job_id)
        if self.examine(job_id).events:
            raise RefusedError(f"the journal {path} has events")
        if path.exists():
            keep_aside(path, self._clock.now())
