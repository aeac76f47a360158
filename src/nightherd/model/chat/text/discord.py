"""Discord's text: markdown as Discord shows it, which pings nobody, and messages of people as markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import msgspec

from nightherd.model.chat.text.fences import Code, Prose, blocks
from nightherd.model.chat.text.tables import table_at

WIDEST_TABLE = 76
"""Columns; a wider table would be wrapped in the app."""
NOTHING = "\u200b"
"""A character that is not seen: it takes the meaning from what it stands in."""
RULE = "⎯" * 12

_LANGUAGE = re.compile(r"[A-Za-z0-9_+\-.#]+")
_INLINE_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_URL = re.compile(r"<?https?://[^\s<>]+>?")
_HEADING = re.compile(r"(\s*)(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*")
_RULE = re.compile(r"[ \t]*(?:-[ \t]*){3,}|[ \t]*(?:\*[ \t]*){3,}|[ \t]*(?:_[ \t]*){3,}")
_QUOTE = re.compile(r"[ \t]*>(?:[ \t]?>)+[ \t]?|[ \t]*>[ \t]*(?=\S)")
_TASK = re.compile(r"([ \t]*(?:[-*+]|\d+[.)])[ \t]+)\[([ xX])\][ \t]+")
_IMAGE = re.compile(r"!\[([^\]]*)\](\([^)]*\))")
_BREAK = re.compile(r"<br ?/?>", re.IGNORECASE)
_STRONG = re.compile(r"(?<!\w)__(?!_)([^\n]+?)(?<!_)__(?!\w)")
_EVERYONE = re.compile(r"@(everyone|here)\b", re.IGNORECASE)
_PING = re.compile(r"<@([!&]?\d+)>")

_MENTION = re.compile(
    r"<(?:(?P<user>@!?)|(?P<role>@&)|(?P<channel>#)|/(?P<command>[^:<>]+):|a?:(?P<emoji>\w+):|t:)"
    r"(?P<id>-?\d+)(?::[a-zA-Z])?>"
)
_LATEST = 253_402_300_799
"""The last second of the year 9999."""


class MentionNames(msgspec.Struct, frozen=True, kw_only=True):
    """What the ids in a message are called, by id."""

    bot: frozenset[str] = frozenset()
    """The bot's own user and role: they are taken out."""
    users: Mapping[str, str] = {}
    roles: Mapping[str, str] = {}
    channels: Mapping[str, str] = {}


def to_discord(markdown: str) -> str:
    """Return markdown as Discord shows it. It pings nobody.

    Tables become code blocks, headings below the third level bold lines. Code stays as it is.
    """
    texts: list[str] = []
    for block in blocks(markdown):
        match block:
            case Code():
                texts.append(_code_block(block))
            case Prose(text=text):
                texts.append(_outside_of_code(_lines(text), _shown))
    return "\n".join(texts)


def from_discord(content: str, names: MentionNames) -> str:
    """Return a message of a person as markdown, with names for ids, and without the mention of the bot."""
    texts: list[str] = []
    for block in blocks(content):
        match block:
            case Code(fence=fence):
                texts.append(f"{fence.opening}\n{block.text}\n{fence.closing}")
            case Prose(text=text):
                texts.append(_outside_of_code(text, lambda piece: _named(piece, names)))
    return "\n".join(texts).strip()


def _code_block(block: Code) -> str:
    prefix = block.fence.prefix if ">" in block.fence.prefix else ""
    named = _LANGUAGE.fullmatch(block.fence.info.strip().split(" ")[0])
    # Discord ends a block at the first three backticks, wherever they stand.
    body = block.body.replace("```", f"``{NOTHING}`")
    lines = [f"```{named.group() if named else ''}", *body.split("\n"), "```"]
    return "\n".join(prefix + line for line in lines)


def _lines(text: str) -> str:
    """Return prose with what is said by whole lines as Discord has it."""
    lines = text.split("\n")
    shown: list[str] = []
    index = 0
    while index < len(lines):
        if found := table_at(lines, index):
            table, index = found
            if table.width <= WIDEST_TABLE:
                aligned = table.aligned().replace("```", f"``{NOTHING}`")
                shown.append(f"```\n{aligned}\n```")
            else:
                shown.append(table.listed("**"))
            continue
        shown.append(_line(lines[index]))
        index += 1
    return "\n".join(shown)


def _line(line: str) -> str:
    if heading := _HEADING.fullmatch(line):
        indent, marks, title = heading.groups()
        if len(marks) <= 3:
            return f"{indent}{marks} {title}"
        return f"{indent}**{title.replace('**', '')}**" if title else ""
    if _RULE.fullmatch(line):
        return RULE
    line = _TASK.sub(lambda task: f"{task[1]}{'☐' if task[2] == ' ' else '☑'} ", line)
    # Three marks would quote everything that follows, and quotes in quotes are not shown.
    quote = _QUOTE.match(line)
    return f"> {line[quote.end() :]}" if quote else line


def _shown(prose: str) -> str:
    """Return a piece of prose outside of code as Discord has it."""
    texts: list[str] = []
    position = 0
    prose = _IMAGE.sub(r"[\1]\2", prose)
    for url in _URL.finditer(prose):
        texts += [_marks(prose[position : url.start()]), url.group()]
        position = url.end()
    texts.append(_marks(prose[position:]))
    # A ping may be made of pieces that met only now.
    return _harmless("".join(texts))


def _marks(prose: str) -> str:
    text = _STRONG.sub(_strong, _BREAK.sub("\n", prose))
    # Two bars would hide what is between them.
    return text.replace("||", r"\|\|")


def _strong(match: re.Match[str]) -> str:
    """Return bold text, which Discord would underline; a name like `__init__` is neither."""
    content = match[1]
    return rf"\_\_{content}\_\_" if content.isidentifier() else f"**{content}**"


def _harmless(text: str) -> str:
    return _PING.sub(rf"<@{NOTHING}\1>", _EVERYONE.sub(rf"@{NOTHING}\1", text))


def _named(text: str, names: MentionNames) -> str:
    def name(match: re.Match[str]) -> str:
        identity = match["id"]
        if match["user"] or match["role"]:
            if identity in names.bot:
                return "\0"
            known = names.users if match["user"] else names.roles
            return f"@{known.get(identity, identity)}"
        if match["channel"]:
            return f"#{names.channels.get(identity, identity)}"
        if match["command"]:
            return f"/{match['command']}"
        if match["emoji"]:
            return f":{match['emoji']}:"
        return _moment(int(identity)) or match.group()

    # The space that belonged to the bot's mention goes with it.
    return re.sub(r"[ \t]?\0[ \t]*[,:]?(?=[ \t])|\0[,:]?[ \t]?", "", _MENTION.sub(name, text.replace("\0", "")))  # fmt: skip


def _moment(seconds: int) -> str | None:
    if not 0 <= seconds <= _LATEST:
        return None
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def _outside_of_code(text: str, convert: Callable[[str], str]) -> str:
    """Return the text with what is outside of code within lines converted."""
    texts: list[str] = []
    for block in blocks(text):
        if isinstance(block, Code):
            texts.append(f"{block.fence.opening}\n{block.text}\n{block.fence.closing}")
            continue
        pieces: list[str] = []
        position = 0
        for code in _INLINE_CODE.finditer(block.text):
            pieces += [convert(block.text[position : code.start()]), code.group()]
            position = code.end()
        pieces.append(convert(block.text[position:]))
        texts.append("".join(pieces))
    return "\n".join(texts)
