"""The words of an expression: what Python's parser may see, and the texts and numbers it must not read itself.

The parser gets `masked`: as long as the text, in ASCII, every text replaced by `x` and every keyword behind a dot by
`_`. So its columns are ours, it never warns about a text, and a field may be called `import`.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Mapping

import msgspec

from nightherd.model.text import quote
from nightherd.model.workflows.expressions.tree import Mistake

LONGEST = 2_000
"""Characters of an expression."""

TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    |(?P<number>(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![A-Za-z0-9_]|\.[A-Za-z0-9_]))
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<sign>==|!=|<=|>=|<(?!>)|>|\(|\)|\[|\]|\.|-)""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
ESCAPED = {"\\": "\\", "'": "'", '"': '"', "n": "\n", "t": "\t", "r": "\r"}
WORDS = frozenset({"and", "or", "not", "in", "True", "False", "None"})
INSTEAD = {
    "&": "write 'and'",
    "|": "write 'or'",
    "!": "write 'not'",
    "=": "write '==' to compare",
    "+": "there is no arithmetic",
    "*": "there is no arithmetic",
    "/": "there is no arithmetic",
    "%": "there is no arithmetic",
    ",": "there are no lists: compare with '==' and join with 'or'",
    "$": "an expression needs no '${': it is not a template",
    "{": "an expression needs no '${': it is not a template",
}


class Words(msgspec.Struct, frozen=True):
    """An expression cut into words: the masked text, and the value of each text and number by its place."""

    masked: str
    values: Mapping[int, str | int | float]


class MistakeError(Exception):
    """The text is not an expression. Only used between the lexer and the parser."""

    def __init__(self, mistake: Mistake) -> None:
        self.mistake = mistake
        super().__init__(mistake.message)


def refuse(message: str, start: int, width: int = 1, hint: str | None = None) -> MistakeError:
    """Return the error for something at `start`."""
    return MistakeError(Mistake(message=message, start=start, width=width, hint=hint))


def read_words(text: str) -> Words:
    """Cut `text` into words, or raise `MistakeError`."""
    if len(text) > LONGEST:
        raise refuse(f"an expression of {len(text):,} characters; at most {LONGEST:,}", 0)
    masked: list[str] = []
    values: dict[int, str | int | float] = {}
    place, before = 0, ""
    while place < len(text):
        match = TOKEN.match(text, place)
        if match is None:
            raise _unreadable(text, place)
        word = match[0]
        match match.lastgroup:
            case "space":
                masked.append(" " * len(word))
            case "text":
                if before == "text" or _is_name_end(text, place):
                    raise refuse("a text cannot follow another word directly", place)
                values[place] = _text_value(word, place)
                masked.append(f"'{'x' * (len(word) - 2)}'")
            case "number":
                values[place] = _number_value(word, place)
                masked.append(word)
            case "name":
                masked.append(_masked_name(word, place, is_field=before == "."))
            case _:
                masked.append(word)
        place = match.end()
        if match.lastgroup != "space":
            before = word if match.lastgroup == "sign" else str(match.lastgroup)
    return Words("".join(masked), values)


def _is_name_end(text: str, place: int) -> bool:
    return place > 0 and (text[place - 1].isalnum() or text[place - 1] == "_")


def _masked_name(word: str, place: int, *, is_field: bool) -> str:
    if is_field:
        return "_" * len(word) if keyword.iskeyword(word) else word
    if keyword.iskeyword(word) and word not in WORDS:
        raise refuse(f"{quote(word)} is not part of expressions", place, len(word))
    return word


def _text_value(word: str, place: int) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        if match[2] not in ESCAPED:
            start = place + 1 + match.start()
            raise refuse(f"unknown escape {quote(match[0])}", start, 2, "write '\\\\' for '\\'")
        return ESCAPED[match[2]]

    text = ESCAPE.sub(value, word[1:-1])
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise refuse("the text has half of a character", place, len(word))
    return text


def _number_value(word: str, place: int) -> int | float:
    if word.isdecimal():
        return int(word)
    number = float(word)
    if not math.isfinite(number):
        raise refuse("the number is too large", place, len(word))
    return number


def _unreadable(text: str, place: int) -> MistakeError:
    char = text[place]
    if char in "'\"":
        return refuse("the quotes of this text do not end", place)
    if char.isdecimal():
        return refuse("not a number; write 12, 0.5 or 1e3", place)
    return refuse(f"unexpected {quote(char)}", place, 1, INSTEAD.get(char))
