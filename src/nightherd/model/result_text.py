"""A tool's result as text: its text parts, a word for each picture in it, or its JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from nightherd.model.size import format_size


def plain_result(result: Any) -> str:
    """The result for people. What is encoded in base64 is named by its kind and size, never printed."""
    if result is None:
        return ""
    if isinstance(result, str):
        return result
    if isinstance(result, list) and result:
        parts = [_part_text(part) for part in result]
        if all(part is not None for part in parts):
            return "\n".join(part for part in parts if part is not None)
    return msgspec.json.encode(result, enc_hook=str).decode()


def _part_text(part: Any) -> str | None:
    """A block of a result as text; None when it is neither text nor something encoded."""
    match part:
        case {"text": str(text)}:
            return text
        case {"source": {"data": str(data), **source}}:
            return _encoded(source.get("media_type"), part, data)
        case {"data": str(data), "mimeType": str(kind)}:
            return _encoded(kind, part, data)
        case {"resource": {"blob": str(data), **resource}}:
            return _encoded(resource.get("mimeType"), part, data)
        case _:
            return None


def _encoded(kind: Any, part: Mapping[str, Any], data: str) -> str:
    name = kind if isinstance(kind, str) else part.get("type", "data")
    return f"[{name}, {format_size(len(data) * 3 // 4)}]"
