"""Where Claude keeps the transcripts of its sessions, by its own rules."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path

NOT_IN_SLUG = re.compile(r"[^a-zA-Z0-9]")
LONGEST_SLUG = 200


def config_directory(environment: Mapping[str, str]) -> Path:
    """Claude's own directory, for a process with this environment."""
    given = environment.get("CLAUDE_CONFIG_DIR")
    if given:
        return Path(given)
    return Path(environment.get("HOME") or Path.home()) / ".claude"


def slug_of(directory: str) -> str:
    """What Claude calls the folder of a working directory.

    It shortens long ones in a way of its own; they are cut here. A session is found by its id in any folder.
    """
    path = unicodedata.normalize("NFC", os.path.realpath(directory))
    return NOT_IN_SLUG.sub("-", path)[:LONGEST_SLUG]


def transcript_path(environment: Mapping[str, str], directory: str, uuid: str) -> Path:
    """Where Claude's transcript of the session is, or would be looked for if there were one."""
    projects = config_directory(environment) / "projects"
    expected = projects / slug_of(directory) / f"{uuid}.jsonl"
    if expected.exists():
        return expected
    # A session stays where it began, also when it is gone on with from another directory.
    elsewhere = sorted(projects.glob(f"*/{uuid}.jsonl"))
    return elsewhere[0] if elsewhere else expected
