"""Denied calls as results show them: from rules and from people, each call once."""

from __future__ import annotations

import pytest

from nightherd.model.journal.event import Event, ToolUseEvent, describe
from nightherd.model.journal.system import Denied, Reviewed
from nightherd.views.jobs.troubles import troubles_in


def called(call: str, tool: str = "Bash") -> Event:
    return ToolUseEvent(tool_name=tool, tool_use_id=call, input={"command": "git push"})


def reviewed(call: str, status: str, text: str) -> Event:
    return describe(Reviewed(tool_use_id=call, item="ask-1", status=status), text)


def denied(call: str | None, reason: str = "Bash is denied by a rule") -> Event:
    return describe(Denied(tool_name="Bash", reason=reason, tool_use_id=call), reason)


def found(*events: Event) -> list[tuple[str, str, str | None]]:
    return [(one.tool_name, one.reason, one.tool_use_id) for one in troubles_in(events).denials]


@pytest.mark.parametrize("status", ["rejected", "expired"])
def test_a_call_that_a_person_did_not_allow_is_a_denial(status: str) -> None:
    events = (called("t1"), called("t2", "Write"), reviewed("t1", status, "rejected by ada: no"))

    assert found(*events) == [("Bash", "rejected by ada: no", "t1")]


@pytest.mark.parametrize("status", ["pending", "approved", "answered"])
def test_a_call_that_waits_or_was_allowed_is_none(status: str) -> None:
    assert found(called("t1"), reviewed("t1", status, "waits")) == []


def test_a_rejected_call_is_counted_once_also_when_its_worker_was_killed_between() -> None:
    first = (called("t1"), reviewed("t1", "rejected", "rejected by ada"))
    again = (reviewed("t1", "rejected", "rejected by ada"), denied("t1", "rejected by ada"))

    assert found(*first, *again) == [("Bash", "rejected by ada", "t1")]


def test_denials_are_in_order_and_those_without_an_id_are_all_there() -> None:
    events = (denied(None), called("t1"), reviewed("t1", "rejected", "no"), denied(None))

    assert [call for _, _, call in found(*events)] == [None, "t1", None]
