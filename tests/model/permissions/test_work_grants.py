"""Where issues come from and what is written there is a permission; how often one is tried is not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from model.permissions.test_widening import FLEET, HOME, NIGHTLY, beyond, with_agent
from nightherd.model.agents.agent import Fleet
from nightherd.model.permissions.grants import FleetGrants, grants_of
from nightherd.model.permissions.restrain import restrained
from nightherd.model.permissions.widening import narrowed
from nightherd.model.work.source import OnSuccess, WorkSource

SOURCE = WorkSource(repo="acme/app")


def taking(**changes: Any) -> Fleet:
    """The fleet, with a schedule that takes issues."""
    nightly = replace(NIGHTLY, work=replace(SOURCE, **changes))
    return with_agent({"schedules": {"nightly": nightly}})


@pytest.mark.parametrize(
    "changes",
    [
        {"repo": "evil/app"},
        {"base_url": "https://evil.example/api/v3"},
        {"token_env": "OTHER_TOKEN"},
        {"ready": "anybodys"},
        {"exclude_labels": ("x",)},
        {"on_success": OnSuccess.KEEP},
        {"lock": False},
        {"done": "approved"},
    ],
    ids=lambda one: next(iter(one)),
)
@pytest.mark.parametrize("before", [None, taking()], ids=["restart", "reload"])
def test_another_source_waits_for_a_person(changes: dict[str, Any], before: Fleet | None) -> None:
    accepted, fleet = grants_of(taking()), taking(**changes)

    found = beyond(accepted, fleet)
    held = restrained(fleet, accepted, before)

    assert found == ["agent a: work_source: 1 new or changed"]
    assert beyond(accepted, held) == []
    sources = [one.work for one in held.agents["a"].schedules.values()]
    assert sources == ([] if before is None else [SOURCE])
    assert beyond(narrowed(accepted, grants_of(fleet), HOME), taking()) == []


def test_schedule_that_begins_to_take_issues_waits_for_a_person() -> None:
    accepted, fleet = grants_of(FLEET), taking()

    assert beyond(accepted, fleet) == ["agent a: work_source: 1 new or changed"]
    (kept,) = restrained(fleet, accepted, FLEET).agents["a"].schedules.values()
    assert kept.work is None


@pytest.mark.parametrize(
    "changes", [{"max_attempts": 9}, {"cleanup_on_failure": False}, {"cleanup_in_progress": True}]
)
def test_how_often_an_issue_is_tried_needs_nobody(changes: dict[str, Any]) -> None:
    assert beyond(grants_of(taking()), taking(**changes)) == []


def test_schedule_that_takes_no_issues_any_more_has_to_be_accepted_again_to_take_some() -> None:
    after = narrowed(grants_of(taking()), grants_of(FLEET), HOME)

    assert beyond(after, FLEET) == []
    assert beyond(after, taking()) == ["agent a: work_source: 1 new or changed"]


def test_record_from_before_there_were_sources_grants_none() -> None:
    document = msgspec.to_builtins(grants_of(FLEET))
    assert document["agents"]["a"].pop("work") == []
    older = msgspec.convert(document, FleetGrants)

    assert beyond(older, FLEET) == []
    assert beyond(older, taking()) == ["agent a: work_source: 1 new or changed"]
