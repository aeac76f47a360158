"""Limits, checkpoints and retention on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

import pytest

from surfaces.drivers import Cli, Shell

PATIENCE_S = 60
FLEET = """\
limits: {per_day: {turns: 1000}}
agents:
  - name: digger
    runtime: scripted
    default_prompt: Dig.
    limits: {turns: 2}
    script:
      - repeat: 4
        steps:
          - say: One more.
          - usage: {input_tokens: 10, output_tokens: 5, cost_usd: 0.10}
"""


@pytest.fixture
def dug(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A job that waits at its limit."""
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    monkeypatch.chdir(tmp_path)
    result = cli("run", "digger", "--json")
    assert result.code == 6
    assert result.data["error"]["code"] == "turns_exceeded"
    return str(result.data["job_id"])


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (["--limit", "turns"], "write turns=MAXIMUM"),
        (["--limit", "hopes=3"], "there are the limits spend, turns"),
        (["--limit", "turns=-1"], "negative"),
        (["--limit", "turns=many"], "not a whole number of turns"),
        (["--limit", "spend=x"], "not an amount in dollars"),
        (["--limit", "duration=5"], "not a duration"),
        (["--limit", f"turns={10**16}"], "more than is ever counted"),
        (["--limit", "turns=1", "--limit", "turns=2"], "given twice"),
    ],
)
def test_a_limit_that_makes_no_sense_is_a_usage_error(
    cli: Cli, dug: str, given: list[str], why: str
) -> None:
    result = cli("run", "digger", *given)

    assert result.code == 2
    assert why in result.err


def test_a_raised_job_says_what_it_has_used_and_has_left(cli: Cli, dug: str) -> None:
    raised = cli("jobs", "resume", dug, "--raise", "turns=3", "--raise", "spend=5", "--json")
    shown = cli("jobs", "show", dug, "--json")

    assert raised.code == 6
    assert "spent: $0.30 today (UTC), $0.30 in all" in cli("status").out
    rows = {
        one["limit"]: (one["used"], one["maximum"], one["left"]) for one in shown.data["limits"]
    }
    assert rows == {"spend": (pytest.approx(0.3), 5.0, pytest.approx(4.7)), "turns": (3, 3, 0)}
    card = cli("jobs", "show", dug).out
    assert "limit     turns: 3 of 3, 0 left" in card
    assert f"try       nightherd jobs resume {dug} --raise turns=6" in card

    done = cli("jobs", "resume", dug, "--raise", "turns=9", "--json")

    assert (done.code, done.data["usage"]["num_turns"]) == (0, 4)
    spend = next(
        one for one in cli("jobs", "show", dug, "--json").data["limits"] if one["limit"] == "spend"
    )
    assert spend["maximum"] == 5.0, "what was raised before stays raised"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("turns=2", "turns: job {job} has used 2 already; 2 is the new maximum"),
        ("turns=1", "has used 2 already; 1 is the new maximum, not an addition to it"),
        ("spend=0.10", "spend: job {job} has used $0.20 already; $0.10 is the new maximum"),
        ("tokens=0", "tokens: job {job} has used 30 already"),
        ("duration=0s", "duration: job {job} has used"),
    ],
)
def test_a_limit_is_not_raised_to_what_is_used_already(
    cli: Cli, dug: str, given: str, why: str
) -> None:
    before = cli("jobs", "show", dug, "--json").data

    refused = cli("jobs", "resume", dug, "--raise", given)

    after = cli("jobs", "show", dug, "--json").data
    assert refused.code == 5
    assert why.format(job=dug) in refused.err
    assert (after["limits"], after["executions"]) == (before["limits"], before["executions"])


def test_what_happens_at_each_limit_of_a_job_is_shown(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fleet = FLEET.replace("{turns: 2}", "{turns: 2, spend: 9, on_reached: {spend: fail}}")
    (tmp_path / "nightherd.yaml").write_text(fleet)
    job = cli("run", "digger", "--json").data["job_id"]

    rows = cli("jobs", "show", job, "--json").data["limits"]

    assert {one["limit"]: one["on_reached"] for one in rows} == {
        "turns": "suspend",
        "spend": "fail",
    }
    shown = cli("jobs", "show", job).out
    assert "limit     spend: $0.20 of $9.00, $8.80 left, then fail" in shown
    assert "limit     turns: 2 of 2, 0 left\n" in shown


def test_the_hooks_of_a_document_are_in_the_formats_own_order(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    hook = "{inputs: {why: more}, directive: digger, event: limit}"
    fleet = FLEET.replace("{turns: 2}", f"{{turns: 2, hooks: [{hook}]}}")
    (tmp_path / "nightherd.yaml").write_text(fleet)
    job = cli("run", "digger", "--json").data["job_id"]

    state = json.loads((tmp_path / ".nightherd" / "threads" / job / "state.json").read_text())

    assert [list(one.items()) for one in state["hooks"]] == [
        [("event", "limit"), ("directive", "digger"), ("inputs", {"why": "more"})]
    ]


def test_a_job_goes_on_from_an_earlier_place_in_a_branch(cli: Cli, dug: str) -> None:
    listed = cli("checkpoint", "list", dug, "--json").data
    assert cli("checkpoint", "--json").data == listed
    early = next(one["number"] for one in listed if one["turn"] == 1)

    branched = cli(
        "jobs", "resume", dug, "--at-checkpoint", str(early), "--raise", "turns=9", "--json"
    )
    same = cli(
        "jobs",
        "resume",
        dug,
        "--at-checkpoint",
        str(listed[-1]["number"]),
        "--raise",
        "turns=9",
        "--json",
    )
    nowhere = cli("jobs", "resume", dug, "--at-checkpoint", "99")

    assert branched.data["job_id"] != dug
    assert (same.code, same.data["job_id"]) == (0, dug)
    assert nowhere.code == 2
    assert "has no checkpoint 99" in nowhere.err


def test_checkpoints_are_shown_and_absent_ones_are_not_found(cli: Cli, dug: str) -> None:
    last = cli("checkpoint", "show", dug, "--json").data
    state = cli("checkpoint", "show", dug, "--state", "--json").data
    absent = cli("checkpoint", "show", dug, "99")

    card = cli("checkpoint", "show", dug).out
    assert (last["trigger"], last["header"]["limits"]) == ("on_suspend", {"turns": 2})
    assert "waits     turns_exceeded: 2, maximum 2" in card
    assert "limit     turns: 2 of 2, 0 left" in card
    assert (state["thread_id"], state["status"]) == (dug, "suspended")
    assert absent.code == 3


def test_what_is_shared_is_shown_with_what_is_left(cli: Cli, dug: str) -> None:
    rows = cli("limits", "--json").data

    assert [(one["scope"], one["limit"], one["used"], one["left"]) for one in rows] == [
        ("fleet", "turns", 2, 998),
        ("job", "turns", None, None),
    ]


def test_retention_plans_first_and_then_does_it(cli: Cli, dug: str) -> None:
    assert cli("jobs", "cancel", dug).code == 0
    planned = cli("retention", "--json")
    dry = cli("retention", "apply", "--dry-run", "--json")

    done = cli("retention", "apply", "--json")

    assert planned.data == dry.data == done.data
    assert (planned.document["is_dry_run"], done.document["is_dry_run"]) == (True, False)
    assert done.document["failures"] == {}
    assert cli("retention", "--json").data == []
    gone = cli("checkpoint", "list", dug, "--json").document
    assert (gone["data"], gone["removed"]) == ([], len(planned.data[0]["going"]))
    assert gone["removed_at"] is not None
    assert "were deleted by retention" in cli("checkpoint", "list", dug).err


def test_a_job_whose_checkpoints_are_gone_still_has_limits(cli: Cli, dug: str) -> None:
    def limits() -> list[tuple[str, int, int, int]]:
        rows = cli("jobs", "show", dug, "--json").data["limits"]
        return [(one["limit"], one["maximum"], one["used"], one["left"]) for one in rows]

    assert cli("jobs", "cancel", dug).code == 0
    before = limits()
    assert cli("retention", "apply").code == 0

    assert before == limits() == [("turns", 2, 2, 0)]
    assert "turns: 2 of 2, 0 left" in cli("jobs", "show", dug).out
    Path("nightherd.yaml").write_text(FLEET.replace("turns: 2", "turns: 9"))
    assert limits() == before, "what the job was held to is not what is declared since"


def test_job_that_never_had_checkpoints_is_not_one_whose_were_taken_away(
    cli: Cli, fleet: Path
) -> None:
    assert cli("run", "echo", "-p", "hi", "--json").code == 0

    none = cli("checkpoint", "list", "--json").document

    assert (none["data"], none["removed"], none["removed_at"]) == ([], 0, None)
    assert "never had checkpoints" in cli("checkpoint", "list").err


def test_a_job_whose_archive_cannot_be_made_holds_up_no_other(cli: Cli, dug: str) -> None:
    other = cli("run", "digger", "--json").data["job_id"]
    for job in (dug, other):
        assert cli("jobs", "cancel", job).code == 0
    in_the_way = Path(".nightherd", "threads", dug, "archive", "checkpoints.jsonl")
    in_the_way.mkdir(parents=True)

    done = cli("retention", "apply", "--json")

    assert done.code == 1
    assert [one["job_id"] for one in done.data] == [other]
    assert list(done.document["failures"]) == [dug]
    assert [one["job_id"] for one in cli("retention", "--json").data] == [dug]


def test_a_job_that_has_not_begun_says_what_it_will_be_held_to(cli: Cli, dug: str) -> None:
    asked = cli("run", "digger", "-d", "--limit", "spend=1", "--json")
    job = asked.data["id"]

    shown = cli("jobs", "show", job, "--json")
    card = cli("jobs", "show", job)

    rows = {one["limit"]: (one["used"], one["maximum"]) for one in shown.data["limits"]}
    assert rows == {"spend": (0.0, 1.0), "turns": (0, 2)}
    assert "limit     turns: 0 of 2, 2 left" in card.out
    assert asked.data["job_id"] == job


RUNNING = """\
agents:
  - name: digger
    runtime: scripted
    default_prompt: Dig.
    allowed_tools: [Bash]
    limits: {turns: 2}
    script:
      - repeat: 4
        steps:
          - say: One more.
          - tool: Bash
            input: {command: "touch reached; while [ ! -e released ]; do sleep 0.05; done"}
"""


def until(check: Callable[[], bool]) -> None:
    begun = monotonic()
    while not check():
        assert monotonic() - begun < PATIENCE_S
        sleep(0.05)


def test_a_job_is_given_more_before_it_begins_and_while_it_runs(
    cli: Cli, shell: Shell, fleet: Path
) -> None:
    (fleet / "nightherd.yaml").write_text(RUNNING)
    job = cli("run", "digger", "-d").out.strip()

    early = cli("jobs", "resume", job, "--raise", "turns=3")
    worker = shell.start("worker", "--until-idle", stderr=None)
    until((fleet / "reached").exists)
    late = cli("jobs", "resume", job, "--raise", "turns=9", "--json")
    less = cli("jobs", "resume", job, "--raise", "turns=2")
    told = cli("jobs", "resume", job, "--raise", "turns=10", "-p", "Hurry.")
    (fleet / "released").touch()

    assert worker.wait(PATIENCE_S) == 0
    done = cli("jobs", "show", job, "--json").data
    assert (done["status"], done["turns"], done["restart_count"]) == ("completed", 4, 0)
    assert (early.code, early.out.strip()) == (0, job)
    assert f"job {job} is pending, and may use turns 3 from now on" in early.err
    assert (late.code, late.document["schema"], late.data["status"]) == (
        0,
        "nightherd/v1/launch",
        "running",
    )
    assert (less.code, told.code) == (5, 5)
    assert "the limit of a running job can only be raised" in less.err
    assert "is running" in told.err


def test_a_job_cancelled_while_it_is_suspended_lists_its_on_cancel_checkpoint(
    cli: Cli, dug: str
) -> None:
    assert cli("jobs", "cancel", dug).code == 0

    *_, before, last = cli("checkpoint", "list", dug, "--json").data
    assert (before["trigger"], before["status"]) == ("on_suspend", "suspended")
    assert (last["trigger"], last["status"], last["turn"]) == ("on_cancel", "cancelled", 2)
    assert last["number"] == before["number"] + 1
    state = json.loads(cli("checkpoint", "show", dug, "--state").out)
    assert (state["status"], state["limits"]["turns"]) == ("cancelled", 2)
    assert cli("doctor", "--verify").code == 0
