"""Words for people: how values, names and choices are put into a message."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from nightherd.model.text import shorten

SHOWN_TEXT_LIMIT = 60
SHOWN_PATH_LIMIT = 400
LONGEST_GUESS = 60


def quote(text: str, *, limit: int = SHOWN_TEXT_LIMIT) -> str:
    """`text` in quotes, on one line, cut when long, nothing in it that could move a terminal's cursor."""
    safe = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in shorten(text, limit)
    )
    return f"'{safe}'"


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
