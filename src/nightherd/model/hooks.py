"""Hook: something to be done when a job has ended or waits, and when it is due.

The result of a hook is in the job's journal (`system/hook`). It takes effect at most once for each end of a
job, however often workers die: model/journal/recollection.py reads off the journal what has been begun already.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any

import msgspec

from nightherd.model.ids import JobId
from nightherd.model.jobs.job import ExitReason, Job, JobStatus, SuspendReason

LIMIT_HOOKS = (":limits.hooks[", ".limits.hooks[")
"""Parts of the dedupe key of a job that such a hook submitted, in rows older than the column `asked_about`."""

HOOK_FAILED = "hook_failed"
"""The error code of a job that a hook made fail."""


class HookEvent(StrEnum):
    """What happened to the job."""

    COMPLETED = "completed"
    FAILED = "failed"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    SUSPENDED = "suspended"


class HookPoint(StrEnum):
    """The lists of hooks an agent has."""

    AFTER_RUN = "after_run"
    ON_ERROR = "on_error"
    ON_SUSPEND = "on_suspend"
    ON_CANCEL = "on_cancel"
    LIMITS = "limits"


EVENTS_OF_POINT = {
    HookPoint.AFTER_RUN: frozenset(HookEvent) - {HookEvent.SUSPENDED},
    HookPoint.ON_ERROR: frozenset({HookEvent.FAILED, HookEvent.TIMEOUT}),
    HookPoint.ON_SUSPEND: frozenset({HookEvent.SUSPENDED}),
    HookPoint.ON_CANCEL: frozenset({HookEvent.CANCELLED}),
    HookPoint.LIMITS: frozenset(HookEvent),
}
"""Which events each list is for."""


class ShellCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A command, given the job's context on standard input."""

    command: str
    timeout: timedelta


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request with the job's context as its body, signed when `secret_env` names a secret."""

    url: str
    timeout: timedelta
    method: str = "POST"
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    secret_env: str | None = None
    attempts: int = 3
    body: Any = None
    """What is sent instead of the whole context: a text, or values for JSON, with `${PATH}` into the context."""


class AgentSubmission(msgspec.Struct, frozen=True, kw_only=True):
    """Another agent, given a job of its own."""

    agent: str
    inputs: Mapping[str, Any] = msgspec.field(default_factory=dict)


class ChatMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message of a bot to a channel, delivered by the notification outbox."""

    service: str
    channel: str
    token_env: str


Action = ShellCommand | HttpRequest | AgentSubmission | ChatMessage


class Hook(msgspec.Struct, frozen=True, kw_only=True):
    """One declared hook."""

    id: str
    """Its place, as in `after_run[0]`: what it is known by in a journal."""
    point: HookPoint
    action: Action
    name: str | None = None
    on: frozenset[str] = frozenset()
    """Only for these events, or for limits these reasons; none means every event of its list."""
    when: str | None = None
    """A dotted path into the context that must hold something true."""
    continue_on_error: bool = True
    retry: bool = False
    """Whether it is begun again when it was cut off with its worker."""


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Who an agent is to people."""

    name: str | None = None
    role: str | None = None
    personality: str | None = None


def event_of(job: Job) -> HookEvent | None:
    """What happened to `job`, which stands as it will be settled; None when it continues."""
    if job.exit_reason is ExitReason.TIMEOUT:
        return HookEvent.TIMEOUT
    return {
        JobStatus.COMPLETED: HookEvent.COMPLETED,
        JobStatus.FAILED: HookEvent.FAILED,
        JobStatus.CANCELLED: HookEvent.CANCELLED,
        JobStatus.SUSPENDED: HookEvent.SUSPENDED,
    }.get(job.status)


def words_of(event: HookEvent, job: Job) -> frozenset[str]:
    """Every word by which a hook may name what happened: the event, and the reason behind it."""
    words = {event.value}
    if event is HookEvent.SUSPENDED and job.suspend_reason is not None:
        words.add(job.suspend_reason.value)
    if job.exit_reason in (ExitReason.LIMIT, ExitReason.MAX_TURNS):
        words.add(SuspendReason.LIMIT.value)
    return frozenset(words)


def is_due(hook: Hook, event: HookEvent, job: Job, context: Mapping[str, Any]) -> bool:
    """Whether the hook is for this: its list, its events and its condition all say so."""
    if event not in EVENTS_OF_POINT[hook.point]:
        return False
    if hook.on and not hook.on & words_of(event, job):
        return False
    return hook.when is None or bool(at_path(context, hook.when))


def at_path(value: Any, path: str) -> Any:
    """What stands at a dotted path, list places as numbers; None when nothing does."""
    for step in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list | tuple) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def asked_about(job: Job) -> JobId | None:
    """Return the job that met a limit, when a hook of `limits.hooks` submitted `job` to decide about it."""
    if job.asked_about is not None or job.trigger_id is None:
        return job.asked_about
    key = job.dedupe_key or ""
    is_old = key.startswith("hook:") and any(mark in key for mark in LIMIT_HOOKS)
    return JobId(job.trigger_id) if is_old else None


BODY_PLACE = re.compile(r"\$\{([a-z_]+(?:\.[A-Za-z0-9_-]+)+)\}")
"""A place of a body's template: a dotted path into the context."""


def fill_body(template: Any, context: Mapping[str, Any]) -> Any:
    """`template` with its places filled in, once; a text that is one place gets the value with its type.

    What the context holds is never read as a template, and stays inside the text of a JSON value.
    """
    match template:
        case str():
            alone = BODY_PLACE.fullmatch(template)
            if alone is not None:
                return at_path(context, alone[1])
            return BODY_PLACE.sub(lambda place: _as_text(at_path(context, place[1])), template)
        case Mapping():
            return {name: fill_body(value, context) for name, value in template.items()}
        case list() | tuple():
            return [fill_body(value, context) for value in template]
        case _:
            return template


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
