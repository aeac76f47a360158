"""The token of the API in the state directory: made once, read by the server, and masked everywhere."""

from __future__ import annotations

import os
from pathlib import Path

from nightherd.errors import StateFileError
from nightherd.model.ids import RandomText

TOKEN_FILE = "web-token"  # noqa: S105 - the name of a file
TOKEN_LENGTH = 40


def read_web_token(state_dir: Path) -> str | None:
    """Return the token; None where there is none, or it cannot be read."""
    try:
        return (state_dir / TOKEN_FILE).read_text("utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def ensure_web_token(state_dir: Path, random_text: RandomText) -> str:
    """Return the token; make it first where there is none. `StateFileError` when it cannot be written."""
    known = read_web_token(state_dir)
    if known is not None:
        return known
    path, token = state_dir / TOKEN_FILE, random_text(TOKEN_LENGTH)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(token + "\n")
    except OSError as error:
        raise StateFileError(
            f"cannot write {path}: {error.strerror or error}", path=str(path), operation="write"
        ) from error
    return token
