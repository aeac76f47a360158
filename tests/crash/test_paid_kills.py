"""A job of a real provider's killed at any point: each request that was sent is paid for once, answered or not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crash.ground import (
    Ground,
    Place,
    check_doctor_leaves_nothing,
    check_rows_are_as_journals_say,
    is_killed,
    places,
)
from nightherd.model.jobs.job import JobStatus
from nightherd.model.journal.event import AssistantEvent, Event
from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Call, Say, Tokens
from soak import often

STRIDE = often(7, soak=1)
"""How many of the places in a run are passed over for each that it is killed at."""
FLEET = """\
lease: 5m
mirror: false
limits: {per_day: 1000}
agents:
  - {name: herder, runtime: native, model: "anthropic:claude-sonnet-5-5", allowed_tools: [Edit]}
"""
ANSWERED = Tokens(input=2_000, output=100)
CALL = Call("Edit", {"file_path": "counter-b", "old_string": ".", "new_string": "one ."})
ANSWERS = (Say(text="mark", calls=(CALL,), tokens=ANSWERED), Say(text="done", tokens=ANSWERED))


def lay(ground: Ground, api: MessagesApi) -> None:
    """Everything a job needs, and the way to the provider."""
    ground.lay_counter("b")
    (ground.folder / ".env").write_text(
        f"ANTHROPIC_API_KEY=key-for-nobody\nANTHROPIC_BASE_URL={api.url}\n"
    )


def announced(events: list[Event]) -> list[AssistantEvent]:
    """The lines that say that a model is about to be asked."""
    answers = [event for event in events if isinstance(event, AssistantEvent)]
    return [event for event in answers if event.partial and event.content is None]


def kill_and_finish(ground: Ground, first: Place, second: Place) -> int:
    """Kill a run and who goes on with it; how many were killed. Money is as it has to be in the end."""
    with MessagesApi(*ANSWERS) as api:
        lay(ground, api)
        ended = [ground.run("herder", "b", first), ground.go_on(second)]
        assert ground.go_on().status == 0
        asked = len(api.asked)
    assert all(one.status == 0 or is_killed(one) for one in ended), ended
    for job in ground.jobs().values():
        events = ground.journal(job)
        assert job.status is JobStatus.COMPLETED, job
        lines = announced(events)
        assert len(lines) >= asked, "said before it is asked"
        assert all(line.usage is not None and line.usage.cost_microusd for line in lines)
        known = [one for one in events if isinstance(one, AssistantEvent) and one.index == 0]
        assert len(known) <= asked
        assert job.input_tokens >= asked * min(
            line.usage.input_tokens for line in lines if line.usage
        )
    check_rows_are_as_journals_say(ground)
    return sum(map(is_killed, ended))


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_killed_at_any_point_every_request_is_paid_for_once(
    make_ground: Callable[[str], Ground],
) -> None:
    ground = make_ground(FLEET)
    ground.server.load("pydantic_ai.models.anthropic", "pydantic_ai.providers.anthropic")
    with ground.copied() as trial, MessagesApi(*ANSWERS) as api:
        lay(trial, api)
        ways = places(trial.run("herder", "b").said)
    with ground.copied() as trial, MessagesApi(*ANSWERS) as api:
        lay(trial, api)
        assert is_killed(trial.run("herder", "b", Place("journal.after_write", 8)))
        goings_on = places(trial.go_on().said)

    kills = 0
    for number, first in list(enumerate(ways))[::STRIDE]:
        second = goings_on[number % len(goings_on)]
        print(f"trial {number} of {len(ways)}: {first}, then {second}")
        with ground.copied() as trial:
            kills += kill_and_finish(trial, first, second)
            if number % 2 == 0:
                check_doctor_leaves_nothing(trial)
    print(f"{kills} kills")
    assert kills >= len(ways) // STRIDE
