"""Where Claude keeps the transcripts of sessions: a folder for each working directory."""

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
    expected = expected_path(environment, directory, uuid)
    if expected.exists():
        return expected
    # A session stays where it began until it is continued from another directory.
    elsewhere = sorted(_projects(environment).glob(f"*/{uuid}.jsonl"))
    return elsewhere[0] if elsewhere else expected


def expected_path(environment: Mapping[str, str], directory: str, uuid: str) -> Path:
    """Where Claude looks first when it is started in the directory; older versions look nowhere else."""
    return _projects(environment) / slug_of(directory) / f"{uuid}.jsonl"


def _projects(environment: Mapping[str, str]) -> Path:
    return config_directory(environment) / "projects"
