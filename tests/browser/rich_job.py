"""A finished job with everything that a transcript can show: every kind of tool, thinking, subagents, images, waits, dead time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from browser.large_history import Story, beginning_of, stamped, write_journals
from nightherd.model.ids import JobId, generate_execution_id
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    describe,
)
from nightherd.model.journal.system import (
    Complete,
    Denied,
    End,
    ExecutionStarted,
    HookRan,
    Recovered,
    Reviewed,
    SystemSubtype,
    Warned,
)
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Usage

RED = "\x1b[1;31mFAILED\x1b[0m"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A picture of one red point."""
USED = Usage(input_tokens=900, output_tokens=60, cost_microusd=MicroUsd(12_000))
PLAN = """\
I look first.

| step | who |
|---|---|
| read | me |

1. Read `barn.py`
2. Close the **gate**

```python
gate.close()
```
"""


class Script:
    """Writes the messages of a conversation, numbered as a runtime numbers them."""

    def __init__(self, *, first_message: int = 2) -> None:
        self._message = first_message
        self._turn = 0
        self._call = 0

    def says(self, text: str, thinking: str | None = None) -> Iterator[Event]:
        """A turn that is only an answer."""
        self._turn += 1
        yield AssistantEvent(
            content=text, thinking=thinking, usage=USED, end=True, **self._place(0)
        )

    def calls(
        self,
        tool: str,
        given: Any,
        result: Any = "",
        *,
        error: str | None = None,
        inside: tuple[Event, ...] = (),
        text: str = "",
    ) -> Iterator[Event]:
        """A turn with a call and its result; `inside` is what a subagent does meanwhile."""
        self._turn += 1
        self._call += 1
        call = f"call-{self._call}"
        if text:
            yield AssistantEvent(content=text, **self._place(0))
        yield ToolUseEvent(
            tool_name=tool, tool_use_id=call, input=given, end=True, **self._place(1)
        )
        self._message += 1
        for event in inside:
            yield replace(event, parent_tool_use_id=call, turn=self._turn)
        yield ToolResultEvent(
            tool_use_id=call,
            result=result if error is None else None,
            error=error,
            success=error is None,
            end=True,
            **self._place(0),
        )
        self._message += 1

    @property
    def last_call(self) -> str:
        """The id of the newest call."""
        return f"call-{self._call}"

    def _place(self, index: int) -> dict[str, Any]:
        return {"message": self._message, "index": index, "turn": self._turn}


async def write_rich_job(state: Path, ending: datetime) -> JobId:
    """The job, of the agent `hello`; its worker was lost once, for two minutes."""
    story = Story(number=424_242, at=ending - timedelta(minutes=30), prompt="Mend the *barn*.")
    await write_journals(state, [(story, [*stamped_twice(story)])])
    return story.job


def stamped_twice(story: Story) -> Iterator[Event]:
    """The lines of two executions, with dead time between them."""
    second = generate_execution_id(story.job, 2)
    is_second = False
    for event in stamped(story, rich_events(story)):
        is_second |= isinstance(event, SystemEvent) and bool(
            (event.extra or {}).get("continues_after")
        )
        if not is_second or event.timestamp is None:
            yield event
        else:
            at = event.timestamp + timedelta(minutes=2)
            yield replace(event, epoch=2, execution=second, timestamp=at)


def rich_events(story: Story) -> Iterator[Event]:
    """What happened in the job."""
    yield from beginning_of(story)
    script = Script()
    yield from script.says(PLAN, thinking="The gate is **open**, I think.")
    yield from script.calls("Bash", {"command": "pytest -q", "description": "Run the tests"}, error=f"exit code 3\n{RED} barn.py\n2 of 9")  # fmt: skip
    yield from script.calls("Read", {"file_path": "/pasture/barn.py", "offset": 10, "limit": 2}, "gate = open\nhay = 3")  # fmt: skip
    yield from script.calls("Edit", {"file_path": "/pasture/barn.py", "old_string": "gate = open", "new_string": "gate = closed"}, "edited")  # fmt: skip
    yield from script.calls("Write", {"file_path": "/pasture/notes.md", "content": "# Notes\nThe gate is closed."}, "written")  # fmt: skip
    yield from script.calls("Grep", {"pattern": "gate", "path": "src", "glob": "*.py"}, "src/a.py:3: gate")  # fmt: skip
    inside = (
        AssistantEvent(content="I am the subagent.", message=900, index=0),
        ToolUseEvent(tool_name="Bash", tool_use_id="inner", input={"command": "ls hay"}, message=900, index=1, end=True),
        ToolResultEvent(tool_use_id="inner", result="hay-1", success=True, message=901, index=0, end=True),
    )  # fmt: skip
    yield from script.calls("Task", {"description": "Count the hay", "prompt": "How much **hay**?", "subagent_type": "counter"}, "Three bales.", inside=inside)  # fmt: skip
    yield from script.calls("mcp__desk__look", {"drawer": 3}, [{"type": "text", "text": "a key"}, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}])  # fmt: skip
    yield from script.calls("Teleport", {"to": ["moon", {"at": 7}]}, {"arrived": False})
    yield from script.calls("TodoWrite", {"todos": [{"content": "Close the gate", "status": "completed"}, {"content": "Feed", "status": "pending"}]}, "ok")  # fmt: skip
    yield from script.calls("Bash", {"command": "git push"}, error="not allowed")
    yield describe(Denied(tool_name="Bash", reason="a rule says no", tool_use_id=script.last_call))
    yield describe(HookRan(name="notify", event="after_run", success=False, error="no such host"))
    yield describe(Warned(code="slow"), "The model is slow.")
    yield describe(ExecutionStarted(worker="worker-after000", continues_after=1))
    yield describe(Recovered(lost_execution="e1", reason="its worker was lost"))
    yield from script.calls("Bash", {"command": "sleep 1 && echo on"}, "on", text="Where was I?")
    yield describe(Reviewed(tool_use_id=script.last_call, item="item-1", status="approved", by="carol", via="slack"))  # fmt: skip
    yield from script.calls("Bash", {"command": "seq 40"}, "\n".join(map(str, range(1, 41))))
    yield SystemEvent(subtype=SystemSubtype.USER_INPUT, content="And the roof?", message=800, index=0, end=True)  # fmt: skip
    yield from script.says("The roof is sound.")
    yield ErrorEvent(message="The barn is on fire.", code="fire", stack="at barn.py:3")
    yield describe(Complete(stop_reason="error"))
    yield describe(End(status="failed", exit_reason="error"))
