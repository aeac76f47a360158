"""The version of a `claude`, where its behaviour depends on it."""

from __future__ import annotations

from collections.abc import Mapping

from nightherd.model.readiness import parse_version
from nightherd.runtimes.claude.installation import version_text

KEEPS_OPEN_CALLS = (2, 1, 300)
"""From here on an open call of the transcript is shown to the model when the session is resumed; 2.1.240 drops it."""


def keeps_open_calls(program: str | None, environment: Mapping[str, str]) -> bool:
    """Whether this `claude` shows the model a call without a result when it resumes; False when it is not known."""
    version = parse_version(version_text(program, environment) or "")
    return version is not None and version >= KEEPS_OPEN_CALLS
