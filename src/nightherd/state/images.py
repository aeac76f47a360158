"""Row images as text: what the outbox and the ledger keep of every change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from nightherd.errors import InvalidValueError


def encode_images(images: Sequence[dict[str, Any]]) -> str:
    """`images` as JSON; `InvalidValueError` for a text or number that no file could hold."""
    try:
        return msgspec.json.encode(images).decode()
    except UnicodeEncodeError as error:
        raise InvalidValueError(f"text that is not valid Unicode: {error.reason}") from error
    except OverflowError as error:
        raise InvalidValueError("a number that is too large to be stored") from error
