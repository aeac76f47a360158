"""Which variables an agent in a container gets: what it was given, and nothing of the worker's besides."""

from __future__ import annotations

from collections.abc import Mapping

from nightherd.model.containers.mounts import HOME

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LOCALE = ("LANG", "LC_ALL", "TZ")
LOGIN_PREFIXES = ("ANTHROPIC_", "CLAUDE_CODE_USE_", "CLAUDE_CODE_OAUTH_", "CLAUDE_CODE_SKIP_")
"""How Claude logs in, and where. Only Claude's own runtimes get it: the others ask their model from outside."""
TOKEN = "CLAUDE_CODE_OAUTH_TOKEN"  # noqa: S105 the name of a variable
LOGINS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", TOKEN)


def variables_inside(
    worker: Mapping[str, str],
    given: Mapping[str, str],
    *,
    path: str | None = None,
    has_login: bool = False,
    access_token: str | None = None,
) -> dict[str, str]:
    """The environment of processes inside.

    `worker` is the environment agents have outside, `given` what the fleet file gives this one, `path` that of the image.
    With `has_login`, Claude's login is added, and `access_token` where there is no other.
    """
    inside = {"HOME": HOME, "PATH": path or PATH, "TERM": "dumb", "TMPDIR": "/tmp"}  # noqa: S108 inside
    inside |= {name: worker[name] for name in LOCALE if name in worker}
    if has_login:
        inside |= {name: worker[name] for name in worker if name.startswith(LOGIN_PREFIXES)}
    inside |= given
    uses_cloud = any(name.startswith("CLAUDE_CODE_USE_") for name in inside)
    if has_login and access_token and not uses_cloud and not any(map(inside.get, LOGINS)):
        inside[TOKEN] = access_token
    return inside
