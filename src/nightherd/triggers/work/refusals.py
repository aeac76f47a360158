"""What an answer of GitHub that is not a success means: wait until a time, a token that lacks something, a missing repository."""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import parsedate_to_datetime

import msgspec

from nightherd.decoding import decode_json
from nightherd.errors import WorkSourceError
from nightherd.model.text import neutralise, shorten
from nightherd.model.work.source import SourceStatus, WorkSource
from nightherd.triggers.work.http import HttpAnswer

SECONDARY_S = 60.0
"""How long to wait after a secondary limit that names no time, as GitHub asks."""
TOKEN_S = 300.0
"""How long to wait where there is no token, or none that is accepted: a person has to put it right."""
LONGEST_S = 24 * 3600.0
"""No tracker means to be left alone for longer: a longer time is taken as that."""
MESSAGE_LIMIT = 120
REDIRECTS = frozenset({301, 302, 303, 307, 308})


class _Message(msgspec.Struct):
    message: str = ""


def refusal(answer: HttpAnswer, source: WorkSource, what: str) -> WorkSourceError:
    """Return why GitHub did not do `what`."""
    said = _message(answer.body)
    words = f" ({said})" if said else ""
    status = answer.status
    wait_s = _wait_s(answer, said)
    if wait_s is not None:
        message = f"GitHub limits requests about {source.repo}{words}"
        return WorkSourceError(message, kind=SourceStatus.LIMITED, wait_s=wait_s)
    if status == 401:
        message = f"GitHub does not accept the token in {source.token_env}{words}"
        return WorkSourceError(message, kind=SourceStatus.REFUSED, wait_s=TOKEN_S)
    if status == 403:
        message = f"the token in {source.token_env} may not {what} of {source.repo}{words}"
        return WorkSourceError(message, kind=SourceStatus.REFUSED)
    if status in REDIRECTS:
        message = f"GitHub has {source.repo} under another name; write that as 'repo'"
        return WorkSourceError(message, kind=SourceStatus.MISSING)
    if status == 410:
        message = f"GitHub could not {what} of {source.repo}: they are switched off, or gone{words}"
        return WorkSourceError(message, kind=SourceStatus.MISSING)
    if status == 404:
        message = (
            f"GitHub knows no repository {source.repo}, or the token in {source.token_env}"
            f" may not see it (could not {what})"
        )
        return WorkSourceError(message, kind=SourceStatus.MISSING)
    if status in (400, 409, 422):
        message = f"GitHub refuses to {what} of {source.repo}: {status}{words}"
        return WorkSourceError(message, kind=SourceStatus.REFUSED)
    after = _number(answer.headers, "retry-after")
    return WorkSourceError(
        f"GitHub could not {what} of {source.repo}: {status}{words}",
        wait_s=None if after is None else _bounded(after),
    )


def _wait_s(answer: HttpAnswer, said: str) -> float | None:
    """How long GitHub wants to be left alone; None where it does not say that."""
    if answer.status not in (403, 429):
        return None
    after = _number(answer.headers, "retry-after")
    if after is not None:
        return _bounded(after)
    if answer.headers.get("x-ratelimit-remaining", "").strip() == "0":
        reset = _number(answer.headers, "x-ratelimit-reset")
        now = _server_time(answer.headers)
        if reset is not None and now is not None:
            # By the server's own clock: ours may be wrong.
            return _bounded(reset - now + 1)
        return SECONDARY_S
    lowered = said.lower()
    is_limit = "rate limit" in lowered or "abuse" in lowered
    return SECONDARY_S if answer.status == 429 or is_limit else None


def _bounded(seconds: float) -> float:
    return min(max(seconds, 1.0), LONGEST_S)


def _number(headers: Mapping[str, str], name: str) -> float | None:
    text = headers.get(name, "").strip()
    return float(text) if text.isascii() and text.isdigit() and len(text) < 12 else None


def _server_time(headers: Mapping[str, str]) -> float | None:
    try:
        return parsedate_to_datetime(headers["date"]).timestamp()
    except (KeyError, ValueError, TypeError):
        return None


def _message(body: bytes) -> str:
    """What the answer says, on one line and short."""
    try:
        said = decode_json(body[:65_536], _Message).message
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""
    return shorten(" ".join(neutralise(said).split()), MESSAGE_LIMIT)
