"""Spawn: have another agent of the fleet do a part of the work, and take its answer as the result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nightherd.model.children import TOOL, SpawnCall
from nightherd.runtimes.tools.bash import Bash
from nightherd.runtimes.tools.files import Edit, Read, Write
from nightherd.runtimes.tools.search import Glob, Grep
from nightherd.runtimes.tools.tool import Tool, ToolContext, ToolOutcome, failed


class Spawn:
    """Implements the `Tool` protocol."""

    name = TOOL
    starts_processes = False
    is_read_only = False

    async def run(self, input: Mapping[str, Any], context: ToolContext) -> ToolOutcome:
        """The child's answer; a child that does not succeed is a call that failed."""
        agent, prompt = input.get("agent"), input.get("prompt")
        if not isinstance(agent, str) or not agent:
            return failed("'agent' is missing: the agent to ask")
        if not isinstance(prompt, str) or not prompt.strip():
            return failed("'prompt' is missing: what to ask of it")
        call = SpawnCall(call_id=context.tool_use_id, agent=agent, prompt=prompt)
        found = await context.spawn(call)
        if found.success:
            return ToolOutcome(result=found.answer or "")
        return failed(found.error or "the job did not succeed", found.answer)


def standard_tools() -> tuple[Tool, ...]:
    """Bash, Read, Write, Edit, Glob and Grep."""
    return (Bash(), Read(), Write(), Edit(), Glob(), Grep())
