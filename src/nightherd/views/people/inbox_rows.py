"""The shapes of inbox items in lists and documents, shared by `--json` and the API."""

from __future__ import annotations

from typing import Any, TypedDict

from nightherd.model.inbox.item import ItemKind, ItemStatus, OnExpiry, Verdict
from nightherd.model.jobs.job import JobStatus
from nightherd.model.workflows.definition import ArtifactKind
from nightherd.model.workflows.run import RunStatus


class InboxCountsRow(TypedDict):
    """How much waits in the inbox."""

    waiting: int
    kinds: dict[str, int]
    oldest: str | None
    oldest_at: str | None
    oldest_age_seconds: float | None


class ItemRow(TypedDict):
    """An item as lists have it."""

    id: str
    kind: ItemKind
    status: ItemStatus
    created_at: str
    subject: str
    title: str
    hash: str
    epoch: int
    job_id: str | None
    agent: str | None
    schedule: str | None
    tool: str | None
    tool_use_id: str | None
    quorum: int
    expires_at: str | None
    on_expiry: OnExpiry
    decided_at: str | None
    decided_by: str | None
    decided_via: str | None
    verdict: Verdict | None
    workflow_run_id: str | None
    node_id: str | None
    number: int
    gate: str | None
    verdicts: list[Verdict]


class AnswerRow(TypedDict):
    """One answer of one person, whether it decided or not."""

    at: str
    by: str
    via: str
    verdict: Verdict
    text: str | None


class ArtifactRow(TypedDict):
    """What a gate shows beside its summary; `problem` says why the text cannot be read."""

    kind: ArtifactKind
    file: str | None
    text: str | None
    problem: str | None


class ItemDocument(ItemRow):
    """An item with everything needed to decide. `asks` depends on the kind of the item."""

    asks: dict[str, Any]
    approvers: list[str]
    reply: str | None
    changed_input: dict[str, Any] | None
    what_happens: dict[str, str]
    answers: list[AnswerRow]
    cost: str | None
    job_status: JobStatus | None
    workflow: str | None
    run_status: RunStatus | None
    artifact: ArtifactRow | None
