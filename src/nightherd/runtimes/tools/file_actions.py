"""Reading, writing and editing a file: a program of its own too, without anything of ours, for where only that can be run.

As a program it reads one JSON object from standard input and prints one: see `act`. Python 3.9 is enough.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import signal
import stat
import sys
from collections.abc import Sequence
from typing import Any, BinaryIO, NamedTuple

EDIT_LIMIT_BYTES = 32 * 1024 * 1024
READ_LIMIT_BYTES = 256 * 1024
BINARY_PROBE_BYTES = 8 * 1024
LONGEST_SECRET_BYTES = 8 * 1024
"""Read beyond the limit, so that who cuts the text there can mask a secret that begins before it."""


class RefusedPathError(ValueError):
    """The file cannot be used for that, and why."""


class Located(NamedTuple):
    """A file as the agent named it, and its real path."""

    name: str
    path: str


class Text(NamedTuple):
    """What was read of a file of `size` bytes."""

    content: bytes
    size: int
    cut_at: int = 0
    """The line at which the text ends before the file does; 0 when it does not."""
    is_long_line: bool = False
    """Whether `content` is the beginning of line `cut_at` and to be cut to the limit; else it has whole lines."""


def locate(root: str, text: str, more: Sequence[str] = ()) -> str:
    """The real path of `text`, links followed; `RefusedPathError` unless inside `root` or one of `more`."""
    try:
        base = follow(root)
        path = follow(os.path.join(base, text))  # noqa: PTH118
        others = [os.path.realpath(other) for other in more]
    except (OSError, ValueError) as error:  # a circle of links, an impossible name
        raise RefusedPathError(f"{text!r} is not a path that can be used: {error}") from error
    if not any(_is_within(path, one) for one in (base, *others)):
        raise RefusedPathError(f"{text!r} is outside the working directory")
    return path


def follow(path: str) -> str:
    """As `nightherd.files.paths.follow`, which says why circles are looked for."""
    _check_circle(path)
    real = os.path.realpath(path)
    _check_circle(real)
    if os.path.realpath(real) != real:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    return real


def _check_circle(path: str) -> None:
    try:
        os.stat(path)  # noqa: PTH116
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise


def _is_within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def find_file(file: Located) -> os.stat_result | None:
    """What is known of the file, None when there is none, a refusal when it is something else."""
    try:
        found = os.stat(file.path)  # noqa: PTH116
    except (FileNotFoundError, NotADirectoryError):
        return None
    _check_regular(file.name, found)
    return found


def _check_regular(name: str, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise RefusedPathError(f"{name} is a directory")
    if not stat.S_ISREG(found.st_mode):
        raise RefusedPathError(f"{name} is not a regular file")


def open_file(file: Located) -> BinaryIO:
    """The file, open for reading; a refusal when there is no regular file. Never waits, as for a pipe."""
    if find_file(file) is None:
        raise RefusedPathError(f"there is no file {file.name}")
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    opened = os.open(file.path, flags)
    try:
        _check_regular(file.name, os.fstat(opened))  # it may be another one by now
        return os.fdopen(opened, "rb")
    except BaseException:
        os.close(opened)
        raise


def replace_file(path: str, content: bytes, *, old: os.stat_result | None, token: str) -> None:
    """Put `content` at `path` by a rename; an `old` file's mode stays, and its owner where that is allowed.

    A file that may not be written is not replaced either, though a rename could: `PermissionError`.
    """
    if old is not None and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "the file is read-only", path)
    temporary = os.path.join(os.path.dirname(path), f".nightherd-{os.getpid()}-{token}.tmp")  # noqa: PTH118, PTH120
    _remove(temporary)  # left by a killed process that had our pid
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(file, "wb") as stream:
            stream.write(content)
            if old is not None:
                _take_over(stream.fileno(), old)
        os.replace(temporary, path)  # noqa: PTH105
    except BaseException:
        _remove(temporary)
        raise


def _remove(path: str) -> None:
    try:
        os.unlink(path)  # noqa: PTH108
    except FileNotFoundError:
        pass


def _take_over(file: int, old: os.stat_result) -> None:
    try:
        os.fchown(file, old.st_uid, old.st_gid)
    except PermissionError:
        pass  # only root may give files away; the content is what was asked for
    os.fchmod(file, stat.S_IMODE(old.st_mode))


def edit(file: Located, old: bytes, new: bytes, *, everywhere: bool, token: str) -> int:
    """Replace `old`, whole or not at all; in how many places."""
    with open_file(file) as opened:
        found = os.fstat(opened.fileno())
        content = opened.read(EDIT_LIMIT_BYTES + 1)
    if len(content) > EDIT_LIMIT_BYTES:
        raise RefusedPathError(f"{file.name} is too big to edit: {found.st_size:,} bytes")
    first = content.find(old)
    if first < 0:
        hint = _line_end_hint(content, old)
        raise RefusedPathError(f"{file.name} does not contain 'old_string'{hint}")
    # Looked for from the next byte on, so that occurrences that overlap count as two.
    if not everywhere and content.find(old, first + 1) >= 0:
        raise RefusedPathError(
            f"{file.name} contains 'old_string' more than once; give more of its surroundings, "
            "or set 'replace_all'"
        )
    count = content.count(old) if everywhere else 1
    replace_file(file.path, content.replace(old, new, count), old=found, token=token)
    return count


def _line_end_hint(content: bytes, old: bytes) -> str:
    if old.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n") in content:
        return "; its lines end with CRLF"
    return ""


def write(file: Located, content: bytes, *, token: str) -> None:
    """Give the file its content, whole or not at all; missing directories are made."""
    old = find_file(file)
    os.makedirs(os.path.dirname(file.path), exist_ok=True)  # noqa: PTH103, PTH120
    replace_file(file.path, content, old=old, token=token)


def read(file: Located, offset: int, limit: int | None) -> Text:
    """`limit` lines from line `offset` on, as many as there is room for."""
    with open_file(file) as opened:
        size = os.fstat(opened.fileno()).st_size
        if b"\0" in opened.read(BINARY_PROBE_BYTES):
            raise RefusedPathError(f"{file.name} is a binary file of {size:,} bytes")
        opened.seek(0)
        line = 1
        while line < offset:
            piece = opened.readline(READ_LIMIT_BYTES)
            if not piece:
                raise RefusedPathError(f"{file.name} has fewer than {offset} lines")
            line += piece.endswith(b"\n")
        kept, room = bytearray(), READ_LIMIT_BYTES
        while limit is None or line < offset + limit:
            piece = opened.readline(room + 1)
            if len(piece) > room and not kept:
                piece += opened.readline(LONGEST_SECRET_BYTES)
                return Text(piece, size, cut_at=line, is_long_line=True)
            if len(piece) > room:
                return Text(bytes(kept), size, cut_at=line)
            if not piece:
                break
            kept += piece
            room -= len(piece)
            line += 1
    if not kept and offset > 1:
        raise RefusedPathError(f"{file.name} has fewer than {offset} lines")
    return Text(bytes(kept), size)


def act(request: dict[str, Any]) -> dict[str, Any]:
    """Do what `request` asks; the answer has an `error`, or what there is to say.

    It has `name` (Read, Write or Edit), `root`, `more` and `path` (see `locate`), and for each action what
    its function takes. Read answers as `Text`, Edit with its `count`.
    """
    name = request["path"]
    try:
        file = Located(name, locate(request["root"], name, request["more"]))
        if request["name"] == "Read":
            return read(file, request["offset"], request["limit"])._asdict()
        token = request["token"]
        if request["name"] == "Write":
            write(file, request["content"].encode(), token=token)
            return {}
        old, new = request["old"].encode(), request["new"].encode()
        return {"count": edit(file, old, new, everywhere=request["everywhere"], token=token)}
    except RefusedPathError as error:
        return {"error": str(error)}
    except OSError as error:
        # In terms of the file as the agent named it.
        return {"error": f"{name}: {error.strerror or error}"}


def main() -> int:
    """Act on the request on standard input. A change that has begun is finished, unless we are killed."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    request = json.load(sys.stdin)
    if request["name"] == "Read":
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    answer = act(request)
    if "content" in answer:
        answer["content"] = base64.b64encode(answer["content"]).decode()
    sys.stdout.write(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
