"""The digest: what ran, what it cost, what failed and what waits, as text and as HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from html import escape
from typing import Any

import msgspec

from nightherd.model.inbox.item import InboxItem, ItemId, ItemKind
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.notifications.message import STEPS, at_text, one_line
from nightherd.model.notifications.target import Digest, NotifyEvent
from nightherd.model.schedules.rule import next_match
from nightherd.model.text import counted
from nightherd.model.units import MicroUsd, format_usd
from nightherd.model.workflows.command import COMMANDS_AGENT
from nightherd.model.workflows.rows import WorkflowRun
from nightherd.model.workflows.run import RunStatus
from nightherd.next_step import NextStep, SpellStep

MOST = 20
"""Jobs and items that are named one by one."""
COMMANDS = "commands of workflows"


def last_due(digest: Digest, now: datetime) -> datetime | None:
    """Return the latest instant up to `now` at which the digest was due; None when there was none within two days."""
    expression = f"{digest.at.minute} {digest.at.hour} * * *"
    found: datetime | None = None
    coming = next_match(expression, digest.timezone, now - timedelta(days=2))
    while coming is not None and coming <= now:
        found = coming
        coming = next_match(expression, digest.timezone, coming)
    return found


class AgentLine(msgspec.Struct, frozen=True, kw_only=True):
    """What one agent did."""

    agent: str
    completed: int = 0
    failed: int = 0
    cost: MicroUsd = MicroUsd(0)


class DigestFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a digest is made from."""

    since: datetime
    until: datetime
    ended: Sequence[Job]
    """The jobs that ended in that time."""
    waiting: Sequence[InboxItem]
    """What waits for people now, newest first."""
    waiting_count: int
    runs: Sequence[WorkflowRun] = ()
    """The workflow runs that ended in that time, without those that other runs started."""
    workflows: Mapping[str, str] = msgspec.field(default_factory=dict)
    """The workflow of each run that something in `waiting` is about."""


class WorkflowLine(msgspec.Struct, frozen=True, kw_only=True):
    """What the runs of one workflow came to."""

    workflow: str
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    cost: MicroUsd = MicroUsd(0)


def agent_lines(ended: Sequence[Job]) -> list[AgentLine]:
    """Return what each agent did, by name."""
    lines: dict[str, AgentLine] = {}
    for job in ended:
        line = lines.get(job.agent) or AgentLine(agent=job.agent)
        lines[job.agent] = msgspec.structs.replace(
            line,
            completed=line.completed + (job.status is JobStatus.COMPLETED),
            failed=line.failed + (job.status is JobStatus.FAILED),
            cost=MicroUsd(line.cost + job.cost_microusd),
        )
    return [lines[name] for name in sorted(lines)]


def workflow_lines(runs: Sequence[WorkflowRun]) -> list[WorkflowLine]:
    """Return what the runs of each workflow came to, by name."""
    lines: dict[str, WorkflowLine] = {}
    for run in runs:
        line = lines.get(run.workflow_name) or WorkflowLine(workflow=run.workflow_name)
        lines[run.workflow_name] = msgspec.structs.replace(
            line,
            succeeded=line.succeeded + (run.status is RunStatus.SUCCEEDED),
            failed=line.failed + (run.status is RunStatus.FAILED),
            cancelled=line.cancelled + (run.status is RunStatus.CANCELLED),
            cost=MicroUsd(line.cost + run.cost_microusd),
        )
    return [lines[name] for name in sorted(lines)]


def digest_fields(facts: DigestFacts, spell: SpellStep) -> dict[str, Any]:
    """Return what a digest says, part by part; `digest_texts` writes it."""
    failed = [*_failed_runs(facts.runs), *_failed_jobs(facts.ended)]
    cost = MicroUsd(sum(job.cost_microusd for job in facts.ended))
    ended = counted(len(facts.ended), "job")
    if facts.runs:
        ended = f"{ended} and {counted(len(facts.runs), 'run')}"
    title = (
        f"Digest: {ended} ended, {len(failed)} failed,"
        f" {facts.waiting_count} waiting, {format_usd(cost)}"
    )
    return {
        "event": NotifyEvent.DIGEST.value,
        "title": title,
        "cost": format_usd(cost),
        "parts": [{"head": head, "lines": lines} for head, lines in _parts(facts, failed, spell)],
    }


def digest_texts(fields: Mapping[str, Any], link: Callable[[ItemId], str | None]) -> dict[str, Any]:
    """Return the fields with the digest as `text`, and as `html` with everything in it escaped.

    `link` gives the answer link of an item, which is secret and therefore not in the fields.
    """
    texts, pages = [], []
    for part in fields.get("parts", ()):
        lines = [_linked(line, link) for line in part["lines"]]
        texts.append("\n".join((part["head"], *(_plain(line) for line in lines))))
        items = "".join(f"<li>{_marked_up(line)}</li>" for line in lines)
        pages.append(f"<h3>{escape(part['head'])}</h3><ul>{items}</ul>")
    return {**fields, "text": "\n\n".join(texts), "html": "".join(pages)}


def _linked(
    line: Mapping[str, Any], link: Callable[[ItemId], str | None]
) -> tuple[str, str | None]:
    item = line.get("item")
    return str(line["text"]), link(ItemId(item)) if isinstance(item, str) else None


def _plain(line: tuple[str, str | None]) -> str:
    text, link = line
    return text if link is None else f"{text}: {link}"


def _marked_up(line: tuple[str, str | None]) -> str:
    text, link = line
    return escape(text) if link is None else f'{escape(text)}: <a href="{escape(link)}">answer</a>'


Line = dict[str, str]


def _failed_runs(runs: Sequence[WorkflowRun]) -> Iterator[Line]:
    for run in runs:
        if run.status is RunStatus.FAILED:
            error = one_line(run.error or "failed")
            yield {"text": f"workflow {run.workflow_name} {run.id}: {error}"}


def _failed_jobs(ended: Sequence[Job]) -> Iterator[Line]:
    """Jobs that failed; those of phases are left to their runs."""
    for job in ended:
        if job.status is JobStatus.FAILED and job.node_id is None:
            yield {"text": f"{job.agent} {job.id}: {one_line(job.error or 'failed')}"}


def _parts(
    facts: DigestFacts, failed: list[Line], spell: SpellStep
) -> Iterator[tuple[str, list[Line]]]:
    ran = [
        {
            "text": f"{COMMANDS if line.agent == COMMANDS_AGENT else line.agent}:"
            f" {line.completed} completed, {line.failed} failed, {format_usd(line.cost)}"
        }
        for line in agent_lines(facts.ended)
    ]
    span = f"{at_text(facts.since)} to {at_text(facts.until)}"
    yield f"Ran from {span}", ran or [{"text": "no job ended"}]
    if facts.runs:
        yield "Workflows", [{"text": _run_line(line)} for line in workflow_lines(facts.runs)]
    if failed:
        yield "Failed", _few(failed, len(failed))
    if facts.waiting:
        lines = [_waiting(item, facts.workflows, spell) for item in facts.waiting]
        yield "Waiting for you", _few(lines, facts.waiting_count)


def _run_line(line: WorkflowLine) -> str:
    cancelled = f", {line.cancelled} cancelled" if line.cancelled else ""
    counts = f"{line.succeeded} succeeded, {line.failed} failed{cancelled}"
    return f"{line.workflow}: {counts}, {format_usd(line.cost)}"


def _waiting(item: InboxItem, workflows: Mapping[str, str], spell: SpellStep) -> Line:
    workflow = workflows.get(item.workflow_run_id or "")
    who = item.agent or (f"workflow {workflow}" if workflow else "the fleet")
    step = NextStep(STEPS[item.kind][0], job=item.job_id, item=item.id)
    failed = "failed job" if item.job_id is not None or workflow is None else "failed run"
    kind = failed if item.kind is ItemKind.FAILURE else item.kind.value
    since = at_text(item.created_at)
    text = f"{who}, {kind} since {since}: {one_line(item.title)} ({spell(step)})"
    return {"text": text, "item": item.id}


def _few(lines: list[Line], count: int) -> list[Line]:
    shown = lines[:MOST]
    return shown if count <= len(shown) else [*shown, {"text": f"and {count - len(shown)} more"}]
