"""Searching files: a program of its own, without anything of ours, so that no pattern can hold up a worker.

Reads one JSON object from standard input, and prints what was found, one line each: `name`, `pattern`,
`root` (where relative paths begin), `path` (what is searched, inside `root` or one of `more`), and for Grep
`glob`, `ignore_case` and `mode`. Python 3.9 is enough.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator

MAX_RESULTS = 1_000
MAX_FILES = 200_000
MAX_FILE_BYTES = 16 * 1024 * 1024
MAX_LINE = 500
"""Characters of a line that are shown; who started the program cuts it, after masking."""
PRINTED_LINE = MAX_LINE + 8_192
"""Characters of a line that are printed: a secret that begins where the line is cut is there to its end."""
TEXT_MARK = b"\0"
"""Stands between a place and the text that was found there."""
PROBE_BYTES = 8 * 1024
SKIPPED = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__"})
"""Directories that are not searched."""


def glob_pattern(glob: str) -> re.Pattern[str]:
    """`glob` as a pattern for whole relative paths: `**` is any directories, `*` and `?` stop at a slash."""
    out, place = [], 0
    while place < len(glob):
        if glob.startswith("**/", place):
            out.append("(?:[^/]+/)*")
            place += 3
        elif glob.startswith("**", place):
            out.append(".*")
            place += 2
        elif glob[place] == "{" and "}" in glob[place:]:
            end = glob.index("}", place)
            choices = (
                glob_pattern(one).pattern.removesuffix("\\Z")
                for one in glob[place + 1 : end].split(",")
            )
            out.append(f"(?:{'|'.join(choices)})")
            place = end + 1
        elif glob[place] == "[" and "]" in glob[place + 2 :]:
            end = glob.index("]", place + 2)
            inner = glob[place + 1 : end].replace("\\", "\\\\")
            out.append(f"[{'^' + inner[1:] if inner.startswith('!') else inner}]")
            place = end + 1
        else:
            out.append({"*": "[^/]*", "?": "[^/]"}.get(glob[place], re.escape(glob[place])))
            place += 1
    return re.compile("".join(out) + "\\Z", re.DOTALL)


def files_below(base: str) -> Iterator[str]:
    """Every file below `base` in order, links not followed; `base` itself when it is one."""
    if os.path.isfile(base):  # noqa: PTH113 (no pathlib: it costs more than the search of a small tree)
        yield base
        return
    for place, directories, names in os.walk(base):
        directories[:] = sorted(name for name in directories if name not in SKIPPED)
        for name in sorted(names):
            yield os.path.join(place, name)  # noqa: PTH118


def find(request: dict[str, str]) -> Iterator[str]:
    """Files whose path below the base fits the pattern."""
    wanted = glob_pattern(request["pattern"])
    for count, path in enumerate(files_below(request["base"])):
        if count >= MAX_FILES:
            yield f"[... more than {MAX_FILES:,} files; the rest was not looked at ...]"
            return
        if wanted.match(os.path.relpath(path, request["base"])):
            yield os.path.relpath(path, request["root"])


def grep(request: dict[str, str]) -> Iterator[str]:
    """Lines that fit the pattern, or the files that have some."""
    wanted = re.compile(request["pattern"], re.IGNORECASE if request.get("ignore_case") else 0)
    chosen = glob_pattern(request["glob"]) if request.get("glob") else None
    for count, path in enumerate(files_below(request["base"])):
        if count >= MAX_FILES:
            yield f"[... more than {MAX_FILES:,} files; the rest was not looked at ...]"
            return
        below = os.path.relpath(path, request["base"])
        if chosen is not None and not (chosen.match(below) or chosen.match(below.split("/")[-1])):
            continue
        if _is_own_file(path, request["base"]):
            name = os.path.relpath(path, request["root"])
            yield from _in_file(path, name, wanted, request["mode"])


def _is_own_file(path: str, base: str) -> bool:
    """Whether it is a file that lies below `base` with all its links followed; no pipe, no device."""
    real = os.path.realpath(path)
    return (real == base or real.startswith(base.rstrip("/") + "/")) and os.path.isfile(real)  # noqa: PTH113


def _in_file(path: str, name: str, wanted: re.Pattern[str], mode: str) -> Iterator[str]:
    found = 0
    for number, line in enumerate(_lines(path), 1):
        if not wanted.search(line):
            continue
        found += 1
        if mode == "files":
            yield name
            return
        if mode == "content":
            yield f"{name}:{number}:{TEXT_MARK.decode()}{line[:PRINTED_LINE]}"
    if mode == "count" and found:
        yield f"{name}:{found}"


def _lines(path: str) -> Iterator[str]:
    """The lines of a text file; nothing of one that is binary, too big, or not to be read."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            if os.fstat(file.fileno()).st_size > MAX_FILE_BYTES or b"\0" in file.read(PROBE_BYTES):
                return
            file.seek(0)
            for line in file:
                yield line.decode("utf-8", "replace").rstrip("\r\n")
    except OSError:
        return


def main(locate: Callable[..., str]) -> int:
    """0 when the search was made, whatever it found; 2 when it cannot be made."""
    request = json.load(sys.stdin)
    try:
        base = locate(request["root"], request["path"], request["more"])
    except ValueError as error:
        return _refuse(str(error))
    if not os.path.exists(base):  # noqa: PTH110
        return _refuse(f"there is nothing at {request['path']}")
    request = {**request, "root": os.path.realpath(request["root"]), "base": base}
    try:
        found = find(request) if request["name"] == "Glob" else grep(request)
        for count, line in enumerate(found):
            if count >= MAX_RESULTS:
                sys.stdout.write(f"[... more than {MAX_RESULTS:,}; search for less ...]\n")
                break
            sys.stdout.buffer.write(line.encode("utf-8", "surrogateescape") + b"\n")
    except (re.error, RecursionError) as error:
        return _refuse(f"{request['pattern']!r} is not a pattern: {error}")
    return 0


def _refuse(reason: str) -> int:
    sys.stdout.buffer.write(reason.encode("utf-8", "backslashreplace") + b"\n")
    return 2


if __name__ == "__main__":
    # The program beside this one; last, and needed because `-I` does not look there.
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    from file_actions import locate  # type: ignore[import-not-found]

    sys.exit(main(locate))
