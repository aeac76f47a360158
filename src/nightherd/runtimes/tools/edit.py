"""Edit: puts one text in the place of another in a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anyio import to_thread

from nightherd.errors import InvalidValueError
from nightherd.runtimes.tools.arguments import Arguments
from nightherd.runtimes.tools.paths import explain, get_file, locate
from nightherd.runtimes.tools.replace import replace_file
from nightherd.runtimes.tools.tool import ToolContext, ToolOutcome, failed

EDIT_LIMIT_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Edit:
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
    found = get_file(path, name)
    if found.st_size > EDIT_LIMIT_BYTES:
        raise InvalidValueError(f"{name} is too big to edit: {found.st_size:,} bytes")
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
    replace_file(path, changed, old=found, call=context.tool_use_id)
    return count


def _line_end_hint(content: bytes, old: bytes) -> str:
    if old.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n") in content:
        return "; its lines end with CRLF"
    return ""
