"""Patches on the screen: bytes as they are for a program, safe and coloured text for a person."""

from __future__ import annotations

from collections.abc import Iterator

from nightherd.cli.screen.render import Screen, Style, neutralise

HEADERS = (
    "diff --git ", "index ", "--- ", "+++ ", "new file mode ", "deleted file mode ", "old mode ", "new mode ",
    "similarity index ", "rename from ", "rename to ", "copy from ", "copy to ", "Binary files ",
)  # fmt: skip
"""What the lines before the first hunk of a file begin with."""


def show_patch(patch: bytes, screen: Screen) -> None:
    """Write a patch: byte for byte where a program reads it, else nothing in it can control the terminal."""
    if not (screen.is_terminal or screen.out.is_colored):
        screen.write_bytes(patch)
        return
    text = neutralise(patch.decode("utf-8", "backslashreplace"))
    lines = _coloured(text.split("\n"), screen.out) if screen.out.is_colored else text.split("\n")
    screen.write("\n".join(lines))


def _coloured(lines: list[str], style: Style) -> Iterator[str]:
    """Colour by the first character; headers only before the first hunk of a file, where content cannot be."""
    is_header = True
    for line in lines:
        if line.startswith("diff --git "):
            is_header = True
        elif line.startswith("@@ "):
            is_header = False
            yield style.call(line)
            continue
        if is_header and line.startswith(HEADERS):
            yield style.bold(line)
        elif line.startswith("+"):
            yield style.good(line)
        elif line.startswith("-"):
            yield style.bad(line)
        else:
            yield line


def path_line(path: str) -> str:
    """Return a path on one line; one with control characters or broken bytes is quoted as git quotes it."""
    if path.isprintable() and '"' not in path and "\\" not in path:
        return path
    return '"' + "".join(_quoted(char) for char in path) + '"'


ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def _quoted(char: str) -> str:
    if char in ESCAPES:
        return ESCAPES[char]
    if char.isprintable():
        return char
    return "".join(f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogateescape"))
