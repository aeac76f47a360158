"""What a notification says: its fields when it is queued, its text when it is sent.

Fields are plain texts. A template is filled in one pass from a closed list of places: nothing in a field is read as
a template again, and nothing runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from nightherd.errors import InvalidValueError
from nightherd.model.inbox.item import InboxItem, InboxTexts, ItemKind
from nightherd.model.jobs.job import Job
from nightherd.model.notifications.events import Happening
from nightherd.model.notifications.notification import SUBJECT_LIMIT
from nightherd.model.notifications.target import NotifyEvent
from nightherd.model.text import shorten, whole_text
from nightherd.model.units import format_usd
from nightherd.model.workflows.command import COMMANDS_AGENT
from nightherd.model.workflows.rows import WorkflowRun
from nightherd.next_step import Action, NextStep, SpellStep

WHAT_LIMIT = 6_000
MOST_DENIALS = 5
TEXT_LIMIT = 20_000
"""Characters of a whole message."""

PLACES = frozenset(
    [
        "event",
        "target",
        "title",
        "text",
        "agent",
        "schedule",
        "job",
        "item",
        "what",
        "why",
        "cost",
        "denied",
        "yes",
        "no",
        "expiry",
        "answer",
        "link",
        "workflow",
        "run",
        "phase",
    ]
)
PLACE = re.compile(r"\$\{notice\.([A-Za-z_]+)\}")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
CONTROL_IN_TEXT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
MENTION = re.compile(
    r"(?P<mark>@)(?=everyone|here|channel|all\b)|(?P<open><)(?=[!@#&])", re.IGNORECASE
)
SPACE = "\N{ZERO WIDTH SPACE}"

TITLES = {
    NotifyEvent.COMPLETED: "{agent} completed",
    NotifyEvent.FAILED: "{agent} failed",
    NotifyEvent.SUSPENDED: "{agent} waits",
    NotifyEvent.APPROVAL: "{agent} needs approval",
    NotifyEvent.QUESTION: "{agent} has a question",
    NotifyEvent.LIMIT: "{agent} met a limit",
    NotifyEvent.LOST: "{agent} lost its worker",
    NotifyEvent.MESSAGE: "{agent}",
}
STEPS: Mapping[ItemKind, tuple[Action, ...]] = {
    ItemKind.APPROVAL: (Action.APPROVE_ITEM, Action.REJECT_ITEM),
    ItemKind.QUESTION: (Action.REPLY_ITEM, Action.REJECT_ITEM),
    ItemKind.LIMIT: (Action.RAISE_ITEM, Action.REJECT_ITEM),
    ItemKind.FAILURE: (Action.RETRY_ITEM, Action.DISMISS_ITEM),
    ItemKind.RELOAD: (Action.ACCEPT_ITEM, Action.REJECT_ITEM),
}


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message as it is sent."""

    title: str
    text: str
    html: str | None = None


def fields_of(
    happening: Happening,
    texts: InboxTexts | None,
    *,
    job: Job | None = None,
    run: WorkflowRun | None = None,
    effects: Mapping[str, str] | None = None,
    denials: Sequence[str] = (),
    is_reminder: bool = False,
) -> dict[str, Any]:
    """Return what a notification about `happening` says; `job` and `run` are those that it is part of.

    `effects` says what each answer to the item does, yes first and no answer last. `denials` are the calls that
    the job was kept from.
    """
    about = happening.job or job
    item = happening.item
    run = happening.run or run
    run_id = happening.run_id or (about.workflow_run_id if about is not None else None)
    agent = _who(happening, about, run)
    head = TITLES[happening.event].format(agent=agent)
    told = _told(happening, about)
    costs = about or happening.run
    fields: dict[str, Any] = {
        "event": happening.event.value,
        "agent": agent,
        "schedule": happening.schedule,
        "job": about.id if about is not None else None,
        "item": item.id if item is not None else None,
        "workflow": run.workflow_name if run is not None else None,
        "run": run_id,
        "phase": _phase(happening, about, run_id),
        "title": one_line(f"{'Reminder: ' if is_reminder else ''}{head}: {told}" if told else head),
        "what": shorten(whole_text(_what(happening, texts, about)), WHAT_LIMIT),
        "why": _why(item, about),
        "denied": _denied(denials),
        "cost": format_usd(costs.cost_microusd) if costs is not None else None,
    }
    if item is not None:
        fields |= {
            **dict(zip(("yes", "no", "expiry"), (effects or {}).values(), strict=False)),
            "steps": [action.value for action in STEPS[item.kind]],
        }
    elif about is not None:
        fields["steps"] = [Action.SHOW_JOB.value]
    elif run_id is not None:
        fields["steps"] = [Action.SHOW_RUN.value]
    return {name: value for name, value in fields.items() if value is not None}


def _who(happening: Happening, job: Job | None, run: WorkflowRun | None) -> str:
    """Who it is about: an agent, a workflow, or the fleet. The built-in agent of commands is its workflow."""
    agent = happening.agent or (job.agent if job is not None else None)
    if agent is not None and agent != COMMANDS_AGENT:
        return agent
    return f"workflow {run.workflow_name}" if run is not None else agent or "the fleet"


def _phase(happening: Happening, job: Job | None, run_id: str | None) -> str | None:
    """The phase it is about, with its iteration, item and attempt."""
    about = job or happening.item
    of_row = about.node_id if about is not None else None
    node_id = happening.node.id if happening.node is not None else of_row
    return node_id.removeprefix(f"{run_id}/") if node_id is not None else None


def _told(happening: Happening, job: Job | None) -> str:
    """What a title says after who it is about."""
    if happening.node is not None:
        return one_line(happening.node.message or "")
    if happening.run is not None:
        return one_line(happening.run.error or "")
    if happening.item is not None:
        return happening.item.title
    return one_line(job.error or job.summary or "") if job is not None else ""


def _what(happening: Happening, texts: InboxTexts | None, job: Job | None) -> str:
    """What is asked, or what came of it, in as many lines as it takes."""
    item = happening.item
    if happening.node is not None:
        return happening.node.message or ""
    if happening.run is not None:
        return happening.run.error or ""
    if item is None or texts is None:
        return (job.error or job.summary or "") if job is not None else ""
    body = texts.body
    if item.node_id is not None and item.job_id is None:
        return _gate_text(item, body)
    if item.kind is ItemKind.QUESTION:
        options = body.get("options") or ()
        lines = [str(body.get("question") or item.title), *(f"- {one}" for one in options)]
        return "\n".join(lines)
    if item.kind is ItemKind.APPROVAL:
        return _call_text(item, body)
    return str(body.get("error") or item.title)


def _gate_text(item: InboxItem, body: Mapping[str, Any]) -> str:
    """What a gate of a workflow asks, with what it is about."""
    file = body.get("file")
    shown = body.get("artifact") or (f"File: {file}" if file else None)
    return "\n\n".join(str(part) for part in (body.get("summary") or item.title, shown) if part)


def _call_text(item: InboxItem, body: Mapping[str, Any]) -> str:
    input, preview, note = body.get("input"), body.get("preview"), body.get("note")
    tool = str(body.get("tool") or item.tool or "")
    if isinstance(input, Mapping) and set(input) <= {"command", "description", "timeout"}:
        text = f"{tool}: {input.get('command', '')}"
    else:
        text = f"{tool}: {json.dumps(input, ensure_ascii=False, default=str, indent=1)}"
    return "\n\n".join(str(part) for part in (note, text, preview) if part)


def _why(item: InboxItem | None, job: Job | None) -> str | None:
    if item is not None and item.kind is ItemKind.APPROVAL:
        needed = f"; {item.quorum} people have to approve" if item.quorum > 1 else ""
        if item.node_id is not None and item.job_id is None:
            return f"the workflow waits for a person's approval{needed}"
        return f"this call needs a person's approval{needed}"
    if job is not None and job.resumes_at is not None:
        return f"it resumes by itself at {job.resumes_at:%Y-%m-%d %H:%M:%S} UTC"
    if job is not None and job.error_code is not None:
        return f"code {job.error_code}"
    return None


def _denied(denials: Sequence[str]) -> str | None:
    if not denials:
        return None
    more = f" and {len(denials) - MOST_DENIALS} more" if len(denials) > MOST_DENIALS else ""
    return "; ".join(one_line(one) for one in denials[:MOST_DENIALS]) + more


def steps_of(fields: Mapping[str, Any]) -> Sequence[NextStep]:
    """Return what can be done about it."""
    job, item, run = fields.get("job"), fields.get("item"), fields.get("run")
    return [NextStep(Action(name), job=job, item=item, run=run) for name in fields.get("steps", ())]


def render_message(
    fields: Mapping[str, Any],
    *,
    target: str,
    spell: SpellStep,
    link: str | None = None,
    title: str | None = None,
    template: str | None = None,
) -> Message:
    """Return the message: the default text, or the target's own template filled in."""
    values = {
        name: str(value) for name, value in fields.items() if not isinstance(value, list | dict)
    }
    values["target"] = target
    values["link"] = link or ""
    values["answer"] = "\n".join(spell(step) for step in steps_of(fields))
    values["text"] = str(fields["text"]) if "text" in fields else _text(values)
    body = values["text"] if template is None else fill(template, values)
    head = values.get("title", "") if title is None else fill(title, values)
    html = fields.get("html")
    return Message(
        title=safe_title(head),
        text=safe_text(body),
        html=html if isinstance(html, str) and template is None else None,
    )


def _text(values: Mapping[str, str]) -> str:
    """The text of a message for which no template is given."""
    parts = [values.get("what", "")]
    facts = [
        ("Run", _run_text(values)),
        ("Job", _job_text(values)),
        ("Why", values.get("why")),
        ("Denied", values.get("denied")),
        ("Cost so far", values.get("cost")),
        ("On yes", values.get("yes")),
        ("On no", values.get("no")),
        ("Without an answer", values.get("expiry")),
        ("Answer", values.get("link")),
    ]
    parts.append("\n".join(f"{name}: {value}" for name, value in facts if value))
    parts.append(values.get("answer", ""))
    return "\n\n".join(part for part in parts if part)


def _run_text(values: Mapping[str, str]) -> str:
    """The run, its workflow and the phase in it; empty for what is in no run."""
    if not values.get("run"):
        return ""
    places = [("workflow", values.get("workflow")), ("phase", values.get("phase"))]
    if not values.get("job"):
        places.append(("schedule", values.get("schedule")))
    named = ", ".join(f"{what} {name}" for what, name in places if name)
    return f"{values['run']} ({named})" if named else values["run"]


def _job_text(values: Mapping[str, str]) -> str:
    """The job and its schedule; empty where only the run is known."""
    if values.get("run") and not values.get("job"):
        return ""
    schedule = f"(schedule {values['schedule']})" if values.get("schedule") else ""
    return " ".join(filter(None, (values.get("job"), schedule)))


def fill(template: str, values: Mapping[str, str]) -> str:
    """`template` with its places filled in, once: what a value holds is never read as a template."""
    return PLACE.sub(lambda match: values.get(match[1], ""), template)


def check_template(text: str) -> str:
    """`text`, if every place in it is known, else `InvalidValueError`."""
    for match in PLACE.finditer(text):
        if match[1] not in PLACES:
            known = ", ".join(sorted(PLACES))
            raise InvalidValueError(f"${{notice.{match[1]}}} is not known; there are: {known}")
    return text


def one_line(text: str) -> str:
    """The text on one line: nothing in it can end a header."""
    return shorten(" ".join(CONTROL.sub(" ", whole_text(text)).split()), SUBJECT_LIMIT)


def safe_title(text: str) -> str:
    """A title that is one line and mentions nobody."""
    return _without_mentions(one_line(text)) or "nightherd"


def safe_text(text: str) -> str:
    """A body without control characters that mentions nobody, of bounded length."""
    return _without_mentions(shorten(CONTROL_IN_TEXT.sub("", whole_text(text)), TEXT_LIMIT))


def _without_mentions(text: str) -> str:
    """Keep a text that agents wrote from calling everybody in a channel."""
    return MENTION.sub(lambda match: f"{match[0]}{SPACE}", text)


def at_text(at: datetime) -> str:
    """An instant in a message."""
    return f"{at:%Y-%m-%d %H:%M} UTC"
