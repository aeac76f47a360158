"""The key pair that signs this fleet's pushes, in a file that only its owner can read; made once.

A browser's subscription works with the key it was made with. So a file that cannot be read is reported and left as it
is, never replaced.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from nightherd.decoding import decode_json
from nightherd.errors import InvalidValueError, StateFileError
from nightherd.files.atomic import temp_path_for
from nightherd.model.push.keys import PushKeys, check_keys

KEYS_FILE = "push-keys.json"
PRIVATE = 0o600


def read_push_keys(state_dir: Path) -> PushKeys | None:
    """Return the keys; None where there are none yet. `StateFileError` for a file that cannot be read."""
    path = state_dir / KEYS_FILE
    try:
        return check_keys(decode_json(path.read_bytes(), PushKeys))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _unreadable(path, "it is not the JSON that was written") from error
    except InvalidValueError as error:
        raise _unreadable(path, error.message) from error


def ensure_push_keys(state_dir: Path, make: Callable[[], PushKeys]) -> PushKeys:
    """Return the keys; make them first where there are none. Processes that do so at once get the same."""
    known = read_push_keys(state_dir)
    if known is not None:
        return known
    path = state_dir / KEYS_FILE
    draft = temp_path_for(path)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(draft, flags, PRIVATE), "wb") as file:
            file.write(msgspec.json.encode(make()) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        # Unlike a rename, a link never replaces keys that another process has made meanwhile.
        with suppress(FileExistsError):
            os.link(draft, path)
    except OSError as error:
        raise StateFileError(
            f"cannot write {path}: {error.strerror or error}", path=str(path), operation="write"
        ) from error
    finally:
        with suppress(OSError):
            draft.unlink()
    made = read_push_keys(state_dir)
    if made is None:
        raise _unreadable(path, "it was removed in the moment it was made")
    return made


def _unreadable(path: Path, why: str) -> StateFileError:
    return StateFileError(
        f"the keys of pushes cannot be read from {path}: {why}",
        path=str(path),
        hint="restore the file; without it, remove it and subscribe every device again",
    )
