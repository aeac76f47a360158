"""Read: the text of a file, or of some of its lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anyio import to_thread

from nightherd.errors import InvalidValueError
from nightherd.model.secret import Secrets
from nightherd.model.secret_filter import SecretFilter
from nightherd.runtimes.tools.arguments import Arguments
from nightherd.runtimes.tools.paths import explain, get_file, locate
from nightherd.runtimes.tools.tool import ToolContext, ToolOutcome, failed

READ_LIMIT_BYTES = 256 * 1024
BINARY_PROBE_BYTES = 8 * 1024
LONGEST_SECRET_BYTES = 8 * 1024
"""Read beyond the limit, so that a secret that begins before it is masked."""


@dataclass(frozen=True, slots=True)
class Read:
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
