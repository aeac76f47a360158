"""What a gate shows beside its summary: an output, a file of the run's directory, or what changed there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from nightherd.errors import NightherdError, RefusedError
from nightherd.model.inbox.item import InboxItem, InboxTexts
from nightherd.model.jobs.job import Job
from nightherd.model.workflows.conductor.pinned import PinnedBody, read_pinned
from nightherd.model.workflows.definition import ArtifactKind
from nightherd.model.workflows.run import RunId
from nightherd.ports import GateFiles, Journals, StateReader
from nightherd.views.workspaces.snapshots import job_changes

ARTIFACT = "artifact"
"""The key of the text that a person leaves, in the input of an answer."""
PATCH_LIMIT = 256 * 1024
"""Bytes of a patch that are shown."""
CUT = "\n[{left:,} more bytes are not shown]\n"


class Artifacts(msgspec.Struct, frozen=True, kw_only=True):
    """What reading the artifacts of gates needs."""

    files: GateFiles
    journals: Journals
    mask: Callable[[Any], Any] = lambda value: value
    """Takes secrets out of what is shown."""


class GateArtifact(msgspec.Struct, frozen=True, kw_only=True):
    """The artifact of a gate, as it is now."""

    kind: ArtifactKind
    text: str | None = None
    """None when it cannot be read."""
    file: str | None = None
    directory: str | None = None
    """Where the file is."""
    problem: str | None = None
    """Why it cannot be read."""


def is_gate(item: InboxItem) -> bool:
    """Whether a run asks, not a job."""
    return item.workflow_run_id is not None and item.node_id is not None and item.job_id is None


def gate_artifact(
    item: InboxItem, texts: InboxTexts, reader: StateReader, artifacts: Artifacts | None
) -> GateArtifact | None:
    """Return what the gate shows; of one that was decided, the text that the person left. None without an artifact.

    Files and changes are read from where the run works; without `artifacts` they are not.
    """
    kind = texts.body.get("artifact_kind")
    if not is_gate(item) or not isinstance(kind, str):
        return None
    file = texts.body.get("file")
    found = GateArtifact(kind=ArtifactKind(kind), file=file if isinstance(file, str) else None)
    left = (texts.input or {}).get(ARTIFACT, texts.body.get(ARTIFACT))
    if isinstance(left, str):
        return msgspec.structs.replace(found, text=left)
    if found.kind is ArtifactKind.OUTPUT or not item.is_pending or artifacts is None:
        return found
    try:
        if found.kind is ArtifactKind.DIFF:
            patch = artifacts.mask(_patch(item, reader, artifacts))
            return msgspec.structs.replace(found, text=patch)
        directory = directory_of_run(item, reader, artifacts.files)
        placed = msgspec.structs.replace(found, directory=directory)
        text = artifacts.mask(artifacts.files.read(directory, found.file or ""))
        return msgspec.structs.replace(placed, text=text)
    except NightherdError as error:
        return msgspec.structs.replace(found, problem=error.message)


def directory_of_run(item: InboxItem, reader: StateReader, files: GateFiles) -> str:
    """Return where the run of a gate works: the workspace of its newest job that has one, else its agent's directory.

    `RefusedError` when no phase of the run has worked anywhere.
    """
    newest = list(_jobs(item, reader))
    for job in newest:
        row = reader.find_workspace(job.workspace_id) if job.workspace_id is not None else None
        if row is not None:
            return files.directory(row)
    for job in newest:
        session = reader.find_session(job.session_id) if job.session_id is not None else None
        if session is not None:
            return session.working_directory
    body = _pinned(item, reader)
    where = "" if body is None else body.definition.working_directory or body.home
    if not where:
        raise RefusedError(f"run {item.workflow_run_id} has not worked in any directory yet")
    return where


def has_directory(item: InboxItem, reader: StateReader) -> bool:
    """Whether the directory that the gate's run works in is there; False while its workspace has yet to be made."""
    run_id = RunId(item.workflow_run_id or "")
    if any(job.started_at is not None for job in reader.jobs_of_run(run_id)):
        return True
    body = _pinned(item, reader)
    policy = None if body is None else body.definition.workspace
    if policy is not None and not policy.is_shared:
        return False
    return all(job.workspace_id is None for job in _jobs(item, reader))


def _patch(item: InboxItem, reader: StateReader, artifacts: Artifacts) -> str:
    """What changed in the workspace of the run since it began."""
    for job in _jobs(item, reader):
        if job.workspace_id is None:
            continue
        changes = job_changes(reader, artifacts.journals, job.id, is_from_base=True)
        compared = changes.comparison
        patch = artifacts.files.patch(
            compared.store, compared.before, compared.after, other=compared.other
        )
        text = patch[:PATCH_LIMIT].decode("utf-8", "replace")
        left = len(patch) - PATCH_LIMIT
        return text + CUT.format(left=left) if left > 0 else text
    raise RefusedError(f"run {item.workflow_run_id} has no workspace, so its changes are not known")


def _jobs(item: InboxItem, reader: StateReader) -> Iterator[Job]:
    """The jobs of the run that have begun, newest first, then those of earlier runs whose work it keeps."""
    run_id = RunId(item.workflow_run_id or "")
    own = [job for job in reader.jobs_of_run(run_id) if job.started_at is not None]
    yield from reversed(own)
    for node in reversed(reader.nodes_of_run(run_id)):
        if node.kept_from is not None and node.job_id is not None:
            job = reader.find_job(node.job_id)
            if job is not None:
                yield job


def _pinned(item: InboxItem, reader: StateReader) -> PinnedBody | None:
    run = reader.find_run(RunId(item.workflow_run_id or ""))
    pinned = None if run is None else reader.find_pinned(run.definition_hash)
    return None if pinned is None else read_pinned(pinned.body)
