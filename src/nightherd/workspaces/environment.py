"""The environment of a git command: built from scratch, so that nothing of a shell or of an agent decides what runs.

Hooks, fsmonitor and lazy fetches are off, whatever a repository's configuration says. Where credentials are needed,
the user's own configuration is read as well.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

import msgspec

OVERRIDES = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.pager": "cat",
    "gc.auto": "0",
    "maintenance.auto": "false",
    # Milliseconds that refs are waited for: jobs of one repository move theirs at the same time.
    "core.filesRefLockTimeout": "5000",
    "core.packedRefsTimeout": "10000",
    # Safe here: nothing that a repository's configuration names is executed.
    "safe.directory": "*",
    # Hooks in configuration files, git 2.54 and later.
    "hook.reference-transaction.enabled": "false",
    "hook.post-checkout.enabled": "false",
    "hook.post-index-change.enabled": "false",
}
ALLOWED_PROTOCOLS = "file:git:http:https:ssh"
CREDENTIAL_VARIABLES = (
    *("HOME", "USER", "LOGNAME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"),
    *("SSH_AUTH_SOCK", "SSH_AGENT_PID", "SSL_CERT_FILE", "SSL_CERT_DIR", "KRB5CCNAME"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
)
"""What git, ssh and credential helpers read. No `GIT_*`: those of a shell are for another repository."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Which repository, files and index a command works on. All paths are absolute."""

    git_dir: str | None = None
    """None only to look for the repository that `directory` is in."""
    work_tree: str | None = None
    index: str | None = None
    objects: str | None = None
    """Another directory of objects than that of `git_dir`; its own alternates apply."""
    alternates: Sequence[str] = ()
    """More directories of objects to read from."""
    directory: str | None = None
    """Where the command runs; None for the work tree, else `git_dir`."""
    is_ours: bool = False
    """Whether `git_dir` is a store: its configuration is our own."""


def environment(
    place: Place, *, needs_credentials: bool = False, hooks: Collection[str] = ()
) -> dict[str, str]:
    """Return the variables of a command. `hooks` are those that the repository's configuration names."""
    variables = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        **_settings(hooks),
    }
    if needs_credentials:
        known = {name: os.environ[name] for name in CREDENTIAL_VARIABLES if name in os.environ}
        variables |= {**known, "GIT_ALLOW_PROTOCOL": ALLOWED_PROTOCOLS}
    else:
        variables |= {
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            # An object that a partial clone lacks is an error here, not a request that a repository words.
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_ALLOW_PROTOCOL": "none",
        }
    named = {
        "GIT_DIR": place.git_dir,
        "GIT_WORK_TREE": place.work_tree,
        "GIT_INDEX_FILE": place.index,
        "GIT_OBJECT_DIRECTORY": place.objects,
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": ":".join(map(_quoted, place.alternates)) or None,
    }
    return variables | {name: value for name, value in named.items() if value is not None}


def _settings(hooks: Collection[str]) -> dict[str, str]:
    """Settings that win over every configuration file."""
    variables = {"GIT_CONFIG_COUNT": str(len(OVERRIDES))}
    for number, (key, value) in enumerate(OVERRIDES.items()):
        variables[f"GIT_CONFIG_KEY_{number}"] = key
        variables[f"GIT_CONFIG_VALUE_{number}"] = value
    if hooks:
        # Of several commands of a hook the last one counts, and that is this one.
        off = (f"{_shell_quoted(f'hook.{name}.command')}='true'" for name in hooks)
        variables["GIT_CONFIG_PARAMETERS"] = " ".join(off)
    return variables


def _shell_quoted(text: str) -> str:
    """Text in the quotes that git expects in `GIT_CONFIG_PARAMETERS`."""
    return "'" + text.replace("'", r"'\''").replace("!", r"'\!'") + "'"


def _quoted(path: str) -> str:
    """A directory in a list of alternates, which are separated by colons."""
    if ":" not in path and not path.startswith('"'):
        return path
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
