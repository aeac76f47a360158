"""`state.json` of a job, for programs: load, validate and save it, and resume the job it shows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anyio import to_thread

from nightherd.library.fleet import open_fleet
from nightherd.library.result import RunnerResult
from nightherd.library.state import reading
from nightherd.model.checkpoints.state_document import check_state, migrated
from nightherd.model.ids import JobId
from nightherd.views.checkpoints import thread_state
from nightherd.views.jobs import find_job_id
from nightherd.wiring.stores import load_persistence, open_journals, open_threads, system_clock


def load_state(state_dir: str | Path, job: str) -> dict[str, Any]:
    """Return the job's `state.json` (or `state.json.gz`), brought to the current version and validated.

    `StateFileError` for a file that is missing, damaged, of another job or not what the schema says.
    """
    root = Path(state_dir)
    job_id = _find(root, job)
    return open_threads(root, load_persistence(root)).read(job_id)


def validate_state(state_dir: str | Path, state: Mapping[str, Any]) -> None:
    """Check a document against the schema of the project; `InvalidValueError` names every mistake."""
    check_state(migrated(state), load_persistence(Path(state_dir)))


def save_state(state_dir: str | Path, job: str) -> Path:
    """Write the job's `state.json` from its record, and return its path.

    The record is the only source: a document that a program made or changed cannot be saved as the job's state.
    """
    root = Path(state_dir)
    job_id = _find(root, job)
    with reading(root) as reader:
        document = thread_state(reader, open_journals(root), job_id, now=system_clock().now())
    return open_threads(root, load_persistence(root)).write(job_id, document)


async def resume_from_state(
    state_dir: str | Path,
    job: str,
    *,
    prompt: str | None = None,
    config: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> RunnerResult:
    """Validate the job's `state.json`, then resume the job from its journal, and return how it ended.

    The fleet file is `config`, else the one found upward from the state directory. `StateFileError` for a file that
    cannot be used; the job is not resumed then.
    """
    root = _root(state_dir)
    document = await to_thread.run_sync(load_state, root, job)
    async with open_fleet(config, state_dir=root, environ=environ, cwd=root.parent) as fleet:
        return await fleet.resume(document["thread_id"], prompt=prompt)


def _root(state_dir: str | Path) -> Path:
    return Path(state_dir).absolute()


def _find(root: Path, job: str) -> JobId:
    with reading(root) as reader:
        return find_job_id(reader, job)
