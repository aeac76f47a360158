"""A call that is proposed again under another id: what a person said about it applies once."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
from msgspec.structs import replace

from engine.bench import AGENT
from engine.inbox.test_reviews import Desk
from nightherd.model.inbox.item import Verdict as Said
from nightherd.model.inbox.review import Proceed, ProposedCall, Refuse, Verdict, Wait
from nightherd.model.jobs.changes import ResumeJob
from nightherd.model.jobs.job import JobStatus
from nightherd.model.journal.event import Event, ToolUseEvent, describe
from nightherd.model.journal.system import Complete, Init
from nightherd.ports import RuntimeRequest

PUSH = {"command": "git push"}


class Forgetful:
    """A runtime that proposes the same call in each execution, under the ids it is given; it notes the answers."""

    def __init__(self, *executions: tuple[str, ...]) -> None:
        self._executions = list(executions)
        self.verdicts: list[Verdict] = []

    async def execute(self, request: RuntimeRequest) -> AsyncGenerator[Event, None]:
        """Propose until somebody has to be waited for."""
        yield describe(Init(runtime="forgetful"))
        for call in self._executions.pop(0):
            yield ToolUseEvent(tool_name="Bash", tool_use_id=call, input=PUSH, index=0)
            proposed = ProposedCall(tool_use_id=call, tool="Bash", input=PUSH)
            self.verdicts.append(await request.review(proposed))
            if isinstance(self.verdicts[-1], Wait):
                return
        yield describe(Complete())


def desk_of(tmp_path: Path, runtime: Forgetful) -> Desk:
    agent = replace(AGENT, working_directory=str(tmp_path))
    desk = Desk(agent)
    desk.context = replace(desk.context, runtimes=lambda name: runtime, agents={agent.name: agent})
    return desk


def test_approval_applies_once_whatever_the_call_is_called(tmp_path: Path) -> None:
    runtime = Forgetful(("first",), ("second", "first", "third"))
    desk = desk_of(tmp_path, runtime)
    job = desk.run()
    desk.answer(Said.APPROVE)
    waiting = desk.execute(job.id)

    waits, allowed, refused, asked_again = runtime.verdicts
    assert isinstance(waits, Wait)
    assert isinstance(allowed, Proceed)
    assert isinstance(refused, Refuse)
    assert "outcome is unknown" in refused.reason
    # The same call once more is another one: somebody is asked about it.
    assert isinstance(asked_again, Wait)
    assert waiting.status is JobStatus.SUSPENDED
    assert [item.tool_use_id for item in desk.waiting()] == ["third"]


def test_call_that_still_waits_is_not_asked_about_twice(tmp_path: Path) -> None:
    runtime = Forgetful(("first",), ("second",), ("third",))
    desk = desk_of(tmp_path, runtime)
    job = desk.run()
    resume = ResumeJob(job_id=job.id, at=desk.context.clock.now())
    anyio.run(desk.context.state.apply, [resume])
    desk.execute(job.id)
    waiting = desk.waiting()
    desk.answer(Said.APPROVE)
    done = desk.execute(job.id)

    assert [item.tool_use_id for item in waiting] == ["first"]
    assert done.status is JobStatus.COMPLETED
    assert [type(verdict) for verdict in runtime.verdicts] == [Wait, Wait, Proceed]
