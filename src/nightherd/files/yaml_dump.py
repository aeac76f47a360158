"""YAML for people: block style, two spaces, several lines of text as a `|` block, never an alias.

Our own few lines and not a library's emitter: they are some twenty times faster, give the same bytes
everywhere, and quote what older readers of YAML would take for a number, a date or a truth value.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

from nightherd.files.atomic import SYSTEM_CALLS, FileCalls, atomic_write_file, not_writable
from nightherd.model.text import whole_text

PLAIN = re.compile(r"[A-Za-z/_][A-Za-z0-9_./+@-]*")
RESERVED = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
NOT_PRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
LONGEST_SIMPLE_KEY = 120
"""Readers look only so far for the colon after a key; a longer one is marked with `?`."""


class BlockText(str):
    """Text that is written as a `|` block even when it is one line."""

    __slots__ = ()


def dump_yaml(data: Any) -> str:
    """`data` as a YAML document: mappings, sequences, text, numbers, instants, truth values and None.

    Anything else is a `TypeError`. Lone surrogates, which no UTF-8 file can hold, become U+FFFD.
    """
    return "\n".join(_block(data, "")) + "\n"


def dump_field(name: str, value: Any, indent: str = "") -> str:
    """The lines of one field of a mapping, the last with its newline: for documents made of parts."""
    return "\n".join(_field(name, value, indent)) + "\n"


def dump_line(name: str, value: str | float | None) -> str:
    """The same for a plain name and a value that mostly fits on its line: for documents written often."""
    if value is None:
        return f"{name}: null\n"
    if type(value) is str and "\n" not in value:
        return f"{name}: {_text(value)}\n"
    if type(value) is int:
        return f"{name}: {value}\n"
    return dump_field(name, value)


def _block(data: Any, indent: str) -> list[str]:
    """The lines of `data` standing alone at `indent`."""
    if isinstance(data, Mapping) and data:
        return [line for key, value in data.items() for line in _field(key, value, indent)]
    if _is_list(data) and data:
        return [line for item in data for line in _item(item, indent)]
    head, rest = _inline(data, indent)
    return [indent + head, *rest]


def _field(key: Any, value: Any, indent: str) -> list[str]:
    name = _scalar(key)
    if len(name) > LONGEST_SIMPLE_KEY:
        return [f"{indent}? {name}", *_after(f"{indent}:", value, indent)]
    return _after(f"{indent}{name}:", value, indent)


def _after(head: str, value: Any, indent: str) -> list[str]:
    """`value` after a key: on its line, or as a block below it."""
    if value is None:
        return [f"{head} null"]
    if type(value) is str and "\n" not in value:
        return [f"{head} {_text(value)}"]
    if type(value) is int:
        return [f"{head} {value}"]
    if (isinstance(value, Mapping) or _is_list(value)) and value:
        return [head, *_block(value, indent + "  ")]
    text, rest = _inline(value, indent)
    return [f"{head} {text}", *rest]


def _item(item: Any, indent: str) -> list[str]:
    if (isinstance(item, Mapping) or _is_list(item)) and item:
        first, *rest = _block(item, indent + "  ")
        return [f"{indent}- {first.lstrip(' ')}", *rest]
    text, rest = _inline(item, indent)
    return [f"{indent}- {text}", *rest]


def _inline(value: Any, indent: str) -> tuple[str, list[str]]:
    """What stands on the line itself, and the lines of a text block below it."""
    if isinstance(value, BlockText) or (_is_text(value) and "\n" in value):
        text = whole_text(value)
        if not NOT_PRINTABLE.search(text) and text.strip(" \t\n"):
            return _literal(text, indent)
    if isinstance(value, Mapping):
        return "{}", []
    return ("[]" if _is_list(value) else _scalar(value)), []


def _literal(text: str, indent: str) -> tuple[str, list[str]]:
    body = text.rstrip("\n")
    ending = len(text) - len(body)
    chomp = "-" if ending == 0 else "" if ending == 1 else "+"
    # A reader takes the first line's spaces for indentation unless the indentation is given.
    depth = "2" if text[0] in " \t\n" else ""
    inner = indent + "  "
    lines = [inner + line if line else "" for line in body.split("\n")]
    return f"|{depth}{chomp}", [*lines, *[""] * (ending - 1)]


def _scalar(value: Any) -> str:
    if isinstance(value, Enum):
        value = value.value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, datetime):
        return f'"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"'
    raise TypeError(f"a {type(value).__name__} has no form in YAML")


def _text(value: str) -> str:
    if PLAIN.fullmatch(value) and value.lower() not in RESERVED:
        return value
    if value.isascii() and value.isprintable() and '"' not in value and "\\" not in value:
        return f'"{value}"'  # an instant, say: nothing in it needs a second look
    quoted = json.dumps(whole_text(value), ensure_ascii=False)
    return ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def _number(value: float) -> str:
    if math.isnan(value):
        return ".nan"
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    text = repr(value)
    # YAML 1.1 takes 1e-05 for text unless it has a point.
    return text.replace("e", ".0e") if "e" in text and "." not in text else text


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not isinstance(value, Enum)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def atomic_write_yaml(
    path: str | Path, data: Any, *, durable: bool = True, calls: FileCalls = SYSTEM_CALLS
) -> None:
    """Replace `path` by `data` as YAML (block style, two spaces), as `atomic_write_file` does."""
    try:
        text = dump_yaml(data)
    except (TypeError, ValueError, RecursionError) as error:
        raise not_writable("YAML", path, error) from error
    atomic_write_file(path, text, durable=durable, calls=calls)
