"""Text of other people between tags, for a model: the text cannot close them itself."""

from __future__ import annotations

import re
import unicodedata

UNTRUSTED = "untrusted"

BRACKET = re.compile("[<\ufe64\uff1c]")
"""What reads as the beginning of a tag."""
UNSEEN = frozenset("\u115f\u1160\u3164\uffa0")
"""Letters that are not seen: the fillers of Hangul."""
ATTRIBUTE = str.maketrans(
    {"&": "&amp;", '"': "&quot;", "<": "&lt;", ">": "&gt;", "\n": " ", "\r": " "}
)


def mark_untrusted(text: str, source: str) -> str:
    """Return the text as what other people wrote, between tags that it cannot close itself."""
    return tagged(text, UNTRUSTED, source=source)


def tagged(text: str, tag: str, **attributes: str) -> str:
    """Return the text between tags of that name, a word of ASCII letters, that it cannot close itself."""
    inside = BRACKET.sub(lambda bracket: _without_tag(bracket, tag), text)
    named = "".join(f' {name}="{value.translate(ATTRIBUTE)}"' for name, value in attributes.items())
    return f"<{tag}{named}>{inside}</{tag}>"


def _without_tag(bracket: re.Match[str], tag: str) -> str:
    """Return the bracket, or how it is written where a tag would begin with it."""
    return "&lt;" if _is_tag(bracket.string, bracket.end(), tag) else bracket[0]


def _is_tag(text: str, start: int, tag: str) -> bool:
    """Return whether what follows reads as the name of the tag, whatever stands unseen between its letters."""
    name = ""
    while start < len(text) and len(name) < len(tag):
        name += _seen(text[start]).removeprefix("" if name else "/")
        start += 1
        if not tag.startswith(name):
            return False
    return name == tag


def _seen(char: str) -> str:
    """Return a character as it reads: in one form and small, without marks; nothing for white space and control characters."""
    plain = unicodedata.normalize("NFKD", char)
    return "".join(
        part for part in plain if part not in UNSEEN and unicodedata.category(part)[0] not in "CMZ"
    ).casefold()
