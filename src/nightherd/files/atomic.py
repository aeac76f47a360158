"""Writing files: replaced atomically, or appended to by whole lines. The system calls are values that tests can make fail."""

from __future__ import annotations

import errno
import json
import os
import re
import time
from collections.abc import Callable
from datetime import timedelta
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import msgspec

from nightherd.errors import AtomicWriteError, StateFileError
from nightherd.files.permission import error_code, permission_error_message, state_file_error


class FileCalls(msgspec.Struct, frozen=True, kw_only=True):
    """What the machine does for us; the defaults are the real thing."""

    rename: Callable[[str, str], None] = os.replace
    """Of names, not of path objects: making those costs more than the call, and a mirror renames all day."""
    fsync: Callable[[int], None] = os.fsync
    sleep: Callable[[float], None] = time.sleep


SYSTEM_CALLS = FileCalls()
"""The real ones."""


def sync_directory(directory: Path, calls: FileCalls = SYSTEM_CALLS) -> None:
    """The names in `directory` survive a power cut from here on."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        calls.fsync(handle)
    finally:
        os.close(handle)


def write_all(descriptor: int, data: bytes) -> None:
    """Write `data` to its last byte; the system may take it in pieces."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


TEMP_NAME = re.compile(r"\.(?P<name>.+)\.tmp\.[0-9a-f]{16}", re.DOTALL)
YOUNGEST_STALE = timedelta(minutes=1)
"""A younger one may belong to a writer that is still at it."""


def temp_path_for(path: Path) -> Path:
    """Return an unused name, in the directory of `path`: a rename never crosses filesystems."""
    return Path(temp_name_for(str(path)))


def temp_name_for(path: str) -> str:
    """The same for a path as text."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}.tmp.{os.urandom(8).hex()}"


RETRIES = 3
FIRST_DELAY_S = 0.05
DELAYS_S = (*(FIRST_DELAY_S * 2**retry for retry in range(RETRIES)), None)
PASSING = frozenset({errno.EACCES, errno.EPERM})
"""What a rename fails with while another process has the target open; anything else will not pass."""


def rename_with_retry(
    source: str | PathLike[str], target: str | PathLike[str], *, calls: FileCalls = SYSTEM_CALLS
) -> None:
    """Rename `source` over `target`; on EACCES and EPERM three more times, 50, 100 and 200 ms apart.

    Any other error, and the fourth refusal, is raised as it is.
    """
    for delay in DELAYS_S:
        try:
            calls.rename(fspath(source), fspath(target))
            return
        except OSError as error:
            if delay is None or error.errno not in PASSING:
                raise
        calls.sleep(delay)


PRIVATE = 0o600


def atomic_write_file(
    path: str | Path,
    content: str | bytes,
    *,
    durable: bool = True,
    mode: int = PRIVATE,
    calls: FileCalls = SYSTEM_CALLS,
) -> None:
    """Replace `path` by a file with `content`, or raise `AtomicWriteError` and leave it untouched.

    With `durable` (the default) file and directory are synced: once it returns, a power cut changes
    nothing. Without, the file is still never torn, but an older one may be back after a power cut.
    """
    target = os.fspath(path)
    try:
        data = content.encode() if isinstance(content, str) else content
    except UnicodeEncodeError as error:
        raise AtomicWriteError(f"'{path}': the text is not UTF-8", path=str(path)) from error
    temp = temp_name_for(target)
    try:
        _write_new(temp, data, mode, calls if durable else None)
        rename_with_retry(temp, target, calls=calls)
    except OSError as error:
        _discard(temp)
        raise _failure(error, target, temp) from error
    except BaseException:
        _discard(temp)
        raise
    if durable:
        try:
            sync_directory(Path(target).parent, calls)
        except OSError as error:
            raise _failure(error, target, temp) from error


def atomic_write_json(
    path: str | Path, data: Any, *, durable: bool = True, calls: FileCalls = SYSTEM_CALLS
) -> None:
    """Replace `path` by `data` as JSON (two spaces, a newline at the end), as `atomic_write_file` does."""
    try:
        text = dump_json(data)
    except (TypeError, ValueError, RecursionError) as error:
        raise not_writable("JSON", path, error) from error
    atomic_write_file(path, text, durable=durable, calls=calls)


def dump_json(data: Any) -> str:
    """`data` as JSON for people; a lone surrogate, which UTF-8 does not have, makes the text ASCII."""
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(data, indent=2, allow_nan=False) + "\n"
    return text


def _write_new(path: str, data: bytes, mode: int, durable: FileCalls | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    handle = os.open(path, flags, mode)
    try:
        write_all(handle, data)
        if durable is not None:
            durable.fsync(handle)
    finally:
        os.close(handle)


def _discard(temp: str) -> None:
    try:
        Path(temp).unlink(missing_ok=True)
    except OSError:
        # What failed before says why; `nightherd doctor` finds what is left.
        return


def _failure(error: OSError, path: str, temp: str) -> AtomicWriteError:
    code = error_code(error)
    # Of a file that is to be written, only the directory can be missing.
    message = permission_error_message(code, Path(path).parent if code == "ENOENT" else path)
    return AtomicWriteError(message, path=path, temp_path=temp, code=code)


def not_writable(kind: str, path: str | Path, error: Exception) -> AtomicWriteError:
    return AtomicWriteError(f"'{path}': this cannot be written as {kind}: {error}", path=str(path))


def append_jsonl(
    path: str | Path, data: Any, *, durable: bool = False, calls: FileCalls = SYSTEM_CALLS
) -> None:
    """Append `data` as one line, written at once; the file is made when it is not there.

    An unfinished last line is ended first: it stays a bad line of its own and does not
    swallow this one. Lines that were there are never touched, whatever fails.
    """
    try:
        line = (json.dumps(data, separators=(",", ":"), allow_nan=False) + "\n").encode()
    except (TypeError, ValueError, RecursionError) as error:
        message = f"'{path}': this cannot be written as JSON: {error}"
        raise StateFileError(message, path=str(path), operation="append") from error
    try:
        _append(Path(path), line, calls if durable else None)
    except OSError as error:
        raise state_file_error(error, path, "append") from error


def _append(path: Path, line: bytes, durable: FileCalls | None) -> None:
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    handle = os.open(path, flags, PRIVATE)
    try:
        size = os.fstat(handle).st_size
        if size and os.pread(handle, 1, size - 1) != b"\n":
            line = b"\n" + line
        write_all(handle, line)
        if durable is not None:
            durable.fsync(handle)
    finally:
        os.close(handle)
