"""What other programs of this machine say about it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator

from nightherd.host.process import PROC, stat_fields

ANSWER_S = 5.0


def git_version() -> str | None:
    """What `git --version` prints; None where there is no git."""
    return _said("git", "--version")


def is_clock_synchronised() -> bool | None:
    """Whether systemd keeps the clock right; None where nothing tells."""
    return _is_yes(_said("timedatectl", "show", "--property=NTPSynchronized", "--value"))


def is_lingering(user: str) -> bool | None:
    """Whether the user's services run while nobody is logged in; None where nothing tells."""
    return _is_yes(_said("loginctl", "show-user", user, "--property=Linger", "--value"))


def _is_yes(answer: str | None) -> bool | None:
    """What systemd's tools answer; None for neither yes nor no."""
    return {"yes": True, "no": False}.get(answer or "")


def _said(*words: str) -> str | None:
    program = shutil.which(words[0])
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, *words[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=ANSWER_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


EXECUTION_MARK = "NIGHTHERD_EXECUTION"
HOOK_MARK = "NIGHTHERD_HOOK_EVENT"
"""In the environment of hooks, which are the operator's own commands."""
PARENT = 1
"""Place in /proc/<pid>/stat, counted after the name."""
MOST_ANCESTORS = 1_000


def find_agent_above(pid: int, directory: str) -> str | None:
    """Return the mark of the agent that started `pid`, of the state directory with this identity; None for a person."""
    marks = [_environment(one) for one in _line(pid)]
    if not marks:
        marks = [dict(os.environ)] if pid == os.getpid() else []
    for variables in marks:
        mark = variables.get(EXECUTION_MARK)
        if mark is None or HOOK_MARK in variables:
            continue
        execution, separator, owner = mark.partition("@")
        if not separator or owner == directory:
            return execution
    return None


def _line(pid: int) -> Iterator[int]:
    """The process and those above it."""
    for _ in range(MOST_ANCESTORS):
        fields = stat_fields(pid)
        if fields is None:
            return
        yield pid
        pid = int(fields[PARENT])
        if pid <= 1:
            return


def _environment(pid: int) -> dict[str, str]:
    """What the process was started with; empty when it is gone or another person's."""
    try:
        entries = (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    pairs = (os.fsdecode(entry).partition("=") for entry in entries)
    return {name: value for name, _, value in pairs}
