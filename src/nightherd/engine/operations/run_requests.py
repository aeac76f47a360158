"""Requests about workflows and their runs, one value for each verb. `engine/operations/runs.py` carries them out."""

from __future__ import annotations

from typing import Any

import msgspec

from nightherd.model.jobs.job import TriggerType
from nightherd.model.workflows.run import RunId


class _Value(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all requests share: unknown fields are refused, not ignored."""


class StartWorkflow(_Value, frozen=True, kw_only=True):
    """A new run of a workflow."""

    workflow: str
    inputs: dict[str, Any] = {}
    by: str | None = None
    """Who starts it."""
    trigger_type: TriggerType = TriggerType.MANUAL
    trigger_id: str = ""
    repo: str | None = None
    issue_number: int | None = None
    dedupe_key: str | None = None
    """Never starts a second run."""


class CancelRun(_Value, frozen=True, kw_only=True):
    """The end of a run: what waits in it ends at once, what runs is cancelled."""

    run_id: RunId
    by: str


class RetryRun(_Value, frozen=True, kw_only=True):
    """A new run that keeps what is done and does the rest again."""

    run_id: RunId
    by: str
    dedupe_key: str | None = None


class ForkRun(_Value, frozen=True, kw_only=True):
    """A new run that keeps what is done, but for a phase and all that depends on it."""

    run_id: RunId
    at_phase: str
    by: str
    inputs: dict[str, Any] | None = None
    """Other inputs than the run had; phases that are kept saw the old ones."""
    dedupe_key: str | None = None


class ResumeRun(_Value, frozen=True, kw_only=True):
    """The suspended jobs of a run continue."""

    run_id: RunId


class SendRunEvent(_Value, frozen=True, kw_only=True):
    """An event for a run. Without a key, every request is another event."""

    run_id: RunId
    name: str
    by: str
    payload: Any = None
    key: str | None = None


class SetRunScratch(_Value, frozen=True, kw_only=True):
    """Values of a run's scratch, each key on its own; null removes one."""

    run_id: RunId
    values: dict[str, Any]


class RaiseRunLimits(_Value, frozen=True, kw_only=True):
    """New maxima of a run, as jobs keep them; its jobs that wait for them continue."""

    run_id: RunId
    limits: dict[str, int]


class SetWorkflow(_Value, frozen=True, kw_only=True):
    """A workflow that is switched on or off; with None, its file counts again."""

    workflow: str
    by: str
    enabled: bool | None = None


RunRequest = (
    StartWorkflow
    | CancelRun
    | RetryRun
    | ForkRun
    | ResumeRun
    | SendRunEvent
    | SetRunScratch
    | RaiseRunLimits
    | SetWorkflow
)


def run_gives_more(request: RunRequest) -> str | None:
    """Return what the request gives agents more of, which only a person may ask for; None for most requests."""
    if isinstance(request, RaiseRunLimits):
        return "raising a limit"
    if isinstance(request, ForkRun) and request.inputs is not None:
        return "forking a run with other inputs"
    if isinstance(request, SetWorkflow) and request.enabled is not False:
        return "switching a workflow on"
    return None


def key_for(request: StartWorkflow | RetryRun | ForkRun, key: str | None) -> str | None:
    """Return the dedupe key that a caller's idempotency key means for a request; keys of others are other keys."""
    if key is None:
        return None
    match request:
        case StartWorkflow(workflow=workflow):
            return f"api:{workflow}:{key}"
        case RetryRun(run_id=run_id):
            return f"retry:{run_id}:{key}"
        case ForkRun(run_id=run_id, at_phase=at_phase):
            return f"fork:{run_id}:{at_phase}:{key}"
