"""What other programs of this machine say about it."""

from __future__ import annotations

import shutil
import subprocess

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
