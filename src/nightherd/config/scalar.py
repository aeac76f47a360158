"""What an unquoted text means: nothing, a truth value, a number, or itself.

Narrower than YAML 1.1 on purpose: `yes`, `no`, `on` and `off` are words, `12:30` and dates are texts, and a
number with a leading zero stays as it was written.
"""

from __future__ import annotations

import re

NULLS = frozenset({"", "~", "null", "Null", "NULL"})
TRUTHS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,99})")
BASED = re.compile(r"0x[0-9a-fA-F]{1,64}|0o[0-7]{1,64}")
FRACTION = re.compile(
    r"[-+]?(?:\.[0-9]{1,100}|[0-9]{1,100}(?:\.[0-9]{0,100})?)(?:[eE][-+]?[0-9]{1,9})?"
)
BEYOND = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
NUMERIC_START = frozenset("+-.0123456789")

Plain = str | int | float | bool | None


def resolve_plain(text: str) -> Plain:
    """The value that the unquoted `text` stands for."""
    if text in NULLS:
        return None
    truth = TRUTHS.get(text)
    if truth is not None:
        return truth
    if text[0] not in NUMERIC_START:
        return text
    if WHOLE.fullmatch(text):
        return int(text)
    if BASED.fullmatch(text):
        return int(text, 0)
    if FRACTION.fullmatch(text) and not has_leading_zero(text):
        return float(text)
    if BEYOND.fullmatch(text):
        return float(text.replace(".", "", 1))
    return text


def has_leading_zero(text: str) -> bool:
    """Whether a digit follows a leading zero: `007` and `01.5` are names, not numbers."""
    digits = text.lstrip("+-")
    return len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
