"""Blobs: bodies too large for a line, one file each, named by the SHA-256 of what is in it.

A blob is written whole before anything names it and never changes, so the same body is stored once and a
name that can be read always leads to the right bytes or to an error.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import tempfile
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import BinaryIO, Protocol

from nightherd.errors import JournalError
from nightherd.ports import BlobRef, Probe

SHA256 = re.compile(r"[0-9a-f]{64}")
PIECE = 256 * 1024
"""Bytes of a blob that are read at once by one who takes it in pieces."""


class BlobStore(Protocol):
    """Where large bodies go and come from."""

    def put(self, chunks: Iterable[bytes], *, kind: str = "bytes") -> BlobRef: ...
    def get(self, ref: BlobRef) -> bytes: ...


class Blobs:
    """The blobs of one state directory. Safe to share between threads and processes."""

    def __init__(self, directory: Path, *, probe: Probe | None = None) -> None:
        self._directory = directory
        self._probe = probe

    def put(self, chunks: Iterable[bytes], *, kind: str = "bytes") -> BlobRef:
        """Store the bytes; when this returns they survive SIGKILL, after `sync` also a power cut."""
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(prefix=".blob.tmp.", dir=self._directory)
        except OSError as error:
            raise self._failed("write", self._directory, error) from error
        temporary = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                digest, size = hashlib.sha256(), 0
                for chunk in chunks:
                    digest.update(chunk)
                    size += len(chunk)
                    file.write(chunk)
            ref = BlobRef(sha256=digest.hexdigest(), size=size, kind=kind)
            self._reach("journal.before_blob")
            temporary.replace(self._path(ref))
            self._reach("journal.after_blob")
        except BaseException as error:
            temporary.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise self._failed("write", temporary, error) from error
            raise
        return ref

    def get(self, ref: BlobRef) -> bytes:
        """The bytes, checked against their name; `JournalError` when they are gone or not those."""
        path = self._path(ref)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise self._failed("read", path, error) from error
        if len(data) != ref.size or hashlib.sha256(data).hexdigest() != ref.sha256:
            raise _damaged(path)
        return data

    def read(self, sha256: str) -> Generator[bytes, None, None] | None:
        """The bytes in pieces, all of them checked before this returns; None when there is no such blob."""
        path = self._directory / sha256
        if SHA256.fullmatch(sha256) is None:
            return None
        try:
            file = path.open("rb")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._failed("read", path, error) from error
        try:
            is_whole = hashlib.file_digest(file, "sha256").hexdigest() == sha256
            file.seek(0)
        except OSError as error:
            file.close()
            raise self._failed("read", path, error) from error
        if not is_whole:
            file.close()
            raise _damaged(path)
        return _pieces(file)

    def sync(self, refs: Iterable[BlobRef]) -> None:
        """These blobs survive a power cut from here on."""
        try:
            for path in {self._path(ref) for ref in refs}:
                sync_path(path)
            sync_path(self._directory)
        except OSError as error:
            raise self._failed("sync", self._directory, error) from error

    def _reach(self, point: str) -> None:
        if self._probe is not None:
            self._probe(point)

    def _path(self, ref: BlobRef) -> Path:
        # The name comes out of a file; it must not be able to lead out of the directory.
        if SHA256.fullmatch(ref.sha256) is None:
            raise JournalError(f"{ref.sha256[:80]!r} is not the name of a blob", code="blob_name")
        return self._directory / ref.sha256

    def _failed(self, verb: str, path: Path, error: OSError) -> JournalError:
        missing = isinstance(error, FileNotFoundError) and verb == "read"
        return JournalError(
            f"cannot {verb} the blob at {path}: {error.strerror or error}",
            path=str(path),
            code="blob_missing" if missing else os_code(error),
        )


def _pieces(file: BinaryIO) -> Generator[bytes, None, None]:
    with file:
        while piece := file.read(PIECE):
            yield piece


def _damaged(path: Path) -> JournalError:
    return JournalError(
        f"the blob {path.name} is damaged: its content does not match its hash",
        path=str(path),
        code="blob_damaged",
    )


def sync_path(path: Path) -> None:
    """What was written to the file or directory survives a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_data(descriptor: int) -> None:
    """What was written through the handle survives a power cut."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(descriptor)
    else:  # macOS has only the larger one
        os.fsync(descriptor)


def os_code(error: OSError) -> str:
    """The system's name for the error: ENOSPC, EACCES, ..."""
    return errno.errorcode.get(error.errno or 0, "EIO")
