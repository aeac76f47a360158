"""`projects/<slug>/<session>.jsonl`: what was said in each session, kept up with the journals. Lines are appended, and a file that something else changed is examined first."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from nightherd.decoding import json_decoder
from nightherd.files.atomic import write_all
from nightherd.files.permission import atomic_write_error
from nightherd.mirror.envelope import Line, Translator, encode_line, result_line
from nightherd.mirror.layout import MirrorLayout, make_directory
from nightherd.mirror.position import JobProgress
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import Execution, Job, JobTexts
from nightherd.model.journal.event import Event, SystemEvent
from nightherd.model.journal.system import SystemSubtype
from nightherd.model.sessions.session import Session
from nightherd.ports import Journals

PRIVATE = 0o600
FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


class Mark(msgspec.Struct, frozen=True):
    """As much of a line as it takes to know what it is."""

    type: str = ""
    jobId: str = ""
    seq: int = 0


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What a transcript holds: its size, the last event of each job in it, the jobs whose result is in it."""

    size: int = 0
    seqs: dict[str, int] = msgspec.field(default_factory=dict)
    results: set[str] = msgspec.field(default_factory=set)


def examine(path: Path, known: int | None) -> Held:
    """What stands in the file after its first `known` bytes, which are ours and need no second look.

    A last line that a killed writer did not finish is cut: it comes again, whole. A file that is shorter
    than it was is another file, and is looked at from its beginning.
    """
    try:
        size = path.lstat().st_size
    except FileNotFoundError:
        return Held()
    start = known if known is not None and known <= size else 0
    if start == size:
        return Held(size=size)
    try:
        return _examine(path, start)
    except OSError as error:
        raise atomic_write_error(error, path) from error


def append(path: Path, held: int, data: bytes) -> int:
    """Add `data` to the file, which has `held` bytes, in a directory that is there; its size then.

    When that fails the file is what it was: nothing of `data` is in it.
    """
    try:
        handle = os.open(path, FLAGS, PRIVATE)
        try:
            write_all(handle, data)
        except OSError:
            os.ftruncate(handle, held)
            raise
        finally:
            os.close(handle)
    except OSError as error:
        raise atomic_write_error(error, path) from error
    return held + len(data)


def _examine(path: Path, start: int) -> Held:
    decoder = json_decoder(Mark)
    seqs: dict[str, int] = {}
    results: set[str] = set()
    end = start
    with os.fdopen(os.open(path, FLAGS, PRIVATE), "rb") as file:
        file.seek(start)
        for line in file:
            if not line.endswith(b"\n"):
                break
            end += len(line)
            mark = _mark(decoder, line)
            if mark.type == "result":
                results.add(mark.jobId)
            else:
                seqs[mark.jobId] = max(mark.seq, seqs.get(mark.jobId, 0))
        if os.fstat(file.fileno()).st_size != end:
            os.ftruncate(file.fileno(), end)
    return Held(size=end, seqs=seqs, results=results)


def _mark(decoder: msgspec.json.Decoder[Mark], line: bytes) -> Mark:
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Mark()  # a line of another program: it stays, and says nothing about ours


FILE_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")
TAIL = 1_000
"""So many new events are read from the journal's end; more of them from wherever they begin."""
PIECE_BYTES = 4 * 1024 * 1024


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """What the last line of a job that has ended says beside its row."""

    texts: JobTexts | None
    execution: Execution | None


class Transcripts:
    """Writes every session's transcript; appends only, and nothing twice."""

    def __init__(self, layout: MirrorLayout, journals: Journals) -> None:
        self._layout = layout
        self._journals = journals
        self._folders: dict[str, Path] = {}

    def begin(self) -> None:
        """A round begins: directories are checked again; a link may have replaced one."""
        self._folders.clear()

    def follow(
        self,
        job: Job,
        progress: JobProgress,
        session: Session,
        sizes: dict[str, int],
        ended: Ended | None,
    ) -> None:
        """Add what the job's journal has that its transcript has not; with `ended`, the last line too.

        Nothing is written before it is known what the runtime calls the session: that names the file.
        `sizes` says how many bytes of each transcript are ours.
        """
        events: Iterable[Event] = self._news(job.id, progress.seq)
        if _name(progress, session, is_over=ended is not None) is None:
            events = list(events)
            _introduce(progress, events)
        name = _name(progress, session, is_over=ended is not None)
        if name is None:
            return
        folder = self._folder(session.working_directory)
        writing = _Writing(folder / f"{name}.jsonl", job.id, progress, sizes)
        for event in events:
            renamed = _renamed(progress, event)
            if renamed is not None:
                writing.flush()
                progress.runtime_session_id = renamed
                name = _name(progress, session, is_over=False) or name
                writing = _Writing(folder / f"{name}.jsonl", job.id, progress, sizes)
            writing.take(event)
        if ended is not None:
            summary = (ended.texts.summary if ended.texts else None) or job.summary
            writing.end(result_line(job, ended.execution, session=name, result=summary))
        writing.flush()

    def _folder(self, working_directory: str) -> Path:
        folder = self._folders.get(working_directory)
        if folder is None:
            folder = self._layout.transcripts(working_directory)
            make_directory(folder)
            self._folders[working_directory] = folder
        return folder

    def _news(self, job_id: str, after: int) -> Iterable[Event]:
        """The events after `after`, for as little reading as it takes."""
        if after == 0:
            # Mostly a short job's whole record.
            whole = self._journals.last(JobId(job_id), TAIL, load_blobs=True)
            return whole if not whole or whole[0].seq == 1 else self._journals.read(JobId(job_id))
        newest = self._journals.last(JobId(job_id), 1)
        count = newest[-1].seq - after if newest else 0
        if count <= 0:
            return ()
        if count <= TAIL:
            tail = self._journals.last(JobId(job_id), count, load_blobs=True)
            if tail and tail[0].seq == after + 1:
                return tail
        # Too many, or more came in between: from the beginning of what is new.
        return self._journals.read(JobId(job_id), after=after)


class _Writing:
    """One job's lines on their way into one transcript."""

    def __init__(
        self, path: Path, job_id: str, progress: JobProgress, sizes: dict[str, int]
    ) -> None:
        self._path = path
        self._key = f"{path.parent.name}/{path.name}"
        self._job_id = job_id
        self._progress = progress
        self._sizes = sizes
        self._held: Held | None = None
        self._lines: list[bytes] = []
        self._bytes = 0
        self._translator = Translator(job_id, path.stem, after=progress.seq, model=progress.model)

    def take(self, event: Event) -> None:
        """Translate one event; lines that a writer killed too early to remember has written are left out."""
        for line in self._translator.take(event):
            if line["seq"] > self._examined.seqs.get(self._job_id, 0):
                self._add(line)
        if self._bytes > PIECE_BYTES:
            self.flush()

    def end(self, line: Line) -> None:
        """Add the job's last line, unless it is there."""
        if self._job_id not in self._examined.results:
            self._add(line)

    def flush(self) -> None:
        """Write what was taken, and remember how far that is."""
        if self._lines:
            size = append(self._path, self._examined.size, b"".join(self._lines))
            self._sizes[self._key] = size
            self._held = Held(size=size, seqs=self._examined.seqs, results=self._examined.results)
            self._lines, self._bytes = [], 0
        self._progress.seq = self._translator.cursor
        self._progress.model = self._translator.model

    @property
    def _examined(self) -> Held:
        if self._held is None:
            self._held = examine(self._path, self._sizes.get(self._key))
        return self._held

    def _add(self, line: Line) -> None:
        encoded = encode_line(line)
        self._lines.append(encoded)
        self._bytes += len(encoded)


def _name(progress: JobProgress, session: Session, *, is_over: bool) -> str | None:
    """What the transcript is called: the runtime's id, or ours where the runtime has none fit for a name."""
    if progress.runtime_session_id is not None:
        fits = FILE_NAME.fullmatch(progress.runtime_session_id) is not None
        return progress.runtime_session_id if fits else session.id
    return session.id if progress.is_introduced or is_over else None


def _introduce(progress: JobProgress, events: Iterable[Event]) -> None:
    for event in events:
        if _is_init(event):
            progress.is_introduced = True
            progress.runtime_session_id = _renamed(progress, event)
            return


def _renamed(progress: JobProgress, event: Event) -> str | None:
    """The runtime's session, when `event` says another than was known."""
    if not _is_init(event):
        return None
    said = (event.extra or {}).get("runtime_session_id")
    return said if isinstance(said, str) and said != progress.runtime_session_id else None


def _is_init(event: Event) -> bool:
    return isinstance(event, SystemEvent) and event.subtype is SystemSubtype.INIT
