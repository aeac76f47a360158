"""The version of a `claude`, where its behaviour depends on it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping

KEEPS_OPEN_CALLS = (2, 1, 300)
"""From here on an open call of the transcript is shown to the model when the session is resumed; 2.1.240 drops it."""
PATIENCE_S = 10.0
VERSION = re.compile(rb"(\d+)\.(\d+)\.(\d+)")


def keeps_open_calls(program: str | None, environment: Mapping[str, str]) -> bool:
    """Whether this `claude` shows the model a call without a result when it resumes; False when it is not known."""
    version = version_of(program, environment)
    return version is not None and version >= KEEPS_OPEN_CALLS


def version_of(program: str | None, environment: Mapping[str, str]) -> tuple[int, ...] | None:
    """What `claude --version` says; None when it does not say."""
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, "--version"],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = VERSION.search(done.stdout)
    return tuple(int(number) for number in found.groups()) if found is not None else None
