"""Read, Write and Edit: files inside the directories that are open to an agent. This is no sandbox: a command reaches what its user can reach."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec
from anyio import to_thread

from nightherd.decoding import convert
from nightherd.errors import InvalidValueError
from nightherd.model.permissions.permission import LONGEST_PATH
from nightherd.model.secrets import SecretFilter, Secrets
from nightherd.runtimes.tools import file_actions
from nightherd.runtimes.tools.file_actions import LONGEST_SECRET_BYTES, READ_LIMIT_BYTES
from nightherd.runtimes.tools.program import ProgramFailedError, run_program
from nightherd.runtimes.tools.tool import Arguments, ToolContext, ToolOutcome, failed


def check_path(text: str) -> str:
    """`text`, unless it can be no path at all: `InvalidValueError`. Nothing is looked up."""
    if not text or "\0" in text:
        raise InvalidValueError("the path is empty, or has a zero byte in it")
    if len(text) > LONGEST_PATH:
        raise InvalidValueError(f"no path has {len(text):,} characters")
    return text


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What `file_actions.act` answers. One from inside a container may say anything."""

    error: str | None = None
    content: bytes = b""
    size: int = 0
    cut_at: int = 0
    is_long_line: bool = False
    count: int = 0


async def _act(
    action: str, path: str, context: ToolContext, *, is_change: bool = True, **more: Any
) -> _Answer:
    """Have it done where the agent's commands run; `InvalidValueError` says why it was not."""
    request = {
        "name": action,
        "root": str(context.working_directory),
        "more": [str(directory) for directory in context.more_directories],
        "path": check_path(path),
        **more,
    }
    if context.keepers.place.is_container:
        # Links in a directory that is shared with a container are followed only inside.
        found = await run_program("file_actions.py", request, context)
    else:
        act = partial(file_actions.act, request)
        found = await to_thread.run_sync(act, abandon_on_cancel=not is_change)
    try:
        answer = convert(found, _Answer)
    except msgspec.ValidationError as error:
        raise InvalidValueError(f"the answer from inside the container is wrong: {error}") from None
    if answer.error is not None:
        raise InvalidValueError(answer.error)
    return answer


def _token(context: ToolContext) -> str:
    """Part of the name of the file that a change is first written to."""
    return hashlib.sha256(context.tool_use_id.encode(errors="replace")).hexdigest()[:12]


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
            old, new = arguments.text("old_string"), arguments.text("new_string")
            everywhere = arguments.flag("replace_all")
            _check_strings(old, new)
            answer = await _act(
                self.name,
                name,
                context,
                old=old,
                new=new,
                everywhere=everywhere,
                token=_token(context),
            )
        except InvalidValueError as error:
            return failed(str(error))
        except ProgramFailedError as error:
            return error.outcome
        places = "1 place" if answer.count == 1 else f"{answer.count:,} places"
        return ToolOutcome(result=f"changed {places} in {name}")


def _check_strings(old: str, new: str) -> None:
    if not (_is_text(old) and _is_text(new)):
        raise InvalidValueError("Edit: the strings are not text: one has half of a surrogate pair")
    if not old:
        raise InvalidValueError("Edit: 'old_string' is empty; use Write to give a file its content")
    if old == new:
        raise InvalidValueError("Edit: 'old_string' and 'new_string' are the same")


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class Write(msgspec.Struct, frozen=True):
    """`file_path` and `content`. Missing directories are made; an existing file is replaced, mode kept."""

    name: str = "Write"
    starts_processes: bool = False
    is_read_only: bool = False

    async def run(self, input: Mapping[str, Any], context: ToolContext) -> ToolOutcome:
        """Write it, whole or not at all."""
        try:
            arguments = Arguments(self.name, input, ("file_path", "content"))
            name, content = arguments.text("file_path"), arguments.text("content")
            size = len(content.encode())
            await _act(self.name, name, context, content=content, token=_token(context))
        except UnicodeEncodeError:
            return failed("Write: 'content' is not text: it has half of a surrogate pair")
        except InvalidValueError as error:
            return failed(str(error))
        except ProgramFailedError as error:
            return error.outcome
        return ToolOutcome(result=f"wrote {size:,} bytes to {name}")


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
            answer = await _act(
                self.name,
                name,
                context,
                is_change=False,
                offset=arguments.count("offset") or 1,
                limit=arguments.count("limit"),
            )
        except InvalidValueError as error:
            return failed(str(error))
        except ProgramFailedError as error:
            return error.outcome
        return ToolOutcome(result=_shown(name, answer, context.secrets))


def _shown(name: str, answer: _Answer, secrets: Secrets) -> str:
    """The text, and where it is cut a note: whole lines before it, unless the first alone is too long."""
    if answer.is_long_line:
        text = _masked(answer.content, secrets)[:READ_LIMIT_BYTES].decode(errors="replace")
        return (
            f"{text}\n[... line {answer.cut_at} of {name} is too long; "
            f"the file has {answer.size:,} bytes ...]\n"
        )
    text = answer.content.decode(errors="replace")
    if answer.cut_at:
        text += f"[... {name} has {answer.size:,} bytes; go on with offset {answer.cut_at} ...]\n"
    return text


def _masked(piece: bytes, secrets: Secrets) -> bytes:
    """A piece that is about to be cut, without secrets; also without one that the end of the piece cuts."""
    masking = SecretFilter(secrets)
    masked = masking.feed(piece)
    is_whole = len(piece) <= READ_LIMIT_BYTES + LONGEST_SECRET_BYTES
    return masked + masking.finish() if is_whole else masked
