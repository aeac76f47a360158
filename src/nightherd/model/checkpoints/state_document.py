"""`state.json`: a job at a checkpoint as one document, for people and other tools; made from rows and events.

Exact resuming reads the journal; this says the same in the format's own words.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from nightherd.errors import InvalidValueError
from nightherd.model.checkpoints.checkpoint import Checkpoint, checkpoint_id
from nightherd.model.checkpoints.persistence import Persistence
from nightherd.model.checkpoints.state_schema import mistakes, with_defaults
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import Job, JobStatus, JobTexts, SuspendReason, TriggerType
from nightherd.model.journal.event import (
    AssistantEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
)
from nightherd.model.journal.system import SystemSubtype
from nightherd.model.limits.limits import LimitName, number
from nightherd.model.units import to_usd

VERSION = "1.1.0"
"""The version of the documents made here."""
STATUS_WORDS = {
    JobStatus.PENDING.value: "running",
    JobStatus.RUNNING.value: "running",
    JobStatus.SUSPENDED.value: "suspended",
    JobStatus.COMPLETED.value: "completed",
    JobStatus.FAILED.value: "error",
    JobStatus.CANCELLED.value: "cancelled",
}
LONGEST_ANSWER_TOKENS = 4_096
"""What a cut-off answer is measured by: its full length is unknown."""


def state_document(
    checkpoint: Checkpoint,
    job: Job,
    texts: JobTexts | None,
    events: Iterable[Event],
    *,
    saved_at: datetime,
    directive: str | None = None,
) -> dict[str, Any]:
    """The document of a job at `checkpoint`; `events` are the job's, from the first to anywhere behind it.

    `directive` is what the job carries out, where that is not its agent: a phase of a workflow.
    """
    header = checkpoint.header
    messages, partial = conversation(events, until=checkpoint.seq)
    system = header.get("system_prompt")
    if system is not None:
        messages.insert(0, {"role": "system", "content": str(system)})
    suspension = header.get("suspension")
    return {
        "thread_id": job.id,
        "directive": directive or job.agent,
        "version": VERSION,
        "saved_at": _instant(saved_at),
        "parent_thread_id": job.parent_job_id,
        "inputs": dict(texts.inputs) if texts is not None else {},
        "turn_number": checkpoint.turn,
        "cost": {
            "turns": checkpoint.turn,
            "tokens": {
                "input_tokens": checkpoint.input_tokens,
                "output_tokens": checkpoint.output_tokens,
                "cache_creation_input_tokens": checkpoint.cache_creation_input_tokens,
                "cache_read_input_tokens": checkpoint.cache_read_input_tokens,
            },
            "spend": to_usd(checkpoint.cost_microusd),
            "duration_seconds": checkpoint.duration_ms / 1_000,
        },
        "limits": _limits(header.get("limits") or {}),
        "status": STATUS_WORDS[checkpoint.status],
        "suspend_reason": checkpoint.suspend_reason,
        "suspend_metadata": _metadata(suspension),
        "hooks": [_hook(one) for one in header.get("hooks") or ()],
        "required_caps": _capabilities(header),
        "messages": messages,
        "partial_cognition": partial,
    }


def _capabilities(header: Mapping[str, Any]) -> list[str] | None:
    """What the agent is held to: an empty list allows nothing, None is no such bound."""
    held_to = header.get("required_caps")
    return None if held_to is None else list(held_to)


def _instant(at: datetime) -> str:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")


def _limits(kept: Mapping[str, Any]) -> dict[str, float | int | None]:
    return {
        name.value: None if kept.get(name.value) is None else number(name, int(kept[name.value]))
        for name in LimitName
    }


def _hook(kept: Mapping[str, Any]) -> dict[str, Any]:
    """A hook in the order the format has; a row keeps none."""
    return {name: kept.get(name) for name in ("event", "directive", "inputs")}


def _metadata(suspension: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The limit that was met, or when the job resumes by itself; None where neither is known."""
    if suspension is None:
        return None
    until = suspension.get("until")
    waits = {} if until is None else {"resumes_at": until.replace("+00:00", "Z")}
    if suspension.get("current_max") is None:
        return waits or None
    return {
        "limit_code": suspension.get("code"),
        "current_value": suspension.get("current_value"),
        "current_max": suspension.get("current_max"),
        **waits,
    }


def conversation(
    events: Iterable[Event], *, until: int
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """What was said up to a line, message by message, and what was cut off at its end."""
    messages: list[dict[str, Any]] = []
    open_texts: list[str] = []
    open_parts: list[dict[str, Any]] = []
    for event in events:
        if event.seq > until:
            break
        part = _part(event)
        if part is None:
            if isinstance(event, AssistantEvent) and event.partial:
                open_texts.append(event.content or "")
            elif _begins_anew(event):
                open_texts, open_parts = [], []
            continue
        open_parts.append(part)
        if getattr(event, "end", False):
            messages.extend(_whole(open_parts))
            open_texts, open_parts = [], []
    said = "".join(open_texts) or "\n".join(str(one["content"]) for one in open_parts)
    return messages, _partial(said) if said else None


def _begins_anew(event: Event) -> bool:
    """Whether what was cut off before belongs to an execution that is over."""
    return isinstance(event, SystemEvent) and event.subtype is SystemSubtype.EXECUTION_STARTED


def _whole(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [part for part in parts if part["content"]]


def _part(event: Event) -> dict[str, Any] | None:
    """What the event adds to the conversation."""
    match event:
        case SystemEvent(subtype=SystemSubtype.USER_INPUT, content=content):
            return _message("user", content or "", event)
        case AssistantEvent(partial=None | False, content=content):
            return _message("assistant", content or "", event)
        case ToolUseEvent(tool_name=name, tool_use_id=call, input=given):
            return _message(
                "assistant", _json({"tool_use": name, "id": call, "input": given}), event
            )
        case ToolResultEvent(tool_use_id=call, result=result, success=success, error=error):
            found = {"tool_result": call, "success": success, "result": result, "error": error}
            return _message("user", _json(found), event)
        case _:
            return None


def _message(role: str, content: str, event: Event) -> dict[str, Any]:
    return {"role": role, "content": content, "event_seq": event.seq}


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _partial(text: str) -> dict[str, Any]:
    tokens = len(text.encode()) // 4
    return {
        "text": text,
        "is_partial": True,
        "completion_percentage": min(99, 100 * tokens // LONGEST_ANSWER_TOKENS),
    }


def faults(document: Any, persistence: Persistence) -> list[str]:
    """Every place at which a document is not what the schema says."""
    schema = dict(persistence.schema)
    schema["required"] = sorted({*persistence.required, *(schema.get("required") or ())})
    return list(mistakes(document, schema))


def check_state(document: Any, persistence: Persistence) -> None:
    """`InvalidValueError` with every mistake when a document is not what the schema says."""
    found = faults(document, persistence)
    if found:
        raise InvalidValueError("not a state.json: " + "; ".join(found))


def as_written(document: Mapping[str, Any], persistence: Persistence) -> dict[str, Any]:
    """The document in the version that the project wants, with every field the schema has a default for."""
    wanted = dict(document) if persistence.schema_version == VERSION else _as_1_0_0(document)
    return with_defaults(wanted, persistence.schema)


def _as_1_0_0(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document without what version 1.0.0 does not have.

    It knows no rate limits, so a job that waits for one has the reason `error`.
    """
    limits = {
        name: value
        for name, value in document["limits"].items()
        if name not in (LimitName.DEPTH.value, LimitName.DURATION.value)
    }
    tokens = {name: document["cost"]["tokens"][name] for name in ("input_tokens", "output_tokens")}
    reason, metadata = document["suspend_reason"], document["suspend_metadata"]
    known = {name: fact for name, fact in (metadata or {}).items() if name != "resumes_at"}
    metadata = None if known.get("limit_code") == LimitName.DEPTH.code else known or None
    return {
        **document,
        "version": "1.0.0",
        "cost": {**document["cost"], "tokens": tokens},
        "limits": limits,
        "suspend_reason": "error" if reason == SuspendReason.RATE_LIMIT.value else reason,
        "suspend_metadata": metadata,
        "required_caps": document["required_caps"] or [],
        "messages": [
            {"role": one["role"], "content": one["content"]} for one in document["messages"]
        ],
    }


def migrated(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document of an older version as one of this version; `InvalidValueError` for one from the future."""
    version = document.get("version")
    if version == VERSION:
        return dict(document)
    if version == "1.0.0":
        limits = dict(document.get("limits") or {})
        for name in ("depth", "duration"):
            limits.setdefault(name, None)
        return {**document, "version": VERSION, "limits": limits}
    raise InvalidValueError(f"a state.json of version {version!r}; this nightherd reads {VERSION}")


def read_state(
    text: bytes | str, persistence: Persistence, *, job_id: str | None = None
) -> dict[str, Any]:
    """The document in `text`, brought to this version, complete and checked.

    `InvalidValueError` says what is wrong: cut off, edited beyond the schema, of another job, from the future.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidValueError(f"not JSON: {error}") from None
    if not isinstance(found, dict):
        raise InvalidValueError("not a state.json: expected a mapping")
    known = persistence.schema.get("properties") or {}
    if "version" not in found and "default" in known.get("version", {}):
        found["version"] = known["version"]["default"]
    document = with_defaults(migrated(found), persistence.schema)
    check_state(document, persistence)
    if job_id is not None and document["thread_id"] != job_id:
        raise InvalidValueError(f"the state of {document['thread_id']}, not of {job_id}")
    return document


JOB = JobId("job-2026-01-01-sample")
AT = datetime(2026, 1, 1, tzinfo=UTC)
SAID: tuple[Event, ...] = (
    SystemEvent(subtype=SystemSubtype.USER_INPUT, content="asked", end=True),
    AssistantEvent(content="answered", end=True),
    AssistantEvent(content="cut o", partial=True),
)


def sample_states() -> Iterator[dict[str, Any]]:
    """A job at each status, one that waits for each reason, and at each limit."""
    for status in (JobStatus.RUNNING, JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED):
        yield _state(status)
    for reason in SuspendReason:
        yield _state(JobStatus.SUSPENDED, reason)
    for name in LimitName:
        limit = {"code": name.code, "current_value": 2.5, "current_max": 2.0}
        limits = {one.value: 2_000 for one in LimitName}
        header = {"limits": limits, "suspension": limit, "required_caps": ["nightherd.tool.*"]}
        yield _state(JobStatus.SUSPENDED, SuspendReason.LIMIT, header)


def _state(
    status: JobStatus, reason: SuspendReason | None = None, header: dict[str, Any] | None = None
) -> dict[str, Any]:
    job = Job(id=JOB, agent="a", trigger_type=TriggerType.MANUAL, status=status, created_at=AT)
    hook = {"event": "limit", "directive": "a", "inputs": {}}
    place = Checkpoint(
        id=checkpoint_id(JOB, 1),
        job_id=JOB,
        number=1,
        epoch=1,
        seq=3,
        trigger="",
        status=status.value,
        created_at=AT,
        duration_ms=1_500,
        suspend_reason=reason.value if reason is not None else None,
        header={"system_prompt": "", "hooks": [hook], **(header or {})},
    )
    texts = JobTexts(job_id=JOB, prompt="", inputs={"name": "value"})
    return state_document(place, job, texts, SAID, saved_at=AT)
