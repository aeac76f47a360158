"""Agents whose runtime is not installed: their jobs wait, and whoever looks is told why."""

from __future__ import annotations

from pathlib import Path

import pytest

from surfaces.drivers import Cli

WHY = "runtime 'sdk' is not installed"


def test_a_worker_says_whose_jobs_it_cannot_run(cli: Cli, fleet: Path) -> None:
    done = cli("worker", "--until-idle")

    assert done.code == 0
    assert f"the jobs of claude wait: {WHY}\n" in done.err
    assert "  try: pip install 'nightherd[claude]', or" in done.err


@pytest.mark.parametrize("command", ["status", "agent"])
def test_an_agent_that_cannot_be_run_here_is_shown_with_the_reason(
    cli: Cli, fleet: Path, command: str
) -> None:
    shown = [line for line in cli(command).out.splitlines() if "not installed" in line]

    assert [line.split()[0] for line in shown] == ["claude"]
    assert shown[0].endswith(WHY)
