"""Where the mirror's files are; every name that comes from data is kept inside its directory."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from nightherd.files.paths import safe_child, safe_name
from nightherd.files.permission import atomic_write_error, state_file_error
from nightherd.mirror.behind import LOCK, MEMORY, STATE
from nightherd.model.ids import JOB_ID

OTHER = re.compile(r"[^A-Za-z0-9]")
LONGEST_SLUG = 200
PRIVATE = 0o700


@dataclass(frozen=True)
class MirrorLayout:
    """The paths below a state directory. Making this value touches nothing."""

    root: Path

    @property
    def memory(self) -> Path:
        """How far the mirror has come."""
        return self.root / MEMORY

    @property
    def lock(self) -> Path:
        """Held by the one process that writes the mirror."""
        return self.root / LOCK

    @property
    def state(self) -> Path:
        """The fleet at a glance."""
        return self.root / STATE

    @cached_property
    def jobs(self) -> Path:
        """Job files, beside the journals."""
        return self.root / "jobs"

    @cached_property
    def sessions(self) -> Path:
        """Session files."""
        return self.root / "sessions"

    @cached_property
    def projects(self) -> Path:
        """Transcripts, by working directory."""
        return self.root / "projects"

    def output_log(self, job_id: str) -> Path:
        """A job's record as text."""
        return safe_child(self.jobs, f"{job_id}/output.log")

    def context(self, session_id: str) -> Path:
        """What a session's next request would hold."""
        return self.sessions / safe_name(f"{session_id}.context")

    def transcripts(self, working_directory: str) -> Path:
        """Where what was said in sessions of a working directory is."""
        return safe_child(self.projects, slug(working_directory))


def slug(working_directory: str) -> str:
    """The directory's name below `projects/`: every character but ASCII letters and digits becomes `-`.

    One that no file system could take is cut, and made unique by eight digits of its hash.
    """
    name = OTHER.sub("-", working_directory)
    if len(name) <= LONGEST_SLUG:
        return name
    digest = hashlib.sha256(working_directory.encode(errors="surrogatepass")).hexdigest()
    return f"{name[:LONGEST_SLUG]}-{digest[:8]}"


def make_directory(path: Path) -> None:
    """`path` is a directory from here on, open to its owner only when it had to be made."""
    if path.is_dir():
        return
    try:
        for missing in reversed([at for at in (path, *path.parents) if not at.exists()]):
            missing.mkdir(mode=PRIVATE, exist_ok=True)
    except OSError as error:
        raise atomic_write_error(error, path) from error


def derived_files(layout: MirrorLayout) -> Iterator[Path]:
    """Every file of the mirror but the logs that were requested; journals and contexts are not among them."""
    yield from (path for path in (layout.state, layout.memory) if path.exists())
    yield from (path for path in _in(layout.jobs, "*.yaml") if JOB_ID.fullmatch(path.stem))
    yield from _in(layout.sessions, "*.json")
    for project in _in(layout.projects, "*"):
        if project.is_dir() and not project.is_symlink():
            yield from _in(project, "*.jsonl")


def output_logs(layout: MirrorLayout) -> Iterator[str]:
    """The jobs whose record was requested as text."""
    for log in _in(layout.jobs, "*/output.log"):
        if JOB_ID.fullmatch(log.parent.name):
            yield log.parent.name


def wipe(layout: MirrorLayout) -> int:
    """Delete the mirror; how many files that were. The first that cannot be deleted is a `StateFileError`."""
    count = 0
    for path in list(derived_files(layout)):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise state_file_error(error, path, "delete") from error
        count += 1
    return count


def _in(directory: Path, pattern: str) -> list[Path]:
    return sorted(directory.glob(pattern)) if directory.is_dir() else []
