"""Read, Write and Edit: files inside the directories that are open to an agent. This is no sandbox: a command reaches what its user can reach."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from anyio import to_thread

from nightherd.errors import InvalidValueError
from nightherd.files.paths import follow
from nightherd.model.permissions.permission import LONGEST_PATH
from nightherd.model.secrets import SecretFilter, Secrets
from nightherd.runtimes.tools.tool import Arguments, ToolContext, ToolOutcome, failed


def locate(root: Path, text: str, more: Sequence[Path] = ()) -> Path:
    """The real path of `text`, links followed; `InvalidValueError` unless inside `root` or one of `more`."""
    if not text or "\0" in text:
        raise InvalidValueError("the path is empty, or has a zero byte in it")
    if len(text) > LONGEST_PATH:
        raise InvalidValueError(f"no path has {len(text):,} characters")
    try:
        base = follow(root)
        path = follow(base / text)
    except (OSError, ValueError) as error:  # a circle of links, an impossible name
        raise InvalidValueError(f"{text!r} is not a path that can be used: {error}") from error
    if not any(path.is_relative_to(one) for one in (base, *(other.resolve() for other in more))):
        raise InvalidValueError(f"{text!r} is outside the working directory")
    return path


def find_file(path: Path, name: str) -> os.stat_result | None:
    """What is known of the file at `path`, None when there is none, a refusal when it is something else."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISDIR(found.st_mode):
        raise InvalidValueError(f"{name} is a directory")
    if not stat.S_ISREG(found.st_mode):
        raise InvalidValueError(f"{name} is not a regular file")
    return found


def get_file(path: Path, name: str) -> os.stat_result:
    """What is known of the file at `path`, or a refusal when there is no regular file."""
    file = find_file(path, name)
    if file is None:
        raise InvalidValueError(f"there is no file {name}")
    return file


def explain(error: OSError, name: str) -> str:
    """Why the system would not do it, in terms of the file as the agent named it."""
    return f"{name}: {error.strerror or error}"


def replace_file(path: Path, content: bytes, *, old: os.stat_result | None, call: str) -> None:
    """Put `content` at `path` by a rename; an `old` file's mode stays, and its owner where that is allowed.

    A file that may not be written is not replaced either, though a rename could: `PermissionError`.
    """
    if old is not None and not os.access(path, os.W_OK):
        raise PermissionError(13, "the file is read-only", str(path))
    token = hashlib.sha256(call.encode(errors="replace")).hexdigest()[:12]
    temporary = path.parent / f".nightherd-{os.getpid()}-{token}.tmp"
    temporary.unlink(missing_ok=True)  # left by a killed process that had our pid
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(file, "wb") as stream:
            stream.write(content)
            if old is not None:
                _take_over(stream.fileno(), old)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _take_over(file: int, old: os.stat_result) -> None:
    try:
        os.fchown(file, old.st_uid, old.st_gid)
    except PermissionError:
        pass  # only root may give files away; the content is what was asked for
    os.fchmod(file, stat.S_IMODE(old.st_mode))


EDIT_LIMIT_BYTES = 32 * 1024 * 1024


class Edit(msgspec.Struct, frozen=True):
    """`file_path`, `old_string`, `new_string`, optionally `replace_all`.

    `old_string` has to stand in the file exactly once, unless all are to be replaced. Everything else in
    the file stays byte for byte, also what is not UTF-8.
    """

    name: str = "Edit"
    starts_processes: bool = False
    is_read_only: bool = False

    async def run(self, input: Mapping[str, Any], context: ToolContext) -> ToolOutcome:
        """Make the change, whole or not at all."""
        names = ("file_path", "old_string", "new_string", "replace_all")
        try:
            arguments = Arguments(self.name, input, names)
            name = arguments.text("file_path")
            old, new = arguments.text("old_string").encode(), arguments.text("new_string").encode()
            everywhere = arguments.flag("replace_all")
            count = await to_thread.run_sync(_edit, context, name, old, new, everywhere)
        except UnicodeEncodeError:
            return failed("Edit: the strings are not text: one has half of a surrogate pair")
        except InvalidValueError as error:
            return failed(str(error))
        except OSError as error:
            return failed(explain(error, str(input["file_path"])))
        places = "1 place" if count == 1 else f"{count:,} places"
        return ToolOutcome(result=f"changed {places} in {name}")


def _edit(context: ToolContext, name: str, old: bytes, new: bytes, everywhere: bool) -> int:
    if not old:
        raise InvalidValueError("Edit: 'old_string' is empty; use Write to give a file its content")
    if old == new:
        raise InvalidValueError("Edit: 'old_string' and 'new_string' are the same")
    path = locate(context.working_directory, name, context.more_directories)
    file = get_file(path, name)
    if file.st_size > EDIT_LIMIT_BYTES:
        raise InvalidValueError(f"{name} is too big to edit: {file.st_size:,} bytes")
    content = path.read_bytes()
    first = content.find(old)
    if first < 0:
        raise InvalidValueError(
            f"{name} does not contain 'old_string'{_line_end_hint(content, old)}"
        )
    # Looked for from the next byte on, so that occurrences that overlap count as two.
    if not everywhere and content.find(old, first + 1) >= 0:
        raise InvalidValueError(
            f"{name} contains 'old_string' more than once; give more of its surroundings, "
            "or set 'replace_all'"
        )
    count = content.count(old) if everywhere else 1
    changed = content.replace(old, new) if everywhere else content.replace(old, new, 1)
    replace_file(path, changed, old=file, call=context.tool_use_id)
    return count


def _line_end_hint(content: bytes, old: bytes) -> str:
    if old.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n") in content:
        return "; its lines end with CRLF"
    return ""


class Write(msgspec.Struct, frozen=True):
    """`file_path` and `content`. Missing directories are made; an existing file is replaced, mode kept."""

    name: str = "Write"
    starts_processes: bool = False
    is_read_only: bool = False

    async def run(self, input: Mapping[str, Any], context: ToolContext) -> ToolOutcome:
        """Write it, whole or not at all."""
        try:
            arguments = Arguments(self.name, input, ("file_path", "content"))
            name = arguments.text("file_path")
            content = arguments.text("content").encode()
            await to_thread.run_sync(_write, context, name, content)
        except UnicodeEncodeError:
            return failed("Write: 'content' is not text: it has half of a surrogate pair")
        except InvalidValueError as error:
            return failed(str(error))
        except OSError as error:
            return failed(explain(error, str(input["file_path"])))
        return ToolOutcome(result=f"wrote {len(content):,} bytes to {name}")


def _write(context: ToolContext, name: str, content: bytes) -> None:
    path = locate(context.working_directory, name, context.more_directories)
    old = find_file(path, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, content, old=old, call=context.tool_use_id)


READ_LIMIT_BYTES = 256 * 1024
BINARY_PROBE_BYTES = 8 * 1024
LONGEST_SECRET_BYTES = 8 * 1024
"""Read beyond the limit, so that a secret that begins before it is masked."""


class Read(msgspec.Struct, frozen=True):
    """`file_path`, optionally `offset` (first line, from 1) and `limit` (how many lines).

    The result is the text as it stands in the file. One that is cut short ends with a note that says so.
    """

    name: str = "Read"
    starts_processes: bool = False
    is_read_only: bool = True

    async def run(self, input: Mapping[str, Any], context: ToolContext) -> ToolOutcome:
        """Read it."""
        try:
            arguments = Arguments(self.name, input, ("file_path", "offset", "limit"))
            name = arguments.text("file_path")
            offset = arguments.count("offset") or 1
            limit = arguments.count("limit")
            text = await to_thread.run_sync(
                _read, context, name, offset, limit, abandon_on_cancel=True
            )
        except InvalidValueError as error:
            return failed(str(error))
        except OSError as error:
            return failed(explain(error, str(input["file_path"])))
        return ToolOutcome(result=text)


def _read(context: ToolContext, name: str, offset: int, limit: int | None) -> str:
    path = locate(context.working_directory, name, context.more_directories)
    size = get_file(path, name).st_size
    with path.open("rb") as file:
        if b"\0" in file.read(BINARY_PROBE_BYTES):
            raise InvalidValueError(f"{name} is a binary file of {size:,} bytes")
        file.seek(0)
        line = 1
        while line < offset:
            piece = file.readline(READ_LIMIT_BYTES)
            if not piece:
                raise InvalidValueError(f"{name} has fewer than {offset} lines")
            line += piece.endswith(b"\n")
        kept, room = bytearray(), READ_LIMIT_BYTES
        while limit is None or line < offset + limit:
            piece = file.readline(room + 1)
            if len(piece) > room:
                if not kept:
                    piece = _masked(piece + file.readline(LONGEST_SECRET_BYTES), context.secrets)
                return kept.decode(errors="replace") + _note(name, size, line, piece[:room])
            if not piece:
                break
            kept += piece
            room -= len(piece)
            line += 1
    if not kept and offset > 1:
        raise InvalidValueError(f"{name} has fewer than {offset} lines")
    return kept.decode(errors="replace")


def _masked(piece: bytes, secrets: Secrets) -> bytes:
    """A piece that is about to be cut, without secrets."""
    masking = SecretFilter(secrets)
    return masking.feed(piece) + masking.finish()


def _note(name: str, size: int, line: int, piece: bytes) -> str:
    """What stands where the text is cut: whole lines before it, unless the first alone is too long."""
    if len(piece) == READ_LIMIT_BYTES:
        text = piece.decode(errors="replace")
        return f"{text}\n[... line {line} of {name} is too long; the file has {size:,} bytes ...]\n"
    return f"[... {name} has {size:,} bytes; go on with offset {line} ...]\n"
