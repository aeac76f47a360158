"""Write: gives a file its whole content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anyio import to_thread

from nightherd.errors import InvalidValueError
from nightherd.runtimes.tools.arguments import Arguments
from nightherd.runtimes.tools.paths import explain, find_file, locate
from nightherd.runtimes.tools.replace import replace_file
from nightherd.runtimes.tools.tool import ToolContext, ToolOutcome, failed


@dataclass(frozen=True, slots=True)
class Write:
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
