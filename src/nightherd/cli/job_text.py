"""Jobs as tables and cards for people."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from nightherd.cli.limit_text import tokens_text
from nightherd.cli.render import Screen, status_cell, table
from nightherd.cli.text import length, neutralise, one_line
from nightherd.model.advice import advice_on
from nightherd.model.job import Job
from nightherd.model.money import format_usd
from nightherd.model.text import counted
from nightherd.views.jobs import JobView, waited, worked
from nightherd.wiring import open_job_list

if TYPE_CHECKING:  # only a name: a list of jobs must not load what else there is
    from nightherd.model.execution import Execution

HEADING = ("ID", "AGENT", "STATUS", "CREATED", "TOOK", "TURNS", "COST", "SUMMARY")
SPARE = ("TURNS", "TOOK", "CREATED")
SUMMARY_LIMIT = 100
TOLD = timedelta(seconds=1)
"""A wait that is shorter is the machine's own."""


def job_table(
    jobs: Sequence[Job], took: Sequence[timedelta | None], screen: Screen, now: datetime
) -> str:
    """One line per job, with how long somebody has worked at it."""
    rows = [
        (
            job.id,
            job.agent,
            status_cell(job.status.value),
            screen.when(job.created_at, now),
            length(span),
            str(job.turns),
            format_usd(job.cost_microusd),
            one_line(job.error or job.summary or "", SUMMARY_LIMIT),
        )
        for job, span in zip(jobs, took, strict=True)
    ]
    return table(HEADING, rows, width=screen.width, style=screen.out, spare=SPARE)


def happening(word: str, job: Job, now: datetime, state: Path) -> str:
    """What a worker says of a job; once it is done with it, also how the job stands and what it took."""
    said = f"{word} {job.id} {job.agent}"
    if word != "ended":
        return said
    with closing(open_job_list(state)) as reader:
        took = length(worked(job, reader, now))
    cost = format_usd(job.cost_microusd)
    return f"{said}, {job.status.value}{'' if job.is_terminal else _why(job)}, {cost}, {took}"


def job_card(view: JobView, screen: Screen, now: datetime, limits: Sequence[str]) -> str:
    """Everything about one job, as lines of `label  value` and its texts below."""
    job, style = view.job, screen.out
    pairs = [
        ("job", style.bold(job.id)),
        ("agent", job.agent),
        ("status", style.status(job.status.value) + _why(job)),
        ("trigger", job.trigger_type.value + (f" ({job.trigger_id})" if job.trigger_id else "")),
        ("session", _session(view)),
        ("created", screen.when(job.created_at, now)),
        ("started", screen.when(job.started_at, now)),
        ("finished", screen.when(job.finished_at, now)),
        ("took", length(view.worked) + _waited(view, now)),
        ("turns", f"{counted(job.turns, 'turn')}, {counted(job.messages, 'message')}"),
        ("tokens", tokens_text(job)),
        ("cost", format_usd(job.cost_microusd)),
    ]
    if job.resumes_at is not None:
        pairs.append(("goes on", f"{screen.when(job.resumes_at, now)}, by itself"))
    pairs += [("error", style.bad(neutralise(_error(job))))] if job.error else []
    pairs += [("limit", one) for one in limits]
    advice = advice_on(job) if job.error else None
    pairs += [("try", advice)] if advice is not None else []
    if len(view.executions) > 1:
        pairs += [
            ("execution", f"{one.epoch}: {one.status.value}, {_came_to(one)}, {one.worker}")
            for one in view.executions
        ]
    inputs = view.texts.inputs if view.texts is not None else {}
    pairs += [("input", f"{one_line(name)}={one_line(value)}") for name, value in inputs.items()]
    lines = [f"{label:<10}{value}" for label, value in pairs]
    return "\n".join(lines + _texts(view, screen))


def _waited(view: JobView, now: datetime) -> str:
    """Time in which nobody worked at it, where that is worth telling."""
    span = waited(view, now)
    return f", and waited {length(span)}" if span is not None and span >= TOLD else ""


def _came_to(execution: Execution) -> str:
    return f"{counted(execution.turns, 'turn')}, {format_usd(execution.cost_microusd)}"


def _why(job: Job) -> str:
    reason = job.exit_reason or job.suspend_reason
    return f" ({reason.value})" if reason is not None else ""


def _error(job: Job) -> str:
    return f"{job.error_code}: {job.error}" if job.error_code else job.error or ""


def _session(view: JobView) -> str:
    session = view.session
    if session is None:
        return view.job.session_id or "-"
    return f"{session.id} ({session.mode.value}, {counted(session.job_count, 'job')})"


def _texts(view: JobView, screen: Screen) -> list[str]:
    texts = view.texts
    summary = (texts.summary if texts else None) or view.job.summary
    parts = [
        ("a new session", texts.session_note if texts else None),
        ("prompt", texts.prompt if texts else None),
        ("summary", summary),
    ]
    lines: list[str] = []
    for label, text in parts:
        if text:
            lines += ["", screen.out.bold(label), *_indented(text)]
    return lines


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in neutralise(text).rstrip("\n").split("\n")]
