"""Words for people: how values, names and choices are put into a message."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from nightherd.config.merge import plain_value
from nightherd.files.yaml_nodes import MappingNode, Node, ScalarNode, SequenceNode
from nightherd.model.text import quote

SHOWN_PATH_LIMIT = 400
LONGEST_GUESS = 60


def nearest(word: str, names: Iterable[str]) -> str | None:
    """The name that `word` was probably meant to be, or None."""
    if len(word) > LONGEST_GUESS:
        return None
    by_folded = {name.casefold(): name for name in sorted(names)}
    close = difflib.get_close_matches(word.casefold(), by_folded, n=1, cutoff=0.6)
    if close:
        return by_folded[close[0]]
    # A word of a longer name: 'promt' for 'default_prompt'.
    by_word = {part: name for folded, name in by_folded.items() for part in folded.split("_")}
    close = difflib.get_close_matches(word.casefold(), by_word, n=1, cutoff=0.8)
    return by_word[close[0]] if close else None


def did_you_mean(word: str, names: Iterable[str]) -> str | None:
    """The hint that names the nearest valid name, or None when nothing is near."""
    found = nearest(word, names)
    return None if found is None else f"did you mean {quote(found)}?"


def listed(words: Iterable[str]) -> str:
    """The words with commas between them."""
    return ", ".join(words)


EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a number",
    "bool_type": "true or false",
    "string_type": "text",
    "tuple_type": "a list",
    "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
    "model_attributes_type": "a mapping of keys to values",
    "duration": "a duration such as 30m",
    "size": "a size such as 512m",
    "money": "an amount in dollars",
    "name": "a name",
    "cron": "a cron expression",
    "timezone": "a time zone such as Europe/Berlin",
    "shape": "text",
}
BOUNDS = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "more than"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
}
CHOICE = re.compile(r"'([^']*)'")

Complaint = tuple[str, str | None]
"""A message, and what to do about it."""


def complaint(kind: str, context: Mapping[str, Any], node: Node) -> Complaint:
    """The message and the hint for a value that the schema refused."""
    if kind == "literal_error":
        return not_one_of(CHOICE.findall(str(context.get("expected", ""))), node)
    if kind in BOUNDS:
        key, words = BOUNDS[kind]
        return f"expected {words} {context.get(key)}, got {described(node)}", None
    if kind in {"string_too_short", "too_short"}:
        return "must not be empty", None
    if kind.startswith("bad_"):
        return unreadable(kind.removeprefix("bad_"), context, node), None
    if kind in {"incomplete", "conflict"}:
        return str(context.get("message")), None
    expected = EXPECTED.get(kind) or EXPECTED.get(kind.removeprefix("wants_"))
    if expected is None:
        return f"{described(node)} cannot be used here", None
    return f"expected {expected}, got {described(node)}", advice(kind, node)


def not_one_of(choices: list[str], node: Node) -> Complaint:
    """A word that is not among the words a key takes."""
    if not choices:
        return f"expected true, got {described(node)}", None
    if not isinstance(node, ScalarNode) or not node.text:
        return f"expected one of {listed(choices)}, got {described(node)}", None
    hint = None if node.secret else spelling(node, choices)
    if len(choices) == 1:
        return f"{quote(node.shown)} is not {choices[0]}", hint
    return f"{quote(node.shown)} is not one of {listed(choices)}", hint


def spelling(node: ScalarNode, choices: list[str]) -> str | None:
    """The word that was probably meant: right, and read as something else, or nearly right."""
    return (
        f'put it in quotes: "{node.text}"'
        if node.text in choices
        else did_you_mean(node.text, choices)
    )


def unreadable(what: str, context: Mapping[str, Any], node: Node) -> str:
    """A text that does not spell what the key takes. One from the environment is not quoted."""
    if isinstance(node, ScalarNode) and node.secret:
        return f"{quote(node.shown)} does not hold {EXPECTED[what]}"
    message = str(context.get("message"))
    return message if len(message) <= 300 else f"{described(node)} is not {EXPECTED[what]}"


def described(node: Node) -> str:
    """What stands there, for people."""
    if isinstance(node, MappingNode):
        return "a mapping" if node.entries else "an empty mapping"
    if isinstance(node, SequenceNode):
        return "a list" if node.items else "an empty list"
    if node.secret:
        return f"what {quote(node.shown)} holds"
    value = plain_value(node)
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"the number {node.text[:60]}"
    return f"the text {quote(node.text)}"


def advice(kind: str, node: Node) -> str | None:
    """What to write instead, where that is clear from what was written."""
    if not isinstance(node, ScalarNode) or node.secret:
        return None
    value = plain_value(node)
    if kind in {"string_type", "wants_name", "wants_shape"} and isinstance(value, int | float):
        return f'put it in quotes: "{node.text[:60]}"'
    if kind == "bool_type" and node.text.lower() in {"yes", "on", "no", "off"}:
        return "write true" if node.text.lower() in {"yes", "on"} else "write false"
    if kind == "wants_duration" and isinstance(value, int) and not isinstance(value, bool):
        return f"add a unit: {value}s, {value}m or {value}h"
    if kind in {"int_type", "float_type"} and not node.plain and node.text.isdigit():
        return f"without quotes: {node.text}"
    return None
