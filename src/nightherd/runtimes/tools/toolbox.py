"""The tools every agent of our own loops is offered."""

from __future__ import annotations

from nightherd.runtimes.tools.bash import Bash
from nightherd.runtimes.tools.edit import Edit
from nightherd.runtimes.tools.read import Read
from nightherd.runtimes.tools.search import Glob, Grep
from nightherd.runtimes.tools.tool import Tool
from nightherd.runtimes.tools.write import Write


def standard_tools() -> tuple[Tool, ...]:
    """Bash, Read, Write, Edit, Glob and Grep."""
    return (Bash(), Read(), Write(), Edit(), Glob(), Grep())
