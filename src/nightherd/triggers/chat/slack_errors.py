"""What Slack answers, sorted: what may pass, what is refused for good, and when the bot itself is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec

from nightherd.errors import ChatRefusedError
from nightherd.ports.chat import PostResult

REFUSING = frozenset(
    {
        "invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired",
        "user_removed_from_team", "not_allowed_token_type", "app_uninstalled", "invalid_app_id",
    }
)  # fmt: skip
"""The token is worth nothing: trying again changes nothing."""
PASSING = frozenset(
    {
        "internal_error", "fatal_error", "request_timeout", "service_unavailable", "ratelimited", "rate_limited",
        "team_added_to_org", "accesslimited", "two_factor_setup_required", "org_login_required", "http_error",
        "unreachable", "no_answer", "not_json", "message_limit_exceeded",
    }
)  # fmt: skip
"""The same request may be taken later. What is neither here nor in `REFUSING` would be refused again."""
UNCERTAIN = frozenset({"internal_error", "fatal_error", "request_timeout", "no_answer", "not_json"})
"""Slack may have done it all the same."""
PAUSE_WITHOUT_TIME = timedelta(seconds=30)
"""How long Slack is left alone when it asks for that without saying how long."""

_CODE = re.compile(r"[a-z][a-z0-9_]{0,79}")
_SCOPES = re.compile(r"[a-z0-9.:,_ -]{1,200}")
_ADVICE = {
    "not_in_channel": "invite the bot to the channel",
    "channel_not_found": "the bot is not in the channel, or there is none with that id",
    "is_archived": "the channel is archived",
    "messages_tab_disabled": "allow messages in the app's settings (App Home)",
    "message_not_found": "the message was deleted",
    "unreachable": "Slack cannot be reached",
    "no_answer": "the connection was lost before Slack answered",
    "http_error": "Slack answers with a server error",
    "not_json": "the answer is not Slack's",
}
_WHY_REFUSED = {
    "token_revoked": "the token was revoked",
    "app_uninstalled": "the app was uninstalled",
    "account_inactive": "the app was uninstalled, or its workspace is gone",
    "token_expired": "the token has expired",
    "not_allowed_token_type": "it is a token of another kind",
    "missing_scope": "the token lacks a scope",
}


class SlackAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one call of the Web API."""

    data: Mapping[str, Any] = msgspec.field(default_factory=dict)
    error: str | None = None
    """Slack's code for what went wrong, or one of ours; None when it was done."""
    needed: str | None = None
    """The scopes that are missing."""
    retry_after: timedelta | None = None
    is_uncertain: bool = False
    """Whether it may have been done all the same."""

    @property
    def is_ok(self) -> bool:
        """Whether it was done."""
        return self.error is None

    @property
    def is_refusing(self) -> bool:
        """Whether Slack refuses the token, and not only this request."""
        return self.error in REFUSING

    @property
    def is_permanent(self) -> bool:
        """Whether the same request would be refused again, while the token is accepted."""
        return self.error is not None and self.error not in PASSING | REFUSING

    @property
    def reason(self) -> str:
        """What went wrong, for people."""
        code = self.error or "ok"
        if self.needed is not None:
            return f"Slack: {code} (add the scope {self.needed} and install the app again)"
        advice = _ADVICE.get(code) or _WHY_REFUSED.get(code)
        return f"Slack: {code}" if advice is None else f"Slack: {code} ({advice})"


def answer_of(data: object, status: int, headers: Mapping[str, str]) -> SlackAnswer:
    """Sort what a request was answered with."""
    if status == 429:
        return SlackAnswer(error="ratelimited", retry_after=_pause(headers))
    if not isinstance(data, Mapping) or not isinstance(data.get("ok"), bool):
        error = "http_error" if status >= 400 else "not_json"
        return SlackAnswer(error=error, is_uncertain=status >= 500 or status < 400)
    if data["ok"] and status < 400:
        return SlackAnswer(data=data)
    code = data.get("error")
    error = code if isinstance(code, str) and _CODE.fullmatch(code) else "unknown_error"
    needed = data.get("needed")
    is_limit = error in ("ratelimited", "rate_limited", "message_limit_exceeded")
    return SlackAnswer(
        data=data,
        error=error,
        needed=needed if isinstance(needed, str) and _SCOPES.fullmatch(needed) else None,
        retry_after=_pause(headers) if is_limit else None,
        is_uncertain=error in UNCERTAIN,
    )


def post_result(answer: SlackAnswer, message_id: str | None = None) -> PostResult:
    """Return what an answer means for a post. Nothing is lost for good while only the token is refused."""
    if answer.is_ok:
        return PostResult(message_id=message_id)
    return PostResult(
        error=answer.reason,
        is_permanent=answer.is_permanent,
        is_uncertain=answer.is_uncertain,
        retry_after=answer.retry_after,
    )


def refusal(answer: SlackAnswer, variable: str) -> ChatRefusedError:
    """Return the error of a bot whose token in `variable` is not accepted."""
    why = _WHY_REFUSED.get(answer.error or "", "the token is not accepted")
    if answer.needed is not None:
        why = f"the token lacks the scope {answer.needed}"
    return ChatRefusedError(
        f"Slack refuses the bot ({answer.error}): {why}",
        hint=f"set {variable} to a valid token of the Slack app (docs/guide/slack.md)",
    )


def _pause(headers: Mapping[str, str]) -> timedelta:
    said = next((value for name, value in headers.items() if name.lower() == "retry-after"), "")
    if not said.isdecimal() or len(said) > 7:
        return PAUSE_WITHOUT_TIME
    return timedelta(seconds=max(int(said), 1))
