"""Checkup of the mirror: files that are behind, or that something else has damaged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from nightherd.decoding import decode_json
from nightherd.engine.doctor.doctor import Check
from nightherd.errors import StateError, StateFileError
from nightherd.files.permission import keep_aside
from nightherd.files.reading import ReadFailed, ReadOk, safe_read_json, safe_read_yaml
from nightherd.files.regular import read_regular
from nightherd.mirror.behind import is_followed, mirrored_change
from nightherd.mirror.changes import changed_after
from nightherd.mirror.fleet_state import read_fleet_state
from nightherd.mirror.job_file import lines_about
from nightherd.mirror.layout import MirrorLayout
from nightherd.mirror.position import Memory
from nightherd.model.doctor import Finding, Level
from nightherd.model.jobs.job import JobQuery
from nightherd.ports import ChangeFeed, Mirror, StateReader
from nightherd.views.jobs.jobs import every_job

PAGE = 500
"""Jobs read at once."""
EVERY = 2**62
"""More ids than there are."""


def mirror_checks(
    root: Path, now: datetime, mirror: Mirror, feed: ChangeFeed, reader: StateReader, recorded: int
) -> tuple[Check, Check]:
    """The checks of the readable files: the first is quick, the second reads each of them.

    What is damaged is kept aside, and all are written again. `recorded` is the last change that was in the ledger
    when the examination began.
    """

    def examine_quickly() -> Iterator[Finding]:
        yield from examine_state(root)
        yield from examine_position(root, recorded)

    async def repair_quickly(findings: Sequence[Finding]) -> None:
        if any(finding.path == str(MirrorLayout(root).state) for finding in findings):
            await repair(findings)
        else:
            catch_up(mirror)

    def examine() -> Iterator[Finding]:
        yield from examine_files(root)
        yield from missing_files(root, feed, reader)
        yield from differing_files(root, feed, reader)

    async def repair(findings: Sequence[Finding]) -> None:
        # All are rewritten, so none that is damaged may be in the way, found or not.
        _put_aside((*findings, *examine_files(root)), now)
        mirror.rebuild()

    title = "readable files"
    return (
        Check("mirror", title, examine_quickly, repair_all=repair_quickly),
        Check(
            "mirror-files",
            f"{title}, each one",
            examine,
            repair_all=repair,
            is_deep=True,
        ),
    )


def is_kept(root: Path) -> bool:
    """Whether the directory has a mirror: a fleet may be without one."""
    layout = MirrorLayout(root)
    return layout.memory.exists() or layout.state.exists()


def examine_state(root: Path) -> Iterator[Finding]:
    """What is wrong with `state.yaml`: the mirror is derived, so it is simply written again."""
    path = MirrorLayout(root).state
    if not path.exists():
        return
    try:
        read_fleet_state(path)
    except StateFileError as error:
        yield _damaged("mirror", path, error.message)


def examine_position(root: Path, recorded: int) -> Iterator[Finding]:
    """Files that show less than the state: a command was killed before it wrote them."""
    change = mirrored_change(root)
    if change is None or change >= recorded or is_followed(root):
        return
    behind = f"{recorded - change} {'change' if recorded - change == 1 else 'changes'}"
    yield Finding(
        check="mirror",
        level=Level.WARNING,
        message=f"the readable files are behind the state by {behind}",
        path=str(MirrorLayout(root).memory),
        remedy="they are brought up to date; the next command does this too",
        is_fixable=True,
    )


def catch_up(mirror: Mirror) -> None:
    """Bring the files up to date; `StateFileError` says what keeps them behind."""
    mirror.catch_up()
    for path, reason in mirror.unwritten.items():
        raise StateFileError(reason, path=path, operation="write")


def examine_files(root: Path) -> Iterator[Finding]:
    """Files of single jobs and sessions that cannot be parsed, or say nothing."""
    layout = MirrorLayout(root)
    for path in sorted(layout.jobs.glob("job-*.yaml")):
        yield from _faults(path, safe_read_yaml(path))
    for path in sorted(layout.sessions.glob("*.json")):
        yield from _faults(path, safe_read_json(path))


def missing_files(root: Path, feed: ChangeFeed, reader: StateReader) -> Iterator[Finding]:
    """Files of jobs and sessions that were written and are gone."""
    gone = _gone(root, feed, reader)
    if gone:
        gone &= _gone(
            root, feed, reader
        )  # the first look may have come before a change was in the ledger
    if gone:
        first = min(gone)
        count = f"{len(gone)} readable files are" if len(gone) > 1 else "a readable file is"
        yield Finding(
            check="mirror-files",
            level=Level.WARNING,
            message=f"{count} missing: {first}" + (", and others" if len(gone) > 1 else ""),
            path=str(first),
            remedy="all are written again",
            is_fixable=True,
        )


def differing_files(root: Path, feed: ChangeFeed, reader: StateReader) -> Iterator[Finding]:
    """Files of jobs that show another state than their rows; those that are to be written again are left out."""
    layout = MirrorLayout(root)
    change = mirrored_change(root)
    if not change or is_followed(root):
        return
    try:
        if not any(True for _ in islice(feed.read(after=change - 1), 1)):
            return  # the ledger waits for changes that the database has, and the files show
        due = changed_after(feed, change).jobs
        jobs = [job for job in every_job(reader, JobQuery(limit=PAGE)) if job.id not in due]
    except (StateError, OSError):
        return  # the checks of database and ledger say what is wrong with them
    for job in sorted(jobs, key=lambda job: job.id):
        path = layout.jobs / f"{job.id}.yaml"
        try:
            shown = set(read_regular(path).decode(errors="replace").splitlines(keepends=True))
        except OSError:
            continue  # missing, or named by the check of files that cannot be read
        differing = [line for line in lines_about(job) if line not in shown]
        if (
            differing and f"id: {job.id}\n" in shown
        ):  # else it is no such file, which its own check says
            said = f"'{path}' differs from the state, which says {differing[0].strip()}"
            yield _damaged("mirror-files", path, said)


def _gone(root: Path, feed: ChangeFeed, reader: StateReader) -> set[Path]:
    """The files that do not exist, although the mirror has written everything that they show."""
    layout = MirrorLayout(root)
    try:
        memory = decode_json(read_regular(layout.memory), Memory)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return set()  # not kept, or all are rewritten
    try:
        return {path for path in _written(layout, feed, reader, memory.change) if not path.exists()}
    except (StateError, OSError):
        return set()  # the checks of database and ledger say what is wrong with them


def _written(
    layout: MirrorLayout, feed: ChangeFeed, reader: StateReader, change: int
) -> Iterator[Path]:
    """The files that the changes up to `change` gave, but for those that are to be written again."""
    jobs, sessions = reader.job_ids("job-", EVERY), reader.session_ids("sess-", EVERY)
    due = changed_after(
        feed, change
    )  # last, so that it has all that became jobs and sessions meanwhile
    for job_id in jobs:
        if job_id not in due.jobs:
            yield layout.jobs / f"{job_id}.yaml"
    for session_id in sessions:
        if session_id not in due.sessions:
            yield layout.sessions / f"{session_id}.json"


def _put_aside(findings: Sequence[Finding], now: datetime) -> None:
    for path in sorted({Path(finding.path) for finding in findings if finding.path}):
        if path.exists():
            keep_aside(path, now)


def _faults(path: Path, read: ReadOk[Any] | ReadFailed) -> Iterator[Finding]:
    if isinstance(read, ReadFailed) and path.exists():
        yield _damaged("mirror-files", path, read.error.message)
    elif isinstance(read, ReadOk) and not isinstance(read.data, dict):
        yield _damaged("mirror-files", path, f"'{path}' has no fields")


def _damaged(check: str, path: Path, message: str) -> Finding:
    return Finding(
        check=check,
        level=Level.WARNING,
        message=message,
        path=str(path),
        remedy="it is kept aside and written again",
        is_fixable=True,
    )
