"""Memory of events: journals being written and read, and raw copies of what runtimes keep themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:  # only names: a command that lists jobs must not load what writing them needs
    from collections.abc import (
        Callable,
        Collection,
        Generator,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )
    from contextlib import AbstractContextManager

    from nightherd.model.ids import ExecutionId, JobId
    from nightherd.model.journal.event import Event, FullOutput
    from nightherd.model.journal.live_text import TextDelta


class BadLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a journal that is no event: where it is and why it cannot be read. It stays in the file."""

    offset: int
    length: int
    reason: str


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """What reading a whole journal came across. Only `bad_lines` and `missing` mean damage."""

    events: int = 0
    last_seq: int = 0
    epoch: int = 0
    fenced: int = 0
    """Lines of a writer that had lost the job to a later epoch; ignored."""
    repeated: int = 0
    """Lines whose number was taken; their writer saw that and wrote them again under the next one."""
    missing: int = 0
    """Sequence numbers that no readable line has."""
    torn: int = 0
    """Fragments of killed writers, cut out and kept in `torn_tail` events."""
    bad_lines: tuple[BadLine, ...] = ()

    @property
    def is_garbage(self) -> bool:
        """Whether lines are there, and not one of them is an event."""
        return self.events == 0 and bool(self.bad_lines)


class BlobRef(msgspec.Struct, frozen=True, kw_only=True):
    """Which blob, and what its bytes are: `text` in UTF-8, `json`, or plain `bytes`."""

    sha256: str
    size: int
    kind: str = "bytes"


class Journal(Protocol):
    """One job's log, open for appending by one execution."""

    @property
    def last_seq(self) -> int:
        """The sequence number of the last line; 0 when there is none."""

    def append(self, event: Event) -> Event:
        """Stamp `event`, write its line, return it as written. A returned event survives SIGKILL.

        It also counts for every reader from then on: when a later epoch has written already, this raises
        `FencedError` instead, here and on every later call, and readers ignore what was attempted.
        """

    def sync(self) -> None:
        """Everything appended survives a power cut from here on (not with durability `process`)."""

    def close(self) -> None: ...


class Wait(Protocol):
    """How a follower waits for more: `threading.Event().wait` fits."""

    def __call__(self, timeout: float, /) -> bool:
        """Wait at most `timeout` seconds; True means stop following."""


class Tail(Protocol):
    """A place in a journal that moves on with each `poll`."""

    def poll(self) -> Sequence[Event]:
        """The next events there are, at most a block of them; empty when there is nothing new by now."""

    def close(self) -> None: ...


class Timer(Protocol):
    """A call that is due later."""

    def cancel(self) -> None: ...


class CallLater(Protocol):
    """How a writer has itself called: `call_later` of an event loop fits."""

    def __call__(self, delay: float, callback: Callable[[], None], /) -> Timer:
        """Call `callback` after `delay` seconds."""


class LiveText(Protocol):
    """Where one execution shows the answer that is coming in, beside the job's journal."""

    def append(self, delta: TextDelta) -> None:
        """Show a piece to followers, soon: pieces are written at a bounded rate, the last one too.

        Never raises for a disk that is full or broken: followers see the answer when it is recorded.
        """

    def clear(self) -> None:
        """Show nothing: the answer is on record, or will not come."""

    def close(self) -> None:
        """Clear, and leave nothing behind."""

    def leave(self) -> None:
        """Write no more, and leave what was written: the next execution of the job records it."""


class TextTail(Protocol):
    """A place in the text that a job is streaming, which moves on with each `poll`."""

    def poll(self) -> Sequence[TextDelta]:
        """Return the pieces written since the last look; pieces that were cleared meanwhile are not given."""

    def close(self) -> None: ...


class Journals(Protocol):
    """All journals of a state directory.

    Bodies too large for a line are read when `load_blobs` says so; else the event comes without them.
    """

    def open(self, job_id: JobId, *, epoch: int, execution: ExecutionId) -> Journal:
        """The job's journal, repaired where a killed writer left half a line, ready to append.

        `FencedError` when a later epoch has written already. Earlier epochs are shut out by the first
        line appended, not by opening: read what happened before only after that line is written.
        """

    def read(self, job_id: JobId, *, after: int = 0, load_blobs: bool = True) -> Iterator[Event]:
        """Every event after `after`, in order; nothing when the job has no journal yet."""

    def last(self, job_id: JobId, count: int, *, load_blobs: bool = False) -> Sequence[Event]:
        """The last `count` events, without reading the rest."""

    def follow(
        self, job_id: JobId, *, after: int = 0, wait: Wait, load_blobs: bool = False
    ) -> Iterator[Event]:
        """Every event after `after`, then each new one as it is written, until `wait` says stop.

        The journal need not exist yet. Events come once each and in order, whichever process writes them.
        """

    def follower(self, job_id: JobId, *, after: int = 0, load_blobs: bool = False) -> Tail:
        """The same without the waiting, for callers with a loop of their own."""

    def seq_of_message(self, job_id: JobId, message: int) -> int | None:
        """The number of the event that ends message `message`; None when it has not ended, or never began.

        Found without reading the rest. What a killed writer left of a message is no message, and whoever
        records must number them in order: one more than those that have ended.
        """

    def keep_output(self, pieces: Iterable[str], *, left_out: int = 0) -> FullOutput:
        """Store a long text for a `tool_result` to name, in bounded memory; it is safe before a line names it."""

    def read_output(self, output: FullOutput) -> str:
        """Return the whole text; `JournalError` when it is missing or damaged."""

    def stored_bodies(self, event: Event) -> Mapping[str, BlobRef]:
        """Return the bodies that an event read without blobs does not contain, by field; `full_output` among them."""

    def read_blob(self, sha256: str) -> Generator[bytes, None, None] | None:
        """Return the bytes of a blob in pieces; None when there is none of that name.

        They are compared with the name before this returns: `JournalError` when they are damaged.
        """

    def live_text(self, job_id: JobId, call_later: CallLater) -> LiveText:
        """Return where an execution shows the answer that is coming in; `call_later` says when to write."""

    def text_follower(self, job_id: JobId) -> TextTail:
        """Return a place at the beginning of what the job is streaming, for callers with a loop of their own."""

    def leftover_text(self, job_id: JobId) -> Sequence[TextDelta]:
        """Return what an execution was streaming when it was killed; empty when it ended in order."""

    def remove_text(self, job_id: JobId) -> None:
        """Remove what is left of it."""

    def job_ids(self) -> Iterator[JobId]:
        """Every job that has a journal, in no particular order."""

    def examine(self, job_id: JobId) -> Findings:
        """What a reading of the whole journal comes across: lines ignored, lines damaged."""

    def put_aside(self, job_id: JobId) -> None:
        """The job has no journal any more: what was in its place is kept under another name.

        `RefusedError` when there is an event in it. No process may have it open.
        """


class FinishedJournals(Protocol):
    """Where records that are over already, and came from elsewhere, are written as whole journals."""

    def write(self, job_id: JobId, events: Iterable[Event]) -> None:
        """The job's journal is exactly `events` once this returns, whatever was there; before that, nothing is.

        The events come numbered and stamped, and are consumed as they are written.
        """

    def sync(self) -> None:
        """Every journal written so far survives a power cut from here on."""


class Transcripts(Protocol):
    """The transcripts that runtimes keep of their sessions themselves, read as events."""

    def covers(self, runtime_type: str) -> bool:
        """Return whether the runtime of that name keeps transcripts that can be read here."""

    def last_said(self, runtime_session_id: str, directory: str) -> str | None:
        """The runtime's name of the last thing said there, whoever said it; None when it is unknown. Cheap."""

    def said_since(
        self,
        runtime_session_id: str,
        directory: str,
        known: Collection[str],
        *,
        is_kept: bool = False,
        with_cost: bool = False,
    ) -> Sequence[Event]:
        """Everything said after the last thing that is `known` by the runtime's name; all of it when nothing is.

        With `is_kept` as far as our own copy has it. Nothing when what is known is not there. With `with_cost`
        answers say what they are estimated to have cost.
        """


class NoTranscripts:
    """Nothing is kept anywhere."""

    def covers(self, runtime_type: str) -> bool:
        """No runtime keeps any."""
        return False

    def last_said(self, runtime_session_id: str, directory: str) -> str | None:
        """Nothing was said."""
        return None

    def said_since(
        self,
        runtime_session_id: str,
        directory: str,
        known: Collection[str],
        *,
        is_kept: bool = False,
        with_cost: bool = False,
    ) -> Sequence[Event]:
        """Nothing was said."""
        return ()


class TranscriptDraft(Protocol):
    """A raw copy being written."""

    @property
    def extends_old(self) -> bool:
        """Whether the copy that is there is the beginning of this one: nothing would be lost."""

    def write(self, block: bytes, /) -> None:
        """The next bytes."""

    def keep(self) -> None:
        """It gets its place, as a whole, when the shelf is synced; without this it is dropped."""


class TranscriptShelf(Protocol):
    """Raw copies of the transcripts that runtimes keep themselves, by name."""

    def is_current(self, name: str, *, size: int, modified_ns: int) -> bool:
        """Whether the copy was marked for a source of this size and time."""

    def has(self, name: str) -> bool:
        """Whether there is a copy by that name, packed or not."""

    def draft(self, name: str) -> AbstractContextManager[TranscriptDraft]:
        """A new copy to be written; dropped at the end of the block unless it was kept."""

    def sync(self) -> None:
        """Every copy kept so far is in its place, and survives a power cut, from here on."""

    def mark(self, name: str, *, modified_ns: int) -> None:
        """The copy, and what was recorded from it, is as the source was at this time."""
