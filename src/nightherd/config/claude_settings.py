"""Claude's own settings files in a working directory: which an agent obeys, and what they say, as fingerprints."""

from __future__ import annotations

import hashlib
from pathlib import Path

from nightherd.config.capabilities import CLAUDE
from nightherd.model.agent import Agent

SETTINGS_FILES = {
    "project": (".claude/settings.json", ".mcp.json"),
    "local": (".claude/settings.local.json",),
}
"""By the source that has Claude read them. They can hold hooks, which run commands."""


def settings_files(agent: Agent) -> tuple[str, ...]:
    """The settings files in its working directory that the agent obeys, there or not."""
    if agent.runtime not in CLAUDE:
        return ()
    named = (name for source in agent.setting_sources for name in SETTINGS_FILES.get(source, ()))
    return tuple(f"{agent.working_directory}/{name}" for name in named)


def settings_fingerprints(agent: Agent) -> dict[str, str]:
    """What those say that are there, by their names in the working directory."""
    found = {}
    for path in settings_files(agent):
        name = path.removeprefix(f"{agent.working_directory}/")
        try:
            found[name] = hashlib.sha256(Path(path).read_bytes()).hexdigest()[:32]
        except FileNotFoundError:
            continue
        except OSError as error:
            found[name] = f"error {error.errno}"
    return found
