"""`costs`: groups that add up, for people and for programs, without a daemon."""

from __future__ import annotations

from pathlib import Path

import pytest

from surfaces.drivers import Cli

FLEET = """\
fleet: {name: costly}
limits: {per_day: {spend: 4.00}}
agents:
  - name: hello
    runtime: scripted
    model: barn:owl
    script: [{say: "Hi."}, {usage: {input_tokens: 1200, output_tokens: 30, cost_usd: 1.25}}]
  - name: cheap
    runtime: scripted
    script: [{say: "Hi."}, {usage: {output_tokens: 1, cost_usd: 0.000004}}]
"""


@pytest.fixture
def spent(cli: Cli, fleet: Path) -> None:
    """Three jobs that cost something."""
    (fleet / "nightherd.yaml").write_text(FLEET)
    for agent in ("hello", "hello", "cheap"):
        assert cli("run", agent, "-p", "go").code == 0


@pytest.mark.usefixtures("spent")
def test_programs_get_groups_that_add_up(cli: Cli) -> None:
    found = cli("costs", "--by", "model,agent", "--tz", "UTC", "--json")

    assert found.document["schema"] == "nightherd/v1/costs"
    assert [(row["model"], row["agent"], row["cost_usd"]) for row in found.data["rows"]] == [
        ("barn:owl", "hello", 2.5),
        (None, "cheap", 0.000004),
    ]
    assert found.data["total"]["cost_usd"] == 2.500004
    assert found.data["total"]["jobs"] == 3
    assert found.data["pending_jobs"] == 0
    assert [cap["left"] for cap in found.data["burn"]["caps"]] == [1.499996]


@pytest.mark.usefixtures("spent")
def test_one_job_is_looked_at_by_its_id(cli: Cli) -> None:
    job = cli("jobs", "list", "--agent", "cheap", "--json").data[0]["id"]

    found = cli("costs", "--job", job, "--by", "agent", "--json")

    assert found.data["job"] == job
    assert [(row["agent"], row["jobs"]) for row in found.data["rows"]] == [("cheap", 1)]
    assert found.data["total"]["cost_usd"] == 0.000004


@pytest.mark.usefixtures("spent")
def test_people_see_a_table_with_its_total_and_what_limits_allow(cli: Cli) -> None:
    shown = cli("costs", "--by", "agent,model", "--limit", "1", "--tz", "Europe/Berlin")

    lines = [line.split() for line in shown.out.splitlines()]
    assert shown.code == 0
    assert (lines[0][1], len(lines[0])) == ("to", 3)
    assert lines[1] == ["AGENT", "MODEL", "COST", "TOKENS", "TURNS", "JOBS"]
    assert lines[2] == ["hello", "barn:owl", "(configured)", "$2.50", "2,460", "2", "2"]
    assert lines[3] == ["1", "other", "$0.000004", "1", "1"]
    assert lines[4] == ["total", "$2.500004", "2,461", "3", "3"]
    assert "today $2.500004" in shown.out
    assert "fleet" in lines[-1][0]
    assert "a day" in shown.out


def test_a_fleet_that_used_nothing_says_so(cli: Cli, fleet: Path) -> None:
    shown = cli("costs", "--since", "2026-01-01")

    assert shown.code == 0
    assert "nothing was used" in shown.err
    assert "today $0.00" in shown.out


@pytest.mark.parametrize(
    "options", [("--by", "price"), ("--since", "soon"), ("--tz", "Nowhere"), ("--limit", "0")]
)
def test_what_cannot_be_understood_is_refused(
    cli: Cli, fleet: Path, options: tuple[str, str]
) -> None:
    refused = cli("costs", *options)

    assert refused.code == 2
    assert options[1] in refused.err
