"""Claude Code's own sessions: finding the transcripts in its directory, and reading each in one pass.

`projects/<slug>/<uuid>.jsonl`, what belongs to a session in `<uuid>/` beside it. The slug is the working
directory with everything but letters and digits made `-`: it cannot be turned back, so the directory is
taken from the lines and only compared with it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from nightherd.engine.imports.context import Report, Unreadable, in_utc
from nightherd.engine.imports.transcripts import Sink, TranscriptFacts
from nightherd.errors import NotFoundError
from nightherd.imports.claude_lines import Tally
from nightherd.imports.lines import blocks, opened, reason_of, shown
from nightherd.next_step import Action, NextStep

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
NOT_IN_SLUG = re.compile(r"[^A-Za-z0-9]")
LONGEST_SLUG = 200
COMPANIONS = ("subagents", "tool-results")
"""What of a session's own directory is copied with it."""


def default_directory(environ: Mapping[str, str]) -> Path:
    """Where Claude Code keeps its files."""
    named = environ.get("CLAUDE_CONFIG_DIR")
    return Path(named) if named else Path(environ.get("HOME") or Path.home()) / ".claude"


class ClaudeFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file below `projects/`, as it was when it was found."""

    path: Path
    name: str
    size: int
    modified_ns: int

    @property
    def source(self) -> str:
        """Where it is."""
        return shown(self.path)

    def copy(self, sink: Sink) -> Unreadable | None:
        """Everything in it into `sink`; or why it could not be read."""
        try:
            with opened(self.path) as handle:
                for block in blocks(handle):
                    sink(block)
        except OSError as error:
            return Unreadable(file=self.source, reason=reason_of(error))
        return None


class ClaudeTranscript(ClaudeFile, frozen=True, kw_only=True):
    """A session's transcript."""

    uuid: str
    companions: tuple[ClaudeFile, ...] = ()

    def read(self, sink: Sink) -> TranscriptFacts | Unreadable:
        """Everything in it into `sink`, and what it comes to."""
        tally = Tally()

        def take(block: bytes) -> None:
            sink(block)
            tally.feed(block)

        problem = self.copy(take)
        if problem is not None:
            return problem
        tally.end()
        if tally.bad_count and not tally.messages and tally.first_at is None:
            number, reason = tally.bad_lines[0]
            return Unreadable(file=self.source, line=number, reason=reason)
        return self._facts(tally)

    def _facts(self, tally: Tally) -> TranscriptFacts:
        modified_at = datetime.fromtimestamp(self.modified_ns / 1e9, UTC)
        return TranscriptFacts(
            working_directory=directory_of(list(tally.directories), self.path.parent.name),
            first_at=in_utc(tally.first_at) or modified_at,
            last_at=in_utc(tally.last_at) or modified_at,
            title=tally.title,
            messages=tally.messages,
            turns=tally.turns,
            token_estimate=tally.token_estimate,
            cost_microusd=tally.cost,
            unreadable=tuple(self._bad_lines(tally)),
            why_not=_why_not(tally),
        )

    def _bad_lines(self, tally: Tally) -> Iterator[Unreadable]:
        for number, reason in tally.bad_lines:
            yield Unreadable(file=self.source, line=number, reason=reason)
        if more := tally.bad_count - len(tally.bad_lines):
            yield Unreadable(
                file=self.source, reason=f"{more} more lines that are not JSON objects"
            )


def _why_not(tally: Tally) -> str | None:
    if tally.messages:
        return None
    return "only a sub-agent speaks in it" if tally.has_sidechain else "it has no messages"


def slug_of(directory: str) -> str:
    """What Claude Code calls the folder of a working directory, as far as it can be known."""
    return NOT_IN_SLUG.sub("-", unicodedata.normalize("NFC", directory))[:LONGEST_SLUG]


def directory_of(recorded: list[str], slug: str) -> str:
    """The working directory: the first of those recorded that fits the slug, else the first.

    An agent changes its directory on the way, and a copied transcript may stand under another slug. When
    no line says anything, what the slug may have been is all there is.
    """
    fitting = (one for one in recorded if slug_of(one) == slug[:LONGEST_SLUG])
    return next(fitting, recorded[0] if recorded else slug.replace("-", "/"))


def find_transcripts(root: Path, report: Report) -> list[ClaudeTranscript]:
    """Every session's transcript below `root`, oldest first; what is none is put on `report`.

    `root` is Claude Code's directory or the `projects` directory in it. `NotFoundError` when it is neither.
    """
    projects = root / "projects" if (root / "projects").is_dir() else root
    if not projects.is_dir() or (projects == root and root.name != "projects"):
        raise NotFoundError(
            f"{shown(root)} has no Claude Code sessions: there is no directory `projects` in it",
            next_step=NextStep(Action.IMPORT_CLAUDE),
        )
    found: dict[str, ClaudeTranscript] = {}
    for project in _children(projects, report):
        if not project.is_dir():
            continue
        for path in _children(project, report):
            transcript = _transcript(path, report)
            if transcript is not None:
                _choose(transcript, found, report)
    return sorted(found.values(), key=lambda one: (one.modified_ns, one.uuid))


def _transcript(path: Path, report: Report) -> ClaudeTranscript | None:
    if path.suffix != ".jsonl":
        return None
    uuid = path.stem.lower()
    if UUID.fullmatch(uuid) is None:
        is_agent = path.stem.startswith("agent-")
        reason = "a sub-agent's own transcript" if is_agent else "its name is not a session id"
        report.skip(shown(path), reason)
        return None
    noted = _note(path, f"{uuid}.jsonl", report)
    if noted is None:
        return None
    return ClaudeTranscript(
        path=path,
        name=noted.name,
        size=noted.size,
        modified_ns=noted.modified_ns,
        uuid=uuid,
        companions=tuple(_companions(path.with_suffix(""), uuid, report)),
    )


def _choose(
    transcript: ClaudeTranscript, found: dict[str, ClaudeTranscript], report: Report
) -> None:
    """Of several transcripts of one session the longest counts, and of equal ones the newest."""
    other = found.get(transcript.uuid)
    if other is not None:
        pair = sorted((other, transcript), key=lambda one: (one.size, one.modified_ns, one.source))
        report.skip(pair[0].source, f"{pair[1].source} is a longer transcript of the same session")
        transcript = pair[1]
    found[transcript.uuid] = transcript


def _companions(folder: Path, uuid: str, report: Report) -> Iterator[ClaudeFile]:
    for kind in COMPANIONS:
        if not (folder / kind).is_dir():
            continue
        for path in _children(folder / kind, report):
            if path.is_dir():
                continue
            noted = _note(path, f"{uuid}/{kind}/{path.name}", report)
            if noted is not None:
                yield noted


def _note(path: Path, name: str, report: Report) -> ClaudeFile | None:
    """The file as it is now; opened once, so that what cannot be read is known before anything is taken."""
    try:
        found = path.stat()
        with opened(path):
            pass
    except OSError as error:
        report.unreadable.append(Unreadable(file=shown(path), reason=reason_of(error)))
        return None
    if "\\" in name or not name.isprintable():
        report.skip(shown(path), "its name cannot be one of a copy")
        return None
    return ClaudeFile(path=path, name=name, size=found.st_size, modified_ns=found.st_mtime_ns)


def _children(directory: Path, report: Report) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError as error:
        report.unreadable.append(Unreadable(file=shown(directory), reason=reason_of(error)))
        return []
