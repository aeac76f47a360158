"""`limits` and the agents that hooks submit, as the fleet file says them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from config.folder import Folder
from nightherd.model.limits.limits import LimitName, OnLimit


def test_no_job_of_the_fleet_has_more_levels_children_or_time(folder: Folder) -> None:
    folder.fleet("""\
        limits: {spawns: 4, depth: 2, duration: 1h, on_reached: {depth: fail, spawns: fail}}
        agents:
          - name: plain
            runtime: cli
          - name: own
            runtime: cli
            limits: {spawns: 9, depth: 1, duration: 2h, on_reached: {spawns: suspend}}
            schedules:
              nightly: {interval: 1d, prompt: Go., limits: {duration: 3h, spawns: 1}}
        """)

    plain, own = folder.agent("plain").limits, folder.agent("own").limits
    nightly = folder.agent("own").schedules["nightly"].limits

    assert (plain.spawns, plain.depth, plain.duration) == (4, 2, timedelta(hours=1))
    assert plain.outcome(LimitName.DEPTH) is OnLimit.FAIL
    assert (own.spawns, own.depth, own.duration) == (4, 1, timedelta(hours=1))
    assert own.outcome(LimitName.SPAWNS) is OnLimit.SUSPEND, "the agent's word comes first"
    assert (nightly.spawns, nightly.depth, nightly.duration) == (1, None, timedelta(hours=1))


@pytest.mark.parametrize("event", ["limit", "budget"])
def test_whoever_is_asked_may_be_asked_about_what_is_shared(folder: Folder, event: str) -> None:
    folder.fleet(f"""\
        limits:
          spend: 9
          on_reached: hook
          hooks: [{{event: {event}, directive: a}}]
        agents:
          - {{name: a, runtime: cli}}
        """)

    assert folder.errors() == []


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("limits: {hooks: [{event: limit, directive: judgee}]}", "4:48"),
        (
            "schedules: {x: {interval: 1d, prompt: Go., limits: {hooks: [{event: limit, directive: judgee}]}}}",
            "4:91",
        ),
        ("hooks: {on_error: [{type: agent, directive: judgee}]}", "4:49"),
    ],
)
def test_an_agent_that_a_hook_submits_has_to_be_there(
    folder: Folder, text: str, place: str
) -> None:
    folder.fleet(
        "agents:\n  - name: a\n    runtime: cli\n    "
        + text
        + "\n  - {name: judge, runtime: cli}\n"
    )

    (found,) = folder.found()

    assert folder.line(found) == f"nightherd.yaml:{place} the fleet has no agent 'judgee'"
    assert found.hint == "did you mean 'judge'?"


def test_an_agent_that_the_fleets_hooks_submit_has_to_be_there(folder: Folder) -> None:
    folder.fleet("""\
        limits: {spend: 1, hooks: [{event: budget, directive: nobody}]}
        agents:
          - {name: a, runtime: cli}
        """)

    assert folder.errors() == ["nightherd.yaml:1:55 the fleet has no agent 'nobody'"]


def test_an_agent_of_a_sub_fleet_is_submitted_by_its_whole_name(folder: Folder) -> None:
    folder.fleet("fleets: [{path: sub/nightherd.yaml, name: sub}]\n")
    folder.write(
        "sub/nightherd.yaml",
        """\
        agents:
          - {name: a, runtime: cli, limits: {hooks: [{event: limit, directive: sub.b}]}}
          - {name: b, runtime: cli, limits: {hooks: [{event: limit, directive: a}]}}
        """,
    )

    (found,) = folder.found()

    assert folder.line(found).endswith("sub/nightherd.yaml:3:72 the fleet has no agent 'a'")
    assert found.hint == "did you mean 'sub.a'?"


@pytest.mark.parametrize("runtime", ["cli", "sdk"])
def test_calls_that_may_be_made_again_are_no_use_to_claude(folder: Folder, runtime: str) -> None:
    folder.fleet(f"agents:\n  - name: a\n    runtime: {runtime}\n    idempotent_tools: [Read]\n")

    assert folder.notices() == [
        f"nightherd.yaml:4:5 'idempotent_tools' is not used: runtime {runtime} repeats no calls"
    ]


def test_our_own_loops_use_them(folder: Folder) -> None:
    folder.fleet("""\
        agents:
          - {name: a, runtime: native, model: "openai:x", idempotent_tools: [Read]}
          - {name: b, runtime: scripted, script: [{say: Hm.}], idempotent_tools: [Read]}
        """)

    assert folder.notices() == []
