"""Writing a file as a whole: readers see the old one or the new one, never a part of either.

The content goes to `.<name>.tmp.<16 hex>` beside the target and is renamed over it. When anything fails
the temporary file is removed and the target is what it was.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from nightherd.errors import AtomicWriteError
from nightherd.files.calls import SYSTEM_CALLS, FileCalls, sync_directory, write_all
from nightherd.files.permission import error_code, permission_error_message
from nightherd.files.rename import rename_with_retry
from nightherd.files.temp_files import temp_name_for
from nightherd.files.yaml_dump import dump_yaml

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


def atomic_write_yaml(
    path: str | Path, data: Any, *, durable: bool = True, calls: FileCalls = SYSTEM_CALLS
) -> None:
    """Replace `path` by `data` as YAML (block style, two spaces), as `atomic_write_file` does."""
    try:
        text = dump_yaml(data)
    except (TypeError, ValueError, RecursionError) as error:
        raise _not_writable("YAML", path, error) from error
    atomic_write_file(path, text, durable=durable, calls=calls)


def atomic_write_json(
    path: str | Path, data: Any, *, durable: bool = True, calls: FileCalls = SYSTEM_CALLS
) -> None:
    """Replace `path` by `data` as JSON (two spaces, a newline at the end), as `atomic_write_file` does."""
    try:
        text = dump_json(data)
    except (TypeError, ValueError, RecursionError) as error:
        raise _not_writable("JSON", path, error) from error
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


def _not_writable(kind: str, path: str | Path, error: Exception) -> AtomicWriteError:
    return AtomicWriteError(f"'{path}': this cannot be written as {kind}: {error}", path=str(path))
