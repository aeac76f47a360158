"""What the real `claude` is told while it is at work: read in between or after its answer, once, whatever is killed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import msgspec
import pytest
from anyio import to_thread

from nightherd.model.journal.event import (
    AssistantEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    describe,
    is_terminal,
)
from nightherd.model.journal.system import ExecutionStarted, SystemSubtype, UserInput
from nightherd.ports import NewInput
from nightherd.testing.messages_api import Asked, MessagesApi
from nightherd.testing.messages_script import Call, Say
from runtimes.claude.claude_stage import EXECUTION, JOB, PATIENCE_S, ClaudeStage
from runtimes.heard import session_of

PROMPT = "count the sheep"
SAID = "the black ones too, please"
UUID = "5f1c9a52-9c0d-5b0e-8f67-0d9b1a2c3d4e"
CALL = Call("Bash", {"command": "echo once >> times"})


class Meanwhile:
    """A person who says `SAID` when Claude has sent so many requests, and its first result is on record."""

    def __init__(self, stage: ClaudeStage, api: MessagesApi, *, requests: int) -> None:
        self.stage = stage
        self.api = api
        self.history: list[Event] = []
        self.session: str | None = None
        self._requests = requests
        self._is_said = False

    async def take(self) -> Sequence[NewInput]:
        assert isinstance(self.history[-1], ToolResultEvent), "it is asked for after a result"
        if self._is_said:
            return ()
        self._is_said = True
        if not await to_thread.run_sync(self.api.wait_until_asked, self._requests, PATIENCE_S):
            raise TimeoutError
        said = describe(UserInput(messages=("m1",)), SAID)
        self._record(msgspec.structs.replace(said, uuid=UUID, end=True))
        return (NewInput(uuid=UUID, text=SAID),)

    async def run(
        self,
        see: Callable[[Event], None] | None = None,
        *,
        is_continued: bool = False,
    ) -> list[Event]:
        """Run it; `see` may stop it."""
        request = self.stage.request(
            self.api,
            PROMPT,
            execution=f"{JOB}.2" if is_continued else EXECUTION,
            runtime_session_id=self.session,
            history=tuple(self.history),
            permission_mode="bypassPermissions",
        )
        request = msgspec.structs.replace(request, take_input=self.take)
        seen: list[Event] = []
        with anyio.fail_after(PATIENCE_S):
            async for event in self.stage.make_runtime().execute(request):
                seen.append(event)
                self._record(event)
                self.session = self.session or session_of(seen)
                if see is not None:
                    see(event)
        return seen

    def _record(self, event: Event) -> None:
        self.history.append(msgspec.structs.replace(event, execution=EXECUTION))


def copies(asked: Asked) -> int:
    """How often the request holds what was said."""
    return sum(one.count(SAID) for one in asked.texts)


def answers(events: Sequence[Event]) -> list[str]:
    return [
        event.content for event in events if isinstance(event, AssistantEvent) and event.content
    ]


@pytest.mark.either_runtime
def test_what_is_said_meanwhile_is_read_before_the_next_request(stage: ClaudeStage) -> None:
    with MessagesApi(Say(calls=(CALL,)), Say(calls=(CALL,)), Say(text="all counted")) as api:
        # The second answer is on its way: its call waits until Claude was told.
        events = anyio.run(Meanwhile(stage, api, requests=2).run)

    assert [copies(asked) for asked in api.asked] == [0, 0, 1]
    assert answers(events) == ["all counted"]
    assert [one for one in events if is_terminal(one)] == [events[-1]]
    assert isinstance(events[-1], SystemEvent)
    assert stage.processes() == {}


@pytest.mark.either_runtime
def test_what_is_said_too_late_for_the_answer_is_answered_after_it(stage: ClaudeStage) -> None:
    script = (Say(calls=(CALL,)), Say(text="all white"), Say(calls=(CALL,)), Say(text="one black"))
    with MessagesApi(*script) as api:
        events = anyio.run(Meanwhile(stage, api, requests=2).run)

    assert [copies(asked) for asked in api.asked] == [0, 0, 1, 1]
    assert answers(events) == ["all white", "one black"]
    assert [one for one in events if is_terminal(one)] == [events[-1]]
    assert isinstance(events[-1], SystemEvent)
    assert events[-1].subtype is SystemSubtype.COMPLETE


@pytest.mark.either_runtime
@pytest.mark.parametrize("is_read", [False, True])
def test_what_was_said_before_a_kill_reaches_the_model_once(
    stage: ClaudeStage, *, is_read: bool
) -> None:
    forever = Call("Bash", {"command": "tail -f /dev/null"})
    script = [Say(calls=(CALL,)), Say(calls=(forever,)), Say(text="done"), Say(text="and again")]
    if is_read:
        script.insert(1, Say(calls=(CALL,)))

    async def main(told: Meanwhile) -> None:
        with anyio.CancelScope() as run:

            def stop_in_the_call(event: Event) -> None:
                if "tail -f" in repr(event):
                    run.cancel()

            await told.run(stop_in_the_call)
        assert run.cancelled_caught
        for _ in range(2):
            told.history.append(
                msgspec.structs.replace(
                    describe(ExecutionStarted(worker="w")), execution=f"{JOB}.2"
                )
            )
            await told.run(is_continued=True)

    with MessagesApi(*script) as api:
        anyio.run(main, Meanwhile(stage, api, requests=2))

    before = 3 if is_read else 2
    assert [copies(asked) for asked in api.asked[before:]] == [1, 1]
    assert copies(api.asked[before - 1]) == int(is_read)
    assert Path(stage.work, "times").read_text() == "once\n" * (before - 1)
