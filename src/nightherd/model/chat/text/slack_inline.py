"""Markdown within a paragraph, converted to Slack's mrkdwn: emphasis, code, links; nothing in it pings anybody."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape

ZERO_WIDTH_SPACE = "\u200b"
LOOKS_LIKE_A_BACKTICK = "\u02cb"

_URL = r"https?://[^\s<>*`|\]\"]+"
_TRAILING = ".,;:!?'\")_~"
_SCHEMES = ("http://", "https://", "mailto:", "tel:", "slack://")

_TOKEN = re.compile(
    r"(?P<escaped>\\[!-/:-@\[-`{-~])"
    r"|(?P<code>(?P<ticks>`+)(?!`)(?P<inner>.{1,2000}?)(?<!`)(?P=ticks)(?!`))"
    r"|(?P<image>!\[(?P<alt>[^\]\n]*)\]\(\s*<?(?P<source>[^\s()<>]*)>?(?:\s+[^()\n]*)?\))"
    r"|(?P<link>\[(?P<label>(?:[^\[\]\n]|\[[^\[\]\n]*\])+)\]\(\s*<?(?P<target>(?:[^\s()<>]|\([^\s()]*\))*)>?(?:\s+[\"'(][^\n]*?[\"')])?\s*\))"
    r"|<(?P<autolink>(?:https?://|mailto:)[^\s<>]+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+)>"
    rf"|(?P<url>{_URL})"
    r"|(?P<break><br\s*/?>)"
    r"|(?P<both>\*\*\*(?=\S)(?P<both_inner>.{1,1000}?)(?<=[^\s*])\*\*\*(?!\*))"
    r"|(?P<bold>\*\*(?=\S)(?P<bold_inner>(?:(?!\*\*(?!\*)).){1,1000}?)(?<=\S)\*\*(?!\*))"
    r"|(?P<under>(?<!\w)__(?=\S)(?P<under_inner>.{1,1000}?)(?<=\S)__(?!\w))"
    r"|(?P<italic>\*(?=[^\s*])(?P<italic_inner>(?:[^*]|\*\*(?=\S)[^*]{1,1000}\*\*){1,1000}?)(?<=[^\s*])\*(?!\*))"
    r"|(?P<slanted>(?<![\w_])_(?=[^\s_])(?P<slanted_inner>.{1,1000}?)(?<=[^\s])_(?![\w]))"
    r"|(?P<struck>~~(?=\S)(?P<struck_inner>.{1,1000}?)(?<=\S)~~)"
    r"|(?P<entity>&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)"
    r"|(?P<everybody>@(?=(?:here|channel|everyone|group)\b))",
    re.DOTALL,
)


def escape(text: str) -> str:
    """Escape the three characters that mean something to Slack: a mention or a link cannot begin any more."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def convert_inline(text: str) -> str:
    """Return a paragraph of markdown as mrkdwn."""
    pieces: list[str] = []
    done = 0
    for token in _TOKEN.finditer(text):
        if token.start() < done:  # part of what a shortened URL gave back
            continue
        pieces.append(escape(text[done : token.start()]))
        converted, done = _convert_token(token, text)
        pieces.append(converted)
    pieces.append(escape(text[done:]))
    return "".join(pieces)


def plain_text(text: str) -> str:
    """Return a paragraph of markdown without its markup: for labels and cells, which can hold none."""

    def bare(token: re.Match[str]) -> str:
        for name in ("inner", "alt", "label", "both_inner", "bold_inner", "under_inner"):
            if token[name] is not None:
                return token[name] if name == "inner" else plain_text(token[name])
        for name in ("italic_inner", "slanted_inner", "struck_inner"):
            if token[name] is not None:
                return plain_text(token[name])
        if token["escaped"] is not None:
            return token["escaped"][1:]
        if token["entity"] is not None:
            return unescape(token["entity"])
        return " " if token["break"] is not None else token["autolink"] or token[0]

    return _TOKEN.sub(bare, text)


def code_span(code: str) -> str:
    """Return code in backticks."""
    text = code.strip("\n").replace("\n", " ").replace("`", LOOKS_LIKE_A_BACKTICK)
    return f"`{escape(text)}`"


def _convert_token(token: re.Match[str], text: str) -> tuple[str, int]:
    """Return what a token becomes, and where to go on."""
    end = token.end()
    if token["url"] is not None:
        url = token["url"].rstrip(_TRAILING)
        return escape(url), token.start() + len(url)
    for name, convert in _SIMPLE.items():
        if token[name] is not None:
            return convert(token), end
    for name, marks in _EMPHASIS.items():
        if token[name] is not None:
            return _emphasis(token[f"{name}_inner"], marks, text, token), end
    return escape(token[0]), end


def _emphasis(inner: str, marks: str, text: str, token: re.Match[str]) -> str:
    """Put marks around each line: in Slack they reach no further, and count only with no letter beside them."""
    converted = convert_inline(inner)
    closing = marks[::-1]
    lines = [
        f"{marks}{line.strip()}{closing}" if line.strip() else line
        for line in converted.split("\n")
    ]
    is_glued_before = token.start() > 0 and text[token.start() - 1].isalnum()
    is_glued_after = token.end() < len(text) and text[token.end()].isalnum()
    before = ZERO_WIDTH_SPACE if is_glued_before else ""
    after = ZERO_WIDTH_SPACE if is_glued_after else ""
    return before + "\n".join(lines) + after


def _link(target: str, label: str) -> str:
    text = plain_text(label).strip()
    if not target.lower().startswith(_SCHEMES):
        shown = escape(text)
        return shown if not target or target == text else f"{shown} ({escape(target)})"
    address = escape(target.replace("|", "%7C"))
    # A label cannot hold a pipe, and one that is an address itself could hide where the link leads.
    shown = escape(text.replace("|", "\u00a6"))
    return f"<{address}|{shown}>" if shown and text != target else f"<{address}>"


def _autolink(token: re.Match[str]) -> str:
    address = token["autolink"]
    if "@" in address and not address.startswith(("http", "mailto:")):
        return f"<mailto:{escape(address)}|{escape(address)}>"
    return f"<{escape(address.replace('|', '%7C'))}>"


def _escaped(token: re.Match[str]) -> str:
    character = token["escaped"][1:]
    return f"{character}{ZERO_WIDTH_SPACE}" if character in "*_~`" else escape(character)


_SIMPLE: dict[str, Callable[[re.Match[str]], str]] = {
    "escaped": _escaped,
    "code": lambda token: code_span(token["inner"]),
    "image": lambda token: _link(token["source"], token["alt"] or "image"),
    "link": lambda token: _link(token["target"], token["label"]),
    "autolink": _autolink,
    "break": lambda _: "\n",
    "entity": lambda token: escape(unescape(token["entity"])),
    "everybody": lambda _: f"@{ZERO_WIDTH_SPACE}",
}
_EMPHASIS = {
    "both": "*_",
    "bold": "*",
    "under": "*",
    "italic": "_",
    "slanted": "_",
    "struck": "~",
}
