"""Login: the account or key that an agent's requests are charged to, named without the secret itself.

Rate limits belong to a login: agents that share one share its limits. A name is made of the kind of login and a
hash, so it can stand on record.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from hashlib import sha256

import msgspec

from nightherd.model.agents.agent import Agent
from nightherd.model.agents.runtime import LoginKind
from nightherd.model.ids import JobId
from nightherd.model.journal.system import Suspension
from nightherd.model.text import ShowTime, time_text

CLOUDS = {
    "CLAUDE_CODE_USE_BEDROCK": ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_BEARER_TOKEN_BEDROCK"),
    "CLAUDE_CODE_USE_VERTEX": ("ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_APPLICATION_CREDENTIALS"),
    "CLAUDE_CODE_USE_FOUNDRY": ("ANTHROPIC_FOUNDRY_RESOURCE", "ANTHROPIC_FOUNDRY_API_KEY"),
}
"""Switches of Claude Code for other providers, and the variables that name the account there."""
KEYS = (
    ("ANTHROPIC_AUTH_TOKEN", "anthropic-token"),
    ("ANTHROPIC_API_KEY", "anthropic-key"),
    ("CLAUDE_CODE_OAUTH_TOKEN", "claude-token"),
)
"""The variables that Claude Code takes credentials from, the first that is set counts, and the kind of login."""
OFF = frozenset({"", "0", "false"})
VARIABLES = {"openai-chat": "OPENAI", "openai-responses": "OPENAI", "cohere": "CO"}
"""How a provider's variables begin where that is not its name."""
FAMILIES = ("opus", "sonnet", "haiku")
"""Families of models that a subscription may limit by themselves."""
FAMILY_LIMIT = re.compile(r"^seven_day_([a-z]+)$")
HASH_LENGTH = 12


def login_of(agent: Agent, environment: Mapping[str, str]) -> str | None:
    """Return the name of the login that the agent's jobs use; None where no limit can belong to one.

    An agent with a fallback model may use the keys of two providers, and a script uses none.
    """
    if agent.runtime.login is LoginKind.CLAUDE:
        return _claude_login(environment)
    if agent.runtime.login is LoginKind.NONE or agent.script is not None:
        return None
    if agent.model is None or agent.fallback_model is not None:
        return None
    provider, colon, _ = agent.model.partition(":")
    return _provider_login(provider, environment) if colon else None


def limits_that_stop(agent: Agent, login: str | None) -> tuple[str, ...]:
    """Return the ids of the limits that stop a job of the agent: the login's own first, then those of its models."""
    if login is None:
        return ()
    if agent.runtime.login is not LoginKind.CLAUDE:
        return (login,)
    words = FAMILIES if agent.model is None else re.findall("[a-z]+", agent.model.lower())
    return (login, *(limit_id(login, f"seven_day_{word}") for word in dict.fromkeys(words)))


def limit_id(login: str, limit: str | None) -> str:
    """Return the id of a limit of the login, by the provider's name of it."""
    family = FAMILY_LIMIT.match(limit) if limit is not None else None
    return login if family is None else f"{login}/{family[1]}"


def _claude_login(environment: Mapping[str, str]) -> str:
    for switch, names in CLOUDS.items():
        if environment.get(switch, "").lower() not in OFF:
            kind = switch.rpartition("_")[2].lower()
            return _named(kind, *(environment.get(name, "") for name in names))
    for variable, kind in KEYS:
        if environment.get(variable):
            return _named(kind, environment[variable], environment.get("ANTHROPIC_BASE_URL", ""))
    home = environment.get("HOME", "")
    return _named("claude-login", environment.get("CLAUDE_CONFIG_DIR") or f"{home}/.claude")


def _provider_login(provider: str, environment: Mapping[str, str]) -> str | None:
    prefix = VARIABLES.get(provider, provider.upper().replace("-", "_"))
    key = environment.get(f"{prefix}_API_KEY")
    if not key:
        return None
    return _named(f"{prefix.lower()}-key", key, environment.get(f"{prefix}_BASE_URL", ""))


def _named(kind: str, *secrets: str) -> str:
    digest = sha256("\0".join((kind, *secrets)).encode()).hexdigest()
    return f"{kind}:{digest[:HASH_LENGTH]}"


STAGGER = timedelta(seconds=5)
"""How far apart jobs of a login start once its limit has reset."""
RECOVERY = timedelta(minutes=5)
"""How long after the reset they do."""


class LoginLimit(msgspec.Struct, frozen=True, kw_only=True):
    """A limit's row. It stays when the limit is over, and is replaced when it is hit again."""

    id: str
    """The login, or `LOGIN/FAMILY` for a limit of one family of models (model/limits/login.py)."""
    until: datetime
    next_start_at: datetime
    """Before this no job of the login starts: `until`, and after the reset a moment after the last start."""
    recorded_at: datetime
    job_id: JobId | None = None
    """The job that hit it."""
    name: str | None = None
    """The provider's name of the limit: `five_hour`, `seven_day` ..."""


def limit_of(stop: Suspension, job_id: JobId, at: datetime) -> LoginLimit | None:
    """Return the row of the limit that the job is suspended for; None when the limit stops no other job."""
    if stop.login_limit is None or stop.until is None:
        return None
    return LoginLimit(
        id=stop.login_limit,
        until=stop.until,
        next_start_at=stop.until,
        recorded_at=at,
        job_id=job_id,
        name=stop.limit,
    )


def text_of(limit: LoginLimit, show_time: ShowTime = time_text) -> str:
    """Say until when the login is limited."""
    until = show_time(limit.until)
    return f"rate limited until {until}" + (f" ({limit.name})" if limit.name else "")


def stopping(limits: Iterable[LoginLimit | None], at: datetime) -> LoginLimit | None:
    """Return the limit that stops a job from starting at `at`, the longest one; None when none does."""
    active = [limit for limit in limits if limit is not None and limit.next_start_at > at]
    return max(active, key=lambda one: (one.until, one.next_start_at), default=None)
