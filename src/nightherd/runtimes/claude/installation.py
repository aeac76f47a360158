"""The version of a `claude`, where its behaviour depends on it."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from nightherd.model.doctor import CLEANUP_DAYS, OLDEST_TESTED, ClaudeFacts, parse_version
from nightherd.runtimes.claude.transcripts.places import config_directory


class InstalledClaude(msgspec.Struct, frozen=True, kw_only=True):
    """A `claude` that is not found on this machine's PATH: the one in a container."""

    program: str
    """Its path or name there."""
    version: str | None


KEEPS_OPEN_CALLS = (2, 1, 300)
"""From here on an open call of the transcript is shown to the model when the session is resumed; 2.1.240 drops it."""


def can_defer(version: str | None) -> bool:
    """Whether a `claude` of this version can put off a call: every tested version can, others are not trusted to."""
    known = parse_version(version or "")
    return known is not None and known >= OLDEST_TESTED


def keeps_open_calls(version: str | None) -> bool:
    """Whether this `claude` shows the model a call without a result when it resumes; False when it is not known."""
    known = parse_version(version or "")
    return known is not None and known >= KEEPS_OPEN_CALLS


PROGRAM = "claude"
VERSION_S = 20.0
"""How long `claude --version` may take."""
API_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
CLOUDS = {
    "CLAUDE_CODE_USE_BEDROCK": "Amazon Bedrock",
    "CLAUDE_CODE_USE_VERTEX": "Google Vertex AI",
    "CLAUDE_CODE_USE_FOUNDRY": "Microsoft Foundry",
}
TOKEN = "CLAUDE_CODE_OAUTH_TOKEN"  # noqa: S105 the name of a variable


def claude_facts(runtime: str, environment: Mapping[str, str]) -> ClaudeFacts:
    """What is known about the `claude` that `runtime` uses, in the environment of agents."""
    program = bundled_program() if runtime == "sdk" else program_on_path(environment)
    home = config_directory(environment)
    settings = _read(home / "settings.json")
    login, is_subscription = _login(environment, home, settings)
    days = settings.get("cleanupPeriodDays")
    has_days = isinstance(days, int)
    return ClaudeFacts(
        program=program,
        version=version_text(program, environment),
        login=login,
        is_subscription=is_subscription,
        cleanup_days=days if isinstance(days, int) else CLEANUP_DAYS,
        settings_file=str(home / "settings.json") if has_days else None,
    )


def version_text(program: str | None, environment: Mapping[str, str]) -> str | None:
    """What `--version` prints, without what stands behind the number; None when it prints nothing."""
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, "--version"],
            env={**environment, "DISABLE_AUTOUPDATER": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=VERSION_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = done.stdout.split()
    return words[0] if done.returncode == 0 and words else None


def program_on_path(environment: Mapping[str, str]) -> str | None:
    """The program that a shell would run."""
    return shutil.which(PROGRAM, path=environment.get("PATH", os.defpath))


def bundled_program() -> str | None:
    """The program inside the SDK's package."""
    spec = importlib.util.find_spec("claude_agent_sdk")
    places = spec.submodule_search_locations if spec is not None else None
    programs = [Path(place) / "_bundled" / PROGRAM for place in places or []]
    return next((str(program) for program in programs if program.exists()), None)


def _login(
    environment: Mapping[str, str], home: Path, settings: Mapping[str, Any]
) -> tuple[str | None, bool]:
    """How Claude would log in, in its own order, and whether that is a subscription."""
    for variable, cloud in CLOUDS.items():
        if environment.get(variable) not in (None, "", "0", "false"):
            return f"{cloud} ({variable})", False
    for variable in API_KEYS:
        if environment.get(variable):
            return f"API key ({variable})", False
    if settings.get("apiKeyHelper"):
        return "API key (apiKeyHelper of Claude's settings)", False
    if environment.get(TOKEN):
        return f"subscription ({TOKEN})", True
    if "claudeAiOauth" in _read(home / ".credentials.json"):
        return f"subscription ({home / '.credentials.json'})", True
    account = "oauthAccount" in _read(home / ".claude.json") or "oauthAccount" in _read(
        home.with_suffix(".json")
    )
    if sys.platform == "darwin" and account:
        return "subscription (keychain)", True
    return None, False


def _read(path: Path) -> Mapping[str, Any]:
    """A JSON object; empty when there is none that can be read."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
