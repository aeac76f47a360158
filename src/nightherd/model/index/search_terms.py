"""Search terms: what a person types, as words and phrases; and where a text has them.

The text is plain: nothing in it is an operator of the database. Words are found in any order, all of them; `"..."` is
a phrase; `word*` is a beginning. A word with signs in it, such as `read_file`, is a phrase of its parts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

import msgspec

from nightherd.errors import InvalidValueError
from nightherd.model.index.search import Snippet

LONGEST = 1_000
"""Characters of a search text."""
MOST_TERMS = 32
PIECE = re.compile(r'"(?P<phrase>[^"]*)(?:"(?P<open>\*)?|$)|(?P<word>[^\s"]+)')
TOKEN = re.compile(r"(?:[^\W_]|[\u0300-\u036f])+")
"""A run of letters and digits, as the database takes a text apart."""
SNIPPET_LIMIT = 240
LEAD = 60
"""Characters of a snippet before the first match."""


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """Words that have to stand one after the other; the last may be the beginning of one."""

    words: tuple[str, ...]
    is_prefix: bool = False


def parse_terms(text: str) -> tuple[Term, ...]:
    """What is searched for; `InvalidValueError` when there is no word in it, or too much."""
    if len(text) > LONGEST:
        raise InvalidValueError(f"the search text is longer than {LONGEST} characters")
    terms: list[Term] = []
    for piece in PIECE.finditer(text):
        word = piece["word"]
        written = piece["phrase"] if word is None else word
        is_prefix = piece["open"] is not None if word is None else word.endswith("*")
        words = tuple(folded for folded, _, _ in tokens(written))
        if words:
            terms.append(Term(words=words, is_prefix=is_prefix))
    if not terms:
        raise InvalidValueError("the search text has no word in it", hint="type letters or digits")
    if len(terms) > MOST_TERMS:
        raise InvalidValueError(f"at most {MOST_TERMS} words and phrases can be searched for")
    return tuple(terms)


def match_expression(terms: Sequence[Term], agent: str | None = None) -> str:
    """The same for the database: only quoted letters and digits, so nothing in it can be an operator."""
    phrases = " AND ".join(
        f'"{" ".join(term.words)}"' + (" *" if term.is_prefix else "") for term in terms
    )
    narrowed = f' AND agent : "{agent_token(agent)}"' if agent is not None else ""
    return f"body : ({phrases}){narrowed}"


def agent_token(agent: str) -> str:
    """An agent's name as one word that is no other name's beginning or part."""
    return f"x{agent.encode('utf-8', 'replace').hex()}x"


def tokens(text: str) -> Iterator[tuple[str, int, int]]:
    """The words of a text as they are compared, each with its place: without case and accents."""
    for found in TOKEN.finditer(text):
        folded = fold(found[0])
        if folded:
            yield folded, found.start(), found.end()


def fold(word: str) -> str:
    """A word without case and accents."""
    if word.isascii():
        return word.lower()
    parts = unicodedata.normalize("NFD", word.lower())
    bare = "".join(char for char in parts if not unicodedata.combining(char))
    return unicodedata.normalize("NFC", bare)


def ranges_in(text: str, terms: Sequence[Term]) -> list[tuple[int, int]]:
    """Where a text has the terms, in order; none overlaps another."""
    words = list(tokens(text))
    found: list[tuple[int, int]] = []
    for place in range(len(words)):
        ends = [end for term in terms if (end := _end_of(term, words, place)) is not None]
        if ends:
            start, end = words[place][1], max(ends)
            if found and start < found[-1][1]:
                found[-1] = found[-1][0], max(found[-1][1], end)
            else:
                found.append((start, end))
    return found


def snippet_of(text: str, terms: Sequence[Term]) -> Snippet:
    """A piece of the text around the first match, on one line, with the matches in it marked."""
    ranges = ranges_in(text, terms)
    first = ranges[0][0] if ranges else 0
    start = max(0, first - LEAD)
    if start:
        gap = text.find(" ", start, first)
        start = gap + 1 if gap >= 0 else start
    end = min(len(text), start + SNIPPET_LIMIT)
    shown = "".join(" " if char.isspace() else char for char in text[start:end])
    marked = [
        (max(low, start) - start, min(high, end) - start)
        for low, high in ranges
        if low < end and high > start
    ]
    return Snippet(text=shown, ranges=tuple(marked))


def _end_of(term: Term, words: Sequence[tuple[str, int, int]], place: int) -> int | None:
    """Where the term ends in the text if it begins with the word at `place`."""
    last = place + len(term.words) - 1
    if last >= len(words):
        return None
    for wanted, word in zip(term.words[:-1], words[place:last], strict=True):
        if word[0] != wanted:
            return None
    wanted, (word_there, _, end) = term.words[-1], words[last]
    fits = word_there.startswith(wanted) if term.is_prefix else word_there == wanted
    return end if fits else None
