"""Requests: what can be asked of a fleet, one value for each verb. `perform` carries them out.

They name agents, jobs and sessions and hold nothing else, so that a command can send one to the daemon as JSON.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from nightherd.decoding import json_decoder
from nightherd.engine.operations.fork import ForkAt
from nightherd.errors import InvalidValueError, RefusedError
from nightherd.model.ids import JobId, SessionId
from nightherd.model.inbox.item import ItemId, Verdict
from nightherd.model.jobs.job import JobStatus, TriggerType
from nightherd.model.jobs.options import NO_OPTIONS, JobOptions
from nightherd.model.sessions.session import SessionMode


class _Value(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all requests share: a newer command's field is refused by an older daemon, not ignored."""


class OwnSession(_Value, frozen=True, kw_only=True, tag="own"):
    """The session that the agent would use, or a branch of it at its last complete turn."""

    mode: SessionMode | None = None
    """How the job shares its session, instead of how the agent says."""
    channel: str | None = None
    is_branch: bool = False


class InSession(_Value, frozen=True, kw_only=True, tag="in"):
    """An existing session, which the job continues."""

    session_id: SessionId


class ForkOf(_Value, frozen=True, kw_only=True, tag="fork"):
    """A new branch of an existing session, at that place or at its end."""

    session_id: SessionId
    at: ForkAt | None = None


class Submit(_Value, frozen=True, kw_only=True, tag="submit"):
    """A new job."""

    agent: str
    prompt: str | None = None
    inputs: dict[str, Any] = {}
    options: JobOptions = NO_OPTIONS
    """What this job has other than its agent."""
    session: OwnSession | InSession | ForkOf = OwnSession()
    priority: int = 0
    trigger_type: TriggerType = TriggerType.MANUAL
    trigger_id: str | None = None
    parent_job_id: JobId | None = None
    """The job that has this one do a part of its work."""
    asked_about: JobId | None = None
    """The job that met a limit, when this one is to decide about it."""
    refuses_held: bool = False
    """Refuse the job where a suspended job holds its session and waits for a person, instead of queueing it."""
    dedupe_key: str | None = None
    """Never makes a second job. `RefusedError` for a key that was used for other work."""
    has_own_key: bool = False
    """Whether the key was made for this request alone, so that its job needs no comparing."""


class Retry(_Value, frozen=True, kw_only=True, tag="retry"):
    """The same work once more, as a new job."""

    job_id: JobId
    refuses_held: bool = False
    dedupe_key: str | None = None


class Resume(_Value, frozen=True, kw_only=True, tag="resume"):
    """The same job when it was suspended or interrupted, a new one in its session when it had ended.

    From a checkpoint it is a new job in a branch, unless the job waits right there.
    """

    job_id: JobId
    prompt: str | None = None
    limits: dict[str, int] = {}
    """What it may use from now on, as jobs keep it; limits that are not named stay."""
    at_checkpoint: int | None = None
    refuses_held: bool = False
    dedupe_key: str | None = None


class ResumeSession(_Value, frozen=True, kw_only=True, tag="resume_session"):
    """The job that was suspended or interrupted in the session, else a new one in it."""

    session_id: SessionId
    agent: str | None = None
    """Who continues a session of no agent of the fleet."""
    prompt: str | None = None
    refuses_held: bool = False
    dedupe_key: str | None = None


class RunSchedule(_Value, frozen=True, kw_only=True, tag="run_schedule"):
    """A job of the schedule, now."""

    agent: str
    schedule: str
    refuses_held: bool = False
    dedupe_key: str | None = None


class Cancel(_Value, frozen=True, kw_only=True, tag="cancel"):
    """The end of a job: at once, or by its worker."""

    job_id: JobId


class SetSchedule(_Value, frozen=True, kw_only=True, tag="set_schedule"):
    """Another setting of a schedule than the fleet file's. Exactly one of the last three fields is set."""

    agent: str
    schedule: str
    by: str
    """Who sets it."""
    enabled: bool | None = None
    rule: str | None = None
    reset: bool = False


class ResetAgent(_Value, frozen=True, kw_only=True, tag="reset_agent"):
    """An agent whose error is forgotten."""

    agent: str


class Answer(_Value, frozen=True, kw_only=True, tag="answer"):
    """What a person says to an item of the inbox."""

    item_id: ItemId
    verdict: Verdict
    by: str
    """Who answers."""
    via: str
    """Where the answer was given: `cli`, `api`, `library` ..."""
    text: str | None = None
    input: dict[str, Any] | None = None
    """Other arguments for an approved call."""
    seen_hash: str | None = None
    """What the person was shown (`hash` of the item); an item that has changed since is not answered."""
    limits: dict[str, int] = {}
    """New maxima, for `raise`."""
    link: str | None = None
    """The hash of the answer link by which it was given."""


class Fork(_Value, frozen=True, kw_only=True, tag="fork_session"):
    """A new branch of a session without a job, at that place or at its end."""

    session_id: SessionId
    at: ForkAt | None = None
    name: str | None = None
    """What the branch is called, as in `UpdateSession`."""
    key: str | None = None
    """Never makes a second branch of the session. `RefusedError` for a key that was used for another place."""


class UpdateSession(_Value, frozen=True, kw_only=True, tag="update_session"):
    """A session with another name, or as the one that its agent's next job continues."""

    session_id: SessionId
    name: str | None = None
    """One line of at most 100 characters; an empty one removes the name."""
    is_current: bool = False


class ClearSession(_Value, frozen=True, kw_only=True, tag="clear_session"):
    """A session that is taken away from its agent; its record stays."""

    session_id: SessionId


class UpdateJob(_Value, frozen=True, kw_only=True, tag="update_job"):
    """A job that a program sets to `cancelled`, `failed` or, if it is suspended, `pending`."""

    job_id: JobId
    status: JobStatus
    error: str | None = None
    """Why it failed."""


NewJobRequest = Submit | Retry | Resume | ResumeSession | RunSchedule
"""Requests that start or continue a job of an agent."""
JobRequest = NewJobRequest | Cancel
Request = JobRequest | SetSchedule | ResetAgent | Answer
"""Requests that a command can send to the daemon."""

_decoder: msgspec.json.Decoder[Request] = json_decoder(Request)

KeyedT = TypeVar("KeyedT", bound=NewJobRequest)


def with_key(request: KeyedT, key: str | None) -> KeyedT:
    """Return the request with the dedupe key that a caller's idempotency key means for it."""
    if key is None:
        return request
    return msgspec.structs.replace(request, dedupe_key=f"{_scope(request)}:{key}")


def _scope(request: NewJobRequest) -> str:
    """What a key is for: the same key of another kind of request is another key."""
    match request:
        case Submit():
            return "api"
        case Retry(job_id=job_id):
            return f"retry:{job_id}"
        case Resume(job_id=job_id):
            return f"resume:{job_id}"
        case ResumeSession(session_id=session_id):
            return f"session:{session_id}"
        case RunSchedule(agent=agent, schedule=schedule):
            return f"schedule:{agent}/{schedule}"


def encode_request(request: Request) -> bytes:
    """Return the request as JSON."""
    return msgspec.json.encode(request)


def decode_request(data: bytes) -> Request:
    """Return the request that was sent. `InvalidValueError` for what is no request."""
    try:
        request = _decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise InvalidValueError(f"this is no request: {error}") from error
    if isinstance(request, Submit) and _is_of_a_job(request):
        raise RefusedError("a sender may not set what only jobs give their children")
    return request


def _is_of_a_job(request: Submit) -> bool:
    options = request.options
    is_inner = options.required_caps or options.within or options.follow_up or options.resume_keys
    is_related = request.parent_job_id is not None or request.asked_about is not None
    return bool(is_inner) or is_related or request.trigger_type is not TriggerType.MANUAL
