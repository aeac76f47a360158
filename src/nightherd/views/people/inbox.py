"""The inbox as every surface shows it: lists, one item with everything needed to decide, and finding items."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from nightherd.errors import AmbiguousIdError, NotFoundError
from nightherd.model.ids import JobId
from nightherd.model.inbox.item import (
    ITEM_ID,
    VERDICTS,
    InboxAnswer,
    InboxItem,
    InboxQuery,
    InboxTexts,
    ItemId,
    ItemKind,
    OnExpiry,
)
from nightherd.model.units import format_usd
from nightherd.model.workflows.definition import ArtifactKind
from nightherd.model.workflows.run import RUN_PREFIX, RunId
from nightherd.next_step import Action, NextStep
from nightherd.views.jobs.jobs import seconds_of, timestamp
from nightherd.views.people.inbox_rows import ArtifactRow, InboxCountsRow, ItemDocument, ItemRow
from nightherd.views.workflows.gate_artifact import GateArtifact, gate_artifact, is_gate

if TYPE_CHECKING:
    from datetime import datetime

    from nightherd.model.jobs.job import Job
    from nightherd.model.workflows.rows import WorkflowRun
    from nightherd.ports import StateReader
    from nightherd.views.workflows.gate_artifact import Artifacts

LAST = "@last"
WORD = "ask-"
MOST = 5
RUN_EFFECTS: Mapping[ItemKind, Mapping[str, str]] = {
    ItemKind.APPROVAL: {
        "approve": "the run continues after the gate",
        "reject": "the gate fails, with your reason",
    },
    ItemKind.QUESTION: {
        "reply": "the run continues with your answer",
        "reject": "the gate fails, with your reason",
    },
    ItemKind.FAILURE: {
        "retry": "a new run keeps what is done and runs the rest",
        "dismiss": "the run stays as it is",
    },
}
"""What the answers to gates and about failed runs do."""


class InboxPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some items, newest first, and the cursor of the next page if there is one."""

    items: Sequence[InboxItem]
    next_before: int | None = None


class ShownItem(msgspec.Struct, frozen=True, kw_only=True):
    """One item with everything that a person needs to decide."""

    item: InboxItem
    texts: InboxTexts
    answers: Sequence[InboxAnswer] = ()
    job: Job | None = None
    run: WorkflowRun | None = None
    """The workflow run that asks, or that failed."""
    artifact: GateArtifact | None = None
    """What a gate shows beside its summary."""


class InboxCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How much waits in the inbox."""

    kinds: Mapping[ItemKind, int]
    """How many items of each kind; kinds of which none waits are left out."""
    oldest: InboxItem | None = None
    """The item that has waited longest."""

    @property
    def waiting(self) -> int:
        """How many items wait."""
        return sum(self.kinds.values())


def count_inbox(reader: StateReader) -> InboxCounts:
    """Return how many items wait, by kind, and the oldest of them."""
    kinds = reader.count_pending_items()
    return InboxCounts(kinds=kinds, oldest=reader.oldest_pending_item() if kinds else None)


def inbox_counts_row(counts: InboxCounts, now: datetime) -> InboxCountsRow:
    """What waits in the inbox, as `status` has it."""
    oldest = counts.oldest
    return {
        "waiting": counts.waiting,
        "kinds": {kind.value: counts.kinds.get(kind, 0) for kind in ItemKind},
        "oldest": None if oldest is None else oldest.id,
        "oldest_at": None if oldest is None else timestamp(oldest.created_at),
        "oldest_age_seconds": None if oldest is None else seconds_of(now - oldest.created_at),
    }


def list_inbox(reader: StateReader, query: InboxQuery) -> InboxPage:
    """Return a page of the inbox."""
    found = reader.list_items(msgspec.structs.replace(query, limit=query.limit + 1))
    page = found[: query.limit]
    more = page[-1].number if len(found) > query.limit else None
    return InboxPage(items=page, next_before=more)


def list_about(reader: StateReader, subject: str, query: InboxQuery) -> InboxPage:
    """Return the page of what is asked by or about a job or run, by its whole id."""
    is_run = subject.startswith(RUN_PREFIX)
    items = reader.items_of_run(RunId(subject)) if is_run else reader.items_of_job(JobId(subject))
    fitting = [
        item
        for item in sorted(items, key=lambda item: item.number, reverse=True)
        if item.is_pending is query.is_pending
        and query.kind in (None, item.kind)
        and query.agent in (None, item.agent)
        and (query.before is None or item.number < query.before)
    ]
    page = fitting[: query.limit]
    more = page[-1].number if len(fitting) > query.limit else None
    return InboxPage(items=page, next_before=more)


def show_item(
    reader: StateReader, item_id: ItemId, artifacts: Artifacts | None = None
) -> ShownItem:
    """Return the item with its texts, its answers, and its job or run.

    With `artifacts`, a gate that shows a file or changes is read from where its run works.
    """
    item, texts = reader.find_item(item_id), reader.find_item_texts(item_id)
    if item is None:
        raise _not_found(f"there is no inbox item {item_id}")
    texts = texts if texts is not None else InboxTexts(item_id=item_id)
    run_id = item.workflow_run_id
    return ShownItem(
        item=item,
        texts=texts,
        answers=reader.list_answers(item_id),
        job=reader.find_job(item.job_id) if item.job_id is not None else None,
        run=reader.find_run(RunId(run_id)) if run_id is not None else None,
        artifact=gate_artifact(item, texts, reader, artifacts),
    )


def find_item_id(reader: StateReader, reference: str) -> ItemId:
    """Return the one item that `reference` means: an id, a unique beginning of one, `@last`, or the id of a job or run.

    `@last` is the newest that waits. A job or run stands for the one item about it that waits.
    """
    if reference == LAST:
        newest = reader.list_items(InboxQuery(limit=1))
        if not newest:
            raise _not_found("nothing waits in the inbox")
        return newest[0].id
    if ITEM_ID.fullmatch(reference):
        if reader.find_item(ItemId(reference)) is None:
            raise _not_found(f"there is no inbox item {reference}")
        return ItemId(reference)
    found = _candidates(reader, reference)
    if len(found) == 1:
        return found[0]
    if not found:
        raise _not_found(f"no inbox item begins with {reference!r}")
    raise AmbiguousIdError(
        f"{reference!r} is the beginning of several: {', '.join(found[:MOST])}",
        next_step=NextStep(Action.LIST_INBOX),
    )


def _candidates(reader: StateReader, reference: str) -> Sequence[ItemId]:
    if not reference:
        return ()
    if reference.startswith("job-"):
        jobs = reader.job_ids(reference, MOST)
        return [one.id for job in jobs for one in reader.items_of_job(job) if one.is_pending]
    if reference.startswith(RUN_PREFIX):
        runs = reader.run_ids(reference, MOST)
        return [one.id for run in runs for one in reader.items_of_run(run) if one.is_pending]
    prefix = reference if reference.startswith(WORD) else WORD + reference
    return reader.item_ids(prefix, MOST + 1)


def _not_found(message: str) -> NotFoundError:
    return NotFoundError(message, next_step=NextStep(Action.LIST_INBOX))


def what_happens(item: InboxItem) -> dict[str, str]:
    """Say what each deciding answer does, and what happens without one."""
    if item.workflow_run_id is not None and item.job_id is None:
        return {**RUN_EFFECTS[item.kind], "no answer": _without_answer(item)}
    effects = {
        ItemKind.APPROVAL: {
            "approve": "exactly this call runs once, and the job continues",
            "reject": "the call does not run; the agent is given your reason and continues",
        },
        ItemKind.QUESTION: {
            "reply": "the agent is given your answer and continues",
            "reject": "the agent is told that it gets no answer, and continues",
        },
        ItemKind.LIMIT: {
            "raise": "the job continues with the new maximum",
            "reject": "the job fails",
        },
        ItemKind.FAILURE: {
            "retry": "a failed job is submitted again; a suspended one continues",
            "dismiss": "the job stays as it is",
        },
        ItemKind.RELOAD: {
            "accept": "the changed fleet file takes effect",
            "reject": "the fleet keeps what was accepted before",
        },
    }[item.kind]
    return {**effects, "no answer": _without_answer(item)}


def _without_answer(item: InboxItem) -> str:
    if item.expires_at is None:
        return "it waits"
    if item.node_id is not None and item.job_id is None:
        return f"the gate fails at {timestamp(item.expires_at)}"
    end = "the job fails" if item.on_expiry is OnExpiry.FAIL else "it is rejected"
    return f"{end} at {timestamp(item.expires_at)}"


def asked_blocks(texts: InboxTexts, artifact: GateArtifact | None = None) -> list[tuple[str, str]]:
    """What is asked, in full: texts, each with what it is."""
    body: dict[str, Any] = dict(texts.body)
    if "gate" in body:
        return _gate_blocks(body, artifact)
    tool, preview = body.pop("tool", None), body.pop("preview", None)
    question, options = body.pop("question", None), body.pop("options", ())
    if question is not None:
        choices = [f"{number}. {one}" for number, one in enumerate(options, 1)]
        return [("question", "\n".join((str(question), *choices)))]
    if tool is None:
        return [(name, str(value)) for name, value in body.items() if value is not None]
    given = body.pop("input", {})
    is_command = isinstance(given, dict) and set(given) == {"command"}
    text = given["command"] if is_command else json.dumps(given, indent=2, ensure_ascii=False)
    blocks = [(f"{tool} would run" if is_command else f"{tool} with", str(text))]
    if "note" in body:
        blocks.insert(0, ("why", str(body["note"])))
    return blocks if preview is None else [*blocks, ("change", str(preview))]


def _gate_blocks(body: Mapping[str, Any], artifact: GateArtifact | None) -> list[tuple[str, str]]:
    """What a gate asks: its summary, and what it shows."""
    blocks = [(f"gate {body['gate']} of workflow {body.get('workflow')}", str(body["summary"]))]
    if artifact is None:
        text = body.get("artifact")
        return blocks if text is None else [*blocks, ("artifact", str(text))]
    label = {
        ArtifactKind.FILE: f"file {artifact.file}",
        ArtifactKind.DIFF: "changes in the workspace",
        ArtifactKind.OUTPUT: "output",
    }[artifact.kind]
    shown = artifact.text
    if shown is None:
        shown = f"[{artifact.problem}]" if artifact.problem else "[it is not shown here]"
    return [*blocks, (label, shown)]


def item_row(item: InboxItem) -> ItemRow:
    """An item as lists have it."""
    return {
        "id": item.id,
        "kind": item.kind,
        "status": item.status,
        "created_at": timestamp(item.created_at),
        "subject": item.subject,
        "title": item.title,
        "hash": item.hash,
        "epoch": item.epoch,
        "job_id": item.job_id,
        "agent": item.agent,
        "schedule": item.schedule,
        "tool": item.tool,
        "tool_use_id": item.tool_use_id,
        "quorum": item.quorum,
        "expires_at": timestamp(item.expires_at),
        "on_expiry": item.on_expiry,
        "decided_at": timestamp(item.decided_at),
        "decided_by": item.decided_by,
        "decided_via": item.decided_via,
        "verdict": item.verdict,
        "workflow_run_id": item.workflow_run_id,
        "node_id": item.node_id,
        "number": item.number,
        "gate": gate_path(item),
        "verdicts": sorted(VERDICTS[item.kind]),
    }


def item_document(shown: ShownItem) -> ItemDocument:
    """An item with everything needed to decide."""
    item, texts, job = shown.item, shown.texts, shown.job
    spender = job if job is not None else shown.run
    return {
        **item_row(item),
        "asks": dict(texts.body),
        "approvers": list(texts.approvers),
        "reply": texts.reply,
        "changed_input": None if texts.input is None else dict(texts.input),
        "what_happens": what_happens(item) if item.is_pending else {},
        "answers": [
            {
                "at": timestamp(one.at),
                "by": one.by,
                "via": one.via,
                "verdict": one.verdict,
                "text": one.text,
            }
            for one in shown.answers
        ],
        "cost": None if spender is None else format_usd(spender.cost_microusd),
        "job_status": None if job is None else job.status,
        "workflow": None if shown.run is None else shown.run.workflow_name,
        "run_status": None if shown.run is None else shown.run.status,
        "artifact": _artifact_row(shown.artifact),
    }


def gate_path(item: InboxItem) -> str | None:
    """Return the path of the phase that a gate is; None for an item that is none."""
    if not is_gate(item) or item.node_id is None:
        return None
    return item.node_id.removeprefix(f"{item.workflow_run_id}/")


def _artifact_row(artifact: GateArtifact | None) -> ArtifactRow | None:
    if artifact is None:
        return None
    return {
        "kind": artifact.kind,
        "file": artifact.file,
        "text": artifact.text,
        "problem": artifact.problem,
    }
