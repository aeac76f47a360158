"""Long answers: as many messages as a platform takes well, and files for what is too long for messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import msgspec

from nightherd.model.chat.platform import PlatformLimits
from nightherd.model.chat.text.characters import units
from nightherd.model.chat.text.cuts import Cut, best_cut
from nightherd.model.chat.text.fences import Code, Fence, Prose, blocks
from nightherd.model.chat.text.lines import Lines

SMALLEST_LIMIT = 20
LEAD_SHARE = 4
"""The lead of an answer in a file takes at most this part of a message."""
LONGEST_LEAD = 600
WHOLE_ANSWER = "answer.md"

SUFFIXES = {
    "bash": "sh",
    "c#": "cs",
    "c++": "cpp",
    "console": "txt",
    "csharp": "cs",
    "golang": "go",
    "javascript": "js",
    "jsonc": "json",
    "kotlin": "kt",
    "make": "mk",
    "markdown": "md",
    "perl": "pl",
    "plaintext": "txt",
    "powershell": "ps1",
    "python": "py",
    "python3": "py",
    "ruby": "rb",
    "rust": "rs",
    "shell": "sh",
    "terraform": "tf",
    "text": "txt",
    "typescript": "ts",
    "yml": "yaml",
    "zsh": "sh",
}
"""Suffixes of files where they differ from the name of the language."""


class AnswerFile(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an answer that is sent as a file."""

    name: str
    text: str


class SplitAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer as it is sent: the messages in order, then the files."""

    parts: tuple[str, ...]
    files: tuple[AnswerFile, ...] = ()


def split_answer(
    markdown: str, limits: PlatformLimits, convert: Callable[[str], str] = str
) -> SplitAnswer:
    """Return the messages and files of an answer.

    `convert` turns markdown into what the platform writes; the messages have that. A code block that is too
    long becomes a file, and so does an answer of too many messages: a short lead and `answer.md`.
    """
    rest, files = _with_long_code_as_files(markdown, limits.longest_code)
    parts = tuple(islice(_pieces(convert(rest), limits.characters), limits.most_parts + 1))
    if len(parts) <= limits.most_parts:
        return SplitAnswer(parts=parts, files=files)
    return SplitAnswer(
        parts=(_lead(rest, limits.characters, convert),),
        files=(AnswerFile(name=WHOLE_ANSWER, text=markdown),),
    )


def split_text(text: str, limit: int) -> tuple[str, ...]:
    """Return the text in parts of at most `limit` characters; only white space and lines of fences change.

    A code block that goes on in the next part is closed and opened again.
    """
    return tuple(_pieces(text, limit))


def file_name(number: int, language: str) -> str:
    """Return the name of the file that a code block becomes."""
    suffix = SUFFIXES.get(language, language)
    is_plain = suffix.isascii() and suffix.isalnum() and len(suffix) <= 10
    return f"answer-{number}.{suffix if is_plain else 'txt'}"


def _with_long_code_as_files(markdown: str, longest: int) -> tuple[str, tuple[AnswerFile, ...]]:
    files: list[AnswerFile] = []
    texts: list[str] = []
    for block in blocks(markdown):
        match block:
            case Code(fence=fence) if units(block.text) > longest:
                file = AnswerFile(
                    name=file_name(len(files) + 1, fence.language), text=block.body + "\n"
                )
                files.append(file)
                texts.append(f"{fence.prefix}(in the file `{file.name}`)")
            case Code(fence=fence):
                # A line of its own for the end, also where the writer forgot it.
                lines = (fence.opening, *([block.text] if block.text else []), fence.closing)
                texts.append("\n".join(lines))
            case Prose(text=text):
                texts.append(text)
    return ("\n".join(texts), tuple(files)) if files else (markdown, ())


def _lead(markdown: str, limit: int, convert: Callable[[str], str]) -> str:
    """Return how an answer begins, and where all of it is."""
    note = f"(The whole answer is in the file `{WHOLE_ANSWER}`.)"
    room = max(SMALLEST_LIMIT, min(LONGEST_LEAD, limit // LEAD_SHARE))
    first = next(_pieces(markdown, room), "")
    # Conversion may lengthen it; what does not fit any more is in the file too.
    begin = next(_pieces(convert(first), max(SMALLEST_LIMIT, limit - len(note) - 4)), "")
    lead = f"{begin} …\n\n{note}" if not begin.endswith("```") else f"{begin}\n\n{note}"
    return lead if units(lead) <= limit else note[:limit]


def _pieces(text: str, limit: int) -> Iterator[str]:
    if limit < SMALLEST_LIMIT:
        raise ValueError(f"a message has at least {SMALLEST_LIMIT} characters")
    lines = Lines(text, limit)
    position = 0
    fence: Fence | None = None
    while position < len(text):
        opening = f"{fence.opening}\n" if fence else ""
        room = limit - units(opening)
        ending = f"\n{lines.open_at_end.closing}" if lines.open_at_end else ""
        is_last = len(text) - position <= room and units(text[position:]) + units(ending) <= room
        cut = (
            Cut(end=len(text), start=len(text), fence=lines.open_at_end)
            if is_last
            else best_cut(lines, position, room)
        )
        if part := _part(text[position : cut.end], fence, cut.fence):
            yield part
        position, fence = cut.start, cut.fence
        if fence and lines.is_closing(position):
            position, fence = lines.after(position), None


def _part(body: str, before: Fence | None, after: Fence | None) -> str:
    """Return a part with its code blocks opened and closed."""
    if before is None:
        body = body.lstrip("\n")
    if after is None:
        body = body.rstrip()
    if not body.strip():
        return ""
    opening = f"{before.opening}\n" if before else ""
    closing = f"\n{after.closing}" if after else ""
    return f"{opening}{body}{closing}"
