"""Problems: every error as one kind of document (RFC 9457), with the same code as the command line's."""

from __future__ import annotations

import traceback
from http import HTTPStatus
from typing import Any, NotRequired, TypedDict

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from nightherd.engine.notifications.links import PATH as LINKS
from nightherd.errors import ConfigInvalidError, NightherdError, StateFileError, code_of
from nightherd.next_step import Action, Advice, NextStep, plain_step

MEDIA_TYPE = "application/problem+json"

WORDS = {
    401: "unauthorized",
    404: "not_found",
    405: "method_not_allowed",
    408: "too_slow",
    413: "too_large",
}
"""Codes of what is refused before anything of ours is asked."""

DISKS = {"ENOSPC": 507, "EDQUOT": 507, "EIO": 503, "EROFS": 503}
"""Statuses of what the system says about a disk that cannot be written."""

REQUESTS = {
    Action.ACCEPT_ITEM: 'POST /v1/inbox/{item}/answers with "verdict": "accept"',
    Action.ANSWER_INBOX_ITEM: 'POST /v1/inbox/{item}/answers with a "verdict"',
    Action.ANSWER_QUESTION: 'POST /v1/inbox/{item}/answers with "verdict": "reply" and a "text"',
    Action.APPLY_JOB: "POST /v1/jobs/{job}/apply",
    Action.MERGE_JOB: "POST /v1/jobs/{job}/merge",
    Action.EXPORT_SESSION: "GET /v1/sessions/{session}/export",
    Action.APPROVE_ITEM: 'POST /v1/inbox/{item}/answers with "verdict": "approve"',
    Action.CANCEL_JOB: "POST /v1/jobs/{job}/cancel",
    Action.DISMISS_ITEM: 'POST /v1/inbox/{item}/answers with "verdict": "dismiss"',
    Action.FOLLOW_JOB: "GET /v1/jobs/{job}/events",
    Action.LIST_CHECKPOINTS: "GET /v1/jobs/{job}/checkpoints",
    Action.LIST_AGENTS: "GET /v1/agents",
    Action.LIST_INBOX: "GET /v1/inbox",
    Action.LIST_JOBS: "GET /v1/jobs",
    Action.LIST_SCHEDULES: "GET /v1/schedules",
    Action.LIST_SESSIONS: "GET /v1/sessions",
    Action.RAISE_ITEM: 'POST /v1/inbox/{item}/answers with "verdict": "raise" and "limits"',
    Action.RAISE_JOB_LIMIT: 'POST /v1/jobs/{job}/resume with "limits": {{"{limit}": "{maximum}"}}',
    Action.REJECT_ITEM: 'POST /v1/inbox/{item}/answers with "verdict": "reject"',
    Action.REPLY_ITEM: 'POST /v1/inbox/{item}/answers with "verdict": "reply" and a "text"',
    Action.RESUME_JOB: "POST /v1/jobs/{job}/resume",
    Action.RESUME_JOB_WITH_PROMPT: 'POST /v1/jobs/{job}/resume with a "prompt"',
    Action.RESUME_SESSION_AS: 'POST /v1/sessions/{session}/resume with an "agent"',
    Action.RESUME_SESSION_WITH_PROMPT: 'POST /v1/sessions/{session}/resume with a "prompt"',
    Action.RETRY_ITEM: 'POST /v1/inbox/{item}/answers with "verdict": "retry"',
    Action.RETRY_JOB: "POST /v1/jobs/{job}/retry",
    Action.RUN: "POST /v1/jobs",
    Action.RUN_IN_BRANCH: 'POST /v1/jobs with "branch": true',
    Action.RUN_IN_CHANNEL: 'POST /v1/jobs with a "channel"',
    Action.RUN_IN_SESSION: 'POST /v1/jobs with "resume"',
    Action.RUN_WITH_PROMPT: 'POST /v1/jobs with a "prompt"',
    Action.LIST_WORKSPACES: "GET /v1/workspaces",
    Action.LIST_RUNS: "GET /v1/runs",
    Action.LIST_WORKFLOWS: "GET /v1/workflows",
    Action.SHOW_RUN: "GET /v1/runs/{run}",
    Action.SHOW_WORKFLOW: "GET /v1/workflows/{workflow}",
    Action.CANCEL_RUN: "POST /v1/runs/{run}/cancel",
    Action.RUN_WORKFLOW: "POST /v1/workflows/{workflow}/runs",
    Action.RETRY_RUN: "POST /v1/runs/{run}/retry",
    Action.FOLLOW_RUN: "GET /v1/runs/{run}/events",
    Action.FORK_RUN: 'POST /v1/runs/{run}/fork with "at"',
    Action.RAISE_RUN_LIMIT: 'POST /v1/runs/{run}/raise with "limits"',
    Action.RESUME_RUN: "POST /v1/runs/{run}/resume",
    Action.SIGNAL_RUN: 'POST /v1/runs/{run}/signal with "event": "{event}"',
    Action.ENABLE_WORKFLOW: 'PATCH /v1/workflows/{workflow} with "enabled": true',
    Action.SHOW_DIFF: "GET /v1/jobs/{job}/diff",
    Action.SHOW_WORKSPACE: "GET /v1/workspaces/{workspace}",
    Action.SHOW_EVENTS: "GET /v1/jobs/{job}/events",
    Action.SHOW_INBOX_ITEM: "GET /v1/inbox/{item}",
    Action.SHOW_JOB: "GET /v1/jobs/{job}",
    Action.SHOW_STATUS: "GET /v1/status",
}
"""The API's request for each action that it has one for."""


class NextStepRow(TypedDict):
    """An action that helps, and what it is about."""

    action: Action
    agent: NotRequired[str]
    job: NotRequired[str]
    session: NotRequired[str]
    item: NotRequired[str]
    limit: NotRequired[str]
    maximum: NotRequired[str]
    workspace: NotRequired[str]
    run: NotRequired[str]
    workflow: NotRequired[str]
    event: NotRequired[str]


class ProblemPart(TypedDict):
    """One of several things that are wrong, and where."""

    message: str
    path: str
    hint: NotRequired[str | None]


class ProblemDocument(TypedDict):
    """What went wrong (RFC 9457), and what to do about it."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    hint: str | None
    next: NotRequired[NextStepRow | None]
    alternatives: NotRequired[list[NextStepRow]]
    problems: NotRequired[list[ProblemPart]]


def problem(
    status: int, code: str, detail: str, *, hint: str | None = None, **more: Any
) -> Response:
    """An answer that says what went wrong."""
    document = {
        "type": f"urn:nightherd:error:{code}",
        "title": phrase(status),
        "status": status,
        "detail": detail,
        "code": code,
        "hint": hint,
        **more,
    }
    return Response(msgspec.json.encode(document), status, media_type=MEDIA_TYPE)


JSON = "application/json"


def is_answer_link(path: str) -> bool:
    """Whether the path is a link that answers an inbox item, and so a secret."""
    return path.startswith(LINKS)


def phrase(status: int) -> str:
    """What a status is called."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"


def install(app: FastAPI) -> None:
    """Answer every error of `app` with a problem."""
    app.add_exception_handler(NightherdError, _own)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _foreign)
    app.add_exception_handler(Exception, _unexpected)


def problem_of(error: NightherdError) -> Response:
    """An error of ours as an answer."""
    more: dict[str, Any] = {}
    if isinstance(error, ConfigInvalidError):
        more["problems"] = [
            {"message": one.message, "path": one.path, "hint": one.hint} for one in error.problems
        ]
    more["next"] = None if error.next_step is None else _step_document(error.next_step)
    if error.alternatives:
        more["alternatives"] = [_step_document(step) for step in error.alternatives]
    return problem(status_of(error), code_of(error), error.message, hint=_hint_of(error), **more)


def _hint_of(error: NightherdError) -> str | None:
    """Return what a client can do about an error: its hint, its requests, or both."""
    step = error.next_step
    if step is not None and (error.hint is None or step.action in REQUESTS):
        first = Advice(error.hint, step).text(request_for)
    else:
        first = error.hint
    others = [request_for(step) for step in error.alternatives]
    return "; or: ".join(filter(None, [first, *others])) or None


def _step_document(step: NextStep) -> dict[str, str]:
    return {name: value for name, value in step._asdict().items() if value}


def request_for(step: NextStep) -> str:
    """Return the request that takes a step; plain words for a step that the API does not have."""
    pattern = REQUESTS.get(step.action)
    if pattern is None:
        return plain_step(step)
    return pattern.format(
        job=step.job or "{job}",
        session=step.session or "{session}",
        item=step.item or "{item}",
        limit=step.limit or "{limit}",
        maximum=step.maximum or "{maximum}",
        workspace=step.workspace or "{workspace}",
        run=step.run or "{run}",
        workflow=step.workflow or "{workflow}",
        event=step.event or "{event}",
    )


def status_of(error: NightherdError) -> int:
    """Return the status of an error: a full or failing disk is not the client's error, and may pass."""
    if isinstance(error, StateFileError) and error.code is not None:
        return DISKS.get(error.code, type(error).http_status)
    return type(error).http_status


async def _own(request: Request, error: Exception) -> Response:
    assert isinstance(error, NightherdError)  # noqa: S101 (registered for that class)
    return problem_of(error)


async def _malformed(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 (registered for that class)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON and any(one["loc"] == ("body",) for one in error.errors()):
        said = f"the body is {kind or 'without a content type'}; it must be {JSON}"
        return problem(415, "malformed", said, hint=f"curl -H 'content-type: {JSON}' ...")
    found = [
        {"path": ".".join(str(step) for step in one["loc"]), "message": str(one["msg"])}
        for one in error.errors()
    ]
    said = "; ".join(f"{one['path']}: {one['message']}" for one in found[:3])
    return problem(422, "malformed", said or "the request cannot be understood", problems=found)


async def _foreign(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 (registered for that class)
    answer = problem(error.status_code, WORDS.get(error.status_code, "refused"), str(error.detail))
    for name, value in (error.headers or {}).items():
        answer.headers[name] = value
    return answer


async def _unexpected(request: Request, error: Exception) -> Response:
    where = "".join(traceback.format_exception(error)).rstrip()
    path = LINKS if is_answer_link(request.url.path) else request.url.path
    request.app.state.site.report(f"{request.method} {path}: {where}")
    return problem(500, "unexpected", f"something went wrong: {type(error).__name__}")
