"""Halves of secrets: what is left of one where Claude has cut the output of its own tools before we see it.

Claude marks such places. A text beside a mark that is the beginning or the end of a secret is masked too, when it is
long enough to be no accident.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

CUT = re.compile(
    r"(?:\.\.\. ?\[[\d,. ]+ (?:lines|characters|chars|bytes) truncated\](?: ?\.\.\.)?"
    r"|\.\.\.\n</persisted-output>)\s*"
)
LEAST = 8
"""Characters of a part that is masked, and no less than a quarter of the secret."""


def mask_at_cuts(text: str, names: Mapping[str, str]) -> str:
    """Mask the parts of secrets, given with their names, beside the marks of a cut in `text`."""
    pieces, done = [], 0
    for mark in CUT.finditer(text):
        pieces += [_without_beginning(text[done : mark.start()], names), mark[0]]
        done = mark.end()
        for value, name in names.items():
            size = _common(value[::-1], text[done : done + len(value)][::-1])
            if size:
                pieces.append(f"[secret:{name}]")
                done += size
                break
    return "".join((*pieces, text[done:]))


def _without_beginning(text: str, names: Mapping[str, str]) -> str:
    """The text, masked where it ends with the beginning of a secret; white space may follow that."""
    said = text.rstrip()
    for value, name in names.items():
        size = _common(value, said[-len(value) :])
        if size:
            return f"{said[:-size]}[secret:{name}]{text[len(said) :]}"
    return text


def _common(value: str, text: str) -> int:
    """How many characters at the end of `text` begin `value`; 0 when they may be an accident."""
    least = max(LEAST, len(value) // 4)
    for start in range(len(text) - least + 1):
        if value.startswith(text[start:]):
            return len(text) - start
    return 0
