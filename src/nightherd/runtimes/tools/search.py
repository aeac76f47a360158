"""Glob and Grep: finding files by their names and by what stands in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import msgspec

from nightherd.errors import InvalidValueError
from nightherd.model.secrets import SecretFilter, Secrets
from nightherd.runtimes.keeper.process import finish
from nightherd.runtimes.tools.bash import outcome_of
from nightherd.runtimes.tools.files import check_path
from nightherd.runtimes.tools.output import WholeOutput
from nightherd.runtimes.tools.program import started
from nightherd.runtimes.tools.search_program import MAX_LINE, TEXT_MARK
from nightherd.runtimes.tools.tool import Arguments, ToolContext, ToolOutcome, failed

SEARCH_LIMIT = timedelta(minutes=1)
"""How long a search may take: a pattern can be one that never comes to an end."""
LONGEST_PATTERN = 50_000
"""Characters of a pattern: what a search needs to understand it grows a hundred times as fast."""
NOTHING = "nothing found"
MODES = ("content", "files", "count")


class Glob(msgspec.Struct, frozen=True):
    """`pattern` for the paths of files (`src/**/*.py`), optionally `path`, the directory to look in.

    The result is one path a line, relative to the working directory, in order.
    """

    name: str = "Glob"
    starts_processes: bool = False
    is_read_only: bool = True

    async def run(self, input: Mapping[str, Any], context: ToolContext) -> ToolOutcome:
        """Look for them."""
        try:
            arguments = Arguments(self.name, input, ("pattern", "path"))
            asked = {"pattern": arguments.text("pattern"), "path": arguments.text_or("path", ".")}
        except InvalidValueError as error:
            return failed(str(error))
        return await _search(self.name, asked, context)


class Grep(msgspec.Struct, frozen=True):
    """`pattern`, a regular expression, for lines of files; optionally `path`, a file or the directory to look in,
    `glob` for the files to look into, `ignore_case`, and `mode`: `content`, `files` or `count`.

    The result is one line each: `file:line:text`, `file`, or `file:count`.
    """

    name: str = "Grep"
    starts_processes: bool = False
    is_read_only: bool = True

    async def run(self, input: Mapping[str, Any], context: ToolContext) -> ToolOutcome:
        """Look for them."""
        try:
            names = ("pattern", "path", "glob", "ignore_case", "mode")
            arguments = Arguments(self.name, input, names)
            asked = {
                "pattern": arguments.text("pattern"),
                "path": arguments.text_or("path", "."),
                "glob": arguments.text_or("glob", ""),
                "ignore_case": arguments.flag("ignore_case"),
                "mode": arguments.text_or("mode", "content"),
            }
            if asked["mode"] not in MODES:
                raise InvalidValueError(f"Grep: 'mode' must be one of {', '.join(MODES)}")
        except InvalidValueError as error:
            return failed(str(error))
        return await _search(self.name, asked, context)


async def _search(name: str, asked: Mapping[str, Any], context: ToolContext) -> ToolOutcome:
    """In a process of its own, under a keeper: there is no other way to stop a pattern that never ends."""
    try:
        if max(len(asked["pattern"]), len(asked.get("glob", ""))) > LONGEST_PATTERN:
            raise InvalidValueError(f"the pattern is too long: {LONGEST_PATTERN:,} is the most")
        check_path(asked["path"])
    except InvalidValueError as error:
        return failed(str(error))
    request = {
        **asked,
        "name": name,
        "root": str(context.working_directory),
        "more": [str(directory) for directory in context.more_directories],
    }
    with WholeOutput(context) as output:
        found = FoundLines(context.secrets, output.add)
        try:
            async with started("search_program.py", request, context) as process:
                ending = await finish(process, found.add, SEARCH_LIMIT)
                found.finish()
        except (OSError, ValueError) as error:
            return failed(f"the search could not be started: {error}")
        if ending is None:
            return await output.stored(failed("stopped: the search took too long", output.text()))
        outcome = outcome_of(ending, output.text())
        if not outcome.success:
            message = output.text().strip() or outcome.error or "the search failed"
            return failed(message, is_killed=outcome.is_killed)
        return await output.stored(outcome) if outcome.result else ToolOutcome(result=NOTHING)


CUT = " [...]"


class FoundLines:
    """Takes what the program prints and passes it on line by line; `finish` passes on the rest."""

    def __init__(self, secrets: Secrets, pass_on: Callable[[bytes], None]) -> None:
        self._filter = SecretFilter(secrets)
        self._pass_on = pass_on
        self._rest = b""

    def add(self, chunk: bytes) -> None:
        """Take `chunk`, which follows all that was added before."""
        self._take(self._filter.feed(chunk))

    def finish(self) -> None:
        """Nothing follows."""
        self._take(self._filter.finish())
        rest, self._rest = self._rest, b""
        if rest:
            self._pass_on(_shown(rest))

    def _take(self, masked: bytes) -> None:
        *lines, self._rest = (self._rest + masked).split(b"\n")
        if lines:
            self._pass_on(b"".join(_shown(line) + b"\n" for line in lines))


def _shown(line: bytes) -> bytes:
    """Return the line without its mark, the text of the file cut to what is shown of it."""
    place, mark, text = line.partition(TEXT_MARK)
    if not mark:
        return line
    found = text.decode(errors="surrogateescape")
    if len(found) > MAX_LINE:
        found = found[:MAX_LINE] + CUT
    return place + found.encode(errors="surrogateescape")
