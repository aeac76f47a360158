"""The login of the host's own Claude, for a container that may use it and must not change it."""

from __future__ import annotations

import json
from collections.abc import Mapping

from nightherd.runtimes.claude.transcripts.places import config_directory

FILE = ".credentials.json"


def access_token(environment: Mapping[str, str]) -> str | None:
    """The access token as it is now; None where there is none.

    The token that renews it stays outside: renewing is for the host's Claude, and the next run reads the new one.
    """
    try:
        known = json.loads((config_directory(environment) / FILE).read_bytes())
    except (OSError, ValueError):
        return None
    match known:
        case {"claudeAiOauth": {"accessToken": str(token)}}:
            return token or None
        case _:
            return None
