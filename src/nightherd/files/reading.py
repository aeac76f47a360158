"""Opening what should be a file: a pipe, a directory or a device in its place is reported, and never waited for."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import msgspec
import yaml

from nightherd.errors import SafeReadError
from nightherd.files.permission import error_code, permission_error_message
from nightherd.files.regular import read_regular
from nightherd.files.yaml_load import load_yaml

RETRIES = 3
FIRST_DELAY_S = 0.01

Data = TypeVar("Data")
Sleep = Callable[[float], None]


class ReadOk(msgspec.Struct, Generic[Data], frozen=True, kw_only=True):
    """What the file holds; of JSONL also how many lines were left out."""

    success: ClassVar[bool] = True
    data: Data
    skipped_lines: int = 0


class ReadFailed(msgspec.Struct, frozen=True, kw_only=True):
    """Why it could not be read."""

    success: ClassVar[bool] = False
    error: SafeReadError


def safe_read_yaml(
    path: str | Path, *, retries: int = RETRIES, sleep: Sleep = time.sleep
) -> ReadOk[Any] | ReadFailed:
    """The document in a YAML file; an empty file is None. Never raises for what the file is."""
    return _read(Path(path), load_yaml, retries, sleep)


def safe_read_json(
    path: str | Path, *, retries: int = RETRIES, sleep: Sleep = time.sleep
) -> ReadOk[Any] | ReadFailed:
    """The value in a JSON file. Never raises for what the file is."""
    return _read(Path(path), json.loads, retries, sleep)


def safe_read_jsonl(
    path: str | Path, *, skip_invalid_lines: bool = False
) -> ReadOk[list[Any]] | ReadFailed:
    """The records of a JSONL file, in order; blank lines are none.

    A last line that does not parse is one that is still being written: left out and counted. A bad line
    before it is damage, and raises `SafeReadError` with its number unless `skip_invalid_lines`.
    """
    try:
        lines = read_regular(Path(path)).removeprefix(b"\xef\xbb\xbf").split(b"\n")
    except OSError as error:
        return ReadFailed(error=_unreadable(Path(path), error))
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    records, skipped = [], 0
    for number, line in numbered:
        try:
            records.append(json.loads(line.decode()))
        except (ValueError, RecursionError) as error:
            if number != numbered[-1][0] and not skip_invalid_lines:
                raise SafeReadError(
                    f"'{path}', line {number}: not JSON ({error})", path=str(path), code="INVALID"
                ) from error
            skipped += 1
    return ReadOk(data=records, skipped_lines=skipped)


def _read(
    path: Path, parse: Callable[[str], Any], retries: int, sleep: Sleep
) -> ReadOk[Any] | ReadFailed:
    for delay in (*(FIRST_DELAY_S * 2**retry for retry in range(retries)), None):
        try:
            return ReadOk(data=parse(read_regular(path).decode("utf-8-sig")))
        except OSError as error:
            return ReadFailed(error=_unreadable(path, error))
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            if delay is None:
                return ReadFailed(error=_unparsable(path, error))
        sleep(delay)
    raise AssertionError("the last delay is None, and returns")


def _unreadable(path: Path, cause: OSError) -> SafeReadError:
    code = error_code(cause)
    error = SafeReadError(permission_error_message(code, path), path=str(path), code=code)
    error.__cause__ = cause
    return error


def _unparsable(path: Path, cause: Exception) -> SafeReadError:
    reason = " ".join(str(cause).split())
    error = SafeReadError(f"'{path}' cannot be parsed: {reason}", path=str(path), code="INVALID")
    error.__cause__ = cause
    return error
